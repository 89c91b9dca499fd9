"""Peel splits by a hierarchy (`peel: true`): the children of a node that are safe leave, the rest stay together under
the label of the node, so that a few people in a rare child do not keep everybody else at the coarser label.

A split has children 1..m, each of which is safe or not. In order, with the unsafe ones first and the safe ones from
the fewest people to the most (ties in the order of the hierarchy), the candidates are

1. all leave, if all are safe;
2. the unsafe ones stay, then they and the first safe one, then the first two, ... and all but the last leave;
3. one of the safe ones leaves alone, from the last but one to the first.

The first candidate of which every part is safe is taken, and the rest is a node like any other: it may be peeled again.
A rest of one child is no candidate, because it would be that child; nor is one with too few people.

Candidates of the third kind make the result minimal for criteria that are monotone (merging safe groups gives a safe
group). If the children in a set L may leave and the rest R is safe, then for any child c of L so is the rest without c
alone: it is the union of R and the other children of L, all of them safe. So a node that no single child can leave
cannot be peeled at all.

Why groups under a label and under labels below it may lie side by side: the recoding is still a function of the values.
A child that left has no member in the rest, so the values decide the group, and groups are disjoint sets of people. All
criteria are statements about these sets, whose members the adversary is assumed to know, whatever the labels say.
Published labels still distinguish all groups: take two groups and the split that set them apart. Either they lie
under two of its children, or one lies in a child c and the other in the rest, which has no member in c: it is published
as a node that covers members outside c, so not as c or a node below it. A reader of the labels learns nothing more
than the criteria assume: that a person in the rest has none of the values that left."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anon.core.arrays import Flags, Ints, ranges


@dataclass(frozen=True)
class Peels:
    """Candidates, each of a split that may occur several times: how many of its parts leave, and which (for every part
    of every candidate)."""

    split: Ints
    leaving: Ints
    leaves: Flags

    @classmethod
    def from_sets(cls, part_start: Ints, split: Ints, leaves: Flags) -> Peels:
        """Return the candidates given the parts that leave."""
        ends = np.append(0, np.cumsum(np.diff(part_start)[split]))
        count = np.append(0, np.cumsum(leaves))
        return cls(split, np.diff(count[ends]), leaves)


class PeelOrder:
    """The candidates of splits by hierarchies, those of each split in order."""

    def __init__(
        self, part_start: Ints, people: Ints, fine: Flags, least: int, whole_only: Flags | None = None
    ) -> None:
        """Take the parts of all splits, which of them are safe, and the fewest people of a safe group; and the splits
        of which all parts must leave."""
        self.part_start, size = part_start, np.diff(part_start)
        owner = np.repeat(np.arange(len(size)), size)
        order = np.lexsort((people * fine, fine, owner))
        self.place = np.empty(len(people), np.int64)  # of each part in its split's order
        self.place[order] = np.arange(len(people)) - part_start[owner]
        unsafe = size - np.add.reduceat(fine, part_start[:-1], dtype=np.int64)
        whole = (unsafe == 0).astype(np.int64)
        held = np.maximum(unsafe, 2)  # parts that stay, at least
        runs, singles = np.maximum(size - held, 0), np.where(size > 2, np.maximum(size - unsafe - 1, 0), 0)
        count = whole + runs + singles
        split, rank = np.repeat(np.arange(len(size)), count), ranges(np.zeros(len(size), np.int64), count)
        single = rank - (whole + runs)[split]
        # parts from place `first` up to `last` leave
        first = np.where(rank < whole[split], 0, (held - whole)[split] + rank)
        first = np.where(single >= 0, size[split] - 2 - single, first)
        last = np.where(single >= 0, first + 1, size[split])
        below = np.append(0, np.cumsum(people[order]))
        leave = below[part_start[split] + last] - below[part_start[split] + first]
        rest = (below[part_start[1:]] - below[part_start[:-1]])[split] - leave
        every = last - first == size[split]
        kept = every | ((rest >= least) & (~whole_only[split] if whole_only is not None else True))
        self.split, self.first, self.last = split[kept], first[kept], last[kept]

    @property
    def rank(self) -> Ints:
        """Return the rank of each candidate among those of its split."""
        begin = np.searchsorted(self.split, self.split)
        found: Ints = np.arange(len(self.split)) - begin
        return found

    def peels(self, which: Ints) -> Peels:
        """Return some of the candidates."""
        split = self.split[which]
        size = np.diff(self.part_start)[split]
        place = self.place[ranges(self.part_start[split], size)]
        leaves = (place >= np.repeat(self.first[which], size)) & (place < np.repeat(self.last[which], size))
        return Peels.from_sets(self.part_start, split, leaves)


def one_by_one(part_start: Ints) -> Peels:
    """Return for every part of every split the candidate that it leaves alone; of a split in two only one."""
    size = np.diff(part_start)
    times = np.where(size == 2, 1, size)
    split = np.repeat(np.arange(len(size)), times)
    alone = ranges(np.zeros(len(size), np.int64), times)
    leaves = ranges(np.zeros(len(split), np.int64), size[split]) == np.repeat(alone, size[split])
    leaves |= np.repeat(size[split] == 2, size[split])
    return Peels.from_sets(part_start, split, leaves)
