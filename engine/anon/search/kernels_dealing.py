"""The compiled loops of dealing, which *merge* and *colour* share: sets of entries are split by their quasi-identifiers
for as long as both parts can be dealt, and the people of each part are then dealt out to its groups. An entry is a
record with its people; codes[column, entry] are its quasi-identifiers, place[entry] is where its sensitive value stands
in the order that values are dealt in."""

# mypy: disable-error-code="no-untyped-def,misc,assignment"
from __future__ import annotations

import numba as nb
import numpy as np

from anon.compiled import compiled, inner

_I = nb.int64
_IN = nb.types.Array(nb.int64, 1, "C", readonly=True)
_CODES = nb.types.Array(nb.uint16, 2, "C", readonly=True)
_F2 = nb.types.Array(nb.float64, 2, "C", readonly=True)
_OUT = nb.int64[::1]


@compiled(nb.boolean(_OUT, _OUT, _I, _I, _I, _IN, _IN, _IN))
def can_be_dealt(place, people, count, total, size, near, low, high):
    """Whether the first `count` entries, in the order of their places and `total` people, can be dealt out to groups of
    `size`: no window low[p]..high[p] around a place p of theirs has more people than 1 + near[people of the smallest
    group] for each group."""
    groups = total // size
    if groups == 0:
        return False
    most = groups * (1 + near[total // groups])
    first, last, inside = 0, 0, 0
    for e in range(count):
        while last < count and place[last] <= high[place[e]]:
            inside += people[last]
            last += 1
        while place[first] < low[place[e]]:
            inside -= people[first]
            first += 1
        if inside > most:
            return False
    return True


@inner(_I(_CODES, _IN, _OUT, _I, _I, _I, _I, _I, _I, _OUT))
def _median(codes, people, order, start, stop, j, low, high, total, held):
    """The lowest code of a column that at least half of the people do not exceed; below `high`, which occurs."""
    if high - low + 1 <= 4 * (stop - start):
        for code in range(low, high + 1):
            held[code] = 0
        for i in range(start, stop):
            held[codes[j, order[i]]] += people[order[i]]
        cut, below = low, held[low]
        while 2 * below < total:
            cut += 1
            below += held[cut]
        return min(cut, high - 1)
    while low < high:
        middle, below = (low + high) // 2, 0
        for i in range(start, stop):
            if codes[j, order[i]] <= middle:
                below += people[order[i]]
        if 2 * below < total:
            low = middle + 1
        else:
            high = middle
    return low


@inner(nb.boolean(_CODES, _IN, _IN, _OUT, _I, _I, _I, _I, _I, _IN, _IN, _IN, _OUT, _OUT))
def _side(codes, place, people, order, start, stop, j, cut, size, near, low, high, places, weights):
    """Whether the entries of a node at or below a cut can be dealt; with j below 0, those of column ~j above it."""
    column, above = (~j, True) if j < 0 else (j, False)
    count, total = 0, 0
    for i in range(start, stop):
        e = order[i]
        if (codes[column, e] > cut) == above:
            places[count], weights[count] = place[e], people[e]
            total += people[e]
            count += 1
    return can_be_dealt(places, weights, count, total, size, near, low, high)


@inner(nb.void(_CODES, _OUT, _I, _I, _I, _I, _OUT))
def _divide(codes, order, start, stop, j, cut, spare):
    """Puts the entries at or below a cut first, and leaves the order of each side as it is."""
    at, aside = start, 0
    for i in range(start, stop):
        if codes[j, order[i]] <= cut:
            order[at] = order[i]
            at += 1
        else:
            spare[aside] = order[i]
            aside += 1
    for i in range(aside):
        order[at + i] = spare[i]


@inner(_I(_CODES, _OUT, _I, _I, _F2, nb.float64[::1], _OUT, _OUT))
def _widths(codes, order, start, stop, scale, width, lowest, highest):
    """How far the codes of a node span in each column, of the whole column; and the widest column."""
    widest = 0
    for j in range(width.size):
        low, high = _I(65535), _I(0)
        for i in range(start, stop):
            low = min(low, _I(codes[j, order[i]]))
            high = max(high, _I(codes[j, order[i]]))
        lowest[j], highest[j] = low, high
        width[j] = scale[j, high] - scale[j, low] if high > low else -1.0
        if high > low and width[j] <= 0.0:
            width[j] = 0.0
        if width[j] > width[widest]:
            widest = j
    return widest


@compiled(_I(_CODES, _IN, _IN, _OUT, _IN, _F2, _I, _IN, _IN, _IN, _OUT))
def split(codes, place, people, order, start, scale, size, near, low, high, leaf):
    """Splits the nodes order[start[i]:start[i + 1]], entries in the order of their places, for as long as there is a
    cut whose two sides can be dealt: along the widest column first, at its median, else just below it. Writes where
    the parts start in `order`, which is rearranged, to `leaf`; returns how many there are."""
    entries, columns = order.size, codes.shape[0]
    width, lowest, highest = np.empty(columns), np.empty(columns, np.int64), np.empty(columns, np.int64)
    spare, places, weights = np.empty(entries, np.int64), np.empty(entries, np.int64), np.empty(entries, np.int64)
    held = np.empty(65536, np.int64)
    first, last = np.empty(256, np.int64), np.empty(256, np.int64)  # open nodes; each is at most half of those below it
    leaves = 0
    for root in range(start.size - 1):
        first[0], last[0], open_ = start[root], start[root + 1], 1
        while open_ > 0:
            open_ -= 1
            a, b = first[open_], last[open_]
            total = 0
            for i in range(a, b):
                total += people[order[i]]
            cut = -1
            if total >= 2 * size and open_ < 254:
                j = _widths(codes, order, a, b, scale, width, lowest, highest)
                while width[j] >= 0.0 and cut < 0:
                    middle = _median(codes, people, order, a, b, j, lowest[j], highest[j], total, held)
                    for c in (middle, middle - 1):
                        if (
                            c >= lowest[j]
                            and _side(codes, place, people, order, a, b, j, c, size, near, low, high, places, weights)
                            and _side(codes, place, people, order, a, b, ~j, c, size, near, low, high, places, weights)
                        ):
                            cut = c
                            break
                    if cut < 0:
                        width[j] = -1.0
                        for other in range(width.size):
                            if width[other] > width[j]:
                                j = other
            if cut < 0:
                leaf[leaves] = a
                leaves += 1
                continue
            _divide(codes, order, a, b, j, cut, spare)
            middle = a
            while codes[j, order[middle]] <= cut:
                middle += 1
            first[open_], last[open_] = middle, b
            first[open_ + 1], last[open_ + 1] = a, middle
            open_ += 2
    leaf[leaves] = entries
    return leaves


@compiled(_I(_IN, _IN, _IN, _I, _I, _OUT, _OUT, _OUT))
def deal(order, people, leaf, size, group, out_entry, out_group, out_people):
    """Deals the people of each part, in the order of their places, round-robin to its groups, which are numbered from
    `group` on: as many as have at least `size` people each. Writes entry, group and people; returns how many there
    are, and in out_group[-1] the number of the next group."""
    at = 0
    for part in range(leaf.size - 1):
        total = 0
        for i in range(leaf[part], leaf[part + 1]):
            total += people[order[i]]
        groups, next_ = total // size, 0
        for i in range(leaf[part], leaf[part + 1]):
            e = order[i]
            whole, more = people[e] // groups, people[e] % groups
            for k in range(min(people[e], groups)):
                out_entry[at], out_people[at] = e, whole + (k < more)
                out_group[at] = group + (next_ + k) % groups
                at += 1
            next_ = (next_ + people[e]) % groups
        group += groups
    out_group[out_group.size - 1] = group
    return at
