"""Find the groups of a release that decide knowledge skylines: for a sensitive value and a number l of other values
that are ruled out, the few groups that no other one dominates. Groups come in batches of histograms, as
`verify.grouped` counts them; the fronts of batches merge, so that memory does not grow with the number of groups.

Of two groups the one with more occurrences of the value (s), fewer people (n) and less left once the l most frequent
other values are ruled out makes every ratio of the skyline criterion as low or lower, whatever k and m: it dominates
the other. What is left is

    single    n - s - sum o_i          set    prod (n - o_i) / n          multiset    ((n - 1) / n)^(sum o_i)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from anon.criteria.protocol import Floats, Groups, Ints
from anon.criteria.skyline import KINDS

CELLS = 1 << 21  # counts that are laid out as a matrix at a time


@dataclass(frozen=True)
class Histogram:
    """A group: its number of people, and the count of each value in it."""

    group: int
    n: int
    counts: dict[int, int]

    def others(self, value: int) -> list[tuple[int, int]]:
        """Return the other values and their counts, the most frequent first."""
        return [(other, self.counts[other]) for other in self.ranked if other != value]

    @cached_property
    def ranked(self) -> list[int]:
        """Return the values, the most frequent first."""
        return sorted(self.counts, key=lambda value: (-self.counts[value], value))


def histogram(groups: Groups, index: int) -> Histogram:
    """Return one of a batch of groups."""
    number = groups.first + index if groups.row is None else int(groups.row[index])
    own = slice(groups.start[index], groups.start[index + 1])
    return Histogram(number, int(groups.n[index]), dict(zip(groups.value[own].tolist(), groups.count[own].tolist())))


class Front(NamedTuple):
    """Groups of which none dominates another."""

    n: Ints
    s: Ints
    left: Floats
    group: Ints

    @classmethod
    def from_arrays(cls, n: Ints, s: Ints, left: Floats, group: Ints) -> Front:
        order = np.lexsort((group, left, n, -s))
        whole = cls(n[order], s[order], left[order], group[order])
        return whole.where(_undominated(whole.n, whole.left))

    def where(self, keep: Ints) -> Front:
        return Front(self.n[keep], self.s[keep], self.left[keep], self.group[keep])

    def merge(self, other: Front) -> Front:
        return Front.from_arrays(
            np.append(self.n, other.n),
            np.append(self.s, other.s),
            np.append(self.left, other.left),
            np.append(self.group, other.group),
        )


@dataclass
class Fronts:
    """The fronts of one value: `levels[l]` with l other values ruled out (after the last level nothing changes), and
    `family`, by n and s alone. `histograms` has every group that is in one of them."""

    levels: list[Front] = field(default_factory=list)
    family: Front | None = None
    histograms: dict[int, Histogram] = field(default_factory=dict)

    def add(self, levels: list[Front], family: Front, histograms: dict[int, Histogram]) -> None:
        if self.family is None:
            self.levels, self.family, self.histograms = levels, family, histograms
        else:
            count = max(len(self.levels), len(levels))
            pairs = zip(_repeated(self.levels, count), _repeated(levels, count))
            self.levels, self.family = [one.merge(other) for one, other in pairs], self.family.merge(family)
            self.histograms |= histograms
        certain = next((l for l, front in enumerate(self.levels) if front.left.min() <= 0), len(self.levels))
        del self.levels[certain + 1 :]
        used = set(np.concatenate([front.group for front in [*self.levels, self.family]]).tolist())
        self.histograms = {group: each for group, each in self.histograms.items() if group in used}


def fronts_of(batches: Iterable[Groups], values: Sequence[int], multiplicity: str) -> dict[int, Fronts]:
    """Return the fronts of some values; those of a value that nobody has are without levels."""
    found = {value: Fronts() for value in values}
    for groups in batches:
        for matrix in _matrices(groups):
            for value, fronts in found.items():
                matrix.fold(value, fronts, multiplicity)
    return found


@dataclass(frozen=True)
class _GroupMatrix:
    """Some groups with their counts as a matrix, the largest first, padded with zeros."""

    groups: Groups
    first: int
    last: int
    largest: Ints

    def fold(self, value: int, fronts: Fronts, multiplicity: str) -> None:
        from anon.risk.kernels_skylines import left as left_of

        start = self.groups.start
        entries = start[self.first] + np.flatnonzero(self.groups.value[start[self.first] : start[self.last]] == value)
        if not len(entries):
            return
        index = np.searchsorted(start, entries, side="right") - 1
        n, s = self.groups.n[index], self.groups.count[entries]
        order = np.lexsort((n, -s))
        index, n, s = index[order], n[order], s[order]
        left = left_of(KINDS.index(multiplicity), n, s, self.largest[index - self.first])
        new = np.flatnonzero(np.append(True, (n[1:] != n[:-1]) | (s[1:] != s[:-1])))
        least = np.minimum.reduceat(left, new, axis=0)
        levels = [_front(n, s, left[:, l], index, new, least[:, l]) for l in range(left.shape[1])]
        family = _front(n, s, np.zeros(len(n)), index, new, np.zeros(len(new)))
        used = np.unique(np.concatenate([front.group for front in [*levels, family]])).tolist()
        named = {at: histogram(self.groups, at) for at in used}
        numbered = [each._replace(group=np.array([named[at].group for at in each.group.tolist()], np.int64))
                    for each in (*levels, family)]  # fmt: skip
        fronts.add(numbered[:-1], numbered[-1], {each.group: each for each in named.values()})


def _matrices(groups: Groups) -> Iterator[_GroupMatrix]:
    width = int(np.diff(groups.start).max(initial=1))
    step = max(CELLS // width, 1)
    for first in range(0, len(groups), step):
        last = min(first + step, len(groups))
        low, high = groups.start[first], groups.start[last]
        row = np.repeat(np.arange(last - first), np.diff(groups.start[first : last + 1]))
        counts = np.zeros((last - first, width), np.int64)
        counts[row, np.arange(low, high) - groups.start[first + row]] = -groups.count[low:high]
        counts.sort(axis=1)
        yield _GroupMatrix(groups, first, last, -counts)


def _front(n: Ints, s: Ints, left: Floats, index: Ints, new: Ints, least: Floats) -> Front:
    """Return the front of groups that are ordered by s, descending, and n; `new` is where each new pair of them begins,
    `least` the least that is left with it. The first of equal groups stands for all."""
    keep = _undominated(n[new], least)
    low, high = new[keep], np.append(new, len(n))[1:][keep]
    at = [int(begin + left[begin:end].argmin()) for begin, end in zip(low.tolist(), high.tolist())]
    return Front(n[at], s[at], left[at], index[at])


def _undominated(n: Ints, left: Floats) -> Ints:
    """Return the groups that no group before them dominates, of groups ordered by s, descending."""
    from anon.risk.kernels_skylines import keep_undominated

    sizes, rank = np.unique(n, return_inverse=True)
    keep = np.zeros(len(n), bool)
    tree = np.full(len(sizes) + 1, np.inf)
    keep_undominated(rank.astype(np.int64), np.ascontiguousarray(left), tree, keep)
    return np.flatnonzero(keep)


def _repeated(levels: list[Front], count: int) -> list[Front]:
    return [*levels, *([levels[-1]] * (count - len(levels)))]
