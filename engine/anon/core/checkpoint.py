"""The checkpoint that a stopped run leaves for the next start of the same release: the decisions of its search, level
by level and block by block. It holds cuts and counts, no records; the source is read again, and must not have changed.
Each step is one file of arrays, renamed into place when it is complete. Each file carries a digest that is bound to its
name and to the checkpoint it belongs to, so that a damaged file, or one of another search, is never used."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from anon.core import disk
from anon.core.database import translated
from anon.errors import ConfigError

Arrays = dict[str, NDArray[Any]]
MARK = "run.json"  # names the run that a checkpoint belongs to
LIMIT = "limit"  # the step that holds the size of blocks, which a search settles before it begins
DIGEST = hashlib.sha256().digest_size
RESUMABLE = "the run that was stopped; or start without --resume, which deletes its checkpoint"


class RunIdentity(BaseModel):
    """What a run that is resumed must have in common with the one that was stopped."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
    config: str
    files: dict[str, str]
    source: list[list[str | int]]  # the marks of its parts
    version: str  # of anon and of the form of the steps
    trial: str | None

    def differences(self, other: RunIdentity) -> list[str]:
        """Return the names of what is not the same in two runs."""
        return [name for name in RunIdentity.model_fields if getattr(self, name) != getattr(other, name)]


class CheckpointMark(BaseModel):
    """run.json: the run that a checkpoint belongs to, and what is unique to the checkpoint."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
    run: RunIdentity
    key: str


class Checkpoint:
    """A folder of finished steps."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.begun = False  # whether this run owns it
        self.damaged = False  # whether there was one to resume that could not be used
        self.key = ""  # unique to this checkpoint

    def begin(self, run: RunIdentity, resume: bool) -> None:
        """Resume the checkpoint of the same run, or begin a new one; raise ConfigError if the one to resume belongs to
        another run."""
        mark = self._mark() if resume else None
        if mark is not None and (differ := run.differences(mark.run)):
            found = f"another {', '.join(differ)} than when the checkpoint was made"
            raise ConfigError.at("--resume", found, RESUMABLE)
        self.key = "" if mark is None else mark.key
        with translated("writing the checkpoint", disk=True):
            if mark is None or not self._whole():
                self.damaged = resume and disk.exists(self.folder)
                self._begin_anew(run)
        self.begun = True

    def _begin_anew(self, run: RunIdentity) -> None:
        for failure in disk.remove(self.folder):
            raise failure
        self.begun = True  # if a write fails from here on, the checkpoint is removed
        self.key = secrets.token_hex(16)
        self.folder.mkdir(mode=0o700)
        disk.write_sealed(self.folder / MARK, CheckpointMark(run=run, key=self.key).model_dump())

    def _mark(self) -> CheckpointMark | None:
        """Return the mark of the checkpoint; None if there is none or it is damaged. Raise ConfigError if it is intact
        but has another form, as that of another version of anon may have."""
        try:
            content = disk.read_sealed(self.folder / MARK)
        except (OSError, ValueError):
            return None
        try:
            return CheckpointMark.model_validate(content)
        except ValueError:
            found = "a checkpoint that this version of anon did not make"
            raise ConfigError.at("--resume", found, RESUMABLE) from None

    def steps(self) -> int:
        """Return the number of finished steps; the size of blocks does not count as one."""
        return sum(path.stem != LIMIT for path in self.folder.glob("*.npz"))

    def _whole(self) -> bool:
        """Return whether every step is as it was written, and the size of blocks is there if any step is."""
        found = {path.stem for path in self.folder.glob("*.npz")}
        return (not found or LIMIT in found) and all(self._intact(name) for name in found)

    def save(self, name: str, arrays: Arrays) -> None:
        """Write a finished step; one that exists already stays as it is."""
        path = self._path(name)
        if path.exists():
            return
        with translated("writing the checkpoint", disk=True):
            new = path.with_suffix(".new")
            with new.open("w+b") as file:
                file.write(bytes(DIGEST))
                file.flush()  # otherwise zipfile would treat a failed write as a file that it cannot seek in
                np.savez(file, allow_pickle=False, **arrays)
                digest = self._digest(name, file)
                file.seek(0)
                file.write(digest)
            new.replace(path)

    def load(self, name: str) -> Arrays | None:
        """Return a finished step, or None if it was not reached."""
        path = self._path(name)
        if not path.exists():
            return None
        with translated("reading the checkpoint", disk=True), path.open("rb") as file:
            file.seek(DIGEST)
            with np.load(file) as found:
                return dict(found)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.npz"

    def _intact(self, name: str) -> bool:
        with self._path(name).open("rb") as file:
            return file.read(DIGEST) == self._digest(name, file)

    def _digest(self, name: str, file: BinaryIO) -> bytes:
        """Return the digest of a step, from the content that follows the digest in its file."""
        found = hashlib.sha256(f"{self.key} {name} ".encode())
        for chunk in _chunks(file):
            found.update(chunk)
        return found.digest()


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    file.seek(DIGEST)
    while chunk := file.read(2**20):
        yield chunk
