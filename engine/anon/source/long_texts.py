"""Compute the memory that the long texts of a source require, before they are processed. DuckDB works on 2,048 rows
at a time and merges what it has sorted in parts of 122,880 rows, whatever the rows hold; the different texts of
quasi-identifiers and sensitive columns are held as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anon.core.database import Database
from anon.core.memory import BATCHES, DATABASE, LEAST, LIBRARIES, VALUE, Memory
from anon.errors import ResourceError

VECTOR, PART = 2_048, 122_880  # rows that DuckDB makes at a time, and that it merges at a time
SHORT = 8_000_000  # bytes of texts that need no room of their own
HELD = 3  # times that a different text is held: as an array, as an object, and as verification reads it
SPARE = 41_000_000  # bytes of different texts that the least memory of a process has room for
MOST = 65_536  # different texts of a column; one with more is refused, or binned


@dataclass(frozen=True)
class Texts:
    """The bytes of texts of a source: of the 2,048 rows with most of them, of its kept columns and of the 122,880 rows
    with most of those, and of the different texts that are held."""

    vector: int = 0
    kept: int = 0
    part: int = 0
    distinct: int = 0
    values: int = 0  # the number of those

    @property
    def held(self) -> int:
        """Return the bytes that the distinct texts take until the release is judged."""
        return HELD * self._more

    @property
    def _more(self) -> int:
        return max(self.distinct - SPARE, 0)

    def database(self, threads: int) -> int:
        """Return the bytes that DuckDB needs to sort and to group rows with them. Measured with kept texts of 500
        bytes to 1 MB, and sensitive ones of 2 to 30 kB."""
        merged = min(self.kept, threads * self.part)
        return DATABASE + (11 * merged + 15 * self._more + (30 + 8 * threads) * self.vector) // 10

    def least(self, threads: int) -> int:
        """Return the memory of the whole process that leaves these bytes to DuckDB."""
        return max(_total(self.database(threads), self.held + VALUE * self.values), LEAST)

    def threads(self, memory: int, most: int) -> int:
        """Return the number of threads that DuckDB may use, up to `most`; ResourceError if not even one is possible."""
        for threads in range(most, 0, -1):
            if self.least(threads) <= memory:
                return threads
        raise ResourceError(
            f"limits.memory: {memory // 1_000_000} MB is too little for texts of this length; "
            f"at least {-(-self.least(1) // 1_000_000)}MB is required"
        )


def _total(database: int, held: int) -> int:
    """Return the least memory of a process that leaves the given bytes to a database; see `Memory.database`, which
    takes a fifth of what is free for records, and 40 MB or a tenth of the whole for batches."""
    total = LIBRARIES + held + (database + BATCHES) * 5 // 4
    while Memory(total, held).database < database:
        total += total // 100
    return total


def measure(database: Database, view: str, kept: Sequence[str], held: Sequence[str], longest: dict[str, int]) -> Texts:
    """Measure the columns of a view, given the bytes of the longest text of each; nothing if all of them are short."""
    rows = int(database.one(f"SELECT count(*) FROM {view}")[0])
    every = [*kept, *held]
    if not every or min(rows, PART) * sum(longest[alias] for alias in every) <= SHORT:
        return Texts()
    found = [_distinct(database, view, alias) for alias in held if rows * longest[alias] > SHORT]
    total, part = _longest(database, view, kept, PART) if kept else (0, 0)
    distinct, values = (sum(each[at] for each in found) for at in (0, 1))
    return Texts(_longest(database, view, every, VECTOR)[1], total, part, distinct, values)


def _longest(database: Database, view: str, columns: Sequence[str], rows: int) -> tuple[int, int]:
    """Return the bytes of the texts of all rows, and of the given number of rows with the most of them."""
    length = " + ".join(f"coalesce(strlen({alias}), 0)" for alias in columns)
    lengths = f"SELECT {length} AS n FROM {view}"
    (total,) = database.one(f"SELECT coalesce(sum(n), 0) FROM ({lengths})")
    (most,) = database.one(f"SELECT coalesce(sum(n), 0) FROM (SELECT n FROM ({lengths}) ORDER BY n DESC LIMIT {rows})")
    return int(total), int(most)


def _distinct(database: Database, view: str, alias: str) -> tuple[int, int]:
    """Return the bytes and the number of the distinct texts of a column; zeros if they are too many or short."""
    each = f"SELECT max(strlen({alias})) AS n FROM {view} WHERE {alias} IS NOT NULL GROUP BY hash({alias})"
    count, size = database.one(f"SELECT count(*), coalesce(sum(n), 0) FROM ({each})")
    return (int(size), int(count)) if count <= MOST and size > SHORT else (0, 0)
