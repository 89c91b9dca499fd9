"""The compiled loops between the source's rows and records, in kernels.c."""

from __future__ import annotations

import numpy as np

from anon.compiled import loop, read, written

_NUMBERS = read(np.int32)

count_values = loop("cube_count_values", _NUMBERS, int, written(np.uint32), returns=int)
look_up = loop("cube_look_up", _NUMBERS, int, read(np.int32), int, written(np.uint16), returns=int)
sample = loop("cube_sample", read(np.uint16, 2), written(np.uint64), returns=int)
