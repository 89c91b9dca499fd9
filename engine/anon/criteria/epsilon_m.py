"""(epsilon, m)-anonymity (Li, Tao, Xiao: Preservation of Proximity Privacy in Publishing Numerical Sensitive Data,
SIGMOD 2008), with absolute differences: for every number x in a group, at most 1/m of the group lies in [x - epsilon, x
+ epsilon].

Not monotone: {0, 10} and {-1, 1} have 1/2 each at epsilon = 1, together -1, 0 and 1 are 3/4.

>>> from anon.criteria.protocol import Groups
>>> criterion = EpsilonM("s", Fraction(1), 2, [Fraction(number) for number in (-1, 0, 1, 10)])
>>> apart = criterion.verdict(criterion.state(Groups.dense(np.array([[0, 1, 0, 1], [1, 0, 1, 0]]))))
>>> together = criterion.verdict(criterion.state(Groups.dense(np.array([[1, 1, 1, 1]]))))
>>> apart.safe, apart.figure, together.safe, together.figure
(True, 0.5, False, 0.75)
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from anon.criteria.arithmetic import chosen, signs
from anon.criteria.distances import absolute
from anon.criteria.protocol import Finding, Floats, GroupCriterion, Groups, Ints, exact

if TYPE_CHECKING:
    from anon.config.criteria.epsilon_m import EpsilonM as Spec
    from anon.criteria.bind import Binder


class EpsilonM(GroupCriterion):
    """|Phi(x)| / n <= 1 / m for every x present. State: the largest share. `where` is the field to blame for values
    that are no numbers."""

    name = "epsilon_m"
    relation = "<="
    monotone = False
    words = ("the share {figure} within epsilon of a value, asked for at most {bound}",)

    def __init__(
        self, column: str, epsilon: Fraction, m: int, numbers: Sequence[Fraction | None], where: str = "privacy"
    ) -> None:
        self.column, self.m, self.least_group = column, m, m
        self.bounds = np.array([-1 / m])
        self._near = absolute(numbers, where).neighbours(epsilon)

    @classmethod
    def bind(cls, spec: Spec, binder: Binder, where: str) -> EpsilonM:
        numbers = binder.numbers(spec, where)
        return cls(str(spec.sensitive), exact(spec.epsilon), spec.m, numbers, f"{where}.sensitive")

    def measure(self, groups: Groups) -> Floats:
        return -(self._near.largest(groups) / groups.n)[:, None]

    def compare(self, groups: Groups, which: Ints, measure: int) -> Ints:
        close = chosen(groups, which)
        return -signs(self._near.largest(close), close.n, Fraction(1, self.m))

    def figure_and_bound(self, measure: int, value: float) -> tuple[float, float]:
        return -value, 1 / self.m

    def nearest(self, whole: Groups, finding: Finding) -> list[str]:
        m = int(whole.n[0]) // int(self._near.largest(whole)[0])
        return [f"m = {m}"] if m > 1 else []
