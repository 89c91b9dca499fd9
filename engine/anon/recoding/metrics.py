"""Measure the information that a release loses. The lattice search reports these metrics and chooses by them, and
`anon utility` computes the same ones from written files. They are functions over arrays, and smaller is better in all
of them; the first four metrics and their sources are in section 6 of the l-diversity paper (Machanavajjhala, Gehrke,
Kifer, Venkitasubramaniam 2007).

Suppressed individuals are not in the release, and none of the metrics may reward that: each costs the size of the whole
table (discernibility), counts as published as `*` in every column (loss), or is spread evenly over all possible tuples
(divergence). Only `average_group` ignores them, because it is the mean over the released groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]


def height(levels: Iterable[int]) -> int:
    """Return the steps of generalization, where every column has one level for the whole table and level 0 is the
    original values.

    >>> height([2, 0, 1])
    3
    """
    return sum(levels)


def average_group(people: Numbers) -> float:
    """Return the mean number of individuals per group of the release; `people` has the individuals of each group.

    >>> average_group(np.array([2, 4]))
    3.0
    """
    return int(people.sum()) / len(people)


def discernibility(people: Numbers, suppressed: int = 0) -> int:
    """Return the discernibility metric: each individual costs the size of their group, a suppressed one the size of the
    whole table (Bayardo, Agrawal).

    >>> discernibility(np.array([2, 4]), suppressed=1)
    27
    """
    sizes = people.astype(np.uint64)
    return int((sizes * sizes).sum()) + suppressed * (int(people.sum()) + suppressed)


def loss(span: Numbers, whole: float, people: Numbers, suppressed: int = 0) -> float:
    """Return the normalized loss of one column: the mean share of its domain that the label of an individual covers, 0
    for the value itself, 1 for the whole domain or a suppressed individual. `people` and `span` have the individuals of
    each group and the span of its label; `whole` is the span of the domain.

    In a column with a hierarchy a label spans the leaves under it less one, and the domain its leaves less one (leaves
    that occur in the source, null among them). Numbers and dates without one span the distance between the lowest and
    the highest value of a cell. The loss of a column with one value is 0. The loss of a release is the mean of the
    losses of its columns. Integer spans are summed exactly.

    >>> loss(np.array([0, 3]), 3, np.array([1, 1]))
    0.5
    >>> loss(np.array([0, 3]), 3, np.array([1, 1]), suppressed=2)
    0.75
    """
    if not whole:
        return 0.0
    found: float = ((span * people).sum().item() + whole * suppressed) / (whole * (int(people.sum()) + suppressed))
    return found


def weighted_mean(losses: Sequence[float], weights: Sequence[int]) -> float:
    """Return the loss of a release from those of its columns: their mean, in which each counts by its weight.

    >>> weighted_mean([0.0, 0.5], [1, 1]), weighted_mean([0.0, 0.5], [3, 1])
    (0.25, 0.125)
    """
    return sum(loss * weight for loss, weight in zip(losses, weights, strict=True)) / sum(weights)


def divergence(source: Numbers, released: Numbers, area: Numbers, suppressed: int = 0, whole: float = 1.0) -> float:
    """Return the Kullback-Leibler divergence, in nats, between the source's distribution over quasi-identifiers and
    sensitive values and the one that the release implies if all values under a label are equally likely: the sum of
    F(x) log(F(x) / F*(x)), where F*(x) is the share of the released rows like x, divided by their area.

    `source` counts the individuals of each distinct tuple of quasi-identifier values and sensitive values; `released`
    those of each distinct tuple of labels and sensitive values, and `area` is the number of tuples of quasi-identifier
    values, out of all that the domains allow, that lie under these labels. The cells of different labels must not
    overlap.

    The number of `suppressed` individuals is known, but nothing else about them: they are spread over the `whole`
    domain, the number of all tuples of quasi-identifier and sensitive values. (Without them the paper's formula divides
    by the released rows; with F* = 0 for suppressed individuals it would be infinite.)

    Two individuals with values a and b under one label: each value has probability 1/2 in both distributions.

    >>> divergence(np.array([1, 1]), np.array([2]), np.array([2.0]))
    0.0

    Three of a and one of b: 3/4 log(3/2) + 1/4 log(1/2).

    >>> round(divergence(np.array([3, 1]), np.array([4]), np.array([2.0])), 6)
    0.130812

    The same individuals in separate cells, and b suppressed: a has probability 3/4 + 1/8, b has 1/8.

    >>> round(divergence(np.array([3, 1]), np.array([3]), np.array([1.0]), suppressed=1, whole=2.0), 6)
    0.057674
    """
    own = float((source * np.log(source)).sum())
    implied = released_log_sum(released, area, suppressed / whole)
    return divergence_of_sums(int(source.sum()), own, implied, suppressed, whole)


def released_log_sum(released: Numbers, area: Numbers, everywhere: float) -> float:
    """Return the sum of n log(n / area + everywhere) over the counts of a release."""
    return float((released * np.log(released / area + everywhere)).sum())


def divergence_of_sums(total: int, source: float, released: float, suppressed: int = 0, whole: float = 1.0) -> float:
    """Return the `divergence` of tables too large for arrays, from sums over their tuples: `total` rows of the source,
    `source` the sum of n log n over its counts, `released` that of n log(n / area + suppressed / whole) over the
    released ones.

    >>> from math import log
    >>> round(divergence_of_sums(4, 3 * log(3), 3 * log(3 + 1 / 2), suppressed=1, whole=2.0), 6)
    0.057674
    """
    missing = suppressed * float(np.log(suppressed / whole)) if suppressed else 0.0
    return max((source - released - missing) / total, 0.0)  # rounding may make it slightly negative
