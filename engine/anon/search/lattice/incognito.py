"""Incognito (LeFevre, DeWitt, Ramakrishnan 2005; with other criteria than k-anonymity in the l-diversity and
(c,k)-safety papers): find all safe nodes of the lattice.

Criteria that prune come first. The search goes breadth first over the subsets of columns: a node of some columns can be
safe only if its projection to every subset with one column less is safe. The remaining nodes are checked from below,
and all nodes above a safe one are safe. If all criteria prune, this is the result; otherwise every remaining node is
checked by all criteria, because a node that fails those that prune is not safe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import combinations, repeat
from typing import Any, TypeVar

import numpy as np

from anon.core import interrupt
from anon.core.arrays import Flags
from anon.core.progress import ProgressCallback
from anon.search.lattice.frequency import FrequencySets, KnownSets, Node
from anon.search.lattice.judging import Judge

R = TypeVar("R")


def at_once(threads: int, work: Callable[..., R], *items: Any) -> list[R]:
    """Return the results of `work` on each item, from several threads; with one thread, in the calling thread."""
    if threads == 1:
        return list(map(work, *items))
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, *items))


@dataclass
class LatticeWalk:
    """A walk over the lattice. Safe nodes are an array with one axis per column, indexed by its levels."""

    sets: FrequencySets
    judge: Judge
    on_progress: ProgressCallback
    checks: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(column.height + 1 for column in self.sets.levels)

    def pruned(self, which: list[int]) -> Flags:
        """Return the nodes that are safe by criteria that prune."""
        if not which:
            return np.ones(self.shape, bool)
        safe: dict[tuple[int, ...], Flags] = {(): np.ones((), bool)}
        for size in range(1, len(self.shape) + 1):
            subsets = {
                columns: self._candidates(columns, safe) for columns in combinations(range(len(self.shape)), size)
            }
            if not all(candidates.any() for candidates in subsets.values()):
                return np.zeros(self.shape, bool)
            self.sets.collapse(self._lowest(subsets))
            found = at_once(self.sets.at_once, self.from_below, subsets.keys(), subsets.values(), repeat(which))
            safe = dict(zip(subsets, found))
        return safe[tuple(range(len(self.shape)))]

    def _candidates(self, columns: tuple[int, ...], safe: dict[tuple[int, ...], Flags]) -> Flags:
        """Return the nodes that are safe without each of the columns."""
        found = np.ones([self.shape[j] for j in columns], bool)
        for at in range(len(columns)):
            found &= np.expand_dims(safe[columns[:at] + columns[at + 1 :]], at)
        return found

    def _lowest(self, subsets: dict[tuple[int, ...], Flags]) -> Node:
        """Return for each column the lowest level that it has in any remaining node."""
        lowest = list(self.shape)
        for columns, candidates in subsets.items():
            for at, j in enumerate(columns):
                others = tuple(axis for axis in range(len(columns)) if axis != at)
                lowest[j] = min(lowest[j], int(candidates.any(axis=others).argmax()))
        return tuple(lowest)

    def from_below(self, columns: tuple[int, ...], candidates: Flags, which: list[int]) -> Flags:
        """Return the candidates of some columns that are safe by criteria that prune."""
        safe = np.zeros_like(candidates)
        with closing(KnownSets(self.sets, columns)) as known:
            for node in _by_height(candidates):
                if not safe[node] and self.check(known, node, which):
                    safe[tuple(slice(level, None) for level in node)] = True
        return safe

    def check(self, known: KnownSets, node: Node, which: list[int]) -> bool:
        """Return whether some criteria hold for a node."""
        interrupt.check()
        self.checks += 1
        self.on_progress(columns=len(known.columns), checks=self.checks)
        return self.judge.safe(known.at(node), which)

    def checked(self, candidates: Flags) -> Flags:
        """Return the candidates that are safe by all criteria, each of which is checked."""
        which, safe = list(range(len(self.judge.criteria))), np.zeros_like(candidates)
        with closing(KnownSets(self.sets, tuple(range(len(self.shape))))) as known:
            for node in _by_height(candidates):
                safe[node] = self.check(known, node, which)
        return safe


def _by_height(nodes: Flags) -> Iterator[Node]:
    """Yield nodes from the lowest, those of one height in the order of the columns."""
    listed = np.argwhere(nodes)
    for at in np.argsort(listed.sum(axis=1), kind="stable"):
        yield tuple(listed[at].tolist())


def minimal(safe: Flags) -> list[Node]:
    """Return safe nodes with no safe one below, from the lowest."""
    below = np.zeros_like(safe)  # whether some safe node lies below or here
    below |= safe
    for axis in range(safe.ndim):
        np.logical_or.accumulate(below, axis=axis, out=below)
    under = np.zeros_like(safe)  # whether one lies strictly below
    for axis in range(safe.ndim):
        upper, lower = [slice(None)] * safe.ndim, [slice(None)] * safe.ndim
        upper[axis], lower[axis] = slice(1, None), slice(None, -1)
        under[tuple(upper)] |= below[tuple(lower)]
    return list(_by_height(safe & ~under))
