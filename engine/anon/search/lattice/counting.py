"""The entries of a frequency set as they are counted: the number of each cell and sensitive value, in order, with its
people. They live in one of three places: a table of counters where numbers are few, sorted numbers, or where these do
not fit in memory a table of DuckDB (spill.py); on a cluster there is one more (anon.backends.spark.entries). Whoever
reads them gets the same parts from each.

Where individuals have several values, people are not the sum of their occurrences. They are counted in an entry of
their own, under one more value after the last, so that every cell ends in one."""

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
class Part:
    """Some cells, and of each the sensitive values that occur in it."""

    cells: Codes  # [columns, cells]
    start: Ints | None  # of each cell the first of its entries; None: one entry per cell
    value: Counts  # per entry, empty if values are not told apart
    count: Counts  # people per entry; empty: one each
    several: bool = False  # entries count occurrences, but the last of each cell its people

    @property
    def bytes(self) -> int:
        return sum(array.nbytes for array in (self.cells, self.start, self.value, self.count) if array is not None)

    @cached_property
    def n(self) -> Ints:
        """The people of each cell."""
        count = self.count.astype(np.int64)
        if self.start is None:
            return count
        return count[self.start[1:] - 1] if self.several else np.add.reduceat(count, self.start[:-1])

    @cached_property
    def rows(self) -> int:
        """All occurrences of values: where everybody has one, as many as people."""
        return int(self.count.sum(dtype=np.int64)) - (int(self.n.sum()) if self.several else 0)

    def histograms(self) -> tuple[Ints, Counts, Counts]:
        """Of each cell the first of its values, these, and how often each occurs."""
        if self.start is None:
            return np.arange(len(self.count) + 1), np.zeros(len(self.count), np.uint32), self.count
        if not self.several:
            return self.start, self.value, self.count
        values = np.ones(len(self.count), bool)
        values[self.start[1:] - 1] = False
        return self.start - np.arange(len(self.start)), self.value[values], self.count[values]

    def where(self, kept: Flags) -> Part:
        """Some of its cells."""
        if kept.all():
            return self
        if self.start is None:
            return Part(self.cells[:, kept], None, self.value, self.count[kept])
        entries = np.diff(self.start)
        of = np.repeat(kept, entries)
        start = np.append(0, np.cumsum(entries[kept]))
        return Part(self.cells[:, kept], start, self.value[of], self.count[of], self.several)


class Counted(Protocol):
    """Entries in a place. `bytes` are those of our memory that they take."""

    entries: int
    bytes: int

    def blocks(self) -> Iterator[Block]:
        """The entries in order, some at a time."""

    def close(self) -> None:
        """Gives back the place."""


class Counters:
    """A counter for every number there could be."""

    def __init__(self, counts: Counts) -> None:
        self.counts, self.entries, self.bytes = counts, int(np.count_nonzero(counts)), counts.nbytes

    def blocks(self) -> Iterator[Block]:
        for first in range(0, len(self.counts), 4 * PART):
            counts = self.counts[first : first + 4 * PART]
            at = np.flatnonzero(counts)
            yield (at + first).view(np.uint64)[None, :], counts[at]

    def close(self) -> None:
        self.counts = NONE


class Sorted:
    """Numbers that were sorted, equal ones counted."""

    def __init__(self, words: Words, people: Counts) -> None:
        """Takes the arrays over, in any order; no people: one each."""
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
    """Brings numbers in order, in place; their people in the same order."""
    if len(words) == 1 and not len(people):
        words[0].sort()
        return np.ones(words.shape[1], np.uint32)
    order = np.argsort(words[0]) if len(words) == 1 else np.lexsort(words[::-1])
    for word in words:
        word[:] = word[order]
    return people[order] if len(people) else np.ones(words.shape[1], np.uint32)


def sorting_takes(entries: int, words: int, people: bool) -> int:
    """Bytes that it takes to sort entries."""
    return entries * (8 * words + 4 + (20 if people or words > 1 else 0))


@dataclass(frozen=True)
class Numbering:
    """Numbers for the combinations of the nodes of some columns, of so many each, and of a sensitive value: digits of
    a mixed base, the value last. They take one word, or as many more as are needed."""

    sizes: tuple[int, ...]
    values: int = 1
    several: bool = False  # the last of the values stands for people

    @property
    def space(self) -> int:
        return prod(self.sizes) * self.values

    @cached_property
    def words(self) -> list[range]:
        """The digits of each word: places of columns, one more than the last for the value."""
        ends, space = [0], 1
        for place, size in enumerate((*self.sizes, self.values)):
            if space * size > LARGEST and ends[-1] < place:
                ends.append(place)
                space = 1
            space *= size
        return [range(*both) for both in zip(ends, [*ends[1:], len(self.sizes) + 1])]

    def weight(self, place: int) -> int:
        """What one more of a digit adds to its word."""
        word = next(word for word in self.words if place in word)
        return prod((*self.sizes, self.values)[place + 1 : word.stop])

    def parts(self, blocks: Iterator[Block]) -> Iterator[Part]:
        """Entries as parts. These do not depend on how the blocks were cut."""
        for words, count in self.whole_cells(blocks):
            yield self.part(words, count)

    def whole_cells(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """The entries cut after the first cell that makes up a part."""
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
        """Whether each entry is the first of its cell."""
        if self.values == 1:
            return np.ones(words.shape[1], bool)
        cell = words[-1].view(np.int64) // self.values
        return _new([*words[:-1], cell])

    def people(self, words: Words) -> Flags:
        """Whether each entry counts all people of its cell: the last where they have several values, else the only."""
        new = self.new_cells(words)
        last = np.append(new[1:], True)
        return last if self.several else new & last

    def part(self, words: Words, count: Counts) -> Part:
        """Entries as a part; of cells that lie apart the entries are in several."""
        numbers = words.view(np.int64)
        if self.values == 1:
            return Part(self._cells(numbers), None, NONE, count)
        cell = numbers[-1] // self.values
        value = (numbers[-1] - cell * self.values).astype(np.uint32)
        first = np.flatnonzero(_new([*numbers[:-1], cell]))
        cells = self._cells(np.concatenate([numbers[:-1, first], cell[None, first]]))
        return Part(cells, np.append(first, len(count)), value, count, self.several)

    def _cells(self, numbers: Ints) -> Codes:
        """The nodes of cells [columns, cells], from words without the value."""
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
    """Whether each number is another than the one before."""
    new = np.zeros(len(words[0]), bool)
    new[:1] = True
    for word in words:
        new[1:] |= word[1:] != word[:-1]
    return new
