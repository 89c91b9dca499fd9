"""Published labels read by their grammar alone: whether a label contains a value, and where it begins and ends; and by
trying everything the roundest bound between two values. The reference for what a release publishes: it knows the words
of the label grammar and nothing of cells and codes."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

DAY = dt.timedelta(days=1)
STEPS = {int: 1, dt.date: DAY, dt.datetime: dt.timedelta(microseconds=1)}


@dataclass(frozen=True)
class Plain:
    """A column without a hierarchy; `values` are those that occur, which stand for themselves."""

    kind: type
    values: Collection[Any]

    def contains(self, label: str | None, value: Any) -> bool:
        if label is None:
            return value is None
        if label == "*":
            return True
        if label == "not null":
            return value is not None
        if label.startswith("null|"):
            return value is None or self.contains(label.removeprefix("null|"), value)
        return value is not None and self._holds(label, value)

    def _holds(self, label: str, value: Any) -> bool:
        if self.kind is str:
            return value == label if label in self.values else value in listed(label)
        if label.startswith("["):
            low, high = label.removeprefix("[").removesuffix(")").split(",")
            return self._read(low) <= value < self._read(high)
        for sign, holds in ((">=", value.__ge__), ("<=", value.__le__), ("<", value.__lt__)):
            if label.startswith(sign):
                return bool(holds(self._read(label.removeprefix(sign))))
        low, high = self._ends(label)
        return bool(self._read(low) <= value <= self._read(high))

    def bounds(self, label: str) -> tuple[Any, Any]:
        """Where a label begins and the first value past its end, None at an open end."""
        label = label.removeprefix("null|")
        if label in ("*", "not null"):
            return None, None
        if label.startswith("["):
            low, high = label.removeprefix("[").removesuffix(")").split(",")
            return self._read(low), self._read(high)
        if label.startswith(">="):
            return self._read(label.removeprefix(">=")), None
        if label.startswith("<="):
            return None, self.after(self._read(label.removeprefix("<=")))
        if label.startswith("<"):
            return None, self._read(label.removeprefix("<"))
        low, high = self._ends(label)
        return self._read(low), self.after(self._read(high))

    def after(self, value: Any) -> Any:
        """The next value that the column could have."""
        return math.nextafter(value, math.inf) if self.kind is float else value + STEPS[self.kind]

    def _ends(self, label: str) -> tuple[str, str]:
        if ".." in label:
            low, high = label.split("..")
        elif self.kind is int and "-" in label[1:]:
            low, high = label.split("-")
        else:
            low = high = label
        return low, high

    def _read(self, word: str) -> Any:
        return self.kind.fromisoformat(word) if self.kind in (dt.date, dt.datetime) else self.kind(word)


@dataclass(frozen=True)
class Nodes:
    """A column with a hierarchy: the labels above each value, itself first. Null has none but the root."""

    above: Mapping[Any, Collection[str]] = field(default_factory=dict)

    def contains(self, label: str | None, value: Any) -> bool:
        if value is None:
            return label is None or label == "*"
        return label == "*" or label in self.above[value]


def listed(label: str) -> list[str]:
    r"""The values of a label such as {a|b}; a backslash takes the meaning from the character after it.

    >>> listed(r"{a\|b|c\\}")
    ['a|b', 'c\\']
    """
    assert label.startswith("{") and label.endswith("}"), "not a list of values"
    words, escaped = [""], False
    for character in label[1:-1]:
        if escaped or character not in "\\|":
            words[-1] += character
            escaped = False
        elif character == "\\":
            escaped = True
        else:
            words.append("")
    return words


def digits(number: float) -> int:
    """Significant digits of a number as it is written.

    >>> digits(1200), digits(-0.0125), digits(0)
    (2, 3, 0)
    """
    plain = format(Decimal(repr(number)), "f").lstrip("-")
    return len((plain.rstrip("0") if "." in plain else plain).replace(".", "").strip("0"))


def whole_bound(lower: int, upper: int) -> int:
    """The roundest start of the upper of two cells of whole numbers, nearest to the middle: neither it nor the end of
    the lower cell is one of the two numbers if that can be; else not it; else the upper number."""
    every = range(lower + 1, upper + 1)
    apart = [b for b in every if b < upper and b - 1 > lower] or [b for b in every if b < upper] or [upper]
    return min(apart, key=lambda b: (digits(b), abs(2 * b - 1 - lower - upper), b))


def fewest_digits(lower: float, upper: float) -> int:
    """The significant digits of the shortest decimal between two numbers that are well apart."""
    if lower < 0 < upper:
        return 0
    low, high = sorted((abs(Fraction(lower)), abs(Fraction(upper))))
    tens = math.floor(math.log10(high)) + 1
    for count in range(1, 18):
        for power in range(tens - count - 1, tens + 1):
            unit = Fraction(10) ** power
            number = low // unit + 1
            number += float(number * unit) <= low  # a decimal that reads as the lower value is it
            if float(number * unit) < high and number < 10**count:  # a decimal that reads as the upper value is it
                return count
    raise AssertionError("they are not well apart")


def coarseness(moment: dt.datetime) -> int:
    """The place of the longest unit that begins at a moment: 0 for a thousand years, 5 for a day."""
    begins = [(moment.month, moment.day, moment.time()) == (1, 1, dt.time()) and moment.year % n == 0 for n in YEARS]
    begins += [moment.day == 1 and moment.time() == dt.time(), moment.time() == dt.time()]
    return (begins + [(moment - START) % unit == dt.timedelta() for unit in UNITS]).index(True)


def coarsest_between(lower: dt.datetime, upper: dt.datetime) -> int:
    """The coarseness of the coarsest moment between two."""
    years = [dt.datetime(year, 1, 1) for year in range(lower.year, upper.year + 1)]
    months = [dt.datetime(year, month, 1) for year in range(lower.year, upper.year + 1) for month in range(1, 13)]
    named = [coarseness(moment) for moment in years + months if lower < moment < upper]
    if named:
        return min(named)
    for place, unit in enumerate((DAY, *UNITS), len(YEARS) + 1):
        following = START + ((lower - START) // unit + 1) * unit
        if following < upper:
            return place
    raise AssertionError("no microsecond lies between them")


START = dt.datetime(1, 1, 1)
YEARS = (1000, 100, 10, 1)
UNITS = [dt.timedelta(microseconds=n) for n in (3_600_000_000, 60_000_000, *(10**power for power in range(6, -1, -1)))]
