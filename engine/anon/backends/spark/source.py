"""The source on a cluster: a Parquet folder, a table of the session's catalog or a DataFrame, as rows in canonical
types under neutral names. The types and the checks are those of the local engine (anon.source): its SQL runs in DuckDB,
here over an empty table of the same columns, on the executors over batches of rows. This is where identifiers stop."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb
import pyarrow as pa

from anon.backends.spark import spread
from anon.backends.spark.failures import on_spark
from anon.backends.spark.session import is_frame
from anon.config import Columns, Config
from anon.core.database import translated
from anon.errors import ConfigError, SourceError
from anon.source import Column, Source, check_present, describe, individual_sql, register_files
from anon.source.checks import repeated_identifiers
from anon.source.left_out import LeftOut, count_left_out
from anon.source.origins import Files, Origin
from anon.source.persons import attributes_of, person_keys
from anon.source.rows import check_rows, create_views, typed_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ASKED = re.compile(r"SELECT count\(\*\) FROM raw_rows WHERE ")
LISTED = re.compile(r"SELECT v FROM \(SELECT DISTINCT .* LIMIT (\d+)\) ORDER BY v", re.DOTALL)
COUNTS = pa.schema([("question", pa.int32()), ("n", pa.int64())])
READING = "reading the source"
R = TypeVar("R")


@dataclass
class SparkSource(Source):
    """The rows of a source that are on a cluster. `con` has a view of the same columns without a row."""

    frame_of_rows: DataFrame = field(kw_only=True)

    @property
    def spark(self) -> SparkSession:
        return self.frame_of_rows.sparkSession

    def select(self, columns: list[Column]) -> DataFrame:
        return self.frame_of_rows.select(*(column.alias for column in columns))

    def distinct(self, column: Column, most: int) -> pa.ChunkedArray:
        return spread.collect(self.select([column]).distinct().limit(most), READING)[0]

    def rows_with(self, column: Column, values: pa.Array) -> int:
        with on_spark(READING):
            named = self.spark.createDataFrame(pa.table({column.alias: values}))
            return int(self.select([column]).join(named, column.alias, "left_semi").count())

    def close(self) -> None:
        self.frame_of_rows.unpersist()


class OnCluster(Origin):
    """A table that only the cluster can read, so that nothing here tells whether it is still the same."""

    def __init__(self, table: Any) -> None:
        self.table, self.marks = table, []

    def register(self, con: duckdb.DuckDBPyConnection, name: str, columns: Columns, spill: Path) -> None:
        raise NotImplementedError("rows stay with the executors")


def origin_of(config: Config, table: Any) -> Origin:
    """Where the rows come from: files that the driver sees too, or anything else that Spark reads."""
    path = config.source.path
    return Files(str(path)) if table is None and path is not None and "://" not in str(path) else OnCluster(table)


def open_source(spark: SparkSession, con: duckdb.DuckDBPyConnection, config: Config, origin: Origin) -> SparkSource:
    """Opens the config's source, or the DataFrame in its place, and checks it against the config."""
    raw, schema = _raw(spark, con, config, origin)
    con.register("raw_rows", schema.empty_table())
    types = describe(con, "raw_rows")
    check_present(config.columns, types, raw.columns)
    with on_spark(READING):
        total = raw.count()
    if not total:
        raise SourceError("the table has no rows")
    columns = _typed(raw, con, config, types, schema)
    create_views(con, config.nulls, columns, _who(config, types))
    every = [column for role in columns for column in role]
    labels = {name: con.sql(f"SELECT * FROM {name}").to_arrow_table() for name in _label_tables(con)}
    given = spread.Broadcast(spark, (schema, config.nulls, columns, _who(config, types), labels))
    used = raw.select(*(spread.column(name) for name in schema.names if name in _used(config)))
    view = con.sql(f"SELECT * FROM {Source.VIEW}").to_arrow_table().schema
    rows = spread.on_disk(spread.map_rows(used, _rows, given, view))
    quasi_identifiers, sensitive, keep = columns
    with on_spark(READING):
        count = rows.count()
    left_out = _left_out(con, used, given, _who(config, types) is not None) if count < total else LeftOut()
    source = SparkSource(con, quasi_identifiers, sensitive, keep, count, left_out, origin, frame_of_rows=rows)
    _check(source, config, types, used, given, every)
    if config.columns.individual == "row":
        _find_persons(source, config, raw, total)
    return source


def _find_persons(source: SparkSource, config: Config, raw: DataFrame, rows: int) -> None:
    """Find rows of one person, as the local engine does, in the columns as Spark reads them."""
    columns = config.columns
    names = [*columns.identifiers, *columns.quasi_identifiers, *columns.keep]
    sql = {name: f"c{at}" for at, name in enumerate(names)}
    cells = {name: spread.column(name) for name in names}
    cells |= {name: cells[name].cast("string") for name in columns.identifiers}  # of any type
    con: Any = SparkSql(source.spark)
    kinds = {column.name: column.kind for column in [*source.quasi_identifiers, *source.keep]}
    with as_view(raw.select(*(cells[name].alias(own) for name, own in sql.items()))) as view:
        source.repeated = repeated_identifiers(con, view, {name: sql[name] for name in columns.identifiers}, rows)
        source.persons = person_keys(con, view, attributes_of(columns, kinds, sql), sample=False)


def _left_out(con: duckdb.DuckDBPyConnection, used: DataFrame, given: spread.Broadcast, by_person: bool) -> LeftOut:
    """Count what null values leave out."""
    schema = con.sql(f"SELECT * FROM {Source.NULLS}").to_arrow_table().schema
    sql: Any = SparkSql(used.sparkSession)
    with as_view(spread.map_rows(used, _null_values, given, schema)) as view:
        return count_left_out(sql, view, by_person)


@contextmanager
def as_view(frame: DataFrame) -> Iterator[str]:
    """Give a frame a name in Spark's SQL for a while."""
    name = f"anon_{uuid.uuid4().hex}"
    frame.createOrReplaceTempView(name)
    try:
        yield name
    finally:
        frame.sparkSession.catalog.dropTempView(name)


def _raw(
    spark: SparkSession, con: duckdb.DuckDBPyConnection, config: Config, origin: Origin
) -> tuple[DataFrame, pa.Schema]:
    """The table as Spark reads it, and its columns as the local engine would see them."""
    if isinstance(origin, Files):
        if any(path.suffix.lower() == ".csv" for path in origin.files):
            found, expected = "CSV files with backend spark", "Parquet files"
            raise ConfigError.at("source.path", found, expected, "backend local reads CSV")
        register_files(con, "source_files", origin.files, origin.files[0])
        with translated(READING):
            schema = con.sql("SELECT * FROM source_files LIMIT 0").to_arrow_table().schema
        with on_spark(READING):
            return spark.read.parquet(*(f"file://{path.resolve()}" for path in origin.files)), schema
    assert isinstance(origin, OnCluster)
    with on_spark(READING):
        if origin.table is not None:
            frame = origin.table if is_frame(origin.table) else spark.createDataFrame(pa.table(origin.table))
        elif config.source.table is not None:
            frame = spark.table(config.source.table)
        else:
            frame = spark.read.parquet(str(config.source.path))
        return frame, frame.limit(0).toArrow().schema.remove_metadata()


def _used(config: Config) -> set[str]:
    columns = config.columns
    who = set() if columns.individual == "row" else {columns.individual}
    return {*columns.quasi_identifiers, *columns.sensitive, *columns.keep} | who


def _who(config: Config, types: dict[str, str]) -> str | None:
    who = individual_sql(config.columns, types)
    return None if who is None else f"CAST({who} AS VARCHAR)"


def _label_tables(con: duckdb.DuckDBPyConnection) -> list[str]:
    return [name for (name,) in con.sql("SHOW TABLES").fetchall() if re.fullmatch(r"labels_\d+", name)]


class Asking:
    """Stands in for a connection while columns are typed. What is asked about the rows is noted, and answered with 0 or
    an empty list as the empty table would; when all questions are known they go to the executors, and the second time
    the answers are there."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self.con = con
        self.counts: dict[str, int | None] = {}
        self.lists: dict[str, pa.Table | None] = {}

    def sql(self, query: str) -> Any:
        if ASKED.match(query):
            known = self.counts.setdefault(query, None)
            return self.con.sql(f"SELECT {known or 0}")
        if LISTED.match(query):
            listed = self.lists.setdefault(query, None)
            return self.con.sql(query) if listed is None else self.con.from_arrow(listed)
        return self.con.sql(query)

    def execute(self, query: str) -> Any:
        return self.con.execute(query.replace("CREATE TABLE", "CREATE OR REPLACE TABLE"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.con, name)

    @property
    def open(self) -> bool:
        return None in self.counts.values() or any(listed is None for listed in self.lists.values())


def _typed(
    raw: DataFrame, con: duckdb.DuckDBPyConnection, config: Config, types: dict[str, str], schema: pa.Schema
) -> list[list[Column]]:
    """The columns in their roles with their canonical types."""
    used = raw.select(*(spread.column(name) for name in schema.names if name in _used(config)))
    return answered(used, schema, con, lambda asking: typed_columns(asking, config.columns, types))


def answered(used: DataFrame, schema: pa.Schema, con: duckdb.DuckDBPyConnection, ask: Callable[[Any], R]) -> R:
    """What is made of the columns by asking; the rows are asked what the local engine asks them."""
    asking = Asking(con)
    found = ask(asking)
    if not asking.open:
        return found
    questions = [*asking.counts, *asking.lists]
    for query in asking.lists:
        asking.lists[query] = _distinct(used, schema, query, con)
    given = spread.Broadcast(used.sparkSession, (schema, questions[: len(asking.counts)]))
    answers = spread.map_rows(used, _answers, given, COUNTS).groupBy("question").sum("n")
    told = spread.collect(answers, READING).to_pydict() if asking.counts else {"question": []}
    for at, (query, _) in enumerate(asking.counts.items()):
        counts = dict(zip(told["question"], told.get("sum(n)", [])))
        asking.counts[query] = int(counts.get(at) or 0)
    return ask(asking)


def _distinct(used: DataFrame, schema: pa.Schema, query: str, con: duckdb.DuckDBPyConnection) -> pa.Table:
    """The different values of an expression, in order, or one more of them than is allowed."""
    matched = LISTED.match(query)
    assert matched is not None
    kind = con.sql(query).to_arrow_table().schema
    given = spread.Broadcast(used.sparkSession, (schema, query))
    listed = spread.map_rows(used, _values, given, kind).distinct().limit(int(matched[1]))
    values = spread.collect(listed, READING).cast(kind)
    return values.sort_by("v")


def _values(given: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    schema, query = given
    with spread.database() as con:
        for _ in registered(con, schema, batches):
            yield from con.sql(query).to_arrow_table().to_batches()


def _answers(given: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What the rows say to questions whose answers are counts."""
    schema, questions = given
    counts = [0] * len(questions)
    with spread.database() as con:
        for _ in registered(con, schema, batches):
            counts = [n + int(con.sql(query).fetchall()[0][0]) for n, query in zip(counts, questions)]
    yield pa.record_batch([pa.array(range(len(counts)), pa.int32()), pa.array(counts, pa.int64())], schema=COUNTS)


def registered(
    con: duckdb.DuckDBPyConnection, schema: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Each batch, which is meanwhile the table raw_rows of the connection, with the columns that it has of a schema."""
    for batch in batches:
        table = pa.Table.from_batches([batch])
        wanted = pa.schema([schema.field(name) for name in table.schema.names])
        con.register("raw_rows", table if table.schema.equals(wanted) else table.cast(wanted))
        yield batch


def _rows(given: Any, batches: Iterator[pa.RecordBatch], view: str = Source.VIEW) -> Iterator[pa.RecordBatch]:
    """The rows as one of the local engine's views of the source has them."""
    schema, nulls, columns, who, labels = given
    with spread.database() as con:
        for name, table in labels.items():
            con.register(name, table)
        made = False
        for _ in registered(con, schema, batches):
            if not made:
                create_views(con, nulls, columns, who)
                made = True
            with translated(READING):
                yield from con.sql(f"SELECT * FROM {view}").to_arrow_table().to_batches()


def _rows_and_who(given: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from _rows(given, batches, "kept_rows")


def _null_values(given: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from _rows(given, batches, Source.NULLS)


class SparkSql:
    """Stands in for a connection where SQL that Spark understands too is asked of its rows."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def sql(self, query: str) -> SparkSql:
        self.query = query
        return self

    def fetchall(self) -> list[tuple[Any, ...]]:
        with on_spark(READING):
            return [tuple(row) for row in self.spark.sql(self.query).collect()]


def _check(
    source: SparkSource, config: Config, types: dict[str, str], used: DataFrame, given: spread.Broadcast,
    columns: list[Column],
) -> None:  # fmt: skip
    """The checks of the local engine, on the cluster."""
    who, frame = _who(config, types), source.frame_of_rows
    if who is not None:
        kept = source.con.sql("SELECT * FROM kept_rows").to_arrow_table().schema
        frame = spread.map_rows(used, _rows_and_who, given, kept)
    with as_view(frame) as name:
        check_rows(source, config, SparkSql(source.spark), name, who)  # type: ignore[arg-type]
