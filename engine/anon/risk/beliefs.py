"""Compute what an adversary believes about a person before and after a release (Machanavajjhala, Kifer, Gehrke,
Venkitasubramaniam: l-Diversity: Privacy Beyond k-Anonymity, TKDD 2007, Section 3), for `attack`.

The adversary knows how often each value s goes with each signature q in a population, of which the table is a random
sample. The *prior belief* about somebody with signature q is alpha = f(s | q). With n(s) people with value s in the
group q*, and f(s | q*) the frequency of s among all signatures that fall into it, the *observed belief* (Theorem 3.1)
is

    beta(s) = n(s) f(s | q) / f(s | q*)  over the sum of the same for all values

The proof of Theorem 5.1: 36 and 16 people with s1 and s2; of the population .4 and .6, of signature q1 .3 and .7 (that
is, .15 and .35 of all), of q2 .5 and .5. Beliefs of .3 become .591, a breach for (.31, .58), and those about somebody
with q2 .771. The belief in s2 has fallen too far as well, from .7 to .409.

>>> counts, whole = np.array([36, 16]), np.array([0.4, 0.6])
>>> [round(float(observed(counts, np.array(q), whole)[0]), 3) for q in ([0.3, 0.7], [0.5, 0.5])]
[0.591, 0.771]
>>> breaches(np.array([0.3, 0.7]), observed(counts, np.array([0.3, 0.7]), whole), 0.31, 0.58).tolist()
[True, True]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anon.criteria.protocol import Floats, Groups, Ints, Signatures

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Beliefs:
    """Beliefs before and after, [pairs, values], for every group and every signature that occurs in it."""

    group: Ints
    signature: Ints
    people: Ints
    before: Floats
    after: Floats


def beliefs(groups: Groups, signatures: Signatures, p: Floats, population: Floats | None = None) -> Beliefs:
    """Return the beliefs about everybody in a batch, given p[signature, value].

    f(s | q*) is the mean of f(s | q) over the signatures in the group, weighted by `population` (people behind each
    signature); without it by the people in the group.
    """
    group = np.repeat(np.arange(len(groups)), np.diff(signatures.start))
    weight = signatures.count.astype(np.float64) if population is None else population[signatures.code]
    before = p[signatures.code]
    mixture, total = np.zeros((len(groups), p.shape[1])), np.zeros(len(groups))
    np.add.at(mixture, group, before * weight[:, None])
    np.add.at(total, group, weight)
    mixture = _ratio(mixture, total[:, None])
    counts = np.zeros(mixture.shape)
    counts[np.repeat(np.arange(len(groups)), np.diff(groups.start)), groups.value] = groups.count
    after = observed(counts[group], before, mixture[group])
    return Beliefs(groups.first + group, signatures.code, signatures.count, before, after)


def observed(counts: Ints | Floats, given_signature: Floats, given_group: Floats) -> Floats:
    """Return observed beliefs [..., values] from n(s), f(s | q) and f(s | q*) along the last axis. They are nan where
    the release has a value that the population does not have, or no value that is possible with this signature."""
    here = np.asarray(counts) > 0
    weight = np.where(here, counts * _ratio(given_signature, given_group), 0.0)
    return _ratio(weight, weight.sum(axis=-1, keepdims=True))


def _ratio(top: Floats, bottom: Floats) -> Floats:
    """Return top / bottom, nan where bottom is zero."""
    top, bottom = np.broadcast_arrays(np.asarray(top, np.float64), np.asarray(bottom, np.float64))
    found: Floats = np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom != 0)
    return found


def positive_disclosures(after: Floats, delta: float) -> Flags:
    """Flag where the adversary is nearly sure of a value: a belief above 1 - delta (Definition 3.1)."""
    return after > 1 - delta


def negative_disclosures(after: Floats, epsilon: float) -> Flags:
    """Flag where the adversary has nearly ruled out a value: a belief below epsilon (Definition 3.2)."""
    return after < epsilon


def breaches(before: Floats, after: Floats, rho1: float, rho2: float) -> Flags:
    """Flag where a belief moved too far (Definition 3.3): from below rho1 to above rho2, or from above 1 - rho1 to
    below 1 - rho2."""
    up = (before < rho1) & (after > rho2)
    down = (before > 1 - rho1) & (after < 1 - rho2)
    return up | down
