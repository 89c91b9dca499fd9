"""Columns whose repeated values stand for one person each, although every row counts as another one (`individual:
row`). k rows of such a person would pass for k people. A column is one where nearly all of its repeated values agree on
what differs from person to person, far more often than rows do by chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

from anon.config import Columns
from anon.errors import ConfigError, Problem
from anon.source.column_words import AGES, PLACES, numbers_people, words
from anon.source.requirements import Aggregate, Asked, RowAnswers, SqlTable

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
    def identifier(self) -> bool:
        return self.field.startswith("columns.identifiers")

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


def part_compared(rows: int) -> int:
    """Return n where the rows of one value in n are enough to compare."""
    return max(1, rows // COMPARED)


class PersonSearch:
    """A search for the columns of a table that say who a row is about. It asks the table at most three times, each time
    about all columns at once: how the values of each repeat; what the rows of those that may be keys agree on; and
    where that could be chance, or follow from one column. `part`: the rows of one value in `part` are compared, chosen
    by a hash, so that all rows of a value are."""

    def __init__(self, table: SqlTable, columns: list[Attribute], part: int) -> None:
        self.table, self.part = table, part
        self.keys = [_Key(table.name, key, columns, part) for key in columns if key.key]
        answers = table.evaluate_all([key.repeats() for key in self.keys])
        self.repeats = {key: Repeats(*(int(each[name]) for name in REPEATS)) for key, each in zip(self.keys, answers)}

    def repeated_identifiers(self) -> dict[str, tuple[int, int]]:
        """Return the identifiers that repeat although every row counts as another person: for each the number of rows
        that share theirs with another row, and n where one row in n was compared."""
        shared = {key.column.name: each.shared for key, each in self.repeats.items() if key.column.identifier}
        return {name: (rows, self.part) for name, rows in shared.items() if rows}

    def found(self, of_anything: bool = False) -> list[PersonKey]:
        """Return the keys. `of_anything`: also columns whose repeated values agree on two columns of which neither
        follows from the other, whatever they say."""
        likely = [key for key, each in self.repeats.items() if each.of_key]
        agreements = self._agreements(likely)
        asked = [question for agreement in agreements for question in agreement.questions()]
        answers = iter(self.table.evaluate_all(asked))
        found = [agreement.judged([next(answers) for _ in agreement.questions()]) for agreement in agreements]
        return [key for key in found if key is not None and (key.person or of_anything)]

    def _agreements(self, keys: list[_Key]) -> list[_Agreement]:
        """Return what the rows of the values of each key agree on, and how often rows do by chance."""
        others = list({column.sql: column for key in keys for column in key.others}.values())
        chances = [_chance(self.table.name, column) for column in others]
        answers = self.table.evaluate_all([*chances, *(key.agreement() for key in keys if key.others)])
        chance = {column.sql: float(each["share"]) for column, each in zip(others, answers)}
        agreed = iter(answers[len(others) :])
        return [
            _Agreement(key, self.repeats[key].repeated, chance, next(agreed) if key.others else None) for key in keys
        ]


REPEATS = {
    "values": "count(*)",
    "rows": "coalesce(sum(n), 0)",
    "repeated": "count(*) FILTER (WHERE n > 1)",
    "shared": "coalesce(sum(n) FILTER (WHERE n > 1), 0)",
}


@dataclass(frozen=True)
class Repeats:
    """How the values of a column repeat: the values, their rows, those with several rows, and the rows of these."""

    values: int
    rows: int
    repeated: int
    shared: int

    @property
    def of_key(self) -> bool:
        """Whether they may say who a row is about."""
        return self.values >= FEWEST and self.repeated >= FEWEST and self.rows <= ROWS_EACH * self.values


def _chance(table: str, column: Attribute) -> Asked:
    """Ask for the share of pairs of rows that agree on a column."""
    share = Aggregate("share", "sum(power(m, 2)) / power(sum(m), 2)")
    return f"(SELECT count(*) AS m FROM {table} GROUP BY {column.sql}) AS t", [share]


class _Key:
    """A column that may say who a row is about, and the columns that it is compared with."""

    def __init__(self, table: str, key: Attribute, columns: list[Attribute], part: int) -> None:
        self.column = key
        self.others = [c for c in columns if c is not key and (c.quasi or (c.age and not key.age))]
        listed = "".join(f", {column.sql} AS c{at}" for at, column in enumerate(self.others))
        chosen = f" AND hash({key.sql}) % {part} = 0" if part > 1 else ""
        self.rows = f"(SELECT {key.sql} AS k{listed} FROM {table} WHERE {key.sql} IS NOT NULL{chosen})"

    def repeats(self) -> Asked:
        asked = [Aggregate(name, sql) for name, sql in REPEATS.items()]
        return f"(SELECT count(*) AS n FROM {self.rows} GROUP BY k) AS t", asked

    def agreement(self) -> Asked:
        """Ask how many of the repeated values agree on each other column."""
        agree = ", ".join(f"{same(f'c{at}')} AS a{at}" for at in range(len(self.others)))
        people = f"SELECT {agree} FROM {self.rows} GROUP BY k HAVING count(*) > 1"
        return f"({people}) AS t", [Aggregate.counting(f"agree on {at}", f"a{at}") for at in range(len(self.others))]

    def expected(self, chances: Mapping[int, float]) -> Asked:
        """Ask how many of the repeated values would agree on other columns if rows were dealt out at random."""
        people = f"SELECT count(*) AS n FROM {self.rows} GROUP BY k HAVING count(*) > 1"
        asked = [Aggregate(f"expected on {at}", f"sum(power({p!r}, n - 1))") for at, p in chances.items()]
        return f"({people}) AS t", asked

    def following(self, given: int, column: int) -> Asked:
        """Ask whether one column follows from another, from one value of the key to the next."""
        each = f"SELECT min(c{given}) AS a, min(c{column}) AS b FROM {self.rows} GROUP BY k"
        people = f"SELECT count(*) AS n, {same('b')} AS s FROM ({each}) GROUP BY a"
        return f"({people}) AS t", [
            Aggregate.counting("repeated", "n > 1"),
            Aggregate.counting("agreed", "n > 1 AND s"),
        ]


class _Agreement:
    """What the rows of the repeated values of a key agree on."""

    def __init__(self, key: _Key, repeated: int, chances: Mapping[str, float], agreed: RowAnswers | None) -> None:
        self.key, self.repeated = key, repeated
        others = range(len(key.others))
        self.agree = [at for at in others if agreed is not None and agreed[f"agree on {at}"] >= AGREE * repeated]
        # With a smaller chance than CHANCE two rows agree less often, and more rows still less.
        chance = {at: chances[key.others[at].sql] for at in others}
        self.unsure = {at: p for at, p in chance.items() if p > CHANCE}
        self.place, self.numbers_people = bool(words(key.column.name) & PLACES), numbers_people(key.column.name)
        self.pairs = [] if self.place or self.numbers_people else list(permutations(self.agree, 2))

    def questions(self) -> list[Asked]:
        expected = [self.key.expected(self.unsure)] if self.unsure else []
        return expected + [self.key.following(*pair) for pair in self.pairs]

    def judged(self, answers: list[RowAnswers]) -> PersonKey | None:
        expected = answers.pop(0) if self.unsure else None
        others = self.key.others
        by_chance = [at for at in self.unsure if expected and expected[f"expected on {at}"] > CHANCE * self.repeated]
        distinctive = [at for at in range(len(others)) if at not in by_chance]
        agreed = [at for at in self.agree if at in distinctive]
        follows = {pair for pair, each in zip(self.pairs, answers) if each["agreed"] >= AGREE * each["repeated"]}
        person = self._is_person(distinctive, agreed, follows)
        if not person and (self.place or not _two_apart(agreed, follows)):
            return None
        return PersonKey(self.key.column, self.repeated, [others[at].name for at in agreed], person)

    def _is_person(self, distinctive: list[int], agreed: list[int], follows: set[tuple[int, int]]) -> bool:
        """Return whether the name of the column says so, its values agree on an age or a birth, or on everything that
        others may know; places do that with what they lie in."""
        others = self.key.others
        if self.numbers_people or any(others[at].age for at in agreed if not self.key.column.age):
            return True
        quasi = [at for at in distinctive if others[at].quasi]
        return set(quasi) <= set(agreed) and not self.place and _two_apart(quasi, follows)


def _two_apart(columns: list[int], follows: set[tuple[int, int]]) -> bool:
    """Return whether of two columns neither follows from the other."""
    return any(not {(a, b), (b, a)} & follows for a, b in combinations(columns, 2))


def same(column: str) -> str:
    """Return the SQL for whether all rows of a group have one value of a column."""
    return f"(min({column}) IS NOT DISTINCT FROM max({column}) AND count({column}) IN (0, count(*)))"
