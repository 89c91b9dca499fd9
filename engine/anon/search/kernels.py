"""The compiled loops of the searches over records: plain loops with explicit types, compiled once per installation.
Records are rows of 16-bit codes with a count of people; a node is a contiguous range of records."""

# mypy: disable-error-code="no-untyped-def,misc"
from __future__ import annotations

import numba as nb
import numpy as np

_I = nb.int64
_CODES = nb.types.Array(nb.uint16, 2, "C", readonly=True)
_PEOPLE = nb.types.Array(nb.uint32, 1, "C", readonly=True)
_IN = nb.types.Array(nb.int64, 1, "C", readonly=True)
_OUT = nb.int64[::1]
_OUT2 = nb.int64[:, ::1]


@nb.njit(nb.void(_CODES, _PEOPLE, _IN, _IN, _OUT2, _OUT2, _OUT), cache=True, nogil=True)
def bounds(codes, people, start, stop, low, high, size):
    """The lowest and highest code of every column in every node, and its people."""
    columns = low.shape[1]
    for node in range(start.size):
        total = 0
        for j in range(columns):
            low[node, j] = codes[start[node], j]
            high[node, j] = codes[start[node], j]
        for r in range(start[node], stop[node]):
            total += people[r]
            for j in range(columns):
                code = _I(codes[r, j])
                if code < low[node, j]:
                    low[node, j] = code
                elif code > high[node, j]:
                    high[node, j] = code
        size[node] = total


@nb.njit(nb.void(nb.int64[::1], _I), cache=True, nogil=True)
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


@nb.njit(nb.void(_CODES, _PEOPLE, _IN, _IN, _IN, _IN, _OUT, _OUT, _OUT), cache=True, nogil=True)
def code_counts(codes, people, start, stop, column, room, code, count, used):
    """The distinct codes of one column per node, ascending, with their people, written from room[node] on."""
    counter = np.zeros(65536, np.int64)
    seen = np.zeros(65536, np.int64)
    for node in range(start.size):
        j = column[node]
        length = 0
        for r in range(start[node], stop[node]):
            c = _I(codes[r, j])
            if counter[c] == 0:
                seen[length] = c
                length += 1
            counter[c] += people[r]
        _sort(seen, length)
        for i in range(length):
            code[room[node] + i] = seen[i]
            count[room[node] + i] = counter[seen[i]]
            counter[seen[i]] = 0
        used[node] = length


@nb.njit(_I(_IN, _I, _I, _I), cache=True, nogil=True)
def _part(cut, first, last, code):
    """The number of cuts in cut[first:last] (ascending) that are at or below the code."""
    low, high = first, last
    while low < high:
        middle = (low + high) // 2
        if cut[middle] <= code:
            low = middle + 1
        else:
            high = middle
    return low - first


@nb.njit(nb.void(_CODES, _PEOPLE, _IN, _IN, _IN, _IN, _IN, _I, _OUT2), cache=True, nogil=True)
def part_counts(codes, people, start, stop, column, cut_start, cut, value_column, counts):
    """People by sensitive value in the parts of each node between its cuts: counts[first part + part, value].

    A node with c cuts has c + 1 parts; parts of all nodes lie one after the other.
    """
    base = 0
    for node in range(start.size):
        first, last, j = cut_start[node], cut_start[node + 1], column[node]
        for r in range(start[node], stop[node]):
            part = _part(cut, first, last, _I(codes[r, j]))
            counts[base + part, codes[r, value_column]] += people[r]
        base += last - first + 1


@nb.njit(nb.void(_CODES, _IN, _IN, _IN, _IN, _IN, _OUT), cache=True, nogil=True)
def part_sizes(codes, start, stop, column, cut_start, cut, sizes):
    """Records in the parts of each node between its cuts."""
    base = 0
    for node in range(start.size):
        first, last, j = cut_start[node], cut_start[node + 1], column[node]
        for r in range(start[node], stop[node]):
            sizes[base + _part(cut, first, last, _I(codes[r, j]))] += 1
        base += last - first + 1


@nb.njit(
    nb.void(_CODES, _PEOPLE, _IN, _IN, _IN, _IN, _IN, _OUT, nb.uint16[:, ::1], nb.uint32[::1]), cache=True, nogil=True
)
def route(codes, people, start, stop, column, cut_start, cut, place, new_codes, new_people):
    """Moves the records of each node into its parts, in order; place[first part + part] is where each part begins."""
    width = codes.shape[1]
    base = 0
    for node in range(start.size):
        first, last, j = cut_start[node], cut_start[node + 1], column[node]
        for r in range(start[node], stop[node]):
            part = base + _part(cut, first, last, _I(codes[r, j]))
            to = place[part]
            place[part] = to + 1
            for i in range(width):
                new_codes[to, i] = codes[r, i]
            new_people[to] = people[r]
        base += last - first + 1


@nb.njit(nb.void(_CODES, _IN, _IN, _IN, _IN, nb.uint32[::1]), cache=True, nogil=True)
def walk(codes, column, cut_start, cut, child, group):
    """The group of every row, from the root of a tree of cuts down: node i with c cuts has children child[i] .. + c;
    a leaf has column -1 and its group in child."""
    for r in range(codes.shape[0]):
        node = 0
        while column[node] >= 0:
            node = child[node] + _part(cut, cut_start[node], cut_start[node + 1], _I(codes[r, column[node]]))
        group[r] = child[node]
