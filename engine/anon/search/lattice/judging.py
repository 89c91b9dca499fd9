"""Whether a node of the lattice is safe: the criteria on the groups of its frequency set, and with `suppress` on what
is left when the groups that fail are dropped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from anon.criteria import CLOSE, SAFE, Criterion, Groups
from anon.cube import Cube
from anon.levels import Ints
from anon.search.lattice.frequency import FrequencySet, SensitiveValues

Mask = NDArray[np.bool_]
Rebound = Callable[[int, list[int]], Criterion]  # a criterion by its place, for some of its column's values


def needs_values(criterion: Criterion) -> bool:
    """Whether it is about more than the sizes of groups."""
    return bool(criterion.column or criterion.columns)


@dataclass(frozen=True)
class Judge:
    """Criteria for the nodes of one cube. `released` binds a criterion to what is left of its column's values."""

    cube: Cube
    criteria: list[Criterion]
    suppress: Fraction
    values: SensitiveValues | None
    released: Rebound

    def keeps(self, found: FrequencySet, which: list[int]) -> Mask | None:
        """The groups that are published if some criteria, by their places, shall hold; None if they cannot."""
        least = max((self.criteria[at].least_group for at in which), default=1)
        kept = found.n >= least
        if not self._few(found, kept):
            return None
        if self.suppress:
            return self._without_failing(found, kept, which)
        return kept if all(self._hold(found, self.criteria[at]) for at in which) else None

    def _few(self, found: FrequencySet, kept: Mask) -> bool:
        """Whether some groups are left, and no more people would be suppressed than may be."""
        if kept.all():
            return True
        return bool(kept.any()) and int(found.n[~kept].sum()) <= self.suppress * self.cube.individuals

    def _hold(self, found: FrequencySet, criterion: Criterion) -> bool:
        return criterion.holds(criterion.state(self.groups(found, criterion)))

    def _without_failing(self, found: FrequencySet, kept: Mask, which: list[int]) -> Mask | None:
        for at in which:
            kept = kept & self._pass(found, self.criteria[at])
            if not self._few(found, kept):
                return None
        left = found if kept.all() else part(found, kept)
        return kept if all(self._hold_together(left, at, left is not found) for at in which) else None

    def _pass(self, found: FrequencySet, criterion: Criterion) -> Mask:
        """The groups that are safe alone."""
        groups = self.groups(found, criterion)
        owner = np.arange(len(groups)) if groups.row is None else groups.row
        judged = criterion.judge(criterion.minima(groups, owner, len(found.n)))
        safe: Mask = judged == SAFE
        for group in np.flatnonzero(judged == CLOSE).tolist():
            safe[group] = criterion.holds(criterion.state(groups.part(group, group + 1)))
        return safe

    def _hold_together(self, left: FrequencySet, at: int, fewer: bool) -> bool:
        """Whether a criterion holds for groups that it holds for alone. Where distances depend on which values the
        release has, or how often, those are other than the source's after groups were dropped."""
        criterion = self.criteria[at]
        if fewer and criterion.name in ("t_closeness", "dissimilarity") and criterion.column:
            groups = self.groups(left, criterion)
            value = np.unique(groups.value, return_inverse=True)[1].reshape(-1)
            bound = self.released(at, np.bincount(groups.value, groups.count).astype(np.int64).tolist())
            groups = Groups(groups.n, groups.start, value.astype(np.int64), groups.count)
            return bound.holds(bound.state(groups))
        return criterion.alone or self._hold(left, criterion)

    def groups(self, found: FrequencySet, criterion: Criterion) -> Groups:
        """The groups of a set as a criterion sees them."""
        if not needs_values(criterion) or self.values is None or found.start is None:
            return _sizes(found.n)
        reading = self.cube.reading(criterion)
        start, value, count = found.start, found.value.astype(np.int64), found.count.astype(np.int64)
        if len(self.values.codes) > 1:
            start, value, count = _read(start, self.values.codes[reading].astype(np.int64)[value], count)
        return self.cube.seen_by(Groups(found.n, start, value, count), reading)


def _sizes(n: Ints) -> Groups:
    return Groups(n, np.arange(len(n) + 1), np.zeros(len(n), np.int64), n)


def _read(start: Ints, code: Ints, count: Ints) -> tuple[Ints, Ints, Ints]:
    """Entries of groups with other values, of which some may have become the same."""
    group = np.repeat(np.arange(len(start) - 1), np.diff(start))
    order = np.lexsort((code, group))
    group, code = group[order], code[order]
    first = np.flatnonzero(np.append(True, (group[1:] != group[:-1]) | (code[1:] != code[:-1])))
    return np.searchsorted(group[first], np.arange(len(start))), code[first], np.add.reduceat(count[order], first)


def part(found: FrequencySet, kept: Mask) -> FrequencySet:
    """Some cells of a frequency set."""
    if found.start is None:
        return FrequencySet(found.columns, found.levels, found.cells[:, kept], None, found.value, found.count[kept])
    entries = np.diff(found.start)
    of = np.repeat(kept, entries)
    start = np.append(0, np.cumsum(entries[kept]))
    return FrequencySet(found.columns, found.levels, found.cells[:, kept], start, found.value[of], found.count[of])
