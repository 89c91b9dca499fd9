"""The partition search in its naive form: Privacy Skyline, Figure 6, with the root checked first and, instead of
running statistics, every candidate split judged on the whole release it would give. Stands outside the way of the
data, as the definition that the engine's search must reproduce cut for cut. Codes are ordered integers per column;
what they mean, and where a null stands among them, is the caller's business.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Literal, Union

Value = Hashable
Record = tuple[tuple[int, ...], Value]
Cell = tuple[int, int]
Cells = tuple[Cell | None, ...]
Leaf = tuple[Cells, list[int]]
Safe = Callable[[list[list[Value]]], bool]
Fine = Callable[[list[Value]], bool]
Prefer = Literal["widest", "balanced", "loss", "public"]
SCALE = 2**22  # losses are measured in whole numbers on scales of this length
Tree = Union[int, tuple["Tree", ...]]  # noqa: UP007


@dataclass(frozen=True)
class Free:
    """A column cut anywhere between two codes; `position` places each code on the scale that widths are measured on."""

    position: Sequence[float]

    def whole(self) -> Cell:
        return 0, len(self.position) - 1

    def width(self, present: Sequence[int]) -> Fraction:
        first, last, low, high = (Fraction(self.position[at]) for at in (0, -1, min(present), max(present)))
        return (high - low) / (last - first) if last > first else Fraction(1)

    def place(self, code: int, length: int) -> int:
        first, last, own = (Fraction(self.position[at]) for at in (0, -1, code))
        return round((own - first) / (last - first) * length) if last > first else 0

    def candidates(self, present: Sequence[int], cell: Cell) -> Iterator[list[Cell]]:
        codes = sorted(set(present))

        def imbalance(boundary: Cell) -> tuple[int, int]:
            left = sum(code <= boundary[0] for code in present)
            return abs(2 * left - len(present)), boundary[0]

        for below, above in sorted(pairwise(codes), key=imbalance):
            cut = (below + above + 1) // 2
            yield [(cell[0], cut - 1), (cut, cell[1])]


@dataclass(frozen=True)
class Hierarchy:
    """A column split along a tree of nested tuples whose leaves are the codes 0, 1, 2, ... from left to right."""

    tree: Tree

    def whole(self) -> Cell:
        return _span(self.tree)

    def width(self, present: Sequence[int]) -> Fraction:
        low, high = _span(_covering(self.tree, present))
        return Fraction(high - low, self.whole()[1])

    def place(self, code: int, length: int) -> int:
        return round(Fraction(code, self.whole()[1]) * length)

    def candidates(self, present: Sequence[int], _cell: Cell) -> Iterator[list[Cell]]:
        children = [_span(child) for child in _children(_covering(self.tree, present))]
        yield [child for child in children if any(_inside(code, child) for code in present)]


Column = Free | Hierarchy


@dataclass(frozen=True)
class Erratic:
    """Criteria that are not monotone, which may hold for parts of a group that fails them. `fine` judges one group. A
    node that is fine is split only into parts that are; one that is not may be split into any parts of at least `least`
    people, which is what the criteria ask of the size of a group. `together` judges all nodes that are fine, as one
    release, and with them those that were split since: the running minima of Figure 6 keep them. Where merging groups
    never breaks a criterion they make no difference; otherwise they may refuse a split, and never allow one."""

    fine: Fine
    together: Safe = lambda groups: True
    least: int = 1


MONOTONE = Erratic(lambda group: True)


@dataclass(frozen=True)
class Suppression:
    """The part share / scale of the people may be dropped, of the table and of every node."""

    share: int
    scale: int = 1


@dataclass(frozen=True)
class _Node:
    cells: Cells
    members: list[int]
    share: int = 0  # of its people that may be dropped, in parts of the scale


@dataclass(frozen=True)
class _Table:
    records: Sequence[Record]
    columns: Sequence[Column]
    tight: bool = False
    weights: Sequence[Fraction] = ()  # how much each column counts; all the same if there are none
    peel: bool = False

    def width(self, node: _Node, column: int) -> Fraction:
        return self.columns[column].width(self.codes(node, column)) * self.weight(column)

    def weight(self, column: int) -> Fraction:
        return self.weights[column] if self.weights else Fraction(1)

    def place(self, column: int, code: int) -> int:
        """Where a code lies on the scale of its column, which is the longer the more the column counts."""
        heaviest = max(map(self.weight, range(len(self.columns))))
        return self.columns[column].place(code, round(SCALE * self.weight(column) / heaviest))

    def codes(self, node: _Node, column: int) -> list[int]:
        return [self.records[member][0][column] for member in node.members]

    def values(self, node: _Node) -> list[Value]:
        return [self.records[member][1] for member in node.members]

    def candidates(self, node: _Node, column: int) -> Iterator[list[_Node]]:
        cell = node.cells[column] or self.columns[column].whole()
        for parts in self.columns[column].candidates(self.codes(node, column), cell):
            yield [self._child(node, column, part) for part in parts]

    def by_loss(self, node: _Node, small: int, least: int, most: int = 0) -> list[tuple[int, list[list[_Node]]]]:
        """The columns with their candidates that leave `least` people in each part of a cut, least loss first. Parts of
        a hierarchy with fewer people count as dropped if there are no more of these than `most`."""
        found = []
        for column, kind in enumerate(self.columns):
            if len(set(self.codes(node, column))) == 1:
                continue
            listed = list(self.candidates(node, column))
            may = [most] if isinstance(kind, Hierarchy) and not self.peel else []
            if isinstance(kind, Free):
                listed = [parts for parts in listed if min(len(part.members) for part in parts) >= least]
                listed.sort(key=lambda parts: parts[0].cells[column] or (0, 0))
            losses = [self._loss(node, parts, column, small, least) for parts in listed]
            few = [part for part in listed[0] if len(part.members) < least] if may else []
            if few and len(few) < len(listed[0]) and sum(len(part.members) for part in few) <= most:
                stay = [part for part in listed[0] if part not in few]
                losses = [self.loss_of_drops(node, column, stay, small)]
            if self.peel and isinstance(kind, Hierarchy) and all(len(part.members) < least for part in listed[0]):
                continue
            order = sorted(range(len(listed)), key=lambda at: losses[at])
            if order:
                found.append((losses[order[0]], column, [listed[at] for at in order]))
        return [(column, listed) for _, column, listed in sorted(found, key=lambda each: each[:2])]

    def _loss(self, node: _Node, parts: list[_Node], column: int, small: int, least: int) -> int:
        """By how much parts lose more than the node: in all columns if it is small, else in the one that is cut. Parts
        of a hierarchy extend over its nodes; if splits are peeled, those of fewer than `least` people over the node
        above."""
        kind = self.columns[column]
        if isinstance(kind, Hierarchy):
            whole = _span(_covering(kind.tree, self.codes(node, column)))
            cells = [(part, part.cells[column] or kind.whole()) for part in parts]
            if self.peel:
                cells = [(part, cell if len(part.members) >= least else whole) for part, cell in cells]
            inside = sum(len(part.members) * self._between(column, cell) for part, cell in cells)
            return inside - len(node.members) * self._between(column, whole)
        columns = range(len(self.columns)) if len(node.members) <= small else [column]
        return sum(self._extent(part, columns) for part in parts) - self._extent(node, columns)

    def _between(self, column: int, cell: Cell) -> int:
        return self.place(column, cell[1]) - self.place(column, cell[0])

    def _extent(self, node: _Node, columns: Sequence[int]) -> int:
        places = [[self.place(each, code) for code in self.codes(node, each)] for each in columns]
        return len(node.members) * sum(max(own) - min(own) for own in places)

    def narrowed(self, node: _Node, column: int) -> Cell:
        """The cell of a node without the sides that nobody in it is on: it is halved at the median of the whole table
        while one half is empty."""
        kind, present = self.columns[column], self.codes(node, column)
        if isinstance(kind, Hierarchy):
            return _span(_covering(kind.tree, present))
        low, high = node.cells[column] or kind.whole()
        while low < high:
            cut = self.median(column, (low, high))
            if min(present) >= cut:
                low = cut
            elif max(present) < cut:
                high = cut - 1
            else:
                break
        return low, high

    def median(self, column: int, cell: Cell) -> int:
        """The first code of the upper half of a cell, by the people of the whole table; ties to the lower."""
        every = [codes[column] for codes, _ in self.records if _inside(codes[column], cell)]
        return min(range(cell[0] + 1, cell[1] + 1), key=lambda cut: abs(2 * sum(c < cut for c in every) - len(every)))

    def publicly(self, node: _Node) -> list[list[_Node]]:
        """The public candidates of a node, one for each column, the widest cell first."""
        found = []
        for column, kind in enumerate(self.columns):
            low, high = self.narrowed(node, column)
            if low == high:
                continue
            if isinstance(kind, Free):
                cut, whole = self.median(column, (low, high)), node.cells[column] or kind.whole()
                parts = [self._child(node, column, part) for part in ((whole[0], cut - 1), (cut, whole[1]))]
            else:
                (parts,) = self.candidates(node, column)
            found.append((-kind.width([low, high]) * self.weight(column), column, parts))
        return [parts for *_, parts in sorted(found, key=lambda each: each[:2])]

    def published(self, node: _Node, public: bool = False) -> _Node:
        """The node with the cells of its hierarchy columns narrowed to the lowest tree node that covers its members;
        if labels are tight, those of other columns to the codes from its lowest to its highest member; if cuts are
        public, to the smallest cell that holds them."""
        cells = list(node.cells)
        for index, column in enumerate(self.columns):
            codes = self.codes(node, index)
            if isinstance(column, Hierarchy):
                covering = _span(_covering(column.tree, codes))
            elif self.tight:
                covering = min(codes), max(codes)
            elif public:
                covering = self.narrowed(node, index)
            else:
                continue
            cells[index] = None if covering == column.whole() else covering
        return _Node(tuple(cells), node.members)

    def extent(self, node: _Node, column: int) -> int:
        """The part of a column's scale that a node extends over; with a hierarchy the tree node that covers it."""
        kind, codes = self.columns[column], self.codes(node, column)
        span = _span(_covering(kind.tree, codes)) if isinstance(kind, Hierarchy) else (min(codes), max(codes))
        return self._between(column, span)

    def cost(self, node: _Node) -> int:
        """By how much somebody of a node loses more if he is dropped: he then loses the whole of every column."""
        return sum(self._between(at, kind.whole()) - self.extent(node, at) for at, kind in enumerate(self.columns))

    def loss_of_drops(self, node: _Node, column: int, stay: list[_Node], small: int) -> int:
        """By how much a node loses more if only these parts of a split along a column stay. Parts by a hierarchy extend
        over its nodes; those of a small node are measured in all columns."""
        gone = len(node.members) - sum(len(part.members) for part in stay)
        if isinstance(kind := self.columns[column], Hierarchy):
            ends = [self._between(column, part.cells[column] or kind.whole()) for part in stay]
            own = sum(len(part.members) * (end - self.extent(node, column)) for part, end in zip(stay, ends))
        else:
            columns = range(len(self.columns)) if len(node.members) <= small else [column]
            own = sum(
                len(part.members) * (self.extent(part, at) - self.extent(node, at)) for part in stay for at in columns
            )
        return own + gone * self.cost(node)

    def together(self, node: _Node, column: int, parts: list[_Node]) -> _Node:
        """Some children of a node by a hierarchy as one, under the tree node that they are children of."""
        kind = self.columns[column]
        assert isinstance(kind, Hierarchy)
        over = _span(_covering(kind.tree, self.codes(node, column)))
        members = {member for part in parts for member in part.members}
        cells = (*node.cells[:column], over, *node.cells[column + 1 :])
        return _Node(cells, [member for member in node.members if member in members])

    def _child(self, node: _Node, column: int, part: Cell) -> _Node:
        cells = (*node.cells[:column], part, *node.cells[column + 1 :])
        return _Node(cells, [member for member in node.members if _inside(self.records[member][0][column], part)])


@dataclass
class _Search:
    """A search under way: the groups it has come to so far are `leaves`."""

    table: _Table
    safe: Safe
    prefer: Prefer
    erratic: Erratic
    small: int = 0  # people up to which losses are those of all columns
    least: int = 1  # people of every safe group, at least
    capped: frozenset[int] = frozenset()  # columns in which no group may be at the root
    suppression: Suppression = Suppression(0)
    leaves: list[_Node] = field(default_factory=list)
    kept: list[list[Value]] = field(default_factory=list)  # every group so far that was fine, also if it was split

    def breadth_first(self, start: list[_Node], rest: list[_Node], least: int) -> list[_Node]:
        """Decides nodes with more than `least` members, adding to the leaves; those with fewer are returned in order.
        `rest` are nodes that wait for their turn."""
        queue, aside = deque(start), []
        while queue:
            node = queue.popleft()
            if len(node.members) <= least:
                aside.append(node)
                continue
            children = self._split(node, [*self.leaves, *queue, *aside, *rest])
            if children is None:
                self.leaves.append(self.table.published(node, self.prefer == "public"))
            else:
                queue.extend(children)
        return aside

    def _split(self, node: _Node, rest: list[_Node]) -> list[_Node] | None:
        others = [self.table.values(other) for other in rest]
        fine = self.fine(node)
        above = next((at for at in sorted(self.capped) if self._at_root(node, at)), None)
        if above is not None:  # all its children leave, or none does
            tried: Iterator[list[_Node]] = self._without_unsafe(node, above, list(self.table.candidates(node, above)))
        else:
            tried = self._tried(node)
        for children in tried:
            parts = [self.table.values(child) for child in children]
            if self.safe([*others, *parts]) and self._may_be(parts, fine):
                self.keep(parts)
                return self._with_shares(node, children)
        return None

    def most(self, node: _Node) -> int:
        return node.share * len(node.members) // self.suppression.scale

    def _with_shares(self, node: _Node, children: list[_Node]) -> list[_Node]:
        """The children of a node with the share of their people that may be dropped of what is left."""
        everybody, stay = len(node.members), sum(len(child.members) for child in children)
        share = (node.share * everybody - (everybody - stay) * self.suppression.scale) // stay
        return [_Node(child.cells, child.members, share) for child in children]

    def _tried(self, node: _Node) -> Iterator[list[_Node]]:
        """The candidates of a node; those of which parts are dropped last, except that a split by a hierarchy that is
        not peeled is tried at once without the parts that are not safe."""
        for listed in self._candidates(node):
            for whole in listed:
                column = _split_column(whole)
                if isinstance(self.table.columns[column], Hierarchy) and not self.table.peel:
                    yield from self._without_unsafe(node, column, [whole])
                else:
                    yield from self._peeled(node, whole)
        if self.most(node):
            for column in self._columns(node):
                listed = list(self.table.candidates(node, column))
                if isinstance(self.table.columns[column], Hierarchy):
                    yield from self._without_unsafe(node, column, listed) if self.table.peel else ()
                else:
                    yield from self._sides(node, column, listed)

    def _without_unsafe(self, node: _Node, column: int, listed: list[list[_Node]]) -> Iterator[list[_Node]]:
        """Splits by a hierarchy without the parts that are not safe, if these may be dropped, else as they are."""
        for parts in listed:
            stay = [part for part in parts if self._safe_alone(part, self.fine(node))]
            gone = len(node.members) - sum(len(part.members) for part in stay)
            fits = 0 < gone <= self.most(node) and stay
            yield stay if fits and self.table.loss_of_drops(node, column, stay, self.small) < 0 else parts

    def _sides(self, node: _Node, column: int, listed: list[list[_Node]]) -> Iterator[list[_Node]]:
        """The sides of cuts whose other side may be dropped, least loss first, and is not safe."""
        found = []
        for lower, upper in listed:
            losses = []
            for stay, gone in ((lower, upper), (upper, lower)):
                loss = self.table.loss_of_drops(node, column, [stay], self.small)
                if len(gone.members) <= self.most(node) and len(stay.members) >= self.least and loss < 0:
                    losses.append((loss, stay, gone))
            if losses:
                cell = upper.cells[column] or self.table.columns[column].whole()
                found.append((min(loss for loss, *_ in losses), cell[0], losses))
        for _, _, losses in sorted(found, key=lambda each: each[:2]):
            for _, stay, gone in losses:
                fine = self.fine(node)
                if self._safe_alone(stay, fine) and not self._safe_alone(gone, fine):
                    yield [stay]

    def _columns(self, node: _Node) -> list[int]:
        """The columns in which codes differ, the preferred first."""
        if self.prefer != "loss":
            return _preferred(self.table, node, self.prefer)
        found = [at for at, _ in self.table.by_loss(node, self.small, self.least, self.most(node))]
        columns = range(len(self.table.columns))
        return found + [at for at in columns if at not in found and len(set(self.table.codes(node, at))) > 1]

    def _at_root(self, node: _Node, column: int) -> bool:
        kind = self.table.columns[column]
        return isinstance(kind, Hierarchy) and _covering(kind.tree, self.table.codes(node, column)) is kind.tree

    def _peeled(self, node: _Node, children: list[_Node]) -> Iterator[list[_Node]]:
        """The splits to try in place of one: itself, or if it is by a hierarchy and splits are peeled, all that leave
        those children together under the node that are not safe alone, and then more and more of the others."""
        column = _split_column(children)
        if not self.table.peel or isinstance(self.table.columns[column], Free):
            yield children
            return
        unsafe = [child for child in children if not self._safe_alone(child, self.fine(node))]
        others = sorted((each for each in children if each not in unsafe), key=lambda child: len(child.members))
        in_order = [*unsafe, *others]
        stay = [in_order[:count] for count in range(len(unsafe), len(in_order))]
        stay += [[each for each in in_order if each is not alone] for alone in reversed(others[:-1])]
        for held in stay:
            if len(held) != 1:
                leave = [child for child in children if child not in held]
                yield [*leave, self.table.together(node, column, held)] if held else leave

    def _safe_alone(self, child: _Node, fine: bool) -> bool:
        values = self.table.values(child)
        return self.safe([values]) and self._may_be([values], fine, alone=True)

    def _candidates(self, node: _Node) -> Iterator[Iterable[list[_Node]]]:
        """The candidates of each column, the preferred column first."""
        if self.prefer == "loss":
            by_loss = self.table.by_loss(node, self.small, self.least, self.most(node))
            found = [listed for _, listed in by_loss]
            yield from ([listed[0]] for listed in found)
            yield from (listed[1:] for listed in found)
            return
        if self.prefer == "public":
            yield self.table.publicly(node)
            return
        for column in _preferred(self.table, node, self.prefer):
            yield self.table.candidates(node, column)

    def _may_be(self, parts: list[list[Value]], fine: bool, alone: bool = False) -> bool:
        """Whether the criteria that are not monotone let a node, which is fine or not, be split into these parts; or
        let parts be like this, whatever the other groups are."""
        if self.erratic is MONOTONE:
            return True
        if any(len(part) < self.erratic.least or (fine and not self.erratic.fine(part)) for part in parts):
            return False
        return alone or self.erratic.together([*self.kept, *filter(self.erratic.fine, parts)])

    def keep(self, groups: list[list[Value]]) -> None:
        if self.erratic is not MONOTONE:
            self.kept += filter(self.erratic.fine, groups)

    def fine(self, node: _Node) -> bool:
        return self.erratic.fine(self.table.values(node))


def partition(
    records: Sequence[Record],
    columns: Sequence[Column],
    safe: Safe,
    prefer: Prefer = "widest",
    block: int = 10**9,
    erratic: Erratic = MONOTONE,
    tight: bool = False,
    small: int = 64,
    least: int = 1,
    weights: Sequence[Fraction] = (),
    peel: bool = False,
    capped: frozenset[int] = frozenset(),
    suppression: Suppression = Suppression(0),
) -> list[Leaf] | None:
    """Leaves (cells, record numbers) in order of cells, None for uncut, uncut first; None if the whole is not safe, or
    if a leaf fails the criteria that are not monotone.

    Nodes of more than `block` members are decided breadth first. The others are set aside, and taken up in runs that
    have no more members than that together, each breadth first to the end. With `prefer` loss, cuts that leave fewer
    people than `least`, which no safe group has, have no part in the order of the columns; nodes of up to `small`
    people, of `block` if that is less and of none if there are hierarchies, are measured in all columns. `weights` says
    how much the width and the loss of each column count. `peel`: if some children of a hierarchy's node are not safe,
    they stay together under it. `capped`: hierarchies of which no group may be at the root; None if one would be.
    `suppression`: of which people may be dropped; for criteria that judge each group alone.
    """
    by_nodes = any(isinstance(column, Hierarchy) for column in columns)
    search = _Search(
        _Table(records, columns, tight, weights, peel),
        safe,
        prefer,
        erratic,
        0 if by_nodes else min(small, block),
        least,
        capped,
        suppression,
    )
    root = _Node((None,) * len(columns), list(range(len(records))), suppression.share)
    if not suppression.share and not safe([search.table.values(root)]):
        return None
    search.keep([search.table.values(root)])
    aside = search.breadth_first([root], [], block)
    while aside:
        run = [aside.pop(0)]
        while aside and sum(len(node.members) for node in [*run, aside[0]]) <= block:
            run.append(aside.pop(0))
        search.breadth_first(run, aside, 0)
    if not safe([search.table.values(leaf) for leaf in search.leaves]):
        return None  # the table could not be split
    if not all(map(search.fine, search.leaves)) or any(
        search._at_root(leaf, column) for leaf in search.leaves for column in capped
    ):
        return None
    return sorted(((leaf.cells, leaf.members) for leaf in search.leaves), key=_uncut_first)


def _preferred(table: _Table, node: _Node, prefer: Prefer) -> list[int]:
    splittable = [column for column in range(len(table.columns)) if len(set(table.codes(node, column))) > 1]
    if prefer == "balanced":
        return sorted(splittable, key=lambda column: max(len(c.members) for c in next(table.candidates(node, column))))
    return sorted(splittable, key=lambda column: -table.width(node, column))


def _split_column(children: list[_Node]) -> int:
    """The column that a split in several parts is along."""
    (column,) = (at for at, cells in enumerate(zip(*(child.cells for child in children))) if len(set(cells)) > 1)
    return column


def _covering(tree: Tree, present: Sequence[int]) -> Tree:
    for child in _children(tree):
        if all(_inside(code, _span(child)) for code in present):
            return _covering(child, present)
    return tree


def _children(tree: Tree) -> tuple[Tree, ...]:
    return () if isinstance(tree, int) else tree


def _span(tree: Tree) -> Cell:
    if isinstance(tree, int):
        return tree, tree
    return _span(tree[0])[0], _span(tree[-1])[1]


def _inside(code: int, cell: Cell) -> bool:
    return cell[0] <= code <= cell[1]


def _uncut_first(leaf: Leaf) -> list[Cell]:
    return [cell or (-1, -1) for cell in leaf[0]]
