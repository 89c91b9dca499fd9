"""Store the records of a search: columns of codes, in memory where they fit and otherwise in files of the spill folder,
read and written in order. (The files are not mapped: mapped pages count as memory.)"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anon.core.arrays import Codes
from anon.core.database import translated

WIDE = 2**16  # the number of codes that two bytes can represent
SEGMENT = 2**22  # records of a file


def halves(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return numbers as the two columns of codes that hold them."""
    return np.stack([numbers & 0xFFFF, numbers >> 16])


def whole_numbers(halves: Codes) -> NDArray[np.uint32]:
    """Return the numbers that two columns of codes hold."""
    found: NDArray[np.uint32] = halves[0] | (halves[1].astype(np.uint32) << 16)
    return found


class Records(ABC):
    """Records that can be read and written by position, as arrays [columns, records]; `sizes` is the number of codes
    of each column."""

    def __init__(self, count: int, sizes: Sequence[int]) -> None:
        self.count, self.sizes, self.width = count, list(sizes), len(sizes)
        self.kind = _kind(sizes)

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Return a copy of some records."""
        codes = np.empty((self.width, stop - start), self.kind)
        self.fill(start, codes, range(self.width))
        return codes

    @property
    def held(self) -> int:
        """Return the bytes of memory that the records take."""
        return 0

    @abstractmethod
    def fill(self, start: int, codes: NDArray[Any], columns: Iterable[int]) -> None:
        """Copy some columns of the records from `start` on to the same columns of an array."""

    @abstractmethod
    def write(self, at: int, codes: NDArray[Any]) -> None:
        """Write records from position `at` on."""

    def drop(self, start: int, stop: int) -> None:  # noqa: B027 (records in memory are freed all at once)
        """Free the space of some records; they are not read again."""

    @abstractmethod
    def close(self) -> None:
        """Free the space of all records."""


def _kind(sizes: Sequence[int]) -> np.dtype[Any]:
    """Return the type of the numbers in arrays of records."""
    return np.dtype(np.uint32 if max(sizes, default=0) > WIDE else np.uint16)


def _kinds_on_disk(sizes: Sequence[int]) -> list[np.dtype[Any]]:
    """Return the type of the numbers in the files, for each column."""
    return [np.dtype(np.uint8) if size <= 256 else _kind(sizes) for size in sizes]


class InMemory(Records):
    """Records in one array."""

    def __init__(self, codes: NDArray[Any]) -> None:
        width, count = codes.shape
        super().__init__(count, [np.iinfo(codes.dtype).max + 1] * width)
        self.codes = codes

    @property
    def held(self) -> int:
        return self.codes.nbytes

    def fill(self, start: int, codes: NDArray[Any], columns: Iterable[int]) -> None:
        for column in columns:
            codes[column] = self.codes[column, start : start + codes.shape[1]]

    def write(self, at: int, codes: NDArray[Any]) -> None:
        self.codes[:, at : at + codes.shape[1]] = codes

    def close(self) -> None:
        self.codes = self.codes[:, :0].copy()


class OnDisk(Records):
    """Records in several files, so that a file can be removed as soon as all its records were dropped: what is removed
    before the system flushes it is never written at all. Columns with at most 256 codes take a byte."""

    def __init__(self, count: int, sizes: Sequence[int], path: Path) -> None:
        super().__init__(count, sizes)
        self.kinds = _kinds_on_disk(sizes)
        self.segment = max(min(count, SEGMENT), 1)
        self.begins = np.cumsum([0, *(self.segment * kind.itemsize for kind in self.kinds)]).tolist()
        self.paths = [path.with_name(f"{path.name}-{n}") for n in range(-(-count // self.segment))]
        self.remaining = [self.segment] * len(self.paths)  # records of each file that were not dropped
        self.files: list[int] = []
        self.lock = Lock()
        with translated("writing the spill", disk=True):
            for each in self.paths:
                self.files.append(os.open(each, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
                os.ftruncate(self.files[-1], self.begins[-1])

    def fill(self, start: int, codes: NDArray[Any], columns: Iterable[int]) -> None:
        wanted = list(columns)
        for file, at, part in self._parts(start, codes.shape[1]):
            for column in wanted:
                own = codes[column, part]
                into = own if self.kinds[column] == own.dtype else np.empty(len(own), self.kinds[column])
                self._move(os.preadv, file, column, at, into)
                if into is not own:
                    own[:] = into

    def write(self, at: int, codes: NDArray[Any]) -> None:
        for file, place, part in self._parts(at, codes.shape[1]):
            for column in range(self.width):
                own = codes[column, part].astype(self.kinds[column], copy=False)
                self._move(os.pwritev, file, column, place, own)

    def _parts(self, start: int, count: int) -> Iterator[tuple[int, int, slice]]:
        """Yield the files that hold some records, the position of the first one in each, and the slice of the records
        that it holds."""
        done = 0
        while done < count:
            number, at = divmod(start + done, self.segment)
            length = min(self.segment - at, count - done)
            yield number, at, slice(done, done + length)
            done += length

    def _move(
        self, move: Callable[[int, list[Any], int], int], file: int, column: int, at: int, codes: NDArray[Any]
    ) -> None:
        """Read or write all bytes of a column of some records; the system may move fewer at a time."""
        view, place = codes.view(np.uint8).data, self.begins[column] + self.kinds[column].itemsize * at
        with translated("reading or writing the spill", disk=True):
            while view:
                moved = move(self.files[file], [view], place)
                if not moved:
                    raise OSError("the spill file is shorter than it was written")
                view, place = view[moved:], place + moved

    def drop(self, start: int, stop: int) -> None:
        with self.lock:
            for file, _, part in self._parts(start, stop - start):
                self.remaining[file] -= part.stop - part.start
                if not self.remaining[file]:
                    self._close(file)

    def close(self) -> None:
        for file, remaining in enumerate(self.remaining):
            if remaining:
                self._close(file)

    def _close(self, file: int) -> None:
        with translated("writing the spill", disk=True):
            os.close(self.files[file])
            self.paths[file].unlink()


def in_memory(count: int, sizes: Sequence[int]) -> Records:
    """Return storage for records in memory, which the system commits as they are written."""
    return InMemory(np.empty((len(sizes), count), _kind(sizes)))


def make(memory: int, folder: Path | None, count: int, sizes: Sequence[int], name: str) -> Records:
    """Return storage for records, zero until they are written: in memory if they take at most `memory` bytes or there
    is no folder, otherwise in files."""
    if folder is None or bytes_in_memory(count, sizes) <= memory:
        return InMemory(np.zeros((len(sizes), count), _kind(sizes)))
    return OnDisk(count, sizes, folder / name)


def bytes_in_memory(count: int, sizes: Sequence[int]) -> int:
    """Return the bytes that records take in memory."""
    return _kind(sizes).itemsize * count * len(sizes)


def bytes_on_disk(count: int, sizes: Sequence[int]) -> int:
    """Return the bytes that records take in files, which all have the same size."""
    segment = max(min(count, SEGMENT), 1)
    return -(-count // segment) * segment * sum(kind.itemsize for kind in _kinds_on_disk(sizes))
