"""Choose the quasi-identifiers of a wide table: columns that anyone may know, such as the age, the sex and the place,
and then those that distinguish most rows together with the others. All other columns are left out of the config, with
the reason, and are not published."""

from __future__ import annotations

from collections.abc import Sequence

from anon.core.database import Database, quote, translated
from anon.profile.columns import ColumnProfile, Profile
from anon.source.column_words import AGES, PLACES, SEXES, words
from anon.source.tables import one

WIDE = 20  # quasi-identifiers from which on a table is wide
MOST = 10  # that are proposed for a wide table
COMPARED = 24  # columns that are compared, those with most distinct values
GAIN = 0.005  # of the rows: a column by which fewer of them can be told apart is left out
ROWS = 100_000  # of a sample in which they are counted
SAMPLE = "wide_sample"


def leave_out(database: Database, profile: Profile, known: Sequence[str]) -> None:
    """Note the columns of a wide table that matter less than others, of those that an adversary may know."""
    columns = [column for column in profile.columns if column.name in known and column.kind is not None]
    if len(columns) <= WIDE:
        return
    by_values = sorted(columns, key=lambda column: -column.distinct)
    traits = [c for c in by_values if words(c.name) & (AGES | SEXES | PLACES)][: MOST // 2]
    compared = [c for c in by_values if c not in traits][:COMPARED]
    chosen = _Choice(database, profile, traits, compared).made()
    beside = f"beside {len(chosen)} other columns" if chosen else "alone"
    for column in columns:
        if column.name in chosen:
            continue
        few = f"left out of {len(columns):,} columns: it distinguishes few rows {beside}"
        fewer = f"left out of {len(columns):,} columns: {COMPARED} others have more distinct values"
        profile.left_out[column.name] = few if column in compared or column in traits else fewer


class _Choice:
    """Adds columns to a set one by one: each time the one that distinguishes most rows of a sample."""

    def __init__(
        self, database: Database, profile: Profile, traits: Sequence[ColumnProfile], compared: Sequence[ColumnProfile]
    ) -> None:
        self.database = database
        self.chosen, self.rest = [c.name for c in traits], [c.name for c in compared]
        base = profile.part([*self.chosen, *self.rest])
        rows = f"SELECT * FROM {base}"
        if profile.rows > ROWS:
            rows += f" USING SAMPLE reservoir({ROWS} ROWS) REPEATABLE (1)"
        with translated("reading the source"):
            database.execute(f"CREATE OR REPLACE TEMP TABLE {SAMPLE} AS {rows}")
        self.rows = min(profile.rows, ROWS)

    def made(self) -> list[str]:
        groups = self._groups(self.chosen)
        while self.rest and len(self.chosen) < MOST:
            counts = {name: self._groups([*self.chosen, name]) for name in self.rest}
            best = max(counts, key=lambda name: counts[name])
            if counts[best] - groups < GAIN * self.rows and self.chosen:
                break
            groups = counts[best]
            self.chosen.append(best)
            self.rest.remove(best)
        self.database.execute(f"DROP TABLE {SAMPLE}")
        return self.chosen

    def _groups(self, names: Sequence[str]) -> int:
        """Return the number of groups of rows that some columns distinguish: the number of rows if each is unique."""
        if not names:
            return 0
        listed = ", ".join(map(quote, names))
        return int(one(self.database, f"SELECT count(*) FROM (SELECT DISTINCT {listed} FROM {SAMPLE})")[0])
