"""Frequency sets (LeFevre, DeWitt, Ramakrishnan 2005): the number of people with each combination of some columns at
some levels, and of these with each sensitive value; where individuals have several values, also the number of
occurrences of each. The first set is the records of the cube. Every other one is rolled up from a known set, and is in
the order of its cells whatever it was made from and wherever it is stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from math import fsum, log
from typing import NamedTuple

import numpy as np

from anon.core.arrays import Codes, Ints
from anon.core.cell_index import CellIndex
from anon.cube import Cube
from anon.cube.records import whole_numbers
from anon.recoding.levels import ColumnLevels
from anon.search.lattice import kernels
from anon.search.lattice.counting import (
    NONE,
    Block,
    CellPart,
    CountedEntries,
    CounterTable,
    Counts,
    Numbering,
    SortedEntries,
    sorting_takes,
)
from anon.search.lattice.spill import SpillDatabase

Node = tuple[int, ...]  # a level per column

CHUNK = 2**18  # records at a time
DENSE = 8  # counters per entry that is rolled up: up to this number, a table is faster than a sort
FEW = 2**14  # counters; up to this number a table is always used
CHEAP = 2**20  # entries that are rolled up in negligible time
MANY = 2**18  # entries; from this number on, several threads roll up faster
Steps = tuple[Ints, Ints, Ints]  # rows of columns, the addend of each of their nodes to a cell's number, their offsets


class FrequencySet:
    """The cells of some columns at some levels in their order, and for each the sensitive values that occur in it."""

    def __init__(self, columns: tuple[int, ...], levels: Node, numbering: Numbering, counted: CountedEntries) -> None:
        self.columns, self.levels, self.numbering = columns, levels, numbering
        self.entries = counted.entries
        self.counted: CountedEntries | None = counted
        self._parts: list[CellPart] = []

    @property
    def bytes(self) -> int:
        """Return the memory of this process that it takes."""
        return sum(part.bytes for part in self._parts) if self.counted is None else self.counted.bytes

    def load(self, limit: int) -> None:
        """Load its parts into memory if they take at most `limit` bytes."""
        columns, values = len(self.columns), self.numbering.values > 1
        if self.entries * (2 * columns + (16 if values else 4)) <= limit:
            self._parts = list(self.parts())
            self.close()

    def parts(self) -> Iterator[CellPart]:
        """Return an iterator over its cells, some at a time: the same parts wherever it is stored."""
        return iter(self._parts) if self.counted is None else self.numbering.parts(self.counted.blocks())

    def close(self) -> None:
        """Free the storage of the counted entries."""
        if self.counted is not None:
            self.counted.close()
        self.counted = None


class RecordSet:
    """The records of a cube as a frequency set at level 0, in any order and with cells that may occur repeatedly."""

    def __init__(self, cube: Cube, values: SensitiveValues | None) -> None:
        self.cube, self.values = cube, values
        self.columns = tuple(range(len(cube.domains)))
        self.levels = (0,) * len(self.columns)
        self.counted = cube.counted

    @cached_property
    def entries(self) -> int:
        if not self.cube.several:
            return self.cube.records.count
        with_people = sum(int(np.count_nonzero(people)) for _, people, _ in read(self.cube))
        return with_people if self.values is None else self.cube.records.count + with_people

    def parts(self) -> Iterator[CellPart]:
        for rows, people, times in read(self.cube):
            if self.values is not None:
                yield CellPart(rows, None, self.values.numbers_of(rows[len(self.columns) :]), times)
            if self.values is None or self.cube.several:
                yield self._people(rows[: len(self.columns)], people)

    def _people(self, rows: Codes, people: Counts) -> CellPart:
        """Return records with their people; where individuals have several values, some records have none."""
        if self.cube.several:
            rows, people = np.compress(people > 0, rows, axis=1), people[people > 0]
        value = NONE if self.values is None else np.full(len(people), len(self.values), np.uint32)
        return CellPart(rows, None, value, people)


def read(cube: Cube) -> Iterator[tuple[Codes, Counts, Counts]]:
    """Yield the records of a cube, some at a time: codes [columns, records], the people of each and the occurrences of
    its value; empty arrays if every record counts one."""
    records, width = cube.records, len(cube.domains) + len(cube.others)
    for start in range(0, records.count, CHUNK):
        rows = records.read(start, min(start + CHUNK, records.count))
        people = whole_numbers(rows[cube.people_at : cube.people_at + 2]) if cube.counted else NONE
        times = whole_numbers(rows[cube.values_at : cube.values_at + 2]) if cube.several else people
        yield rows[:width], people, times


class SensitiveValues:
    """The combinations of sensitive values that occur, numbered in order: codes [others of the cube, combinations]."""

    def __init__(self, cube: Cube) -> None:
        sizes = [other.size for other in cube.others]
        self.codes = np.arange(sizes[0], dtype=np.uint16)[None, :]
        self._index: CellIndex | None = None
        if len(sizes) > 1:
            self.codes = self._different(cube)
            self._index = CellIndex(self.codes, sizes)

    def _different(self, cube: Cube) -> Codes:
        return different(len(cube.others), (rows[len(cube.domains) :] for rows, *_ in read(cube)))

    def numbers_of(self, others: Codes) -> Counts:
        """Return the number of each combination of codes."""
        return others[0].astype(np.uint32) if self._index is None else self._index.find(others)

    def __len__(self) -> int:
        found: int = self.codes.shape[1]
        return found


First = FrequencySet | RecordSet


def different(width: int, blocks: Iterable[Codes]) -> Codes:
    """Return the distinct columns of arrays [width, some], in order."""
    found = np.empty((width, 0), np.uint16)
    for codes in blocks:
        found = np.unique(np.concatenate([found, codes], axis=1), axis=1)
    return found


class TableFacts(NamedTuple):
    """Facts about the original table: the sum of n log n over the distinct tuples of quasi-identifiers and sensitive
    values, where n is the count of each; the number of people with unique quasi-identifiers; and the number of distinct
    tuples."""

    log_sum: float
    unique: int
    tuples: int

    @classmethod
    def from_counts(cls, times: Counter[int], unique: int) -> TableFacts:
        """Return the facts, given the number of tuples for each count."""
        log_sum = fsum(n * tuples * log(n) for n, tuples in times.items())
        return cls(log_sum, unique, times.total())


class FrequencySets:
    """Rolls up frequency sets from others. The first is one from which every other can be made.

    Of the memory (bytes) a quarter is for the known sets, a quarter for counting and another for the counted entries,
    each shared by the threads; the last is for the database of sets that do not fit. Without a database all sets stay
    in memory."""

    def __init__(
        self,
        cube: Cube,
        levels: list[ColumnLevels],
        values: SensitiveValues | None,
        memory: int,
        threads: int = 1,
        spill: SpillDatabase | None = None,
    ) -> None:
        self.several = cube.several and values is not None  # people are counted under one more value
        self.levels, self.values = levels, 1 if values is None else len(values) + self.several
        self.memory, self.threads, self.spill = memory, threads, spill
        self.first: First = RecordSet(cube, values)

    @property
    def at_once(self) -> int:
        """Return the number of sets that are made at the same time."""
        return self.threads if self.first.entries >= MANY else 1

    @property
    def share(self) -> int:
        """Return the bytes of one thread for each of: the known sets, counting, and the counted entries."""
        return self.memory // 4 // self.at_once

    def collapse(self, levels: Node) -> None:
        """Replace the first set by one at higher levels, if that must be much smaller, or is cheap to try."""
        must = 2 * self._numbering(self.first.columns, levels).space <= self.first.entries
        if must or (levels != self.first.levels and self.first.entries <= CHEAP):
            before, self.first = self.first, self.roll_up(self.first, self.first.columns, levels)
            if isinstance(before, FrequencySet):
                before.close()

    def roll_up(self, known: First, columns: tuple[int, ...], levels: Node) -> FrequencySet:
        """Return the frequency set of columns at levels, one for each, from a set with more columns at lower levels."""
        numbering = self._numbering(columns, levels)
        counted = self._count(known, columns, levels, numbering, self.share)
        found = FrequencySet(columns, levels, numbering, counted)
        found.load(self.share)
        return found

    def table_facts(self) -> TableFacts:
        """Return the facts about the original table. To be called first, when nothing else takes memory."""
        known = self.first
        assert not any(known.levels), "facts about the table require the original values"
        numbering = self._numbering(known.columns, known.levels)
        counted = self._count(known, known.columns, known.levels, numbering, self.memory // 2)
        found = tally(numbering, counted.blocks())
        counted.close()
        return TableFacts.from_counts(*found)

    def _numbering(self, columns: tuple[int, ...], levels: Node) -> Numbering:
        sizes = tuple(self.levels[j].size(level) for j, level in zip(columns, levels))
        return Numbering(sizes, self.values, self.several)

    def _count(
        self, known: First, columns: tuple[int, ...], levels: Node, numbering: Numbering, limit: int
    ) -> CountedEntries:
        words, space = len(numbering.words), numbering.space
        steps = [self._steps(known, columns, levels, numbering, word) for word in numbering.words]
        if words == 1 and space <= max(min(DENSE * known.entries, limit // 4), FEW):  # a counter has 4 bytes
            return self._in_table(known, steps[0], space)
        people = isinstance(known, FrequencySet) or known.counted
        if self.spill is not None and sorting_takes(known.entries, words, people) > limit:
            return self.spill.counted(numbered(known.parts(), steps), words)
        return self._sorted(known, steps, people)

    def _steps(self, known: First, columns: tuple[int, ...], levels: Node, numbering: Numbering, word: range) -> Steps:
        rows, tables = [], []
        for place in word:
            if place < len(columns):
                rows.append(known.columns.index(columns[place]))
                step = self.levels[columns[place]].step(known.levels[rows[-1]], levels[place])
                tables.append(step * numbering.weight(place))
        offset = np.cumsum([0, *map(len, tables[:-1])])[: len(tables)]
        return np.array(rows, np.int64), np.concatenate([np.empty(0, np.int64), *tables]), offset.astype(np.int64)

    def _in_table(self, known: First, steps: Steps, space: int) -> CounterTable:
        counts = np.zeros(space, np.uint32)
        for part in known.parts():
            add_to_table(part, steps, counts)
        return CounterTable(counts)

    def _sorted(self, known: First, steps: list[Steps], people: bool) -> SortedEntries:
        words = np.empty((len(steps), known.entries), np.uint64)
        weights, at = np.empty(known.entries if people else 0, np.uint32), 0
        for block, count in numbered(known.parts(), steps):
            end = at + block.shape[1]
            words[:, at:end] = block
            weights[at:end] = count
            at = end
        return SortedEntries(words, weights)


def add_to_table(part: CellPart, steps: Steps, counts: Counts) -> None:
    """Add the people of a part to the counters of the cells into which it is rolled up."""
    if part.start is None:
        kernels.count_cells(part.cells, *steps, part.value, part.count, counts)
    else:
        kernels.count_entries(part.cells, *steps, part.start, part.value, part.count, counts)


def numbered(parts: Iterator[CellPart], steps: list[Steps]) -> Iterator[Block]:
    """Yield the numbers of the cell and value into which each entry is rolled up, and its people; an empty array if
    each counts one."""
    for part in parts:
        keys = np.empty((len(steps), part.cells.shape[1]), np.uint64)
        for key, own in zip(keys, steps):
            kernels.cell_keys(part.cells, *own, key)
        if part.start is not None:
            keys = np.repeat(keys, np.diff(part.start), axis=1)
        if len(part.value):
            keys[-1] += part.value
        yield keys, part.count


def tally(numbering: Numbering, blocks: Iterator[Block]) -> tuple[Counter[int], int]:
    """Return the number of entries, given in order, for each count, and the number of people alone in their cell."""
    times, alone = Counter[int](), 0
    for words, count in numbering.whole_cells(blocks):
        people = numbering.people(words)
        alone += int((people & (count == 1)).sum())
        n, entries = np.unique(count[~people] if numbering.several else count, return_counts=True)
        times.update(dict(zip(n.tolist(), entries.tolist())))
    return times, alone


class KnownSets:
    """The frequency sets of some columns that are known so far."""

    def __init__(self, sets: FrequencySets, columns: tuple[int, ...]) -> None:
        self.sets, self.columns = sets, columns
        self._known: list[FrequencySet] = []
        self._levels = np.empty((0, len(columns)), np.int64)
        self._bytes = 0

    def at(self, levels: Node) -> FrequencySet:
        """Return the set at some levels, rolled up from the smallest one below. It is valid until the next call."""
        if self._known:
            self._forget(self._known[-1])
        below = [self._known[i] for i in np.flatnonzero((self._levels <= np.array(levels)).all(axis=1))]
        smallest = min([self.sets.first, *below], key=lambda known: known.entries)
        found = self.sets.roll_up(smallest, self.columns, levels)
        self._known.append(found)
        self._levels = np.append(self._levels, [levels], axis=0)
        self._bytes += found.bytes
        return found

    def _forget(self, last: FrequencySet) -> None:
        """Drop the last set if it is on disk and not much smaller than the first one of all; and while memory is short
        the largest."""
        if not last.bytes and 2 * last.entries > self.sets.first.entries:
            self._drop(last)
        while self._bytes > self.sets.share:
            self._drop(max(self._known, key=lambda known: known.bytes))

    def _drop(self, known: FrequencySet) -> None:
        at = self._known.index(known)
        self._bytes -= known.bytes
        self._levels = np.delete(self._levels, at, axis=0)
        self._known.pop(at).close()

    def close(self) -> None:
        """Drop all sets."""
        for known in self._known:
            known.close()
        self._known = []
