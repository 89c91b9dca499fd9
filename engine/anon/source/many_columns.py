"""Many columns of a table in one pass: their values in one column beside the number of the column they are from. A
query for each column would bind all columns of a wide table each time, and the time of many aggregates in a query grows
by their square."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import duckdb

from anon.core.database import Database, translated

MOST = 250  # columns of a query
CELLS = 20_000_000  # of a query, unless one column has more
BYTES = 40_000_000  # of text that a vector of rows may hold
VECTOR = 2_048  # rows that DuckDB works on at a time

T = TypeVar("T")
Row = tuple[Any, ...]


def stacked(base: str, expressions: Sequence[str], beside: str = "") -> str:
    """Return the SQL for the values of several expressions of one type, as rows of `v` and `nth`, the number of each,
    with further columns beside them.

    >>> print(stacked("t", ["a", "b"], "c"))
    (SELECT unnest([a, b]) AS v, unnest(range(2)) AS nth, c FROM t)
    """
    more = f", {beside}" if beside else ""
    if len(expressions) == 1:
        return f"(SELECT {expressions[0]} AS v, 0 AS nth{more} FROM {base})"
    listed = ", ".join(expressions)
    return f"(SELECT unnest([{listed}]) AS v, unnest(range({len(expressions)})) AS nth{more} FROM {base})"


def batches(items: Sequence[T], rows: int, bytes_each: int = 0) -> Iterator[Sequence[T]]:
    """Return the columns of a table in parts for a query each; `bytes_each`: of a value on average.

    >>> [len(part) for part in batches(range(600), 1000)], [len(part) for part in batches(range(3), 10**9)]
    ([250, 250, 100], [1, 1, 1])
    """
    most = min(MOST, CELLS // max(rows, 1), BYTES // max(VECTOR * bytes_each, 1))
    for start in range(0, len(items), max(most, 1)):
        yield items[start : start + max(most, 1)]


def answers(
    database: Database,
    items: Sequence[T],
    rows: int,
    query: Callable[[Sequence[T]], str],
    bytes_each: int = 0,
) -> Iterator[tuple[T, Row | None]]:
    """Yield what a query for each batch of columns answers, whose rows begin with `nth`. A batch that the memory is too
    small for is halved; a column that is too large by itself has None for an answer."""
    for batch in batches(items, rows, bytes_each):
        yield from _answered(database, batch, query)


def _answered(
    database: Database, batch: Sequence[T], query: Callable[[Sequence[T]], str]
) -> Iterator[tuple[T, Row | None]]:
    found: list[Row] = []
    enough = True
    with translated("reading the source"):
        try:
            found = database.query(query(batch)).fetchall()
        except duckdb.OutOfMemoryException as error:
            if "temp" in str(error):  # the disk
                raise
            enough = False
    if enough:
        yield from ((batch[nth], tuple(row)) for nth, *row in found)
    elif len(batch) == 1:
        yield batch[0], None
    else:
        half = len(batch) // 2
        yield from _answered(database, batch[:half], query)
        yield from _answered(database, batch[half:], query)
