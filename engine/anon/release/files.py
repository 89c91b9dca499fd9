"""Functions that both forms of a release use: they write files of row groups of a fixed size whose bytes are a function
of the rows, and make arrays of labels and values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from anon.core.arrays import Codes, Ints
from anon.core.memory import release_unused
from anon.cube import Domain
from anon.errors import SourceError
from anon.recoding.tree import ColumnLabels
from anon.source import Column, Source, describe

COMPRESSION = "zstd"
ROW_GROUP = 131_072  # rows; a constant of the format, so that the bytes do not depend on any limit
LONG = 32_000_000  # bytes of text with which a row group ends before that; another constant of the format
READ = ROW_GROUP // 8  # rows that are taken from a sort at a time: its buffers double as they grow


@dataclass(frozen=True)
class WrittenValues:
    """The second file of a bucketized release."""

    path: Path
    types: dict[str, str]


@dataclass(frozen=True)
class WrittenRelease:
    """A release that was written, and the form that it must have; the verdict on its safety does not rely on it."""

    path: Path
    rows: int
    groups: int
    types: dict[str, str]  # DuckDB's types of the columns, in their order
    labelled: list[str]  # the columns that are labels
    values: WrittenValues | None = None  # of a bucketized release, whose `path` is that of the quasi-identifiers
    number: Ints | None = None  # of the groups in the files; None: as the recoding numbers them
    bounds: dict[str, str] = field(default_factory=dict)  # the kind of the bounds of each label that has any
    counterfeits: Path | None = None  # the file of the counterfeits of a series, which are among the rows
    lost_by_means: dict[str, dict[str, Any]] = field(default_factory=dict)  # the loss of each column of means


def label_type(format: str) -> pa.DataType:
    return pa.string() if format == "csv" else pa.dictionary(pa.int32(), pa.string())


def runs(group: NDArray[Any]) -> tuple[NDArray[Any], Ints]:
    """Return the distinct numbers of an array in which equal ones are adjacent, and the length of each run."""
    first = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
    return group[first], np.diff(np.append(first, len(group)))


def label_array(labels: ColumnLabels, groups: NDArray[Any], lengths: Ints) -> pa.DictionaryArray:
    """Return the labels of runs of rows as a dictionary array of those that occur here, in order; pyarrow would write
    every entry of a larger dictionary."""
    used, index = np.unique(labels.of_group[groups], return_inverse=True)
    missing = int(labels.labels.null_count > 0 and used[0] == 0)  # null is the first label
    words = labels.labels.take(pa.array(used[missing:]))
    repeated = np.repeat(index.astype(np.int32) - missing, lengths)
    index = pa.array(repeated, mask=repeated < 0 if missing else None)
    return pa.DictionaryArray.from_arrays(index, words, safe=False)


def value_array(domain: Domain, codes: Codes) -> pa.Array:
    if not domain.null:
        return domain.values.take(pa.array(codes))
    index = codes.astype(np.int64) - 1
    return domain.values.take(pa.array(index, mask=index < 0))


def write_tables(path: Path, schema: pa.Schema, labels: Iterable[str], tables: Iterable[pa.Table]) -> None:
    """Write a file of row groups; one is written while the next is made."""
    with _writer(path, schema, set(labels)) as writer, ThreadPoolExecutor(1) as beside:
        under_way = None
        for table in tables:
            if under_way is not None:
                under_way.result()
            under_way = beside.submit(writer.write_table, table)
        if under_way is not None:
            under_way.result()
    release_unused()  # of writers of long dictionaries


def _writer(path: Path, schema: pa.Schema, labels: set[str]) -> Any:
    """Return a writer of whole row groups for the path's format. Smallest and largest labels, as text, would be of
    little use to readers, and take as long to find as everything else; and a page of labels, which come in long runs,
    takes little more for a whole row group than for some rows of it."""
    if path.suffix == ".csv":
        return pyarrow.csv.CSVWriter(path, schema)
    values = [name for name in schema.names if name not in labels]
    return pq.ParquetWriter(
        path, schema, compression=COMPRESSION, version="2.6", store_schema=False, write_statistics=values,
        max_rows_per_page=ROW_GROUP,
    )  # fmt: skip


def text_bytes(batch: pa.RecordBatch) -> Ints:
    """Return the bytes of the texts in each row."""
    found = np.zeros(batch.num_rows, np.int64)
    for column in batch.columns:
        if pa.types.is_string(column.type):
            found += np.asarray(pc.binary_length(column).fill_null(0))
    return found


def text_bytes_of_codes(domain: Domain, codes: NDArray[np.uint16]) -> Ints:
    """Return the bytes of the texts that some codes are published as."""
    if domain.kind != "text":
        return np.zeros(len(codes), np.int64)
    lengths = np.asarray(pc.binary_length(domain.values)).astype(np.int64)
    return np.append(np.zeros(int(domain.null), np.int64), lengths)[codes]


def row_groups(
    batches: Iterable[pa.RecordBatch], text_bytes: Callable[[pa.RecordBatch], Ints] = text_bytes
) -> Iterator[pa.Table]:
    """Yield the same rows in tables of ROW_GROUP rows, or fewer where LONG bytes of text are complete before that, the
    last one shorter. `text_bytes`: those that each row publishes. Where tables end depends on the rows alone."""
    held: list[pa.RecordBatch] = []
    rows = text = 0
    for batch in batches:
        ends, done = np.cumsum(text_bytes(batch)), 0
        while done < batch.num_rows:
            before = int(ends[done - 1]) if done else 0
            full = int(np.searchsorted(ends, before + LONG - text)) + 1
            end = min(full, done + ROW_GROUP - rows, batch.num_rows)
            held.append(batch.slice(done, end - done))
            rows, text = rows + end - done, text + int(ends[end - 1]) - before
            if rows == ROW_GROUP or text >= LONG:
                yield pa.Table.from_batches(held).combine_chunks()
                held, rows, text = [], 0, 0
            done = end
    if rows:
        yield pa.Table.from_batches(held).combine_chunks()


def repeated(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield each row repeated by the number in its last column, in batches of bounded size."""
    times = batch.column(batch.num_columns - 1).to_numpy().astype(np.int64)
    ends = np.cumsum(times)
    rows = batch.select(range(batch.num_columns - 1))
    for start in range(0, int(ends[-1]) if len(ends) else 0, ROW_GROUP):
        end = min(start + ROW_GROUP, int(ends[-1]))
        first, last = np.searchsorted(ends, [start + 1, end])  # whose repetitions this piece begins and ends in
        begins = np.maximum(ends[first : last + 1] - times[first : last + 1], start)
        repeats = np.minimum(ends[first : last + 1], end) - begins
        yield rows.take(pa.array(np.repeat(np.arange(first, last + 1, dtype=np.int32), repeats)))


def in_order(columns: Iterable[str]) -> str:
    """Return the SQL of the canonical order by some columns."""
    return ", ".join(f"{column} NULLS FIRST" for column in columns)


def types_of(source: Source, columns: Iterable[Column]) -> dict[str, str]:
    """Return the columns of the source with the DuckDB types that a reader of the release must find."""
    types = describe(source.database, Source.VIEW)
    return {column.name: types[column.alias] for column in columns}


def changed() -> SourceError:
    return SourceError("the source changed between two passes over it; run again when it is complete")
