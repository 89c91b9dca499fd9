"""Make the ledger of a series again, which was lost or damaged, from the published parts and a source that holds
everybody who was released. The parts do not say whose a row is: everybody who may have one (matching.py) counts as
released, in every group in which it may be, so that nobody is in two parts; some may never be released. Groups that
were withdrawn are in no part: if there are any, everybody in the source who fits no row may have been in one, and is
taken for withdrawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anon.artifacts.ledger import LEDGER, Ledger, LedgerFile, PublishedPart
from anon.artifacts.reading import sealed_text
from anon.config import Config
from anon.config.absent import may_be_absent
from anon.config.support import exact_labels
from anon.config.tightening import loosened
from anon.core import disk
from anon.core.database import Database, file_list, literal, translated
from anon.criteria import EarlierGroups
from anon.errors import ConfigError, Problem, VerificationError
from anon.release.package import published_criteria
from anon.release.publication import Step
from anon.release.series_package import NAME, digests_of, read_package
from anon.runs.kinds import kinds_of
from anon.runs.run_folder import put_in_place
from anon.runs.scratch import at_hand
from anon.runs.series import hashes
from anon.runs.series import ledger as ledgers
from anon.runs.series.attained import attained
from anon.runs.series.matching import LINKS, PEOPLE, ROWS, Matching
from anon.runs.series.night import NOBODY, staged_ledger, step_of
from anon.runs.series.pool import attach
from anon.runs.series.rows import ON_DISK, TO_PARQUET
from anon.runs.series.settings import settings_of
from anon.runs.workspace import Workspace
from anon.source import describe, open_source
from anon.source.origins import Origin

HASHED = f"{ON_DISK}.hashed"  # the hash of everybody in the source
ROLES = {"quasi-identifier": "quasi_identifiers", "sensitive": "sensitive", "kept": "keep"}
Json = dict[str, Any]


@dataclass
class Rebuilding:
    """The making of a ledger."""

    config: Config
    work: Workspace
    database: Database
    key: str = field(default_factory=hashes.new_key)

    def run(self, origin: Origin) -> Json:
        """Make the ledger and put it in place; return the counts of it."""
        place = at_hand(self.config.release.path, self.work.spill / "published")
        parts = read_parts(self.config, place)
        attach(self.database, self.work.spill)
        source = open_source(self.database, may_be_absent(self.config), origin, self.work.spill)
        matching = Matching(self.database, source, self.config)
        matching.prepare(labelled=not exact_labels(self.config))
        parts = [_with_withdrawn(part, matching.add(part, place)) for part in parts]
        certain, ambiguous = matching.settle()
        source.check_unchanged()
        earlier = attained(self.config, self.work.spill)
        after = self._write(parts, earlier, kinds_of(self.config, source))
        put_in_place(self.work, (self._step(),))
        ledgers.remove_strangers(ledgers.folder_of(self.config), after)
        released, fit = after.released, certain + ambiguous
        return {
            "parts": len(parts), "released": released, "certain": certain, "ambiguous": ambiguous,
            "left_out": fit - released, "withdrawn": after.withdrawn.individuals,
        }  # fmt: skip

    def _step(self) -> Step:
        return step_of(self.work.run, self.config.release.run, disk.digests(self.work.run))

    def _write(self, parts: list[PublishedPart], earlier: EarlierGroups, kind: str) -> Ledger:
        """Write the files of the ledger, and return it."""
        folder = staged_ledger(self.work)
        with translated("writing the ledger", disk=True):
            hashes.set_key(self.database, self.key)
            digests = f"SELECT i, {hashes.hashed('who')} AS digest FROM {PEOPLE}"
            self.database.execute(f"CREATE TABLE {HASHED} AS SELECT i, {hashes.halves('digest')} FROM ({digests})")
            filled = [part.model_copy(update={"ids": self._write_ids(folder, part.number)}) for part in parts]
            ledger = Ledger(
                version=LEDGER, kind="append", night=len(parts), key=self.key, settings=settings_of(self.config),
                individual=kind, types=self._types(), parts=filled, withdrawn=self._write_withdrawn(folder, parts),
                earlier=earlier.to_json(), seen=[],
            )  # fmt: skip
            (folder / ledgers.LIST).write_text(sealed_text(ledger), encoding="utf-8")
        return ledger

    def _write_ids(self, folder: Path, number: int) -> LedgerFile:
        """Write the hashes of those who may be in a part, with every group in which they may be."""
        own = f"SELECT DISTINCT i, g FROM {LINKS} JOIN {ROWS} USING (row) WHERE part = {number}"
        rows = f"SELECT hi, lo, g::UINTEGER AS g FROM ({own}) JOIN {HASHED} USING (i) ORDER BY hi, lo, g"
        return self._save(folder / f"ids-{number:06d}.parquet", rows)

    def _write_withdrawn(self, folder: Path, parts: list[PublishedPart]) -> LedgerFile:
        """Write the hashes of those who may have been in a group that was withdrawn."""
        if not any(part.withdrawn_groups for part in parts):
            return NOBODY
        rows = f"SELECT hi, lo FROM {HASHED} WHERE i NOT IN (SELECT i FROM {LINKS}) ORDER BY hi, lo"
        return self._save(folder / f"withdrawn-{len(parts):06d}.parquet", rows)

    def _save(self, file: Path, rows: str) -> LedgerFile:
        self.database.execute(f"COPY ({rows}) TO {literal(str(file))} {TO_PARQUET}")
        counted = f"SELECT count(*) FROM (SELECT DISTINCT hi, lo FROM read_parquet({file_list([file])}))"
        return LedgerFile(name=file.name, individuals=self.database.one(counted)[0], sha256=disk.digest(file))

    def _types(self) -> dict[str, str]:
        """Return the types of the published columns; those of CSV files are known after the next part."""
        if self.config.release.format == "csv":
            return {}
        views = ["published_0", "published_1"] if self.config.release.form == "bucketized" else ["published_0"]
        return {name: kind for view in views for name, kind in describe(self.database, view).items()}


def read_parts(config: Config, place: Path) -> list[PublishedPart]:
    """Return the parts of a series as its datapackage.json describes them, without who is in them. ConfigError if they
    are not those of the config; VerificationError if a file is not the one that is described."""
    with translated("reading the parts", disk=True):
        package = _package(place)
        resources: list[Json] = package["resources"]
        _check_criteria(config, package)
        for resource in resources:
            _check_columns(config, resource)
        described = {name: digest for resource in resources for name, digest in digests_of(resource).items()}
        found = {name: digest for name, digest in disk.digests(place).items() if name != NAME}
    if found != described:
        raise VerificationError(f"the parts are not the files that {NAME} describes; put them back")
    listed: dict[int, list[Json]] = {}
    for resource in resources:
        listed.setdefault(resource["part"], []).append(resource)
    return [_part(number, listed[number]) for number in sorted(listed)]


def _package(place: Path) -> Json:
    """Return the description of a series."""
    expected = "the published parts of a series"
    if not disk.exists(place / NAME):
        raise ConfigError.at("release.path", f"no {NAME}", expected)
    try:
        package = read_package(place)
    except ValueError:
        raise VerificationError(f"{NAME} is damaged; put it back") from None
    if "series" not in package:
        raise ConfigError.at("release.path", "a release that is no series", expected)
    return package


def _check_criteria(config: Config, package: Json) -> None:
    """Raise ConfigError if the config's criteria are looser than those of the last part."""
    if names := loosened(package.get("criteria", []), published_criteria(config), config):
        raise ConfigError.at("privacy", f"a looser {names[0]} than that of the parts", "the criteria of the series")


def _part(number: int, resources: list[Json]) -> PublishedPart:
    first = resources[0]
    gone = first.get("withdrawn_groups", 0)
    return PublishedPart(
        number=number, run="", files={name: digest for each in resources for name, digest in digests_of(each).items()},
        rows=first["rows"], individuals=first["rows"], groups=first["groups"] + gone, ids=NOBODY, resources=resources,
    )  # fmt: skip


def _with_withdrawn(part: PublishedPart, present: list[int]) -> PublishedPart:
    """Return a part with the numbers that its groups do not have, those of the groups that were withdrawn."""
    gone = sorted(set(range(part.groups)) - set(present))
    if len(gone) + len(present) != part.groups or len(gone) != part.resources[0].get("withdrawn_groups", 0):
        raise VerificationError(f"part {part.number} has other groups than {NAME} says")
    return part.model_copy(update={"withdrawn_groups": gone})


def _check_columns(config: Config, resource: Json) -> None:
    """Raise ConfigError if a file of a part has other columns than the config's parts, or another form."""
    fields, columns, release = resource["schema"]["fields"], config.columns, config.release
    tables = {"generalized": ["part"], "bucketized": ["qi", "sensitive"]}[release.form]
    roles = {role: [f["name"] for f in fields if f["role"] == role] for role in ROLES}
    wanted = {role: list(getattr(columns, name)) for role, name in ROLES.items()}
    table = resource["name"].partition("-")[0]
    absent = {"qi": ["sensitive"], "sensitive": ["quasi-identifier", "kept"]}.get(table, [])
    wanted |= {role: [] for role in absent}
    bounds = any(field["role"] == "bound" for field in fields)
    problems = [
        Problem(f"columns.{ROLES[role]}", "other columns than the parts have", "those of the parts")
        for role in ROLES
        if roles[role] != wanted[role]
    ]
    differs = {
        "form": table not in tables, "format": resource["format"] != release.format,
        "labels": ("cells" in resource) == exact_labels(config),
        "bounds": table != "sensitive" and bounds != release.bounds,
    }  # fmt: skip
    wrong = [name for name, wrong in differs.items() if wrong]
    problems += [
        Problem(f"release.{name}", "another setting than the parts have", "that of the parts") for name in wrong
    ]
    if problems:
        raise ConfigError(problems)
