"""Pass over records in memory or on disk: several threads process them in chunks, with the current node of each record
in the tree so far, and read only the columns that are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from anon.core.arrays import Codes, Flags, Ints
from anon.cube.records import WIDE, Records
from anon.recoding.kernels import walk
from anon.search.partition import kernels

CHUNK = 2**18  # records that a thread takes at a time, or fewer where they are wide
CHUNK_BYTES = 5 * 2**20  # of these; much larger ones leave the caches
BEYOND = 2**32 - 1  # an edge that no code reaches

Tree = tuple[Ints, Ints, Ints, Ints, Flags]  # for recoding.kernels.walk
Node = NDArray[np.uint32]  # of each record


@dataclass(frozen=True)
class Descent:
    """The descent of records down a tree, from their current nodes. It nearly always passes at most one cut, which a
    loop without branches does in a third of the time."""

    tree: Tree
    step: tuple[NDArray[np.uint8], Node, Node] | None  # column, edge and first child of each node

    @classmethod
    def down(cls, tree: Tree, since: int = 0) -> Descent:
        """Return the descent in a tree; `since` is the number of nodes when the records reached their current ones."""
        column, cut_start, cut, child, peeled = tree
        split = np.flatnonzero((column >= 0) & (child >= since))
        below = child[split]
        single = (
            (np.diff(cut_start)[split] == 1)
            & ~peeled[split]
            & (column[below] < 0)
            & (child[below + 1] == child[below] + 1)
        )
        if not single.all() or (column[below + 1] >= 0).any():
            return cls(tree, None)
        by, edge, to = np.zeros(len(column), np.uint8), np.full(len(column), BEYOND, np.uint32), child.astype(np.uint32)
        by[split], edge[split], to[split] = column[split], cut[cut_start[split]], child[below]
        return cls(tree, (by, edge, to))

    def walk(self, codes: Codes, node: Node) -> None:
        """Walk records down to the nodes that they belong to."""
        if self.step is None:
            walk(codes, *self.tree, node)
        else:
            kernels.step(codes, *self.step, node)


class RecordChunk:
    """Consecutive records that a thread processes."""

    def __init__(self, records: Records, start: int, codes: Codes) -> None:
        self.records, self.start, self.codes = records, start, codes
        self.read: set[int] = set()

    def columns(self, wanted: Iterable[int]) -> Codes:
        """Return the codes of the records, of which at least these columns have been read."""
        missing = set(wanted) - self.read
        self.records.fill(self.start, self.codes, sorted(missing))
        self.read |= missing
        return self.codes


class PassCounters(Protocol):
    """The counters of a pass; those of several threads, or machines, are added up."""

    def add(self, other: Self) -> None: ...


C = TypeVar("C", bound=PassCounters)
T = TypeVar("T")
Work = Callable[[RecordChunk, Node], None]


class ReusePool(Generic[T]):
    """Objects that threads use and return, made when none is available: if the system had to allocate and clear new
    memory for every chunk or block, this would take a tenth of the time of a search."""

    def __init__(self, make: Callable[[], T]) -> None:
        self.make, self.available = make, list[T]()

    @contextmanager
    def one(self) -> Iterator[T]:
        """Yield an object that is available, or a new one, and take it back at the end."""
        try:
            item = self.available.pop()
        except IndexError:
            item = self.make()
        yield item
        self.available.append(item)


def shaped(buffer: NDArray[Any], width: int, records: int) -> NDArray[Any]:
    """Return the beginning of a buffer as an array of records."""
    return buffer[: width * records].reshape(width, records)


class Passes:
    """All passes of a search over its records. Between them, marks hold the current node of each record, in the
    smallest type that fits the number of nodes."""

    def __init__(self, records: Records, store: Callable[[list[int], str], Records], threads: int) -> None:
        """Take the records, and `store`, which allocates storage for the same number of records, given the number of
        codes of each column and a name."""
        self.records, self.store, self.threads = records, store, threads
        self.chunk = max(min(CHUNK, CHUNK_BYTES // (2 * records.width)), 1)
        self.marks = store([WIDE], "marks")
        self.marked = 1  # the number of nodes when the marks were made

    def over(self, work: Work, tree: Tree, size: int | None = None) -> None:
        """Call work(chunk, the node of each record) for all records, in chunks of a size."""
        column, child, count, size = tree[0], tree[3], self.records.count, size or self.chunk
        marks = self._marks(len(column))
        descent = Descent.down(tree, self.marked)
        entered = np.unique(column[(column >= 0) & (child >= self.marked)]).tolist()
        width = self.records.width
        scratches = ReusePool(lambda: np.empty(width * min(size, count), np.uint16))

        def each(start: int) -> None:
            length = min(size, count - start)
            with scratches.one() as scratch:
                chunk = RecordChunk(self.records, start, shaped(scratch, width, length))
                node = self.marks.read(start, start + length)[0].astype(np.uint32)
                if self.marked < len(column):
                    descent.walk(chunk.columns(entered), node)
                    marks.write(start, node[None].astype(marks.kind))
                work(chunk, node)

        with ThreadPoolExecutor(self.threads) as pool:
            for _ in pool.map(each, range(0, count, size)):
                pass
        if marks is not self.marks:
            self.marks.close()
        self.marks, self.marked = marks, len(column)

    def count(self, fresh: Callable[[], C], work: Callable[[RecordChunk, Node, C], None], tree: Tree) -> C:
        """Call work(chunk, the node of each record, counters) for all records; return the sum of all counters. The work
        may run on another machine, so it must capture nothing but what it needs."""
        counters = ReusePool(fresh)

        def each(chunk: RecordChunk, node: Node) -> None:
            with counters.one() as own:
                work(chunk, node, own)

        self.over(each, tree)
        done, *others = counters.available or [fresh()]
        for other in others:
            done.add(other)
        return done

    def _marks(self, nodes: int) -> Records:
        """Return the marks that a pass writes: wider ones when there are too many nodes."""
        if nodes > WIDE and self.marks.kind == np.uint16:
            return self.store([2**32], "wide-marks")
        return self.marks

    def close(self) -> None:
        self.marks.close()
