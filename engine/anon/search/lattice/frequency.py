"""Frequency sets (LeFevre, DeWitt, Ramakrishnan 2005): how many people have each combination of some columns at some
levels, and of these each sensitive value. The first one is the records of the cube. Every other one is rolled up from
one that is known, and comes out in the order of its cells whatever it was made from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from anon.cube import Cube
from anon.errors import ResourceError
from anon.levels import LARGEST, CellIndex, Ints, Levels
from anon.search.lattice import kernels

Codes = NDArray[np.uint16]
Counts = NDArray[np.uint32]
Node = tuple[int, ...]  # a level per column

CHUNK = 2**18  # records at a time
DENSE = 8  # counters per entry that is rolled up: for as many, a table is faster than a sort
FEW = 2**14  # counters that are always worth a table
CHEAP = 2**20  # entries that are rolled up in no time
NONE = np.empty(0, np.uint32)
Piece = tuple[Codes, Ints | None, Counts, Counts]
Steps = tuple[Ints, Ints, Ints]  # rows of columns, what each of their nodes adds to a cell's number, where these begin


@dataclass(frozen=True)
class FrequencySet:
    """The cells of some columns at some levels in their order, and of each the sensitive values that occur in it."""

    columns: tuple[int, ...]
    levels: Node
    cells: Codes  # [columns, cells] nodes of the levels
    start: Ints | None  # of each cell the first of its entries; None: one entry per cell
    value: Counts  # per entry, empty if values are not told apart
    count: Counts  # people per entry

    @property
    def entries(self) -> int:
        return len(self.count)

    @property
    def bytes(self) -> int:
        return sum(array.nbytes for array in (self.cells, self.start, self.value, self.count) if array is not None)

    @cached_property
    def n(self) -> Ints:
        """The people of each cell."""
        count = self.count.astype(np.int64)
        return count if self.start is None else np.add.reduceat(count, self.start[:-1])

    def pieces(self) -> Iterator[Piece]:
        """What a roll-up reads: cells, where the entries of each begin, their values and their people."""
        yield self.cells, self.start, self.value, self.count


class Records:
    """The records of a cube as a frequency set at level 0, in any order and with cells that may come again."""

    def __init__(self, cube: Cube, values: SensitiveValues | None) -> None:
        self.cube, self.values = cube, values
        self.columns = tuple(range(len(cube.domains)))
        self.levels = (0,) * len(self.columns)

    @property
    def entries(self) -> int:
        return self.cube.records.count

    def pieces(self) -> Iterator[Piece]:
        for rows, people in read(self.cube):
            yield rows, None, NONE if self.values is None else self.values.of(rows[len(self.columns) :]), people


def read(cube: Cube) -> Iterator[tuple[Codes, Counts]]:
    """The records of a cube, some at a time: codes [columns, records], and the people of each; none if it is one."""
    records, width = cube.records, len(cube.domains) + len(cube.others)
    for start in range(0, records.count, CHUNK):
        rows = records.read(start, min(start + CHUNK, records.count))
        people = rows[width].astype(np.uint32) | (rows[width + 1].astype(np.uint32) << 16) if cube.counted else NONE
        yield rows[:width], people


class SensitiveValues:
    """The combinations of sensitive values that occur, numbered in their order: codes [others of the cube, them]."""

    def __init__(self, cube: Cube) -> None:
        sizes = [other.size for other in cube.others]
        self.codes = np.arange(sizes[0], dtype=np.uint16)[None, :]
        self._index: CellIndex | None = None
        if len(sizes) > 1:
            found = [np.unique(rows[len(cube.domains) :], axis=1) for rows, _ in read(cube)]
            self.codes = np.unique(np.concatenate(found, axis=1), axis=1)
            self._index = CellIndex(self.codes, sizes)

    def of(self, others: Codes) -> Counts:
        return others[0].astype(np.uint32) if self._index is None else self._index.find(others)

    def __len__(self) -> int:
        return self.codes.shape[1]


First = FrequencySet | Records


class FrequencySets:
    """Rolls frequency sets up from others. The first is one that every other can be made of."""

    def __init__(self, cube: Cube, levels: list[Levels], values: SensitiveValues | None, memory: int) -> None:
        self.levels, self.values, self.memory = levels, 1 if values is None else len(values), memory
        self.first: First = Records(cube, values)

    def collapse(self, levels: Node) -> None:
        """Replaces the first set by one at higher levels, if that must be much smaller, or costs little to try."""
        sizes = [column.size(level) for column, level in zip(self.levels, levels)]
        must = 2 * prod(sizes) * self.values <= self.first.entries
        if must or (levels != self.first.levels and self.first.entries <= CHEAP):
            self.first = self.roll_up(self.first, self.first.columns, levels)

    def roll_up(self, known: First, columns: tuple[int, ...], levels: Node) -> FrequencySet:
        """The frequency set of columns at levels, one for each, from one with more columns at lower levels."""
        sizes = [self.levels[j].size(level) for j, level in zip(columns, levels)]
        space = prod(sizes) * self.values
        if space > LARGEST:
            return self._by_columns(known, columns, levels)
        steps = self._steps(known, columns, levels, sizes)
        table = space <= max(min(DENSE * known.entries, self.memory // 16), FEW)  # a counter has 4 bytes
        cell, count = self._in_table(known, steps, space) if table else self._sorted(known, steps)
        value = NONE
        if self.values > 1:
            value = (cell % self.values).astype(np.uint32)
            cell //= self.values
        return _in_cells(columns, levels, sizes, cell, value, count)

    def _steps(self, known: First, columns: Sequence[int], levels: Node, sizes: list[int]) -> Steps:
        rows = [known.columns.index(j) for j in columns]
        tables = [
            self.levels[j].step(known.levels[row], level) * prod(sizes[at + 1 :])
            for at, (j, row, level) in enumerate(zip(columns, rows, levels))
        ]
        offset = np.cumsum([0, *map(len, tables[:-1])])
        return np.array(rows, np.int64), np.concatenate(tables), offset.astype(np.int64)

    def _in_table(self, known: First, steps: Steps, space: int) -> tuple[Ints, Counts]:
        counts = np.zeros(space, np.uint32)
        for cells, start, value, people in known.pieces():
            if start is None:
                kernels.count_cells(cells, *steps, value, self.values, people, counts)
            else:
                kernels.count_entries(cells, *steps, start, value, self.values, people, counts)
        at = np.flatnonzero(counts)
        return at, counts[at]

    def _sorted(self, known: First, steps: Steps) -> tuple[Ints, Counts]:
        key, people = self._keys(known, steps)
        if len(people):
            order = np.argsort(key)
            key, people = key[order], people[order]
        else:
            key.sort()
        new = np.append(True, key[1:] != key[:-1])
        if len(people):
            count = np.add.reduceat(people, np.flatnonzero(new)).astype(np.uint32)
        else:
            ends = np.append(np.flatnonzero(new).astype(np.uint32), np.uint32(len(key)))
            count = np.diff(ends)
        return key[new].view(np.int64), count

    def _refuse_large(self, known: First) -> None:
        """What is sorted is in memory: a number for each entry, its place and its people."""
        needed = 24 * known.entries
        if needed > self.memory:
            raise ResourceError(
                f"limits.memory: a frequency set of the lattice takes {needed // 1_000_000:,} MB beside the rest, and "
                f"{self.memory // 1_000_000:,} MB are left for it; raise limits.memory"
            )

    def _keys(self, known: First, steps: Steps) -> tuple[NDArray[np.uint64], Counts]:
        """The number of the cell and value of each entry, and its people; none if it is one each."""
        self._refuse_large(known)
        keys, weights, at = np.empty(known.entries, np.uint64), [], 0
        for cells, start, value, people in known.pieces():
            key = np.empty(cells.shape[1], np.uint64)
            kernels.cell_keys(cells, *steps, key)
            if start is not None:
                key = np.repeat(key, np.diff(start))
            own = keys[at : at + len(key)]
            own[:] = key
            if len(value):
                own *= np.uint64(self.values)
                own += value
            weights.append(people)
            at += len(key)
        return keys, np.concatenate([NONE, *weights])

    def exactly(self) -> tuple[Counts, int]:
        """The people of each different tuple of quasi-identifiers and sensitive values in the table, in their order,
        and how many people have quasi-identifiers that nobody else has."""
        known, columns = self.first, self.first.columns
        sizes = [self.levels[j].size(0) for j in columns]
        assert not any(known.levels), "only the values as they are tell what is exactly in the table"
        if prod(sizes) * self.values > LARGEST:
            found = self._by_columns(known, columns, known.levels)
            return found.count, int((found.n == 1).sum())
        key, count = self._sorted(known, self._steps(known, columns, known.levels, sizes))
        alone = count == 1
        key //= self.values
        new = np.append(True, key[1:] != key[:-1])
        alone &= new & np.append(new[1:], True)
        return count, int(alone.sum())

    def _by_columns(self, known: First, columns: tuple[int, ...], levels: Node) -> FrequencySet:
        """A roll-up where cells are too many to be numbered."""
        steps = [
            (known.columns.index(j), self.levels[j].step(known.levels[known.columns.index(j)], level))
            for j, level in zip(columns, levels)
        ]
        parts = []
        for cells, start, value, people in known.pieces():
            rows = [step[cells[at]] for at, step in steps]
            if start is not None:
                rows = [np.repeat(row, np.diff(start)) for row in rows]
            rows.append(value if len(value) else np.zeros(len(rows[0]), np.int64))
            parts.append(np.stack([*rows, people if len(people) else np.ones(len(rows[0]), np.int64)]))
        found = np.concatenate(parts, axis=1)
        found = found[:, np.lexsort(found[-2::-1])]
        new = np.append(True, (found[:-2, 1:] != found[:-2, :-1]).any(axis=0))
        first = np.flatnonzero(new | np.append(True, found[-2, 1:] != found[-2, :-1]))
        cell, count = np.cumsum(new)[first] - 1, np.add.reduceat(found[-1], first).astype(np.uint32)
        value = found[-2, first].astype(np.uint32) if self.values > 1 else NONE
        start, at = _starts(cell, value)
        cells = np.ascontiguousarray(found[:-2, first[at]].astype(np.uint16))
        return FrequencySet(columns, levels, cells, start, value, count)


def _in_cells(
    columns: tuple[int, ...], levels: Node, sizes: list[int], cell: Ints, value: Counts, count: Counts
) -> FrequencySet:
    """A frequency set from the numbers of cells, in order, one for each entry."""
    start, at = _starts(cell, value)
    cell = cell[at]
    cells = np.empty((len(sizes), len(cell)), np.uint16)
    for j in range(len(sizes) - 1, 0, -1):
        above = cell // sizes[j]
        cells[j], cell = cell - above * sizes[j], above
    cells[0] = cell
    return FrequencySet(columns, levels, cells, start, value, count)


def _starts(cell: Ints, value: Counts) -> tuple[Ints | None, Ints | slice]:
    """Where the entries of each cell begin, and the first of each."""
    if not len(value):
        return None, slice(None)
    first = np.flatnonzero(np.append(True, cell[1:] != cell[:-1]))
    return np.append(first, len(cell)), first


class Known:
    """The frequency sets of some columns that are known so far."""

    def __init__(self, sets: FrequencySets, columns: tuple[int, ...]) -> None:
        self.sets, self.columns = sets, columns
        self._known: list[FrequencySet] = []
        self._levels = np.empty((0, len(columns)), np.int64)

    def at(self, levels: Node) -> FrequencySet:
        """The set at some levels, rolled up from the smallest that lies below."""
        below = [self._known[i] for i in np.flatnonzero((self._levels <= np.array(levels)).all(axis=1))]
        smallest = min([self.sets.first, *below], key=lambda known: known.entries)
        found = self.sets.roll_up(smallest, self.columns, levels)
        self._keep(found)
        return found

    def _keep(self, found: FrequencySet) -> None:
        """Remembers a set; the largest are forgotten first where memory is short."""
        self._known.append(found)
        while sum(known.bytes for known in self._known) > self.sets.memory // 4:
            self._known.remove(max(self._known, key=lambda known: known.bytes))
        self._levels = np.array([known.levels for known in self._known], np.int64).reshape(-1, len(self.columns))
