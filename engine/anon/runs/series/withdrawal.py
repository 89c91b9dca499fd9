"""Take individuals out of a series: with somebody who asks to be erased goes the whole group, because the rest of it
would show by subtraction what was taken out. The other members are not released again. Those who are in no part are
not released later either."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from anon.artifacts.ledger import Ledger, LedgerFile, PublishedPart
from anon.artifacts.reading import sealed_text
from anon.config import Config
from anon.core import disk
from anon.core.database import Database, file_list, literal, quote, translated
from anon.errors import VerificationError
from anon.release.publication import ReplacedUpload, Step
from anon.release.series_package import NAME, paths_of, read_package, with_files, write_series_package
from anon.runs.run_folder import put_in_place
from anon.runs.scratch import at_hand
from anon.runs.series import hashes
from anon.runs.series import ledger as ledgers
from anon.runs.series.kept_rows import KeptRows, copy_kept
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
        """Return how many individuals are in parts, wait, were withdrawn before or are unknown, and how many groups and
        others go with them."""
        rows = [(who, *hashes.hash_of(self.before.key, who)) for who in self._texts(ids)]
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
        waiting, in_ledger = self._count_waiting(), self._count_known()
        self.counts = {
            "individuals": len(rows), "in_parts": released, "waiting": waiting,
            "withdrawn_before": in_ledger - released,
            "unknown": len(rows) - in_ledger - waiting, "groups": int(self._one(f"SELECT count(*) FROM {GROUPS}")),
            "others": members - released,
        }  # fmt: skip
        return self.counts

    def _texts(self, ids: list[str]) -> list[str]:
        """Return the different ids of a list as the source writes them, sorted."""
        with translated("reading the list of individuals"):
            self.database.register("named", pa.table({"who": pa.array(ids, pa.string())}))
            rows = self.database.query(f"SELECT DISTINCT {_as_written(self.before.individual)} FROM named").fetchall()
        return sorted(who for (who,) in rows)

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

    def _count_known(self) -> int:
        """Return how many of the individuals are in parts, or were taken out before."""
        files = [self.folder / file.name for file in self.before.known if file.individuals]
        if not files:
            return 0
        own = f"SELECT DISTINCT hi, lo FROM read_parquet({file_list(files)}) SEMI JOIN {LEAVING} USING (hi, lo)"
        return int(self._one(f"SELECT count(*) FROM ({own})"))

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
            kept, paths = KeptRows(part, gone, resource["schema"]["fields"]), paths_of(resource)
            for path in paths:
                (folder / path).parent.mkdir(exist_ok=True)
                copy_kept(place / path, folder / path, kept)
                files[path] = disk.digest(folder / path)
            kept.check()
            self._check_removed(part, gone, kept.removed)
            rows = resource["rows"] - kept.left_out
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

    def _check_removed(self, part: PublishedPart, gone: set[int], removed: int) -> None:
        """Raise VerificationError unless the groups that go have just the members that they have in the ledger. A
        rebuilt ledger has everybody who may be in a group, so that fewer may be in it."""
        known = f"read_parquet({file_list([self.folder / part.ids.name])})"
        members = self._one(f"SELECT count(*) FROM {known} WHERE g IN ({', '.join(map(str, gone))})")
        rebuilt = not part.run
        if not (len(gone) <= removed <= members if rebuilt else removed == members):
            found = f"part {part.number} has {removed:,} individuals in the groups that go, and its ledger {members:,}"
            raise VerificationError(f"{found}; nothing was changed")


def _as_written(kind: str) -> str:
    """Return SQL for the text that the id `who` of a list has in a source whose ids are of a kind: 3 is 3.0 among
    numbers with a point. What is not of this kind stays as it is, and is unknown.

    >>> import duckdb
    >>> for kind in ("whole numbers", "text", "DOUBLE", "DECIMAL(9,2)"):
    ...     rows = duckdb.sql(f"SELECT {_as_written(kind)} FROM (VALUES ('03'), ('3.0'), ('3.005'), ('x')) AS t(who)")
    ...     print([text for (text,) in rows.fetchall()])
    ['3', '3', '3.005', 'x']
    ['03', '3.0', '3.005', 'x']
    ['3.0', '3.0', '3.005', 'x']
    ['3.00', '3.00', '3.005', 'x']
    """
    if kind in ("", "text"):
        return "who"
    whole = kind == "whole numbers"
    own = f"TRY_CAST(who AS {'HUGEINT' if whole else kind})"
    exact = f"TRY_CAST(who AS DOUBLE) = CAST({own} AS DOUBLE)" if whole or kind.startswith("DECIMAL") else "true"
    return f"coalesce(CASE WHEN {exact} THEN CAST({own} AS VARCHAR) END, who)"
