"""The numbers of a criterion that can be loosened, and the steps in which they loosen.

A number moves in steps that people would write down: one at a time where it counts something, otherwise a tenth of its
first digit (0.8, 0.81, ...)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from math import ceil, floor
from typing import Any

from anon.config.mistakes import Model

FAR = 1_000  # steps; where a number has no natural end, no more are tried


@dataclass(frozen=True)
class Number:
    """A number of a criterion: what it is called, what it is now and at its loosest, and its step towards that."""

    name: str
    now: Decimal
    loosest: Decimal
    step: Decimal
    change: Callable[[Decimal], Any]  # the criterion with another number in this place

    @property
    def steps(self) -> int:
        return ceil(abs(self.loosest - self.now) / self.step)

    def at(self, steps: int) -> Decimal:
        """Return the number after some steps, on a multiple of the step.

        >>> number = Number("c", Decimal("0.85"), Decimal(1), Decimal("0.1"), lambda value: None)
        >>> [float(number.at(steps)) for steps in range(1, number.steps + 1)]
        [0.9, 1.0]
        """
        if self.loosest > self.now:
            return min((floor(self.now / self.step) + steps) * self.step, self.loosest)
        return max((ceil(self.now / self.step) - steps) * self.step, self.loosest)


def field_number(spec: Model, name: str, loosest: int | None, whole: bool | None = None) -> Number:
    """Return a field of a criterion as a number; without a loosest setting it can grow by `FAR` steps."""
    written: Any = getattr(spec, name)
    now, of_integers = Decimal(written), isinstance(written, int)
    step = Decimal(1) if (of_integers if whole is None else whole) else step_of(now)

    def change(value: Decimal) -> Model:
        return spec.model_copy(update={name: int(value) if of_integers else value})

    return Number(name, now, now + FAR * step if loosest is None else Decimal(loosest), step, change)


def step_of(now: Decimal) -> Decimal:
    """Return a tenth of the place of the first digit; of zero, one hundredth.

    >>> str(step_of(Decimal("0.8"))), str(step_of(Decimal(250_000))), str(step_of(Decimal(0)))
    ('0.01', '10000', '0.01')
    """
    return Decimal(10) ** (now.adjusted() - 1) if now else Decimal("0.01")
