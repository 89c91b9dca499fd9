"""What a search ends in: the recoding, and per group the sensitive codes that occur in it and how often, of which a
generalized release without kept columns is made, and the sensitive table of a bucketized one. The search hands these
over as its groups drop out, and the release reads them in canonical order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anon.core.arrays import Codes
from anon.core.spilled import SpilledBatches
from anon.recoding.assignment import Assignment
from anon.recoding.levels import AnyRecoding


class GroupCounts:
    """Entries (group, sensitive codes, occurrences) in any order, in memory or in a file of the spill folder; an entry
    may come in several pieces. `rank` says which number each group has in canonical order, once that is known."""

    def __init__(self, sensitive: int, spill: Path | None) -> None:
        names = ["g", *(f"s{i}" for i in range(sensitive)), "n"]
        self.schema = pa.schema(list(zip(names, [pa.uint32(), *[pa.uint16()] * sensitive, pa.int64()])))
        self.rank: NDArray[Any] = np.empty(0, np.int64)
        self._entries = SpilledBatches(self.schema, None if spill is None else spill / "group-counts")

    def add(self, group: NDArray[Any], codes: Codes, times: NDArray[Any]) -> None:
        columns = [group.astype(np.uint32), *codes.T, times.astype(np.int64)]
        arrays = [pa.array(np.ascontiguousarray(column)) for column in columns]
        self._entries.add(pa.record_batch(arrays, schema=self.schema))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The entries with the groups' numbers in canonical order."""
        for batch in self._entries.batches():
            group = self.rank[batch.column(0).to_numpy()].astype(np.uint32)
            yield pa.record_batch([pa.array(group), *batch.columns[1:]], schema=self.schema)


@dataclass(frozen=True)
class Outcome:
    """The recoding, the sensitive codes of its groups, and individuals who were unique before, if that is known; or in
    place of the first two an assignment, which tells both."""

    recoding: AnyRecoding | Assignment
    counts: GroupCounts | None
    unique: int | None
    priors: int = 0  # bytes of those that the release is judged against

    @property
    def nbytes(self) -> int:
        """What it takes of the memory while the release is written and judged."""
        return self.recoding.nbytes + (0 if self.counts is None else self.counts.rank.nbytes) + self.priors
