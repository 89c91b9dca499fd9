"""Runs of the command in processes of their own, which end on the way if a test wants it. They are forked from a server
that has the engine loaded: to start Python and load it takes several times as long as a run over a small table. Outside
the way of the data."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import NamedTemporaryFile

BLOCK = 4_000  # bytes: a block holds a few hundred records
LOADED = [
    "anon.__main__", "anon.cli.app", "anon.pipeline", "anon.search.partition.search", "anon.cube.kernels",
    "anon.search.partition.kernels",
    "anon.criteria.kernels_skyline", "anon.loss.kernels", "anon.risk.kernels_skylines",
]  # fmt: skip

_server = get_context("forkserver")
_server.set_forkserver_preload(LOADED)


@dataclass(frozen=True)
class Ended:
    """What became of a process: its exit code, or minus the signal that ended it, and what it said."""

    code: int
    stderr: str


def anon_run(
    config: Path,
    *more: str,
    steps: int = 0,
    stage: str = "",
    by: str | Callable[[], None] = "SIGKILL",
    lifetime: float | None = None,
    around: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Ended:
    """`anon run`, which gets a signal (or does what else is said) after some steps of its search or before a stage, or
    is killed after some seconds. `around`: what is entered before it."""
    with NamedTemporaryFile() as said:
        arguments = (["anon", "run", str(config), *more], said.name, steps, stage, by, around)
        process = _server.Process(target=_run, args=arguments)
        process.start()
        process.join(lifetime or 300)
        if process.exitcode is None:
            process.kill()
            process.join()
        assert process.exitcode is not None
        return Ended(process.exitcode, Path(said.name).read_text(encoding="utf-8"))


def _run(
    command: Sequence[str],
    said: str,
    steps: int,
    stage: str,
    by: str | Callable[[], None],
    around: Callable[[], AbstractContextManager[object]],
) -> None:
    from anon.__main__ import main
    from anon.search import budget
    from anon.search.partition import search as partition

    for number, place in ((1, os.devnull), (2, said)):
        os.dup2(os.open(place, os.O_WRONLY), number)
    budget.BLOCK, partition.SMALLEST_BLOCK = BLOCK, 1
    _end_at(steps, stage, by if callable(by) else partial(os.kill, os.getpid(), signal.Signals[by]))
    sys.argv = list(command)
    with around():
        main()


def _end_at(last: int, stage: str, end: Callable[[], None]) -> None:
    """Has the process end itself when a step of the search is saved, or before a stage."""
    from anon.core.checkpoint import Checkpoint
    from anon.core.progress import Progress

    saved, save, enter = 0, Checkpoint.save, Progress.stage

    def dying_save(self, name, arrays):  # type: ignore[no-untyped-def]
        nonlocal saved
        save(self, name, arrays)
        saved += 1
        if saved == last:
            end()

    def dying_stage(self, name):  # type: ignore[no-untyped-def]
        if name == stage:
            end()
        return enter(self, name)

    Checkpoint.save, Progress.stage = dying_save, dying_stage  # type: ignore[method-assign]
