"""Groups for a table that is republished whole, so that all of its releases together reveal little (m-invariance; Xiao
and Tao, "m-Invariance: Towards Privacy Preserving Re-publication of Dynamic Datasets", SIGMOD 2007).

A group has every value of its *signature* once, a set of at least m sensitive values, and an individual is in groups
of the same signature in every release in which they appear. Where nobody has a value of the signature, a counterfeit
has it. Over all releases every value of the signature is then possible for the individual to the same degree: 1/m at
most.

Four steps, as in the paper, each a function of the individuals in canonical order:

1. division: those who have a signature go to its bucket;
2. balancing: a bucket gets of each of its values the number that its most frequent one has, from the new individuals
   as long as the rest of these stays m-eligible (no value has more than one in m), otherwise counterfeits;
3. assignment: the other new individuals, alpha of each of the beta most frequent values at a time. With counts
   l_1 >= l_2 >= ... of R in all, beta = m and alpha = min(l_m, R/m - l_(m+1)) rounded down leave the rest m-eligible
   whenever l_(m+1) <= R/m - 1. Otherwise all of the first m + 1 counts are q = floor(R/m), the beta values with that
   count are taken once each, and q - 1 <= (R - beta)/m because R >= beta q;
4. partition: a bucket with n of each value becomes n groups, by halving it along its widest quasi-identifier, each
   value in its own order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from anon.core.arrays import Ints
from anon.errors import UnsafeError

NEW = -1  # in place of a signature
Signature = tuple[int, ...]


@dataclass(frozen=True)
class Arrangement:
    """The group and the signature of every individual; the signatures, those that were known first; and of each
    counterfeit its group, its value and the individual of the group whose quasi-identifiers it has."""

    group: Ints
    signature: Ints
    signatures: list[Signature]
    fake_group: Ints
    fake_value: Ints
    fake_like: Ints


@dataclass
class _Bucket:
    """The individuals of a signature by value, and the counterfeits of each value."""

    people: dict[int, list[Ints]]
    fakes: dict[int, int] = field(default_factory=dict)


def bytes_for(people: int, columns: int) -> int:
    """Return the memory that arranging takes, about."""
    return people * (16 * columns + 160)


def arrange(values: Ints, known: Ints, signatures: Sequence[Signature], places: Ints, m: int) -> Arrangement:
    """Return groups for individuals in canonical order: their values, their signatures (NEW for those who have none),
    the signatures by number, and [columns, individuals] the ranks of their quasi-identifiers. UnsafeError if the new
    individuals are not m-eligible."""
    every, number = list(signatures), {signature: at for at, signature in enumerate(signatures)}
    fresh = _Fresh(values, known, m)
    buckets = {int(at): _divided(values, known, int(at), every[at]) for at in np.unique(known[known != NEW])}
    for at in sorted(buckets):
        _balance(buckets[at], fresh)
    fresh.check()
    while fresh.total:
        chosen, times = fresh.next_share()
        at = number.setdefault(chosen, len(every))
        every += [chosen] if at == len(every) else []
        bucket = buckets.setdefault(at, _Bucket({value: [] for value in chosen}))
        for value in chosen:
            bucket.people[value].append(fresh.take(value, times))
    return _partitioned(buckets, every, values, places)


def _divided(values: Ints, known: Ints, at: int, signature: Signature) -> _Bucket:
    members = np.flatnonzero(known == at)
    return _Bucket({value: [members[values[members] == value]] for value in signature})


class _Fresh:
    """The new individuals by value, who are taken in canonical order."""

    def __init__(self, values: Ints, known: Ints, m: int) -> None:
        rows = np.flatnonzero(known == NEW)
        self.m, self.rows = m, {int(v): rows[values[rows] == v] for v in np.unique(values[rows])}
        self.left = {value: len(own) for value, own in self.rows.items()}

    @property
    def total(self) -> int:
        return sum(self.left.values())

    def take(self, value: int, times: int) -> Ints:
        own: Ints = self.rows[value]
        first = len(own) - self.left[value]
        self.left[value] -= times
        return own[first : first + times]

    def spare(self, value: int, most: int) -> int:
        """Return how many with a value can be taken, at most `most`, so that the rest stays m-eligible."""
        others = max((count for other, count in self.left.items() if other != value), default=0)
        return max(0, min(most, self.left.get(value, 0), self.total - self.m * others))

    def check(self) -> None:
        """Raise UnsafeError if the rest is not m-eligible."""
        most, total = max(self.left.values(), default=0), self.total
        if most * self.m > total:
            raise UnsafeError(
                f"no release of the series is safe: of {total:,} new individuals {most:,} have the same sensitive "
                f"value, at most {total // self.m:,} may (one in m = {self.m}); publish when there are more new "
                "ones with other values"
            )

    def next_share(self) -> tuple[Signature, int]:
        """Return the values of which the same number is taken next, and that number."""
        counts = sorted(((-count, value) for value, count in self.left.items() if count))
        most, total, m = -counts[0][0], self.total, self.m
        after = -counts[m][0] if len(counts) > m else 0
        if m * (after + 1) <= total or len(counts) == m:
            times = min(-counts[m - 1][0], total // m - after)
            return tuple(sorted(value for _, value in counts[:m])), times
        return tuple(sorted(value for count, value in counts if -count == most)), 1


def _balance(bucket: _Bucket, fresh: _Fresh) -> None:
    """Complete a bucket to the same number of each value."""
    have = {value: sum(map(len, parts)) for value, parts in bucket.people.items()}
    most = max(have.values())
    for value in sorted(have):
        taken = fresh.spare(value, most - have[value])
        if taken:
            bucket.people[value].append(fresh.take(value, taken))
        if missing := most - have[value] - taken:
            bucket.fakes[value] = missing


def _partitioned(buckets: dict[int, _Bucket], signatures: list[Signature], values: Ints, places: Ints) -> Arrangement:
    """Return the groups of all buckets. A counterfeit stands where an individual of its bucket is, in turn, until it
    takes over the quasi-identifiers of the first individual of its group."""
    people, signature = len(values), np.full(len(values), NEW, np.int64)
    fake_value, fake_at, fake_bucket = [], [], []
    size = np.zeros(len(signatures), np.int64)
    for at, bucket in sorted(buckets.items()):
        members = np.sort(np.concatenate([part for parts in bucket.people.values() for part in parts]))
        signature[members] = at
        size[at] = max(sum(map(len, parts)) + bucket.fakes.get(v, 0) for v, parts in bucket.people.items())
        own = np.repeat(list(bucket.fakes), list(bucket.fakes.values())).astype(np.int64)
        fake_value.append(own)
        fake_at.append(members[np.arange(len(own)) % len(members)])
        fake_bucket.append(np.full(len(own), at))
    fakes, like, of_bucket = (
        np.concatenate([*parts, np.empty(0, np.int64)]) for parts in (fake_value, fake_at, fake_bucket)
    )
    every_place = np.concatenate([places, places[:, like]], axis=1)
    group = _halved(np.concatenate([signature, of_bucket]), np.concatenate([values, fakes]), every_place, size)
    first = np.full(group.max(initial=-1) + 1, people, np.int64)
    np.minimum.at(first, group[:people], np.arange(people))
    return Arrangement(group[:people], signature, signatures, group[people:], fakes, first[group[people:]])


def _halved(bucket: Ints, values: Ints, places: Ints, size: Ints) -> Ints:
    """Return the groups of the members of buckets, of which each has `size` of each of its values: all nodes are halved
    at a time along the quasi-identifier in which each is widest."""
    node, size = np.unique(bucket, return_inverse=True)[1], size[np.unique(bucket)]
    whole = np.maximum(places.max(axis=1) - places.min(axis=1), 1) if places.shape[1] else np.ones(len(places))
    while (size > 1).any():
        order = np.argsort(node, kind="stable")
        starts = np.searchsorted(node[order], np.arange(len(size)))
        widths = [
            (np.maximum.reduceat(own[order], starts) - np.minimum.reduceat(own[order], starts)) / full
            for own, full in zip(places, whole)
        ]
        along = np.argmax(widths, axis=0)
        key = places[along[node], np.arange(len(node))]
        order = np.lexsort((key, values, node))
        changes = np.append(True, (np.diff(node[order]) != 0) | (np.diff(values[order]) != 0))
        begin = np.maximum.accumulate(np.where(changes, np.arange(len(order)), 0))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order)) - begin
        half = (size + 1) // 2
        right = rank >= half[node]
        halves = np.stack([half, size - half], axis=1).reshape(-1)
        found, node = np.unique(2 * node + right, return_inverse=True)
        size = halves[found]
    return node
