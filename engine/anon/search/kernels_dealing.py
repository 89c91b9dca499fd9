"""The compiled loops of dealing, which *merge* and *colour* share, in kernels_dealing.c."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anon.compiled import loop, read, written

_IN, _OUT = read(np.int64), written(np.int64)

can_be_dealt = loop("dealing_can_be_dealt", _IN, _IN, int, int, int, _IN, _IN, _IN, returns=int)
deal = loop("dealing_deal", _IN, _IN, _IN, int, int, _OUT, _OUT, _OUT, returns=int)
_split = loop(
    "dealing_split", read(np.uint16, 2), _IN, _IN, _OUT, _IN, read(np.float64, 2), int, _IN, _IN, _IN, _OUT,
    written(np.float64), written(np.int64, 2), written(np.int64, 2), _OUT, returns=int,
)  # fmt: skip


def split(
    codes: NDArray[np.uint16],
    place: NDArray[np.int64],
    people: NDArray[np.int64],
    order: NDArray[np.int64],
    start: NDArray[np.int64],
    scale: NDArray[np.float64],
    size: int,
    near: NDArray[np.int64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    leaf: NDArray[np.int64],
) -> int:
    """Splits the nodes order[start[i]:start[i + 1]] for as long as both parts can be dealt. Writes where the parts
    start in `order`, which is rearranged, to `leaf`; returns how many there are."""
    width, ends = np.empty(len(codes)), np.empty((2, len(codes)), np.int64)
    spare, held = np.empty((3, len(order)), np.int64), np.empty(scale.shape[1], np.int64)
    found: int = _split(
        codes, place, people, order, start, scale, size, near, low, high, leaf, width, ends, spare, held
    )
    return found
