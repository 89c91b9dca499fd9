"""Make a bucketized release of an assignment, whose groups may have quasi-identifiers in common. There are three steps,
each a stream through an external sort of DuckDB:

1. the rows (quasi-identifiers, kept values, group) in canonical order, in which equal quasi-identifiers and equal rows
   have equal numbers;
2. the order of the groups: of each group its rows as a list of these numbers, and its sensitive values with their
   counts, compared as bytes;
3. the rows again, the equal ones now in the order of their groups' published numbers.

Without kept columns the entries of the assignment determine the rows. Otherwise the rows of the source are used: the
search does not distinguish individuals with equal quasi-identifiers and equal sensitive value, and they are dealt to
its groups in the order of their kept values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anon.core.arrays import Codes, Flags, Ints
from anon.core.database import Database, fed
from anon.core.spilled import SpilledBatches
from anon.cube import Domain, Encoder
from anon.recoding.assignment import Assignment
from anon.release.files import ROW_GROUP, changed, in_order, repeated, row_groups
from anon.source import Column, Source

BATCH = 65_536  # groups that are put in order at a time


@dataclass
class AssignedRelease:
    """A release in progress. `tables` must be consumed before `counts`."""

    database: Database
    source: Source
    assignment: Assignment
    sensitive: Domain
    spill: Path
    failures: list[BaseException]
    rank: NDArray[np.uint32] = field(default_factory=lambda: np.empty(0, np.uint32))  # published numbers of groups

    @property
    def columns(self) -> list[Column]:
        return [*self.source.quasi_identifiers, *self.source.keep]

    @property
    def is_determined(self) -> bool:
        """Return whether the assignment contains everything that is published of individuals."""
        return not self.source.keep and all(domain.single for domain in self.assignment.domains)

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows (quasi-identifiers, kept values, group) in canonical order, in tables of a row group each."""
        rows = self._numbered(self._from_entries() if self.is_determined else self._from_source())
        try:
            self.rank = self._ranked(rows)
            for table in row_groups(_expanded(self._by_number(rows))):
                yield self._with_values(table) if self.is_determined else table
        finally:
            rows.close()

    def counts(self) -> Iterator[pa.RecordBatch]:
        """Yield the count of each sensitive code in each group, in canonical order."""
        batches = (_with_group(b, self.rank[b.column(0).to_numpy()].astype(np.int64)) for b in self._values())
        schema = pa.schema([("g", pa.int64()), ("s0", pa.uint16()), ("n", pa.int64())])
        yield from self._sorted("SELECT g, s0, n FROM given ORDER BY g, s0", schema, batches)

    def in_groups(self) -> pa.RecordBatchReader:
        """Return the rows of the source as (group, sensitive code, kept values), in the order of their codes."""
        kept = [(column.alias, self.source.types[column.alias]) for column in self.source.keep]
        schema = pa.schema([("g", pa.uint32()), ("s0", pa.uint16()), *kept])
        return fed(schema, self._dealt(schema), self.failures)

    def _sorted(self, query: str, schema: pa.Schema, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the result of a query on some batches, on a separate connection: several run at the same time."""
        with closing(self.database.cursor()) as database:
            database.register("given", fed(schema, given, self.failures))
            yield from database.query(query).to_arrow_reader(ROW_GROUP)

    def _entries(self, columns: str) -> Iterator[pa.RecordBatch]:
        """Return the entries grouped by some of their columns, in the order of these, with the people of each as n."""
        query = f"SELECT {columns}, CAST(sum(n) AS BIGINT) AS n FROM given GROUP BY {columns} ORDER BY {columns}"
        return self._sorted(query, self.assignment.schema, self.assignment.batches())

    def _values(self) -> Iterator[pa.RecordBatch]:
        return self._entries("g, s0")

    def _from_entries(self) -> Iterator[pa.RecordBatch]:
        """Return rows (ranks of the quasi-identifiers' values in canonical order, group, n), in canonical order."""
        schema, names = self.assignment.schema, self.assignment.columns
        ranks = [_ranks(domain) for domain in self.assignment.domains]

        def ranked() -> Iterator[pa.RecordBatch]:
            for batch in self.assignment.batches():
                own = [pa.array(rank[batch.column(j).to_numpy()]) for j, rank in enumerate(ranks)]
                yield pa.record_batch([*own, *batch.columns[len(own) :]], schema=schema)

        by = ", ".join(names)
        query = f"SELECT {by}, g, CAST(sum(n) AS BIGINT) AS n FROM given GROUP BY {by}, g ORDER BY {by}"
        return self._sorted(query, schema, ranked())

    def _from_source(self) -> Iterator[pa.RecordBatch]:
        """Return rows (quasi-identifiers, kept values, group, n), in canonical order."""
        names = [column.alias for column in self.columns]
        types = self.source.types
        schema = pa.schema([*((name, types[name]) for name in names), ("g", pa.uint32())])
        query = f"SELECT *, 1::BIGINT AS n FROM given ORDER BY {in_order(names)}"
        return self._sorted(query, schema, self._dealt(schema))

    def _dealt(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the source's rows with the groups that the assignment deals them to."""
        coded = [*self.assignment.columns, "s0"]
        by, more = ", ".join(coded), [column.alias for column in self.columns]
        query = f"SELECT {by}, {', '.join(more)} FROM given ORDER BY {by}, {in_order(more)}"
        dealt = row_groups(_expanded(self._entries(f"{by}, g")))
        for table in row_groups(self._sorted(query, *self._coded())):
            entries = next(dealt, None)
            if entries is None or table.num_rows != entries.num_rows or table.select(coded) != entries.select(coded):
                raise changed()
            (batch,) = table.append_column("g", entries.column("g")).select(schema.names).to_batches()
            yield pa.record_batch(batch.columns, schema=schema)
        if next(dealt, None) is not None:
            raise changed()

    def _coded(self) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """Return the source's rows, as codes and as original values, with their schema."""
        columns = [*self.source.quasi_identifiers, *self.source.sensitive, *self.source.keep]
        width, types = len(self.assignment.domains) + 1, self.source.types
        encoder = Encoder(columns[:width], [*self.assignment.domains, self.sensitive])
        names = [*self.assignment.columns, "s0"]
        schema = pa.schema([(name, pa.uint16()) for name in names] + [(c.alias, types[c.alias]) for c in self.columns])

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in self.source.batches(columns):
                plain = [batch.column(columns.index(column)) for column in self.columns]
                yield pa.record_batch([*map(pa.array, encoder.codes(batch)), *plain], schema=schema)

        return schema, batches()

    def _numbered(self, rows: Iterable[pa.RecordBatch]) -> SpilledBatches:
        """Spill the rows with their numbers and return them: t is equal for equal quasi-identifiers, r for equal
        rows."""
        width, published = len(self.assignment.domains), len(self.columns)
        found, last, done = None, None, [-1, -1]
        for batch in rows:
            if not batch.num_rows:
                continue
            numbers = [
                before + np.cumsum(_changes(last, batch, columns)) for before, columns in zip(done, (width, published))
            ]
            arrays = [*batch.columns, *(pa.array(number.astype(np.uint32)) for number in numbers)]
            numbered = pa.record_batch(arrays, names=[*batch.schema.names, "t", "r"])
            found = found or SpilledBatches(numbered.schema, self.spill / "numbered-rows")
            found.add(numbered)
            last, done = batch.slice(batch.num_rows - 1), [int(number[-1]) for number in numbers]
        assert found is not None, "a source has rows"
        return found

    def _ranked(self, rows: SpilledBatches) -> NDArray[np.uint32]:
        """Return the rank of each group in canonical order."""

        def listed(number: str) -> Iterator[pa.Array]:
            query = f"SELECT g, {number}, CAST(sum(n) AS BIGINT) AS n FROM given GROUP BY ALL ORDER BY g, {number}"
            return _lists(_expanded(self._sorted(query, rows.schema, rows.batches())))

        keys = [listed("t"), _lists(self._values()), *([listed("r")] if self.source.keep else [])]
        names = [f"k{index}" for index in range(len(keys))]
        schema = pa.schema([("g", pa.int64()), *((name, pa.large_binary()) for name in names)])

        def batches() -> Iterator[pa.RecordBatch]:
            first = 0
            for arrays in zip(*keys, strict=True):
                group = np.arange(first, first + len(arrays[0]))
                yield pa.record_batch([pa.array(group), *arrays], schema=schema)
                first += len(group)

        rank, done = np.empty(self.assignment.groups, np.uint32), 0
        for batch in self._sorted(f"SELECT g FROM given ORDER BY {', '.join(names)}", schema, batches()):
            rank[batch.column(0).to_numpy()] = np.arange(done, done + batch.num_rows)
            done += batch.num_rows
        return rank

    def _by_number(self, rows: SpilledBatches) -> Iterator[pa.RecordBatch]:
        """Yield the rows (published columns, n) with the published numbers of their groups; equal rows in the order of
        these. A run of equal rows may continue in the next batch."""
        held: list[pa.RecordBatch] = []
        for batch in rows.batches():
            number = batch.column(batch.num_columns - 1).to_numpy()
            whole = int(np.searchsorted(number, number[-1]))
            if whole or (held and held[0].column("r")[0].as_py() != number[0]):
                yield self._in_run_order([*held, batch.slice(0, whole)])
                held, batch = [], batch.slice(whole)
            held.append(batch)
        yield self._in_run_order(held)

    def _in_run_order(self, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
        rows = pa.concat_batches(batches)
        rank, times = self.rank[rows.column("g").to_numpy()].astype(np.int64), rows.column("n").to_numpy()
        order = np.lexsort((rank, rows.column("r").to_numpy()))
        arrays = [*rows.columns[: len(self.columns)], pa.array(rank[order]), pa.array(times[order])]
        return pa.record_batch(arrays, names=[*rows.schema.names[: len(self.columns)], "g", "n"])

    def _with_values(self, table: pa.Table) -> pa.Table:
        """Return a table with the ranks of values replaced by the values."""
        for j, domain in enumerate(self.assignment.domains):
            index = table.column(j).to_numpy().astype(np.int64) - domain.null
            values = _in_value_order(domain).take(pa.array(index, mask=index < 0))
            table = table.set_column(j, table.schema.names[j], values)
        return table


def _expanded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return chain.from_iterable(map(repeated, batches))


def _in_value_order(domain: Domain) -> pa.Array:
    """Return the values of a domain in canonical order; with a hierarchy they are stored in the order of its leaves."""
    return domain.values if domain.tree is None else domain.values.take(pc.sort_indices(domain.values))


def _ranks(domain: Domain) -> Codes:
    """Return the rank of each code in canonical order, null first."""
    ranks = np.arange(domain.size, dtype=np.uint16)
    if domain.tree is not None:
        order = pc.sort_indices(domain.values).to_numpy()
        ranks[order + domain.null] = np.arange(len(order)) + domain.null
    return ranks


def _with_group(batch: pa.RecordBatch, group: Ints) -> pa.RecordBatch:
    return pa.record_batch([pa.array(group), *batch.columns[1:]], names=batch.schema.names)


def _changes(last: pa.RecordBatch | None, batch: pa.RecordBatch, columns: int) -> Flags:
    """Return which rows differ from the previous one in their first columns; `last` precedes the batch."""
    rows = batch if last is None else pa.concat_batches([last, batch])
    differ = np.zeros(rows.num_rows - 1, bool)
    for column in rows.columns[:columns]:
        differ |= _differ(column.slice(1), column.slice(0, len(column) - 1))
    return np.append(True, differ) if last is None else differ


def _differ(these: pa.Array, those: pa.Array) -> NDArray[Any]:
    """Return which values differ; nulls are equal, and so are NaNs."""
    other: NDArray[Any] = pc.fill_null(pc.not_equal(these, those), False).to_numpy(zero_copy_only=False)
    other |= these.is_null().to_numpy(zero_copy_only=False) != those.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_floating(these.type):
        other &= ~(_not_numbers(these) & _not_numbers(those))
    return other


def _not_numbers(values: pa.Array) -> Flags:
    return np.asarray(pc.fill_null(pc.is_nan(values), False))


def _lists(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Array]:
    """Yield, from (group, numbers) in order of groups, of which none is missing, the numbers of each group as bytes
    that compare as the lists do; some groups at a time."""
    held: list[tuple[Ints, NDArray[Any]]] = []
    first = 0
    for batch in batches:
        group = batch.column(0).to_numpy().astype(np.int64)
        numbers = np.stack([column.to_numpy() for column in batch.columns[1:]], axis=1).astype(">u4")
        while len(group) and group[-1] >= first + BATCH:
            cut = int(np.searchsorted(group, first + BATCH))
            yield _as_bytes([*held, (group[:cut], numbers[:cut])], first, BATCH)
            held, group, numbers, first = [], group[cut:], numbers[cut:], first + BATCH
        held.append((group, numbers))
    yield _as_bytes(held, first, int(held[-1][0][-1]) + 1 - first)


def _as_bytes(pieces: list[tuple[Ints, NDArray[Any]]], first: int, groups: int) -> pa.Array:
    group, numbers = (np.concatenate(arrays) for arrays in zip(*pieces))
    ends = np.searchsorted(group, np.arange(first, first + groups + 1)) * (4 * numbers.shape[1])
    buffers = [None, pa.py_buffer(ends.astype(np.int64)), pa.py_buffer(numbers.astype(">u4").tobytes())]
    return pa.Array.from_buffers(pa.large_binary(), groups, buffers)
