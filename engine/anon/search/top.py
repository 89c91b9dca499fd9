"""The top of the tree of cuts: nodes with more individuals than a block holds, decided level by level. Their records
stay where they are, in memory or on disk, and every pass over them finds the node of each record by walking the tree so
far; only when all nodes are small enough (or groups) are the records brought into their order, in one more pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anon.checkpoint import Arrays
from anon.criteria import Groups, State
from anon.cube import Cube
from anon.records import Codes, Records
from anon.search import kernels
from anon.search.candidates import Boundaries, Evaluator, Ints, Nodes, Splits, children_cells, in_order, unreached
from anon.search.decide import Decisions, Rules, state_arrays, states_of
from anon.search.steps import Steps
from anon.search.tree import Fragment

CHUNK = 131_072  # records that a thread takes at a time
SPLITS = ("node", "column", "part_start", "low", "high", "people")
COUNTERS = 2_000_000  # counters that a pass fills, per thread


@dataclass
class Parts:
    """What a pass found out about the parts of one split node."""

    records: Ints
    low: NDArray[np.uint16]  # [parts, columns]
    high: NDArray[np.uint16]


class Top(Evaluator):
    """Evaluates nodes whose records lie anywhere; Nodes.start is the number of a node in the tree so far."""

    def __init__(self, cube: Cube, rules: Rules, records: Records, threads: int) -> None:
        super().__init__(cube, rules.value_columns, rules.demands)
        self.records, self.threads, self.fragment = records, threads, Fragment()
        self.pool = ThreadPoolExecutor(threads)
        self.known: dict[tuple[int, int, bytes], Parts] = {}
        self.tables_of: tuple[bytes, dict[int, Ints]] = (b"", {})
        self.nodes = 1

    def root(self) -> Nodes:
        (low, high), people = unreached(1, self.columns), np.zeros(1, np.int64)
        lock = Lock()

        def work(rows: Codes, node: NDArray[np.uint32]) -> None:
            own_low, own_high, own_people = low.copy(), high.copy(), np.zeros(1, np.int64)
            kernels.bounds(rows, self.people_at, np.array([0]), np.array([len(rows)]), own_low, own_high, own_people)
            with lock:
                np.minimum(low, own_low, out=low)
                np.maximum(high, own_high, out=high)
                people[:] += own_people

        self.over_records(work)
        last = np.array([[domain.size - 1 for domain in self.cube.domains]], np.int64)
        zero = np.zeros(1, np.int64)
        reach = low.astype(np.int64), high.astype(np.int64)
        barren = people < 2 * self.demands.least
        return Nodes(zero, zero, np.zeros_like(last), last, *reach, people, np.ones(1, bool), barren)

    def over_records(self, work: Callable[[Codes, NDArray[np.uint32]], None]) -> None:
        """Calls work(records, the node of each) for all records, in chunks, from several threads."""
        column, cut_start, cut, child = self.tree()

        def each(start: int) -> None:
            rows = self.records.read(start, min(start + CHUNK, self.records.count))
            node = np.empty(len(rows), np.uint32)
            kernels.walk(rows, column, cut_start, cut, child, node)
            work(rows, node)

        for _ in self.pool.map(each, range(0, self.records.count, CHUNK)):
            pass

    def tree(self) -> tuple[Ints, Ints, Ints, Ints]:
        """The tree so far for a walk that ends in the numbers of its nodes."""
        listed = [*self.fragment.column, np.full(self.nodes - sum(map(len, self.fragment.column)), -1)]
        column = np.concatenate(listed)
        cuts = np.zeros(self.nodes, np.int64)
        known = np.concatenate([np.empty(0, np.int64), *self.fragment.cuts])
        cuts[: len(known)] = known
        cut = np.concatenate([np.empty(0, np.int64), *self.fragment.cut])
        child = np.arange(self.nodes)
        split = column >= 0
        children = cuts[split] + 1
        child[split] = 1 + np.cumsum(children) - children
        return np.maximum(column, -1), np.append(0, np.cumsum(cuts)), cut, child

    def _per_node(self, nodes: Nodes, which: Ints, values: Ints, default: int = -1) -> Ints:
        """Values of some nodes, spread over all nodes of the tree."""
        spread = np.full(self.nodes + 1, default, np.int64)
        spread[nodes.start[which]] = values
        return spread

    def _codes(self, nodes: Nodes, which: Ints, column: Ints) -> Iterator[tuple[int, Ints, Ints]]:
        """Per node the codes of a column that occur and their people."""
        sizes = np.array([domain.size for domain in self.cube.domains], np.int64)[column]
        batch = np.cumsum(sizes) // COUNTERS
        for number in np.unique(batch):
            some = np.flatnonzero(batch == number)
            room = np.cumsum(sizes[some]) - sizes[some]
            counts = self._count_codes(nodes, which[some], column[some], room, int(sizes[some].sum()))
            for i, begin, size in zip(which[some].tolist(), room.tolist(), sizes[some].tolist()):
                own = counts[begin : begin + size]
                code = np.flatnonzero(own)
                yield i, code, own[code]

    def _count_codes(self, nodes: Nodes, which: Ints, column: Ints, room: Ints, size: int) -> Ints:
        columns, rooms = self._per_node(nodes, which, column), self._per_node(nodes, which, room)
        spares: list[Ints] = []

        def work(rows: Codes, node: NDArray[np.uint32]) -> None:
            try:
                counts = spares.pop()
            except IndexError:
                counts = np.zeros(size, np.int64)
            kernels.top_codes(rows, self.people_at, node, columns, rooms, counts)
            spares.append(counts)

        self.over_records(work)
        return np.sum(spares, axis=0)

    def nearest(self, nodes: Nodes, which: Ints, column: Ints) -> Boundaries:
        least, node, cut = self.demands.least, [], []
        for i, code, people in self._codes(nodes, which, column):
            left = np.cumsum(people)[:-1]
            at = int(np.argmin(np.abs(2 * left - nodes.people[i])))
            if least <= left[at] <= nodes.people[i] - least:
                node.append(i)
                cut.append((code[at] + code[at + 1] + 1) // 2)
        return Boundaries(np.array(node, np.int64), np.array(cut, np.int64))

    def boundaries(self, nodes: Nodes, which: Ints, column: Ints) -> Boundaries:
        least, empty = self.demands.least, np.empty(0, np.int64)
        node, cut, off = [empty], [empty], [empty]
        for i, code, people in self._codes(nodes, which, column):
            left = np.cumsum(people)[:-1]
            fine = np.flatnonzero((left >= least) & (nodes.people[i] - left >= least))
            node.append(np.full(len(fine), i))
            cut.append((code[fine] + code[fine + 1] + 1) // 2)
            off.append(np.abs(2 * left - nodes.people[i])[fine])
        return in_order(np.concatenate(node), np.concatenate(cut), np.concatenate(off))

    def tables(self, nodes: Nodes, which: Ints, column: Ints, cut_start: Ints, cut: Ints, value: int) -> Ints:
        key = b"|".join(array.tobytes() for array in (nodes.start[which], column, cut_start, cut))
        if self.tables_of[0] != key:
            self.tables_of = key, self._tables(nodes, which, column, cut_start, cut)
        return self.tables_of[1][value]

    def _tables(self, nodes: Nodes, which: Ints, column: Ints, cut_start: Ints, cut: Ints) -> dict[int, Ints]:
        width, counts = sum(self.sizes.values()), []
        parts = np.diff(cut_start) + 1
        batch = np.cumsum(parts) * width // COUNTERS
        for number in np.unique(batch):
            some = np.flatnonzero(batch == number)
            first, last = cut_start[some[0]], cut_start[some[-1] + 1]
            own = cut_start[some[0] : some[-1] + 2] - first
            counts.append(self._part_tables(nodes, which[some], column[some], own, cut[first:last], width))
        both, found, at = np.concatenate(counts), {}, 0
        for value, size in self.sizes.items():
            found[value] = np.ascontiguousarray(both[:, at : at + size])
            at += size
        return found

    def _part_tables(self, nodes: Nodes, which: Ints, column: Ints, cut_start: Ints, cut: Ints, width: int) -> Ints:
        base = cut_start[:-1] + np.arange(len(which))
        parts = len(cut) + len(which)
        columns, bases = self._per_node(nodes, which, column), self._per_node(nodes, which, base)
        # the kernel reads the cuts of node i from starts[i] to ends[i]
        starts, ends = (self._per_node(nodes, which, edge, 0) for edge in (cut_start[:-1], cut_start[1:]))
        values = np.array([n for v, size in self.sizes.items() for n in (self.columns + v, size)], np.int64)
        spares: list[tuple[NDArray[Any], ...]] = []

        def work(rows: Codes, node: NDArray[np.uint32]) -> None:
            try:
                own = spares.pop()
            except IndexError:
                counters = np.zeros((parts, width), np.int64), np.zeros(parts, np.int64)
                own = (*counters, *unreached(parts, self.columns))
            kernels.top_parts(rows, self.people_at, node, columns, bases, starts, ends, cut, values, *own)
            spares.append(own)

        self.over_records(work)
        counts, sizes = (np.sum([own[i] for own in spares], axis=0) for i in (0, 1))
        low, high = np.min([own[2] for own in spares], axis=0), np.max([own[3] for own in spares], axis=0)
        for i, at in enumerate(which.tolist()):
            mine = slice(base[i], base[i] + cut_start[i + 1] - cut_start[i] + 1)
            key = (int(nodes.start[at]), int(column[i]), cut[cut_start[i] : cut_start[i + 1]].tobytes())
            if mine.stop - mine.start <= 256:
                self.known[key] = Parts(sizes[mine], low[mine], high[mine])
        return counts

    def lists(self, nodes: Nodes, which: Ints, column: Ints, cut_start: Ints, cut: Ints, value: int) -> Groups:
        found = []
        for i in range(len(which)):  # at the top there are few nodes, and rarely more than one cut of each
            one, cuts = slice(i, i + 1), cut[cut_start[i] : cut_start[i + 1]]
            table = self.tables(nodes, which[one], column[one], np.array([0, len(cuts)]), cuts, value)
            found.append(Groups.dense(table))
        return Groups.concatenate(found)

    def children(self, nodes: Nodes, chosen: Splits) -> tuple[Nodes, Ints]:
        """The children of the chosen splits, and the number of records in each."""
        cut_start, cut = chosen.cuts()
        parts: list[Parts] = []
        for i, at in enumerate(chosen.node.tolist()):
            own = cut[cut_start[i] : cut_start[i + 1]]
            key = (int(nodes.start[at]), int(chosen.column[i]), own.tobytes())
            if key not in self.known:
                self._part_tables(nodes, np.array([at]), chosen.column[i : i + 1], np.array([0, len(own)]), own,
                                  sum(self.sizes.values()))  # fmt: skip
            parts.append(self.known[key])
        self.known.clear()
        low, high, records = (np.concatenate([getattr(p, name) for p in parts]) for name in ("low", "high", "records"))
        number = self.nodes + np.arange(len(chosen.low))
        reach = low.astype(np.int64), high.astype(np.int64)
        cells = children_cells(nodes, chosen)
        return Nodes(number, number, *cells, *reach, chosen.people, chosen.safe, chosen.barren), records


@dataclass
class Ended:
    """Where the top of the tree ends: in roots of blocks and in groups, with the records of each; and the state."""

    roots: Nodes
    root_records: Ints
    groups: Nodes
    group_records: Ints
    state: list[State]


@dataclass
class Step:
    """A finished level: the chosen splits, their children with the records in each, and the state."""

    chosen: Splits
    nodes: Nodes
    records: Ints
    state: list[State]

    def arrays(self) -> Arrays:
        splits = {f"split.{name}": getattr(self.chosen, name) for name in (*SPLITS, "safe", "barren")}
        nodes = {f"node.{name}": getattr(self.nodes, name) for name in Nodes.__dataclass_fields__}
        return splits | nodes | {"records": self.records} | state_arrays(self.state)

    @classmethod
    def of(cls, arrays: Arrays) -> Step:
        chosen = Splits(**{name: arrays[f"split.{name}"] for name in SPLITS})  # type: ignore[arg-type]
        chosen.safe, chosen.barren = arrays["split.safe"], arrays["split.barren"]
        nodes = Nodes(*(arrays[f"node.{name}"] for name in Nodes.__dataclass_fields__))
        return cls(chosen, nodes, arrays["records"], states_of(arrays))


def search(
    top: Top, rules: Rules, limit: int, state: list[State], tell: Callable[[int, int, int], None], steps: Steps
) -> Ended:
    """Splits nodes of more than `limit` individuals; levels that are among the finished steps are taken from there."""
    decisions = Decisions(top.cube, rules, top, state)
    nodes, records = top.root(), np.array([top.records.count])
    nodes.safe[:] = rules.whole_table_safe(top.cube)
    roots: list[tuple[Nodes, Ints]] = []
    groups: list[tuple[Nodes, Ints]] = []
    depth = 0
    while len(nodes):
        giant = nodes.people > limit
        tell(depth, int(giant.sum()), int(nodes.people[giant].sum()))
        step = steps.take(f"level-{depth}", Step.of, partial(_decided, top, decisions, nodes, limit))
        decisions.state = step.state
        group = top.fragment.add_level(nodes, step.chosen, top.cube.domains, elsewhere=~giant)
        roots.append((nodes.take(np.flatnonzero(~giant)), records[~giant]))
        groups.append((nodes.take(np.flatnonzero(group)), records[group]))
        nodes, records = step.nodes, step.records
        top.nodes = sum(map(len, top.fragment.column)) + len(nodes)
        depth += 1
    return Ended(*_joined(roots), *_joined(groups), decisions.state)


def _decided(top: Top, decisions: Decisions, nodes: Nodes, limit: int) -> Step:
    """Decides the nodes of a level that are larger than the limit."""
    number = np.flatnonzero(nodes.people > limit)
    chosen = decisions.decide(nodes.take(number)) if len(number) else Splits.concatenate([])
    chosen.node = number[chosen.node]
    if not len(chosen):
        return Step(chosen, nodes.take(slice(0)), np.empty(0, np.int64), decisions.state)
    return Step(chosen, *top.children(nodes, chosen), decisions.state)


def _joined(pieces: list[tuple[Nodes, Ints]]) -> tuple[Nodes, Ints]:
    fields = Nodes.__dataclass_fields__
    nodes = Nodes(*(np.concatenate([getattr(piece, name) for piece, _ in pieces]) for name in fields))
    return nodes, np.concatenate([records for _, records in pieces])


def sort(top: Top, ended: Ended, into: Records) -> None:
    """Brings the records into the order of the roots and then the groups, whose ranges become known."""
    place = np.full(top.nodes, -1, np.int64)
    begin = 0
    for nodes, counts in ((ended.roots, ended.root_records), (ended.groups, ended.group_records)):
        nodes.stop = begin + np.cumsum(counts)
        place[nodes.start] = nodes.stop - counts
        nodes.start = nodes.stop - counts
        begin += int(counts.sum())
    lock = Lock()

    def work(rows: Codes, node: NDArray[np.uint32]) -> None:
        mine = np.bincount(node, minlength=top.nodes)
        local = np.cumsum(mine) - mine
        moved = np.empty_like(rows)
        kernels.scatter(rows, node, local.copy(), moved)
        with lock:
            to = place.copy()
            place[mine > 0] += mine[mine > 0]
        for at in np.flatnonzero(mine).tolist():
            into.write(int(to[at]), moved[local[at] : local[at] + mine[at]])

    top.over_records(work)
