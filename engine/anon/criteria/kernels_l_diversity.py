"""The kernels of l-diversity, in kernels_l_diversity.c."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anon.core.kernels import kernel
from anon.criteria.protocol import Floats, Ints

_head_and_tail = kernel("diversity_head_and_tail")
_effective_values = kernel("diversity_effective_values")


def head_and_tail(
    start: Ints, count: Ints, dont_care: NDArray[np.bool_], which: Ints, depth: int, head: Ints, tail: Ints
) -> None:
    """Fill in for some groups the largest count outside the don't-care set, and all other counts but their largest."""
    _head_and_tail(start, count, dont_care, which, depth, head, tail, np.empty(depth, np.int64))


def effective_values(start: Ints, count: Ints, dont_care: NDArray[np.bool_], longest: int, effective: Floats) -> None:
    """Fill in exp(adjusted entropy) of every group; `longest` is the largest number of values in a group."""
    _effective_values(start, count, dont_care, effective, np.empty(longest, np.int64))
