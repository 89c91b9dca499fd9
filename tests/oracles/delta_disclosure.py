"""delta-disclosure privacy from its definition, on lists of values. Whether a ratio of shares lies within e^delta is
decided between partial sums of the exponential series and bounds on their remainder, all in fractions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import count
from typing import Any


def share(values: Sequence[Any], value: Any) -> Fraction:
    return Fraction(sum(each == value for each in values), len(values))


def ratios(group: Sequence[Any], table: Sequence[Any]) -> list[Fraction]:
    """Return the share in a group over the share in the table, for each value of the table."""
    return [share(group, value) / share(table, value) for value in set(table)]


def below_exp(ratio: Fraction, delta: Fraction) -> bool:
    """Return whether a ratio is below e^delta, for delta > 0. With terms up to delta^n / n! and n + 1 > 2 delta the
    remainder is positive and less than twice the next term."""
    term, partial = Fraction(1), Fraction(0)
    for n in count():
        partial += term
        term = term * delta / (n + 1)
        if ratio <= partial:
            return True
        if n + 1 > 2 * delta and ratio >= partial + 2 * term:
            return False
    raise AssertionError


def holds(group: Sequence[Any], table: Sequence[Any], delta: Fraction) -> bool:
    """Return whether |ln(share in the group / share in the table)| < delta for every value of the table."""
    found = ratios(group, table)
    return all(ratio > 0 and below_exp(ratio, delta) and below_exp(1 / ratio, delta) for ratio in found)


def figure(group: Sequence[Any], table: Sequence[Any]) -> Decimal | float:
    """Return the largest |ln(share in the group / share in the table)|, infinite if the group lacks a value."""
    found = ratios(group, table)
    if not all(found):
        return math.inf
    with localcontext(prec=50):
        return max(abs((Decimal(r.numerator) / Decimal(r.denominator)).ln()) for r in found)
