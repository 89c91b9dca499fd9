"""Compute what a release must publish in place of numbers that are aggregated to means, from the rows of the source in
their groups. Nothing of the code that wrote the release is used; the rule is that of docs/aggregation.md.

Rows are numbered here while they are streamed in order. Of the m values of a group in order, t counts from 0. The runs
have q = m // c values, the first e = m % c of them one more, so that value t is in run t // (q + 1) if that is below e,
and in run (t - e) // q otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import numpy as np
import pyarrow as pa

from anon.config import Aggregation
from anon.core.database import Database, causes, fed, translated

PEOPLE, RANKED, RUNS = "numbered_people", "ranked_values", "values_in_runs"
BATCH = 8_192  # rows that are taken from a sort at a time: its buffers double as they grow
Means = dict[str, tuple[Aggregation, str]]  # by column: how it is aggregated, and its type


@contextmanager
def rows_with_means(
    database: Database, rows: pa.RecordBatchReader, by: Sequence[str], published: Sequence[str], means: Means
) -> Iterator[str]:
    """Give SQL for rows with means in the place of the values of some columns. `by` distinguishes groups; `published`
    are all columns in which the rows of a group may differ, in order."""
    made = [PEOPLE, *map(_table, means)]
    try:
        with translated("reading the source"):
            _number(database, rows, f"SELECT * FROM people ORDER BY {_in_order([*by, *published])}", PEOPLE, "place")
            for name, (spec, kind) in means.items():
                values = f"SELECT {', '.join(by)}, place, {name} AS v FROM {PEOPLE} WHERE {name} IS NOT NULL"
                _number(database, None, f"{values} ORDER BY {_in_order([*by, 'v', 'place'])}", RANKED, "rank")
                database.execute(f"CREATE TABLE {RUNS} AS {_runs(', '.join(by), spec)}")
                database.execute(f"DROP TABLE {RANKED}")
                database.execute(f"CREATE TABLE {_table(name)} AS {_means(', '.join(by), spec, kind)}")
                database.execute(f"DROP TABLE {RUNS}")
        joins = "".join(f" LEFT JOIN {_table(name)} USING (place)" for name in means)
        replaced = ", ".join(f"{_table(name)}.mean AS {name}" for name in means)
        yield f"SELECT {PEOPLE}.* REPLACE ({replaced}) FROM {PEOPLE}{joins}"
    finally:
        for table in (*made, RANKED, RUNS):
            database.execute(f"DROP TABLE IF EXISTS {table}")


def _table(name: str) -> str:
    return f"means_in_{name}"


def _in_order(names: Sequence[str]) -> str:
    return ", ".join(f"{name} NULLS FIRST" for name in names)


def _number(database: Database, rows: pa.RecordBatchReader | None, sql: str, table: str, number: str) -> None:
    """Create a table of the rows of a query with their numbers, from 0 on in the order of the query, which may read
    `people`."""
    failures: list[BaseException] = []
    with causes(failures), closing(database.cursor()) as reading, closing(database.cursor()) as writing:
        if rows is not None:
            reading.register("people", rows)
        reader = reading.query(sql).to_arrow_reader(BATCH)
        schema = reader.schema.append(pa.field(number, pa.int64()))
        writing.register("in_order", fed(schema, _counted(reader, schema), failures))
        writing.execute(f"CREATE TABLE {table} AS SELECT * FROM in_order")


def _counted(reader: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield batches with the numbers of their rows in a last column."""
    done = 0
    for batch in reader:
        numbers = pa.array(np.arange(done, done + batch.num_rows))
        done += batch.num_rows
        yield pa.record_batch([*batch.columns, numbers], schema=schema)


def _runs(by: str, spec: Aggregation) -> str:
    """Return SQL for the run of each ranked value."""
    count = "1" if spec.mean == "group" else f"CASE WHEN m < 2 * {spec.fewest} THEN 1 ELSE m // {spec.fewest} END"
    groups = f"SELECT {by}, min(rank) AS first, count(*) AS m FROM {RANKED} GROUP BY {by}"
    lengths = f"SELECT {by}, first, m // c AS q, m % c AS e FROM (SELECT *, {count} AS c FROM ({groups}))"
    ranks = f"SELECT *, rank - first AS t FROM {RANKED} JOIN ({lengths}) USING ({by})"
    run = "CASE WHEN t // (q + 1) < e THEN t // (q + 1) ELSE (t - e) // q END"
    return f"SELECT {by}, place, v, {run} AS run FROM ({ranks})"


def _means(by: str, spec: Aggregation, kind: str) -> str:
    """Return SQL for the mean that replaces the value of a row, by its place; null if values are too few."""
    sums = f"SELECT {by}, run, sum(v) AS total, count(*) AS n FROM {RUNS} GROUP BY {by}, run"
    mean = f"CASE WHEN n >= {spec.fewest} THEN {_quotient('total', 'n', kind)} END"
    return f"SELECT place, {mean} AS mean FROM {RUNS} JOIN ({sums}) USING ({by}, run)"


def _quotient(total: str, count: str, kind: str) -> str:
    """Return SQL for an exact quotient in a type, a half in the last place away from zero: the digits of the total
    without the point are divided, and the point is put back."""
    places = int(kind.rstrip(")").split(",")[1]) if kind.startswith("DECIMAL") else 0
    digits = f"CAST(replace(CAST({total} AS VARCHAR), '.', '') AS HUGEINT)"
    away = f"CASE WHEN 2 * abs({digits} % {count}) >= {count} THEN sign({digits}) ELSE 0 END"
    return f"CAST(CAST({digits} // {count} + {away} AS VARCHAR) || 'e-{places}' AS {kind})"
