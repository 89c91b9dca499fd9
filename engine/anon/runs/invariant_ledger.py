"""The ledger of a series that republishes its table whole (`release.series: {kind: invariant}`), in the folder `ledger`
of the run folder: the signature, which is the set of values of their groups, of every individual who was ever released.
Individuals are known by keyed hashes; a second hash, of the individual with the value, recognizes a changed value.

The run folder with its ledger and the release are put in place in one step, so that the ledger is that of the release
whenever a run is killed."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from anon.artifacts.reading import sealed
from anon.config import Config, Invariant
from anon.core import disk
from anon.core.database import Database, literal, translated
from anon.errors import ConfigError
from anon.runs.kinds import kinds_of
from anon.runs.previous_release import PreviousRelease, released_files
from anon.runs.series.ledger import check_empty, published_names
from anon.source import Source

LEDGER, SERIES, PEOPLE, SIGNATURES = "ledger", "series.json", "people.parquet", "signatures.parquet"
KNOWN = "ledger_people"  # the table of (name, held, signature)
FIELD = "release.series"


@dataclass(frozen=True)
class InvariantLedger:
    """The ledger before a run: the key, the number of releases, and the signatures as texts of values."""

    settings: dict[str, Any]  # what must not change within a series
    key: str = field(default_factory=lambda: secrets.token_hex(32))
    releases: int = 0
    signatures: list[tuple[str, ...]] = field(default_factory=list)

    @classmethod
    def open(cls, config: Config, source: Source) -> InvariantLedger:
        """Read the ledger at the config's place, and make the table of the individuals in it; a new ledger if there is
        no release yet. ConfigError if it is damaged, or that of another series."""
        settings, folder, database = _settings(config, source), config.release.run / LEDGER, source.database
        if not disk.exists(config.release.run):
            database.execute(f"CREATE TABLE {KNOWN} (name UBIGINT, held UBIGINT, signature BIGINT)")
            return cls(settings)
        found = _read(folder)
        for name, value in settings.items():
            if found["settings"].get(name) != value:
                wrong = f"{name} {value}, which was {found['settings'].get(name)} in the earlier releases"
                raise ConfigError.at(FIELD, wrong, "the same in all releases; a new series needs a new folder")
        with translated("reading the ledger", disk=True):
            people = f"read_parquet({literal(str(folder / PEOPLE))})"
            database.execute(f"CREATE TABLE {KNOWN} AS SELECT * FROM {people}")
            listed = pq.read_table(folder / SIGNATURES).sort_by("signature").column("values").to_pylist()
        return cls(settings, found["key"], found["releases"], [tuple(values) for values in listed])

    def write(self, folder: Path, database: Database, people: str, signatures: list[tuple[str, ...]]) -> None:
        """Write the ledger after a run: `people` is SQL for the individuals of the release, who are added to those that
        are known."""
        others = f"SELECT * FROM {KNOWN} ANTI JOIN ({people}) USING (name)"
        every = f"SELECT name, held, signature FROM ({people}) UNION ALL {others} ORDER BY name"
        with translated("writing the ledger", disk=True):
            folder.mkdir(mode=0o700)
            file = literal(str(folder / PEOPLE))
            database.execute(f"COPY ({every}) TO {file} (FORMAT parquet, COMPRESSION zstd)")
            pq.write_table(_numbered(signatures), folder / SIGNATURES)
            facts = {"settings": self.settings, "key": self.key, "releases": self.releases + 1}
            content = sealed(facts | {"files": disk.digests(folder)})
            (folder / SERIES).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _numbered(signatures: list[tuple[str, ...]]) -> pa.Table:
    """Return the table of signatures with the numbers by which people refer to them."""
    values = pa.array(signatures, pa.list_(pa.string()))
    return pa.table({"signature": pa.array(range(len(signatures)), pa.int64()), "values": values})


def replaces_own(config: Config, previous: PreviousRelease) -> bool:
    """Return whether a run of a series replaces nothing but its last release, of which there is a ledger. ConfigError
    if there is a release without one: the signatures of its people would not be kept."""
    if not disk.exists(config.release.run / LEDGER / SERIES):
        check_empty(config)
        return False
    if previous.manifest is None:
        return False
    return not published_names(config) or previous.manifest.release == released_files(config)


def _settings(config: Config, source: Source) -> dict[str, Any]:
    series, (sensitive,) = config.release.series, config.columns.sensitive
    assert isinstance(series, Invariant)
    known_by = {"individual": config.columns.individual, "kind of ids": kinds_of(config, source)}
    return {"m": series.m, **known_by, "sensitive": sensitive}


def _read(folder: Path) -> dict[str, Any]:
    """Return the content of series.json, if it and the files that it lists are as they were written."""
    expected = "the ledger that the last run of the series left, or a new folder for a new series"
    if not (folder / SERIES).is_file():
        raise ConfigError.at(FIELD, f"{folder.parent}, which belongs to no such series", expected)
    try:
        content = json.loads((folder / SERIES).read_text(encoding="utf-8"))
        facts = {name: value for name, value in content.items() if name != "sha256"}
        files = {name: digest for name, digest in disk.digests(folder).items() if name != SERIES}
        if sealed(facts) == content and files == facts["files"]:
            return facts
    except (OSError, ValueError, KeyError, AttributeError):
        pass
    raise ConfigError.at(FIELD, f"a damaged ledger in {folder}", expected)
