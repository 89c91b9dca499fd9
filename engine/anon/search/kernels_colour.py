"""The compiled loops of greedy colouring, for similarities without an order (colour.py): the people of a block get the
colours of groups one by one, those with the most neighbours first, each the smallest group it may have."""

# mypy: disable-error-code="no-untyped-def,misc,assignment"
from __future__ import annotations

import numba as nb
import numpy as np

from anon.compiled import compiled, inner

_I = nb.int64
_IN = nb.types.Array(nb.int64, 1, "C", readonly=True)
_NEAR = nb.types.Array(nb.uint8, 2, "C", readonly=True)
_OUT = nb.int64[::1]
_OUT2 = nb.int64[:, ::1]
BLOCK = 1024  # people
TRIES = 6  # numbers of groups that are tried, each a quarter less than the one before


@inner(nb.boolean(_NEAR, _IN, _OUT2, _OUT2, _OUT, _I, _I, _I))
def _fits(near, value, members, close, size, group, v, most):
    """Whether a group may have somebody more with a value: nobody has more than `most` others near then. close[group,
    v] counts its members near v."""
    if close[group, v] > most:
        return False
    for i in range(size[group]):
        u = value[members[group, i]]
        if near[u, v] and close[group, u] > most:
            return False
    return True


@inner(nb.void(_NEAR, _IN, _IN, _OUT2, _I, _I, _I))
def _count(near, value, held, close, group, v, change):
    for i in range(held.size):
        if near[held[i], v]:
            close[group, held[i]] += change


@inner(nb.boolean(_NEAR, _IN, _IN, _OUT2, _OUT2, _OUT, _I, _I))
def _fill_small(near, value, held, members, close, size, least, most):
    """Moves people from groups that have more than the least to those that have fewer."""
    for group in range(size.size):
        other, i = 0, 0
        while size[group] < least:
            if other == size.size:
                return False
            if other == group or i >= size[other] or size[other] <= least:
                other, i = other + 1, 0
                continue
            person = members[other, i]
            if _fits(near, value, members, close, size, group, value[person], most):
                size[other] -= 1
                members[other, i] = members[other, size[other]]
                _count(near, value, held, close, other, value[person], -1)
                members[group, size[group]] = person
                size[group] += 1
                _count(near, value, held, close, group, value[person], 1)
            else:
                i += 1
    return True


@inner(nb.boolean(_NEAR, _IN, _IN, _IN, _I, _I, _IN, _OUT))
def _colour(near, value, turn, held, groups, least, most, group):
    """Colours people in the order of `turn`; most[n] is how many others somebody in a group of n may have near."""
    people = value.size
    members, size = np.zeros((groups, people), np.int64), np.zeros(groups, np.int64)
    close = np.zeros((groups, near.shape[0]), np.int64)
    for t in range(people):
        person, best = turn[t], -1
        for g in range(groups):
            if (best < 0 or size[g] < size[best]) and _fits(
                near, value, members, close, size, g, value[person], most[people // groups]
            ):
                best = g
        if best < 0:
            return False
        members[best, size[best]] = person
        size[best] += 1
        _count(near, value, held, close, best, value[person], 1)
    if not _fill_small(near, value, held, members, close, size, least, most[people // groups]):
        return False
    for g in range(groups):
        for i in range(size[g]):
            if close[g, value[members[g, i]]] - 1 > most[size[g]]:
                return False
            group[members[g, i]] = g
    return True


@compiled(_I(_NEAR, _IN, _IN, _IN, _I, _IN, _OUT))
def colour(near, value, turn, held, least, most, group):
    """Colours the people of a block with groups of at least so many people, given the value of each, the order in which
    they have their turn, and the values that occur; returns how many groups there are, or 0 if it found no way."""
    groups = value.size // least
    for _ in range(TRIES):
        if groups > 0 and _colour(near, value, turn, held, groups, least, most, group):
            return groups
        groups = groups * 3 // 4
    return 0
