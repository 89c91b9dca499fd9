"""What a run that was stopped leaves for the next start of the same release: the decisions of its search, level by
level and block by block. They hold cuts and counts, no records; the source is read again, and must not have changed.
One file per step, renamed into its place when it is whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import numpy as np
from numpy.typing import NDArray

from anon.database import translated

Arrays = dict[str, NDArray[Any]]
MARK = "run.json"  # says which run a checkpoint belongs to
LIMIT = "limit"  # what a search settles before it begins


class Checkpoint:
    """A folder of finished steps."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.begun = folder, False

    def begin(self, run: dict[str, Any]) -> None:
        """Marks the checkpoint as that of a run."""
        with translated("writing the checkpoint"):
            self.folder.mkdir(mode=0o700, exist_ok=True)
            _replace(self.folder / MARK, json.dumps(run).encode())
        self.begun = True

    def run(self) -> dict[str, Any] | None:
        """The run that it belongs to, if there is one."""
        try:
            found: dict[str, Any] = json.loads((self.folder / MARK).read_text(encoding="utf-8"))
            return found
        except (OSError, ValueError, RecursionError):
            return None

    def steps(self) -> int:
        """How many steps are finished; how large blocks are is none."""
        return sum(path.stem != LIMIT for path in self.folder.glob("*.npz"))

    def whole(self) -> bool:
        """Whether every step ends as it should; after the machine went down, files may have a name but no content."""
        return all(is_zipfile(step) for step in self.folder.glob("*.npz"))

    def save(self, name: str, arrays: Arrays) -> None:
        """Keeps a finished step; one that is there already stays."""
        path = self.folder / f"{name}.npz"
        if path.exists():
            return
        with translated("writing the checkpoint"):
            with path.with_suffix(".new").open("wb") as file:
                np.savez(file, allow_pickle=False, **arrays)
            path.with_suffix(".new").replace(path)

    def load(self, name: str) -> Arrays | None:
        """A finished step, or None if it was not reached."""
        path = self.folder / f"{name}.npz"
        if not path.exists():
            return None
        with np.load(path) as found:
            return dict(found)


def _replace(path: Path, content: bytes) -> None:
    new = path.with_name(f"{path.name}.new")
    new.write_bytes(content)
    new.replace(path)
