"""Warnings that the config accepts are recorded with the reason and do not fail --strict. An entry that is about
nothing fails it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import anon
from anon.config import load
from anon.config.warning_codes import ACCEPTABLE, WARNINGS
from anon.errors import UnsafeError
from tests import ROOT
from tests.conftest import House
from tests.helpers.config import SMALL, problems

PEOPLE = 240
DISEASE = [["Flu", "HIV", "Cold", "Gout"][i % 4] for i in range(PEOPLE)]
TABLE = pa.table(
    {
        "age": [20 + i // 20 for i in range(PEOPLE)],
        "zip": [f"0213{i // 120}" for i in range(PEOPLE)],
        "disease": DISEASE,
        "drug": [f"drug for {each}" for each in DISEASE],
    }
)
CONFIG: dict[str, Any] = {
    "privacy": [{"k_anonymity": 5}, {"l_diversity": {"kind": "distinct", "l": 2}}],
    "columns__keep": ["drug"],
}
REASON = "the drug is known to nobody outside"
ENTRY = {"warning": "kept_reveals", "column": "drug", "reason": REASON}


def run(house: House, *options: str, **changes: Any) -> Any:
    house.write(TABLE)
    return house.cli("run", *options, **CONFIG, **changes)


def test_an_accepted_warning_does_not_fail_strict_and_is_recorded_with_its_reason(house: House) -> None:
    assert run(house, "--strict").code == 3
    told = run(house, "--strict", "--json", accept=[ENTRY])
    (warning,) = told.json["warnings"]
    assert told.code == 0 and (warning["code"], warning["column"], warning["severity"]) == (
        "kept_reveals",
        "drug",
        "high",
    )
    assert warning["accepted"] == REASON
    left = {path.name: path.read_text(errors="replace") for path in (house.folder / "out-run").iterdir()}
    assert json.loads(left["report.json"])["summary"]["warnings"] == [warning]
    assert json.loads(left["manifest.json"])["warnings"] == [warning] and REASON in left["report.html"]


def test_without_a_column_the_warning_is_accepted_for_every_column(house: House) -> None:
    entry = {"warning": "kept_reveals", "reason": REASON}
    assert run(house, "--strict", accept=[entry]).code == 0


def test_a_warning_about_another_column_is_not_accepted_and_the_entry_is_stale(house: House) -> None:
    told = run(house, "--strict", accept=[ENTRY | {"column": "age"}])
    assert told.code == 3 and "kept_reveals: 240" in told.stderr and "stale_accept: 1" in told.stderr
    assert "kept_reveals (age)" in told.stderr and not (house.folder / "out").exists()


def test_the_release_does_not_depend_on_what_is_accepted(house: House) -> None:
    assert run(house).code == 0
    plain = {path.name: path.read_bytes() for path in (house.folder / "out").iterdir()}
    assert run(house, "--overwrite", accept=[ENTRY]).code == 0
    assert {path.name: path.read_bytes() for path in (house.folder / "out").iterdir()} == plain


def test_an_up_to_date_release_stays_accepted(house: House) -> None:
    assert run(house, "--strict", accept=[ENTRY]).code == 0
    told = house.cli("run", "--strict", "--json", **CONFIG, accept=[ENTRY])
    assert told.code == 0 and told.json["up_to_date"] is True


def test_check_and_plan_accept_the_same_and_know_no_stale_entries(house: House) -> None:
    accept = [ENTRY, {"warning": "intersection", "reason": "one recipient"}]
    assert run(house, accept=accept).code == 0
    release = str(house.folder / "out" / "release.parquet")
    assert house.cli("check", "--on", release, "--strict", **CONFIG).code == 3
    assert house.cli("check", "--on", release, "--strict", **CONFIG, accept=accept).code == 0
    warned = house.cli("plan", "--json", **CONFIG, accept=accept).json["warnings"]
    assert "stale_accept" not in [warning["code"] for warning in warned]


def test_python_accepts_the_same(house: House) -> None:
    house.write(TABLE)
    assert anon.run(house.config(**CONFIG, accept=[ENTRY]), strict=True).safe
    with pytest.raises(UnsafeError, match="kept_reveals"):
        anon.run(house.config(**CONFIG), strict=True, overwrite=True)


def test_the_terminal_shows_an_accepted_warning_with_its_reason(house: House) -> None:
    told = run(house, accept=[ENTRY]).stdout
    assert re.search(r"accepted warning: 240 individuals .*drug.* \(accepted: the drug is known", told)


@pytest.mark.parametrize(
    ("entry", "path", "words"),
    [
        ({"warning": "kept_reveal"}, "accept[0].warning", ["did you mean `kept_reveals`?", "absent_value, "]),
        ({"warning": "stale_accept", "column": None}, "accept[0].warning", ["absent_value, "]),
        ({"reason": None}, "accept[0].reason", ["text"]),
        ({"reason": "  "}, "accept[0].reason", ["a reason in words"]),
        ({"column": "ilness"}, "accept[0].column", ["a column that the config names", "did you mean `illness`?"]),
        ({"warning": "rows_dropped"}, "accept[0].column", ["rows_dropped is not about a single one"]),
    ],
)
def test_a_wrong_entry_is_refused(entry: dict[str, Any], path: str, words: list[str]) -> None:
    whole = {"warning": "kept_reveals", "column": "illness", "reason": "policy 12"} | entry
    whole = {key: value for key, value in whole.items() if key != "column" or value is not None}
    (problem,) = problems(SMALL | {"accept": [whole]})
    assert problem.path == path and all(word in str(problem) for word in words), str(problem)


def test_the_reason_is_required() -> None:
    (problem,) = problems(SMALL | {"accept": [{"warning": "kept_reveals"}]})
    assert problem.path == "accept[0].reason" and "required" in str(problem)
    assert load(SMALL | {"accept": [{"warning": "kept_reveals", "reason": "x"}]}).accept


def test_every_warning_of_the_engine_is_registered_and_documented() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in Path(anon.__file__).parent.rglob("*.py"))
    used = set(re.findall(r"(?:Warned|warn)\(\s*\"([a-z_0-9]+)\"", source))
    assert used <= WARNINGS.keys() and len(used) > 15
    text = (ROOT / "docs" / "traps.md").read_text(encoding="utf-8")
    assert not [code for code in ACCEPTABLE if f"`{code}`" not in text]
