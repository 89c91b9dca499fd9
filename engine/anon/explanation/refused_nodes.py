"""Find the criterion that refuses each combination of levels just below the safe ones of a lattice, for `explain`; only
below the released one if the search did not find all safe ones (`minimal: best`).

Criteria that prune accept everything above what they accept. So whatever a looser one accepts in addition, it includes
a node that is not safe now while all nodes above it are: only these have to be examined to find the next setting."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from anon.core.arrays import Flags
from anon.criteria import Criterion
from anon.recoding.levels import LevelRecoding
from anon.search.lattice.frequency import FrequencySet, FrequencySets, Node
from anon.search.lattice.judging import Rebound, needs_values
from anon.search.lattice.search import LatticeSearch

EXAMINED = 256  # nodes at most


class RefusedNodes:
    """The nodes just below the safe ones of a lattice that was searched, those below the released one first."""

    def __init__(self, search: LatticeSearch, recoding: LevelRecoding) -> None:
        self.judge = search.judge
        about_values = search.values if any(map(needs_values, search.criteria)) else None
        self._sets = FrequencySets(search.cube, search.columns, about_values, search.budget.memory.database)
        released = _below(recoding.chosen)  # none is safe, as the released one is minimal
        others = [] if recoding.safe is None else _highest(~recoding.safe)
        self.nodes = {node: self._set(node) for node in dict.fromkeys([*released, *others][:EXAMINED])}
        self.every = list(range(len(search.criteria)))
        self.alone = [self._alone(at) for at in self.every]
        self.released = [[node for node in own if node in released] for own in self.alone]

    def _set(self, node: Node) -> FrequencySet:
        return self._sets.roll_up(self._sets.first, tuple(range(len(node))), node)

    def _alone(self, at: int) -> list[Node]:
        """Return the nodes that a criterion alone refuses."""
        others = [other for other in self.every if other != at]
        return [node for node, found in self.nodes.items() if not others or self.judge.safe(found, others)]

    def facts(self, at: int) -> dict[str, int]:
        """Return the number of nodes that a criterion alone refuses, and of those just below the released one."""
        return {"nodes": len(self.alone[at]), "below_released": len(self.released[at])}

    def passed_by(self, at: int, criterion: Criterion, rebound: Rebound, nodes: list[Node]) -> int:
        """Return how many of some nodes are safe with another criterion in place of one."""
        criteria = [*self.judge.criteria[:at], criterion, *self.judge.criteria[at + 1 :]]
        judge = replace(self.judge, criteria=criteria, released=rebound)
        return sum(judge.safe(self.nodes[node], self.every) for node in nodes)


def _below(node: Node) -> list[Node]:
    """Return the nodes with one column a level lower."""
    return [(*node[:at], level - 1, *node[at + 1 :]) for at, level in enumerate(node) if level]


def _highest(unsafe: Flags) -> list[Node]:
    """Return the nodes of a set for which no node with one column a level higher is in it."""
    top = unsafe.copy()
    for axis in range(unsafe.ndim):
        lower, upper = [slice(None)] * unsafe.ndim, [slice(None)] * unsafe.ndim
        lower[axis], upper[axis] = slice(None, -1), slice(1, None)
        top[tuple(lower)] &= ~unsafe[tuple(upper)]
    return [tuple(node) for node in np.argwhere(top).tolist()]
