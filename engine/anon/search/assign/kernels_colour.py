"""The kernel of greedy colouring, in kernels_colour.c."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anon.core.arrays import Ints
from anon.core.kernels import kernel

BLOCK = 1024  # people

_colour = kernel("colour_colour")


def colour(near: NDArray[np.uint8], value: Ints, turn: Ints, held: Ints, least: int, most: Ints, group: Ints) -> int:
    """Colour the people of a block with groups of at least `least` people; return the number of groups, 0 if no
    colouring was found."""
    groups = len(value) // least
    members, close = np.empty((groups, len(value)), np.int64), np.zeros((groups, len(near)), np.int64)
    return _colour(near, value, turn, held, least, most, group, members, close, np.zeros(groups, np.int64))
