"""Sort the records of a cube for *merge* and *colour*: by class (people who may be dealt together without further
checks), then along a curve that keeps near quasi-identifiers near, then by codes. Equal records become one. The result
is a function of the records alone, whatever their original order; a table that does not fit in memory is sorted by
DuckDB, which spills."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anon.core import interrupt
from anon.core.arrays import Codes, Ints
from anon.core.database import connect, interruptible, translated
from anon.core.progress import ProgressCallback
from anon.cube import Cube
from anon.cube.building import PEOPLE
from anon.cube.records import Records, halves, make, whole_numbers
from anon.search.budget import SearchBudget

Classes = Callable[[Codes], Ints]  # the class of each tuple of quasi-identifier codes [columns, records]

BATCH = 131_072  # records
CURVE_BITS = 63


@dataclass
class OrderedRecords:
    """Distinct records [quasi-identifiers, sensitive code, people in two halves] in order. Those of the i-th class that
    occurs are start[i]:start[i + 1]; `key` and `people` are those of each class. People are numbered along the
    records."""

    records: Records
    start: Ints
    key: Ints
    people: Ints
    marks: Ints  # the number of the first person of every BATCH-th record, and after the last of all
    unique: int  # individuals with unique quasi-identifiers

    def read(self, first: int, last: int) -> tuple[Codes, Ints]:
        """Return codes [quasi-identifiers and then the sensitive column, records], and the people of each."""
        found = self.records.read(first, last)
        return found[:-2], whole_numbers(found[-2:]).astype(np.int64)

    def write_people(self, first: int, people: Ints) -> None:
        """Change the people of some records; `recount` must follow."""
        found = self.records.read(first, first + len(people))
        found[-2:] = halves(people)
        self.records.write(first, found)

    def recount(self) -> None:
        """Count the people of the classes again, after they were changed."""
        self.people = np.zeros(len(self.key), np.int64)
        marks = [0]
        for at in range(0, self.records.count, BATCH):
            _, people = self.read(at, min(at + BATCH, self.records.count))
            marks.append(marks[-1] + int(people.sum()))
            inside = np.clip(self.start, at, at + len(people)) - at
            self.people += np.diff(np.append(0, np.cumsum(people))[inside])
        self.marks = np.array(marks)

    def entries(self, first: int, last: int) -> Iterator[tuple[Codes, Ints, Ints, Ints]]:
        """Yield the records of the people from one number to another, and some around them: codes, people, the number
        of the first of these, and the class, in pieces."""
        begin = max(int(np.searchsorted(self.marks, first, "right")) - 1, 0)
        for piece in range(begin, int(np.searchsorted(self.marks, last))):
            at = piece * BATCH
            codes, people = self.read(at, min(at + BATCH, self.records.count))
            own = np.searchsorted(self.start, np.arange(at, at + len(people)), "right") - 1
            yield codes, people, self.marks[piece] + np.cumsum(people) - people, own


def in_order(
    cube: Cube, classes: Classes, budget: SearchBudget, on_progress: ProgressCallback = lambda **facts: None
) -> OrderedRecords:
    """Return the ordered records of a cube, whose own records are consumed."""
    count, sizes = cube.records.count, [*(domain.size for domain in cube.domains), cube.others[0].size, *PEOPLE]
    fits = budget.spill is None or 2 * len(sizes) * count <= budget.memory.records
    found = make(budget.memory.records, budget.spill, count, sizes, "ordered-records")
    building = _Building(found, len(cube.domains))
    rows = _in_memory(cube, classes) if fits else _by_database(cube, classes, budget)
    for codes, people, key in rows:
        building.add(codes, people, key)
        on_progress(done=building.at, of=2 * count)
        interrupt.check()
    cube.records.close()
    return building.ordered()


def _keyed(cube: Cube, classes: Classes) -> Iterator[tuple[Codes, Ints, Ints, Ints]]:
    """Yield pieces of the records: codes with the sensitive one last, people, class and position on the curve."""
    used = len(cube.domains) + 1
    sizes = [domain.size for domain in cube.domains]
    for first in range(0, cube.records.count, BATCH):
        found = cube.records.read(first, min(first + BATCH, cube.records.count))
        own = found[: len(cube.domains)]
        yield found[:used], cube.people_of(found), classes(own), along_curve(own, sizes)


def along_curve(codes: Codes, sizes: list[int]) -> Ints:
    """Return the positions of tuples of codes on a Z-order curve: the highest bits of all columns first, each relative
    to the range of its column.

    >>> along_curve(np.array([[0, 0, 3, 3], [0, 3, 0, 3]], np.uint16), [4, 4]).argsort().tolist()
    [0, 1, 2, 3]
    """
    bits = min(CURVE_BITS // max(len(sizes), 1), 16)
    place = np.zeros(codes.shape[1], np.int64)
    if not bits:
        return place
    scaled = [column.astype(np.int64) * 2**bits // size for column, size in zip(codes, sizes)]
    for bit in range(bits - 1, -1, -1):
        for column in scaled:
            place = place << 1 | (column >> bit & 1)
    return place


def _in_memory(cube: Cube, classes: Classes) -> Iterator[tuple[Codes, Ints, Ints]]:
    pieces = list(_keyed(cube, classes))
    codes = np.concatenate([piece[0] for piece in pieces], axis=1)
    people, key, curve = (np.concatenate([piece[i] for piece in pieces]) for i in (1, 2, 3))
    order = np.lexsort([*codes[::-1], curve, key])
    codes, people, key = codes[:, order], people[order], key[order]
    new = np.append(True, (codes[:, 1:] != codes[:, :-1]).any(axis=0))
    first = np.flatnonzero(new)
    yield codes[:, first], np.add.reduceat(people, first), key[first]


def _by_database(cube: Cube, classes: Classes, budget: SearchBudget) -> Iterator[tuple[Codes, Ints, Ints]]:
    assert budget.spill is not None
    names = [f"c{index}" for index in range(len(cube.domains) + 1)]
    schema = pa.schema([(name, pa.uint16()) for name in names] + [(name, pa.int64()) for name in ("n", "key", "z")])

    def batches() -> Iterator[pa.RecordBatch]:
        for codes, *numbers in _keyed(cube, classes):
            yield pa.record_batch([pa.array(column) for column in (*codes, *numbers)], schema=schema)

    by = f"key, z, {', '.join(names)}"
    with closing(connect(budget.memory.total, budget.threads, budget.spill)) as database:
        database.register("unordered", pa.RecordBatchReader.from_batches(schema, batches()))
        query = f"SELECT {by}, sum(n)::BIGINT AS n FROM unordered GROUP BY {by} ORDER BY {by}"
        with translated("ordering the records"):
            reader = database.query(query).to_arrow_reader(BATCH)
        for batch in interruptible(reader, "ordering the records"):
            if batch.num_rows:
                codes = np.stack([column.to_numpy() for column in batch.columns[2:-1]])
                yield codes, batch.column(batch.num_columns - 1).to_numpy(), batch.column(0).to_numpy()


class _Building:
    """Ordered records while they are being added."""

    def __init__(self, records: Records, columns: int) -> None:
        self.records, self.columns, self.at, self.unique = records, columns, 0, 0
        self.pieces: list[tuple[Ints, Ints]] = []  # first record and key of the classes that begin
        self.last: tuple[Codes, int] | None = None  # the last tuple, and its people so far

    def add(self, codes: Codes, people: Ints, key: Ints) -> None:
        self.records.write(self.at, np.concatenate([codes, halves(people).astype(np.uint16)]))
        first = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
        self.pieces.append((first + self.at, key[first]))
        self.at += len(people)
        self._count_unique(codes[: self.columns], people)

    def _count_unique(self, tuples: Codes, people: Ints) -> None:
        """Count tuples with one person. Equal tuples of quasi-identifiers are adjacent, and the last one of a piece may
        continue in the next."""
        first = np.flatnonzero(np.append(True, (tuples[:, 1:] != tuples[:, :-1]).any(axis=0)))
        n = np.add.reduceat(people, first)
        if self.last is not None:
            before, held = self.last
            if (before == tuples[:, 0]).all():
                n[0] += held
            else:
                self.unique += held == 1
        self.unique += int((n[:-1] == 1).sum())
        self.last = tuples[:, -1].copy(), int(n[-1])

    def ordered(self) -> OrderedRecords:
        if self.last is not None:
            self.unique += self.last[1] == 1
        self.records.count = self.at
        start, key = (np.concatenate([np.empty(0, np.int64), *(piece[i] for piece in self.pieces)]) for i in (0, 1))
        whole = np.flatnonzero(np.append(np.ones(min(len(key), 1), bool), key[1:] != key[:-1]))
        none = np.empty(0, np.int64)
        found = OrderedRecords(self.records, np.append(start[whole], self.at), key[whole], none, none, self.unique)
        found.recount()
        return found
