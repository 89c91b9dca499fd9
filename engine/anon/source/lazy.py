"""LazyFrames of Polars as tables. A run reads its rows several times, so the query of a LazyFrame is evaluated once, by
Polars' streaming engine, and its batches are copied to the private spill as they come: they are never in memory
together, and every later pass sees the same rows, even if the query would give others the next time. The copy has only
the columns that are used, with tokens in place of identifiers."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import pyarrow as pa
import pyarrow.parquet as pq

from anon.core import interrupt
from anon.core.database import Database, literal, translated
from anon.errors import AnonError, SourceError
from anon.source.tokens import NO_TOKENS, TokenMaker, Tokens

if TYPE_CHECKING:
    import polars as pl

ROWS = 32_768  # of a batch
INSIDE = 8_192  # of a batch within Polars, which holds several per thread: its 100,000 by default can be 1 GB of texts


def is_lazy(table: Any) -> TypeGuard[pl.LazyFrame]:
    """Return whether a table is a LazyFrame; only who has imported Polars can have one."""
    polars = sys.modules.get("polars")
    return polars is not None and isinstance(table, polars.LazyFrame)


def register_lazy(
    database: Database,
    name: str,
    frame: pl.LazyFrame,
    spill: Path,
    take: Callable[[list[str]], list[str]] = list,
    tokens: Tokens = NO_TOKENS,
) -> list[str]:
    """Make a view over the rows of a LazyFrame, copied to the spill; return the names of all of its columns."""
    copy, stopped = spill / f"{name}.parquet", threading.Event()
    with _evaluating():
        names = frame.collect_schema().names()

    def stop() -> bool:
        stopped.set()
        return False  # Polars does not end in the middle of a batch

    interrupt.run_interruptible(lambda: _copy(frame, take(names), tokens, copy, stopped), stop)
    with translated("reading the LazyFrame"):
        database.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet({literal(str(copy))})")
    return names


def _copy(frame: pl.LazyFrame, taken: list[str], tokens: Tokens, to: Path, stopped: threading.Event) -> None:
    """Write some columns of a LazyFrame, and the tokens of its identifiers, to a Parquet file."""
    with closing(TokenMaker(tokens)) as maker:
        writer: pq.ParquetWriter | None = None
        for batch in _batches(frame, [*taken, *(each for each in tokens.names if each not in taken)]):
            if stopped.is_set():
                return
            table = _with_tokens(batch, taken, maker)
            with translated("writing the spill", disk=True):
                writer = writer or pq.ParquetWriter(to, table.schema, compression="lz4", store_schema=False)
                writer.write_table(table)
        if writer is None:
            raise SourceError("the table has no rows")
        with translated("writing the spill", disk=True):
            writer.close()


def _batches(frame: pl.LazyFrame, columns: list[str]) -> Iterator[pa.Table]:
    """Yield the rows of some columns, in types that Parquet has, a batch at a time."""
    import polars as pl

    with pl.Config(streaming_chunk_size=INSIDE):
        with _evaluating():
            schema = frame.collect_schema()
            query = frame.select(_writable(name, schema[name]) for name in columns)
            found = query.collect_batches(chunk_size=ROWS, maintain_order=False, lazy=True, engine="streaming")
        while True:
            with _evaluating():
                batch = next(found, None)
                table = None if batch is None else batch.to_arrow()
            if table is None:
                return
            yield table


def _writable(name: str, dtype: pl.DataType) -> pl.Expr:
    import polars as pl

    column = pl.col(name)
    if isinstance(dtype, pl.Categorical | pl.Enum):
        return column.cast(pl.String)
    return column.cast(pl.Int64) if isinstance(dtype, pl.Int128 | pl.UInt128) else column


def _with_tokens(batch: pa.Table, taken: Collection[str], maker: TokenMaker) -> pa.Table:
    """Return the columns that are used, and the tokens of the identifiers."""
    table = batch.select(list(taken))
    if not maker.names:
        return table
    (identified,) = batch.select(maker.names).combine_chunks().to_batches()
    for field, tokens in zip(maker.schema, maker.tokens(identified)):
        table = table.append_column(field, tokens)
    return table


@contextmanager
def _evaluating() -> Iterator[None]:
    """Turn whatever fails in the query of a LazyFrame into a SourceError, without what is said of it: Polars, and
    functions of the user within the query, may quote values."""
    import polars as pl

    try:
        yield
    except AnonError:
        raise
    except (Exception, pl.exceptions.PanicException) as error:  # noqa: BLE001 - any function may be in a query
        kind = type(error).__name__
        raise SourceError(
            f"the LazyFrame cannot be evaluated: {kind}; evaluate it with collect() on a few rows to see the cause"
        ) from None
