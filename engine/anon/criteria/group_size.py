"""The size of groups: every group holds at least k individuals, however its quasi-identifiers are published. What
k-anonymity demands of classes of equal labels this demands of groups; it is monotone for the same reason.

>>> import numpy as np
>>> from anon.criteria.protocol import Groups
>>> criterion = GroupSize(k=5)
>>> criterion.verdict(criterion.state(Groups.dense(np.array([[3, 2], [4, 0]])))).safe
False
"""

from __future__ import annotations

from anon.criteria.k_anonymity import KAnonymity


class GroupSize(KAnonymity):
    """n >= k in every group. State: the smallest n."""

    name = "group_size"
