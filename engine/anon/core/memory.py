"""Divide the memory limit of the whole process among the stages of a run, and check that it is sufficient."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from anon.errors import ResourceError

LIBRARIES = 200_000_000  # bytes of the interpreter, the libraries and the kernels before any data
BATCHES = 40_000_000  # of the batches in transit between DuckDB and the engine
DATABASE = 65_000_000  # that DuckDB needs to sort anything
TIGHT = 1_000_000_000  # of the whole process
VALUE = 2_000  # of a sensitive value in criteria and in the report about them
ENTRY = 170  # of a value in one part of a split while the split is judged
LEAST = 400_000_000  # of the whole process: with less, not even a few thousand groups can be reported


def release_unused() -> None:
    """Return freed memory that the allocators keep to the operating system, as far as they can."""
    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)


@dataclass(frozen=True)
class Memory:
    """The memory limit of the whole process and its shares, in bytes."""

    total: int
    held: int = 0  # the part held until the release is judged and reported: sensitive values, and the search's result
    split: int = 0  # values in the parts of the largest split that a search judges at a time

    @property
    def free(self) -> int:
        """Return the bytes for temporary data."""
        return max(self.total - LIBRARIES - self.held, 0)

    @property
    def records(self) -> int:
        """Return the bytes for records of the search that stay in memory; larger tables are spilled to disk."""
        return self.free // 5

    @property
    def database(self) -> int:
        """Return the bytes for DuckDB, beside records, batches and freed memory that the allocators keep."""
        return max(self.free - self.records - max(BATCHES, self.total // 10), DATABASE)

    @property
    def search(self) -> int:
        """Return the bytes for the blocks in progress, beside the records as read and as sorted."""
        return self.free - 2 * self.records

    @property
    def marks(self) -> int:
        """Return the bytes for marks on records, which are freed before there are blocks; the other half is for the
        counters of passes."""
        return self.search // 2

    @property
    def tight(self) -> bool:
        """Return whether queries have to run one after the other."""
        return self.total < TIGHT

    @property
    def least(self) -> int:
        """Return the bytes that the whole process requires; some batches are read while others are made."""
        return max(LIBRARIES + self.held + DATABASE + max(2 * BATCHES, ENTRY * self.split), LEAST)

    def check(self, holding: str = "groups") -> None:
        """Raise ResourceError, with the required minimum, if the limit is too low; `holding` names what takes most."""
        if self.total < LEAST:
            raise ResourceError(
                f"limits.memory: {self.total // 1_000_000} MB is too little for the whole process; "
                f"at least {LEAST // 1_000_000}MB is required"
            )
        if self.total < self.least:
            taken = self.held + ENTRY * self.split
            raise ResourceError(
                f"limits.memory: {self.total // 1_000_000} MB is too little for this number of {holding}, which take "
                f"{taken // 1_000_000} MB; at least {-(-self.least // 1_000_000)}MB is required"
            )


def require(total: int, needed: int, what: str) -> None:
    """Raise ResourceError, with the required minimum, if `what` takes more than the process may have beside its
    libraries."""
    if total < LIBRARIES + needed:
        raise ResourceError(
            f"limits.memory: {total // 1_000_000} MB is too little for {what}, which takes {needed // 1_000_000} MB; "
            f"at least {-(-(LIBRARIES + needed) // 1_000_000)}MB is required"
        )
