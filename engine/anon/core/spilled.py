"""Batches of rows that one stage of the way of the data leaves for a later one: in memory, or in a file of the spill
folder where there is one, and read again in the order they came."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from anon.core.database import translated


class Spilled:
    """Batches of one schema. After the first was read, none can be added; they can be read as often as needed."""

    def __init__(self, schema: pa.Schema, path: Path | None) -> None:
        self.schema, self.path = schema, path
        self._held: list[pa.RecordBatch] = []
        with translated("writing the spill", disk=True):
            self._writer = None if path is None else pa.ipc.new_stream(path, schema)

    def add(self, batch: pa.RecordBatch) -> None:
        if self._writer is None:
            self._held.append(batch)
            return
        with translated("writing the spill", disk=True):
            self._writer.write_batch(batch)

    def batches(self) -> Iterator[pa.RecordBatch]:
        if self._writer is None:
            yield from self._held
            return
        with translated("reading the spill", disk=True):
            self._writer.close()
            with pa.OSFile(str(self.path)) as file:
                yield from pa.ipc.open_stream(file)

    def close(self) -> None:
        """Gives back what the batches take."""
        self._held = []
        if self._writer is not None and self.path is not None:
            with translated("writing the spill", disk=True):
                self._writer.close()
                self.path.unlink()
