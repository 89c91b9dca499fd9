"""Columns whose repeated values stand for one person each, although every row counts as another one (`individual:
row`). k rows of such a person would pass for k people. A column is one where nearly all of its repeated values agree on
what differs from person to person, far more often than rows do by chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from anon.config import Columns
from anon.errors import ConfigError, Problem
from anon.source.column_words import AGES, PLACES, numbers_people, words
from anon.source.requirements import ROWS, Aggregate, SqlTable

FEWEST = 20  # values, and repeated ones: of fewer nothing can be said
ROWS_EACH = 50  # of a value on average: people who share a place or an employer are more
AGREE = 0.95  # of the repeated values
CHANCE = 0.6  # of the repeated values that would agree if rows were dealt out at random
COMPARED = 1_000_000  # rows of which values are compared with each other
NO_KEYS = ("date", "timestamp", "boolean")  # kinds of columns that do not say who somebody is


@dataclass(frozen=True)
class Attribute:
    """A column of a table: its field in the config, its name, its SQL, and what it may tell."""

    field: str
    name: str
    sql: str
    key: bool  # it may be what says who a row is about
    quasi: bool = False
    birth: bool = False  # its values look like dates of birth

    @property
    def age(self) -> bool:
        return self.birth or bool(words(self.name) & AGES)


@dataclass(frozen=True)
class PersonKey:
    """A column that says who a row is about, how many of its values repeat, and on what their rows agree."""

    column: Attribute
    repeated: int
    agree: list[str]
    person: bool = True  # rather than of a household, a case, a machine, ...

    @property
    def reason(self) -> str:
        about = f", in rows that agree on {', '.join(self.agree[:4])}" if self.agree else ""
        return f"{self.repeated:,} values that repeat{about}: rows of one {'person' if self.person else 'thing'} each"

    def problem(self) -> Problem:
        expected = f"`individual: {self.column.name}`, or one row per person"
        hint = "leave the column out if it does not say who a row is about"
        return Problem(self.column.field, self.reason, expected, hint)


def refuse_person_keys(found: Sequence[PersonKey]) -> None:
    """Raise ConfigError if columns say that rows, each of which counts as a person, are not."""
    if found:
        raise ConfigError([key.problem() for key in found])


def attributes_of(columns: Columns, kinds: Mapping[str, str], sql: Mapping[str, str]) -> list[Attribute]:
    """Return the columns of a config whose SQL is known, by the kinds of those that are published."""
    listed = [(f"columns.identifiers[{at}]", name, False) for at, name in enumerate(columns.identifiers)]
    listed += [(f"columns.quasi_identifiers.{name}", name, True) for name in columns.quasi_identifiers]
    listed += [(f"columns.keep[{at}]", name, False) for at, name in enumerate(columns.keep)]
    return [
        Attribute(field, name, sql[name], kinds.get(name) not in NO_KEYS, quasi)
        for field, name, quasi in listed
        if name in sql
    ]


def person_keys(table: SqlTable, columns: list[Attribute], sample: bool, of_anything: bool = False) -> list[PersonKey]:
    """Return the columns of a table that say who a row is about. `sample`: a part of the values is enough in large
    tables; they are chosen by a hash of DuckDB, so that all rows of a value are compared. `of_anything`: also columns
    whose repeated values agree on two columns of which neither follows from the other, whatever they say."""
    keys = [column for column in columns if column.key]
    if not keys:
        return []
    distinct = [Aggregate(f"distinct {at}", f"approx_count_distinct({key.sql})") for at, key in enumerate(keys)]
    answers = table.evaluate([ROWS, *distinct])
    rows, values = answers[ROWS.name], [answers[each.name] for each in distinct]
    part = max(1, rows // COMPARED) if sample else 1
    likely = [key for key, n in zip(keys, values) if 2 * ROWS_EACH * n >= rows and 2 * n >= FEWEST]
    chances = Chances(table)
    found = (_Key(table, key, columns, part, chances).judged() for key in likely)
    return [key for key in found if key is not None and (key.person or of_anything)]


class Chances:
    """For each column of a table the share of pairs of rows that agree on it, counted once."""

    def __init__(self, table: SqlTable) -> None:
        self.table = table
        self._known: dict[str, float] = {}

    def of_column(self, column: Attribute) -> float:
        if column.sql not in self._known:
            share = Aggregate("share", "sum(power(m, 2)) / power(sum(m), 2)")
            counted = f"(SELECT count(*) AS m FROM {self.table.name} GROUP BY {column.sql}) AS t"
            self._known[column.sql] = float(self.table.evaluate([share], counted)[share.name])
        return self._known[column.sql]


class _Key:
    """A column that may say who a row is about, compared with the others."""

    def __init__(self, table: SqlTable, key: Attribute, columns: list[Attribute], part: int, chances: Chances) -> None:
        self.table, self.key, self.chances = table, key, chances
        self.others = [c for c in columns if c is not key and (c.quasi or (c.age and not key.age))]
        listed = "".join(f", {column.sql} AS c{at}" for at, column in enumerate(self.others))
        chosen = f" AND hash({key.sql}) % {part} = 0" if part > 1 else ""
        self.rows = f"(SELECT {key.sql} AS k{listed} FROM {table.name} WHERE {key.sql} IS NOT NULL{chosen})"

    def judged(self) -> PersonKey | None:
        asked = [
            Aggregate("values", "count(*)"),
            Aggregate("rows", "coalesce(sum(n), 0)"),
            Aggregate.counting("repeated", "n > 1"),
        ]
        answers = self.table.evaluate(asked, f"(SELECT count(*) AS n FROM {self.rows} GROUP BY k) AS t")
        values, rows, repeated = (answers[each.name] for each in asked)
        if values < FEWEST or repeated < FEWEST or rows > ROWS_EACH * values:
            return None
        distinctive, agreed = self._agreement(repeated) if self.others else ([], [])
        person = self._is_person(distinctive, agreed)
        if not person and (words(self.key.name) & PLACES or not self._two_apart(agreed)):
            return None
        return PersonKey(self.key, int(repeated), [self.others[at].name for at in agreed], person)

    def _agreement(self, repeated: int) -> tuple[list[int], list[int]]:
        """Return the other columns on which rows seldom agree by chance, and those of them that the repeated values
        agree on."""
        agree = ", ".join(f"{same(f'c{at}')} AS a{at}" for at in range(len(self.others)))
        people = f"SELECT count(*) AS n, {agree} FROM {self.rows} GROUP BY k HAVING count(*) > 1"
        asked = [Aggregate.counting(f"agree on {at}", f"a{at}") for at in range(len(self.others))]
        asked += [
            Aggregate(f"expected on {at}", f"sum(power({self.chances.of_column(column)!r}, n - 1))")
            for at, column in enumerate(self.others)
        ]
        answers = self.table.evaluate(asked, f"({people}) AS t")
        distinctive = [at for at in range(len(self.others)) if answers[f"expected on {at}"] <= CHANCE * repeated]
        return distinctive, [at for at in distinctive if answers[f"agree on {at}"] >= AGREE * repeated]

    def _is_person(self, distinctive: list[int], agreed: list[int]) -> bool:
        """Return whether the name of the column says so, its values agree on an age or a birth, or on everything that
        others may know; places do that with what they lie in."""
        if numbers_people(self.key.name) or any(self.others[at].age for at in agreed if not self.key.age):
            return True
        quasi = [at for at in distinctive if self.others[at].quasi]
        together = set(quasi) <= set(agreed) and not words(self.key.name) & PLACES
        return together and self._two_apart(quasi)

    def _two_apart(self, columns: list[int]) -> bool:
        return any(self._independent(*pair) for pair in combinations(columns, 2))

    def _independent(self, one_column: int, other: int) -> bool:
        """Return whether neither of two columns follows from the other, from one value of the key to the next."""
        return not self._follows(one_column, other) and not self._follows(other, one_column)

    def _follows(self, given: int, column: int) -> bool:
        each = f"SELECT min(c{given}) AS a, min(c{column}) AS b FROM {self.rows} GROUP BY k"
        people = f"SELECT count(*) AS n, {same('b')} AS s FROM ({each}) GROUP BY a"
        asked = [Aggregate.counting("repeated", "n > 1"), Aggregate.counting("agreed", "n > 1 AND s")]
        answers = self.table.evaluate(asked, f"({people}) AS t")
        return bool(answers["agreed"] >= AGREE * answers["repeated"])


def same(column: str) -> str:
    """Return the SQL for whether all rows of a group have one value of a column."""
    return f"(min({column}) IS NOT DISTINCT FROM max({column}) AND count({column}) IN (0, count(*)))"
