"""Compute the expected content of a release in which people with equal quasi-identifiers may be in different
groups. The search leaves an assignment on disk: how many of the people whom it does not distinguish (equal codes of
quasi-identifiers and sensitive value) go to each group. The rule is that they go there in the order of what else is
published of them. Every row of the source is followed to its group by this rule. What the group must publish is taken
from the row itself and not from the assignment, so that the quasi-identifiers and the sensitive values of a group are
known to come from the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anon.core.database import causes, fed
from anon.cube import Domain, Encoder
from anon.recoding.assignment import Assignment
from anon.source import Column, Source
from anon.verify.content.applied import wrong
from anon.verify.content.fingerprint import Content, content_of, total

BATCH = 65_536  # rows
OTHER = "has groups that the assignment does not have: the source changed, or the assignment is damaged"


def assigned_content(source: Source, assignment: Assignment, sensitive: Domain, hashes: dict[str, str]) -> Content:
    """Return the expected content of the release of an assignment; `hashes` are SQL on the rows of the source."""
    failures: list[BaseException] = []
    groups = groups_of_rows(source, assignment, sensitive, hashes, failures)
    sums = ", ".join(f"{total(name)} AS {name}" for name in hashes)
    query = content_of(f"SELECT g, count(*) AS n, {sums} FROM followed GROUP BY g", [], list(hashes))
    with causes(failures):
        (batch,) = source.stream(query, {"followed": groups})
    return Content(*(column[0].as_py() for column in batch.columns))


def groups_of_rows(
    source: Source,
    assignment: Assignment,
    sensitive: Domain,
    hashes: dict[str, str],
    failures: list[BaseException],
    view: str = Source.VIEW,
    kept: Sequence[Column] = (),
) -> pa.RecordBatchReader:
    """Return the group g of each row of the source, or of another view of it, with the values of `kept`
    quasi-identifiers and hashes of the row."""
    codes, types = [*assignment.columns, "s0"], source.types
    kinds = {column.alias: types[column.alias] for column in kept} | dict.fromkeys(hashes, pa.uint64())
    schema = pa.schema([("g", pa.uint32()), *kinds.items()])
    rows = _ordered_rows(source, assignment, sensitive, hashes, failures, view, kept)
    return fed(schema, _followed(rows, _ordered_entries(source, assignment), codes), failures)


def _ordered_rows(
    source: Source,
    assignment: Assignment,
    sensitive: Domain,
    hashes: dict[str, str],
    failures: list[BaseException],
    view: str,
    kept: Sequence[Column],
) -> Iterator[pa.RecordBatch]:
    """Yield the rows as codes, with the values of `kept` quasi-identifiers and their hashes: rows with equal codes
    together, in the order of what is published of them. Only kept columns of the source, and values that share a code,
    distinguish these."""
    coded = [*source.quasi_identifiers, *source.sensitive]
    domains = [*assignment.domains, sensitive]
    plain = [*(c for c, d in zip(coded, assignment.domains) if not d.single), *source.keep]
    encoder, types = Encoder(coded, domains), source.types
    names, ordering = [*assignment.columns, "s0"], [f"p_{c.alias}" for c in plain]
    carried = {c.alias: types[c.alias] for c in kept} | dict.fromkeys(hashes, pa.uint64())
    schema = pa.schema(
        [*((name, pa.uint16()) for name in names), *((f"p_{c.alias}", types[c.alias]) for c in plain), *carried.items()]
    )
    selected = [c.alias for c in (*coded, *plain, *kept)] + [f"{h} AS {name}" for name, h in hashes.items()]

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in source.rows_of(f"SELECT {', '.join(selected)} FROM {view}", BATCH):
            arrays = [*map(pa.array, encoder.codes(batch)), *batch.columns[len(coded) :]]
            yield pa.record_batch(arrays, schema=schema)

    order = ", ".join(f"{name} NULLS FIRST" for name in (*names, *ordering))
    query = f"SELECT {', '.join([*names, *carried])} FROM coded ORDER BY {order}"
    return source.stream(query, {"coded": fed(schema, batches(), failures)}, BATCH)


def _ordered_entries(source: Source, assignment: Assignment) -> Iterator[pa.RecordBatch]:
    """Yield the entries of the assignment in the order of their codes and groups, each once."""
    by = ", ".join([*assignment.columns, "s0", "g"])
    entries = pa.RecordBatchReader.from_batches(assignment.schema, assignment.batches())
    query = f"SELECT {by}, CAST(sum(n) AS BIGINT) AS n FROM entries GROUP BY {by} ORDER BY {by}"
    return source.stream(query, {"entries": entries}, BATCH)


def _followed(
    rows: Iterable[pa.RecordBatch], entries: Iterator[pa.RecordBatch], codes: list[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the group of each row with what comes after its codes: that of the next entry, repeated according to its
    count."""
    held = _Entries(entries, codes)
    for batch in rows:
        if batch.num_rows:
            own, group = held.take(batch.num_rows)
            if not np.array_equal(own, _matrix(batch, codes)):
                raise wrong(OTHER)
            names = ["g", *batch.schema.names[len(codes) :]]
            yield pa.record_batch([pa.array(group), *batch.columns[len(codes) :]], names=names)
    if held.left():
        raise wrong(OTHER)


class _Entries:
    """Entries (codes, group, times) that are taken one after the other, each repeated `times`."""

    def __init__(self, batches: Iterator[pa.RecordBatch], codes: list[str]) -> None:
        self.batches, self.names = batches, codes
        self.codes = np.empty((len(codes), 0), np.uint16)
        self.group, self.times = np.empty(0, np.uint32), np.empty(0, np.int64)

    def take(self, count: int) -> tuple[NDArray[np.uint16], NDArray[np.uint32]]:
        """Return the codes and the groups of the next `count` people; fewer at the end."""
        while self.times.sum() < count and self._more():
            pass
        ends = np.cumsum(self.times)
        place = np.searchsorted(ends, np.arange(min(count, int(ends[-1]) if len(ends) else 0)), side="right")
        codes, group = self.codes[:, place], self.group[place]
        if len(place):
            used = int(place[-1])
            self.times = np.append(ends[used] - len(place), self.times[used + 1 :])
            self.codes, self.group = self.codes[:, used:], self.group[used:]
        return codes, group

    def left(self) -> bool:
        return bool(self.times.sum()) or self._more()

    def _more(self) -> bool:
        batch = next((batch for batch in self.batches if batch.num_rows), None)
        if batch is None:
            return False
        self.codes = np.concatenate([self.codes, _matrix(batch, self.names)], axis=1)
        self.group = np.append(self.group, batch.column("g").to_numpy())
        self.times = np.append(self.times, batch.column("n").to_numpy())
        return True


def _matrix(batch: pa.RecordBatch, names: list[str]) -> NDArray[np.uint16]:
    return np.stack([batch.column(name).to_numpy() for name in names])
