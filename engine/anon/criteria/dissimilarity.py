"""(epsilon, delta)^k-dissimilarity (Wang, Meng, Bamba, Liu, Pu: A General Proximity Privacy Principle, ICDE 2009): who
knows that somebody is in a group must not learn that this person's value lies near some value of the group. The
neighbourhood Phi(v) of a value v are the records of the group at a distance of at most epsilon from v, under any
distance; the *risk* of a group of n is

    max over its values v of (|Phi(v)| - 1) / (n - 1)            and 1 for a group of one person,

and a release is safe iff every group has a risk of at most 1 - delta and at least k people. So every value is unlike
a share of at least delta of the others.

Not monotone, neither way. Merging {0, 1} with {0, 1} raises the risk from 0 to 1/3, and splitting {0, 0, 0, 1} raises
it from 2/3 to 1:

>>> from anon.criteria.distances import equal, variational
>>> from anon.criteria.protocol import Groups
>>> criterion = Dissimilarity("s", Fraction(0), Fraction(1, 2), 2, equal(2))
>>> def risks(*counts):
...     return [-risk + 0.0 for risk in criterion.measure(Groups.dense(np.array(counts)))[:, 0].round(3).tolist()]
>>> risks([1, 1], [2, 2]), risks([3, 1], [2, 0], [1, 1])
([0.0, 0.333], [0.667, 1.0, 0.0])

Table I of the paper: distributions over four diseases, epsilon = 0.1. Four of the five records of the first group are
near the second one (Example 2: 80 % of them), so its risk is 3/4; the second group has risk 0.

>>> table = "5311 4321 4222 3421 2710 2620 8101 3151".split()
>>> diseases = variational([[Fraction(int(tenths), 10) for tenths in row] for row in table])
>>> diseases.neighbours(Fraction("0.1")).codes_near(1)
[0, 1, 2, 3]
>>> release = Groups.dense(np.array([[1, 1, 1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 1, 1, 1]]))
>>> criterion = Dissimilarity("disease", Fraction("0.1"), Fraction("0.25"), 3, diseases)
>>> verdict = criterion.verdict(criterion.state(release))
>>> verdict.safe, verdict.figure, verdict.bound, verdict.worst_group
(True, 0.75, 0.75, 0)
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from anon.criteria.arithmetic import at_most, chosen, signs, size_of
from anon.criteria.bind_distances import bind_distance
from anon.criteria.distances import Distance
from anon.criteria.protocol import INDIVIDUALS, Finding, Floats, GroupCriterion, Groups, Ints, exact

if TYPE_CHECKING:
    from anon.config.criteria.dissimilarity import Dissimilarity as Spec
    from anon.criteria.bind import Binder

RISK, SIZE = 0, 1


class Dissimilarity(GroupCriterion):
    """risk <= 1 - delta and n >= k. State: the largest risk and the smallest n."""

    name = "dissimilarity"
    relation = "<="
    headline = RISK
    monotone = False
    relative = True
    words = ("risk {figure}, asked for at most {bound}", INDIVIDUALS)

    def __init__(self, column: str, epsilon: Fraction, delta: Fraction, k: int, distance: Distance) -> None:
        self.column, self.delta, self.k = column, delta, k
        self.least_group = max(k, 2 if delta > 0 else 1)
        self.bounds = np.array([-float(1 - delta), float(k)])
        self.near = distance.neighbours(epsilon)

    @classmethod
    def bind(cls, spec: Spec, binder: Binder, where: str) -> Dissimilarity:
        distance, columns = bind_distance(binder, spec, where), spec.about()
        criterion = cls(columns[0], exact(spec.epsilon), exact(spec.delta), spec.k, distance)
        if len(columns) > 1:
            criterion.column, criterion.columns, criterion.relative = None, tuple(columns), False
        return criterion

    def measure(self, groups: Groups) -> Floats:
        near, others = self._ratio(groups)
        return np.column_stack([-(near / others), groups.n])

    def compare(self, groups: Groups, which: Ints, measure: int) -> Ints:
        if measure == SIZE:
            return np.sign(groups.n[which] - self.k)
        return -signs(*self._ratio(chosen(groups, which)), 1 - self.delta)

    def _ratio(self, groups: Groups) -> tuple[Ints, Ints]:
        """Return the others near a value and all others, where the share is largest; 1 / 1 for a person alone."""
        alone = groups.n == 1
        return self.near.largest(groups) - 1 + alone, groups.n - 1 + alone

    def figure_and_bound(self, measure: int, value: float) -> tuple[float, float]:
        return (value, float(self.k)) if measure == SIZE else (-value + 0.0, float(1 - self.delta))

    def nearest(self, whole: Groups, finding: Finding) -> list[str]:
        if finding.about == SIZE:
            return size_of(finding.figure)
        ((near,), (others,)) = (numbers.tolist() for numbers in self._ratio(whole))
        return [f"delta = {at_most(1 - Fraction(near, others))}"] if near < others else []
