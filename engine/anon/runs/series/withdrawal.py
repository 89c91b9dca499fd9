"""Take individuals out of a series: whoever asks to be erased takes the whole group along, because the rest of it would
show by subtraction what was taken out. The other members are not released again. Whoever is in no part is not released
later either."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from anon.artifacts.ledger import Ledger, LedgerFile, PublishedPart
from anon.artifacts.reading import sealed_text
from anon.config import Config
from anon.core import disk
from anon.core.database import Database, file_list, literal, quote, translated
from anon.errors import VerificationError
from anon.release.files import write_tables
from anon.release.publication import ReplacedUpload, Step
from anon.release.series_package import NAME, paths_of, read_package, with_files, write_series_package
from anon.runs.run_folder import put_in_place
from anon.runs.scratch import at_hand
from anon.runs.series import hashes
from anon.runs.series import ledger as ledgers
from anon.runs.series.night import NOBODY, staged_ledger, step_of
from anon.runs.series.rows import TO_PARQUET
from anon.runs.workspace import Workspace

LEAVING, GROUPS = "leaving_individuals", "leaving_groups"
WRITING = "writing the series"


@dataclass
class Withdrawal:
    """Individuals who are taken out, and what goes with them."""

    config: Config
    before: Ledger
    database: Database
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return ledgers.folder_of(self.config)

    def look_up(self, ids: list[str]) -> dict[str, int]:
        """Return how many individuals are in parts, wait or are unknown, and how many groups and others go with
        them."""
        rows = [(who, *hashes.hash_of(self.before.key, who)) for who in sorted(set(ids))]
        schema = pa.schema([("who", pa.string()), ("hi", pa.uint64()), ("lo", pa.uint64())])
        with translated("looking up individuals in the ledger"):
            self.database.register("leaving", pa.table([list(column) for column in zip(*rows)], schema=schema))
            self.database.execute(f"CREATE TABLE {LEAVING} AS SELECT * FROM leaving")
            self.database.execute(f"CREATE TABLE {GROUPS} (part INTEGER, g UINTEGER)")
            for part in self.before.parts:
                known = f"read_parquet({file_list([self.folder / part.ids.name])})"
                own = f"SELECT DISTINCT {part.number}, g FROM {known} JOIN {LEAVING} USING (hi, lo)"
                gone = ", ".join(map(str, part.withdrawn_groups)) or "NULL"
                self.database.execute(f"INSERT INTO {GROUPS} {own} WHERE (g IN ({gone})) IS NOT TRUE")
        released, members = self._members()
        waiting = self._count_waiting()
        self.counts = {
            "individuals": len(rows), "in_parts": released, "waiting": waiting,
            "unknown": len(rows) - released - waiting, "groups": int(self._one(f"SELECT count(*) FROM {GROUPS}")),
            "others": members - released,
        }  # fmt: skip
        return self.counts

    def _one(self, sql: str) -> Any:
        return self.database.one(sql)[0]

    def _members(self) -> tuple[int, int]:
        """Return how many of the individuals are in groups that go, and how many are. In a ledger that was rebuilt, an
        individual may be in several groups."""
        own = [
            f"SELECT hi, lo FROM read_parquet({file_list([self.folder / part.ids.name])}) "
            f"WHERE g IN (SELECT g FROM {GROUPS} WHERE part = {part.number})"
            for part in self.before.parts
        ]
        if not own:
            return 0, 0
        members = f"SELECT DISTINCT hi, lo FROM ({' UNION ALL '.join(own)})"
        leaving = f"({members}) WHERE (hi, lo) IN (SELECT (hi, lo) FROM {LEAVING})"
        return self._one(f"SELECT count(*) FROM {leaving}"), self._one(f"SELECT count(*) FROM ({members})")

    def _waiting_rows(self) -> str:
        return f"read_parquet({file_list([self.folder / self.before.waiting.name])})"

    def _count_waiting(self) -> int:
        if not self.before.waiting.individuals:
            return 0
        who = f"CAST({quote(self.config.columns.individual)} AS VARCHAR)"
        own = f"SELECT count(DISTINCT {who}) FROM {self._waiting_rows()} WHERE {who} IN (SELECT who FROM {LEAVING})"
        return int(self._one(own))

    def carry_out(self, work: Workspace) -> None:
        """Write the parts without these groups and put them in place with the ledger that says so, all or none."""
        folder, place = staged_ledger(work), self.config.release.path
        needed = {name for part in self.before.parts if self._leaving(part) for name in part.files} | {NAME}
        source = at_hand(place, work.spill / "published", needed)
        with translated(WRITING, disk=True):
            parts = [self._without_groups(part, source, work.release) for part in self.before.parts]
            after = self.before.model_copy(
                update={
                    "night": self.before.night + 1, "parts": parts, "withdrawn": self._withdrawn(folder),
                    "waiting": self._still_waiting(folder), "seen": [],
                }
            )  # fmt: skip
            after = Ledger.model_validate(after.to_dict())
            if parts:
                write_series_package(work.release, read_package(source), [part.resources for part in parts])
            (folder / ledgers.LIST).write_text(sealed_text(after), encoding="utf-8")
        steps: list[Step] = [step_of(work.run, self.config.release.run, disk.digests(work.run))]
        if parts:
            digests = disk.digests(work.release)
            if isinstance(place, Path):
                steps.append(step_of(work.release, place, digests))
            else:  # first, because it may fail or take long
                steps.insert(0, ReplacedUpload(work.release, place, digests))
        put_in_place(work, tuple(steps))
        ledgers.remove_strangers(self.folder, after)

    def _withdrawn(self, folder: Path) -> LedgerFile:
        """Write the hashes of everybody who was taken out, so that nobody of them is released later."""
        name = f"withdrawn-{self.before.night + 1:06d}.parquet"
        earlier = self.before.withdrawn
        rows = f"SELECT hi, lo FROM {LEAVING}"
        if earlier.individuals:
            rows += f" UNION SELECT hi, lo FROM read_parquet({file_list([self.folder / earlier.name])})"
        self.database.execute(f"COPY ({rows} ORDER BY hi, lo) TO {literal(str(folder / name))} {TO_PARQUET}")
        people = self._one(f"SELECT count(*) FROM read_parquet({file_list([folder / name])})")
        return LedgerFile(name=name, individuals=people, sha256=disk.digest(folder / name))

    def _still_waiting(self, folder: Path) -> LedgerFile:
        if not self.counts["waiting"]:
            return self.before.waiting
        left = self.before.waiting.individuals - self.counts["waiting"]
        if not left:
            return NOBODY
        name = f"waiting-{self.before.night + 1:06d}.parquet"
        who = f"CAST({quote(self.config.columns.individual)} AS VARCHAR)"
        rows = f"SELECT * FROM {self._waiting_rows()} WHERE {who} NOT IN (SELECT who FROM {LEAVING})"
        self.database.execute(f"COPY ({rows}) TO {literal(str(folder / name))} (FORMAT parquet, COMPRESSION zstd)")
        return LedgerFile(name=name, individuals=left, sha256=disk.digest(folder / name))

    def _leaving(self, part: PublishedPart) -> set[int]:
        """Return the numbers of the groups of a part that go."""
        leaving = self.database.query(f"SELECT g FROM {GROUPS} WHERE part = {part.number}").fetchall()
        return {int(group) for (group,) in leaving}

    def _without_groups(self, part: PublishedPart, place: Path, folder: Path) -> PublishedPart:
        """Return a part without the groups that go, whose files are written into a folder; as it is if it has none."""
        gone = self._leaving(part)
        if not gone:
            return part
        files, resources = dict(part.files), []
        for resource in part.resources:
            fields = resource["schema"]["fields"]
            kept, rows = _Kept(part, gone, [f["name"] for f in fields if f["role"] == "quasi-identifier"]), 0
            paths = paths_of(resource)
            for path in paths:
                (folder / path).parent.mkdir(exist_ok=True)
                rows += (_copy_csv if path.endswith(".csv") else _copy_parquet)(place / path, folder / path, kept)
                files[path] = disk.digest(folder / path)
            kept.check()
            resources.append(with_files(resource, {path: files[path] for path in paths}) | {"rows": rows})
        withdrawn = sorted({*part.withdrawn_groups, *gone})
        left = part.groups - len(withdrawn)
        changed = {
            "files": files, "rows": resources[0]["rows"],
            "individuals": part.individuals - part.rows + resources[0]["rows"],  # a row each
            "withdrawn_groups": withdrawn,
            "resources": [each | {"groups": left, "withdrawn_groups": len(withdrawn)} for each in resources],
        }  # fmt: skip
        return PublishedPart.model_validate(part.to_dict() | changed)


class _Kept:
    """Says which rows of a table of a part stay, file after file. Rows of a table with the number of the group say so;
    otherwise groups are the runs of equal labels, in the order of their numbers."""

    def __init__(self, part: PublishedPart, gone: set[int], labels: list[str]) -> None:
        self.gone, self.labels = gone, labels
        self.remaining = [group for group in range(part.groups) if group not in set(part.withdrawn_groups)]
        self.run, self.last = -1, None  # type: int, tuple[Any, ...] | None

    def numbered(self, groups: list[int]) -> list[bool]:
        return [group not in self.gone for group in groups]

    def labelled(self, labels: Iterator[tuple[Any, ...]]) -> list[bool]:
        found = []
        for own in labels:
            self.run += own != self.last
            self.last = own
            if self.run >= len(self.remaining):
                raise VerificationError("a part has more groups than its ledger says; nothing was changed")
            found.append(self.remaining[self.run] not in self.gone)
        return found

    def check(self) -> None:
        if self.last is not None and self.run + 1 != len(self.remaining):
            raise VerificationError("a part has fewer groups than its ledger says; nothing was changed")


def _copy_parquet(file: Path, to: Path, kept: _Kept) -> int:
    """Copy the rows that stay; return how many."""
    source = pq.ParquetFile(file)
    rows = 0

    def tables() -> Iterator[pa.Table]:
        nonlocal rows
        for at in range(source.num_row_groups):
            table = source.read_row_group(at)
            if "group" in table.column_names:
                stays = kept.numbered(table.column("group").to_pylist())
            else:
                stays = kept.labelled(zip(*(table.column(name).to_pylist() for name in kept.labels)))
            left = table.filter(pa.array(np.array(stays, bool)))
            rows += left.num_rows
            if left.num_rows:
                yield left.combine_chunks()

    write_tables(to, source.schema_arrow, kept.labels, tables())
    return rows


def _copy_csv(file: Path, to: Path, kept: _Kept) -> int:
    """Copy the lines that stay as they are; return how many."""
    rows = 0
    with file.open(encoding="utf-8", newline="") as source, to.open("w", encoding="utf-8", newline="") as target:
        records = _records(source)
        header = next(records)
        target.write(header)
        names = next(csv.reader([header]))
        for record in records:
            cells = dict(zip(names, next(csv.reader(io.StringIO(record, newline="")))))
            if "group" in cells:
                (stays,) = kept.numbered([int(cells["group"])])
            else:
                (stays,) = kept.labelled(iter([tuple(cells[name] for name in kept.labels)]))
            rows += stays
            target.write(record if stays else "")
    return rows


def _records(lines: io.TextIOBase) -> Iterator[str]:
    """Yield the records of a CSV file as they are written; a quoted field may have line breaks."""
    record = ""
    for line in lines:
        record += line
        if record.count('"') % 2 == 0:
            yield record
            record = ""
