"""One level per column for a tree of cuts (`release: {one_level: true}`), for recipients who need labels that do not
overlap. Every column is made coarser until the cell of each group lies in one label of the column:

- a column with a hierarchy is published at the lowest level at which every group's node is within one node;
- a column that is cut freely keeps the cuts that no group's cell crosses. With none left it is published as `*`, and so
  is a column of more values than a cube has codes for, whose values recoding.json could not list.

Groups that then have equal labels are one group. So every new group is a union of groups that are safe, and a criterion
that is monotone (merging safe groups gives a safe group) holds for it; config/support.py refuses the others. The
written files are verified as always."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from anon.artifacts.recoding import LatticeHead, RecodedColumn
from anon.core.arrays import Ints
from anon.core.cell_index import combined
from anon.cube import Domain
from anon.recoding.levels import ColumnLevels, LevelRecoding, canonical_order
from anon.recoding.outcome import Outcome
from anon.recoding.tree import ColumnLabels, Recoding, recoded_column


class CutLevels(ColumnLevels):
    """The levels of a column that is cut freely: its values, the parts between some cuts, and `*`."""

    def __init__(self, domain: Domain, begins: Ints) -> None:
        """`begins`: the first code of each part."""
        super().__init__(domain)
        parts = np.searchsorted(begins, np.arange(domain.size), "right") - 1
        self.node.insert(1, parts.astype(np.uint16))
        self.first.insert(1, begins)

    def labels(self, level: int) -> list[str | None]:
        if level != 1:
            return super().labels(level)
        ends = np.append(self.first[1][1:], self.domain.size) - 1
        return [self.domain.label(low, high) for low, high in zip(self.first[1].tolist(), ends.tolist())]


@dataclass(frozen=True)
class OneLevel(LevelRecoding):
    """Levels that a tree of cuts was coarsened to."""

    @property
    def head(self) -> LatticeHead:
        levels = {column.domain.column: level for column, level in zip(self.columns, self.chosen)}
        columns = [_recoded(column) for column in self.columns]
        return self._head("partition", one_level=True, columns=columns, chosen={"levels": levels})


def _recoded(column: ColumnLevels) -> RecodedColumn:
    """Return a column for recoding.json; the parts of one that is cut freely are listed like nodes of a hierarchy."""
    recoded = recoded_column(column.domain)
    if not isinstance(column, CutLevels):
        return recoded
    labels = column.labels(1)
    listed = [[value, labels[part], "*"] for value, part in zip(column.domain.texts, column.node[1].tolist())]
    return RecodedColumn.model_validate(recoded.to_dict() | {"cut": True, "hierarchy": listed})


def at_one_level(found: Outcome) -> Outcome:
    """Return the outcome of a search by partition with one level per column."""
    tree = found.recoding
    assert isinstance(tree, Recoding)
    columns, chosen = zip(*(_level(domain, labels) for domain, labels in zip(tree.domains, tree.labels)))
    nodes = np.stack([column.node[level][labels.low] for column, level, labels in zip(columns, chosen, tree.labels)])
    _, first, merged = np.unique(combined(list(nodes)), return_index=True, return_inverse=True)
    cells = nodes[:, first]
    order = canonical_order(columns, chosen, cells)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    into = rank[merged.reshape(-1)]
    people = np.bincount(into, tree.people, len(order)).astype(np.int64)
    dropped = np.empty((len(columns), 0), np.uint16)
    recoding = OneLevel(list(columns), tuple(chosen), cells[:, order], people, dropped, 0, {})
    if found.counts is not None:
        found.counts.rank = into[found.counts.rank]
    return replace(found, recoding=recoding)


def _level(domain: Domain, labels: ColumnLabels) -> tuple[ColumnLevels, int]:
    """Return the levels of a column, and the lowest at which the cell of every group lies in one node."""
    low, high = labels.cells.T
    levels = ColumnLevels(domain)
    if domain.tree is None:
        begins = _common(low, high)
        if not domain.single or len(begins) == 1:
            return levels, levels.height
        levels = CutLevels(domain, begins)
    return levels, next(at for at, node in enumerate(levels.node) if np.array_equal(node[low], node[high]))


def _common(low: Ints, high: Ints) -> Ints:
    """Return the codes at which cells begin and that no cell crosses.

    >>> _common(np.array([0, 0, 3, 5]), np.array([2, 1, 4, 6])).tolist()
    [0, 3, 5]
    >>> _common(np.array([0, 2]), np.array([3, 6])).tolist()
    [0]
    """
    order = np.argsort(low, kind="stable")
    reached = np.maximum.accumulate(high[order])
    begins = low[order][1:][low[order][1:] > reached[:-1]]
    return np.append(0, begins).astype(np.int64)
