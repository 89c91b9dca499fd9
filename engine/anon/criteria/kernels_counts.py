"""The compiled loops that several criteria share, in kernels_counts.c."""

from __future__ import annotations

import numpy as np

from anon.compiled import loop, read, written

_INTS = read(np.int64)

fill_largest = loop("counts_fill_largest", _INTS, _INTS, written(np.int64, 2))
sizes = loop("counts_sizes", read(np.int64, 2), written(np.int64), written(np.int64))
occurring = loop("counts_occurring", read(np.int64, 2), written(np.int64), written(np.int64))
