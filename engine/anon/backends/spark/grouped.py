"""A table that is already grouped, on a cluster: read by Spark, compared with the config as `check` does on one machine
(anon.source.grouped_table), and turned into rows under neutral names. Equal rows are counted before anything else, so
that no more than the different ones are moved. Labels keep the order that they have in DuckDB, which numbers groups."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from anon.backends.spark import executors
from anon.backends.spark.failures import on_spark
from anon.backends.spark.rows import BatchedRows, as_table, registered
from anon.backends.spark.session import is_frame
from anon.config import Columns, Config
from anon.core.database import Database, quote, translated
from anon.errors import ConfigError, Problem
from anon.source import Column, check_present, describe, individual_sql, register_files, resolve
from anon.source.checks import any_of, individual_problems
from anon.source.files import one_kind
from anon.source.grouped_table import CheckedLabels, check_labels, present
from anon.source.left_out import LeftOut, left_out_people
from anon.source.requirements import RowAnswers
from anon.source.series_files import series_tables
from anon.source.tables import as_arrow, bucketized_pair
from anon.source.types import INTEGERS, WIDE_INTEGERS, label_sql, negative_zeros

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

READING = "reading the table"
AS_THEY_ARE = ("DOUBLE", "DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "BOOLEAN", "VARCHAR")


@dataclass(frozen=True)
class OpenedGroups:
    """The rows of a grouped table: q0, ..., s0, ..., k0, ..., and how often `c` each occurs, or where individuals have
    several values `who` each is about."""

    rows: DataFrame
    schema: pa.Schema
    columns: Columns
    sensitive: list[Column]
    total: int
    left_out: LeftOut

    @property
    def labels(self) -> list[str]:
        return [f"q{index}" for index in range(len(self.columns.quasi_identifiers))]


def open_grouped(spark: SparkSession, database: Database, config: Config, table: Any) -> OpenedGroups:
    """Open a table: a path of Parquet files, a table of the catalog, a DataFrame, or any Arrow-speaking frame."""
    raw, schema = _raw(spark, database, table)
    columns = present(config.columns, raw.columns)
    database.register("raw_rows", schema.empty_table())
    types = describe(database, "raw_rows")
    check_present(columns, types, raw.columns)
    who = individual_sql(columns, types)
    used = raw.select(*(executors.column(name) for name in schema.names if name in _used(columns)))
    zeros = [each for name in columns.keep for each in negative_zeros(name, types[name])]
    checked = check_labels(BatchedRows(used, schema), config, columns, types, who, zeros)
    if checked.problems:
        raise ConfigError(checked.problems)
    query = _query(columns, types, checked, who)
    with translated(READING):
        view = database.query(query).to_arrow_table().schema
    every = executors.on_disk(executors.map_rows(used, _rows, executors.Broadcast(spark, (schema, query)), view))
    rows = every
    if checked.dropped.all:
        rows = every.dropna(subset=[column.alias for column in checked.sensitive])
    left_out = LeftOut(checked.dropped, checked.dropped)
    if who is not None:
        _check_people(rows, columns)
        left_out = _left_out(every, checked)
    return OpenedGroups(_counted(rows, columns), view, columns, checked.sensitive, checked.rows, left_out)


def _raw(spark: SparkSession, database: Database, table: Any) -> tuple[DataFrame, pa.Schema]:
    """Return the table as Spark reads it, and its columns as they are on one machine."""
    if series_tables(table):
        found, expected = "a series with backend spark", "backend local, or one part of it"
        raise ConfigError.at("--on", found, expected, "equal labels may be in several of its parts")
    if bucketized_pair(table) is not None:
        found, expected = "a bucketized table with backend spark", "a table of labels, or backend local"
        raise ConfigError.at("--on", found, expected, "equal labels may be in several of its groups")
    named, stored = isinstance(table, (str, os.PathLike)), "://" in str(table)
    if named and not stored and (Path(table).exists() or not _in_catalog(spark, str(table))):
        return _files(spark, database, resolve(os.fspath(table)))
    with on_spark(READING):
        if named:
            frame = spark.read.parquet(str(table)) if stored else spark.table(str(table))
        else:
            frame = table if is_frame(table) else spark.createDataFrame(as_arrow(table))
        return frame, frame.limit(0).toArrow().schema.remove_metadata()


def _in_catalog(spark: SparkSession, name: str) -> bool:
    try:
        return bool(spark.catalog.tableExists(name))
    except Exception:  # noqa: BLE001 - what is no name of a table is none in the catalog, whatever Spark says of it
        return False


def _files(spark: SparkSession, database: Database, paths: list[Path]) -> tuple[DataFrame, pa.Schema]:
    if (kind := one_kind(paths)) != "Parquet":
        found, hint = f"{kind} files with backend spark", "executors read Parquet; backend local reads the others"
        raise ConfigError.at("--on", found, "Parquet files", hint)
    register_files(database, "files_of_table", paths, paths[0])
    with translated(READING):
        schema = database.query("SELECT * FROM files_of_table LIMIT 0").to_arrow_table().schema
    with on_spark(READING):
        return spark.read.parquet(*(f"file://{path.resolve()}" for path in paths)), schema


def _used(columns: Columns) -> set[str]:
    who = set() if columns.individual == "row" else {columns.individual}
    return {*columns.quasi_identifiers, *columns.sensitive, *columns.keep} | who


def _query(columns: Columns, types: dict[str, str], checked: CheckedLabels, who: str | None) -> str:
    """Return the SQL for the rows under neutral names."""
    problems: list[Problem] = []
    named = {}
    for letter, role, names in (
        ("q", "quasi_identifiers", columns.quasi_identifiers),
        ("k", "keep", columns.keep),
    ):
        for index, name in enumerate(names):
            sql = _label(name, types[name], checked.answers)
            if sql is None:
                expected = "numbers, dates, timestamps, booleans or text"
                found = f"labels of type {types[name]} with backend spark"
                problems.append(Problem(f"columns.{role}.{name}", found, expected, "backend local compares any type"))
            named[f"{letter}{index}"] = str(sql)
    if problems:
        raise ConfigError(problems)
    named |= {column.alias: column.sql for column in checked.sensitive}
    if who is not None:
        named["who"] = f"CAST({who} AS VARCHAR)"
    return f"SELECT {', '.join(f'{sql} AS {alias}' for alias, sql in named.items())} FROM raw_rows"


def _label(name: str, kind: str, answers: RowAnswers) -> str | None:
    """Return the SQL for a label in a type that Spark has too, in the same order and with the same text; None if there
    is none."""
    column = quote(name)
    if kind in ("FLOAT", "DOUBLE") and (as_text := label_sql(name, kind, answers)) != column:
        return as_text
    if kind in INTEGERS:
        return f"CAST({column} AS BIGINT)"
    if kind in WIDE_INTEGERS:
        return f"CAST({column} AS DECIMAL(38, 0))"
    if kind == "FLOAT":
        return f"CAST(CAST({column} AS VARCHAR) AS DOUBLE)"
    return column if kind in AS_THEY_ARE or kind.startswith("DECIMAL") else None


def _rows(given: tuple[pa.Schema, str], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    schema, query = given
    with executors.task_database() as database:
        for _ in registered(database, schema, batches):
            with translated(READING):
                yield from database.query(query).to_arrow_table().to_batches()


def _left_out(every: DataFrame, checked: CheckedLabels) -> LeftOut:
    """Count what null sensitive values leave out."""
    if not checked.dropped.all:
        return LeftOut()
    missing = any_of([f"{column.alias} IS NULL" for column in checked.sensitive])
    with as_table(every) as table:
        nulls = f"SELECT who, false AS no_quasi_identifier, {missing} AS no_sensitive FROM {table.name}"
        return LeftOut(checked.dropped, left_out_people(table, f"({nulls}) AS nulls"))


def _check_people(rows: DataFrame, columns: Columns) -> None:
    """Refuse rows that are not their individual's, as `check` does on one machine."""
    labels = {name: f"q{index}" for index, name in enumerate(columns.quasi_identifiers)}
    with as_table(rows) as table:
        if problems := individual_problems(table, "who", labels, columns.multiplicity):
            raise ConfigError(problems)


def _counted(rows: DataFrame, columns: Columns) -> DataFrame:
    """Return every different row with how often it occurs. Where individuals have several values, all rows as they
    are."""
    if columns.multiplicity != "single":
        return rows
    names = [name for name in rows.columns if name != "who"]
    return executors.on_disk(rows.select(*names).groupBy(*names).count().withColumnRenamed("count", "c"))
