"""The kernels of (c,k)-safety, in kernels_ck.c."""

from __future__ import annotations

import numpy as np

from anon.core.kernels import kernel
from anon.criteria.protocol import Floats, Groups, Ints

_fold = kernel("ck_fold")


def fold_ck(groups: Groups, owner: Ints, k: int, values: Floats, witness: Ints) -> None:
    """Lower values[owner] by every group, and fill in the witnesses unless there is room for none."""
    scratch = np.empty(k + 3, np.int64), np.empty(k + 2), np.empty((k + 2, k + 2))
    _fold(*groups.arrays, owner, k, values, witness, groups.first, *scratch)
