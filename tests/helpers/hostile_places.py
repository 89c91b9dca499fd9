"""Hostile places and machines: where a release cannot or must not be written, disks that are full, clocks that move,
others who write at the same time, secrets. Used by test_hostile_input."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from anon import release as releases
from anon.backends import local
from anon.core import checkpoint
from anon.search import dispatch
from anon.source import stores
from tests.conftest import House
from tests.helpers.hostile import TABLE, Case, Machine, file
from tests.helpers.hostile_configs import GOOD

SECRET = "MARK-of-a-secret"
SECRET_PLACE = GOOD.replace("HOUSE/table.parquet", '"${HOSTILE_SECRET}"')


def release(**places: str) -> dict[str, Any]:
    return {"release": {"path": "out", "run": "out-run", **places}}


def linked(house: House) -> None:
    (house.folder / "elsewhere").mkdir()
    (house.folder / "out").symlink_to(house.folder / "elsewhere")


def dangling(house: House) -> None:
    (house.folder / "out").symlink_to(house.folder / "nowhere")


def through_the_link(house: House) -> None:
    assert (house.folder / "out").is_symlink() and house.released().num_rows == TABLE.num_rows


def looped(house: House) -> None:
    (house.folder / "loop").symlink_to(house.folder / "loop")


def full(house: House, patch: pytest.MonkeyPatch) -> None:
    """A disk that is full when the checkpoint is begun."""

    def fails(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    patch.setattr(checkpoint.Checkpoint, "_begin_anew", fails)


def full_of_manifests(house: House, patch: pytest.MonkeyPatch) -> None:
    write = Path.write_text

    def fails(path: Path, *rest: Any, **more: Any) -> int:
        if path.name == "manifest.json":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(path, *rest, **more)

    patch.setattr(Path, "write_text", fails)


def backwards(house: House, patch: pytest.MonkeyPatch) -> None:
    """A clock that goes back an hour with every look, from before 1970."""
    now = iter(range(-1, -(10**9), -3600))
    patch.setattr(time, "time", lambda: next(now))


def of_the_future(house: House) -> None:
    os.utime(house.folder / "table.parquet", (2**33, 2**33))


def taken(house: House, patch: pytest.MonkeyPatch) -> None:
    """Another run that writes the same release."""
    handle = os.open(_state_folder(house) / "lock", os.O_RDWR)
    fcntl.flock(handle, fcntl.LOCK_EX)


def lock(house: House) -> None:
    _state_folder(house).mkdir(mode=0o700)
    (_state_folder(house) / "lock").touch()


def _state_folder(house: House) -> Path:
    key = hashlib.sha256(os.fsencode((house.folder / "out").resolve())).hexdigest()[:16]
    return house.folder / f".anon-{key}"


def changing(house: House, patch: pytest.MonkeyPatch) -> None:
    """A source that somebody writes while it is read."""
    write = releases.write

    def after(*rest: Any, **more: Any) -> Any:
        os.utime(house.folder / "table.parquet", (1, 1))
        return write(*rest, **more)

    patch.setattr(releases, "write", after)


def secret(house: House, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("HOSTILE_SECRET", SECRET)


def no_store(house: House, patch: pytest.MonkeyPatch) -> None:
    """A store that does not answer, without the time that its library waits."""

    def fails(uri: str) -> None:
        raise OSError(f"{uri}: AWS Error NETWORK_CONNECTION with {SECRET}")

    secret(house, patch)
    patch.setattr(stores, "fs", SimpleNamespace(FileSystem=SimpleNamespace(from_uri=fails)))


def interrupted(at: str) -> Machine:
    def machine(house: House, patch: pytest.MonkeyPatch) -> None:
        def stops(*_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

        patch.setattr(dispatch, at, stops)

    return machine


def broken(failure: Callable[[], Exception]) -> Machine:
    def machine(house: House, patch: pytest.MonkeyPatch) -> None:
        def fails(*_: Any, **__: Any) -> None:
            raise failure()

        patch.setattr(local, "open_source", fails)

    return machine


CASES: dict[str, Case] = {
    "a release that is a link": Case(0, (), make=linked, released=through_the_link),
    "a release that is a link to nothing": Case(0, (), make=dangling, released=through_the_link),
    "a release below a link to itself": Case(
        2, ("release.path", "a path that can be followed"), release(path="loop/out"), looped
    ),
    "a release that is a file": Case(2, ("release.path", "which no run wrote"), make=file("out", "x")),
    "a release with something else in it": Case(
        2, ("release.path", "which no run wrote"), make=file("out/thesis.doc", "x")
    ),
    "a run folder with something else in it": Case(
        2, ("release.run", "which no run wrote"), make=file("out-run/x", "x")
    ),
    "a release below a file": Case(
        2, ("release.path", "table.parquet", "cannot be written"), release(path="table.parquet/out", run="out-run")
    ),
    "a release on an unknown store": Case(
        2,
        ("release.path", "a local path", "s3://"),
        config=GOOD.replace("HOUSE/out", "s3a://bucket/out, run: HOUSE/out-run"),
    ),
    "a run folder on a store": Case(
        2, ("release.run", "a local path"), config=GOOD.replace("HOUSE/out", "HOUSE/out, run: s3://bucket/out-run")
    ),
    "a release with a very long name": Case(2, ("release.path", "255 bytes"), release(path="o" * 300)),
    "a release whose name is not UTF-8": Case(
        2, ("release.path", "a path in UTF-8"), command=("run", "CONFIG", "--out", os.fsdecode(b"HOUSE/caf\xe9/out"))
    ),
    "a release where nobody may write": Case(
        2, ("release.path", "/sys", "cannot be written"), release(path="/sys/out")
    ),
    "a spill where nobody may write": Case(2, ("limits.temp", "/sys", "cannot be written"), {"limits__temp": "/sys/x"}),
    "a release around the source": Case(
        2, ("release.path", "do not contain the source"), {"source": {"path": "out/table.parquet"}}
    ),
    "a release around the config": Case(2, ("release.path", "does not contain the config"), release(path=".")),
    "a run folder in the release": Case(2, ("release.run", "apart from release.path"), release(run="out/run")),
    "a spill in the release": Case(2, ("limits.temp", "outside release.path"), {"limits__temp": "out/spill"}),
    "a release of two runs at once": Case(2, ("release.path", "another run is writing"), make=lock, machine=taken),
    "a disk that is full": Case(6, ("no space left on the disk",), machine=full),
    "a disk that is full in the end": Case(6, ("no space left on the disk",), machine=full_of_manifests),
    "a clock that goes backwards": Case(0, (), machine=backwards),
    "a source of the year 2242": Case(0, (), make=of_the_future),
    "a source that changes": Case(5, ("the source changed while it was being read",), machine=changing),
    "a secret in a place that is not there": Case(
        5, ("${HOSTILE_SECRET}", "no such file"), config=SECRET_PLACE, machine=secret
    ),
    "a secret in a store that does not answer": Case(
        5,
        ("s3://${HOSTILE_SECRET}/t.parquet",),
        config=SECRET_PLACE.replace("${HOSTILE_SECRET}", "s3://${HOSTILE_SECRET}/t.parquet"),
        machine=no_store,
    ),
    "a release at a secret place": Case(
        2,
        ("release.path", "/sys/${HOSTILE_SECRET}, which cannot be written"),
        config=GOOD.replace("HOUSE/out", '"/sys/${HOSTILE_SECRET}/out"'),
        machine=secret,
    ),
    "Ctrl-C before the search": Case(
        130, ("interrupted; nothing was published, and no checkpoint was kept",), machine=interrupted("searched")
    ),
    "memory that is exhausted": Case(6, ("out of memory", "limits.memory"), machine=broken(MemoryError)),
}
