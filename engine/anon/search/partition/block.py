"""Search a block of the partition search: nodes whose records lie together in memory, split down to their groups. Level
by level it *evaluates* the candidate splits of the open nodes, *decides* them (decide.py), and *routes* the records
into the children. Groups are output as they are found, with the counts from which the release is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from anon.core.arrays import Codes, Flags, Ints, ranges
from anon.core.checkpoint import Arrays
from anon.core.progress import ProgressCallback
from anon.criteria import Groups, State
from anon.cube import Cube
from anon.cube.records import Records, whole_numbers
from anon.search.partition import kernels
from anon.search.partition.candidates import (
    PEOPLE,
    Boundaries,
    Demands,
    Evaluator,
    OpenNodes,
    Splits,
    children_cells,
    in_order,
    unreached,
)
from anon.search.partition.decide import Decisions, Rules, state_arrays, states_of
from anon.search.partition.fragments import Fragment
from anon.search.partition.passes import ReusePool
from anon.search.partition.refine import REGION, Refinement, Regrouped
from anon.search.partition.threads import Crew

WORTH_A_THREAD = 65_536  # records
PIECE = 262_144  # records of groups that are counted at a time

T = TypeVar("T")


@dataclass
class BlockResult:
    """The result of a block: its part of the tree, the sensitive codes in its groups, and the state after it."""

    fragment: Fragment
    group: NDArray[Any]  # of the fragment, per entry
    codes: Codes  # [entries, sensitive columns]
    people: NDArray[Any]
    unique: int  # individuals with unique codes
    state: list[State]
    regrouped: Regrouped | None = None  # the groups after the post-pass

    def arrays(self) -> Arrays:
        """Return the result as named arrays."""
        own: Arrays = {"group": self.group, "codes": self.codes, "entries": self.people}
        own["unique"] = np.array(self.unique)
        own |= {} if self.regrouped is None else self.regrouped.arrays()
        return own | self.fragment.arrays() | state_arrays(self.state)

    def after(self, state: list[State]) -> list[State]:
        """Return the state after the block, merged with the state before it."""
        return [before.merge(after) for before, after in zip(state, self.state)]

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> BlockResult:
        own = arrays["group"], arrays["codes"], arrays["entries"], int(arrays["unique"])
        return cls(Fragment.from_arrays(arrays), *own, states_of(arrays), Regrouped.from_arrays(arrays))


class Scratch:
    """Memory that blocks of up to `records` records use one after the other, for their records and for intermediate
    results. The system commits it when it is written to."""

    def __init__(self, width: int, records: int) -> None:
        self.codes = np.empty(width * records, np.uint16)
        self.order, self.cut = np.empty(records, np.int32), np.empty(records, np.uint16)
        self.aside = ReusePool(lambda: np.empty(records + kernels.BESIDE, np.uint16))  # one for each thread


class Block(Evaluator):
    """Evaluates nodes that are ranges of records in memory, several of them at a time where threads are available."""

    def __init__(
        self,
        cube: Cube,
        value_columns: list[int],
        demands: Demands,
        records: Codes,
        crew: Crew | None = None,
        scratch: Scratch | None = None,
        small: int | None = None,
    ) -> None:
        super().__init__(cube, value_columns, demands, small)
        self.records, self.crew, self.scratch = records, crew or Crew(), scratch or Scratch(0, records.shape[1])

    def _share(self, nodes: OpenNodes, which: Ints, work: Callable[[slice], T]) -> list[T]:
        """Return the results of some work on runs of these nodes with about equal numbers of records, one run per
        available thread."""
        threads_per_block = self.crew.threads_per_block
        if threads_per_block == 1 or len(which) < 2:
            return [work(slice(0, len(which)))]
        ends = np.cumsum(nodes.stop[which] - nodes.start[which])
        share = ends[-1] * np.arange(1, threads_per_block) // threads_per_block if ends[-1] >= WORTH_A_THREAD else []
        edges = [0, *np.searchsorted(ends, share, side="right").tolist(), len(which)]
        return self.crew.do(work, [slice(a, b) for a, b in pairwise(edges) if b > a])

    def nearest(self, nodes: OpenNodes, which: Ints, column: Ints) -> Boundaries:
        start, stop = nodes.start[which], nodes.stop[which]
        cut, left = np.empty(len(which), np.int64), np.empty(len(which), np.int64)
        low, high = nodes.low[which, column], nodes.high[which, column]

        def work(s: slice) -> None:
            given = start[s], stop[s], column[s], low[s], high[s]
            kernels.nearest(self.records, self.people_at, *given, cut[s], left[s])

        self._share(nodes, which, work)
        fine = (left >= self.demands.least) & (nodes.people[which] - left >= self.demands.least)
        return Boundaries(which[fine], cut[fine])

    def boundaries(self, nodes: OpenNodes, which: Ints, column: Ints) -> Boundaries:
        start, stop = nodes.start[which], nodes.stop[which]
        offset = np.append(0, np.cumsum(np.minimum(stop - start, nodes.high[which, column] - nodes.low[which, column])))
        order, cut, used = self.scratch.order, self.scratch.cut, np.empty(len(which), np.int64)
        demands = self.demands
        values = self.cube.others[demands.value].size if len(demands.fewest) else 0

        def work(s: slice) -> None:
            ranges = start[s], stop[s], column[s]
            kernels.by_code(self.records, ranges, order)
            kernels.sweep(
                self.records, self.people_at, ranges, order, self.columns + demands.value,
                values if values <= 256 else 0, demands.least, demands.fewest, demands.largest, offset[s], cut, used[s],
            )  # fmt: skip

        self._share(nodes, which, work)
        found = Boundaries(np.repeat(which, used), cut[ranges(offset[:-1], used)].astype(np.int64))
        return found if self.small is None else self._by_loss(nodes, which, column, found)

    def _by_loss(self, nodes: OpenNodes, which: Ints, column: Ints, found: Boundaries) -> Boundaries:
        """Return some cuts, the one that loses least first. The order of the records is that of these columns."""
        given = nodes.start[which], nodes.stop[which], column
        used, cut, loss = kernels.losses(self.records, self.people_at, given, self.scratch.order, self._measure)
        keys, wanted = np.repeat(which, used) << 16 | cut, found.node << 16 | found.cut
        return in_order(found.node, found.cut, loss[np.searchsorted(keys, wanted)])

    def drops(self, nodes: OpenNodes, which: Ints, column: Ints) -> Boundaries:
        given, dropping = (nodes.start[which], nodes.stop[which], column), self.dropping(nodes, which)
        kernels.by_code(self.records, given, self.scratch.order)
        measured = self.records, self.people_at, given, self.scratch.order, self._measure, dropping
        used, cut, loss, sides = kernels.drops(*measured)
        return in_order(np.repeat(which, used), cut, loss, sides)

    @cached_property
    def _measure(self) -> kernels.Measure:
        return *self.measures, self.demands.least, self.small or 0

    @property
    def measures(self) -> tuple[Ints, Ints]:
        """Return the scales of the columns (CSR)."""
        start = np.append(0, np.cumsum([len(each) for each in self.scales])).astype(np.int64)
        return start, np.concatenate(self.scales)

    def least(self, nodes: OpenNodes, which: Ints, column: Ints) -> tuple[Ints, Ints]:
        start, stop = nodes.start[which], nodes.stop[which]
        cut, loss, order = np.empty(len(which), np.int64), np.empty(len(which), np.int64), self.scratch.order

        def work(s: slice) -> None:
            given = start[s], stop[s], column[s]
            kernels.by_code(self.records, given, order)
            kernels.least_loss(self.records, self.people_at, given, order, self._measure, cut[s], loss[s])

        if len(which):
            self._share(nodes, which, work)
        return cut, loss

    def tables(self, nodes: OpenNodes, which: Ints, column: Ints, cut_start: Ints, cut: Ints, value: int) -> Ints:
        start, stop = nodes.start[which], nodes.stop[which]
        counts = np.zeros((len(cut) + len(which), 1 if value == PEOPLE else self.sizes[value]), np.int64)

        def work(s: slice) -> None:
            given = start[s], stop[s], column[s], cut_start[s.start : s.stop + 1], cut
            own = counts[cut_start[s.start] + s.start :]
            if value == PEOPLE:
                kernels.part_sizes(self.records, self.people_at, *given, own[:, 0])
            else:
                kernels.part_counts(self.records, self.values_at, *given, self.columns + value, own)

        self._share(nodes, which, work)
        return counts

    def lists(self, nodes: OpenNodes, which: Ints, column: Ints, cut_start: Ints, cut: Ints, value: int) -> Groups:
        def work(s: slice) -> Groups:
            return self._lists(nodes, which[s], column[s], cut_start[s.start : s.stop + 1], cut, value)

        return Groups.concatenate(self._share(nodes, which, work))

    def _lists(self, nodes: OpenNodes, which: Ints, column: Ints, cut_start: Ints, cut: Ints, value: int) -> Groups:
        start, stop = nodes.start[which], nodes.stop[which]
        parts, size = int(cut_start[-1] - cut_start[0]) + len(which), self.cube.others[value].size
        n, length = np.zeros(parts, np.int64), np.zeros(parts, np.int64)
        capacity = int((stop - start).sum())
        code, count = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
        kernels.part_lists(
            self.records, self.people_at, self.values_at, (start, stop, column), (cut_start, cut),
            self.columns + value, size, n, length, code, count,
        )  # fmt: skip
        ends = np.append(0, np.cumsum(length))
        return Groups(n, ends, code[: ends[-1]].copy(), count[: ends[-1]].copy())

    def route(self, nodes: OpenNodes, chosen: Splits) -> OpenNodes:
        """Move the records of each child of the split nodes together, in the place of its parent; return the
        children."""
        start, stop = nodes.start[chosen.node], nodes.stop[chosen.node]
        cut_start, cut = chosen.cuts()
        sizes = chosen.people
        if self.people_at >= 0:
            parts, sizes = np.zeros(len(cut) + len(chosen), np.int64), np.zeros(len(chosen.low), np.int64)
            kernels.part_sizes(self.records, -1, start, stop, chosen.column, cut_start, cut, parts)
            np.add.at(sizes, chosen.child_of_part(cut_start), parts)
        low, high = unreached(len(sizes), self.columns)

        def work(s: slice) -> None:
            parts = slice(int(chosen.part_start[s.start]), int(chosen.part_start[s.stop]))
            cuts = cut_start[s.start : s.stop + 1]
            with self.scratch.aside.one() as aside:
                ranges = start[s], stop[s], chosen.column[s]
                kernels.route(self.records, ranges, (cuts, cut), chosen.peeled[s], low[parts], high[parts], aside)

        if len(chosen):
            self._share(nodes, chosen.node, work)
        ends = np.cumsum(sizes)
        ends += np.repeat(start - (ends - sizes)[chosen.part_start[:-1]], np.diff(chosen.part_start))
        cells = children_cells(nodes, chosen)
        reach = low.astype(np.int64), high.astype(np.int64)
        return OpenNodes(ends - sizes, ends, *cells, *reach, chosen.people, chosen.safe, chosen.barren)

    def groups_of(self, nodes: OpenNodes, leaves: Ints, sensitive: int) -> tuple[Ints, Codes, Ints]:
        """Return the distinct sensitive codes of some nodes, in order: the node, the codes, their counts."""
        if sensitive == 1:
            uncut, none = np.zeros(len(leaves) + 1, np.int64), np.empty(0, np.int64)
            own = self._lists(nodes, leaves, uncut[1:], uncut, none, 0)
            return np.repeat(leaves, np.diff(own.start)), own.value[:, None].astype(np.uint16), own.count
        return self._tuples(leaves, nodes.start[leaves], nodes.stop[leaves], sensitive)

    def _tuples(self, leaves: Ints, start: Ints, stop: Ints, sensitive: int) -> tuple[Ints, Codes, Ints]:
        at = ranges(start, stop - start)
        leaf = np.repeat(leaves, stop - start)
        codes = self.records[self.columns : self.columns + sensitive, at].T
        people = np.ones(len(at), np.int64)
        if self.people_at >= 0:
            people = whole_numbers(self.records[self.people_at : self.people_at + 2, at]).astype(np.int64)
        order = np.lexsort([*codes.T[::-1], leaf])
        leaf, codes = leaf[order], codes[order]
        new = np.ones(len(order), bool)
        new[1:] = (leaf[1:] != leaf[:-1]) | (codes[1:] != codes[:-1]).any(axis=1)
        first = np.flatnonzero(new)
        return leaf[first], codes[first], np.add.reduceat(people[order], first) if len(first) else people

    def unique(self, nodes: OpenNodes, leaves: Ints) -> int:
        """Return the number of individuals of some nodes whose codes are unique in their node."""
        if not len(leaves):
            return 0
        start, stop = nodes.start[leaves], nodes.stop[leaves]

        def work(s: slice) -> int:
            longest = int((stop[s] - start[s]).max())
            scratch = np.empty(longest, np.uint64), np.empty(longest, np.uint8), np.zeros(4 * longest, np.int32)
            return int(kernels.unique_people(self.records, self.people_at, start[s], stop[s], self.columns, *scratch))

        return sum(self._share(nodes, leaves, work))


def search(
    cube: Cube,
    rules: Rules,
    records: Codes,
    roots: OpenNodes,
    state: list[State],
    crew: Crew | None = None,
    scratch: Scratch | None = None,
    cells: int | None = None,
    on_progress: ProgressCallback = lambda **facts: None,
) -> BlockResult:
    """Split the roots, whose records lie in order and are moved, while every criterion still holds; return the result.
    `cells` is the number of counters that may be filled at a time."""
    evaluator = Block(cube, rules.value_columns, rules.demands, records, crew, scratch, rules.small)
    decisions = Decisions(cube, rules, evaluator, state, cells)
    fragment, nodes = Fragment(), roots
    entries: list[tuple[NDArray[Any], Codes, NDArray[Any]]] = []
    ranges_found: list[tuple[Ints, Ints, Flags]] = []
    unique = level = 0
    while len(nodes):
        on_progress(level=level, open_nodes=len(nodes), individuals=int(nodes.people.sum()))
        chosen = decisions.decide(nodes)
        leaf = fragment.add_level(nodes, chosen, cube.domains, rules.tight, rules.public)
        leaves = np.flatnonzero(leaf)
        some = leaf | (nodes.people <= REGION)
        ranges_found.append((nodes.start[some], nodes.stop[some], leaf[some]))
        for first, last in runs_of(nodes.stop[leaves] - nodes.start[leaves], PIECE):
            node, codes, people = evaluator.groups_of(nodes, leaves[first:last], cube.sensitive)
            group = fragment.groups - len(leaves) + np.searchsorted(leaves, node)
            entries.append((group.astype(np.uint32), codes, narrow(people)))
        unique += evaluator.unique(nodes, np.flatnonzero(leaf | nodes.dropped))
        children = evaluator.route(nodes, chosen)
        rules.inherit(nodes, chosen, children)
        nodes, level = children, level + 1
    group, codes, people = (np.concatenate(arrays) for arrays in zip(*entries))
    regrouped = _regrouped(cube, rules, evaluator, ranges_found) if rules.refine else None
    return BlockResult(fragment, group, codes, people, unique, decisions.state, regrouped)


def _regrouped(cube: Cube, rules: Rules, evaluator: Block, found: list[tuple[Ints, Ints, Flags]]) -> Regrouped:
    """Return the groups after the post-pass, given the ranges of groups and of nodes that are small enough for it."""
    start, stop, leaf = (np.concatenate(arrays) for arrays in zip(*found))
    leaves = np.append(np.sort(start[leaf]), stop.max())
    order = np.lexsort((-stop, start))
    before = np.maximum.accumulate(np.append(0, stop[order][:-1]))
    largest = order[stop[order] > before]
    regions = list(zip(start[largest].tolist(), stop[largest].tolist()))
    refinement = Refinement(cube, rules.refinable(), not rules.by_values, rules.demands.least, evaluator.measures)
    return refinement.run(evaluator.records, regions, leaves)


def narrow(people: Ints) -> NDArray[Any]:
    """Return counts in half the bytes, where they fit: there may be one for each record."""
    return people.astype(np.uint32) if people.max(initial=0) < 2**32 else people


def large_group(
    cube: Cube,
    records: Records,
    start: int,
    stop: int,
    group: int,
    add: Callable[[Ints, Codes, Ints], None],
    memory: int,
) -> int:
    """Pass the sensitive codes of one group whose records may not fit in memory to `add`, a piece at a time; return the
    number of individuals in it with unique codes. To count these, the records are read once per part of them."""
    step = max(memory // (2 * records.width), 1)
    parts = -(-(stop - start) // step)
    unique = 0
    for part in range(parts):
        own = []
        for first in range(start, stop, step):
            some = records.read(first, min(first + step, stop))
            if part == 0:
                piece, every = Block(cube, [], Demands(), some), whole_range(some.shape[1])
                _, codes, people = piece.groups_of(every, np.array([0]), cube.sensitive)
                add(np.full(len(people), group), codes, people)
            own.append(some[:, some[: len(cube.domains)].sum(axis=0, dtype=np.int64) % parts == part])
        together = np.ascontiguousarray(np.concatenate(own, axis=1))
        unique += Block(cube, [], Demands(), together).unique(whole_range(together.shape[1]), np.array([0]))
    return unique


def whole_range(records: int) -> OpenNodes:
    """Return a node with this number of records, of which nothing else matters."""
    empty = np.empty((1, 0), np.int64)
    one = np.ones(1, bool)
    return OpenNodes(np.array([0]), np.array([records]), empty, empty, empty, empty, np.array([0]), one, one)


def runs_of(sizes: Ints, limit: int) -> Iterator[tuple[int, int]]:
    """Yield the longest runs of consecutive nodes that have no more people, or records, than the limit."""
    first, held = 0, 0
    for at, each in enumerate(sizes.tolist()):
        if held and held + each > limit:
            yield first, at
            first, held = at, 0
        held += each
    if held:
        yield first, len(sizes)
