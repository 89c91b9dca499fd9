"""The deFinetti attack (Kifer: Attacks on Privacy and deFinetti's Theorem, SIGMOD 2009): an adversary who knows the
quasi-identifiers of everybody learns from the release itself how they go with the sensitive value, and applies that
within each group, where the criteria take all members for equally likely to have each value.

The model is naive Bayes: P(s | q) is proportional to P(s) times the product of P(q_j | s) over the columns, each
estimated with add-one smoothing. It starts from the shares of the groups and is iterated: beliefs are the model's
probabilities of the values of a group, scaled so that everybody's add up to 1 and those in a value to its published
count (iterative proportional fitting); the model is then estimated from the beliefs. Two groups, {a, b} and {b, b},
where the quasi-identifier of one person of the first is that of everybody in the second:

>>> rows = Members(np.array([[0, 1, 1, 1]]), np.array([0, 0, 1, 1]), np.ones(4, np.int64))
>>> beliefs(rows, np.array([[1, 1], [0, 2]])).belief.round(2).tolist()[:2]
[0.64, 0.64]
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from anon.core.arrays import Flags, Floats, Ints
from anon.core.phrases import percent
from anon.risk.overview import Attack, Promise, sampled
from anon.risk.people import SampledPeople

NAME = "definetti"
ASSUMES = "knows everybody's quasi-identifiers, and learns from the release how they go with the values"
HELPS = "r_robustness with priors estimated from the same columns (method merge), or groups of more varied values"
ROUNDS, FITTINGS = 20, 5  # of the model; of the beliefs to the published counts, in each
SMOOTHING = 1.0  # people whom the model adds to each combination of a code and a value
SETTLED = 1e-3  # beliefs that change less no longer matter
CODES = 128  # of a column; more are put into bins of about equal numbers of people
CELLS = 2**20  # beliefs (people with their own quasi-identifiers x values of their group) that are held
COUNTS = 2**24  # of values in groups
THRESHOLDS = (50, 75, 90)  # percent
DOUBT = 0.01  # the probability that a rate is above the promise by chance alone


@dataclass(frozen=True)
class Members:
    """The distinct members of groups: codes [columns, members], the group of each in ascending order, and the number of
    people who have these codes there."""

    codes: Ints
    group: Ints
    people: Ints


@dataclass(frozen=True)
class Beliefs:
    """The value that is believed of each member most, and the belief in it."""

    value: Ints
    belief: Floats


def beliefs(members: Members, counts: Ints) -> Beliefs:
    """Return what the attack believes of members of groups with these counts [groups, values]."""
    held, values = counts > 0, counts.shape[1]
    of_group = held.sum(axis=1)
    start = np.append(0, np.cumsum(of_group[members.group]))
    row = np.repeat(np.arange(len(members.group)), of_group[members.group])
    offset = np.append(0, np.cumsum(of_group))
    pair = np.arange(start[-1]) - start[row] + offset[members.group[row]]  # which value of which group
    count, value = counts[held].astype(np.float64), np.nonzero(held)[1][pair]
    keys = [_binned(codes, members.people)[row] * values + value for codes in members.codes]
    people = members.people[row].astype(np.float64)
    belief = (count / counts.sum(axis=1).repeat(of_group))[pair]
    for _ in range(ROUNDS):
        before, weight = belief, np.exp(_relative(_scores(keys, value, belief * people, values), start, row))
        for _ in range(FITTINGS):
            weight /= np.add.reduceat(weight, start[:-1])[row]
            weight *= (count / np.maximum(np.bincount(pair, weight * people, len(count)), 1e-300))[pair]
        belief = weight / np.add.reduceat(weight, start[:-1])[row]
        if np.abs(belief - before).max(initial=0.0) < SETTLED:
            break
    best = np.lexsort((-belief, row))[start[:-1]]  # the first of equal ones
    return Beliefs(value[best], belief[best])


def _binned(codes: Ints, people: Ints) -> Ints:
    """Return codes as numbers below CODES: each its own, or in bins of about equal numbers of people."""
    own: Ints
    distinct, own = np.unique(codes, return_inverse=True)
    if len(distinct) <= CODES:
        return own
    upto = np.cumsum(np.bincount(own, people))
    bins: Ints = np.minimum(upto * CODES / upto[-1], CODES - 1).astype(np.int64)
    return bins[own]


def _scores(keys: list[Ints], value: Ints, weight: Floats, values: int) -> Floats:
    """Return log P(s) + sum of log P(q_j | s) of each belief; `keys` are the codes of the columns times the number of
    values, plus the value."""
    total = np.bincount(value, weight, values)
    found: Floats = np.log(total[value] / total.sum())
    for key in keys:
        codes = int(key.max()) // values + 1
        counts = np.bincount(key, weight, codes * values).reshape(codes, values)
        found += np.log((counts + SMOOTHING) / (total + SMOOTHING * codes)).ravel()[key]
    return found


def _relative(scores: Floats, start: Ints, row: Ints) -> Floats:
    """Return scores less the highest of each member."""
    relative: Floats = scores - np.maximum.reduceat(scores, start[:-1])[row]
    return relative


@dataclass(frozen=True)
class Named:
    """People of whom a value is believed at a threshold at least, and how many of them have it, if that is known;
    `beyond`: these are more than the promise allows, by more than chance."""

    people: int
    right: int | None
    beyond: bool


def definetti(sample: SampledPeople, promise: Promise) -> Attack:
    """Carry out the attack on people whose values are known here, so that it is known how often it is right."""
    values = len(sample.texts)
    number, group = np.unique(sample.group, return_inverse=True)
    if not len(number) or len(number) * values > COUNTS:
        return Attack(NAME, ASSUMES, "not examined: groups with too many people or values for the memory of the attack")
    counts = np.zeros((len(number), values), np.int64)
    np.add.at(counts, (group, sample.value), 1)
    members, of = _members(sample.codes.astype(np.int64), group)
    kept = _fitting(members, counts)
    shown = Members(members.codes[:, kept], members.group[kept], members.people[kept])
    found = beliefs(shown, counts)
    right = np.zeros((len(members.group)), np.int64)
    best = np.full(len(members.group), -1)
    best[kept] = found.value
    np.add.at(right, of, best[of] == sample.value)
    named = {share: _named(shown, found, right[kept], promise, share / 100) for share in THRESHOLDS}
    return _attack(named, float(found.belief.max()), promise, len(np.unique(shown.group)), sample.groups)


def _members(codes: Ints, group: Ints) -> tuple[Members, Ints]:
    """Return the distinct members of groups in ascending order, and the member that each person is."""
    order = np.lexsort((*codes, group))
    ordered = np.vstack([group, codes])[:, order]
    new = np.append(True, (ordered[:, 1:] != ordered[:, :-1]).any(axis=0))
    of = np.empty(len(order), np.int64)
    of[order] = np.cumsum(new) - 1
    return Members(ordered[1:, new], ordered[0, new], np.bincount(of)), of


def _fitting(members: Members, counts: Ints) -> Flags:
    """Return which members are attacked: those of the first groups whose beliefs can be held together, at least
    one group."""
    cells = (counts > 0).sum(axis=1)[members.group]
    last = members.group[min(int(np.searchsorted(np.cumsum(cells), CELLS, "right")), len(cells)) - 1]
    whole = max(last + 1 if int(cells.sum()) <= CELLS else last, 1)
    fitting: Flags = members.group < whole
    return fitting


def _named(members: Members, found: Beliefs, right: Ints, promise: Promise, threshold: float) -> Named:
    """Count those named at a threshold. By Hoeffding's inequality, n answers that are right with the promised
    probability at most are right in a share that is larger by sqrt(log(1 / DOUBT) / 2n) with the probability DOUBT."""
    own = found.belief >= threshold
    people = members.people[own]
    limited = np.isfinite(promise.limit[found.value[own]])
    about = int(people[limited].sum())
    excess = right[own][limited].sum() - (people * promise.limit[found.value[own]])[limited].sum()
    beyond = bool(about and excess / about > sqrt(log(1 / DOUBT) / (2 * about)))
    return Named(int(people.sum()), int(right[own].sum()), beyond)


def _attack(named: dict[int, Named], largest: float, promise: Promise, examined: int, groups: int) -> Attack:
    words = ", ".join(
        f"{each.people:,} at {share}%" + (f" ({percent(each.right / each.people)} rightly)" if each.people else "")
        for share, each in named.items()
        if each.right is not None
    )
    where, facts = sampled(examined, groups)
    listed = {str(share): {"named": each.people, "right": each.right} for share, each in named.items()}
    breached = any(each.beyond for each in named.values())
    return Attack(
        NAME,
        ASSUMES,
        f"people whose value it names with a belief of at least a percentage{where}: {words}",
        HELPS if breached else "",
        named[THRESHOLDS[-1]].people,
        min(largest, 1.0),
        promise.lowest,
        breached=breached,
        details={"named": listed, **facts},
    )
