"""Encode tuples of codes as single numbers, and look up the positions of tuples among known ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anon.core.arrays import Flags, Ints

AnyCodes = NDArray[Any]  # of any integer type
TABLE = 2**25  # up to this number of possible cells, a table holds the group of each
LARGEST = 2**62  # the numbers of cells stay below


def combined(columns: Sequence[AnyCodes]) -> Ints:
    """Return one number for each tuple of codes; where it would become too large, its rank among those that occur."""
    key, space = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        size = int(column.max(initial=0)) + 1
        if space * size > LARGEST:
            distinct, key = np.unique(key, return_inverse=True)
            space = len(distinct)
        key, space = key * size + column, space * size
    return key


class CellIndex:
    """An index of known cells. The columns are combined into one number; before it would become too large, the number
    is replaced by its rank among those of the known cells."""

    def __init__(self, cells: AnyCodes, sizes: list[int]) -> None:
        self.sizes, self.count = sizes, cells.shape[1]
        self.ranked: list[NDArray[np.uint64] | None] = []  # before each column, the numbers to rank among
        key, space = np.zeros(self.count, np.uint64), 1
        for column, size in zip(cells, sizes):
            known = np.unique(key) if space * size > LARGEST else None
            if known is not None:
                key, space = np.searchsorted(known, key).astype(np.uint64), len(known) + 1
            self.ranked.append(known)
            key, space = key * np.uint64(size) + column, space * size
        self.table: NDArray[np.uint32] | None = None
        if space <= TABLE:
            self.table = np.full(space, self.count, np.uint32)
            self.table[key] = np.arange(self.count, dtype=np.uint32)
        self.order = np.argsort(key).astype(np.uint32)
        self.keys = key[self.order]

    def find(self, columns: Iterable[AnyCodes]) -> NDArray[np.uint32]:
        """Return the number of each cell, given column by column; the number of known cells for an unknown one."""
        key: NDArray[np.uint64] = np.zeros(1, np.uint64)
        for column, size, known in zip(columns, self.sizes, self.ranked):
            if known is not None:
                at, found = _rank(known, key)
                key = np.where(found, at, len(known)).astype(np.uint64)
            key = key * np.uint64(size) + column
        if self.table is not None:
            return self.table[key]
        at, found = _rank(self.keys, key)
        return np.where(found, self.order[at], np.uint32(self.count))


def _rank(known: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> tuple[Ints, Flags]:
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return at, known[at] == wanted
