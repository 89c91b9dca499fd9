"""The result of a search: the recoding, and per group the sensitive codes that occur in it with their counts. A
generalized release without kept columns is made from these, and the sensitive table of a bucketized one. The search
adds them as it completes groups, and the release reads them in canonical order."""

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
    may be added in several pieces. `rank` is the number of each group in canonical order, once that is known."""

    def __init__(self, sensitive: int, spill: Path | None) -> None:
        names = ["g", *(f"s{i}" for i in range(sensitive)), "n"]
        self.schema = pa.schema(list(zip(names, [pa.uint32(), *[pa.uint16()] * sensitive, pa.int64()])))
        self.rank: NDArray[Any] = np.empty(0, np.int64)
        self._entries = SpilledBatches(self.schema, None if spill is None else spill / "group-counts")

    def add(self, group: NDArray[Any], codes: Codes, times: NDArray[Any]) -> None:
        """Add entries: the group, the codes [entries, sensitive columns] and the occurrences of each."""
        columns = [group.astype(np.uint32), *codes.T, times.astype(np.int64)]
        arrays = [pa.array(np.ascontiguousarray(column)) for column in columns]
        self._entries.add(pa.record_batch(arrays, schema=self.schema))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the entries with the groups' numbers in canonical order."""
        for batch in self._entries.batches():
            group = self.rank[batch.column(0).to_numpy()].astype(np.uint32)
            yield pa.record_batch([pa.array(group), *batch.columns[1:]], schema=self.schema)


@dataclass(frozen=True)
class Outcome:
    """The recoding, the sensitive codes of its groups, and the number of individuals who were unique in the source, if
    that is known; or in place of the first two an assignment, which contains both."""

    recoding: AnyRecoding | Assignment
    counts: GroupCounts | None
    unique: int | None
    priors: int = 0  # bytes of the priors that the release is judged against
    passed: Codes | None = None  # of each group, in canonical order: candidates that count for a guard

    @property
    def nbytes(self) -> int:
        """Return the bytes of memory that it takes while the release is written and judged."""
        return self.recoding.nbytes + (0 if self.counts is None else self.counts.rank.nbytes) + self.priors
