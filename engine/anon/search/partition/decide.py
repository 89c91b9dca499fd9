"""The *decide* step of the partition search: it chooses a candidate split of each open node.

A node's candidates come column by column in order of preference. A column that is cut freely offers every boundary
between two codes that occur in the node, nearest to the median first (ties to the lower); the cut lies half-way
between the two codes, so that no cell ends at the extremes of its members. A column with a hierarchy offers one split:
the lowest hierarchy node that covers the members, into its non-empty children; or, if splits are peeled, also splits
into some of these children and the rest (peel.py). Where splits are preferred by loss,
columns come in the order of the least that a split of them loses, first each with its best split, then each with the
others in the order of what they lose (`Evaluator.least`). With public cuts, columns come in the order of the widths of
the node's cells, and a column that is cut freely offers the one cut of its cell (public.py). The first candidate that
keeps all criteria safe together with the state of the whole release is taken; a node without one is a group.

The result is defined by strict node order. A criterion that judges groups alone decides each node separately. For the
others the state only worsens, so a candidate that the current state refuses is also refused when its turn comes, and
one that lowers no minimum of the state is also accepted when its turn comes; any other waits until all nodes before it
are decided.

A criterion that is not monotone may hold for parts of a group that fails it. So a node that fails it may be split into
parts that fail it too, and a node that satisfies it only into parts that do; a group that still fails at the end makes
the search fail. No part has fewer people than any criterion requires of a group: neither it nor any part of it could be
safe. If such a criterion also judges all groups together, nodes that fail it alone do not enter the state, which they
would spoil for all others: they are not groups of the release yet. Nodes that satisfy it stay in the state after they
are split, because nothing can be removed from a state of minima: this may refuse a split, but never allows an unsafe
one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anon.artifacts.recoding import Reach
from anon.core.arrays import Flags, Floats, Ints
from anon.core.checkpoint import Arrays
from anon.criteria import CLOSE, SAFE, UNSAFE, Criterion, Groups, State
from anon.cube import Cube, Domain
from anon.search.partition.candidates import Boundaries, Demands, Evaluator, OpenNodes, Splits, widths
from anon.search.partition.dropping import NOBODY, Drops, Suppression
from anon.search.partition.guard import Guard, PassedOver, inherit
from anon.search.partition.level import Candidate, LevelDecisions
from anon.search.partition.peel import PeelOrder
from anon.search.partition.public import PublicCuts

CELLS = 2_000_000  # counters (parts x sensitive values) that are evaluated at a time, and that may be stored
CELL = 100  # bytes of each counter, with everything that is derived from it
WAITS = 10  # the overhead of a stored candidate, in counters
NEVER = 2**62  # in place of the loss of a split, if there is none
MORE = 16  # the number of cuts of a column offered next, as a multiple of those that were refused


ListCuts = Callable[[OpenNodes, Ints, Ints], Boundaries]


@dataclass(frozen=True)
class Rules:
    """The criteria of a release, the preferred split of its groups (widest | balanced | loss | public |
    information_gain), and whether labels of columns that are cut freely are tight. `small`: see `Evaluator.least`; None
    if splits are not preferred by loss. `public`: the cuts, if these depend on public things alone. `peel`: whether
    splits by hierarchies are peeled. `refine`: groups are divided anew afterwards (refine.py)."""

    alone: list[tuple[Criterion, int]]  # criteria that judge groups alone, and the column that they read
    erratic: list[tuple[Criterion, int]]  # those of them that are not monotone
    whole: list[tuple[Criterion, int]]  # criteria that judge all groups together
    prefer: str
    demands: Demands
    tight: bool = False
    small: int | None = None
    public: PublicCuts | None = None
    peel: bool = False
    refine: bool = False
    guard: Guard | None = None  # only with public cuts
    suppression: Suppression = NOBODY

    @classmethod
    def from_criteria(
        cls,
        cube: Cube,
        criteria: list[Criterion],
        prefer: str,
        tight: bool = False,
        peel: bool = False,
        guard: Guard | None = None,
        suppression: Suppression = NOBODY,
    ) -> Rules:
        """Return the rules for a cube."""
        alone = [(c, cube.reading(c)) for c in criteria if c.alone and c.monotone]
        erratic = [(c, cube.reading(c)) for c in criteria if not c.monotone]
        whole = [(c, cube.reading(c)) for c in criteria if not c.alone]
        demands = _demands([*alone, *whole], [*alone, *erratic, *whole])
        public = PublicCuts.from_cube(cube) if prefer == "public" else None
        pairs = alone, erratic, whole
        return cls(*pairs, prefer, demands, tight, public=public, peel=peel, guard=guard, suppression=suppression)

    def with_small(self, people: int) -> Rules:
        """Return the same rules for a search whose blocks have this number of people, so that small nodes are in
        blocks. With splits by hierarchies no node is small: their parts are measured in one column."""
        return replace(self, small=people) if self.prefer == "loss" else self

    @property
    def reach(self) -> Reach:
        """Return how far the labels of columns that are cut freely reach."""
        return "tight" if self.tight else "cells" if self.public is None else "public"

    @property
    def value_columns(self) -> list[int]:
        return sorted({column for _, column in self.alone + self.erratic + self.whole})

    def whole_table_safe(self, cube: Cube) -> bool:
        """Return whether the table as one group satisfies the criteria that are not monotone."""
        return all(criterion.holds(criterion.state(cube.whole_table(column))) for criterion, column in self.erratic)

    def one_group_safe(self, cube: Cube) -> bool:
        """Return whether the table as one group satisfies the criteria that are monotone."""
        every = (pair for pair in [*self.alone, *self.whole] if pair[0].monotone)
        return all(criterion.holds(criterion.state(cube.whole_table(column))) for criterion, column in every)

    def first_state(self, cube: Cube) -> list[State]:
        """Return the state of the criteria about all groups together before any split: that of the table and of the
        groups that are published already, except that for a criterion that the table fails, and that is not monotone or
        need not count people who are dropped, it is without the table."""
        found = []
        for criterion, column in self.whole:
            whole = cube.whole_table(column)
            state = criterion.state(whole)
            nobody = (not criterion.monotone or bool(self.suppression)) and not criterion.holds(state)
            state = criterion.state(whole.only(np.zeros(1, bool))) if nobody else state
            found.append(criterion.with_earlier(state))
        return found

    @property
    def by_values(self) -> bool:
        """Return whether a criterion judges values, and not only the sizes of groups, which an adversary knows."""
        every = (criterion for criterion, _ in self.alone + self.erratic + self.whole)
        return any(each.column is not None or each.columns or each.context for each in every)

    def refinable(self) -> list[Criterion]:
        """Return the criteria for the post-pass, which judges each group by its values of the sensitive column."""
        assert not self.erratic and not self.whole, "criteria that are monotone and about single groups"
        assert all(column == 0 for _, column in self.alone), "one sensitive column"
        return [criterion for criterion, _ in self.alone]

    def passed_over(self, nodes: OpenNodes) -> PassedOver | None:
        """Return what counts candidates that are passed over, if there is a guard."""
        if self.guard is None or self.public is None:
            return None
        return PassedOver(self.guard, self.public, nodes)

    def inherit(self, nodes: OpenNodes, chosen: Splits, children: OpenNodes) -> None:
        """Set what the children of the chosen splits of nodes have from these, if there is a guard or suppression."""
        if self.suppression:
            children.dropped, children.share = chosen.dropped, chosen.share[chosen.owner]
            children.most = self.suppression.most(children.share, children.people)
        if self.guard is not None and self.public is not None:
            inherit(self.public, nodes, chosen, children)

    def last_level(self, groups: dict[int, Groups], part_start: Ints) -> Ints:
        """Return the last level of the guard, of those that are enforced, whose criteria hold for all parts of each
        owner; the parts of owner i start at part_start[i]."""
        found = np.zeros(len(part_start) - 1, np.int64)
        for level in self.guard.levels if self.guard is not None else ():
            fine = found == found.max(initial=0)
            for criterion, column in level:
                fine &= _safe(criterion, groups[column], part_start, fine)
            if not fine.any():
                break
            found[fine] += 1
        return found

    def hold(self, state: list[State]) -> bool:
        """Return whether the criteria about all groups together hold in a state."""
        return all(criterion.holds(each) for (criterion, _), each in zip(self.whole, state))


def cells_within(memory: int, threads: int) -> int:
    """Return the number of counters that each thread may fill at a time, given the memory for all."""
    return max(min(CELLS, memory // (CELL * threads)), 1)


def _demands(readings: list[tuple[Criterion, int]], every: list[tuple[Criterion, int]]) -> Demands:
    """Return the demands of the monotone criteria that read whole groups of one column, the one with most of them."""
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
    """Return a state as named arrays."""
    pairs = [(f"state.{i}.values", each.values) for i, each in enumerate(state)]
    return dict(pairs + [(f"state.{i}.witness", each.witness) for i, each in enumerate(state)])


def states_of(arrays: Arrays) -> list[State]:
    """Return the state that `state_arrays` wrote."""
    count = sum(name.startswith("state.") for name in arrays) // 2
    return [State(arrays[f"state.{i}.values"], arrays[f"state.{i}.witness"]) for i in range(count)]


class Decisions:
    """Decides nodes level by level; `state` is that of the criteria about the whole release, as it worsens."""

    def __init__(
        self, cube: Cube, rules: Rules, evaluator: Evaluator, state: list[State], cells: int | None = None
    ) -> None:
        """Take the state before the first level, and the number of counters that may be filled at a time."""
        self.cube, self.rules, self.evaluator = cube, rules, evaluator
        self.state = [each.copy() for each in state]
        self.cells = CELLS if cells is None else cells
        self.is_free = np.array([not domain.by_nodes for domain in cube.domains])
        self.drops = Drops(evaluator, rules.suppression)

    def decide(self, nodes: OpenNodes) -> Splits:
        """Return the chosen splits in node order, without their histograms; nodes without one are groups."""
        best = np.full(nodes.low.shape, -1) if self.rules.prefer == "loss" else None
        columns, each = self._below_caps(nodes, *self._preferences(nodes, best))
        columns, count = _repeated(columns, each, (1 if best is None else 2) + (nodes.most > 0))
        zero = np.zeros(len(nodes), np.int64)
        passed = self.rules.passed_over(nodes)
        open_ = ~nodes.barren & (count > 0)
        level = LevelDecisions(nodes, columns, each, count, zero, zero.copy(), open_, best, passed)
        while level.open.any():
            if len(hungry := level.hungry(self._ahead(level))):
                for splits in self._offer(level, hungry):
                    self._admit(level, splits)
            self._settle(level)
        taken = Splits.concatenate(level.chosen)
        taken = taken.take(np.argsort(taken.node, kind="stable"))
        if passed is not None:
            passed.close(taken, columns)
        return taken

    def _ahead(self, level: LevelDecisions) -> int:
        """Return the number of first open nodes that may have stored candidates: all, where none need to wait."""
        if not self.rules.whole:
            return len(level.nodes)
        which = np.flatnonzero(level.open)
        column = level.columns[which, np.minimum(level.place, level.count - 1)[which]]
        stored = np.ones(len(level.nodes), np.int64)  # or about to be
        for node, queue in level.waiting.items():
            stored[node] += len(queue)
        return self._fitting(stored[which] * (self.evaluator.takes(level.nodes, which, column) + WAITS))

    def _fitting(self, cells: Ints) -> int:
        """Return the number of first elements that together have no more cells than may be filled at a time, at least
        one."""
        return max(int(np.searchsorted(np.cumsum(cells), self.cells, "right")), 1)

    def _below_caps(self, nodes: OpenNodes, columns: Ints, count: Ints) -> tuple[Ints, Ints]:
        """Return the columns of nodes, except that a node at the root of a column that is capped has that column alone,
        the first of several: it must be split whole, into the nodes at the cap."""
        for j in reversed(range(len(self.cube.domains))):
            above = at_root(self.cube.domains[j], nodes.low[:, j], nodes.high[:, j])
            columns[above, 0], count[above] = j, 1
        return columns, count

    def _preferences(self, nodes: OpenNodes, best: Ints | None) -> tuple[Ints, Ints]:
        """Return per node its columns, the preferred first, ties in config order; and the number of columns that can be
        split. If splits are preferred by loss, fill in the best cuts."""
        splittable = nodes.high > nodes.low
        if best is not None:
            loss = self._losses(nodes, splittable, best)
            return np.argsort(loss, axis=1, kind="stable"), (loss < NEVER).sum(axis=1)
        if self.rules.public is not None:
            rank = -widths(self.cube.domains, *self.rules.public.cells(nodes.low, nodes.high))
        elif self.rules.prefer == "widest":
            rank = -widths(self.cube.domains, nodes.low, nodes.high)
        else:
            rank = self._first_splits(nodes, splittable)
        rank[~splittable] = np.inf
        return np.argsort(rank, axis=1, kind="stable"), splittable.sum(axis=1)

    def _losses(self, nodes: OpenNodes, splittable: Flags, best: Ints) -> Ints:
        """Return per node and column by how much the parts of its best split lose more than the node, NEVER without
        one; fill in the best cuts of columns that are cut freely. The parts of a split by a hierarchy extend over its
        nodes."""
        loss = np.full(nodes.low.shape, NEVER)
        count = self.evaluator.counting(None)
        for j in range(len(self.cube.domains)):
            which = np.flatnonzero(splittable[:, j] & ~nodes.barren)
            column = np.full(len(which), j)
            if self.is_free[j]:
                cut, own = self.evaluator.least(nodes, which, column)
                best[which, j] = cut
                loss[which, j] = np.where(cut < 0, NEVER, own)
            elif len(which):
                loss[which, j] = self._loss_of_nodes(nodes, count.split_whole(nodes, which, column), j)
        later = splittable & (nodes.most > 0)[:, None]  # in the last round parts may be dropped there
        loss[later] = np.minimum(loss[later], NEVER - 1)
        return loss

    def _loss_of_nodes(self, nodes: OpenNodes, splits: Splits, j: int) -> Ints:
        """Return by how much the parts of splits by a hierarchy lose more than their nodes. Parts with fewer people
        than any safe group are dropped, if these may be; else, if splits are peeled, they stay under the node. Without
        any other part there is no peeled split."""
        leaves, start = splits.people >= self.rules.demands.least, splits.part_start[:-1]
        splits.may_drop[:] = not self.rules.peel
        gain = self.drops.measured(nodes, splits, j, ~leaves)
        if not self.rules.peel:
            return np.add.reduceat(gain, start)
        found = np.add.reduceat(gain * leaves, start)
        return np.where(np.logical_or.reduceat(leaves, start), found, NEVER)

    def _first_splits(self, nodes: OpenNodes, splittable: Flags) -> Floats:
        """Return the cost of the first split of each column, lower is better: the people in the largest child, or the
        entropy of the target that remains in the children."""
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

    def _offer(self, level: LevelDecisions, which: Ints) -> list[Splits]:
        """Return the next splits of these nodes along their current columns: for a free column the nearest cut first
        and more when those were refused, for a hierarchy its only split, or if splits are peeled the next ones."""
        if (last := level.dropping(which)).any():
            return [
                *self._offer_drops(level, which[last]),
                *(self._offer(level, which[~last]) if not last.all() else []),
            ]
        if level.best is not None:
            return self._offer_by_loss(level, which)
        column = level.columns[which, level.place[which]]
        free = self.is_free[column]
        if self.rules.public is not None:
            which, column, free = self._willing(level, which, column, free)
            found = [self._offer_public(self.rules.public, level, which[free], column[free])]
            return [each for each in (*found, self._offer_whole(level, which[~free], column[~free])) if len(each)]
        first = free & (level.offered[which] == 0)
        found = []
        if first.any():
            found.append(self._offer_nearest(level, which[first], column[first]))
        if (rest := free & ~first).any():
            found.append(self._offer_cuts(level, which[rest], column[rest]))
        if not free.all():
            found.append(self._offer_whole(level, which[~free], column[~free]))
        return [splits for splits in found if len(splits)]

    def _offer_by_loss(self, level: LevelDecisions, which: Ints) -> list[Splits]:
        """Return the next splits of these nodes: the best of each column in turn, then the others column by column."""
        assert level.best is not None
        column, again = level.columns[which, level.place[which]], level.place[which] >= level.each[which]
        free, found = self.is_free[column], []
        level.place[which[again & ~free]] += 1  # its only split was offered before
        none = free & ~again & (level.best[which, column] < 0)
        level.place[which[none]] += 1
        if (first := free & ~again & ~none).any():
            some = which[first][: self._fitting(self.evaluator.takes(level.nodes, which[first], column[first]))]
            of = column[first][: len(some)]
            level.place[some] += 1
            found.append(self.evaluator.cut_once(level.nodes, Boundaries(some, level.best[some, of]), of))
        if (rest := free & again).any():
            level.offered[which[rest]] = np.maximum(level.offered[which[rest]], 1)
            found.append(self._offer_cuts(level, which[rest], column[rest]))
        if (whole := ~free & ~again).any():
            found.append(self._offer_whole(level, which[whole], column[whole]))
        return [splits for splits in found if len(splits)]

    def _offer_whole(self, level: LevelDecisions, which: Ints, column: Ints) -> Splits:
        cells = self.evaluator.takes(level.nodes, which, column)
        if self.rules.peel:
            cells = cells * np.maximum(MORE * level.offered[which], 2)
        fitting = self._fitting(cells)
        splits = self.evaluator.split_whole(level.nodes, which[:fitting], column[:fitting])
        if self.rules.peel:
            return self._offer_peels(level, splits)
        level.place[which[:fitting]] += 1
        splits.may_drop[:] = True
        return splits

    def _offer_drops(self, level: LevelDecisions, which: Ints) -> list[Splits]:
        """Return the next splits of these nodes along their current columns of which parts are dropped: of a free
        column, and if splits are peeled the whole split by a hierarchy; other splits by hierarchies were offered so
        before."""
        column = level.columns[which, level.place[which]]
        free, found = self.is_free[column], []
        if free.any():
            level.offered[which[free]] = np.maximum(level.offered[which[free]], 1)
            found.append(self._offer_cuts(level, which[free], column[free], self.evaluator.drops))
        if self.rules.peel and not free.all():
            some = which[~free][: self._fitting(self.evaluator.takes(level.nodes, which[~free], column[~free]))]
            found.append(self.evaluator.split_whole(level.nodes, some, column[~free][: len(some)]))
            found[-1].may_drop[:] = True
            level.place[some] += 1
        elif not free.all():
            level.place[which[~free]] += 1
        return [splits for splits in found if len(splits)]

    def _offer_peels(self, level: LevelDecisions, splits: Splits) -> Splits:
        """Return the next candidates of splits by hierarchies: first one each, then more than were refused."""
        fine = self._safe_alone(level, splits)
        order = PeelOrder(
            splits.part_start, splits.people, fine, self.rules.demands.least, self._whole_only(level, splits)
        )
        offered = level.offered[splits.node][order.split]
        window = (order.rank >= offered) & (order.rank < np.maximum(MORE * offered, 1))
        level.offered[splits.node] = np.maximum(MORE * level.offered[splits.node], 1)
        done = np.bincount(order.split, minlength=len(splits)) <= level.offered[splits.node]
        level.place[splits.node[done]] += 1
        level.offered[splits.node[done]] = 0
        if not window.any():
            return Splits.concatenate([])
        return self.evaluator.peel(level.nodes, splits, order.peels(np.flatnonzero(window)))

    def _whole_only(self, level: LevelDecisions, splits: Splits) -> Flags:
        """Return which splits are of the root of a column that is capped, so that nobody may stay there."""
        found = np.zeros(len(splits), bool)
        for j in np.unique(splits.column).tolist():
            own = np.flatnonzero(splits.column == j)
            ends = (each[splits.node[own], j] for each in (level.nodes.low, level.nodes.high))
            found[own] = at_root(self.cube.domains[j], *ends)
        return found

    def _safe_alone(self, level: LevelDecisions, splits: Splits) -> Flags:
        """Return which parts are safe by themselves, whatever the other groups are; of a node that fails a criterion
        which is not monotone, parts may fail it too."""
        each, fine = np.arange(len(splits.low) + 1), splits.people >= self.rules.demands.least
        for criterion, column in [*self.rules.alone, *self.rules.whole]:
            if criterion.monotone:
                fine &= _safe(criterion, splits.groups[column], each, fine)
        exempt = ~level.nodes.safe[splits.node][splits.owner]
        for criterion, column in self.rules.erratic:
            fine &= exempt | _safe(criterion, splits.groups[column], each, fine)
        return fine

    def _willing(self, level: LevelDecisions, which: Ints, column: Ints, free: Flags) -> tuple[Ints, Ints, Flags]:
        """Return the nodes that may offer another candidate. If the guard is enforced, a node whose criteria would not
        hold if that was passed over too is a group."""
        if level.passed is None or not level.passed.guard.levels:
            return which, column, free
        stop = level.nodes.slack[which] <= level.passed.counted(which).sum(axis=1)
        level.place[which[stop]] = level.count[which[stop]]
        return which[~stop], column[~stop], free[~stop]

    def _guarded(self, level: LevelDecisions, splits: Splits, fine: Flags, undecided: Flags) -> Flags:
        """Return which of the splits that are fine remain so with a guard; `undecided`: their parts are large
        enough."""
        passed = level.passed
        assert passed is not None
        if passed.guard.levels:
            splits.slack = self.rules.last_level(splits.groups, np.arange(len(splits.low) + 1))
            fine = fine & (np.minimum.reduceat(splits.slack, splits.part_start[:-1]) >= passed.before(splits))
        fine = fine & ~passed.skips(splits, fine)
        if self.rules.by_values:
            passed.offer(splits, undecided)
        return fine

    def _offer_public(self, public: PublicCuts, level: LevelDecisions, which: Ints, column: Ints) -> Splits:
        fitting = self._fitting(self.evaluator.takes(level.nodes, which, column))
        which, column = which[:fitting], column[:fitting]
        level.place[which] += 1
        cut = public.cuts(column, level.nodes.low[which, column], level.nodes.high[which, column])
        return self.evaluator.cut_once(level.nodes, Boundaries(which, cut), column)

    def _offer_nearest(self, level: LevelDecisions, which: Ints, column: Ints) -> Splits:
        fitting = self._fitting(self.evaluator.takes(level.nodes, which, column))
        which, column = which[:fitting], column[:fitting]
        nearest = self.evaluator.nearest(level.nodes, which, column)
        level.offered[which] = 1
        none = np.setdiff1d(which, nearest.node, assume_unique=True)  # the column has no candidates
        level.place[none] += 1
        level.offered[none] = 0
        return self.evaluator.cut_once(level.nodes, nearest, column[np.searchsorted(which, nearest.node)])

    def _offer_cuts(self, level: LevelDecisions, which: Ints, column: Ints, listed: ListCuts | None = None) -> Splits:
        """Return the next cuts of these nodes along a free column, of all boundaries or of those listed."""
        cells = np.zeros(len(level.nodes), np.int64)
        cells[which] = self.evaluator.takes(level.nodes, which, column)
        fitting = self._fitting(MORE * level.offered[which] * cells[which])
        which, column = which[:fitting], column[:fitting]
        boundaries = (listed or self.evaluator.boundaries)(level.nodes, which, column)
        rank, offered = boundaries.rank(), level.offered[boundaries.node]
        keep = np.flatnonzero((rank >= offered - 1) & (rank < MORE * offered))
        keep = keep[: self._fitting(cells[boundaries.node[keep]])]
        picked = boundaries.take(keep)
        of = level.columns[picked.node, level.place[picked.node]]
        nodes = len(level.nodes)
        level.offered += np.bincount(picked.node, minlength=nodes)
        done = which[level.offered[which] - 1 >= np.bincount(boundaries.node, minlength=nodes)[which]]
        level.place[done] += 1
        level.offered[done] = 0
        return self.evaluator.cut_once(level.nodes, picked, of)

    def _admit(self, level: LevelDecisions, splits: Splits) -> None:
        """Choose the splits that are certain to be accepted, and store those that may be accepted at their turn."""
        large = np.minimum.reduceat(splits.people, splits.part_start[:-1]) >= self.rules.demands.least
        splits.barren = self.rules.demands.barren(splits.people, splits.groups[self.rules.demands.value])
        fine = self._fine(level, splits, large)
        if self.rules.suppression:
            fine = self._fine_after_drops(level, splits, fine)
        if level.passed is not None:
            fine = self._guarded(level, splits, fine, large)
        free = np.ones(len(splits), bool)
        for (criterion, column), state in zip(self.rules.whole, self.state):
            groups, owner, parts = splits.groups[column], splits.owner, splits.kept(criterion.monotone)
            if not parts.all():
                groups, owner = groups.only(parts), owner[parts]
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

    def _fine(self, level: LevelDecisions, splits: Splits, large: Flags) -> Flags:
        """Return which splits every criterion about single groups accepts; `large`: their parts have enough people. Set
        which parts the criteria that are not monotone accept."""
        fine = large.copy()
        for criterion, column in self.rules.alone:
            fine &= _safe(criterion, splits.groups[column], splits.part_start, fine)
        if self.rules.erratic:
            each = np.arange(len(splits.low) + 1)
            for criterion, column in self.rules.erratic:
                splits.safe &= _safe(criterion, splits.groups[column], each, splits.safe)
            fine &= ~level.nodes.safe[splits.node] | np.logical_and.reduceat(splits.safe, splits.part_start[:-1])
        return fine

    def _fine_after_drops(self, level: LevelDecisions, splits: Splits, fine: Flags) -> Flags:
        """Return which splits are fine if parts are dropped that stand in the way; set these, and which parts can be
        split no further."""
        self.drops.drop(level.nodes, splits, ~self._safe_alone(level, splits))
        return fine | np.logical_or.reduceat(splits.dropped, splits.part_start[:-1])

    def _settle(self, level: LevelDecisions) -> None:
        """Decide waiting nodes in order while no node before them needs more candidates; after such a node decide only
        what does not depend on it. A node with no waiting candidate and none to offer is a group."""
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

    def _settle_free(self, level: LevelDecisions, nodes: list[int]) -> list[Candidate]:
        """Drop the candidates, of nodes whose turn has not come, that the current state refuses, as every later one
        will; return the candidates that are then first and lower no minimum."""
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
        """Return whether a candidate keeps the whole release safe at its turn; if so, update the state."""
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


def at_root(domain: Domain, low: NDArray[Any], high: NDArray[Any]) -> Flags:
    """Return which ranges of codes only the root of a column that is capped covers."""
    if not domain.capped or not domain.by_nodes:
        return np.zeros(len(low), bool)
    assert domain.tree is not None
    above: Flags = domain.tree.common(low, high) == domain.tree.node_at[-1][0]
    return above


def _safe(criterion: Criterion, groups: Groups, part_start: Ints, wanted: Flags) -> Flags:
    """Return whether a criterion about single groups holds for all parts of each owner, exactly for the wanted ones;
    the parts of owner i start at part_start[i]."""
    owner = np.repeat(np.arange(len(wanted)), np.diff(part_start))
    of_group = owner if groups.row is None else owner[groups.row]
    verdict = criterion.judge(criterion.minima(groups, of_group, len(wanted)))
    safe: Flags = verdict == SAFE
    for index in np.flatnonzero(wanted & (verdict == CLOSE)).tolist():
        safe[index] = criterion.holds(criterion.state(groups.part(int(part_start[index]), int(part_start[index + 1]))))
    return safe


def _repeated(columns: Ints, count: Ints, times: Ints) -> tuple[Ints, Ints]:
    """Return the first `count` columns of each row several times, one time after the other, and their number."""
    most = int(times.max(initial=1))
    if most == 1:
        return columns, count
    at = np.arange(most * columns.shape[1]) % np.maximum(count, 1)[:, None]
    return np.take_along_axis(columns, at, axis=1), times * count


def _entropy(groups: Groups) -> Floats:
    """Return the entropy in bits of each group."""
    of = np.repeat(np.arange(len(groups)), np.diff(groups.start))
    share = groups.count / np.bincount(of, groups.count, len(groups))[of]
    entropy = np.zeros(len(groups))
    np.subtract.at(entropy, of, share * np.log2(share))
    return entropy
