"""Random sampling and k-anonymity, by definition: the least k from sums of exact fractions, the distribution of what is
published over all samples of a tiny table, by how much two distributions break a promise, and who a key draws."""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from math import ceil, comb, exp, floor, log

Distribution = dict[tuple[tuple[str, int], ...], Fraction]
TERMS = 60  # of the series of e^x, which for x <= 5 leaves less than 1e-35


def power_of_e(epsilon: Fraction) -> Fraction:
    """Return e^epsilon, less than 1e-35 too small."""
    term, total = Fraction(1), Fraction(1)
    for n in range(1, TERMS):
        term *= epsilon / n
        total += term
    return total


def chances(n: int, share: Fraction) -> list[Fraction]:
    """Return the probabilities that 0 to n of n people are drawn."""
    return [comb(n, j) * share**j * (1 - share) ** (n - j) for j in range(n + 1)]


def too_telling(n: int, share: Fraction, epsilon: Fraction, least: int = 0) -> Fraction:
    """Return the probability that the number of n people who are drawn is at least `least`, and more than e^epsilon
    times as likely as with n - 1 people. With n - 1 people n cannot be drawn at all."""
    more, fewer, factor = chances(n, share), [*chances(n - 1, share), Fraction(0)], power_of_e(epsilon)
    return sum((p for j, (p, q) in enumerate(zip(more, fewer)) if j >= least and p > factor * q), Fraction(0))


def least_group(share: Fraction, epsilon: Fraction, delta: Fraction, largest: int) -> int:
    """Return the least k for which groups of up to `largest` people are too telling with probability at most delta."""
    k = 1
    for n in range(1, largest + 1):
        while too_telling(n, share, epsilon, k) > delta:
            k += 1
    return k


def k_of_safepub(epsilon: float, delta: float) -> int:
    """Return the least k as SafePub's section on parameters and ARX's ParameterCalculation define it, in floats."""
    share = 1 - exp(-epsilon)
    gamma = (exp(epsilon) - 1 + share) / exp(epsilon)

    def tail(n: int) -> float:
        return sum(comb(n, j) * share**j * (1 - share) ** (n - j) for j in range(floor(n * gamma) + 1, n + 1))

    def largest(k: int) -> float:
        n, found, bound = ceil(k / gamma - 1), 0.0, 2.0
        while found < bound:
            found = max(found, tail(n))
            bound = exp(-n * (gamma * log(gamma / share) - (gamma - share)))
            n += 1
        return found

    k = 1
    while largest(k) > delta:
        k += 1
    return k


def published(labels: Sequence[str], share: Fraction, k: int) -> Distribution:
    """Return the distribution of the published groups over all samples of the people with these labels."""
    found: Distribution = {}
    for drawn in product((False, True), repeat=len(labels)):
        sizes = Counter(label for label, is_drawn in zip(labels, drawn) if is_drawn)
        groups = tuple(sorted((label, n) for label, n in sizes.items() if n >= k))
        chance = share ** sum(drawn) * (1 - share) ** (len(labels) - sum(drawn))
        found[groups] = found.get(groups, Fraction(0)) + chance
    return found


def excess(one: Distribution, other: Distribution, epsilon: Fraction) -> Fraction:
    """Return the largest P[one in S] - e^epsilon P[other in S] of all sets S."""
    factor = power_of_e(epsilon)
    return sum((max(p - factor * other.get(out, Fraction(0)), Fraction(0)) for out, p in one.items()), Fraction(0))


def neighbours(labels: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the tables with one person less."""
    for at in range(len(labels)):
        yield [*labels[:at], *labels[at + 1 :]]


def is_drawn(key: bytes, about: str, who: str, limit: int) -> bool:
    """Return whether the coin of somebody comes below the limit."""
    own = hmac.new(key, about.encode(), hashlib.sha256).digest()
    return int.from_bytes(hmac.new(own, who.encode(), hashlib.sha256).digest()[:8], "big") < limit
