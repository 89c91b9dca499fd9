"""The compiled loops of the criteria: plain loops with explicit types, compiled once per installation."""

# mypy: disable-error-code="no-untyped-def,misc"
from __future__ import annotations

import numba as nb
import numpy as np

_I = nb.int64
_IN = nb.types.Array(nb.int64, 1, "C", readonly=True)
_IN2 = nb.types.Array(nb.int64, 2, "C", readonly=True)


@nb.njit(nb.float64(_I, _I, _I, _I), cache=True, nogil=True)
def target(n, s, top, k):
    """T of the skyline paper; s > 0."""
    return max(n - s - top - k, 0) / s


@nb.njit(nb.float64(_I, _I, _I, _I), cache=True, nogil=True)
def family(n, s, m, k):
    """V of the skyline paper; s > 0."""
    product = 1.0
    for i in range(m):
        numerator = n - s - k - i
        if numerator <= 0:
            return 0.0
        product *= numerator / (n - k - i)
    return product


@nb.njit(nb.void(_IN, _I, _I, nb.int64[::1]), cache=True, nogil=True)
def _largest_counts(count, low, high, top):
    """Fills `top` with the largest of count[low:high], descending, padded with zeros."""
    top[:] = 0
    for e in range(low, high):
        j = top.size - 1
        if count[e] <= top[j]:
            continue
        while j > 0 and top[j - 1] < count[e]:
            top[j] = top[j - 1]
            j -= 1
        top[j] = count[e]


@nb.njit(nb.boolean(_I, _I, _I, _I, nb.int64[::1]), cache=True, nogil=True)
def _before(n, s, top, group, witness):
    """Lexicographic order of witnesses, so that ties do not depend on the order of the groups."""
    if n != witness[0]:
        return n < witness[0]
    if s != witness[1]:
        return s < witness[1]
    if top != witness[2]:
        return top < witness[2]
    return group < witness[3]


@nb.njit(
    nb.void(_IN, _IN, _IN, _IN, _IN, _IN, _IN, _IN2, nb.float64[:, ::1], nb.int64[:, :, ::1], _I),
    cache=True,
    nogil=True,
)
def fold_skyline(n, start, value, count, owner, slot_start, slot_of, knowledge, values, witness, first):
    """Lowers values[owner] (five per slot) by every group; fills witness[owner] too unless it is empty.

    The l largest counts without sigma are the l + 1 largest, less sigma's own if it is among them, else the last.
    """
    most = 0
    for p in range(knowledge.shape[0]):
        most = max(most, knowledge[p, 0])
    top = np.zeros(most + 1, np.int64)
    prefix = np.zeros(most + 2, np.int64)
    five = np.zeros(5)
    keep = witness.shape[0] > 0
    for g in range(n.size):
        _largest_counts(count, start[g], start[g + 1], top)
        for j in range(top.size):
            prefix[j + 1] = prefix[j] + top[j]
        o = owner[g]
        for e in range(start[g], start[g + 1]):
            s = count[e]
            for at in range(slot_start[value[e]], slot_start[value[e] + 1]):
                slot = slot_of[at]
                k, m = knowledge[slot, 1], knowledge[slot, 2]
                others = prefix[knowledge[slot, 0] + 1] - max(s, top[knowledge[slot, 0]])
                five[1] = target(n[g], s, others, 0)
                five[2] = target(n[g], s, others, k)
                five[0] = five[2] * family(n[g], s, m, k + 1)
                five[3] = family(n[g], s, m, 0)
                five[4] = family(n[g], s, m, k)
                for i in range(5):
                    column = slot * 5 + i
                    lower = five[i] < values[o, column]
                    if keep and five[i] == values[o, column]:
                        lower = _before(n[g], s, others, first + g, witness[o, column])
                    if lower:
                        values[o, column] = five[i]
                        if keep:
                            witness[o, column, 0] = n[g]
                            witness[o, column, 1] = s
                            witness[o, column, 2] = others
                            witness[o, column, 3] = first + g
