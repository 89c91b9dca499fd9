"""Put a verified release and its run folder in place: both or neither, whatever interrupts it.

A journal is written before the first rename and removed after the last. Every start for a release first looks for one:
an interrupted publication is completed, or undone if its files no longer exist. The steps that were done before the
interruption are determined from the folders themselves, each identified by the digests of its files, so that the
recovery can be interrupted as well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from anon.core import disk
from anon.errors import AnonError, ResourceError, SourceError, VerificationError

JOURNAL = "journal.json"
LISTS = ("datapackage.json", "ledger.json")  # files that list others
UNFINISHED = "the publication is not finished; the next start for this release completes or undoes it"


def aside(staged: Path) -> Path:
    """Return where the previous folder is put, if the two cannot be exchanged."""
    return staged.with_name(f"{staged.name}-old")


@dataclass(frozen=True)
class Move:
    """A folder that is renamed into its place, where another one may exist."""

    staged: Path
    place: Path
    digests: dict[str, str]

    def put(self) -> None:
        """Rename the folder into its place; an existing one gets its name, in one step where the system supports it."""
        if not disk.exists(self.place):
            disk.rename(self.staged, self.place)
        elif not disk.exchange(self.staged, self.place):
            disk.rename(self.place, aside(self.staged))
            disk.rename(self.staged, self.place)

    def take_back(self) -> None:
        """Undo `put`, after whichever step it stopped."""
        if disk.exists(aside(self.staged)):
            if disk.exists(self.place):
                disk.rename(self.place, self.staged)
            disk.rename(aside(self.staged), self.place)
        elif self.done():
            if not disk.exists(self.staged):
                disk.rename(self.place, self.staged)
            elif not disk.exchange(self.staged, self.place):
                raise OSError("the folders can no longer be exchanged")

    def done(self) -> bool:
        return _holds(self.place, self.digests)

    def possible(self) -> bool:
        return _holds(self.staged, self.digests) or self.done()

    def sync(self) -> None:
        disk.sync_folder(self.place.parent)
        disk.sync_folder(self.staged.parent)


@dataclass(frozen=True)
class Addition:
    """Files that are added to a folder and may replace files there, each in one step; the one that lists the others,
    datapackage.json or ledger.json, comes last."""

    staged: Path
    place: Path
    digests: dict[str, str]

    def put(self) -> None:
        """Rename the files into the folder; a copy of each that is replaced is kept aside."""
        for name in self._names():
            new, old, kept = self.staged / name, self.place / name, aside(self.staged) / name
            if disk.exists(new):  # otherwise it was renamed before an interruption
                if old.parent != self.place:
                    disk.make_like(old.parent, new.parent)
                if disk.exists(old) and not disk.exists(kept):
                    disk.make_folders(kept.parent)
                    disk.keep(old, kept)
                disk.replace(new, old)

    def take_back(self) -> None:
        """Undo `put`, after whichever step it stopped."""
        for name in reversed(self._names()):
            new, old, kept = self.staged / name, self.place / name, aside(self.staged) / name
            if not disk.exists(new):
                disk.rename(old, new)
            if disk.exists(kept):
                disk.replace(kept, old)
        for folder in self._folders() - {self.place}:
            disk.remove_if_empty(folder)

    def done(self) -> bool:
        return all(_is(self.place / name, digest) for name, digest in self.digests.items())

    def possible(self) -> bool:
        return all(
            _is(self.staged / name, digest) or _is(self.place / name, digest) for name, digest in self.digests.items()
        )

    def sync(self) -> None:
        for folder in self._folders() | {self.place}:
            if disk.exists(folder):
                disk.sync_folder(folder)
        disk.sync_folder(self.staged)

    def _folders(self) -> set[Path]:
        return {(self.place / name).parent for name in self.digests}

    def _names(self) -> list[str]:
        return sorted(self.digests, key=lambda name: (Path(name).name in LISTS, name))


@dataclass(frozen=True)
class AddedUpload:
    """Files that are added to those of a release on an object store; datapackage.json, which lists them, comes last."""

    staged: Path
    place: str
    digests: dict[str, str]

    def put(self) -> None:
        from anon.release.stores import add_files

        add_files(self.staged, self.place, self.digests)

    def take_back(self) -> None:
        """Raise OSError if the new description is there: it can only be completed. A failed upload has undone
        itself."""
        if self.done():
            raise OSError("an upload cannot be undone")

    def done(self) -> bool:
        from anon.release.stores import digests_at

        return digests_at(self.place, set(self.digests)) == self.digests

    def possible(self) -> bool:
        return _holds(self.staged, self.digests)

    def sync(self) -> None:
        pass


@dataclass(frozen=True)
class ReplacedUpload(AddedUpload):
    """Files that replace some of those of a release on an object store. Objects cannot be replaced together, so
    datapackage.json is away meanwhile; from then on it can only be completed."""

    def put(self) -> None:
        from anon.release.stores import replace_files

        replace_files(self.staged, self.place, self.digests)

    def take_back(self) -> None:
        """Raise OSError unless nothing was changed: datapackage.json, which goes first, is still the earlier one."""
        from anon.release.stores import MARKER, digests_at

        if digests_at(self.place, {MARKER}).get(MARKER, self.digests[MARKER]) == self.digests[MARKER]:
            raise OSError("an upload cannot be undone")


@dataclass(frozen=True)
class Upload:
    """A folder whose files are uploaded to an object store."""

    staged: Path
    place: str
    digests: dict[str, str]

    def put(self) -> None:
        from anon.release.stores import put_release

        put_release(self.staged, self.place, self.digests)

    def take_back(self) -> None:
        """Raise OSError if the upload is complete: the previous files are gone, so that the publication can only be
        completed. A failed upload has undone itself."""
        if self.done():
            raise OSError("an upload cannot be undone")

    def done(self) -> bool:
        from anon.release.stores import digests_at

        return digests_at(self.place) == self.digests

    def possible(self) -> bool:
        return _holds(self.staged, self.digests)

    def sync(self) -> None:
        pass


Step = Move | Addition | Upload | AddedUpload  # or a ReplacedUpload


@dataclass(frozen=True)
class Publication:
    """The folders that one run puts in place, in this order, and the journal that exists meanwhile."""

    journal: Path
    moves: tuple[Step, ...]

    @classmethod
    def read(cls, journal: Path) -> Publication | None:
        """Return the publication that a journal describes; None if there is no journal."""
        if not disk.exists(journal):
            return None
        try:
            content = disk.read_sealed(journal)
        except ValueError:
            what = f"{journal}, which an interrupted publication left, is damaged"
            raise ResourceError(f"{what}; check release.path and release.run, and remove {journal.parent}") from None
        return cls(journal, tuple(_step(**each) for each in content))

    def check(self) -> None:
        """Raise VerificationError if the files are not those that were verified."""
        for move in self.moves:
            if disk.digests(move.staged) != move.digests:
                changed = "the files that were written changed after they were verified"
                raise VerificationError(f"{changed}; nothing was published")

    def folders(self) -> set[Path]:
        """Return the private folders that the publication needs until it is complete."""
        return {path for move in self.moves for path in (move.staged, aside(move.staged))}

    def carry_out(self, defer_signals: Callable[[], None], obsolete: Path) -> OSError | None:
        """Put everything in place, or nothing; then remove a folder that is no longer needed. Return the error if
        something failed after everything was in place."""
        try:
            disk.write_sealed(self.journal, self._content())
            for move in self.moves:
                if isinstance(move, Move | Addition):  # an upload may take long, and can be interrupted
                    defer_signals()
                move.put()
        except BaseException as error:  # noqa: BLE001 - it is raised again
            defer_signals()
            self._give_up(error)
        try:
            self._finish(obsolete)
        except OSError as error:
            return error
        return None

    def recover(self, obsolete: Path) -> str:
        """Complete or undo an interrupted publication; return which of the two was done."""
        possible = all(move.possible() for move in self.moves)
        for move in self.moves if possible else ():
            if not move.done():
                move.put()
        for move in () if possible else reversed(self.moves):
            move.take_back()
        self._finish(obsolete if possible else None)
        return "completed" if possible else "undone"

    def _content(self) -> list[dict[str, Any]]:
        return [
            {"kind": type(m).__name__, "staged": str(m.staged), "place": str(m.place), "digests": m.digests}
            for m in self.moves
        ]

    def _give_up(self, error: BaseException) -> NoReturn:
        """Undo the finished steps, and raise the error with the state of the publication."""
        outcome = "nothing was published" if self._undone() else UNFINISHED
        if isinstance(error, AnonError):
            error.reword(lambda text: f"{text}; {outcome}")
        elif isinstance(error, OSError) or outcome == UNFINISHED:
            why = error.strerror if isinstance(error, OSError) else type(error).__name__
            raise ResourceError(f"publishing: {why}; {outcome}") from error
        raise error

    def _undone(self) -> bool:
        """Undo the finished steps; return whether this is complete, so that nothing remains for the next start."""
        try:
            if disk.exists(self.journal):
                for move in reversed(self.moves):
                    move.take_back()
                self._finish()
        except (OSError, SourceError):
            pass
        try:
            return not disk.exists(self.journal)
        except OSError:
            return False

    def _finish(self, obsolete: Path | None = None) -> None:
        """Flush the renames to the disk and remove the journal."""
        for move in self.moves:
            move.sync()
        for failure in [] if obsolete is None else disk.remove(obsolete):
            raise failure
        disk.unlink(self.journal)
        disk.sync_folder(self.journal.parent)


def _step(kind: str, staged: str, place: str, digests: dict[str, str]) -> Step:
    for upload in (Upload, AddedUpload, ReplacedUpload):
        if kind == upload.__name__:
            return upload(Path(staged), place, digests)
    return (Move if kind == "Move" else Addition)(Path(staged), Path(place), digests)


def _is(file: Path, digest: str) -> bool:
    """Return whether a file exists and has this content."""
    return disk.exists(file) and disk.digest(file) == digest


def _holds(folder: Path, digests: dict[str, Any]) -> bool:
    """Return whether a folder exists and has these files and no others."""
    return disk.exists(folder) and disk.digests(folder) == digests
