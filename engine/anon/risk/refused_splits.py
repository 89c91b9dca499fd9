"""The splits that the partition search refused in small parts of a tree of cuts, repeated from the people in them: all
of a group, and of a node that was split those before the one that was made. The order is that of
search/partition/decide.py, which depends on quasi-identifiers alone: an adversary who knows these knows it too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from anon.core.arrays import Codes, Flags, Ints
from anon.cube import Domain
from anon.recoding.tree import Recoding
from anon.search.partition.candidates import widths
from anon.search.partition.public import PublicCuts

ORDERED = ("widest", "balanced", "public")  # preferences whose order is repeated; of others only groups are examined


@dataclass(frozen=True)
class Split:
    """A split of some people along a column: [parts, people] who is in which part."""

    column: int
    parts: Flags


@dataclass(frozen=True)
class SmallNode:
    """A node of the tree with few people: their places in a sample, and the split that was made of it, if any."""

    people: Ints
    groups: list[int]
    column: int
    cuts: Ints


def nodes_under(recoding: Recoding, top: int, people_of: dict[int, Ints]) -> list[SmallNode]:
    """Return the nodes from `top` down, given the places of the people of each group."""
    column, start, child = int(recoding.column[top]), recoding.cut_start, recoding.child
    if column < 0:
        group = int(child[top])
        return [SmallNode(people_of[group], [group], -1, np.empty(0, np.int64))]
    cuts = recoding.cut[int(start[top]) : int(start[top + 1])].astype(np.int64)
    below = [nodes_under(recoding, int(child[top]) + at, people_of) for at in range(len(cuts) + 1)]
    people = np.concatenate([nodes[0].people for nodes in below])
    groups = [group for nodes in below for group in nodes[0].groups]
    return [SmallNode(people, groups, column, cuts), *(node for nodes in below for node in nodes)]


@dataclass(frozen=True)
class Repeated:
    """The splits of nodes as the search tried them, by a preference of ORDERED or another one."""

    domains: list[Domain]
    prefer: str
    least: int  # no smaller group is safe
    public: PublicCuts | None = None

    def refused(self, node: SmallNode, codes: Codes) -> list[Split]:
        """Return the splits of a node that were refused, and not for the number of people alone. `codes`: those of its
        people [columns, people]."""
        if node.column >= 0 and self.prefer not in ORDERED:
            return []
        found = []
        for split in self._tried(codes):
            if node.column == split.column and self._is_made(node, split, codes):
                break
            if split.parts.sum(axis=1).min() >= self.least:
                found.append(split)
        return found

    def _is_made(self, node: SmallNode, split: Split, codes: Codes) -> bool:
        """Return whether a split is the one that was made of a node: both have the same people in the same order."""
        part = np.searchsorted(node.cuts, codes[node.column].astype(np.int64), side="right")
        return np.array_equal(split.parts, part == np.unique(part)[:, None])

    def _tried(self, codes: Codes) -> Iterator[Split]:
        own = codes.astype(np.int64)
        low, high = own.min(axis=1), own.max(axis=1)
        splits = {j: self._splits(j, own[j]) for j in np.flatnonzero(high > low).tolist()}
        for j in self._order(list(splits), splits, low, high):
            yield from splits[j]

    def _order(self, columns: list[int], splits: dict[int, list[Split]], low: Ints, high: Ints) -> list[int]:
        """Return columns in the order of preference, ties in config order."""
        if self.prefer == "balanced":
            return sorted(columns, key=lambda j: int(splits[j][0].parts.sum(axis=1).max()))
        cells = low[None], high[None]
        if self.public is not None:
            cells = self.public.cells(*cells)
        (rank,) = -widths(self.domains, *cells)
        return sorted(columns, key=lambda j: float(rank[j]))

    def _splits(self, j: int, own: Ints) -> list[Split]:
        """Return the splits along a column: of a hierarchy the only one, else the cuts nearest to the median first."""
        domain = self.domains[j]
        if domain.tree is not None and domain.by_nodes:
            cover = int(domain.tree.common(own.min(), own.max()))
            below = domain.tree.child[domain.tree.child_start[cover] : domain.tree.child_start[cover + 1]]
            parts = (own >= domain.tree.low[below][:, None]) & (own <= domain.tree.high[below][:, None])
            return [Split(j, parts[parts.any(axis=1)])]
        if self.public is not None:
            cuts = self.public.cuts(np.array([j]), own.min()[None], own.max()[None])
        else:
            distinct, count = np.unique(own, return_counts=True)
            off = np.abs(2 * np.cumsum(count)[:-1] - len(own))
            cuts = distinct[1:][np.argsort(off, kind="stable")]
        return [Split(j, np.stack([own < cut, own >= cut])) for cut in cuts.tolist()]
