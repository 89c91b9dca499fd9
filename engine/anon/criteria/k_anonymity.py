"""k-anonymity (Samarati and Sweeney; Sweeney 2002): every class of rows with equal published quasi-identifiers holds at
least k individuals. `group_size` demands the same of groups, however they are published.

Monotone: a union of groups is at least as large as each of them. With suppression too: a group that passes never
needs to be dropped after merging.

>>> from anon.criteria.protocol import Groups
>>> release = Groups.dense(np.array([[3, 2], [4, 0], [1, 6]]))
>>> criterion = KAnonymity(k=5)
>>> verdict = criterion.verdict(criterion.state(release))
>>> verdict.safe, verdict.figure, verdict.worst_group
(False, 4.0, 1)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from anon.criteria.arithmetic import size_of
from anon.criteria.protocol import INDIVIDUALS, Finding, Floats, GroupCriterion, Groups, Ints

if TYPE_CHECKING:
    from anon.config.criteria.group_size import GroupSize as GroupSizeSpec
    from anon.config.criteria.k_anonymity import KAnonymity as KSpec
    from anon.criteria.bind import Binder


class KAnonymity(GroupCriterion):
    """n >= k in every group. State: the smallest n."""

    name = "k_anonymity"
    words = (INDIVIDUALS,)
    absorbs = True

    def __init__(self, k: int) -> None:
        self.k, self.least_group = k, k
        self.bounds = np.array([float(k)])

    @classmethod
    def bind(cls, spec: KSpec | GroupSizeSpec, binder: Binder, where: str) -> KAnonymity:
        return cls(spec.k)

    def measure(self, groups: Groups) -> Floats:
        return groups.n.astype(np.float64)[:, None]

    def compare(self, groups: Groups, which: Ints, measure: int) -> Ints:
        return np.sign(groups.n[which] - self.k)

    def figure_and_bound(self, measure: int, value: float) -> tuple[float, float]:
        return value, float(self.k)

    def nearest(self, whole: Groups, finding: Finding) -> list[str]:
        return size_of(finding.figure)
