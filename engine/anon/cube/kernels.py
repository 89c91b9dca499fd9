"""The kernels that count and encode the source's rows, in kernels.c."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anon.core.arrays import Codes
from anon.core.kernels import kernel

sample = kernel("cube_sample")

_count_values = kernel("cube_count_values")
_count_values_narrow = kernel("cube_count_values_narrow")
_look_up = kernel("cube_look_up")
_look_up_narrow = kernel("cube_look_up_narrow")


def count_values(numbers: NDArray[Any], low: int, counts: NDArray[np.uint32]) -> bool:
    """Count numbers of eight bytes, or of four; return whether each has a counter."""
    return bool((_count_values_narrow if numbers.dtype == np.int32 else _count_values)(numbers, low, counts))


def look_up(numbers: NDArray[Any], low: int, table: NDArray[np.int32], open_ended: bool, codes: Codes) -> bool:
    """Look up the codes of numbers of eight bytes, or of four; return whether each has one."""
    return bool((_look_up_narrow if numbers.dtype == np.int32 else _look_up)(numbers, low, table, open_ended, codes))
