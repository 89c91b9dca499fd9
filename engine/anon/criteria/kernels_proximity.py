"""The compiled loops of the proximity criteria: neighbourhoods of the values of a group, and the distance of its
distribution to a reference."""

# mypy: disable-error-code="no-untyped-def,misc"
from __future__ import annotations

import numba as nb
import numpy as np

from anon.compiled import compiled, inner

_I = nb.int64
_IN = nb.types.Array(nb.int64, 1, "C", readonly=True)
_IN2 = nb.types.Array(nb.int64, 2, "C", readonly=True)
_FLOATS = nb.types.Array(nb.float64, 1, "C", readonly=True)
_FLOATS2 = nb.types.Array(nb.float64, 2, "C", readonly=True)
_OUT = nb.int64[::1]
_FLOATS_OUT = nb.float64[::1]


@compiled(nb.void(_IN, _IN, _IN, _I, _OUT, _OUT))
def sort_places(start, place, count, places, out_place, out_count):
    """Puts the entries of each group into the order of their places, in time linear in both: all entries by place, then
    each to its group."""
    at = np.zeros(places + 1, np.int64)
    for e in range(place.size):
        at[place[e] + 1] += 1
    for p in range(places):
        at[p + 1] += at[p]
    group, entry = np.empty_like(out_place), np.empty_like(out_place)
    for g in range(start.size - 1):
        for e in range(start[g], start[g + 1]):
            group[at[place[e]]], entry[at[place[e]]] = g, e
            at[place[e]] += 1
    cursor = start.copy()
    for i in range(place.size):
        to = cursor[group[i]]
        out_place[to], out_count[to] = place[entry[i]], count[entry[i]]
        cursor[group[i]] += 1


@compiled(nb.void(_IN, _IN, _IN, _IN, _IN, _OUT))
def largest_window(start, place, count, low, high, out):
    """The largest count of a group within low[p]..high[p] around any place p in it. Places ascend in every group; low
    and high never descend, so that each end of the window only moves forward."""
    for g in range(out.size):
        first = last = start[g]
        inside = 0
        out[g] = 0
        for e in range(start[g], start[g + 1]):
            while last < start[g + 1] and place[last] <= high[place[e]]:
                inside += count[last]
                last += 1
            while place[first] < low[place[e]]:
                inside -= count[first]
                first += 1
            out[g] = max(out[g], inside)


@inner(nb.boolean(_IN, _I, _I, _I))
def _among(codes, low, high, code):
    """Whether a code is among the ascending codes[low:high]."""
    while low < high:
        middle = (low + high) // 2
        if codes[middle] < code:
            low = middle + 1
        elif codes[middle] > code:
            high = middle
        else:
            return True
    return False


@compiled(nb.void(_IN, _IN, _IN, _IN, _IN, _OUT))
def largest_listed(start, value, count, near_start, near, out):
    """The largest count of a group among the listed neighbours of any value in it: found in the list, or, where the
    list is longer than the group, one by one."""
    held = np.zeros(near_start.size - 1, np.int64)
    for g in range(out.size):
        out[g] = 0
        for e in range(start[g], start[g + 1]):
            held[value[e]] = count[e]
        for e in range(start[g], start[g + 1]):
            low, high = near_start[value[e]], near_start[value[e] + 1]
            inside = 0
            if high - low <= 4 * (start[g + 1] - start[g]):
                for i in range(low, high):
                    inside += held[near[i]]
            else:
                for other in range(start[g], start[g + 1]):
                    if _among(near, low, high, value[other]):
                        inside += count[other]
            out[g] = max(out[g], inside)
        for e in range(start[g], start[g + 1]):
            held[value[e]] = 0


@compiled(nb.void(_IN, _IN, _IN, _IN, _IN2, _FLOATS2, _FLOATS_OUT))
def distance_in_tree(n, start, value, count, node, share, out):
    """Per group the sum over levels and nodes of |share in the group - share in the reference|, over twice the levels.

    On each level the reference sums to 1, so that only nodes the group has need a look.
    """
    held = np.zeros(share.shape[1], np.int64)
    for g in range(n.size):
        total = 0.0
        for level in range(node.shape[0]):
            for e in range(start[g], start[g + 1]):
                held[node[level, value[e]]] += count[e]
            total += 1.0
            for e in range(start[g], start[g + 1]):
                at = node[level, value[e]]
                if held[at] > 0:
                    total += abs(held[at] / n[g] - share[level, at]) - share[level, at]
                    held[at] = 0
        out[g] = max(total, 0.0) / (2 * node.shape[0])


@inner(nb.int64(_FLOATS, _I, _I, nb.float64))
def _first_above(share, low, high, bound):
    while low < high:
        middle = (low + high) // 2
        if share[middle] > bound:
            high = middle
        else:
            low = middle + 1
    return low


@compiled(nb.void(_IN, _IN, _IN, _IN, _FLOATS, _FLOATS, _FLOATS, _FLOATS_OUT))
def distance_on_line(n, start, place, count, share, length, area, out):
    """Per group the area between its cumulative shares and those of the reference, over places in order.

    `share` is cumulative up to each place, `length` and `area` are the way to each place and the area under the
    reference up to it. Between two places that the group has, its own share is constant and the reference ascends, so
    that they cross once at most: two differences give the area there.
    """
    last = share.size - 1
    for g in range(n.size):
        at, people, total = 0, 0, 0.0
        for e in range(start[g], start[g + 1] + 1):
            end = last
            if e < start[g + 1]:
                end = place[e]
            own = people / n[g]
            cross = _first_above(share, at, end, own)
            total += own * (length[cross] - length[at]) - (area[cross] - area[at])
            total += (area[end] - area[cross]) - own * (length[end] - length[cross])
            at = end
            if e < start[g + 1]:
                people += count[e]
        out[g] = max(total, 0.0)


@compiled(nb.void(_IN, _IN, _IN, _FLOATS, _FLOATS_OUT))
def variances(n, start, count, number, out):
    """The population variance of each group, in two passes."""
    for g in range(n.size):
        total = 0.0
        for e in range(start[g], start[g + 1]):
            total += count[e] * number[e]
        mean, squares = total / n[g], 0.0
        for e in range(start[g], start[g + 1]):
            squares += count[e] * (number[e] - mean) * (number[e] - mean)
        out[g] = squares / n[g]
