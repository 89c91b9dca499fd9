"""Unsafe by default? A table of traps: each is refused, warned about or made impossible, never silently released.
docs/traps.md says of each what to do. Beside every trap stands the same without it, which must be released without a
word: so the answer is to the trap and to nothing else."""

from __future__ import annotations

import copy
import html
import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

from anon.report.terminal import show
from tests import ROOT
from tests.conftest import House, Outcome

PEOPLE = 240
DISEASES = ["Flu", "HIV", "Cold", "Gout"]
DISEASE = [DISEASES[i % 4] for i in range(PEOPLE)]
AGE = [20 + i // 20 for i in range(PEOPLE)]
ZIP = [f"0213{i // 120}" for i in range(PEOPLE)]
PLAIN = pa.table({"age": AGE, "zip": ZIP, "disease": DISEASE})
DIVERSE = [{"k_anonymity": {"k": 5}}, {"l_diversity": {"kind": "distinct", "l": 2}}]
POINT = {"l": 0, "k": 0, "m": 0, "c": 0.9}
LATIN = {"disease": [{"Flu": "Herpès", "HIV": "Herpe\u0300s"}.get(each, each) for each in DISEASE]}
DOCS = ROOT / "docs" / "traps.md"


def table(**columns: Any) -> pa.Table:
    """The plain table with other or more columns."""
    return pa.table(dict(zip(PLAIN.column_names, PLAIN.columns)) | columns)


def privacy(*criteria: dict[str, Any], k: int = 5) -> dict[str, Any]:
    return {"privacy": [{"k_anonymity": {"k": k}}, *criteria]}


def skyline(**values: Any) -> dict[str, Any]:
    return privacy({"skyline": {"points": [POINT], **values}})


def sensitive(of: str, how: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"columns__sensitive": {of: how or {}}}


def keep(*names: str) -> dict[str, Any]:
    return {"columns__keep": list(names)}


def t_closeness(t: float, **distance: Any) -> dict[str, Any]:
    return privacy({"t_closeness": {"t": t, "distance": distance}})


CSV = {"release": {"path": "out", "run": "out-run", "format": "csv"}}


@dataclass(frozen=True)
class Side:
    """A table and what the config says of it."""

    table: pa.Table = field(default_factory=lambda: PLAIN)
    changes: dict[str, Any] = field(default_factory=dict)
    before: Callable[[House], None] = lambda house: None


AS_IT_IS = Side()


@dataclass(frozen=True)
class Trap:
    """What anon does: warns with a code, or refuses with an exit code and words; and the same without the trap."""

    does: str | tuple[int, str]
    trap: Side
    mended: Side = AS_IT_IS


def run_once(house: House) -> None:
    """An earlier release at the same place, of other rows."""
    assert run(house, Side(table(age=[age + 1 for age in AGE]))).code == 0


def trial(house: House) -> None:
    house.write(PLAIN)
    assert house.cli("run", "--sample", "90%", privacy=DIVERSE).code == 0


def linked(house: House) -> None:
    (house.folder / "table-latest.parquet").symlink_to("table.parquet")


def earlier(house: House) -> None:
    """An earlier run beside the release."""
    assert run(house, Side(changes=release("earlier"))).code == 0


def release(name: str) -> dict[str, Any]:
    return {"release": {"path": name, "run": f"{name}-run"}}


def reuse(run: str) -> dict[str, Any]:
    return {"method": {"kind": "reuse", "run": run}}


def accept(code: str, **column: str) -> dict[str, Any]:
    return {"accept": [{"warning": code, "reason": "policy 12", **column}]}


def caring(dont_care: list[str]) -> dict[str, Any]:
    return {"privacy": [{"l_diversity": {"kind": "entropy", "l": 2, "dont_care": dont_care}}, *DIVERSE]}


def hierarchy(house: House) -> None:
    (house.folder / "zip.csv").write_text("02130;low\n")


def whole_hierarchy(house: House) -> None:
    (house.folder / "zip.csv").write_text("02130;low\n02131;low\n")


ROW, WHO = {"columns__identifiers": ["who"]}, {"columns__individual": "who"}
VISITS, EVERYBODY = {"who": [i // 2 for i in range(PEOPLE)]}, {"who": list(range(PEOPLE))}
NAMESAKES = {"who": [i % 120 for i in range(PEOPLE)]}
ONE_KIND = {"disease": ["HIV" if age % 2 else "Flu" for age in AGE]}
MOSTLY = {"disease": ["HIV" if i % 60 else "Flu" for i in range(60)] + DISEASE[60:]}
COSTS = {"cost": [100 + i % 40 for i in range(PEOPLE)]}
FINE = {"cost": [100.5 + i % 40 for i in range(PEOPLE)]}
WORDY = {"cost": [str(100 + i % 40) if i % 40 else "waived" for i in range(PEOPLE)]}
ROUND = {"round": 10}
LEVELS = {"disease": [["low", "middle", "high"][i % 3] for i in range(PEOPLE)]}
ALONE = {"disease": [f"case {i}" if i < 40 else DISEASE[i] for i in range(PEOPLE)]}
MISSING = {"disease": [None, *DISEASE[1:]]}
HALVES = {"left": [i % 20 // 4 for i in range(PEOPLE)], "right": [i % 5 for i in range(PEOPLE)]}
CONSTANT = {"key": [7] * PEOPLE}
VALUE_OK = {"nulls": {"sensitive": "value"}}
BUCKETS = {"path": "out", "run": "out-run", "form": "bucketized", "labels": "exact"}

TRAPS: dict[str, Trap] = {
    "repeat visits counted as people": Trap(
        (2, "120 values that repeat, in rows that agree on age"),
        Side(table(**VISITS), ROW),
        Side(table(**EVERYBODY), ROW),
    ),
    "an identifier that rows share": Trap(
        "repeated_identifier", Side(table(**NAMESAKES), ROW), Side(table(**EVERYBODY), ROW)
    ),
    "one person under several spellings of a number": Trap(
        "spelled_alike",
        Side(table(who=[f"ab-{i // 2:03d}" if i % 2 else f"AB {i // 2:03d}" for i in range(PEOPLE)]), WHO),
        Side(table(who=[f"ab-{i:03d}" for i in range(PEOPLE)]), WHO),
    ),
    "several rows of a person who should have one": Trap(
        (2, "120 rows that repeat an individual"), Side(table(**VISITS), WHO), Side(table(**EVERYBODY), WHO)
    ),
    "rows of a person that disagree": Trap(
        (2, "individuals whose rows disagree on a quasi-identifier"),
        Side(table(who=[i % 120 for i in range(PEOPLE)]), WHO),
        Side(table(**EVERYBODY), WHO),
    ),
    "a misspelt sensitive value": Trap(
        (2, "differs from it only in how it is written"),
        Side(changes=skyline(values={"hiv": [POINT]})),
        Side(changes=skyline(values={"HIV": [POINT]})),
    ),
    "a misspelt sensitive value that may be absent": Trap(
        "absent_value",
        Side(changes=skyline(values={"HVI": [POINT]}, absent="ok")),
        Side(changes=skyline(values={"HIV": [POINT]}, absent="ok")),
    ),
    "a sensitive value in another spelling that may be absent": Trap(
        (2, "differs from it only in how it is written"),
        Side(changes=skyline(values={"hiv": [POINT]}, absent="ok")),
        Side(changes=skyline(values={"HIV": [POINT]}, absent="ok")),
    ),
    "one sensitive value in two spellings": Trap(
        "look_alike_values", Side(table(disease=[each if i % 8 != 1 else "hiv " for i, each in enumerate(DISEASE)]))
    ),
    "one sensitive value in two forms of Unicode": Trap("look_alike_values", Side(table(**LATIN))),
    "one sensitive number in two forms": Trap(
        "look_alike_values",
        Side(table(disease=[["1", "01", "2.50", "3"][i % 4] for i in range(PEOPLE)])),
        Side(table(disease=[["1", "10", "2.50", "3"][i % 4] for i in range(PEOPLE)])),
    ),
    "missing values counted as diversity": Trap(
        "missing_counts_as_value", Side(table(**MISSING), VALUE_OK), Side(changes=VALUE_OK)
    ),
    "missing sensitive values": Trap((2, "1 row without a value"), Side(table(**MISSING))),
    "a file under two names": Trap(
        (5, "are one file, whose rows would count twice"),
        Side(changes={"source": {"path": "table*.parquet"}}, before=linked),
        Side(changes={"source": {"path": "table*.parquet"}}),
    ),
    "rows dropped because something is missing": Trap(
        "rows_dropped",
        Side(table(**MISSING), {"nulls": {"sensitive": "drop"}}),
        Side(changes={"nulls": {"sensitive": "drop"}}),
    ),
    "unknown counted as diversity": Trap(
        "placeholder_values", Side(table(disease=["N/A" if each == "Flu" else each for each in DISEASE]))
    ),
    "a sensitive column without a criterion": Trap("unprotected_sensitive", Side(changes=privacy())),
    "a second sensitive column without a criterion": Trap(
        "unprotected_sensitive",
        Side(
            table(job=DISEASE),
            {
                "columns__sensitive": ["disease", "job"],
                **privacy({"alpha_k": {"sensitive": "disease", "alpha": 0.5, "k": 5}}),
            },
        ),
    ),
    "a sensitive value that nobody else has": Trap("sensitive_identifies", Side(table(**ALONE))),
    "a float sensitive column": Trap(
        (2, "as_categories"), Side(table(**FINE), sensitive("cost")), Side(table(**FINE), sensitive("cost", ROUND))
    ),
    "whole numbers treated as categories": Trap(
        "numbers_as_categories", Side(table(**COSTS), sensitive("cost")), Side(table(**COSTS), sensitive("cost", ROUND))
    ),
    "numbers stored as text because of one word": Trap(
        "numbers_as_categories", Side(table(**WORDY), sensitive("cost")), Side(table(**COSTS), sensitive("cost", ROUND))
    ),
    "ordered words in alphabetical order": Trap(
        "order_of_letters",
        Side(table(**LEVELS), t_closeness(0.5, kind="ordered")),
        Side(table(**LEVELS), t_closeness(0.5, kind="ordered", order=["low", "middle", "high"])),
    ),
    "nothing but vacuous thresholds": Trap(
        (2, "only criteria that are always true"),
        Side(changes={"privacy": [{"l_diversity": {"kind": "distinct", "l": 1}}]}),
    ),
    "diversity of don't-care values only": Trap(
        "vacuous_criterion",
        Side(changes=caring(sorted(set(DISEASE)))),
        Side(changes=caring(sorted(set(DISEASE))[:1])),
    ),
    "a vacuous threshold beside others": Trap(
        "vacuous_criterion",
        Side(changes={"privacy": [*DIVERSE, {"alpha_k": {"alpha": 1, "k": 5}}]}),
        Side(changes={"privacy": [*DIVERSE, {"alpha_k": {"alpha": 0.9, "k": 5}}]}),
    ),
    "a threshold as wide as all values": Trap(
        "vacuous_criterion",
        Side(table(**COSTS), {**sensitive("cost"), **t_closeness(39, kind="absolute")}),
        Side(table(**COSTS), {**sensitive("cost"), **t_closeness(15, kind="absolute")}),
    ),
    "k-anonymity where all have the same value": Trap(
        "homogeneous_groups", Side(table(**ONE_KIND), {"privacy": DIVERSE[:1]})
    ),
    "diversity where nearly all have the same value": Trap(
        "nearly_homogeneous", Side(table(**MOSTLY), privacy(DIVERSE[1], k=40))
    ),
    "groups of fewer than 5": Trap(
        "groups_under_5",
        Side(table(age=list(range(PEOPLE))), privacy(DIVERSE[1], k=2)),
        Side(table(age=list(range(PEOPLE)))),
    ),
    "exact labels with k-anonymity": Trap(
        (2, "group_size"),
        Side(changes={"release": BUCKETS}),
        Side(changes={"release": BUCKETS, "privacy": [{"group_size": {"k": 5}}, DIVERSE[1]]}),
    ),
    "a kept column that is a key": Trap(
        "kept_identifies", Side(table(key=list(range(PEOPLE))), keep("key")), Side(table(**CONSTANT), keep("key"))
    ),
    "kept columns that are a key together": Trap(
        "kept_identify_together", Side(table(**HALVES), keep("left", "right")), Side(table(**HALVES), keep("right"))
    ),
    "a kept column that is a proxy of the sensitive value": Trap(
        "kept_reveals",
        Side(table(key=[f"drug for {each}" for each in DISEASE]), keep("key")),
        Side(table(**CONSTANT), keep("key")),
    ),
    "a warning signed off that no longer occurs": Trap("stale_accept", Side(changes=accept("groups_under_5"))),
    "an identifier that is kept in another case": Trap(
        (2, "one role only"), Side(table(**EVERYBODY), {**ROW, **keep("WHO")}), Side(table(**EVERYBODY), ROW)
    ),
    "a zip code that lost its leading zero": Trap((2, "leading zeros"), Side(table(zip=[int(code) for code in ZIP]))),
    "a hierarchy without all values": Trap(
        (2, "1 of 2"),
        Side(changes={"columns__quasi_identifiers": {"age": {}, "zip": {"hierarchy": "zip.csv"}}}, before=hierarchy),
        Side(
            changes={"columns__quasi_identifiers": {"age": {}, "zip": {"hierarchy": "zip.csv"}}}, before=whole_hierarchy
        ),
    ),
    "a value that is also a label": Trap(
        (2, "label"),
        Side(
            table(zip=["*" if i % 2 else "x" for i in range(PEOPLE)]),
            {"columns__quasi_identifiers": {"zip": {"suppress": True}}},
        ),
        Side(
            table(zip=["y" if i % 2 else "x" for i in range(PEOPLE)]),
            {"columns__quasi_identifiers": {"zip": {"suppress": True}}},
        ),
    ),
    "text that looks like a label, such as `*`": Trap(
        (2, "form of a label"),
        Side(
            table(zip=["*" if i % 2 else "x" for i in range(PEOPLE)]),
            {"columns__quasi_identifiers": {"zip": {}}},
        ),
        Side(
            table(zip=["y" if i % 2 else "x" for i in range(PEOPLE)]),
            {"columns__quasi_identifiers": {"zip": {}}},
        ),
    ),
    "text in a CSV release that a spreadsheet runs as a formula": Trap(
        "csv_formula",
        Side(table(disease=[f"={word}" if word == "HIV" else word for word in DISEASE]), CSV),
        Side(changes=CSV),
    ),
    "a table that no grouping can protect": Trap((3, "no release is safe"), Side(table(disease=["HIV"] * PEOPLE))),
    "the second nightly release": Trap("intersection", Side(before=run_once)),
    "a recoding that is no longer safe": Trap(
        (3, "no longer safe"),
        Side(table(**ONE_KIND), reuse("earlier-run"), before=earlier),
        Side(changes=reuse("earlier-run"), before=earlier),
    ),
    "the recoding of a trial": Trap(
        (2, "the recoding of a trial"),
        Side(changes=reuse("out-run-trial"), before=trial),
        Side(changes=reuse("earlier-run"), before=earlier),
    ),
}


def run(house: House, side: Side, *options: str) -> Outcome:
    """A run over a side of a trap, in its house."""
    changes = copy.deepcopy({"privacy": DIVERSE} | side.changes)
    house.write(side.table)
    return house.cli("run", *options, **changes)


WARNED = [name for name, trap in TRAPS.items() if isinstance(trap.does, str)]
OVER = ("--overwrite", "--json", "--log-json")


@pytest.mark.parametrize("name", [name for name in TRAPS if name not in WARNED])
def test_a_trap_is_refused(house: House, name: str) -> None:
    code, words = TRAPS[name].does
    TRAPS[name].trap.before(house)
    told = run(house, TRAPS[name].trap, "--overwrite")
    assert told.code == code and words in told.stderr, told.stderr


@pytest.mark.parametrize("name", WARNED)
def test_a_trap_is_warned_about_wherever_a_run_is_told(house: House, name: str) -> None:
    code, side = TRAPS[name].does, TRAPS[name].trap
    side.before(house)
    told = run(house, side, *OVER)
    (warning,) = [warning for warning in told.json["warnings"] if warning["code"] == code]
    events = [json.loads(line) for line in told.stderr.splitlines()]
    assert warning.items() <= next(event for event in events if event.get("code") == code).items()
    left = {path.name: path.read_text(errors="replace") for path in (house.folder / "out-run").iterdir()}
    assert warning in json.loads(left["report.json"])["summary"]["warnings"]
    assert warning in json.loads(left["manifest.json"])["warnings"]
    assert html.escape(warning["text"]) in left["report.html"]
    terminal = Console(file=io.StringIO(), width=1000)
    show(terminal, told.json, json.loads(left["report.json"]), {})
    counted, (_, rest) = f"warning: {warning['count']:,} ", warning["text"].split(" ", 1)
    assert any(counted in line and rest in line for line in terminal.file.getvalue().splitlines())


@pytest.mark.parametrize(("name", "severity"), [("who", "high"), ("first_name", "low"), ("Nachname", "low")])
def test_people_who_share_a_first_or_last_name_are_no_grave_warning(house: House, name: str, severity: str) -> None:
    found = table(**NAMESAKES)
    house.write(found.rename_columns([name if own == "who" else own for own in found.column_names]))
    changes = copy.deepcopy({"privacy": DIVERSE} | ROW)
    changes["columns__identifiers"] = [name]
    told = house.cli("run", "--overwrite", "--json", **changes)
    (warning,) = [each for each in told.json["warnings"] if each["code"] == "repeated_identifier"]
    assert warning["severity"] == severity


def test_strict_publishes_nothing_and_says_what_the_warning_is(house: House) -> None:
    refused = run(house, TRAPS["groups of fewer than 5"].trap, "--strict")
    assert refused.code == 3 and "groups_under_5: 240 individuals in groups of fewer than 5" in refused.stderr
    assert not (house.folder / "out").exists()


@pytest.mark.parametrize("name", ["anything else", *(name for name in TRAPS if TRAPS[name].mended is not AS_IT_IS)])
def test_without_the_trap_nothing_is_said(house: House, name: str) -> None:
    """`anything else`: the plain table, which is the mended side of all other traps."""
    side = TRAPS[name].mended if name in TRAPS else AS_IT_IS
    side.before(house)
    told = run(house, side, "--overwrite", "--json")
    assert told.code == 0, told.stderr
    assert told.json["warnings"] == []


# Traps that cannot be walked into


def test_an_outlier_is_in_no_label(house: House) -> None:
    assert run(house, Side(table(age=[*AGE[:-1], 117]))).code == 0
    labels = house.released()["age"].to_pylist()
    assert not any("117" in label for label in labels) and any(label.startswith(">=") for label in labels)


def test_stale_dictionary_entries_are_not_in_the_release(house: House) -> None:
    stale = pa.array([*DISEASE, "Leprosy"]).dictionary_encode().slice(0, PEOPLE)
    assert run(house, Side(table(disease=stale))).code == 0
    assert b"Leprosy" not in house.bytes() and b"HIV" in house.bytes()


def test_what_the_source_notes_beside_its_columns_is_not_in_the_release(house: House) -> None:
    assert run(house, Side(PLAIN.replace_schema_metadata({"owner": "Leprosy ward"}))).code == 0
    assert b"Leprosy" not in house.bytes()


def test_a_trial_is_not_the_release_and_says_so(house: House) -> None:
    trial(house)
    assert not (house.folder / "out").exists()
    for left in ("out-trial/datapackage.json", "out-run-trial/manifest.json", "out-run-trial/report.json"):
        assert "90%" in (house.folder / left).read_text()


def test_what_stays_in_the_house_is_private(house: House) -> None:
    assert run(house, Side()).code == 0
    assert (house.folder / "out-run").stat().st_mode & 0o777 == 0o700
    assert sorted(path.name for path in (house.folder / "out").iterdir()) == ["datapackage.json", "release.parquet"]


def test_every_trap_is_documented() -> None:
    text = DOCS.read_text(encoding="utf-8")
    assert len(TRAPS) >= 25
    assert not [name for name in TRAPS if f"| {name} |" not in text]
    codes = {trap.does for trap in TRAPS.values() if isinstance(trap.does, str)}
    assert not [code for code in codes if f"`{code}`" not in text]
