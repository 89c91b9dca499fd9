"""The tree of cuts as the search builds it, in fragments: the top of the tree, and under it one fragment per block.
When all are complete, `assemble` makes one tree of them, numbered breadth first, with its groups in canonical order. A
table may have millions of groups, so numbers have the narrowest type possible, and hardly anything is held twice."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anon.artifacts.recoding import Reach
from anon.core.arrays import Codes, Flags, Ints, ranges
from anon.core.checkpoint import Arrays
from anon.cube import Domain
from anon.recoding.tree import ColumnLabels, Recoding, children_of, column_labels
from anon.search.partition.candidates import OpenNodes, Splits
from anon.search.partition.guard import UNBOUNDED
from anon.search.partition.public import PublicCuts

LISTS = ("column", "cuts", "cut", "peeled", "own_low", "own_high", "low", "high", "people", "passed")
PIECE = 131_072  # nodes
Numbers = NDArray[np.uint32]  # of nodes or groups
# in place of a column: the node is a group; the node continues in another fragment; its people are dropped
GROUP, ELSEWHERE, DROPPED = -1, -2, -3


@dataclass
class Fragment:
    """A part of a tree of cuts, level by level: for each node the column of its split, the number of its cuts and
    whether it is peeled, for each split the cuts, for each child its cell in the column that its parent is split by,
    for each group its cells."""

    column: list[NDArray[np.int8]] = field(default_factory=list)
    cuts: list[NDArray[Any]] = field(default_factory=list)  # 16 bits each, 32 in a level where that is too few
    cut: list[Codes] = field(default_factory=list)
    peeled: list[Flags] = field(default_factory=list)
    own_low: list[Codes] = field(default_factory=list)  # of the children of a level, in order
    own_high: list[Codes] = field(default_factory=list)
    low: list[Codes] = field(default_factory=list)  # [groups, columns]
    high: list[Codes] = field(default_factory=list)
    people: list[Ints] = field(default_factory=list)
    passed: list[Codes] = field(default_factory=list)  # candidates of each group that count for a guard
    groups: int = 0
    broken: int = 0  # groups that fail a criterion which is not monotone
    dropped: int = 0  # people

    def arrays(self) -> Arrays:
        """Return the fragment as named arrays, with the levels concatenated: a few long arrays are written quickly."""
        found = {"numbers": np.array([len(self.column), self.groups, self.broken, self.dropped])}
        for name in LISTS if self.column else ():
            pieces = getattr(self, name)
            found |= {name: np.concatenate(pieces), f"{name}.ends": np.cumsum([len(piece) for piece in pieces])}
        return found

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Fragment:
        levels, groups, broken, dropped = arrays["numbers"].tolist()
        fragment = cls(groups=groups, broken=broken, dropped=dropped)
        for name in LISTS if levels else ():
            setattr(fragment, name, np.split(arrays[name], arrays[f"{name}.ends"][:-1]))
        return fragment

    def add_level(
        self,
        nodes: OpenNodes,
        splits: Splits,
        domains: list[Domain],
        tight: bool = False,
        public: PublicCuts | None = None,
        elsewhere: Flags | None = None,
    ) -> Flags:
        """Add the nodes of a level and the splits of some, in order; return which of the others are groups: they
        neither continue elsewhere nor are dropped. `tight`: the cells of groups are as small as their members allow;
        else with `public` cuts as small as these allow."""
        column = np.full(len(nodes), GROUP, np.int8)
        if elsewhere is not None:
            column[elsewhere] = ELSEWHERE
        column[nodes.dropped] = DROPPED
        column[splits.node] = splits.column
        cut_start, cut = splits.cuts()
        most = int(np.diff(cut_start).max(initial=0))  # of a peeled split up to two for each code
        cuts, peeled = np.zeros(len(nodes), np.uint16 if most < 2**16 else np.uint32), np.zeros(len(nodes), bool)
        cuts[splits.node], peeled[splits.node] = np.diff(cut_start), splits.peeled
        own_cut, own_low, own_high = (codes.astype(np.uint16) for codes in (cut, splits.low, splits.high))
        group: Flags = column == GROUP
        passed = np.minimum(nodes.passed[group].sum(axis=1), UNBOUNDED).astype(np.uint16)
        low, high = _published(nodes.take(np.flatnonzero(group)), domains, tight, public)
        for name, array in (
            ("column", column), ("cuts", cuts), ("cut", own_cut), ("peeled", peeled), ("own_low", own_low),
            ("own_high", own_high), ("low", low), ("high", high), ("people", nodes.people[group]), ("passed", passed),
        ):  # fmt: skip
            getattr(self, name).append(array)
        self.groups += int(group.sum())
        self.broken += int((group & ~nodes.safe).sum())
        self.dropped += int(nodes.people[nodes.dropped].sum())
        return group


def _published(nodes: OpenNodes, domains: list[Domain], tight: bool, public: PublicCuts | None) -> tuple[Codes, Codes]:
    """Return the cells of nodes as they are published: in a hierarchy column the hierarchy node that covers the
    members, elsewhere the cell between cuts, with public cuts the smallest public cell that holds the members, or, if
    tight, from the lowest to the highest code of the members. Nodes are apart in some column that was cut between them,
    so their tight cells are apart there too."""
    ends = (nodes.low, nodes.high) if tight else (nodes.cell_low, nodes.cell_high)
    if public is not None and not tight:
        ends = public.cells(nodes.low, nodes.high)
    low, high = (end.astype(np.uint16) for end in ends)
    for j, domain in enumerate(domains):
        if domain.tree is not None and domain.by_nodes:
            cover = domain.tree.common(nodes.low[:, j], nodes.high[:, j])
            low[:, j], high[:, j] = domain.tree.low[cover], domain.tree.high[cover]
    return low, high


@dataclass
class _RawNodes:
    """All nodes of all fragments, one fragment after the other; numbers are indexes of these arrays."""

    column: NDArray[np.int8]
    cuts: NDArray[Any]
    cut: Codes
    peeled: Flags
    child: Numbers  # the first child; for a group its number; for a node that continues elsewhere that node; else 0
    own_low: Codes
    own_high: Codes


def assemble(
    domains: list[Domain], top: Fragment | None, blocks: list[Fragment], reach: Reach = "cells"
) -> tuple[Recoding, Numbers]:
    """Return one tree, and for the groups, counted through all fragments, their number in canonical order. The nodes of
    the top that continue elsewhere are, in order, the roots of the blocks; without a top the only block is the tree.
    The fragments are empty afterwards."""
    fragments = ([top] if top is not None else []) + blocks
    suppressed = sum(fragment.dropped for fragment in fragments)
    raw = _raw(fragments, top is not None)
    labels, rank = canonical(domains, _taken(fragments, "low"), _taken(fragments, "high"))
    people = np.empty(len(rank), np.int64)
    people[rank] = _taken(fragments, "people")
    order, child = _breadth_first(raw)
    column = raw.column[order]
    group, dropped = column == GROUP, column == DROPPED
    child[group] = rank[raw.child[order[group]]]
    column[dropped], child[dropped] = GROUP, len(rank)
    starts = np.append(0, np.cumsum(raw.cuts[order], dtype=np.uint32)).astype(np.uint32)
    cut, own_low, own_high = _cuts(raw, order), raw.own_low[order], raw.own_high[order]
    tree = domains, column, starts, cut, child, raw.peeled[order], own_low, own_high
    return Recoding(*tree, labels, people, reach=reach, suppressed=suppressed), rank


def passed_over(fragments: list[Fragment]) -> Codes:
    """Return for the groups, counted through all fragments, the candidates that count for a guard; before they are
    assembled."""
    return _taken(fragments, "passed")


def _taken(fragments: list[Fragment], name: str) -> NDArray[Any]:
    """Return an attribute of all fragments as one array, and remove it from them."""
    parts = [array for fragment in fragments for array in getattr(fragment, name)]
    for fragment in fragments:
        setattr(fragment, name, [])
    return np.concatenate(parts)


def _raw(fragments: list[Fragment], has_top: bool) -> _RawNodes:
    sizes, roots = ([sum(map(len, f.column)) for f in fragments], [len(f.column[0]) for f in fragments])
    for fragment, first in zip(fragments, roots):  # the cells of its roots are in another fragment
        for cells in (fragment.own_low, fragment.own_high):
            cells.insert(0, np.zeros(first, np.uint16))
    names = ("column", "cuts", "cut", "peeled", "own_low", "own_high")
    column, cuts, cut, peeled, own_low, own_high = (_taken(fragments, name) for name in names)
    child, arrived, offset, groups = np.zeros(len(column), np.uint32), [np.empty(0, np.int64)], 0, 0
    for number, (fragment, size, first) in enumerate(zip(fragments, sizes, roots)):
        own = slice(offset, offset + size)
        split = column[own] >= 0
        children = children_of(cuts[own][split].astype(np.int64), peeled[own][split])
        child[own][split] = offset + first + np.cumsum(children) - children
        child[own][column[own] == GROUP] = groups + np.arange(fragment.groups)
        if number or not has_top:
            arrived.append(offset + np.arange(first))
        offset, groups = offset + size, groups + fragment.groups
    if has_top:
        away, target = np.flatnonzero(column == ELSEWHERE), np.concatenate(arrived)
        child[away] = target
        own_low[target], own_high[target] = own_low[away], own_high[away]
    return _RawNodes(column, cuts, cut, peeled, child, own_low, own_high)


def _breadth_first(raw: _RawNodes) -> tuple[Numbers, Numbers]:
    """Return the raw nodes in breadth-first order, without those that only refer to others; and each split's first
    child."""
    order, first_child = [], []
    level, numbered = _arrived(raw, np.zeros(1, np.uint32)), 1
    while len(level):
        split = raw.column[level] >= 0
        count = np.where(split, children_of(raw.cuts[level].astype(np.int64), raw.peeled[level]), 0)
        order.append(level)
        first_child.append((numbered + np.cumsum(count) - count).astype(np.uint32))
        numbered += int(count.sum())
        level = _arrived(raw, ranges(raw.child[level[split]].astype(np.int64), count[split]))
    return np.concatenate(order), np.concatenate(first_child)


def _arrived(raw: _RawNodes, nodes: NDArray[Any]) -> Numbers:
    return np.where(raw.column[nodes] == ELSEWHERE, raw.child[nodes], nodes).astype(np.uint32)


def _cuts(raw: _RawNodes, order: Numbers) -> Codes:
    """Return the cuts of nodes in an order, some nodes at a time."""
    begins = np.cumsum(raw.cuts, dtype=np.uint32) - raw.cuts
    found = [np.empty(0, np.uint16)]
    for first in range(0, len(order), PIECE):
        some = order[first : first + PIECE]
        found.append(raw.cut[ranges(begins[some].astype(np.int64), raw.cuts[some].astype(np.int64))])
    return np.concatenate(found)


def canonical(domains: list[Domain], low: Codes, high: Codes) -> tuple[list[ColumnLabels], Numbers]:
    """Return the labels of groups in canonical order, given their cells [groups, columns]; and the number of each group
    in it."""
    labels = [column_labels(domain, low[:, j], high[:, j]) for j, domain in enumerate(domains)]
    order = np.lexsort([each.of_group for each in reversed(labels)])
    rank = np.empty(len(order), np.uint32)
    rank[order] = np.arange(len(order), dtype=np.uint32)
    return [each.for_groups(order) for each in labels], rank
