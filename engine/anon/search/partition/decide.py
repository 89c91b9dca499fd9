"""*Decide* of the partition search: which candidate split of each open node is taken.

A node's candidates come column by column in order of preference. A column that is cut freely offers every boundary
between two codes that occur in the node, nearest to the median first (ties to the lower); the cut lies half-way
between the two codes, so that no cell ends at its members' own extremes. A column with a hierarchy offers one split:
the lowest hierarchy node that covers the members, into its non-empty children. The first candidate that keeps all
criteria safe together with the state of the whole release is taken; a node without one is a group.

The result is defined by strict node order. A criterion that judges groups alone decides each node by itself. For the
others the state only worsens, so a candidate that the state at hand refuses is refused whenever its turn comes, and
one that lowers no minimum of it is accepted whenever its turn comes; any other waits until all nodes before it are
decided.

A criterion that is not monotone may hold for parts of a group that fails it. So a node that fails it may be split into
parts that fail it too, a node that satisfies it only into parts that do; a group that ends up failing ends the search.
No part has fewer people than any criterion asks of a group: neither it nor any part of it could be safe.
If it also judges all groups together, nodes that fail it alone do not enter the state, which they would spoil for all
others: they are no groups of the release yet. Nodes that satisfy it stay in the state after they are split, because a
state of minima cannot give one back: this may refuse a split, and never allows an unsafe one.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from anon.core.arrays import Flags, Floats, Ints
from anon.core.checkpoint import Arrays
from anon.criteria import CLOSE, SAFE, UNSAFE, Criterion, Groups, State
from anon.cube import Cube
from anon.search.partition.candidates import Boundaries, Demands, Evaluator, Nodes, Splits, widths

CELLS = 2_000_000  # counters (parts x sensitive values) evaluated at a time, and as many in store
CELL = 100  # bytes that each of them takes, with all that is made of it
WAITS = 10  # counters that a candidate in store takes as much as, beside its own
AHEAD = 16  # candidates that a node has in store while it waits
MORE = 16  # times the cuts of a column that were refused: how many are offered next


@dataclass(frozen=True)
class Rules:
    """What a release must satisfy and how its groups are preferably split: widest | balanced | information_gain."""

    alone: list[tuple[Criterion, int]]  # criteria that judge groups alone, and what they look at
    erratic: list[tuple[Criterion, int]]  # those of them that are not monotone
    whole: list[tuple[Criterion, int]]  # criteria that judge all groups together
    prefer: str
    demands: Demands

    @classmethod
    def of(cls, cube: Cube, criteria: list[Criterion], prefer: str) -> Rules:
        alone = [(c, cube.reading(c)) for c in criteria if c.alone and c.monotone]
        erratic = [(c, cube.reading(c)) for c in criteria if not c.monotone]
        whole = [(c, cube.reading(c)) for c in criteria if not c.alone]
        return cls(alone, erratic, whole, prefer, _demands([*alone, *whole], [*alone, *erratic, *whole]))

    @property
    def value_columns(self) -> list[int]:
        return sorted({column for _, column in self.alone + self.erratic + self.whole})

    def whole_table_safe(self, cube: Cube) -> bool:
        """Whether the table as one group satisfies the criteria that are not monotone."""
        return all(criterion.holds(criterion.state(cube.whole_table(column))) for criterion, column in self.erratic)

    def first_state(self, cube: Cube) -> list[State]:
        """The state of the criteria about all groups together before any split: that of the table, but of one that is
        not monotone and that the table fails, that of no group."""
        found = []
        for criterion, column in self.whole:
            whole = cube.whole_table(column)
            state = criterion.state(whole)
            nobody = not criterion.monotone and not criterion.holds(state)
            found.append(criterion.state(whole.only(np.zeros(1, bool))) if nobody else state)
        return found

    def hold(self, state: list[State]) -> bool:
        """Whether the criteria about all groups together hold in a state."""
        return all(criterion.holds(each) for (criterion, _), each in zip(self.whole, state))


def cells_within(memory: int, threads: int) -> int:
    """Counters that each thread may fill at a time with so much memory for all."""
    return max(min(CELLS, memory // (CELL * threads)), 1)


def _demands(readings: list[tuple[Criterion, int]], every: list[tuple[Criterion, int]]) -> Demands:
    """The demands of the monotone criteria that look at whole groups of one column, the one with most of them."""
    least = max((criterion.least_group for criterion, _ in every), default=1)
    by_column: dict[int, list[tuple[int, int]]] = {}
    for criterion, column in readings:
        if not criterion.context:
            by_column.setdefault(column, []).extend(criterion.demands)
    column = max(by_column, key=lambda each: len(by_column[each]), default=every[0][1])
    pairs = sorted(set(by_column.get(column, [])))
    fewest, largest = (np.array([pair[i] for pair in pairs], np.int64) for i in (1, 0))
    return Demands(least, column, fewest, largest)


def state_arrays(state: list[State]) -> Arrays:
    """A state as named arrays."""
    pairs = [(f"state.{i}.values", each.values) for i, each in enumerate(state)]
    return dict(pairs + [(f"state.{i}.witness", each.witness) for i, each in enumerate(state)])


def states_of(arrays: Arrays) -> list[State]:
    count = sum(name.startswith("state.") for name in arrays) // 2
    return [State(arrays[f"state.{i}.values"], arrays[f"state.{i}.witness"]) for i in range(count)]


@dataclass
class Candidate:
    """A split that every criterion about single groups accepts. One that is `free` lowers no minimum of the state: it
    is accepted whenever its turn comes."""

    splits: Splits
    at: int
    free: bool
    state: list[State]  # that did not refuse it

    def children(self, criterion: Criterion, column: int) -> Groups:
        """The groups it would add to the release, as a criterion about the whole of it sees them."""
        groups = self.splits.children(self.at, column)
        return groups if criterion.monotone else groups.only(self.splits.safe_children(self.at))


@dataclass
class Level:
    """The open nodes of a level, how far the candidates of each were offered, and what was decided."""

    nodes: Nodes
    columns: Ints  # [nodes, columns] in order of preference
    count: Ints  # how many of them can be split
    place: Ints  # the column being offered
    offered: Ints  # candidates of it that were offered
    open: Flags  # nodes that are not decided
    waiting: dict[int, deque[Candidate]] = field(default_factory=dict)  # until all nodes before are decided
    chosen: list[Splits] = field(default_factory=list)

    def starving(self) -> Ints:
        """Undecided nodes with nothing left to decide but more to offer."""
        return self._offering(list(self.waiting))

    def hungry(self, ahead: int) -> Ints:
        """These, and nodes that might come to starve when it is their turn, among so many of the first open ones."""
        found = self._offering([node for node, queue in self.waiting.items() if len(queue) >= AHEAD])
        last = np.flatnonzero(self.open)[:ahead][-1]
        return found[: np.searchsorted(found, last, "right")]

    def _offering(self, but: list[int]) -> Ints:
        offering = self.open & (self.place < self.count)
        offering[but] = False
        return np.flatnonzero(offering)

    def take(self, candidates: list[Candidate]) -> None:
        """Chooses candidates, those of one batch at a time."""
        for _, some in groupby(sorted(candidates, key=lambda each: id(each.splits)), lambda each: id(each.splits)):
            batch = list(some)
            self.choose(batch[0].splits, np.array([each.at for each in batch]))

    def choose(self, splits: Splits, index: Ints) -> None:
        self.chosen.append(splits.take(index))
        self.open[splits.node[index]] = False


class Decisions:
    """Decides nodes level by level; `state` is that of the criteria about the whole release, as it worsens."""

    def __init__(
        self, cube: Cube, rules: Rules, evaluator: Evaluator, state: list[State], cells: int | None = None
    ) -> None:
        """`cells`: counters that may be filled at a time."""
        self.cube, self.rules, self.evaluator = cube, rules, evaluator
        self.state = [each.copy() for each in state]
        self.cells = CELLS if cells is None else cells
        self.is_free = np.array([domain.tree is None for domain in cube.domains])

    def decide(self, nodes: Nodes) -> Splits:
        """The chosen splits in node order, without their histograms; nodes without one are groups."""
        columns, count = self._preferences(nodes)
        zero = np.zeros(len(nodes), np.int64)
        level = Level(nodes, columns, count, zero, zero.copy(), ~nodes.barren & (count > 0))
        while level.open.any():
            if len(hungry := level.hungry(self._ahead(level))):
                for splits in self._offer(level, hungry):
                    self._admit(level, splits)
            self._settle(level)
        taken = Splits.concatenate(level.chosen)
        return taken.take(np.argsort(taken.node, kind="stable"))

    def _ahead(self, level: Level) -> int:
        """How many of the first open nodes may have candidates in store: where none need to wait, all."""
        if not self.rules.whole:
            return len(level.nodes)
        which = np.flatnonzero(level.open)
        column = level.columns[which, np.minimum(level.place, level.count - 1)[which]]
        stored = np.ones(len(level.nodes), np.int64)  # or about to be
        for node, queue in level.waiting.items():
            stored[node] += len(queue)
        return self._fitting(stored[which] * (self.evaluator.takes(level.nodes, which, column) + WAITS))

    def _fitting(self, cells: Ints) -> int:
        """How many of these come first that have no more cells together than may be filled at a time, at least one."""
        return max(int(np.searchsorted(np.cumsum(cells), self.cells, "right")), 1)

    def _preferences(self, nodes: Nodes) -> tuple[Ints, Ints]:
        """Per node its columns, the preferred first, ties in config order; and how many have more than one code."""
        splittable = nodes.high > nodes.low
        if self.rules.prefer == "widest":
            rank = -widths(self.cube.domains, nodes.low, nodes.high)
        else:
            rank = self._first_splits(nodes, splittable)
        rank[~splittable] = np.inf
        return np.argsort(rank, axis=1, kind="stable"), splittable.sum(axis=1)

    def _first_splits(self, nodes: Nodes, splittable: Flags) -> Floats:
        """Lower is better: the people in the largest child, or the entropy of the target that the children leave."""
        rank = np.full(nodes.low.shape, np.inf)
        balanced = self.rules.prefer == "balanced"
        count = self.evaluator.counting(None if balanced else self.cube.target)
        for j in range(len(self.cube.domains)):
            which = np.flatnonzero(splittable[:, j])
            column = np.full(len(which), j)
            if self.is_free[j]:
                nearest = count.nearest(nodes, which, column)
                splits = count.cut_once(nodes, nearest, np.full(len(nearest.node), j))
            else:
                splits = count.split_whole(nodes, which, column)
            if len(splits):
                (groups,) = splits.groups.values()
                cost = splits.people.astype(np.float64) if balanced else np.round(splits.people * _entropy(groups), 6)
                fold = np.maximum if balanced else np.add
                rank[splits.node, j] = fold.reduceat(cost, splits.part_start[:-1])
        return rank

    def _offer(self, level: Level, which: Ints) -> list[Splits]:
        """The next splits of these nodes along the columns they have come to: of a free column the nearest cut first
        and more when those were refused, of a hierarchy the one split there is."""
        column = level.columns[which, level.place[which]]
        free = self.is_free[column]
        first = free & (level.offered[which] == 0)
        found = []
        if first.any():
            found.append(self._offer_nearest(level, which[first], column[first]))
        if (rest := free & ~first).any():
            found.append(self._offer_cuts(level, which[rest], column[rest]))
        if not free.all():
            found.append(self._offer_whole(level, which[~free], column[~free]))
        return [splits for splits in found if len(splits)]

    def _offer_whole(self, level: Level, which: Ints, column: Ints) -> Splits:
        fitting = self._fitting(self.evaluator.takes(level.nodes, which, column))
        level.place[which[:fitting]] += 1
        return self.evaluator.split_whole(level.nodes, which[:fitting], column[:fitting])

    def _offer_nearest(self, level: Level, which: Ints, column: Ints) -> Splits:
        fitting = self._fitting(self.evaluator.takes(level.nodes, which, column))
        which, column = which[:fitting], column[:fitting]
        nearest = self.evaluator.nearest(level.nodes, which, column)
        level.offered[which] = 1
        none = np.setdiff1d(which, nearest.node, assume_unique=True)  # then the column has nothing to offer
        level.place[none] += 1
        level.offered[none] = 0
        return self.evaluator.cut_once(level.nodes, nearest, column[np.searchsorted(which, nearest.node)])

    def _offer_cuts(self, level: Level, which: Ints, column: Ints) -> Splits:
        cells = np.zeros(len(level.nodes), np.int64)
        cells[which] = self.evaluator.takes(level.nodes, which, column)
        fitting = self._fitting(MORE * level.offered[which] * cells[which])
        which, column = which[:fitting], column[:fitting]
        boundaries = self.evaluator.boundaries(level.nodes, which, column)
        rank, offered = boundaries.rank(), level.offered[boundaries.node]
        keep = np.flatnonzero((rank >= offered - 1) & (rank < MORE * offered))
        keep = keep[: self._fitting(cells[boundaries.node[keep]])]
        picked = Boundaries(boundaries.node[keep], boundaries.cut[keep])
        of = level.columns[picked.node, level.place[picked.node]]
        nodes = len(level.nodes)
        level.offered += np.bincount(picked.node, minlength=nodes)
        done = which[level.offered[which] - 1 >= np.bincount(boundaries.node, minlength=nodes)[which]]
        level.place[done] += 1
        level.offered[done] = 0
        return self.evaluator.cut_once(level.nodes, picked, of)

    def _admit(self, level: Level, splits: Splits) -> None:
        """Takes the splits that are accepted whatever comes, and lets those wait that may be when their turn comes."""
        fine = np.minimum.reduceat(splits.people, splits.part_start[:-1]) >= self.rules.demands.least
        splits.barren = self.rules.demands.barren(splits.people, splits.groups[self.rules.demands.value])
        for criterion, column in self.rules.alone:
            fine &= _safe(criterion, splits.groups[column], splits.part_start, fine)
        if self.rules.erratic:
            each = np.arange(len(splits.low) + 1)
            for criterion, column in self.rules.erratic:
                splits.safe &= _safe(criterion, splits.groups[column], each, splits.safe)
            fine &= ~level.nodes.safe[splits.node] | np.logical_and.reduceat(splits.safe, splits.part_start[:-1])
        free = np.ones(len(splits), bool)
        for (criterion, column), state in zip(self.rules.whole, self.state):
            groups, owner = splits.groups[column], splits.owner
            if not criterion.monotone:
                groups, owner = groups.only(splits.safe), owner[splits.safe]
            verdict, lowers_none = criterion.beside(groups, owner, len(splits), state)
            free &= lowers_none
            fine &= verdict != UNSAFE
        index = np.flatnonzero(fine)
        first = index[np.unique(splits.node[index], return_index=True)[1]]
        idle = np.ones(len(level.nodes), bool)
        idle[list(level.waiting)] = False
        level.choose(splits, first[free[first] & idle[splits.node[first]]])
        index = index[level.open[splits.node[index]]]
        kept = splits.keep(index, {column for _, column in self.rules.whole})
        for at, node in enumerate(kept.node.tolist()):
            candidate = Candidate(kept, at, bool(free[index[at]]), self.state)
            level.waiting.setdefault(node, deque()).append(candidate)

    def _settle(self, level: Level) -> None:
        """Decides waiting nodes in their order for as long as no node before them needs more candidates; after such a
        node only what does not depend on it. A node with nothing to wait for or to offer is a group."""
        exhausted = level.place >= level.count
        starving = level.starving()
        first = int(starving[0]) if len(starving) else len(level.nodes)  # the first node that needs more candidates
        waiting = sorted(level.waiting)
        taken: list[Candidate] = []
        for place, node in enumerate(waiting):
            if node > first:
                taken += self._settle_free(level, waiting[place:])
                break
            queue = level.waiting.pop(node)
            accepted = next((each for each in queue if each.free or self._accept(each)), None)
            if accepted is not None:
                taken.append(accepted)
            elif not exhausted[node]:
                first = node
        level.take(taken)
        stuck = level.open & exhausted
        stuck[list(level.waiting)] = False
        level.open[stuck] = False

    def _settle_free(self, level: Level, nodes: list[int]) -> list[Candidate]:
        """Of nodes whose turn has not come: drops the candidates that the state at hand refuses, as every later one
        will; those that come first then and lower no minimum."""
        queues = [level.waiting[node] for node in nodes]
        while heads := [queue for queue in queues if queue and queue[0].state is not self.state]:
            fine = np.ones(len(heads), bool)
            for (criterion, column), state in zip(self.rules.whole, self.state):
                groups = [queue[0].children(criterion, column) for queue in heads]
                owner = np.repeat(np.arange(len(heads)), [len(each) for each in groups])
                verdict, _ = criterion.beside(Groups.concatenate(groups), owner, len(heads), state)
                fine &= verdict != UNSAFE
            for queue, kept in zip(heads, fine.tolist()):
                if kept:
                    queue[0].state = self.state
                else:
                    queue.popleft()
        for node, queue in zip(nodes, queues):
            if not queue or queue[0].free:
                del level.waiting[node]
        return [queue[0] for queue in queues if queue and queue[0].free]

    def _accept(self, candidate: Candidate) -> bool:
        """Whether a candidate keeps the whole release safe now that its turn has come; if so the state follows."""
        added = [candidate.children(criterion, column) for criterion, column in self.rules.whole]
        for (criterion, _), state, children in zip(self.rules.whole, self.state, added):
            (verdict,), _ = criterion.beside(children, np.zeros(len(children), np.int64), 1, state)
            if verdict == UNSAFE:
                return False
            if verdict != SAFE and not criterion.holds(state.merge(criterion.state(children))):
                return False
        given = zip(self.rules.whole, self.state, added)
        self.state = [criterion.lowered(state, children) for (criterion, _), state, children in given]
        return True


def _safe(criterion: Criterion, groups: Groups, part_start: Ints, wanted: Flags) -> Flags:
    """Whether a criterion about single groups holds for all parts of each owner, exactly for the wanted ones; the parts
    of owner i start at part_start[i]."""
    owner = np.repeat(np.arange(len(wanted)), np.diff(part_start))
    of_group = owner if groups.row is None else owner[groups.row]
    verdict = criterion.judge(criterion.minima(groups, of_group, len(wanted)))
    safe: Flags = verdict == SAFE
    for index in np.flatnonzero(wanted & (verdict == CLOSE)).tolist():
        safe[index] = criterion.holds(criterion.state(groups.part(int(part_start[index]), int(part_start[index + 1]))))
    return safe


def _entropy(groups: Groups) -> Floats:
    """Entropy in bits of each group."""
    of = np.repeat(np.arange(len(groups)), np.diff(groups.start))
    share = groups.count / np.bincount(of, groups.count, len(groups))[of]
    entropy = np.zeros(len(groups))
    np.subtract.at(entropy, of, share * np.log2(share))
    return entropy
