"""The compiled loops of greedy colouring, in kernels_colour.c."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anon.compiled import loop, read, written

BLOCK = 1024  # people

_IN, _OUT, _OUT2 = read(np.int64), written(np.int64), written(np.int64, 2)
_colour = loop("colour_colour", read(np.uint8, 2), _IN, _IN, _IN, int, _IN, _OUT, _OUT2, _OUT2, _OUT, returns=int)


def colour(
    near: NDArray[np.uint8],
    value: NDArray[np.int64],
    turn: NDArray[np.int64],
    held: NDArray[np.int64],
    least: int,
    most: NDArray[np.int64],
    group: NDArray[np.int64],
) -> int:
    """Colours the people of a block with groups of at least so many people; returns how many groups there are, or 0 if
    it found no way."""
    groups = len(value) // least
    members, close = np.empty((groups, len(value)), np.int64), np.zeros((groups, len(near)), np.int64)
    found: int = _colour(near, value, turn, held, least, most, group, members, close, np.zeros(groups, np.int64))
    return found
