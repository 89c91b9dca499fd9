"""Section 5.2 of Privacy Skyline: how often merging two groups raises the breach probability of sets and multisets.

The paper reports 100 counterexamples in 7,778,625,148 random partitionings and does not say how they were drawn. Here
the generator is a parameter: sizes of groups, other values, and the largest l, k and m. Candidates are found in floats
and confirmed in exact fractions.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from anon.criteria.skyline import Counts

from .figure import Findings, Table, figure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SEED, BATCH = 7, 200_000
ROUNDING = 1e-11  # relative; candidates closer than this are ties


@dataclass(frozen=True)
class Generator:
    """How two groups and a point are drawn; all numbers are uniform."""

    smallest: int
    largest: int
    values: int  # besides sigma
    most: int  # of l, k and m each
    partitionings: int


GENERATORS = (
    Generator(1, 8, 2, 3, 2_000_000),
    Generator(1, 8, 5, 5, 2_000_000),
    Generator(2, 20, 5, 5, 2_000_000),
    Generator(10, 100, 10, 10, 2_000_000),
    Generator(100, 1000, 20, 20, 2_000_000),
)


def target(n: Ints, s: Ints, others: Ints, l: Ints, k: Ints, kind: str) -> Floats:
    """Return T of many groups; infinite without sigma."""
    top = -np.sort(-others, axis=1)
    used = np.arange(top.shape[1]) < l[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        if kind == "set":
            factors = np.where(used, (n[:, None] - top) / n[:, None], 1).prod(axis=1)
            found = np.maximum(n - s - k, 0) / s * factors
        else:
            nobody = np.where(n - k - 1 > 0, (np.maximum(n - k - 1, 0) / np.maximum(n - k, 1)) ** s, 0)
            found = nobody / (1 - nobody) * ((n - 1) / n) ** np.where(used, top, 0).sum(axis=1)
    return np.where(s == 0, np.inf, found)


def family(n: Ints, s: Ints, m: Ints, k: Ints, kind: str) -> Floats:
    """Return V of many groups."""
    if kind == "multiset":
        found = np.where(n - k - m > 0, (np.maximum(n - k - m, 0) / np.maximum(n - k, 1)) ** s, 0.0)
    else:
        i = np.arange(int(m.max()) + 1)
        above, below = (n - s - k)[:, None] - i, (n - k)[:, None] - i
        factors = np.where(above > 0, above / np.maximum(below, 1), 0.0)
        found = np.where(i < m[:, None], factors, 1.0).prod(axis=1)
    return np.where((s == 0) | (m == 0), 1.0, found)


def ratio(groups: list[tuple[Ints, Ints, Ints]], l: Ints, k: Ints, m: Ints, kind: str) -> Floats:
    """Return the least negated ratio over partitionings into these groups (Theorem 2 of the paper)."""
    none = np.zeros_like(k)
    free, known = ([target(*g, l, each, kind) for g in groups] for each in (none, k))
    alone, beside, near = ([family(*g[:2], m, each, kind) for g in groups] for each in (none, k, k + 1))
    with np.errstate(invalid="ignore"):
        together = np.min([np.nan_to_num(t * v, nan=0.0, posinf=np.inf) for t, v in zip(known, near)], axis=0)
        apart = np.min(free, axis=0) * np.min(beside, axis=0), np.min(known, axis=0) * np.min(alone, axis=0)
    return np.minimum.reduce([together, *(np.nan_to_num(each, nan=np.inf, posinf=np.inf) for each in apart)])


def exact(groups: list[Counts], k: int, m: int, kind: str) -> Fraction | None:
    """Return the same exactly; None stands for infinity."""
    with_sigma = [g for g in groups if g.s]
    if not with_sigma:
        return None
    free, known = ([g.target(each, kind) or Fraction(0) for g in with_sigma] for each in (0, k))
    near = min(t * g.family(m, k + 1, kind) for t, g in zip(known, with_sigma))
    beside, alone = (min(g.family(m, each, kind) for g in groups) for each in (k, 0))
    return min(near, min(free) * beside, min(known) * alone)


def counts(n: int, s: int, others: Ints, l: int) -> Counts:
    return Counts(n, s, tuple(sorted((int(each) for each in others), reverse=True)[:l]))


def counterexamples(of: Generator, kind: str) -> int:
    """Return how many drawn pairs of groups have a lower breach probability than their union."""
    random, found = np.random.default_rng(SEED), 0
    for start in range(0, of.partitionings, BATCH):
        size = min(BATCH, of.partitionings - start)
        people = random.integers(of.smallest, of.largest + 1, (2, size))
        most = people if kind == "set" else 2 * people
        sigma = random.integers(0, most + 1)
        others = random.integers(0, most[:, :, None] + 1, (2, size, of.values))
        l, k, m = random.integers(0, of.most + 1, (3, size))
        l = np.minimum(l, of.values)
        parts = [(people[i], sigma[i], others[i]) for i in (0, 1)]
        whole = (people.sum(axis=0), sigma.sum(axis=0), others.sum(axis=0))
        apart, merged = ratio(parts, l, k, m, kind), ratio([whole], l, k, m, kind)
        for i in np.flatnonzero(merged < apart * (1 - ROUNDING)):
            two = exact(
                [counts(int(n[i]), int(s[i]), o[i], int(l[i])) for n, s, o in parts], int(k[i]), int(m[i]), kind
            )
            n, s, o = whole
            one = exact([counts(int(n[i]), int(s[i]), o[i], int(l[i]))], int(k[i]), int(m[i]), kind)
            found += one is not None and (two is None or one < two)
    return found


@figure("000-5.2", "Section 5.2: counterexamples to monotonicity for sets and multisets")
def section_5_2() -> Findings:
    rows = [
        (f"{of.smallest} to {of.largest}", of.values, of.most, f"{of.partitionings:,}",
         *(f"{counterexamples(of, kind):,}" for kind in ("set", "multiset")))
        for of in GENERATORS
    ]  # fmt: skip
    head = ("people per group", "other values", "l, k, m up to", "pairs of groups", "counterexamples, set", "multiset")
    return Findings(
        "random pairs of groups, all numbers uniform: sizes, counts of sigma and of the other values, l, k and m",
        "The paper found 100 counterexamples in 7,778,625,148 partitionings and does not describe its generator. How "
        "often merging raises the breach probability depends entirely on the generator: groups of a few people have "
        "many counterexamples, large groups hardly any.",
        [Table("Pairs whose union has a higher breach probability, confirmed in exact fractions", head, rows)],
        seeds=str(SEED),
    )
