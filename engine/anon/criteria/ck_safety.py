"""(c,k)-safety (Martin, Kifer, Machanavajjhala, Gehrke, Halpern, ICDE 2007), one sensitive value per individual.

An *atom* says that a person has a value. An adversary knows who is in which group and k implications from atoms (any
conjunction of them) to atoms (any disjunction). The *maximum disclosure* is the highest confidence in any atom that
such an adversary can reach over all random worlds that fit the release; a release is safe iff it is below c.

The worst k implications all lead from one atom to the same target atom (Theorem 9), so the disclosure is 1 / (1 +
ratio), ratio = the least Pr(target and k more atoms false) / Pr(target true) (Lemma 12). For a group of n people with
counts c_0 >= c_1 >= ... let

    f_h = least probability that h atoms about its people are all false
        = min over k_0 >= k_1 >= ... with sum h of  prod_i (n - i - c_0 - ... - c_{k_i - 1}) / (n - i)    (Lemma 13)
    F_h = f_{h+1} n / c_0, the same ratio with the target and h other atoms in this group

so that f_h = 0 iff the group has at most h values. Put the people of the best a atoms and of the best b atoms of one
group side by side, by descending k_i: sums stay and indices do not fall, so no factor grows, hence f_{a+b} <= f_a f_b
and F_{a+b} <= F_a f_b. Atoms that prefer the same group may thus be put there together, and with every minimum over
all groups

    ratio = min over h_0 + h_1 + ... = k of  (min F_{h_0}) (min f_{h_1}) (min f_{h_2}) ...

and the state is 2k + 1 minima. Groups judge themselves alone if k = 0, or if c = 1: then safe means that every group
has at least k + 2 values. Otherwise target and other atoms may prefer different groups, as the last example shows.

Monotone (Theorem 15), so that an unsafe whole table proves that no release is safe. For the target's person compare
what is left per target value in both parts of a merged group: the merged figure is a mediant, so that one part's is no
higher; repeat this for the other people, part by part. With suppression it stays so for c = 1: a group with
k + 2 values keeps them no matter who is merged into it.

With k *negated atoms* ("Ed does not have the flu") instead of implications the worst case rules out the target's k
next values: c_0 / (n - c_1 - ... - c_k) (Theorem 19), below c / (c + 1) iff recursive (c, k + 2)-diversity holds.

The paper's Figure 3, five men and five women. If Hannah has the flu then so has Charlie: 10/19. The worst single
implication rules out the other of two equally frequent values: 2/3, no more than with a negated atom.

>>> men, women = absences(5, (2, 2, 1)), absences(5, (2, 1, 1, 1))
>>> 1 / (1 + men[1].chance * Fraction(5, 2) * women[1].chance)
Fraction(10, 19)
>>> figure_3 = Groups.dense(np.array([[2, 2, 1, 0, 0], [2, 0, 1, 1, 1]]))
>>> curves = DisclosureCurves.from_groups(figure_3, max_k=2)
>>> [round(p, 3) for p in curves.implications()], [round(p, 3) for p in curves.negations()]
([0.4, 0.667, 1.0], [0.4, 0.667, 1.0])
>>> curves.implication_atoms(1)
[Person(group=0, target=True, ranks=(1,))]

A group with one very frequent value and one with two frequent values. The worst case for k = 2 has the target in the
first and two implications about one person of the second: either frequent value there would give the target away.

>>> two = np.zeros((2, 43), np.int64)
>>> two[0, :41], two[1, :12] = [60] + [1] * 40, [45, 45] + [1] * 10
>>> DisclosureCurves.from_groups(Groups.dense(two), max_k=2).implication_atoms(2)
[Person(group=0, target=True, ranks=()), Person(group=1, target=False, ranks=(0, 1))]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import floor, perm
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon.criteria.arithmetic import confidence_above, largest_below
from anon.criteria.protocol import (
    CLOSE,
    NEAR,
    SAFE,
    UNSAFE,
    Criterion,
    Finding,
    Floats,
    Groups,
    Ints,
    State,
    Verdict,
    exact,
)

if TYPE_CHECKING:
    from anon.config.criteria.ck_safety import CKSafety as Spec
    from anon.criteria.bind import Binder


class Absence(NamedTuple):
    """The least probability that some atoms about one group are all false, and how many atoms each person gets."""

    chance: Fraction
    people: tuple[int, ...]


class Person(NamedTuple):
    """Somebody the worst adversary knows of. If the person had a value of these ranks (by frequency in the group, 0 the
    most frequent), the target would have the most frequent value of its own group; of the target itself that rules
    the values out."""

    group: int
    target: bool
    ranks: tuple[int, ...]


class CKSafety(Criterion):
    """Maximum disclosure under k implications < c. State: the minima of F_0..F_k, then of f_1..f_k."""

    name = "ck_safety"
    relation = "<"
    words = ("maximum disclosure {figure}, asked for less than {bound}",)

    def __init__(self, column: str, c: Fraction, k: int) -> None:
        self.column, self.c, self.k = column, c, k
        self.least_ratio = 1 / c - 1
        self._least = float(self.least_ratio)
        self._tolerance = NEAR * self._least
        self.alone = k == 0 or c == 1
        self.absorbs = c == 1
        # F_k is at most n - k - 1, which n different values reach
        self.least_group = floor(k + 1 / c) + 1

    @classmethod
    def bind(cls, spec: Spec, binder: Binder, where: str) -> CKSafety:
        return cls(str(spec.sensitive), exact(spec.c), spec.k)

    def minima(self, groups: Groups, owner: Ints, owners: int) -> Floats:
        values = np.full((owners, 2 * self.k + 1), np.inf)
        self._fold(groups, owner, values, np.empty((0, 2 * self.k + 1, self.k + 3), np.int64))
        return values

    def state(self, groups: Groups) -> State:
        values = np.full((1, 2 * self.k + 1), np.inf)
        witness = np.zeros((1, 2 * self.k + 1, self.k + 3), np.int64)
        self._fold(groups, np.zeros(len(groups), np.int64), values, witness)
        return State(values[0], witness[0])

    def _fold(self, groups: Groups, owner: Ints, values: Floats, witness: Ints) -> None:
        from anon.criteria import kernels_ck

        kernels_ck.fold_ck(groups, owner, self.k, values, witness)

    def judge(self, minima: Floats) -> NDArray[np.int8]:
        distance = _ratios(minima, self.k) - self._least
        unsafe = (minima == 0).any(axis=1) | (distance < -self._tolerance)
        close = np.abs(distance) <= self._tolerance
        return np.where(unsafe, UNSAFE, np.where(close, CLOSE, SAFE)).astype(np.int8)

    def holds(self, state: State) -> bool:
        judged = self.judge(state.values[None, :])[0]
        return self._exactly(state) > self.least_ratio if judged == CLOSE else bool(judged == SAFE)

    def verdict(self, state: State) -> Verdict:
        if np.isinf(state.values).all():
            return Verdict(self.name, True, 0.0, float(self.c), 0)
        ratio = _split(state, self.k).ratio
        if self.judge(state.values[None, :])[0] == CLOSE:
            ratio = self._exactly(state)
        safe, figure, bound = self.holds(state), float(1 / (1 + ratio)), float(self.c)
        atoms = _atoms(state, self.k)
        finding = Finding(safe, figure, bound, atoms[0].group, tuple(atoms))
        return Verdict(self.name, safe, figure, bound, finding.group, (finding,))

    def _exactly(self, state: State) -> Fraction:
        """Return the ratio in exact arithmetic, from the groups behind the minima."""
        found = [(row[0], absences(row[0], tuple(row[1:-1])), row[1]) for row in state.witness.tolist()]
        target = [chances[h + 1].chance * Fraction(n, c_0) for h, (n, chances, c_0) in enumerate(found[: self.k + 1])]
        other = [chances[h + 1].chance for h, (_, chances, _) in enumerate(found[self.k + 1 :])]
        result: Fraction = _least_split(target, other).ratio
        return result

    def nearest(self, whole: Groups, finding: Finding) -> list[str]:
        def holds(k: int) -> bool:
            weaker = CKSafety(str(self.column), self.c, k)
            return weaker.holds(weaker.state(whole))

        fewer = largest_below(self.k, holds)
        return confidence_above(finding.figure) + ([f"k = {fewer}"] if fewer is not None else [])


@dataclass(frozen=True)
class DisclosureCurves:
    """The maximum disclosure for 0..max_k pieces of knowledge, from minima that merge like those of a criterion."""

    max_k: int
    of_implications: State
    of_negations: State  # minima of (n - c_0 - ... - c_k) / c_0, which is 1 / disclosure - 1

    @classmethod
    def from_groups(cls, groups: Groups, max_k: int) -> DisclosureCurves:
        """Return the curves of a batch of at least one group."""
        from anon.criteria.kernels_counts import fill_largest

        top = np.zeros((len(groups), max_k + 1), np.int64)
        fill_largest(groups.start, groups.count, top)
        ratios = (groups.n[:, None] - top.cumsum(axis=1)) / top[:, :1]
        negations = State(ratios.min(axis=0), (groups.first + ratios.argmin(axis=0))[:, None])
        return cls(max_k, CKSafety("", Fraction(1), max_k).state(groups), negations)

    def merge(self, other: DisclosureCurves) -> DisclosureCurves:
        """Return the disclosure of the groups of both."""
        implications = self.of_implications.merge(other.of_implications)
        return DisclosureCurves(self.max_k, implications, self.of_negations.merge(other.of_negations))

    def implications(self) -> list[float]:
        """Return the maximum disclosure under 0, 1, ..., max_k implications."""
        return [1 / (1 + _split(self.of_implications, k).ratio) for k in range(self.max_k + 1)]

    def negations(self) -> list[float]:
        """Return the maximum disclosure under 0, 1, ..., max_k negated atoms."""
        found: list[float] = (1 / (1 + self.of_negations.values)).tolist()
        return found

    def implication_atoms(self, k: int) -> list[Person]:
        """Return the people and values of k implications that reach the maximum, the target first."""
        return _atoms(self.of_implications, k)

    def negation_atoms(self, k: int) -> list[Person]:
        """Return the target and its values ruled out by k negated atoms that reach the maximum."""
        return [Person(int(self.of_negations.witness[k, 0]), True, tuple(range(1, k + 1)))]


class Split(NamedTuple):
    """How the atoms are spread over groups: beside the target, and in other places."""

    ratio: Any  # float or Fraction
    beside: int
    elsewhere: tuple[int, ...]


def _least_split(target: Sequence[Any], other: Sequence[Any]) -> Split:
    """Return the split of len(other) atoms with the least ratio; of equal ones that with fewer places."""
    best: list[tuple[Any, tuple[int, ...]]] = [(1, ())]
    for h in range(1, len(other) + 1):
        last = range(h, 0, -1)
        best.append(min(((best[h - j][0] * other[j - 1], (*best[h - j][1], j)) for j in last), key=lambda b: b[0]))
    splits = (Split(target[-1 - h] * ratio, len(other) - h, places) for h, (ratio, places) in enumerate(best))
    return min(splits, key=lambda split: split.ratio)


def _split(state: State, k: int) -> Split:
    """Return the worst split of k atoms, in floats; the state may be one for more atoms."""
    values, most = state.values.tolist(), len(state.values) // 2
    return _least_split(values[: k + 1], values[most + 1 : most + 1 + k])


def _ratios(minima: Floats, k: int) -> Floats:
    """Return the least ratio of every row, in floats."""
    target, other = minima[:, : k + 1], minima[:, k + 1 :]
    elsewhere = np.ones_like(target)
    for h in range(1, k + 1):
        elsewhere[:, h] = (elsewhere[:, h - 1 :: -1] * other[:, :h]).min(axis=1)
    found: Floats = (target * elsewhere[:, ::-1]).min(axis=1)
    return found


def _atoms(state: State, k: int) -> list[Person]:
    split, most = _split(state, k), len(state.values) // 2
    people = []
    for place, h in enumerate((split.beside, *split.elsewhere)):
        row = state.witness[most + h if place else h].tolist()
        for index, atoms in enumerate(absences(row[0], tuple(row[1:-1]))[h if place else h + 1].people):
            target = place == 0 and index == 0
            people.append(Person(row[-1], target, tuple(range(int(target), atoms))))
    return people


@lru_cache(maxsize=10_000)
def absences(n: int, top: tuple[int, ...]) -> tuple[Absence, ...]:
    """Return f_0, f_1, ..., f_len(top) of a group of n people with these largest counts, exactly.

    With i people the denominator is n (n - 1) ... (n - i + 1) whatever the atoms, so only numerators are compared.
    """
    most, named = len(top), list(accumulate(top, initial=0))
    numerator: dict[tuple[int, int], tuple[int, tuple[int, ...]]] = {(0, 0): (1, ())}
    for j in range(most, 0, -1):
        for i in range(min(most // j, n)):
            factor = max(n - i - named[j], 0)
            for h in range(i * j, most - j + 1):
                if (i, h) in numerator:
                    product, people = numerator[i, h]
                    found = (product * factor, (*people, j))
                    key = (i + 1, h + j)
                    numerator[key] = min(numerator.get(key, found), found, key=lambda each: each[0])
    reached = [[(i, numerator[i, h]) for i in range(h + 1) if (i, h) in numerator] for h in range(most + 1)]
    chances = [[Absence(Fraction(found[0], perm(n, i)), found[1]) for i, found in each] for each in reached]
    return tuple(min(each, key=lambda absence: absence.chance) for each in chances)
