"""The seeds of the merge search: groups of people from one class, whom no prior distinguishes. N of them are safe for r
if at most N / r have the same value, of those that a prior constrains. In a class with counts c_v, g groups of l people
with at most C copies of a value can be made iff sum of min(c_v, C g) >= l g (deal the values round-robin); the largest
such g is used, and the people of a value in excess of C g are left over. Each class takes the first l and C that leave
few of its people over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, count
from math import ceil
from typing import NamedTuple

import numpy as np

from anon.core.arrays import Flags, Ints
from anon.search.assign.dealing import Rule

FEW = 100  # a class may leave over one in this number of people
SIZES = 8  # of groups that are tried


def sizes(least: int, r: Fraction) -> Iterator[tuple[int, int]]:
    """Yield the sizes of groups that are tried, from the least on, each with the numbers of copies of a value that it
    allows, in ascending order: groups with different values satisfy more criteria. A larger size is worth trying only
    if it allows for a value with a larger share, which is 1/r at most.

    >>> list(sizes(2, Fraction("1.5"))), list(sizes(5, Fraction(2)))
    ([(2, 1), (3, 1), (3, 2)], [(5, 1), (5, 2), (6, 1), (6, 2), (6, 3)])
    """
    largest, tried = Fraction(0), 0
    for size in chain([max(least, ceil(r))], (ceil(copies * r) for copies in count(int(least // r) + 1))):
        most = int(size // r)
        if Fraction(most, size) > largest:
            largest, tried = Fraction(most, size), tried + 1
            yield from ((size, copies) for copies in (*_powers_of_two(most), most))
        if largest * r == 1 or tried == SIZES:
            return


def _powers_of_two(limit: int) -> Iterator[int]:
    return (2**power for power in range((limit - 1).bit_length()))


def most_groups(counts: Ints, size: int, copies: int, limited: Flags) -> Ints:
    """Return for each row of counts of values the largest g such that g groups of `size` people or more can be made
    with no `limited` value more than `copies` times: g <= sum of min(count, copies g) / size, without the minimum for
    other values. The sum is concave in g, so that this holds from 0 up to the largest.

    >>> counts, every = np.array([[5, 1, 1], [2, 2, 2], [4, 3, 2]]), np.ones(3, bool)
    >>> most_groups(counts, 2, 1, every).tolist(), most_groups(counts, 3, 2, every).tolist()
    ([2, 3, 4], [2, 2, 3])
    """
    low, high = np.zeros(len(counts), np.int64), counts.sum(axis=1) // size
    own, others = counts[:, limited], counts[:, ~limited].sum(axis=1)
    while (low < high).any():
        middle = (low + high + 1) // 2
        fine = np.minimum(own, copies * middle[:, None]).sum(axis=1) + others >= size * middle
        low, high = np.where(fine, middle, low), np.where(fine, high, middle - 1)
    return low


def most_people(counts: Ints, groups: Ints, copies: int, limited: Flags) -> Ints:
    """Return the number of people with each value that can be in the groups, given their number for each row."""
    allowed = np.minimum(counts, np.where(limited, copies * groups[:, None], counts))
    return np.where(groups[:, None] > 0, allowed, 0)


class GroupKind(NamedTuple):
    """A kind of groups of a class: their size, and how often they may have a `limited` value."""

    size: int
    copies: int
    limited: Flags


@dataclass(frozen=True)
class Seeds:
    """The groups of each class: their kind, their number, which may be 0, and the people in them [classes, values]."""

    kinds: list[GroupKind]
    kind: Ints
    groups: Ints
    people: Ints

    @classmethod
    def from_counts(cls, counts: Ints, named: Flags, least: int, r: Fraction) -> Seeds:
        """Return the groups, given the people of each class who may be in its groups, and which values a prior
        constrains. Other values are limited too where that leaves few people over."""
        whole, most = counts.sum(axis=1), np.zeros_like(counts)
        kind, groups = np.zeros((2, len(counts)), np.int64)
        left, open_, kinds = whole + 1, np.arange(len(counts)), []
        for limited in [np.ones_like(named)] + ([] if named.all() else [named]):
            kinds += [GroupKind(size, copies, limited) for size, copies in sizes(least, r)]
        for at, (size, copies, limited) in enumerate(kinds):
            found = most_groups(counts[open_], size, copies, limited)
            people = most_people(counts[open_], found, copies, limited)
            over = whole[open_] - people.sum(axis=1)
            better = over < left[open_]
            own = open_[better]
            kind[own], groups[own], most[own], left[own] = at, found[better], people[better], over[better]
            open_ = open_[left[open_] * FEW > whole[open_]]
        return cls(kinds, kind, groups, most)

    @property
    def largest(self) -> int:
        """Return the largest target size of a group."""
        largest: int = max(self.kinds[at].size for at in np.unique(self.kind).tolist())
        return largest

    def rules(self) -> Iterator[tuple[Rule, Flags]]:
        """Yield the rules by which classes are dealt, and the classes of each."""
        for at in np.unique(self.kind).tolist():
            yield Rule.copies(*self.kinds[at]), (self.kind == at) & (self.groups > 0)
