"""What the config says about the columns, held against the table, in the source stage (config -> source -> cube ->
search -> release -> verify -> report): presence under exactly these names, missing values by policy, one row per
individual. Problems are told with counts and names of columns, never with values."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import duckdb

from anon.config import Columns, Config
from anon.core.database import literal, quote
from anon.core.text import folded
from anon.errors import Problem, UnknownColumns
from anon.source.stacked import answers, stacked
from anon.source.tables import ANY_DATE, CSV_TYPES, Registered, one

LONGEST = 32_768  # bytes of a quasi-identifier or a sensitive value

NO_HEADER = "no column named is there; has the table a header? --show-values lists the names of its columns"
# what no column is called: a number, a date, a phone number, an address of mail
VALUE = re.compile("|".join([*CSV_TYPES.values(), ANY_DATE, r"[+(]?[0-9][0-9 ()/.-]{4,}", r"[^@\s]+@[^@\s]+[.]\w+"]))
COMPARED = 1_000_000  # identifiers that are compared with each other


def check_present(columns: Columns, types: dict[str, str], names: list[str] | None = None) -> None:
    """Every named column must be there, under exactly this name and no other spelling of it. `names` are the table's
    own, in the order of `types`: DuckDB renames the second of two that differ only in case."""
    names = list(types) if names is None else names
    times = Counter(name.lower() for name in names)
    usable = {name for name, seen in zip(names, types) if name == seen and times[name.lower()] == 1}
    wanted = list(named_columns(columns))
    # A file without a header has data where the names should be: then none of the wanted columns is among them.
    there = {folded(name) for name in names}
    problems = missing_columns(wanted, names, quotable=any(folded(name) in there for _, name in wanted))
    for path, name in wanted:
        if name in names and name not in usable:
            problems.append(Problem(path, f"column {name!r}", "a name that differs from every other by more than case"))
    if problems:
        raise UnknownColumns(problems, names)


def missing_columns(wanted: Sequence[tuple[str, str]], names: list[str], quotable: bool) -> list[Problem]:
    """Return a problem for each wanted column, given as (field, name), that is not among the names of a table.
    `quotable`: these are names, and not the first row of a file without a header."""
    problems = []
    for path, name in wanted:
        if name not in names:
            hint = (_nearest(name, names) or f"the table has {_some(names)}") if quotable else NO_HEADER
            problems.append(Problem(path, f"column {name!r}", "a column of the table", hint))
    return problems


def like_values(con: duckdb.DuckDBPyConnection, table: Registered, types: Mapping[str, str]) -> bool:
    """Return whether the names of a table look like a row of data: whether a quarter of them are numbers, dates or
    addresses, or values of their own columns."""
    pairs = list(zip(table.names, types))
    texts = [(name, seen) for name, seen in pairs if types[seen] == "VARCHAR" and not VALUE.fullmatch(name)]
    equal = [f"({table.sql[seen]} = {literal(name)})" for name, seen in texts]
    found = len([name for name in table.names if VALUE.fullmatch(name)])
    rows = int(one(con, f"SELECT count(*) FROM {table.base}")[0])
    held = answers(
        con, equal, rows, lambda part: f"SELECT nth, bool_or(v) FROM {stacked(table.base, part)} GROUP BY nth"
    )
    found += sum(answer is not None and bool(answer[0]) for _, answer in held)
    return found > 0 and 4 * found >= len(table.names)


def _nearest(name: str, names: list[str]) -> str:
    """A hint at the column that may be meant."""
    lower = [other.lower() for other in names]
    near = difflib.get_close_matches(name.lower(), lower, n=1)
    if not near:
        return ""
    meant = names[lower.index(near[0])]
    if unicodedata.normalize("NFC", meant) == unicodedata.normalize("NFC", name):
        return "one looks the same and is other Unicode, composed or decomposed letters: copy its name from the table"
    return f"did you mean {meant!r}?"


def named_columns(columns: Columns) -> Iterator[tuple[str, str]]:
    """(path in the config, column) for every column that the config names."""
    for index, name in enumerate(columns.identifiers):
        yield f"columns.identifiers[{index}]", name
    if columns.individual != "row":
        yield "columns.individual", columns.individual
    for name in columns.quasi_identifiers:
        yield f"columns.quasi_identifiers.{name}", name
    for name in columns.sensitive:
        yield f"columns.sensitive.{name}", name
    for index, name in enumerate(columns.keep):
        yield f"columns.keep[{index}]", name


def _some(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def individual_sql(columns: Columns, types: dict[str, str]) -> str | None:
    """SQL for who a row is about; None where every row is another person."""
    if columns.individual == "row":
        return None
    who = quote(columns.individual)
    floating = types[columns.individual] in ("FLOAT", "DOUBLE")
    return f"CASE WHEN isnan({who}) THEN NULL ELSE {who} END" if floating else who


def null_problems(
    con: duckdb.DuckDBPyConnection, table: str, cells: list[tuple[str, str, str]], config: Config
) -> list[Problem]:
    """Columns (role, name, SQL) with missing values that the config calls an error."""
    strict = [cell for cell in cells if getattr(config.nulls, cell[0]) == "error"]
    if not strict:
        return []
    missing = one(con, f"SELECT {', '.join(f'count_if({sql} IS NULL)' for _, _, sql in strict)} FROM {table}")
    return [
        Problem(
            f"columns.{role}.{name}",
            f"{count:,} rows without a value",
            "a value in every row",
            f"or set nulls.{role} to value or drop",
        )
        for (role, name, _), count in zip(strict, missing)
        if count
    ]


def width_problems(cells: list[tuple[str, str, int]]) -> list[Problem]:
    """Columns (role, name, rows) with values that are longer than LONGEST bytes."""
    return [
        Problem(
            f"columns.{role}.{name}",
            f"{count:,} rows with a value of more than {LONGEST:,} bytes",
            "shorter values",
            "every different value is held in memory; shorten them in the source",
        )
        for role, name, count in cells
        if count
    ]


def individual_problems(
    con: duckdb.DuckDBPyConnection,
    table: str,
    who: str,
    quasi_identifiers: list[str],
    multiplicity: str,
    keep: Sequence[str] = (),
) -> list[Problem]:
    """Rows of nobody, repeated individuals where each should have one row, and individuals whose rows disagree. Kept
    columns matter where individuals may have several rows: they are published once for each."""
    path, problems = "columns.individual", []
    unnamed, repeated = one(con, f"SELECT count_if({who} IS NULL), count({who}) - count(DISTINCT {who}) FROM {table}")
    if unnamed:
        problems.append(Problem(path, f"{unnamed:,} rows that do not say whose they are", "an individual in every row"))
    if repeated and multiplicity == "single":
        hint = "set columns.multiplicity if people have several values"
        found = f"{repeated:,} rows that repeat an individual"
        problems.append(Problem(path, found, "one row per individual", hint))
    if repeated and (count := _disagreeing(con, table, who, quasi_identifiers)):
        found = f"{count:,} individuals whose rows disagree on a quasi-identifier"
        problems.append(Problem(path, found, "the same quasi-identifiers in all rows of an individual"))
    several = repeated and multiplicity != "single" and keep
    if several and (count := _disagreeing(con, table, who, keep)):
        found = f"{count:,} individuals whose rows disagree on a kept column"
        hint = "each individual is published once; leave the column out, or make it agree"
        problems.append(Problem("columns.keep", found, "the same kept values in all rows of an individual", hint))
    return problems


def repeated_identifiers(
    con: duckdb.DuckDBPyConnection, table: str, identifiers: Mapping[str, str], rows: int
) -> dict[str, tuple[int, int]]:
    """Where every row is taken for another person: the identifiers that say otherwise, each with the rows that share
    theirs with another row, and one in how many was looked at. `identifiers` is the SQL of each by its name. One pass
    over these alone; in large tables a part of them is compared, chosen by a hash so that equal ones stay together."""
    found: dict[str, tuple[int, int]] = {}
    part = max(1, rows // COMPARED)
    for name, sql in identifiers.items():
        chosen = f"SELECT {sql} AS v FROM {table} WHERE hash({sql}) % {part} = 0"
        shared = f"SELECT count(*) AS n FROM ({chosen}) WHERE v IS NOT NULL GROUP BY v HAVING count(*) > 1"
        count = int(one(con, f"SELECT coalesce(sum(n), 0) FROM ({shared})")[0])
        found |= {name: (count, part)} if count else {}
    return found


def _disagreeing(con: duckdb.DuckDBPyConnection, table: str, who: str, columns: Sequence[str]) -> int:
    differ = " OR ".join(f"min({c}) IS DISTINCT FROM max({c}) OR count({c}) NOT IN (0, count(*))" for c in columns)
    people = f"SELECT 1 FROM {table} WHERE {who} IS NOT NULL GROUP BY {who} HAVING count(*) > 1 AND ({differ})"
    return int(one(con, f"SELECT count(*) FROM ({people})")[0])
