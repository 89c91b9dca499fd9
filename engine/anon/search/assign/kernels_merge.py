"""The kernel of the merge search, in kernels_merge.c."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anon.core.arrays import Floats, Ints
from anon.core.kernels import kernel

Members = tuple[Ints, Ints, Ints]  # class and value of the members of each group, and their number
Named = NDArray[np.uint8]
Priors = tuple[Floats, Ints, Ints, Named, Floats]  # table, and of each prior first column, binary, named values, and r

_place = kernel("merge_place")


def place(
    members: Members, order: Ints, own: int, x: int, priors: Priors, enough: float, reach: int, partners: int,
    taken: Ints, best: Floats,
) -> int:  # fmt: skip
    """Find groups that a person of class `own` with value x can join. Write them to `taken` and return their number, 0
    if there are none."""
    scratch = np.empty((2, 2 * members[0].shape[1] + 1), np.int64)
    return _place(*members, order, own, x, *priors, enough, reach, partners, taken, best, scratch)
