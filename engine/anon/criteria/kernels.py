"""The compiled loops of the criteria: plain loops with explicit types, compiled once per installation."""

# mypy: disable-error-code="no-untyped-def,misc"
from __future__ import annotations

import math

import numba as nb
import numpy as np

from anon.compiled import compiled

_I = nb.int64
_IN = nb.types.Array(nb.int64, 1, "C", readonly=True)
_IN2 = nb.types.Array(nb.int64, 2, "C", readonly=True)


SINGLE, SET, MULTISET = 0, 1, 2
TINY = 1e-150  # what is above zero stays at or above this, so that a product of two such numbers is above zero too


@compiled(nb.float64(nb.float64))
def _above(number):
    return number if number > TINY else TINY


@compiled(nb.float64(_I, _I, _I, _I, _I, _IN))
def target(kind, n, s, k, l, others):
    """T of the skyline paper for s > 0; `others` starts with the l largest counts of other values."""
    if kind == SINGLE:
        left = n - s - k
        for i in range(l):
            left -= others[i]
        return left / s if left > 0 else 0.0
    if kind == SET:
        ratio = (n - s - k) / s if n - s - k > 0 else 0.0
        for i in range(l):
            ratio = _above(ratio * (n - others[i]) / n) if ratio > 0 and others[i] < n else 0.0
        return ratio
    if n - k - 1 <= 0:
        return 0.0
    nobody = s * math.log1p(-1.0 / (n - k))
    known = 0
    for i in range(l):
        known += others[i]
    return _above(math.exp(nobody + known * math.log1p(-1.0 / n)) / -math.expm1(nobody))


@compiled(nb.float64(_I, _I, _I, _I, _I))
def family(kind, n, s, m, k):
    """V of the skyline paper for s > 0."""
    if m == 0:
        return 1.0
    if kind == MULTISET:
        return _above(math.exp(s * math.log1p(-m / (n - k)))) if n - k - m > 0 else 0.0
    product = 1.0
    for i in range(m):
        numerator = n - s - k - i
        if numerator <= 0:
            return 0.0
        product *= numerator / (n - k - i)
    return _above(product)


@compiled(nb.void(_IN, _I, _I, nb.int64[::1]))
def largest_counts(count, low, high, top):
    """Fills `top` with the largest of count[low:high], descending, padded with zeros."""
    for j in range(top.size):
        top[j] = 0
    for e in range(low, high):
        j = top.size - 1
        if count[e] <= top[j]:
            continue
        while j > 0 and top[j - 1] < count[e]:
            top[j] = top[j - 1]
            j -= 1
        top[j] = count[e]


@compiled(nb.boolean(nb.int64[::1], nb.int64[::1]))
def before(integers, witness):
    """Lexicographic order of witnesses, so that ties do not depend on the order of the groups."""
    for i in range(integers.size):
        if integers[i] != witness[i]:
            return integers[i] < witness[i]
    return False


@compiled(nb.void(_I, nb.int64[::1], nb.int64[::1]))
def _without(s, top, others):
    """The largest counts but one s, which is among them or, if it is smaller than all, the last in its place."""
    at = 0
    for i in range(top.size):
        if at == i and (top[i] == s or i == top.size - 1):
            continue
        others[at] = top[i]
        at += 1


@compiled(nb.void(_I, _IN, _IN, _IN, _IN, _IN, _IN, _IN, _IN2, nb.float64[:, ::1], nb.int64[:, :, ::1], _I))
def fold_skyline(kind, n, start, value, count, owner, slot_start, slot_of, knowledge, values, witness, first):
    """Lowers values[owner] (five per slot) by every group; fills witness[owner] too unless it is empty. A witness is
    n, s, the l largest other counts padded with zeros to the largest l, and the group."""
    most = 0
    for p in range(knowledge.shape[0]):
        most = knowledge[p, 0] if knowledge[p, 0] > most else most
    top = np.zeros(most + 1, np.int64)
    others = np.zeros(most, np.int64)
    integers = np.zeros(most + 3, np.int64)
    five = np.zeros(5)
    keep = witness.shape[0] > 0
    for g in range(n.size):
        largest_counts(count, start[g], start[g + 1], top)
        o = owner[g]
        for e in range(start[g], start[g + 1]):
            s = count[e]
            _without(s, top, others)
            for at in range(slot_start[value[e]], slot_start[value[e] + 1]):
                slot = slot_of[at]
                l, k, m = knowledge[slot, 0], knowledge[slot, 1], knowledge[slot, 2]
                five[1] = target(kind, n[g], s, 0, l, others)
                five[2] = target(kind, n[g], s, k, l, others)
                five[0] = five[2] * family(kind, n[g], s, m, k + 1)
                five[3] = family(kind, n[g], s, m, 0)
                five[4] = family(kind, n[g], s, m, k)
                if keep:
                    integers[0], integers[1], integers[most + 2] = n[g], s, first + g
                    for i in range(most):
                        integers[2 + i] = others[i] if i < l else 0
                for i in range(5):
                    column = slot * 5 + i
                    lower = five[i] < values[o, column]
                    if keep and five[i] == values[o, column]:
                        lower = before(integers, witness[o, column])
                    if lower:
                        values[o, column] = five[i]
                        if keep:
                            for j in range(integers.size):
                                witness[o, column, j] = integers[j]
