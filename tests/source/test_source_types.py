"""What the source stage makes of the types and names of columns, in Parquet, frames and CSV."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pytest

from anon.core.database import connect
from anon.errors import ConfigError
from anon.source import Unusable, canonical
from tests.conftest import House
from tests.helpers.source import as_csv


def problem(error: pytest.ExceptionInfo[ConfigError]) -> str:
    return str(error.value)


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
    from anon.core.text import text

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
    database = connect(10**9, 1, house.folder)
    database.execute(f"CREATE TABLE t AS SELECT v::{kind} AS v FROM (VALUES (1), ({2**63}), (NULL)) AS t(v)")
    for letter in "qsk":
        with pytest.raises(Unusable) as error:
            canonical(database, "t", "v", kind, letter)
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


def csv_of(house: House, values: list[str]) -> dict[str, Any]:
    (house.folder / "table.csv").write_text("age,zip,disease\n" + "".join(f"{value},02139,Flu\n" for value in values))
    return {"source": {"path": "table.csv"}}


STRAY = [*map(str, range(80)), "SECRET", "n/a"]
LOCAL_DATES = [f"{day}.{month}.2024" for day in range(1, 13) for month in range(1, 13)]
ISO_DATES = [f"2024-{month:02}-01" for month in range(1, 13)]


@pytest.mark.parametrize(
    ("values", "builder", "words"),
    [
        (STRAY, {"intervals": [5]}, "2 of 82 distinct values that are not numbers"),
        (STRAY, {}, "82 distinct values.*2 of them are not numbers"),
        (LOCAL_DATES, {"calendar": ["month"]}, "144 of 144 distinct values that are not dates.*2024-03-09"),
        (LOCAL_DATES, {}, "144 distinct values.*144 of them are not dates like 2024-03-09"),
        ([*ISO_DATES, "SECRET"], {"calendar": ["month"]}, "1 of 13 distinct values that are not dates"),
        ([f"SECRET {n}" for n in range(65)], {}, "65 distinct values; expected at most 64 values.*hierarchy[)]$"),
    ],
)
def test_stray_values_that_make_a_csv_column_text_are_counted(
    house: House, values: list[str], builder: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as error:
        house.run(columns__quasi_identifiers={"age": builder}, **csv_of(house, values))
    assert "SECRET" not in problem(error)


def test_stray_values_among_numbers_to_round_are_counted(house: House) -> None:
    columns = {"individual": "row", "quasi_identifiers": ["zip"], "sensitive": {"age": {"round": 5}}}
    with pytest.raises(ConfigError, match=r"type text with `round`.*2 of them are not numbers"):
        house.run(columns=columns, **csv_of(house, STRAY))


def test_numbers_and_dates_stored_as_text_are_told_so(house: House) -> None:
    for values, builder, words in (
        (["1", "2"], {"intervals": [5]}, "numbers stored as text; expected a column of numbers"),
        (ISO_DATES, {"calendar": ["month"]}, "dates stored as text; expected a column of dates"),
    ):
        table = pa.table({"age": values, "zip": ["02139"] * len(values), "disease": ["Flu"] * len(values)})
        with pytest.raises(ConfigError, match=words):
            house.run(table, columns__quasi_identifiers={"age": builder})


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
