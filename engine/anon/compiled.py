"""How the loops of the engine are compiled: once per installation, without the interpreter's lock, and without checks
for division by zero, which the loops rule out. Imported only by modules of compiled loops, because numba is heavy.

Every way into a loop is code that has to be compiled as well, so none is made that nobody takes."""

from __future__ import annotations

from functools import partial

import numba as nb

compiled = partial(nb.njit, cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)
inner = partial(compiled, no_cpython_wrapper=True)  # for loops that only other loops call; Python cannot
