"""Variance control (LeFevre, DeWitt, Ramakrishnan: Workload-Aware Anonymization, KDD 2006): the sensitive numbers of
every group have at least a given population variance.

Monotone: by the law of total variance, that of a union is at least the weighted mean of its parts' variances.

>>> from anon.criteria.protocol import Groups
>>> criterion = Variance("s", Fraction(1), [Fraction(number) for number in (1, 2, 3, 5)])
>>> verdict = criterion.verdict(criterion.state(Groups.dense(np.array([[1, 0, 1, 0], [0, 2, 1, 1]]))))
>>> verdict.safe, verdict.figure, verdict.worst_group
(True, 1.0, 0)
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from anon.criteria.arithmetic import at_most, chosen, signs
from anon.criteria.distances import absolute
from anon.criteria.protocol import Finding, Floats, GroupCriterion, Groups, Ints, exact

if TYPE_CHECKING:
    from anon.config.criteria.variance import Variance as Spec
    from anon.criteria.bind import Binder


class Variance(GroupCriterion):
    """Population variance >= minimum. State: the smallest variance. `where` is the field to blame for values that are
    no numbers."""

    name = "variance"
    words = ("variance {figure}, asked for at least {bound}",)

    def __init__(
        self, column: str, minimum: Fraction, numbers: Sequence[Fraction | None], where: str = "privacy"
    ) -> None:
        self.column, self.minimum = column, minimum
        self.least_group = 2 if minimum > 0 else 1
        self.bounds = np.array([float(minimum)])
        self._units = absolute(numbers, where).units
        self._numbers, self._exact = self._units.floats(), np.array(self._units.of, object)

    @classmethod
    def bind(cls, spec: Spec, binder: Binder, where: str) -> Variance:
        numbers = binder.numbers(spec, where)
        return cls(str(spec.sensitive), exact(spec.minimum), numbers, f"{where}.sensitive")

    def measure(self, groups: Groups) -> Floats:
        """Return the variances. Deviations are taken from a member of the group first, so that a variance is relatively
        right even where it is tiny beside the numbers."""
        from anon.criteria import kernels_proximity

        first = np.repeat(groups.value[groups.start[:-1]], np.diff(groups.start))
        apart = self._numbers.difference(groups.value, first)
        variances = np.empty(len(groups))
        kernels_proximity.variances(*groups.arrays, apart, variances)
        return variances[:, None]

    def compare(self, groups: Groups, which: Ints, measure: int) -> Ints:
        return signs(*self._exactly(chosen(groups, which)), self.minimum)

    def _exactly(self, groups: Groups) -> tuple[Ints, Ints]:
        """Return in whole numbers of any size the two parts of the variance: (n * squares - total * total) / (n *
        per_one) ** 2."""
        count, unit, n = groups.count.astype(object), self._exact[groups.value], groups.n.astype(object)
        total, squares = (np.add.reduceat(count * power, groups.start[:-1]) for power in (unit, unit * unit))
        return n * squares - total * total, (n * self._units.per_one) ** 2

    def figure_and_bound(self, measure: int, value: float) -> tuple[float, float]:
        return value, float(self.minimum)

    def nearest(self, whole: Groups, finding: Finding) -> list[str]:
        ((top,), (bottom,)) = self._exactly(whole)
        return [f"minimum = {at_most(Fraction(top, bottom))}"] if top else []
