"""Choose what becomes of several rows of a person: which row of each is used, or all of their values. The choice gives
a config that runs, with the reason for it as a comment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anon.core.database import Database, quote
from anon.core.phrases import counted
from anon.errors import ConfigError
from anon.profile.columns import NUMBERS, ColumnProfile, Profile
from anon.profile.keys import like_births
from anon.source.column_words import AGES, DATES, KEYS, words
from anon.source.tables import one

SEVERAL = ("set", "multiset")
COMMON = 0.5  # share of the people with one value from which on nobody's value can be protected
VISITS = frozenset(
    """visit episode case stay sequence seq order besuch fall visite sejour visita episodio wizyta""".split()  # noqa: SIM905
)


@dataclass(frozen=True)
class RowChoice:
    """What becomes of several rows of a person: `keep` is first, last, set or multiset; `by` orders the rows."""

    keep: str
    by: str = ""
    why: str = ""

    @classmethod
    def parse(cls, flag: str, names: Sequence[str]) -> RowChoice:
        """Return the choice that --rows says; ConfigError for one that cannot be."""
        keep, _, by = flag.partition(":")
        expected = "last:COLUMN, first:COLUMN, set or multiset"
        if keep in SEVERAL and not by:
            return cls(keep, why="as you said")
        if keep not in ("first", "last") or not by:
            raise ConfigError.at("--rows", repr(flag), expected)
        if by not in names:
            raise ConfigError.at("--rows", f"column {by!r}", "a column of the table")
        return cls(keep, by, "as you said")

    @property
    def multiplicity(self) -> str:
        return self.keep if self.keep in SEVERAL else "single"

    @property
    def words(self) -> str:
        if self.multiplicity != "single":
            return "all values of each, in bucketized form"
        return f"the {'newest' if self.keep == 'last' else 'first'} row of each by {self.by}"


def choices(profile: Profile, individual: str) -> list[RowChoice]:
    """Return what can become of several rows of the individuals, the best first."""
    varying = profile.persons.varying.get(individual)
    usable = [
        column
        for column in profile.columns
        if column.name != individual and column.distinct > 1 and (varying is None or column.name in varying)
    ]
    dates = [c for c in usable if c.kind in ("date", "timestamp") and not words(c.name) & AGES]
    dates = [c for c in dates if varying is not None or not like_births(c)]
    dates.sort(key=lambda c: (c.nulls, not words(c.name) & DATES, -c.distinct))
    numbers = [c for c in usable if c.kind in NUMBERS]
    numbers.sort(key=lambda c: (c.nulls, not words(c.name) & KEYS, -c.distinct))
    visits = [c for c in numbers if words(c.name) & (VISITS | DATES)]
    found = [RowChoice("last", c.name, f"the newest row of each: {_why(c)}") for c in dates]
    found += [RowChoice("last", c.name, f"the last row of each: {_why(c)}, and no column has dates") for c in visits]
    found.append(RowChoice("multiset", why="people have several rows, which no date orders; each is published once"))
    largest = "the row of each with the largest value, for want of a date: choose another way if that is a bias"
    return found + [RowChoice("last", c.name, largest) for c in numbers if c not in visits]


def _why(column: ColumnProfile) -> str:
    gaps = f", {counted(column.nulls, 'row')} without a value" if column.nulls else ""
    return f"it differs between rows of a person, with {column.distinct:,} distinct values{gaps}"


def largest_share(database: Database, profile: Profile, individual: str, sensitive: str) -> float:
    """Return the share of the individuals who have the commonest value of a sensitive column, or of the rows where each
    is another person."""
    value = quote(sensitive)
    pairs, people = f"SELECT {value} AS v FROM {profile.part([sensitive])}", profile.rows
    if individual != "row":
        pairs = f"SELECT DISTINCT {quote(individual)} AS w, {value} AS v FROM {profile.part([individual, sensitive])}"
        people = profile.column(individual).distinct
    counts = f"SELECT count(*) AS n FROM ({pairs}) WHERE v IS NOT NULL GROUP BY v"
    most = one(database, f"SELECT coalesce(max(n), 0) FROM ({counts})")[0]
    return float(most) / max(people, 1)
