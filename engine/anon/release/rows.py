"""Read the source's rows with their groups under a recoding, for both forms of a release in their second pass over the
source."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from anon.core.database import Database, causes, fed
from anon.cube import Domain, Encoder
from anon.recoding.assignment import Assignment
from anon.recoding.levels import AnyRecoding
from anon.recoding.outcome import GroupCounts
from anon.recoding.refined import RefinedRecoding
from anon.release.files import ROW_GROUP
from anon.source import Column, Source
from anon.source.left_out import LeftOut


def in_groups(
    source: Source,
    recoding: AnyRecoding,
    sensitive: list[Domain],
    plain: list[Column],
    failures: list[BaseException],
    view: str = Source.VIEW,
) -> pa.RecordBatchReader:
    """Return the rows of the source, or of another view of it, as (group, sensitive codes, `plain` columns unchanged),
    in the order in which they are read; without suppressed rows. `sensitive` may be empty."""
    assert not isinstance(recoding, RefinedRecoding), "its rows are dealt to groups (assigned.py)"
    coded = [*source.quasi_identifiers, *source.sensitive[: len(sensitive)]]
    columns = [*coded, *(column for column in plain if column not in coded)]
    encoder = Encoder(coded, [*recoding.domains, *sensitive])
    first_value, types = len(recoding.domains), source.types
    schema = pa.schema(
        [("g", pa.uint32()), *((f"s{i}", pa.uint16()) for i in range(len(sensitive)))]
        + [(column.alias, types[column.alias]) for column in plain]
    )

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in source.batches(columns, view=view):
            codes = encoder.codes(batch)
            group = recoding.assign(codes[:first_value])
            values = [pa.array(own) for own in codes[first_value:]]
            kept = [batch.column(columns.index(column)) for column in plain]
            rows = pa.record_batch([pa.array(group), *values, *kept], schema=schema)
            yield rows.filter(pa.array(group < recoding.groups)) if recoding.suppressed else rows

    return fed(schema, batches(), failures)


def left_out(source: Source, recoding: AnyRecoding | Assignment) -> LeftOut:
    """Count the rows and individuals that are not in the release because of null values and suppressed cells. For
    individuals with several rows this takes another pass over the source, as a bucketized release does not hold these
    rows."""
    people = rows = recoding.suppressed
    if people and source.multiplicity != "single":
        assert not isinstance(recoding, Assignment), "an assignment suppresses nobody"
        failures: list[BaseException] = []
        with causes(failures):
            rows = source.rows - sum(batch.num_rows for batch in in_groups(source, recoding, [], [], failures))
    return source.left_out.with_suppressed(rows, people)


def counted(database: Database, counts: GroupCounts, sensitive: int) -> Iterator[pa.RecordBatch]:
    """Yield the counts of the search in canonical order: (group, sensitive codes, count)."""
    database.register("group_counts", pa.RecordBatchReader.from_batches(counts.schema, counts.batches()))
    listed = ", ".join(["g", *(f"s{i}" for i in range(sensitive))])
    query = f"SELECT {listed}, sum(n)::BIGINT AS n FROM group_counts GROUP BY {listed} ORDER BY {listed}"
    yield from database.query(query).to_arrow_reader(ROW_GROUP)
