"""The minimality attack by enumeration: every way to deal the values of the published groups to their members, and
those in which the naive partition search (partition.py) comes to the same groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import permutations, product
from typing import Any

from tests.oracles.partition import Column, Record, Safe, Value, partition

Groups = list[list[int]]


def groups_of(records: Sequence[Record], columns: Sequence[Column], safe: Safe, prefer: Any, least: int) -> Groups:
    """The members of the groups of a release, none if there is no safe one."""
    found = partition(records, columns, safe, prefer, least=least)
    return sorted(sorted(members) for _, members in found or [])


def worlds(records: Sequence[Record], groups: Groups) -> Iterator[list[Record]]:
    """All tables with the quasi-identifiers of the records and the values of the groups."""
    dealt = [sorted(set(permutations([records[i][1] for i in members]))) for members in groups]  # type: ignore[type-var]
    for chosen in product(*dealt):
        value = {i: v for members, own in zip(groups, chosen) for i, v in zip(members, own)}
        yield [(codes, value[i]) for i, (codes, _) in enumerate(records)]


def posteriors(
    records: Sequence[Record], columns: Sequence[Column], safe: Safe, prefer: Any, least: int
) -> tuple[list[dict[Value, Fraction]], int, int]:
    """Of each record the probability of each value, given the release and that this search made it; the number of
    worlds that fit the groups, and of those in which it would have."""
    groups = groups_of(records, columns, safe, prefer, least)
    counts: list[Counter[Value]] = [Counter() for _ in records]
    every = possible = 0
    for world in worlds(records, groups):
        every += 1
        if groups_of(world, columns, safe, prefer, least) == groups:
            possible += 1
            for own, (_, value) in zip(counts, world):
                own[value] += 1
    return [{v: Fraction(n, possible) for v, n in own.items()} for own in counts], every, possible
