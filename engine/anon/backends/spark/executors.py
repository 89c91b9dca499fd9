"""Sends work to the executors and brings back what it comes to: the one place where this engine and Spark's interface
meet. Work is a function of this package over Arrow batches; what it needs beside them is broadcast."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from anon.backends.spark.failures import on_spark, reporting
from anon.core.database import Database, connect

if TYPE_CHECKING:
    from pyspark.broadcast import Broadcast as SparkBroadcast
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
PACKED = 8  # rows of a batch where each row holds many records
TASK_MEMORY = 1_000_000_000  # bytes: the memory of the process of a task, by which DuckDB is limited
Work = Callable[[Any, Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

TYPES = {"int64": "bigint", "int32": "int", "double": "double", "date32[day]": "date", "bool": "boolean"}
TYPES |= {"string": "string", "binary": "binary", "timestamp[us]": "timestamp_ntz"}


def spark_type(kind: pa.DataType) -> str:
    """Return Spark's name of an Arrow type."""
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return "timestamp" if pa.types.is_timestamp(kind) and kind.tz else TYPES[str(kind)]


def ddl(schema: pa.Schema) -> str:
    """Return a schema of ours as Spark writes it.

    >>> ddl(pa.schema([("q0", pa.int64()), ("k0", pa.timestamp("us", "UTC"))]))
    '`q0` bigint, `k0` timestamp'
    """
    return ", ".join(f"`{field.name}` {spark_type(field.type)}" for field in schema)


def column(name: str) -> SparkColumn:
    """Return a column by its name, whatever it contains."""
    from pyspark.sql import functions

    return functions.col("`" + name.replace("`", "``") + "`")


_to_clear: ContextVar[list[Callable[[], Any]]] = ContextVar("_to_clear")


@contextmanager
def cleared() -> Iterator[None]:
    """Remove what is put on the disks of executors meanwhile, whatever happens: the session may outlive the run, and
    it is personal data."""
    token = _to_clear.set([])
    try:
        yield
    finally:
        for clear in _to_clear.get():
            with suppress(Exception):  # a cluster that is gone holds nothing
                clear()
        _to_clear.reset(token)


class Broadcast:
    """What work needs, broadcast: sent once to each executor, and read once by each of its processes."""

    def __init__(self, spark: SparkSession, content: Any) -> None:
        from pyspark import cloudpickle

        pickled = cloudpickle.dumps(content)
        self.key, self.size = uuid.uuid4().hex, len(pickled)
        with on_spark("sending work to the executors"):
            self.broadcast: SparkBroadcast[bytes] = spark.sparkContext.broadcast(pickled)
        _to_clear.get().append(self.broadcast.destroy)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Received, (self.key, self.broadcast)


class _Received:
    """The same on an executor, whose processes do one task after the other and keep what they read last."""

    last: ClassVar[tuple[str, Any]] = ("", None)

    def __init__(self, key: str, broadcast: SparkBroadcast[bytes]) -> None:
        self.key, self.broadcast = key, broadcast

    @property
    def content(self) -> Any:
        from pyspark import cloudpickle

        if _Received.last[0] != self.key:
            _Received.last = self.key, cloudpickle.loads(self.broadcast.value)
        return _Received.last[1]


def map_rows(frame: DataFrame, work: Work, given: Broadcast, schema: pa.Schema) -> DataFrame:
    """Return rows of another schema from those of a frame, made by work(what was given, batches)."""
    return frame.mapInArrow(partial(_do, reporting(work), given), ddl(schema))


def add_text(frame: DataFrame, name: str, work: Work, given: Broadcast) -> DataFrame:
    """Return the rows of a frame with one more column, of text, as work adds it."""
    from pyspark.sql.types import StringType, StructType

    schema = StructType([*frame.schema.fields]).add(name, StringType())
    return frame.mapInArrow(partial(_do, reporting(work), given), schema)


def _do(work: Work, given: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from work(given.content, batches)


def collect(frame: DataFrame, what: str, rows: int | None = None) -> pa.Table:
    """Return the rows of a frame; `rows`: how many of them go into a batch between Spark and Python."""
    spark = frame.sparkSession
    with on_spark(what), batches_of(spark, rows):
        spark.sparkContext.setJobDescription(f"anon: {what}")
        return frame.toArrow()


@contextmanager
def batches_of(spark: SparkSession, rows: int | None) -> Iterator[None]:
    """Set the size of batches for queries that are begun meanwhile."""
    before = spark.conf.get(BATCH)
    if rows is not None:
        spark.conf.set(BATCH, str(rows))
    try:
        yield
    finally:
        spark.conf.set(BATCH, str(before))


def on_disk(frame: DataFrame) -> DataFrame:
    """Keep a frame on the disks of the executors; what is lost there is computed again."""
    from pyspark import StorageLevel

    _to_clear.get().append(frame.unpersist)
    return frame.persist(StorageLevel.DISK_ONLY)


@contextmanager
def task_database() -> Iterator[Database]:
    """Open DuckDB in a task of an executor. It spills to the disks that Spark has there, where the cluster removes
    what a task left that was killed."""
    disk = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or None
    with (
        TemporaryDirectory(prefix="anon-", dir=disk) as folder,
        closing(connect(TASK_MEMORY, 1, Path(folder))) as database,
    ):
        yield database


def packed(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Return rows as batches of one row each: for rows that hold much."""
    for row in rows:
        yield pa.record_batch([pa.array([value], field.type) for value, field in zip(row, schema)], schema=schema)
