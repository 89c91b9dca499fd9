"""Read the ledger of a series, and compare it and the published parts with what was published.

A file that was compared once is recognized by its size and the times at which its content and its inode changed, as
those of a source are, so that a night reads only what is new since the night before: `marks.json` has these marks. It
is no part of the ledger, and without it everything is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from anon.artifacts.ledger import Ledger
from anon.artifacts.reading import read_ledger
from anon.config import Config, redact
from anon.core import disk
from anon.core.database import translated
from anon.errors import ConfigError, VerificationError
from anon.source.tables import stat

FOLDER, LIST, MARKS = "ledger", "ledger.json", "marks.json"
PACKAGE = "datapackage.json"
RESTORE = "put back the run folder as the last run left it"
Marks = dict[str, list[str | int]]


def folder_of(config: Config) -> Path:
    """Return the folder of the ledger of a config's series."""
    return config.release.run / FOLDER


def read(config: Config, tidy: bool = True) -> Ledger | None:
    """Return the ledger of a config's series, None before its first night. ConfigError if there is a release without a
    ledger; VerificationError if the files are not those that were published. `tidy`: the caller has the lock, so that
    what earlier nights left may be removed."""
    folder = folder_of(config)
    if not disk.exists(folder / LIST):
        check_empty(config)
        return None
    ledger = read_ledger(folder)
    _check_files(config, ledger, tidy)
    if tidy:
        remove_strangers(folder, ledger)
    return ledger


def check_empty(config: Config) -> None:
    """Raise ConfigError if there is a release, of which a new ledger would know nothing."""
    if names := published_names(config):
        place = redact(str(config.release.path), config.secrets)
        expected = "the run folder of the last run put back, a new ledger by `anon series rebuild`, or other folders"
        raise ConfigError.at("release.path", f"{place}, where {len(names):,} files are, without a ledger", expected)


def is_intact(config: Config) -> bool:
    """Return whether there is a ledger whose files are all what the last run left, whatever became of the parts."""
    folder = folder_of(config)
    if not disk.exists(folder / LIST):
        return False
    try:
        ledger = read_ledger(folder)
    except ConfigError:
        return False
    with translated("reading the ledger", disk=True):
        return all(disk.exists(folder / f.name) and disk.digest(folder / f.name) == f.sha256 for f in ledger.files)


def published_names(config: Config) -> list[str]:
    """Return the names of the files that are in the place of a release."""
    place = config.release.path
    if isinstance(place, str):
        from anon.release.stores import names_at

        return sorted(names_at(place))
    return sorted(disk.names(place)) if disk.exists(place) and disk.is_folder(place) else []


def _check_files(config: Config, ledger: Ledger, tidy: bool) -> None:
    """Raise VerificationError if a file of the series is missing, or is not the one that was published."""
    folder, place = folder_of(config), config.release.path
    known = _known_marks(folder)
    marks: Marks = {}
    with translated("comparing the series with its ledger", disk=True):
        for file in ledger.files:
            if not _same(folder / file.name, file.sha256, known, marks):
                raise VerificationError(f"{folder / file.name} is not what the last run left; {RESTORE}")
        if isinstance(place, str):
            _check_store(place, ledger)
        else:
            for name, digest in published(ledger):
                if not _same(place / name, digest, known, marks):
                    shown = redact(str(place / name), config.secrets)
                    raise VerificationError(f"{shown} is not the file that was published; put it back")
    if tidy and marks != known:
        with suppress(OSError):  # the next start reads everything again
            disk.write_sealed(folder / MARKS, marks)


def published(ledger: Ledger) -> Iterator[tuple[str, str]]:
    """Yield the names of all published files of parts with their digests."""
    for part in ledger.parts:
        yield from part.files.items()


def _check_store(place: str, ledger: Ledger) -> None:
    """Raise VerificationError if objects of the series are missing; their content was read back when it was put."""
    from anon.release.stores import names_at

    missing = {name for name, _ in published(ledger)} - names_at(place)
    if missing:
        raise VerificationError(f"{place}: {len(missing):,} files of the series are no longer there; put them back")


def _same(file: Path, digest: str, known: Marks, marks: Marks) -> bool:
    """Return whether a file has the content that it must have; note its marks."""
    if not disk.exists(file):
        return False
    ((name, size, changed),) = stat([file])
    own: list[str | int] = [size, changed, digest]
    if known.get(name) != own and disk.digest(file) != digest:
        return False
    marks[name] = own
    return True


def _known_marks(folder: Path) -> Marks:
    try:
        found: Marks = disk.read_sealed(folder / MARKS)
        return found if isinstance(found, dict) else {}
    except (OSError, ValueError):
        return {}


def remove_strangers(folder: Path, ledger: Ledger) -> None:
    """Remove files that an earlier night needed, such as the rows of those who waited then."""
    needed = {LIST, MARKS, *(file.name for file in ledger.files)}
    for name in disk.names(folder):
        if name not in needed:
            disk.remove(folder / name)
