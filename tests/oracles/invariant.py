"""m-invariance by its definition, and what somebody believes who holds all releases of a series, by enumeration of all
worlds. A group has individuals, published values and counterfeits; a world gives each individual a value of its own,
and the counterfeits the values that are left. Knows nothing of the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from fractions import Fraction
from itertools import product

Group = tuple[Sequence[Hashable], Sequence[Hashable]]  # the individuals, and the published values
Release = Sequence[Group]


def is_invariant(releases: Sequence[Release], m: int) -> bool:
    """Whether every group has at least m values, each once, and nobody is in groups with different values."""
    seen: dict[Hashable, set[Hashable]] = {}
    for release in releases:
        for members, values in release:
            if len(values) < m or len(set(values)) < len(values) or len(members) > len(values):
                return False
            for who in members:
                if seen.setdefault(who, set(values)) != set(values):
                    return False
    return True


def largest_belief(releases: Sequence[Release]) -> Fraction:
    """The largest belief in a value of anybody, all worlds being equally likely."""
    groups = [group for release in releases for group in release]
    people = sorted({who for members, _ in groups for who in members}, key=str)
    allowed = [
        sorted(set.intersection(*(set(values) for members, values in groups if who in members)), key=str)
        for who in people
    ]
    every = 0
    counted: dict[Hashable, Counter[Hashable]] = {who: Counter() for who in people}
    for chosen in product(*allowed):
        world = dict(zip(people, chosen))
        if all(not Counter(world[who] for who in members) - Counter(values) for members, values in groups):
            every += 1
            for who, value in world.items():
                counted[who][value] += 1
    return max(Fraction(own.most_common(1)[0][1], every) for own in counted.values())
