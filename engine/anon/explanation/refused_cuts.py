"""Find the criterion that refuses each cut that is left in the groups of a tree of cuts, for `explain`: every boundary
between two codes of a free column that occur in a group (or its only cut, if cuts are public), and the split of every
hierarchy, each with the other groups unchanged; if splits are peeled, every child of a hierarchy's node that could
leave alone, because no more can leave if none of them can (search/partition/peel.py). The records are read once more,
group by group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from anon.core.arrays import Ints
from anon.criteria import CLOSE, SAFE, Criterion, Groups, State
from anon.cube import Cube
from anon.recoding.tree import Recoding
from anon.search.partition.block import Block
from anon.search.partition.candidates import DENSE, Boundaries, Demands, OpenNodes, Splits
from anon.search.partition.peel import one_by_one
from anon.search.partition.public import PublicCuts

Flags = NDArray[np.bool_]
CELLS = 250_000  # counters (parts x sensitive values) that are filled at a time
KEPT = 50_000  # cuts that one criterion alone refuses; further ones are counted, but no setting is tried on them


@dataclass
class SoleRefusals:
    """Cuts that one criterion alone refuses: their parts as the criterion sees them, and the cut that each belongs
    to."""

    parts: list[Groups] = field(default_factory=list)
    owner: list[Ints] = field(default_factory=list)
    node: list[Ints] = field(default_factory=list)  # the group that each cut is of
    cuts: int = 0
    every: int = 0  # including those that are not kept

    def add(self, groups: Groups, owner: Ints, which: Flags, node: Ints) -> None:
        self.every += int(which.sum())
        if self.cuts >= KEPT or not which.any():
            return
        own = which[owner]
        self.parts.append(groups.only(own))
        self.owner.append((np.cumsum(which) - 1)[owner[own]] + self.cuts)
        self.node.append(node[which])
        self.cuts += int(which.sum())


class RefusedCuts:
    """The cuts that are left in the groups of a release."""

    def __init__(
        self, cube: Cube, criteria: list[Criterion], recoding: Recoding, public: bool = False, peel: bool = False
    ) -> None:
        self.public = PublicCuts.from_cube(cube) if public else None
        self.cube, self.criteria, self.peel = cube, criteria, peel
        self.reading = [cube.reading(criterion) for criterion in criteria]
        self.people = recoding.people
        self.nodes, self.block = _groups(cube, recoding, sorted(set(self.reading)))
        self.state = [self._state(at, criterion) for at, criterion in enumerate(criteria)]
        self.kept = [SoleRefusals() for _ in criteria]
        self.alone = np.zeros((len(criteria), len(self.people)), bool)  # a cut of the group is refused by it alone
        self.some = np.zeros(len(self.people), bool)  # the group has a cut
        for splits in self._splits():
            self._judge(splits)

    def facts(self, at: int) -> dict[str, int]:
        """Return the numbers of groups and individuals that would be cut without a criterion if nothing else changed,
        the number of these cuts, and the number of those on which settings are tried."""
        kept = self.kept[at]
        return self._counted(self.alone[at]) | {"cuts": kept.every, "looked_at": kept.cuts}

    def together(self) -> dict[str, int]:
        """Return the numbers of groups and individuals whose every cut is refused by several criteria."""
        return self._counted(self.some & ~self.alone.any(axis=0))

    def would_change(self, at: int, criterion: Criterion) -> bool:
        """Return whether another criterion in place of one accepts a cut that this one alone refuses."""
        return bool(self._accepted(at, criterion, stop_at_first=True).any())

    def split_by(self, at: int, criterion: Criterion) -> int:
        """Return the number of groups that have such a cut, of those that are kept."""
        accepted = self._accepted(at, criterion)
        return len(np.unique(np.concatenate(self.kept[at].node)[accepted])) if len(accepted) else 0

    def _accepted(self, at: int, criterion: Criterion, stop_at_first: bool = False) -> Flags:
        kept = self.kept[at]
        if not kept.cuts:
            return np.zeros(0, bool)
        groups, owner = Groups.concatenate(kept.parts), np.concatenate(kept.owner)
        return _accepts(criterion, self._state(at, criterion), groups, owner, kept.cuts, stop_at_first)

    def _counted(self, which: Flags) -> dict[str, int]:
        return {"groups": int(which.sum()), "individuals": int(self.people[which].sum())}

    def _state(self, at: int, criterion: Criterion) -> State:
        """Return the state of a criterion for the release as it is."""
        value, uncut, none = self.reading[at], np.zeros(len(self.people) + 1, np.int64), np.empty(0, np.int64)
        every = np.arange(len(self.people))
        groups = self.block.lists(self.nodes, every, uncut[1:], uncut, none, value)
        return criterion.state(self.cube.seen_by(groups, value))

    def _splits(self) -> Iterator[Splits]:
        """Yield every split of every group, some groups at a time."""
        nodes, sizes = self.nodes, [min(self.cube.others[value].size, DENSE) for value in self.block.sizes]
        step = max(CELLS // (2 * max(sizes)), 1)
        for j, domain in enumerate(self.cube.domains):
            which = np.flatnonzero(nodes.high[:, j] > nodes.low[:, j])
            ends = np.cumsum(nodes.stop[which] - nodes.start[which])
            for some in np.split(which, np.flatnonzero(np.diff(ends // step)) + 1):
                column = np.full(len(some), j)
                if domain.by_nodes:
                    splits = self.block.split_whole(nodes, some, column)
                    if self.peel and len(splits):
                        splits = self.block.peel(nodes, splits, one_by_one(splits.part_start))
                else:
                    cuts = self._cuts(some, column)
                    splits = self.block.cut_once(nodes, cuts, np.full(len(cuts.node), j))
                if len(splits):
                    yield splits

    def _cuts(self, some: Ints, column: Ints) -> Boundaries:
        """Return the cuts of some groups along a column that is cut freely."""
        nodes = self.nodes
        if self.public is None:
            return self.block.boundaries(nodes, some, column)
        return Boundaries(some, self.public.cuts(column, nodes.low[some, column], nodes.high[some, column]))

    def _judge(self, splits: Splits) -> None:
        fine, seen = np.empty((len(self.criteria), len(splits)), bool), []
        for at, criterion in enumerate(self.criteria):
            groups = splits.groups[self.reading[at]]
            owner = splits.owner if groups.row is None else splits.owner[groups.row]
            seen.append((groups, owner))
            fine[at] = _accepts(criterion, self.state[at], groups, owner, len(splits))
        refused = (~fine).sum(axis=0)
        self.some[splits.node] = True
        for at, (groups, owner) in enumerate(seen):
            own = ~fine[at] & (refused == 1)
            self.alone[at, splits.node[own]] = True
            self.kept[at].add(groups, owner, own, splits.node)


def _groups(cube: Cube, recoding: Recoding, values: list[int]) -> tuple[OpenNodes, Block]:
    """Return the groups as the nodes of a search, and their records in order."""
    records, columns = cube.records.read(0, cube.records.count), len(cube.domains)
    group = recoding.assign(records[:columns])
    order = np.argsort(group, kind="stable")
    edges = np.searchsorted(group[order], np.arange(recoding.groups + 1))
    records = np.ascontiguousarray(records[:, order[: edges[-1]]])  # without those who are suppressed
    start = edges[:-1]
    low, high = (
        fold.reduceat(records[:columns], start, axis=1).T.astype(np.int64) for fold in (np.minimum, np.maximum)
    )
    cell_low = np.stack([labels.low for labels in recoding.labels], axis=1).astype(np.int64)
    cell_high = np.stack([labels.high for labels in recoding.labels], axis=1).astype(np.int64)
    none = np.zeros(recoding.groups, bool)
    nodes = OpenNodes(start, edges[1:], cell_low, cell_high, low, high, recoding.people, ~none, none)
    return nodes, Block(cube, values, Demands(), records)


def _accepts(
    criterion: Criterion, state: State, groups: Groups, owner: Ints, cuts: int, stop_at_first: bool = False
) -> Flags:
    """Return for each cut whether a criterion holds for a release in some state after it; `owner` is the cut that made
    a group. `stop_at_first`: one accepted cut is enough."""
    judged = criterion.judge(np.minimum(criterion.minima(groups, owner, cuts), state.values))
    fine: Flags = judged == SAFE
    whole = replace(groups, row=None)
    for cut in np.flatnonzero(judged == CLOSE).tolist():
        if stop_at_first and fine.any():
            break
        first, last = np.searchsorted(owner, (cut, cut + 1)).tolist()
        fine[cut] = criterion.holds(state.merge(criterion.state(whole.part(first, last))))
    return fine
