"""The cells of the `intervals` builder: the cell of each width that a number lies in, and the label of that cell, in
exact arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property

from anon.core.text import span, text
from anon.hierarchy.label_levels import ROOT, Row

Number = int | Decimal


@dataclass(frozen=True)
class IntervalCells:
    """The cells of an interval builder. All numbers are in units of 10**-places, so that they are integers and every
    comparison is exact."""

    widths: list[int]
    origin: int
    top: int | None
    bottom: int | None
    places: int
    whole: bool
    written: dict[int, str] = field(default_factory=dict)

    @classmethod
    def from_numbers(
        cls, widths: Sequence[Number], origin: Number, top: Number | None, bottom: Number | None, whole: bool
    ) -> IntervalCells:
        """Return the cells for the numbers of a config; `whole`: all values of the column are whole numbers."""
        numbers = [n for n in (*widths, origin, top, bottom) if n is not None]
        places = max(len(text(n).partition(".")[2]) for n in numbers)

        def units(number: Number) -> int:
            return int(in_units(number, places))

        return cls(
            widths=[units(width) for width in widths],
            origin=units(origin),
            top=None if top is None else units(top),
            bottom=None if bottom is None else units(bottom),
            places=places,
            whole=whole and places == 0,
        )

    def part(self, unit: float) -> int | str | None:
        """Return what is equal for values with equal labels: the label of an open end, or the number of the narrowest
        cell. None for infinity without an open end that covers it, and for NaN."""
        if self.top is not None and unit >= self.top:
            return self._top_label
        if self.bottom is not None and unit < self.bottom:
            return self._bottom_label
        return (unit - self.origin) // self.widths[0] if isinstance(unit, int) else None

    def path(self, part: int | str) -> Row:
        """Return the labels of all levels for one part."""
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
        return span(str(low), str(high - 1)) if self.whole else f"[{self._number(low)},{self._number(high)})"

    @cached_property
    def _top_label(self) -> str:
        return f">={self._number(self.top or 0)}"

    @cached_property
    def _bottom_label(self) -> str:
        bottom = self.bottom or 0
        return f"<={bottom - 1}" if self.whole else f"<{self._number(bottom)}"

    def _number(self, unit: int) -> str:
        """Return the text of a bound. Neighbouring cells and all levels share their bounds, so each is made once."""
        if unit not in self.written:
            self.written[unit] = text(Decimal(f"{unit}E-{self.places}"))
        return self.written[unit]


def in_units(number: float | Decimal, places: int) -> int | float:
    """Return a number in units of 10**-places, rounded down; infinity and NaN unchanged."""
    exact = Decimal(float.__repr__(number)) if isinstance(number, float) else number
    if isinstance(exact, Decimal) and not exact.is_finite():
        return float(exact)
    numerator, denominator = exact.as_integer_ratio()
    found: int | float = numerator * 10**places // denominator
    return found
