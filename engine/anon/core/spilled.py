"""Batches of rows that one stage of the pipeline keeps for a later one: in memory, or in a file of the spill folder
where there is one. They are read back in the order in which they were added."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from anon.core.database import translated


class SpilledBatches:
    """Batches of one schema. After the first read, none can be added; they can be read any number of times."""

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
        """Free the memory or delete the file of the batches."""
        self._held = []
        if self._writer is not None and self.path is not None:
            with translated("writing the spill", disk=True):
                self._writer.close()
                self.path.unlink()
