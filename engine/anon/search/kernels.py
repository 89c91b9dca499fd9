"""The compiled loops of the partition search: plain loops with explicit types, compiled once per installation. A record
is a row of 16-bit codes: the quasi-identifiers, then the other columns, then (where equal rows were counted) the people
it stands for, in two halves from column `people` on; without them `people` is -1 and every record is one person. A node
is a contiguous range of records, except at the top of the tree, where each record's node is given."""

# mypy: disable-error-code="no-untyped-def,misc,assignment"
from __future__ import annotations

import numba as nb
import numpy as np

from anon.compiled import compiled

_I = nb.int64
_ROWS = nb.types.Array(nb.uint16, 2, "C", readonly=True)
_IN = nb.types.Array(nb.int64, 1, "C", readonly=True)
_NODES = nb.types.Array(nb.uint32, 1, "C", readonly=True)
_OUT = nb.int64[::1]
_OUT2 = nb.int64[:, ::1]
_CODES2 = nb.uint16[:, ::1]


@compiled(_I(_ROWS, _I, _I))
def _weight(rows, r, people):
    return _I(1) if people < 0 else _I(rows[r, people]) | (_I(rows[r, people + 1]) << 16)


@compiled(_I(_IN, _I, _I, _I))
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


@compiled(nb.void(_ROWS, _I, _IN, _IN, _CODES2, _CODES2, _OUT))
def bounds(rows, people, start, stop, low, high, size):
    """Widens low..high of every column by every record of each node, and adds up its people."""
    columns = low.shape[1]
    for node in range(start.size):
        for r in range(start[node], stop[node]):
            size[node] += _weight(rows, r, people)
            for j in range(columns):
                code = rows[r, j]
                low[node, j] = code if code < low[node, j] else low[node, j]
                high[node, j] = code if code > high[node, j] else high[node, j]


@compiled(nb.void(_ROWS, _I, _IN, _IN, _IN, _IN, _IN, _OUT, _OUT))
def nearest(rows, people, start, stop, column, low, high, cut, left):
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
        total = 0
        for r in range(start[node], stop[node]):
            weight = _weight(rows, r, people)
            coarse[(_I(rows[r, j]) - first) >> shift] += weight
            total += weight
        bucket, before = 0, 0
        while 2 * (before + coarse[bucket]) < total:
            before += coarse[bucket]
            bucket += 1
        # the codes around the bucket, and those inside it
        base = first + (bucket << shift)
        beyond, below, above = base + (1 << shift), -1, 1 << 17
        for r in range(start[node], stop[node]):
            code = _I(rows[r, j])
            if code < base:
                below = code if code > below else below
            elif code >= beyond:
                above = code if code < above else above
            else:
                fine[code - base] += _weight(rows, r, people)
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


@compiled(nb.void(_ROWS, _I, _IN, _IN, _IN, _IN, _IN, _I, _OUT2))
def part_counts(rows, people, start, stop, column, cut_start, cut, value, counts):
    """People by code of a value column in the parts of each node between its cuts, counts[first part + part, code]. A
    node with c cuts has c + 1 parts; the parts of all nodes lie one after the other."""
    base = 0
    for node in range(start.size):
        first, last, j = cut_start[node], cut_start[node + 1], column[node]
        for r in range(start[node], stop[node]):
            part = base + _part(cut, first, last, _I(rows[r, j]))
            counts[part, rows[r, value]] += _weight(rows, r, people)
        base += last - first + 1


@compiled(nb.void(_ROWS, _IN, _IN, _IN, _IN, _IN, _OUT))
def part_sizes(rows, start, stop, column, cut_start, cut, sizes):
    """Records in the parts of each node between its cuts."""
    base = 0
    for node in range(start.size):
        first, last, j = cut_start[node], cut_start[node + 1], column[node]
        for r in range(start[node], stop[node]):
            sizes[base + _part(cut, first, last, _I(rows[r, j]))] += 1
        base += last - first + 1


@compiled(nb.void(_OUT, _I))
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


@compiled(nb.void(_ROWS, _I, _IN, _IN, _IN, _IN, _IN, _I, _OUT, _OUT, _OUT, _OUT, _OUT, _OUT))
def part_lists(rows, people, start, stop, column, cut_start, cut, value, counter, seen, n, length, code, count):
    """As part_counts for a column with many codes: the people n of each part, how many codes occur in it, and these
    with their people, ascending, one part after the other. counter and seen are scratch, counter all zero."""
    base, at = 0, 0
    for node in range(start.size):
        first, last, j = cut_start[node], cut_start[node + 1], column[node]
        for part in range(last - first + 1):
            found = 0
            for r in range(start[node], stop[node]):
                if _part(cut, first, last, _I(rows[r, j])) == part:
                    weight, v = _weight(rows, r, people), _I(rows[r, value])
                    if counter[v] == 0:
                        seen[found] = v
                        found += 1
                    counter[v] += weight
                    n[base + part] += weight
            _sort(seen, found)
            for e in range(found):
                code[at], count[at] = seen[e], counter[seen[e]]
                counter[seen[e]] = 0
                at += 1
            length[base + part] = found
        base += last - first + 1


@compiled(nb.void(_ROWS, _IN, _IN, _IN, nb.int32[::1]))
def by_code(rows, start, stop, column, order):
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
                place[((_I(rows[r, j]) >> (8 * half)) & 255) + 1] += 1
            for b in range(256):
                place[b + 1] += place[b]
            for i in range(length):
                r = begin + i if half == 0 else other[i]
                b = (_I(rows[r, j]) >> (8 * half)) & 255
                if half == 0:
                    other[place[b]] = r
                else:
                    order[begin + place[b]] = r
                place[b] += 1


@compiled(nb.boolean(_OUT, _OUT, _I, _IN, _IN))
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


@compiled(nb.void(_ROWS, _I, _IN, _IN, _IN, nb.int32[::1], _I, _I, _I, _IN, _IN, _IN, _OUT, _OUT, _OUT))
def sweep(rows, people, start, stop, column, order, value, values, least, fewest, largest, room, cut, off, used):
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
        for r in range(start[node], stop[node]):
            weight = _weight(rows, r, people)
            total += weight
            if values:
                high[rows[r, value]] += weight
        below, found = 0, 0
        for i in range(start[node], stop[node] - 1):
            r = order[i]
            weight = _weight(rows, r, people)
            below += weight
            if values:
                low[rows[r, value]] += weight
                high[rows[r, value]] -= weight
            code, following = _I(rows[r, j]), _I(rows[order[i + 1], j])
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


@compiled(nb.void(_ROWS, _IN, _IN, _IN, _IN, _IN, _OUT, _CODES2, _CODES2, _CODES2))
def route(rows, start, stop, column, cut_start, cut, place, moved, low, high):
    """Moves the records of each node into its parts, in order; place[first part + part] is where each part begins.
    Widens low..high of every part to the codes in it."""
    width, columns = rows.shape[1], low.shape[1]
    base = 0
    for node in range(start.size):
        first, last, j = cut_start[node], cut_start[node + 1], column[node]
        for r in range(start[node], stop[node]):
            part = base + _part(cut, first, last, _I(rows[r, j]))
            to = place[part]
            place[part] = to + 1
            for i in range(width):
                moved[to, i] = rows[r, i]
            for i in range(columns):
                code = rows[r, i]
                low[part, i] = code if code < low[part, i] else low[part, i]
                high[part, i] = code if code > high[part, i] else high[part, i]
        base += last - first + 1


@compiled(nb.void(_ROWS, _I, _IN, _IN, _I, _OUT, _OUT, _OUT, _OUT, _OUT))
def value_counts(rows, people, start, stop, value, counter, seen, length, code, count):
    """The codes of one column in each node, ascending, and their people, one node after the other; their number."""
    at = 0
    for node in range(start.size):
        found = 0
        for r in range(start[node], stop[node]):
            v = _I(rows[r, value])
            if counter[v] == 0:
                seen[found] = v
                found += 1
            counter[v] += _weight(rows, r, people)
        _sort(seen, found)
        for e in range(found):
            code[at], count[at] = seen[e], counter[seen[e]]
            counter[seen[e]] = 0
            at += 1
        length[node] = found


@compiled(nb.int64(_ROWS, _I, _IN, _IN, _I, _OUT, _OUT))
def unique_people(rows, people, start, stop, columns, table, alone):
    """People who are alone with the codes of the first columns in their node. `table` is scratch, all -1, with more
    than twice the records of any node (a power of two); alone is scratch for each of its places."""
    total = 0
    for node in range(start.size):
        size = 2
        while size < 2 * (stop[node] - start[node]):
            size *= 2
        for r in range(start[node], stop[node]):
            key = np.uint64(0)
            for j in range(columns):
                key = (key ^ np.uint64(rows[r, j])) * np.uint64(0x9E3779B97F4A7C15)
                key ^= key >> np.uint64(29)
            at = _I(key & np.uint64(size - 1))
            while table[at] >= 0:
                same = True
                for j in range(columns):
                    if rows[table[at], j] != rows[r, j]:
                        same = False
                        break
                if same:
                    break
                at = (at + 1) & (size - 1)
            if table[at] < 0:
                table[at] = r
                alone[at] = _weight(rows, r, people)
            else:
                alone[at] = 2
        for at in range(size):
            if table[at] >= 0:
                total += _I(alone[at] == 1)
                table[at] = -1
    return total


@compiled(nb.void(_ROWS, _IN, _IN, _IN, _IN, nb.uint32[::1]))
def walk(rows, column, cut_start, cut, child, group):
    """The group of every row, from the root of a tree of cuts down: node i with c cuts has children child[i] .. + c;
    a leaf has column -1 and its group in child."""
    for r in range(rows.shape[0]):
        node = 0
        while column[node] >= 0:
            node = child[node] + _part(cut, cut_start[node], cut_start[node + 1], _I(rows[r, column[node]]))
        group[r] = child[node]


@compiled(nb.void(_ROWS, _I, _NODES, _IN, _IN, _OUT))
def top_codes(rows, people, node, column, room, counts):
    """People by code of one column per node, from room[node] on, where each record's node is given; column -1: none."""
    for r in range(rows.shape[0]):
        j = column[node[r]]
        if j >= 0:
            counts[room[node[r]] + rows[r, j]] += _weight(rows, r, people)


@compiled(nb.void(_ROWS, _I, _NODES, _IN, _IN, _IN, _IN, _IN, _IN, _OUT2, _OUT, _CODES2, _CODES2))
def top_parts(rows, people, node, column, base, first, last, cut, values, counts, sizes, low, high):
    """As part_counts for records whose node is given: a node's parts are those from base[node] on, its cuts
    cut[first[node]:last[node]]. `values` lists each value column and its number of codes, whose counts stand side by
    side. Also the records of the parts, and the codes that they reach from and to."""
    columns = low.shape[1]
    for r in range(rows.shape[0]):
        i = node[r]
        if column[i] < 0:
            continue
        part = base[i] + _part(cut, first[i], last[i], _I(rows[r, column[i]]))
        weight, at = _weight(rows, r, people), 0
        for v in range(0, values.size, 2):
            counts[part, at + rows[r, values[v]]] += weight
            at += values[v + 1]
        sizes[part] += 1
        for j in range(columns):
            code = rows[r, j]
            low[part, j] = code if code < low[part, j] else low[part, j]
            high[part, j] = code if code > high[part, j] else high[part, j]


@compiled(nb.void(_ROWS, _NODES, _OUT, _CODES2))
def scatter(rows, node, place, moved):
    """Puts the records where the next one of their node goes; place[node] is where that is, or -1 to leave it out."""
    for r in range(rows.shape[0]):
        to = place[node[r]]
        if to >= 0:
            place[node[r]] = to + 1
            for i in range(rows.shape[1]):
                moved[to, i] = rows[r, i]
