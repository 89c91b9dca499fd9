"""Check a table against the config: presence of the columns under exactly these names, missing values by policy, one
row per individual. Problems name columns and counts, never values."""

from __future__ import annotations

import difflib
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from anon.config import Columns, Nulls
from anon.core.database import Database, literal, quote
from anon.core.phrases import counted
from anon.core.text import folded
from anon.errors import Problem, UnknownColumns
from anon.source.cells import like_value
from anon.source.left_out import Reasons
from anon.source.many_columns import answers, stacked
from anon.source.requirements import COUNTED_ROWS, Aggregate, Requirement, RowAnswers, SqlTable
from anon.source.tables import Registered, one

LONGEST = 32_768  # bytes of a quasi-identifier or a sensitive value

NO_HEADER = (
    "no column named is there; has the table a header? (csv: {header: false} if not) "
    "--show-values lists the names of its columns"
)
PERSON = "columns.individual"
NAMED = 8  # columns that a message names


def check_present(columns: Columns, types: dict[str, str], names: list[str] | None = None) -> list[str]:
    """Refuse a table without one of the named columns, under exactly this name and no other spelling of it. `names` are
    the table's own, in the order of `types`: DuckDB renames the second of two that differ only in case. Return the
    columns that the config does not name."""
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
    return [name for name in names if name not in {own for _, own in wanted}]


def missing_columns(wanted: Sequence[tuple[str, str]], names: list[str], quotable: bool) -> list[Problem]:
    """Return a problem for each wanted column, given as (field, name), that is not among the names of a table.
    `quotable`: these are names, and not the first row of a file without a header."""
    problems = []
    for path, name in wanted:
        if name not in names:
            hint = (_nearest(name, names) or f"the table has {_some(names)}") if quotable else NO_HEADER
            problems.append(Problem(path, f"column {name!r}", "a column of the table", hint))
    return problems


def like_values(database: Database, table: Registered, types: Mapping[str, str]) -> bool:
    """Return whether the names of a table look like a row of data: whether a quarter of them are numbers, dates or
    addresses, or values of their own columns."""
    pairs = list(zip(table.names, types))
    texts = [(name, seen) for name, seen in pairs if types[seen] == "VARCHAR" and not like_value(name)]
    equal = [f"({table.sql[seen]} = {literal(name)})" for name, seen in texts]
    found = len([name for name in table.names if like_value(name)])
    rows = int(one(database, f"SELECT count(*) FROM {table.base}")[0])
    held = answers(
        database, equal, rows, lambda part: f"SELECT nth, bool_or(v) FROM {stacked(table.base, part)} GROUP BY nth"
    )
    found += sum(answer is not None and bool(answer[0]) for _, answer in held)
    return found > 0 and 4 * found >= len(table.names)


def _nearest(name: str, names: list[str]) -> str:
    """Return a hint at the column that may be meant."""
    lower = [other.lower() for other in names]
    near = difflib.get_close_matches(name.lower(), lower, n=1)
    if not near:
        return ""
    meant = names[lower.index(near[0])]
    if unicodedata.normalize("NFC", meant) == unicodedata.normalize("NFC", name):
        return "one looks the same and is other Unicode, composed or decomposed letters: copy its name from the table"
    return f"did you mean {meant!r}?"


def named_columns(columns: Columns) -> Iterator[tuple[str, str]]:
    """Yield (path in the config, column) for every column that the config names."""
    for index, name in enumerate(columns.identifiers):
        yield f"columns.identifiers[{index}]", name
    if columns.individual != "row":
        yield "columns.individual", columns.individual
    if columns.rows.by is not None:
        yield "columns.rows.by", columns.rows.by
    for name in columns.quasi_identifiers:
        yield f"columns.quasi_identifiers.{name}", name
    for name in columns.sensitive:
        yield f"columns.sensitive.{name}", name
    for index, name in enumerate(columns.keep):
        yield f"columns.keep[{index}]", name


def _some(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def individual_sql(columns: Columns, types: dict[str, str]) -> str | None:
    """Return the SQL for whom a row is about; None where every row is another person."""
    if columns.individual == "row":
        return None
    who = quote(columns.individual)
    floating = types[columns.individual] in ("FLOAT", "DOUBLE")
    return f"CASE WHEN isnan({who}) THEN NULL ELSE {who} END" if floating else who


def any_of(conditions: Sequence[str]) -> str:
    """Return SQL that holds if one of the conditions does.

    >>> any_of(["a IS NULL", "b IS NULL"]), any_of([])
    ('(a IS NULL OR b IS NULL)', 'false')
    """
    return f"({' OR '.join(conditions)})" if conditions else "false"


@dataclass(frozen=True)
class Cell:
    """A published column of a table: its role, its name, and SQL that holds for the rows without a value."""

    role: str
    name: str
    missing: str


class NullPolicy:
    """What the config says about missing values, as questions about the rows of a table."""

    def __init__(self, nulls: Nulls, cells: Sequence[Cell]) -> None:
        policies = {"quasi_identifiers": nulls.quasi_identifiers, "sensitive": nulls.sensitive}
        dropping = {
            role: [c.missing for c in cells if c.role == role and policies[role] == "drop"] for role in policies
        }
        self.no_quasi_identifier, self.no_sensitive = map(any_of, dropping.values())
        self.drops = any(dropping.values())
        self._strict = [cell for cell in cells if policies[cell.role] == "error"]

    def of_kept(self, condition: str) -> str:
        """Return SQL that holds for the rows that meet a condition and are not dropped."""
        return f"{condition} AND NOT ({self.no_quasi_identifier} OR {self.no_sensitive})" if self.drops else condition

    @property
    def requirements(self) -> list[Requirement]:
        """Values in every row of the columns where the config calls a missing one an error."""
        return [
            Requirement(
                f"nulls of columns.{cell.role}.{cell.name}",
                self.of_kept(cell.missing),
                Problem(
                    f"columns.{cell.role}.{cell.name}",
                    f"{COUNTED_ROWS} without a value",
                    "a value in every row",
                    f"or set nulls.{cell.role} to value or drop",
                ),
            )
            for cell in self._strict
        ]

    @property
    def aggregates(self) -> list[Aggregate]:
        """The rows that are dropped, by the reason."""
        only_sensitive = f"{self.no_sensitive} AND NOT {self.no_quasi_identifier}"
        return [
            Aggregate.counting("rows without a quasi-identifier", self.no_quasi_identifier),
            Aggregate.counting("rows without a sensitive value", only_sensitive),
        ]

    def dropped(self, answers: RowAnswers) -> Reasons:
        """Return the number of rows that are dropped, by the reason."""
        return Reasons(*(int(answers[each.name]) for each in self.aggregates))


def named_in_every_row(who: str, policy: NullPolicy) -> Requirement:
    """Return the requirement that every row that is not dropped says whom it is about."""
    message = Problem(PERSON, f"{COUNTED_ROWS} without an individual", "an individual in every row")
    return Requirement("rows of nobody", policy.of_kept(f"({who}) IS NULL"), message)


def width_problems(cells: list[tuple[str, str, int]]) -> list[Problem]:
    """Columns (role, name, rows) with values that are longer than LONGEST bytes."""
    return [
        Problem(
            f"columns.{role}.{name}",
            f"{counted(count, 'row')} with a value of more than {LONGEST:,} bytes",
            "shorter values",
            "every different value is held in memory; shorten them in the source",
        )
        for role, name, count in cells
        if count
    ]


@dataclass(frozen=True)
class People:
    """The rows of individuals beyond the first of each, the individuals with several rows, and those who are spelled
    like another one."""

    repeated: int
    several: int
    alike: int


def people_of(table: SqlTable, who: str, text: bool = False) -> People:
    """Count the rows of individuals. `text`: whether they are named by text, which may have several spellings."""
    spelled = f", min(lower(replace(replace({who}, ' ', ''), '-', ''))) AS spelled" if text else ""
    rows = f"(SELECT count(*) AS n{spelled} FROM {table.name} WHERE {who} IS NOT NULL GROUP BY {who}) AS people"
    again = Aggregate("repeated", "coalesce(sum(n - 1), 0)")
    several = Aggregate.counting("several", "n > 1")
    alike = Aggregate("alike", "count(*) - count(DISTINCT spelled)" if text else "0")
    answers = table.evaluate([again, several, alike], rows)
    return People(*(int(answers[each.name]) for each in (again, several, alike)))


def individual_problems(
    table: SqlTable,
    who: str,
    quasi_identifiers: Mapping[str, str],
    multiplicity: str,
    keep: Mapping[str, str] = MappingProxyType({}),
    hint: str = "set columns.multiplicity if people have several values",
    people: People | None = None,
) -> list[Problem]:
    """Return repeated individuals where each should have one row, and individuals whose rows disagree. Columns are
    given as SQL by their names. Kept columns matter where individuals may have several rows: they are published once
    for each. `hint`: what to do about several rows; `people`: the count of their rows, if it is known."""
    people = people or people_of(table, who)
    if not people.repeated:
        return []
    problems = []
    if multiplicity == "single":
        rows = counted(people.repeated, "row that repeats", "rows that repeat")
        found = f"{rows} an individual, of {counted(people.several)} with several rows"
        problems.append(Problem(PERSON, found, "one row per individual", hint))
    return problems + disagreements(table, who, quasi_identifiers, {} if multiplicity == "single" else keep)


def disagreements(
    table: SqlTable, who: str, quasi_identifiers: Mapping[str, str], keep: Mapping[str, str]
) -> list[Problem]:
    """Return a problem for individuals whose rows disagree on a quasi-identifier, and one for a kept column, with the
    count of each column."""
    hint = "each individual is published once; leave the column out, or make it agree"
    roles = [("quasi-identifier", PERSON, "quasi-identifiers", "", quasi_identifiers)]
    roles += [("kept column", "columns.keep", "kept values", hint, keep)] if keep else []
    differ = {(at, name): _disagreement(sql) for at, (*_, columns) in enumerate(roles) for name, sql in columns.items()}
    listed = ", ".join(f"{sql} AS d{at}" for at, sql in enumerate(differ.values()))
    people = f"SELECT {listed} FROM {table.name} WHERE {who} IS NOT NULL GROUP BY {who} HAVING count(*) > 1"
    each = {place: Aggregate.counting(f"disagreement {at}", f"d{at}") for at, place in enumerate(differ)}
    any_ = [
        Aggregate.counting(f"any {at}", any_of([f"d{n}" for n, place in enumerate(differ) if place[0] == at]))
        for at in range(len(roles))
    ]
    answers = table.evaluate([*each.values(), *any_], f"({people}) AS people")
    problems = []
    for at, (role, path, values, advice, columns) in enumerate(roles):
        if count := int(answers[any_[at].name]):
            counts = {name: int(answers[each[at, name].name]) for name in columns}
            found = f"{counted(count)} whose rows disagree on a {role} ({_most(counts)})"
            problems.append(Problem(path, found, f"the same {values} in all rows of an individual", advice))
    return problems


def _most(counts: Mapping[str, int]) -> str:
    """Return the columns that most individuals disagree on, with their counts.

    >>> _most({"zip": 2, "age": 0, "ward": 7})
    'ward: 7, zip: 2'
    """
    found = sorted(((name, n) for name, n in counts.items() if n), key=lambda each: -each[1])
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return ", ".join(f"{name}: {n:,}" for name, n in found[:NAMED]) + more


def _disagreement(sql: str) -> str:
    return f"(min({sql}) IS DISTINCT FROM max({sql}) OR count({sql}) NOT IN (0, count(*)))"
