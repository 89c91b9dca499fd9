"""What somebody who holds several releases believes, by enumeration: every way to give each individual one value so
that each group of each release has the values that were published of it. Knows nothing of the engine. For at most 9
individuals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from itertools import product

Group = tuple[Sequence[Hashable], Sequence[Hashable]]  # the individuals, and the published values
Release = Sequence[Group]
Beliefs = dict[Hashable, dict[Hashable, Fraction]]


def worlds(releases: Sequence[Release]) -> list[dict[Hashable, Hashable]]:
    """All worlds that fit every release."""
    people = sorted({who for release in releases for members, _ in release for who in members}, key=str)
    groups = [group for release in releases for group in release]
    allowed = [
        sorted(set.intersection(*(set(values) for members, values in groups if who in members)), key=str)
        for who in people
    ]
    found = []
    for chosen in product(*allowed):
        world = dict(zip(people, chosen))
        if all(Counter(world[who] for who in members) == Counter(values) for members, values in groups):
            found.append(world)
    return found


def beliefs(releases: Sequence[Release]) -> Beliefs:
    """The probability of each possible value of each individual, all worlds being equally likely."""
    every = worlds(releases)
    people = {who for release in releases for members, _ in release for who in members}
    counted = {who: Counter(world[who] for world in every) for who in people}
    return {who: {v: Fraction(n, len(every)) for v, n in own.items()} for who, own in counted.items()}


def in_several(releases: Sequence[Release]) -> set[Hashable]:
    """The individuals who are in at least two of the releases."""
    seen = Counter(who for release in releases for members, _ in release for who in members)
    return {who for who, times in seen.items() if times > 1}


def linked(releases: Sequence[Release]) -> set[Hashable]:
    """The individuals in a group that has somebody who is in several releases."""
    several = in_several(releases)
    return {who for release in releases for members, _ in release if several & set(members) for who in members}


def figures(releases: Sequence[Release]) -> Mapping[str, object]:
    """What `check --with` reports of small tables."""
    found, several = beliefs(releases), in_several(releases)
    sizes = Counter(len(found[who]) for who in several)
    largest = max((max(found[who].values()) for who in linked(releases)), default=None)
    return {"individuals": len(several), "one_value": sizes[1], "two_values": sizes[2], "largest_belief": largest}
