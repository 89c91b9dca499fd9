"""Copy a stream of Arrow batches to a Parquet file of the spill: the wanted columns, and tokens in place of
identifiers."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from anon.core import interrupt
from anon.source.tokens import TokenMaker, Tokens

BATCH = 65_536  # rows


def part_of(schema: pa.Schema, names: list[str]) -> pa.Schema | None:
    """Return some columns of a schema, without what is noted beside them; None if one is missing or there twice."""
    if any(len(schema.get_all_field_indices(name)) != 1 for name in names):
        return None
    return pa.schema([pa.field(name, _plain_type(schema.field(name).type)) for name in names])


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type as which values are copied: categories, and views of text, become text."""
    if pa.types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    return pa.string() if pa.types.is_string_view(kind) else kind


def _plain(values: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(values.type):
        return _plain(values.dictionary).take(values.indices)
    return values.cast(pa.string()) if pa.types.is_string_view(values.type) else values


def copy_batches(batches: Iterable[pa.RecordBatch], schema: pa.Schema, to: Path, tokens: Tokens) -> None:
    """Write the columns of a schema, and the tokens of the identifiers that the batches have too."""
    with closing(TokenMaker(tokens)) as maker:
        copied = pa.schema([*schema, *maker.schema])
        with pq.ParquetWriter(to, copied, compression="lz4", store_schema=False) as writer:
            for batch in batches:
                interrupt.check()
                columns = [*(_plain(batch.column(name)) for name in schema.names), *maker.tokens(batch)]
                writer.write_batch(pa.record_batch(columns, schema=copied))
