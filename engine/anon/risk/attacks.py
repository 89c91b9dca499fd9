"""Attack a release (Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam: l-Diversity, TKDD 2007, Sections 1.1 and 3):
find groups where nearly everybody has one value, what ruling values out adds to that, and how far a release moves the
beliefs of an adversary with a prior. Groups come as `verify.grouped` counts them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

import numpy as np

from anon.criteria.arithmetic import signs
from anon.criteria.priors import Prior
from anon.criteria.protocol import NEAR, Floats, Groups, Ints, Signatures
from anon.risk.beliefs import Beliefs, Flags, beliefs, breaches, negative_disclosures, positive_disclosures
from anon.risk.fronts import CELLS

MOST_RULED_OUT = 20  # values; the curve of elimination ends there


def homogeneous(groups: Groups, threshold: Fraction, multiplicity: str) -> Flags:
    """Flag the groups where a value has at least this probability for an outsider, which is its share. Multisets do not
    show who has the occurrences of a value: there it is the chance that one of them is a person's own, or 1 if the
    group has no other value."""
    largest = groups.largest
    if multiplicity != "multiset":
        return signs(largest, groups.n, threshold) >= 0
    with np.errstate(divide="ignore", invalid="ignore"):  # a group of one person, who may have no value
        chance = -np.expm1(largest * np.log1p(-1 / groups.n))
    found: Flags = (chance >= float(threshold) * (1 - NEAR)) & (threshold < 1) | (np.diff(groups.start) == 1)
    return found


def largest_counts(groups: Groups, count: int) -> Ints:
    """Return [groups, count]: the largest counts of each group, padded with zeros."""
    from anon.criteria.kernels_counts import fill_largest

    top = np.zeros((len(groups), count), np.int64)
    fill_largest(groups.start, groups.count, top)
    return top


def eliminated(groups: Groups, threshold: Fraction, most: int) -> list[Flags]:
    """Flag, for 0, 1, ... values that a person is known not to have, the groups where the most frequent value reaches a
    probability if these values are the worst choice for the person. One value per individual."""
    top = largest_counts(groups, most + 1)
    left = groups.n[:, None] - np.cumsum(top, axis=1) + top[:, :1]
    return list((signs(top[:, :1], left, threshold) >= 0).T)


class EliminationCounts:
    """The numbers of groups and individuals that elimination affects, added up over the batches of a release."""

    def __init__(self, values: int, threshold: Fraction) -> None:
        self.threshold, self.most = threshold, min(values - 1, MOST_RULED_OUT)
        self.groups, self.individuals = (np.zeros(self.most + 1, np.int64) for _ in range(2))

    def add(self, groups: Groups) -> None:
        for ruled_out, flags in enumerate(eliminated(groups, self.threshold, self.most)):
            self.groups[ruled_out] += flags.sum()
            self.individuals[ruled_out] += groups.n[flags].sum()


@dataclass
class Affected:
    """The numbers of groups and individuals affected; `new`: individuals who were not affected before the release."""

    groups: int = 0
    individuals: int = 0
    new: int = 0


@dataclass(frozen=True)
class Change:
    """The belief in a value about somebody with a signature in a group, before and after the release."""

    value: int
    group: int
    before: float
    after: float


@dataclass
class BeliefChanges:
    """How a release changes beliefs. `positive`: the belief in a value is above the threshold (Definition 3.1),
    `negative`: below one minus the threshold (3.2), `breaches`: the belief moved too far (3.3), `contradicted`:
    individuals in groups that have only values that the prior considers impossible for them."""

    positive: Affected = field(default_factory=Affected)
    negative: Affected = field(default_factory=Affected)
    breaches: Affected | None = None
    contradicted: int = 0
    rise: Change | None = None
    fall: Change | None = None


def belief_changes(
    batches: Iterable[Groups], prior: Prior, threshold: Fraction, rho: tuple[float, float] | None
) -> BeliefChanges:
    """Apply Theorem 3.1 to everybody in a release, whose groups come with the signatures of the prior's attributes;
    return how beliefs change."""
    found = BeliefChanges(breaches=Affected() if rho else None)
    rest = float(1 - threshold)
    p = prior.p.floats(0.0)[:, prior.named]
    for groups in batches:
        for part, numbers in _slices(groups, len(prior.values)):
            seen = _beliefs(part, prior, p)
            up, down = partial(positive_disclosures, delta=rest), partial(negative_disclosures, epsilon=rest)
            _add(found.positive, seen, up(seen.after), up(seen.before))
            _add(found.negative, seen, down(seen.after), down(seen.before))
            if rho and found.breaches:
                flags = breaches(seen.before, seen.after, *rho)
                _add(found.breaches, seen, flags, np.zeros_like(flags))
            found.contradicted += int(seen.people[np.isnan(seen.after).any(axis=1)].sum())
            found.rise = _further(found.rise, seen, numbers, prior.named, 1)
            found.fall = _further(found.fall, seen, numbers, prior.named, -1)
    return found


def _beliefs(groups: Groups, prior: Prior, p: Floats) -> Beliefs:
    """Return the beliefs in the values that a prior names, with the probabilities `p`; a prior that leaves values out
    only separates each named value from all others."""
    (signatures,) = groups.signatures
    population = None if prior.n is None else prior.n.astype(np.float64)
    if not prior.binary:
        return beliefs(groups, signatures, p, population)
    each = []
    for index, code in enumerate(prior.named):
        own = np.zeros(len(groups), np.int64)
        at = np.flatnonzero(groups.value == code)
        own[np.searchsorted(groups.start, at, side="right") - 1] = groups.count[at]
        pair = Groups.dense(np.column_stack([own, groups.n - own]))
        either = np.column_stack([p[:, index], 1 - p[:, index]])
        each.append(beliefs(pair, signatures, either, population))
    before, after = (np.column_stack([getattr(one, name)[:, 0] for one in each]) for name in ("before", "after"))
    return Beliefs(each[0].group, each[0].signature, each[0].people, before, after)


def _add(affected: Affected, seen: Beliefs, after: Flags, before: Flags) -> None:
    holds = after.any(axis=1)
    affected.groups += len(np.unique(seen.group[holds]))
    affected.individuals += int(seen.people[holds].sum())
    affected.new += int(seen.people[(after & ~before).any(axis=1)].sum())


def _further(change: Change | None, seen: Beliefs, numbers: Ints, named: Sequence[int], sign: int) -> Change | None:
    """Return the largest change of a belief in one direction."""
    by = np.nan_to_num(sign * (seen.after - seen.before), nan=-1.0)
    if not by.size:
        return change
    pair, value = np.unravel_index(by.argmax(), by.shape)
    if by[pair, value] <= (sign * (change.after - change.before) if change else 0):
        return change
    before, after = float(seen.before[pair, value]), float(seen.after[pair, value])
    return Change(named[int(value)], int(numbers[seen.group[pair]]), before, after)


def _slices(groups: Groups, values: int) -> Iterator[tuple[Groups, Ints]]:
    """Yield slices of the groups, numbered from 0, with their own numbers; each slice is small enough that beliefs fit
    in memory."""
    (signatures,) = groups.signatures
    numbers = groups.first + np.arange(len(groups)) if groups.row is None else groups.row
    first = 0
    while first < len(groups):
        room = signatures.start[first] + max(CELLS // values, 1)
        last = max(int(np.searchsorted(signatures.start, room, side="right")) - 1, first + 1)
        own, held = slice(*signatures.start[[first, last]]), slice(*groups.start[[first, last]])
        start = signatures.start[first : last + 1] - signatures.start[first]
        part = Groups(
            groups.n[first:last], groups.start[first : last + 1] - groups.start[first], groups.value[held],
            groups.count[held], signatures=(Signatures(start, signatures.code[own], signatures.count[own]),),
        )  # fmt: skip
        yield part, numbers[first:last]
        first = last
