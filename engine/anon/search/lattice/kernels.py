"""The compiled loops of the lattice search, in kernels.c."""

from __future__ import annotations

import numpy as np

from anon.compiled import loop, read, written

_CODES = read(np.uint16, 2)
_IN = read(np.int64)
_VALUES = read(np.uint32)
_STEPS = _CODES, _IN, _IN, _IN  # codes of cells; rows, table and offset of steps

cell_keys = loop("lattice_cell_keys", *_STEPS, written(np.uint64))
count_cells = loop("lattice_count_cells", *_STEPS, _VALUES, _VALUES, written(np.uint32))
count_entries = loop("lattice_count_entries", *_STEPS, _IN, _VALUES, _VALUES, written(np.uint32))
collapse = loop("lattice_collapse", written(np.uint64, 2), written(np.uint32), returns=int)
