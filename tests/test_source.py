"""The source stage as its users meet it: which tables it takes, what it makes of their values, and what it says."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
import traceback
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from anon import pipeline, release
from anon.config import load
from anon.database import connect
from anon.errors import AnonError, ConfigError, ResourceError, SourceError
from anon.source import Unusable, canonical
from tests.conftest import House

ROWS = pa.table(
    {
        "age": [20, 21, 22, 30, 31, 32, 40, 41, None, 51, 52, 53],
        "zip": [*(["02139", "02138", "02137", "12139", "12138", "12137"] * 2)[:11], None],
        "disease": ["Flu", "HIV", "Flu", "Cold", "Cold", "HIV", "Flu", "Flu", "Cold", "Flu", "HIV", "Cold"],
        "weight": [1.5, 2.25, -3.0, None, 0.1, 1e-7, 7.0, 8.5, 9.0, 10.0, 11.0, 12.0],
        "admitted": [dt.date(2024, 1, day) for day in range(1, 13)],
        "seen": [dt.datetime(2024, 1, 1, hour, 30) for hour in range(12)],
        "insured": [True, False] * 6,
    }
)
EVERYTHING: dict[str, Any] = {
    "columns": {
        "individual": "row",
        "quasi_identifiers": {"age": {}, "zip": {"digits": 5}},
        "sensitive": ["disease"],
        "keep": ["weight", "admitted", "seen", "insured"],
    }
}


def problem(error: pytest.ExceptionInfo[ConfigError]) -> str:
    return str(error.value)


# The same rows in any clothes give the same bytes


def as_csv(table: pa.Table, separator: str = ",") -> bytes:
    sink = io.BytesIO()
    pyarrow.csv.write_csv(table, sink, pyarrow.csv.WriteOptions(delimiter=separator))
    return sink.getvalue()


def shuffled(table: pa.Table, seed: int = 1) -> pa.Table:
    order = list(range(len(table)))
    random.Random(seed).shuffle(order)
    return table.take(order)


def in_parts(house: House, table: pa.Table, folder: str, suffix: str) -> None:
    for index in range(3):
        path = house.folder / folder / f"year={index}" / f"part.{suffix}"
        path.parent.mkdir(parents=True)
        part = table.slice(index * 5, 5)
        if suffix == "csv":
            path.write_bytes(as_csv(part, ";"))
        else:
            pq.write_table(part, path)


def one_file(house: House) -> str:
    house.write(shuffled(ROWS), row_group_size=2)
    return "table.parquet"


def glob_of_files(house: House) -> str:
    in_parts(house, shuffled(ROWS, 2), "parts", "parquet")
    return "parts/**/**/*.parquet"


def nested_folder(house: House) -> str:
    in_parts(house, shuffled(ROWS, 3), "parts", "parquet")
    for note in ("_temporary/part.parquet", ".hidden.parquet", "_SUCCESS"):
        path = house.folder / "parts" / note
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"not a table")
    return "parts"


def csv_file(house: House) -> str:
    (house.folder / "table.csv").write_bytes(b"\xef\xbb\xbf" + as_csv(shuffled(ROWS)).replace(b"\n", b"\r\n"))
    return "table.csv"


def folder_of_csv(house: House) -> str:
    in_parts(house, shuffled(ROWS, 4), "parts", "csv")
    return "parts"


def name_like_a_pattern(house: House) -> str:
    house.write(ROWS, "part[1].parquet")
    house.write(ROWS.slice(0, 3), "part1.parquet")
    return "part[1].parquet"


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes that the rows give, in whatever clothes they come."""
    house = House(tmp_path_factory.mktemp("expected"))
    house.run(ROWS, **EVERYTHING)
    return house.bytes()


@pytest.mark.parametrize(
    "layout", [one_file, glob_of_files, nested_folder, csv_file, folder_of_csv, name_like_a_pattern]
)
def test_the_bytes_do_not_depend_on_how_the_rows_are_stored(
    house: House, expected: bytes, layout: Callable[[House], str]
) -> None:
    house.run(source={"path": layout(house)}, **EVERYTHING)
    assert house.bytes() == expected


def to_pandas(table: pa.Table) -> Any:
    pytest.importorskip("pandas")
    return table.select(["zip", "disease", "insured"]).to_pandas()


FRAMES: dict[str, Callable[[pa.Table], Any]] = {
    "polars": pl.DataFrame,
    "polars categories": lambda table: pl.DataFrame(table).with_columns(pl.col("disease").cast(pl.Categorical)),
    "dictionary": lambda t: t.set_column(2, "disease", t["disease"].dictionary_encode()),
    "reader": lambda table: table.to_reader(),
    "batch": lambda table: table.combine_chunks().to_batches()[0],
    "relation": lambda table: duckdb.from_arrow(table),
}


@pytest.mark.parametrize("frame", FRAMES)
def test_the_bytes_do_not_depend_on_the_kind_of_frame(house: House, expected: bytes, frame: str) -> None:
    house.run(FRAMES[frame](shuffled(ROWS)), **EVERYTHING)
    assert house.bytes() == expected


def test_a_pandas_frame_gives_the_same_bytes(house: House) -> None:
    frame = to_pandas(ROWS.drop_null())
    columns = {"individual": "row", "quasi_identifiers": {"zip": {"digits": 5}}, "sensitive": ["disease"]}
    house.run(ROWS.drop_null(), columns=columns)
    expected = house.bytes()
    house.run(frame, columns=columns)
    assert house.bytes() == expected


@pytest.mark.parametrize("frame", ["table.parquet", [1, 2], 7, pl.LazyFrame({"age": [1]})])
def test_what_is_no_frame_is_refused_with_its_type(house: House, frame: Any) -> None:
    with pytest.raises(SourceError, match="Arrow-speaking"):
        house.run(frame)


# Types

UID = uuid.UUID("12345678-1234-5678-1234-567812345678")
EXACT: dict[str, tuple[str, list[str]]] = {
    **{kind: (kind, ["1", "2"]) for kind in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")},
    **{kind: (kind, ["1", "2"]) for kind in ("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT", "UHUGEINT")},
    "BIGINT largest": ("BIGINT", ["9223372036854775807", "-9223372036854775808"]),
    "FLOAT": ("FLOAT", ["0.1", "2.5"]),
    "DOUBLE": ("DOUBLE", ["0.1", "-2.5"]),
    "DECIMAL(4,1)": ("DECIMAL(4,1)", ["0.1", "-2.5"]),
    "DECIMAL(18,3)": ("DECIMAL(18,3)", ["0.125", "2.5"]),
    "DECIMAL(38,10)": ("DECIMAL(38,10)", ["0.125", "2.5"]),
    "DATE": ("DATE", ["0001-01-01", "9999-12-31"]),
    **{kind: (kind, ["2024-01-01T00:00:01", "2024-01-02T00:00:00"]) for kind in ("TIMESTAMP", "TIMESTAMP_S")},
    **{kind: (kind, ["2024-01-01T00:00:01", "2024-01-02T00:00:00"]) for kind in ("TIMESTAMP_MS", "TIMESTAMP_NS")},
    "BOOLEAN": ("BOOLEAN", ["true", "false"]),
    "VARCHAR": ("VARCHAR", ["a", "b"]),
    "ENUM": ("ENUM('b', 'a', 'never')", ["a", "b"]),
    "UUID": ("UUID", [str(UID), str(uuid.UUID(int=7))]),
}


def typed(kind: str, values: list[str]) -> duckdb.DuckDBPyRelation:
    """Each value three times, beside a quasi-identifier and a sensitive column."""
    rows = ", ".join(f"(1, '{value}'::{kind}, 'x')" for value in values for _ in range(3))
    return duckdb.sql(f"SELECT * FROM (VALUES {rows}) AS t(one, it, other)")


ROLES = {"quasi_identifiers": {"q": {}}, "sensitive": ["s"], "keep": ["k"]}
EVERY_ROLE: dict[str, Any] = {"columns": {"individual": "row", **ROLES}, "nulls": {"sensitive": "value"}}


def role_of(role: str) -> dict[str, Any]:
    names = {"quasi_identifiers": {"one": {}}, "sensitive": ["other"], "keep": []}
    names[role] = {"it": {}} if role == "quasi_identifiers" else ["it"]
    return {"columns": {"individual": "row", **names}, "nulls": {"sensitive": "value"}}


@pytest.mark.parametrize("name", EXACT)
def test_every_usable_type_is_published_in_every_role(house: House, name: str) -> None:
    from anon.values import text

    kind, values = EXACT[name]
    house.run(typed(kind, values).select("it AS q, it AS s, it AS k"), **EVERY_ROLE)
    for row in house.released().to_pylist():
        assert len({value if isinstance(value, str) else text(value) for value in row.values()}) == 1
    published = {value if isinstance(value, str) else text(value) for value in house.released()["s"].to_pylist()}
    assert published == set(values)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_moments_with_a_zone_are_published_as_the_same_moment(house: House, unit: str) -> None:
    moments = pa.array([0, 0, 0], pa.timestamp(unit, "Europe/Paris"))
    house.run(pa.table(dict.fromkeys("qsk", moments)), **EVERY_ROLE)
    row = house.released().to_pylist()[0]
    assert row["q"] == "*", "a column with one value only is published whole"
    assert [row[role].replace(tzinfo=None) for role in "sk"] == [dt.datetime(1970, 1, 1)] * 2


@pytest.mark.parametrize("role", ["quasi_identifiers", "sensitive"])
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_nan_is_null_and_minus_zero_is_zero(house: House, role: str, kind: pa.DataType) -> None:
    it = pa.array([-0.0, 0.0, math.nan, None, 1.0, 1.0], kind)
    house.run(pa.table({"one": [1] * 6, "it": it, "other": ["x"] * 6}), **role_of(role))
    published = house.released()["it"].to_pylist()
    zero, one = ("0", "1") if role == "quasi_identifiers" else (0.0, 1.0)
    assert sorted(map(str, published)) == sorted(map(str, [zero, zero, None, None, one, one]))


REFUSED: dict[str, tuple[pa.Array, str, str]] = {
    "time": (pa.array([dt.time(1)] * 2), "type TIME", "dates"),
    "bytes": (pa.array([b"SECRET"] * 2), "type BLOB", "text"),
    "list": (pa.array([["SECRET"]] * 2), "VARCHAR[]", "text"),
    "struct": (pa.array([{"SECRET": 1}] * 2), "type STRUCT;", "text"),
    "map": (pa.array([[("SECRET", 1)]] * 2, pa.map_(pa.string(), pa.int64())), "type MAP;", "text"),
    "null": (pa.nulls(2), "type NULL", "text"),
    "unsigned": (pa.array([2**63, 1], pa.uint64()), "type UBIGINT with 1 values", "below 2^63"),
    "nanoseconds": (pa.array([1, 1000], pa.timestamp("ns")), "1 values", "whole microseconds"),
    "far dates": (pa.array([10**7, 1], pa.int32()).cast(pa.date32()), "1 values", "years 1 to 9999"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_types_are_refused_with_column_type_and_what_would_do(house: House, name: str) -> None:
    values, found, expected = REFUSED[name]
    with pytest.raises(ConfigError) as error:
        house.run(pa.table(dict.fromkeys("qsk", values)), **EVERY_ROLE)
    paths = [told.path for told in error.value.problems]
    assert paths == ["columns.quasi_identifiers.q", "columns.sensitive.s", "columns.keep.k"]
    for told in error.value.problems:
        assert found in f"{told.found};" and expected in told.expected
    assert "SECRET" not in problem(error)


@pytest.mark.parametrize("kind", ["UBIGINT", "HUGEINT", "UHUGEINT"])
def test_integers_beyond_64_bits_are_refused_with_their_count(house: House, kind: str) -> None:
    con = connect(10**9, 1, house.folder)
    con.execute(f"CREATE TABLE t AS SELECT v::{kind} AS v FROM (VALUES (1), ({2**63}), (NULL)) AS t(v)").fetchall()
    for letter in "qsk":
        with pytest.raises(Unusable) as error:
            canonical(con, "t", "v", kind, letter)
        assert error.value.problem("v").found == f"type {kind} with 1 values that are not"


@pytest.mark.parametrize("role", ["quasi_identifiers", "sensitive"])
def test_infinite_numbers_are_refused_where_they_are_judged(house: House, role: str) -> None:
    table = pa.table({"one": [1] * 4, "it": [math.inf, -math.inf, 1.0, math.nan], "other": ["x"] * 4})
    with pytest.raises(ConfigError, match="2 values that are not; expected finite"):
        house.run(table, **role_of(role))


def test_long_decimals_are_refused_as_quasi_identifiers(house: House) -> None:
    with pytest.raises(ConfigError, match=r"3 values.*at most 15 digits"):
        house.run(typed("DECIMAL(18,2)", ["1.25", "99999999999999.25"]), **role_of("quasi_identifiers"))


# CSV


def csv_types(house: House, text: str | bytes) -> dict[str, Any]:
    """The Arrow types of the columns of a CSV file, by keeping them all."""
    content = text if isinstance(text, bytes) else text.encode()
    (house.folder / "table.csv").write_bytes(content)
    names = content.decode("utf-8-sig").splitlines()[0].split(",")
    columns = {"individual": "row", "quasi_identifiers": {names[0]: {"suppress": True}}, "keep": names[1:]}
    house.run(source={"path": "table.csv"}, columns=columns)
    return {field.name: str(field.type) for field in house.released().schema}


CSV_VALUES = [
    (["02139", "12345"], "string"),
    (["1", "-2"], "int64"),
    (["1", ""], "int64"),
    (["1", '""'], "int64"),
    (["1", "x"], "string"),
    (["1", "+2"], "string"),
    (["1", "2.5"], "double"),
    (["1e3", "2.5"], "double"),
    (["1", "12345678901234567890"], "string"),
    (["2024-01-31", "2024-02-29"], "date32[day]"),
    (["2024-01-31", "2024-02-30"], "string"),
    (["2024-01-31 10:00:00", "2024-01-31T10:00:00.25"], "timestamp[us]"),
    (["2024-01-31T10:00:00Z", "2024-01-31T10:00:00+01:00"], "timestamp[us, tz=UTC]"),
    (["true", "false"], "bool"),
    (["TRUE", "False"], "bool"),
    (["true", "yes"], "string"),
    (["", ""], "string"),
    (["nan", "1.5"], "string"),
]


def test_a_csv_column_has_the_type_of_all_its_values(house: House) -> None:
    lines = [["q", *(f"c{index}" for index in range(len(CSV_VALUES)))]]
    lines += [["1", *fields] for fields in zip(*(values for values, _ in CSV_VALUES))]
    types = csv_types(house, "".join(",".join(line) + "\n" for line in lines))
    told = [(values, types[f"c{index}"]) for index, (values, _) in enumerate(CSV_VALUES)]
    assert told == CSV_VALUES


def test_an_empty_field_is_null_and_a_quoted_one_empty_text(house: House) -> None:
    csv_types(house, 'q,it\n1,\n1,""\n1,"a ""b"", c\nd"\n')
    assert house.released()["it"].to_pylist() == [None, "", 'a "b", c\nd']


NAMES = ["with space", 'qu"ote', '"; drop table x; --', "größe", "select", "n", "code", "group", "row", "'", "{%s}\\"]
OURS = ["who", "v", "g", "c0", "q0", "s0", "k0", "label", "people", "raw_rows", "all_rows", "n", "code", "line", "pc0"]


@pytest.mark.parametrize("first", range(len(NAMES)))
def test_a_column_may_have_any_name_in_any_role(house: House, first: int) -> None:
    """Every name has every role once, as the roles go round."""
    own, sensitive, kept, individual, identifier = (NAMES * 2)[first : first + 5]
    table = pa.table({name: ["a", "b", "c", "d"] for name in (own, sensitive, kept, individual, identifier)})
    columns = {
        "identifiers": [identifier],
        "individual": individual,  # where its name is `row`, every row is another person
        "quasi_identifiers": {own: {}},
        "sensitive": [sensitive],
        "keep": [kept],
    }
    (house.folder / "table.csv").write_bytes(as_csv(table))
    house.run(source={"path": "table.csv"}, columns=columns)
    assert house.released().column_names == [own, sensitive, kept]
    assert sorted(house.released()[kept].to_pylist()) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("role", ["quasi_identifiers", "sensitive", "keep"])
def test_names_that_the_engine_uses_itself_are_free_for_columns(house: House, role: str) -> None:
    table = pa.table({name: ["a", "a", "b", "b"] for name in OURS} | {"one": [1, 2, 3, 4], "other": ["x"] * 4})
    columns: dict[str, Any] = {"individual": "row", "quasi_identifiers": {"one": {}}, "sensitive": ["other"]}
    house.run(table, columns=columns | {role: {name: {} for name in OURS} if role == "quasi_identifiers" else OURS})
    assert set(OURS) < set(house.released().column_names)


# Nulls

GAPS = pa.table({"age": [1, None, 2, 2, None, 1], "zip": ["02139"] * 6, "disease": ["a", "b", None, "a", None, "b"]})


def test_missing_values_are_values_where_the_config_says_so(house: House) -> None:
    result = house.run(GAPS, nulls={"quasi_identifiers": "value", "sensitive": "value"})
    assert result.facts["rows"] == 6
    assert house.released()["disease"].null_count == 2


@pytest.mark.parametrize(
    ("policy", "rows"),
    [
        ({"quasi_identifiers": "drop", "sensitive": "value"}, 4),
        ({"quasi_identifiers": "value", "sensitive": "drop"}, 4),
        ({"quasi_identifiers": "drop", "sensitive": "drop"}, 3),
    ],
)
def test_rows_with_missing_values_are_dropped_and_counted(house: House, policy: dict[str, str], rows: int) -> None:
    result = house.run(GAPS, nulls=policy)
    assert result.facts["rows"] == rows
    warned = {warning["code"]: warning["count"] for warning in result.facts["warnings"]}
    assert warned["rows_dropped"] == 6 - rows


def test_missing_values_are_errors_with_their_counts(house: House) -> None:
    with pytest.raises(ConfigError) as error:
        house.run(GAPS, nulls={"quasi_identifiers": "error", "sensitive": "error"})
    assert [p.path for p in error.value.problems] == ["columns.quasi_identifiers.age", "columns.sensitive.disease"]
    assert all("2 rows without a value" in p.found for p in error.value.problems)


def test_a_dropped_row_is_no_error_in_another_column(house: House) -> None:
    with pytest.raises(ConfigError, match="disease: found 1 rows without"):
        house.run(GAPS, nulls={"quasi_identifiers": "drop", "sensitive": "error"})


def test_nan_counts_as_missing(house: House) -> None:
    table = pa.table({"age": [1.5, math.nan, None], "zip": ["02139"] * 3, "disease": ["a"] * 3})
    with pytest.raises(ConfigError, match="age: found 2 rows without"):
        house.run(table, nulls={"quasi_identifiers": "error"})


def test_dropping_every_row_is_a_mistake_in_the_config(house: House) -> None:
    table = pa.table({"age": pa.nulls(3, pa.int64()), "zip": ["02139"] * 3, "disease": ["a"] * 3})
    with pytest.raises(ConfigError, match="all 3 rows dropped"):
        house.run(table, nulls={"quasi_identifiers": "drop"})


# Individuals


def people(ids: list[Any], ages: list[Any]) -> pa.Table:
    return pa.table({"id": ids, "age": ages, "zip": ["02139"] * len(ids), "disease": ["a"] * len(ids)})


def individual_error(house: House, table: pa.Table, **changes: Any) -> list[str]:
    with pytest.raises(ConfigError) as error:
        house.run(table, columns__individual="id", **changes)
    assert {p.path for p in error.value.problems} == {"columns.individual"}
    return [p.found for p in error.value.problems]


def test_rows_of_nobody_are_counted(house: House) -> None:
    assert individual_error(house, people([1, None, None], [1, 1, 1])) == ["2 rows that do not say whose they are"]
    assert individual_error(house, people([1.0, math.nan, 2.0], [1] * 3)) == ["1 rows that do not say whose they are"]


def test_repeated_individuals_are_counted_and_disagreement_is_another_problem(house: House) -> None:
    repeats = "2 rows of individuals who already have one"
    assert individual_error(house, people([1, 1, 1, 2], [5, 5, 5, 6])) == [repeats]
    disagree = "1 individuals whose rows disagree on a quasi-identifier"
    assert individual_error(house, people([1, 1, 2, 2], [5, 6, 7, 7])) == [repeats, disagree]
    assert individual_error(house, people([1, 1, 2, 2], [5, None, 7, 7])) == [repeats, disagree]


def test_a_dropped_row_does_not_repeat_an_individual(house: House) -> None:
    table = people([1, 1, 2], [5, None, 6])
    assert house.run(table, columns__individual="id", nulls={"quasi_identifiers": "drop"}).facts["rows"] == 2


def test_individuals_and_identifiers_are_never_published(house: House) -> None:
    ids = [f"INDIVIDUAL-{n}" for n in range(12)]
    table = ROWS.append_column("id", [ids]).append_column("name", [[f"IDENTIFIER-{n}" for n in range(12)]])
    table = table.append_column("unnamed", [[f"UNNAMED-{n}" for n in range(12)]])
    house.run(table, columns__individual="id", columns__identifiers=["name"])
    assert house.released().column_names == ["age", "zip", "disease"]
    for path in [*(house.folder / "out").iterdir(), *(house.folder / "out-run").iterdir()]:
        assert not any(mark in path.read_bytes() for mark in (b"INDIVIDUAL-", b"IDENTIFIER-", b"UNNAMED-"))


# What is not there, or cannot be read


def test_all_missing_columns_are_told_at_once_with_near_misses(house: House) -> None:
    with pytest.raises(ConfigError) as error:
        house.run(ROWS, columns__quasi_identifiers={"Age": {}, "zipp": {}, "colour": {}}, columns__keep=["weight"])
    hints = [p.hint for p in error.value.problems]
    assert hints[:2] == ["did you mean 'age'?", "did you mean 'zip'?"]
    assert hints[2].startswith("the table has 'age', 'zip', 'disease'")


def test_a_csv_file_without_header_does_not_have_its_first_row_told(house: House) -> None:
    (house.folder / "table.csv").write_text("SECRET,44,HIV\nx,45,Flu\n")
    outcome = house.cli("run", source={"path": "table.csv"})
    assert outcome.code == 2
    assert "SECRET" not in outcome.stderr and "HIV" not in outcome.stderr


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_columns_that_differ_only_in_case_cannot_be_told_apart(house: House, suffix: str) -> None:
    names = ["age", "Age", "age_1", "zip", "disease"]
    table = pa.table([[1, 2], [3, 4], [5, 6], ["02139"] * 2, ["a"] * 2], names=names)
    house.write(table)
    (house.folder / "table.csv").write_bytes(as_csv(table))
    for wanted in ("age", "Age", "age_1"):
        with pytest.raises(ConfigError, match=f"column '{wanted}'; expected a name that differs"):
            house.run(source={"path": f"table.{suffix}"}, columns__quasi_identifiers={wanted: {}})
    assert house.run(source={"path": f"table.{suffix}"}, columns__quasi_identifiers={"zip": {}}).safe


def truncated(house: House) -> str:
    path = house.write(ROWS)
    path.write_bytes(path.read_bytes()[:-30])
    return path.name


def garbled(house: House) -> str:
    path = house.write(ROWS)
    content = path.read_bytes()
    path.write_bytes(content[:4] + bytes(len(content) // 2) + content[4 + len(content) // 2 :])
    return path.name


def file_of(name: str, content: bytes) -> Callable[[House], str]:
    def layout(house: House) -> str:
        (house.folder / name).write_bytes(content)
        return name

    return layout


def empty_folder(house: House) -> str:
    (house.folder / "empty").mkdir()
    return "empty"


def other_schema(change: Callable[[pa.Table], pa.Table]) -> Callable[[House], str]:
    def layout(house: House) -> str:
        house.write(ROWS, "parts/1.parquet")
        house.write(change(ROWS), "parts/2.parquet")
        return "parts"

    return layout


def both_kinds(house: House) -> str:
    house.write(ROWS, "parts/1.parquet")
    (house.folder / "parts" / "2.csv").write_bytes(as_csv(ROWS))
    return "parts"


def other_header(house: House) -> str:
    (house.folder / "parts").mkdir()
    (house.folder / "parts" / "1.csv").write_bytes(as_csv(ROWS))
    (house.folder / "parts" / "2.csv").write_bytes(as_csv(ROWS.select(ROWS.column_names[::-1])))
    return "parts"


HEAD = b"age,zip,disease\n20,02139,SECRET\n"
UNREADABLE: dict[str, tuple[Callable[[House], str], str]] = {
    "missing": (lambda house: "nowhere.parquet", "no such file"),
    "no match": (lambda house: "nowhere/*.parquet", "no file matches"),
    "empty folder": (empty_folder, "no .parquet and no .csv"),
    "truncated": (truncated, "cut off"),
    "garbled": (garbled, "reading"),
    "no parquet": (file_of("t.parquet", b"SECRET" * 9), "not a Parquet file"),
    "empty file": (file_of("t.parquet", b""), "not a Parquet file"),
    "other type": (
        other_schema(lambda t: t.set_column(0, "age", t["age"].cast(pa.string()))),
        "2.parquet: not the same columns and types as 1.parquet",
    ),
    "other columns": (other_schema(lambda t: t.append_column("SECRETS", [[1] * 12])), "not the same columns"),
    "fewer columns": (other_schema(lambda t: t.drop_columns(["insured"])), "not the same columns"),
    "both kinds": (both_kinds, "some are CSV and some are not"),
    "other header": (other_header, "2.csv: its first line differs from that of 1.csv"),
    "no rows": (lambda house: house.write(ROWS.slice(0, 0)).name, "no rows"),
    "header only": (file_of("t.csv", b"age,zip,disease\n"), "no rows"),
    "empty csv": (file_of("t.csv", b""), "does not name every column"),
    "unnamed column": (file_of("t.csv", b"age,,disease\n1,2,3\n"), "does not name every column"),
    "not utf-8": (file_of("t.csv", HEAD + b"21,02139,SECR\xffET\n"), "line 3: it is not UTF-8"),
    "header not utf-8": (file_of("t.csv", b"age,zip,SECR\xffET\n1,2,3\n"), "line 1: it is not UTF-8"),
    "long line": (file_of("t.csv", HEAD + b"21,02139,SECRET,SECRET\n"), "t.csv, line 3: it is not well-formed"),
    "short line": (file_of("t.csv", HEAD + b"SECRET\n"), "line 3: it is not well-formed"),
    "open quote": (file_of("t.csv", HEAD + b'21,02139,"SECRET\n'), "line 3: it is not well-formed"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_is_exit_5_in_plain_words(house: House, name: str) -> None:
    layout, words = UNREADABLE[name]
    outcome = house.cli("run", source={"path": layout(house)})
    assert outcome.code == 5, outcome.stderr
    assert words in outcome.stderr
    assert "SECRET" not in outcome.stderr + outcome.stdout
    assert not house.leftovers() and not (house.folder / "out").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_exit_5(house: House) -> None:
    house.write(ROWS).chmod(0)
    outcome = house.cli("run")
    assert outcome.code == 5 and "permission" in outcome.stderr.lower()


def test_parts_may_have_their_columns_in_another_order(house: House, expected: bytes) -> None:
    house.write(ROWS.slice(0, 6), "parts/1.parquet")
    house.write(ROWS.slice(6).select(ROWS.column_names[::-1]), "parts/2.parquet")
    house.run(source={"path": "parts"}, **EVERYTHING)
    assert house.bytes() == expected


def append_file(folder: Path) -> None:
    pq.write_table(ROWS, folder / "parts" / "2.parquet")


def append_rows(folder: Path) -> None:
    pq.write_table(pa.concat_tables([ROWS, ROWS]), folder / "parts" / "1.parquet")


def remove_file(folder: Path) -> None:
    (folder / "parts" / "1.parquet").unlink()


@pytest.mark.parametrize("change", [append_file, append_rows, remove_file])
def test_a_source_that_changes_between_passes_is_exit_5(
    house: House, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    house.write(ROWS, "parts/1.parquet")
    write = release.write

    def changed_before(*args: Any, **options: Any) -> Any:
        change(house.folder)
        return write(*args, **options)

    monkeypatch.setattr(pipeline.release, "write", changed_before)
    with pytest.raises(SourceError):
        house.run(source={"path": "parts"})
    assert not house.leftovers() and not (house.folder / "out").exists() and not (house.folder / "out-run").exists()


# Sensitive columns as they are published


def away_from_zero(value: Any, width: str) -> Decimal:
    exact, step = Decimal(str(value)), Decimal(width)
    return (exact / step).quantize(Decimal(1), decimal.ROUND_HALF_UP) * step


def rounded(house: House, values: list[Any], kind: pa.DataType, width: Any) -> list[Any]:
    table = pa.table({"one": [1] * len(values), "it": pa.array(values, kind)})
    columns = {"individual": "row", "quasi_identifiers": {"one": {}}, "sensitive": {"it": {"round": width}}}
    house.run(table, columns=columns)
    return house.released()["it"].to_pylist()


ROUNDED: list[tuple[list[Any], pa.DataType, str]] = [
    ([0, 49, 50, 149, 150, -49, -50, -150], pa.int32(), "100"),
    ([2**53 + 1, 2**53 + 3, -(2**61) - 1], pa.int64(), "2"),
    ([1, 2, 3, -1], pa.int64(), "2.5"),
    ([1.25, 3.75, -1.25, 0.0, -0.0], pa.float64(), "2.5"),
    ([0.05, 0.15, 0.25, 0.35, 0.45, 0.55, -0.35, 1.05, 2.675, 1000000.05], pa.float64(), "0.1"),
    ([0.005, 1.005, 8.345, 1.115, 0.285], pa.float64(), "0.01"),
    ([0.35, 0.25], pa.float32(), "0.1"),
    ([Decimal("0.05"), Decimal("0.15"), Decimal("-0.25"), Decimal("99999.95")], pa.decimal128(9, 2), "0.1"),
    ([Decimal("1234567890123456.5"), Decimal("-0.5")], pa.decimal128(38, 1), "1"),
]


@pytest.mark.parametrize(("values", "kind", "width"), ROUNDED)
def test_rounding_is_exact_and_takes_halves_away_from_zero(
    house: House, values: list[Any], kind: pa.DataType, width: str
) -> None:
    published = rounded(house, values, kind, Decimal(width) if "." in width else int(width))
    assert sorted(map(Decimal, published)) == sorted(away_from_zero(value, width) for value in values)


def test_rounding_keeps_what_is_missing(house: House) -> None:
    table = pa.table({"one": [1] * 3, "it": [math.nan, None, 7.0]})
    columns = {"individual": "row", "quasi_identifiers": {"one": {}}, "sensitive": {"it": {"round": 5}}}
    house.run(table, columns=columns, nulls={"sensitive": "value"})
    assert house.released()["it"].to_pylist() == [None, None, 5]


@pytest.mark.parametrize("values", [["a", "b"], [True, False], [dt.date(2024, 1, 1)] * 2])
def test_only_numbers_can_be_rounded(house: House, values: list[Any]) -> None:
    with pytest.raises(ConfigError, match=r"columns\.sensitive\.it: found type \w+ with `round`"):
        rounded(house, values, None, 5)


def test_numbers_too_large_to_round_are_refused(house: House) -> None:
    with pytest.raises(ConfigError, match="1 values that are not; expected small enough to round"):
        rounded(house, [2**63 - 1, 1], pa.int64(), 100)


@pytest.mark.parametrize(
    ("values", "builder", "labels"),
    [
        ([1, 7, 12, 12], {"intervals": [5, 10]}, ["0-4", "10-14", "10-14", "5-9"]),
        (["02139", "02138", None], {"digits": 5}, [None, "0213*", "0213*"]),
        (["a", "b"], {"suppress": True}, ["*", "*"]),
        ([dt.date(2024, 3, 9), dt.date(2024, 5, 1)], {"calendar": ["quarter", "year"]}, ["2024-Q1", "2024-Q2"]),
        ([dt.date(2024, 3, 9), dt.date(2024, 3, 10)], {"calendar": ["day", "month"]}, ["2024-03-09", "2024-03-10"]),
        ([dt.date(2024, 3, 9), dt.date(2024, 3, 10)], {"calendar": ["day"]}, ["2024-03-09", "2024-03-10"]),
        ([dt.datetime(2024, 3, 9, 7), dt.datetime(2024, 3, 9, 8)], {"calendar": ["day"]}, ["2024-03-09"] * 2),
    ],
)
def test_a_builder_publishes_the_labels_of_its_first_level(
    house: House, values: list[Any], builder: dict[str, Any], labels: list[Any]
) -> None:
    table = pa.table({"one": [1] * len(values), "it": values})
    columns = {"individual": "row", "quasi_identifiers": {"one": {}}, "sensitive": {"it": builder}}
    house.run(table, columns=columns, nulls={"sensitive": "value"})
    assert house.released()["it"].to_pylist() == labels


def test_a_builder_that_does_not_fit_names_the_sensitive_column(house: House) -> None:
    with pytest.raises(ConfigError, match=r"columns\.sensitive\.disease"):
        house.run(ROWS, columns__sensitive={"disease": {"digits": 5}})


SKYLINE = {"privacy": [{"skyline": {"points": [{"l": 0, "k": 0, "m": 0, "c": 1}]}}]}


def numbers(values: list[Any]) -> pa.Table:
    return pa.table({"one": [1] * len(values), "it": values})


def number_columns(**spec: Any) -> dict[str, Any]:
    return {"columns": {"individual": "row", "quasi_identifiers": {"one": {}}, "sensitive": {"it": spec}}, **SKYLINE}


def test_numbers_are_no_categories_unless_the_config_says_so(house: House) -> None:
    for table in (numbers([1.5, 2.5]), numbers(list(range(1001)))):
        with pytest.raises(ConfigError, match="takes for categories"):
            house.run(table, **number_columns())
        assert house.run(table, **number_columns(as_categories=True)).safe
    assert house.run(numbers(list(range(1000))), **number_columns()).safe
    assert house.run(numbers([n / 2 for n in range(1001)]), **number_columns(round=10)).safe


def test_more_than_65535_sensitive_values_are_refused(house: House) -> None:
    with pytest.raises(ConfigError, match=r"columns\.sensitive\.it: found 65,536"):
        house.run(numbers(list(range(65_536))), **number_columns(as_categories=True))


# Nothing of the data is told

MARKS = ("MARK-A", "MARK-B", "777.125", "8886", "1933-03-03")
MARKED = pa.table(
    {
        "id": ["MARK-A", "MARK-A", "MARK-B", None],
        "age": [8886, 8886, None, 8886],
        "zip": ["MARK-A", "MARK-B", None, "MARK-A"],
        "disease": ["MARK-A", None, "MARK-B", "MARK-A"],
        "cost": [777.125, math.inf, None, 777.125],
        "born": [dt.date(1933, 3, 3)] * 4,
        "parts": [["MARK-A"]] * 4,
        "word": pa.array(["MARK-A"] * 4).dictionary_encode(),
    }
)
FAILING: dict[str, dict[str, Any]] = {
    "digits": {},
    "nulls": {"columns__quasi_identifiers": {"age": {}}, "nulls": {"quasi_identifiers": "error"}},
    "individuals": {"columns__quasi_identifiers": {"age": {}}, "columns__individual": "id"},
    "list": {"columns__quasi_identifiers": {"age": {}}, "columns__keep": ["parts"]},
    "infinite": {"columns__quasi_identifiers": {"cost": {}}},
    "intervals": {"columns__quasi_identifiers": {"zip": {"intervals": [5]}}},
    "calendar": {"columns__quasi_identifiers": {"zip": {"calendar": ["year"]}}},
    "round": {"columns__sensitive": {"word": {"round": 5}}},
    "builder": {"columns__sensitive": {"word": {"digits": 3}}},
    "missing column": {"columns__quasi_identifiers": {"nowhere": {}}},
    "unsafe": {
        "columns__quasi_identifiers": {"born": {}},
        "columns__sensitive": ["word"],
        "privacy": [{"skyline": {"points": [{"l": 0, "k": 0, "m": 0, "c": 0.5}]}}],
    },
    "too few": {
        "columns__quasi_identifiers": {"born": {}},
        "columns__sensitive": ["word"],
        "privacy": [{"k_anonymity": {"k": 100}}],
    },
    "named value": {
        "columns__quasi_identifiers": {"born": {}},
        "columns__sensitive": ["word"],
        "privacy": [{"skyline": {"points": [], "values": {"mark-a": "exempt", "other": "exempt"}}}],
    },
}


@pytest.mark.parametrize("name", FAILING)
def test_no_failure_tells_a_value_of_the_data(house: House, name: str) -> None:
    house.write(MARKED)
    for options in ((), ("--json", "--debug")):
        outcome = house.cli("run", *options, **FAILING[name])
        assert outcome.code in (2, 3, 5), outcome.stderr
        assert not any(mark in outcome.stdout + outcome.stderr for mark in MARKS)
    with pytest.raises(AnonError) as error:
        house.run(**FAILING[name])
    assert not any(mark in "".join(traceback.format_exception(error.value)) for mark in MARKS)


def test_a_failure_inside_duckdb_does_not_bring_its_text_along(house: House) -> None:
    from anon.database import interruptible, translated

    con = connect(10**9, 1, house.folder)
    sql = "SELECT CAST(v AS INTEGER) FROM (VALUES ('MARK-A Parquet')) AS t(v)"
    with pytest.raises(SourceError) as error, translated("reading"):
        con.sql(sql).fetchall()
    assert "MARK-A" not in "".join(traceback.format_exception(error.value))
    with pytest.raises(SourceError) as error, translated("reading"):
        list(interruptible(con.sql(sql).to_arrow_reader(10), "reading"))
    assert "MARK-A" not in "".join(traceback.format_exception(error.value))


# Limits, spill, signals


def test_duckdb_keeps_to_the_limits(house: House) -> None:
    con = connect(2_300_000_000, 3, house.folder)
    names = ("memory_limit", "threads", "temp_directory", "autoinstall_known_extensions")
    told = con.sql("SELECT " + ", ".join(f"current_setting('{name}')" for name in names)).fetchall()[0]
    assert told == ("1.8 GiB", 3, str(house.folder), False)


def test_too_little_memory_is_a_matter_of_resources(house: House) -> None:
    from anon.database import translated

    con = connect(1, 1, house.folder)
    con.execute("SET memory_limit = '1MB'").fetchall()
    con.execute("SET temp_directory = ''").fetchall()
    with pytest.raises(ResourceError, match=r"limits\.memory"), translated("counting"):
        con.sql("SELECT count(*) FROM (SELECT DISTINCT range FROM range(1000000))").fetchall()


def test_the_spill_is_private_while_it_lasts(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    (house.folder / "table.csv").write_bytes(as_csv(ROWS))
    modes: list[int] = []
    build = pipeline.cubes.build

    def watched(*args: Any, **options: Any) -> Any:
        modes.extend(path.stat().st_mode & 0o777 for path in (house.folder / "spill").iterdir())
        return build(*args, **options)

    monkeypatch.setattr(pipeline.cubes, "build", watched)
    house.run(source={"path": "table.csv"})
    assert modes == [0o700]
    assert not house.leftovers()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("large") / "large.parquet"
    columns = "range % 90 AS age, '0' || (1000 + hash(range) % 9000) AS zip, 'd' || hash(range + 7) % 20 AS disease"
    duckdb.sql(f"COPY (SELECT {columns}, hash(range) % 1000 AS kept FROM range(1500000)) TO '{path}'")
    yield path
    path.unlink()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("stage", ["source", "search"])
def test_a_signal_is_exit_130_and_leaves_nothing(house: House, large: Path, number: signal.Signals, stage: str) -> None:
    config = house.config(source={"path": str(large)}, columns__keep=["kept"])
    (house.folder / "config.yaml").write_text(json.dumps(config))
    main = "from anon.cli import main; main()"
    command = [sys.executable, "-c", main, "run", str(house.folder / "config.yaml"), "--log-json"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as job:
        assert job.stderr is not None
        for line in job.stderr:
            if stage in line:
                break
        time.sleep(0.1)
        job.send_signal(number)
        _, said = job.communicate(timeout=60)
    assert job.returncode == 130, said
    assert "Traceback" not in said
    assert not house.leftovers() and not (house.folder / "out").exists()


def failing_source(failure: Exception) -> Callable[..., None]:
    def fails(*_: Any) -> None:
        raise failure

    return fails


@pytest.mark.parametrize(
    "failure", [RuntimeError("Query interrupted"), duckdb.InterruptException("INTERRUPT Error: Interrupted!")]
)
def test_an_interrupt_in_the_words_of_duckdb_is_exit_130(
    house: House, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    monkeypatch.setattr(pipeline, "open_source", failing_source(failure))
    outcome = house.cli("run")
    assert outcome.code == 130 and "Traceback" not in outcome.stderr


def test_another_failure_is_told_without_its_text_and_without_a_traceback(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "open_source", failing_source(RuntimeError("broken by Mrs Jones")))
    outcome = house.cli("run")
    assert outcome.code == 1 and "unexpected RuntimeError" in outcome.stderr
    assert "Traceback" not in outcome.stderr and "Jones" not in outcome.stderr


def test_the_config_of_these_tests_is_a_config(house: House) -> None:
    assert load(house.config()).columns.individual == "row"
