"""How far a number of a criterion must be loosened until that changes something, for `explain`.

Where loosening never makes a criterion refuse more, the first step that changes something is found by halving,
otherwise by trying one step after the other."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from anon.config import Criterion
from anon.config.loosening import Number


@dataclass(frozen=True)
class Setting:
    """A loosened number, and the criterion with it."""

    number: Number
    to: Decimal
    spec: Criterion

    @property
    def text(self) -> str:
        return f"{self.number.name} {_plain(self.number.now)} to {_plain(self.to)}"


def next_setting(number: Number, changes: Callable[[Criterion], bool], steady: bool = True) -> Setting | None:
    """Return the first setting that changes something, None if none does. `steady`: all after the first do."""

    def changes_after(steps: int) -> bool:
        return changes(number.change(number.at(steps)))

    every = range(1, number.steps + 1)
    if steady:
        first = bisect_left(every, True, key=changes_after) if every and changes_after(every[-1]) else len(every)
    else:
        first = next((at for at, steps in enumerate(every) if changes_after(steps)), len(every))
    if first == len(every):
        return None
    to = number.at(every[first])
    return Setting(number, to, number.change(to))


def _plain(number: Decimal) -> str:
    """Return a number without an exponent or zeros at the end."""
    digits = format(number, "f")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits
