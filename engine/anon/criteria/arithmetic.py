"""Exact numbers for the criteria: the values of a column as whole multiples of one unit, comparisons of ratios with a
bound in integers, and differences of numbers in floating point that are right to the last few bits however large the
numbers are."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import lcm

import numpy as np

from anon.criteria.protocol import Floats, Groups, Ints
from anon.errors import ConfigError

WIDEST = 10**150  # the square of a difference of numbers must be a float
FITS = 2**62
TINY = 1e-150  # what is above zero stays at or above this, so that a product of two such numbers is above zero too


@dataclass(frozen=True)
class Units:
    """The numbers of a column as integers: `number = of[code] / per_one`."""

    of: list[int]
    per_one: int

    @classmethod
    def exactly(cls, numbers: Sequence[Fraction | None], where: str) -> Units:
        """Return numbers in units; refuse values without a number, whose distance to others is unknown. `where` is the
        field to blame.

        >>> Units.exactly([Fraction("0.5"), Fraction(2), Fraction("0.25")], "privacy[0]")
        Units(of=[2, 8, 1], per_one=4)
        """
        known = [number for number in numbers if number is not None]
        if len(known) < len(numbers):
            raise ConfigError.at(
                where,
                f"{len(numbers) - len(known)} of {len(numbers)} distinct values that are null or no finite number",
                "a number for every value",
                "`nulls: {sensitive: drop}` leaves out rows without a value, `error` refuses them",
            )
        if known and max(known) - min(known) > WIDEST:
            raise ConfigError.at(where, "numbers more than 1e150 apart", "a column of a narrower range")
        per_one = lcm(*{number.denominator for number in known})
        return cls([number.numerator * (per_one // number.denominator) for number in known], per_one)

    def floats(self) -> Halves:
        """Return the numbers, counted from the smallest, as sums of two floats."""
        least = min(self.of, default=0)
        shifted = [Fraction(unit - least, self.per_one) for unit in self.of]
        high = [float(number) for number in shifted]
        low = [float(number - Fraction(part)) for number, part in zip(shifted, high)]
        return Halves(np.array(high, np.float64), np.array(low, np.float64))


@dataclass(frozen=True)
class Halves:
    """Numbers as the sum of their nearest float and of what that leaves over. Where two numbers are so close that their
    nearest floats cancel, these have an exact difference, and the rest still counts."""

    high: Floats
    low: Floats

    def difference(self, code: Ints, other: Ints) -> Floats:
        """Return the number of each code less that of the other."""
        difference: Floats = (self.high[code] - self.high[other]) + (self.low[code] - self.low[other])
        return difference


def signs(top: Ints, bottom: Ints, bound: Fraction) -> Ints:
    """Return the signs of top / bottom - bound, for bottom > 0, exactly.

    >>> signs(np.array([1, 3, 2]), np.array([3, 10, 5]), Fraction("0.3"))
    array([1, 0, 1])
    """
    largest = max(int(np.abs(top).max(initial=0)), int(bottom.max(initial=0)))
    kind = np.int64 if largest * max(abs(bound.numerator), bound.denominator) < FITS else object
    found: Ints = np.sign(top.astype(kind) * bound.denominator - bottom.astype(kind) * bound.numerator).astype(np.int64)
    return found


def chosen(groups: Groups, which: Ints) -> Groups:
    """Return some groups of a batch, as a batch.

    >>> two = chosen(Groups.dense(np.array([[1, 0], [2, 3], [0, 4]])), np.array([1, 2]))
    >>> two.start.tolist(), two.value.tolist(), two.count.tolist()
    ([0, 2, 3], [0, 1, 1], [2, 3, 4])
    """
    sizes = np.diff(groups.start)[which]
    start = np.concatenate([[0], np.cumsum(sizes)])
    entry = np.arange(start[-1]) + np.repeat(groups.start[which] - start[:-1], sizes)
    return Groups(groups.n[which], start, groups.value[entry], groups.count[entry])


def at_least(number: Fraction | float) -> str:
    """Return a number with six digits for a message, rounded up.

    >>> at_least(1 / 3), at_least(0.25), at_least(Fraction(9, 10)), at_most(Fraction(2, 3)), at_most(1234567)
    ('0.333334', '0.25', '0.9', '0.666666', '1234560')
    """
    return _digits(number, ROUND_CEILING)


def at_most(number: Fraction | float) -> str:
    """Return a number with six digits for a message, rounded down."""
    return _digits(number, ROUND_FLOOR)


def _digits(number: Fraction | float, rounding: str) -> str:
    exactly = number if isinstance(number, Fraction) else Fraction(repr(float(number)))
    top, bottom = Decimal(exactly.numerator), Decimal(exactly.denominator)
    return format(Context(prec=6, rounding=rounding).divide(top, bottom).normalize(), "f")


def largest_below(limit: int, holds: Callable[[int], bool]) -> int | None:
    """Return the largest number from 0 on and below a limit for which a condition holds that fails for all larger ones
    once it fails.

    >>> largest_below(10, lambda number: number * number < 20), largest_below(10, lambda number: False)
    (4, None)
    """
    return bisect_left(range(limit), True, key=lambda number: not holds(number)) - 1 if limit and holds(0) else None


def confidence_above(figure: float) -> list[str]:
    """Return in words which bounds a confidence stays strictly below."""
    if figure >= 1:
        return []
    above = at_least(figure)
    return [f"c above {above}"] if Fraction(above) < 1 else ["c = 1"]


def size_of(people: float) -> list[str]:
    """Return in words which least size a group of this many people has; none for one person, which is any size."""
    return [f"k = {int(people)}"] if people > 1 else []
