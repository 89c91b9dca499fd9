"""The rows of a night where a backend holds them, and what the ledger keeps of them: who is in which group of the part,
and the rows of those who wait. `DatabaseRows` has them in tables of DuckDB."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anon.core.database import Database, causes, fed, file_list, literal, quote
from anon.cube import Encoder
from anon.recoding.assignment import Assignment
from anon.recoding.outcome import Outcome
from anon.recoding.refined import RefinedRecoding
from anon.release import WrittenRelease
from anon.runs.series import hashes
from anon.source import Column, Source

# Tables of a night; those of `who` have the texts of individuals. They are in a file of the spill: the search leaves
# the database at rest no memory for tables.
ON_DISK = "series_on_disk"
IDS = f"{ON_DISK}.ids"  # everybody in the source or waiting: who, and both halves of the hash
NEW_ROWS, WAITING_ROWS = f"{ON_DISK}.new_rows", f"{ON_DISK}.waiting_rows"  # of those who were not released
PLACED, LEFT = f"{ON_DISK}.placed", f"{ON_DISK}.left_out"  # hashes with their groups; who is in none
TO_PARQUET = "(FORMAT parquet, COMPRESSION uncompressed)"  # hashes do not become smaller
READ = 65_536  # rows
SCHEMA = pa.schema([("who", pa.string()), ("g", pa.int64())])


class NightRows(ABC):
    """The rows that a night can publish. The group of everybody is found before anything is saved."""

    @abstractmethod
    def place(self, source: Source, finder: GroupFinder) -> None:
        """Find the group of every individual of the source."""

    @abstractmethod
    def leave(self, source: Source) -> None:
        """Note that no individual of the source is in a group."""

    @abstractmethod
    def save_ids(self, file: Path) -> int:
        """Write the keyed hashes of those who are in a group with its number, in the order of the hashes, which says
        nothing about people; return how many there are."""

    @abstractmethod
    def save_waiting(self, file: Path, alone: bool) -> int:
        """Write the rows of those who are in no group, if there are any; return how many individuals they are of.
        `alone`: those who waited were not tried, and wait on."""


@dataclass(frozen=True)
class GroupFinder:
    """Finds the groups of rows by their quasi-identifiers: the numbers that they have in the files of a part, -1 for
    rows in none."""

    encoder: Encoder
    recoding: Any
    number: NDArray[np.int64]

    @classmethod
    def from_outcome(cls, columns: list[Column], outcome: Outcome, written: WrittenRelease) -> GroupFinder:
        recoding = outcome.recoding
        assert not isinstance(recoding, Assignment | RefinedRecoding), "a series is made by partition, without refine"
        number = np.arange(recoding.groups) if written.number is None else written.number
        return cls(Encoder(columns, recoding.domains), recoding, np.append(number, -1).astype(np.int64))

    @property
    def aliases(self) -> list[str]:
        return [column.alias for column in self.encoder.columns]

    def groups(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the groups of rows of the quasi-identifiers."""
        group = self.recoding.assign(self.encoder.codes(batch))
        return pa.array(self.number[np.minimum(group, self.recoding.groups)])


@dataclass(frozen=True)
class DatabaseRows(NightRows):
    """The rows of a night in a database that has the tables of its pool."""

    database: Database
    individual: str  # the column
    key: str  # of the hashes

    def place(self, source: Source, finder: GroupFinder) -> None:
        own = ", ".join(finder.aliases)
        rows = f"SELECT CAST(who AS VARCHAR) AS who, {own} FROM {source.used_rows}"
        if source.multiplicity != "single":
            first = ", ".join(f"first({alias})" for alias in finder.aliases)
            rows = f"SELECT CAST(who AS VARCHAR) AS who, {first} FROM {source.used_rows} GROUP BY 1"
        failures = list[BaseException]()

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in source.rows_of(rows, source.within(READ, finder.aliases)):
                groups = finder.groups(batch.select(range(1, batch.num_columns)))
                yield pa.record_batch([batch.column(0).cast(pa.string()), groups], schema=SCHEMA)

        with closing(self.database.cursor()) as database, causes(failures):
            database.register("series_stream", fed(SCHEMA, batches(), failures))
            hashes.set_key(database, self.key)
            hashed = (
                f"SELECT CASE WHEN g < 0 THEN who END AS who, {hashes.hashed('who')} AS digest, g FROM series_stream"
            )
            database.execute(f"CREATE TABLE {PLACED} AS SELECT who, {hashes.halves('digest')}, g FROM ({hashed})")
        self.database.execute(f"CREATE TABLE {LEFT} AS SELECT who FROM {PLACED} WHERE g < 0")

    def leave(self, source: Source) -> None:
        self.database.execute(f"CREATE TABLE {LEFT} AS SELECT DISTINCT CAST(who AS VARCHAR) AS who FROM kept_rows")

    def save_ids(self, file: Path) -> int:
        return save_ids(self.database, f"SELECT hi, lo, g FROM {PLACED} WHERE g >= 0", file)

    def save_waiting(self, file: Path, alone: bool) -> int:
        left = f" WHERE CAST({quote(self.individual)} AS VARCHAR) IN (SELECT who FROM {LEFT})"
        waited = "" if alone else left
        waits = f"SELECT * FROM {NEW_ROWS}{left} UNION ALL SELECT * FROM {WAITING_ROWS}{waited}"
        return save_waiting(self.database, waits, self.individual, file)


def save_ids(database: Database, rows: str, file: Path) -> int:
    """Write the halves of hashes with their groups as the ledger has them; return how many there are."""
    ordered = f"SELECT hi, lo, g::UINTEGER AS g FROM ({rows}) ORDER BY hi, lo"
    database.execute(f"COPY ({ordered}) TO {literal(str(file))} {TO_PARQUET}")
    return int(database.one(f"SELECT count(*) FROM read_parquet({file_list([file])})")[0])


def save_waiting(database: Database, rows: str, individual: str, file: Path) -> int:
    """Write rows as the ledger has them, if there are any; return how many individuals they are of."""
    people = int(database.one(f"SELECT count(DISTINCT {quote(individual)}) FROM ({rows})")[0])
    if people:
        database.execute(f"COPY ({rows}) TO {literal(str(file))} (FORMAT parquet, COMPRESSION zstd)")
    return people
