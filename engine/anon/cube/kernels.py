"""The compiled loops between the source's rows and records, in kernels.c."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anon.compiled import loop, read, written

_COUNTED = int, written(np.uint32)
_CODED = int, read(np.int32), int, written(np.uint16)

sample = loop("cube_sample", read(np.uint16, 2), written(np.uint64), returns=int)

_count_values = loop("cube_count_values", read(np.int64), *_COUNTED, returns=int)
_count_values_narrow = loop("cube_count_values_narrow", read(np.int32), *_COUNTED, returns=int)
_look_up = loop("cube_look_up", read(np.int64), *_CODED, returns=int)
_look_up_narrow = loop("cube_look_up_narrow", read(np.int32), *_CODED, returns=int)


def count_values(numbers: NDArray[Any], low: int, counts: NDArray[np.uint32]) -> bool:
    """Of numbers in eight bytes, or in four."""
    return bool((_count_values_narrow if numbers.dtype == np.int32 else _count_values)(numbers, low, counts))


def look_up(
    numbers: NDArray[Any], low: int, table: NDArray[np.int32], open_ended: bool, codes: NDArray[np.uint16]
) -> bool:
    """The same."""
    return bool((_look_up_narrow if numbers.dtype == np.int32 else _look_up)(numbers, low, table, open_ended, codes))
