"""The skyline criterion in closed form and exact fractions, and knowledge skylines by looking at every point. Stands
outside the way of the data, as the reference for the criterion that search and verify share. The formulas are those of
Privacy Skyline, section 6.1 and Theorem 2, with these rules where the paper leaves a gap: a group without the value
puts no target at risk and its families are always free of it, a numerator that falls to zero ends the product before
anything is divided, and values that a group lacks count as frequency zero. Knowledge is "at most" (l, k, m).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

Value = Hashable
Group = Sequence[Value]
Release = Sequence[Group]
Point = tuple[int, int, int, Fraction]

NO_RISK = None


def target_ratio(group: Group, sigma: Value, l: int, k: int) -> Fraction | None:
    """T(g, l, k), or NO_RISK (infinity) where nobody has `sigma`."""
    counts = Counter(group)
    of_sigma = counts.pop(sigma, 0)
    if of_sigma == 0:
        return NO_RISK
    left = len(group) - of_sigma - sum(sorted(counts.values(), reverse=True)[:l]) - k
    return Fraction(max(left, 0), of_sigma)


def family_ratio(group: Group, sigma: Value, m: int, k: int) -> Fraction:
    """V(g, m, k): the smallest probability that m people are all free of `sigma`, when k others are known."""
    of_sigma = sum(value == sigma for value in group)
    ratio = Fraction(1)
    if of_sigma == 0:
        return ratio
    for people in range(len(group) - k, len(group) - k - m, -1):
        if people <= of_sigma:
            return Fraction(0)
        ratio *= Fraction(people - of_sigma, people)
    return ratio


def group_ratio(group: Group, sigma: Value, l: int, k: int, m: int) -> Fraction | None:
    """minNR(g, l, k, m): everyone the adversary knows of is in this group."""
    ratio = target_ratio(group, sigma, l, k)
    return NO_RISK if ratio is None else ratio * family_ratio(group, sigma, m, k + 1)


def negated_ratio(release: Release, sigma: Value, l: int, k: int, m: int) -> Fraction | None:
    """minNR(l, k, m) of the release by Theorem 2, or NO_RISK where nobody has `sigma`."""
    together = _least(group_ratio(group, sigma, l, k, m) for group in release)
    alone = _least(target_ratio(group, sigma, l, 0) for group in release)
    among_known = _least(target_ratio(group, sigma, l, k) for group in release)
    if together is None or alone is None or among_known is None:
        return NO_RISK
    family_alone = min(family_ratio(group, sigma, m, 0) for group in release)
    family_among_known = min(family_ratio(group, sigma, m, k) for group in release)
    return min(together, alone * family_among_known, among_known * family_alone)


def breach(release: Release, sigma: Value, l: int, k: int, m: int) -> Fraction:
    """Breach probability of `sigma` under at most (l, k, m) pieces of knowledge."""
    ratio = negated_ratio(release, sigma, l, k, m)
    return Fraction(0) if ratio is None else 1 / (ratio + 1)


def safe(release: Release, skylines: Mapping[Any, Iterable[Point]]) -> bool:
    """Whether the breach probability stays strictly below c at every point (l, k, m, c) of every value."""
    return all(breach(release, sigma, l, k, m) < c for sigma, points in skylines.items() for l, k, m, c in points)


def safe_k(release: Release, k: int) -> bool:
    """Whether every group has at least k people."""
    return all(len(group) >= k for group in release)


def knowledge_skyline(
    breach_at: Callable[[int, int, int], Fraction], box: tuple[int, int, int], c: Fraction
) -> set[tuple[int, int, int]]:
    """The points of a box (sides included) that are safe while none that is greater is, by looking at every point."""
    inside = {point for point in product(*(range(side + 1) for side in box)) if breach_at(*point) < c}
    below: set[tuple[int, int, int]] = set()  # what some greater point of those inside lies above
    for point in sorted(product(*(range(side + 1) for side in box)), reverse=True):
        steps = {tuple(amount + (axis == at) for at, amount in enumerate(point)) for axis in range(3)}
        if any(step in inside or step in below for step in steps):
            below.add(point)
    return inside - below


def many_breach(release: Sequence[tuple[int, Group]], sigma: Value, l: int, k: int, m: int, kind: str) -> Fraction:
    """Breach probability where people have a `set` or a `multiset` of values; a group is its number of people and all
    occurrences of their values."""
    with_sigma = [each for each in release if sigma in each[1]]
    if not with_sigma:
        return Fraction(0)
    target = {h: [many_target(*each, sigma, l, h, kind) for each in with_sigma] for h in (0, k)}
    family = {h: [many_family(*each, sigma, m, h, kind) for each in with_sigma] for h in (0, k, k + 1)}
    together = min(t * v for t, v in zip(target[k], family[k + 1]))
    return 1 / (1 + min(together, min(target[0]) * min(family[k]), min(target[k]) * min(family[0])))


def many_target(people: int, held: Group, sigma: Value, l: int, k: int, kind: str) -> Fraction:
    counts = Counter(held)
    of_sigma = counts.pop(sigma)
    others = sorted(counts.values(), reverse=True)[:l]
    if kind == "set":
        ratio = Fraction(max(people - of_sigma - k, 0), of_sigma)
        for other in others:
            ratio *= Fraction(people - other, people)
        return ratio
    if people - k <= 1:
        return Fraction(0)
    nobody = Fraction(people - k - 1, people - k) ** of_sigma
    return nobody / (1 - nobody) * Fraction(people - 1, people) ** sum(others)


def many_family(people: int, held: Group, sigma: Value, m: int, k: int, kind: str) -> Fraction:
    of_sigma = sum(value == sigma for value in held)
    if m == 0:
        return Fraction(1)
    if kind == "multiset":
        return Fraction(people - k - m, people - k) ** of_sigma if people - k - m > 0 else Fraction(0)
    return family_ratio([sigma] * of_sigma + [None] * (people - of_sigma), sigma, m, k)


def _least(ratios: Iterable[Fraction | None]) -> Fraction | None:
    return min((ratio for ratio in ratios if ratio is not None), default=NO_RISK)
