"""The threads of a search. Each takes a block while there are some; threads without a block help with those of others,
so that none is idle while the last blocks, or the only one, are searched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import Self, TypeVar

T = TypeVar("T")


class Crew:
    """The threads of a search, shared among the blocks in progress."""

    def __init__(self, threads: int = 1) -> None:
        self.threads, self.blocks, self.lock = threads, 0, Lock()  # blocks: the number in progress
        self.helpers = ThreadPoolExecutor(max(threads - 1, 1))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.helpers.shutdown()

    @contextmanager
    def block(self) -> Iterator[None]:
        """Count a block as in progress within this context."""
        with self.lock:
            self.blocks += 1
        try:
            yield
        finally:
            with self.lock:
                self.blocks -= 1

    @property
    def threads_per_block(self) -> int:
        """Return the number of threads for each of the blocks in progress."""
        return max(self.threads // max(self.blocks, 1), 1)

    def do(self, work: Callable[[slice], T], pieces: list[slice]) -> list[T]:
        """Return the results of some work on its pieces; the calling thread does the first."""
        others = [self.helpers.submit(work, piece) for piece in pieces[1:]]
        return [work(pieces[0]), *(other.result() for other in others)]
