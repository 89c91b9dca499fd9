"""The result of *merge* and *colour*, where *partition* and *lattice* return a recoding: the group of every individual.
Individuals with equal quasi-identifiers may be in different groups, so there is no function from values to groups;
instead every distinct record of the cube has the groups of its individuals, and the number of individuals in each. The
search adds these as it finds them, in any order, and the bucketized release reads them back. The search does not
distinguish individuals with equal quasi-identifiers and equal sensitive value: the release decides which of them goes
to which group (it deals them out in the order of the other columns that are published of them).

A search of this kind is a function `search(config, cube, values, budget, on_progress) -> Outcome`; the pipeline calls
it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anon.artifacts.recoding import FORMAT, AssignmentRecoding, NamedColumn
from anon.core.arrays import Codes, Ints
from anon.core.spilled import SpilledBatches
from anon.cube import Domain


class Assignment:
    """Entries (quasi-identifier codes, sensitive code, group, people) in a file of the spill folder, or in memory
    without one. Groups are numbered from 0 as the search counts them, and none is empty; the published numbers do not
    depend on these. An entry may be added in several pieces. Every individual is in an entry: none is suppressed."""

    suppressed = 0

    def __init__(self, method: str, domains: list[Domain], spill: Path | None = None) -> None:
        """Create an empty assignment; `method` is its name in the config, `domains` are those of the quasi-identifiers,
        in the cube's order."""
        self.method, self.domains = method, domains
        self.facts: dict[str, Any] = {}  # about the search, for recoding.json and the report
        self.columns = [f"c{index}" for index in range(len(domains))]
        kinds = [*[pa.uint16()] * len(domains), pa.uint16(), pa.uint32(), pa.uint32()]
        self.schema = pa.schema(list(zip([*self.columns, "s0", "g", "n"], kinds)))
        self._entries = SpilledBatches(self.schema, None if spill is None else spill / "assignment")
        self._people = np.zeros(0, np.int64)
        self._merged_into: Ints | None = None
        self.counterfeits: Ints | None = None  # of each group, among its people; None where there cannot be any

    def add(self, codes: Codes, group: NDArray[Any], people: NDArray[Any]) -> None:
        """Add entries: codes [quasi-identifiers and then the sensitive column, entries], all people above 0."""
        if not len(group):
            return
        self._count(group.astype(np.int64), people.astype(np.int64))
        columns = [*codes, group.astype(np.uint32), people.astype(np.uint32)]
        arrays = [pa.array(np.ascontiguousarray(column)) for column in columns]
        self._entries.add(pa.record_batch(arrays, schema=self.schema))

    def _count(self, group: Ints, people: Ints) -> None:
        beyond = int(group.max()) + 1 - len(self._people)
        if beyond > 0:
            self._people = np.append(self._people, np.zeros(max(beyond, len(self._people)), np.int64))
        np.add.at(self._people, group, people)

    def merge(self, into: Ints) -> None:
        """Merge groups: `into` has a number for each, from 0 on without gaps."""
        self._people = np.bincount(into, self.people).astype(np.int64)
        self._merged_into = into

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the entries in the order in which they were added; after this none can be added."""
        if self._merged_into is None:
            yield from self._entries.batches()
            return
        for batch in self._entries.batches():
            group = self._merged_into[batch.column("g").to_numpy()].astype(np.uint32)
            place = self.schema.get_field_index("g")
            yield batch.set_column(place, self.schema.field(place), pa.array(group))

    @property
    def people(self) -> Ints:
        """Return the number of individuals of each group."""
        return self._people[: self.groups]

    @property
    def nbytes(self) -> int:
        """Return the bytes of memory that it takes, and that the published numbers of its groups will take."""
        return self._people.nbytes + 4 * self.groups

    @property
    def groups(self) -> int:
        return int(self._people.nonzero()[0].max(initial=-1)) + 1

    def to_file(self) -> AssignmentRecoding:
        """Return the content of recoding.json: without the groups of individuals, which would be as large as the table,
        and without hierarchies, by which no column was published."""
        columns = [NamedColumn(name=each.column, kind=each.kind, nulls=each.null) for each in self.domains]
        return AssignmentRecoding(format=FORMAT, method=self.method, groups=self.groups, columns=columns, **self.facts)

    def write(self, path: Path) -> None:
        """Write recoding.json."""
        path.write_text(json.dumps(self.to_file().to_dict(), ensure_ascii=False) + "\n", encoding="utf-8")
