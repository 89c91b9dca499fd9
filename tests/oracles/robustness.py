"""r-robustness by enumeration, straight from its definition. Stands outside the way of the data, as the reference for
the criterion that search and verify share. A group is a list of people, each the prior of every value, and the list of
the values they have between them; a world hands these to the people, and weighs the product of their priors."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations

Person = Sequence[Fraction]  # the prior of each value, by its code


def posteriors(people: Sequence[Person], values: Sequence[int]) -> dict[tuple[int, int], Fraction] | None:
    """p(person : value) for all people and the values of the group; None if no world is possible."""
    weights = dict.fromkeys(((t, x) for t in range(len(people)) for x in values), Fraction(0))
    total = Fraction(0)
    for world in set(permutations(values)):
        weight = Fraction(1)
        for person, value in zip(people, world):
            weight *= person[value]
        total += weight
        for pair in enumerate(world):
            weights[pair] += weight
    return {pair: weight / total for pair, weight in weights.items()} if total else None


def largest(people: Sequence[Person], values: Sequence[int]) -> Fraction:
    """The largest posterior; 1 if no world is possible."""
    found = posteriors(people, values)
    return max(found.values()) if found is not None else Fraction(1)


def against_all_others(f: Sequence[Fraction], copies: int) -> Fraction:
    """The largest posterior of a value with this many copies, known only against all others together."""
    people = [(1 - p, p) for p in f]
    found = posteriors(people, [1] * copies + [0] * (len(f) - copies))
    if copies == len(f):
        return Fraction(1)
    return max(p for (_, x), p in found.items() if x == 1) if found is not None else Fraction(1)


def delta_ceil(n: int, r: Fraction, f_max: Fraction) -> Fraction:
    """The right-hand side of the paper's inequality (4)."""
    if f_max == 1:
        return Fraction(0)
    return (n - r) * f_max / (f_max * (r - 1) / (1 - f_max) + (n - 1))
