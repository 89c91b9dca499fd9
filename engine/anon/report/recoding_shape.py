"""Describe a recoding for the report: what became of each column, and the tree of cuts or the lattice, both small
enough for a page whatever the number of groups. Labels are data, and are included only if values may be shown."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anon.core.arrays import Ints
from anon.cube import Domain
from anon.recoding.assignment import Assignment
from anon.recoding.levels import AnyRecoding, LevelRecoding
from anon.recoding.refined import RefinedRecoding
from anon.recoding.tree import Recoding

NODES = 3_000  # of a tree of cuts that are listed
CHILDREN = 64  # of one node; if there are more, the smallest are merged
LATTICE = 4_096  # nodes of a lattice that are listed


def shape(
    recoding: AnyRecoding | Assignment, exact: bool, show_values: bool, number: Ints | None = None
) -> dict[str, Any]:
    """Return the facts about a recoding: `columns`, and `tree` or, for a lattice, `lattice_nodes`; neither if people
    were assigned to groups one by one. `exact`: the values are published unchanged. `number`: the numbers of the groups
    in the files, if they differ from the recoding's."""
    columns = [_unchanged(domain) for domain in recoding.domains]
    if isinstance(recoding, Assignment):
        return {"columns": columns}
    if not exact:
        columns = [_column(recoding, index, *recoding.span(index)) for index in range(len(recoding.domains))]
    if isinstance(recoding, LevelRecoding):
        return {"columns": columns, **({} if recoding.safe is None else {"lattice_nodes": _lattice(recoding.safe)})}
    if isinstance(recoding, RefinedRecoding):  # the values above the lowest one from which labels extend
        for facts, labels in zip(columns, recoding.labels):
            facts["cuts"] = len(np.unique(labels.cells[:, 0])) - 1
        return {"columns": columns}
    cuts = np.bincount(recoding.column[recoding.column >= 0], minlength=len(columns)).tolist()
    for facts, count in zip(columns, cuts):
        facts["cuts"] = count
    return {"columns": columns, **({} if recoding.reused else {"tree": CutTree(recoding, number).facts(show_values)})}


def _unchanged(domain: Domain) -> dict[str, Any]:
    shares = {"as_it_is": 1.0, "not_at_all": 0.0, "levels": [0]}
    return {"name": domain.column, "values": domain.size, "labels": domain.size, **shares}


def _column(recoding: AnyRecoding, index: int, span: NDArray[Any], whole: float) -> dict[str, Any]:
    """Return the numbers of values and of labels of a column, and the shares of individuals whose value is published
    unchanged and not at all."""
    domain, people = recoding.domains[index], recoding.people
    everybody = int(people.sum())
    facts: dict[str, Any] = {
        "name": domain.column,
        "values": domain.size,
        "labels": len(recoding.labels[index].labels),
        "as_it_is": int(people[span == 0].sum()) / everybody,
        "not_at_all": int(people[(span == whole) & (span > 0)].sum()) / everybody,
    }
    if domain.tree is not None or isinstance(recoding, LevelRecoding):
        facts["levels"] = recoding.levels_of(index)
    return facts


def _lattice(safe: NDArray[np.bool_]) -> dict[str, Any]:
    """Return the numbers of nodes and of safe nodes of each height, and for a small lattice which nodes are safe, in
    the order of the columns with the last one changing fastest."""
    height = sum(np.indices(safe.shape, sparse=True))
    every, fine = (np.bincount(np.broadcast_to(height, safe.shape)[which]) for which in (np.ones_like(safe), safe))
    fine = np.pad(fine, (0, len(every) - len(fine)))
    facts: dict[str, Any] = {
        "levels": [size - 1 for size in safe.shape],
        "heights": [{"nodes": a, "safe": b} for a, b in zip(every.tolist(), fine.tolist())],
    }
    if safe.size <= LATTICE:
        facts["safe"] = "".join("1" if node else "0" for node in safe.ravel().tolist())
    return facts


class CutTree:
    """A tree of cuts with the individuals, the groups and the smallest group under each node."""

    def __init__(self, recoding: Recoding, number: Ints | None = None) -> None:
        self.recoding, self.number = recoding, np.arange(recoding.groups) if number is None else number
        split = np.flatnonzero(recoding.column >= 0).astype(np.uint32)
        self.parts = np.where(recoding.column >= 0, recoding.children, 0).astype(np.uint32)
        self.parent = np.zeros(len(recoding.column), np.uint32)
        self.parent[1:] = np.repeat(split, self.parts[split])
        leaf = recoding.is_group
        # there may be millions of nodes
        kind: np.dtype[Any] = np.dtype(np.uint32 if recoding.people.sum() < 2**32 else np.uint64)
        own = recoding.people.astype(kind)[np.where(leaf, recoding.child, 0)]
        self.people, self.groups = np.where(leaf, own, kind.type(0)), leaf.astype(np.uint32)
        self.smallest = np.where(leaf, own, kind.type(np.iinfo(kind.name).max))
        for low, high in reversed(self._levels()):
            above = self.parent[low:high]
            np.add.at(self.people, above, self.people[low:high])
            np.add.at(self.groups, above, self.groups[low:high])
            np.minimum.at(self.smallest, above, self.smallest[low:high])

    def _levels(self) -> list[tuple[int, int]]:
        """Return the range of nodes of each level but the first; the nodes of a level are consecutive."""
        found, low, high = [], 0, 1
        while count := int(self.parts[low:high].sum()):
            low, high = high, high + count
            found.append((low, high))
        return found

    def facts(self, show_values: bool) -> list[dict[str, Any]]:
        """Return nodes from the root on, the largest opened first until there are enough. Each has its individuals, and
        below the root the node above; `split` is the column that an opened node is cut by, `groups` the number of
        groups under it, `together` the number of small nodes that it stands for."""
        listed: list[dict[str, Any]] = [self._node(0)]
        queue = [(-int(self.people[0]), 0, 0)] if self.parts[0] else []  # individuals, place in listed, node
        while queue and len(listed) + min(int(self.parts[queue[0][2]]), CHILDREN) <= NODES:
            _, place, node = heapq.heappop(queue)
            listed[place]["split"] = int(self.recoding.column[node])
            shown, rest = self._children(node)
            for child in shown.tolist():
                if self.parts[child]:
                    heapq.heappush(queue, (-int(self.people[child]), len(listed), child))
                listed.append(self._node(child) | {"above": place} | self._label(child, node, show_values))
            if len(rest):
                listed.append(self._together(rest) | {"above": place})
        return listed

    def _children(self, node: int) -> tuple[Ints, Ints]:
        """Return the children of a node that are listed, in their order, and those that are merged; without those that
        are suppressed."""
        first = int(self.recoding.child[node])
        nodes = np.arange(first, first + self.parts[node])
        nodes = nodes[self.groups[nodes] > 0]
        if len(nodes) <= CHILDREN:
            return nodes, nodes[:0]
        order = np.argsort(-self.people[nodes], kind="stable")
        return np.sort(nodes[order[: CHILDREN - 1]]), nodes[order[CHILDREN - 1 :]]

    def _node(self, node: int) -> dict[str, Any]:
        facts = {"individuals": int(self.people[node])}
        if not self.parts[node]:
            return facts | {"group": int(self.number[self.recoding.child[node]])}
        return facts | {"groups": int(self.groups[node]), "smallest": int(self.smallest[node])}

    def _together(self, nodes: Ints) -> dict[str, Any]:
        return {
            "individuals": int(self.people[nodes].sum()),
            "groups": int(self.groups[nodes].sum()),
            "smallest": int(self.smallest[nodes].min()),
            "together": len(nodes),
        }

    def _label(self, node: int, above: int, show_values: bool) -> dict[str, Any]:
        if not show_values:
            return {}
        recoding = self.recoding
        domain = recoding.domains[int(recoding.column[above])]
        return {"label": domain.label(int(recoding.own_low[node]), int(recoding.own_high[node]))}
