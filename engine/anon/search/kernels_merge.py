"""The compiled loops of the merge search: the bound of r-robustness on groups whose members have different priors, and
the placing of people in groups that are there already.

The priors stand in one table, a row for each class of people with equal priors: for each prior first[i]..first[i] +
values are the probabilities of the values, and if it is binary those of "not this value" follow. Members of group g are
kind[g, :size[g]] (their class) and value[g, :size[g]]; no value occurs twice."""

# mypy: disable-error-code="no-untyped-def,misc,assignment"
from __future__ import annotations

import numba as nb
import numpy as np

from anon.compiled import compiled, inner

_I = nb.int64
_IN = nb.types.Array(nb.int64, 1, "C", readonly=True)
_FN = nb.types.Array(nb.float64, 1, "C", readonly=True)
_TABLE = nb.types.Array(nb.float64, 2, "C", readonly=True)
_OUT = nb.int64[::1]
_OUT2 = nb.int64[:, ::1]


@inner(nb.float64(_TABLE, _OUT, _I, _I))
def _spread(table, kind, size, column):
    """The largest over the smallest probability of a column among some members; infinite with a zero."""
    least, most = np.inf, 0.0
    for i in range(size):
        p = table[kind[i], column]
        least, most = min(least, p), max(most, p)
    return most / least if least > 0.0 else np.inf


@compiled(nb.float64(_OUT, _OUT, _I, _TABLE, _IN, _IN, _FN))
def slack(kind, value, size, table, first, binary, r):
    """The smallest over all priors of what the bound on the posteriors of a group allows for r, over r: from 1 on the
    group is safe. One over the bound with one copy of each value is 1 + (size - 1) / (lam_x lam_o)."""
    values = (table.shape[1] - first[first.size - 1]) // (1 + binary[first.size - 1])
    least = np.inf
    for prior in range(first.size):
        top, second, pair = 1.0, 1.0, 1.0
        for i in range(size):
            wide = _spread(table, kind, size, first[prior] + value[i])
            if binary[prior]:
                pair = max(pair, wide * _spread(table, kind, size, first[prior] + values + value[i]))
            elif wide > top:
                top, second = wide, top
            else:
                second = max(second, wide)
        wide = pair if binary[prior] else top * second
        least = min(least, (1.0 + (size - 1) / wide) / r[prior])
    return least


@inner(_I(_OUT, _OUT, _I, _OUT, _OUT, _I))
def _join(kind, value, size, own_kind, own_value, own_size):
    """Adds the members of a group to others; -1 if they share a value."""
    for i in range(own_size):
        for j in range(size):
            if value[j] == own_value[i]:
                return -1
    for i in range(own_size):
        kind[size + i], value[size + i] = own_kind[i], own_value[i]
    return size + own_size


@compiled(_I(_OUT2, _OUT2, _OUT, _IN, _I, _I, _TABLE, _IN, _IN, _FN, nb.float64, _I, _I, _OUT, nb.float64[::1]))
def place(kind, value, size, order, own, x, table, first, binary, r, enough, reach, partners, taken, best):
    """Finds groups that can take in somebody of class `own` with value x: looks through `reach` of them in the given
    order, and merges each with others of the next `partners`, one after the other, for as long as that raises the
    slack, until it is enough. Writes the groups to `taken` and returns how many there are, 0 if none will do;
    best[0] is the largest slack that was seen. Groups with size 0 are no more."""
    room = kind.shape[1]
    some_kind, some_value = np.empty(2 * room + 1, np.int64), np.empty(2 * room + 1, np.int64)
    for at in range(min(reach, order.size)):
        g = order[at]
        some_kind[0], some_value[0] = own, x
        n = _join(some_kind, some_value, 1, kind[g], value[g], size[g]) if size[g] > 0 else -1
        if n < 0 or n > room:
            continue
        now = slack(some_kind, some_value, n, table, first, binary, r)
        best[0] = max(best[0], now)
        taken[0], count = g, 1
        for other in range(at + 1, min(at + 1 + partners, order.size)):
            if now >= enough or count == taken.size:
                break
            h = order[other]
            more = _join(some_kind, some_value, n, kind[h], value[h], size[h]) if size[h] > 0 else -1
            if more < 0 or more > room:
                continue
            then = slack(some_kind, some_value, more, table, first, binary, r)
            if then > now:
                now, n, taken[count] = then, more, h
                count += 1
        best[0] = max(best[0], now)
        if now >= enough:
            for i in range(n):
                kind[g, i], value[g, i] = some_kind[i], some_value[i]
            size[g] = n
            for i in range(1, count):
                size[taken[i]] = 0
            return count
    return 0
