"""Call the kernels (kernels.c) of random COUNT queries, the numbers of rows that they count in the source and the
expected numbers given a release; and of the nearest people of a record."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anon.core.kernels import kernel

WORD = 64  # bits

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Floats = NDArray[np.float64]
Boxes = tuple[Ints, Ints, Ints, Ints, Ints, Ints]  # people and group of boxes; start, value, count and n of groups
Runs = tuple[Ints, Ints]  # low and high
Queries = tuple[Ints, Ints]  # columns and runs

_count_rows = kernel("queries_count_rows")
_expect_rows = kernel("queries_expect_rows")
_expect_values = kernel("queries_expect_values")
nearest_people = kernel("nearest_people")


def count_rows(codes: NDArray[np.uint16], inside: Words, queries: Queries, counts: Words) -> None:
    """Add to each query the rows of codes[column, row] that it counts. inside[column, code] has a bit for every run of
    the column; a query asks for one run in each of its columns."""
    _count_rows(codes, inside, *queries, counts, np.empty((len(codes), WORD), np.uint64))


def expect_rows(boxes: Boxes, begin: Ints, end: Ints, runs: Runs, queries: Queries, expected: Floats) -> None:
    """Add to each query the expected number of rows given some boxes, if all values under a label are equally likely
    and it is unknown who in a group has which of its sensitive values."""
    _expect_rows(*boxes, begin, end, *runs, *queries, expected, np.zeros(runs[0].shape))


def expect_values(boxes: Boxes, words: Words, runs: Runs, queries: Queries, expected: Floats) -> None:
    """Do what `expect_rows` does, in the same order, for boxes that have one value in every column: words[column, box]
    has a bit for every run of the column that the value lies in."""
    low, _ = runs
    bits, share = np.empty((len(words), WORD), np.uint64), np.empty((WORD, len(low) - len(words), low.shape[1]))
    _expect_values(*boxes, words, *runs, *queries, expected, bits, share)
