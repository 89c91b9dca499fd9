"""The protocol between privacy criteria and their callers: searches, `check` and `verify`. Groups come in
batches as histograms; a criterion turns them into minima (lower is worse) that merge by taking the smaller one, and
judges those. The search compares plain floats of many candidates at once; a comparison closer than `NEAR` goes to
exact arithmetic on the integers behind the minima, so that every machine decides alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anon.core.arrays import ranges

if TYPE_CHECKING:
    from anon.criteria.bind import Binder

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NEAR = 1e-9  # comparisons closer than this are redone in exact arithmetic

INDIVIDUALS = "{figure} individuals, asked for at least {bound}"
UNSAFE, SAFE, CLOSE = 0, 1, -1  # what floats alone can say of a batch of minima


@dataclass(frozen=True)
class Signatures:
    """How many people of each group have each signature (the tuple of a prior's attributes) that occurs in it (CSR)."""

    start: Ints
    code: Ints
    count: Ints

    @property
    def arrays(self) -> tuple[Ints, Ints, Ints]:
        """Return the arguments of kernels."""
        return self.start, self.code, self.count


@dataclass(frozen=True)
class Groups:
    """A batch of groups: individuals, and the counts of the sensitive values that occur in each (CSR)."""

    n: Ints
    start: Ints
    value: Ints
    count: Ints
    first: int = 0  # id of the first group of the batch
    row: Ints | None = None  # where groups were taken apart by context: the group that each is part of
    signatures: tuple[Signatures, ...] = ()  # one for each prior that a criterion knows of

    @property
    def arrays(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Return the arguments of kernels."""
        return self.n, self.start, self.value, self.count

    @classmethod
    def dense(cls, counts: NDArray[Any]) -> Groups:
        """Return groups from a matrix with one row per group and one column per sensitive value.

        >>> Groups.dense(np.array([[2, 0, 1]])).value
        array([0, 2])
        """
        from anon.criteria import kernels_counts

        table = np.ascontiguousarray(counts, np.int64)
        n, start = np.empty(len(table), np.int64), np.zeros(len(table) + 1, np.int64)
        kernels_counts.sizes(table, n, start[1:])
        value, count = np.empty((2, start[-1] + 1), np.int64)
        kernels_counts.occurring(table, start, value, count)
        return cls(n, start, value[:-1], count[:-1])

    @property
    def largest(self) -> Ints:
        """Return how often each group has its most frequent value; 0 for a group in which nobody has a value.

        >>> Groups(np.array([3, 2, 1]), np.array([0, 2, 2, 3]), np.array([0, 1, 1]), np.array([1, 2, 1])).largest
        array([2, 0, 1])
        """
        found = np.zeros(len(self), np.int64)
        some = np.diff(self.start) > 0
        if some.any():
            found[some] = np.maximum.reduceat(self.count, self.start[:-1][some])
        return found

    def apart(self, context: Ints, value: Ints) -> Groups:
        """Return groups of codes that stand for combinations of a context and a value, in ascending order of both:
        every context that occurs in a group becomes a group.

        >>> Groups.dense(np.array([[2, 1, 3]])).apart(np.array([0, 0, 1]), np.array([0, 4, 0])).n
        array([3, 3])
        """
        row, own = np.repeat(np.arange(len(self)), np.diff(self.start)), context[self.value]
        new = np.ones(len(row), bool)
        new[1:] = (row[1:] != row[:-1]) | (own[1:] != own[:-1])
        first = np.flatnonzero(new)
        n = np.add.reduceat(self.count, first) if len(first) else self.count
        return Groups(n, np.append(first, len(row)), value[self.value], self.count, row=row[first])

    def part(self, first: int, last: int) -> Groups:
        """Return some consecutive groups; of groups that were taken apart all parts of those."""
        row = self.row
        if row is not None:
            first, last = np.searchsorted(row, (first, last)).tolist()
        at = slice(self.start[first], self.start[last])
        return Groups(
            self.n[first:last], self.start[first : last + 1] - self.start[first], self.value[at], self.count[at],
            row=None if row is None else row[first:last],
        )  # fmt: skip

    def where(self, some: NDArray[np.bool_]) -> Groups:
        """Return the groups that have people, given which."""
        return Groups(self.n[some], np.append(self.start[:-1][some], self.start[-1]), self.value, self.count)

    def only(self, some: NDArray[np.bool_]) -> Groups:
        """Return some of the groups, given which.

        >>> Groups.dense(np.array([[2, 1], [0, 3]])).only(np.array([False, True])).count
        array([3])
        """
        length = np.diff(self.start)
        at = np.repeat(some, length)
        return Groups(self.n[some], np.append(0, np.cumsum(length[some])), self.value[at], self.count[at])

    def merged(self, old: Ints, new: Ints, count: int) -> Groups:
        """Return `count` groups, each with the people of some of these: group old[i] is part of group new[i].

        >>> Groups.dense(np.array([[2, 1], [0, 3], [4, 0]])).merged(np.array([0, 1, 2]), np.array([1, 0, 1]), 2).count
        array([3, 6, 1])
        """
        n, length = np.zeros(count, np.int64), np.diff(self.start)[old]
        np.add.at(n, new, self.n[old])
        rows, group = ranges(self.start[old], length), np.repeat(new, length)
        order = np.lexsort((self.value[rows], group))
        group, value, counts = group[order], self.value[rows][order], self.count[rows][order]
        first = np.flatnonzero((np.diff(group, prepend=-1) != 0) | (np.diff(value, prepend=-1) != 0))
        together = np.add.reduceat(counts, first) if len(first) else counts
        return Groups(n, np.searchsorted(group[first], np.arange(count + 1)), value[first], together)

    @staticmethod
    def concatenate(batches: list[Groups]) -> Groups:
        """Return the groups of several batches."""
        sizes = np.concatenate([np.diff(batch.start) for batch in batches])
        n, value, count = (np.concatenate([getattr(b, name) for b in batches]) for name in ("n", "value", "count"))
        return Groups(n, np.append(0, np.cumsum(sizes)), value, count)

    def __len__(self) -> int:
        return len(self.n)


@dataclass(frozen=True)
class State:
    """Minima over groups, and for each the integers it was computed from; the last of them is the group's id."""

    values: Floats  # [minima]
    witness: Ints  # [minima, integers]

    def copy(self) -> State:
        return State(self.values.copy(), self.witness.copy())

    def merge(self, other: State) -> State:
        """Return the minima over the groups of both: associative, commutative, idempotent."""
        lower = other.values < self.values
        tied = np.flatnonzero(other.values == self.values)
        difference = other.witness[tied] - self.witness[tied]
        first = (difference != 0).argmax(axis=1)
        lower[tied] = difference[np.arange(len(tied)), first] < 0
        return State(np.where(lower, other.values, self.values), np.where(lower[:, None], other.witness, self.witness))


@dataclass(frozen=True)
class Finding:
    """One thing a criterion demands and what was found: e.g. one (value, point) of a skyline."""

    safe: bool
    figure: float
    bound: float
    group: int
    about: Any = None


@dataclass(frozen=True)
class Verdict:
    """What a criterion says of a set of groups. `figure` is the worst finding's."""

    name: str
    safe: bool
    figure: float
    bound: float
    worst_group: int
    findings: tuple[Finding, ...] = ()


class Criterion(ABC):
    """A privacy criterion bound to the sensitive values of one table."""

    name: str
    column: str | None = None  # the sensitive column it is about
    columns: tuple[str, ...] = ()  # or those whose tuple is the sensitive value
    context: tuple[str, ...] = ()  # sensitive columns that count as quasi-identifiers (Definition 4.6 of l-diversity)
    attributes: tuple[tuple[str, ...], ...] = ()  # per prior, the columns whose values make up its signatures
    relation: str = ">="  # between the figure and the bound, where it holds
    monotone: bool = True  # merging groups never turns safe into unsafe
    absorbs: bool = False  # merging a safe group with any people, safe or not, never makes it unsafe
    relative: bool = False  # depends on which values the released table has, or how often: suppression changes it
    alone: bool = True  # holds for a release iff it holds for each of its groups alone
    least_group: int = 1  # no group of fewer individuals can be safe
    demands: tuple[tuple[int, int], ...] = ()  # (largest, fewest) of a safe group: fewest outside its largest counts
    words: tuple[str, ...] = ("{figure}, asked for {bound}",)  # the message for each measure that fails
    earlier: State | None = None  # of groups that are published already, beside which those of the table must be safe

    @classmethod
    @abstractmethod
    def bind(cls, spec: Any, binder: Binder, where: str) -> Criterion:
        """Return the criterion of a config for the table of a binder; `where` is its place in the config, for messages
        about mistakes."""

    @abstractmethod
    def minima(self, groups: Groups, owner: Ints, owners: int) -> Floats:
        """Return minima [owners, minima] over the groups of each owner. `owner` is ascending."""

    @abstractmethod
    def judge(self, minima: Floats) -> NDArray[np.int8]:
        """Return SAFE, UNSAFE or CLOSE for each row of minima."""

    @abstractmethod
    def state(self, groups: Groups) -> State:
        """Return the minima over all groups of the batch, with their witnesses."""

    def beside(
        self, groups: Groups, owner: Ints, owners: int, state: State
    ) -> tuple[NDArray[np.int8], NDArray[np.bool_]]:
        """Return, for a release with a safe state to which the groups of each owner are added, SAFE, UNSAFE or CLOSE,
        and whether they lower none of its minima. `owner` is ascending."""
        minima = self.minima(groups, owner, owners)
        return self.judge(np.minimum(minima, state.values)), np.all(minima >= state.values, axis=1)

    def lowered(self, state: State, groups: Groups) -> State:
        """Return the minima over these groups as well; may reuse the arrays of the state."""
        return state.merge(self.state(groups))

    @abstractmethod
    def verdict(self, state: State) -> Verdict:
        """Return the exact verdict."""

    def with_earlier(self, state: State) -> State:
        """Return the minima over the groups of a state and those that are published already."""
        return state if self.earlier is None else state.merge(self.earlier)

    def holds(self, state: State) -> bool:
        """Return whether the exact verdict is safe, without the findings behind it."""
        return self.verdict(state).safe

    def safe_alone(self, groups: Groups, count: int) -> NDArray[np.bool_]:
        """Return which of this many groups are safe by themselves; those that were taken apart count as one."""
        owner = np.arange(count) if groups.row is None else groups.row
        judged = self.judge(self.minima(groups, owner, count))
        safe: NDArray[np.bool_] = judged == SAFE
        for group in np.flatnonzero(judged == CLOSE).tolist():
            safe[group] = self.holds(self.state(groups.part(group, group + 1)))
        return safe

    @abstractmethod
    def nearest(self, whole: Groups, finding: Finding) -> list[str]:
        """Return the nearest thresholds that hold for a whole table as one group that fails, changing one at a time."""

    def refusal(self, finding: Finding, name: Callable[[int], str]) -> str:
        """Return in words what was found and what was required; `name` gives the name of a sensitive value."""
        words = self.words[finding.about if isinstance(finding.about, int) else 0]
        return words.format(figure=f"{finding.figure:.6g}", bound=f"{finding.bound:.6g}")

    def details(self, verdict: Verdict, name: Callable[[int], str]) -> dict[str, Any]:
        """Return facts about a verdict that users get beside its figure and bound."""
        return {}


class GroupCriterion(Criterion):
    """A criterion that judges each group alone by one or more measures, each of which must reach its bound.

    A measure that comes closer to its bound than `NEAR` is compared exactly, on the whole group, and put on the right
    side of the bound (or on it), so that the floats alone decide afterwards.
    """

    bounds: Floats  # [measures]
    strict: bool = False  # measures must be above their bounds, not only at them
    headline: int | None = None  # the measure whose figure is always reported; otherwise that of the first that fails

    @abstractmethod
    def measure(self, groups: Groups) -> Floats:
        """Return measures [groups, measures]; lower is worse."""

    @abstractmethod
    def compare(self, groups: Groups, which: Ints, measure: int) -> Ints:
        """Return the signs of a measure of some groups less its bound, exactly."""

    @abstractmethod
    def figure_and_bound(self, measure: int, value: float) -> tuple[float, float]:
        """Return what users see of a measure: its figure, and the bound in the same terms."""

    def settled(self, groups: Groups) -> Floats:
        """Return the measures, exactly on the side of the bounds that they belong to."""
        measures = self.measure(groups)
        close = np.abs(measures - self.bounds) <= NEAR * np.maximum(np.abs(self.bounds), 1.0)
        for index in np.flatnonzero(close.any(axis=0)).tolist():
            which, bound = np.flatnonzero(close[:, index]), self.bounds[index]
            sign = self.compare(groups, which, index)
            measures[which, index] = np.where(
                sign == 0, bound, np.nextafter(bound, np.where(sign > 0, np.inf, -np.inf))
            )
        return measures

    def minima(self, groups: Groups, owner: Ints, owners: int) -> Floats:
        lowest = np.full((owners, len(self.bounds)), np.inf)
        np.minimum.at(lowest, owner, self.settled(groups))
        return lowest

    def judge(self, minima: Floats) -> NDArray[np.int8]:
        fine = minima > self.bounds if self.strict else minima >= self.bounds
        return np.where(fine.all(axis=1), SAFE, UNSAFE).astype(np.int8)

    def state(self, groups: Groups) -> State:
        measures = self.settled(groups)
        worst = measures.argmin(axis=0)
        return State(measures.min(axis=0), (groups.first + worst)[:, None])

    def verdict(self, state: State) -> Verdict:
        findings = []
        for index, value in enumerate(state.values.tolist()):
            bound = self.bounds[index]
            safe = bool(value > bound if self.strict else value >= bound)
            findings.append(Finding(safe, *self.figure_and_bound(index, value), int(state.witness[index, 0]), index))
        worst = next((finding for finding in findings if not finding.safe), findings[0])
        safe = all(finding.safe for finding in findings)
        shown = worst if self.headline is None else findings[self.headline]
        return Verdict(self.name, safe, shown.figure, shown.bound, worst.group, tuple(findings))


def exact(decimal_or_int: Any) -> Fraction:
    """Return the number exactly as written in the config."""
    return Fraction(str(decimal_or_int))
