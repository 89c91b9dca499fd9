"""The bottom-up part of the merge search: people whom their own class cannot hold, because one of its values is too
frequent or the class too small. They come from the classes (`cap`), are pooled with those of ever less similar classes,
in groups that are as much larger as the bound asks for (`pool`), and who is left joins groups that are there already,
which are merged with others where that is needed (`Placing`). Effort is bounded; the result is a function of the
records in their order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from anon import interrupt
from anon.criteria.protocol import NEAR
from anon.records import Codes
from anon.search.adversaries import Known
from anon.search.dealing import Dealt, Rule, deal
from anon.search.ordering import Ints, Ordered

LEADERS = 512  # clusters of classes that another class is compared with
FEW_CLASSES = 16  # whose groups somebody may join
GROUPS_KEPT = 4096  # groups of a class that others may join
REACH, PARTNERS = 2048, 64  # groups that are looked through for somebody, and to merge each of them with
MERGED = 4  # groups that become one with somebody's help
EFFORT = 2**24  # looks at groups for all people together


@dataclass(frozen=True)
class People:
    """Entries with their people and their classes."""

    codes: Codes
    people: Ints
    own: Ints

    @classmethod
    def together(cls, parts: list[People], columns: int) -> People:
        codes = np.concatenate([np.empty((columns, 0), np.uint16), *(part.codes for part in parts)], axis=1)
        none = np.empty(0, np.int64)
        return cls(codes, *(np.concatenate([none, *(getattr(p, name) for p in parts)]) for name in ("people", "own")))

    def with_people(self, people: Ints) -> People:
        """As many people of each entry as is said, without those that have none."""
        some = np.flatnonzero(people)
        return People(self.codes[:, some], people[some], self.own[some])

    @property
    def total(self) -> int:
        return int(self.people.sum())


def most_groups(counts: Ints, size: int) -> Ints:
    """For each row of counts of values the largest g such that g groups of `size` people or more can be made with no
    value twice: g <= sum of min(count, g) / size, which holds from 0 up to the largest.

    >>> most_groups(np.array([[5, 1, 1], [2, 2, 2], [4, 3, 2]]), 2).tolist()
    [2, 3, 4]
    """
    low, high = np.zeros(len(counts), np.int64), counts.sum(axis=1) // size
    while (low < high).any():
        middle = (low + high + 1) // 2
        fine = np.minimum(counts, middle[:, None]).sum(axis=1) >= size * middle
        low, high = np.where(fine, middle, low), np.where(fine, high, middle - 1)
    return low


def spread(key: Ints, people: Ints, counts: Ints, most: Ints, seen: Ints) -> Ints:
    """How many people of each entry stay if of `counts[key]` no more than `most[key]` may, evenly over the entries in
    their order; `seen` counts those of each key that came before, and goes on."""
    order = np.argsort(key, kind="stable")
    own, weight = key[order], people[order]
    first = np.flatnonzero(np.append(True, own[1:] != own[:-1])) if len(own) else np.empty(0, np.int64)
    ends = np.cumsum(weight)
    before = np.repeat((ends - weight)[first], np.diff(np.append(first, len(own))))
    high = ends - before + seen[own]
    low = high - weight
    seen[own[first]] += np.add.reduceat(weight, first) if len(first) else 0
    kept, n, limit = np.empty_like(people), counts[own], most[own]
    kept[order] = np.where(n > limit, high * limit // n - low * limit // n, weight)
    return kept


def cap(ordered: Ordered, counts: Ints, groups: Ints) -> People:
    """Takes out of every class what is more than its number of groups of one value, evenly along the records."""
    values = counts.shape[1]
    if (counts <= groups[:, None]).all():
        return People.together([], ordered.records.width - 2)
    most, seen = np.repeat(groups, values), np.zeros(counts.size, np.int64)
    parts: list[People] = []
    at = 0
    for codes, people, _, own in ordered.entries(0, int(ordered.marks[-1])):
        kept = spread(own * values + codes[-1], people, counts.reshape(-1), most, seen)
        if (kept < people).any():
            parts.append(People(codes, people, own).with_people(people - kept))
            ordered.write_people(at, kept)
        at += len(people)
        interrupt.check()
    ordered.recount()
    return People.together(parts, ordered.records.width - 2)


def pool(left: People, known: Known, size: int, scale: NDArray[np.float64]) -> Iterator[tuple[Dealt, People]]:
    """Groups of people from several classes, first of very similar ones, and who is left after each."""
    radius = np.log1p(1 / size) / 2
    while left.total >= size and radius < np.log(known.values) + 1:
        for classes in _clusters(left, known, radius):
            if len(classes) > 1:
                dealt, left = _pooled(left, np.isin(left.own, classes), known, size, scale)
                if dealt is not None:
                    yield dealt, left
            interrupt.check()
        radius *= 1.5


def _clusters(left: People, known: Known, radius: float) -> list[Ints]:
    """Classes that are no further than a radius from the one of them with the most people."""
    classes, at = np.unique(left.own, return_inverse=True)
    people = np.bincount(at, left.people, len(classes))
    leaders: list[int] = []
    members: list[list[int]] = []
    for own in classes[np.lexsort([classes, -people])].tolist():
        recent = max(len(leaders) - LEADERS, 0)
        near = known.distance(own, np.array(leaders[recent:], np.int64)) if leaders else np.empty(0)
        if len(near) and near.min() <= radius:
            members[recent + int(near.argmin())].append(own)
        else:
            leaders.append(own)
            members.append([own])
    return [np.array(listed) for listed in members]


def _pooled(
    left: People, mine: NDArray[np.bool_], known: Known, size: int, scale: NDArray[np.float64]
) -> tuple[Dealt | None, People]:
    """The groups that can be made of some of the people together, and everybody who is in none of them."""
    counts = np.bincount(left.codes[-1, mine], left.people[mine], known.values).astype(np.int64)
    values = np.flatnonzero(counts)
    needed = max(size, known.size_for(np.unique(left.own[mine]), values))
    groups = most_groups(counts[None, :], needed) if needed <= len(values) else np.zeros(1, np.int64)
    if not groups[0]:
        return None, left
    own = np.zeros(known.values, np.int64)
    kept = np.zeros(len(left.people), np.int64)
    limit = np.repeat(groups, known.values)
    kept[mine] = spread(left.codes[-1, mine].astype(np.int64), left.people[mine], counts, limit, own)
    chosen = left.with_people(kept)
    rule = Rule.distinct(needed, known.values)
    dealt = deal(chosen.codes, chosen.people, np.zeros(len(chosen.people), np.int64), rule, scale)
    return dealt, left.with_people(left.people - kept)


@dataclass
class Placing:
    """Groups that people who are left over may join. Only so many of each class are kept, and only of classes that are
    among the nearest of somebody who is left."""

    known: Known
    left: People
    kind: list[Ints] = field(default_factory=list)
    value: list[Ints] = field(default_factory=list)
    group: list[int] = field(default_factory=list)
    best: float = 0.0  # the largest slack that was seen for somebody who could not be placed

    def __post_init__(self) -> None:
        every = np.arange(len(self.known.table))
        self.near: dict[int, Ints] = {}
        for own in np.unique(self.left.own).tolist()[:LEADERS]:
            self.near[own] = np.argsort(self.known.distance(own, every), kind="stable")[:FEW_CLASSES]
        self.room = np.zeros(len(every), np.int64)
        self.room[np.unique(np.concatenate([np.empty(0, np.int64), *self.near.values()]))] = GROUPS_KEPT

    def keep(self, dealt: Dealt, own: Ints, first: int) -> None:
        """Keeps some of the groups that were dealt, given the class of each entry and the number of the first group."""
        order = np.argsort(dealt.group, kind="stable")
        ends = np.append(np.flatnonzero(np.append(True, np.diff(dealt.group[order]) > 0)), len(order))
        lead = own[order[ends[:-1]]]
        for g in np.flatnonzero(self.room[lead] > 0).tolist():
            if self.room[lead[g]] > 0:
                self.room[lead[g]] -= 1
                members = order[ends[g] : ends[g + 1]]
                self.kind.append(own[members])
                self.value.append(dealt.codes[-1, members].astype(np.int64))
                self.group.append(first + g)

    def run(self) -> tuple[list[tuple[int, int]], list[tuple[int, list[int]]], People]:
        """Places people: (entry of those left, group) for each, groups that are merged into the first of them, and who
        could not be placed."""
        from anon.search.kernels_merge import place

        kind, value, size = self._arrays()
        lead = kind[:, 0].copy() if len(kind) else np.empty(0, np.int64)
        joined: list[tuple[int, int]] = []
        merged: list[tuple[int, list[int]]] = []
        placed, taken, best = np.zeros(len(self.left.people), np.int64), np.empty(MERGED, np.int64), np.zeros(1)
        known, effort = self.known, EFFORT
        priors = known.table, known.first, known.binary, known.r
        hopeless: set[tuple[int, int]] = set()
        for entry, (own, x, people) in enumerate(zip(*self._listed())):
            order = self._order(own, lead) if own in self.near else np.empty(0, np.int64)
            for _ in range(people if (own, x) not in hopeless else 0):
                if not len(order) or effort <= 0:
                    break
                effort -= min(REACH, len(order)) * (1 + PARTNERS)
                found = place((kind, value, size), order, own, x, priors, 1 + NEAR, REACH, PARTNERS, taken, best)
                if not found:
                    hopeless.add((own, x))
                    break
                joined.append((entry, self.group[taken[0]]))
                merged += [(self.group[taken[0]], [self.group[g] for g in taken[1:found]])] if found > 1 else []
                placed[entry] += 1
            interrupt.check()
        self.best = float(best[0])
        return joined, merged, self.left.with_people(self.left.people - placed)

    def _listed(self) -> tuple[list[int], list[int], list[int]]:
        return self.left.own.tolist(), self.left.codes[-1].tolist(), self.left.people.tolist()

    def _order(self, own: int, lead: Ints) -> Ints:
        """The groups of the nearest classes, those of the nearest first."""
        rank = np.full(len(self.known.table), -1)
        rank[self.near[own]] = np.arange(len(self.near[own]))
        some = np.flatnonzero(rank[lead] >= 0)
        return some[np.argsort(rank[lead[some]], kind="stable")]

    def _arrays(self) -> tuple[Ints, Ints, Ints]:
        size = np.array([len(each) for each in self.kind], np.int64)
        room = int(min(self.known.values, MERGED * size.max(initial=0) + 1))
        kind, value = (np.zeros((len(size), room), np.int64) for _ in range(2))
        for row, (own, held) in enumerate(zip(self.kind, self.value)):
            kind[row, : len(own)], value[row, : len(own)] = own, held
        return kind, value, size
