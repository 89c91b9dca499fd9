"""The bottom-up part of the merge search: people whom their own class cannot hold, because one of its values is too
frequent or the class too small. They are taken out of the classes (`cap`) and pooled with those of ever less similar
classes, in groups that are larger as the bound requires (`pool`); the people who remain join existing groups, which are
merged with others where needed (`Placing`). The effort is bounded; the result is a function of the records in their
order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from anon.core import interrupt
from anon.core.arrays import Codes, Flags, Floats, Ints
from anon.criteria.protocol import NEAR
from anon.search.assign.dealing import DealtGroups, Rule, deal
from anon.search.assign.ordering import OrderedRecords
from anon.search.assign.seeds import most_groups, most_people
from anon.search.cross_tables import PriorTable

LARGEST_POOLED = 2**12  # people of a group of several classes
LEADERS = 512  # clusters of classes that another class is compared with
FEW_CLASSES = 16  # nearest classes whose groups a person may join
GROUPS_KEPT = 4096  # groups of a class that others may join, and fewer where they are large:
PEOPLE_KEPT = 2**15  # in them
REACH, PARTNERS = 2048, 64  # groups that are tried for a person, and groups to merge each of them with
MERGED = 4  # groups that may be merged so that a person can join
EFFORT = 2**26  # members of groups that are examined for all people together


@dataclass(frozen=True)
class People:
    """Entries with their people and their classes."""

    codes: Codes
    people: Ints
    own: Ints

    @classmethod
    def together(cls, parts: list[People], columns: int) -> People:
        """Return the entries of all parts."""
        codes = np.concatenate([np.empty((columns, 0), np.uint16), *(part.codes for part in parts)], axis=1)
        none = np.empty(0, np.int64)
        return cls(codes, *(np.concatenate([none, *(getattr(p, name) for p in parts)]) for name in ("people", "own")))

    def with_people(self, people: Ints) -> People:
        """Return the entries with these numbers of people, without entries that have none."""
        some = np.flatnonzero(people)
        return People(self.codes[:, some], people[some], self.own[some])

    def where(self, some: Flags) -> People:
        """Return the entries that are marked."""
        return self.with_people(np.where(some, self.people, 0))

    @property
    def total(self) -> int:
        return int(self.people.sum())


def spread(key: Ints, people: Ints, counts: Ints, most: Ints, seen: Ints) -> Ints:
    """Return the number of people of each entry that stay if at most `most[key]` of `counts[key]` may, evenly over the
    entries in their order; `seen` is the number of people of each key in previous calls, and is updated."""
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


def cap(ordered: OrderedRecords, counts: Ints, most: Ints) -> People:
    """Take the people of a value in excess of `most` [classes, values] out of every class, evenly along the records,
    and return them."""
    values = counts.shape[1]
    if (counts <= most).all():
        return People.together([], ordered.records.width - 2)
    seen = np.zeros(counts.size, np.int64)
    parts: list[People] = []
    at = 0
    for codes, people, _, own in ordered.entries(0, int(ordered.marks[-1])):
        kept = spread(own * values + codes[-1], people, counts.reshape(-1), most.reshape(-1), seen)
        if (kept < people).any():
            parts.append(People(codes, people, own).with_people(people - kept))
            ordered.write_people(at, kept)
        at += len(people)
        interrupt.check()
    ordered.recount()
    return People.together(parts, ordered.records.width - 2)


def pool(left: People, known: PriorTable, size: int, scale: Floats) -> Iterator[tuple[DealtGroups, People]]:
    """Yield groups of people from several classes, first of very similar ones, and the people who remain after each."""
    radius = np.log1p(1 / size) / 2
    while left.total >= size and radius < np.log(known.values) + 1:
        for classes in _clusters(left, known, radius):
            if len(classes) > 1:
                dealt, left = _pooled(left, np.isin(left.own, classes), known, size, scale)
                if dealt is not None:
                    yield dealt, left
            interrupt.check()
        radius *= 1.5


def _clusters(left: People, known: PriorTable, radius: float) -> list[Ints]:
    """Return clusters of classes within a radius of the class with the most people in the cluster."""
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
    left: People, mine: Flags, known: PriorTable, size: int, scale: Floats
) -> tuple[DealtGroups | None, People]:
    """Return the groups that can be made of some of the people together, and all people who are in none of them."""
    counts = np.bincount(left.codes[-1, mine], left.people[mine], known.values).astype(np.int64)
    about = np.unique(left.own[mine]), np.flatnonzero(counts)
    needed = max(size, known.size_for(*about))
    copies = known.copies_for(*about, needed)
    for limited in (np.ones(known.values, bool), known.limited):
        groups = most_groups(counts[None, :], needed, copies, limited)
        if groups[0]:
            break
    if not groups[0] or needed > max(size, LARGEST_POOLED):
        return None, left
    kept, seen = np.zeros(len(left.people), np.int64), np.zeros(known.values, np.int64)
    limit = most_people(counts[None, :], groups, copies, limited)[0]
    kept[mine] = spread(left.codes[-1, mine].astype(np.int64), left.people[mine], counts, limit, seen)
    chosen = left.with_people(kept)
    rule = Rule.copies(needed, copies, limited)
    dealt = deal(chosen.codes, chosen.people, np.zeros(len(chosen.people), np.int64), rule, scale)
    return dealt, left.with_people(left.people - kept)


@dataclass
class Placing:
    """Groups that the remaining people may join. Only a limited number of each class is kept, and only of classes that
    are among the nearest of a remaining person."""

    known: PriorTable
    left: People
    size: int  # of the groups
    kind: list[Ints] = field(default_factory=list)
    value: list[Ints] = field(default_factory=list)
    group: list[int] = field(default_factory=list)
    best: float = 0.0  # the largest slack that was found for a person who could not be placed

    @property
    def most(self) -> int:
        """Return the size of the largest group that a person may join."""
        return max(self.known.values, 2 * MERGED * self.size)

    def __post_init__(self) -> None:
        every = np.arange(len(self.known.table))
        self.near: dict[int, Ints] = {}
        for own in np.unique(self.left.own).tolist()[:LEADERS]:
            self.near[own] = np.argsort(self.known.distance(own, every), kind="stable")[:FEW_CLASSES]
        self.slots = np.zeros(len(every), np.int64)  # groups of each class that may still be kept
        self.slots[np.unique(np.concatenate([np.empty(0, np.int64), *self.near.values()]))] = min(
            GROUPS_KEPT, -(-PEOPLE_KEPT // self.size)
        )

    def keep(self, dealt: DealtGroups, own: Ints, first: int) -> None:
        """Keep some of the groups that were dealt, given the class of each entry and the number of the first group."""
        order = np.argsort(dealt.group, kind="stable")
        ends = np.append(np.flatnonzero(np.append(True, np.diff(dealt.group[order]) > 0)), len(order))
        lead = own[order[ends[:-1]]]
        small = np.bincount(dealt.group, dealt.people) < self.most
        for g in np.flatnonzero(small & (self.slots[lead] > 0)).tolist():
            if self.slots[lead[g]] > 0:
                self.slots[lead[g]] -= 1
                entries = order[ends[g] : ends[g + 1]]
                members = np.repeat(entries, dealt.people[entries])
                self.kind.append(own[members])
                self.value.append(dealt.codes[-1, members].astype(np.int64))
                self.group.append(first + g)

    def run(self) -> tuple[list[tuple[int, int]], list[tuple[int, list[int]]], People]:
        """Place people; return (entry of the remaining people, group) for each, the groups that are merged into the
        first of them, and the people who could not be placed."""
        from anon.search.assign.kernels_merge import place

        kind, value, size = self._arrays()
        lead = kind[:, 0].copy() if len(kind) else np.empty(0, np.int64)
        joined: list[tuple[int, int]] = []
        merged: list[tuple[int, list[int]]] = []
        placed, taken, best = np.zeros(len(self.left.people), np.int64), np.empty(MERGED, np.int64), np.zeros(2)
        known, effort = self.known, EFFORT
        priors = known.table, known.first, known.binary, known.named, known.r
        hopeless: set[tuple[int, int]] = set()
        before, order = -1, np.empty(0, np.int64)
        for entry, (own, x, people) in enumerate(zip(*self._listed())):
            if own != before:
                before, order = own, self._order(own, lead) if own in self.near else np.empty(0, np.int64)
            for _ in range(people if (own, x) not in hopeless else 0):
                if not len(order) or effort <= 0:
                    break
                found = place((kind, value, size), order, own, x, priors, 1 + NEAR, REACH, PARTNERS, taken, best)
                effort -= int(best[1])
                if not found:
                    self.best = max(self.best, float(best[0]))
                    hopeless.add((own, x))
                    break
                joined.append((entry, self.group[taken[0]]))
                merged += [(self.group[taken[0]], [self.group[g] for g in taken[1:found]])] if found > 1 else []
                placed[entry] += 1
            interrupt.check()
        return joined, merged, self.left.with_people(self.left.people - placed)

    def _listed(self) -> tuple[list[int], list[int], list[int]]:
        return self.left.own.tolist(), self.left.codes[-1].tolist(), self.left.people.tolist()

    def _order(self, own: int, lead: Ints) -> Ints:
        """Return the groups of the nearest classes, those of the nearest first."""
        rank = np.full(len(self.known.table), -1)
        rank[self.near[own]] = np.arange(len(self.near[own]))
        some = np.flatnonzero(rank[lead] >= 0)
        return some[np.argsort(rank[lead[some]], kind="stable")]

    def _arrays(self) -> tuple[Ints, Ints, Ints]:
        size = np.array([len(each) for each in self.kind], np.int64)
        width = int(min(MERGED * size.max(initial=0) + 1, self.most))
        kind, value = (np.zeros((len(size), width), np.int64) for _ in range(2))
        for row, (own, held) in enumerate(zip(self.kind, self.value)):
            kind[row, : len(own)], value[row, : len(own)] = own, held
        return kind, value, size
