"""The tree of a hierarchy: the label paths of a column's values become nodes over ordered integer codes, each node one
contiguous range of codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anon.core.arrays import Ints
from anon.errors import ConfigError
from anon.hierarchy.label_levels import ROOT, LabelLevel, Paths, Row, first_of_name


@dataclass(frozen=True, eq=False)
class HierarchyTree:
    """The nodes of a hierarchy over codes 0, 1, ...; node i < codes is the leaf of code i, the root is the last node.

    `levels` is the level of the root, `node_at[level, code]` the node of a code at each level from 0. Per node: its
    label (None for null), its inclusive code range, its parent (-1 for the root) and its lowest level. The children of
    a node are `child[child_start[node]:child_start[node + 1]]`, in code order.
    """

    levels: int
    node_at: NDArray[np.int32]
    label: tuple[str | None, ...]
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    parent: NDArray[np.int32]
    level: NDArray[np.int32]
    child_start: NDArray[np.int32]
    child: NDArray[np.int32]

    @classmethod
    def build(cls, paths: Sequence[Row], texts: Sequence[str], null: bool) -> tuple[HierarchyTree, Ints]:
        """Return the tree over the leaves `texts` with the label paths `paths`, and the order of the leaves in it: the
        leaf with code i (i + 1 if `null`) is the input leaf order[i]. Null has code 0 and is a child of the root."""
        ranks = paths.ranks if isinstance(paths, Paths) else None
        order = np.arange(len(paths)) if ranks is None else np.argsort(np.asarray(ranks, dtype=np.int64), kind="stable")
        columns: list[Row] = list(zip(*(paths[i] for i in order))) if paths else [()]
        inner = _inner_levels(columns)
        nodes = _Nodes([texts[i] for i in order], null)
        for level, labels in enumerate(columns):
            nodes.add_level(labels, whole=level >= inner)
        nodes.refuse_same_labels(paths.where if isinstance(paths, Paths) else "columns.quasi_identifiers")
        return nodes.tree(), order.astype(np.int64)

    def common(self, low_codes: ArrayLike, high_codes: ArrayLike) -> NDArray[np.int32]:
        """Return the lowest node that covers both codes, element by element."""
        low, high = np.asarray(low_codes), np.asarray(high_codes)
        found: NDArray[np.int32] = self.node_at[self.levels][low]
        for row in self.node_at[self.levels - 1 :: -1]:
            found = np.where(row[low] == row[high], row[low], found)
        return found

    @cached_property
    def labels(self) -> NDArray[np.object_]:
        """Return the labels as an array, to be indexed by an array of nodes."""
        return np.array(self.label, dtype=object)


def _children(parent: NDArray[np.int32], low: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    below = np.flatnonzero(parent >= 0)
    child = below[np.lexsort((low[below], parent[below]))]
    start = np.concatenate([[0], np.cumsum(np.bincount(parent[below], minlength=len(parent)))])
    return start.astype(np.int32), child.astype(np.int32)


def _inner_levels(columns: list[Row]) -> int:
    """Return the number of levels below the root and its repeats."""
    root = set(columns[-1])
    if len(root) > 1:
        raise ValueError("the last label is not the same for all leaves")
    return max((level for level, labels in enumerate(columns, 1) if set(labels) != root), default=0)


class _Nodes:
    """A tree that is built from the leaves up, one level of labels at a time."""

    def __init__(self, texts: list[str], null: bool) -> None:
        self.null = int(null)
        codes = len(texts) + self.null
        if codes == 0 or len(set(texts)) != len(texts):
            raise ValueError("a tree needs at least one leaf, and every leaf once")
        self.label: list[str | None] = [*[None] * self.null, *texts]
        self.rows = [np.arange(codes, dtype=np.int32)]
        self.low = self.high = self.rows[0]
        self.level = np.zeros(codes, np.int32)

    def add_level(self, labels: Sequence[str], whole: bool) -> None:
        """Add the next level on top; `labels` are those of the leaves in order, without null. A `whole` level is one
        node, which includes null."""
        row = self.rows[-1]
        low, names = (np.zeros(1, np.int32), list(labels[:1]) or [ROOT]) if whole else self._ranges(labels)
        high = np.append(low[1:], len(row)).astype(np.int32) - 1
        below = row[low]
        same = (self.low[below] == low) & (self.high[below] == high)
        new = ~same | np.array([self.label[node] != name for node, name in zip(below, names)], dtype=bool)
        nodes = np.where(new, len(self.label) + np.cumsum(new) - 1, below).astype(np.int32)
        self.label += [name for name, is_new in zip(names, new) if is_new]
        self.low, self.high = np.append(self.low, low[new]), np.append(self.high, high[new])
        self.level = np.append(self.level, np.full(new.sum(), len(self.rows), np.int32))
        self.rows.append(np.repeat(nodes, high - low + 1))

    def _ranges(self, labels: Sequence[str]) -> tuple[NDArray[np.int32], Sequence[str | None]]:
        """Return the first code and the label of each node of a level; null is a node by itself."""
        level = LabelLevel.from_labels(labels)
        if np.any(np.diff(level.number) < 0):
            raise ValueError("leaves under one label are not next to each other")
        low = level.first.astype(np.int32) + self.null
        if np.any(self.rows[-1][low] == self.rows[-1][np.maximum(low - 1, 0)], where=low > 0):
            raise ValueError("a label has two parents")
        return np.append(np.zeros(self.null, np.int32), low), [*[None] * self.null, *level.names.to_pylist()]

    def refuse_same_labels(self, where: str) -> None:
        """Refuse labels that stand for two different ranges of codes."""
        before = first_of_name(self.label)
        clashes = np.unique(before[(self.low != self.low[before]) | (self.high != self.high[before])])
        if len(clashes):
            data = np.count_nonzero(clashes < len(self.rows[0]))
            found = f"{len(clashes)} labels with two meanings, {data} of them also data values"
            raise ConfigError.at(where, found, "labels that are distinct from each other and from all data values")

    def tree(self) -> HierarchyTree:
        parent = np.full(len(self.label), -1, np.int32)
        for row, above in zip(self.rows, self.rows[1:]):
            parent[row[row != above]] = above[row != above]
        children = _children(parent, self.low)
        node_at = np.stack(self.rows)
        return HierarchyTree(
            len(node_at) - 1, node_at, tuple(self.label), self.low, self.high, parent, self.level, *children
        )
