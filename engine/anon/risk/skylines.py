"""Compute knowledge skylines (Chen, LeFevre, Ramakrishnan, VLDB 2007, Section 4.3): all maximal amounts of knowledge
(l, k, m) at which a release is still safe for a sensitive value at a confidence, with the adversary who succeeds beyond
each of them. Groups come as `verify.grouped` counts them.

The breach probability rises with l, k and m, so that for each l the safe (k, m) lie under a staircase, which is
followed along its edge. Every query is answered by the few groups of `fronts` and never by the whole release; an answer
closer to the confidence than NEAR is computed in exact arithmetic. If people have several values, l may be arbitrarily
large once all other values of a group are ruled out: then it is infinity.

    >>> release = Groups.dense(np.array([[1, 2, 1], [2, 2, 0]]))  # Figure 3: AIDS, Flu, Cancer
    >>> [(p.l, p.k, p.m) for p in skylines([release], [2], [Fraction(3, 4)])[0].points]
    [(0, 0, 2), (0, 1, 1), (0, 2, 0), (1, 0, 1)]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np

from anon.criteria.protocol import NEAR, Groups
from anon.criteria.skyline import KINDS, SMALLEST, Counts
from anon.risk.fronts import Fronts, fronts_of
from anon.risk.witness import Name, Witness

INFINITY = math.inf
EXACT = 8  # relatives; probabilities with more of them are computed in floats
CACHED = 1 << 16  # answers


@dataclass(frozen=True)
class SafePoint:
    """A maximal safe amount of knowledge, and the adversary one step beyond it in each direction ("k", "m", and "l"
    unless that is infinite)."""

    l: float
    k: float
    m: float
    beyond: dict[str, Witness]

    @property
    def witness(self) -> Witness | None:
        """Return the most confident adversary one step beyond the point; of equal ones the one who knows one more
        person's value."""
        return max(self.beyond.values(), key=lambda witness: witness.probability, default=None)

    def to_dict(self, name: Name) -> dict[str, Any]:
        witness = self.witness
        return {
            **{axis: _amount(getattr(self, axis)) for axis in ("l", "k", "m")},
            "breach_beyond": witness.probability if witness else None,
            "witness": witness.to_dict(name) if witness else None,
            "beyond": {
                axis: {"breach": each.probability, "sentence": each.sentence(name)}
                for axis, each in self.beyond.items()
            },
        }


@dataclass(frozen=True)
class KnowledgeSkyline:
    """The skyline of one value (its code, None for a value that the table does not have) at one confidence. Without
    points the release is not safe even against `start`, the adversary who knows nothing more."""

    value: int | None
    confidence: Fraction
    points: tuple[SafePoint, ...]
    start: Witness | None = None

    def to_dict(self, name: Name, value: str | None = None) -> dict[str, Any]:
        """Return the JSON. `value`: the name of the value in question, if it is not that of `name`."""
        own_name = value if value is not None or self.value is None else name(self.value)

        def named(code: int) -> str:
            return str(own_name) if code == self.value else name(code)

        return {
            "value": own_name,
            "confidence": float(self.confidence),
            "points": [point.to_dict(named) for point in self.points],
            "breach": self.start.probability if self.start else 0.0,
            "witness": self.start.to_dict(named) if self.start else None,
        }


NOWHERE = SafePoint(INFINITY, INFINITY, INFINITY, {})


def _amount(amount: float) -> int | str:
    return "inf" if amount == INFINITY else int(amount)


def skylines(
    batches: Iterable[Groups],
    values: Sequence[int | None],
    confidences: Sequence[Fraction],
    multiplicity: str = "single",
) -> list[KnowledgeSkyline]:
    """Return the skylines of sensitive values (by code; None for a value that the table does not have) at each
    confidence, in this order. `batches` are the groups of a release, e.g. `histograms(table, Reading((column,)))`, read
    once."""
    fronts = fronts_of(batches, sorted({value for value in values if value is not None}), multiplicity)
    found = []
    for value in values:
        for confidence in confidences:
            if value is None or not fronts[value].levels:
                found.append(KnowledgeSkyline(value, confidence, (NOWHERE,)))
            else:
                found.append(SkylineSearch(value, confidence, fronts[value], multiplicity).skyline())
    return found


@dataclass(frozen=True)
class _Answer:
    """The least negated ratio for some knowledge and where it comes from: a case of Theorem 2, and the places of the
    groups behind SS1 to SS5 in the fronts."""

    ratio: float
    case: int
    at: tuple[int, ...]


class SkylineSearch:
    """The search for the skyline of one value at one confidence."""

    def __init__(self, value: int, confidence: Fraction, fronts: Fronts, multiplicity: str) -> None:
        self.value, self.confidence, self.fronts, self.multiplicity = value, confidence, fronts, multiplicity
        self.bound = 1 / confidence - 1
        self.least = float(self.bound)
        self.tolerance = max(NEAR * self.least, SMALLEST) if self.least > 0 else 0.0
        self.last = len(fronts.levels) - 1
        self.ask = lru_cache(CACHED)(self._ask)

    def skyline(self) -> KnowledgeSkyline:
        start = self.witness(0, 0, 0)
        points: list[SafePoint] = []
        for l in range(self.last + 1):
            stairs = staircase(partial(self.safe, l))
            if l == self.last:
                points += [self.point(l, k, m, INFINITY) for k, m in stairs]
            else:
                points += [self.point(l, k, m, l) for k, m in stairs if not self.safe(l + 1, k, m)]
            if not stairs:
                break
        return KnowledgeSkyline(self.value, self.confidence, tuple(points), start)

    def point(self, l: int, k: int, m: int, shown_l: float) -> SafePoint:
        """Return a safe point with its witnesses. `shown_l` is l, or infinity if l may be arbitrarily large."""
        steps = {"k": (l, k + 1, m), "m": (l, k, m + 1)} | ({"l": (l + 1, k, m)} if shown_l != INFINITY else {})
        return SafePoint(shown_l, k, m, {axis: self.witness(*step) for axis, step in steps.items()})

    def safe(self, l: int, k: int, m: int) -> bool:
        ratio = self.ask(l, k, m).ratio
        if abs(ratio - self.least) > self.tolerance:
            return ratio > self.least
        return self.exactly(l, k, m) > self.bound

    def probability(self, l: int, k: int, m: int) -> float:
        ratio = self.exactly(l, k, m) if m <= EXACT else self.ask(l, k, m).ratio
        return float(1 / (1 + ratio))

    def witness(self, l: int, k: int, m: int) -> Witness:
        answer, histograms = self.ask(l, k, m), self.fronts.histograms
        groups = self._groups(l, answer)
        target, family = ((groups[0], groups[0]), (groups[1], groups[4]), (groups[2], groups[3]))[answer.case]
        about = self.value, self.multiplicity, self.probability(l, k, m)
        return Witness.from_histograms(answer.case, histograms[target], histograms[family], (l, k, m), about)

    def exactly(self, l: int, k: int, m: int) -> Fraction:
        """Return the negated ratio in exact arithmetic, from the groups behind its minima."""
        one, two, three, four, five = (self._counts(group, l) for group in self._groups(l, self.ask(l, k, m)))
        kind = self.multiplicity
        ratios = [
            (one.target(k, kind), one.family(m, k + 1, kind)),
            (two.target(0, kind), five.family(m, k, kind)),
            (three.target(k, kind), four.family(m, 0, kind)),
        ]
        return min(target * family for target, family in ratios if target is not None)

    def _groups(self, l: int, answer: _Answer) -> list[int]:
        assert self.fronts.family is not None
        columns = [self.fronts.levels[l].group] * 3 + [self.fronts.family.group] * 2
        return [int(column[at]) for column, at in zip(columns, answer.at)]

    def _counts(self, group: int, l: int) -> Counts:
        histogram = self.fronts.histograms[group]
        others = histogram.others(self.value)[:l]
        return Counts(histogram.n, histogram.counts[self.value], tuple(count for _, count in others))

    def _ask(self, l: int, k: int, m: int) -> _Answer:
        from anon.risk.kernels_skylines import least_ratios

        level, family = self.fronts.levels[l], self.fronts.family
        assert family is not None
        ratios, at = np.zeros(3), np.zeros(5, np.int64)
        least_ratios(KINDS.index(self.multiplicity), level.n, level.s, level.left, family.n, family.s, k, m, ratios, at)
        case = int(ratios.argmin())
        # with target and family in one group, the first is the least of them up to rounding
        if ratios[0] <= ratios[case] * (1 + NEAR):
            case = 0
        return _Answer(float(ratios[case]), case, tuple(at.tolist()))


def staircase(safe: Callable[[int, int], bool]) -> list[tuple[int, int]]:
    """Return the maximal (k, m) of a bounded region that contains with a point all lower ones, and may be empty."""
    points: list[tuple[int, int]] = []
    k, m = 0, last_safe(0, lambda number: safe(0, number))
    while m >= 0:
        k = last_safe(k, lambda number, m=m: safe(number, m))  # type: ignore[misc]
        points.append((k, m))
        k += 1
        below = last_safe(0, lambda step, k=k, m=m: m - step >= 0 and not safe(k, m - step))  # type: ignore[misc]
        m -= below + 1
    return points


def last_safe(first: int, holds: Callable[[int], bool]) -> int:
    """Return the last number from `first` on for which a condition holds that, once broken, stays broken; `first` - 1
    if it holds for none. Numbers near the first one are tried first."""
    step, low = 1, first - 1
    while holds(low + step):
        low, step = low + step, step * 2
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
