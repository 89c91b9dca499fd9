"""The four kinds of l-diversity as criteria, which measure how diverse each group of a batch is. Definitions are in the
package's docstring."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anon.criteria.arithmetic import at_least, at_most, largest_below
from anon.criteria.l_diversity.entropy import compare_entropy
from anon.criteria.protocol import NEAR, Finding, Floats, GroupCriterion, Groups, Ints, Verdict, exact

if TYPE_CHECKING:
    from anon.config.criteria.l_diversity import LDiversity as Spec
    from anon.criteria.bind import Binder

Codes = frozenset[int]
Percents = Mapping[int, Fraction]  # per value code; a negative code stands for a value that the table lacks


class LDiversity(GroupCriterion):
    """Measure 0 is the diversity, measure i the share of `kept[i - 1]` in percent."""

    name = "l_diversity"
    kind: str
    headline = 0

    def __init__(self, column: str, bound: Fraction, least: int, keep_possible: Percents) -> None:
        self.column = column
        self.kept, self.percents = list(keep_possible), list(keep_possible.values())
        self.bounds = np.array([float(bound), *map(float, self.percents)])
        self.least_group = max(least, sum(percent > 0 for percent in self.percents))

    @classmethod
    def bind(cls, spec: Spec, binder: Binder, where: str) -> LDiversity:
        dont_care = [code for code in binder.codes(spec.dont_care, spec, f"{where}.dont_care") if code is not None]
        kept: dict[int, Fraction] = {}
        if spec.keep_possible is not None:
            codes = binder.codes(spec.keep_possible.values, spec, f"{where}.keep_possible.values")
            percent = exact(spec.keep_possible.percent)
            kept = {-1 - i if code is None else code: percent for i, code in enumerate(codes)}
        c = None if spec.c is None else exact(spec.c)
        criterion = l_diversity(str(spec.sensitive), spec.kind, exact(spec.l), c, dont_care, kept)
        criterion.context = spec.context(binder.values.texts)
        return criterion

    @abstractmethod
    def diversity(self, groups: Groups) -> Floats:
        """Return the diversity of each group; lower is worse."""

    @abstractmethod
    def compare_diversity(self, groups: Groups, which: Ints) -> Ints:
        """Return the signs of the diversity of some groups less its bound, exactly."""

    @abstractmethod
    def nearest_diversity(self, whole: Groups) -> list[str]:
        """Return the nearest thresholds for which groups, one of which fails, would all hold."""

    def measure(self, groups: Groups) -> Floats:
        measures = np.empty((len(groups), len(self.bounds)))
        measures[:, 0] = self.diversity(groups)
        for index, code in enumerate(self.kept, start=1):
            measures[:, index] = 100.0 * _counts_of(groups, code) / groups.n
        return measures

    def compare(self, groups: Groups, which: Ints, measure: int) -> Ints:
        if measure == 0:
            return self.compare_diversity(groups, which)
        percent = self.percents[measure - 1]
        counts = _counts_of(groups, self.kept[measure - 1])[which]
        signs = _compare(counts, 100 * percent.denominator, groups.n[which], percent.numerator)
        if self.strict:  # a share may equal its bound where the diversity may not
            signs[signs == 0] = 1
        return signs

    def figure_and_bound(self, measure: int, value: float) -> tuple[float, float]:
        bound = float(self.bounds[measure])
        if measure and self.strict and value == np.nextafter(bound, np.inf):
            value = bound
        return abs(value), abs(bound)

    def details(self, verdict: Verdict, name: Callable[[int], str]) -> dict[str, Any]:
        kept = zip(self.kept, verdict.findings[1:])
        shares = [
            {"value": name(code), "percent": finding.figure, "asked": finding.bound, "safe": finding.safe}
            for code, finding in kept
            if code >= 0
        ]
        return {"kind": self.kind, **({"keep_possible": shares} if shares else {})}

    def refusal(self, finding: Finding, name: Callable[[int], str]) -> str:
        if not finding.about:
            return super().refusal(finding, name)
        code = self.kept[finding.about - 1]
        value = name(code) if code >= 0 else "a value that the table lacks"
        return f"{finding.figure:.6g}% of {value}, asked for at least {finding.bound:.6g}%"

    def nearest(self, whole: Groups, finding: Finding) -> list[str]:
        """Return the thresholds for which every context of the table holds, and of `keep_possible` for every value,
        which have one percentage."""
        if not finding.about:
            return self.nearest_diversity(whole)
        counts = ((whole.n.tolist(), _counts_of(whole, code).tolist()) for code in self.kept)
        percent = min(Fraction(100 * own, n) for sizes, held in counts for n, own in zip(sizes, held))
        return [f"keep_possible.percent = {at_most(percent)}"] if percent else []


class DistinctDiversity(LDiversity):
    """At least l different values."""

    kind = "distinct"
    words = ("{figure} different values, asked for at least {bound}",)

    def __init__(self, column: str, l: int, keep_possible: Percents) -> None:
        self.l = l
        super().__init__(column, Fraction(l), l, keep_possible)
        self.absorbs = not any(self.percents)

    def diversity(self, groups: Groups) -> Floats:
        return np.diff(groups.start).astype(np.float64)

    def compare_diversity(self, groups: Groups, which: Ints) -> Ints:
        found: Ints = np.sign(np.diff(groups.start)[which] - self.l)
        return found

    def nearest_diversity(self, whole: Groups) -> list[str]:
        fewest = int(np.diff(whole.start).min())
        return [f"l = {fewest}"] if fewest > 1 else []


class FrequencyDiversity(LDiversity):
    """The largest share is at most 1/l; measured below zero, so that lower is worse."""

    kind = "frequency"
    words = ("a value with the share {figure}, asked for at most {bound}",)
    relation = "<="

    def __init__(self, column: str, l: Fraction, keep_possible: Percents) -> None:
        self.l = l
        super().__init__(column, -1 / l, math.ceil(l), keep_possible)

    def diversity(self, groups: Groups) -> Floats:
        return -_largest(groups, groups.count) / groups.n

    def compare_diversity(self, groups: Groups, which: Ints) -> Ints:
        largest = _largest(groups, groups.count)[which]
        return _compare(groups.n[which], self.l.denominator, largest, self.l.numerator)

    def nearest_diversity(self, whole: Groups) -> list[str]:
        largest = _largest(whole, whole.count).tolist()
        l = min(Fraction(n, most) for n, most in zip(whole.n.tolist(), largest))
        return [f"l = {at_most(l)}"] if l > 1 else []


class EntropyDiversity(LDiversity):
    """exp(adjusted entropy) is at least l."""

    kind = "entropy"
    words = ("exp(entropy) {figure}, asked for at least {bound}",)

    def __init__(self, column: str, l: Fraction, dont_care: Codes, keep_possible: Percents) -> None:
        self.l, self.dont_care = l, dont_care
        super().__init__(column, l, 1 if dont_care else math.ceil(l), keep_possible)

    def diversity(self, groups: Groups) -> Floats:
        from anon.criteria import kernels_l_diversity as kernels

        effective = np.empty(len(groups))
        mask = _mask(groups, self.dont_care)
        kernels.effective_values(groups.start, groups.count, mask, _longest(groups), effective)
        return effective

    def compare_diversity(self, groups: Groups, which: Ints) -> Ints:
        values = np.diff(groups.start)[which]
        signs = _compare(values, self.l.denominator, np.ones_like(values), self.l.numerator)
        for at in np.flatnonzero(~self._even(groups)[which]).tolist():
            signs[at] = compare_entropy(*self._counts(groups, int(which[at])), self.l)
        return signs

    def nearest_diversity(self, whole: Groups) -> list[str]:
        """Return the larger of the two numbers of six digits next to the lowest diversity that all groups reach
        exactly."""
        lowest = float(self.diversity(whole).min())
        weaker = (
            EntropyDiversity(str(self.column), Fraction(at_most(near)), self.dont_care, {})
            for near in (lowest * (1 + NEAR), lowest * (1 - NEAR))
        )
        l = next(one.l for one in weaker if one.holds(one.state(whole)))
        return [f"l = {at_most(l)}"] if l > 1 else []

    def _even(self, groups: Groups) -> NDArray[np.bool_]:
        """Return which groups have equal counts once don't-care counts are lowered: exp(entropy) is their number."""
        sensitive = np.where(_mask(groups, self.dont_care), 0, groups.count)
        found: NDArray[np.bool_] = _largest(groups, sensitive) == np.minimum.reduceat(groups.count, groups.start[:-1])
        return found

    def _counts(self, groups: Groups, group: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the counts of a group outside and inside the don't-care set, each ascending."""
        entries = slice(groups.start[group], groups.start[group + 1])
        counts = groups.count[entries].tolist()
        if not self.dont_care:
            return tuple(sorted(counts)), ()
        coded = sorted(zip(counts, groups.value[entries].tolist()))
        others = tuple(count for count, value in coded if value in self.dont_care)
        return tuple(count for count, value in coded if value not in self.dont_care), others


class RecursiveDiversity(LDiversity):
    """r_y < c * tail; measured as -r_y / tail against -c, so that lower is worse."""

    kind = "recursive"
    relation = "<"
    words = ("the most frequent value is {figure} times the tail, asked for less than {bound}",)

    strict = True

    def __init__(self, column: str, l: int, c: Fraction, dont_care: Codes, keep_possible: Percents) -> None:
        self.l, self.c, self.dont_care = l, c, dont_care
        # a tail above 1/c takes floor(1/c) + 1 people, and l - 1 values that are at least as frequent stand before it
        least = 1 if dont_care or l == 1 else l + math.floor(1 / c)
        super().__init__(column, -c, least, keep_possible)

    def diversity(self, groups: Groups) -> Floats:
        head, tail = self._head_and_tail(groups, np.arange(len(groups)))
        ratio = np.full(len(groups), np.inf)
        np.divide(head, tail, out=ratio, where=tail > 0)
        return np.where(head > 0, -ratio, 0.0)

    def compare_diversity(self, groups: Groups, which: Ints) -> Ints:
        head, tail = self._head_and_tail(groups, which)
        return np.where(head > 0, _compare(tail, self.c.numerator, head, self.c.denominator), 1)

    def nearest_diversity(self, whole: Groups) -> list[str]:
        heads, tails = (each.tolist() for each in self._head_and_tail(whole, np.arange(len(whole))))
        pairs = [(head, tail) for head, tail in zip(heads, tails) if head]
        above = [at_least(max(Fraction(*pair) for pair in pairs))] if all(tail for _, tail in pairs) else []

        def holds(l: int) -> bool:
            weaker = RecursiveDiversity(str(self.column), l, self.c, self.dont_care, {})
            return weaker.holds(weaker.state(whole))

        smaller = largest_below(self.l, holds)
        words = [f"c above {c}" for c in above]
        return words + ([f"l = {smaller}"] if smaller is not None and smaller > 1 else [])

    def _head_and_tail(self, groups: Groups, which: Ints) -> tuple[Ints, Ints]:
        from anon.criteria import kernels_l_diversity as kernels

        head, tail = np.zeros(len(which), np.int64), np.zeros(len(which), np.int64)
        if self.l > 1:
            kernels.head_and_tail(
                groups.start, groups.count, _mask(groups, self.dont_care), which,
                min(self.l - 1, _longest(groups)), head, tail,
            )  # fmt: skip
        return head, tail


def l_diversity(
    column: str,
    kind: str,
    l: Fraction,
    c: Fraction | None = None,
    dont_care: Iterable[int] = (),
    keep_possible: Percents | None = None,
) -> LDiversity:
    """Return l-diversity of a kind. l is whole for distinct and recursive; c belongs to recursive alone."""
    codes, kept = frozenset(dont_care), keep_possible or {}
    if kind == "distinct":
        return DistinctDiversity(column, int(l), kept)
    if kind == "frequency":
        return FrequencyDiversity(column, l, kept)
    if kind == "entropy":
        return EntropyDiversity(column, l, codes, kept)
    if kind == "recursive" and c is not None:
        return RecursiveDiversity(column, int(l), c, codes, kept)
    raise ValueError(f"no l-diversity of kind {kind} with c = {c}")


def _compare(left: Ints, times: int, right: Ints, times_right: int) -> Ints:
    """Return the signs of left * times - right * times_right, in integers of any size."""
    difference = left.astype(object) * times - right.astype(object) * times_right
    found: Ints = (difference > 0).astype(np.int64) - (difference < 0).astype(np.int64)
    return found


def _counts_of(groups: Groups, code: int) -> Ints:
    """Return how many of each group have a value."""
    entries = np.flatnonzero(groups.value == code)
    counts = np.zeros(len(groups), np.int64)
    counts[np.searchsorted(groups.start, entries, side="right") - 1] = groups.count[entries]
    return counts


def _largest(groups: Groups, count: Ints) -> Ints:
    return np.maximum.reduceat(count, groups.start[:-1])


def _longest(groups: Groups) -> int:
    """Return the most values that a group of the batch has."""
    return int(np.diff(groups.start).max(initial=1))


def _mask(groups: Groups, codes: Codes) -> NDArray[np.bool_]:
    return np.isin(groups.value, list(codes)) if codes else np.zeros(len(groups.value), np.bool_)
