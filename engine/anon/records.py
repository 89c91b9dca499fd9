"""Where the records of a search are while it works on them: columns of 16-bit codes, in memory where they fit and
otherwise in a file of the spill folder, read and written in order. (Not mapped: mapped pages count as memory.)"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from anon.database import translated

Codes = NDArray[np.uint16]  # [columns, records]


class Records(ABC):
    """A number of records that can be read and written by place, as arrays [columns, records]."""

    def __init__(self, count: int, width: int, kind: DTypeLike) -> None:
        self.count, self.width, self.kind = count, width, np.dtype(kind)

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """A copy of some records."""
        codes = np.empty((self.width, stop - start), self.kind)
        self.fill(start, codes, range(self.width))
        return codes

    @abstractmethod
    def fill(self, start: int, codes: NDArray[Any], columns: Iterable[int]) -> None:
        """Copies some columns of the records from `start` on to the same columns of an array."""

    @abstractmethod
    def write(self, at: int, codes: NDArray[Any]) -> None:
        """Puts records in their place."""

    @abstractmethod
    def close(self) -> None:
        """Gives back what the records take."""


class InMemory(Records):
    def __init__(self, codes: NDArray[Any]) -> None:
        width, count = codes.shape
        super().__init__(count, width, codes.dtype)
        self.codes = codes

    def fill(self, start: int, codes: NDArray[Any], columns: Iterable[int]) -> None:
        for column in columns:
            codes[column] = self.codes[column, start : start + codes.shape[1]]

    def write(self, at: int, codes: NDArray[Any]) -> None:
        self.codes[:, at : at + codes.shape[1]] = codes

    def close(self) -> None:
        self.codes = self.codes[:, :0].copy()


class OnDisk(Records):
    def __init__(self, count: int, width: int, path: Path, kind: DTypeLike = np.uint16) -> None:
        super().__init__(count, width, kind)
        self.path, self.room = path, count
        with translated("writing the spill"):
            self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            os.ftruncate(self.file, self.kind.itemsize * count * width)

    def fill(self, start: int, codes: NDArray[Any], columns: Iterable[int]) -> None:
        self._move(lambda part, place: os.preadv(self.file, [part], place), start, codes, columns)

    def write(self, at: int, codes: NDArray[Any]) -> None:
        self._move(lambda part, place: os.pwritev(self.file, [part], place), at, codes, range(self.width))

    def _move(
        self, move: Callable[[memoryview, int], int], at: int, codes: NDArray[Any], columns: Iterable[int]
    ) -> None:
        """Reads or writes all bytes of some columns of records; the system may move fewer at a time."""
        with translated("reading or writing the spill"):
            for column in columns:
                view = memoryview(codes[column].view(np.uint8))
                place = self.kind.itemsize * (column * self.room + at)
                while view:
                    moved = move(view, place)
                    if not moved:
                        raise OSError("the spill file is shorter than it was written")
                    view, place = view[moved:], place + moved

    def close(self) -> None:
        os.close(self.file)
        self.path.unlink()


def in_memory(count: int, width: int) -> Records:
    """Room for records in memory, which they take as they come."""
    return InMemory(np.empty((width, count), np.uint16))


def make(
    memory: int, folder: Path | None, count: int, width: int, name: str, kind: DTypeLike = np.uint16
) -> Records:
    """Room for records, zero until they are written: in memory if they take no more than that or have nowhere else to
    go, or in a file."""
    if folder is None or np.dtype(kind).itemsize * count * width <= memory:
        return InMemory(np.zeros((width, count), kind))
    return OnDisk(count, width, folder / name, kind)
