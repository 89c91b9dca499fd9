"""Make spill folders, which hold rows of the source while a command runs. Each has an unpredictable name, mode 0700
and a lock that ends with its process, so that any later process that uses the same temporary folder removes those that
a killed process left."""

from __future__ import annotations

import hashlib
import platform
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir

from anon.config import Config, redact
from anon.core import disk, interrupt
from anon.core.database import in_utf8
from anon.core.progress import Progress
from anon.errors import ConfigError

# of this machine: locks in a folder that several machines share may hold on one of them only
PREFIX = f".anon-spill-{hashlib.sha256(platform.node().encode()).hexdigest()[:8]}-"
Alert = Callable[[str], None]


@contextmanager
def scratch(config: Config, progress: Progress) -> Iterator[Path]:
    """Make a spill folder for a command that writes no release."""
    with spill_folder(alert_of(config, progress), config.limits.temp) as folder:
        yield folder


@contextmanager
def spill_folder(alert: Alert, temp: Path | None = None) -> Iterator[Path]:
    """Make a spill folder, in the system's folder for temporary files if no other is given; remove it at the end."""
    temp, field = (temp, "limits.temp") if temp is not None else (Path(gettempdir()), "TMPDIR")
    signals = interrupt.Deferral()
    signals.begin()
    try:
        with disk.parents(temp, field), disk.private_umask():
            folder, handle = make_spill(temp, field, alert)
            try:
                signals.end()
                yield folder
            finally:
                signals.begin()
                remove(folder, alert)
                disk.close(handle)
    finally:
        signals.end()


def make_spill(temp: Path, field: str, alert: Alert, note: Callable[[Path], None] | None = None) -> tuple[Path, int]:
    """Make a spill folder that is locked, and remove those that killed processes left beside it; return its path, which
    `note` gets before it is made, and the handle of the lock."""
    if not in_utf8(temp):
        raise ConfigError.at(field, f"{temp}, which is not in UTF-8", "a path in UTF-8")
    with disk.errors_at(field, temp):
        _remove_stale(temp, alert)
        while True:
            folder = temp / f"{PREFIX}{secrets.token_hex(16)}"
            if note is not None:
                note(folder)
            try:
                handle = disk.make_and_lock(folder, field)
            except OSError:
                remove(folder, alert)
                raise
            if handle is not None:  # else another process has taken it for a stale one
                return folder, handle


def _remove_stale(temp: Path, alert: Alert) -> None:
    """Remove the spill folders of this user whose processes are gone."""
    for folder in [temp / name for name in disk.names(temp) if name.startswith(PREFIX)]:
        try:
            handle = None if disk.not_private(folder) else disk.lock(folder)
        except FileNotFoundError:
            continue
        except OSError as error:
            alert(f"{folder} could not be examined ({error.strerror}); it may hold personal data")
            continue
        if handle is not None:
            remove(folder, alert)
            disk.close(handle)


def remove(path: Path, alert: Alert) -> bool:
    """Remove a file or folder; report it if that fails. Return whether it is gone."""
    failures = disk.remove(path)
    for error in failures[:1]:
        alert(f"{path} could not be removed ({error.strerror}); it may hold personal data")
    return not failures


def alert_of(config: Config, progress: Progress) -> Alert:
    """Return a function that reports a warning on stderr, without the values of variables."""
    return lambda message: progress.alert(redact(message, config.secrets))


def at_hand(place: Path | str, copy: Path, only: set[str] | None = None) -> Path:
    """Return the folder of a release; of one on a store a private copy, which is made, perhaps of some files only."""
    if isinstance(place, str):
        from anon.release.stores import copy_release

        copy_release(place, copy, only)
        return copy
    return place
