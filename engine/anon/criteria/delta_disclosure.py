"""delta-disclosure privacy (Brickell, Shmatikov: The Cost of Privacy: Destruction of Data-Mining Utility in Anonymized
Data Publishing, KDD 2008): for every group and every sensitive value of the released table

    |ln(share in the group / share in the table)| < delta

A value of the table that a group lacks makes this infinite, so every group has every value.

Monotone while the table stays the same: with q the share of a value in the table, its share p in a group holds iff it
lies in the open interval (q / e^delta, q e^delta), and the share in a union of groups is a mean of the shares in its
parts, weighted by their sizes, hence in the interval if all of these are. The table as one group is at 0 and always
safe. With suppression neither the union nor the interval stays: counts 2, 2 hold for delta = 1 in a table with 48 and
12, but not merged with 36 people of the first value, who fail alone and would be suppressed; and a table without them
has other shares.

>>> from anon.criteria.protocol import Groups
>>> criterion = DeltaDisclosure("disease", Fraction(1), [48, 12])
>>> (-criterion.measure(Groups.dense(np.array([[2, 2], [36, 0], [38, 2]]))))[:, 0].round(3).tolist()
[0.916, inf, 1.386]

Exact comparisons are possible because no tie exists: a ratio of shares is rational, while e^delta is transcendental for
every rational delta except 0 (Hermite 1873). The sign of ln(ratio) - delta is therefore settled by finitely many
digits, and they are added until it is:

>>> [compare_log(Fraction(2), Fraction(delta)) for delta in ("0.693147180559945309", "0.69314718055994531")]
[1, -1]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from anon.criteria.arithmetic import at_least
from anon.criteria.protocol import NEAR, Finding, Floats, GroupCriterion, Groups, Ints, exact

if TYPE_CHECKING:
    from anon.config.criteria.delta_disclosure import DeltaDisclosure as Spec
    from anon.criteria.bind import Binder


class DeltaDisclosure(GroupCriterion):
    """|ln(share in the group / share in the table)| < delta for every value; `reference` counts the individuals of the
    released table per value code. State: the largest such number, negated."""

    name = "delta_disclosure"
    relation = "<"
    strict = True
    relative = True
    words = ("|ln(share in the group / share in the table)| {figure}, asked for less than {bound}",)

    def __init__(self, column: str, delta: Fraction, reference: Sequence[int]) -> None:
        self.column, self.delta = column, delta
        self.bounds = np.array([-float(delta)])
        self._reference, self._total = list(reference), sum(reference)
        self._shares = np.array(self._reference, np.float64) / max(self._total, 1)
        self._values = sum(count > 0 for count in self._reference)
        self.least_group = self._least_group()

    @classmethod
    def bind(cls, spec: Spec, binder: Binder, where: str) -> DeltaDisclosure:
        return cls(str(spec.sensitive), exact(spec.delta), binder.frequency(spec))

    def _least_group(self) -> int:
        """Return a size that no safe group is below: every value is there, and one person is less than q e^delta of the
        group even for the rarest value. Rounding only makes it smaller."""
        rarest = min((count for count in self._reference if count), default=1)
        alone = math.exp(-float(self.delta)) * self._total / rarest
        return max(self._values, math.floor(alone * (1 - NEAR)) + 1)

    def measure(self, groups: Groups) -> Floats:
        values = np.diff(groups.start)
        share = groups.count / np.repeat(groups.n, values)
        apart = np.abs(np.log(share / self._shares[groups.value]))
        largest = np.maximum.reduceat(apart, groups.start[:-1])
        return -np.where(values < self._values, np.inf, largest)[:, None]

    def compare(self, groups: Groups, which: Ints, measure: int) -> Ints:
        return np.array([-compare_log(self._factor(groups, group), self.delta) for group in which.tolist()], np.int64)

    def _factor(self, groups: Groups, group: int) -> Fraction:
        """Return the largest factor between two shares of a value, for a group that has every value."""
        held, n = slice(groups.start[group], groups.start[group + 1]), int(groups.n[group])
        entries = zip(groups.value[held].tolist(), groups.count[held].tolist())
        ratios = [Fraction(count * self._total, n * self._reference[value]) for value, count in entries]
        return max(*ratios, 1 / min(ratios))

    def figure_and_bound(self, measure: int, value: float) -> tuple[float, float]:
        return -value + 0.0, float(self.delta)

    def refusal(self, finding: Finding, name: Callable[[int], str]) -> str:
        if math.isinf(finding.figure):
            return f"a group without a value of the table, asked for |ln(...)| less than {finding.bound:.6g}"
        return super().refusal(finding, name)

    def nearest(self, whole: Groups, finding: Finding) -> list[str]:
        return [] if math.isinf(finding.figure) else [f"delta = {at_least(finding.figure * (1 + NEAR))}"]


@lru_cache(maxsize=1 << 16)
def compare_log(ratio: Fraction, delta: Fraction) -> int:
    """Return the sign of ln(ratio) - delta, exactly, for a rational delta other than 0. `Decimal.ln` rounds correctly,
    so three terms and their sum are off by less than 100 units in the last place of the largest."""
    digits = 30
    while True:
        with localcontext(prec=digits):
            bound = Decimal(delta.numerator) / Decimal(delta.denominator)
            terms = (Decimal(ratio.numerator).ln(), -Decimal(ratio.denominator).ln(), -bound)
            total, largest = sum(terms, Decimal(0)), max(map(abs, terms))
            if abs(total) > largest * Decimal(10) ** (2 - digits):
                return 1 if total > 0 else -1
        digits *= 2
