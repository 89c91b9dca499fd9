"""Suppression in the partition search (`suppress: f`): people who stand in the way of a split are left out of the
release.

A node of n people may drop at most f * n of them, in its whole subtree. The budget is handed down in proportion to
people: a split of a node with share s that drops d of its n people gives each part that stays the share
(s n - d) / (n - d), rounded down to a multiple of 1 / `scale`. The shares of all parts that stay are equal, so each
may drop so much of its own people, rounded down to whole ones, and all together at most s n - d. As s n - d <=
s (n - d), no share is ever larger than the one above it. What a node may drop depends on the cuts above it and the
counts of the node alone, so decisions are as local as without suppression.

A candidate whose parts are not all safe alone is accepted without those that are not, if any part is left, their people
fit the budget, and the loss falls. The loss of a group in a column is its people times the part of the column's scale
that they extend over (`Evaluator.least`); in a column of a hierarchy it is that of the node that covers them; somebody
who is dropped loses the whole scale of every column. So a split of n people along column j that drops d is accepted if

    sum over the parts that stay of n_i (e_i - e_j)  +  d (sum over columns k of (L_k - e_k))  <  0

where e_k is the extent of the node in column k, L_k the length of its scale, and e_i that of part i in column j. Other
columns count as unchanged for those who stay, except in nodes that are small, where all are measured. Scales are whole
numbers, longer for columns that count more, so that this is exact."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anon.core.arrays import Flags, Ints, ranges
from anon.search.partition.candidates import Evaluator, OpenNodes, Splits

SCALE = 2**30  # the largest scale of shares; times the people of a table it is below 2^63


@dataclass(frozen=True)
class Suppression:
    """The share of people that may be dropped, share / scale: exact if its denominator is at most SCALE, else rounded
    down."""

    share: int = 0
    scale: int = 1

    @classmethod
    def from_share(cls, share: Fraction) -> Suppression:
        """Return a share as a whole number of parts of a scale.

        >>> Suppression.from_share(Fraction(1, 50))
        Suppression(share=21474836, scale=1073741800)
        """
        scale = share.denominator * (SCALE // share.denominator) or SCALE
        return cls(int(share * scale), scale)

    def __bool__(self) -> bool:
        return self.share > 0

    def most(self, share: Ints, people: Ints) -> Ints:
        """Return the number of people that nodes may drop."""
        found: Ints = share * people // self.scale
        return found

    def left(self, share: Ints, people: Ints, dropped: Ints) -> Ints:
        """Return the share of the people who stay when some were dropped.

        >>> one = np.array([1])
        >>> rule = Suppression(share=20, scale=1000)
        >>> rule.left(20 * one, 200 * one, 3 * one), rule.most(5 * one, 197 * one)
        (array([5]), array([0]))
        """
        stay = np.maximum(people - dropped, 1)
        found: Ints = (share * people - dropped * self.scale) // stay
        return found


NOBODY = Suppression()


class Drops:
    """Chooses the parts of splits that are dropped."""

    def __init__(self, evaluator: Evaluator, suppression: Suppression) -> None:
        self.evaluator, self.suppression = evaluator, suppression
        self.by_nodes = np.array([domain.by_nodes for domain in evaluator.cube.domains])

    def measured(self, nodes: OpenNodes, splits: Splits, j: int, unsafe: Flags) -> Ints:
        """Return by how much each part of splits by a hierarchy loses more than their node, if those parts that are not
        safe are dropped where they may be and fit. The parts that stay extend over their hierarchy nodes."""
        at, whole = self.evaluator.scales[j], self.evaluator.extents(nodes, splits.node, j)
        gain = splits.people * (at[splits.high] - at[splits.low] - whole[splits.owner])
        if not self.suppression:
            return gain
        most, cost = self.evaluator.dropping(nodes, splits.node)
        dropped = _fitting(splits, unsafe, most) & splits.may_drop
        return np.where(dropped, splits.people * cost[splits.owner], gain)

    def parts(self, nodes: OpenNodes, splits: Splits, unsafe: Flags) -> Flags:
        """Return which parts of splits, of which some are not safe alone, are dropped, so that the loss falls; for cuts
        this is known."""
        dropped = _fitting(splits, unsafe, nodes.most[splits.node])
        may, owners = splits.may_drop.copy(), np.unique(splits.owner[dropped])
        for j in np.flatnonzero(self.by_nodes).tolist():
            own = owners[splits.column[owners] == j]
            if len(own):
                some, rows = splits.take(own), ranges(splits.part_start[own], np.diff(splits.part_start)[own])
                gain = self.measured(nodes, some, j, unsafe[rows])
                may[rows] &= (np.add.reduceat(gain, some.part_start[:-1]) < 0)[some.owner]
        found: Flags = dropped & np.logical_and.reduceat(may | ~dropped, splits.part_start[:-1])[splits.owner]
        return found

    def drop(self, nodes: OpenNodes, splits: Splits, unsafe: Flags) -> None:
        """Set which parts of splits are dropped, given which are not safe alone; what may be dropped of those that
        stay; and which can be split no further."""
        splits.dropped = self.parts(nodes, splits, unsafe)
        count = np.add.reduceat(splits.people * splits.dropped, splits.part_start[:-1])
        splits.share = self.suppression.left(nodes.share[splits.node], nodes.people[splits.node], count)
        most = self.suppression.most(splits.share[splits.owner], splits.people)
        splits.barren = splits.dropped | (splits.barren & (most == 0))


def _fitting(splits: Splits, unsafe: Flags, most: Ints) -> Flags:
    """Return the parts that are not safe of splits that have others too, if they fit what the node may drop."""
    first, parts = splits.part_start[:-1], np.diff(splits.part_start)
    count = np.add.reduceat(unsafe, first, dtype=np.int64)
    fits = (count > 0) & (count < parts) & (np.add.reduceat(splits.people * unsafe, first) <= most)
    found: Flags = unsafe & fits[splits.owner]
    return found
