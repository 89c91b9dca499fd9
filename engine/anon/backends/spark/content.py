"""What a release must hold, on the cluster: executors apply the written recoding to the source's rows with the code and
the SQL of the local engine (anon.verify.content), Spark brings the sums of each group together, and executors put the
groups together with their labels. The driver sees three numbers of each partition."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from anon.backends.spark import executors
from anon.backends.spark.rows import READING, as_table
from anon.backends.spark.source import SparkSource
from anon.config import Config
from anon.core.database import translated
from anon.recoding.levels import AnyRecoding
from anon.verify.content import EMPTY, Content
from anon.verify.content.fingerprint import WRAP, content_of
from anon.verify.content.from_source import row_hashes
from anon.verify.content.one_row_each import check_chosen
from anon.verify.content.reading import read_recoding

HALF = 2**32  # Spark has no whole numbers of 64 bits without a sign: hashes are summed in two halves
FOUND = pa.schema([("groups", pa.int64()), ("labels", pa.string()), ("whole", pa.string())])


def expected(source: SparkSource, config: Config, path: Path, recoding: AnyRecoding) -> Content:
    """Return what the release of a source must hold under the recoding that was written to a path."""
    _check_choice(source, config)
    applied, hashes = read_recoding(path, source, config, recoding), row_hashes(source, config)
    sums = ["n", *(f"{name}_{half}" for name in hashes for half in ("high", "low"))]
    schema = pa.schema([(name, pa.int64()) for name in [*applied.by, *sums]])
    given = executors.Broadcast(source.spark, (applied, hashes))
    rows = executors.map_rows(source.frame_of_rows, _summed, given, schema).groupBy(*applied.by).sum(*sums)
    groups = rows.toDF(*schema.names)
    table = executors.collect(executors.map_rows(groups, _content, given, FOUND), READING)
    parts = (Content(row["groups"], int(row["labels"]), int(row["whole"])) for row in table.to_pylist())
    return sum(parts, EMPTY)


def _check_choice(source: SparkSource, config: Config) -> None:
    """Raise VerificationError if a row of an individual was chosen that is not the one that the config says."""
    if source.kept_rows is None or source.chosen_rows is None:
        return
    with as_table(source.kept_rows) as every, as_table(source.chosen_rows) as chosen:
        check_chosen(every, chosen.name, source, config)


def _summed(given: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the sums over the rows of a batch that are of one group."""
    applied, hashes = given
    by = ", ".join(f"CAST({name} AS BIGINT) AS {name}" for name in applied.by)
    halves = ", ".join(
        f"CAST(sum({name} // {HALF}) AS BIGINT) AS {name}_high, CAST(sum({name} % {HALF}) AS BIGINT) AS {name}_low"
        for name in hashes
    )
    with executors.task_database() as database, translated(READING):
        for name, table in applied.keys.tables.items():
            database.register(name, table)
        for batch in batches:
            database.register("rows_of_a_batch", pa.Table.from_batches([batch]))
            read = database.query(applied.keys.select("rows_of_a_batch", hashes)).to_arrow_table().to_batches()
            database.register("in_groups", pa.Table.from_batches(applied.batches(read, labelled=True)))
            query = f"SELECT {by}, count(*) AS n, {halves} FROM in_groups GROUP BY {', '.join(applied.by)}"
            yield from database.query(query).to_arrow_table().to_batches()


def _content(given: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the content of some groups, each of which is here as a whole."""
    applied, hashes = given
    held = [batch for batch in batches if batch.num_rows]
    if not held:
        return
    totals = ", ".join(
        f"CAST((CAST({name}_high AS HUGEINT) * {HALF} + {name}_low) % {WRAP}::HUGEINT AS UBIGINT) AS {name}"
        for name in hashes
    )
    groups = applied.groups(f"SELECT {', '.join(applied.by)}, n, {totals} FROM sums", labelled=True)
    with executors.task_database() as database, translated(READING):
        for name, table in (applied.tables() | {"sums": pa.Table.from_batches(held)}).items():
            database.register(name, table)
        found = database.one(content_of(groups, applied.labels, list(hashes)))
    yield from executors.packed([(found[0], *map(str, found[1:]))], FOUND)
