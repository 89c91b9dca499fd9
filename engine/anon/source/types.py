"""From the types that a table has to the few that the engine works with, in the source stage (config -> source -> cube
-> search -> release -> verify -> report): the kind of each column and the SQL for its canonical values, and for
sensitive columns the SQL for the values that will be published, rounded or labelled by a builder."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

import duckdb
import pyarrow as pa

from anon import hierarchy
from anon.config import Sensitive
from anon.core.database import quote, translated
from anon.errors import Problem
from anon.source.tables import one, why_text

INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
SMALL_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT"}  # that 32 bits with a sign hold
WIDE_INTEGERS = {"UBIGINT", "HUGEINT", "UHUGEINT"}
EQUAL_AS_READ = INTEGERS | WIDE_INTEGERS | {"VARCHAR", "DATE", "TIME", "BOOLEAN", "UUID", "BLOB"}
EXACT_DIGITS = 15  # decimals of at most this many digits keep their text through a double
PLACES = 18  # decimal places that rounding is exact for
LARGEST = 4e18  # numbers, and multiples of `round`, stay well inside 64 bits
DISTINCT_FOR_BUILDER = 1_000_000  # values of a sensitive column that a builder may have to label
USABLE = "integers, numbers, decimals, dates, timestamps, booleans or text"


class Unusable(Exception):
    """A column of a type that cannot play its role: what was found, what would be right, and perhaps a hint."""

    def problem(self, path: str) -> Problem:
        return Problem(path, *self.args)


@dataclass(frozen=True)
class Canonical:
    """The kind of a column, the SQL for its canonical values, and which values it must not have: SQL that finds them,
    and what is expected in their place."""

    kind: str
    sql: str
    refused: str = ""
    expected: str = ""

    def check(self, type_name: str, count: int) -> None:
        """Unusable if values that are refused are there."""
        if count:
            raise Unusable(f"type {type_name} with {count:,} values that are not", self.expected)


def canonical(con: duckdb.DuckDBPyConnection, table: str, name: str, type_name: str, letter: str) -> tuple[str, str]:
    """The kind of a column and the SQL expression for its canonical values; letter is q, s or k for its role."""
    column = canonical_form(quote(name), type_name, letter)
    if column.refused:
        column.check(type_name, one(con, f"SELECT count(*) FROM {table} WHERE {column.refused}")[0])
    return column.kind, column.sql


def canonical_form(column: str, type_name: str, letter: str) -> Canonical:
    """Return the canonical form of a column, given as SQL, by its type alone; Unusable if it has none."""
    if type_name in INTEGERS:
        return Canonical("integer", f"CAST({column} AS BIGINT)")
    if type_name in WIDE_INTEGERS:
        wide = f"{column} IS NOT NULL AND TRY_CAST({column} AS BIGINT) IS NULL"
        return Canonical("integer", f"CAST({column} AS BIGINT)", wide, "integers below 2^63")
    if type_name in ("FLOAT", "DOUBLE"):
        number = _number(column, type_name, "'nan'::DOUBLE" if letter == "k" else "NULL")
        return Canonical("number", number, f"isinf({column})" if letter != "k" else "", "finite numbers")
    if type_name.startswith("DECIMAL"):
        if letter != "q":
            return Canonical("decimal", column)
        long = f"abs({column}) >= 1e{EXACT_DIGITS - _scale(type_name)}"
        short = f"of at most {EXACT_DIGITS} digits; round it"
        return Canonical("number", f"CAST({column} AS DOUBLE) + 0.0::DOUBLE", long, short)
    if type_name == "DATE" or type_name.startswith("TIMESTAMP"):
        return _moment(column, type_name, letter)
    if type_name == "BOOLEAN":
        return Canonical("boolean", column)
    if type_name in ("VARCHAR", "UUID") or (type_name.startswith("ENUM") and type_name.endswith(")")):
        return Canonical("text", f"CAST({column} AS VARCHAR)")
    raise Unusable(f"type {_plain_type(type_name)}", USABLE)


def as_read(con: duckdb.DuckDBPyConnection, table: str, name: str, type_name: str) -> str:
    """Return the SQL for a published label such that two labels are equal if a reader sees the same. DuckDB takes 0.0
    and -0.0 for equal, and 1 month and 30 days: those are compared as text."""
    column = quote(name)
    as_text = f"CAST({column} AS VARCHAR)"
    if type_name in ("FLOAT", "DOUBLE"):
        negative = one(con, f"SELECT count(*) FROM {table} WHERE {column} = 0 AND {as_text} = '-0.0'")[0]
        return as_text if negative else column
    return column if type_name in EQUAL_AS_READ or type_name.startswith(("DECIMAL", "TIMESTAMP", "ENUM")) else as_text


def narrow(name: str, type_name: str, sql: str) -> str:
    """The SQL for the values of a column, which is usually the canonical one, in 32 bits if the table has them so.

    >>> narrow("age", "SMALLINT", 'CAST("age" AS BIGINT)'), narrow("age", "DOUBLE", '"age"')
    ('CAST("age" AS INTEGER)', '"age"')
    """
    as_it_is = type_name in SMALL_INTEGERS and sql == f"CAST({quote(name)} AS BIGINT)"
    return f"CAST({quote(name)} AS INTEGER)" if as_it_is else sql


def _require_none(con: duckdb.DuckDBPyConnection, table: str, type_name: str, condition: str, expected: str) -> None:
    count = one(con, f"SELECT count(*) FROM {table} WHERE {condition}")[0]
    if count:
        raise Unusable(f"type {type_name} with {count:,} values that are not", expected)


def _plain_type(type_name: str) -> str:
    """The name of a type without what it is made of: the members of an ENUM are data.

    >>> _plain_type("STRUCT(a INTEGER)"), _plain_type("ENUM('a', 'b')[]"), _plain_type('"NULL"')
    ('STRUCT', 'ENUM[]', 'NULL')
    """
    return re.sub(r"\(.*\)", "", type_name, flags=re.DOTALL).strip('"')


def _scale(decimal_type: str) -> int:
    return int(decimal_type.rstrip(")").split(",")[1])


def _number(column: str, type_name: str, missing: str) -> str:
    """A double without NaN and -0.0. A FLOAT is taken for the shortest decimal that it stands for, as text is."""
    number = f"CAST(CAST({column} AS VARCHAR) AS DOUBLE)" if type_name == "FLOAT" else column
    return f"CASE WHEN isnan({column}) THEN {missing} ELSE {number} + 0.0::DOUBLE END"


def _moment(column: str, type_name: str, letter: str) -> Canonical:
    """Days, or microseconds in UTC; a kept moment keeps its zone."""
    zoned = type_name in ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS")
    kind = "DATE" if type_name == "DATE" else "TIMESTAMPTZ" if zoned else "TIMESTAMP"
    moment = f"CAST({column} AS {kind})"
    strange = f"NOT isfinite({moment}) OR year({moment}) NOT BETWEEN 1 AND 9999"
    expected = "of the years 1 to 9999"
    if type_name.endswith("_NS"):
        strange, expected = f"epoch_ns({column}) % 1000 <> 0 OR {strange}", f"whole microseconds {expected}"
    if type_name == "DATE":
        return Canonical("date", column, strange, expected)
    sql = f"timezone('UTC', {moment})" if zoned and letter != "k" else moment
    return Canonical("timestamp", sql, strange, expected)


def published(
    con: duckdb.DuckDBPyConnection, name: str, spec: Sensitive, kind: str, sql: str, index: int
) -> tuple[str, str]:
    """A sensitive column as it is, rounded, or as the first level of a builder."""
    if spec.round is not None:
        return _rounded(con, spec.round, kind, sql)
    if spec.builder is None:
        return kind, sql
    with translated("reading the source"):
        distinct = f"SELECT DISTINCT {sql} AS v FROM raw_rows WHERE {sql} IS NOT NULL LIMIT {DISTINCT_FOR_BUILDER + 1}"
        values = con.sql(f"SELECT v FROM ({distinct}) ORDER BY v").to_arrow_table()["v"]
    if len(values) > DISTINCT_FOR_BUILDER:
        raise Unusable("too many distinct values for a builder", f"at most {DISTINCT_FOR_BUILDER:,}; round it")
    paths = hierarchy.paths(spec.builder, values.to_pylist(), name, role="sensitive")
    labels = pa.table({"v": values, "label": pa.array([path[0] for path in paths], pa.string())})
    with translated("reading the source"):
        con.register("labels_made", labels)
        con.execute(f"CREATE TABLE labels_{index} AS SELECT * FROM labels_made").fetchall()
        con.unregister("labels_made")
    return "text", f"(SELECT label FROM labels_{index} WHERE v = {sql})"


def _rounded(con: duckdb.DuckDBPyConnection, width: Decimal, kind: str, sql: str) -> tuple[str, str]:
    """The nearest multiple of the width, halves away from zero."""
    if kind not in ("integer", "number", "decimal"):
        hint = why_text(con, "raw_rows", sql) if kind == "text" else ""
        raise Unusable(f"type {kind} with `round`", "a column of numbers", hint)
    places = max(-int(width.normalize().as_tuple().exponent), 0)
    if places > PLACES:
        raise Unusable(f"`round` to {places} places", f"at most {PLACES} places")
    large = f"abs(CAST({sql} AS DOUBLE)) >= {LARGEST * min(1.0, float(width))!r}"
    _require_none(con, "raw_rows", kind, large, f"small enough to round: below {LARGEST:g} multiples")
    count = _nearest_double(width, sql) if kind == "number" else _nearest_exact(con, width, places, kind, sql)
    multiple = f"CAST({count} AS BIGINT)"
    if places == 0:
        return "integer", f"{multiple} * {int(width)}"
    return "decimal", f"{multiple} * CAST('{width:f}' AS DECIMAL(18, {places}))"


def _nearest_double(width: Decimal, sql: str) -> str:
    """SQL: how many widths. What misses a half by no more than the error of the division is a half: 0.35 / 0.1."""
    share = f"({sql} / {float(width)!r}::DOUBLE)"
    return f"sign({share}) * floor(abs({share}) * (1 + 4e-16::DOUBLE) + 0.5::DOUBLE)"


def _nearest_exact(con: duckdb.DuckDBPyConnection, width: Decimal, places: int, kind: str, sql: str) -> str:
    """SQL: how many widths, in whole numbers of the smaller unit of the two."""
    scale, units = 0, f"CAST({sql} AS HUGEINT)"
    if kind == "decimal":
        with translated("reading the source"):
            scale = _scale(str(con.sql(f"SELECT {sql} FROM raw_rows LIMIT 0").types[0]))
        if scale > PLACES:
            raise Unusable(f"decimals with {scale} places with `round`", f"at most {PLACES} places")
        units = f"CAST(replace(CAST({sql} AS VARCHAR), '.', '') AS HUGEINT)"
    most = max(scale, places)
    value, step = f"({units} * {10 ** (most - scale)}::HUGEINT)", int(width.scaleb(most))
    return f"sign({value}) * ((2 * abs({value}) + {step}::HUGEINT) // {2 * step}::HUGEINT)"
