"""Tuples of codes as single numbers, and the places of tuples among known ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Codes = NDArray[Any]
TABLE = 2**25  # cells; for as many, the group of each stands in a table
LARGEST = 2**62  # numbers of cells stay below


def combined(columns: Sequence[Codes]) -> Ints:
    """One number for each tuple of codes; where it would become too large, its place among those there."""
    key, space = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        size = int(column.max(initial=0)) + 1
        if space * size > LARGEST:
            there, key = np.unique(key, return_inverse=True)
            space = len(there)
        key, space = key * size + column, space * size
    return key


class CellIndex:
    """Finds cells among known ones. Columns are put together to one number; before it would become too large, the
    number is replaced by its place among those of the known cells."""

    def __init__(self, cells: Codes, sizes: list[int]) -> None:
        self.sizes, self.count = sizes, cells.shape[1]
        self.places: list[NDArray[np.uint64] | None] = []  # before each column, the numbers to find a place among
        key, space = np.zeros(self.count, np.uint64), 1
        for column, size in zip(cells, sizes):
            known = np.unique(key) if space * size > LARGEST else None
            if known is not None:
                key, space = np.searchsorted(known, key).astype(np.uint64), len(known) + 1
            self.places.append(known)
            key, space = key * np.uint64(size) + column, space * size
        self.table: NDArray[np.uint32] | None = None
        if space <= TABLE:
            self.table = np.full(space, self.count, np.uint32)
            self.table[key] = np.arange(self.count, dtype=np.uint32)
        self.order = np.argsort(key).astype(np.uint32)
        self.keys = key[self.order]

    def find(self, columns: Iterable[Codes]) -> NDArray[np.uint32]:
        """The number of each cell, given column by column; one more than the last for one that is not known."""
        key: NDArray[np.uint64] = np.zeros(1, np.uint64)
        for column, size, known in zip(columns, self.sizes, self.places):
            if known is not None:
                at, found = _place(known, key)
                key = np.where(found, at, len(known)).astype(np.uint64)
            key = key * np.uint64(size) + column
        if self.table is not None:
            return self.table[key]
        at, found = _place(self.keys, key)
        return np.where(found, self.order[at], np.uint32(self.count))


def _place(known: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> tuple[Ints, NDArray[np.bool_]]:
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return at, known[at] == wanted
