"""The tree of cuts as the search grows it, in fragments: the top of the tree, and under it one fragment per block. When
all are there, `assemble` makes one tree of them, numbered breadth first, with its groups in canonical order."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from anon.checkpoint import Arrays
from anon.cube import Domain
from anon.recoding import Recoding, column_labels
from anon.search.candidates import Ints, Nodes, Splits, ranges

LISTS = ("column", "cuts", "cut", "own_low", "own_high", "low", "high", "people")
GROUP, ELSEWHERE = -1, -2  # in place of a column: the node is a group; the node continues in another fragment


@dataclass
class Fragment:
    """Part of a tree of cuts, level by level: of each node the column of its split and the number of its cuts, of each
    split the cuts, of each child its cell in the column that its parent is split by, of each group its cells."""

    column: list[Ints] = field(default_factory=list)
    cuts: list[Ints] = field(default_factory=list)
    cut: list[Ints] = field(default_factory=list)
    own_low: list[Ints] = field(default_factory=list)  # of the children of a level, in order
    own_high: list[Ints] = field(default_factory=list)
    low: list[NDArray[np.uint16]] = field(default_factory=list)  # [groups, columns]
    high: list[NDArray[np.uint16]] = field(default_factory=list)
    people: list[Ints] = field(default_factory=list)
    groups: int = 0
    broken: int = 0  # groups that a criterion which is not monotone does not hold for

    def arrays(self) -> Arrays:
        """Everything as named arrays."""
        found = {f"{name}.{level}": array for name in LISTS for level, array in enumerate(getattr(self, name))}
        return found | {"numbers": np.array([len(self.column), self.groups, self.broken])}

    @classmethod
    def of(cls, arrays: Arrays) -> Fragment:
        levels, groups, broken = arrays["numbers"].tolist()
        fragment = cls(groups=groups, broken=broken)
        for name in LISTS:
            setattr(fragment, name, [arrays[f"{name}.{level}"] for level in range(levels)])
        return fragment

    def add_level(
        self, nodes: Nodes, splits: Splits, domains: list[Domain], elsewhere: NDArray[np.bool_] | None = None
    ) -> NDArray[np.bool_]:
        """The nodes of a level and the splits of some, in order; of the others, which are groups and not elsewhere."""
        column = np.full(len(nodes), GROUP, np.int64)
        if elsewhere is not None:
            column[elsewhere] = ELSEWHERE
        column[splits.node] = splits.column
        cut_start, cut = splits.cuts()
        cuts = np.zeros(len(nodes), np.int64)
        cuts[splits.node] = np.diff(cut_start)
        group: NDArray[np.bool_] = column == GROUP
        low, high = _published(nodes.take(np.flatnonzero(group)), domains)
        for name, array in (
            ("column", column), ("cuts", cuts), ("cut", cut), ("own_low", splits.low), ("own_high", splits.high),
            ("low", low), ("high", high), ("people", nodes.people[group]),
        ):  # fmt: skip
            getattr(self, name).append(array)
        self.groups += int(group.sum())
        self.broken += int((group & ~nodes.safe).sum())
        return group


def _published(nodes: Nodes, domains: list[Domain]) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
    """The cells of nodes as they are published: of a hierarchy column the hierarchy node that covers the members."""
    low, high = nodes.cell_low.astype(np.uint16), nodes.cell_high.astype(np.uint16)
    for j, domain in enumerate(domains):
        if domain.tree is not None:
            cover = domain.tree.common(nodes.low[:, j], nodes.high[:, j])
            low[:, j], high[:, j] = domain.tree.low[cover], domain.tree.high[cover]
    return low, high


@dataclass
class _Raw:
    """All nodes of all fragments, one fragment after the other; numbers are places in these arrays."""

    column: Ints
    cuts: Ints
    cut_start: Ints
    cut: Ints
    child: Ints  # the first child; of a group its number; of a node that continues elsewhere that node
    own_low: Ints
    own_high: Ints


def assemble(domains: list[Domain], top: Fragment | None, blocks: list[Fragment]) -> tuple[Recoding, Ints]:
    """One tree, and for the groups, counted through all fragments, their number in canonical order. The nodes of the
    top that continue elsewhere are, in order, the roots of the blocks; without a top the only block is the tree."""
    fragments = ([top] if top is not None else []) + blocks
    raw = _raw(fragments, top is not None)
    order, parent_first = _breadth_first(raw)
    low, high, people = (
        np.concatenate([a for f in fragments for a in getattr(f, name)]) for name in ("low", "high", "people")
    )
    rank = canonical(domains, low, high)
    by_rank = np.argsort(rank)
    column, child = raw.column[order], parent_first
    group = column == GROUP
    child[group] = rank[raw.child[order][group]]
    cuts = raw.cuts[order]
    recoding = Recoding(
        domains,
        column,
        np.append(0, np.cumsum(cuts)),
        raw.cut[ranges(raw.cut_start[order], cuts)],
        child,
        raw.own_low[order],
        raw.own_high[order],
        low[by_rank],
        high[by_rank],
        people[by_rank],
    )
    return recoding, rank


def _raw(fragments: list[Fragment], has_top: bool) -> _Raw:
    parts: dict[str, list[Ints]] = {name: [] for name in ("column", "cuts", "child", "own_low", "own_high", "cut")}
    offset, groups, roots = 0, 0, []
    for fragment in fragments:
        column, cuts = np.concatenate(fragment.column), np.concatenate(fragment.cuts)
        first = len(fragment.column[0])
        roots.append(offset + np.arange(first))
        split = column >= 0
        child = np.full(len(column), -1, np.int64)
        children = cuts[split] + 1
        child[split] = offset + first + np.cumsum(children) - children
        child[column == GROUP] = groups + np.arange(fragment.groups)
        unknown = np.zeros(first, np.int64)
        for name, array in (
            ("column", column), ("cuts", cuts), ("child", child), ("cut", np.concatenate(fragment.cut)),
            ("own_low", np.concatenate([unknown, *fragment.own_low])),
            ("own_high", np.concatenate([unknown, *fragment.own_high])),
        ):  # fmt: skip
            parts[name].append(array)
        offset, groups = offset + len(column), groups + fragment.groups
    column, cuts, child, own_low, own_high, cut = (np.concatenate(arrays) for arrays in parts.values())
    if has_top:
        away, arrived = np.flatnonzero(column == ELSEWHERE), np.concatenate([np.empty(0, np.int64), *roots[1:]])
        child[away] = arrived
        own_low[arrived], own_high[arrived] = own_low[away], own_high[away]
    return _Raw(column, cuts, np.cumsum(cuts) - cuts, cut, child, own_low, own_high)


def _breadth_first(raw: _Raw) -> tuple[Ints, Ints]:
    """The raw nodes in breadth-first order, without those that only stand for others; and each split's first child."""
    order, first_child = [], []
    level, numbered = _arrived(raw, np.array([0])), 1
    while len(level):
        split = raw.column[level] >= 0
        count = np.where(split, raw.cuts[level] + 1, 0)
        order.append(level)
        first_child.append(numbered + np.cumsum(count) - count)
        numbered += int(count.sum())
        level = _arrived(raw, ranges(raw.child[level[split]], count[split]))
    return np.concatenate(order), np.concatenate(first_child)


def _arrived(raw: _Raw, nodes: Ints) -> Ints:
    return np.where(raw.column[nodes] == ELSEWHERE, raw.child[nodes], nodes)


def canonical(domains: list[Domain], low: NDArray[np.uint16], high: NDArray[np.uint16]) -> Ints:
    """The number of each group in canonical order, which is that of its labels."""
    labels = [column_labels(domain, low[:, j], high[:, j]) for j, domain in enumerate(domains)]
    order = np.lexsort([each.of_group for each in reversed(labels)])
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank
