"""Count how often each value of a column occurs in the source; its domain is made from these counts. Whole numbers and
dates that lie close together are counted in tables, all columns in one stream over the source; others by a GROUP BY
each."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anon.core.arrays import Ints
from anon.core.progress import ProgressCallback
from anon.cube.domain import CODES, LOOKUP, EarlierCuts
from anon.cube.ranges import as_numbers
from anon.errors import SourceError
from anon.source import Column, Source

TABLES = 2**23  # counters in all tables together


@dataclass(frozen=True)
class ValueCounts:
    """The values of a column in order, null first where it occurs, and the rows with each; if there are too many to
    load, the smallest values of bins with about equal numbers of rows, and the rows of these, those of null first."""

    distinct: int
    values: pa.Array
    rows: Ints
    bins: pa.Array | None = None
    last: pa.Array | None = None  # the largest value of each bin
    cuts: EarlierCuts | None = None  # of an earlier recoding, which decides where cells begin and end

    @classmethod
    def from_values(cls, values: pa.Array, rows: Ints) -> ValueCounts:
        """Return the counts of values in order, in bins if there are too many."""
        if len(values) <= CODES:
            return cls(len(values), values, rows)
        first = values.null_count  # null is a value by itself, and comes first
        begins = _bins(rows[first:]) + first
        of_bins = np.append(rows[:first], np.add.reduceat(rows, begins))
        last = np.append(begins[1:], len(values)) - 1
        return cls(len(values), values, of_bins, values.take(pa.array(begins)), values.take(pa.array(last)))


def _bins(rows: Ints) -> Ints:
    """Return where bins begin, as exact weighted quantiles: each bin begins where another share of the rows is
    complete."""
    share = (np.cumsum(rows) - rows) * (CODES - 1) // rows.sum()
    return np.flatnonzero(np.append(True, share[1:] != share[:-1]))


def count(
    source: Source, columns: list[Column], threads: int, on_progress: ProgressCallback = lambda **facts: None
) -> Iterator[ValueCounts]:
    """Yield the value counts of the columns, in order; report the rows read, which are half of those that the cube
    reads in all."""
    in_tables = _in_tables(source, columns, threads, on_progress)
    for column in columns:
        yield in_tables[column.alias] if column.alias in in_tables else _grouped(source, column)


def _grouped(source: Source, column: Column) -> ValueCounts:
    with counted_values(source, [column]) as distinct:
        if distinct <= CODES:
            table = source.query(f"SELECT {column.alias} AS v, n FROM counted ORDER BY v NULLS FIRST")
            return ValueCounts(distinct, _array(table["v"]), table["n"].to_numpy().astype(np.int64))
        name = column.alias
        nulls = source.query(f"SELECT n FROM counted WHERE {name} IS NULL")["n"].to_numpy()
        table = source.query(
            f"WITH binned AS (SELECT {name} AS v, n, (sum(n) OVER (ORDER BY {name}) - n) * {CODES - 1} "
            f"// sum(n) OVER () AS bin FROM counted WHERE {name} IS NOT NULL) "
            "SELECT min(v) AS v, max(v) AS last, sum(n)::BIGINT AS n FROM binned GROUP BY bin ORDER BY v"
        )
        bins, rows = _array(table["v"]), np.append(nulls, table["n"].to_numpy()).astype(np.int64)
        return ValueCounts(distinct, pa.nulls(len(nulls), bins.type), rows, bins, _array(table["last"]))


def _array(values: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)


@contextmanager
def counted_values(source: Source, columns: list[Column]) -> Iterator[int]:
    """Create the table `counted` of the values of some columns, null included, and the rows n with each, within this
    context; yield their number."""
    listed = ", ".join(column.alias for column in columns)
    source.run(f"CREATE TEMP TABLE counted AS SELECT {listed}, count(*) AS n FROM {source.VIEW} GROUP BY {listed}")
    try:
        yield int(source.query("SELECT count(*) FROM counted")[0][0].as_py())
    finally:
        source.run("DROP TABLE counted")


def _in_tables(
    source: Source, columns: list[Column], threads: int, on_progress: ProgressCallback
) -> dict[str, ValueCounts]:
    """Return the counts of the columns whose numbers lie close enough together, from one stream over the source."""
    types = source.types
    whole = [c for c in columns if c.kind in ("integer", "date") and types[c.alias] in (pa.int64(), pa.date32())]
    whole = list({column.alias: column for column in whole}.values())
    if not whole:
        return {}
    ends = source.ends(whole)
    spans = {alias: high - low + 1 for alias, (low, high) in ends.items()}
    available, chosen = TABLES, []
    for column in sorted((c for c in whole if c.alias in spans), key=lambda c: spans[c.alias]):
        if spans[column.alias] <= min(available, LOOKUP):
            chosen.append(column)
            available -= spans[column.alias]
    tables = {c.alias: np.zeros(spans[c.alias], np.uint32) for c in chosen}
    lows = {c.alias: ends[c.alias][0] for c in chosen}
    nulls = dict.fromkeys(tables, 0)
    rows = 0
    # every thread counts its own columns, so that no two of them count in one table
    shares = [own for first in range(threads) if (own := range(first, len(chosen), threads))]

    def add(share: range, batch: pa.RecordBatch) -> None:
        for at in share:
            _add(tables, lows, nulls, chosen[at], batch.column(at))

    with ExitStack() as pools:
        beside = [pools.enter_context(ThreadPoolExecutor(1)) for _ in shares]
        under_way: deque[Future[None]] = deque()
        for batch in source.batches(chosen, view=source.NARROW) if chosen else ():
            under_way.extend(pool.submit(add, share, batch) for pool, share in zip(beside, shares))
            while len(under_way) > 2 * len(shares):
                under_way.popleft().result()
            rows += batch.num_rows
            on_progress(done=rows, of=2 * source.rows)
        for future in under_way:
            future.result()
    return {c.alias: _from_table(tables[c.alias], lows[c.alias], nulls[c.alias], types[c.alias]) for c in chosen}


def _add(
    tables: dict[str, NDArray[np.uint32]], lows: dict[str, int], nulls: dict[str, int], column: Column, values: pa.Array
) -> None:
    """Count the values of a column in its table, and its nulls."""
    from anon.cube import kernels

    nulls[column.alias] += values.null_count
    numbers = as_numbers(values.drop_null() if values.null_count else values)
    if not kernels.count_values(numbers, lows[column.alias], tables[column.alias]):
        raise SourceError(f"column {column.name!r}: new values appeared while the source was being read")


def _from_table(table: NDArray[np.uint32], low: int, nulls: int, kind: pa.DataType) -> ValueCounts:
    at = np.flatnonzero(table)
    numbers = pa.array(at + low, pa.int64())
    values = numbers if kind == pa.int64() else numbers.cast(pa.int32()).cast(kind)
    rows = table[at].astype(np.int64)
    if nulls:
        values, rows = pa.concat_arrays([pa.nulls(1, kind), values]), np.append(nulls, rows)
    return ValueCounts.from_values(values, rows)
