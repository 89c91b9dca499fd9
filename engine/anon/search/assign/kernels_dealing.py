"""The kernels of dealing, which *merge* and *colour* share, in kernels_dealing.c."""

from __future__ import annotations

import numpy as np

from anon.core.arrays import Codes, Floats, Ints
from anon.core.kernels import kernel

Entries = tuple[Codes, Ints, Ints]  # codes, places and people
Rule = tuple[int, Ints, Ints, Ints]  # size, near, low and high

can_be_dealt = kernel("dealing_can_be_dealt")
deal = kernel("dealing_deal")
_split = kernel("dealing_split")


def split(entries: Entries, order: Ints, start: Ints, scale: Floats, rule: Rule, leaf: Ints) -> int:
    """Split the nodes order[start[i]:start[i + 1]] while both parts can be dealt. Write where the parts start in
    `order`, which is rearranged, to `leaf`; return the number of parts."""
    columns = len(entries[0])
    width, ends = np.empty(columns), np.empty((2, columns), np.int64)
    spare, held = np.empty((3, len(order)), np.int64), np.empty(scale.shape[1], np.int64)
    return _split(*entries, order, start, scale, *rule, leaf, width, ends, spare, held)
