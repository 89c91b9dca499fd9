"""Runs with a guard: the key, the report, resuming, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import anon
from anon.config.grammar import Guard
from anon.errors import ConfigError
from anon.runs.run_key import KEY
from tests.conftest import House
from tests.helpers.killed import anon_run
from tests.search.test_resume import config  # noqa: F401
from tests.search.test_tight_labels import COLUMNS, table

PRIVACY: list[dict[str, Any]] = [{"k_anonymity": {"k": 3}}, {"l_diversity": {"kind": "frequency", "l": 1.5}}]

IMPLICATIONS = {"ck_safety": {"c": 0.9, "k": 1}}
FAMILIES = {"skyline": {"points": [{"l": 0, "k": 1, "m": 1, "c": 0.9}]}}


def method(**guard: Any) -> dict[str, Any]:
    return {"kind": "partition", "prefer": "public", "guard": guard}


def bytes_of(house: House) -> tuple[bytes, bytes]:
    return (house.folder / "out" / "release.parquet").read_bytes(), (house.folder / "out-run" / KEY).read_bytes()


def test_the_key_stays_private_in_the_run_folder_and_is_used_again(house: House) -> None:
    house.write(table())
    changes = {"columns": COLUMNS, "privacy": PRIVACY, "method": method(skip=0.5)}
    house.run(**changes)
    first = bytes_of(house)
    path = house.folder / "out-run" / KEY
    assert path.stat().st_mode & 0o077 == 0 and len(bytes.fromhex(path.read_text())) == 32
    assert not (house.folder / "out" / KEY).exists()
    anon.run(house.config(**changes), overwrite=True, force=True)
    assert bytes_of(house) == first


def test_another_key_tosses_other_coins(house: House) -> None:
    house.write(table())
    changes = {"columns": COLUMNS, "privacy": PRIVACY, "method": method(skip=0.5)}
    found = set()
    for _ in range(4):
        house.run(**changes)
        found.add(bytes_of(house)[0])
        (house.folder / "out-run" / KEY).unlink()
        anon.run(house.config(**changes), overwrite=True, force=True)
        found.add(bytes_of(house)[0])
    assert len(found) > 1


def test_a_damaged_key_is_refused(house: House) -> None:
    house.write(table())
    changes = {"columns": COLUMNS, "privacy": PRIVACY, "method": method()}
    house.run(**changes)
    (house.folder / "out-run" / KEY).write_text("abc")
    with pytest.raises(ConfigError, match="damaged"):
        anon.run(house.config(**changes), overwrite=True, force=True)


def test_the_report_has_the_bound(house: House) -> None:
    house.write(table())
    result = anon.run(house.config(columns=COLUMNS, privacy=PRIVACY, method=method(skip=0.25)))
    guard = result.report["guard"]
    assert (guard["skip"], guard["below"], guard["enforced"]) == (0.25, 100, False)
    assert sum(guard["individuals"].values()) + guard["unbounded"] == 300
    page = (house.folder / "out-run" / "report.html").read_text()
    assert "What was not cut" in page


def test_sizes_alone_leave_nothing_to_learn_about_values(house: House) -> None:
    """Who is where is known to the adversary, so that k-anonymity decides nothing by values."""
    house.write(table())
    result = anon.run(house.config(columns=COLUMNS, privacy=[{"k_anonymity": {"k": 3}}], method=method()))
    guard = result.report["guard"]
    assert guard["largest"] == 1.0 and guard["unbounded"] == 0


def test_an_enforced_guard_holds_the_tightened_criteria(house: House) -> None:
    house.write(table())
    result = anon.run(house.config(columns=COLUMNS, privacy=PRIVACY, method=method(skip=0.5, enforce=True)))
    guard = result.report["guard"]
    assert guard["enforced"] and guard["unbounded"] == 0 and guard["below"] is None


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"method": {"kind": "partition", "guard": {}}}, "method.guard", "prefer: public"),
        ({"method": method(skip=0)}, "method.guard.skip", "0"),
        ({"method": method(skip=1)}, "method.guard.skip", "1"),
        ({"method": method(enforce=True, below=50)}, "method.guard.below", "no below"),
        ({"method": method(enforce=True), "privacy": [{"k_anonymity": 3}]}, "method.guard.enforce", "confidence"),
        (
            {"method": method(enforce=True), "privacy": [{"l_diversity": {"kind": "entropy", "l": 2}}]},
            "privacy[0].l_diversity", "no odds to tighten",
        ),
        ({"method": method(enforce=True), "privacy": [IMPLICATIONS]}, "privacy[0].ck_safety", "link"),
        ({"method": method(enforce=True), "privacy": [FAMILIES]}, "privacy[0].skyline", "link"),
        ({"method": method(), "release": {"path": "out", "one_level": True}}, "release.one_level", "guard"),
        ({"method": method(), "release": {"path": "out", "series": "append"}}, "release.series", "one release"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(house: House, changes: Any, field: str, words: str) -> None:
    house.write(table(30))
    with pytest.raises(ConfigError) as refused:
        anon.run(house.config(**({"columns": COLUMNS, "privacy": PRIVACY} | changes)))
    assert field in str(refused.value) and words in str(refused.value)


def test_the_default_of_below() -> None:
    assert (Guard().limit, Guard(below=7).limit, Guard(enforce=True).limit) == (100, 7, None)


BOUNDING: list[dict[str, Any]] = [
    {"alpha_k": {"alpha": 0.8, "k": 2}},
    {"skyline": {"points": [{"l": 0, "k": 1, "m": 0, "c": 0.95}], "values": {"Flu": "exempt"}}},
    {"l_diversity": {"kind": "recursive", "c": 9, "l": 2}},
    {"l_diversity": {"kind": "frequency", "l": 1.25}},
]


@pytest.mark.parametrize("criterion", BOUNDING)
def test_every_criterion_that_bounds_odds_can_be_enforced(house: House, criterion: Any) -> None:
    house.write(table())
    result = anon.run(house.config(columns=COLUMNS, privacy=[criterion], method=method(skip=0.5, enforce=True)))
    assert result.to_dict()["safe"] and result.report["guard"]["enforced"]


def test_a_killed_run_resumes_with_its_key(config: Path) -> None:  # noqa: F811
    settings = json.loads(config.read_text()) | {"method": method(skip=0.5)}
    config.write_text(json.dumps(settings))
    anon_run(config, steps=4)
    kept = next(config.parent.glob(f".anon-*/checkpoint/{KEY}")).read_bytes()
    assert anon_run(config, "--resume").code == 0
    assert (config.parent / "out-run" / KEY).read_bytes() == kept
    resumed = (config.parent / "out" / "release.parquet").read_bytes()
    assert anon_run(config, "--overwrite", "--force").code == 0
    assert (config.parent / "out" / "release.parquet").read_bytes() == resumed
    assert (config.parent / "out-run").stat().st_mode & 0o077 == 0
