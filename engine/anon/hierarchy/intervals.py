"""The cells of the `intervals` and `bands` builders: the cell of each level that a number lies in, and the label of
that cell, in exact arithmetic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from math import isnan

from anon.core.text import span, text
from anon.hierarchy.label_levels import ROOT, Row

Number = int | Decimal


@dataclass(frozen=True, kw_only=True)
class Cells(ABC):
    """The cells of a builder of numbers. All numbers are in units of 10**-places, so that they are integers and every
    comparison is exact. `whole`: all values and bounds are whole numbers."""

    places: int
    whole: bool
    written: dict[int, str] = field(default_factory=dict)

    @abstractmethod
    def part(self, unit: float) -> int | str | None:
        """Return what is equal for values with equal labels; None for a value without a cell, such as NaN."""

    @abstractmethod
    def path(self, part: int | str) -> Row:
        """Return the labels of all levels for one part."""

    def from_on(self, bound: int) -> str:
        """Return the label of the values from a bound on."""
        return f">={self._number(bound)}"

    def below(self, bound: int) -> str:
        """Return the label of the values below a bound."""
        return f"<={bound - 1}" if self.whole else f"<{self._number(bound)}"

    def between(self, low: int, high: int) -> str:
        """Return the label of the values from one bound to before another."""
        return span(str(low), str(high - 1)) if self.whole else f"[{self._number(low)},{self._number(high)})"

    def _number(self, unit: int) -> str:
        """Return the text of a bound. Neighbouring cells and all levels share their bounds, so each is made once."""
        if unit not in self.written:
            self.written[unit] = text(Decimal(f"{unit}E-{self.places}"))
        return self.written[unit]


@dataclass(frozen=True, kw_only=True)
class IntervalCells(Cells):
    """Cells of growing width, with an open cell at either end if the builder says so."""

    widths: list[int]
    origin: int
    top: int | None
    bottom: int | None

    @classmethod
    def from_numbers(
        cls, widths: Sequence[Number], origin: Number, top: Number | None, bottom: Number | None, whole: bool
    ) -> IntervalCells:
        """Return the cells for the numbers of a config; `whole`: all values of the column are whole numbers."""
        places = _places(n for n in (*widths, origin, top, bottom) if n is not None)
        return cls(
            widths=[_units(width, places) for width in widths],
            origin=_units(origin, places),
            top=None if top is None else _units(top, places),
            bottom=None if bottom is None else _units(bottom, places),
            places=places,
            whole=whole and places == 0,
        )

    def part(self, unit: float) -> int | str | None:
        """Return the label of an open end, or the number of the narrowest cell. None for infinity without an open end
        that covers it, and for NaN."""
        if self.top is not None and unit >= self.top:
            return self._top_label
        if self.bottom is not None and unit < self.bottom:
            return self._bottom_label
        return (unit - self.origin) // self.widths[0] if isinstance(unit, int) else None

    def path(self, part: int | str) -> Row:
        if isinstance(part, str):
            return (*[part] * len(self.widths), ROOT)
        unit = self.origin + part * self.widths[0]
        return (*(self._cell(unit, width) for width in self.widths), ROOT)

    def _cell(self, unit: int, width: int) -> str:
        low = unit - (unit - self.origin) % width
        high = low + width
        if self.bottom is not None:
            low = max(low, self.bottom)
        if self.top is not None:
            high = min(high, self.top)
        return self.between(low, high)

    @cached_property
    def _top_label(self) -> str:
        return self.from_on(self.top or 0)

    @cached_property
    def _bottom_label(self) -> str:
        return self.below(self.bottom or 0)


@dataclass(frozen=True, kw_only=True)
class BandCells(Cells):
    """Cells between chosen bounds, ascending; those of each level are among those of the level before. Below the
    lowest and from the highest on, cells are open."""

    levels: list[list[int]]

    @classmethod
    def from_numbers(cls, levels: Sequence[Sequence[Number]], whole: bool) -> BandCells:
        """Return the cells for the numbers of a config; `whole`: all values of the column are whole numbers."""
        places = _places(bound for level in levels for bound in level)
        units = [[_units(bound, places) for bound in level] for level in levels]
        return cls(levels=units, places=places, whole=whole and places == 0)

    def part(self, unit: float) -> int | None:
        """Return the number of bounds of the finest level that are not above the value; None for NaN."""
        return None if isinstance(unit, float) and isnan(unit) else bisect_right(self.levels[0], unit)

    def path(self, part: int | str) -> Row:
        assert isinstance(part, int)
        finest = self.levels[0]
        unit = finest[part - 1] if part else finest[0] - 1
        return (*(self._band(level, bisect_right(level, unit)) for level in self.levels), ROOT)

    def _band(self, bounds: list[int], at: int) -> str:
        if at == 0:
            return self.below(bounds[0])
        return self.from_on(bounds[-1]) if at == len(bounds) else self.between(bounds[at - 1], bounds[at])


def _places(numbers: Iterable[Number]) -> int:
    """Return the number of decimal places that all numbers can be written with."""
    return max(len(text(number).partition(".")[2]) for number in numbers)


def _units(number: Number, places: int) -> int:
    return int(in_units(number, places))


def in_units(number: float | Decimal, places: int) -> int | float:
    """Return a number in units of 10**-places, rounded down; infinity and NaN unchanged."""
    exact = Decimal(float.__repr__(number)) if isinstance(number, float) else number
    if isinstance(exact, Decimal) and not exact.is_finite():
        return float(exact)
    numerator, denominator = exact.as_integer_ratio()
    found: int | float = numerator * 10**places // denominator
    return found
