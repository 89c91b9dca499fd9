"""t-closeness (Li, Li, Venkatasubramanian: t-Closeness, ICDE 2007): the distribution of the sensitive values in every
group is within t of that in the released table. Their distance is the least work that turns one into the other, mass
times the distance it is moved over (earth mover's distance). With p the shares in a group and q those in the table it
is

    equal:      half the sum of |p - q|
    ordered:    the sum, over the values in order, of |cumulative p - cumulative q|, over the number of values less one;
                the same for absolute differences, each step as long as the gap between its numbers
    hierarchy:  mass moves up to a common ancestor and down, and each step between neighbouring levels costs 1 / (2 x
                height): the sum over all nodes below the root of |p - q| under the node, over 2 x height. This equals
                the paper's sum of level / height x the mass exchanged between the children of a node, and with one
                level it is the equal distance.

Monotone while the table stays the same: the distance is convex in p, and a union's p is a mean of its parts'. Groups
that are suppressed change the table itself, and with it the reference.

The paper's salaries 3k .. 11k, each once in the table: {3k, 4k, 5k} is at 0.375, {6k, 8k, 11k} at 0.167.

>>> from anon.criteria.distances import ordered
>>> from anon.criteria.protocol import Groups
>>> salaries = ordered([f"{k:02}k" for k in range(3, 12)])
>>> criterion = TCloseness("salary", Fraction("0.2"), salaries, [1] * 9)
>>> release = Groups.dense(np.array([[1, 1, 1, 0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 1, 0, 0, 1]]))
>>> (-criterion.measure(release))[:, 0].round(3).tolist()
[0.375, 0.167]
>>> verdict = criterion.verdict(criterion.state(release))
>>> verdict.safe, verdict.figure, verdict.worst_group
(False, 0.375, 0)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from anon.criteria.arithmetic import at_least
from anon.criteria.bind_distances import bind_distance
from anon.criteria.distances import Distance, Line, TreeLevels, in_order
from anon.criteria.protocol import Finding, Floats, GroupCriterion, Groups, Ints, exact
from anon.errors import ConfigError

if TYPE_CHECKING:
    from anon.config.criteria.t_closeness import TCloseness as Spec
    from anon.criteria.bind import Binder


class TCloseness(GroupCriterion):
    """Distance to the reference <= t; `reference` counts the individuals of the released table per value code. State:
    the largest distance."""

    name = "t_closeness"
    relation = "<="
    relative = True
    words = ("distance {figure} to the table, asked for at most {bound}",)

    def __init__(
        self, column: str, t: Fraction, distance: Distance, reference: Sequence[int], where: str = "privacy"
    ) -> None:
        self.column, self.t = column, t
        self._work = _work(distance, reference, where)
        self.least_group = self._work.least_group(t)
        self.bounds = np.array([-float(t / self._work.widest)])

    @classmethod
    def bind(cls, spec: Spec, binder: Binder, where: str) -> TCloseness:
        distance = bind_distance(binder, spec, where)
        return cls(str(spec.sensitive), exact(spec.t), distance, binder.frequency(spec), where)

    def measure(self, groups: Groups) -> Floats:
        return -self._work.shares(groups)[:, None]

    def compare(self, groups: Groups, which: Ints, measure: int) -> Ints:
        excess = (self._work.exactly(*_histogram(groups, group)) - self.t for group in which.tolist())
        return np.array([(apart < 0) - (apart > 0) for apart in excess], np.int64)

    def figure_and_bound(self, measure: int, value: float) -> tuple[float, float]:
        return -value * float(self._work.widest) + 0.0, float(self.t)

    def nearest(self, whole: Groups, finding: Finding) -> list[str]:
        return [f"t = {at_least(finding.figure)}"]


def _histogram(groups: Groups, group: int) -> tuple[int, dict[int, int]]:
    held = slice(groups.start[group], groups.start[group + 1])
    return int(groups.n[group]), dict(zip(groups.value[held].tolist(), groups.count[held].tolist()))


class Work(ABC):
    """The work that turns the distribution of a group into the reference."""

    widest: Fraction  # the largest distance of two values

    @abstractmethod
    def shares(self, groups: Groups) -> Floats:
        """Return the work per group as a share of the widest distance."""

    @abstractmethod
    def exactly(self, n: int, counts: dict[int, int]) -> Fraction:
        """Return the work for one group."""

    def least_group(self, t: Fraction) -> int:
        """Return a size such that no group of fewer individuals is within t."""
        return 1


def _work(distance: Distance, reference: Sequence[int], where: str) -> Work:
    if isinstance(distance, TreeLevels):
        return TreeWork(distance, reference)
    if isinstance(distance, Line):
        return LineWork(distance, reference)
    raise ConfigError.at(
        f"{where}.distance.kind", "a distance between single pairs of values", "equal, ordered, absolute or hierarchy"
    )


class TreeWork(Work):
    """Work over the levels of a hierarchy."""

    widest = Fraction(1)

    def __init__(self, levels: TreeLevels, reference: Sequence[int]) -> None:
        self.levels, self.total = levels, sum(reference)
        self.under = [np.bincount(node, reference, minlength=1).astype(np.int64) for node in levels.node]
        self._share = np.zeros((levels.height, max(map(len, self.under))))
        for level, counts in enumerate(self.under):
            self._share[level, : len(counts)] = counts / self.total

    def shares(self, groups: Groups) -> Floats:
        from anon.criteria import kernels_proximity

        work = np.empty(len(groups))
        kernels_proximity.distance_in_tree(groups, self.levels.node, self._share, work)
        return work

    def exactly(self, n: int, counts: dict[int, int]) -> Fraction:
        work = 0
        for level, under in zip(self.levels.node, self.under):
            held: dict[int, int] = {}
            for code, count in counts.items():
                held[int(level[code])] = held.get(int(level[code]), 0) + count
            there = {node: int(under[node]) * n for node in held}
            work += n * self.total - sum(there.values())
            work += sum(abs(count * self.total - there[node]) for node, count in held.items())
        return Fraction(work, 2 * self.levels.height * n * self.total)

    def least_group(self, t: Fraction) -> int:
        """Return the least size: n individuals have at most n nodes of a level, and the table's mass under its other
        nodes must move. Even the n nodes with the most mass leave this much."""
        most = [np.cumsum(np.sort(counts)[::-1]) for counts in self.under]
        kept = np.sum([np.pad(counts, (0, len(most[0]) - len(counts)), mode="edge") for counts in most], axis=0)
        return int(np.searchsorted(kept, ceil((1 - t) * self.levels.height * self.total))) + 1


class LineWork(Work):
    """Work along a line: places are the values in order, `length` and `area` the way to each place and the area under
    the cumulative reference up to it, in units."""

    def __init__(self, line: Line, reference: Sequence[int]) -> None:
        points = [line.units.of[code] for code in line.order]
        gaps = [high - low for low, high in pairwise(points)]
        self._place, self.per_one, self.total = line.place, line.units.per_one, sum(reference)
        self.share = list(accumulate(reference[code] for code in line.order))
        self.length = [0, *accumulate(gaps)]
        self.area = [0, *accumulate(gap * share for gap, share in zip(gaps, self.share))]
        span = self.length[-1] or 1
        self.widest = Fraction(span, self.per_one)
        self._floats = [
            np.array([number / whole for number in numbers])
            for numbers, whole in ((self.share, self.total), (self.length, span), (self.area, span * self.total))
        ]

    def shares(self, groups: Groups) -> Floats:
        from anon.criteria import kernels_proximity

        work = np.empty(len(groups))
        share, length, area = self._floats
        place, count = in_order(groups, self._place)
        kernels_proximity.distance_on_line(groups.n, groups.start, place, count, share, length, area, work)
        return work

    def exactly(self, n: int, counts: dict[int, int]) -> Fraction:
        """Return the work as in the kernel: between two places that the group has, one crossing at most."""
        held = sorted((int(self._place[code]), count) for code, count in counts.items())
        at, people, work = 0, 0, 0
        for end, count in [*held, (len(self.length) - 1, 0)]:
            cross = bisect_right(self.share, people * self.total // n, at, end)
            below = self.length[cross] - self.length[at] - (self.length[end] - self.length[cross])
            work += people * self.total * below
            work += n * (self.area[end] - self.area[cross] - (self.area[cross] - self.area[at]))
            at, people = end, people + count
        return Fraction(work, self.per_one * n * self.total)
