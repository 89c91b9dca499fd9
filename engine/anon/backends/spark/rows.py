"""What is asked of the rows of a table, evaluated on a cluster: requirements and aggregates in DuckDB over the Arrow
batches of the executors, added up by name; and aggregates over relations such as groups in the SQL of Spark."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from anon.backends.spark import executors
from anon.backends.spark.failures import on_spark
from anon.core.database import Database, translated
from anon.source.requirements import Aggregate, Asked, Question, RowAnswers, Rows, SqlTable, aggregates

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

READING = "reading the source"
ANSWERS = pa.schema([("name", pa.string()), ("n", pa.int64())])


@dataclass(frozen=True)
class BatchedRows(Rows):
    """The rows of a frame of Spark with the columns that the local engine would see."""

    frame: DataFrame
    schema: pa.Schema

    def evaluate(self, questions: Sequence[Question]) -> RowAnswers:
        if not questions:
            return RowAnswers({})
        given = executors.Broadcast(self.frame.sparkSession, (self.schema, aggregates(questions)))
        table = executors.collect(executors.map_rows(self.frame, _evaluated, given, ANSWERS), READING)
        return RowAnswers(self._added_up(table, questions))

    def _added_up(self, table: pa.Table, questions: Sequence[Question]) -> dict[str, int]:
        """Return the sum of the answers of all tasks by name."""
        names, numbers = (table[name].to_pylist() for name in ANSWERS.names)
        if not names and self.frame.isEmpty():  # no partition, so no task
            return {question.name: 0 for question in questions}
        total: Counter[str] = Counter()
        for name, number in zip(names, numbers):
            total[name] += number
        return dict(total)

    def evaluate_distinct(self, sql: str, questions: Sequence[Question]) -> RowAnswers:
        values, schema = self._distinct(sql)
        return BatchedRows(values, schema).evaluate(questions)

    def distinct(self, sql: str, most: int) -> pa.ChunkedArray:
        values, schema = self._distinct(sql)
        return executors.collect(values.limit(most), READING).cast(schema).sort_by("v")["v"]

    def _distinct(self, sql: str) -> tuple[DataFrame, pa.Schema]:
        """Return the distinct values of an expression as a frame, with its columns as DuckDB has them."""
        query = f"SELECT DISTINCT {sql} AS v FROM raw_rows WHERE {sql} IS NOT NULL"
        with closing(Database.in_memory()) as database, translated(READING):
            database.register("raw_rows", self.schema.empty_table())
            schema = database.query(query).to_arrow_table().schema
        given = executors.Broadcast(self.frame.sparkSession, (self.schema, query))
        return executors.map_rows(self.frame, _values, given, schema).distinct(), schema


def _evaluated(given: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the answers of the rows of one task; they are 0 for a task without rows."""
    schema, asked = given
    yield evaluated(schema, asked, batches)


def evaluated(schema: pa.Schema, asked: list[Aggregate], batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the answers of some batches of rows by name."""
    total = [0] * len(asked)
    query = f"SELECT {', '.join(each.sql for each in asked)} FROM raw_rows"
    with executors.task_database() as database:
        for _ in registered(database, schema, batches):
            with translated(READING):
                total = [n + int(answer) for n, answer in zip(total, database.one(query), strict=True)]
    names = [each.name for each in asked]
    return pa.record_batch([pa.array(names, pa.string()), pa.array(total, pa.int64())], schema=ANSWERS)


def _values(given: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    schema, query = given
    with executors.task_database() as database:
        for _ in registered(database, schema, batches):
            with translated(READING):
                yield from database.query(query).to_arrow_table().to_batches()


def registered(database: Database, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield each batch, which is meanwhile the table raw_rows of the connection, with the columns that it has of a
    schema."""
    for batch in batches:
        table = pa.Table.from_batches([batch])
        wanted = pa.schema([schema.field(name) for name in table.schema.names])
        database.register("raw_rows", table if table.schema.equals(wanted) else table.cast(wanted))
        yield batch


@dataclass(frozen=True)
class SparkTable(SqlTable):
    """A view of Spark."""

    spark: SparkSession
    name: str

    def evaluate(self, questions: Sequence[Question], relation: str = "") -> RowAnswers:
        asked = aggregates(questions)
        query = f"SELECT {', '.join(each.sql for each in asked)} FROM {relation or self.name}"
        with on_spark(READING):
            (row,) = self.spark.sql(query).collect()
        return RowAnswers({each.name: answer for each, answer in zip(asked, row, strict=True)})

    def evaluate_all(self, asked: Sequence[Asked]) -> list[RowAnswers]:
        """Evaluate everything in one job, as numbers: counts up to 2**53 are exact."""
        if not asked:
            return []
        listed = [(relation, aggregates(questions)) for relation, questions in asked]
        query = " UNION ALL ".join(_numbered(nth, relation, each) for nth, (relation, each) in enumerate(listed))
        with on_spark(READING):
            rows = sorted(self.spark.sql(query).collect())
        return [
            RowAnswers({one.name: answer for one, answer in zip(each, row["answers"], strict=True)})
            for (_, each), row in zip(listed, rows, strict=True)
        ]


def _numbered(nth: int, relation: str, asked: list[Aggregate]) -> str:
    answers = ", ".join(f"CAST({each.sql} AS DOUBLE)" for each in asked)
    return f"SELECT {nth} AS nth, array({answers}) AS answers FROM {relation}"


@contextmanager
def as_table(frame: DataFrame) -> Iterator[SparkTable]:
    """Give a frame a name in Spark's SQL for a while."""
    name = f"anon_{uuid.uuid4().hex}"
    frame.createOrReplaceTempView(name)
    try:
        yield SparkTable(frame.sparkSession, name)
    finally:
        frame.sparkSession.catalog.dropTempView(name)
