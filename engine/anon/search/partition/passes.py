"""Passes over records that lie anywhere, in memory or on disk: several threads take them in chunks, know the node of
the tree so far that each record has come to, and read no column that nobody asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from anon.core.arrays import Codes, Ints
from anon.cube.records import WIDE, Records
from anon.recoding.kernels import walk
from anon.search.partition import kernels

CHUNK = 2**18  # records that a thread takes at a time, or fewer where they are wide
CHUNK_BYTES = 5 * 2**20  # of these; much larger ones leave the caches
BEYOND = 2**32 - 1  # an edge that no code reaches

Tree = tuple[Ints, Ints, Ints, Ints]  # for recoding.kernels.walk
Node = NDArray[np.uint32]  # of each record


@dataclass(frozen=True)
class Way:
    """The way of records down a tree, from the nodes they have come to. It is nearly always over one cut at most, which
    a loop without branches takes in a third of the time."""

    tree: Tree
    step: tuple[NDArray[np.uint8], Node, Node] | None  # column, edge and first child of each node

    @classmethod
    def down(cls, tree: Tree, since: int = 0) -> Way:
        """`since`: how many nodes there were when the records came to theirs."""
        column, cut_start, cut, child = tree
        split = np.flatnonzero((column >= 0) & (child >= since))
        below = child[split]
        single = (np.diff(cut_start)[split] == 1) & (column[below] < 0) & (child[below + 1] == child[below] + 1)
        if not single.all() or (column[below + 1] >= 0).any():
            return cls(tree, None)
        by, edge, to = np.zeros(len(column), np.uint8), np.full(len(column), BEYOND, np.uint32), child.astype(np.uint32)
        by[split], edge[split], to[split] = column[split], cut[cut_start[split]], child[below]
        return cls(tree, (by, edge, to))

    def walk(self, codes: Codes, node: Node) -> None:
        """Takes records on to the nodes that they belong to."""
        if self.step is None:
            walk(codes, *self.tree, node)
        else:
            kernels.step(codes, *self.step, node)


class Chunk:
    """Consecutive records that a thread works on."""

    def __init__(self, records: Records, start: int, codes: Codes) -> None:
        self.records, self.start, self.codes = records, start, codes
        self.read: set[int] = set()

    def columns(self, wanted: Iterable[int]) -> Codes:
        """The codes of the records, of which these columns can be relied on."""
        missing = set(wanted) - self.read
        self.records.fill(self.start, self.codes, sorted(missing))
        self.read |= missing
        return self.codes


class Counters(Protocol):
    """What a pass counts in; the counters of several threads, or machines, are added up."""

    def add(self, other: Self) -> None: ...


C = TypeVar("C", bound=Counters)
T = TypeVar("T")
Work = Callable[[Chunk, Node], None]


class Spares(Generic[T]):
    """What threads use for a while and hand on, made where none is left: memory that the system gives anew, and clears,
    for every chunk or block takes a tenth of the time of a search."""

    def __init__(self, make: Callable[[], T]) -> None:
        self.make, self.left = make, list[T]()

    @contextmanager
    def one(self) -> Iterator[T]:
        try:
            thing = self.left.pop()
        except IndexError:
            thing = self.make()
        yield thing
        self.left.append(thing)


def shaped(room: NDArray[Any], width: int, records: int) -> NDArray[Any]:
    """The beginning of some room as an array of records."""
    return room[: width * records].reshape(width, records)


class Passes:
    """All passes of a search over its records. Between them, marks tell how far each record has come, in as few bytes
    as the nodes need."""

    def __init__(self, records: Records, room: Callable[[list[int], str], Records], threads: int) -> None:
        """`room`: a place for as many records with so many codes of each column, by name."""
        self.records, self.room, self.threads = records, room, threads
        self.chunk = max(min(CHUNK, CHUNK_BYTES // (2 * records.width)), 1)
        self.marks = room([WIDE], "marks")
        self.marked = 1  # nodes there were when the marks were made

    def over(self, work: Work, tree: Tree, size: int | None = None) -> None:
        """Calls work(chunk, the node of each record) for all records, in chunks of a size."""
        column, child, count, size = tree[0], tree[3], self.records.count, size or self.chunk
        marks = self._marks(len(column))
        way = Way.down(tree, self.marked)
        entered = np.unique(column[(column >= 0) & (child >= self.marked)]).tolist()
        width = self.records.width
        rooms = Spares(lambda: np.empty(width * min(size, count), np.uint16))

        def each(start: int) -> None:
            length = min(size, count - start)
            with rooms.one() as room:
                chunk = Chunk(self.records, start, shaped(room, width, length))
                node = self.marks.read(start, start + length)[0].astype(np.uint32)
                if self.marked < len(column):
                    way.walk(chunk.columns(entered), node)
                    marks.write(start, node[None].astype(marks.kind))
                work(chunk, node)

        with ThreadPoolExecutor(self.threads) as pool:
            for _ in pool.map(each, range(0, count, size)):
                pass
        if marks is not self.marks:
            self.marks.close()
        self.marks, self.marked = marks, len(column)

    def count(self, fresh: Callable[[], C], work: Callable[[Chunk, Node, C], None], tree: Tree) -> C:
        """Calls work(chunk, the node of each record, counters) for all records; the sum of all counters. It may be
        done elsewhere, so the work takes along nothing but what it needs."""
        counters = Spares(fresh)

        def each(chunk: Chunk, node: Node) -> None:
            with counters.one() as own:
                work(chunk, node, own)

        self.over(each, tree)
        done, *others = counters.left or [fresh()]
        for other in others:
            done.add(other)
        return done

    def _marks(self, nodes: int) -> Records:
        """The marks to be written by a pass: wider ones when the nodes have become too many."""
        if nodes > WIDE and self.marks.kind == np.uint16:
            return self.room([2**32], "wide-marks")
        return self.marks

    def close(self) -> None:
        self.marks.close()
