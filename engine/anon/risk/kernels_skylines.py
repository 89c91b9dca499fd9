"""Call the kernels of knowledge skylines (kernels_skylines.c): find the groups that no other one dominates, and the
negated ratio of Theorem 2 over these groups."""

from __future__ import annotations

import numpy as np

from anon.core.kernels import kernel
from anon.criteria.protocol import Floats, Ints

keep_undominated = kernel("explored_keep_undominated")
least_ratios = kernel("explored_least_ratios")
_fill_left = kernel("explored_fill_left")


def left(kind: int, n: Ints, s: Ints, largest: Ints) -> Floats:
    """Return [groups, l]: what is left of each group with 0, 1, ... of its other values ruled out. `largest` has all
    counts of a group, descending."""
    found = np.empty(largest.shape)
    _fill_left(kind, n, s, largest, found, np.empty(largest.shape[1] - 1, np.int64))
    return found
