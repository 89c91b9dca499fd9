"""Upload a verified release to an object store. A store can put one object in place in one step, but not a folder: so
datapackage.json is the marker. It is removed first and put last, after the other files have been read back; without it
there is no release."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

from anon.core import interrupt
from anon.errors import AnonError, SourceError, VerificationError
from anon.source.stores import CHUNK, Store, reaching

MARKER = "datapackage.json"
PENDING = f"_{MARKER}"  # its temporary name where a store needs one; a killed run may leave it, without effect


def names_at(uri: str) -> set[str]:
    """Return the names of the objects below a place, relative to it; without the marker's temporary name."""
    store = Store(uri)
    return {info.path.removeprefix(f"{store.path}/") for info in store.list()} - {PENDING}


def digests_at(uri: str, only: set[str] | None = None) -> dict[str, str]:
    """Return the SHA-256 of the objects below a place, or of some of them, all of which are read."""
    store, names = Store(uri), names_at(uri)
    return {name: _digest(store, name) for name in sorted(names if only is None else names & only)}


def content_at(uri: str, name: str) -> bytes:
    """Return the content of one object below a place."""
    store = Store(uri)
    path = f"{store.path}/{name}"
    with reaching(path), store.files.open_input_stream(path) as stream:
        content: bytes = stream.read()
    return content


def copy_release(uri: str, folder: Path, only: set[str] | None = None) -> None:
    """Copy the objects below a place, or some of them, to a new private folder."""
    store, names = Store(uri), names_at(uri)
    folder.mkdir(mode=0o700)
    for name in sorted(names if only is None else names & only):
        store.get(f"{store.path}/{name}", folder / name)


def put_release(folder: Path, uri: str, digests: dict[str, str]) -> None:
    """Write the files of a release to a place and remove those of an earlier one. If that fails, no release remains,
    neither the new one nor the earlier one."""
    store = Store(uri)
    files = sorted(path for path in folder.iterdir() if path.name != MARKER)
    stale = names_at(uri) - {path.name for path in files}
    store.delete(MARKER)
    try:
        for path in files:
            store.put(path, path.name)
            _check_same(store, path.name, digests[path.name])
        for name in stale - {MARKER}:
            store.delete(name)
        store.put(folder / MARKER, MARKER, via=PENDING)
        _check_same(store, MARKER, digests[MARKER])
    except BaseException as error:
        for name in (MARKER, PENDING, *(path.name for path in files)):
            _delete_if_possible(store, name)
        gone = f"no release is left at {uri}"
        if isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt(f"{interrupt.STOPPED}; {gone}") from None
        if isinstance(error, AnonError):
            error.reword(lambda text: f"{text}; {gone}")
        raise


def add_files(folder: Path, uri: str, digests: dict[str, str]) -> None:
    """Write files of a release beside those that are there, and at last its description, in one step. If that fails
    before, what was added is removed, and the release is what it was before."""
    store, there = Store(uri), names_at(uri)
    files = sorted(path for path in folder.iterdir() if path.name != MARKER)
    try:
        for path in files:
            store.put(path, path.name)
            _check_same(store, path.name, digests[path.name])
        store.put(folder / MARKER, MARKER, via=PENDING)
    except BaseException:
        for path in files:
            if path.name not in there:
                _delete_if_possible(store, path.name)
        raise
    _check_same(store, MARKER, digests[MARKER])


def replace_files(folder: Path, uri: str, digests: dict[str, str]) -> None:
    """Replace some files of a release, whose description is removed first and put last. If that fails, what was
    replaced stays and the description is away, so that it has to be completed."""
    store = Store(uri)
    store.delete(MARKER)
    for path in sorted(path for path in folder.iterdir() if path.name != MARKER):
        store.put(path, path.name)
        _check_same(store, path.name, digests[path.name])
    store.put(folder / MARKER, MARKER, via=PENDING)
    _check_same(store, MARKER, digests[MARKER])


def _check_same(store: Store, name: str, digest: str) -> None:
    """Read an object back; raise VerificationError if its content is not what was verified."""
    if _digest(store, name) != digest:
        raise VerificationError(f"{store.uri}: {name} is not what was written")


def _digest(store: Store, name: str) -> str:
    found, path = hashlib.sha256(), f"{store.path}/{name}"
    with reaching(path), store.files.open_input_stream(path) as stream:
        while chunk := stream.read(CHUNK):
            found.update(chunk)
    return found.hexdigest()


def _delete_if_possible(store: Store, name: str) -> None:
    with suppress(SourceError):  # the cause of the failed upload is reported; without the marker there is no release
        store.delete(name)
