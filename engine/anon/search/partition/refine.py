"""The post-pass of the partition search (`refine: true`): it divides pairs of groups anew where that loses less.

A *region* is a largest node of the tree with at most REGION individuals, or a group with at most LARGEST. Both lie in
one block, however large blocks are. Its individuals are put in the order of their codes and values, so that the order
of the input does not matter. In rounds, each group with each of the few that are nearest to it (kernels_refine.py), and
each single group, is pooled, and the pool is divided in two along every column at every place: equal values may go to
both sides (*relaxed ties*). Where a criterion looks at sensitive values, pools are also divided with
each value by itself, so that both parts have about the same distribution. Single individuals also move from a group to
another: so a combination of values that enough people have gets a group of its own, and others are left only as many
of them as they need (*lending*). Every division must leave all criteria satisfied, and lose less than the groups do now
(*re-pooling*). Of the divisions of a round those that gain most are taken, each group at most once. The loss falls with
every division, so that the rounds end.

People with equal quasi-identifiers may end up in different groups, and the labels of groups may overlap. Groups with
equal labels become one group, which is why criteria must be monotone. Why overlapping labels are safe: let an adversary
know everybody's quasi-identifiers. Within a group, exchanging the values of two members gives a table that is
published in the same way; so given who is in which group, everybody's value is distributed as in their group, and
criteria bound what this adversary concludes, with any knowledge that they allow. Somebody who does not know who is in
which group averages these conclusions over the possibilities. Every criterion that allows it (`with_overlaps`) bounds a
convex function of the distribution of the target's value (its largest share, minus its entropy, its distance from that
of the table, its share outside the l - 1 largest, ...), or asks for values that occur in it, and so holds for averages
too. tests/search/test_refine.py enumerates all possibilities on small tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from anon.core.arrays import Codes, Flags, Ints
from anon.core.checkpoint import Arrays
from anon.criteria import Criterion, Groups
from anon.cube import Cube
from anon.search.partition.kernels_refine import Pool, near_groups

REGION = 2**14  # individuals
LARGEST = 2**15  # individuals of a group that is still divided; a block has room for more, whatever the threads
ROUNDS = 40
CANDIDATES = 64  # divisions of a pool that are judged, the best first
AT_ONCE = 500_000  # members of pools, and numbers about their divisions, that are held at a time
COUNTERS = 4  # of values in groups, for each individual in these
FIELDS = ("low", "high", "codes", "group", "people")


@dataclass(frozen=True)
class Regrouped:
    """The groups of a block after the post-pass: their ranges, and entries of people with the same codes."""

    low: Codes  # [groups, columns]
    high: Codes
    codes: Codes  # [columns and the sensitive column, entries]
    group: NDArray[np.uint32]
    people: NDArray[np.uint32]

    def arrays(self) -> Arrays:
        return {f"regrouped.{name}": getattr(self, name) for name in FIELDS}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Regrouped | None:
        if "regrouped.group" not in arrays:
            return None
        return cls(*(arrays[f"regrouped.{name}"] for name in FIELDS))

    @classmethod
    def concatenate(cls, parts: list[Regrouped]) -> Regrouped:
        """Return the groups of several parts, numbered one part after the other."""
        before = np.cumsum([0, *(len(each.low) for each in parts)])
        moved = [replace(each, group=each.group + np.uint32(first)) for each, first in zip(parts, before)]
        joined = [np.concatenate([getattr(each, name) for each in moved], int(name == "codes")) for name in FIELDS]
        return cls(*joined)


@dataclass(frozen=True)
class Refinement:
    """The post-pass over the groups of blocks."""

    cube: Cube
    criteria: list[Criterion]  # that judge groups alone and are monotone
    by_size: bool  # the criteria are about the number of individuals of a group only
    least: int  # individuals of a group
    scales: tuple[Ints, Ints]

    def run(self, records: Codes, regions: list[tuple[int, int]], leaves: Ints) -> Regrouped:
        """Return the groups of a block: its regions are ranges of records, and `leaves` are where the groups of the
        tree start, ascending, with the end of all."""
        found = []
        for start, stop in regions:
            first, last = np.searchsorted(leaves, (start, stop))
            codes, people = entries_of(self.cube, records[:, start:stop])
            group = np.repeat(np.arange(last - first), np.diff(leaves[first : last + 1]))
            found.append(self._region(codes, people, group))
        return Regrouped.concatenate(found)

    def _region(self, codes: Codes, people: Ints, group: Ints) -> Regrouped:
        if people.sum() <= LARGEST:
            order = np.lexsort(codes[::-1])
            individual = np.repeat(order, people[order])
            codes, group = np.ascontiguousarray(codes[:, individual]), group[individual]
            group = self._refined(codes, np.unique(group, return_index=True)[1].argsort().argsort()[group])
            people = np.ones(len(group), np.int64)
        return _collected(codes, group, people)

    def _refined(self, codes: Codes, group: Ints) -> Ints:
        """Return the groups of individuals, in the order of their codes, after the rounds."""
        pools = Pools(self, codes, group)
        for _ in range(ROUNDS):
            pools.find_divisions()
            if not pools.divide():
                break
        return pools.group

    def safe(self, groups: Groups) -> Flags:
        """Return which groups satisfy all criteria."""
        fine = np.ones(len(groups), bool)
        for criterion in self.criteria:
            at = np.flatnonzero(fine)
            fine[at] = criterion.safe_alone(groups.only(fine), len(at))
        return fine


def entries_of(cube: Cube, records: Codes) -> tuple[Codes, Ints]:
    """Return the codes of the quasi-identifiers and the sensitive column, and the people of each record."""
    return records[: len(cube.domains) + 1], cube.people_of(records)


class Pools:
    """The groups of a region as rounds change them, and the divisions that are possible: for each pair of groups (or
    the same group twice) the best one that is safe."""

    def __init__(self, rules: Refinement, codes: Codes, group: Ints) -> None:
        self.rules, self.group = rules, group
        columns = len(rules.cube.domains)
        start, scale = rules.scales
        self.codes, self.value = codes[:columns], codes[columns].astype(np.int32)
        self.places = np.stack([scale[start[j] + codes[j].astype(np.int64)] for j in range(columns)], axis=1)
        self.changed: Flags = np.ones(int(group.max()) + 1, bool)
        self.divisions = np.empty((5, 0), np.int64)  # gain, a, b, way, place

    def find_divisions(self) -> None:
        """Find the divisions of the groups that have changed."""
        member = np.argsort(self.group, kind="stable").astype(np.int32)
        start = np.append(0, np.cumsum(np.bincount(self.group)))
        rules = self.rules
        self.pool = Pool(self.codes, self.value, rules.cube.others[0].size, rules.scales, start, member)
        places = self.places[member]
        low, high = np.minimum.reduceat(places, start[:-1]), np.maximum.reduceat(places, start[:-1])
        width = (high - low).sum(axis=1)
        a, b = near_groups(low, high, width, self.changed)
        alone = np.flatnonzero(self.changed & (width > 0) & (np.diff(start) >= 2 * rules.least))
        a, b = np.append(a, alone), np.append(b, alone)
        lost = width * np.diff(start)
        self._best(a, b, np.where(a == b, lost[a], lost[a] + lost[b]))

    def _best(self, a: Ints, b: Ints, lost: Ints) -> None:
        rules, most = self.rules, 1 if self.rules.by_size else CANDIDATES
        size = np.diff(self.pool.start)
        for some in _runs(size[a] + size[b] + 3 * most):
            gain, way, place = self.pool.ways(a[some], b[some], lost[some], rules.least, not rules.by_size, most)
            chosen = np.zeros(len(gain), np.int64)
            if not rules.by_size:
                chosen = self._first_safe(a[some], b[some], gain, way, place)
            at = np.flatnonzero((chosen >= 0) & (gain[:, 0] > 0))
            c = chosen[at]
            found = np.stack([gain[at, c], a[some][at], b[some][at], way[at, c], place[at, c]])
            self.divisions = np.concatenate([self.divisions, found], axis=1)

    def _first_safe(self, a: Ints, b: Ints, gain: Ints, way: Ints, place: Ints) -> Ints:
        """Return for each pair the number of its best division that is safe, -1 if there is none."""
        chosen = np.full(len(a), -1)
        for c in range(gain.shape[1]):
            at = np.flatnonzero((chosen < 0) & (gain[:, c] > 0))
            if not len(at):
                break
            start, member, first = self.pool.parts(a[at], b[at], way[at, c], place[at, c])
            pair = np.repeat(np.arange(len(at)), np.diff(start))
            part = 2 * pair + (np.arange(len(member)) - start[pair] >= first[pair])
            groups = _counted(part, 2 * len(at), self.value[member], self.pool.values)
            chosen[at[self.rules.safe(groups).reshape(-1, 2).all(axis=1)]] = c
        return chosen

    def divide(self) -> bool:
        """Take the best divisions, each group at most once; return whether there were any."""
        gain, a, b, _, _ = self.divisions
        order = np.lexsort((b, a, -gain))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        self.changed[:] = False
        taken, left = [], np.arange(len(rank))
        while len(left):
            best = np.full(len(self.changed), len(rank))
            np.minimum.at(best, a[left], rank[left])
            np.minimum.at(best, b[left], rank[left])
            own = left[(best[a[left]] == rank[left]) & (best[b[left]] == rank[left])]
            taken.append(own)
            self.changed[a[own]] = self.changed[b[own]] = True
            left = left[~self.changed[a[left]] & ~self.changed[b[left]]]
        if not taken:
            return False
        self._apply(np.concatenate(taken))
        kept = ~self.changed[a] & ~self.changed[b]
        self.divisions = self.divisions[:, kept]
        return True

    def _apply(self, taken: Ints) -> None:
        """Divide some pools: the second part is group b, or a new group where a single one was divided."""
        a, b, way, place = (each[taken] for each in self.divisions[1:])
        start, member, first = self.pool.parts(a, b, way, place)
        fresh = a == b
        second = np.where(fresh, len(self.changed) + np.cumsum(fresh) - 1, b)
        pair = np.repeat(np.arange(len(a)), np.diff(start))
        self.group[member] = np.where(np.arange(len(member)) - start[pair] < first[pair], a[pair], second[pair])
        self.changed = np.append(self.changed, np.ones(int(fresh.sum()), bool))


def _counted(group: Ints, groups: int, value: NDArray[np.int32], values: int) -> Groups:
    """Return groups of individuals, given the group and the value of each: in memory for the individuals, however many
    values there are."""
    key = group * values + value
    if groups * values <= COUNTERS * len(key):
        return Groups.dense(np.bincount(key, minlength=groups * values).reshape(groups, values))
    distinct, count = np.unique(key, return_counts=True)
    start = np.searchsorted(distinct, np.arange(groups + 1) * values)
    return Groups(np.bincount(group, minlength=groups), start, distinct % values, count)


def _runs(sizes: Ints) -> Iterator[slice]:
    """Yield runs of pools that may be held at a time, given the size of each, at least one pool each."""
    ends = np.cumsum(sizes)
    first = 0
    while first < len(sizes):
        before = ends[first - 1] if first else 0
        last = max(int(np.searchsorted(ends, before + AT_ONCE, "right")), first + 1)
        yield slice(first, last)
        first = last


def _collected(codes: Codes, group: Ints, people: Ints) -> Regrouped:
    """Return groups with their ranges, those with equal ranges as one, and equal entries counted."""
    columns = len(codes) - 1
    order = np.argsort(group, kind="stable")
    codes, group, people = codes[:, order], group[order], people[order]
    start = np.flatnonzero(np.diff(group, prepend=-1))
    ranges = [each.reduceat(codes[:columns], start, axis=1) for each in (np.minimum, np.maximum)]
    cells, into = np.unique(np.concatenate(ranges).T, axis=0, return_inverse=True)
    group = into.reshape(-1)[np.repeat(np.arange(len(start)), np.diff(start, append=len(group)))]
    order = np.lexsort([*codes[::-1], group])
    codes, group, people = codes[:, order], group[order], people[order]
    new = np.ones(len(group), bool)
    new[1:] = (group[1:] != group[:-1]) | (codes[:, 1:] != codes[:, :-1]).any(axis=0)
    first = np.flatnonzero(new)
    counted = np.add.reduceat(people, first).astype(np.uint32)
    return Regrouped(cells[:, :columns], cells[:, columns:], codes[:, first], group[first].astype(np.uint32), counted)
