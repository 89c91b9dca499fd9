"""What a search ends in: the recoding, and what a generalized release without kept columns is made of, which is per
group the sensitive codes that occur in it and their people. The search hands these over as its groups drop out, and
the release reads them in canonical order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anon.database import translated
from anon.levels import AnyRecoding
from anon.records import Codes

Ints = NDArray[np.int64]


class GroupCounts:
    """Entries (group, sensitive codes, people) in any order, in memory or in a file of the spill folder; an entry may
    come in several pieces. `rank` says which number each group has in canonical order, once that is known."""

    def __init__(self, sensitive: int, spill: Path | None) -> None:
        names = ["g", *(f"s{i}" for i in range(sensitive)), "n"]
        self.schema = pa.schema(list(zip(names, [pa.uint32(), *[pa.uint16()] * sensitive, pa.int64()])))
        self.path = None if spill is None else spill / "group-counts"
        self.rank: Ints = np.empty(0, np.int64)
        self._held: list[pa.RecordBatch] = []
        self._writer = None if self.path is None else pa.ipc.new_stream(self.path, self.schema)

    def add(self, group: Ints, codes: Codes, people: Ints) -> None:
        columns = [group.astype(np.uint32), *codes.T, people]
        batch = pa.record_batch([pa.array(np.ascontiguousarray(c)) for c in columns], schema=self.schema)
        if self._writer is None:
            self._held.append(batch)
            return
        with translated("writing the spill"):
            self._writer.write_batch(batch)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The entries with the groups' numbers in canonical order."""
        for batch in self._stored():
            group = self.rank[batch.column(0).to_numpy()].astype(np.uint32)
            yield pa.record_batch([pa.array(group), *batch.columns[1:]], schema=self.schema)

    def _stored(self) -> Iterator[pa.RecordBatch]:
        if self._writer is None:
            yield from self._held
            return
        self._writer.close()
        with translated("reading the spill"), pa.OSFile(str(self.path)) as file:
            yield from pa.ipc.open_stream(file)


@dataclass(frozen=True)
class Outcome:
    """The recoding, the sensitive codes of its groups with their people, and individuals who were unique before."""

    recoding: AnyRecoding
    counts: GroupCounts
    unique: int
