"""Types of numpy arrays that modules in all packages use."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Codes = NDArray[np.uint16]
Flags = NDArray[np.bool_]
