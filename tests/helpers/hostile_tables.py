"""Hostile tables: names, values, types, files and formats that real extracts come with. Used by test_hostile_input."""

from __future__ import annotations

import datetime as dt
import math
import os
import unicodedata
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from tests.conftest import House
from tests.helpers.hostile import AGES, DISEASES, PEOPLE, TABLE, ZIPS, Case, all_of, column, file, holding
from tests.helpers.source import as_csv

DROP = '"; drop table x; --'
STRANGE = {
    "sql": DROP,
    "markup": "[/red] [bold]x",
    "newline": "a\nb\tc",
    "braces": "{value} %s {0}",
    "long": "n" * 500,
    "emoji": "👩‍⚕️ 'q' \\",
    "tag": "<script>alert(1)</script>",
    "our own": "q0",
    "keyword": "select",
}
CSV = {"source": {"path": "table.csv"}}
FREE = {"columns__quasi_identifiers": {"age": {}}}
HEAD = "age,zip,disease\n77700,77700,MARK-A\n"


def named(*names: str) -> dict[str, Any]:
    """Strange columns in every role."""
    quasi, sensitive, keep, who = names
    columns = {
        "individual": who,
        "quasi_identifiers": {quasi: {}},
        "sensitive": [sensitive],
        "keep": [keep],
    }
    return {"columns": columns}


def strange(name: str) -> Case:
    names = (name, f"{name}2", f"{name}3", f"{name}4")
    table = pa.table([AGES, DISEASES, ["MARK-K"] * PEOPLE, [f"MARK-{i}" for i in range(PEOPLE)]], names=names)

    def released(house: House) -> None:
        assert house.released().column_names == list(names[:3])

    return Case(0, (), named(*names), holding(table), released=released)


def wide(count: int) -> pa.Table:
    more = pa.array([1.5] * PEOPLE)
    return pa.table([*TABLE.columns, *[more] * count], names=[*TABLE.column_names, *(f"c{i}" for i in range(count))])


def wide_csv(house: House) -> None:
    (house.folder / "table.csv").write_bytes(as_csv(wide(10_000)))


def same_columns(house: House) -> None:
    assert house.released().column_names == TABLE.column_names


def cut(house: House) -> None:
    path = house.folder / "table.parquet"
    path.write_bytes(path.read_bytes()[:-30])


def garbled(house: House) -> None:
    path = house.folder / "table.parquet"
    content = path.read_bytes()
    path.write_bytes(content[:4] + bytes(len(content) // 2) + content[4 + len(content) // 2 :])


def loop(house: House) -> None:
    (house.folder / "loop.parquet").symlink_to(house.folder / "loop.parquet")


def pipe(house: House) -> None:
    os.mkfifo(house.folder / "pipe.csv")


def twins(house: House) -> None:
    """A column whose name is written in the other form of Unicode than in the config."""
    house.write(TABLE.rename_columns(["age", "zip", unicodedata.normalize("NFD", "maladié")]))


def duplicated(house: House) -> None:
    pq.write_table(
        pa.table([AGES, ZIPS, DISEASES, AGES], names=["age", "zip", "disease", "age"]), house.folder / "table.parquet"
    )


def infinite_date(house: House) -> None:
    values = "SELECT unnest(range(12)) + 77700 AS age, 'MARK' AS disease, DATE 'infinity' AS born"
    duckdb.sql(f"COPY ({values}) TO '{house.folder / 'table.parquet'}' (FORMAT parquet)")


def all_rows(house: House) -> None:
    assert house.released().num_rows == PEOPLE


def null_labels(house: House) -> None:
    assert house.released()["zip"].null_count == PEOPLE // 2


def empty_labels(house: House) -> None:
    assert set(house.released()["zip"].to_pylist()) == {"", "MARK"}


def latest(house: House) -> None:
    assert all("9999" in label or label == "*" for label in house.released()["born"].to_pylist())


BORN = {"columns__quasi_identifiers": {"born": {"calendar": ["day", "month", "year"]}}}
LAST = [dt.date(9999, 12, 31)] * PEOPLE

CASES: dict[str, Case] = {
    **{f"columns with a strange name: {kind}": strange(name) for kind, name in STRANGE.items()},
    "10,000 columns": Case(0, (), {}, holding(wide(10_000)), released=same_columns),
    "10,000 columns of CSV": Case(0, (), CSV, wide_csv, released=same_columns),
    "names that differ in case only": Case(
        2,
        ("columns.quasi_identifiers.age", "differs from every other by more than case"),
        {},
        holding(TABLE.append_column("AGE", [AGES])),
    ),
    "two columns of one name": Case(2, ("columns.quasi_identifiers.age", "column 'age'"), {}, duplicated),
    "a name in the other form of Unicode": Case(
        2, ("columns.sensitive.maladié", "Unicode"), {"columns__sensitive": ["maladié"]}, twins
    ),
    "a column that is not there": Case(2, ("columns.keep[0]", "did you mean 'zip'?"), {"columns__keep": ["zips"]}),
    "empty strings": Case(
        0,
        (),
        {"columns__quasi_identifiers": {"zip": {"suppress": True}}},
        holding(column("zip", ["", "MARK"] * 6)),
        released=empty_labels,
    ),
    "a quasi-identifier without any value": Case(
        0, (), {}, holding(column("zip", pa.nulls(PEOPLE, pa.string()))), released=all_rows
    ),
    "a column of type null": Case(
        2, ("columns.quasi_identifiers.zip", "type NULL"), {}, holding(column("zip", pa.nulls(PEOPLE)))
    ),
    "NaN in a quasi-identifier": Case(
        0,
        (),
        {"columns__quasi_identifiers": {"zip": {}}},
        holding(column("zip", [math.nan, 77.70] * 6)),
        released=null_labels,
    ),
    "infinities in a quasi-identifier": Case(
        2,
        ("columns.quasi_identifiers.age", "2 values that are not; expected finite numbers"),
        FREE,
        holding(column("age", [math.inf, -math.inf, *[77.70] * 10])),
    ),
    "NaN in a sensitive column": Case(
        2,
        ("columns.sensitive.cost", "12 rows without a value", "nulls.sensitive"),
        {"columns__sensitive": ["cost"]},
        holding(column("cost", [math.nan] * PEOPLE)),
    ),
    "infinities in a sensitive column": Case(
        2,
        ("columns.sensitive.cost", "finite numbers"),
        {"columns__sensitive": ["cost"]},
        holding(column("cost", [math.inf] * PEOPLE)),
    ),
    "missing sensitive values": Case(
        2,
        ("columns.sensitive.disease", "1 row without a value", "nulls.sensitive"),
        {},
        holding(column("disease", [None, *DISEASES[1:]])),
    ),
    "missing quasi-identifiers that are an error": Case(
        2,
        ("columns.quasi_identifiers.age", "1 row without a value", "nulls.quasi_identifiers"),
        {"nulls": {"quasi_identifiers": "error"}},
        holding(column("age", [None, *AGES[1:]])),
    ),
    "all rows dropped": Case(
        2,
        ("nulls", "all 12 rows dropped"),
        {"nulls": {"quasi_identifiers": "drop"}},
        holding(column("zip", pa.nulls(PEOPLE, pa.string()))),
    ),
    "dates of the year 9999": Case(0, (), BORN, holding(column("born", LAST)), released=latest),
    "dates of the year 9999 as intervals of a tree": Case(
        0, (), {"columns__quasi_identifiers": {"born": {}}}, holding(column("born", [*LAST[1:], dt.date(1, 1, 1)]))
    ),
    "infinite dates": Case(2, ("columns.quasi_identifiers.born", "of the years 1 to 9999"), BORN, infinite_date),
    "nanoseconds": Case(
        2,
        ("columns.quasi_identifiers.born", "whole microseconds"),
        BORN,
        holding(column("born", pa.array([1] * PEOPLE, pa.timestamp("ns")))),
    ),
    "integers beyond 64 bits": Case(
        2,
        ("columns.quasi_identifiers.age", "integers below 2^63"),
        FREE,
        holding(column("age", pa.array([2**64 - 1] * PEOPLE, pa.uint64()))),
    ),
    "decimals of 38 digits": Case(
        2,
        ("columns.quasi_identifiers.age", "at most 15 digits"),
        FREE,
        holding(column("age", pa.array([Decimal("9" * 38)] * PEOPLE, pa.decimal128(38, 0)))),
    ),
    "the ends of 64 bits": Case(0, (), FREE, holding(column("age", [-(2**63), 2**63 - 1] * 6)), released=all_rows),
    "a list for a quasi-identifier": Case(
        2, ("columns.quasi_identifiers.age", "type VARCHAR[]"), FREE, holding(column("age", [["MARK"]] * PEOPLE))
    ),
    "a struct that is kept": Case(
        2,
        ("columns.keep.parts", "type STRUCT"),
        {"columns__keep": ["parts"]},
        holding(column("parts", [{"MARK": 1}] * PEOPLE)),
    ),
    "bytes": Case(2, ("columns.sensitive.disease", "type BLOB"), {}, holding(column("disease", [b"MARK"] * PEOPLE))),
    "times of the day": Case(
        2, ("columns.quasi_identifiers.age", "type TIME"), FREE, holding(column("age", [dt.time(7, 7)] * PEOPLE))
    ),
    "text with too many values": Case(
        2,
        ("columns.quasi_identifiers.zip", "text with 100 distinct values", "at most 64"),
        {"columns__quasi_identifiers": {"zip": {}}},
        holding({"zip": [f"MARK{i}" for i in range(100)], "disease": ["MARK"] * 100}),
    ),
    "digits that lost their zeros": Case(
        2, ("columns.quasi_identifiers.zip.digits", "leading zeros"), {}, holding(column("zip", [7770] * PEOPLE))
    ),
    "digits that are words": Case(
        2,
        ("columns.quasi_identifiers.zip.digits", "not exactly 5 digits"),
        {},
        holding(column("zip", ["MARK"] * PEOPLE)),
    ),
    "intervals of words": Case(
        2,
        ("columns.quasi_identifiers.zip.intervals", "a column of numbers"),
        {"columns__quasi_identifiers": {"zip": {"intervals": [5]}}},
        holding(column("zip", ["MARK"] * PEOPLE)),
    ),
    "a calendar of words": Case(
        2,
        ("columns.quasi_identifiers.zip.calendar", "dates"),
        {"columns__quasi_identifiers": {"zip": {"calendar": ["year"]}}},
        holding(column("zip", ["MARK"] * PEOPLE)),
    ),
    "a value that is a label": Case(
        2,
        ("columns.quasi_identifiers.zip", "label"),
        {"columns__quasi_identifiers": {"zip": {"suppress": True}}},
        holding(column("zip", ["*", *ZIPS[1:]])),
    ),
    "one row": Case(3, ("k_anonymity", "1"), {}, holding(TABLE.slice(0, 1))),
    "one group": Case(
        3,
        ("l_diversity", "no release is safe"),
        {"privacy": [{"l_diversity": {"kind": "distinct", "l": 2}}]},
        holding(column("disease", ["MARK-A"] * PEOPLE)),
    ),
    "all rows equal": Case(0, (), {}, holding(pa.concat_tables([TABLE.slice(0, 1)] * 50))),
    "a table without rows": Case(5, ("the table has no rows",), {}, holding(TABLE.slice(0, 0))),
    "rows without an individual": Case(
        2,
        ("columns.individual", "1 row without an individual"),
        {"columns__individual": "who"},
        holding(column("who", [None, *range(1, PEOPLE)])),
    ),
    "people with several rows": Case(
        2,
        ("columns.individual", "6 rows that repeat an individual", "columns.multiplicity"),
        {"columns__individual": "who", **FREE},
        holding(pa.table({"age": [77700] * PEOPLE, "disease": DISEASES, "who": [i // 2 for i in range(PEOPLE)]})),
    ),
    "people whose rows disagree": Case(
        2,
        ("columns.individual", "6 individuals whose rows disagree on a quasi-identifier"),
        {"columns__individual": "who"},
        holding(column("who", [f"MARK{i // 2}" for i in range(PEOPLE)])),
    ),
    "a Parquet file that is cut off": Case(5, ("table.parquet", "not a Parquet file, or it is cut off"), {}, cut),
    "a Parquet file that is garbled": Case(5, ("table.parquet",), {}, garbled),
    "an empty Parquet file": Case(5, ("table.parquet", "not a Parquet file"), {}, file("table.parquet", b"")),
    "a spreadsheet": Case(
        5,
        ("t.xlsx", "it is not an Excel workbook"),
        {"source": {"path": "t.xlsx"}},
        file("t.xlsx", b"PK\3\4MARK"),
    ),
    "parts with other types": Case(
        5,
        ("2.parquet: not the same columns and types as 1.parquet",),
        {"source": {"path": "parts"}},
        all_of(holding(TABLE, "parts/1.parquet"), holding(column("age", list(map(str, AGES))), "parts/2.parquet")),
    ),
    "parts with other columns": Case(
        5,
        ("2.parquet: not the same columns",),
        {"source": {"path": "parts"}},
        all_of(holding(TABLE, "parts/1.parquet"), holding(TABLE.drop_columns(["zip"]), "parts/2.parquet")),
    ),
    "parts of both formats": Case(
        5,
        ("some are CSV and some are Parquet",),
        {"source": {"path": "parts"}},
        all_of(holding(TABLE, "parts/1.parquet"), file("parts/2.csv", HEAD)),
    ),
    "a source that is a link to itself": Case(5, ("loop.parquet",), {"source": {"path": "loop.parquet"}}, loop),
    "a source that is a pipe": Case(5, ("pipe.csv", "it is not a file"), {"source": {"path": "pipe.csv"}}, pipe),
    "a source that is a device": Case(5, ("/dev/zero", "it is not a file"), {"source": {"path": "/dev/zero"}}),
    "no such source": Case(5, ("nowhere.parquet: no such file",), {"source": {"path": "nowhere.parquet"}}),
    "a source whose name is not UTF-8": Case(
        5,
        ("its path is not in UTF-8",),
        {"source": {"path": "parts"}},
        file(os.fsdecode(b"parts/caf\xe9.csv"), HEAD),
    ),
    "an empty folder": Case(
        5,
        ("the folder holds no file that is named .parquet, .csv",),
        {"source": {"path": "empty"}},
        file("empty/notes.txt", "MARK"),
    ),
    "CSV in two encodings": Case(
        5,
        ("table.csv", "line 3: it is not UTF-8"),
        CSV,
        file("table.csv", HEAD.encode() + "77701,77700,MARK-é\n".encode("latin-1")),
    ),
    "CSV in UTF-16": Case(5, ("table.csv", "UTF-16"), CSV, file("table.csv", HEAD.encode("utf-16"))),
    "CSV with a NUL": Case(
        5,
        ("line 3", "zero bytes"),
        CSV,
        file("table.csv", HEAD.encode() + b"77701,77\x00700,MARK\n"),
    ),
    "CSV without a header": Case(
        2,
        ("columns.quasi_identifiers.age", "no column named is there"),
        CSV,
        file("table.csv", "MARK,77700,MARK\n" * 5),
    ),
    "CSV with a nameless column": Case(
        5, ("line 1: it does not name every column",), CSV, file("table.csv", "age,,disease\n1,2,MARK\n")
    ),
    "CSV with a name twice": Case(
        2,
        ("columns.quasi_identifiers.age", "column 'age'"),
        CSV,
        file("table.csv", "age,zip,disease,age\n1,77700,MARK,2\n"),
    ),
    "CSV with a long line": Case(
        5, ("line 3: it is not well-formed",), CSV, file("table.csv", HEAD + "1,2,MARK,MARK\n")
    ),
    "CSV with a short line": Case(5, ("line 3: it is not well-formed",), CSV, file("table.csv", HEAD + "MARK\n")),
    "CSV with an open quote": Case(5, ("line 3: it is not well-formed",), CSV, file("table.csv", HEAD + '1,2,"MARK\n')),
    "CSV with a field of 3 MB": Case(
        5, ("table.csv", "too long"), CSV, file("table.csv", HEAD + f"1,77700,{'MARK' * 750_000}\n")
    ),
    "CSV with only a header": Case(5, ("no rows",), CSV, file("table.csv", "age,zip,disease\n")),
    "an empty CSV file": Case(5, ("table.csv: the file is empty",), CSV, file("table.csv", "")),
    "CSV with a byte order mark and Windows line ends": Case(
        0, (), CSV, file("table.csv", b"\xef\xbb\xbf" + as_csv(TABLE).replace(b"\n", b"\r\n")), released=same_columns
    ),
}
