"""The compiled loops of the merge search, in kernels_merge.c."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anon.compiled import loop, read, written

_IN, _OUT, _OUT2 = read(np.int64), written(np.int64), written(np.int64, 2)

_place = loop(
    "merge_place", _OUT2, _OUT2, _OUT, _IN, int, int, read(np.float64, 2), _IN, _IN, read(np.float64), float, int, int,
    _OUT, written(np.float64), _OUT2, returns=int,
)  # fmt: skip


def place(
    kind: NDArray[np.int64],
    value: NDArray[np.int64],
    size: NDArray[np.int64],
    order: NDArray[np.int64],
    own: int,
    x: int,
    table: NDArray[np.float64],
    first: NDArray[np.int64],
    binary: NDArray[np.int64],
    r: NDArray[np.float64],
    enough: float,
    reach: int,
    partners: int,
    taken: NDArray[np.int64],
    best: NDArray[np.float64],
) -> int:
    """Finds groups that can take in somebody of class `own` with value x. Writes them to `taken` and returns how many
    there are, 0 if none will do."""
    some = np.empty((2, 2 * kind.shape[1] + 1), np.int64)
    found: int = _place(
        kind, value, size, order, own, x, table, first, binary, r, enough, reach, partners, taken, best, some
    )
    return found
