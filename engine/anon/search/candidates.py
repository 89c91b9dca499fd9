"""*Evaluate* of the partition search: candidate splits of many nodes at once, with the histograms of their children.
What is found here depends on the records of each node alone."""

from __future__ import annotations

import copy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from anon.cube import Cube, Records
from anon.search import kernels

Ints = NDArray[np.int64]


@dataclass
class Nodes:
    """Open nodes: their ranges of records, their cells, and what occurs in them."""

    start: Ints
    stop: Ints
    cell_low: Ints  # [nodes, columns]
    cell_high: Ints
    low: Ints  # [nodes, columns] lowest code that occurs
    high: Ints
    people: Ints

    def __len__(self) -> int:
        return len(self.start)


@dataclass
class Splits:
    """Candidate splits, each into parts of one node along one column; the parts of split i start at part_start[i]."""

    node: Ints
    column: Ints
    part_start: Ints
    low: Ints  # [parts] the cell of each part in the split's column
    high: Ints
    counts: dict[int, Ints]  # per column of the cube's others: people by code [parts, codes]
    safe: NDArray[np.bool_] = field(init=False)  # [parts] by every criterion that is not monotone

    def __post_init__(self) -> None:
        self.safe = np.ones(len(self.low), bool)

    def __len__(self) -> int:
        return len(self.node)

    @property
    def owner(self) -> Ints:
        return np.repeat(np.arange(len(self)), np.diff(self.part_start))

    def cuts(self) -> tuple[Ints, Ints]:
        """The first codes of all parts but the first of each split (CSR)."""
        inner = np.ones(len(self.low), bool)
        inner[self.part_start[:-1]] = False
        return self.part_start - np.arange(len(self.part_start)), self.low[inner]

    def take(self, index: Ints) -> Splits:
        """Some of the splits, without their histograms."""
        parts = np.diff(self.part_start)[index]
        rows = _ranges(self.part_start[index], parts)
        start = np.append(0, np.cumsum(parts))
        taken = Splits(self.node[index], self.column[index], start, self.low[rows], self.high[rows], {})
        taken.safe = self.safe[rows]
        return taken

    @staticmethod
    def concatenate(batches: list[Splits]) -> Splits:
        """The splits of several batches, without their histograms."""
        empty = np.empty(0, np.int64)
        node, column, parts, low, high = (
            np.concatenate([empty, *arrays])
            for arrays in (
                [b.node for b in batches],
                [b.column for b in batches],
                [np.diff(b.part_start) for b in batches],
                [b.low for b in batches],
                [b.high for b in batches],
            )
        )
        taken = Splits(node, column, np.append(0, np.cumsum(parts)), low, high, {})
        taken.safe = np.concatenate([np.empty(0, bool), *(b.safe for b in batches)])
        return taken

    def children(self, index: int, column: int) -> Ints:
        """The counts of the children of one split."""
        return self.counts[column][self.part_start[index] : self.part_start[index + 1]]


@dataclass(frozen=True)
class Boundaries:
    """Boundaries between codes that occur in a node, per node nearest to the median first, ties to the lower."""

    node: Ints
    cut: Ints  # the first code of the upper side

    def rank(self) -> Ints:
        """The place of each boundary among those of its node, 0 for the nearest."""
        return np.arange(len(self.node)) - np.searchsorted(self.node, self.node)

    def first(self) -> Boundaries:
        """The nearest boundary of every node that has one."""
        nearest = self.rank() == 0
        return Boundaries(self.node[nearest], self.cut[nearest])


class Evaluator:
    """Evaluates splits of nodes over the records, spread over threads."""

    def __init__(self, cube: Cube, value_columns: list[int], least: int, threads: int) -> None:
        """`value_columns`: which columns after the quasi-identifiers to count; `least`: people in any safe group."""
        self.cube, self.least, self.threads = cube, least, threads
        self.columns = len(cube.domains)
        self.sizes = {index: cube.others[index].size for index in value_columns}
        self.pool = ThreadPoolExecutor(threads)
        self.records: Records = cube.records

    def counting(self, value_column: int | None) -> Evaluator:
        """The same records, with only one column counted (any, if people are all that matters) and no least size."""
        other = copy.copy(self)
        column = min(self.sizes) if value_column is None else value_column
        other.sizes, other.least = {column: self.cube.others[column].size}, 1
        return other

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(self, *failure: object) -> None:
        self.pool.shutdown(cancel_futures=True)

    def _spread(self, start: Ints, stop: Ints, work: Callable[[int, int], None]) -> None:
        """Runs work(first, last) over ranges of nodes with about the same number of records, one per thread."""
        done = np.cumsum(stop - start)
        inner = np.searchsorted(done, done[-1] / self.threads * np.arange(1, self.threads)) if len(done) else []
        edges = [0, *inner, len(start)]
        list(self.pool.map(lambda a, b: work(a, b) if a < b else None, edges[:-1], edges[1:]))

    def nodes(self, start: Ints, stop: Ints, cell_low: Ints, cell_high: Ints) -> Nodes:
        low, high = np.empty_like(cell_low), np.empty_like(cell_high)
        people = np.empty(len(start), np.int64)

        def work(a: int, b: int) -> None:
            kernels.bounds(*self._data, start[a:b], stop[a:b], low[a:b], high[a:b], people[a:b])

        self._spread(start, stop, work)
        return Nodes(start, stop, cell_low, cell_high, low, high, people)

    @property
    def _data(self) -> tuple[NDArray[np.uint16], NDArray[np.uint32]]:
        return self.records.codes, self.records.people

    def boundaries(self, nodes: Nodes, which: Ints, column: Ints) -> Boundaries:
        """The boundaries in one column per node that leave enough people on both sides."""
        start, stop = nodes.start[which], nodes.stop[which]
        room = np.zeros(len(which) + 1, np.int64)
        np.cumsum(np.minimum(stop - start, nodes.high[which, column] - nodes.low[which, column] + 1), out=room[1:])
        code, count = np.empty(room[-1], np.int64), np.empty(room[-1], np.int64)
        used = np.empty(len(which), np.int64)

        def work(a: int, b: int) -> None:
            kernels.code_counts(*self._data, start[a:b], stop[a:b], column[a:b], room[a:b], code, count, used[a:b])

        self._spread(start, stop, work)
        owner = np.repeat(np.arange(len(which)), used)
        at = _ranges(room[:-1], used)
        code, count = code[at], count[at]
        ends = np.cumsum(used)
        left = np.cumsum(count)
        left -= np.repeat(np.append(0, left)[ends - used], used)
        total = nodes.people[which][owner]
        inside = np.ones(len(owner), bool)
        inside[ends - 1] = False
        inside &= (left >= self.least) & (total - left >= self.least)
        keep = np.flatnonzero(inside)
        order = np.lexsort((code[keep], np.abs(2 * left - total)[keep], owner[keep]))
        keep = keep[order]
        return Boundaries(which[owner[keep]], (code[keep] + code[keep + 1] + 1) // 2)

    def cut_once(self, nodes: Nodes, boundaries: Boundaries, column: Ints) -> Splits:
        """One split in two per boundary, several per node allowed; `column` per boundary. Kept in the given order."""
        order = np.lexsort((boundaries.cut, boundaries.node))
        node, cut = boundaries.node[order], boundaries.cut[order]
        which, first = np.unique(node, return_index=True)
        cut_start = np.append(first, len(node)).astype(np.int64)
        parts = np.diff(cut_start) + 1
        counts = {}
        for value_column in self.sizes:
            found = self._part_counts(nodes, which, column[order][first], cut_start, cut, value_column)
            counts[value_column] = _sides(found, parts, order)
        chosen = np.arange(len(node))
        low = np.stack([nodes.cell_low[boundaries.node, column], boundaries.cut], axis=1).ravel()
        high = np.stack([boundaries.cut - 1, nodes.cell_high[boundaries.node, column]], axis=1).ravel()
        return Splits(boundaries.node, column, 2 * np.append(chosen, len(node)), low, high, counts)

    def split_whole(self, nodes: Nodes, which: Ints, column: Ints) -> Splits:
        """The split of a hierarchy column: its lowest node that covers the members, into its non-empty children."""
        part_start, low, high = self._children(column, nodes.low[which, column], nodes.high[which, column])
        cut_start, cut = Splits(which, column, part_start, low, high, {}).cuts()
        counts = {v: self._part_counts(nodes, which, column, cut_start, cut, v) for v in self.sizes}
        some = next(iter(counts.values())).any(axis=1)
        kept = np.append(0, np.cumsum(some))[part_start]
        return Splits(which, column, kept, low[some], high[some], {v: c[some] for v, c in counts.items()})

    def _children(self, column: Ints, low: Ints, high: Ints) -> tuple[Ints, Ints, Ints]:
        """The cells of the children of the lowest hierarchy node that covers low..high, per element (CSR)."""
        parts, of_column = np.zeros(len(column), np.int64), {}
        for j in np.unique(column).tolist():
            tree, at = self.cube.domains[j].tree, np.flatnonzero(column == j)
            assert tree is not None
            cover = tree.common(low[at], high[at])
            first, count = tree.child_start[cover], np.diff(tree.child_start)[cover]
            parts[at] = count
            of_column[j] = (at, tree, tree.child[_ranges(first.astype(np.int64), count.astype(np.int64))])
        start = np.append(0, np.cumsum(parts))
        cell_low, cell_high = np.empty(start[-1], np.int64), np.empty(start[-1], np.int64)
        for at, tree, children in of_column.values():
            rows = _ranges(start[at], parts[at])
            cell_low[rows], cell_high[rows] = tree.low[children], tree.high[children]
        return start, cell_low, cell_high

    def _part_counts(self, nodes: Nodes, which: Ints, column: Ints, cut_start: Ints, cut: Ints, value: int) -> Ints:
        """People by sensitive value in the parts of each node between its cuts [parts, values]."""
        start, stop = nodes.start[which], nodes.stop[which]
        part_start = cut_start + np.arange(len(cut_start))
        counts = np.zeros((part_start[-1], self.sizes[value]), np.int64)

        def work(a: int, b: int) -> None:
            rows = counts[part_start[a] : part_start[b]]
            cuts = cut_start[a : b + 1]
            kernels.part_counts(*self._data, start[a:b], stop[a:b], column[a:b], cuts, cut, self.columns + value, rows)

        self._spread(start, stop, work)
        return counts

    def route(self, nodes: Nodes, splits: Splits) -> tuple[Ints, Ints]:
        """Moves the records of the split nodes into their children and drops all others; the children's ranges."""
        start, stop, column = nodes.start[splits.node], nodes.stop[splits.node], splits.column
        cut_start, cut = splits.cuts()
        codes, people = self._data
        sizes = np.zeros(splits.part_start[-1], np.int64)
        part = splits.part_start

        def measure(a: int, b: int) -> None:
            rows = sizes[part[a] : part[b]]
            kernels.part_sizes(codes, start[a:b], stop[a:b], column[a:b], cut_start[a : b + 1], cut, rows)

        self._spread(start, stop, measure)
        begin = np.cumsum(sizes) - sizes
        total, place = int(sizes.sum()), begin.copy()
        new = Records(np.empty((total, codes.shape[1]), np.uint16), np.empty(total, np.uint32))

        def move(a: int, b: int) -> None:
            rows, cuts = place[part[a] : part[b]], cut_start[a : b + 1]
            kernels.route(codes, people, start[a:b], stop[a:b], column[a:b], cuts, cut, rows, new.codes, new.people)

        self._spread(start, stop, move)
        self.records = new
        return begin, begin + sizes


def _ranges(start: Ints, length: Ints) -> Ints:
    """start[0], start[0] + 1, ... (length[0] of them), then the same from start[1], and so on.

    >>> _ranges(np.array([5, 0]), np.array([2, 3]))
    array([5, 6, 0, 1, 2])
    """
    return np.arange(length.sum()) + np.repeat(start - (np.cumsum(length) - length), length)


def _sides(counts: Ints, parts: Ints, order: Ints) -> Ints:
    """From the parts between all cuts of a node to both sides of each single cut, in the order of `order`."""
    ends = np.cumsum(parts)
    below = np.vstack([np.zeros((1, counts.shape[1]), np.int64), np.cumsum(counts, axis=0)])
    before = below[ends - parts]
    total = below[ends] - before
    last = np.zeros(len(counts), bool)
    last[ends - 1] = True
    node = np.repeat(np.arange(len(parts)), parts - 1)
    left = below[1:][~last] - before[node]
    sides = np.empty((2 * len(order), counts.shape[1]), np.int64)
    sides[2 * order], sides[2 * order + 1] = left, total[node] - left
    return sides
