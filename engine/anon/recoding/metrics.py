"""Utility of a release as numbers: how much of the table it still tells. The lattice search reports and chooses by them
(search), and `anon utility` computes the same ones from written files. Plain functions over arrays, smaller is better
in all of them; the first four metrics and their sources are in section 6 of the l-diversity paper (Machanavajjhala,
Gehrke, Kifer, Venkitasubramaniam 2007).

Suppressed individuals are not in the release, and none of the metrics may reward that: they cost the size of the whole
table each (discernibility), are published as if under `*` everywhere (loss), or spread evenly over everything that
could have been (divergence). Only `average_group` does not know them, being the mean of what was released.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]


def height(levels: Iterable[int]) -> int:
    """Steps of generalization, where every column has one level for the whole table and 0 is the values as they are.

    >>> height([2, 0, 1])
    3
    """
    return sum(levels)


def average_group(people: Numbers) -> float:
    """Mean individuals per group of the release; `people` has the individuals of each group.

    >>> average_group(np.array([2, 4]))
    3.0
    """
    return int(people.sum()) / len(people)


def discernibility(people: Numbers, suppressed: int = 0) -> int:
    """Everybody costs the individuals of their group, who is suppressed those of the whole table (Bayardo, Agrawal).

    >>> discernibility(np.array([2, 4]), suppressed=1)
    27
    """
    sizes = people.astype(np.uint64)
    return int((sizes * sizes).sum()) + suppressed * (int(people.sum()) + suppressed)


def loss(span: Numbers, whole: float, people: Numbers, suppressed: int = 0) -> float:
    """Normalized loss of one column: the mean share of its domain that people are published in, 0 the value itself, 1
    everything, or suppressed. Per group its individuals and the span of its label; `whole` is the span of the domain.

    In a column with a hierarchy a label spans the leaves under it less one, and the domain its leaves less one (leaves
    that occur in the source, null among them). Numbers and dates without one span the distance between the lowest and
    the highest value of a cell. A column with one value has nothing to lose. The loss of a release is the mean of the
    losses of its columns. Whole spans are added up exactly.

    >>> loss(np.array([0, 3]), 3, np.array([1, 1]))
    0.5
    >>> loss(np.array([0, 3]), 3, np.array([1, 1]), suppressed=2)
    0.75
    """
    if not whole:
        return 0.0
    found: float = ((span * people).sum().item() + whole * suppressed) / (whole * (int(people.sum()) + suppressed))
    return found


def divergence(source: Numbers, released: Numbers, area: Numbers, suppressed: int = 0, whole: float = 1.0) -> float:
    """Kullback-Leibler divergence, in nats, between the source's distribution over quasi-identifiers and sensitive
    values and the one that the release tells if everything under a label is taken to be equally likely: the sum of
    F(x) log(F(x) / F*(x)), where F*(x) is the share of the released rows like x, over their area.

    `source` counts the individuals of each different tuple of quasi-identifier values and sensitive values; `released`
    those of each different tuple of labels and sensitive values, and `area` says how many tuples of quasi-identifier
    values, out of all that the domains allow, lie under these labels. The cells of different labels must not overlap.

    `suppressed` individuals are known to be missing, but nothing about them: they are spread over the `whole` domain,
    the number of all tuples of quasi-identifier and sensitive values. (Without them the paper's formula divides by the
    released rows; with F* = 0 for those who are missing it would be infinite.)

    Two people with values a and b under one label, who tell nothing else: each is told with 1/2 instead of 1/2.

    >>> divergence(np.array([1, 1]), np.array([2]), np.array([2.0]))
    0.0

    Three of a and one of b: 3/4 log(3/2) + 1/4 log(1/2).

    >>> round(divergence(np.array([3, 1]), np.array([4]), np.array([2.0])), 6)
    0.130812

    The same people apart, and b suppressed: a is told with 3/4 + 1/8, b with 1/8.

    >>> round(divergence(np.array([3, 1]), np.array([3]), np.array([1.0]), suppressed=1, whole=2.0), 6)
    0.057674
    """
    own = float((source * np.log(source)).sum())
    return divergence_of_sums(int(source.sum()), own, told(released, area, suppressed / whole), suppressed, whole)


def told(released: Numbers, area: Numbers, everywhere: float) -> float:
    """The sum of n log(n / area + everywhere) over the counts of a release."""
    return float((released * np.log(released / area + everywhere)).sum())


def divergence_of_sums(total: int, source: float, released: float, suppressed: int = 0, whole: float = 1.0) -> float:
    """`divergence` of tables too large for arrays, from sums over their tuples: `total` rows of the source, `source`
    the sum of n log n over its counts, `released` that of n log(n / area + suppressed / whole) over the released ones.

    >>> from math import log
    >>> round(divergence_of_sums(4, 3 * log(3), 3 * log(3 + 1 / 2), suppressed=1, whole=2.0), 6)
    0.057674
    """
    missing = suppressed * float(np.log(suppressed / whole)) if suppressed else 0.0
    return max((source - released - missing) / total, 0.0)  # rounding may leave it just below
