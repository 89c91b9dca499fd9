"""Profile the columns of a table: types, distinct values, missing values, and the number of rows that each column and
combination of columns makes unique. DuckDB counts all of it over the same registered table that a run reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

from anon.core.database import Database, literal, quote
from anon.core.progress import ProgressCallback
from anon.cube.domain import CODES
from anon.errors import ConfigError
from anon.profile.keys import PersonKeys
from anon.source import Unusable, describe
from anon.source.cells import ANY_DATE
from anon.source.checks import like_values
from anon.source.column_words import AGES, words
from anon.source.csv_detection import Detected
from anon.source.databases import Query
from anon.source.files import detected_files, register
from anon.source.many_columns import answers, stacked
from anon.source.requirements import Requirement
from anon.source.tables import Registered, count_rows, one, resolve
from anon.source.types import TypedColumn, type_column

TABLE = "raw_rows"
NUMBERS = ("integer", "number", "decimal")
MOST_COLUMNS = 12  # that are combined: those with most distinct values
FEWER_COLUMNS, LARGE = 6, 5_000_000  # the limit for a table with more rows than LARGE
TOGETHER = 100  # columns that are combined all at once, at most
ENOUGH = 0.95  # share of unique rows at which a set of columns stops growing
LONGEST = 6  # columns of a set
PAIRS = 10  # that are reported
SAMPLE = 200  # distinct values of text that are examined one by one
LONG = 200  # bytes; only the beginning of longer text is examined
TAIL = 0.01  # share of the rows at either end that are ignored for the width of a column


@dataclass(frozen=True)
class Shape:
    """How the values of a column are written, as far as a builder needs it."""

    longest: int = 0  # characters
    shortest: int = 0
    digits: int = 0  # distinct values that are digits and nothing else
    zeros: int = 0  # of these, the values with a leading zero
    dates: int = 0  # distinct values of text that look like dates
    whole: bool = False  # all numbers are whole
    low: float | None = None  # the ends of the numbers without the tails
    high: float | None = None
    least: Any = None  # the first and the last value: data, so shown only with --show-values
    most: Any = None
    sample: tuple[str, ...] = ()  # some distinct values of text, chosen by a hash: data, never shown


@dataclass(frozen=True)
class ColumnProfile:
    """The profile of one column: `distinct` and `alone` (rows whose value no other row has) are without nulls."""

    name: str
    type: str
    kind: str | None  # None: no role is possible
    nulls: int = 0
    distinct: int = 0
    alone: int = 0
    shape: Shape = field(default_factory=Shape)
    unusable: str = ""
    last_year: int | None = None  # of the dates of the table

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
    """Columns, and the number of rows that are unique by them."""

    columns: tuple[str, ...]
    alone: int

    def to_dict(self, rows: int) -> dict[str, Any]:
        return {"columns": list(self.columns), "rows_alone": self.alone, "share": self.alone / rows}


@dataclass
class Profile:
    """The profile of a table: its columns, the pairs of them that make most rows unique, and a set that was extended
    while that made more rows unique."""

    rows: int
    columns: list[ColumnProfile]
    source: Registered | None = None
    combined: list[str] = field(default_factory=list)  # the columns that were combined
    pairs: list[Combination] = field(default_factory=list)
    growing: list[Combination] = field(default_factory=list)
    together: Combination | None = None  # all columns that an adversary may know
    persons: PersonKeys = field(default_factory=PersonKeys)
    csv: Detected | None = None  # how the CSV files that it is of are written
    sheet: str | None = None  # of an Excel file
    left_out: dict[str, str] = field(default_factory=dict)  # columns of a wide table that matter less, with the reason

    @property
    def combinations(self) -> list[Combination]:
        """Return the combinations that are reported, from the pair to all columns."""
        return [*self.growing, *([self.together] if self.together else [])]

    def part(self, columns: Iterable[str]) -> str:
        """Return the SQL for some columns of the table."""
        assert self.source is not None
        return self.source.part(columns)

    def column(self, name: str) -> ColumnProfile:
        return next(column for column in self.columns if column.name == name)

    def to_dict(self, show_values: bool = False) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "columns": [column.to_dict(show_values) for column in self.columns],
            "combined": self.combined,
            "pairs": [pair.to_dict(self.rows) for pair in self.pairs],
            "growing": [each.to_dict(self.rows) for each in self.growing],
            "together": self.together.to_dict(self.rows) if self.together else None,
            "person_keys": self.persons.names,
            **({"csv": self.csv.to_dict()} if self.csv else {}),
        }


def profile(
    database: Database,
    table: Any,
    spill: Path,
    on_progress: ProgressCallback = lambda **facts: None,
    show_values: bool = False,
    sheet: str | None = None,
) -> Profile:
    """Profile a file, a folder, a glob, a query or a frame: return its columns, counted in batches of one pass each.
    Column names that look like data are refused, unless values may be shown."""
    csv = None
    if isinstance(table, str):
        source, csv = detected_files(database, TABLE, resolve(table), spill, show_values, sheet)
    elif isinstance(table, Query):
        table.register(database, TABLE, None, spill)
        source = Registered.from_view(database, TABLE)
    else:
        register(database, TABLE, table, spill)
        source = Registered.from_view(database, TABLE)
    types = describe(database, TABLE)
    if not show_values and like_values(database, source, types):
        hint = "add a line with names; or say --show-values, if these are names"
        raise ConfigError.at("TABLE", "a first row in place of column names", "column names", hint)
    rows = count_rows(database, source.base)
    columns = _Profiling(database, source, rows, on_progress).columns(types)
    return Profile(rows, _with_last_year(columns), source, csv=csv, sheet=sheet)


def _with_last_year(columns: list[ColumnProfile]) -> list[ColumnProfile]:
    """Return the columns with the last year of all dates of the table but those of birth, which says when it was made;
    without years that are yet to come."""
    dates = [c for c in columns if c.kind in ("date", "timestamp") and not words(c.name) & AGES]
    years = [c.shape.most.year for c in dates if c.shape.most is not None]
    last = max((year for year in years if year <= datetime.now(UTC).year), default=None)
    return [replace(column, last_year=last) for column in columns]


class _Profiling:
    """Counts the columns of a table, those of one kind together."""

    def __init__(self, database: Database, source: Registered, rows: int, on_progress: ProgressCallback) -> None:
        self.database, self.source, self.rows, self.on_progress = database, source, rows, on_progress
        self.done: dict[str, ColumnProfile] = {}

    def columns(self, types: dict[str, str]) -> list[ColumnProfile]:
        """Return a profile of every column, in the order of the table."""
        times = Counter(name.lower() for name in self.source.names)
        forms: dict[str, TypedColumn] = {}
        for name, seen in zip(self.source.names, types):
            if times[name.lower()] > 1:
                self.done[name] = _unusable(name, types[seen], "its name differs from another one only in case")
                continue
            try:
                forms[name] = type_column(name, self.source.sql[seen], types[seen], "q")
            except Unusable as error:
                self.done[name] = _unusable(name, types[seen], str(error.args[0]))
        self._refuse(forms, types)
        usable = {name: form for name, form in forms.items() if name not in self.done}
        for kind in dict.fromkeys(form.kind for form in usable.values()):
            self._count(kind, [name for name, form in usable.items() if form.kind == kind], usable, types)
        return [self.done[name] for name in self.source.names]

    def _refuse(self, forms: dict[str, TypedColumn], types: dict[str, str]) -> None:
        """Mark columns with values that cannot be used."""
        asked = [(name, requirement) for name, form in forms.items() for requirement in form.requirements]

        def query(part: Sequence[tuple[str, Requirement]]) -> str:
            values = stacked(self.source.base, [f"({requirement.sql})" for _, requirement in part])
            return f"SELECT nth, count_if(v) FROM {values} GROUP BY nth"

        for (name, requirement), answer in answers(self.database, asked, self.rows, query):
            if answer is None:  # the memory is too small for its values
                self.done[name] = _too_large(name, types[name])
            elif answer[0]:
                self.done[name] = _unusable(name, types[name], requirement.problem(answer[0]).found)

    def _count(self, kind: str, names: list[str], forms: dict[str, TypedColumn], types: dict[str, str]) -> None:
        """Count the values of the columns of one kind. One that is too large for the memory cannot be used."""
        wanted = _measures(kind)
        found = answers(
            self.database, names, self.rows, lambda part: self._query(kind, [forms[name].sql for name in part])
        )
        for name, answer in found:
            if answer is None:
                self.done[name] = _too_large(name, types[name])
            else:
                distinct, nulls, alone, *measured = answer
                type_name, shape = types[name].split("(", maxsplit=1)[0], _shape(dict(zip(wanted, measured)))
                self.done[name] = ColumnProfile(name, type_name, kind, int(nulls), int(distinct), int(alone), shape)
            self.on_progress(columns=len(self.done))

    def _query(self, kind: str, columns: list[str]) -> str:
        """Return SQL that counts some columns of one kind."""
        if kind == "text":
            columns = [_shortened(sql) for sql in columns]
        counted = f"(SELECT nth, v, count(*) AS n FROM {stacked(self.source.base, columns)} GROUP BY nth, v)"
        if kind in NUMBERS:
            window = "OVER (PARTITION BY nth ORDER BY v NULLS LAST)"
            valued = "sum(n) FILTER (v IS NOT NULL)"
            counted = f"(SELECT *, {valued} {window} AS upto, {valued} OVER (PARTITION BY nth) AS total FROM {counted})"
        listed = ", ".join(["count(v)", "coalesce(sum(n) FILTER (v IS NULL), 0)", "count_if(n = 1 AND v IS NOT NULL)",
                            *_measures(kind).values()])  # fmt: skip
        return f"SELECT nth, {listed} FROM {counted} GROUP BY nth"


def _unusable(name: str, type_name: str, why: str) -> ColumnProfile:
    return ColumnProfile(name, type_name.split("(", maxsplit=1)[0].strip('"'), None, unusable=why)


def _too_large(name: str, type_name: str) -> ColumnProfile:
    return _unusable(name, type_name, "its values are too large for the memory")


def _shape(found: dict[str, Any]) -> Shape:
    for end in ("low", "high"):
        found |= {end: float(found[end])} if found.get(end) is not None else {}
    found |= {"sample": tuple(found["sample"])} if found.get("sample") else {}
    return Shape(**{key: value for key, value in found.items() if value is not None})


def _shortened(text: str) -> str:
    """Return SQL for text with long values as their beginning and a digest: huge ones would not fit into memory."""
    return f"CASE WHEN strlen({text}) > {LONG} THEN left({text}, {LONG // 2}) || md5({text}) ELSE {text} END"


def _measures(kind: str) -> dict[str, str]:
    """Return SQL over the distinct values v for each field of the shape of a column of this kind."""
    text = "CAST(v AS VARCHAR)"
    ends = {"least": "min(v)", "most": "max(v)"}
    if kind in NUMBERS:
        whole = "coalesce(bool_and(v = floor(v)), false)"
        digits = f"regexp_replace({text}, '\\.0$', '')"
        tail = f"floor({TAIL} * total)"
        return ends | {"whole": whole, "shortest": f"min(length({digits}))", "longest": f"max(length({digits}))",
                       "digits": "count_if(v >= 0)",
                       "low": f"min(v) FILTER (upto > {tail})",
                       "high": f"max(v) FILTER (upto - n < total - {tail})"}  # fmt: skip
    if kind != "text":
        return ends
    return ends | {
        "shortest": "min(length(v))",
        "longest": "max(length(v))",
        "digits": "count_if(regexp_full_match(v, '[0-9]+'))",
        "zeros": "count_if(regexp_full_match(v, '0[0-9]+'))",
        "dates": f"count_if(regexp_full_match(v, {literal(ANY_DATE)}))",
        "sample": f"arg_min(v, hash(v), {SAMPLE})",
    }


def combine(
    database: Database,
    found: Profile,
    known: Collection[str],
    on_progress: ProgressCallback = lambda **facts: None,
) -> None:
    """Add the combinations of columns that make most rows unique, of those that an adversary may know, and all of these
    together."""
    usable = [c for c in found.columns if c.kind is not None and c.distinct > 1 and c.name in known]
    most = MOST_COLUMNS if found.rows <= LARGE else FEWER_COLUMNS
    chosen = {c.name for c in sorted(usable, key=lambda c: -c.distinct)[:most]}
    found.combined = [c.name for c in usable if c.name in chosen]
    counts: dict[frozenset[str], int] = {}

    def alone(names: tuple[str, ...]) -> int:
        key = frozenset(names)
        if key not in counts:
            listed = ", ".join(quote(name) for name in names)
            counted = f"SELECT count(*) AS n FROM {found.part(names)} GROUP BY {listed}"
            counts[key] = int(one(database, f"SELECT count_if(n = 1) FROM ({counted})")[0])
            on_progress(combinations=len(counts))
        return counts[key]

    pairs = [Combination(pair, alone(pair)) for pair in combinations(found.combined, 2)]
    found.pairs = sorted(pairs, key=lambda pair: -pair.alone)[:PAIRS]
    found.growing = _grown(found, alone)
    every = tuple(c.name for c in usable)
    if found.growing and len(found.growing[-1].columns) < len(every) <= TOGETHER:
        found.together = Combination(every, alone(every))


def _grown(found: Profile, alone: Callable[[tuple[str, ...]], int]) -> list[Combination]:
    """Return the pair that makes most rows unique, and then repeatedly the set with the column that adds most."""
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
    """Return whether a builder may label every value of a column."""
    return column.distinct + (column.nulls > 0) <= CODES
