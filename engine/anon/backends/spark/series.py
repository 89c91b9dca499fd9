"""The rows of a night of a series on a cluster. The ledger is files of the driver; what the two exchange are files in
the private folder beside the release, which both see: the driver writes the hashes of the ledger and the rows that
waited, the executors the hashes of those who are in a group, and the rows of those who wait. The key of the hashes
reaches the executors in a broadcast, as rows do, and stands in no query."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from anon.backends.spark import executors
from anon.backends.spark.failures import on_spark
from anon.backends.spark.parts import explained, refuse_unseen
from anon.backends.spark.rows import READING
from anon.backends.spark.source import SparkSource
from anon.config import Columns
from anon.core.database import Database, file_list, literal, quote, translated
from anon.runs.series import hashes
from anon.runs.series.pool import LOOKING, NobodyNew, Pool, PoolCounts
from anon.runs.series.rows import GroupFinder, NightRows, save_ids, save_waiting
from anon.source import Source, describe, individual_sql

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

HASH = "hash"  # of whom a row is about; the columns of the source are c0, c1, ...
OF_PEOPLE = pa.schema([(HASH, pa.string())])
IN_GROUPS = pa.schema([(HASH, pa.string()), ("g", pa.int64())])
FILES = pa.schema([("name", pa.string())])
SAVING = "writing the ledger"


@dataclass
class SparkRows(NightRows):
    """The rows of one night."""

    database: Database
    columns: Columns
    pool: Pool
    folder: Path  # that driver and executors share, and nobody else may use
    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))  # of the rows, as the local engine sees them
    rows: DataFrame | None = None  # of those who were not released, with the hash and whether they waited
    placed: tuple[DataFrame, GroupFinder] | None = None  # who are in a group, with their quasi-identifiers
    left: DataFrame | None = None  # the hashes of those who are in none

    def narrowed(self, source: DataFrame, schema: pa.Schema) -> DataFrame:
        """Return the rows that the night can publish: what Pool.register does on one machine, by hashes."""
        pool, types = self.pool, describe(self.database, "raw_rows")
        pool.check_kind(types[self.columns.individual])
        self.schema = pa.schema([schema.field(name) for name in source.columns])
        hashed = executors.on_disk(self._hashed(source, types))
        people = executors.on_disk(self._people(hashed))
        pool.rows, pool.counts = self, _counts(people)
        self.rows = executors.on_disk(_not_released(hashed, people))
        tried = self._tried(self.rows)
        with on_spark(LOOKING):
            if not pool.size and tried.isEmpty():  # there may be rows about nobody
                raise NobodyNew
        return tried.select(*self._neutral).toDF(*self.schema.names)

    @property
    def _neutral(self) -> list[str]:
        return [f"c{at}" for at in range(len(self.schema))]

    def _tried(self, rows: DataFrame) -> DataFrame:
        return rows.where("NOT waited") if self.pool.alone else rows

    def _hashed(self, source: DataFrame, types: dict[str, str]) -> DataFrame:
        """Return the rows of the source and those that waited, with whether they are in the source, and the hash."""
        here = source.toDF(*self._neutral).withColumn("here", _flag(True))
        every = here.unionAll(self._waiting(source, types).withColumn("here", _flag(False)))
        name = self.columns.individual
        who = Who(self.schema.get_field_index(name), self.schema.field(name), str(individual_sql(self.columns, types)))
        given = executors.Broadcast(source.sparkSession, (self.pool.ledger.key, who))
        return executors.add_text(every, HASH, _with_hashes, given)

    def _waiting(self, source: DataFrame, types: dict[str, str]) -> DataFrame:
        """Return the rows that waited, in the types of the source."""
        if not self.pool.ledger.waiting.individuals:
            return source.limit(0).toDF(*self._neutral)
        query = f"SELECT * FROM {self.pool.waiting(source.columns, types)}"
        rows = self._from_driver("waiting", query, source).toDF(*self._neutral)
        return rows.select(*(rows[name].cast(kind.dataType) for name, kind in zip(self._neutral, source.schema.fields)))

    def _people(self, hashed: DataFrame) -> DataFrame:
        """Return the hashes of everybody, each with whether it is in the source, waited, and was released before."""
        from pyspark.sql import functions

        known = self._from_driver("known", f"SELECT {hashes.joined()} AS {HASH} FROM ({self.pool.known})", hashed)
        night = hashed.where(f"{HASH} IS NOT NULL").select(HASH, "here", ~hashed["here"], _flag(False))
        every = night.unionAll(known.select(HASH, _flag(False), _flag(False), _flag(True)))
        names = ("in_source", "waited", "released")
        each = every.toDF(HASH, *names).groupBy(HASH)
        return each.agg(*(functions.max(name).alias(name) for name in names))

    def _from_driver(self, name: str, query: str, other: DataFrame) -> DataFrame:
        """Return the result of a query of the driver's database as a frame, in the session of another."""
        file = self.folder / f"{name}.parquet"
        with translated(LOOKING, disk=True):
            self.database.execute(f"COPY ({query}) TO {literal(str(file))} (FORMAT parquet)")
        with on_spark(LOOKING):
            return other.sparkSession.read.parquet(f"file://{file.resolve()}")

    def place(self, source: Source, finder: GroupFinder) -> None:
        assert not finder.recoding.suppressed, "partition puts everybody into a group"
        self.placed = _people_of(source, finder.aliases), finder

    def leave(self, source: Source) -> None:
        people = _people_of(source, [])
        given = executors.Broadcast(people.sparkSession, self.pool.ledger.key)
        self.left = executors.map_rows(people, _in_none, given, OF_PEOPLE)

    def save_ids(self, file: Path) -> int:
        assert self.placed is not None
        people, finder = self.placed
        rows = self._saved(people, "ids", IN_GROUPS, (_in_groups, (self.pool.ledger.key, finder)))
        return save_ids(self.database, f"SELECT {hashes.halves(HASH)}, g FROM {rows}", file)

    def save_waiting(self, file: Path, alone: bool) -> int:
        assert self.rows is not None
        waits = []
        if self.left is not None:
            waits.append(self._tried(self.rows).join(self.left.distinct(), HASH, "left_semi"))
        if alone:
            waits.append(self.rows.where("waited"))
        if not waits:
            return 0
        every = reduce(lambda one, other: one.unionAll(other), [frame.select(*self._neutral) for frame in waits])
        rows = self._saved(every, "rows", self.schema)
        return save_waiting(self.database, f"SELECT * FROM {rows}", self.columns.individual, file)

    def _saved(
        self, frame: DataFrame, name: str, schema: pa.Schema, made: tuple[executors.Work, Any] | None = None
    ) -> str:
        """Have the executors write a frame, or what work with what it needs makes of it; return the SQL of the rows for
        the driver."""
        folder = self.folder / name
        folder.mkdir(mode=0o700)
        pq.write_table(schema.empty_table(), folder / "none.parquet")
        given = executors.Broadcast(frame.sparkSession, (str(folder), schema, made))
        table = executors.collect(executors.map_rows(frame, _write, given, FILES), SAVING)
        files = [folder / written for written in table["name"].to_pylist()]
        refuse_unseen(files)
        return f"read_parquet({file_list([folder / 'none.parquet', *files])})"


def _people_of(source: Source, aliases: list[str]) -> DataFrame:
    """Return `who` each row that is used is about, with some columns."""
    assert isinstance(source, SparkSource) and source.named_rows is not None
    return source.named_rows.select("who", *aliases)


def _flag(value: bool) -> SparkColumn:
    from pyspark.sql import functions

    return functions.lit(value)


def _counts(people: DataFrame) -> PoolCounts:
    kinds = ("in_source AND NOT released AND NOT waited", "waited AND NOT released", "in_source AND released")
    with on_spark(LOOKING):
        (row,) = people.selectExpr(*(f"count_if({kind})" for kind in kinds)).collect()
    return PoolCounts(*row)


def _not_released(hashed: DataFrame, people: DataFrame) -> DataFrame:
    """Return the rows of those who were not released, with whether they waited; of those who waited and are in the
    source again those of the source. Rows about nobody stay: the checks of the source are about these."""
    joined = hashed.join(people, HASH, "left")
    kept = joined.where("NOT coalesce(released, false) AND (here OR NOT in_source)")
    return kept.withColumn("waited", kept["waited"].isNotNull() & kept["waited"]).drop("here", "in_source", "released")


# On the executors.


@dataclass(frozen=True)
class Who:
    """Where a row says whom it is about: the place of the column, what it is on one machine, and the SQL of the id."""

    place: int
    column: pa.Field
    sql: str

    def ids(self, batch: pa.RecordBatch) -> pa.Table:
        return pa.table([batch.column(self.place).cast(self.column.type)], names=[self.column.name])


def _hashes(database: Database, ids: pa.Table, sql: str) -> pa.Array:
    """Return the first half of the keyed hash of each id, null for null."""
    at = f"{ids.column_names[0]}_at"
    database.register("ids", ids.append_column(at, pa.array(range(ids.num_rows), pa.int64())))
    texts = f"SELECT CAST({sql} AS VARCHAR) AS who, {quote(at)} AS place FROM ids"
    with translated(READING):
        found = database.query(f"SELECT {hashes.first_128(hashes.hashed('who'))} AS h FROM ({texts}) ORDER BY place")
        return pa.concat_arrays(found.to_arrow_table()["h"].cast(pa.string()).chunks)


def _with_hashes(given: tuple[str, Who], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    key, who = given
    with executors.task_database() as database:
        hashes.set_key(database, key)
        for batch in batches:
            if batch.num_rows:
                yield batch.append_column(HASH, _hashes(database, who.ids(batch), who.sql))


def _in_groups(given: tuple[str, GroupFinder], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the hashes of people with the numbers of their groups."""
    key, finder = given
    with executors.task_database() as database:
        hashes.set_key(database, key)
        for batch in batches:
            if batch.num_rows:
                people = _hashes(database, pa.table({"who": batch.column(0)}), "who")
                groups = finder.groups(batch.select(range(1, batch.num_columns)))
                yield pa.record_batch([people, groups], schema=IN_GROUPS)


def _in_none(key: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the hashes of people."""
    with executors.task_database() as database:
        hashes.set_key(database, key)
        for batch in batches:
            if batch.num_rows:
                people = _hashes(database, pa.table({"who": batch.column(0)}), "who")
                yield pa.record_batch([people], schema=OF_PEOPLE)


def _write(given: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write the rows of a task, or what is made of them, into a file; yield its name when it is whole."""
    folder, schema, made = given
    if made is not None:
        work, own = made
        batches = work(own, batches)
    held = (batch for batch in batches if batch.num_rows)
    if (first := next(held, None)) is None:
        return
    name = f"{uuid.uuid4().hex}.parquet"
    with explained(), closing(pq.ParquetWriter(Path(folder) / name, schema)) as file:
        file.write_table(_as(schema, first))
        for batch in held:
            file.write_table(_as(schema, batch))
    yield pa.record_batch([pa.array([name])], schema=FILES)


def _as(schema: pa.Schema, batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([batch]).rename_columns(schema.names).cast(schema)
