"""SkylineAnonymize (Chen, LeFevre, Ramakrishnan, section 5.2): starting from the whole table as one group, split
groups for as long as every criterion keeps holding. Level by level: *evaluate* the candidate splits of the open nodes
(candidates.py), *decide* them in node order, *route* the records into the children.

A node's candidates come column by column in order of preference. A column that is cut freely offers every boundary
between two codes that occur in the node, nearest to the median first (ties to the lower); the cut lies half-way
between the two codes, so that no cell ends at its members' own extremes. A column with a hierarchy offers one split:
the lowest hierarchy node that covers the members, into its non-empty children; a group is published at the node that
covers it. The first candidate that keeps all
criteria safe together with the state of the whole release is taken; a node without one is a group. For monotone
criteria the release is then minimal over these splits (Theorem 5, with the root checked first).

The result is defined by strict node order. A criterion that judges groups alone decides each node by itself. For the
others the state only worsens, so a candidate that the state at hand refuses is refused whenever its turn comes, and
one that lowers no minimum of it is accepted whenever its turn comes; any other waits until all nodes before it are
decided.

A criterion that is not monotone may hold for parts of a group that fails it. So a node that fails it may be split into
parts that fail it too, a node that satisfies it only into parts that do; a group that ends up failing ends the search.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from anon.criteria import CLOSE, SAFE, UNSAFE, Criterion, Groups
from anon.cube import Cube
from anon.errors import UnsafeError
from anon.recoding import Recoding, TreeOfCuts
from anon.search.candidates import Boundaries, Evaluator, Ints, Nodes, Splits

CELLS = 8_000_000  # counters (parts x sensitive values) evaluated at a time


@dataclass(frozen=True)
class Candidate:
    """A split that every criterion about single groups accepts, with its minima for those about the whole release."""

    splits: Splits
    index: int
    minima: list[NDArray[np.float64]]
    free: bool  # lowers no minimum of the state: accepted whenever its turn comes


@dataclass
class Level:
    """The open nodes of a level, how far the candidates of each were offered, and what was decided."""

    nodes: Nodes
    columns: Ints  # [nodes, columns] in order of preference
    count: Ints  # how many of them can be split
    place: Ints  # the column being offered
    offered: Ints  # candidates of it that were offered
    safe: NDArray[np.bool_]  # by every criterion that is not monotone; a node that is not may be split into such nodes
    waiting: dict[int, deque[Candidate]] = field(default_factory=dict)
    choice: dict[int, Candidate] = field(default_factory=dict)

    def hungry(self, undecided: list[int]) -> Ints:
        """Nodes with nothing left to decide but more to offer."""
        return np.array([n for n in undecided if not self.exhausted(n)], np.int64)

    def exhausted(self, node: int) -> bool:
        return bool(self.place[node] >= self.count[node])


class Partition:
    """One search over one cube."""

    def __init__(
        self,
        cube: Cube,
        criteria: list[Criterion],
        prefer: str = "widest",
        threads: int = 1,
        progress: Callable[[int, int, int], None] = lambda level, nodes, people: None,
    ) -> None:
        """`prefer`: widest | balanced | information_gain (of cube.target); progress gets level, open nodes, people."""
        self.cube, self.prefer, self.progress = cube, prefer, progress
        self.alone = [(c, cube.reading(c)) for c in criteria if c.alone and c.monotone]
        self.erratic = [(c, cube.reading(c)) for c in criteria if not c.monotone]
        self.whole = [(c, cube.reading(c)) for c in criteria if not c.alone]
        used = sorted({column for _, column in self.alone + self.erratic + self.whole})
        self.least = max((c.least_group for c in criteria), default=1)
        self.evaluator = Evaluator(cube, used, self.least, threads)
        self.batch = max(CELLS // (2 * max(cube.others[column].size for column in used)), 1)
        self.is_free = np.array([domain.tree is None for domain in cube.domains])

    def run(self) -> Recoding:
        """The recoding of a safe release, given that the whole table as one group is safe."""
        self.state = [criterion.state(self.cube.whole_table(column)) for criterion, column in self.whole]
        whole_safe = [criterion.holds(criterion.state(self.cube.whole_table(j))) for criterion, j in self.erratic]
        self.nodes_safe, self.broken = np.array([all(whole_safe)]), 0
        tree = TreeOfCuts(self.cube.domains)
        last = np.array([[domain.size - 1 for domain in self.cube.domains]], np.int64)
        start, stop = np.array([0]), np.array([len(self.cube.records)])
        with self.evaluator:
            nodes = self.evaluator.nodes(start, stop, np.zeros_like(last), last)
            depth = 0
            while len(nodes):
                self.progress(depth, len(nodes), int(nodes.people.sum()))
                level = self._decide(nodes)
                nodes = self._route(level, tree)
                depth += 1
        if self.broken:
            names = ", ".join(criterion.name for criterion, _ in self.erratic)
            raise UnsafeError(
                f"no safe release was found: {self.broken:,} groups that cannot be split further do not satisfy "
                f"{names}, which may hold for other groupings of the same people"
            )
        return tree.finish()

    # evaluate

    def _preferences(self, nodes: Nodes) -> tuple[Ints, Ints]:
        """Per node its columns, the preferred first, ties in config order; and how many have more than one code."""
        splittable = nodes.high > nodes.low
        rank = -self._widths(nodes) if self.prefer == "widest" else self._first_splits(nodes, splittable)
        rank[~splittable] = np.inf
        return np.argsort(rank, axis=1, kind="stable"), splittable.sum(axis=1)

    def _widths(self, nodes: Nodes) -> NDArray[np.float64]:
        """Range of the members over range of the table; for a hierarchy, of the leaves under the covering node."""
        widths = np.empty(nodes.low.shape)
        for j, domain in enumerate(self.cube.domains):
            low, high = nodes.low[:, j], nodes.high[:, j]
            if domain.tree is not None:
                cover = domain.tree.common(low, high)
                low, high = domain.tree.low[cover].astype(np.int64), domain.tree.high[cover].astype(np.int64)
            whole = domain.position[-1] - domain.position[0]
            widths[:, j] = (domain.position[high] - domain.position[low]) / whole if whole else 1.0
        return widths

    def _first_splits(self, nodes: Nodes, splittable: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Lower is better: the people in the largest child, or the entropy of the target that the children leave."""
        rank = np.full(nodes.low.shape, np.inf)
        balanced = self.prefer == "balanced"
        count = self.evaluator.counting(None if balanced else self.cube.target)
        for j in range(len(self.cube.domains)):
            which = np.flatnonzero(splittable[:, j])
            column = np.full(len(which), j)
            if self.is_free[j]:
                nearest = count.boundaries(nodes, which, column).first()
                splits = count.cut_once(nodes, nearest, np.full(len(nearest.node), j))
            else:
                splits = count.split_whole(nodes, which, column)
            if len(splits):
                (counts,) = splits.counts.values()
                people = counts.sum(axis=1)
                cost = people.astype(np.float64) if balanced else np.round(people * _entropy(counts), 6)
                fold = np.maximum if balanced else np.add
                rank[splits.node, j] = fold.reduceat(cost, splits.part_start[:-1])
        return rank

    def _offer(self, level: Level, which: Ints) -> list[Splits]:
        """The next splits of these nodes along the columns they have come to: of a free column the nearest cut first
        and all others when that was refused, of a hierarchy the one split there is."""
        column = level.columns[which, level.place[which]]
        free = self.is_free[column]
        found = []
        if free.any():
            found.append(self._offer_cuts(level, which[free], column[free]))
        if not free.all():
            whole = which[~free][: self.batch]
            level.place[whole] += 1
            found.append(self.evaluator.split_whole(level.nodes, whole, column[~free][: self.batch]))
        return [splits for splits in found if len(splits)]

    def _offer_cuts(self, level: Level, which: Ints, column: Ints) -> Splits:
        boundaries = self.evaluator.boundaries(level.nodes, which, column)
        rank, offered = boundaries.rank(), level.offered[boundaries.node]
        keep = np.flatnonzero((rank >= offered) & ((offered > 0) | (rank == 0)))[: self.batch]
        picked = Boundaries(boundaries.node[keep], boundaries.cut[keep])
        of = level.columns[picked.node, level.place[picked.node]]
        nodes = len(level.nodes)
        level.offered += np.bincount(picked.node, minlength=nodes)
        done = which[level.offered[which] >= np.bincount(boundaries.node, minlength=nodes)[which]]
        level.place[done] += 1
        level.offered[done] = 0
        return self.evaluator.cut_once(level.nodes, picked, of)

    def _admit(self, level: Level, splits: Splits) -> None:
        """Puts the splits that may still be accepted in the queues of their nodes."""
        fine, owner = np.ones(len(splits), bool), splits.owner
        groups = {column: self.cube.groups(counts, column) for column, counts in splits.counts.items()}
        for criterion, column in self.alone:
            fine &= self._safe(criterion, column, splits.counts[column], groups[column], owner, fine)
        if self.erratic:
            splits.safe = self._parts_safe(splits, groups)
            fine &= ~level.safe[splits.node] | np.logical_and.reduceat(splits.safe, splits.part_start[:-1])
        minima, free = [], np.ones(len(splits), bool)
        for (criterion, column), state in zip(self.whole, self.state):
            minima.append(criterion.minima(groups[column], owner, len(splits)))
            free &= (minima[-1] >= state.values).all(axis=1)
            fine &= criterion.judge(np.minimum(minima[-1], state.values)) != UNSAFE
        for index in np.flatnonzero(fine).tolist():
            candidate = Candidate(splits, index, [lowest[index] for lowest in minima], bool(free[index]))
            level.waiting.setdefault(int(splits.node[index]), deque()).append(candidate)

    def _safe(
        self, criterion: Criterion, column: int, counts: Ints, groups: Groups, owner: Ints, wanted: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Whether a criterion about single groups holds for all groups of each owner, exactly for the wanted ones.
        `groups` are the histograms of `counts`, whose rows the owners have."""
        of_group = owner if groups.row is None else owner[groups.row]
        verdict = criterion.judge(criterion.minima(groups, of_group, len(wanted)))
        safe: NDArray[np.bool_] = verdict == SAFE
        for index in np.flatnonzero(wanted & (verdict == CLOSE)).tolist():
            safe[index] = criterion.holds(criterion.state(self.cube.groups(counts[owner == index], column)))
        return safe

    def _parts_safe(self, splits: Splits, groups: dict[int, Groups]) -> NDArray[np.bool_]:
        """Which children satisfy every criterion that is not monotone."""
        safe = np.ones(len(splits.low), bool)
        for criterion, column in self.erratic:
            owner = np.arange(len(safe))
            safe &= self._safe(criterion, column, splits.counts[column], groups[column], owner, safe)
        return safe

    # decide

    def _decide(self, nodes: Nodes) -> Level:
        columns, count = self._preferences(nodes)
        zero = np.zeros(len(nodes), np.int64)
        level = Level(nodes, columns, count, zero, zero.copy(), self.nodes_safe)
        undecided = np.flatnonzero((nodes.people >= 2 * self.least) & (count > 0)).tolist()
        while undecided:
            hungry = level.hungry(undecided)
            if len(hungry):
                for splits in self._offer(level, hungry):
                    self._admit(level, splits)
            undecided = self._settle(level, undecided)
        return level

    def _settle(self, level: Level, undecided: list[int]) -> list[int]:
        """Decides what can be decided, in node order; what is left needs more candidates, or waits for such a node."""
        left: list[int] = []
        for node in undecided:
            queue = level.waiting.get(node)
            while queue:
                if not queue[0].free and left:
                    break
                candidate = queue.popleft()
                if candidate.free or self._accept(candidate):
                    level.choice[node] = candidate
                    break
            if node not in level.choice and (queue or not level.exhausted(node)):
                left.append(node)
        return left

    def _accept(self, candidate: Candidate) -> bool:
        """Whether a candidate keeps the whole release safe now that its turn has come; if so the state follows."""
        merged = []
        for (criterion, column), state, lowest in zip(self.whole, self.state, candidate.minima):
            verdict = criterion.judge(np.minimum(lowest, state.values)[None, :])[0]
            if verdict == UNSAFE:
                return False
            children = self.cube.groups(candidate.splits.children(candidate.index, column), column)
            merged.append(state.merge(criterion.state(children)))
            if verdict != SAFE and not criterion.holds(merged[-1]):
                return False
        self.state = merged
        return True

    # route

    def _covering_cells(self, nodes: Nodes) -> tuple[Ints, Ints]:
        """The cells of nodes as they would be published: of a hierarchy column the node that covers the members."""
        low, high = nodes.cell_low.copy(), nodes.cell_high.copy()
        for j, domain in enumerate(self.cube.domains):
            if domain.tree is not None:
                cover = domain.tree.common(nodes.low[:, j], nodes.high[:, j])
                low[:, j], high[:, j] = domain.tree.low[cover], domain.tree.high[cover]
        return low, high

    def _route(self, level: Level, tree: TreeOfCuts) -> Nodes:
        """Turns undivided nodes into groups of the release and the others into the nodes of the next level."""
        nodes = level.nodes
        chosen = _chosen(level)
        leaf = np.ones(len(nodes), bool)
        leaf[chosen.node] = False
        parts = np.diff(chosen.part_start)
        parent, column = np.repeat(chosen.node, parts), np.repeat(chosen.column, parts)
        self.broken += int((leaf & ~level.safe).sum())
        self.nodes_safe = chosen.safe
        tree.add_level(*self._covering_cells(nodes), nodes.people, leaf, chosen)
        low, high = nodes.cell_low[parent], nodes.cell_high[parent]
        at = np.arange(len(parent))
        low[at, column], high[at, column] = chosen.low, chosen.high
        start, stop = self.evaluator.route(nodes, chosen)
        return self.evaluator.nodes(start, stop, low, high)


def _chosen(level: Level) -> Splits:
    """The chosen splits of a level in node order, without their histograms."""
    batches: dict[int, tuple[Splits, list[int]]] = {}
    for candidate in level.choice.values():
        batches.setdefault(id(candidate.splits), (candidate.splits, []))[1].append(candidate.index)
    taken = Splits.concatenate([splits.take(np.array(indices)) for splits, indices in batches.values()])
    return taken.take(np.argsort(taken.node))


def _entropy(counts: Ints) -> NDArray[np.float64]:
    """Entropy in bits of each row of counts."""
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return -(share * np.log2(np.where(share > 0, share, 1.0))).sum(axis=1)
