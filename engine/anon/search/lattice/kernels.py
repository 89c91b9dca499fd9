"""The compiled loops of the lattice search: plain loops with explicit types, compiled once per installation."""

# mypy: disable-error-code="no-untyped-def,misc"
from __future__ import annotations

import numba as nb
import numpy as np

from anon.compiled import compiled

_CODES = nb.types.Array(nb.uint16, 2, "C", readonly=True)
_IN = nb.types.Array(nb.int64, 1, "C", readonly=True)
_VALUES = nb.types.Array(nb.uint32, 1, "C", readonly=True)


_BLOCK = 1024  # cells at a time, so that their numbers stay in the processor's own memory


@compiled(nb.void(_CODES, _IN, _IN, _IN, nb.int64, nb.int64, nb.int64[::1]))
def _numbers(codes, rows, table, offset, first, last, number):
    for i in range(last - first):
        number[i] = 0
    for j in range(rows.size):
        own, at = codes[rows[j]], offset[j]
        for i in range(last - first):
            number[i] += table[at + own[first + i]]


@compiled(nb.void(_CODES, _IN, _IN, _IN, nb.uint64[::1]))
def cell_keys(codes, rows, table, offset, key):
    """Of each cell the sum of what the table has for its code in each column; `rows` are the columns' places."""
    number = np.empty(_BLOCK, np.int64)
    for first in range(0, key.size, _BLOCK):
        last = min(first + _BLOCK, key.size)
        _numbers(codes, rows, table, offset, first, last, number)
        for i in range(last - first):
            key[first + i] = np.uint64(number[i])


@compiled(nb.void(_CODES, _IN, _IN, _IN, _VALUES, _VALUES, nb.uint32[::1]))
def count_cells(codes, rows, table, offset, value, people, counts):
    """Adds people to the counters of the cell and value of each record, where the counters of a cell's values stand
    together. No values: everybody has the same; no people: one each."""
    number = np.empty(_BLOCK, np.int64)
    for first in range(0, codes.shape[1], _BLOCK):
        last = min(first + _BLOCK, codes.shape[1])
        _numbers(codes, rows, table, offset, first, last, number)
        if value.size > 0:
            for i in range(last - first):
                number[i] += value[first + i]
        if people.size > 0:
            for i in range(last - first):
                counts[number[i]] += people[first + i]
        else:
            for i in range(last - first):
                counts[number[i]] += np.uint32(1)


@compiled(nb.void(_CODES, _IN, _IN, _IN, _IN, _VALUES, _VALUES, nb.uint32[::1]))
def count_entries(codes, rows, table, offset, start, value, people, counts):
    """The same for cells with several entries each."""
    number = np.empty(_BLOCK, np.int64)
    for first in range(0, codes.shape[1], _BLOCK):
        last = min(first + _BLOCK, codes.shape[1])
        _numbers(codes, rows, table, offset, first, last, number)
        for i in range(last - first):
            for e in range(start[first + i], start[first + i + 1]):
                counts[number[i] + value[e]] += people[e]


@compiled(nb.int64(nb.uint64[:, ::1], nb.uint32[::1]))
def collapse(words, people):
    """Of numbers in order keeps each different one, with the people of all that equal it; how many are left. In place:
    what follows them is of no use any more."""
    last = -1
    for i in range(people.size):
        same = last >= 0
        for w in range(words.shape[0]):
            same = same and words[w, i] == words[w, last]
        if same:
            people[last] += people[i]
            continue
        last += 1
        people[last] = people[i]
        for w in range(words.shape[0]):
            words[w, last] = words[w, i]
    return last + 1
