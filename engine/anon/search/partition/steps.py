"""The steps of a search that may be stopped: each is taken from the checkpoint if it was finished before, and put there
when it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from anon.core import interrupt
from anon.core.checkpoint import Arrays, Checkpoint


class Kept(Protocol):
    def arrays(self) -> Arrays: ...


Step = TypeVar("Step", bound=Kept)


class Steps:
    """Finished steps of a search, in a checkpoint if there is one."""

    def __init__(self, checkpoint: Checkpoint | None) -> None:
        self.checkpoint = checkpoint

    def finished(self, name: str, read: Callable[[Arrays], Step]) -> Step | None:
        found = None if self.checkpoint is None else self.checkpoint.load(name)
        return None if found is None else read(found)

    def finish(self, name: str, step: Step) -> Step:
        if self.checkpoint is not None:
            self.checkpoint.save(name, step.arrays())
        interrupt.check()
        return step

    def take(self, name: str, read: Callable[[Arrays], Step], make: Callable[[], Step]) -> Step:
        step = self.finished(name, read)
        return self.finish(name, make()) if step is None else step
