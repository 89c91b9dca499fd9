"""Skyline privacy (Chen, LeFevre, Ramakrishnan, VLDB 2007).

An adversary who wants to know whether a target has the value sigma has knowledge (l, k, m), at most. Where
individuals have one value each: l values the target does not have, the values of k other people, and m people of whom
any one having sigma implies that the target has it too. Where they have a set or a multiset of values: l values that
imply sigma for the target, k other people without sigma, and m people as before. The *breach probability* is the
highest confidence such an adversary can reach over all random worlds that fit the release; a release is safe for a
point (l, k, m, c) iff it is below c. Each value has its own points.

By Theorem 2 of the paper, with n people in a group, s occurrences of sigma, and o_1, ..., o_l its largest other
counts,

    breach = 1 / (1 + min(SS1, SS2 * SS5, SS3 * SS4))
    SS1 = min T(l, k) V(m, k + 1)   SS2 = min T(l, 0)   SS3 = min T(l, k)   SS4 = min V(m, 0)   SS5 = min V(m, k)

    single    T = (n - s - sum o_i - k) / s                    V = prod_{i<m} (n - s - k - i) / (n - k - i)
    set       T = (n - s - k) / s * prod (n - o_i) / n         V as for single
    multiset  T = a / (1 - a) * ((n - 1) / n)^(sum o_i)        V = ((n - k - m) / (n - k))^s
              with a = ((n - k - 1) / (n - k))^s

where each minimum runs over all groups, so the state is five minima per (value, point). Boundaries: a group without
sigma has T = inf and V = 1; a numerator at or below zero is zero before any division; missing values count zero. In
the multiset case a world is an assignment of labelled occurrences.

Monotone for single values (Theorem 4 and its corollary), so that an unsafe whole table proves that no release is
safe; not for sets and multisets, where merging may raise the breach probability:

>>> apart = [Counts(1, 0, (1, 1)), Counts(2, 1, (0, 0))]
>>> 1 / (1 + apart[1].target(0, "set")), 1 / (1 + Counts(3, 1, (1, 1)).target(0, "set"))
(Fraction(1, 2), Fraction(9, 17))
>>> 1 / (1 + Counts(2, 1, (0,)).target(0, "multiset")), 1 / (1 + Counts(3, 1, (2,)).target(0, "multiset"))
(Fraction(1, 2), Fraction(9, 17))

Points with m = 0 judge each group alone; with m > 0 the target and its family may be in different groups. So do points
with c = 1: they ask for T > 0 and V > 0, and if T(l, k) V(m, k + 1) > 0 in every group, no minimum is zero.

If all values have the same points, all with c = 1, skylines of single values stay monotone with suppression. A group is
safe then iff for each point more than k of its people have none of its l + 1 most frequent values, and more than k + m
do not have its most frequent value. When others are merged into it, the people outside any l + 1 values of the whole
include those of the group outside these values, who are at least those outside its own l + 1 most frequent ones; and
likewise for one value. Values with points of their own may ask for more than those of the group they come to.

Figures 1 to 3 of the paper, group 2 = {Flu, Cancer, Flu, AIDS}, target Tom, sigma = AIDS. Nothing known: 1/4. Tom
does not have Cancer: 1/3. Gary has Flu as well: 1/2.

>>> Counts(4, 1).breach(k=0, m=0)
Fraction(1, 4)
>>> Counts(4, 1, (1,)).breach(k=0, m=0)
Fraction(1, 3)
>>> Counts(4, 1, (1,)).breach(k=1, m=0)
Fraction(1, 2)

The worst case is worse than the paper's story: not Flu (two of the four) gives 1/2 at once, with Gary's Cancer 1.

>>> Counts(4, 1, (2,)).breach(k=0, m=0), Counts(4, 1, (2,)).breach(k=1, m=0)
(Fraction(1, 2), Fraction(1, 1))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon.criteria.arithmetic import confidence_above, largest_below
from anon.criteria.protocol import CLOSE, NEAR, SAFE, Criterion, Finding, Floats, Groups, Ints, State, Verdict, exact
from anon.criteria.skyline_bounds import demands, least_size

if TYPE_CHECKING:
    from anon.config.criteria.skyline import Point as PointSpec
    from anon.config.criteria.skyline import Skyline as Spec
    from anon.criteria.bind import Binder

STATISTICS = 5
KINDS = ("single", "set", "multiset")
MANY = 1_000  # relatives; hints are not worth exact products of more factors than this
FEW = 64  # groups; more than these are worth a memo
MEMO = 1 << 19  # numbers in it, at most
HEAD = 4  # of each of its rows, before figures: FIGURES of kernels_fold.c
SMALLEST = 1e-140  # below this the kernels only separate zero from above zero: decide exactly


@dataclass(frozen=True)
class Point:
    """Knowledge (l, k, m) against which the confidence must stay below c."""

    l: int
    k: int
    m: int
    c: Fraction

    @property
    def least_ratio(self) -> Fraction:
        """Return what the negated ratio must be above: breach < c iff NR > 1/c - 1."""
        return 1 / self.c - 1


@dataclass(frozen=True)
class Counts:
    """What the formulas need of one group: n people, s occurrences of sigma, the l largest other counts."""

    n: int
    s: int
    others: tuple[int, ...] = ()

    def target(self, k: int, kind: str = "single") -> Fraction | None:
        """Return T, exactly; None stands for infinity."""
        n, s = self.n, self.s
        if s == 0:
            return None
        if kind == "single":
            return Fraction(max(n - s - sum(self.others) - k, 0), s)
        if kind == "set":
            return Fraction(max(n - s - k, 0), s) * prod(Fraction(n - other, n) for other in self.others)
        if n - k - 1 <= 0:
            return Fraction(0)
        nobody = power(Fraction(n - k - 1, n - k), s)
        return nobody / (1 - nobody) * power(Fraction(n - 1, n), sum(self.others))

    def family(self, m: int, k: int, kind: str = "single") -> Fraction:
        """Return V, exactly."""
        n, s = self.n, self.s
        if s == 0 or m == 0:
            return Fraction(1)
        if kind == "multiset":
            return power(Fraction(n - k - m, n - k), s) if n - k - m > 0 else Fraction(0)
        if n - s - k - m + 1 <= 0:
            return Fraction(0)
        return prod((Fraction(n - s - k - i, n - k - i) for i in range(m)), start=Fraction(1))

    def breach(self, k: int, m: int, kind: str = "single") -> Fraction:
        """Return the breach probability when target, family and known people are all in this group."""
        target = self.target(k, kind)
        return Fraction(0) if target is None else 1 / (1 + target * self.family(m, k + 1, kind))


def power(base: Fraction, exponent: int) -> Fraction:
    """Return base ** exponent; where that has over a million bits, to a hundred digits."""
    if exponent * base.denominator.bit_length() <= 1_000_000:
        return base**exponent
    with localcontext(prec=110):
        return Fraction((Decimal(base.numerator) / Decimal(base.denominator)) ** exponent)


@dataclass(frozen=True)
class Slot:
    """Five minima of the state: one point, for one value or (where only single groups matter) for several."""

    value: int  # code of the value, -1 when shared
    point: Point


class SlotArrays(NamedTuple):
    """The slots as kernels take them: those of value v are of[start[v]:start[v + 1]]; what is known about each: its l,
    k and m, and where its l is among all; the largest l."""

    start: Ints
    of: Ints
    knowledge: Ints
    deepest: int

    @property
    def arrays(self) -> tuple[Ints, Ints, Ints]:
        """Return the arguments of kernels."""
        return self.start, self.of, self.knowledge


class Skyline(Criterion):
    """breach < c for every (value, point); `points[code]` lists the points of a sensitive value, none if exempt.

    With `shared`, values with an equal point and m = 0 share one slot: the same verdict from fewer minima, which is
    what a search wants; without it every (value, point) has its own finding.
    """

    name = "skyline"
    relation = "<"

    def __init__(
        self, column: str, points: list[list[Point]], shared: bool = False, multiplicity: str = "single"
    ) -> None:
        self.column, self.multiplicity = column, multiplicity
        self.monotone = multiplicity == "single"
        self.slots: list[Slot] = []
        index: dict[tuple[int, Point], int] = {}
        start, slot_of = [0], []
        for code, own in enumerate(points):
            for point in own:
                key = (-1 if shared and point.m == 0 else code, point)
                if key not in index:
                    index[key] = len(self.slots)
                    self.slots.append(Slot(*key))
                slot_of.append(index[key])
            start.append(len(slot_of))
        self._asked = np.flatnonzero(np.diff(start))
        depth = sorted({slot.point.l for slot in self.slots})
        self._depth = np.array(depth, np.int64)
        knowledge = [(p.l, p.k, p.m, depth.index(p.l)) for p in (slot.point for slot in self.slots)]
        self._slots = SlotArrays(
            np.array(start, np.int64), np.array(slot_of, np.int64), np.array(knowledge, np.int64).reshape(-1, 4),
            max(depth, default=0),
        )  # fmt: skip
        self._least = np.array([float(s.point.least_ratio) for s in self.slots])
        self._tolerance = np.where(self._least > 0, np.maximum(NEAR * self._least, SMALLEST), 0.0)
        self.alone = all(slot.point.m == 0 or slot.point.c == 1 for slot in self.slots)
        same = len(set(map(frozenset, points))) <= 1
        self.absorbs = self.monotone and same and all(slot.point.c == 1 for slot in self.slots)
        exempt = any(not own for own in points)
        if multiplicity == "single" and points and not exempt:
            self.least_group = min(least_size(own, len(points)) for own in set(map(tuple, points)))
            self.demands = demands(points)
        self._width = 3 + self._slots.deepest

    @classmethod
    def bind(cls, spec: Spec, binder: Binder, where: str) -> Skyline:
        points = [[_point(point) for point in spec.points] for _ in binder.texts(spec)]
        for code, own in zip(binder.codes(spec.values, spec, f"{where}.values"), spec.values.values()):
            if code is not None:
                points[code] = [] if isinstance(own, str) else [_point(point) for point in own]
        return cls(str(spec.sensitive), points, binder.shared, binder.values.multiplicity)

    def minima(self, groups: Groups, owner: Ints, owners: int) -> Floats:
        from anon.criteria import kernels_skyline

        values = self._empty(owners)
        kernels_skyline.lower_minima(KINDS.index(self.multiplicity), groups, self._slots, owner, values)
        return values

    def state(self, groups: Groups) -> State:
        values = self._empty(1)[0]
        return self.lowered(State(values, np.zeros((len(values), self._width), np.int64)), groups)

    def lowered(self, state: State, groups: Groups) -> State:
        from anon.criteria import kernels_skyline

        memo = self._memo(groups)
        kernels_skyline.fold(
            KINDS.index(self.multiplicity), groups, self._slots, self._asked, self._depth, memo, state.values,
            state.witness,
        )  # fmt: skip
        return State(state.values, state.witness)

    def beside(
        self, groups: Groups, owner: Ints, owners: int, state: State
    ) -> tuple[NDArray[np.int8], NDArray[np.bool_]]:
        from anon.criteria import kernels_skyline

        verdict, lowers = np.full(owners, SAFE, np.int8), np.zeros(owners, np.int8)
        bounds = self._least, self._tolerance
        kernels_skyline.beside(
            KINDS.index(self.multiplicity), groups, self._slots, owner, bounds, state.values, verdict, lowers
        )
        return verdict, lowers == 0

    def _empty(self, owners: int) -> Floats:
        return np.tile(np.array([np.inf, np.inf, np.inf, 1.0, 1.0]), (owners, len(self.slots)))

    def _memo(self, groups: Groups) -> Ints:
        """Return the table in which `fold` remembers groups: a power of two of rows, none where it is not worth it."""
        width = HEAD + max(self._width, 2 * len(self._depth))
        worth = len(groups) > FEW and self.multiplicity == "single"
        rows = min(len(groups), MEMO // width, 2 * len(self._slots.start) * int(groups.n.max())) if worth else 0
        return np.zeros((1 << rows.bit_length() >> 1, width), np.int64)

    def judge(self, minima: Floats) -> NDArray[np.int8]:
        from anon.criteria import kernels_skyline

        verdict = np.empty(len(minima), np.int8)
        kernels_skyline.judge(minima, self._least, self._tolerance, verdict)
        return verdict

    def verdict(self, state: State) -> Verdict:
        if not self.slots:
            return Verdict(self.name, True, 0.0, 1.0, 0)
        ratios = _ratios(state.values[None, :])[0]
        lowest = ratios.argmin(axis=1)
        ratio, slots = ratios.min(axis=1), range(len(self.slots))
        group = state.witness.reshape(-1, STATISTICS, self._width)[slots, lowest, -1].tolist()
        safe, breach = (ratio > self._least).tolist(), (1 / (1 + ratio)).tolist()
        for i in self._close(ratio - self._least):
            if ratio[i] == 0:  # exactly: what is above zero stays above it, so the breach is certain
                continue
            exactly = self._exactly(i, state.witness)
            safe[i], breach[i] = exactly < self.slots[i].point.c, float(exactly)
        findings = tuple(
            Finding(safe[i], breach[i], float(slot.point.c), group[i], slot) for i, slot in enumerate(self.slots)
        )
        highest = max(findings, key=lambda f: (f.figure, not f.safe, -f.bound))
        return Verdict(self.name, all(safe), highest.figure, highest.bound, highest.group, findings)

    def holds(self, state: State) -> bool:
        judged = self.judge(state.values[None, :])[0]
        if judged != CLOSE:
            return bool(judged == SAFE)
        distance = _ratios(state.values[None, :])[0].min(axis=1) - self._least
        return all(self._exactly(i, state.witness) < self.slots[i].point.c for i in self._close(distance))

    def _close(self, distance: Floats) -> list[int]:
        return np.flatnonzero(np.abs(distance) <= self._tolerance).tolist()

    def _exactly(self, index: int, witness: Ints) -> Fraction:
        rows = witness.reshape(-1, STATISTICS, self._width)[index, :, :-1].tolist()
        counts = [Counts(n, s, tuple(others)) for n, s, *others in rows]
        return _exact_breach(self.slots[index].point, counts, self.multiplicity)

    def refusal(self, finding: Finding, name: Callable[[int], str]) -> str:
        slot: Slot = finding.about
        p = slot.point
        return (
            f"{name(slot.value)} at (l, k, m) = ({p.l}, {p.k}, {p.m}) has breach probability {finding.figure:.6g}, "
            f"not below {float(p.c):g}"
        )

    def details(self, verdict: Verdict, name: Callable[[int], str]) -> dict[str, Any]:
        return {"points": [_point_facts(finding, name) for finding in verdict.findings]}

    def nearest(self, whole: Groups, finding: Finding) -> list[str]:
        slot: Slot = finding.about
        point = slot.point
        counts = dict(zip(whole.value.tolist(), whole.count.tolist()))
        s = counts.pop(slot.value, 0)
        others = sorted(counts.values(), reverse=True)

        def holds(p: Point) -> bool:
            counts = Counts(int(whole.n[0]), s, tuple(others[: p.l]))
            return p.m <= MANY and counts.breach(p.k, p.m, self.multiplicity) < point.c

        def weaker_holds(name: str, number: int) -> bool:
            return holds(replace(point, **{name: number}))  # type: ignore[arg-type]

        words = confidence_above(finding.figure)
        for name in ("l", "k", "m"):
            fewer = largest_below(getattr(point, name), partial(weaker_holds, name))
            if fewer is not None:
                words.append(f"{name} = {fewer}")
        return words


def _point_facts(finding: Finding, name: Callable[[int], str]) -> dict[str, Any]:
    """Return the findings about a point of a value, for users."""
    slot: Slot = finding.about
    p = slot.point
    return {
        "value": name(slot.value), "l": p.l, "k": p.k, "m": p.m, "c": float(p.c), "breach": finding.figure,
        "safe": finding.safe, "worst_group": finding.group,
    }  # fmt: skip


def _ratios(minima: Floats) -> Floats:
    """Return the three negated ratios of Theorem 2 per row and slot; inf where no group has the value (never inf *
    0)."""
    from anon.criteria import kernels_skyline

    ratios = np.empty((len(minima), minima.shape[1] // STATISTICS, 3))
    kernels_skyline.ratios(minima, ratios)
    return ratios


def _exact_breach(point: Point, counts: list[Counts], kind: str) -> Fraction:
    """Return the breach probability in exact arithmetic, from the groups behind SS1 to SS5."""
    one, two, three, four, five = counts
    ratios = [
        target.target(k_target, kind) * family.family(point.m, k_family, kind)  # type: ignore[operator]
        for target, k_target, family, k_family in (
            (one, point.k, one, point.k + 1),
            (two, 0, five, point.k),
            (three, point.k, four, 0),
        )
        if target.s
    ]
    return 1 / (1 + min(ratios)) if ratios else Fraction(0)


def _point(point: PointSpec) -> Point:
    return Point(point.l, point.k, point.m, exact(point.c))
