"""Types that all hierarchies share: the labels of values from level 1 up to the root, and the labels of one level with
the rows that carry them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anon.core.arrays import Flags

ROOT = "*"

Row = tuple[str, ...]
Numbers = NDArray[np.int32]


class Paths(list[Row]):
    """The labels of each value from level 1 up to the root. `where` is the config field they come from; `ranks`, for a
    hierarchy file, is the rank of each value among the leaves of the file."""

    def __init__(self, rows: Iterable[Row], where: str, ranks: list[int] | None = None) -> None:
        super().__init__(rows)
        self.where = where
        self.ranks = ranks


@dataclass(frozen=True)
class LabelLevel:
    """The labels of one level: the distinct ones in order of their first row, the number of each row's label among
    them, and for each label its first row and its count of rows. A file may have millions of rows, so labels are Arrow
    text."""

    names: pa.Array
    number: Numbers
    first: Numbers
    size: Numbers

    @classmethod
    def from_labels(cls, labels: Sequence[str | None] | pa.ChunkedArray) -> LabelLevel:
        """Return the level of the given labels, one per row. They are sorted, which takes a fraction of the memory of a
        hash table."""
        column = labels.combine_chunks() if isinstance(labels, pa.ChunkedArray) else pa.array(labels, pa.string())
        order = np.asarray(pc.array_sort_indices(column)).astype(np.int32)  # stable: of equal labels the first first
        new = _begins(column.take(pa.array(order)))
        first = order[new]
        place = np.empty(len(first), np.int32)
        by_row = np.argsort(first)
        place[by_row] = np.arange(len(first), dtype=np.int32)
        number = np.empty(len(order), np.int32)
        number[order] = place[np.cumsum(new, dtype=np.int32) - 1]
        first = first[by_row]
        return cls(column.take(pa.array(first)), number, first, np.bincount(number).astype(np.int32))

    @classmethod
    def for_root(cls, rows: int) -> LabelLevel:
        """Return the level of the root, which is above all rows."""
        return cls(pa.array([ROOT]), np.zeros(rows, np.int32), np.zeros(1, np.int32), np.array([rows], np.int32))

    def at(self, rows: NDArray[np.integer]) -> list[str]:
        """Return the labels of some rows."""
        found: list[str] = self.names.take(pa.array(self.number[rows])).to_pylist()
        return found


def first_of_name(names: Sequence[str | None] | pa.ChunkedArray) -> Numbers:
    """Return for each name the index of its first occurrence."""
    level = LabelLevel.from_labels(names)
    return level.first[level.number]


def _begins(labels: pa.Array) -> Flags:
    """Return where a new label begins among sorted labels, nulls last."""
    missing = np.asarray(labels.is_null())
    differ = pc.not_equal(labels[1:], labels[:-1]).fill_null(False)
    return np.append(True, np.asarray(differ) | (missing[1:] != missing[:-1]))[: len(labels)]
