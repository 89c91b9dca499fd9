"""The compiled loops of knowledge skylines, in kernels_skylines.c: which groups no other one outdoes, and the negated
ratio of Theorem 2 over those that are left."""

from __future__ import annotations

import numpy as np

from anon.compiled import loop, read, written

_INTS = read(np.int64)
_FLOATS = read(np.float64)

keep_undominated = loop("explored_keep_undominated", _INTS, _FLOATS, written(np.float64), written(np.bool_))
least_ratios = loop(
    "explored_least_ratios", int, _INTS, _INTS, _FLOATS, _INTS, _INTS, int, int, written(np.float64), written(np.int64)
)
