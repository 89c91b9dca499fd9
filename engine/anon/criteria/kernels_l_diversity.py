"""The compiled loops of l-diversity, in kernels_l_diversity.c."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anon.compiled import loop, read, written
from anon.criteria.protocol import Floats, Ints

_INTS, _FLAGS = read(np.int64), read(np.bool_)
_OUT = written(np.int64)

_head_and_tail = loop("diversity_head_and_tail", _INTS, _INTS, _FLAGS, _INTS, int, _OUT, _OUT, _OUT)
_effective_values = loop("diversity_effective_values", _INTS, _INTS, _FLAGS, written(np.float64), _OUT)


def head_and_tail(
    start: Ints, count: Ints, dont_care: NDArray[np.bool_], which: Ints, depth: int, head: Ints, tail: Ints
) -> None:
    """For some groups the largest count outside the don't-care set, and all other counts but their largest."""
    _head_and_tail(start, count, dont_care, which, depth, head, tail, np.empty(depth, np.int64))


def effective_values(start: Ints, count: Ints, dont_care: NDArray[np.bool_], longest: int, effective: Floats) -> None:
    """exp(adjusted entropy) of every group; none has more than so many values."""
    _effective_values(start, count, dont_care, effective, np.empty(longest, np.int64))
