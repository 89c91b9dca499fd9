"""The compiled loops of r-robustness: the bound on the posterior of every group or value, and the posterior itself by
adding up all possible worlds. `hand_out` is the one that also runs uncompiled, on exact integers, so Python calls the
loops it calls."""

# mypy: disable-error-code="no-untyped-def,misc"
from __future__ import annotations

import numba as nb
import numpy as np

from anon.compiled import compiled, inner

_I = nb.int64
_IN = nb.types.Array(nb.int64, 1, "C", readonly=True)
_P = nb.types.Array(nb.float64, 2, "C", readonly=True)
_F1 = nb.float64[::1]
_F2 = nb.float64[:, ::1]
_I1 = nb.int64[::1]

VANISHED = 1e-200  # chances below this may have lost terms that were rounded to zero


@inner(nb.float64(_P, _I, _IN, _I, _I))
def _spread(p, value, code, low, high):
    """The largest over the smallest prior of a value among the signatures of a group; infinite with a zero."""
    least, most = np.inf, 0.0
    for i in range(low, high):
        least = min(least, p[code[i], value])
        most = max(most, p[code[i], value])
    return most / least if least > 0.0 else np.inf


@compiled(nb.void(_IN, _IN, _IN, _IN, _IN, _IN, _P, _F1))
def bound_groups(n, start, value, count, sig_start, code, p, inverse):
    """One over the bound on the posterior of any value in each group, at least 1."""
    spread = np.zeros(p.shape[1])
    for g in range(n.size):
        low, high = start[g], start[g + 1]
        top, second, widest = 1.0, 1.0, -1
        for e in range(low, high):
            wide = _spread(p, value[e], code, sig_start[g], sig_start[g + 1])
            spread[e - low] = wide
            if widest < 0 or wide > top:
                top, second, widest = wide, top, e
            else:
                second = max(second, wide)
        inverse[g] = np.inf
        for e in range(low, high):
            other = second if e == widest else top
            inverse[g] = min(inverse[g], (1.0 + (n[g] - 1) / (spread[e - low] * other)) / count[e])
        inverse[g] = max(inverse[g], 1.0)


@compiled(nb.void(_IN, _IN, _IN, _IN, _IN, _IN, _IN, _P, _P, _F1))
def bound_values(group, entry, n, value, count, sig_start, code, yes, no, inverse):
    """The same for each value asked about, which stands against all others together."""
    for i in range(group.size):
        g, x, c = group[i], value[entry[i]], count[entry[i]]
        inverse[i] = 1.0
        if c < n[g]:
            wide = _spread(yes, x, code, sig_start[g], sig_start[g + 1])
            wide *= _spread(no, x, code, sig_start[g], sig_start[g + 1])
            inverse[i] = max((1.0 + (n[g] - 1) / wide) / c, 1.0)


@compiled(nb.int64(_IN, _I1))
def _next(most, used):
    """The next state in mixed radix; returns by how much the number of items placed changes."""
    change, b = 1, 0
    while used[b] == most[b]:
        change -= used[b]
        used[b] = 0
        b += 1
    used[b] += 1
    return change


@compiled(nb.int64(_IN, _I1))
def _previous(most, used):
    change, b = -1, 0
    while used[b] == 0:
        used[b] = most[b]
        change += most[b]
        b += 1
    used[b] -= 1
    return change


@inner(nb.void(_IN, _IN, _P, _F1, _F1, _F2))
def hand_out(items, most, w, forward, backward, weight):
    """Adds to weight[a, b] the weights of all worlds in which an item of kind a goes to a place of kind b.

    `items` lists the kind of every item in ascending order, most[b] is the number of places of kind b, as many in all
    as items; a world has the product of its w[a, b] as weight. A state says how many places of each kind the first
    items have filled; forward[state] adds up the ways to get there, backward[state] those to go on to the end.
    """
    stride = np.ones(most.size, np.int64)
    for b in range(1, most.size):
        stride[b] = stride[b - 1] * (most[b - 1] + 1)
    size = stride[most.size - 1] * (most[most.size - 1] + 1)
    used = np.zeros(most.size, np.int64)
    placed = 0
    forward[0] = 1
    for at in range(1, size):
        placed += _next(most, used)
        a = items[placed - 1]
        forward[at] = 0
        for b in range(most.size):
            if used[b] > 0:
                forward[at] += forward[at - stride[b]] * w[a, b]
    backward[size - 1] = 1
    for at in range(size - 2, -1, -1):
        placed += _previous(most, used)
        a = items[placed]
        last = placed + 1 == items.size or items[placed + 1] != a
        backward[at] = 0
        for b in range(most.size):
            if used[b] < most[b]:
                way = w[a, b] * backward[at + stride[b]]
                backward[at] += way
                if last:
                    weight[a, b] += forward[at] * way


@inner(nb.boolean(_IN, _IN, _F2))
def _balance(kinds, most, w):
    """Scales w by kinds of places, then by kinds of items to sum 1: no posterior changes, and nothing overflows or
    vanishes without need. False if some kind of item or place can have no share."""
    for b in range(most.size):
        total = 0.0
        for a in range(kinds.size):
            total += kinds[a] * w[a, b]
        if total == 0.0:
            return False
        for a in range(kinds.size):
            w[a, b] *= most[b] / total
    for a in range(kinds.size):
        total = 0.0
        for b in range(most.size):
            total += w[a, b]
        if total == 0.0:
            return False
        for b in range(most.size):
            w[a, b] /= total
    return True


@inner(nb.int64(_IN, _I))
def states(most, limit):
    """How many states `hand_out` would have; limit + 1 if more than limit."""
    size = 1
    for b in range(most.size):
        size *= most[b] + 1
        if size > limit:
            return limit + 1
    return size


@inner(nb.float64(_IN, _IN, _F2, _F1, _F1, _I, nb.boolean))
def _inverse(kinds, most, w, forward, backward, asked, by_people):
    """One over the largest posterior of the first `asked` values; nan if no world has a weight worth its name."""
    if not _balance(kinds, most, w):
        return np.nan
    n = 0
    for a in range(kinds.size):
        n += kinds[a]
    items, weight = np.zeros(n, np.int64), np.zeros((kinds.size, most.size))
    for a in range(kinds.size - 1, -1, -1):
        n -= kinds[a]
        items[n : n + kinds[a]] = a
    hand_out(items, most, w, forward, backward, weight)
    largest = 0.0
    for a in range(kinds.size):
        total = 0.0
        for b in range(most.size):
            total += weight[a, b]
        if not total > VANISHED:
            return np.nan
        for b in range(most.size):
            if by_people and b < asked:
                largest = max(largest, weight[a, b] / total)
            elif not by_people and a < asked:
                largest = max(largest, weight[a, b] / total * kinds[a] / most[b])
    return 1.0 / min(largest, 1.0) if largest > 0.0 else np.nan


@inner(nb.void(_I, _I, _I, _IN, _IN, _P, _P, nb.boolean, _F2))
def _fill(low, begin, entry, value, code, yes, no, by_people, w):
    """The priors of a group, one row for each kind of item."""
    for s in range(w.shape[0] if by_people else w.shape[1]):
        for v in range(w.shape[1] if by_people else w.shape[0]):
            if entry < 0:
                p = yes[code[low + s], value[begin + v]]
            else:
                p = yes[code[low + s], value[entry]] if v == 0 else no[code[low + s], value[entry]]
            if by_people:
                w[s, v] = p
            else:
                w[v, s] = p


@compiled(nb.void(_IN, _IN, _IN, _IN, _IN, _IN, _IN, _IN, _IN, _P, _P, _I, _F1))
def largest_posteriors(group, entry, n, start, value, count, sig_start, code, sig_count, yes, no, limit, inverse):
    """One over the largest posterior in each group (entry -1) or of the value of one entry; nan if there are more
    states than limit, or no worlds."""
    forward, backward = np.zeros(limit), np.zeros(limit)
    pair = np.zeros(2, np.int64)
    for i in range(group.size):
        g, e = group[i], entry[i]
        people = sig_count[sig_start[g] : sig_start[g + 1]]
        copies = count[start[g] : start[g + 1]]
        inverse[i] = np.nan
        if e >= 0:
            if count[e] == n[g]:
                inverse[i] = 1.0
                continue
            pair[0], pair[1] = count[e], n[g] - count[e]
            copies = pair
        by_people = states(copies, limit) <= states(people, limit)
        kinds, most = (people, copies) if by_people else (copies, people)
        if states(most, limit) <= limit:
            w = np.zeros((kinds.size, most.size))
            _fill(sig_start[g], start[g], e, value, code, yes, no, by_people, w)
            inverse[i] = _inverse(kinds, most, w, forward, backward, copies.size if e < 0 else 1, by_people)
