"""Find the best minimal safe node without listing all minimal ones (`minimal: best`).

Nodes are visited in the order of a lower bound of the metric, then of their height, then of their levels. In this order
every node comes after all nodes below it, so a safe node that is not above one found earlier is minimal, whether or not
the criteria are monotone. The search ends at the first node whose bound, height and levels are not before the metric,
height and levels of the best node found: no later node can be chosen, and ties are broken as for `minimal: all`.

Criteria that prune need few checks: on a path from a node to the top they fail up to some node and hold from there on,
which a bisection finds; all nodes below the last that fails fail, and all nodes above the first that holds hold."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from contextlib import closing

import numpy as np
from numpy.typing import NDArray

from anon.core.arrays import Ints
from anon.recoding import metrics
from anon.recoding.levels import ColumnLevels
from anon.search.lattice.choice import PublishedTotals
from anon.search.lattice.frequency import KnownSets, Node
from anon.search.lattice.incognito import LatticeWalk

BLOCK = 2**12  # nodes of the order that are filtered at a time
SLACK = 1 - 2**-40  # more than sums of rounded numbers can differ by

Key = tuple[float, int, Node]  # a metric or its bound, the height and the levels
Bounds = NDArray[np.float64]


def bounds(columns: list[ColumnLevels], people: list[Ints], metric: str) -> Bounds:
    """Return a lower bound of the metric for each node: a sum with one term per column, which grows with its level.
    `people` has the people with each value of each column.

    The height of a node is such a sum. In the loss an individual contributes to each column the span of their label, as
    a share of the domain, or 1 if they are suppressed, which no span exceeds. So the loss of a column is at least what
    it is if nobody is suppressed, which depends on the level of this column only, and the loss of a node is at least
    the weighted mean of these. Nodes of a higher level cover those below them, so their spans are not less.

    It holds in floating point, too. Both losses of a column are quotients of whole numbers with the same denominator,
    correctly rounded, and rounding keeps their order. The two sums over columns add the same number of terms, each with
    a relative error of at most 2^-53 per term, for which `SLACK` allows. Sums of larger terms in the same order are not
    less after rounding, so that the bounds are in the order of the lattice.
    """
    if metric == "height":
        terms = [np.arange(column.height + 1, dtype=np.float64) for column in columns]
        return _sums(terms)
    terms = [_losses(column, own) * column.domain.weight for column, own in zip(columns, people)]
    return _sums(terms) / sum(column.domain.weight for column in columns) * SLACK


def _sums(terms: list[Bounds]) -> Bounds:
    return sum(np.ix_(*terms), np.zeros(()))


def _losses(column: ColumnLevels, people: Ints) -> Bounds:
    """Return the loss of a column at each level if nobody is suppressed."""
    whole, levels = column.domain.size - 1, range(column.height + 1)
    return np.array([metrics.loss((column.leaves(level) - 1)[column.node[level]], whole, people) for level in levels])


class BestFirst:
    """A search over the lattice of a walk. `pruning` are the positions of the criteria that prune."""

    def __init__(self, walk: LatticeWalk, metric: str, pruning: list[int]) -> None:
        self.walk, self.metric, self.pruning = walk, metric, pruning
        self.every = list(range(len(walk.judge.criteria)))
        self.bound = bounds(walk.sets.levels, walk.judge.cube.by_code, metric)
        self.top = tuple(size - 1 for size in walk.shape)
        self.fails = np.zeros(walk.shape, bool)  # nodes that fail a criterion that prunes
        self.holds = np.zeros(walk.shape, bool)  # nodes that satisfy all that prune
        self.done = np.zeros(walk.shape, bool)  # nodes that were found, and all above them

    def found(self) -> list[Node]:
        """Return minimal safe nodes from the lowest: the best of all and others that were found before it."""
        self._prune_single_columns()
        found: list[Key] = []
        with closing(KnownSets(self.walk.sets, tuple(range(len(self.top))))) as known:
            for node in self._in_order():
                if found and (float(self.bound[node]), sum(node), node) >= found[0]:
                    break
                if self._safe(known, node):
                    insort(found, (self._metric(known, node), sum(node), node))
                    self.done[_above(node)] = True
        return [node for _, node in sorted(key[1:] for key in found)]

    def _prune_single_columns(self) -> None:
        """Rule out the levels of each column that fail by themselves, and roll the first set up to the others."""
        if not self.pruning:
            return
        lowest = []
        for at, size in enumerate(self.walk.shape):
            safe = self.walk.from_below((at,), np.ones(size, bool), self.pruning)
            np.moveaxis(self.fails, at, 0)[~safe] = True
            lowest.append(int(safe.argmax()))
        self.walk.sets.collapse(tuple(lowest))

    def _in_order(self) -> Iterator[Node]:
        """Yield the nodes that are not ruled out, by their bounds, then by height, then by levels."""
        height = sum(np.indices(self.walk.shape, np.int16, sparse=True), np.zeros((), np.int16))
        order = np.lexsort((height.ravel(), self.bound.ravel()))  # stable: the rest is in the order of the levels
        for start in range(0, len(order), BLOCK):
            block = order[start : start + BLOCK]
            block = block[~(self.fails.ravel()[block] | self.done.ravel()[block])]
            for levels in np.transpose(np.unravel_index(block, self.walk.shape)).tolist():
                node = tuple(levels)
                if not (self.fails[node] or self.done[node]):
                    yield node

    def _safe(self, known: KnownSets, node: Node) -> bool:
        """Return whether a node is safe, first by the criteria that prune."""
        if self.pruning and bisect_left(self._path(node), True, key=lambda each: self._holds(known, each)):
            return False
        return len(self.pruning) == len(self.every) or self.walk.check(known, node, self.every)

    def _path(self, node: Node) -> list[Node]:
        """Return the nodes from one to the top, each time with the column raised that adds least to the bound."""
        path = [node]
        while path[-1] != self.top:
            last = path[-1]
            raised = [(*last[:j], last[j] + 1, *last[j + 1 :]) for j in range(len(last)) if last[j] < self.top[j]]
            path.append(min(raised, key=lambda each: float(self.bound[each])))
        return path

    def _holds(self, known: KnownSets, node: Node) -> bool:
        """Return whether a node satisfies the criteria that prune, and record what follows for others."""
        if self.holds[node] or self.fails[node]:
            return bool(self.holds[node])
        if self.walk.check(known, node, self.pruning):
            self.holds[_above(node)] = True
            return True
        self.fails[tuple(slice(level + 1) for level in node)] = True
        return False

    def _metric(self, known: KnownSets, node: Node) -> float:
        if self.metric == "height":
            return sum(node)
        return PublishedTotals(self.walk.sets.levels, self.walk.judge, known.at(node)).loss


def _above(node: Node) -> tuple[slice, ...]:
    """Return the index of a node and of all above it."""
    return tuple(slice(level, None) for level in node)
