"""What the parts of the hierarchy stage share, between source and cube in the way of the data (config -> source -> cube
-> search -> release -> verify -> report): the labels of values from level 1 up to the root, and the labels of one level
with the rows that carry them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ROOT = "*"

Row = tuple[str, ...]


class Paths(list[Row]):
    """The labels of each value from level 1 up to the root. `where` is the config field they come from; `ranks`, for a
    hierarchy file, is the place of each value among the leaves of the file."""

    def __init__(self, rows: Iterable[Row], where: str, ranks: list[int] | None = None) -> None:
        super().__init__(rows)
        self.where = where
        self.ranks = ranks


@dataclass(frozen=True)
class Level:
    """The labels of one level: the distinct ones by their first row, the number of each row's label among them, and for
    each label its first row and its count of rows."""

    names: list[str]
    number: NDArray[np.int64]
    first: NDArray[np.int64]
    size: NDArray[np.int64]

    @classmethod
    def of(cls, labels: Sequence[str]) -> Level:
        numbers = {name: i for i, name in enumerate(dict.fromkeys(labels))}
        number = np.fromiter(map(numbers.__getitem__, labels), np.int64, len(labels))
        _, first, size = np.unique(number, return_index=True, return_counts=True)
        return cls(list(numbers), number, first, size)


def first_of_name(names: Sequence[str | None]) -> NDArray[np.int64]:
    """For each name the first index it stands at."""
    home: dict[str | None, int] = {}
    return np.fromiter(map(home.setdefault, names, range(len(names))), np.int64, len(names))
