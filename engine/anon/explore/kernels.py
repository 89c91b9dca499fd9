"""The compiled loops of random COUNT queries, in kernels.c: how many rows of the source they count, and how many a
release lets one expect."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anon.compiled import loop, read, written

_BITS = read(np.uint64, 2)
_INTS = read(np.int64)
_TABLE = read(np.int64, 2)
_GROUPS = _INTS, _INTS, _INTS, _TABLE, _INTS, _INTS  # people and groups of boxes; start, value, count and n of groups
_RUNS = _TABLE, _TABLE, _TABLE, _TABLE  # low and high of runs; columns and runs of queries
WORD = 64  # bits

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Floats = NDArray[np.float64]

transpose = loop("queries_transpose", written(np.uint64))
ones = loop("queries_ones", int, returns=int)

_count_rows = loop(
    "queries_count_rows", read(np.uint16, 2), _BITS, _TABLE, _TABLE, written(np.uint64), written(np.uint64, 2)
)
_expect_rows = loop(
    "queries_expect_rows", _TABLE, _TABLE, *_GROUPS, *_RUNS, written(np.float64), written(np.float64, 2)
)
_expect_values = loop(
    "queries_expect_values", _BITS, *_GROUPS, *_RUNS, written(np.float64), written(np.uint64, 2), written(np.float64, 3)
)


def count_rows(codes: NDArray[np.uint16], inside: Words, column: Ints, run: Ints, counts: Words) -> None:
    """Adds to each query the rows of codes[column, row] that it counts. inside[column, code] has a bit for every run of
    the column; a query asks for one run in each of its columns."""
    _count_rows(codes, inside, column, run, counts, np.empty((len(codes), WORD), np.uint64))


def expect_rows(
    begin: Ints, end: Ints, people: Ints, group: Ints, start: Ints, value: Ints, count: Ints, n: Ints,
    low: Ints, high: Ints, column: Ints, run: Ints, expected: Floats,
) -> None:  # fmt: skip
    """Adds to each query the rows that boxes let one expect, if all values under a label are equally likely and nobody
    knows who in a group has which of its sensitive values."""
    share = np.zeros(low.shape)
    _expect_rows(begin, end, people, group, start, value, count, n, low, high, column, run, expected, share)


def expect_values(
    words: Words, people: Ints, group: Ints, start: Ints, value: Ints, count: Ints, n: Ints,
    low: Ints, high: Ints, column: Ints, run: Ints, expected: Floats,
) -> None:  # fmt: skip
    """What `expect_rows` does, in the same order, for boxes that have one value in every column: words[column, box] has
    a bit for every run of the column that the value lies in."""
    bits = np.empty((len(words), WORD), np.uint64)
    share = np.empty((WORD, len(low) - len(words), low.shape[1]))
    _expect_values(words, people, group, start, value, count, n, low, high, column, run, expected, bits, share)
