"""Search the top of the tree of cuts: nodes with more individuals than a block holds, decided level by level. Their
records stay where they are, in memory or on disk, and every pass over them finds the node of each record by walking the
tree so far; only when all nodes are small enough (or groups) are the records sorted by node, in one more pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anon.core.arrays import Codes, Ints
from anon.core.checkpoint import Arrays
from anon.core.progress import ProgressCallback
from anon.criteria import Groups, State
from anon.cube import Cube
from anon.cube.records import Records, whole_numbers
from anon.recoding.tree import children_of
from anon.search.budget import SearchBudget
from anon.search.partition import kernels
from anon.search.partition.candidates import (
    PEOPLE,
    Boundaries,
    Evaluator,
    OpenNodes,
    Splits,
    children_cells,
    in_order,
    unreached,
    widths,
)
from anon.search.partition.decide import Decisions, Rules, cells_within, state_arrays, states_of
from anon.search.partition.fragments import Fragment
from anon.search.partition.passes import Descent, Node, Passes, RecordChunk, ReusePool, Tree, Work, shaped
from anon.search.partition.resuming import Steps

SORTED = 2**20  # records that the threads sort at a time, if the memory allows: more of them give longer runs
SPLITS = ("node", "column", "part_start", "low", "high", "people")
FLAGS = ("safe", "barren", "peeled", "slack", "dropped", "share")  # of these
NARROW = 2**32  # people; fewer are counted by code in four bytes
COUNTERS = 5_000_000  # counters of codes that a pass fills, per thread
CELLS = 2_000_000  # the same of values
KEPT = 256  # parts of a node whose facts are kept until it is decided


@dataclass
class CodeCounts:
    """The people of a node by code of one column, from its lowest code on."""

    column: int
    low: int
    people: Ints


@dataclass
class PartFacts:
    """Facts about the parts of one split node, from a pass."""

    records: Ints
    low: Codes  # [parts, columns]
    high: Codes
    ahead: list[CodeCounts | None]  # the counts that will probably be needed next

    def merged(self, child: Ints) -> PartFacts:
        """Return the facts about the children of a peeled node, given the child that each part belongs to; the last one
        has several parts."""
        rest = int(child.max())
        low, high = unreached(rest + 1, self.low.shape[1])
        np.minimum.at(low, child, self.low)
        np.maximum.at(high, child, self.high)
        records = np.bincount(child, self.records, rest + 1).astype(np.int64)
        alone = dict(zip(child.tolist(), self.ahead))
        return PartFacts(records, low, high, [*(alone[at] for at in range(rest)), None])


@dataclass
class PassCounts:
    """Counters of a pass over the records, one set per thread: by part and value, by part, and by code."""

    values: dict[int, Ints]
    records: Ints
    low: Codes
    high: Codes
    ahead: NDArray[Any]

    @classmethod
    def fresh(cls, counter: type, sizes: dict[int, int], parts: int, columns: int, codes: int) -> PassCounts:
        """Return counters of `parts` parts before any record was read; those by code have the type `counter`, which is
        wide enough for all people."""
        values = {value: np.zeros((parts, size), np.int64) for value, size in sizes.items()}
        return cls(values, np.zeros(parts, np.int64), *unreached(parts, columns), np.zeros(codes, counter))

    def add(self, other: PassCounts) -> None:
        for column, counts in other.values.items():
            self.values[column] += counts
        self.records += other.records
        self.ahead += other.ahead
        np.minimum(self.low, other.low, out=self.low)
        np.maximum(self.high, other.high, out=self.high)


class Top(Evaluator):
    """Evaluates nodes whose records are scattered, in passes over all records; OpenNodes.start is the number of a node
    in the tree so far. Nodes of more than `limit` people will be split."""

    def __init__(self, cube: Cube, rules: Rules, passes: Passes, limit: int, budget: SearchBudget) -> None:
        super().__init__(cube, rules.value_columns, rules.demands, rules.small)
        self.passes, self.limit, self.memory = passes, limit, budget.memory
        self.people_columns = [] if self.people_at < 0 else range(self.people_at, cube.records.width)
        self.cells = cells_within(budget.memory.search, budget.threads)
        self.counters = max(min(COUNTERS, budget.memory.search // (2 * 8 * budget.threads)), 1)
        self.widest = rules.prefer == "widest"
        self.counter = np.uint32 if cube.individuals < NARROW else np.int64
        self.fragment, self.nodes = Fragment(), 1  # nodes so far
        self.known: dict[tuple[int, int, bytes], PartFacts] = {}
        self.ahead: dict[int, CodeCounts] = {}
        self.tables_of: tuple[bytes, dict[int, Ints]] = (b"", {})

    def over_records(self, work: Work, size: int | None = None) -> None:
        """Call work(chunk of records, the node of each) for all records, from several threads."""
        self.passes.over(work, self.tree(), size)

    def _counted(self, work: Callable[[RecordChunk, Node, PassCounts], None], *counters: Any) -> PassCounts:
        """Return the counts of some work in a pass over all records, in fresh counters with these arguments."""
        done = self.passes.count(partial(PassCounts.fresh, self.counter, *counters), work, self.tree())
        return replace(done, ahead=done.ahead.astype(np.int64, copy=False))

    def tree(self) -> Tree:
        """Return the tree so far for a walk that ends in the numbers of its nodes."""
        listed = [*self.fragment.column, np.full(self.nodes - sum(map(len, self.fragment.column)), -1)]
        column = np.concatenate(listed)
        cuts, peeled = np.zeros(self.nodes, np.int64), np.zeros(self.nodes, bool)
        known = np.concatenate([np.empty(0, np.int64), *self.fragment.cuts])
        cuts[: len(known)] = known
        peeled[: len(known)] = np.concatenate([np.empty(0, bool), *self.fragment.peeled])
        cut = np.concatenate([np.empty(0, np.int64), *self.fragment.cut])
        child = np.arange(self.nodes)
        split = column >= 0
        children = children_of(cuts[split], peeled[split])
        child[split] = 1 + np.cumsum(children) - children
        return np.maximum(column, -1), np.append(0, np.cumsum(cuts)), cut, child, peeled

    def _codes(self, nodes: OpenNodes, which: Ints, column: Ints) -> Iterator[tuple[int, Ints, Ints]]:
        """Yield per node the codes of a column that occur and their people; those counted ahead first."""
        held = [self._held(int(nodes.start[i]), j) for i, j in zip(which, column.tolist())]
        found = np.array([each is not None for each in held], bool)
        for at in np.flatnonzero(found).tolist():
            yield int(which[at]), *_occurring(held[at])  # type: ignore[arg-type]
        which, column = which[~found], column[~found]
        low = nodes.low[which, column]
        sizes = nodes.high[which, column] - low + 1
        batch = np.cumsum(sizes) // self.counters
        for number in np.unique(batch):
            some = np.flatnonzero(batch == number)
            offset = np.cumsum(sizes[some]) - sizes[some]
            counts = self._count_codes(
                nodes.start[which[some]], column[some], offset - low[some], int(sizes[some].sum())
            )
            for at, begin in zip(some.tolist(), offset.tolist()):
                own = CodeCounts(int(column[at]), int(low[at]), counts[begin : begin + sizes[at]])
                yield int(which[at]), *_occurring(own)

    def _held(self, node: int, column: int) -> CodeCounts | None:
        """Return the counts of the codes of a column in a node, if they are known already."""
        if node == 0:
            return CodeCounts(column, 0, self.cube.by_code[column])
        ahead = self.ahead.get(node)
        return ahead if ahead is not None and ahead.column == column else None

    def _count_codes(self, node: Ints, column: Ints, offset: Ints, size: int) -> Ints:
        columns, offsets = np.full(self.nodes, -1), np.zeros(self.nodes, np.int64)
        columns[node], offsets[node] = column, offset
        people, wanted = self.people_at, {*column.tolist(), *self.people_columns}

        def work(chunk: RecordChunk, node: Node, own: PassCounts) -> None:
            kernels.top_codes(chunk.columns(wanted), people, node, columns, offsets, own.ahead)

        return self._counted(work, {}, 0, 0, size).ahead

    def nearest(self, nodes: OpenNodes, which: Ints, column: Ints) -> Boundaries:
        least, found = self.demands.least, []
        for i, code, people in self._codes(nodes, which, column):
            left = np.cumsum(people)[:-1]
            at = int(np.argmin(np.abs(2 * left - nodes.people[i])))
            if least <= left[at] <= nodes.people[i] - least:
                found.append((i, (code[at] + code[at + 1] + 1) // 2))
        pairs = np.array(sorted(found), np.int64).reshape(-1, 2)
        return Boundaries(pairs[:, 0].copy(), pairs[:, 1].copy())

    def boundaries(self, nodes: OpenNodes, which: Ints, column: Ints) -> Boundaries:
        least, empty, of = self.demands.least, np.empty(0, np.int64), dict(zip(which.tolist(), column.tolist()))
        node, cut, off = [empty], [empty], [empty]
        for i, code, people in self._codes(nodes, which, column):
            left = np.cumsum(people)[:-1]
            fine = np.flatnonzero((left >= least) & (nodes.people[i] - left >= least))
            node.append(np.full(len(fine), i))
            cut.append((code[fine] + code[fine + 1] + 1) // 2)
            middle = np.abs(2 * left - nodes.people[i])
            off.append((middle if self.small is None else self._losses(of[i], code, left, nodes.people[i]))[fine])
        return in_order(np.concatenate(node), np.concatenate(cut), np.concatenate(off))

    def _losses(self, column: int, code: Ints, left: Ints, people: int) -> Ints:
        """Return what the cuts between the codes of a node lose; nodes of the top are never small."""
        at = self.scales[column][code]
        found: Ints = left * (at[:-1] - at[0]) + (people - left) * (at[-1] - at[1:]) - people * (at[-1] - at[0])
        return found

    def least(self, nodes: OpenNodes, which: Ints, column: Ints) -> tuple[Ints, Ints]:
        least, place = self.demands.least, {node: at for at, node in enumerate(which.tolist())}
        cut, loss = np.full(len(which), -1), np.zeros(len(which), np.int64)
        for i, code, people in self._codes(nodes, which, column):
            left, at = np.cumsum(people)[:-1], place[i]
            own = self._losses(int(column[at]), code, left, int(nodes.people[i]))
            fine = np.flatnonzero((left >= least) & (nodes.people[i] - left >= least))
            if len(fine):
                best = fine[own[fine].argmin()]
                cut[at], loss[at] = (code[best] + code[best + 1] + 1) // 2, own[best]
        return cut, loss

    def drops(self, nodes: OpenNodes, which: Ints, column: Ints) -> Boundaries:
        empty, of = np.empty(0, np.int64), dict(zip(which.tolist(), column.tolist()))
        node, cut, off, sides = [empty], [empty], [empty], [np.empty(0, np.uint8)]
        for i, code, people in self._codes(nodes, which, column):
            loss, own = self._drops(nodes, i, of[i], code, np.cumsum(people)[:-1])
            fine = np.flatnonzero(own)
            node.append(np.full(len(fine), i))
            cut.append((code[fine] + code[fine + 1] + 1) // 2)
            off.append(loss[fine])
            sides.append(own[fine])
        return in_order(np.concatenate(node), np.concatenate(cut), np.concatenate(off), np.concatenate(sides))

    def _drops(self, nodes: OpenNodes, i: int, j: int, code: Ints, below: Ints) -> tuple[Ints, kernels.Sides]:
        """Return what the cuts between the codes of a node lose if a side is dropped, and which may be, as
        kernels_loss.c does for a block."""
        least, at, (most, cost) = self.demands.least, self.scales[j][code], self.dropping(nodes, np.array([i]))
        above, whole = nodes.people[i] - below, at[-1] - at[0]
        no_lower = above * (at[-1] - at[1:] - whole) + below * cost
        no_upper = below * (at[:-1] - at[0] - whole) + above * cost
        lower = (above >= least) & (below <= most) & (no_lower < 0)
        upper = (below >= least) & (above <= most) & (no_upper < 0)
        loss = np.minimum(np.where(lower, no_lower, 0), np.where(upper, no_upper, 0))
        return loss, (lower + 2 * upper).astype(np.uint8)

    def tables(self, nodes: OpenNodes, which: Ints, column: Ints, cut_start: Ints, cut: Ints, value: int) -> Ints:
        key = b"|".join(array.tobytes() for array in (nodes.start[which], column, cut_start, cut))
        if self.tables_of[0] != key:
            self.tables_of = key, self._tables(nodes, which, column, cut_start, cut)
        return self.tables_of[1][value]

    def _tables(self, nodes: OpenNodes, which: Ints, column: Ints, cut_start: Ints, cut: Ints) -> dict[int, Ints]:
        found: list[dict[int, Ints]] = []
        sizes = self.sizes | ({PEOPLE: 1} if self.cube.several else {})
        batch = np.cumsum(np.diff(cut_start) + 1) * sum(self.sizes.values()) // CELLS
        for number in np.unique(batch):
            some = np.flatnonzero(batch == number)
            first, last = cut_start[some[0]], cut_start[some[-1] + 1]
            own = cut_start[some[0] : some[-1] + 2] - first
            tables, parts = self._part_tables(nodes, which[some], column[some], own, cut[first:last], sizes)
            found.append(tables)
            for i, each in zip(some.tolist(), parts):
                if len(each.records) <= KEPT:
                    cuts = cut[cut_start[i] : cut_start[i + 1]]
                    self.known[self._key(nodes, int(which[i]), int(column[i]), cuts)] = each
        return {value: np.concatenate([each[value] for each in found]) for value in found[0]}

    def _key(self, nodes: OpenNodes, node: int, column: int, cut: Ints) -> tuple[int, int, bytes]:
        return int(nodes.start[node]), column, cut.tobytes()

    def _part_tables(
        self, nodes: OpenNodes, which: Ints, column: Ints, cut_start: Ints, cut: Ints, sizes: dict[int, int]
    ) -> tuple[dict[int, Ints], list[PartFacts]]:
        """Return the people by value, for the columns in `sizes`, in the parts of each node between its cuts, and other
        facts about the parts of each node, from one pass over the records."""
        base, parts = cut_start[:-1] + np.arange(len(which)), len(cut) + len(which)
        descent = Descent.down(self._extended(nodes.start[which], column, cut_start, cut, base, parts))
        low, high = _reach(nodes, which, column, cut_start, cut)
        guess, lowest, offset, size = self._guess(np.repeat(nodes.people[which], np.diff(cut_start) + 1), low, high)
        people, values_at, columns = self.people_at, self.values_at, self.columns
        values = [columns + value for value in sizes if value != PEOPLE]
        summed = people < 0 and bool(values)  # every record is a person, and has one of the values
        always = {*column.tolist(), *guess[guess >= 0].tolist(), *values, *self.people_columns}
        # the extent that any thread has seen; a thread may overwrite what another has just seen, which is seen again
        lowest_seen, highest_seen = unreached(parts + 1, columns)

        def work(chunk: RecordChunk, part: Node, own: PassCounts) -> None:
            # a part with the largest possible extent in a column need not be examined there any more
            inside = (lowest_seen[:parts] > low) | (highest_seen[:parts] < high)
            bounded = np.flatnonzero(inside.any(axis=0))
            codes = chunk.columns(always.union(bounded.tolist()))
            descent.walk(codes, part)
            for value, counts in own.values.items():
                if value == PEOPLE:
                    own_people = whole_numbers(codes[people : people + 2])
                    counts[:, 0] += np.bincount(part, own_people, parts + 1).astype(np.int64)
                else:
                    kernels.top_values(codes, values_at, part, columns + value, counts)
            if not summed:
                own.records += np.bincount(part, minlength=parts + 1)
            kernels.top_codes(codes, people, part, guess, offset - lowest, own.ahead)
            kernels.top_bounds(codes, part, bounded, own.low, own.high)
            np.minimum(lowest_seen, own.low, out=lowest_seen)
            np.maximum(highest_seen, own.high, out=highest_seen)

        done = self._counted(work, sizes, parts + 1, columns, size)  # one more part for records outside all parts
        if summed:
            done.records = next(iter(done.values.values())).sum(axis=1)
        ahead = [
            CodeCounts(j, begin, done.ahead[at : at + length]) if j >= 0 else None
            for j, begin, at, length in zip(guess.tolist(), lowest.tolist(), offset.tolist(), np.diff(offset).tolist())
        ]
        edges = [*base.tolist(), parts]
        of_node = [PartFacts(done.records[a:b], done.low[a:b], done.high[a:b], ahead[a:b]) for a, b in pairwise(edges)]
        return {value: counts[:-1] for value, counts in done.values.items()}, of_node

    def _extended(self, node: Ints, column: Ints, cut_start: Ints, cut: Ints, base: Ints, parts: int) -> Tree:
        """Return a tree for a walk from the nodes into parts of some of them; records of other nodes end in one more
        part."""
        columns, child = np.full(self.nodes + parts, -1), np.full(self.nodes + parts, parts)
        columns[node], child[node] = column, self.nodes + base
        child[self.nodes :] = np.arange(parts)
        cuts = np.zeros(self.nodes + parts, np.int64)
        cuts[node] = np.diff(cut_start)
        first = np.append(0, np.cumsum(cuts))
        return columns, first, cut, child, np.zeros(len(columns), bool)

    def _guess(self, people: Ints, low: Ints, high: Ints) -> tuple[Ints, Ints, Ints, int]:
        """Return the column whose codes will be needed if a part is split in turn, -1 for none; the lowest code there
        and the position of its counter; and the number of all counters. This is a guess from the people of the nodes
        and the largest possible extent of the parts; where it is wrong, another pass counts what is needed."""
        guess, lowest, sizes = np.full(len(people) + 1, -1), *np.zeros((2, len(people) + 1), np.int64)
        if self.widest:
            wide = np.where(high > low, widths(self.cube.domains, low, high), -1.0)
            at, best = np.arange(len(people)), wide.argmax(axis=1)
            free = np.array([not domain.by_nodes for domain in self.cube.domains])
            lowest[:-1], sizes[:-1] = low[at, best], high[at, best] - low[at, best] + 1
            wanted = free[best] & (people > 2 * self.limit)
            wanted &= np.cumsum(sizes[:-1] * wanted) <= self.counters
            guess[:-1][wanted] = best[wanted]
        sizes[guess < 0] = 0
        ends = np.cumsum(sizes)
        return guess, lowest, ends - sizes, int(ends[-1])

    def lists(self, nodes: OpenNodes, which: Ints, column: Ints, cut_start: Ints, cut: Ints, value: int) -> Groups:
        found: list[Groups] = []
        for i in range(len(which)):  # at the top there are few nodes, and rarely more than one cut of each
            cuts = cut[cut_start[i] : cut_start[i + 1]]
            found += self._listed(nodes, which[i : i + 1], column[i : i + 1], cuts, value)
        return Groups.concatenate(found)

    def _listed(self, nodes: OpenNodes, which: Ints, column: Ints, cut: Ints, value: int) -> Iterator[Groups]:
        """Yield the parts of one node as groups; where there would be too many counters, in several passes."""
        parts, run = len(cut) + 1, max(CELLS // self.sizes[value], 1)
        if parts <= run:
            yield self._groups(partial(self.tables, nodes, which, column, np.array([0, len(cut)]), cut), value)
            return
        sizes = {value: self.sizes[value]} | ({PEOPLE: 1} if self.cube.several else {})
        for first in range(0, parts, run):
            last, below = min(first + run, parts), min(first, 1)  # all previous parts are below the first of the cuts
            some = cut[first - below : last]
            tables, _ = self._part_tables(nodes, which, column, np.array([0, len(some)]), some, sizes)
            yield self._groups(tables.__getitem__, value).part(below, below + last - first)

    def children(self, nodes: OpenNodes, chosen: Splits) -> tuple[OpenNodes, Ints]:
        """Return the children of the chosen splits, and the number of records in each."""
        parts = self._facts(nodes, chosen)
        self.known.clear()
        low, high, records = (np.concatenate([getattr(p, name) for p in parts]) for name in ("low", "high", "records"))
        number = self.nodes + np.arange(len(chosen.low))
        ahead = zip(number.tolist(), (each for p in parts for each in p.ahead))
        self.ahead = {at: each for at, each in ahead if each is not None}
        reach = low.astype(np.int64), high.astype(np.int64)
        cells = children_cells(nodes, chosen)
        return OpenNodes(number, number, *cells, *reach, chosen.people, chosen.safe, chosen.barren), records

    def _facts(self, nodes: OpenNodes, chosen: Splits) -> list[PartFacts]:
        """Return the facts about the children of each of the chosen splits; those of splits that were not evaluated
        with exactly these cuts, as peeled ones never are, from another pass."""
        cut_start, cut = chosen.cuts()
        cuts = [cut[first:last] for first, last in pairwise(cut_start.tolist())]
        pairs = zip(chosen.node.tolist(), chosen.column.tolist(), cuts)
        found = [self.known.get(self._key(nodes, at, column, own)) for at, column, own in pairs]
        missing = np.array([at for at, each in enumerate(found) if each is None], np.int64)
        if len(missing):
            ends = np.append(0, np.cumsum(np.diff(cut_start)[missing]))
            own = np.concatenate([cuts[at] for at in missing.tolist()])
            passed = self._part_tables(nodes, chosen.node[missing], chosen.column[missing], ends, own, {})[1]
            for at, each in zip(missing.tolist(), passed):
                found[at] = each
        child = chosen.child_of_part(cut_start)
        at = (cut_start + np.arange(len(cut_start))).tolist()
        return [
            facts.merged(child[at[i] : at[i + 1]] - chosen.part_start[i]) if chosen.peeled[i] else facts
            for i, facts in enumerate(found)
            if facts is not None
        ]


def _reach(nodes: OpenNodes, which: Ints, column: Ints, cut_start: Ints, cut: Ints) -> tuple[Ints, Ints]:
    """Return the lowest and highest codes that the parts of some nodes between their cuts can have, [parts,
    columns]."""
    cuts = np.diff(cut_start)
    at = np.arange(len(cut)) + np.repeat(np.arange(len(which)), cuts)  # the part below each cut
    split = np.repeat(column, cuts)
    low, high = (np.repeat(reach[which], cuts + 1, axis=0) for reach in (nodes.low, nodes.high))
    low[at + 1, split], high[at, split] = cut, cut - 1
    return low, high


def _occurring(counted: CodeCounts) -> tuple[Ints, Ints]:
    """Return the codes that occur, and their people."""
    at = np.flatnonzero(counted.people)
    return at + counted.low, counted.people[at]


@dataclass
class TopResult:
    """The nodes where the top of the tree ends, roots of blocks, groups and those who are dropped, with the records of
    each; and the state."""

    roots: OpenNodes
    root_records: Ints
    groups: OpenNodes
    group_records: Ints
    dropped: OpenNodes
    dropped_records: Ints
    state: list[State]


@dataclass
class LevelStep:
    """A finished level: the chosen splits, their children with the records in each, and the state."""

    chosen: Splits
    nodes: OpenNodes
    records: Ints
    state: list[State]
    passed: Ints  # of the nodes of the level, with a guard

    def arrays(self) -> Arrays:
        splits = {f"split.{name}": getattr(self.chosen, name) for name in (*SPLITS, *FLAGS)}
        nodes = {f"node.{name}": getattr(self.nodes, name) for name in OpenNodes.__dataclass_fields__}
        return splits | nodes | {"records": self.records, "passed": self.passed} | state_arrays(self.state)

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> LevelStep:
        chosen = Splits(**{name: arrays[f"split.{name}"] for name in SPLITS})  # type: ignore[arg-type]
        for name in FLAGS:
            setattr(chosen, name, arrays[f"split.{name}"])
        nodes = OpenNodes(*(arrays[f"node.{name}"] for name in OpenNodes.__dataclass_fields__))
        return cls(chosen, nodes, arrays["records"], states_of(arrays), arrays["passed"])


def root(cube: Cube, rules: Rules) -> OpenNodes:
    """Return the node of the whole table, from the counts by code of the cube."""
    held = [np.flatnonzero(people) for people in cube.by_code]
    low, high = (np.array([[codes[end] for codes in held]]) for end in (0, -1))
    last = np.array([[domain.size - 1 for domain in cube.domains]], np.int64)
    zero, people = np.zeros(1, np.int64), np.array([cube.individuals])
    safe, barren = np.array([rules.whole_table_safe(cube)]), people < 2 * rules.demands.least
    found = OpenNodes(zero, zero, np.zeros_like(last), last, low, high, people, safe, barren)
    found.share = np.array([rules.suppression.share])
    found.most = rules.suppression.most(found.share, people)
    found.barren &= found.most == 0
    if rules.guard is not None:
        every = {column: cube.whole_table(column) for column in rules.value_columns}
        found.passed, found.slack = np.zeros_like(low), rules.last_level(every, np.arange(2))
    return found


def search(top: Top, rules: Rules, state: list[State], on_progress: ProgressCallback, steps: Steps) -> TopResult:
    """Split nodes while they are large, and return where the top ends; finished levels are read from the steps."""
    decisions = Decisions(top.cube, rules, top, state, top.cells)
    nodes, records = root(top.cube, rules), np.array([top.passes.records.count])
    roots: list[tuple[OpenNodes, Ints]] = []
    groups: list[tuple[OpenNodes, Ints]] = []
    dropped: list[tuple[OpenNodes, Ints]] = []
    depth = 0
    while len(nodes):
        giant = (nodes.people > top.limit) & ~nodes.dropped
        on_progress(0, level=depth, open_nodes=int(giant.sum()), individuals=int(nodes.people[giant].sum()))
        step = steps.take(f"level-{depth}", LevelStep.from_arrays, partial(_decided, top, decisions, nodes))
        decisions.state, nodes.passed = step.state, step.passed
        on_progress(int(nodes.people[giant].sum()), level=depth)
        small = ~giant & ~nodes.dropped
        group = top.fragment.add_level(nodes, step.chosen, top.cube.domains, rules.tight, rules.public, small)
        for ended, which in ((roots, small), (groups, group), (dropped, nodes.dropped)):
            ended.append((nodes.take(np.flatnonzero(which)), records[which]))
        nodes, records = step.nodes, step.records
        top.nodes = sum(map(len, top.fragment.column)) + len(nodes)
        depth += 1
    return TopResult(*_joined(roots), *_joined(groups), *_joined(dropped), decisions.state)


def _decided(top: Top, decisions: Decisions, nodes: OpenNodes) -> LevelStep:
    """Decide the large nodes of a level, and return the finished level."""
    number = np.flatnonzero((nodes.people > top.limit) & ~nodes.dropped)
    large = nodes.take(number)
    chosen = decisions.decide(large) if len(number) else Splits.concatenate([])
    chosen.node, nodes.passed[number] = number[chosen.node], large.passed
    if not len(chosen):
        return LevelStep(chosen, nodes.take(slice(0)), np.empty(0, np.int64), decisions.state, nodes.passed)
    children, records = top.children(nodes, chosen)
    decisions.rules.inherit(nodes, chosen, children)
    return LevelStep(chosen, children, records, decisions.state, nodes.passed)


def _joined(pieces: list[tuple[OpenNodes, Ints]]) -> tuple[OpenNodes, Ints]:
    fields = OpenNodes.__dataclass_fields__
    nodes = OpenNodes(*(np.concatenate([getattr(piece, name) for piece, _ in pieces]) for name in fields))
    return nodes, np.concatenate([records for _, records in pieces])


def sort(top: Top, ended: TopResult, into: Records) -> None:
    """Write the records in the order of the roots, the groups and those who are dropped; set the ranges of these."""
    place = np.full(top.nodes, -1, np.int64)
    begin = 0
    for nodes, counts in (
        (ended.roots, ended.root_records), (ended.groups, ended.group_records), (ended.dropped, ended.dropped_records)
    ):  # fmt: skip
        nodes.stop = begin + np.cumsum(counts)
        place[nodes.start] = nodes.stop - counts
        nodes.start = nodes.stop - counts
        begin += int(counts.sum())
    held = top.memory.search // (2 * top.passes.threads * (4 * into.width + 12))
    size, lock = max(min(held, SORTED // top.passes.threads), top.passes.chunk), Lock()
    scratches = ReusePool(lambda: (np.empty(size, np.int32), np.empty(into.width * size, np.uint16)))

    def work(chunk: RecordChunk, node: Node) -> None:
        codes = chunk.columns(range(into.width))
        chunk.records.drop(chunk.start, chunk.start + len(node))
        begin = np.zeros(top.nodes + 2, np.int64)
        with scratches.one() as (order, scratch):
            moved = shaped(scratch, *codes.shape)
            kernels.scatter(codes, node, begin, order[: len(node)], moved)
            mine = np.diff(begin[:-1])
            with lock:
                to = place.copy()
                place[mine > 0] += mine[mine > 0]
            for at in np.flatnonzero(mine).tolist():
                into.write(int(to[at]), moved[:, begin[at] : begin[at + 1]])

    top.over_records(work, size)
