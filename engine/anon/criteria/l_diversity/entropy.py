"""Adjusted entropy of one group, and its exact comparison with log l. It decides only groups that are too close
to the bound for floats; the kernels compute the floats of all groups."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from anon.criteria.protocol import NEAR


def log_entropic_mean(counts: Sequence[int]) -> float:
    """Return the mean of the logarithms of the counts, each weighted by the count."""
    return math.fsum(count * math.log(count) for count in counts) / sum(counts)


def lower(sensitive: Sequence[int], dont_care: Iterable[int]) -> tuple[list[int], int]:
    """Run Algorithm 1 exactly; return the counts that stay and the number of those lowered to exp(their mean)."""
    fixed, left = list(sensitive), sorted(dont_care)
    while left and _below_mean(left[0], fixed):
        fixed.append(left.pop(0))
    return fixed, len(left)


def _below_mean(count: int, fixed: list[int]) -> bool:
    gap = math.log(count) - log_entropic_mean(fixed)
    if abs(gap) > NEAR:
        return gap < 0
    return sign_of_logs([(count, sum(fixed)), *((other, -other) for other in fixed)]) < 0


def adjusted_entropy(sensitive: Sequence[int], dont_care: Iterable[int] = ()) -> float:
    """Return the largest entropy that lowering counts of don't-care values can give; some value is no don't-care
    value."""
    fixed, lowered = lower(sensitive, dont_care)
    mean = log_entropic_mean(fixed)
    return math.log(sum(fixed) + lowered * math.exp(mean)) - mean


@lru_cache(maxsize=1 << 16)
def compare_entropy(sensitive: tuple[int, ...], dont_care: tuple[int, ...], l: Fraction) -> int:
    """Return the sign of w + F exp(-M) - l, for l near that sum: F exp(-M) is at least 1, so l is above w.

    It is the sign of F log F - F M - F log(l - w), where F M sums n log n over the fixed counts n.
    """
    fixed, lowered = lower(sensitive, dont_care)
    rest, people = l - lowered, sum(fixed)
    bound = [(rest.numerator, -people), (rest.denominator, people)]
    return sign_of_logs([(people, people), *bound, *((count, -count) for count in fixed)])


def sign_of_logs(powers: Iterable[tuple[int, int]]) -> int:
    """Return the sign of the sum of power * log(number) over pairs (number, power), exactly.

    Logarithms of pairwise coprime numbers above 1 have no integer relation, so the sum over such a base is zero only
    where it is empty; any other differs from zero in finitely many digits.

    >>> sign_of_logs([(2, 10), (10, -3)]), sign_of_logs([(6, 2), (4, -1), (9, -1)])
    (1, 0)
    """
    base = _coprime_base(powers)
    digits = 30
    while base:
        with localcontext(prec=digits):
            terms = [power * Decimal(number).ln() for number, power in base.items()]
            total, largest = sum(terms, Decimal(0)), max(abs(term) for term in terms)
            doubt = len(terms) ** 2 * largest * Decimal(10) ** (2 - digits)
            if abs(total) > doubt:
                return 1 if total > 0 else -1
        digits *= 2
    return 0


def _coprime_base(powers: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Return the same product of powers over pairwise coprime numbers, those with power 0 left out."""
    summed: Counter[int] = Counter()
    for number, power in powers:
        summed[number] += power
    todo, base = list(summed.items()), dict[int, int]()
    while todo:
        number, power = todo.pop()
        shared = next((other for other in base if math.gcd(number, other) > 1), None)
        if number == 1 or shared is None:
            base[number] = power
            continue
        divisor, other_power = math.gcd(number, shared), base.pop(shared)
        todo += [(number // divisor, power), (shared // divisor, other_power), (divisor, power + other_power)]
    return {number: power for number, power in base.items() if number > 1 and power}
