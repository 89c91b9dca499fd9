"""Rows and individuals that are not in a release are counted by reason, and every output shows the same counts."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from html import unescape
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import anon
from anon.cli.app import app
from tests.conftest import House
from tests.helpers.backends import LOCAL, on_every_backend, run_as_plain

NULLS = {"quasi_identifiers": "drop", "sensitive": "drop"}
AGES = {"age": {"intervals": [10]}, "zip": {"suppress": True}}
KINDS = ["row", "single", "set", "multiset"]
ROWS, PEOPLE = "rows", "individuals"
Row = dict[str, Any]


def people(kind: str, seed: int) -> list[Row]:
    """Individuals with several rows, of which nulls leave all, some or none; `tag` tells them apart in the release."""
    draw = random.Random(seed)
    rows: list[Row] = []
    for number in range(60):
        age = draw.randint(20, 49) if number > 2 else 60 + 10 * number  # some are alone
        person = {"id": f"p{number}", "age": age, "zip": draw.choice("ab")}
        own = [person | {"disease": draw.choice("abcd")} for _ in range(draw.randint(1, 3))]
        for at, row in enumerate(own):
            if (number > 2 and draw.random() < 0.3) or (kind == "single" and at):
                row |= draw.choice([{"age": None}, {"disease": None}, {"zip": None, "disease": None}])
        rows += own
    draw.shuffle(rows)
    return [row | {"tag": str(at) if kind == "row" else row["id"]} for at, row in enumerate(rows)]


def wanted(kind: str) -> dict[str, Any]:
    several = kind in ("set", "multiset")
    columns = {"quasi_identifiers": AGES, "sensitive": ["disease"], "keep": ["tag"]}
    columns |= {"individual": "row", "identifiers": []} if kind == "row" else {"individual": "id"}
    columns |= {"multiplicity": kind} if several else {}
    release = {"path": "out", "run": "out-run"} | ({"form": "bucketized"} if several else {})
    method = {"kind": "lattice", "suppress": 0.5}
    privacy = [{"group_size": {"k": 4}}]
    return {"columns": columns, "privacy": privacy, "method": method, "nulls": NULLS, "release": release}


def reason(row: Row) -> str:
    """Why a row cannot be published, if nulls are the reason."""
    if row["age"] is None or row["zip"] is None:
        return "null_quasi_identifiers"
    return "null_sensitive" if row["disease"] is None else ""


def expected(rows: list[Row], published: set[str]) -> dict[str, dict[str, int]]:
    """The counts by the rows of the source and the tags that are in the release."""
    whole = {row["tag"] for row in rows if not reason(row)}
    counts = {ROWS: Counter[str](), PEOPLE: Counter[str]()}
    for row in rows:
        counts[ROWS][reason(row) or ("" if row["tag"] in published else "suppressed")] += 1
    for tag in {row["tag"] for row in rows} - published:
        reasons = {reason(row) for row in rows if row["tag"] == tag}
        counts[PEOPLE]["suppressed" if tag in whole else min(reasons)] += 1  # quasi-identifiers before sensitive
    names = ("null_quasi_identifiers", "null_sensitive", "suppressed", "other_rows")
    listed = {what: {name: found[name] for name in names} for what, found in counts.items()}
    return {what: {"all": sum(found.values()), **found} for what, found in listed.items()}


def tags(house: House, kind: str) -> set[str]:
    file = "qi" if kind in ("set", "multiset") else "release"
    return set(pq.ParquetFile(house.folder / "out" / f"{file}.parquet").read()["tag"].to_pylist())


def read(house: House, name: str) -> Any:
    return json.loads((house.folder / "out-run" / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_counts_are_those_of_the_rows_and_tags_that_are_missing(house: House, kind: str, seed: int) -> None:
    rows = people(kind, seed)
    house.write(pa.Table.from_pylist(rows))
    told = house.run(**wanted(kind)).to_dict()
    truth = expected(rows, tags(house, kind))
    assert truth[PEOPLE]["suppressed"] and truth[PEOPLE]["null_quasi_identifiers"] and truth[ROWS]["null_sensitive"]
    assert told["left_out"] == truth
    assert told["suppressed"] == truth[PEOPLE]["suppressed"]
    assert told["individuals"] + truth[PEOPLE]["all"] == len({row["tag"] for row in rows})
    assert read(house, "report.json")["summary"]["left_out"] == truth
    manifest, dropped = read(house, "manifest.json"), truth[ROWS]["all"] - truth[ROWS]["suppressed"]
    assert (manifest["rows"] + manifest["rows_dropped"], manifest["rows_dropped"]) == (len(rows), dropped)
    assert [w["count"] for w in told["warnings"] if w["code"] == "rows_dropped"] == [dropped]
    package, everybody = json.loads((house.folder / "out" / "datapackage.json").read_text()), truth[PEOPLE]
    without = everybody["null_quasi_identifiers"] + everybody["null_sensitive"]
    shares = [count / (told["individuals"] + everybody["all"]) for count in (everybody["suppressed"], without)]
    assert [package["suppressed_share"], package["null_share"]] == shares
    measured = anon.utility(house.config(**wanted(kind)), house.folder / "out").to_dict()
    assert measured["left_out"] == {PEOPLE: truth[PEOPLE]} and measured["suppressed"] == told["suppressed"]


WORDS = (
    ("null_quasi_identifiers", "without a quasi-identifier"),
    ("null_sensitive", "without a sensitive value"),
    ("suppressed", "suppressed"),
)


def why(counts: dict[str, int]) -> str:
    return ", ".join(f"{counts[name]} {words}" for name, words in WORDS if counts[name])


@pytest.mark.parametrize("kind", ["row", "multiset"])
def test_every_output_shows_the_same_counts(house: House, kind: str) -> None:
    rows = people(kind, 7)
    house.write(pa.Table.from_pylist(rows))
    ran = house.cli("run", **wanted(kind))
    assert ran.code == 0, ran.stderr
    truth = expected(rows, tags(house, kind))
    kinds = ["individual", "row"] if truth[ROWS] != truth[PEOPLE] else ["individual"]
    assert len(kinds) == (1 if kind == "row" else 2)
    phrases = [f"{truth[f'{what}s']['all']} {what}s left out ({why(truth[f'{what}s'])})" for what in kinds]
    said = flat(ran.stdout)
    assert f"; {', '.join(phrases)}" in said
    for what in kinds:
        assert f"{truth[f'{what}s']['all']} {what}s are not in the release: {why(truth[f'{what}s'])}" in said
    run = str(house.folder / "out-run")
    explained = [CliRunner().invoke(app, ["explain", run, *more]) for more in ([], ["--json"])]
    assert f"; {', '.join(phrases)}" in flat(explained[0].stdout)
    assert json.loads(explained[1].stdout)["left_out"] == truth
    page = flat(unescape((house.folder / "out-run" / "report.html").read_text(encoding="utf-8")))
    assert f"Not in the release: {', '.join(phrases)}." in page
    assert f"{len(rows)}, {truth[ROWS]['all']} left out ({why(truth[ROWS])})" in page
    for what in kinds:
        assert f"<dt>{what}s left out</dt><dd>{truth[f'{what}s']['all']}</dd>" in page
    measured = house.cli("utility", "--on", str(house.folder / "out"), **wanted(kind))
    assert f"{truth[PEOPLE]['all']} individuals are not in the release: {why(truth[PEOPLE])}" in flat(measured.stdout)


def flat(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def test_a_dropped_row_that_names_nobody_counts_as_a_row(house: House) -> None:
    who, ages = ["a", "b", "c", None, "c"], [1, 1, None, None, None]
    table = pa.table({"id": who, "age": ages, "zip": ["02139"] * 5, "disease": list("aabab")})
    changes = {"columns__individual": "id", "nulls": {"quasi_identifiers": "drop"}}
    left_out = house.run(table, **changes, privacy=[{"k_anonymity": {"k": 2}}]).to_dict()["left_out"]
    assert (left_out[ROWS]["all"], left_out[PEOPLE]["all"]) == (3, 1)


GAPS = pa.table({"id": list("aabbc"), "age": ["1"] * 5, "zip": ["x"] * 5, "disease": ["f", None, None, None, "f"]})
COLUMNS = {"individual": "id", "multiplicity": "multiset", "quasi_identifiers": AGES, "sensitive": ["disease"]}
OF_GAPS: dict[str, Any] = {
    "columns": COLUMNS, "nulls": {"sensitive": "drop"}, "privacy": [{"group_size": {"k": 2}}],
    "release__form": "bucketized",
}  # fmt: skip


def test_rows_that_check_drops_are_counted_by_reason(house: House) -> None:
    told = house.check(GAPS, **OF_GAPS).to_dict()
    assert (told["rows"], told["individuals"], told["suppressed"]) == (2, 2, 0)
    assert [told["left_out"][what]["null_sensitive"] for what in (ROWS, PEOPLE)] == [3, 1]
    assert [told["left_out"][what]["all"] for what in (ROWS, PEOPLE)] == [3, 1]


def test_cells_that_a_reused_recoding_suppresses_count_as_suppressed(house: House) -> None:
    house.write(pa.Table.from_pylist(people("single", 1)))
    changes = wanted("single")
    first = house.run(**changes).to_dict()
    changes |= {
        "method": {"kind": "reuse", "run": str(house.folder / "out-run")},
        "release": {"path": "again", "run": "again-run"},
    }
    again = house.run(**changes).to_dict()
    assert again["left_out"] == first["left_out"] and again["left_out"][PEOPLE]["suppressed"]


@on_every_backend(always=True)
def test_every_backend_counts_the_same(house: House) -> None:
    rows = people("single", 2)
    told, there = run_as_plain(house, pa.Table.from_pylist(rows), **wanted("single"))
    assert told.facts["left_out"] == there.facts["left_out"] == expected(rows, tags(house, "single"))


@on_every_backend(always=True)
def test_every_backend_counts_what_check_drops(house: House) -> None:
    told = house.check(GAPS, **OF_GAPS).to_dict()
    assert told["left_out"] == anon.check(house.config(**OF_GAPS) | {"backend": LOCAL}, GAPS).to_dict()["left_out"]
    assert told["left_out"][ROWS]["all"] == 3
