"""Where the records of a search are while it works on them: rows of 16-bit codes of one width, in memory where they fit
and otherwise in a file of the spill folder, read and written in order. (Not mapped: mapped pages count as memory.)"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from anon.database import translated

Codes = NDArray[np.uint16]  # [records, width]


class Records:
    """A number of records that can be read and written by place."""

    def __init__(self, count: int, width: int) -> None:
        self.count, self.width = count, width

    @property
    def bytes(self) -> int:
        return 2 * self.count * self.width

    def read(self, start: int, stop: int) -> Codes:
        """Some records, which must not be changed."""
        raise NotImplementedError

    def copy(self, start: int, stop: int) -> Codes:
        """Some records for whoever wants to change them."""
        return self.read(start, stop)

    def write(self, at: int, rows: Codes) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Gives back what the records take."""


class InMemory(Records):
    def __init__(self, rows: Codes) -> None:
        super().__init__(*rows.shape)
        self.rows = rows

    def read(self, start: int, stop: int) -> Codes:
        return self.rows[start:stop]

    def copy(self, start: int, stop: int) -> Codes:
        return self.rows[start:stop].copy()

    def write(self, at: int, rows: Codes) -> None:
        self.rows[at : at + len(rows)] = rows

    def close(self) -> None:
        self.rows = self.rows[:0]


class OnDisk(Records):
    def __init__(self, count: int, width: int, path: Path) -> None:
        super().__init__(count, width)
        self.path = path
        with translated("writing the spill"):
            self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)

    def read(self, start: int, stop: int) -> Codes:
        rows = np.empty((stop - start, self.width), np.uint16)
        _whole(lambda part, at: os.preadv(self.file, [part], at), rows, start)
        return rows

    def write(self, at: int, rows: Codes) -> None:
        _whole(lambda part, place: os.pwritev(self.file, [part], place), np.ascontiguousarray(rows), at)

    def close(self) -> None:
        os.close(self.file)
        self.path.unlink()


def _whole(move: Callable[[memoryview, int], int], rows: Codes, at: int) -> None:
    """Reads or writes all bytes of some rows that stand at a place of a file; the system may move fewer at a time."""
    view, place = memoryview(rows.view(np.uint8).reshape(-1)), 2 * at * rows.shape[1]  # type: ignore[arg-type]
    with translated("reading or writing the spill"):
        while view:
            moved = move(view, place)
            if not moved:
                raise OSError("the spill file is shorter than it was written")
            view, place = view[moved:], place + moved


def in_memory(count: int, width: int) -> Records:
    """Room for records in memory, which they take as they come."""
    return InMemory(np.empty((count, width), np.uint16))


def make(memory: int, folder: Path | None, count: int, width: int, name: str) -> Records:
    """Room for records: in memory if they take no more than that or have nowhere else to go, or in a file."""
    if folder is None or 2 * count * width <= memory:
        return in_memory(count, width)
    return OnDisk(count, width, folder / name)
