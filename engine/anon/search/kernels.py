"""The compiled loops of the partition search: plain loops with explicit types, compiled once per installation. Records
are columns of 16-bit codes, codes[column, record]: the quasi-identifiers, then the other columns, then (where equal
rows were counted) the people that a record stands for, in two halves from column `people` on; without them `people` is
-1 and every record is one person. Where individuals have several values, people are counted once, and what is counted
by value are occurrences, from another column on. A node is a contiguous range of records, except at the top of the
tree, where each record's node is given."""

# mypy: disable-error-code="no-untyped-def,misc,assignment"
from __future__ import annotations

import numba as nb
import numpy as np

from anon.compiled import compiled, inner

_I = nb.int64
_U = nb.uint64  # for places: what cannot be negative is not asked whether it counts from the end
_CODES = nb.types.Array(nb.uint16, 2, "C", readonly=True)
_IN = nb.types.Array(nb.int64, 1, "C", readonly=True)
_NODES = nb.types.Array(nb.uint32, 1, "C", readonly=True)
_COLUMNS = nb.types.Array(nb.int8, 1, "C", readonly=True)
_CUTS = nb.types.Array(nb.uint16, 1, "C", readonly=True)
_BYTES = nb.types.Array(nb.uint8, 1, "C", readonly=True)
_ORDER = nb.int32[::1]
_OUT = nb.int64[::1]
_OUT2 = nb.int64[:, ::1]
_CODES2 = nb.uint16[:, ::1]
RUN = 16_384  # records that are moved at a time: their order and one column of them stay in the nearest cache


@inner(_I(_CODES, _U, _I))
def _weight(codes, r, people):
    return _I(1) if people < 0 else _I(codes[people, r]) | (_I(codes[people + 1, r]) << 16)


@inner([_I(_IN, _I, _I, _I), _I(_CUTS, _I, _I, _I)])
def _part(cut, first, last, code):
    """The number of cuts in cut[first:last] (ascending) that are at or below the code."""
    if last - first == 1:
        return _I(cut[first] <= code)
    low, high = first, last
    while low < high:
        middle = (low + high) // 2
        if cut[middle] <= code:
            low = middle + 1
        else:
            high = middle
    return low - first


@compiled(nb.void(_CODES, _IN, _IN, _CODES2, _CODES2))
def bounds(codes, start, stop, low, high):
    """The lowest and the highest code of the first columns in each node."""
    for node in range(start.size):
        for j in range(low.shape[1]):
            lowest, highest = np.uint16(65535), np.uint16(0)
            for r in range(_U(start[node]), _U(stop[node])):
                lowest = min(lowest, codes[j, r])
                highest = max(highest, codes[j, r])
            low[node, j] = lowest
            high[node, j] = highest


@compiled(nb.void(_CODES, _I, _IN, _IN, _IN, _IN, _IN, _OUT, _OUT))
def nearest(codes, people, start, stop, column, low, high, cut, left):
    """Per node the cut of one column nearest to the median, ties to the lower one, and the people below it; of
    low..high, which occur, the highest code is above every cut. Codes are counted in up to 256 buckets, then those of
    the bucket with the median."""
    coarse, fine = np.empty(256, np.int64), np.empty(256, np.int64)
    for node in range(start.size):
        j, first, reach = column[node], low[node], high[node] - low[node] + 1
        shift = 0
        while (reach - 1) >> shift > 255:
            shift += 1
        for b in range(256):
            coarse[b] = 0
            fine[b] = 0
        for r in range(_U(start[node]), _U(stop[node])):
            coarse[(_U(codes[j, r]) - _U(first)) >> _U(shift)] += _weight(codes, r, people)
        total = 0
        for b in range(256):
            total += coarse[b]
        bucket, before = 0, 0
        while 2 * (before + coarse[bucket]) < total:
            before += coarse[bucket]
            bucket += 1
        # the codes around the bucket, and those inside it
        base = first + (bucket << shift)
        beyond, below, above = base + (1 << shift), -1, 1 << 17
        for r in range(_U(start[node]), _U(stop[node])):
            code = _I(codes[j, r])
            below = max(below, code if code < base else -1)
            above = min(above, code if code >= beyond else 1 << 17)
        for r in range(_U(start[node]), _U(stop[node])):
            inside = _U(codes[j, r]) - _U(base)
            if inside < _U(1 << shift):
                fine[inside] += _weight(codes, r, people)
        at = 0
        while 2 * (before + fine[at]) < total:
            if fine[at] > 0:
                below = base + at
            before += fine[at]
            at += 1
        middle, after = base + at, before + fine[at]
        at += 1
        while at < 1 << shift and fine[at] == 0:
            at += 1
        if at < 1 << shift:
            above = base + at
        lower_is_nearer = total - 2 * before <= 2 * after - total
        if below >= 0 and (lower_is_nearer or above > 65535):
            cut[node], left[node] = (below + middle + 1) // 2, before
        else:
            cut[node], left[node] = (middle + above + 1) // 2, after


@compiled(nb.void(_CODES, _I, _IN, _IN, _IN, _IN, _IN, _I, _OUT2))
def part_counts(codes, people, start, stop, column, cut_start, cut, value, counts):
    """People by code of a value column in the parts of each node between its cuts, counts[first part + part, code]. A
    node with c cuts has c + 1 parts; the parts of all nodes lie one after the other."""
    base = 0
    for node in range(start.size):
        first, last, j = cut_start[node], cut_start[node + 1], column[node]
        if last - first == 1 and people < 0:  # as nearly always
            edge = cut[first]
            for r in range(_U(start[node]), _U(stop[node])):
                counts[_U(base) + _U(codes[j, r] >= edge), codes[value, r]] += 1
        else:
            for r in range(_U(start[node]), _U(stop[node])):
                part = _U(base + _part(cut, first, last, _I(codes[j, r])))
                counts[part, codes[value, r]] += _weight(codes, r, people)
        base += last - first + 1


@compiled(nb.void(_CODES, _I, _IN, _IN, _IN, _IN, _IN, _OUT))
def part_sizes(codes, people, start, stop, column, cut_start, cut, sizes):
    """People in the parts of each node between its cuts."""
    base = 0
    for node in range(start.size):
        first, last, j = cut_start[node], cut_start[node + 1], column[node]
        for r in range(_U(start[node]), _U(stop[node])):
            sizes[base + _part(cut, first, last, _I(codes[j, r]))] += _weight(codes, r, people)
        base += last - first + 1


@inner(nb.void(_OUT, _I))
def _sort(numbers, length):
    """Shell sort of the first `length` numbers."""
    gap = length // 2
    while gap > 0:
        for i in range(gap, length):
            held = numbers[i]
            j = i
            while j >= gap and numbers[j - gap] > held:
                numbers[j] = numbers[j - gap]
                j -= gap
            numbers[j] = held
        gap //= 2


@compiled(nb.void(_CODES, _I, _I, _IN, _IN, _IN, _IN, _IN, _I, _OUT, _OUT, _OUT, _OUT, _OUT, _OUT))
def part_lists(codes, people, times, start, stop, column, cut_start, cut, value, counter, seen, n, length, code, count):
    """As part_counts for a column with many codes: the people n of each part, how many codes occur in it, and these
    with how often they do, ascending, one part after the other. counter and seen are scratch, counter all zero."""
    base, at = 0, 0
    for node in range(start.size):
        first, last, j = cut_start[node], cut_start[node + 1], column[node]
        for part in range(last - first + 1):
            found = 0
            for r in range(_U(start[node]), _U(stop[node])):
                if _part(cut, first, last, _I(codes[j, r])) == part:
                    v = _I(codes[value, r])
                    if counter[v] == 0:
                        seen[found] = v
                        found += 1
                    counter[v] += _weight(codes, r, times)
                    n[base + part] += _weight(codes, r, people)
            _sort(seen, found)
            for e in range(found):
                code[at], count[at] = seen[e], counter[seen[e]]
                counter[seen[e]] = 0
                at += 1
            length[base + part] = found
        base += last - first + 1


@compiled(nb.void(_CODES, _IN, _IN, _IN, _ORDER))
def by_code(codes, start, stop, column, order):
    """The records of each node in order of one column's codes: order[start:stop]. Two rounds of counting by byte."""
    longest = 0
    for node in range(start.size):
        length = stop[node] - start[node]
        longest = length if length > longest else longest
    other, place = np.empty(longest, np.int64), np.empty(257, np.int64)
    for node in range(start.size):
        j, begin, length = column[node], start[node], stop[node] - start[node]
        for half in range(2):
            for b in range(257):
                place[b] = 0
            for i in range(length):
                r = begin + i if half == 0 else other[i]
                place[((_I(codes[j, r]) >> (8 * half)) & 255) + 1] += 1
            for b in range(256):
                place[b + 1] += place[b]
            for i in range(length):
                r = begin + i if half == 0 else other[i]
                b = (_I(codes[j, r]) >> (8 * half)) & 255
                if half == 0:
                    other[place[b]] = r
                else:
                    order[begin + place[b]] = r
                place[b] += 1


@inner(nb.boolean(_OUT, _OUT, _I, _IN, _IN))
def _hopeless(counts, top, n, fewest, largest):
    """Whether for some i the people outside the largest[i] most frequent values are fewer than fewest[i]."""
    for i in range(fewest.size):
        size = largest[i]
        for t in range(size):
            top[t] = 0
        for v in range(counts.size):
            if size == 0 or counts[v] <= top[size - 1]:
                continue
            t = size - 1
            while t > 0 and top[t - 1] < counts[v]:
                top[t] = top[t - 1]
                t -= 1
            top[t] = counts[v]
        left = n
        for t in range(size):
            left -= top[t]
        if left < fewest[i]:
            return True
    return False


@compiled(nb.void(_CODES, _I, _IN, _IN, _IN, _ORDER, _I, _I, _I, _IN, _IN, _IN, _OUT, _OUT, _OUT))
def sweep(codes, people, start, stop, column, order, value, values, least, fewest, largest, room, cut, off, used):
    """The cuts of one column per node that leave at least `least` people on both sides, and of which neither side is
    hopeless, from room[node] on: the cut, and how far the people below it are from half. `order` is from by_code; with
    values = 0 the sides are judged by their people alone."""
    low, high = np.zeros(values, np.int64), np.zeros(values, np.int64)
    longest = 0
    for i in range(largest.size):
        longest = largest[i] if largest[i] > longest else longest
    top = np.zeros(longest + 1, np.int64)
    for node in range(start.size):
        j, total = column[node], 0
        for v in range(values):
            low[v] = 0
            high[v] = 0
        for r in range(_U(start[node]), _U(stop[node])):
            weight = _weight(codes, r, people)
            total += weight
            if values:
                high[codes[value, r]] += weight
        below, found = 0, 0
        for i in range(start[node], stop[node] - 1):
            r = order[i]
            weight = _weight(codes, r, people)
            below += weight
            if values:
                low[codes[value, r]] += weight
                high[codes[value, r]] -= weight
            code, following = _I(codes[j, r]), _I(codes[j, order[i + 1]])
            if following == code or below < least or total - below < least:
                continue
            if values and (
                _hopeless(low, top, below, fewest, largest) or _hopeless(high, top, total - below, fewest, largest)
            ):
                continue
            cut[room[node] + found] = (code + following + 1) // 2
            off[room[node] + found] = 2 * below - total if 2 * below > total else total - 2 * below
            found += 1
        used[node] = found


@compiled(nb.void(_CODES, _IN, _IN, _IN, _IN, _IN, _OUT, _CODES2))
def route(codes, start, stop, column, cut_start, cut, place, moved):
    """Moves the records of each node into its parts, in order; place[first part + part] is where each part begins."""
    most = 2
    for node in range(start.size):
        parts = cut_start[node + 1] - cut_start[node] + 1
        most = parts if parts > most else most
    order, part_of = np.empty(RUN, np.uint16), np.empty(RUN, np.uint16)
    ends = np.zeros(most + 1, np.uint64)
    base = 0
    for node in range(start.size):
        first, parts, j = cut_start[node], cut_start[node + 1] - cut_start[node] + 1, column[node]
        for begin in range(start[node], stop[node], RUN):
            length = min(stop[node] - begin, RUN)
            run = codes[:, begin : begin + length]
            for p in range(parts + 1):
                ends[p] = 0
            if parts == 2:
                edge = cut[first]
                for i in range(length):
                    part_of[i] = run[j, i] >= edge
                    ends[1] += _U(1 - part_of[i])
                below, above = _U(0), ends[1]
                for i in range(length):
                    order[above if part_of[i] else below] = i
                    above += _U(part_of[i])
                    below += _U(1 - part_of[i])
                ends[2] = length
            else:
                for i in range(length):
                    part_of[i] = _part(cut, first, first + parts - 1, _I(run[j, i]))
                    ends[part_of[i] + 1] += _U(1)
                for p in range(parts):
                    ends[p + 1] += ends[p]
                for i in range(length):
                    order[ends[part_of[i]]] = i
                    ends[part_of[i]] += _U(1)
                for p in range(parts, 0, -1):
                    ends[p] = ends[p - 1]
                ends[0] = 0
            for c in range(codes.shape[0]):
                for p in range(parts):
                    to = _U(place[base + p]) - ends[p]
                    for i in range(ends[p], ends[p + 1]):
                        moved[c, to + i] = run[c, order[i]]
            for p in range(parts):
                place[base + p] += _I(ends[p + 1] - ends[p])
        base += parts


@compiled(nb.int64(_CODES, _I, _IN, _IN, _I, nb.uint64[::1], nb.uint8[::1], _ORDER))
def unique_people(codes, people, start, stop, columns, keys, alone, table):
    """People who are alone with the codes of the first columns in their node. keys and alone are scratch, one place per
    record of the longest node; table too, all zero, four per record."""
    total = 0
    for node in range(start.size):
        begin, length = _U(start[node]), _U(stop[node] - start[node])
        if length == _U(0):
            continue
        for i in range(length):
            keys[i] = 0
        for j in range(columns):
            for i in range(length):
                key = (keys[i] ^ _U(codes[j, begin + i])) * _U(0x9E3779B97F4A7C15)
                keys[i] = key ^ (key >> _U(29))
        size = _U(2)
        while size < _U(2) * length:
            size *= _U(2)
        for i in range(length):
            at, same = keys[i] & (size - _U(1)), False
            while table[at] > 0 and not same:  # holds the first record with these codes, counted from 1
                known = _U(table[at] - 1)
                same = keys[known] == keys[i]
                if same:
                    for j in range(columns):
                        same = same and codes[j, begin + known] == codes[j, begin + i]
                if not same:
                    at = (at + _U(1)) & (size - _U(1))
            if not same:
                table[at] = i + _U(1)
                known, alone[i] = _U(i), 0
            before = alone[known]
            alone[known] = min(_I(before) + _weight(codes, begin + i, people), _I(2))  # how many, if not more than one
            total += _I(alone[known] == 1) - _I(before == 1)
        for at in range(size):
            table[at] = 0
    return total


@compiled(
    [
        nb.void(_CODES, _IN, _IN, _IN, _IN, nb.uint32[::1]),
        nb.void(_CODES, _COLUMNS, _NODES, _CUTS, _NODES, nb.uint32[::1]),
    ]
)
def walk(codes, column, cut_start, cut, child, node):
    """Walks every record down a tree of cuts, from the node it has come to. Node i with c cuts has c + 1 children from
    child[i] on; a leaf has column -1, and its child is what the records that end there are given."""
    for r in range(_U(codes.shape[1])):
        at = _U(node[r])
        while column[at] >= 0:
            first, last, code = _I(cut_start[at]), _I(cut_start[at + _U(1)]), _I(codes[_U(column[at]), r])
            if last - first == 1:
                at = _U(_I(child[at]) + _I(cut[_U(first)] <= code))
            else:
                at = _U(_I(child[at]) + _part(cut, first, last, code))
        node[r] = child[at]


@compiled(nb.void(_CODES, _BYTES, _NODES, _NODES, nb.uint32[::1]))
def step(codes, column, edge, child, node):
    """As `walk` where no record goes further than over one cut: to child[i], or to the next if the code reaches the
    edge, which is out of reach where a record stays."""
    for r in range(_U(codes.shape[1])):
        at = _U(node[r])
        node[r] = child[at] + nb.uint32(codes[_U(column[at]), r] >= edge[at])


@compiled(nb.void(_CODES, _I, _NODES, _IN, _IN, _OUT))
def top_codes(codes, people, node, column, room, counts):
    """People by code of one column per node, at room[node] + code, where each record's node is given; column -1: none.
    """
    for r in range(_U(codes.shape[1])):
        j = column[node[r]]
        if j >= 0:
            counts[_U(room[node[r]] + _I(codes[_U(j), r]))] += _weight(codes, r, people)


@compiled(nb.void(_CODES, _I, _NODES, _I, _OUT2))
def top_values(codes, people, node, column, counts):
    """People by code of one column per node."""
    for r in range(_U(codes.shape[1])):
        counts[node[r], codes[_U(column), r]] += _weight(codes, r, people)


@compiled(nb.void(_CODES, _NODES, _IN, _CODES2, _CODES2))
def top_bounds(codes, node, columns, low, high):
    """Widens what each node reaches from and to in some columns."""
    for k in range(columns.size):
        j = _U(columns[k])
        for r in range(_U(codes.shape[1])):
            at, code = node[r], codes[j, r]
            if code < low[at, j]:
                low[at, j] = code
            if code > high[at, j]:
                high[at, j] = code


@compiled(nb.void(_CODES, _NODES, _OUT, _ORDER, _CODES2))
def scatter(codes, node, begin, order, moved):
    """Brings records into the order of their nodes. `begin`, all zero and two longer than there are nodes, becomes the
    place of the first record of each node, and past the last one."""
    for r in range(_U(codes.shape[1])):
        begin[node[r] + _U(2)] += 1
    for i in range(2, begin.size):
        begin[i] += begin[i - 1]
    for r in range(_U(codes.shape[1])):
        to = begin[node[r] + _U(1)]
        order[_U(to)] = r
        begin[node[r] + _U(1)] = to + 1
    for j in range(codes.shape[0]):
        for i in range(_U(codes.shape[1])):
            moved[j, i] = codes[j, _U(order[i])]
