"""Tighten numbers of a criterion so that the odds that it bounds are divided by a factor. Results are decimals, rounded
to the strict side.

>>> share_with_odds(Decimal("0.5"), Fraction(4)), parts_with_odds(Decimal(3), Fraction(4))
(Decimal('0.2'), Decimal('9'))
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

DIGITS = 20


def share_with_odds(share: Decimal, factor: Fraction) -> Decimal:
    """Return the share whose odds are those of a share divided by a factor, or a little less."""
    own = Fraction(share)
    return _rounded(own / (own + (1 - own) * factor), ROUND_FLOOR)


def parts_with_odds(parts: Decimal, factor: Fraction) -> Decimal:
    """Return the number l for which the odds of the share 1 / l are divided by a factor, or a little more."""
    return _rounded(1 + (Fraction(parts) - 1) * factor, ROUND_CEILING)


def divided(odds: Decimal, factor: Fraction) -> Decimal:
    """Return odds divided by a factor, or a little less."""
    return _rounded(Fraction(odds) / factor, ROUND_FLOOR)


def _rounded(number: Fraction, rounding: str) -> Decimal:
    exact = Context(prec=DIGITS, rounding=rounding)
    return exact.divide(Decimal(number.numerator), Decimal(number.denominator)).normalize(exact)
