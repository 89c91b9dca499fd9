"""(alpha, k)-anonymity (Wong, Li, Fu, Wang: (alpha, k)-Anonymity: An Enhanced k-Anonymity Model for Privacy Preserving
Data Publishing, KDD 2006): every group has at least k people, and no sensitive value, or none of the values named, is
that of more than the share alpha of them.

Monotone: the share of a value in a union lies between its shares in the parts.

>>> from anon.criteria.protocol import Groups
>>> release = Groups.dense(np.array([[2, 2, 1], [1, 0, 4]]))
>>> criterion = AlphaK("s", Fraction("0.5"), 5)
>>> verdict = criterion.verdict(criterion.state(release))
>>> verdict.safe, verdict.figure, verdict.worst_group
(False, 0.8, 1)
>>> rare = AlphaK("s", Fraction("0.4"), 5, values=[0, 1])
>>> rare.verdict(rare.state(release)).safe
True
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from anon.criteria.arithmetic import at_least, chosen, signs, size_of
from anon.criteria.protocol import INDIVIDUALS, Finding, Floats, GroupCriterion, Groups, Ints, exact

if TYPE_CHECKING:
    from anon.config.criteria.alpha_k import AlphaK as Spec
    from anon.criteria.bind import Binder

SHARE, SIZE = 0, 1


class AlphaK(GroupCriterion):
    """Every share <= alpha, of all values or of the codes in `values`, and n >= k. State: the largest share and the
    smallest n."""

    name = "alpha_k"
    relation = "<="
    headline = SHARE
    words = ("a value with the share {figure}, asked for at most {bound}", INDIVIDUALS)

    def __init__(self, column: str, alpha: Fraction, k: int, values: Sequence[int] | None = None) -> None:
        self.column, self.alpha, self.k = column, alpha, k
        self.least_group = max(k, ceil(1 / alpha)) if values is None else k
        self.bounds = np.array([-float(alpha), float(k)])
        self._values = None if values is None else np.array(values, np.int64)

    @classmethod
    def bind(cls, spec: Spec, binder: Binder, where: str) -> AlphaK:
        codes = None
        if spec.values is not None:
            codes = [code for code in binder.codes(spec.values, spec, f"{where}.values") if code is not None]
        return cls(str(spec.sensitive), exact(spec.alpha), spec.k, codes)

    def measure(self, groups: Groups) -> Floats:
        return np.column_stack([-(self._largest(groups) / groups.n), groups.n])

    def compare(self, groups: Groups, which: Ints, measure: int) -> Ints:
        if measure == SIZE:
            return np.sign(groups.n[which] - self.k)
        close = chosen(groups, which)
        return -signs(self._largest(close), close.n, self.alpha)

    def _largest(self, groups: Groups) -> Ints:
        """Return the largest count of a value that matters in each group."""
        counts = groups.count if self._values is None else groups.count * np.isin(groups.value, self._values)
        largest: Ints = np.maximum.reduceat(counts, groups.start[:-1])
        return largest

    def figure_and_bound(self, measure: int, value: float) -> tuple[float, float]:
        return (value, float(self.k)) if measure == SIZE else (-value + 0.0, float(self.alpha))

    def nearest(self, whole: Groups, finding: Finding) -> list[str]:
        if finding.about == SIZE:
            return size_of(finding.figure)
        share = Fraction(int(self._largest(whole)[0]), int(whole.n[0]))
        return [f"alpha = {at_least(share)}"] if share < 1 else []
