"""How the memory that a user states for the whole process is shared out among the stages (config -> source -> cube ->
search -> release -> verify -> report), and the check that it is enough to work with."""

from __future__ import annotations

from dataclasses import dataclass

from anon.errors import ResourceError

LIBRARIES = 200_000_000  # bytes of the interpreter, the libraries and the kernels before any data
BATCHES = 40_000_000  # batches under way between DuckDB and us
DATABASE = 65_000_000  # that DuckDB needs to sort anything
TIGHT = 1_000_000_000  # of the whole process
VALUE = 2_000  # that a sensitive value takes in criteria and in what is told of them
ENTRY = 170  # that a value in one part of a split takes while the split is judged
LEAST = 400_000_000  # of the whole process: with less, not even a few thousand groups can be told of


@dataclass(frozen=True)
class Memory:
    """Bytes for the whole process."""

    total: int
    held: int = 0  # of it what stays until a release is judged and told: sensitive values, and what a search has left
    split: int = 0  # values in the parts of the largest split that a search judges at a time

    @property
    def free(self) -> int:
        """For data that comes and goes."""
        return max(self.total - LIBRARIES - self.held, 0)

    @property
    def records(self) -> int:
        """For records of the search that stay in memory; larger tables go to the disk."""
        return self.free // 5

    @property
    def database(self) -> int:
        """For DuckDB, beside records and batches, and beside what the allocators keep of all that came and went."""
        return max(self.free - self.records - max(BATCHES, self.total // 10), DATABASE)

    @property
    def search(self) -> int:
        """For the blocks under way, beside the records as they are read and as they are sorted."""
        return self.free - 2 * self.records

    @property
    def marks(self) -> int:
        """For marks on records, which are gone before there are blocks; the other half is for what passes count."""
        return self.search // 2

    @property
    def tight(self) -> bool:
        """Whether queries have to be made one after the other."""
        return self.total < TIGHT

    @property
    def least(self) -> int:
        """What would do for the whole process; some batches are read while others are made."""
        return max(LIBRARIES + self.held + DATABASE + max(2 * BATCHES, ENTRY * self.split), LEAST)

    def check(self, holding: str = "groups") -> None:
        """ResourceError, with the least that would do, if this is too little; `holding`: what holds most of it."""
        if self.total < LEAST:
            raise ResourceError(
                f"limits.memory: {self.total // 1_000_000} MB is too little for the whole process; "
                f"the least that would do is {LEAST // 1_000_000}MB"
            )
        if self.total < self.least:
            taken = self.held + ENTRY * self.split
            raise ResourceError(
                f"limits.memory: {self.total // 1_000_000} MB is too little for so many {holding}, which take "
                f"{taken // 1_000_000} MB; the least that would do is {-(-self.least // 1_000_000)}MB"
            )


def require(total: int, needed: int, what: str) -> None:
    """Raise ResourceError, with the least that is required, if `what` takes more than the process may have beside its
    libraries."""
    if total < LIBRARIES + needed:
        raise ResourceError(
            f"limits.memory: {total // 1_000_000} MB is too little for {what}, which takes {needed // 1_000_000} MB; "
            f"at least {-(-(LIBRARIES + needed) // 1_000_000)}MB is required"
        )
