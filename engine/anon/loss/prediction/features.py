"""Turn the columns of a release and of its source into features of one space, so that a classifier that is trained on
labels can be tested on values.

A value of a number, date or time is the feature itself, and whether it is missing another. A category is a feature for
each value, 1 for its own and 0 for the others; of a quasi-identifier with more than 64 values, for each of 64 runs of
neighbours in its order, and of another column, for each of its 64 most frequent values. The features of a label are
their expectation if all values under it are equally likely, as queries and divergence assume."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anon.core.arrays import Floats, Ints
from anon.core.text import CUTTABLE
from anon.cube import Domain
from anon.cube.ranges import as_numbers
from anon.loss.cells import LabelCells
from anon.source import Column

MOST = 64  # features of a category
NUMBERS = ("integer", "number", "decimal")
MOMENTS = ("date", "timestamp")


@dataclass(frozen=True)
class LabelFeatures:
    """The features of a quasi-identifier."""

    domain: Domain

    @cached_property
    def of_codes(self) -> Floats:
        """Return [code, feature]."""
        domain, null = self.domain, int(self.domain.null)
        if domain.kind not in CUTTABLE:
            runs = np.arange(domain.size) * min(MOST, domain.size) // domain.size
            return np.eye(min(MOST, domain.size))[runs]
        numbers = as_numbers(domain.values).astype(np.float64)
        found = np.zeros((domain.size, 1 + null))
        found[null:, 0] = numbers
        if null:
            found[0] = numbers.mean() if len(numbers) else 0.0, 1.0
        return found

    def of_labels(self, cells: LabelCells) -> Floats:
        """Return [label, feature]: the mean over the values under each label."""
        own = self.of_codes
        above = np.concatenate([np.zeros((1, own.shape[1])), np.cumsum(own, axis=0)])
        wide = cells.high > cells.low
        found = own[cells.low]
        low, high = cells.low[wide], cells.high[wide] + 1
        found[wide] = (above[high] - above[low]) / (high - low)[:, None]
        return found


@dataclass(frozen=True)
class PublishedColumn:
    """A column beside the quasi-identifiers, with SQL for its values in the source and in the release. `same`: both
    have the same values, unless numbers were replaced by means."""

    name: str
    number: bool
    in_source: str
    in_release: str
    same: bool = True
    values: tuple[str, ...] = ()  # the most frequent ones of a category
    mean: float = 0.0  # of the source's numbers

    @classmethod
    def from_column(cls, column: Column, released: str, same: bool = True) -> PublishedColumn:
        """Return a column of the source; `released` is its name in the view of the release."""
        own, other = (_sql(column.kind, alias) for alias in (column.alias, released))
        return cls(column.name, column.kind in NUMBERS + MOMENTS, own, other, same)

    def as_text(self) -> PublishedColumn:
        """Return the same column with its values as text."""
        own, other = (f"CAST({sql} AS VARCHAR)" for sql in (self.in_source, self.in_release))
        return replace(self, number=False, in_source=own, in_release=other)

    def of_values(self, values: pa.Array | pa.ChunkedArray) -> Floats:
        """Return [row, feature]."""
        if not self.number:
            codes = pc.index_in(values, pa.array(self.values, pa.string())).fill_null(len(self.values))
            found: Floats = np.eye(len(self.values) + 1)[np.asarray(codes)][:, :-1]
            return found
        missing = np.asarray(values.is_null()).astype(np.float64)
        return np.stack([np.asarray(values.fill_null(self.mean)), missing], axis=1)

    @property
    def width(self) -> int:
        return 2 if self.number else len(self.values)


def _sql(kind: str, alias: str) -> str:
    """Return SQL for a column as a double or as text, whichever file it is read from."""
    if kind in NUMBERS:
        number = f"TRY_CAST({alias} AS DOUBLE)"
        return f"(CASE WHEN isfinite({number}) THEN {number} + 0.0::DOUBLE END)"
    return f"epoch(TRY_CAST({alias} AS TIMESTAMP))" if kind in MOMENTS else f"CAST({alias} AS VARCHAR)"


def stacked(tables: list[Floats], numbers: list[Ints], columns: list[PublishedColumn], values: list[Any]) -> Floats:
    """Return [row, feature]: for each quasi-identifier the features of a number in its table, then the others."""
    parts = [table[own] for table, own in zip(tables, numbers)]
    parts += [column.of_values(own) for column, own in zip(columns, values)]
    return np.concatenate(parts, axis=1)
