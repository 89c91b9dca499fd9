"""One level per column for the whole table: the levels of a column as the lattice search sees them, and the recoding
that it returns, which release, report and `recoding.json` use like a tree of cuts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anon.artifacts.recoding import FORMAT, LatticeHead
from anon.core.arrays import Codes, Flags, Ints
from anon.core.cell_index import CellIndex
from anon.cube import Domain
from anon.recoding import metrics
from anon.recoding.refined import RefinedRecoding
from anon.recoding.tree import ColumnLabels, Recoding, in_order, recoded_column


class ColumnLevels:
    """The levels of one column: those of its hierarchy, or the value and `*`. The nodes of a level are numbered in the
    order of their codes, so that the nodes of level 0 are the codes themselves. A column that is capped has no level
    `*`."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        if domain.tree is None:
            rows = [np.arange(domain.size), np.zeros(domain.size, np.int64)]
        else:
            levels = domain.tree.node_at[:-1] if domain.capped else domain.tree.node_at
            rows = [np.cumsum(np.diff(row, prepend=row[:1]) != 0) for row in levels]
        self.node: list[Codes] = [row.astype(np.uint16) for row in rows]  # per level, the node of each code
        self.first = [np.flatnonzero(np.diff(row, prepend=-1)) for row in rows]  # per level, each node's first code

    @property
    def height(self) -> int:
        return len(self.node) - 1

    def size(self, level: int) -> int:
        """Return the number of nodes of a level."""
        return len(self.first[level])

    def leaves(self, level: int) -> Ints:
        """Return the number of values under each node of a level."""
        return np.diff(self.first[level], append=self.domain.size)

    def step(self, low: int, high: int) -> Ints:
        """Return for each node of a level its ancestor at a higher level."""
        return self.node[high][self.first[low]].astype(np.int64)

    def labels(self, level: int) -> list[str | None]:
        """Return the published label of each node of a level. Unlike in a tree of cuts, a node that covers no more than
        the one below it still has its own label: the whole column is published at one level."""
        if level == self.height and not self.domain.capped:
            return ["*"]
        if self.domain.tree is None or level == 0:
            return self.domain.texts
        tree = self.domain.tree
        return [tree.label[node] for node in tree.node_at[level][self.first[level]]]


@dataclass(frozen=True)
class LevelRecoding:
    """A level for each column, which assigns every row its cell. The groups are the cells that are published, in
    canonical order; the rows of other cells are suppressed."""

    columns: list[ColumnLevels]
    chosen: tuple[int, ...]  # the level of each column
    cells: Codes  # [columns, groups] the nodes of each group
    people: Ints  # individuals per group
    dropped: Codes  # [columns, cells] the nodes of cells that are suppressed
    suppressed: int  # individuals
    facts: dict[str, Any]  # about the search, for recoding.json: the metric, `chosen` and `minimal`
    safe: Flags | None = None  # after a search the safe nodes of the lattice: an array with one axis per column

    @property
    def domains(self) -> list[Domain]:
        return [column.domain for column in self.columns]

    @property
    def groups(self) -> int:
        return len(self.people)

    @cached_property
    def labels(self) -> list[ColumnLabels]:
        """Return the published labels, per column."""
        return [
            column_labels(column, level, cells) for column, level, cells in zip(self.columns, self.chosen, self.cells)
        ]

    @property
    def nbytes(self) -> int:
        """Return the bytes of memory that it takes."""
        own = self.cells.nbytes + self.people.nbytes + self.dropped.nbytes
        return own + sum(labels.nbytes for labels in self.labels)

    def span(self, column: int) -> tuple[Ints, float]:
        """Return the number of values under the label of each group in a column, less one, and the number of values of
        the column, less one."""
        own = self.columns[column]
        return own.leaves(self.chosen[column])[self.cells[column]] - 1, own.domain.size - 1.0

    @property
    def height(self) -> int:
        return metrics.height(self.chosen)

    def assign(self, codes: Codes) -> NDArray[np.uint32]:
        """Return the group of each row of codes [columns, rows]; the number of groups for a suppressed row."""
        nodes = (column.node[level][own] for column, level, own in zip(self.columns, self.chosen, codes))
        return self._index.find(nodes)

    @cached_property
    def _index(self) -> CellIndex:
        sizes = [column.size(level) for column, level in zip(self.columns, self.chosen)]
        return CellIndex(self.cells, sizes)

    def levels_of(self, column: int) -> list[int]:
        """Return the levels at which a column is published."""
        return [self.chosen[column]]

    @property
    def head(self) -> LatticeHead:
        """The content of recoding.json without the suppressed cells."""
        return self._head("lattice", columns=[recoded_column(domain) for domain in self.domains], **self.facts)

    def _head(self, method: str, **facts: Any) -> LatticeHead:
        return LatticeHead(format=FORMAT, method=method, groups=self.groups, suppressed=self.suppressed, **facts)

    def write(self, path: Path) -> None:
        """Write recoding.json: the levels, and the labels of the suppressed cells, one per line."""
        head = self.head
        labels = [column.labels(level) for column, level in zip(self.columns, self.chosen)]
        lines = (
            json.dumps([words[node] for words, node in zip(labels, cell)], ensure_ascii=False)
            for cell in self.dropped.T.tolist()
        )
        with path.open("w", encoding="utf-8") as file:
            file.write(json.dumps(head.to_dict(), ensure_ascii=False)[:-1] + ', "suppressed_cells": [')
            for number, line in enumerate(lines):
                file.write(f"\n{line}" if number == 0 else f",\n{line}")
            file.write("]}\n")


AnyRecoding = Recoding | LevelRecoding | RefinedRecoding


def column_labels(column: ColumnLevels, level: int, nodes: NDArray[Any]) -> ColumnLabels:
    """Return the labels of some nodes of a level: each distinct one once, in canonical order, and the index of the
    label of each node."""
    used, inverse = np.unique(nodes, return_inverse=True)
    words = column.labels(level)
    used = used.astype(np.int64)
    labels = pa.array([words[node] for node in used], pa.string())
    ends = np.append(column.first[level], column.domain.size)
    cells = np.stack([ends[used], ends[used + 1] - 1], axis=1)
    return in_order(column.domain, labels, cells, inverse.reshape(-1))


def canonical_order(columns: Sequence[ColumnLevels], levels: Sequence[int], cells: NDArray[Any]) -> Ints:
    """Return the order of cells [columns, cells] by their labels."""
    labels = [column_labels(*each).of_group for each in zip(columns, levels, cells)]
    return np.lexsort(labels[::-1])
