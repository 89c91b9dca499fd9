"""What every group that satisfies a skyline needs when individuals have one value each: a number of people, and people
outside its most frequent values. Searches use both to skip hopeless splits, so neither may rule out a safe group."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import perm
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anon.criteria.skyline import Point

FAR = 2**40  # people; least sizes beyond this are not computed
FACTORS = 1_000  # of an exact product; a longer one is replaced by its first factors, which bound it from above


def least_size(points: Sequence[Point], values: int) -> int:
    """Return the size of the smallest safe group whose most frequent value has these points, in a table with this
    number of values; a number near `FAR` if no smaller group is safe.

    Of all ways to give n people v values, the balanced one has the smallest largest count s = ceil(n / v), and the
    fewest people with the l + 1 most frequent values, (l + 1)(s - 1) + min(l + 1, n - v (s - 1)). T and V fall as these
    grow, and in a single group T(l, k) V(m, k + 1) is the smallest of the three ratios. So a safe group of n exists iff
    the balanced one is safe.

    That condition is not monotone in n: a group of v s + 1 has a larger s than one of v s. But for a fixed s, with
    v (s - 1) < n <= v s, T and V grow with n, and T and V of n = v s grow with s. So the smallest s for which v s
    people can be safe is found by bisection, then the smallest n with that s.

    >>> from fractions import Fraction
    >>> from anon.criteria.skyline import Point
    >>> point = Point(0, 0, 0, Fraction("0.34"))
    >>> least_size([point], 3), [n for n in range(3, 12) if may_be_safe(n, point, 3)]
    (3, [3, 6, 9])
    """

    def all_may_be_safe(n: int) -> bool:
        return all(may_be_safe(n, point, values) for point in points)

    multiples = range(values, FAR, values)
    best = multiples[min(bisect_left(multiples, True, key=all_may_be_safe), len(multiples) - 1)]
    same_count = range(best - values + 1, best)
    return best - len(same_count) + bisect_left(same_count, True, key=all_may_be_safe)


def may_be_safe(n: int, point: Point, values: int) -> bool:
    """Return whether a group of n people can be safe for a point of its most frequent value."""
    s = -(-n // values)
    most_frequent = (point.l + 1) * (s - 1) + min(point.l + 1, n - values * (s - 1))
    left, known = n - most_frequent - point.k, n - point.k - 1
    if left <= 0 or known < s + point.m:
        return False
    # V = perm(known - s, m) / perm(known, m) = perm(known - m, s) / perm(known, s)
    few, many = sorted((s, point.m))
    factors = min(few, FACTORS)
    ratio = point.least_ratio
    return left * perm(known - many, factors) * ratio.denominator > ratio.numerator * s * perm(known, factors)


def demands(points: Sequence[Sequence[Point]]) -> tuple[tuple[int, int], ...]:
    """Return what a safe group has whichever value is its most frequent one: T > 0 of that value means that more than k
    people have none of it and of the l most frequent others, V > 0 that more than k + m have not it."""
    pairs: list[tuple[int, int]] = []
    for l in range(min(max(point.l for point in own) for own in points), -1, -1):
        fewest = min(max(p.k + 1 + (p.m if l == 0 else 0) for p in own if p.l >= l) for own in points)
        if not pairs or fewest > pairs[-1][1]:
            pairs.append((l + 1, fewest))
    return tuple(pairs)
