"""The source on a cluster: a Parquet folder, a table of the session's catalog or a DataFrame, as rows in canonical
types under neutral names. The types and the checks are those of the local engine (anon.source): its SQL runs in DuckDB,
here over an empty table of the same columns, on the executors over batches of rows. This is where identifiers stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from anon.backends.spark import executors
from anon.backends.spark.failures import on_spark
from anon.backends.spark.rows import READING, BatchedRows, as_table, registered
from anon.backends.spark.session import is_frame
from anon.config import Columns, Config
from anon.config.support import require_source
from anon.core.database import Database, translated
from anon.errors import ConfigError, SourceError
from anon.source import Column, Source, check_present, describe, individual_sql, register_files
from anon.source.files import one_kind
from anon.source.lazy import is_lazy
from anon.source.left_out import LeftOut, left_out_people
from anon.source.one_row_each import chosen, other_rows, ways_on
from anon.source.origins import Files, Origin
from anon.source.person_keys import PersonSearch, attributes_of
from anon.source.rows import (
    CheckedRows,
    check_people,
    check_rows,
    create_labels,
    create_source,
    create_views,
    droppable,
    select_nulls,
)
from anon.source.tables import why_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass
class SparkSource(Source):
    """The rows of a source that are on a cluster. `database` has a view of the same columns without a row."""

    stored: DataFrame = field(kw_only=True)  # typed once, on the disks of the executors
    kept_rows: DataFrame | None = None  # where one row of every individual is used: all of their rows,
    chosen_rows: DataFrame | None = None  # and those that are used
    named_rows: DataFrame | None = None  # those that are used with `who` each is about, if anything says that

    def __post_init__(self) -> None:
        self.frame_of_rows = self.stored

    @property
    def spark(self) -> SparkSession:
        return self.frame_of_rows.sparkSession

    def select(self, columns: list[Column]) -> DataFrame:
        return self.frame_of_rows.select(*(column.alias for column in columns))

    def distinct(self, column: Column, most: int) -> pa.ChunkedArray:
        return executors.collect(self.select([column]).distinct().limit(most), READING)[0]

    def rows_with(self, column: Column, values: pa.Array) -> int:
        with on_spark(READING):
            named = self.spark.createDataFrame(pa.table({column.alias: values}))
            return int(self.select([column]).join(named, column.alias, "left_semi").count())

    def why_text(self, column: Column) -> str:
        return why_text(BatchedRows(self.frame_of_rows, _schema(self.database, self.VIEW)), column.alias)

    def close(self) -> None:
        self.stored.unpersist()
        if self.chosen_rows is not None:
            self.chosen_rows.unpersist()


class OnCluster(Origin):
    """A table that only the cluster can read, so that the driver cannot see whether it changed."""

    def __init__(self, table: Any) -> None:
        self.table, self.marks, self.replaces_source = table, [], table is not None

    def register(self, database: Database, name: str, columns: Columns, spill: Path) -> None:
        raise NotImplementedError("rows stay with the executors")


def origin_of(config: Config, table: Any) -> Origin:
    """Return where the rows come from: files that the driver sees too, or anything else that Spark reads."""
    if table is None:
        require_source(config)
    if is_lazy(table):
        expected = "a DataFrame of Spark or an Arrow-speaking frame; or backend local, which streams it"
        raise SourceError(f"a LazyFrame cannot be read with backend spark; give {expected}")
    path = config.source.path
    return Files(str(path)) if table is None and path is not None and "://" not in str(path) else OnCluster(table)


Narrowing = Callable[["DataFrame", pa.Schema], "DataFrame"]  # of rows with some columns of a schema


def open_source(
    spark: SparkSession, database: Database, config: Config, origin: Origin, narrowed: Narrowing | None = None
) -> SparkSource:
    """Open the config's source, or the DataFrame in its place, and check it against the config. `narrowed` returns the
    rows that are used of those that are there."""
    raw, schema = _raw(spark, database, config, origin)
    database.register("raw_rows", schema.empty_table())
    types = describe(database, "raw_rows")
    origin.unnamed = check_present(config.columns, types, raw.columns)
    used = raw.select(*(executors.column(name) for name in schema.names if name in _used(config)))
    used = used if narrowed is None else narrowed(used, schema)
    who = _who(config, types)
    checked = check_rows(BatchedRows(used, schema), config, types, who)
    create_labels(database, checked.labels)
    create_views(database, config.nulls, checked.columns, who, checked.moment)
    view = Source.VIEW if who is None else "all_rows"
    settings = view, schema, config.nulls, checked.columns, who, checked.labels, checked.moment
    typed = executors.map_rows(used, _rows, executors.Broadcast(spark, settings), _schema(database, view))
    left_out = LeftOut(checked.dropped, checked.dropped)
    quasi_identifiers, sensitive, keep = checked.columns
    stored = executors.on_disk(typed)
    source = SparkSource(database, quasi_identifiers, sensitive, keep, checked.rows, left_out, origin, stored=stored)
    if who is None:
        check_people(source, checked, None)
        _find_persons(source, config, raw)
    else:
        _check_people(source, checked, config, partial(ways_on, config.columns, types))
    return source


def _one_row_each(source: SparkSource, config: Config, checked: CheckedRows, rows: DataFrame) -> DataFrame:
    """Return one of the rows of every individual, chosen as the local engine does."""
    create_source(source.database, checked.aliases, "kept_rows")
    rule = config.columns.rows
    source.kept_rows = rows
    with as_table(rows) as table:
        source.use_one_row_each(other_rows(table, rule))
        with on_spark(READING):
            source.chosen_rows = executors.on_disk(source.spark.sql(chosen(table.name, rule, checked.aliases)))
    return source.chosen_rows


def _schema(database: Database, view: str) -> pa.Schema:
    with translated(READING):
        return database.query(f"SELECT * FROM {view} LIMIT 0").to_arrow_table().schema


def _check_people(source: SparkSource, checked: CheckedRows, config: Config, ways: Callable[[], str]) -> None:
    """Count the individuals who are left out, and check the rows of the others; from there on only what a series needs
    says whom a row is about."""
    nulls = config.nulls
    if checked.dropped.all:
        with as_table(source.stored) as table:
            selected = select_nulls(nulls, checked.columns, table.name)
            source.left_out = LeftOut(checked.dropped, left_out_people(table, f"({selected}) AS nulls"))
    needed = [f"{alias} IS NOT NULL" for role in droppable(nulls, checked.columns) for alias in role]
    rows = source.stored.where(" AND ".join(needed) or "true")
    if checked.moment is not None:
        check_people(source, checked, None)
        rows = _one_row_each(source, config, checked, rows)
    with as_table(rows) as table:
        check_people(source, checked, table, ways)
    source.named_rows, source.frame_of_rows = rows, rows.select(*checked.aliases)


def _find_persons(source: SparkSource, config: Config, raw: DataFrame) -> None:
    """Find rows of one person, as the local engine does, in the columns as Spark reads them."""
    columns = config.columns
    names = [*columns.identifiers, *columns.quasi_identifiers, *columns.keep]
    sql = {name: f"c{at}" for at, name in enumerate(names)}
    cells = {name: executors.column(name) for name in names}
    cells |= {name: cells[name].cast("string") for name in columns.identifiers}  # of any type
    kinds = {column.name: column.as_stored[0] for column in [*source.quasi_identifiers, *source.keep]}
    with as_table(raw.select(*(cells[name].alias(own) for name, own in sql.items()))) as table:
        search = PersonSearch(table, attributes_of(columns, kinds, sql), part=1)
        source.repeated, source.persons = search.repeated_identifiers(), search.found()


def check_files(files: list[Path]) -> None:
    """Raise ConfigError if there are files that Spark does not read as the local engine does."""
    if (kind := one_kind(files)) != "Parquet":
        found, hint = f"{kind} files with backend spark", "executors read Parquet; backend local reads the others"
        raise ConfigError.at("source.path", found, "Parquet files", hint)


def _raw(spark: SparkSession, database: Database, config: Config, origin: Origin) -> tuple[DataFrame, pa.Schema]:
    """Return the table as Spark reads it, and its columns as the local engine would see them."""
    if isinstance(origin, Files):
        check_files(origin.files)
        register_files(database, "source_files", origin.files, origin.files[0])
        with translated(READING):
            schema = database.query("SELECT * FROM source_files LIMIT 0").to_arrow_table().schema
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
    by = set() if columns.rows.by is None else {columns.rows.by}
    return {*columns.quasi_identifiers, *columns.sensitive, *columns.keep} | who | by


def _who(config: Config, types: dict[str, str]) -> str | None:
    who = individual_sql(config.columns, types)
    return None if who is None else f"CAST({who} AS VARCHAR)"


def _rows(given: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows as one of the local engine's views of the source has them."""
    view, schema, nulls, columns, who, labels, moment = given
    with executors.task_database() as database:
        for name, table in labels.items():
            database.register(name, table)
        made = False
        for _ in registered(database, schema, batches):
            if not made:
                create_views(database, nulls, columns, who, moment)
                made = True
            with translated(READING):
                yield from database.query(f"SELECT * FROM {view}").to_arrow_table().to_batches()
