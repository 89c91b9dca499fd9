"""Find the columns that identify the person of a row in a table of several rows per person: visits, prescriptions,
payments. `anon init` proposes such a column as the individual, or leaves it out, and never publishes it. All columns of
a batch are compared with the traits of people in one pass; the few that agree with them are then judged as a run judges
them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from anon.core.database import Database, quote
from anon.source.column_words import AGES, KEYS, PEOPLE, SEXES, names_people, numbers_people, words
from anon.source.many_columns import answers, stacked
from anon.source.person_keys import (
    AGREE,
    CHANCE,
    COMPARED,
    FEWEST,
    ROWS_EACH,
    Attribute,
    PersonKey,
    PersonSearch,
    part_compared,
    same,
)
from anon.source.requirements import DuckDBRows
from anon.source.tables import one

if TYPE_CHECKING:
    from anon.profile.columns import ColumnProfile, Profile

TRAITS = 12  # columns that rows of one person are expected to agree on
BY_CHANCE = 0.05  # of the rows: fewer may agree on names and birth date without being of one person
BIRTHS = 30  # years that dates of birth span, at least


@dataclass
class PersonKeys:
    """The keys with repeated values in a table, and for each the columns that differ between rows of one value."""

    found: list[PersonKey] = field(default_factory=list)
    varying: dict[str, frozenset[str]] = field(default_factory=dict)
    namesakes: tuple[str, ...] = ()  # names and a birth date that repeat together: rows of one person
    different: int = 0  # combinations of these

    @property
    def names(self) -> list[str]:
        return [key.column.name for key in self.found if key.person]

    def reason(self, name: str) -> str:
        return next((key.reason for key in self.found if key.column.name == name), "")

    def best(self, profile: Profile) -> str | None:
        """Return the key that can serve as the individual: it is in every row, and not a name, which people share,
        unless names are all there is."""
        keys = [name for name in self.names if not names_people(name) and "name" not in words(name)] or self.names
        possible = [name for name in keys if not profile.column(name).nulls]

        def rank(name: str) -> tuple[bool, bool, int, bool]:
            found, column = words(name), profile.column(name)
            return numbers_people(name), bool(found & (KEYS | PEOPLE)), column.distinct, column.kind == "text"

        return max(possible, key=rank, default=None)


def find_keys(database: Database, profile: Profile, known: Collection[str], named: Iterable[str]) -> None:
    """Add the keys with repeated values to a profile. `known`: columns that others may know; `named`: columns that the
    user names as the individual."""
    traits = _traits(profile, known)
    keys = [column for column in profile.columns if _may_repeat(column, profile.rows)]
    likely = _likely(database, profile, keys, traits)
    attributes = {c.name: Attribute("", c.name, quote(c.name), False, True, like_births(c)) for c in traits}
    for name in likely:
        others = [attribute for other, attribute in attributes.items() if other != name]
        key = Attribute("--individual", name, quote(name), True)
        table = profile.part([name, *(other.name for other in others)])
        search = PersonSearch(DuckDBRows(database, table), [key, *others], part_compared(profile.rows))
        profile.persons.found += search.found(of_anything=True)
    for name in {*profile.persons.names, *named}:
        find_varying(database, profile, name)
    _find_namesakes(database, profile)


def _find_namesakes(database: Database, profile: Profile) -> None:
    """Add names and a birth date to a profile that repeat together, as they do in several rows of one person."""
    usable = [column for column in profile.columns if column.kind is not None]
    births = [c.name for c in usable if c.kind == "date" and (words(c.name) & AGES or like_births(c))]
    names = [c.name for c in usable if names_people(c.name)]
    if not births or len(names) < 2:  # a first name and a birth date repeat by chance
        return
    listed = (*names, births[0])
    columns = ", ".join(quote(name) for name in listed)
    known = " AND ".join(f"{quote(name)} IS NOT NULL" for name in listed)
    query = f"SELECT count(*) AS n FROM {profile.part(list(listed))} WHERE {known} GROUP BY {columns}"
    different, repeated = database.query(f"SELECT count(*), coalesce(sum(n - 1), 0) FROM ({query})").fetchall()[0]
    if repeated > BY_CHANCE * profile.rows:
        profile.persons.namesakes, profile.persons.different = listed, different


def find_varying(database: Database, profile: Profile, key: str) -> None:
    """Add the columns that differ between rows of one value of a key to a profile."""
    if key not in profile.persons.varying:
        profile.persons.varying[key] = _varying(database, profile, key)


def _traits(profile: Profile, known: Collection[str]) -> list[ColumnProfile]:
    """Return the columns that differ from person to person: births first, then the sex, then other columns."""
    usable = [c for c in profile.columns if c.kind is not None and c.distinct > 1 and not names_people(c.name)]
    usable = [c for c in usable if c.name in known or words(c.name) & AGES]

    def rank(column: ColumnProfile) -> tuple[bool, bool]:
        age = bool(words(column.name) & AGES) or like_births(column)
        return not age, not words(column.name) & SEXES

    return sorted(usable, key=rank)[:TRAITS]


def like_births(column: ColumnProfile) -> bool:
    """Return whether a column has dates of many years, as births do."""
    if column.kind not in ("date", "timestamp") or column.shape.least is None:
        return False
    return bool(column.shape.most.year - column.shape.least.year >= BIRTHS)


def _may_repeat(column: ColumnProfile, rows: int) -> bool:
    """Return whether the values of a column have a few rows each."""
    kind = column.kind in ("text", "integer") or (column.kind == "number" and column.shape.whole)
    valued = rows - column.nulls
    return kind and FEWEST <= column.distinct < valued <= ROWS_EACH * column.distinct


def _likely(
    database: Database, profile: Profile, keys: Sequence[ColumnProfile], traits: Sequence[ColumnProfile]
) -> list[str]:
    """Return the columns whose repeated values agree on a trait that rows seldom agree on by chance, and those that
    number people by their name."""
    found = [key.name for key in keys if numbers_people(key.name)]
    if not traits:
        return found
    chances = [_chance(database, profile, trait.name) for trait in traits]
    part = max(1, profile.rows // COMPARED)
    agree = ", ".join(f"{same(f't{at}')} AS a{at}" for at in range(len(traits)))
    counts = ", ".join(
        f"count_if(a{at}) >= {AGREE} * count(*) AND sum(power({chance!r}, n - 1)) <= {CHANCE} * count(*)"
        for at, chance in enumerate(chances)
    )
    beside = ", ".join(f"{quote(trait.name)} AS t{at}" for at, trait in enumerate(traits))

    def query(batch: Sequence[ColumnProfile]) -> str:
        rows = profile.part(dict.fromkeys(column.name for column in [*batch, *traits]))
        values = stacked(rows, [f"CAST({quote(key.name)} AS VARCHAR)" for key in batch], beside)
        chosen = f"{values} WHERE v IS NOT NULL AND hash(v) % {part} = 0"
        groups = f"SELECT nth, count(*) AS n, {agree} FROM {chosen} GROUP BY nth, v HAVING count(*) > 1"
        return f"SELECT nth, count(*), {counts} FROM ({groups}) GROUP BY nth"

    for key, answer in answers(database, keys, profile.rows * (1 + len(traits)), query):
        repeated, *agreed = answer or (0,)
        others = [yes for yes, trait in zip(agreed, traits) if trait.name != key.name]
        if repeated >= FEWEST and any(others):
            found.append(key.name)
    return list(dict.fromkeys(found))


def _chance(database: Database, profile: Profile, name: str) -> float:
    """Return the share of pairs of rows that agree on a column."""
    counted = f"SELECT count(*) AS m FROM {profile.part([name])} GROUP BY {quote(name)}"
    return float(one(database, f"SELECT sum(power(m, 2)) / power(sum(m), 2) FROM ({counted})")[0])


def _varying(database: Database, profile: Profile, key: str) -> frozenset[str]:
    """Return the columns that differ between rows of one value of a key."""
    names = [c.name for c in profile.columns if c.kind is not None and c.name != key]

    def query(batch: Sequence[str]) -> str:
        texts = [f"CAST({quote(name)} AS VARCHAR)" for name in batch]
        values = stacked(profile.part([key, *batch]), texts, f"{quote(key)} AS k")
        groups = f"SELECT nth, {same('v')} AS agree FROM {values} WHERE k IS NOT NULL GROUP BY nth, k"
        return f"SELECT nth, bool_and(agree) FROM ({groups}) GROUP BY nth"

    return frozenset(n for n, answer in answers(database, names, 2 * profile.rows, query) if not (answer and answer[0]))
