"""Give every column one of the few types that the engine works with: its kind, the SQL for its canonical values and
what its rows must meet; for sensitive columns the SQL for the values that are published, rounded or labelled by a
builder."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

import pyarrow as pa

from anon import hierarchy
from anon.config import Aggregation, Builder
from anon.core.database import Database, quote
from anon.errors import Problem
from anon.source.requirements import COUNT, Aggregate, DuckDBRows, Requirement, RowAnswers, Rows

INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
SMALL_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT"}  # that 32 bits with a sign hold
WIDE_INTEGERS = {"UBIGINT", "HUGEINT", "UHUGEINT"}
EQUAL_AS_READ = INTEGERS | WIDE_INTEGERS | {"VARCHAR", "DATE", "TIME", "BOOLEAN", "UUID", "BLOB"}
EXACT_DIGITS = 15  # decimals of at most this many digits keep their text through a double
PLACES = 18  # decimal places that rounding is exact for
MEAN_PLACES = {"integer": 2, "decimal": 2, "number": 6}  # of means, beyond those that the column has
LARGEST = 4e18  # numbers, and multiples of `round`, stay well inside 64 bits
DISTINCT_FOR_BUILDER = 1_000_000  # values of a sensitive column that a builder may have to label
USABLE = "integers, numbers, decimals, dates, timestamps, booleans or text"


class Unusable(Exception):
    """A column of a type that cannot play its role: what was found, what would be right, and perhaps a hint."""

    def problem(self, path: str) -> Problem:
        return Problem(path, *self.args)


class UnusableText(Unusable):
    """A column of text where numbers are needed; `sql` is the SQL of its values, which may show why it is text."""

    def __init__(self, found: str, expected: str, sql: str) -> None:
        super().__init__(found, expected)
        self.sql = sql

    def explained(self, hint: str) -> Unusable:
        return Unusable(*self.args, hint)


@dataclass(frozen=True)
class TypedColumn:
    """A column in a type that the engine works with: its kind, the SQL for its values, SQL that holds for the rows
    without a value (and fails for none), and what the rows must meet so that the first can be used."""

    kind: str
    sql: str
    missing: str
    requirements: tuple[Requirement, ...] = ()


@dataclass(frozen=True)
class _Field:
    """A column to be typed: its field in the config, its SQL, its type, and q, s or k for its role."""

    path: str
    column: str
    type_name: str
    letter: str

    def typed(self, kind: str, sql: str, refused: str = "", expected: str = "", missing: str = "") -> TypedColumn:
        """Return the typed column; `refused` finds the values that it must not have."""
        required = (requirement(self.path, self.type_name, refused, expected),) if refused else ()
        return TypedColumn(kind, sql, missing or f"{self.column} IS NULL", required)


def requirement(path: str, type_name: str, refused: str, expected: str) -> Requirement:
    """Return the requirement that a column has no values that SQL finds."""
    message = Problem(path, f"type {type_name} with {COUNT} values that are not", expected)
    return Requirement(f"{path}: {expected}", refused, message)


def canonical(database: Database, table: str, name: str, type_name: str, letter: str) -> tuple[str, str]:
    """Return the kind of a column and the SQL for its canonical values, checked by itself; letter is q, s or k for its
    role. Unusable if its type or its values cannot be used."""
    column = type_column(name, quote(name), type_name, letter)
    for problem in DuckDBRows(database, table).evaluate(column.requirements).problems(column.requirements):
        raise Unusable(problem.found, problem.expected)
    return column.kind, column.sql


def type_column(path: str, column: str, type_name: str, letter: str) -> TypedColumn:
    """Return a column, given as SQL and named by its field in the config, in its canonical type; Unusable if it has
    none."""
    field = _Field(path, column, type_name, letter)
    if type_name in INTEGERS:
        return field.typed("integer", f"CAST({column} AS BIGINT)")
    if type_name in WIDE_INTEGERS:
        wide = f"{column} IS NOT NULL AND TRY_CAST({column} AS BIGINT) IS NULL"
        return field.typed("integer", f"CAST({column} AS BIGINT)", wide, "integers below 2^63")
    if type_name in ("FLOAT", "DOUBLE"):
        number = _number(column, type_name, "'nan'::DOUBLE" if letter == "k" else "NULL")
        infinite, missing = f"isinf({column})", f"({column} IS NULL OR isnan({column}))"
        return field.typed("number", number, infinite if letter != "k" else "", "finite numbers", missing)
    if type_name.startswith("DECIMAL"):
        if letter != "q":
            return field.typed("decimal", column)
        long = f"abs({column}) >= 1e{EXACT_DIGITS - _scale(type_name)}"
        short = f"of at most {EXACT_DIGITS} digits; round it"
        return field.typed("number", f"CAST({column} AS DOUBLE) + 0.0::DOUBLE", long, short)
    if type_name == "DATE" or type_name.startswith("TIMESTAMP"):
        return _moment(field)
    if type_name == "BOOLEAN":
        return field.typed("boolean", column)
    if type_name in ("VARCHAR", "UUID") or (type_name.startswith("ENUM") and type_name.endswith(")")):
        return field.typed("text", f"CAST({column} AS VARCHAR)")
    raise Unusable(f"type {_plain_type(type_name)}", USABLE)


def as_read(database: Database, table: str, name: str, type_name: str) -> str:
    """Return the SQL for a published label such that two labels are equal if a reader sees the same."""
    asked = negative_zeros(name, type_name)
    return label_sql(name, type_name, DuckDBRows(database, table).evaluate(asked))


def negative_zeros(name: str, type_name: str) -> list[Aggregate]:
    """Return what `label_sql` has to know about the values of a column: those that are written -0.0."""
    if type_name not in ("FLOAT", "DOUBLE"):
        return []
    column = quote(name)
    written = f"{column} = 0 AND CAST({column} AS VARCHAR) = '-0.0'"
    return [Aggregate.counting(f"negative zeros of {name}", written)]


def label_sql(name: str, type_name: str, answers: RowAnswers) -> str:
    """Return the SQL for a published label such that two labels are equal if a reader sees the same. DuckDB takes 0.0
    and -0.0 for equal, and 1 month and 30 days: those are compared as text."""
    column = quote(name)
    as_text = f"CAST({column} AS VARCHAR)"
    if asked := negative_zeros(name, type_name):
        return as_text if answers[asked[0].name] else column
    return column if type_name in EQUAL_AS_READ or type_name.startswith(("DECIMAL", "TIMESTAMP", "ENUM")) else as_text


def narrow(name: str, type_name: str, sql: str) -> str:
    """Return the SQL for the values of a column, usually the canonical one, in 32 bits if the table has them so.

    >>> narrow("age", "SMALLINT", 'CAST("age" AS BIGINT)'), narrow("age", "DOUBLE", '"age"')
    ('CAST("age" AS INTEGER)', '"age"')
    """
    as_it_is = type_name in SMALL_INTEGERS and sql == f"CAST({quote(name)} AS BIGINT)"
    return f"CAST({quote(name)} AS INTEGER)" if as_it_is else sql


def _plain_type(type_name: str) -> str:
    """Return the name of a type without what it is made of: the members of an ENUM are data.

    >>> _plain_type("STRUCT(a INTEGER)"), _plain_type("ENUM('a', 'b')[]"), _plain_type('"NULL"')
    ('STRUCT', 'ENUM[]', 'NULL')
    """
    return re.sub(r"\(.*\)", "", type_name, flags=re.DOTALL).strip('"')


def _scale(decimal_type: str) -> int:
    return int(decimal_type.rstrip(")").split(",")[1])


def _number(column: str, type_name: str, missing: str) -> str:
    """Return the SQL for a double without NaN and -0.0. A FLOAT is taken for the shortest decimal that it stands
    for, as text is."""
    number = f"CAST(CAST({column} AS VARCHAR) AS DOUBLE)" if type_name == "FLOAT" else column
    return f"CASE WHEN isnan({column}) THEN {missing} ELSE {number} + 0.0::DOUBLE END"


def _moment(field: _Field) -> TypedColumn:
    """Return days, or microseconds in UTC; a kept moment keeps its zone."""
    column, type_name = field.column, field.type_name
    zoned = type_name in ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS")
    kind = "DATE" if type_name == "DATE" else "TIMESTAMPTZ" if zoned else "TIMESTAMP"
    moment = f"CAST({column} AS {kind})"
    strange = f"NOT isfinite({moment}) OR year({moment}) NOT BETWEEN 1 AND 9999"
    expected = "of the years 1 to 9999"
    if type_name.endswith("_NS"):
        strange, expected = f"epoch_ns({column}) % 1000 <> 0 OR {strange}", f"whole microseconds {expected}"
    if type_name == "DATE":
        return field.typed("date", column, strange, expected)
    sql = f"timezone('UTC', {moment})" if zoned and field.letter != "k" else moment
    return field.typed("timestamp", sql, strange, expected)


def rounded(path: str, width: Decimal, column: TypedColumn, type_name: str) -> TypedColumn:
    """Return a column whose values are the nearest multiples of the width, halves away from zero."""
    kind, sql = column.kind, column.sql
    if kind == "text":
        raise UnusableText("type text with `round`", "a column of numbers", sql)
    if kind not in ("integer", "number", "decimal"):
        raise Unusable(f"type {kind} with `round`", "a column of numbers")
    places = max(-int(width.normalize().as_tuple().exponent), 0)
    if places > PLACES:
        raise Unusable(f"`round` to {places} places", f"at most {PLACES} places")
    # TRY: what the requirements before this one refuse may fail to convert
    large = f"abs(CAST(TRY({sql}) AS DOUBLE)) >= {LARGEST * min(1.0, float(width))!r}"
    small = requirement(path, kind, large, f"small enough to round: below {LARGEST:g} multiples")
    count = _nearest_double(width, sql) if kind == "number" else _nearest_exact(width, places, column, type_name)
    multiple = f"CAST({count} AS BIGINT)"
    rounds = replace(column, kind="integer", sql=f"{multiple} * {int(width)}")
    if places:
        rounds = replace(column, kind="decimal", sql=f"{multiple} * CAST('{width:f}' AS DECIMAL(18, {places}))")
    return replace(rounds, requirements=(*column.requirements, small))


def aggregated(path: str, spec: Aggregation, column: TypedColumn, type_name: str) -> TypedColumn:
    """Return a kept column of numbers rounded to multiples, or in the decimal places of the means that are published in
    place of its values."""
    if spec.round is not None:
        return rounded(path, spec.round, column, type_name)
    if column.kind not in MEAN_PLACES:
        found, expected = f"type {column.kind} with `mean`", "a column of numbers"
        raise UnusableText(found, expected, column.sql) if column.kind == "text" else Unusable(found, expected)
    own = _scale(type_name) if column.kind == "decimal" else 0
    places = min(own + MEAN_PLACES[column.kind], PLACES) if spec.places is None else spec.places
    if places < own:
        raise Unusable(f"`places` {places} for decimals with {own} places", f"at least {own}; or round the column")
    return rounded(path, Decimal(1).scaleb(-places), column, type_name)


def as_builders_take_it(path: str, builder: Builder, column: TypedColumn) -> TypedColumn:
    """Return a column with the values that its builder makes coarser: ages in place of birth dates, codes with the
    leading zeros that they have lost, all others as they are."""
    if builder.reference_day is not None:
        return _ages(path, builder.reference_day, column)
    return column if builder.code_length is None else _padded(path, builder.code_length, column)


def _ages(path: str, day: date, column: TypedColumn) -> TypedColumn:
    """Return the completed years from each date to a day. Who is born on 29 February completes a year on 1 March where
    the year has no such day."""
    if column.kind not in ("date", "timestamp"):
        hint = "in a CSV file every date is written like 2024-03-09 (ISO 8601)"
        raise Unusable(f"type {column.kind} with `age_on`", "a column of birth dates", hint)
    born = column.sql
    later = f"month({born}) * 100 + day({born}) > {day.month * 100 + day.day}"
    years = f"CAST({day.year} - year({born}) - CASE WHEN {later} THEN 1 ELSE 0 END AS BIGINT)"
    born_later = f"CAST(TRY({born}) AS DATE) > DATE '{day.isoformat()}'"
    born_before = requirement(path, column.kind, born_later, f"birth dates up to the day of `age_on`, {day}")
    return replace(column, kind="integer", sql=years, requirements=(*column.requirements, born_before))


def _padded(path: str, length: int, column: TypedColumn) -> TypedColumn:
    """Return codes of digits with zeros in front, as text of one length."""
    sql, kind = column.sql, column.kind
    if kind == "text":
        digits, wrong = sql, f"{sql} = '' OR length({sql}) > {length} OR translate({sql}, '0123456789', '') <> ''"
    elif kind in ("integer", "number", "decimal"):
        number = f"TRY({sql})"
        digits = f"CAST(CAST({sql} AS HUGEINT) AS VARCHAR)"
        wrong = f"{number} < 0 OR {number} >= {10**length} OR {number} <> floor({number})"
    else:
        raise Unusable(f"type {kind} with `pad`", "a column of codes: digits as text or whole numbers")
    fits = requirement(path, kind, wrong, f"codes of at most {length} digits, as `pad` says")
    padded = f"lpad({digits}, {length}, '0')"
    return replace(column, kind="text", sql=padded, requirements=(*column.requirements, fits))


def labels_of(name: str, builder: Builder, rows: Rows, column: TypedColumn) -> pa.Table:
    """Return the label of the first level of a builder for each value that the rows have of a sensitive column."""
    values = rows.distinct(column.sql, DISTINCT_FOR_BUILDER + 1)
    if len(values) > DISTINCT_FOR_BUILDER:
        raise Unusable("too many distinct values for a builder", f"at most {DISTINCT_FOR_BUILDER:,}; round it")
    paths = hierarchy.paths(builder, values.to_pylist(), name, role="sensitive")
    return pa.table({"v": values, "label": pa.array([path[0] for path in paths], pa.string())})


def _nearest_double(width: Decimal, sql: str) -> str:
    """Return the SQL for the number of widths. What misses a half by no more than the error of the
    division is a half: 0.35 / 0.1."""
    share = f"({sql} / {float(width)!r}::DOUBLE)"
    return f"sign({share}) * floor(abs({share}) * (1 + 4e-16::DOUBLE) + 0.5::DOUBLE)"


def _nearest_exact(width: Decimal, places: int, column: TypedColumn, type_name: str) -> str:
    """Return the SQL for the number of widths, in whole numbers of the smaller unit of the two."""
    scale, units = 0, f"CAST({column.sql} AS HUGEINT)"
    if column.kind == "decimal":
        scale = _scale(type_name)
        if scale > PLACES:
            raise Unusable(f"decimals with {scale} places with `round`", f"at most {PLACES} places")
        units = f"CAST(replace(CAST({column.sql} AS VARCHAR), '.', '') AS HUGEINT)"
    most = max(scale, places)
    value, step = f"({units} * {10 ** (most - scale)}::HUGEINT)", int(width.scaleb(most))
    return f"sign({value}) * ((2 * abs({value}) + {step}::HUGEINT) // {2 * step}::HUGEINT)"
