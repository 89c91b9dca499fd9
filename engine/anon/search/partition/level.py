"""The open nodes of one level of the partition search while they are decided (decide.py): the candidates that each has
been offered, those that wait for their turn, and those that were chosen."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from anon.core.arrays import Flags, Ints
from anon.criteria import Criterion, Groups, State
from anon.search.partition.candidates import OpenNodes, Splits
from anon.search.partition.guard import PassedOver

AHEAD = 16  # candidates that are stored for a node while it waits


@dataclass
class Candidate:
    """A split that every criterion about single groups accepts. A `free` one lowers no minimum of the state: it is
    accepted whenever its turn comes."""

    splits: Splits
    at: int
    free: bool
    state: list[State]  # the latest one that did not refuse it

    def children(self, criterion: Criterion, column: int) -> Groups:
        """Return the groups that it would add to the release, as a criterion about the whole release sees them."""
        groups = self.splits.children(self.at, column)
        kept = self.splits.kept(criterion.monotone, slice(*self.splits.part_start[self.at : self.at + 2].tolist()))
        return groups if kept.all() else groups.only(kept)


@dataclass
class LevelDecisions:
    """The open nodes of a level, the candidates of each that were offered so far, and the decisions."""

    nodes: OpenNodes
    columns: Ints  # [nodes, columns] in order of preference
    each: Ints  # the number of columns that can be split
    count: Ints  # the number of columns to offer; each occurs several times if it is offered in several rounds
    place: Ints  # the column being offered
    offered: Ints  # candidates of it that were offered
    open: Flags  # nodes that are not decided
    best: Ints | None = None  # [nodes, columns] the cuts that lose least, if splits are preferred by loss
    passed: PassedOver | None = None  # with a guard
    waiting: dict[int, deque[Candidate]] = field(default_factory=dict)  # until all nodes before are decided
    chosen: list[Splits] = field(default_factory=list)

    def dropping(self, which: Ints) -> Flags:
        """Return which of some nodes are in their last round, in which parts of their splits are dropped."""
        last: Flags = (self.nodes.most[which] > 0) & (self.place[which] >= self.count[which] - self.each[which])
        return last

    def starving(self) -> Ints:
        """Return undecided nodes that have no waiting candidate but can offer more."""
        return self._offering(list(self.waiting))

    def hungry(self, ahead: int) -> Ints:
        """Return these, and nodes that might run out of candidates at their turn, among the first `ahead` open ones."""
        found = self._offering([node for node, queue in self.waiting.items() if len(queue) >= AHEAD])
        last = np.flatnonzero(self.open)[:ahead][-1]
        return found[: np.searchsorted(found, last, "right")]

    def _offering(self, excluded: list[int]) -> Ints:
        offering = self.open & (self.place < self.count)
        offering[excluded] = False
        return np.flatnonzero(offering)

    def take(self, candidates: list[Candidate]) -> None:
        """Choose candidates, those of one batch at a time."""
        for _, some in groupby(sorted(candidates, key=lambda each: id(each.splits)), lambda each: id(each.splits)):
            batch = list(some)
            self.choose(batch[0].splits, np.array([each.at for each in batch]))

    def choose(self, splits: Splits, index: Ints) -> None:
        """Choose some of the splits, and close their nodes."""
        self.chosen.append(splits.take(index))
        self.open[splits.node[index]] = False
