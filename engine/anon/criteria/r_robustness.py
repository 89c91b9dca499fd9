"""r-robustness (Wong, Fu, Wang, Xu, Pei, Yu: Probabilistic Inference Protection on Anonymized Data, ICDM 2010).

An adversary knows who is in a group, which values the group has, and a *prior*: for everybody with the same attributes
(the same *signature* s) the probability f(s, x) of each value x. A world hands the group's values to its people and has
the product of their priors as weight; the *posterior* p(t : x) is the share of the weight that is in worlds where t has
x. A group is safe iff no posterior is above 1/r. Each prior is an adversary of its own. A prior that names only some
values is binary: it knows each of them against all others together, f and 1 - f.

The condition of the paper's Theorem 1 guarantees this for binary priors only (it allows 8/9 against a promised 1/2:
two people, x = (.1, .1), y = (.1, .8)). What holds for every prior: swapping the values of t, who has x, and u, who has
another, turns worlds into worlds and changes their weight by a factor of at most lam_x lam_o, where lam_x is the
largest over the smallest prior of x in the group and lam_o the largest such ratio of another value in it. Hence u has
x at least 1 / (lam_x lam_o) times as likely as t, and with C copies of x among N people

    p(t : x) <= C / (1 + (N - 1) / (lam_x lam_o))

which is the paper's condition if the prior is binary and C = 1. With a prior of zero the bound is 1. Where the bound
is above 1/r the posterior itself decides, if it can be had: worlds are added up people by people over the states "how
many copies of each value are gone", or value by value over "how many people of each signature are served", whichever
are fewer, up to LIMIT states. Otherwise the group is not safe. Nor is one of fewer than r people, or one whose values
no world with a positive weight explains.

>>> Worlds.from_words([(1, ".1 .1"), (1, ".1 .8")], [1, 1]).posterior()
Fraction(8, 9)

Tables III and IV of the paper: Alan and Betty, lung cancer and hypertension. Known that men have the first with
probability .1 and women with .003, it is Alan's with 97 %, which is also the bound.

>>> alan_and_betty = Worlds.from_words([(1, ".1 .9"), (1, ".003 .997")], [1, 1])
>>> float(alan_and_betty.posterior()), alan_and_betty.bound() == alan_and_betty.posterior()
(0.9736328125, True)

Not monotone: three people with a prior of .1 and one copy of x among them, three with .001 and another. Each group is
safe for r = 2. Together both copies go to the first three.

>>> likely, unlikely = Worlds.from_words([(3, ".1 .9")], [1, 2]), Worlds.from_words([(3, ".001 .999")], [1, 2])
>>> likely.posterior(), unlikely.posterior()
(Fraction(1, 3), Fraction(1, 3))
>>> round(float(Worlds.from_words([(3, ".1 .9"), (3, ".001 .999")], [2, 4]).posterior()), 3)
0.658
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import ceil, lcm, prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon.config import PriorEstimate, PriorFile
from anon.criteria.arithmetic import at_most, signs
from anon.criteria.prior_files import read_prior
from anon.criteria.priors import Prior, estimated
from anon.criteria.priors import bind as bind_prior
from anon.criteria.protocol import NEAR, Finding, Floats, GroupCriterion, Groups, Ints, State, Verdict, exact
from anon.errors import ConfigError

if TYPE_CHECKING:
    from anon.config.criteria.r_robustness import RRobustness as Spec
    from anon.criteria.bind import Binder

LIMIT = 4096  # states over which worlds are added up
CHUNK = 1024  # groups whose posteriors are asked for at once, worst bounds first


@dataclass(frozen=True)
class Worlds:
    """One group as an adversary sees it, exactly: the people of each signature, the copies of each value, and the prior
    of each value for each signature. Asked for are the posteriors of the first `asked` values."""

    people: list[int]
    copies: list[int]
    p: list[list[Fraction]]
    asked: int

    @classmethod
    def from_words(cls, signatures: Sequence[tuple[int, str]], copies: list[int]) -> Worlds:
        """Return worlds from pairs of people and their priors as words; two values are x and not x."""
        rows = [[Fraction(word) for word in words.split()] for _, words in signatures]
        return cls([people for people, _ in signatures], copies, rows, 1 if len(copies) == 2 else len(copies))

    def bound(self) -> Fraction:
        """Return the bound on the largest posterior."""
        columns = list(zip(*self.p))
        if len(columns) == 1 or not all(map(all, columns)):
            return Fraction(1)
        lam = [max(column) / min(column) for column in columns]
        others = [max(lam[:x] + lam[x + 1 :]) for x in range(self.asked)]
        n = sum(self.people)
        chances = (c / (1 + (n - 1) / (own * o)) for c, own, o in zip(self.copies, lam, others))
        largest: Fraction = max(chances)
        return min(largest, Fraction(1))

    def posterior(self) -> Fraction | None:
        """Return the largest posterior; None with more than LIMIT states, or without any possible world."""
        by_people = _states(self.copies) <= _states(self.people)
        kinds, most = (self.people, self.copies) if by_people else (self.copies, self.people)
        if _states(most) > LIMIT:
            return None
        whole = lcm(*(p.denominator for row in self.p for p in row))
        w = [[int(p * whole) for p in row] for row in self.p]
        weight = hand_out(kinds, most, w if by_people else list(zip(*w)))
        if not sum(weight[0]):
            return None
        chance = [[Fraction(cell, sum(row)) for cell in row] for row in weight]
        if by_people:
            return max(p for row in chance for p in row[: self.asked])
        return max(p * c / m for row, c in zip(chance[: self.asked], kinds) for p, m in zip(row, most))


def _states(most: Sequence[int]) -> int:
    return prod(count + 1 for count in most)


def hand_out(kinds: Sequence[int], most: Sequence[int], w: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return [a][b]: the weights of all worlds in which an item of kind a goes to a place of kind b, added up; of whole
    numbers exactly, as the kernel does it in floating point.

    There are kinds[a] items and most[b] places of a kind, the same number of both; a world has the product of its
    w[a][b] as weight. A state says how many places of each kind the first items have filled; forward[state] adds up the
    ways to get there, backward[state] those from there to the end.

    >>> hand_out([1, 1], [1, 1], [[1, 2], [3, 4]])
    [[4, 6], [6, 4]]
    """
    items = [a for a, count in enumerate(kinds) for _ in range(count)]
    states = [used[::-1] for used in product(*(range(count + 1) for count in reversed(most)))]
    stride = [_states(most[:b]) for b in range(len(most))]
    forward, backward = [1] + [0] * (len(states) - 1), [0] * (len(states) - 1) + [1]
    for at, used in enumerate(states[1:], 1):
        row = w[items[sum(used) - 1]]
        forward[at] = sum(forward[at - stride[b]] * row[b] for b, filled in enumerate(used) if filled)
    weight = [[0] * len(most) for _ in kinds]
    for at in range(len(states) - 2, -1, -1):
        placed = sum(states[at])
        a = items[placed]
        last = placed + 1 == len(items) or items[placed + 1] != a
        for b, filled in enumerate(states[at]):
            if filled < most[b]:
                way = w[a][b] * backward[at + stride[b]]
                backward[at] += way
                weight[a][b] += last * forward[at] * way
    return weight


class PriorFinding(NamedTuple):
    """What a finding is about: the prior, and whether its figure is the posterior itself or the bound on it."""

    prior: int
    exact: bool


@dataclass(frozen=True)
class Questions:
    """What a prior has to say about a batch: one question for each group, or for each named value in it."""

    group: Ints
    entry: Ints  # place of the value in the batch, -1 for all values of the group

    def about(self, which: Ints, groups: int) -> Questions:
        """Return the questions about some groups."""
        wanted = np.zeros(groups, bool)
        wanted[which] = True
        mine = wanted[self.group]
        return Questions(self.group[mine], self.entry[mine])


class ScaledPrior:
    """A prior in floating point, each column scaled to a largest probability of 1, which changes no posterior and no
    bound; `place` is that of its signatures in a batch."""

    def __init__(self, prior: Prior, place: int) -> None:
        self.prior, self.place, self.binary = prior, place, prior.binary
        self.named = np.zeros(len(prior.values), bool)
        self.named[prior.named] = True
        self.yes = _scaled(prior.p.floats(0.0))
        self.no = _scaled(prior.p.complements(1.0)) if self.binary else self.yes  # which nobody asks for then
        asked = (self.yes[:, self.named], self.no[:, self.named]) if self.binary else (self.yes,)
        self.positive = all(bool((p > 0).all()) for p in asked)

    def questions(self, groups: Groups) -> Questions:
        if not self.binary:
            every = np.arange(len(groups))
            return Questions(every, np.full(len(groups), -1))
        entry = np.flatnonzero(self.named[groups.value])
        return Questions(np.searchsorted(groups.start, entry, side="right") - 1, entry)

    def bounds(self, groups: Groups, asked: Questions) -> Floats:
        """Return one over the bound on the posterior that each question asks for."""
        from anon.criteria import kernels_robustness as kernels

        mine, inverse = groups.signatures[self.place], np.empty(len(asked.group))
        if self.binary:
            kernels.bound_values(asked.group, asked.entry, groups, mine, self.yes, self.no, inverse)
            return inverse
        every = np.empty(len(groups))
        kernels.bound_groups(groups, mine, self.yes, every)
        return every[asked.group]

    def posteriors(self, groups: Groups, asked: Questions) -> Floats:
        """Return one over the largest posterior that each question asks for; nan where it cannot be computed."""
        from anon.criteria import kernels_robustness as kernels

        mine, inverse = groups.signatures[self.place], np.empty(len(asked.group))
        kernels.largest_posteriors(asked.group, asked.entry, groups, mine, self.yes, self.no, LIMIT, inverse)
        return inverse

    def worlds(self, groups: Groups, group: int, entry: int) -> Worlds:
        """Return a question in exact arithmetic."""
        mine = groups.signatures[self.place]
        served = slice(mine.start[group], mine.start[group + 1])
        rows = [self.prior.p[code] for code in mine.code[served].tolist()]
        people = mine.count[served].tolist()
        if entry < 0:
            had = slice(groups.start[group], groups.start[group + 1])
            codes, copies = groups.value[had].tolist(), groups.count[had].tolist()
            return Worlds(people, copies, [[row[code] or Fraction(0) for code in codes] for row in rows], len(codes))
        value, count, n = int(groups.value[entry]), int(groups.count[entry]), int(groups.n[group])
        f = [row[value] or Fraction(0) for row in rows]
        if count == n:
            return Worlds(people, [n], [[Fraction(1)]] * len(f), 1)
        return Worlds(people, [count, n - count], [[p, 1 - p] for p in f], 1)


def _scaled(p: Floats) -> Floats:
    largest = p.max(axis=0, initial=0.0)
    p /= np.where(largest > 0, largest, 1.0)
    return p


class RRobustness(GroupCriterion):
    """Every posterior <= 1/r, for each prior on its own. One measure per prior: one over the largest posterior of a
    group, or over its bound where that is enough or all there is.

    The signatures of `priors[i]` are `groups.signatures[first + i]`.
    """

    name = "r_robustness"
    relation = "<="
    monotone = False

    def __init__(self, column: str, r: Fraction, priors: Sequence[Prior], first: int = 0) -> None:
        self.column, self.r, self.first, self.least_group = column, r, first, ceil(r)
        self.bounds, self.priors = np.full(len(priors), float(r)), list(priors)
        self._adversaries = [ScaledPrior(prior, first + i) for i, prior in enumerate(priors)]

    @classmethod
    def bind(cls, spec: Spec, binder: Binder, where: str) -> RRobustness:
        bound = [_bind_prior(spec, prior, binder, f"{where}.priors[{i}]") for i, prior in enumerate(spec.priors)]
        criterion = cls(str(spec.sensitive), exact(spec.r), bound)
        criterion.attributes = tuple(tuple(prior.attributes) for prior in bound)
        return criterion

    def measure(self, groups: Groups) -> Floats:
        return np.column_stack([self._enough(groups, adversary) for adversary in self._adversaries])

    def _enough(self, groups: Groups, adversary: ScaledPrior) -> Floats:
        """Return the bounds, and the posteriors only where they may save a group that fails its bound."""
        asked = adversary.questions(groups)
        inverse = adversary.bounds(groups, asked)
        hopeless = groups.n[asked.group] / self._largest(groups, asked) < float(self.r) * (1 - NEAR)
        open_ = np.flatnonzero((inverse < float(self.r)) & ~hopeless)
        found = adversary.posteriors(groups, Questions(asked.group[open_], asked.entry[open_]))
        inverse[open_] = np.fmax(inverse[open_], found)
        return self._of_groups(groups, asked, inverse)

    def _largest(self, groups: Groups, asked: Questions) -> Ints:
        """Return the copies of each value asked for, or of the most frequent: nobody's share of the worlds is below
        its."""
        if (asked.entry < 0).any():
            most: Ints = np.maximum.reduceat(groups.count, groups.start[:-1])
            return most[asked.group]
        return groups.count[asked.entry]

    def _of_groups(self, groups: Groups, asked: Questions, inverse: Floats) -> Floats:
        """Return the worst answer about each group. One without named values only has to be large enough."""
        measure = np.where(groups.n < self.least_group, groups.n.astype(np.float64), np.inf)
        np.minimum.at(measure, asked.group, inverse)
        return measure

    def compare(self, groups: Groups, which: Ints, measure: int) -> Ints:
        adversary = self._adversaries[measure]
        asked = adversary.questions(groups)
        alike = (np.diff(groups.signatures[adversary.place].start) == 1) & adversary.positive
        sign = np.where(groups.n < self.least_group, -1, 1)
        asked = asked.about(which, len(groups))
        same = Questions(asked.group[alike[asked.group]], asked.entry[alike[asked.group]])
        np.minimum.at(sign, same.group, signs(groups.n[same.group], self._largest(groups, same), self.r))
        for group, entry in zip(asked.group.tolist(), asked.entry.tolist()):
            if not alike[group]:
                sign[group] = min(sign[group], self._sign(adversary.worlds(groups, group, entry)))
        return sign[which]

    def _sign(self, worlds: Worlds) -> int:
        bound = 1 / worlds.bound() - self.r
        if bound < 0:
            posterior = worlds.posterior()
            bound = 1 / posterior - self.r if posterior is not None else bound
        return int(bound > 0) - int(bound < 0)

    def state(self, groups: Groups) -> State:
        settled = self.settled(groups)
        worst = [self._worst(groups, adversary, settled[:, i]) for i, adversary in enumerate(self._adversaries)]
        return State(np.array([value for value, _ in worst]), np.array([witness for _, witness in worst], np.int64))

    def _worst(self, groups: Groups, adversary: ScaledPrior, settled: Floats) -> tuple[float, tuple[int, int]]:
        """Return the smallest measure with posteriors wherever they can be had, not only where the verdict needs them;
        whether it is a bound; and the group. A posterior is never above its bound, so the worst bounds go first."""
        order = np.argsort(settled, kind="stable")
        measure, bound = settled.copy(), np.ones(len(groups), np.int64)
        lowest = np.inf
        for low in range(0, len(order), CHUNK):
            part = order[low : low + CHUNK]
            if settled[part[0]] > lowest:
                break
            measure[part], bound[part] = self._posteriors(groups, adversary, part, settled[part])
            lowest = min(lowest, float(measure[part].min()))
        tied = np.flatnonzero(measure == measure.min())
        group = tied[np.argmin(bound[tied])]
        return float(measure[group]), (int(bound[group]), groups.first + int(group))

    def _posteriors(
        self, groups: Groups, adversary: ScaledPrior, which: Ints, settled: Floats
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Return the measures of some groups by posteriors, on the side of r that is settled, and where they are
        bounds."""
        asked = adversary.questions(groups).about(which, len(groups))
        inverse, found = adversary.bounds(groups, asked), adversary.posteriors(groups, asked)
        exactly = self._of_groups(groups, asked, np.fmax(inverse, found))[which]
        by_bound = np.full(len(groups), np.inf)
        np.minimum.at(by_bound, asked.group[np.isnan(found)], inverse[np.isnan(found)])
        side = np.where(settled < float(self.r), np.nextafter(float(self.r), 0.0), np.inf)
        return np.minimum(np.maximum(settled, exactly), side), np.isfinite(by_bound[which]) & (
            by_bound[which] == exactly
        )

    def figure_and_bound(self, measure: int, value: float) -> tuple[float, float]:
        return 1 / value, float(1 / self.r)

    def verdict(self, state: State) -> Verdict:
        findings = []
        for index, (value, (bound, group)) in enumerate(zip(state.values.tolist(), state.witness.tolist())):
            safe, about = value >= float(self.r), PriorFinding(index, not bound)
            findings.append(Finding(safe, *self.figure_and_bound(index, value), group, about))
        worst = max(findings, key=lambda finding: (not finding.safe, finding.figure))
        safe = all(finding.safe for finding in findings)
        return Verdict(self.name, safe, worst.figure, worst.bound, worst.group, tuple(findings))

    def details(self, verdict: Verdict, name: Callable[[int], str]) -> dict[str, Any]:
        worst = (finding for finding in verdict.findings if finding.figure == verdict.figure)
        return {"exact": any(finding.about.exact for finding in worst)}

    def refusal(self, finding: Finding, name: Callable[[int], str]) -> str:
        known: PriorFinding = finding.about
        figure = f"{'' if known.exact else 'up to '}{finding.figure:.6g}"
        return f"posterior {figure} by prior {known.prior + 1}, asked for at most {finding.bound:.6g}"

    def nearest(self, whole: Groups, finding: Finding) -> list[str]:
        """Return the larger of the two numbers of six digits next to the lowest of all priors that holds for every
        prior."""
        lowest = float(self.state(whole).values.min())
        near = (Fraction(at_most(number)) for number in _around(lowest))
        weaker = (RRobustness(str(self.column), r, self.priors, self.first) for r in near if r > 1)
        found = next((one.r for one in weaker if one.holds(one.state(whole))), None)
        return [f"r = {at_most(found)}"] if found else []


def _around(number: float) -> tuple[float, float]:
    """Return a little more and a little less than a number that was rounded."""
    return number * (1 + NEAR), number * (1 - NEAR)


def _bind_prior(spec: Spec, given: PriorFile | PriorEstimate, binder: Binder, where: str) -> Prior:
    """Return a prior of the config for the signatures and values of a table."""
    column, texts = str(spec.sensitive), binder.texts(spec)
    assert binder.values.cross_table is not None, "priors are bound to a table that was opened to be examined"
    if isinstance(given, PriorFile):
        raw = read_prior(given.file, f"{where}.file")
        signatures, _ = binder.values.cross_table(tuple(raw.attributes), column)
        return bind_prior(raw, raw.attributes, signatures, texts, f"{where}.file")
    signatures, counting = binder.values.cross_table(tuple(given.estimate), column)
    if counting is None:
        found = "an estimated prior on a bucketized table, which does not say who has what"
        raise ConfigError.at(where, found, "a prior file (--prior FILE), or one estimated on the source and saved")
    return estimated(list(given.estimate), signatures, texts, counting(), exact(given.smoothing))
