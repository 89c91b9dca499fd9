"""The private folders that a run works in, around the way of the data: beside the release and its run folder what will
be renamed into their places, and one for what spills. They are known by the release, so that two runs never write the
same one, and a start finds what an earlier one left. Folders have mode 0700 and are removed on success and on error; a
run that is stopped or loses its cluster leaves its checkpoint (checkpoint.py), one that is killed everything, and only
a start for the same release deletes that or goes on from it."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from anon import interrupt
from anon.checkpoint import Checkpoint
from anon.config import Config
from anon.database import in_utf8
from anon.errors import AnonError, ConfigError, Lost


@dataclass(frozen=True)
class Workspace:
    """Folders of a run under way, beside the places they will be renamed to."""

    spill: Path
    release: Path
    run: Path
    run_id: str
    checkpoint: Checkpoint
    began: float = field(default_factory=time.time)  # seconds since 1970

    def begin(self, run: dict[str, Any], resume: bool) -> Checkpoint:
        """The checkpoint of this run: gone on from if it is of the same one and that is wished, otherwise a new one."""
        before = self.checkpoint.run()
        if resume and before is not None and before != run:
            differs = ", ".join(name for name in run if before.get(name) != run[name])
            expected = "the run that was stopped; or start without --resume, which deletes its checkpoint"
            raise ConfigError.at("--resume", f"another {differs} than when the checkpoint was made", expected)
        if not resume or not self.checkpoint.whole():  # steps build on each other
            shutil.rmtree(self.checkpoint.folder, ignore_errors=True)
        self.checkpoint.begin(run)
        return self.checkpoint


@contextmanager
def workspace(config: Config, run_id: str) -> Iterator[Workspace]:
    """Private folders for one run."""
    release = config.release
    place = release.path if isinstance(release.path, str) else release.path.resolve()
    key = hashlib.sha256(os.fsencode(place)).hexdigest()[:16]
    field, temp = ("limits.temp", config.limits.temp) if config.limits.temp else ("release.run", release.run.parent)
    root = temp / f".anon-spill-{key}"
    with _tidied(temp, release.beside.parent, release.run.parent), _locked(root, field):
        spill, checkpoint = root / "work", Checkpoint(root / "checkpoint")
        files, run = release.beside.parent / f".anon-release-{key}", release.run.parent / f".anon-run-{key}"
        folders = {spill: field, files: "release.path", run: "release.run"}
        stopped = False
        try:
            for folder, of in folders.items():
                shutil.rmtree(folder, ignore_errors=True)  # what a run that was killed left
                private_folder(folder, of)
            yield Workspace(spill, files, run, run_id, checkpoint)
        except KeyboardInterrupt:
            stopped = True
            raise KeyboardInterrupt(f"{interrupt.STOPPED}{_left(checkpoint)}") from None
        except Lost as error:
            stopped = True
            error.reword(lambda said: f"{said}; nothing was published{_left(checkpoint)}")
            raise
        except AnonError:
            stopped = not checkpoint.begun  # what was refused or could not be read is kept for the run it belongs to
            raise
        finally:
            for folder in folders:
                shutil.rmtree(folder, ignore_errors=True)
            if not stopped or not checkpoint.steps():
                shutil.rmtree(root, ignore_errors=True)


def _left(checkpoint: Checkpoint) -> str:
    """What a run that ends on the way says is left of it."""
    steps = checkpoint.steps()
    if not steps:
        return ", and nothing is left of it"
    kept = f"{steps:,} steps of its search are kept in {checkpoint.folder}"
    return f". {kept}: the same command with --resume goes on from there, without it begins anew"


@contextmanager
def _tidied(*folders: Path) -> Iterator[None]:
    """Folders that are not there yet, and have nothing in them when this ends, are not there afterwards either."""
    missing = {each for folder in folders for each in (folder, *folder.parents) if not each.exists()}
    try:
        yield
    finally:
        for folder in sorted(missing, key=lambda each: len(each.parts), reverse=True):
            with suppress(OSError):
                folder.rmdir()


@contextmanager
def _locked(root: Path, field: str) -> Iterator[None]:
    """A private folder that no other process has at the same time."""
    while True:
        private_folder(root, field, there=True)
        handle = os.open(root / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            found = "a release that another run is writing"
            raise ConfigError.at("release.path", found, "one run at a time; wait for it to end") from None
        try:
            if os.path.samestat(os.fstat(handle), (root / "lock").stat()):  # else it was removed just before
                break
        except FileNotFoundError:
            pass
        os.close(handle)
    try:
        yield
    finally:
        os.close(handle)


@contextmanager
def scratch(config: Config) -> Iterator[Path]:
    """A private folder for what a check spills."""
    temp = config.limits.temp or Path(gettempdir())
    with _tidied(temp):
        folder = private_folder(temp / f"anon-{uuid.uuid4().hex}", "limits.temp")
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def private_folder(folder: Path, field: str, there: bool = False) -> Path:
    """Makes a folder with mode 0700; `there`: it may exist."""
    if not in_utf8(folder):
        raise ConfigError.at(field, f"{folder.parent}, which is not in UTF-8", "a path in UTF-8")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=there)
    except OSError as error:
        found = f"{folder.parent}, which cannot be written ({error.strerror})"
        raise ConfigError.at(field, found, "a place in a folder that can") from error
    return folder
