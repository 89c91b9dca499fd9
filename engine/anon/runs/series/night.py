"""One night of a series: who is new, the part that is made of them, and what the ledger says afterwards.

Who waits is decided for all at once, before the search: if those who came this night and those who waited are unsafe as
one group beside the earlier parts, those who came this night are tried alone, and if they are unsafe as well everybody
waits. The decision is a function of the numbers of people with each value: whose value is whose does not enter it, so
that of two who came in the same night neither waits without the other, and waiting singles out nobody. To hold back
only those with the most frequent value would: everybody who waits would have it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any

from anon.artifacts.ledger import LEDGER, Ledger, LedgerFile, PublishedPart, Seen
from anon.artifacts.reading import sealed_text
from anon.artifacts.schema import Dependencies
from anon.config import Config
from anon.config.absent import may_be_absent
from anon.core import disk
from anon.core.checkpoint import RunIdentity
from anon.core.database import translated
from anon.criteria import EarlierGroups, bind
from anon.criteria.bind import Values
from anon.errors import SourceError, UnsafeError
from anon.recoding.outcome import Outcome
from anon.release import WrittenRelease
from anon.release.files import changed
from anon.release.publication import AddedUpload, Addition, Move, Step, Upload
from anon.release.series_package import NAME, files_of_part, read_package, resources_of, write_series_package
from anon.runs.identity import same_run
from anon.runs.previous_release import manifest_marks
from anon.runs.run_folder import RunArtifacts, check_places, put_in_place
from anon.runs.series import ledger as ledgers
from anon.runs.series.attained import attained
from anon.runs.series.hashes import new_key
from anon.runs.series.pool import Pool
from anon.runs.series.rows import GroupFinder
from anon.runs.series.settings import check_settings, settings_of
from anon.runs.workspace import Workspace
from anon.source import Source
from anon.source.origins import Origin
from anon.verify.attaining import attaining_groups
from anon.verify.judge import Findings

NOBODY = LedgerFile(name="", individuals=0, sha256="")
UNLIKE = "a part with other types of columns than the parts before"


class MustWait(Exception):
    """The people of a night cannot be published safely; the message says why."""


@dataclass
class Night:
    """One attempt to add a part to a series."""

    config: Config
    before: Ledger
    pool: Pool
    ids: LedgerFile = NOBODY
    waiting: LedgerFile = NOBODY
    earlier: EarlierGroups = field(default_factory=EarlierGroups)  # of the parts before
    attaining: EarlierGroups = field(default_factory=EarlierGroups)  # of these and the part
    resources: list[dict[str, Any]] = field(default_factory=list)  # of the part, as datapackage.json describes them

    @classmethod
    def begin(cls, config: Config, origin: Origin, tidy: bool = True) -> Night:
        """Return the night that a config and its source make, after the ledger was compared with what was published."""
        before = ledgers.read(config, tidy)
        if before is None:
            check_places(config, overwrite=False)
            before = Ledger(
                version=LEDGER, kind="append", night=0, key=new_key(), settings=settings_of(config), individual="",
                parts=[], earlier={}, seen=[],
            )  # fmt: skip
        check_settings(config, before.settings)
        config = may_be_absent(config)  # a value that is named may come in another night
        return cls(config, before, Pool(origin, before, ledgers.folder_of(config)))

    def alone(self) -> Night:
        """Return the night without those who waited."""
        own = self.pool
        return Night(self.config, self.before, Pool(own.whole, own.ledger, own.folder, alone=True))

    @property
    def can_be_smaller(self) -> bool:
        """Whether those who came this night can be tried without those who waited."""
        return not self.pool.alone and bool(self.pool.counts.new and self.pool.counts.waited)

    @property
    def number(self) -> int:
        """The number of the part that this night may publish."""
        return len(self.before.parts) + 1

    def look_back(self, spill: Path) -> EarlierGroups:
        """Return the groups of earlier parts that those of this night must be safe beside. The ledger has those for
        the criteria of the night before."""
        if self.before.parts and self.before.settings.privacy != settings_of(self.config).privacy:
            self.earlier = attained(self.config, spill)
        else:
            self.earlier = EarlierGroups.from_json(self.before.earlier)
        return self.earlier

    def identity(self, source: Source, resume: bool, files: dict[str, str]) -> tuple[RunIdentity, bool]:
        """Return what a resumed night must find unchanged, and whether it is resumed: one with people who waited may
        have two searches, of which a checkpoint holds only one, and starts anew."""
        after = {"ledger.json": f"after {self.before.night} nights"}
        return same_run(self.config, source, resume, files | after), resume and not self.pool.counts.waited

    def seen(self, dependencies: Dependencies) -> Seen:
        return Seen(dependencies=dependencies, source=manifest_marks(self.pool.marks, self.config))

    def is_current(self, dependencies: Dependencies) -> bool:
        """Return whether the last night had the same source and the same config, so that nothing is new."""
        return bool(self.pool.marks) and self.before.seen == [self.seen(dependencies)]

    def facts(self, part: int | None) -> dict[str, Any]:
        """Return the counts of this night for users."""
        counts, new = self.pool.counts, self.ids.individuals
        return {
            "part": part, "new": counts.new, "waiting": self.waiting.individuals,
            "released": self.before.released + new, "again": counts.again,
        }  # fmt: skip

    # While the rows are at hand.

    def searched(self, search: Callable[[], Outcome]) -> Outcome:
        """Return the result of a search; MustWait if there is none."""
        try:
            return search()
        except UnsafeError as error:
            raise MustWait(str(error)) from None

    def save_people(self, source: Source, outcome: Outcome, written: WrittenRelease, work: Workspace) -> None:
        """Write the keyed hashes of the individuals of the part with their groups, and the rows of those who wait."""
        if self.before.types and self.before.types != _types(written):
            raise SourceError(f"{UNLIKE}: {_differing(self.before.types, _types(written))}; cast them in the source")
        folder, name = staged_ledger(work), f"ids-{self.number:06d}.parquet"
        with translated("writing the ledger"):
            self.pool.rows.place(source, GroupFinder.from_outcome(source.quasi_identifiers, outcome, written))
            self.ids = _ledger_file(folder / name, self.pool.rows.save_ids(folder / name))
            if self.ids.individuals != int(outcome.recoding.people.sum()):
                raise changed()
            self._save_waiting(folder)

    def save_all_waiting(self, source: Source, work: Workspace) -> None:
        """Write the rows of everybody: the night publishes nothing."""
        with translated("writing the ledger"):
            self.pool.rows.leave(source)
            self._save_waiting(staged_ledger(work))

    def _save_waiting(self, folder: Path) -> None:
        """Write the rows of those who are in no group, and of those who waited if they were not tried."""
        file = folder / f"waiting-{self.before.night + 1:06d}.parquet"
        people = self.pool.rows.save_waiting(file, self.pool.alone)
        self.waiting = _ledger_file(file, people) if people else NOBODY

    def note(self, found: Findings) -> None:
        """Take from the verified part the groups that later ones must be safe beside."""
        own = self.earlier.union(attaining_groups(found))
        values = own.widened(Values(found.values, found.frequency))
        bound = bind(self.config.privacy, values, absent=True)
        self.attaining = own.attaining((c, values.texts[str(c.column)]) for c in bound if not c.alone)

    # Afterwards.

    def named(self, work: Workspace, files: RunArtifacts) -> RunArtifacts:
        """Give the written files the names of a part, with the description of the series; return their digests."""
        package = read_package(work.release)
        digests = dict[str, str]()
        for resource in package["resources"]:
            names = files_of_part(resource, self.number)
            digests |= {new: files.release[old] for old, new in names.items()}
            old, new = next(iter(names.items()))
            disk.rename(*(work.release / PurePath(name).parts[0] for name in (old, new)))
        self.resources = resources_of(package, self.number, digests)
        parts = [part.resources for part in self.before.parts]
        write_series_package(work.release, package, [*parts, self.resources])
        return replace(files, release=digests | {NAME: disk.digest(work.release / NAME)})

    def publish(self, work: Workspace, files: RunArtifacts, summary: dict[str, Any], written: WrittenRelease) -> None:
        """Add the part to the series, and put the ledger that has it in place: both or neither."""
        part = PublishedPart(
            number=self.number,
            run=work.run_id,
            files={name: digest for name, digest in files.release.items() if name != NAME},
            rows=summary["rows"],
            individuals=self.ids.individuals,
            groups=summary["groups"],
            ids=self.ids,
            resources=self.resources,
        )
        disk.keep(work.run / "recoding.json", work.run / f"recoding-{self.number:06d}.json")
        parts = [*self.before.parts, part]
        after = self._write(work, files.before.dependencies, parts, self.attaining, _types(written))
        release = self.config.release
        steps = [step_of(work.run, release.run, disk.digests(work.run) | {"recoding.json": files.recoding})]
        steps.append(step_of(work.release, release.path, files.release))
        # a folder comes last, because readers look there; an upload first, because it may fail or take long
        put_in_place(work, tuple(steps if isinstance(release.path, Path) else reversed(steps)))
        ledgers.remove_strangers(ledgers.folder_of(self.config), after)

    def publish_waiting(self, work: Workspace, dependencies: Dependencies) -> None:
        """Put the ledger of a night without a part in place."""
        after = self._write(work, dependencies, self.before.parts, self.earlier, self.before.types)
        put_in_place(work, (step_of(work.run, self.config.release.run, disk.digests(work.run)),))
        ledgers.remove_strangers(ledgers.folder_of(self.config), after)

    def _write(
        self,
        work: Workspace,
        dependencies: Dependencies,
        parts: list[PublishedPart],
        earlier: EarlierGroups,
        types: dict[str, str],
    ) -> Ledger:
        """Write ledger.json as it will be after this night, and return it."""
        after = Ledger(
            version=LEDGER,
            kind="append",
            night=self.before.night + 1,
            key=self.before.key,
            settings=settings_of(self.config),
            individual=self.pool.kind,
            types=types,
            parts=parts,
            waiting=self.waiting,
            withdrawn=self.before.withdrawn,
            earlier=earlier.to_json(),
            seen=[self.seen(dependencies)],
        )
        with translated("writing the ledger", disk=True):
            (staged_ledger(work) / ledgers.LIST).write_text(sealed_text(after), encoding="utf-8")
        return after


def staged_ledger(work: Workspace) -> Path:
    """Return the folder in which the files of the ledger are assembled."""
    folder = work.run / ledgers.FOLDER
    with disk.errors_at("release.run", folder):
        return disk.make_private(folder, "release.run", may_exist=True)


def step_of(staged: Path, place: Path | str, digests: dict[str, str]) -> Step:
    """Return the step that adds files to a place, or makes it if nothing is there."""
    if isinstance(place, Path):
        return (Addition if disk.exists(place) else Move)(staged, place, digests)
    from anon.release.stores import names_at

    return (AddedUpload if names_at(place) else Upload)(staged, place, digests)


def _types(written: WrittenRelease) -> dict[str, str]:
    return written.types | (written.values.types if written.values else {})


def _differing(before: dict[str, str], now: dict[str, str]) -> str:
    names = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    return ", ".join(f"{name} is {now.get(name, 'missing')}, not {before.get(name, 'there')}" for name in names)


def _ledger_file(file: Path, individuals: int) -> LedgerFile:
    return LedgerFile(name=file.name, individuals=individuals, sha256=disk.digest(file))
