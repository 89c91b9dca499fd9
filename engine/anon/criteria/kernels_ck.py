"""The compiled loops of (c,k)-safety, in kernels_ck.c."""

from __future__ import annotations

import numpy as np

from anon.compiled import loop, read, written
from anon.criteria.protocol import Floats, Ints

_INTS = read(np.int64)
_MATRIX = written(np.float64, 2)

_fold_ck = loop(
    "ck_fold", _INTS, _INTS, _INTS, _INTS, int, _MATRIX, written(np.int64, 3), int,
    written(np.int64), written(np.float64), _MATRIX,
)  # fmt: skip


def fold_ck(n: Ints, start: Ints, count: Ints, owner: Ints, k: int, values: Floats, witness: Ints, first: int) -> None:
    """Lowers values[owner] by every group, and fills in the witnesses unless there is room for none."""
    room = np.empty(k + 3, np.int64), np.empty(k + 2), np.empty((k + 2, k + 2))
    _fold_ck(n, start, count, owner, k, values, witness, first, *room)
