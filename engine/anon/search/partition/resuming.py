"""The steps of a search that may be stopped: each is read from the checkpoint if it was finished before, and written
there when it finishes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from anon.core import interrupt
from anon.core.checkpoint import Arrays, Checkpoint


class Checkpointable(Protocol):
    """The result of a step, which a checkpoint can hold."""

    def arrays(self) -> Arrays: ...


Step = TypeVar("Step", bound=Checkpointable)


class Steps:
    """Finished steps of a search, in a checkpoint if there is one."""

    def __init__(self, checkpoint: Checkpoint | None) -> None:
        self.checkpoint = checkpoint

    def finished(self, name: str, read: Callable[[Arrays], Step]) -> Step | None:
        """Return a step that was finished before; None if it was not."""
        found = None if self.checkpoint is None else self.checkpoint.load(name)
        return None if found is None else read(found)

    def finish(self, name: str, step: Step) -> Step:
        """Save a step, and return it."""
        if self.checkpoint is not None:
            self.checkpoint.save(name, step.arrays())
        interrupt.check()
        return step

    def take(self, name: str, read: Callable[[Arrays], Step], make: Callable[[], Step]) -> Step:
        """Return a step that was finished before, or make and save it."""
        step = self.finished(name, read)
        return self.finish(name, make()) if step is None else step
