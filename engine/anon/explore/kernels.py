"""The compiled loops of random COUNT queries: how many rows of the source they count, and how many a release lets one
expect. Queries combine a few runs of values of each column, so whether a value lies in a run is looked up once for all
queries. Plain loops with explicit types, compiled once per installation."""

# mypy: disable-error-code="no-untyped-def,misc"
from __future__ import annotations

import numba as nb
import numpy as np

from anon.compiled import compiled

_CODES = nb.types.Array(nb.uint16, 2, "C", readonly=True)
_BITS = nb.types.Array(nb.uint64, 2, "C", readonly=True)
_INTS = nb.types.Array(nb.int64, 1, "C", readonly=True)
_TABLE = nb.types.Array(nb.int64, 2, "C", readonly=True)
WORD = 64  # bits


@compiled(nb.void(nb.uint64[::1]))
def transpose(words):
    """Turns 64 words around: bit j of word i becomes bit i of word j (Warren, Hacker's Delight, 7-3)."""
    step, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    while step != np.uint64(0):
        k = np.uint64(0)
        while k < np.uint64(WORD):
            other = k + step
            swapped = ((words[k] >> step) ^ words[other]) & mask
            words[k] ^= swapped << step
            words[other] ^= swapped
            k = (other + np.uint64(1)) & ~step
        step >>= np.uint64(1)
        mask ^= mask << step


@compiled(nb.uint64(nb.uint64))
def ones(word):
    """How many bits are set."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@compiled(nb.void(_CODES, _BITS, _TABLE, _TABLE, nb.uint64[::1]))
def count_rows(codes, inside, column, run, counts):
    """Adds to each query the rows of codes[column, row] that it counts. inside[column, code] has a bit for every run of
    the column; a query asks for one run in each of its columns."""
    columns, rows = codes.shape
    bits = np.empty((columns, WORD), np.uint64)
    for first in range(0, rows, WORD):
        size = min(WORD, rows - first)
        for c in range(columns):
            for i in range(size):
                bits[c, i] = inside[c, codes[c, first + i]]
            for i in range(size, WORD):
                bits[c, i] = np.uint64(0)
            transpose(bits[c])
        for q in range(column.shape[0]):
            found = bits[column[q, 0], run[q, 0]]
            for p in range(1, column.shape[1]):
                found &= bits[column[q, p], run[q, p]]
            counts[q] += ones(found)


@compiled(
    nb.void(_TABLE, _TABLE, _INTS, _INTS, _INTS, _TABLE, _INTS, _INTS, _TABLE, _TABLE, _TABLE, _TABLE, nb.float64[::1])
)
def expect_rows(begin, end, people, group, start, value, count, n, low, high, column, run, expected):
    """Adds to each query the rows that boxes let one expect, if all values under a label are equally likely and nobody
    knows who in a group has which of its sensitive values.

    A box has the values begin[column, box] up to but not including end, and `people` of a group of n individuals; boxes
    of a group are next to each other. A group has value[start[g]:start[g + 1], sensitive column] as often as `count`
    says. Run r of a column has the values from low[column, r] up to but not including high; sensitive columns are
    numbered on after the others."""
    columns, runs = begin.shape[0], low.shape[1]
    share = np.zeros(low.shape, np.float64)
    before = -1
    for box in range(people.size):
        g = group[box]
        if g != before:
            before = g
            for c in range(columns, low.shape[0]):
                for r in range(runs):
                    held = 0
                    for i in range(start[g], start[g + 1]):
                        if low[c, r] <= value[i, c - columns] < high[c, r]:
                            held += count[i]
                    share[c, r] = held / n[g]
        for c in range(columns):
            first, last = begin[c, box], end[c, box]
            if last - first == 1:
                for r in range(runs):
                    share[c, r] = 1.0 if low[c, r] <= first < high[c, r] else 0.0
            else:
                for r in range(runs):
                    share[c, r] = max(min(last, high[c, r]) - max(first, low[c, r]), 0) / (last - first)
        for q in range(column.shape[0]):
            rows = share[column[q, 0], run[q, 0]] * people[box]
            if rows == 0.0:  # often, and for many queries in a row, because they are in order
                continue
            for p in range(1, column.shape[1]):
                rows *= share[column[q, p], run[q, p]]
            expected[q] += rows


@compiled(nb.void(_BITS, _INTS, _INTS, _INTS, _TABLE, _INTS, _INTS, _TABLE, _TABLE, _TABLE, _TABLE, nb.float64[::1]))
def expect_values(words, people, group, start, value, count, n, low, high, column, run, expected):
    """What `expect_rows` does, in the same order, for boxes that have one value in every column: words[column, box] has
    a bit for every run of the column that the value lies in, and 64 boxes are looked at together."""
    columns, sensitive = words.shape[0], low.shape[0] - words.shape[0]
    bits = np.empty((columns, WORD), np.uint64)
    share = np.ones((WORD, sensitive, low.shape[1]), np.float64)
    for first in range(0, people.size, WORD):
        size = min(WORD, people.size - first)
        for c in range(columns):
            for i in range(size):
                bits[c, i] = words[c, first + i]
            for i in range(size, WORD):
                bits[c, i] = np.uint64(0)
            transpose(bits[c])
        for i in range(size):
            g = group[first + i]
            again = i > 0 and group[first + i - 1] == g
            for c in range(sensitive):
                for r in range(low.shape[1]):
                    if again:
                        share[i, c, r] = share[i - 1, c, r]
                        continue
                    held = 0
                    for j in range(start[g], start[g + 1]):
                        if low[columns + c, r] <= value[j, c] < high[columns + c, r]:
                            held += count[j]
                    share[i, c, r] = held / n[g]
        for q in range(column.shape[0]):
            found, last = bits[column[q, 0], run[q, 0]], column.shape[1] - 1
            for p in range(1, last + 1 if sensitive == 0 else last):
                found &= bits[column[q, p], run[q, p]]
            while found != np.uint64(0):
                at = np.int64(ones((found & (~found + np.uint64(1))) - np.uint64(1)))
                found &= found - np.uint64(1)
                rows = np.float64(people[first + at])
                if sensitive > 0:
                    rows *= share[at, column[q, last] - columns, run[q, last]]
                expected[q] += rows
