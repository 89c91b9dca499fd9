"""The compiled loops that several criteria share: the largest counts of a group, an order of witnesses, and what keeps
numbers above zero. In a module of their own, so that a criterion loads no loops of another one."""

# mypy: disable-error-code="no-untyped-def,misc"
from __future__ import annotations

import numba as nb

from anon.compiled import compiled, inner
from anon.criteria.arithmetic import TINY

_I = nb.int64
_IN = nb.types.Array(nb.int64, 1, "C", readonly=True)
_OUT = nb.int64[::1]
_OUT2 = nb.int64[:, ::1]

SINGLE, SET, MULTISET = 0, 1, 2  # how many values an individual has, for skylines


@inner(nb.float64(nb.float64))
def above(number):
    return number if number > TINY else TINY


@inner(nb.void(_IN, _I, _I, _OUT))
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


@inner(nb.boolean(_OUT, _OUT))
def before(integers, witness):
    """Lexicographic order of witnesses, so that ties do not depend on the order of the groups."""
    for i in range(integers.size):
        if integers[i] != witness[i]:
            return integers[i] < witness[i]
    return False


@compiled(nb.void(_IN, _IN, _OUT2))
def fill_largest(start, count, top):
    """Fills each row of `top` with the largest counts of its group, descending."""
    for g in range(top.shape[0]):
        largest_counts(count, start[g], start[g + 1], top[g])
