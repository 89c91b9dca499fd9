"""Read the levels of a lattice from recoding.json: each column's labels at its level, and the cells that are
suppressed."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from anon.artifacts.recoding import RecodedColumn
from anon.verify.content.labels import ARROW, Grammar, ListedLabels, OrderedLabels, Row, keys_of_texts
from anon.verify.content.recoding_file import RecodingFile


class LevelLabels:
    """The labels of one column at one level, numbered in the order in which they are met. `rows`: those of a hierarchy
    that recoding.json lists; without a hierarchy a column has its values and, above them, `*`."""

    def __init__(self, column: RecodedColumn, level: int) -> None:
        self.level, self.top = level, column.height
        self.rows = {row[0]: row for row in column.hierarchy}
        self.codes: dict[str | None, int] = {}

    @property
    def constant(self) -> bool:
        return self.level == self.top

    def code(self, row: Row) -> int:
        """Return the number of the label of a value, given with its labels upwards. Null is null below the top, even if
        a reused recoding.json does not list it."""
        unlisted = row[0] is None and len(row) == 1
        label = "*" if self.constant else row[0] if self.level == 0 or unlisted else row[self.level]
        return self.codes.setdefault(label, len(self.codes))

    @property
    def words(self) -> pa.Table:
        """Return the labels l by their numbers c."""
        numbers = pa.array(range(len(self.codes)), pa.int64())
        return pa.table({"c": numbers, "l": pa.array(list(self.codes), pa.string())})


def check_cut_labels(column: RecodedColumn, level: int) -> None:
    """Raise ValueError if the labels of a column that was cut freely are not true for the values that they are listed
    for, or overlap."""
    values, labels = ([row[at] for row in column.hierarchy] for at in (0, level))
    if column.kind in ARROW:
        grammar: Grammar = OrderedLabels(column.kind)
        keys = keys_of_texts(column.kind, pa.array(values, pa.string()))
    else:
        grammar = ListedLabels.from_values([value for value in values if value is not None])
        keys = np.array([grammar.place[value] for value in values], np.int64)
    words = list(dict.fromkeys(labels))
    ranges = dict(zip(words, grammar.ranges(pa.array(words, pa.string()))))
    first, last = np.array([ranges[label] for label in labels], np.int64).T
    if not ((first <= keys) & (keys <= last)).all():
        raise ValueError("a label that is not true for a value")
    ordered = np.array(sorted(map(tuple, ranges.values())), np.int64)
    if (ordered[1:, 0] <= ordered[:-1, 1]).any():
        raise ValueError("labels that overlap")


def suppressed_cells(file: RecodingFile, labels: list[LevelLabels]) -> pa.Table:
    """Return the cells that a recoding.json lists as suppressed, as the numbers of their labels in q0, q1, ...; without
    those with a label that no row has."""
    schema = pa.schema(
        [(f"q{j}", pa.from_numpy_dtype(np.min_scalar_type(len(own.codes)))) for j, own in enumerate(labels)]
    )
    batches = []
    for lines in file.chunks():
        cells: list[Row] = [json.loads(line) for line in lines.splitlines()]
        coded = [[own.codes.get(label, -1) for own, label in zip(labels, cell)] for cell in cells]
        there = [cell for cell in coded if min(cell) >= 0]
        arrays = [pa.array(codes, kind) for codes, kind in zip(zip(*there), schema.types)]
        batches += [pa.record_batch(arrays, schema=schema)] if there else []
    return pa.Table.from_batches(batches, schema)
