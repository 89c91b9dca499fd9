"""Make and remove the private folders of a run. Beside the release, and beside its run folder, there is one *state
folder* each, named after the place that it belongs to: it holds the lock, so that no two runs write to one place, and
what will be renamed into that place. The one beside the release also holds the journal of a publication
(publication.py), the checkpoint (checkpoint.py) and a record of the folders elsewhere, by which the next run removes
what a killed run left. Only a spill folder holds rows of the source (scratch.py)."""

from __future__ import annotations

import errno
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from anon.config import Config
from anon.core import disk, interrupt
from anon.core.checkpoint import Checkpoint, RunIdentity
from anon.core.database import in_utf8
from anon.core.progress import Progress
from anon.errors import ClusterLost, ConfigError, ResourceError
from anon.release.publication import JOURNAL, Publication, aside
from anon.runs.scratch import Alert, alert_of, make_spill, remove

CHECKPOINT, RECORD = "checkpoint", "folders.json"
SPILL, STAGED = "spill", "staged"  # kinds of folders in the record
KEPT = {disk.LOCK, RECORD, JOURNAL, CHECKPOINT}


def state_folder(place: Path | str, beside: Path) -> Path:
    """Return the state folder of a place: beside it, or beside another folder for a place on a store."""
    known = place if isinstance(place, str) else place.resolve()
    key = hashlib.sha256(os.fsencode(known)).hexdigest()[:16]
    return beside.resolve().parent / f".anon-{key}"


@dataclass
class StateFolders:
    """The state folders of a release, locked by this process."""

    folder: Path
    beside_run: Path
    umask: int  # of the user
    alert: Alert
    signals: interrupt.Deferral
    published: bool = False

    def __post_init__(self) -> None:
        self.journal, self.checkpoint = self.folder / JOURNAL, Checkpoint(self.folder / CHECKPOINT)

    def recover(self, progress: Progress) -> None:
        """Complete or undo the publication that an earlier run began, and remove what else it left."""
        what = "looking for what an earlier run left"
        try:
            staged = {path.parent for path in self._recorded()[STAGED]} - {self.folder, self.beside_run}
            with ExitStack() as others:
                for folder in staged:  # beside another release.run than this run's
                    others.enter_context(_guarded(folder, "release.run", self.alert))
                publication = Publication.read(self.journal)
                if publication is not None:
                    what = "completing the publication that an earlier run began"
                    outcome = publication.recover(self.checkpoint.folder)
                    progress.note("recovered", f"the publication that an earlier run began was {outcome}")
                self.clear()
        except OSError as error:
            raise ResourceError(f"{what}: {error.strerror}; the next run tries again") from error

    def record(self, kind: str, folder: Path) -> None:
        """Record a folder outside this one before it is made."""
        known = self._recorded()
        listed = {each: [str(path) for path in paths] for each, paths in known.items()}
        listed[kind].append(str(folder))
        disk.write_sealed(self.folder / RECORD, listed)

    def _recorded(self) -> dict[str, list[Path]]:
        """Return the folders outside this one, those that a killed run left among them."""
        try:
            found = disk.read_sealed(self.folder / RECORD)
            return {kind: [Path(name) for name in found[kind]] for kind in (SPILL, STAGED)}
        except (FileNotFoundError, ValueError):
            return {SPILL: [], STAGED: []}

    def clear(self) -> None:
        """Remove what this or an earlier run made, but for the checkpoint and for what a publication still needs."""
        try:
            publication = Publication.read(self.journal)
            needed = set() if publication is None else publication.folders()
            known = self._recorded()
            elsewhere = [*known[SPILL], *(each for path in known[STAGED] for each in (path, aside(path)))]
            found = [path for path in elsewhere if disk.exists(path) and not disk.not_private(path)]
            found += [self.folder / name for name in disk.names(self.folder) if name not in KEPT]
            gone = [remove(path, self.alert) for path in found if path not in needed]
            if all(gone) and not needed:
                remove(self.folder / RECORD, self.alert)
        except (OSError, ResourceError) as error:
            self.alert(f"{self.folder} could not be cleaned up ({error}); private folders may be left")


@contextmanager
def locked_release(config: Config, progress: Progress) -> Iterator[StateFolders]:
    """Lock the place of a release and that of its run folder, finish what an earlier run left, and clean up at the end.
    A run that is stopped or loses its cluster leaves its checkpoint."""
    release, alert = config.release, alert_of(config, progress)
    own, beside_run = state_folder(release.path, release.beside), state_folder(release.run, release.run)
    signals, published = interrupt.Deferral(), False
    signals.begin()
    try:
        with (
            _guarded(own, "release.path", alert),
            _guarded(beside_run, "release.run", alert),
            disk.private_umask() as umask,
        ):
            state = StateFolders(own, beside_run, umask, alert, signals)
            state.recover(progress)
            with _keeping(state):
                try:
                    signals.end()
                    yield state
                finally:
                    signals.begin()
            published = state.published
    finally:
        signals.end(published)


def check_available(config: Config) -> None:
    """Raise what a run would raise if the places of its release cannot be written now: ConfigError if a folder is not
    writable, or if another run is writing there. Nothing is made."""
    release = config.release
    for name, place, beside in (("path", release.path, release.beside), ("run", release.run, release.run)):
        folder = state_folder(place, beside)
        there = next(each for each in folder.parents if disk.exists(each))
        with disk.errors_at(f"release.{name}", folder.parent):
            if not there.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            if not os.access(there, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            _refuse_locked(folder, f"release.{name}")


def _refuse_locked(folder: Path, field: str) -> None:
    with suppress(FileNotFoundError):  # there is no such folder, or the run that had it has just ended
        if disk.exists(folder / disk.LOCK):
            handle = disk.lock(folder)
            if handle is None:
                raise _taken(field)
            disk.close(handle)


@contextmanager
def _guarded(folder: Path, field: str, alert: Alert) -> Iterator[None]:
    """Lock a state folder, which is made if it is not there; remove it at the end if it holds nothing else."""
    if not in_utf8(folder):
        raise ConfigError.at(field, f"{folder.parent}, which is not in UTF-8", "a path in UTF-8")
    with disk.parents(folder.parent, field):
        with disk.errors_at(field, folder.parent):
            handle = _locked(folder, field)
        try:
            yield
        finally:
            try:
                disk.remove_if_unused(folder)
            except OSError as error:
                alert(f"{folder} could not be removed ({error.strerror})")
            finally:
                disk.close(handle)


def _locked(folder: Path, field: str) -> int:
    """Return the handle of the lock of a state folder; ConfigError if another process has it."""
    try:
        handle = disk.make_and_lock(folder, field, may_exist=True)
    except OSError:
        disk.abandon(folder)
        raise
    if handle is None:
        raise _taken(field)
    return handle


def _taken(field: str) -> ConfigError:
    found = "a release or a run folder that another run is writing"
    return ConfigError.at(field, found, "one run at a time; wait for it to end")


@contextmanager
def _keeping(state: StateFolders) -> Iterator[None]:
    """Keep the checkpoint of a run that is stopped or loses its cluster, and one that this run did not take over."""
    checkpoint, stopped = state.checkpoint, False
    try:
        yield
    except KeyboardInterrupt as error:
        stopped = True
        raise KeyboardInterrupt(f"{str(error) or interrupt.STOPPED}{_left(checkpoint)}") from None
    except ClusterLost as error:
        stopped = True
        error.reword(lambda message: f"{message}; nothing was published{_left(checkpoint)}")
        raise
    finally:
        if checkpoint.begun and not (stopped and checkpoint.steps()):
            remove(checkpoint.folder, state.alert)


def _left(checkpoint: Checkpoint) -> str:
    """Return what the message of a run that is stopped says about its checkpoint."""
    steps = checkpoint.steps()
    if not steps:
        return ", and no checkpoint was kept"
    kept = f"{steps:,} steps of its search are kept in {checkpoint.folder}"
    return f". {kept}: the same command with --resume continues from there, without it starts anew"


@dataclass(frozen=True)
class RunFolders:
    """The folders that the stages of a run write to: for rows that spill, for the release and for the run folder."""

    spill: Path
    release: Path
    run: Path


@dataclass(frozen=True)
class Workspace(RunFolders):
    """The folders of a run in progress; those of the release and of the run will be renamed to their places."""

    run_id: str
    state: StateFolders
    began: float = field(default_factory=time.time)  # seconds since 1970

    def begin(self, run: RunIdentity, resume: bool) -> Checkpoint:
        """Return the checkpoint of this run: a new one, or one that an earlier start of the same run left."""
        self.state.checkpoint.begin(run, resume)
        return self.state.checkpoint


@contextmanager
def workspace(state: StateFolders, config: Config, run_id: str) -> Iterator[Workspace]:
    """Make the folders of a run, and remove them at the end."""
    temp, field = config.limits.temp or state.beside_run.parent, "limits.temp" if config.limits.temp else "release.run"
    release, run = state.folder / f"release-{run_id}", state.beside_run / f"{state.folder.name}-{run_id}"
    handle = None
    with disk.parents(temp, field):
        try:
            with disk.errors_at("release.path", state.folder.parent):
                state.record(STAGED, run)
                disk.make_private(release, "release.path")
            with disk.errors_at("release.run", state.beside_run.parent):
                disk.make_private(run, "release.run")
            spill, handle = make_spill(temp, field, state.alert, partial(state.record, SPILL))
            yield Workspace(spill, release, run, run_id, state)
        finally:
            state.signals.begin()
            state.clear()
            if handle is not None:
                disk.close(handle)
