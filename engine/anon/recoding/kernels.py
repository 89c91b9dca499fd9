"""The kernels of recodings, in kernels.c."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anon.core.arrays import Codes
from anon.core.kernels import kernel

_walk = kernel("recoding_walk")
_walk_narrow = kernel("recoding_walk_narrow")


def walk(codes: Codes, column: NDArray[Any], *tree: NDArray[Any]) -> None:
    """Walk records down a tree in the wide form of the search, or in the narrow form of a recoding."""
    (_walk_narrow if column.dtype == np.int8 else _walk)(codes, column, *tree)
