"""Read the source's quasi-identifiers as keys: by SQL on a view of the source, and with tables that it joins for
columns whose keys are looked up by value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anon.source import Column, Source
from anon.verify.content.labels import HIGHEST, as_keys

MOST = 2**17  # distinct values of a column whose keys are looked up; a cube has fewer


@dataclass(frozen=True)
class Keys:
    """A reader of the keys of some columns. `tables`: for columns whose keys are looked up, the values v and the key c
    of each; `constant`: columns that have one key for all values."""

    columns: list[Column]
    tables: dict[str, pa.Table] = field(default_factory=dict)
    constant: frozenset[str] = frozenset()

    def select(self, view: str, hashes: dict[str, str]) -> str:
        """Return SQL for the keys, or the values that they follow from, and named hashes of each row."""
        found = [f"{self._sql(column)} AS {column.alias}" for column in self.columns]
        found += [f"{sql} AS {name}" for name, sql in hashes.items()]
        joins = [f" LEFT JOIN {name} ON {alias} IS NOT DISTINCT FROM {name}.v" for alias, name in self._joined()]
        return f"SELECT {', '.join(found)} FROM {view}{''.join(joins)}"

    def _sql(self, column: Column) -> str:
        if column.alias in self.constant:
            return "0::BIGINT"
        looked_up = dict(self._joined()).get(column.alias)
        return column.alias if looked_up is None else f"coalesce({looked_up}.c, {HIGHEST})"

    def _joined(self) -> list[tuple[str, str]]:
        return [(c.alias, _table(c)) for c in self.columns if _table(c) in self.tables]

    def read(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        """Return [columns, rows]: the keys of a batch of what `select` reads."""
        keys = np.empty((len(self.columns), batch.num_rows), np.int64)
        for j, column in enumerate(self.columns):
            plain = column.alias in self.constant or _table(column) in self.tables
            keys[j] = np.asarray(batch.column(j)) if plain else as_keys(column.kind, batch.column(j))
        return keys

    def present(self, source: Source, j: int) -> NDArray[np.int64]:
        """Return the keys of the values of one of the columns, in order; it has no more values than a cube holds."""
        column = self.columns[j]
        if (table := self.tables.get(_table(column))) is not None:
            return np.unique(table["c"].to_numpy())
        return np.unique(as_keys(column.kind, source.distinct(column, MOST).combine_chunks()))


def _table(column: Column) -> str:
    return f"keys_of_{column.alias}"


def looked_up(source: Source, column: Column, keys_of: Callable[[list[Any]], list[int]]) -> dict[str, pa.Table]:
    """Return the table of a column's distinct values and their keys."""
    values = source.distinct(column, MOST).combine_chunks()
    return {_table(column): pa.table({"v": values, "c": pa.array(keys_of(values.to_pylist()), pa.int64())})}
