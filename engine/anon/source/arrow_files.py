"""Arrow IPC files (.arrow, .feather, .ipc), as files or as streams, copied batch by batch to Parquet in the spill."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc

from anon.errors import SourceError
from anon.source.copies import BATCH, copy_batches, part_of
from anon.source.tables import Take
from anon.source.tokens import Tokens


def copy_arrow(paths: list[Path], folder: Path, take: Take, tokens: Tokens) -> tuple[list[Path], list[str]]:
    """Copy the wanted columns of all files; return the copies and the names of the columns that the files have."""
    first: pa.Schema | None = None
    names: list[str] = []
    copies = []
    for number, path in enumerate(paths):
        with _batches(path) as (whole, batches):
            if first is None:
                names = whole.names
                first = part_of(whole, take(names))
            if first is None:
                raise SourceError(f"{path}: a column is missing, or two have the same name")
            if part_of(whole, first.names) != first or part_of(whole, list(tokens.names)) is None:
                raise SourceError(f"{path}: not the same columns and types as {paths[0].name}; parts must agree")
            copies.append(folder / f"{number:05}.parquet")
            copy_batches(_sliced(batches), first, copies[-1], tokens)
    return copies, names


@contextmanager
def _batches(path: Path) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    """Open a file, of which only the batch that is read is in memory."""
    with pa.memory_map(str(path)) as file:
        try:
            reader = pa.ipc.open_file(file)
        except pa.ArrowInvalid:
            stream = _stream(path, file)
            yield stream.schema, iter(stream)
            return
        yield reader.schema, (reader.get_batch(at) for at in range(reader.num_record_batches))


def _stream(path: Path, file: pa.MemoryMappedFile) -> pa.ipc.RecordBatchStreamReader:
    file.seek(0)
    try:
        return pa.ipc.open_stream(file)
    except pa.ArrowInvalid:
        raise SourceError(f"{path}: it is not an Arrow IPC file, or it is cut off") from None


def _sliced(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for start in range(0, batch.num_rows, BATCH):
            yield batch.slice(start, BATCH)
