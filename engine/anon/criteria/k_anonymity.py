"""k-anonymity (Samarati and Sweeney; Sweeney 2002): every class of rows with equal published quasi-identifiers holds at
least k individuals. `group_size` asks the same of groups, however they are published.

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

import numpy as np
from numpy.typing import NDArray

from anon.criteria.protocol import SAFE, UNSAFE, Criterion, Finding, Floats, Groups, Ints, State, Verdict


class KAnonymity(Criterion):
    """n >= k in every group. State: the smallest n."""

    def __init__(self, k: int, name: str = "k_anonymity") -> None:
        self.name, self.k, self.least_group = name, k, k

    def minima(self, groups: Groups, owner: Ints, owners: int) -> Floats:
        smallest = np.full(owners, np.inf)
        np.minimum.at(smallest, owner, groups.n.astype(np.float64))
        return smallest[:, None]

    def judge(self, minima: Floats) -> NDArray[np.int8]:
        return np.where(minima[:, 0] >= self.k, SAFE, UNSAFE).astype(np.int8)

    def state(self, groups: Groups) -> State:
        worst = int(np.argmin(groups.n))
        n = int(groups.n[worst])
        return State(np.array([float(n)]), np.array([[n, groups.first + worst]], np.int64))

    def verdict(self, state: State) -> Verdict:
        n, group = (int(part) for part in state.witness[0])
        finding = Finding(n >= self.k, float(n), float(self.k), group)
        return Verdict(self.name, finding.safe, finding.figure, finding.bound, group, (finding,))

    def nearest(self, whole: Groups, finding: Finding) -> list[str]:
        return [f"k = {int(finding.figure)}"]
