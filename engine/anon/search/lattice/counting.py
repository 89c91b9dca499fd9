"""The counted entries of a frequency set: the number of each cell and sensitive value, in order, with its people. They
are stored in one of three forms: a table of counters if there are few possible numbers, sorted numbers, or if these do
not fit in memory a table of DuckDB (spill.py); on a cluster there is one more
(anon.backends.spark.frequency_sets). Reading them gives the same parts in each form.

Where individuals have several values, people are not the sum of their occurrences. They are counted in a separate
entry, under one more value after the last, so that every cell ends with one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from anon.core.arrays import Codes, Flags, Ints
from anon.core.cell_index import LARGEST
from anon.search.lattice import kernels

Counts = NDArray[np.uint32]
Words = NDArray[np.uint64]  # [words, entries]
Block = tuple[Words, Counts]  # some entries in order: their numbers and their people

PART = 2**16  # entries of a part, which has whole cells
NONE = np.empty(0, np.uint32)


@dataclass(frozen=True)
class CellPart:
    """Some cells, and for each the sensitive values that occur in it."""

    cells: Codes  # [columns, cells]
    start: Ints | None  # the first entry of each cell; None: one entry per cell
    value: Counts  # per entry, empty if values are not distinguished
    count: Counts  # people per entry; empty: one each
    several: bool = False  # entries count occurrences, except that the last of each cell counts its people

    @property
    def bytes(self) -> int:
        return sum(array.nbytes for array in (self.cells, self.start, self.value, self.count) if array is not None)

    @cached_property
    def n(self) -> Ints:
        """Return the people of each cell."""
        count = self.count.astype(np.int64)
        if self.start is None:
            return count
        return count[self.start[1:] - 1] if self.several else np.add.reduceat(count, self.start[:-1])

    @cached_property
    def rows(self) -> int:
        """Return the number of all occurrences of values: that of the people, where everyone has one value."""
        return int(self.count.sum(dtype=np.int64)) - (int(self.n.sum()) if self.several else 0)

    def histograms(self) -> tuple[Ints, Counts, Counts]:
        """Return the index of the first value of each cell, the values, and their counts."""
        if self.start is None:
            return np.arange(len(self.count) + 1), np.zeros(len(self.count), np.uint32), self.count
        if not self.several:
            return self.start, self.value, self.count
        values = np.ones(len(self.count), bool)
        values[self.start[1:] - 1] = False
        return self.start - np.arange(len(self.start)), self.value[values], self.count[values]

    def where(self, kept: Flags) -> CellPart:
        """Return the part with only the marked cells."""
        if kept.all():
            return self
        if self.start is None:
            return CellPart(self.cells[:, kept], None, self.value, self.count[kept])
        entries = np.diff(self.start)
        of = np.repeat(kept, entries)
        start = np.append(0, np.cumsum(entries[kept]))
        return CellPart(self.cells[:, kept], start, self.value[of], self.count[of], self.several)


class CountedEntries(Protocol):
    """Stored entries. `bytes` is the memory of this process that they take."""

    entries: int
    bytes: int

    def blocks(self) -> Iterator[Block]:
        """Yield the entries in order, some at a time."""

    def close(self) -> None:
        """Free the storage."""


class CounterTable:
    """A counter for every possible number."""

    def __init__(self, counts: Counts) -> None:
        self.counts, self.entries, self.bytes = counts, int(np.count_nonzero(counts)), counts.nbytes

    def blocks(self) -> Iterator[Block]:
        for first in range(0, len(self.counts), 4 * PART):
            counts = self.counts[first : first + 4 * PART]
            at = np.flatnonzero(counts)
            yield (at + first).view(np.uint64)[None, :], counts[at]

    def close(self) -> None:
        self.counts = NONE


class SortedEntries:
    """Sorted numbers with their people, equal ones combined."""

    def __init__(self, words: Words, people: Counts) -> None:
        """Take the arrays, in any order, and overwrite them; an empty `people` means one each."""
        people = sort(words, people)
        self.entries = kernels.collapse(words, people)
        self.words, self.people = words[:, : self.entries], people[: self.entries]
        self.bytes = words.nbytes + people.nbytes

    def blocks(self) -> Iterator[Block]:
        for first in range(0, self.entries, PART):
            yield self.words[:, first : first + PART], self.people[first : first + PART]

    def close(self) -> None:
        self.words, self.people = np.empty((1, 0), np.uint64), NONE


def sort(words: Words, people: Counts) -> Counts:
    """Sort numbers in place; return their people in the same order."""
    if len(words) == 1 and not len(people):
        words[0].sort()
        return np.ones(words.shape[1], np.uint32)
    order = np.argsort(words[0]) if len(words) == 1 else np.lexsort(words[::-1])
    for word in words:
        word[:] = word[order]
    return people[order] if len(people) else np.ones(words.shape[1], np.uint32)


def sorting_takes(entries: int, words: int, people: bool) -> int:
    """Return the bytes of memory that sorting entries takes."""
    return entries * (8 * words + 4 + (20 if people or words > 1 else 0))


@dataclass(frozen=True)
class Numbering:
    """Numbers for the combinations of the nodes of some columns, of which `sizes` has the numbers, and of a sensitive
    value: digits of a mixed base, the value last. They take one word, or several where needed."""

    sizes: tuple[int, ...]
    values: int = 1
    several: bool = False  # the last of the values stands for people

    @property
    def space(self) -> int:
        return prod(self.sizes) * self.values

    @cached_property
    def words(self) -> list[range]:
        """Return the digits of each word: positions of columns, and one more than the last for the value."""
        ends, space = [0], 1
        for place, size in enumerate((*self.sizes, self.values)):
            if space * size > LARGEST and ends[-1] < place:
                ends.append(place)
                space = 1
            space *= size
        return [range(*both) for both in zip(ends, [*ends[1:], len(self.sizes) + 1])]

    def weight(self, place: int) -> int:
        """Return the weight of a digit in its word."""
        word = next(word for word in self.words if place in word)
        return prod((*self.sizes, self.values)[place + 1 : word.stop])

    def parts(self, blocks: Iterator[Block]) -> Iterator[CellPart]:
        """Yield entries as parts, which do not depend on how the blocks were cut."""
        for words, count in self.whole_cells(blocks):
            yield self.part(words, count)

    def whole_cells(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """Yield the entries, cut after the cell that completes a part."""
        words, count = np.empty((len(self.words), 0), np.uint64), NONE
        for more, people in blocks:
            words, count = np.concatenate([words, more], axis=1), np.append(count, people)
            while len(count) > PART:
                new = self.new_cells(words[:, PART - 1 :])[1:]
                if not new.any():
                    break
                at = PART + int(new.argmax())
                yield words[:, :at], count[:at]
                words, count = words[:, at:], count[at:]
        if len(count):
            yield words, count

    def new_cells(self, words: Words) -> Flags:
        """Return whether each entry is the first of its cell."""
        if self.values == 1:
            return np.ones(words.shape[1], bool)
        cell = words[-1].view(np.int64) // self.values
        return _new([*words[:-1], cell])

    def people(self, words: Words) -> Flags:
        """Return whether each entry counts all people of its cell: the last entry where individuals have several
        values, otherwise an only entry."""
        new = self.new_cells(words)
        last = np.append(new[1:], True)
        return last if self.several else new & last

    def part(self, words: Words, count: Counts) -> CellPart:
        """Return entries as a part; a cell whose entries are not adjacent occurs several times in it."""
        numbers = words.view(np.int64)
        if self.values == 1:
            return CellPart(self._cells(numbers), None, NONE, count)
        cell = numbers[-1] // self.values
        value = (numbers[-1] - cell * self.values).astype(np.uint32)
        first = np.flatnonzero(_new([*numbers[:-1], cell]))
        cells = self._cells(np.concatenate([numbers[:-1, first], cell[None, first]]))
        return CellPart(cells, np.append(first, len(count)), value, count, self.several)

    def _cells(self, numbers: Ints) -> Codes:
        """Return the nodes of cells [columns, cells], from words without the value."""
        cells = np.empty((len(self.sizes), numbers.shape[1]), np.uint16)
        for word, number in zip(self.words, numbers):
            places = [place for place in word if place < len(self.sizes)]
            for place in places[:0:-1]:
                above = number // self.sizes[place]
                cells[place], number = number - above * self.sizes[place], above
            if places:
                cells[places[0]] = number
        return cells


def _new(words: Sequence[NDArray[Any]]) -> Flags:
    """Return whether each number differs from the previous one."""
    new = np.zeros(len(words[0]), bool)
    new[:1] = True
    for word in words:
        new[1:] |= word[1:] != word[:-1]
    return new
