"""The compiled loops of l-diversity: what the recursive and the entropy kind need of every group."""

# mypy: disable-error-code="no-untyped-def,misc"
from __future__ import annotations

import math

import numba as nb
import numpy as np

from anon.compiled import compiled, inner
from anon.criteria.kernels_counts import largest_counts

_I = nb.int64
_IN = nb.types.Array(nb.int64, 1, "C", readonly=True)
_MASK = nb.types.Array(nb.boolean, 1, "C", readonly=True)


@compiled(nb.void(_IN, _IN, _MASK, _IN, _I, nb.int64[::1], nb.int64[::1]))
def head_and_tail(start, count, dont_care, which, depth, head, tail):
    """For some groups the largest count outside the don't-care set, and all other counts but their depth - 1 largest.

    The depth - 1 largest without the head are the depth largest, less the head if it is among them, else the last.
    """
    top = np.zeros(depth, np.int64)
    for i in range(which.size):
        low, high = start[which[i]], start[which[i] + 1]
        largest_counts(count, low, high, top)
        most, rest = 0, 0
        for e in range(low, high):
            rest += count[e]
            if not dont_care[e]:
                most = max(most, count[e])
        for j in range(depth):
            rest -= top[j]
        head[i] = most
        tail[i] = rest + max(most, top[depth - 1]) - most


@inner(nb.int64(_IN, _MASK, _I, _I, nb.int64[::1]))
def _ascending(count, dont_care, low, high, listed):
    """Fills `listed` with the counts of the don't-care values, smallest first; returns how many there are."""
    size = 0
    for e in range(low, high):
        if dont_care[e]:
            j = size
            while j > 0 and listed[j - 1] > count[e]:
                listed[j] = listed[j - 1]
                j -= 1
            listed[j] = count[e]
            size += 1
    return size


@compiled(nb.void(_IN, _IN, _MASK, _I, nb.float64[::1]))
def effective_values(start, count, dont_care, longest, effective):
    """exp(adjusted entropy) of every group, by Algorithm 1; inf where all values are don't-care values."""
    listed = np.zeros(longest, np.int64)
    for g in range(effective.size):
        low, high = start[g], start[g + 1]
        total, logs = 0, 0.0
        for e in range(low, high):
            if not dont_care[e]:
                total += count[e]
                logs += count[e] * math.log(count[e])
        if total == 0:
            effective[g] = np.inf
            continue
        size = _ascending(count, dont_care, low, high, listed)
        fixed = 0
        while fixed < size and math.log(listed[fixed]) * total < logs:
            total += listed[fixed]
            logs += listed[fixed] * math.log(listed[fixed])
            fixed += 1
        effective[g] = size - fixed + total * math.exp(-logs / total)
