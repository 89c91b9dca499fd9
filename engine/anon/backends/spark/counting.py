"""Domains and records on a cluster: executors count the values of their rows, Spark adds the counts up by key, and the
driver makes the domains of them; then executors encode their rows, and keep the records on their disks, packed: a row
of Spark is a block of codes [columns, records], so that Spark moves few rows and never looks into one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anon.backends.spark import executors
from anon.backends.spark.failures import on_spark
from anon.backends.spark.source import SparkSource
from anon.core.arrays import Codes
from anon.cube import Cube, Encoder, RecordStore
from anon.cube.domain import CODES
from anon.cube.records import WIDE, Records
from anon.cube.value_counts import ValueCounts
from anon.errors import SourceError
from anon.source import Column, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

READING = "reading the source"
HELD = 1_000_000  # different values that a task holds before it hands them over
MOST = 2**32 - 1  # people that one record can stand for
RECORDS = pa.schema([("n", pa.int64()), ("codes", pa.binary())])


class SparkRecords(Records):
    """Records on the disks of executors, as packed rows; they cannot be read from here."""

    def __init__(self, frame: DataFrame, count: int, width: int) -> None:
        super().__init__(count, [WIDE] * width)
        self.frame = frame

    def fill(self, start: int, codes: NDArray[Any], columns: Any) -> None:
        raise NotImplementedError("records stay with the executors")

    def write(self, at: int, codes: NDArray[Any]) -> None:
        raise NotImplementedError("records stay with the executors")

    def close(self) -> None:
        self.frame.unpersist()


def unpacked(batches: Iterator[pa.RecordBatch], width: int) -> Iterator[Codes]:
    """Return the codes [columns, records] in batches of packed rows."""
    for batch in batches:
        for codes in batch.column("codes"):
            yield np.frombuffer(codes.as_buffer(), np.uint16).reshape(width, -1)


@dataclass(frozen=True)
class SparkRecordStore(RecordStore):
    """Counts values and makes records where the rows are."""

    def counts(self, source: Source, columns: list[Column]) -> list[ValueCounts]:
        assert isinstance(source, SparkSource)
        different = list({column.alias: column for column in columns}.values())
        types = source.types
        schema = pa.schema([("c", pa.int32()), *((c.alias, types[c.alias]) for c in different), ("n", pa.int64())])
        given = executors.Broadcast(source.spark, schema)
        names = [column.alias for column in different]
        counted = executors.map_rows(source.select(different), _counted_values, given, schema)
        frame = executors.on_disk(counted.groupBy("c", *names).sum("n").withColumnRenamed("sum(n)", "n"))
        distinct = executors.collect(frame.groupBy("c").count(), READING)
        sizes = dict(zip(distinct["c"].to_pylist(), distinct["count"].to_pylist()))
        few = [at for at in range(len(names)) if sizes[at] <= CODES]
        table = executors.collect(frame.where(frame["c"].isin(few)), READING)
        found = {}
        for at, name in enumerate(names):
            small = at in few
            found[name] = _few(source, table, at) if small else _binned(frame, name, at, sizes[at], types[name])
        frame.unpersist()
        self.on_progress(done=source.rows, of=2 * source.rows)
        return [found[column.alias] for column in columns]

    def combinations(self, source: Source, columns: list[Column]) -> tuple[int, pa.Table | None]:
        assert isinstance(source, SparkSource)
        names = [column.alias for column in columns]
        frame = source.select(columns).groupBy(*names).count().withColumnRenamed("count", "n")
        with on_spark(READING):
            distinct = frame.count()
        if distinct > CODES:
            return distinct, None
        schema = pa.schema([*((name, source.types[name]) for name in names), ("n", pa.int64())])
        return distinct, executors.collect(frame, READING).cast(schema).combine_chunks()

    def fill(self, cube: Cube, source: Source, encoder: Encoder) -> None:
        """Encode the rows as records; equal rows are counted if there must be enough of them to halve the table."""
        assert isinstance(source, SparkSource)
        cube.counted = 2 * prod(domain.size for domain in encoder.domains) <= source.rows
        width = len(cube.domains) + len(cube.others) + 2 * cube.counted
        names = [column.alias for column in encoder.columns]
        rows = source.frame_of_rows.selectExpr(*(f"{name} as r{at}" for at, name in enumerate(names)))
        if cube.counted:
            rows = rows.groupBy(*rows.columns).count()
        given = executors.Broadcast(source.spark, (encoder, width, cube.counted))
        frame = executors.on_disk(executors.map_rows(rows, _encoded, given, RECORDS))
        sums = executors.collect(frame.groupBy().sum("n"), READING)
        cube.records = SparkRecords(frame, int(sums[0][0].as_py()), width)
        if not cube.counted and cube.records.count != source.rows:
            raise SourceError("rows appeared or disappeared while the source was being read")
        self.on_progress(done=2 * source.rows, of=2 * source.rows)


def _counted_values(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the values of each column of the rows with how often they occur, every column's in rows of their own."""
    held: dict[int, list[pa.Table]] = {}
    for batch in batches:
        for at, values in enumerate(batch.columns):
            counted = values.value_counts()
            table = pa.table({"v": counted.field(0), "n": counted.field(1)})
            held.setdefault(at, []).append(table)
        if sum(table.num_rows for tables in held.values() for table in tables) > HELD:
            held = {at: [_added(tables)] for at, tables in held.items()}
            if sum(table.num_rows for tables in held.values() for table in tables) > HELD // 2:
                yield from _keyed(held, schema)
                held = {}
    yield from _keyed({at: [_added(tables)] for at, tables in held.items()}, schema)


def _added(tables: list[pa.Table]) -> pa.Table:
    summed = pa.concat_tables(tables).group_by("v").aggregate([("n", "sum")])
    return summed.select(["v", "n_sum"]).rename_columns(["v", "n"])


def _keyed(held: dict[int, list[pa.Table]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for at, tables in held.items():
        for batch in pa.concat_tables(tables).to_batches():
            columns = [pa.nulls(batch.num_rows, field.type) for field in schema]
            columns[0] = pa.array(np.full(batch.num_rows, at, np.int32))
            columns[1 + at], columns[-1] = batch.column("v"), batch.column("n")
            yield pa.record_batch(columns, schema=schema)


def _few(source: SparkSource, table: pa.Table, at: int) -> ValueCounts:
    kind = source.types[table.column_names[1 + at]]
    own = table.filter(pc.equal(table["c"], at)).select([1 + at, table.num_columns - 1]).rename_columns(["v", "n"])
    own = own.set_column(0, "v", own["v"].cast(kind))
    source.database.register("counted_values", own)
    ordered = source.query("SELECT v, n FROM counted_values ORDER BY v NULLS FIRST")
    source.database.unregister("counted_values")
    values = pa.concat_arrays(ordered["v"].chunks) if ordered.num_rows else pa.array([], kind)
    return ValueCounts(len(values), values, ordered["n"].to_numpy().astype(np.int64))


def _binned(frame: DataFrame, name: str, at: int, distinct: int, kind: pa.DataType) -> ValueCounts:
    """Return bins of a column with too many values, as the local engine makes them: a value belongs to the bin that
    the share of the rows below it has come to."""
    own = frame.where(frame["c"] == at).select(name, "n")
    null = executors.collect(own.where(own[name].isNull()).select("n"), READING)["n"].to_numpy()
    ordered = executors.on_disk(own.where(own[name].isNotNull()).repartitionByRange(name).sortWithinPartitions(name))
    spark = frame.sparkSession
    totals = pa.schema([("part", pa.int32()), ("n", pa.int64())])
    parts = executors.collect(
        executors.map_rows(ordered, _part_total, executors.Broadcast(spark, totals), totals), READING
    )
    people = dict(zip(parts["part"].to_pylist(), parts["n"].to_pylist()))
    before = {part: sum(n for other, n in people.items() if other < part) for part in people}
    bins = pa.schema([("bin", pa.int64()), ("v", kind), ("last", kind), ("n", pa.int64())])
    given = executors.Broadcast(spark, (before, sum(people.values()), bins))
    of_parts = executors.map_rows(ordered, _bins_of_part, given, bins)
    binned = of_parts.groupBy("bin").agg({"v": "min", "last": "max", "n": "sum"})
    table = executors.collect(binned.orderBy("bin"), READING)
    ordered.unpersist()
    first, last = (pa.concat_arrays(table[name].cast(kind).chunks) for name in ("min(v)", "max(last)"))
    rows = np.append(null, table["sum(n)"].to_numpy()).astype(np.int64)
    return ValueCounts(distinct, pa.nulls(len(null), kind), rows, first, last)


def _part() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())


def _part_total(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    total = sum(int(batch.column("n").to_numpy().sum()) for batch in batches)
    yield pa.record_batch([pa.array([_part()], pa.int32()), pa.array([total], pa.int64())], schema=schema)


def _bins_of_part(given: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the bins that some values, in order, belong to: the first and the last value of each here, and the
    rows."""
    before, total, schema = given
    below = before.get(_part(), 0)
    for batch in batches:
        if batch.num_rows:
            n = batch.column("n").to_numpy()
            bins = (below + np.cumsum(n) - n) * (CODES - 1) // total
            first = np.flatnonzero(np.append(True, bins[1:] != bins[:-1]))
            last = np.append(first[1:], len(n)) - 1
            ends = (batch.column(0).take(pa.array(places)) for places in (first, last))
            yield pa.record_batch([pa.array(bins[first]), *ends, pa.array(np.add.reduceat(n, first))], schema=schema)
            below += int(n.sum())


def _encoded(given: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return rows as packed records."""
    encoder, width, counted = given
    own = len(encoder.domains) + len(encoder.combinations)
    for batch in batches:
        codes = encoder.codes(batch, width - own)
        codes[own:] = 0  # the people, and the one value that everybody has without a sensitive column
        if counted:
            codes = _with_people(codes, batch.column(batch.num_columns - 1).to_numpy())
        yield from executors.packed([(codes.shape[1], codes.tobytes())], RECORDS)


def _with_people(codes: Codes, people: NDArray[np.int64]) -> Codes:
    """Return records with the people that each stands for; one that stands for too many becomes several."""
    times = -(-people // MOST)
    if (times > 1).any():
        codes = np.repeat(codes, times, axis=1)
        last = np.cumsum(times) - 1
        rest = np.full(codes.shape[1], MOST)
        rest[last] = people - (times - 1) * MOST
        people = rest
    codes = np.ascontiguousarray(codes)
    codes[-2], codes[-1] = people & 0xFFFF, people >> 16
    return codes
