"""What a table looks like before anybody has said what its columns are for: types, distinct values, missing ones, and
how many rows each column and combination of columns tells apart. It stands before the way of the data (config -> source
-> cube -> search -> release -> verify -> report): `anon init` makes a config of it. DuckDB counts it all over the
same registered table that a run reads."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb

from anon.core.database import literal, quote
from anon.core.progress import Tell
from anon.cube.domain import CODES
from anon.errors import ConfigError
from anon.source import Unusable, canonical, describe
from anon.source.checks import like_values
from anon.source.databases import Query
from anon.source.tables import ANY_DATE, count_rows, one, register

TABLE = "raw_rows"
NUMBERS = ("integer", "number", "decimal")
MOST_COLUMNS = 12  # that are combined; the most telling ones
FEWER_COLUMNS, LARGE = 6, 5_000_000  # of a table with more rows than this
ALONE = 0.5  # of the rows: a column that tells that many apart does so in every combination
ENOUGH = 0.95  # of the rows: a set of columns need not grow further
LONGEST = 6  # columns of a set
PAIRS = 10  # that are told of
TAIL = 0.01  # of the rows on either side that do not count for the width of a column


@dataclass(frozen=True)
class Shape:
    """What the values of a column are written like, as far as a builder has to know."""

    longest: int = 0  # characters
    shortest: int = 0
    digits: int = 0  # distinct values that are digits and nothing else
    zeros: int = 0  # of these, such with a leading zero
    dates: int = 0  # distinct values of text that look like dates
    whole: bool = False  # all numbers are whole
    low: float | None = None  # where the middle of the numbers begins and ends
    high: float | None = None
    least: Any = None  # the first and the last value: data, so only told if asked for
    most: Any = None


@dataclass(frozen=True)
class ColumnProfile:
    """One column: `distinct` and `alone` (rows whose value no other row has) are without nulls."""

    name: str
    type: str
    kind: str | None  # None: no role is possible
    nulls: int = 0
    distinct: int = 0
    alone: int = 0
    shape: Shape = field(default_factory=Shape)
    unusable: str = ""

    def to_dict(self, show_values: bool) -> dict[str, Any]:
        ends = {"least": str(self.shape.least), "most": str(self.shape.most)} if self.shape.least is not None else {}
        return {
            "name": self.name,
            "type": self.type,
            "kind": self.kind,
            "nulls": self.nulls,
            "distinct": self.distinct,
            "rows_alone": self.alone,
            **({"unusable": self.unusable} if self.unusable else {}),
            **(ends if show_values else {}),
        }


@dataclass(frozen=True)
class Combination:
    """Columns, and how many rows are the only ones with their values of them."""

    columns: tuple[str, ...]
    alone: int

    def to_dict(self, rows: int) -> dict[str, Any]:
        return {"columns": list(self.columns), "rows_alone": self.alone, "share": self.alone / rows}


@dataclass
class Profile:
    """A table: its columns, the pairs of them that tell most rows apart, and a set that grew as long as that paid."""

    rows: int
    columns: list[ColumnProfile]
    combined: list[str] = field(default_factory=list)  # the columns that were combined
    pairs: list[Combination] = field(default_factory=list)
    growing: list[Combination] = field(default_factory=list)

    def column(self, name: str) -> ColumnProfile:
        return next(column for column in self.columns if column.name == name)

    def to_dict(self, show_values: bool = False) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "columns": [column.to_dict(show_values) for column in self.columns],
            "combined": self.combined,
            "pairs": [pair.to_dict(self.rows) for pair in self.pairs],
            "growing": [each.to_dict(self.rows) for each in self.growing],
        }


def profile(
    con: duckdb.DuckDBPyConnection,
    table: str | Query,
    spill: Path,
    tell: Tell = lambda **facts: None,
    show_values: bool = False,
) -> Profile:
    """Profiles a file, a folder, a glob or a query: its columns, then what an adversary who knows several sees. Names
    of columns that look like data are refused, unless values may be shown."""
    if isinstance(table, str):
        names = register(con, TABLE, table, spill)
    else:
        table.register(con, TABLE, None, spill)
        names = list(describe(con, TABLE))
    if not show_values and like_values(con, TABLE, names):
        hint = "add a line with names; or say --show-values, if these are names"
        raise ConfigError.at("TABLE", "a first row in place of names of columns", "names of columns", hint)
    types = describe(con, TABLE)
    rows = count_rows(con, TABLE)
    columns = []
    for number, (name, seen) in enumerate(zip(names, types), start=1):
        twins = sum(other.lower() == name.lower() for other in names)
        columns.append(_column(con, name, types[seen], rows) if twins == 1 else _twin(name, types[seen]))
        tell(columns=number)
    return Profile(rows, columns)


def _twin(name: str, type_name: str) -> ColumnProfile:
    return ColumnProfile(name, type_name, None, unusable="its name differs from another one only in case")


def _column(con: duckdb.DuckDBPyConnection, name: str, type_name: str, rows: int) -> ColumnProfile:
    try:
        kind, sql = canonical(con, TABLE, name, type_name, "q")
    except Unusable as error:
        return ColumnProfile(name, type_name.split("(", maxsplit=1)[0].strip('"'), None, unusable=str(error.args[0]))
    counted = f"(SELECT {sql} AS v, count(*) AS n FROM {TABLE} GROUP BY v)"
    wanted = _measures(kind)
    listed = ", ".join(["count(v)", "coalesce(sum(n) FILTER (v IS NULL), 0)", "count_if(n = 1 AND v IS NOT NULL)",
                        *wanted.values()])  # fmt: skip
    distinct, nulls, alone, *measured = one(con, f"SELECT {listed} FROM {counted}")
    found = dict(zip(wanted, measured))
    if kind in NUMBERS and distinct:
        found["low"], found["high"] = _middle(con, counted, rows - nulls)
    shape = Shape(**{key: value for key, value in found.items() if value is not None})
    return ColumnProfile(name, type_name.split("(", maxsplit=1)[0], kind, int(nulls), int(distinct), int(alone), shape)


def _measures(kind: str) -> dict[str, str]:
    """SQL over the distinct values v for what the shape of a column of this kind has."""
    text = "CAST(v AS VARCHAR)"
    ends = {"least": "min(v)", "most": "max(v)"}
    if kind in NUMBERS:
        whole = "coalesce(bool_and(v = floor(v)), false)"
        digits = f"regexp_replace({text}, '\\.0$', '')"
        return ends | {"whole": whole, "shortest": f"min(length({digits}))", "longest": f"max(length({digits}))",
                       "digits": "count_if(v >= 0)"}  # fmt: skip
    if kind != "text":
        return ends
    return ends | {
        "shortest": "min(length(v))",
        "longest": "max(length(v))",
        "digits": "count_if(regexp_full_match(v, '[0-9]+'))",
        "zeros": "count_if(regexp_full_match(v, '0[0-9]+'))",
        "dates": f"count_if(regexp_full_match(v, {literal(ANY_DATE)}))",
    }


def _middle(con: duckdb.DuckDBPyConnection, counted: str, rows: int) -> tuple[float, float]:
    """The numbers between which the rows lie but for a tail on either side."""
    sums = f"SELECT v, n, sum(n) OVER (ORDER BY v) AS upto FROM {counted} WHERE v IS NOT NULL"
    tail = int(TAIL * rows)
    low, high = one(
        con,
        f"SELECT min(v) FILTER (upto > {tail}), max(v) FILTER (upto - n < {rows - tail}) FROM ({sums})",
    )
    return float(low), float(high)


def combine(
    con: duckdb.DuckDBPyConnection, found: Profile, known: Collection[str], tell: Tell = lambda **facts: None
) -> None:
    """Adds the combinations of columns that tell most rows apart, of those that an adversary may know."""
    telling = [c for c in found.columns if c.kind is not None and c.distinct > 1 and c.name in known]
    telling = [c for c in telling if c.alone <= ALONE * found.rows]
    most = MOST_COLUMNS if found.rows <= LARGE else FEWER_COLUMNS
    chosen = {c.name for c in sorted(telling, key=lambda c: -c.distinct)[:most]}
    found.combined = [c.name for c in telling if c.name in chosen]
    counts: dict[frozenset[str], int] = {}

    def alone(names: tuple[str, ...]) -> int:
        key = frozenset(names)
        if key not in counts:
            listed = ", ".join(quote(name) for name in names)
            counted = f"SELECT count(*) AS n FROM {TABLE} GROUP BY {listed}"
            counts[key] = int(one(con, f"SELECT count_if(n = 1) FROM ({counted})")[0])
            tell(combinations=len(counts))
        return counts[key]

    pairs = [Combination(pair, alone(pair)) for pair in combinations(found.combined, 2)]
    found.pairs = sorted(pairs, key=lambda pair: -pair.alone)[:PAIRS]
    found.growing = _grown(found, alone)


def _grown(found: Profile, alone: Callable[[tuple[str, ...]], int]) -> list[Combination]:
    """From the pair that tells most apart, the column that adds most, again and again."""
    if not found.pairs:
        return []
    grown = [found.pairs[0]]
    while grown[-1].alone < ENOUGH * found.rows and len(grown[-1].columns) < LONGEST:
        rest = [name for name in found.combined if name not in grown[-1].columns]
        wider = [Combination((*grown[-1].columns, name), alone((*grown[-1].columns, name))) for name in rest]
        best = max(wider, key=lambda each: each.alone, default=grown[-1])
        if best.alone <= grown[-1].alone:
            break
        grown.append(best)
    return grown


def few_enough(column: ColumnProfile) -> bool:
    """Whether a builder may label every value of a column."""
    return column.distinct + (column.nulls > 0) <= CODES
