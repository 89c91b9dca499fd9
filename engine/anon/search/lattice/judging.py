"""Judge whether a node of the lattice is safe: apply the criteria to the groups of its frequency set, and with
`suppress` to those that remain when the groups that fail are dropped. Sets are read part by part, so that this takes no
more memory than one part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anon.core.arrays import Flags, Ints
from anon.criteria import Criterion, Groups, State
from anon.cube import Cube
from anon.search.lattice.counting import CellPart
from anon.search.lattice.frequency import FrequencySet, SensitiveValues

Rebound = Callable[[int, list[int]], Criterion]  # a criterion by its position, for some of its column's values


def needs_values(criterion: Criterion) -> bool:
    """Return whether a criterion depends on more than the sizes of groups."""
    return bool(criterion.column or criterion.columns)


@dataclass(frozen=True)
class Judge:
    """Criteria for the nodes of one cube. `released` binds a criterion to the values of its column that remain."""

    cube: Cube
    criteria: list[Criterion]
    suppress: Fraction
    values: SensitiveValues | None
    released: Rebound

    def safe(self, found: FrequencySet, which: list[int]) -> bool:
        """Return whether some criteria, by their positions, hold for a node, after groups that fail were suppressed."""
        return self._safe_without_failing(found, which) if self.suppress else self._safe_as_it_is(found, which)

    def _safe_as_it_is(self, found: FrequencySet, which: list[int]) -> bool:
        least, state = self._least(which), dict[int, State]()
        for part in found.parts():
            if (part.n < least).any():
                return False
            for at in which:
                criterion = self.criteria[at]
                own = criterion.state(self.groups(part, criterion))
                state[at] = state[at].merge(own) if at in state else own
                if not criterion.holds(state[at]):
                    return False
        return True

    def _safe_without_failing(self, found: FrequencySet, which: list[int]) -> bool:
        least, most, dropped, groups = self._least(which), self.suppress * self.cube.individuals, 0, 0
        for part in found.parts():
            if dropped + int(part.n[part.n < least].sum()) > most:
                return False
            kept = self.kept(part, which)
            groups += int(kept.sum())
            dropped += int(part.n[~kept].sum())
            if dropped > most:
                return False
        return bool(groups) and all(self._hold_together(found, which, at, dropped > 0) for at in which)

    def kept(self, part: CellPart, which: Iterable[int]) -> Flags:
        """Return the groups of a part that are published if some criteria hold: those that are safe alone."""
        if not self.suppress:
            return np.ones(len(part.n), bool)
        kept: Flags = part.n >= self._least(which)
        for at in which:
            kept &= self.criteria[at].safe_alone(self.groups(part, self.criteria[at]), len(part.n))
        return kept

    def _least(self, which: Iterable[int]) -> int:
        return max((self.criteria[at].least_group for at in which), default=1)

    @property
    def steady(self) -> bool:
        """Return whether looser criteria never make a node unsafe. With suppression they keep more groups, which may
        fail a criterion that judges all groups together, or relative to the remaining table."""
        return not self.suppress or all(c.alone and not c.relative for c in self.criteria)

    def _hold_together(self, found: FrequencySet, which: list[int], at: int, fewer: bool) -> bool:
        """Return whether a criterion holds together for groups that satisfy it alone. A criterion that is relative to
        the values of the release must be bound to the remaining ones after groups were dropped."""
        criterion = self.criteria[at]
        if fewer and criterion.relative:
            return self._hold_for_the_rest(found, which, at)
        if criterion.alone:
            return True
        state: State | None = None
        for groups in self._rest(found, which, criterion):
            own = criterion.state(groups)
            state = own if state is None else state.merge(own)
            if not criterion.holds(state):
                return False
        return True

    def _hold_for_the_rest(self, found: FrequencySet, which: list[int], at: int) -> bool:
        """Return the same by the distribution of the remaining groups, which takes two passes over the set."""
        criterion = self.criteria[at]
        frequency = np.zeros(self.cube.others[self.cube.reading(criterion)].size, np.int64)
        for groups in self._rest(found, which, criterion):
            np.add.at(frequency, groups.value, groups.count)
        bound, number = self.released(at, frequency.tolist()), np.cumsum(frequency > 0) - 1
        return all(
            bound.holds(bound.state(Groups(groups.n, groups.start, number[groups.value], groups.count)))
            for groups in self._rest(found, which, criterion)
        )

    def _rest(self, found: FrequencySet, which: list[int], criterion: Criterion) -> Iterator[Groups]:
        """Yield the remaining groups of a set, as a criterion sees them."""
        for part in found.parts():
            kept = self.kept(part, which)
            if kept.any():
                yield self.groups(part.where(kept), criterion)

    def groups(self, part: CellPart, criterion: Criterion) -> Groups:
        """Return the groups of a part as a criterion sees them."""
        if not needs_values(criterion) or self.values is None or part.start is None:
            return _sizes(part.n)
        reading = self.cube.reading(criterion)
        start, *entries = part.histograms()
        value, count = (each.astype(np.int64) for each in entries)
        if len(self.values.codes) > 1:
            start, value, count = _read(start, self.values.codes[reading].astype(np.int64)[value], count)
        return self.cube.seen_by(Groups(part.n, start, value, count), reading)


def _sizes(n: Ints) -> Groups:
    return Groups(n, np.arange(len(n) + 1), np.zeros(len(n), np.int64), n)


def _read(start: Ints, code: Ints, count: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the entries of groups after their values were replaced by codes, with equal ones combined."""
    group = np.repeat(np.arange(len(start) - 1), np.diff(start))
    order = np.lexsort((code, group))
    group, code = group[order], code[order]
    first = np.flatnonzero(np.append(True, (group[1:] != group[:-1]) | (code[1:] != code[:-1])))
    return np.searchsorted(group[first], np.arange(len(start))), code[first], np.add.reduceat(count[order], first)
