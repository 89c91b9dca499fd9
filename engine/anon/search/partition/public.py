"""Cuts that depend on public things alone (`prefer: public`): the cell of a node, the config, and the distribution of
each column over the whole table. A cell of a column that is cut freely has one cut, the median of the table's people
within it: the boundary between two codes at which the sides differ least, ties to the lower. So all cells of a column
are nodes of one binary tree, whatever the other columns are cut into. A side without people of the node is cut off,
which reveals nothing to anyone who knows the quasi-identifiers: the cell of a node is the lowest node of that tree that
covers its members, as in a column with a hierarchy.

>>> cells = CellTree.from_people(np.array([1, 1, 1, 1, 4]))
>>> low, high, cut = cells.cover(np.array([0, 0, 2]), np.array([4, 1, 3]))
>>> [*zip(low.tolist(), high.tolist(), cut.tolist())]
[(0, 4, 4), (0, 1, 1), (2, 3, 3)]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anon.core.arrays import Flags, Ints
from anon.cube import Cube, Domain


@dataclass(frozen=True)
class CellTree:
    """The cells of one column: node 0 is the column, a node with several codes has the children `below` and `above` its
    cut, the first code of the upper one; a node of one code leads to itself."""

    low: Ints
    high: Ints
    cut: Ints
    below: Ints
    above: Ints
    depth: int

    @classmethod
    def from_people(cls, people: Ints) -> CellTree:
        """Return the tree over codes with these numbers of people."""
        upto = np.append(0, np.cumsum(people))
        low, high = np.zeros(1, np.int64), np.array([len(people) - 1])
        levels, count = [], 1
        while True:
            inner = high > low
            cut, first = np.where(inner, _medians(upto, low, np.maximum(high, low + 1)), low), count + 2 * _rank(inner)
            own = count - len(low) + np.arange(len(low))
            levels.append((low, high, cut, np.where(inner, first, own), np.where(inner, first + 1, own)))
            if not inner.any():
                lows, highs, cuts, below, above = (np.concatenate(arrays) for arrays in zip(*levels))
                return cls(lows, highs, cuts, below, above, len(levels) - 1)
            ends = np.stack([low[inner], cut[inner] - 1, cut[inner], high[inner]], axis=1).reshape(-1, 2)
            low, high, count = ends[:, 0].copy(), ends[:, 1].copy(), count + 2 * int(inner.sum())

    def cover(self, low: Ints, high: Ints) -> tuple[Ints, Ints, Ints]:
        """Return the lowest and highest codes of the smallest cells that hold low..high, and the cuts of these cells;
        cells of one code have none, and get their code in its place."""
        at = np.zeros(len(low), np.int64)
        for _ in range(self.depth):
            cut = self.cut[at]
            at = np.where(cut <= low, self.above[at], np.where(cut > high, self.below[at], at))
        return self.low[at], self.high[at], self.cut[at]


@dataclass(frozen=True)
class PublicCuts:
    """The cells of the columns of a table; None for columns that are split into the nodes of their hierarchies."""

    domains: list[Domain]
    trees: list[CellTree | None]

    @classmethod
    def from_cube(cls, cube: Cube) -> PublicCuts:
        pairs = zip(cube.domains, cube.by_code)
        return cls(
            cube.domains, [None if domain.by_nodes else CellTree.from_people(people) for domain, people in pairs]
        )

    def cells(self, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """Return the cells [nodes, columns] of nodes whose members reach from low to high."""
        cell_low, cell_high = low.copy(), high.copy()
        for j, (domain, own) in enumerate(zip(self.domains, self.trees)):
            if own is not None:
                cell_low[:, j], cell_high[:, j], _ = own.cover(low[:, j], high[:, j])
            else:
                assert domain.tree is not None
                cover = domain.tree.common(low[:, j], high[:, j])
                cell_low[:, j], cell_high[:, j] = domain.tree.low[cover], domain.tree.high[cover]
        return cell_low, cell_high

    def cuts(self, column: Ints, low: Ints, high: Ints) -> Ints:
        """Return the cuts of nodes whose members reach from low to high in a column each, which is cut freely."""
        found = np.empty(len(column), np.int64)
        for j in np.unique(column).tolist():
            at, tree = column == j, self.trees[j]
            assert tree is not None
            found[at] = tree.cover(low[at], high[at])[2]
        return found


def _medians(upto: Ints, low: Ints, high: Ints) -> Ints:
    """Return for cells low..high the lowest code c, low < c <= high, at which the people below c and from c on differ
    least; upto[c] is the number of people below c."""
    begin, end = upto[low], upto[np.minimum(high + 1, len(upto) - 1)]
    after = np.clip(np.searchsorted(2 * upto, begin + end), low + 1, high)  # the first with half of the people below
    before = np.maximum(np.searchsorted(upto, upto[np.maximum(after - 1, low + 1)]), low + 1)
    found: Ints = np.where(_apart(upto, before, begin, end) <= _apart(upto, after, begin, end), before, after)
    return found


def _apart(upto: Ints, cut: Ints, begin: Ints, end: Ints) -> Ints:
    apart: Ints = np.abs(2 * upto[cut] - begin - end)
    return apart


def _rank(flags: Flags) -> Ints:
    """Return the number of true flags before each."""
    ranks: Ints = np.cumsum(flags) - flags
    return ranks
