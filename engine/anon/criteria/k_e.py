"""(k, e)-anonymity (Zhang, Koudas, Srivastava, Yu: Aggregate Query Answering on Anonymized Tables, ICDE 2007): every
group has at least k distinct sensitive numbers, and its largest and smallest are at least e apart.

Monotone: a union has every value of its parts. With suppression too, for the same reason.

>>> from anon.criteria.protocol import Groups
>>> criterion = KE("salary", 3, Fraction(5000), [Fraction(number) for number in (30_000, 33_000, 35_000, 90_000)])
>>> verdict = criterion.verdict(criterion.state(Groups.dense(np.array([[1, 1, 1, 0], [4, 0, 0, 1]]))))
>>> verdict.safe, [(finding.safe, finding.figure, finding.group) for finding in verdict.findings]
(False, [(False, 2.0, 1), (True, 5000.0, 0)])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from anon.criteria.arithmetic import at_most, chosen, size_of
from anon.criteria.distances import absolute
from anon.criteria.protocol import Finding, Floats, GroupCriterion, Groups, Ints, Verdict, exact

if TYPE_CHECKING:
    from anon.config.criteria import k_e as grammar
    from anon.criteria.bind import Binder

DISTINCT, RANGE = 0, 1


class KE(GroupCriterion):
    """At least k distinct values and max - min >= e. State: the fewest distinct values and the smallest range, which
    are the two findings of the verdict. `where` is the field to blame for values that are no numbers."""

    name = "k_e"
    absorbs = True
    words = ("{figure} different values, asked for at least {bound}", "a range of {figure}, asked for at least {bound}")

    def __init__(
        self, column: str, k: int, e: Fraction, numbers: Sequence[Fraction | None], where: str = "privacy"
    ) -> None:
        self.column, self.k, self.e = column, k, e
        self.least_group = max(k, 2 if e > 0 else 1)
        self.bounds = np.array([float(k), float(e)])
        self._line = absolute(numbers, where)
        self._code = np.array(self._line.order, np.int64)
        self._numbers = self._line.units.floats()

    @classmethod
    def bind(cls, spec: grammar.KE, binder: Binder, where: str) -> KE:
        numbers = binder.numbers(spec, where)
        return cls(str(spec.sensitive), spec.k, exact(spec.e), numbers, f"{where}.sensitive")

    def measure(self, groups: Groups) -> Floats:
        lowest, highest = self._ends(groups)
        return np.column_stack([np.diff(groups.start), self._numbers.difference(highest, lowest)])

    def compare(self, groups: Groups, which: Ints, measure: int) -> Ints:
        if measure == DISTINCT:
            found: Ints = np.sign(np.diff(groups.start)[which] - self.k)
            return found
        pairs, of_pair = np.unique(np.stack(self._ends(chosen(groups, which))), axis=1, return_inverse=True)
        units = self._line.units
        excess = [units.of[high] - units.of[low] - self.e * units.per_one for low, high in pairs.T.tolist()]
        return np.array([(apart > 0) - (apart < 0) for apart in excess], np.int64)[of_pair.ravel()]

    def _ends(self, groups: Groups) -> tuple[Ints, Ints]:
        """Return the codes of the smallest and the largest number of each group."""
        places, first = self._line.place[groups.value], groups.start[:-1]
        return self._code[np.minimum.reduceat(places, first)], self._code[np.maximum.reduceat(places, first)]

    def figure_and_bound(self, measure: int, value: float) -> tuple[float, float]:
        return value, float(self.bounds[measure])

    def details(self, verdict: Verdict, name: Callable[[int], str]) -> dict[str, Any]:
        both = dict(zip(("distinct", "range"), verdict.findings))
        return {
            "figure": {name: finding.figure for name, finding in both.items()},
            "bound": {name: finding.bound for name, finding in both.items()},
        }

    def nearest(self, whole: Groups, finding: Finding) -> list[str]:
        if finding.about == DISTINCT:
            return size_of(finding.figure)
        ((low,), (high,)), units = (codes.tolist() for codes in self._ends(whole)), self._line.units
        return [f"e = {at_most(Fraction(units.of[high] - units.of[low], units.per_one))}"] if low != high else []
