"""A fault at every system call of a run's start, publication and cleanup. The release and its run folder are both old
or both new, with a message that is true; the next start leaves them so and removes everything else."""

from __future__ import annotations

import json
import shutil
import signal
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from anon.config import Config, load
from anon.core import interrupt
from anon.core.checkpoint import RunIdentity
from anon.core.progress import Progress
from anon.errors import ConfigError, ResourceError
from anon.release.publication import UNFINISHED
from anon.runs.previous_release import PreviousRelease, dependencies
from anon.runs.run_folder import RunArtifacts, publish
from anon.runs.workspace import locked_release, workspace
from tests.helpers.faults import FAULTS, KILLED, Calls, Count, forked, injected


class Heard(Progress):
    """Keeps what a run reports."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []
        self.alerts: list[str] = []

    def note(self, name: str, words: str, **facts: Any) -> None:
        self.notes.append(words)

    def alert(self, words: str) -> None:
        self.alerts.append(words)


@dataclass(frozen=True)
class Place:
    """A folder with the config of a release that is written without a search."""

    folder: Path

    @property
    def config(self) -> Config:
        return load(
            {
                "source": {"path": str(self.folder / "none.parquet")},
                "columns": {"individual": "row", "quasi_identifiers": {"age": {}}, "sensitive": ["d"]},
                "privacy": [{"k_anonymity": {"k": 2}}],
                "release": {"path": str(self.folder / "out"), "run": str(self.folder / "runs" / "out-run")},
                "limits": {"temp": str(self.folder / "temp")},
            }
        )

    def run(self, content: str, progress: Progress | None = None, listening: bool = True) -> None:
        """What a run does around its stages, as the command does it or as a program."""
        config, progress = self.config, progress or Heard()
        with (
            interrupt.listening() if listening else nullcontext(),
            locked_release(config, progress) as state,
            workspace(state, config, progress.run) as work,
        ):
            (work.spill / "rows").write_text("raw")
            run = RunIdentity(config=content, files={}, source=[], version="1", trial=None)
            work.begin(run, False).save("level-0", {"cuts": np.zeros(3)})
            (work.release / "release.csv").write_text(content)
            (work.release / "datapackage.json").write_text("{}")
            recoding: Any = SimpleNamespace(write=lambda path: path.write_text("{}"))
            left = RunArtifacts.write(work, recoding, PreviousRelease(config, dependencies(config, False)))
            (work.run / "manifest.json").write_text(json.dumps({"content": content, "release": left.release}))
            publish(work, config, True, left)

    def start(self) -> None:
        """A start that ends before it does anything of its own."""
        with locked_release(self.config, Heard()):
            pass

    def published(self) -> str:
        """The content of the release and its run folder, which must belong together; nothing if neither is there."""
        release, run = self.folder / "out", self.folder / "runs" / "out-run"
        assert release.exists() == run.exists(), "one without the other"
        if not release.exists():
            return ""
        assert sorted(path.name for path in release.iterdir()) == ["datapackage.json", "release.csv"]
        content = (release / "release.csv").read_text()
        assert json.loads((run / "manifest.json").read_text())["content"] == content, "mixed"
        return content

    def left(self) -> list[str]:
        """What is there beside the release and its run folder, but for the checkpoint of a run that was killed."""
        own = {"out", "runs", "runs/out-run", "temp"}
        for checkpoint in self.folder.glob(".anon-*/checkpoint"):
            assert self.published() != "new", "a run that has published needs no checkpoint"
            kept = [checkpoint.parent, checkpoint.parent / "lock", checkpoint, *checkpoint.iterdir()]
            own |= {str(path.relative_to(self.folder)) for path in kept}
        below = [str(path.relative_to(self.folder)) for path in self.folder.rglob("*")]
        return [name for name in below if name not in own and not name.startswith(("out/", "runs/out-run/"))]

    def reset(self, earlier: bool) -> None:
        if self.folder.exists():
            shutil.rmtree(self.folder)
        for name in ("runs", "temp"):
            (self.folder / name).mkdir(parents=True)
        if earlier:
            self.run("old")


@pytest.fixture
def place(in_memory: Path) -> Place:
    return Place(in_memory / "place")


def undisturbed(place: Place, earlier: bool, can_exchange: bool) -> list[str]:
    """The system calls of a run without a fault."""
    place.reset(earlier)
    with injected(Calls(), can_exchange) as calls:
        place.run("new")
    assert place.published() == "new" and not place.left()
    return calls.names


def survived(place: Place, calls: Calls, can_exchange: bool) -> None:
    """A run with a fault that does not end its process: what it says is true, and it leaves nothing or says so."""
    heard, before, said = Heard(), place.published(), ""
    try:
        with injected(calls, can_exchange):
            place.run("new", heard)
    except (ResourceError, ConfigError, KeyboardInterrupt) as error:
        said = str(error)
        assert said
    if UNFINISHED not in said:
        assert place.published() == (before if said else "new"), said
        assert calls.lasting or heard.alerts or calls.failed == "flock" or not place.left()


def killed(place: Place, calls: Calls, can_exchange: bool) -> None:
    def run() -> None:
        with injected(calls, can_exchange):
            place.run("new")

    assert forked(run) == KILLED


def fault_at(place: Place, calls: Calls, earlier: bool, can_exchange: bool) -> None:
    """A run with a fault, a start, and another run."""
    place.reset(earlier)
    (killed if calls.fault == "kill" else survived)(place, calls, can_exchange)
    place.start()
    assert place.published() in ({"old", "new"} if earlier else {"", "new"})
    assert not place.left()
    place.run("next")
    assert place.published() == "next" and not list(place.folder.rglob(".anon-*"))


def sweep(place: Place, fault: str, earlier: bool, can_exchange: bool, lasting: bool, part: slice) -> int:
    """A fault at every call of a part of them; return how many faults that were."""
    names = undisturbed(place, earlier, can_exchange)
    chosen = [at for at, name in enumerate(names) if fault != "short write" or name == "write"][part]
    for at in chosen:
        try:
            fault_at(place, Calls(at, fault, lasting), earlier, can_exchange)
        except BaseException as error:
            error.add_note(f"{fault} at call {at} of {len(names)}, {names[at]}")
            raise
    return len(chosen)


SWEEPS = [
    (fault, can_exchange, lasting)
    for fault in FAULTS
    for can_exchange in (True, False)
    for lasting in ((False, True) if fault in ("EIO", "ENOSPC") else (False,))
]


@pytest.mark.parametrize(("fault", "can_exchange", "lasting"), SWEEPS)
def test_a_fault_leaves_old_or_new_and_the_next_run_is_clean(
    place: Place, fault: str, can_exchange: bool, lasting: bool
) -> None:
    """At every ninth call, and every time at others; `make faults` takes all of them."""
    first = 0 if fault == "short write" else SWEEPS.index((fault, can_exchange, lasting)) % 9
    assert sweep(place, fault, True, can_exchange, lasting, slice(first, None, 9))


@pytest.mark.long
@pytest.mark.parametrize("earlier", [True, False])
@pytest.mark.parametrize(("fault", "can_exchange", "lasting"), SWEEPS)
def test_a_fault_at_any_call_leaves_old_or_new_and_the_next_run_is_clean(
    place: Place, fault: str, can_exchange: bool, lasting: bool, earlier: bool, faults: Count
) -> None:
    faults.add(sweep(place, fault, earlier, can_exchange, lasting, slice(None)))


def renames(place: Place, can_exchange: bool) -> list[int]:
    """The calls of a run that put something in place, and the one after."""
    names = undisturbed(place, True, can_exchange)
    begin = len(names) - 1 - names[::-1].index("replace")  # of the journal
    wanted = [at for at, name in enumerate(names) if at > begin and name in ("rename", "exchange")]
    assert len(wanted) == (2 if can_exchange else 4)
    return [*wanted, wanted[-1] + 1]


CUTS = [(fault, can_exchange) for fault in ("kill", "EIO", "EIO after the effect") for can_exchange in (True, False)]


@pytest.mark.parametrize(("fault", "can_exchange"), CUTS)
def test_a_start_that_is_cut_off_while_it_completes_a_publication_is_completed_by_the_next(
    place: Place, fault: str, can_exchange: bool
) -> None:
    assert sweep_recovery(place, fault, can_exchange, step=29)


@pytest.mark.long
@pytest.mark.parametrize(("fault", "can_exchange"), CUTS)
def test_a_start_that_is_cut_off_anywhere_is_completed_by_the_next(
    place: Place, fault: str, can_exchange: bool, faults: Count
) -> None:
    faults.add(sweep_recovery(place, fault, can_exchange, step=1))


def sweep_recovery(place: Place, fault: str, can_exchange: bool, step: int) -> int:
    """A run that is killed at each of its renames, and a fault in the start after it; return how many faults."""
    count = 0
    for at in renames(place, can_exchange):
        place.reset(True)
        killed(place, Calls(at, "kill"), can_exchange)
        with injected(Calls(), can_exchange) as calls:
            place.start()
        for number in range(at % step, len(calls.names), step):
            place.reset(True)
            killed(place, Calls(at, "kill"), can_exchange)
            cut_off(place, Calls(number, fault), can_exchange)
            place.start()
            assert place.published() == "new" and not place.left()
            count += 2
    return count


def cut_off(place: Place, calls: Calls, can_exchange: bool) -> None:
    def start() -> None:
        with injected(calls, can_exchange), suppress(ResourceError, ConfigError):
            place.start()

    if calls.fault == "kill":
        assert forked(start) == KILLED
    else:
        start()


def test_a_publication_whose_files_are_gone_is_undone(place: Place) -> None:
    """As after somebody removed the private folder of the run."""
    for can_exchange in (True, False):
        for at in renames(place, can_exchange)[1:-1]:  # between the first and the last
            place.reset(True)
            killed(place, Calls(at, "kill"), can_exchange)
            (staged,) = [path for path in place.folder.glob(".anon-*/release-*") if not path.name.endswith("-old")]
            shutil.rmtree(staged)
            place.start()
            assert place.published() == "old" and not place.left()


def test_a_journal_that_is_damaged_is_reported_with_what_to_do(place: Place) -> None:
    place.reset(True)
    killed(place, Calls(renames(place, True)[1], "kill"), True)
    (journal,) = place.folder.glob(".anon-*/journal.json")
    journal.write_bytes(journal.read_bytes()[:-3])
    with pytest.raises(ResourceError, match=r"journal.json.* is damaged; check release.path and release.run"):
        place.start()
    assert journal.exists()


def test_what_is_completed_is_reported(place: Place) -> None:
    place.reset(True)
    killed(place, Calls(renames(place, False)[1], "kill"), False)
    heard = Heard()
    place.run("next", heard)
    assert heard.notes == ["the publication that an earlier run began was completed"]


def test_there_is_always_a_release_where_folders_can_be_exchanged(place: Place) -> None:
    place.reset(True)
    seen: list[str] = []

    class Watching(Calls):
        def __call__(self, name: str, call: Any, *arguments: Any) -> Any:
            seen.append((place.folder / "out" / "release.csv").read_text())
            return super().__call__(name, call, *arguments)

    with injected(Watching()):
        place.run("new")
    assert sorted(set(seen)) == ["new", "old"]


def test_a_signal_that_comes_while_a_program_publishes_is_delivered_afterwards(place: Place) -> None:
    """Outside of the command, which ends by itself."""
    (at, *_) = renames(place, True)
    place.reset(True)
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        with injected(Calls(at, "SIGTERM")):
            place.run("new", listening=False)
            assert heard == [signal.SIGTERM] and place.published() == "new"
    finally:
        signal.signal(signal.SIGTERM, before)
