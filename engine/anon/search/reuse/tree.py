"""Apply the tree of cuts of an earlier run to the codes of new rows. Free columns are cut where they were cut. A split
by a hierarchy had a child for each node below it that was not empty; the recoding does not cover rows in the others.
The rest of one that was peeled also has the nodes below that are new there, if the recoding has rows of them elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anon.core.arrays import Codes, Ints
from anon.core.phrases import counted
from anon.core.progress import ProgressCallback
from anon.cube import Cube, Domain
from anon.errors import UnsafeError
from anon.recoding.outcome import GroupCounts
from anon.recoding.tree import Recoding
from anon.search.partition.fragments import canonical
from anon.search.partition.passes import Tree
from anon.search.reuse.counting import add, batches
from anon.search.reuse.earlier_recoding import NEW, EarlierRecoding, unfit

Cell = tuple[int, int]
UNREACHED, SUPPRESSED = -1, -2  # in place of the group of a leaf


@dataclass(frozen=True)
class ReusedTree(Recoding):
    """A tree of cuts whose recoding.json is that of the earlier run, byte for byte."""

    written: bytes = b""
    was: Ints = field(default_factory=lambda: np.empty(0, np.int64))  # the number of each group in the written file
    reused: ClassVar[bool] = True

    def write(self, path: Path) -> None:
        path.write_bytes(self.written)


@dataclass
class EncodedTree:
    """The tree with its cuts as codes, breadth first. The child of a leaf is the index of its group in `cells`, or
    UNREACHED for a leaf that no row may reach, or SUPPRESSED."""

    column: list[int] = field(default_factory=list)
    cuts: list[list[int]] = field(default_factory=list)
    child: list[int] = field(default_factory=list)
    peeled: list[bool] = field(default_factory=list)
    own: list[Cell] = field(default_factory=list)
    cells: list[list[Cell]] = field(default_factory=list)  # of each group, per column
    labels: list[dict[str, str | None]] = field(default_factory=list)  # of each group, of its hierarchy columns
    groups: list[int] = field(default_factory=list)  # the number of each group in the recoding


def place(earlier: EarlierRecoding, domains: list[Domain]) -> EncodedTree:
    """Return the tree with its cuts as codes, walked from its root with the cells of each node."""
    number, nodes = {domain.column: j for j, domain in enumerate(domains)}, earlier.nodes
    codes = [domain.cut_codes(earlier.cuts[domain.column]) for domain in domains]
    whole: list[Cell] = [(0, domain.size - 1) for domain in domains]
    placed, queue = EncodedTree(), [(0, whole, (0, 0))]
    for at, cells, own in queue:  # grows while it is walked
        node = nodes[at] if at >= 0 else {}
        placed.own.append(own)
        if "column" not in node:
            placed.column.append(-1)
            placed.cuts.append([])
            placed.peeled.append(False)
            group = "group" in node
            placed.child.append(len(placed.cells) if group else SUPPRESSED if node else UNREACHED)
            if group:
                placed.cells.append(cells)
                placed.labels.append(node["labels"])
                placed.groups.append(node["group"])
            continue
        j, peeled = number[node["column"]], False
        if not domains[j].by_nodes:
            first = nodes[node["children"][0]]
            cut = int(domains[j].null) if first["label"] is None else codes[j].get(node["cut"], 0)
            if not cells[j][0] < cut <= cells[j][1]:
                raise unfit()
            parts = list(zip(node["children"], [(cells[j][0], cut - 1), (cut, cells[j][1])]))
        else:
            children = [(child, nodes[child]["label"]) for child in node["children"]]
            if peeled := "rest" in node:
                parts = _peeled_parts(domains[j], cells[j], children, earlier.labels(domains[j].column))
            else:
                parts = _hierarchy_parts(domains[j], cells[j], children)
        placed.column.append(j)
        placed.peeled.append(peeled)
        ends = [end for _, (low, high) in parts[:-1] for end in (low, high + 1) if end < domains[j].size]
        placed.cuts.append(ends if peeled else [low for _, (low, _) in parts[1:]])
        placed.child.append(len(queue))
        queue += [(child, [*cells[:j], cell, *cells[j + 1 :]], cell) for child, cell in parts]
    return placed


def _hierarchy_parts(domain: Domain, cell: Cell, children: list[tuple[int, str | None]]) -> list[tuple[int, Cell]]:
    """Return the children of a split of a cell with the ranges of their hierarchy nodes, and -1 for the codes in
    between."""
    tree = domain.tree
    assert tree is not None
    ranges = [_cell(domain, label) for _, label in children]
    if any(low < cell[0] or high > cell[1] for low, high in ranges):
        raise unfit()
    over = int(tree.common(min(low for low, _ in ranges), max(high for _, high in ranges)))
    below = tree.child[tree.child_start[over] : tree.child_start[over + 1]]
    parts, following = [], 0
    for (child, _), (low, high) in zip(children, ranges):
        node = next((n for n in below if tree.low[n] <= low and high <= tree.high[n]), None)
        if node is None or tree.low[node] < following:
            raise unfit()
        if tree.low[node] > following:
            parts.append((-1, (following, int(tree.low[node]) - 1)))
        parts.append((child, (int(tree.low[node]), int(tree.high[node]))))
        following = int(tree.high[node]) + 1
    return parts if following == domain.size else [*parts, (-1, (following, domain.size - 1))]


def _peeled_parts(
    domain: Domain, cell: Cell, children: list[tuple[int, str | None]], known: set[str | None]
) -> list[tuple[int, Cell]]:
    """Return the children of a split with a rest, the last of them, with the ranges of their hierarchy nodes; and
    before it -1 for the codes outside its node, and for nodes below it that the recoding does not know."""
    tree = domain.tree
    assert tree is not None
    *others, (rest, label) = children
    low, high = _cell(domain, label)
    over = int(tree.common(low, high))
    below = tree.child[tree.child_start[over] : tree.child_start[over + 1]]
    parts = [(child, _cell(domain, own)) for child, own in others]
    parts += [(-1, (int(tree.low[n]), int(tree.high[n]))) for n in below if tree.label[n] not in known]
    parts += [(-1, outside) for outside in ((0, low - 1), (high + 1, domain.size - 1)) if outside[0] <= outside[1]]
    parts.sort(key=lambda part: part[1])
    apart = all(one[1] < other[0] for (_, one), (_, other) in pairwise(parts))
    if not apart or low < cell[0] or high > cell[1]:
        raise unfit()
    return [*parts, (rest, (low, high))]


def _cell(domain: Domain, label: str | None) -> Cell:
    try:
        return domain.cell(label)
    except KeyError:
        raise unfit() from None


def apply_tree(earlier: EarlierRecoding, cube: Cube, counts: GroupCounts, on_progress: ProgressCallback) -> Recoding:
    """Return the recoding of the new rows under an earlier tree, without empty groups."""
    placed = place(earlier, cube.domains)
    leaves = len(placed.cells)
    column, child = np.array(placed.column, np.int64), np.array(placed.child, np.int64)
    unreached, suppressed = ((column < 0) & (child == kind) for kind in (UNREACHED, SUPPRESSED))
    child[unreached], child[suppressed] = leaves, leaves + 1
    cut_start = np.append(0, np.cumsum([len(cuts) for cuts in placed.cuts])).astype(np.int64)
    cut = np.array([code for cuts in placed.cuts for code in cuts], np.int64)
    members, peeled = _Members(cube.domains, placed), np.array(placed.peeled, bool)
    people = _walked(cube, (column, cut_start, cut, child, peeled), members, counts, on_progress)
    used, left_out = np.flatnonzero(people[:leaves]), int(people[leaves + 1])
    if not len(used):
        raise UnsafeError("the recoding suppresses all rows; nothing was published")
    low, high = members.published(used)
    labels, rank = canonical(cube.domains, low, high)
    number = np.zeros(leaves + 2, np.int64)
    number[used], number[leaves + 1] = rank, len(used)
    child[column < 0] = number[child[column < 0]]
    counts.rank = number[:leaves]
    own_low, own_high = np.array(placed.own, np.uint16).T
    return ReusedTree(
        cube.domains, column.astype(np.int8), cut_start.astype(np.uint32), cut.astype(np.uint16),
        child.astype(np.uint32), peeled, own_low, own_high, labels, people[used][np.argsort(rank)], earlier.written,
        np.array(placed.groups, np.int64)[used][np.argsort(rank)], suppressed=left_out,
    )  # fmt: skip


def _walked(
    cube: Cube,
    tree: Tree,
    members: _Members,
    counts: GroupCounts,
    on_progress: ProgressCallback,
) -> Ints:
    """Walk every record down the tree, and add it to the members and the counts of its group; return the people of each
    group, nobody, and those who are suppressed."""
    from anon.recoding import kernels

    leaves = len(members.low)
    people = np.zeros(leaves + 2, np.int64)
    for codes, sensitive, own_people in batches(cube, on_progress):
        group = np.zeros(codes.shape[1], np.uint32)
        kernels.walk(codes, *tree, group)
        people += np.bincount(group, weights=own_people, minlength=leaves + 2).astype(np.int64)
        inside = group < leaves
        members.add(codes[:, inside], group[inside])
        add(counts, group[inside].astype(np.int64), sensitive[:, inside], own_people[inside])
    if people[leaves]:
        found = f"the recoding has no group for {counted(people[leaves])}: their values are in none of its nodes"
        raise UnsafeError(f"{found}; nothing was published; {NEW}")
    return people


class _Members:
    """The lowest and highest codes of the members of groups in hierarchy columns. A group gets the label of the node
    that covers both its earlier label and all its present members."""

    def __init__(self, domains: list[Domain], placed: EncodedTree) -> None:
        self.domains = domains
        cells = np.array(placed.cells, np.int64).reshape(len(placed.cells), len(domains), 2)
        self.low, self.high = cells[:, :, 0].copy(), cells[:, :, 1].copy()
        self.treed = [j for j, domain in enumerate(domains) if domain.tree is not None]
        for j in self.treed:
            then = [_cell(domains[j], labels[domains[j].column]) for labels in placed.labels]
            self.low[:, j], self.high[:, j] = np.array(then, np.int64).reshape(-1, 2).T

    def add(self, codes: Codes, group: NDArray[np.uint32]) -> None:
        for j in self.treed:
            np.minimum.at(self.low[:, j], group, codes[j].astype(np.int64))
            np.maximum.at(self.high[:, j], group, codes[j].astype(np.int64))

    def published(self, groups: Ints) -> tuple[Codes, Codes]:
        """Return the cells as which some groups are published."""
        low, high = self.low[groups].astype(np.uint16), self.high[groups].astype(np.uint16)
        for j in self.treed:
            tree = self.domains[j].tree
            if tree is None or not self.domains[j].by_nodes:
                continue
            cover = tree.common(low[:, j], high[:, j])
            low[:, j], high[:, j] = tree.low[cover], tree.high[cover]
        return low, high
