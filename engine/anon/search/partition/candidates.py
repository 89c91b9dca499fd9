"""The *evaluate* step of the partition search: candidate splits of many nodes at once, with the histograms of their
children. The result depends on the records of each node alone. Two kinds of evaluator access the records of a node in
different ways: in a block of the tree they lie together in memory (block.py), at the top they do not (top.py)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial

import numpy as np

from anon.core.arrays import Codes, Flags, Floats, Ints, ranges
from anon.criteria import Groups
from anon.cube import Cube, Domain
from anon.search.partition.kernels import Dropping, Sides
from anon.search.partition.peel import Peels

DENSE = 1_024  # codes; a column with more of them is counted in lists, not in a table
TABLE = 2_000_000  # counters of a table; splits that would take more are counted in lists too
SCALE = 2**22  # the longest scale of a column, on which losses are measured in whole numbers
PEOPLE = -1  # in place of a value column: individuals, where they have several values each


@dataclass
class OpenNodes:
    """Open nodes: the location of their records, their cells, and the codes that occur in them."""

    start: Ints  # in a block the range of their records, at the top the number of the node
    stop: Ints
    cell_low: Ints  # [nodes, columns]
    cell_high: Ints
    low: Ints  # [nodes, columns] lowest code that occurs
    high: Ints
    people: Ints
    safe: Flags  # by every criterion that is not monotone
    barren: Flags  # no split of it can be safe
    passed: Ints = field(default_factory=lambda: np.zeros((0, 0), np.int64))  # [nodes, columns], with a guard: guard.py
    slack: Ints = field(default_factory=lambda: np.zeros(0, np.int64))  # the last level of an enforced guard that holds
    share: Ints = field(default_factory=lambda: np.zeros(0, np.int64))  # of its people that may be dropped: dropping.py
    most: Ints = field(default_factory=lambda: np.zeros(0, np.int64))  # people that may be dropped
    dropped: Flags = field(default_factory=lambda: np.zeros(0, bool))  # nodes whose people all were

    def __post_init__(self) -> None:
        if len(self.passed) != len(self.start):
            self.passed = np.zeros((len(self.start), 0), np.int64)
            self.slack, self.share, self.most = np.zeros((3, len(self.start)), np.int64)
            self.dropped = np.zeros(len(self.start), bool)

    def __len__(self) -> int:
        return len(self.start)

    def take(self, index: Ints | slice) -> OpenNodes:
        return OpenNodes(*(getattr(self, name)[index] for name in self.__dataclass_fields__))


@dataclass
class Splits:
    """Candidate splits, each into parts of one node along one column; the parts of split i start at part_start[i]. The
    last part of a split that is `peeled` is the rest: what is in the node but in none of the other parts, which are
    nodes of a hierarchy in order. Its cell is that of the node above them, within which the others lie."""

    node: Ints
    column: Ints
    part_start: Ints
    low: Ints  # [parts] the cell of each part in the split's column
    high: Ints
    people: Ints  # [parts]
    groups: dict[int, Groups] = field(default_factory=dict)  # per column of the cube's others: the parts as groups
    counted: dict[int, Groups] = field(default_factory=dict)  # the same as they were counted, not taken apart
    peeled: Flags = field(init=False)
    safe: Flags = field(init=False)  # [parts] by every criterion that is not monotone
    barren: Flags = field(init=False)  # [parts] no split of it can be safe
    slack: Ints = field(init=False)  # [parts] the last level of an enforced guard that holds
    may_drop: Flags = field(init=False)  # [parts] that may be dropped if they are not safe
    dropped: Flags = field(init=False)  # [parts] whose people are left out
    share: Ints = field(init=False)  # of the people of parts that stay, that may be dropped

    def __post_init__(self) -> None:
        self.safe, self.barren = np.ones(len(self.low), bool), np.zeros(len(self.low), bool)
        self.peeled = np.zeros(len(self.node), bool)
        self.slack = np.zeros(len(self.low), np.int64)
        self.may_drop, self.dropped = np.zeros((2, len(self.low)), bool)
        self.share = np.zeros(len(self.node), np.int64)

    def __len__(self) -> int:
        return len(self.node)

    @property
    def owner(self) -> Ints:
        return np.repeat(np.arange(len(self)), np.diff(self.part_start))

    def cuts(self) -> tuple[Ints, Ints]:
        """Return the first codes of all parts but the first of each split (CSR); of a split that is peeled where each
        part but the rest begins and ends, without an end that is also that of the rest."""
        ends = np.stack([self.low, self.high + 1], axis=1)
        peeled, inner = self.peeled[self.owner], np.ones(ends.shape, bool)
        inner[self.part_start[:-1]] = inner[:, 1] = False
        inner[peeled] = ends[peeled] <= self.high[self.part_start[1:] - 1][self.owner[peeled], None]
        inner[self.part_start[1:][self.peeled] - 1] = False
        return np.append(0, np.cumsum(inner.sum(axis=1)))[self.part_start], ends[inner]

    def child_of_part(self, cut_start: Ints) -> Ints:
        """Return the child, counted through all splits, that each part between the cuts of each split belongs to."""
        cuts = np.diff(cut_start)
        part = ranges(np.zeros(len(self), np.int64), cuts + 1)
        rest = np.repeat((cuts + 1) // 2, cuts + 1)
        child = np.where(np.repeat(self.peeled, cuts + 1), np.where(part % 2, part // 2, rest), part)
        found: Ints = np.repeat(self.part_start[:-1], cuts + 1) + child
        return found

    def take(self, index: Ints) -> Splits:
        """Return some of the splits, without their histograms."""
        parts = np.diff(self.part_start)[index]
        rows = ranges(self.part_start[index], parts)
        start = np.append(0, np.cumsum(parts))
        taken = Splits(self.node[index], self.column[index], start, self.low[rows], self.high[rows], self.people[rows])
        taken.safe, taken.barren, taken.peeled = self.safe[rows], self.barren[rows], self.peeled[index]
        taken.slack, taken.dropped, taken.share = self.slack[rows], self.dropped[rows], self.share[index]
        taken.may_drop = self.may_drop[rows]
        return taken

    def keep(self, index: Ints, columns: set[int]) -> Splits:
        """Return some of the splits, in order, with their histograms of these columns."""
        kept, rows = self.take(index), np.zeros(len(self.low), bool)
        rows[ranges(self.part_start[index], np.diff(self.part_start)[index])] = True
        kept.groups = {column: self.groups[column].only(rows) for column in columns}
        return kept

    @staticmethod
    def concatenate(batches: list[Splits]) -> Splits:
        """Return the splits of several batches, without their histograms."""

        def together(name: str) -> Ints:
            return np.concatenate([np.empty(0, np.int64), *(getattr(batch, name) for batch in batches)])

        parts = np.concatenate([np.empty(0, np.int64), *(np.diff(batch.part_start) for batch in batches)])
        start = np.append(0, np.cumsum(parts))
        taken = Splits(
            together("node"), together("column"), start, together("low"), together("high"), together("people")
        )
        for name in ("safe", "barren", "peeled", "dropped"):
            setattr(taken, name, np.concatenate([np.empty(0, bool), *(getattr(batch, name) for batch in batches)]))
        taken.slack, taken.share = together("slack"), together("share")
        return taken

    def children(self, index: int, column: int) -> Groups:
        """Return the children of one split as groups."""
        return self.groups[column].part(int(self.part_start[index]), int(self.part_start[index + 1]))

    def kept(self, monotone: bool, parts: slice = slice(None)) -> Flags:
        """Return which parts a criterion about all groups counts: those that are not dropped, and for one that is not
        monotone only those that are safe."""
        kept: Flags = ~self.dropped[parts]
        return kept if monotone else kept & self.safe[parts]


@dataclass(frozen=True)
class Boundaries:
    """Cuts of one column per node, the nodes in order, per node the nearest to the median first, ties to the lower."""

    node: Ints
    cut: Ints  # the first code of the upper side
    drops: Sides | None = None  # which side may be dropped, if not none

    def take(self, index: Ints) -> Boundaries:
        """Return some of the cuts."""
        return Boundaries(self.node[index], self.cut[index], None if self.drops is None else self.drops[index])

    def rank(self) -> Ints:
        """Return the rank of each cut among those of its node, 0 for the nearest."""
        first = np.flatnonzero(np.diff(self.node, prepend=-1))
        return np.arange(len(self.node)) - np.repeat(first, np.diff(first, append=len(self.node)))


@dataclass(frozen=True)
class Demands:
    """Necessary conditions of a safe group, to skip hopeless cuts early: a number of people, and for each i at least
    fewest[i] people outside its largest[i] most frequent codes of the column `value` of the cube's others."""

    least: int = 1
    value: int = 0
    fewest: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    largest: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    def barren(self, people: Ints, groups: Groups) -> Flags:
        """Return which groups, with these numbers of people, have no split that can satisfy the conditions. The number
        of people outside the largest counts of a group is at least the sum of those of its parts, because the largest
        counts of the parts add up to no less."""
        found = people < 2 * self.least
        if len(self.fewest):
            from anon.criteria.kernels_counts import fill_largest

            top = np.zeros((len(groups), max(int(self.largest.max()), 1)), np.int64)
            fill_largest(groups.start, groups.count, top)
            named = np.hstack([np.zeros((len(groups), 1), np.int64), top.cumsum(axis=1)])
            for largest, fewest in zip(self.largest.tolist(), self.fewest.tolist()):
                found |= groups.n - named[:, largest] < 2 * fewest
        return found


def largest_split(cube: Cube) -> int:
    """Return the largest possible number of values in the parts of a split that is counted in lists: by a hierarchy,
    all at once."""
    trees = [domain.tree for domain in cube.domains if domain.tree is not None and domain.by_nodes]
    parts = max((int(np.diff(tree.child_start).max(initial=0)) for tree in trees), default=0)
    cells = [parts * other.size for other in cube.others]
    listed = [each for each, other in zip(cells, cube.others) if _in_lists(other.size, each)]
    return min(max(listed, default=0), int(cube.totals[0].sum()))


def _in_lists(size: int, cells: Ints | int) -> Flags:
    """Return whether splits with `cells` counters, of a column with `size` codes, are counted in lists."""
    return np.asarray(cells) > (TABLE if size <= DENSE else -1)


class Evaluator(ABC):
    """Evaluates splits of nodes."""

    def __init__(self, cube: Cube, value_columns: list[int], demands: Demands, small: int | None = None) -> None:
        """Take a cube and the indexes of its others to count in children. If cuts are ranked by what they lose, `small`
        is the number of people up to which that is measured in all columns; otherwise it is None."""
        self.small = small
        self.cube, self.demands = cube, demands
        self.columns, self.people_at, self.values_at = len(cube.domains), cube.people_at, cube.values_at
        self.sizes = {index: cube.others[index].size for index in value_columns}

    @cached_property
    def scales(self) -> list[Ints]:
        """Return the place of each code of each column on the column's scale. The scale of a column is as long as its
        weight demands, that of the heaviest one has the length SCALE: sums of losses are no larger with weights."""
        domains = self.cube.domains
        heaviest = max(domain.weight for domain in domains)
        return [_scale(domain, round(Fraction(SCALE * domain.weight, heaviest))) for domain in domains]

    def counting(self, value_column: int | None) -> Evaluator:
        """Return an evaluator of the same records with only one column counted (any, if only people matter) and no
        demands."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        column = min(self.sizes) if value_column is None else value_column
        other.sizes, other.demands = {column: self.cube.others[column].size}, Demands()
        return other

    def extents(self, nodes: OpenNodes, which: Ints, j: int) -> Ints:
        """Return the part of a column's scale that nodes extend over; with a hierarchy those that cover them."""
        low, high, at = nodes.low[which, j], nodes.high[which, j], self.scales[j]
        if self.cube.domains[j].by_nodes:
            low, high = self._covers(np.full(len(which), j), low, high)
        found: Ints = at[high] - at[low]
        return found

    def dropping(self, nodes: OpenNodes, which: Ints) -> Dropping:
        """Return the number of people that may be dropped of each of some nodes, and by how much each then loses more
        than before."""
        most, cost = nodes.most[which], np.zeros(len(which), np.int64)
        some = np.flatnonzero(most)
        for j in range(len(self.cube.domains)) if len(some) else ():
            cost[some] += self.scales[j][-1] - self.extents(nodes, which[some], j)
        return most, cost

    @abstractmethod
    def nearest(self, nodes: OpenNodes, which: Ints, column: Ints) -> Boundaries:
        """Return in one column per node the cut nearest to the median, if it leaves enough people on both sides (if
        that one does not, none does)."""

    @abstractmethod
    def boundaries(self, nodes: OpenNodes, which: Ints, column: Ints) -> Boundaries:
        """Return in one column per node every cut that is not hopeless; if cuts are ranked by loss, the least first,
        ties to the lower."""

    @abstractmethod
    def drops(self, nodes: OpenNodes, which: Ints, column: Ints) -> Boundaries:
        """Return in one column per node every cut of which one side may be dropped because the loss falls (dropping.py)
        and the other has enough people, the least loss first, ties to the lower."""

    @abstractmethod
    def least(self, nodes: OpenNodes, which: Ints, column: Ints) -> tuple[Ints, Ints]:
        """Return in one column per node the cut that loses least of those that leave enough people on both sides, -1 if
        none does; and by how much its sides lose more than the node (below 0: less).

        The loss of a node in a column is its people times the part of the column's scale that they extend over. In a
        node of more than `small` people the loss is that in the column that is cut, and those in other columns count as
        unchanged: it follows from the people by code. In a smaller one it is that in all columns."""

    @abstractmethod
    def tables(self, nodes: OpenNodes, which: Ints, column: Ints, cut_start: Ints, cut: Ints, value: int) -> Ints:
        """Return the people (or occurrences) by code of a value column in the parts of each node between its cuts
        [parts, codes]. PEOPLE has only code 0."""

    @abstractmethod
    def lists(self, nodes: OpenNodes, which: Ints, column: Ints, cut_start: Ints, cut: Ints, value: int) -> Groups:
        """Return the same as groups, for columns with many codes; `which` may name a node several times."""

    def takes(self, nodes: OpenNodes, which: Ints, column: Ints) -> Ints:
        """Return the number of counters that the split of each of these nodes along a column takes, in two or by a
        hierarchy."""
        parts = np.full(len(which), 2)
        for j in np.unique(column).tolist():
            tree, at = self.cube.domains[j].tree, np.flatnonzero(column == j)
            if tree is not None and self.cube.domains[j].by_nodes:
                cover = tree.common(nodes.low[which[at], j], nodes.high[which[at], j])
                parts[at] = np.diff(tree.child_start)[cover]
        cells = np.zeros(len(which), np.int64)
        for size in self.sizes.values():
            own = parts * size
            cells += np.where(_in_lists(size, own), np.minimum(own, nodes.people[which]), own)
        return cells

    def cut_once(self, nodes: OpenNodes, boundaries: Boundaries, column: Ints) -> Splits:
        """Return one split in two per boundary, several per node allowed, in the given order; `column` is per
        boundary."""
        count = len(boundaries.node)
        if not count:
            return Splits.concatenate([])
        low = np.stack([nodes.cell_low[boundaries.node, column], boundaries.cut], axis=1).ravel()
        high = np.stack([boundaries.cut - 1, nodes.cell_high[boundaries.node, column]], axis=1).ravel()
        part_start = 2 * np.arange(count + 1)
        order = np.lexsort((boundaries.cut, boundaries.node))
        node, cut = boundaries.node[order], boundaries.cut[order]
        which, first = np.unique(node, return_index=True)
        cut_start = np.append(first, count).astype(np.int64)

        def sides(value: int) -> Ints:
            counts = self.tables(nodes, which, column[order][first], cut_start, cut, value)
            return _sides(counts, np.diff(cut_start) + 1, order)

        groups = {}
        for value, size in self.sizes.items():
            if size > DENSE:
                alone = np.arange(count + 1)
                groups[value] = self.lists(nodes, boundaries.node, column, alone, boundaries.cut, value)
            else:
                groups[value] = self._groups(sides, value)
        found = self._splits(boundaries.node, column, part_start, low, high, groups)
        if boundaries.drops is not None:
            found.may_drop = (boundaries.drops[:, None] & np.array([1, 2]) > 0).ravel()
        return found

    def _groups(self, counted: Callable[[int], Ints], value: int) -> Groups:
        """Return groups from the counts by value, and where individuals have several values also from those of
        people."""
        groups = Groups.dense(counted(value))
        return replace(groups, n=counted(PEOPLE)[:, 0].copy()) if self.cube.several else groups

    def split_whole(self, nodes: OpenNodes, which: Ints, column: Ints) -> Splits:
        """Return the split of a hierarchy column: its lowest node that covers the members, into its non-empty
        children."""
        if not len(which):
            return Splits.concatenate([])
        part_start, low, high = self._children(column, nodes.low[which, column], nodes.high[which, column])
        cut_start, cut = Splits(which, column, part_start, low, high, low).cuts()
        groups = {}
        for value, size in self.sizes.items():
            if _in_lists(size, size * len(low)):
                groups[value] = self.lists(nodes, which, column, cut_start, cut, value)
            else:
                groups[value] = self._groups(partial(self.tables, nodes, which, column, cut_start, cut), value)
        some = next(iter(groups.values())).n > 0
        kept = np.append(0, np.cumsum(some))[part_start]
        filled = {value: each.where(some) for value, each in groups.items()}
        return self._splits(which, column, kept, low[some], high[some], filled)

    def _splits(
        self, node: Ints, column: Ints, part_start: Ints, low: Ints, high: Ints, groups: dict[int, Groups]
    ) -> Splits:
        people = next(iter(groups.values())).n
        seen = {value: self.cube.seen_by(each, value) for value, each in groups.items()}
        return Splits(node, column, part_start, low, high, people, seen, groups)

    def peel(self, nodes: OpenNodes, splits: Splits, peels: Peels) -> Splits:
        """Return splits by hierarchies of which only some parts leave, and the rest stays together; where all leave,
        the split as it was."""
        at = peels.split
        parts = np.diff(splits.part_start)[at]
        peeled, leaving = peels.leaving < parts, peels.leaving + (peels.leaving < parts)
        start = np.append(0, np.cumsum(leaving))
        old = ranges(splits.part_start[at], parts)
        new = np.repeat(start[1:] - 1, parts)
        new[peels.leaves] = ranges(start[:-1], peels.leaving)
        low, high = np.empty(start[-1], np.int64), np.empty(start[-1], np.int64)
        low[new], high[new] = splits.low[old], splits.high[old]
        rest, node, column = start[1:][peeled] - 1, splits.node[at], splits.column[at]
        ends = (nodes.low[node, column][peeled], nodes.high[node, column][peeled])
        low[rest], high[rest] = self._covers(column[peeled], *ends)
        groups = {value: each.merged(old, new, int(start[-1])) for value, each in splits.counted.items()}
        found = self._splits(node, column, start, low, high, groups)
        found.peeled = peeled
        return found

    def _covers(self, column: Ints, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """Return the codes of the lowest hierarchy node that covers low..high, per element."""
        found = np.empty((2, len(column)), np.int64)
        for j in np.unique(column).tolist():
            tree, at = self.cube.domains[j].tree, np.flatnonzero(column == j)
            assert tree is not None
            cover = tree.common(low[at], high[at])
            found[:, at] = tree.low[cover], tree.high[cover]
        return found[0], found[1]

    def _children(self, column: Ints, low: Ints, high: Ints) -> tuple[Ints, Ints, Ints]:
        """Return the cells of the children of the lowest hierarchy node that covers low..high, per element (CSR)."""
        parts, of_column = np.zeros(len(column), np.int64), {}
        for j in np.unique(column).tolist():
            tree, at = self.cube.domains[j].tree, np.flatnonzero(column == j)
            assert tree is not None
            cover = tree.common(low[at], high[at])
            first, count = tree.child_start[cover], np.diff(tree.child_start)[cover]
            parts[at] = count
            of_column[j] = (at, tree, tree.child[ranges(first.astype(np.int64), count.astype(np.int64))])
        start = np.append(0, np.cumsum(parts))
        cell_low, cell_high = np.empty(start[-1], np.int64), np.empty(start[-1], np.int64)
        for at, tree, children in of_column.values():
            rows = ranges(start[at], parts[at])
            cell_low[rows], cell_high[rows] = tree.low[children], tree.high[children]
        return start, cell_low, cell_high


def widths(domains: list[Domain], low: Ints, high: Ints) -> Floats:
    """Return the widths [nodes, columns] of nodes that extend from low to high: that range over the range of the table,
    times the weight of the column; for a hierarchy the range of the leaves under the covering node."""
    found = np.empty(low.shape)
    for j, domain in enumerate(domains):
        first, last = low[:, j], high[:, j]
        if domain.tree is not None and domain.by_nodes:
            cover = domain.tree.common(first, last)
            first, last = domain.tree.low[cover].astype(np.int64), domain.tree.high[cover].astype(np.int64)
        whole = domain.position[-1] - domain.position[0]
        extent = (domain.position[last] - domain.position[first]) * domain.weight
        found[:, j] = extent / whole if whole else 1.0  # equal ratios give equal numbers, which must be a tie
    return found


def _scale(domain: Domain, length: int) -> Ints:
    """Return the place of each code on a scale from 0 to the length."""
    at = domain.position
    whole = at[-1] - at[0]
    return np.rint((at - at[0]) / whole * length).astype(np.int64) if whole else np.zeros(len(at), np.int64)


def children_cells(nodes: OpenNodes, chosen: Splits) -> tuple[Ints, Ints]:
    """Return the cells [parts, columns] of the children of the chosen splits."""
    parts = np.diff(chosen.part_start)
    parent, column = np.repeat(chosen.node, parts), np.repeat(chosen.column, parts)
    low, high = nodes.cell_low[parent], nodes.cell_high[parent]
    at = np.arange(len(parent))
    low[at, column], high[at, column] = chosen.low, chosen.high
    return low, high


def unreached(parts: int, columns: int) -> tuple[Codes, Codes]:
    """Return the initial lowest and highest codes [parts, columns] of parts before any record was read."""
    low = np.full((parts, columns), 65_535, np.uint16)
    return low, np.zeros_like(low)


def in_order(node: Ints, cut: Ints, off: Ints, drops: Sides | None = None) -> Boundaries:
    """Return cuts of nodes, the nearest to the median of each first; `off` is their distance from it."""
    return Boundaries(node, cut, drops).take(np.lexsort((cut, off, node)))


def _sides(counts: Ints, parts: Ints, order: Ints) -> Ints:
    """Return the counts on both sides of each single cut, in the order of `order`, from those of the parts between all
    cuts of a node."""
    if (parts == 2).all():  # one cut per node: its parts are its sides
        sides = np.empty_like(counts)
        sides[2 * order], sides[2 * order + 1] = counts[0::2], counts[1::2]
        return sides
    ends = np.cumsum(parts)
    below = np.vstack([np.zeros((1, counts.shape[1]), np.int64), np.cumsum(counts, axis=0)])
    before = below[ends - parts]
    total = below[ends] - before
    last = np.zeros(len(counts), bool)
    last[ends - 1] = True
    node = np.repeat(np.arange(len(parts)), parts - 1)
    left = below[1:][~last] - before[node]
    sides = np.empty((2 * len(order), counts.shape[1]), np.int64)
    sides[2 * order], sides[2 * order + 1] = left, total[node] - left
    return sides
