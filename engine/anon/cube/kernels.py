"""The compiled loops between the source's rows and records: plain loops with explicit types, compiled once per
installation."""

# mypy: disable-error-code="no-untyped-def,misc"
from __future__ import annotations

import numba as nb
import numpy as np

from anon.compiled import compiled

_NUMBERS = nb.types.Array(nb.int64, 1, "C", readonly=True)
_TABLE = nb.types.Array(nb.int32, 1, "C", readonly=True)
_CODES = nb.types.Array(nb.uint16, 2, "C", readonly=True)


@compiled(nb.boolean(_NUMBERS, nb.int64, nb.uint32[::1]))
def count_values(numbers, low, counts):
    """Adds every number to its counter, counts[number - low]; False if one has none."""
    for i in range(numbers.size):
        at = numbers[i] - low
        if at < 0 or at >= counts.size:
            return False
        counts[at] += np.uint32(1)
    return True


@compiled(nb.boolean(_NUMBERS, nb.int64, _TABLE, nb.boolean, nb.uint16[::1]))
def look_up(numbers, low, table, open_ended, codes):
    """The code table[number - low] of each number; False if there is none. Numbers beyond an open end have the last."""
    last = table.size - 1
    for i in range(numbers.size):
        at = numbers[i] - low
        if at > last and open_ended:
            at = last
        if at < 0 or at > last or table[at] < 0:
            return False
        codes[i] = table[at]
    return True


@compiled(nb.int64(_CODES, nb.uint64[::1]))
def sample(codes, keys):
    """Keys of the records whose hash falls in one of 64 parts; how many they are. `keys` has room for all records."""
    for r in range(keys.size):
        keys[r] = 0
    for j in range(codes.shape[0]):
        for r in range(keys.size):
            key = (keys[r] ^ np.uint64(codes[j, r])) * np.uint64(0x9E3779B97F4A7C15)
            keys[r] = key ^ (key >> np.uint64(29))
    found = 0
    for r in range(keys.size):
        if keys[r] >> np.uint64(58) == np.uint64(0):
            keys[found] = keys[r]
            found += 1
    return found
