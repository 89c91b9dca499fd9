"""The numbers of a criterion that can be loosened, and how far it takes to loosen one until that changes something. For
`explain`, which looks back on the way of the data (config -> source -> cube -> search -> release -> verify -> report).

A number moves in steps that people would write down: one at a time where it counts something, otherwise a tenth of its
first digit (0.8, 0.81, ...). Where loosening never makes a criterion refuse more, the first step that changes something
is found by halving, otherwise by trying one step after the other."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from math import ceil, floor
from typing import Any

from anon import config as grammar
from anon.config import Criterion

FAR = 1_000  # steps; where a number has no natural end, nobody is told of more
Change = Callable[[Decimal], Criterion]


@dataclass(frozen=True)
class Number:
    """A number of a criterion: what it is called, what it is now and at its loosest, and its step towards that."""

    name: str
    now: Decimal
    loosest: Decimal
    step: Decimal
    change: Change  # the criterion with another number in this place

    @property
    def steps(self) -> int:
        return ceil(abs(self.loosest - self.now) / self.step)

    def at(self, steps: int) -> Decimal:
        """The number so many steps looser, on a multiple of the step.

        >>> number = Number("c", Decimal("0.85"), Decimal(1), Decimal("0.1"), lambda value: None)
        >>> [float(number.at(steps)) for steps in range(1, number.steps + 1)]
        [0.9, 1.0]
        """
        if self.loosest > self.now:
            return min((floor(self.now / self.step) + steps) * self.step, self.loosest)
        return max((ceil(self.now / self.step) - steps) * self.step, self.loosest)


@dataclass(frozen=True)
class Setting:
    """A number loosened, and the criterion with it."""

    number: Number
    to: Decimal
    spec: Criterion

    @property
    def words(self) -> str:
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


def numbers(spec: Criterion) -> list[Number]:
    """What can be loosened of a criterion, one at a time."""
    if isinstance(spec, grammar.Skyline):
        return list(_of_points(spec))
    if isinstance(spec, grammar.LDiversity):
        return list(_of_l_diversity(spec))
    nobody = 0 if isinstance(spec, grammar.CKSafety) else 1
    least = {"k": nobody, "m": 1, "epsilon": 0, "delta": 0, "e": 0, "minimum": 0}
    most = {"c": Decimal(1), "alpha": Decimal(1), "t": None}
    found = []
    for name in type(spec).model_fields:
        if name in least:
            found.append(_number(spec, name, Decimal(least[name])))
        elif name in most:
            far = getattr(spec, name) + FAR * _step(getattr(spec, name))
            scaled = name == "t" and not isinstance(getattr(spec, "distance", None), grammar.Absolute)
            found.append(_number(spec, name, Decimal(1) if scaled else most[name] or far))
    return found


def _of_l_diversity(spec: grammar.LDiversity) -> Iterator[Number]:
    whole = spec.kind in ("distinct", "recursive")
    yield _number(spec, "l", Decimal(1), Decimal(1) if whole else None)
    if spec.c is not None:
        yield _number(spec, "c", spec.c + FAR * _step(spec.c))
    if spec.keep_possible is not None:
        kept = spec.keep_possible

        def change(value: Decimal) -> Criterion:
            return spec.model_copy(update={"keep_possible": kept.model_copy(update={"percent": value})})

        yield Number("keep_possible.percent", kept.percent, Decimal(0), _step(kept.percent), change)


def _of_points(spec: grammar.Skyline) -> Iterator[Number]:
    """The confidence of each point, then its amounts of knowledge."""
    places: list[tuple[str | None, list[grammar.Point]]] = [(None, spec.points)]
    places += [(value, points) for value, points in spec.values.items() if not isinstance(points, str)]
    for value, points in places:
        for at, point in enumerate(points):
            for name, loosest in (("c", 1), ("m", 0), ("k", 0), ("l", 0)):
                now = Decimal(getattr(point, name))
                about = "" if value is None else f" for {value}"
                called = f"{name} of ({point.l}, {point.k}, {point.m}){about}:"
                step = _step(now) if name == "c" else Decimal(1)
                yield Number(called, now, Decimal(loosest), step, _changed(spec, value, at, name))


def _changed(spec: grammar.Skyline, value: str | None, at: int, name: str) -> Change:
    def change(number: Decimal) -> Criterion:
        points = list(spec.points if value is None else spec.values[value])
        point = points[at]
        assert isinstance(point, grammar.Point)
        points[at] = point.model_copy(update={name: number if name == "c" else int(number)})
        update = {"points": points} if value is None else {"values": spec.values | {value: points}}
        return spec.model_copy(update=update)

    return change


def _number(spec: Criterion, name: str, loosest: Decimal, step: Decimal | None = None) -> Number:
    written: Any = getattr(spec, name)
    whole = isinstance(written, int)

    def change(value: Decimal) -> Criterion:
        return spec.model_copy(update={name: int(value) if whole else value})

    now = Decimal(written)
    return Number(name, now, loosest, step or (Decimal(1) if whole else _step(now)), change)


def _step(now: Decimal) -> Decimal:
    """A tenth of the first digit's place; of zero and of what is told in hundredths, one of these.

    >>> str(_step(Decimal("0.8"))), str(_step(Decimal(250_000))), str(_step(Decimal(0)))
    ('0.01', '10000', '0.01')
    """
    return Decimal(10) ** (now.adjusted() - 1) if now else Decimal("0.01")


def _plain(number: Decimal) -> str:
    """Without exponents or zeros at the end."""
    told = format(number, "f")
    return told.rstrip("0").rstrip(".") if "." in told else told
