"""Compute knowledge skylines as the report draws them: sections of the safe region at some numbers of values ruled out,
in a size that does not grow with the groups, and the confidence of an adversary who learns more of one kind. In
contrast, `skylines` lists every maximal point: a release with groups of thousands has thousands of those.

Sections are taken at `rungs`, which are all numbers of a short range and a ladder over a long one. The section at a
rung is exact; between two of them the region is at least as large as at the higher one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from anon.criteria.protocol import Groups
from anon.risk.fronts import fronts_of
from anon.risk.skylines import SkylineSearch, last_safe
from anon.risk.witness import Name

LEVELS, STEPS = 8, 24  # rungs of l, and of k and m
ALMOST = 0.999  # curves end where an adversary reaches this confidence,
MANY = 1 << 20  # or this number of pieces


def rungs(last: int, count: int) -> list[int]:
    """Return numbers from 0 to `last`: all if they are few enough, else about `count`, which are denser at the low end.

    >>> rungs(3, 5), rungs(1000, 6)
    ([0, 1, 2, 3], [0, 4, 16, 63, 251, 1000])
    """
    if last < count:
        return list(range(last + 1))
    ratio = (last + 1) ** (1 / (count - 1))
    return sorted({0, last, *(round(ratio**step) for step in range(1, count - 1))})


@dataclass(frozen=True)
class Sections:
    """The sections of one value at one confidence: per l the stairs, pairs (k, largest safe m), and the most confident
    adversary one step beyond what is safe with knowledge of one kind alone."""

    search: SkylineSearch

    def to_dict(self, name: Name) -> dict[str, Any]:
        safe, levels, complete = self.safe, [], True
        last = last_safe(0, lambda l: l <= self.search.last and safe(l, 0, 0))
        for l in rungs(last, LEVELS) if last >= 0 else ():
            most = last_safe(0, partial(_at_k, safe, l))
            steps = rungs(most, STEPS)
            complete &= len(steps) == most + 1
            levels.append({"l": l, "stairs": self._stairs(l, steps)})
        return {
            "confidence": float(self.search.confidence),
            "levels": levels,
            "complete": complete and len(levels) == last + 1,
            "beyond": self._beyond(levels, name),
        }

    def safe(self, l: int, k: int, m: int) -> bool:
        """Return whether an amount of knowledge is safe. For certainty (c = 1) floats are enough: the kernels keep what
        is above zero there."""
        return self.search.ask(l, k, m).ratio > 0 if self.search.least == 0 else self.search.safe(l, k, m)

    def _stairs(self, l: int, steps: list[int]) -> list[list[int]]:
        """Return for each k the largest safe m, which falls as k rises. Of several k with one m the last stands for
        all."""
        safe = self.safe
        stairs: list[list[int]] = []
        top = last_safe(0, lambda m: safe(l, 0, m))
        for k in steps:
            fall = last_safe(0, lambda step, k=k, top=top: step <= top and not safe(l, k, top - step))  # type: ignore[misc]
            top -= fall + 1
            if stairs and stairs[-1][1] == top:
                stairs.pop()
            stairs.append([k, top])
        return stairs

    def _beyond(self, levels: list[dict[str, Any]], name: Name) -> dict[str, Any]:
        """Return how much knowledge of one kind alone is safe, and the adversary who has one piece more; if none is
        safe, the adversary who has no knowledge. `most` is null if any number of values may be ruled out."""
        if not levels:
            start = self.search.witness(0, 0, 0)
            return {"nothing": {"breach": start.probability, "sentence": start.sentence(name)}}
        first = levels[0]["stairs"]
        found: dict[str, Any] = {}
        for axis, most in (("l", levels[-1]["l"]), ("k", first[-1][0]), ("m", first[0][1])):
            if axis == "l" and most == self.search.last:
                found[axis] = {"most": None}
                continue
            witness = self.search.witness(*(most + 1 if axis == other else 0 for other in "lkm"))
            found[axis] = {"most": most, "breach": witness.probability, "sentence": witness.sentence(name)}
        return found


def _at_k(safe: Callable[[int, int, int], bool], l: int, k: int) -> bool:
    return safe(l, k, 0)


def curves(search: SkylineSearch) -> dict[str, list[list[float]]]:
    """Return the confidence of an adversary with pieces of knowledge of one kind: pairs (pieces, breach probability),
    up to almost certainty."""

    def breach(place: int, number: int) -> float:
        l, k, m = (number if at == place else 0 for at in range(3))
        return 1 / (1 + search.ask(l, k, m).ratio)

    found = {}
    for place, axis in enumerate("lkm"):
        limit = search.last if axis == "l" else MANY
        most = last_safe(0, lambda number, at=place, limit=limit: number <= limit and breach(at, number) < ALMOST)  # type: ignore[misc]
        found[axis] = [[number, breach(place, number)] for number in rungs(min(most + 1, limit), STEPS)]
    return found


def sections(
    batches: Iterable[Groups], values: Sequence[int], confidences: Sequence[Fraction], multiplicity: str, name: Name
) -> list[dict[str, Any]]:
    """Return for each of some values of the table its curves, and its sections at each confidence."""
    fronts = fronts_of(batches, sorted(values), multiplicity)
    found = []
    for value in values:
        searches = [SkylineSearch(value, confidence, fronts[value], multiplicity) for confidence in confidences]
        drawn = [Sections(search).to_dict(name) for search in searches]
        found.append({"value": name(value), "curves": curves(searches[0]), "skylines": drawn})
    return found
