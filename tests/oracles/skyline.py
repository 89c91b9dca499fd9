"""The skyline criterion in closed form and exact fractions, one value per individual. Stands outside the way of the
data, as the reference for the criterion that search and verify share. The formulas are those of Privacy Skyline,
section 6.1 and Theorem 2, with these rules where the paper leaves a gap: a group without the value puts no target at
risk and its families are always free of it, a numerator that falls to zero ends the product before anything is
divided, and values that a group lacks count as frequency zero. Knowledge is "at most" (l, k, m).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
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


def _least(ratios: Iterable[Fraction | None]) -> Fraction | None:
    return min((ratio for ratio in ratios if ratio is not None), default=NO_RISK)
