"""`columns.rows` uses the first or the last row of each individual: the row that a plain definition finds, whatever the
order and the form of the input, with every other row counted."""

from __future__ import annotations

import datetime as dt
import json
import random
from collections import Counter
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import anon
from anon.config import load
from anon.core.database import Database
from anon.errors import ConfigError, VerificationError
from anon.source import Column, Source, one_row_each, rows
from anon.verify.content.one_row_each import check_choice
from tests.conftest import House
from tests.helpers.backends import each_on_every_backend, run_as_plain
from tests.oracles.one_row_each import Row
from tests.oracles.one_row_each import chosen as expected

PUBLISHED = ["sex", "disease", "ward", "cost", "smokes", "seen"]
DAYS = [dt.date(2024, 1, 1) + dt.timedelta(day) for day in range(3)]
MOMENTS = [dt.datetime(2024, 1, 1, hour) for hour in range(3)]


def visits(seed: int, people: int = 40) -> list[Row]:
    """Rows with many ties: few values in every column, some of them missing, and equal rows."""
    draw = random.Random(seed)
    found = []
    for person in range(people):
        for _ in range(draw.choice([1, 1, 2, 3, 6])):
            row = {"id": person, "visited": draw.choice([None, *DAYS]), "number": draw.choice([None, -1, 0, 10, 9])}
            row |= {"score": draw.choice([None, 0.0, -1.5, 2.25]), "at": draw.choice([None, *MOMENTS])}
            row |= {"sex": draw.choice(["f", "m"]), "disease": draw.choice(["Flu", "flu", "Épilepsie", "Zona"])}
            row |= {"ward": draw.choice([None, "", "a", "ä", "Z", "😀"]), "cost": draw.choice([None, 10, 9, -1])}
            row |= {"smokes": draw.choice([None, True, False]), "seen": draw.choice([None, *DAYS[:2]])}
            found += [row] * draw.choice([1, 1, 2])
    draw.shuffle(found)
    return found


def table(found: list[Row]) -> pa.Table:
    kinds = [pa.int64(), pa.date32(), pa.int32(), pa.float64(), pa.timestamp("us")]
    kinds += [pa.string(), pa.string(), pa.string(), pa.int64(), pa.bool_(), pa.date32()]
    schema = pa.schema(list(zip(["id", "visited", "number", "score", "at", *PUBLISHED], kinds)))
    return pa.Table.from_pylist(found, schema)


def wanted(keep: str, by: str) -> dict[str, Any]:
    return {
        "columns": {
            "individual": "id", "rows": {"keep": keep, "by": by}, "quasi_identifiers": {"sex": {"suppress": True}},
            "sensitive": ["disease"], "keep": ["ward", "cost", "smokes", "seen"],
        },
        "privacy": [{"k_anonymity": {"k": 2}}],
    }  # fmt: skip


def published(found: list[Row]) -> Counter[str]:
    return Counter(repr([row[name] for name in PUBLISHED[1:]]) for row in found)


@pytest.mark.parametrize("keep", ["first", "last"])
@pytest.mark.parametrize("by", ["visited", "number", "score", "at"])
def test_the_row_of_the_definition_is_used(house: House, keep: str, by: str) -> None:
    for seed in range(3):
        found = visits(seed)
        result = house.run(table(found), **wanted(keep, by))
        oracle = expected(found, "id", keep, by, PUBLISHED)
        assert published(house.released().to_pylist()) == published(oracle)
        several = [n for n in Counter(row["id"] for row in found).values() if n > 1]
        said = {"keep": keep, "by": by, "rows": len(found) - len(oracle), "individuals": len(several)}
        assert result.facts["left_out"]["one_row_each"] == said
        assert result.facts["rows"] + result.facts["left_out"]["rows"]["all"] == len(found)
        assert result.facts["individuals"] == len(oracle)


def test_order_form_and_threads_of_the_input_do_not_matter(house: House) -> None:
    found = visits(7, people=200)
    released = set()
    for form, threads in ((as_frame, 1), (as_parquet, 2), (as_csv, 1), (as_csv, 2)):
        random.Random(threads).shuffle(found)
        source = form(house, table(found))
        limits = {"memory": "1GB", "threads": threads, "temp": "spill"}
        config = house.config(**wanted("last", "visited"), limits=limits)
        config["source"] = config["source"] if isinstance(source, pa.Table) else {"path": source}
        anon.run(config, source if isinstance(source, pa.Table) else None, overwrite=True, force=True)
        released.add(house.bytes())
    assert len(released) == 1


def as_frame(house: House, rows_: pa.Table) -> pa.Table:
    return rows_


def as_parquet(house: House, rows_: pa.Table) -> str:
    half = len(rows_) // 2
    house.write(rows_.slice(half), "parts/0.parquet")
    house.write(rows_.slice(0, half), "parts/1.parquet", row_group_size=7)
    return str(house.folder / "parts")


def as_csv(house: House, rows_: pa.Table) -> str:
    path = house.folder / "table.csv"
    pyarrow.csv.write_csv(rows_, path)
    return str(path)


# Missing values


def test_rows_that_missing_values_drop_are_not_chosen(house: House) -> None:
    """The newest row with a diagnosis is used; somebody without any is left out for that reason."""
    found = [
        {"id": 1, "visited": DAYS[0], "age": 1, "zip": "02139", "disease": "a"},
        {"id": 1, "visited": DAYS[1], "age": 1, "zip": "02139", "disease": "b"},
        {"id": 1, "visited": DAYS[2], "age": 1, "zip": "02139", "disease": None},
        {"id": 2, "visited": DAYS[0], "age": 1, "zip": "02139", "disease": "c"},
        {"id": 3, "visited": DAYS[0], "age": 1, "zip": "02139", "disease": None},
        {"id": 3, "visited": DAYS[1], "age": 1, "zip": "02139", "disease": None},
    ]
    frame = pa.Table.from_pylist(found)
    result = house.run(frame, **by_visit(), nulls={"sensitive": "drop"})
    assert sorted(house.released()["disease"].to_pylist()) == ["b", "c"]
    left_out = result.facts["left_out"]
    assert left_out["rows"] == {
        "all": 4, "null_quasi_identifiers": 0, "null_sensitive": 3, "suppressed": 0, "other_rows": 1,
    }  # fmt: skip
    assert left_out["individuals"]["null_sensitive"] == left_out["individuals"]["all"] == 1
    with pytest.raises(ConfigError, match="disease: found 3 rows without a value"):
        house.run(frame, **by_visit())
    with pytest.raises(ConfigError, match=r"columns\.individual: found 1 row without an individual"):
        house.run(pa.Table.from_pylist([*found[:2], found[3] | {"id": None}]), **by_visit())


def by_visit() -> dict[str, Any]:
    return {"columns__individual": "id", "columns__rows": {"keep": "last", "by": "visited"}}


# Reports


def test_every_output_counts_the_other_rows(house: House) -> None:
    found = visits(3)
    others = len(found) - 40
    several = sum(n > 1 for n in Counter(row["id"] for row in found).values())
    words = f"{others:,} earlier rows of {several:,} individuals"
    house.write(table(found))
    planned = house.cli("plan", **wanted("last", "visited"))
    assert planned.code == 0 and words in " ".join(planned.stdout.split())
    assert house.cli("plan", "--json", **wanted("last", "visited")).json["left_out"]["rows"]["other_rows"] == others
    ran = house.cli("run", **wanted("last", "visited"))
    assert ran.code == 0 and words in " ".join(ran.stdout.split())
    run = house.folder / "out-run"
    assert words in (run / "report.html").read_text()
    manifest, report = (json.loads((run / f"{name}.json").read_text()) for name in ("manifest", "report"))
    said = {"keep": "last", "by": "visited", "rows": others, "individuals": several}
    assert manifest["one_row_each"] == report["summary"]["left_out"]["one_row_each"] == said
    assert manifest["rows"] + manifest["rows_dropped"] == len(found)
    assert not any(warning["code"] == "rows_dropped" for warning in manifest["warnings"])


def test_the_column_of_the_order_is_not_published(house: House) -> None:
    house.run(table(visits(1)), **wanted("last", "visited"))
    assert house.released().column_names == PUBLISHED
    for path in (house.folder / "out").iterdir():
        assert b"visited" not in path.read_bytes()


def test_a_sample_has_the_same_row_of_each_of_its_individuals(house: House) -> None:
    found = visits(5, people=400)
    house.write(table(found))
    config = house.config(**wanted("last", "number"))
    sampled = anon.run(config, sample="50%")
    assert 100 < sampled.facts["individuals"] < 300
    trial = pq.ParquetFile(next(house.folder.rglob("release.parquet"))).read().to_pylist()
    assert published(trial) <= published(expected(found, "id", "last", "number", PUBLISHED))


# Refusals


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"rows": {"keep": "last"}}, "columns.rows.by: found nothing; expected the column that orders the rows"),
        ({"rows": {"by": "visited"}}, "columns.rows.by: .* expected no column with keep: error"),
        ({"rows": {"keep": "newest", "by": "visited"}}, "columns.rows.keep"),
        ({"rows": {"keep": "last", "by": "visited"}, "individual": "row"}, "columns.rows: found individual: row"),
        ({"rows": {"keep": "last", "by": "ID"}}, "columns.rows.by: .* expected another column"),
        ({"rows": {"keep": "last", "by": "visit"}}, "columns.rows.by: found column 'visit'.*did you mean 'visited'"),
        (
            {"rows": {"keep": "last", "by": "ward"}},
            "columns.rows.by: found type text.*expected numbers, dates or times",
        ),
        ({"rows": {"keep": "last", "by": "smokes"}}, "columns.rows.by: found type boolean"),
    ],
)
def test_a_rule_that_cannot_be_followed_is_refused(house: House, columns: dict[str, Any], message: str) -> None:
    config = wanted("last", "visited")
    with pytest.raises(ConfigError, match=message):
        house.run(table(visits(1)), **config | {"columns": config["columns"] | columns})


def test_several_values_and_one_row_exclude_each_other(house: House) -> None:
    config = wanted("last", "visited")
    config["columns"] |= {"multiplicity": "set", "keep": []}
    with pytest.raises(ConfigError, match=r"columns\.rows: found keep: last with multiplicity: set"):
        house.run(table(visits(1)), **config, release__form="bucketized")


def test_several_rows_without_a_rule_name_the_ways_on(house: House) -> None:
    found = [row | {"born": DAYS[0]} for row in visits(2)]
    frame = pa.Table.from_pylist(found)
    config = wanted("last", "visited")
    del config["columns"]["rows"]
    several = [own for own in Counter(row["id"] for row in found).values() if own > 1]
    differ = {row["id"] for row in found if any(o["id"] == row["id"] and o["sex"] != row["sex"] for o in found)}
    for form in (as_frame, as_parquet, as_csv):
        source = form(house, frame)
        at = {} if isinstance(source, pa.Table) else {"source": {"path": source}}
        with pytest.raises(ConfigError) as error:
            anon.run(house.config(**config) | at, source if isinstance(source, pa.Table) else None)
        text = str(error.value)
        assert f"{sum(several) - len(several):,} rows that repeat an individual, of {len(several):,}" in text
        assert "columns.rows: {keep: last, by: visited}" in text and "columns.multiplicity: set or multiset" in text
        assert "by a query in the source" in text and "born" not in text
        assert f"{len(differ):,} individuals whose rows disagree on a quasi-identifier (sex: {len(differ):,})" in text


# Verification


@pytest.mark.parametrize(
    "wrong",
    [
        lambda sql: sql.replace("DESC NULLS LAST", "ASC NULLS FIRST"),
        lambda sql: sql.replace("DESC NULLS LAST", "DESC NULLS FIRST"),
        lambda sql: sql.replace("q0 DESC", "q0 ASC"),
        lambda sql: sql.replace("SELECT who, moment, q0, s0, k0", "SELECT who, moment, q0, s0, 'other' AS k0"),
    ],
)
def test_verification_finds_other_rows_than_the_config_says(
    house: House, monkeypatch: pytest.MonkeyPatch, wrong: Callable[[str], str]
) -> None:
    right = one_row_each.chosen
    monkeypatch.setattr(rows, "check_people", lambda *anything: None)
    monkeypatch.setattr(one_row_each, "chosen", lambda *given: changed(right(*given), wrong))
    config = wanted("last", "visited")
    with pytest.raises(VerificationError, match="does not hold the last row of"):
        house.run(table(visits(1)), **config)
    assert not (house.folder / "out").exists()


EVERY = [(1, 5, "a", "x"), (1, 5, "b", None), (1, None, "z", "z"), (2, None, "a", "a"), (2, None, "a", "b")]
RIGHT = [(1, 5, "b", None), (2, None, "a", "b")]


@pytest.mark.parametrize(
    ("chosen", "mistakes"),
    [
        (RIGHT, 0),
        ([RIGHT[0], EVERY[3]], 1),  # not the last of a tie
        ([EVERY[2], RIGHT[1]], 1),  # a null is not the last
        ([EVERY[0], EVERY[3]], 2),
        (RIGHT[:1], 1),  # nobody for somebody
        ([*RIGHT, RIGHT[0]], 1),  # twice
        ([RIGHT[0], (2, None, "a", "c")], 1),  # a row that is not there
        ([RIGHT[0], RIGHT[0]], 1),
        ([*RIGHT, (3, 1, "a", "a")], 1),  # somebody who is not there
    ],
)
def test_every_kind_of_wrong_choice_is_found(chosen: list[tuple[Any, ...]], mistakes: int) -> None:
    columns = [Column(name, name, "text", name) for name in ("q0", "s0")]
    with closing(Database.in_memory()) as database:
        source = Source(database, columns[:1], columns[1:], [])
        for name, listed in (("kept_rows", EVERY), ("chosen_rows", chosen)):
            database.execute(f"CREATE TABLE {name} (who BIGINT, moment BIGINT, q0 VARCHAR, s0 VARCHAR)")
            for row in listed:
                database.execute(f"INSERT INTO {name} VALUES (?, ?, ?, ?)", row)
        config = load(House(Path()).config(columns__individual="id", columns__rows={"keep": "last", "by": "visited"}))
        with pytest.raises(VerificationError, match=f"last row of {mistakes}") if mistakes else nullcontext():
            check_choice(source, config)


def changed(sql: str, wrong: Callable[[str], str]) -> str:
    other = wrong(sql)
    assert other != sql
    return other


# Backends


@each_on_every_backend("keep", ["first", "last"], {}, always=["last"])
def test_every_backend_uses_the_same_rows(house: House, keep: str) -> None:
    found = visits(11, people=150)
    plain, _ = run_as_plain(house, table(found), **wanted(keep, "visited"))
    assert plain.facts["left_out"]["rows"]["other_rows"] > 100
