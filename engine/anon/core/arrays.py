"""Types of numpy arrays that modules in all packages use, and runs of indexes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Codes = NDArray[np.uint16]
Flags = NDArray[np.bool_]


def ranges(start: Ints, length: Ints) -> Ints:
    """Return start[0], start[0] + 1, ... (length[0] of them), then the same from start[1], and so on.

    >>> ranges(np.array([5, 0]), np.array([2, 3]))
    array([5, 6, 0, 1, 2])
    """
    found: Ints = np.arange(length.sum()) + np.repeat(start - (np.cumsum(length) - length), length)
    return found
