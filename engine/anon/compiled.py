"""How the loops of the engine are compiled: once per installation, without the interpreter's lock, and without checks
for division by zero, which the loops rule out. Imported only by modules of compiled loops, because numba is heavy."""

from __future__ import annotations

from functools import partial

import numba as nb

compiled = partial(nb.njit, cache=True, nogil=True, error_model="numpy")
