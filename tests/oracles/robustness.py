"""r-robustness by enumeration, straight from its definition. Stands outside the way of the data, as the reference for
the criterion that search and verify share. A group is a list of people, each the prior of every value, and the list of
the values they have between them; a world hands these to the people, and weighs the product of their priors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import permutations

FEW = 4  # people whose worlds are listed one by one
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


def posteriors_of_many(people: Sequence[Person], values: Sequence[int]) -> dict[tuple[int, int], Fraction] | None:
    """Return the same for groups with too many worlds to list: add worlds up over the sets of values that the first
    people have, and over those that remain for the others."""
    n = len(people)
    before, after = [Fraction(0)] * 2**n, [Fraction(0)] * 2**n
    before[0] = after[-1] = Fraction(1)
    for taken in range(1, 2**n):
        person = people[taken.bit_count() - 1]
        before[taken] = sum((before[taken & ~(1 << at)] * person[values[at]] for at in _bits(taken, n)), Fraction(0))
    weights = dict.fromkeys(((t, x) for t in range(n) for x in values), Fraction(0))
    for taken in range(2**n - 2, -1, -1):
        turn = taken.bit_count()
        for at in _bits(~taken, n):
            way = people[turn][values[at]] * after[taken | 1 << at]
            after[taken] += way
            weights[turn, values[at]] += before[taken] * way
    return {pair: weight / after[0] for pair, weight in weights.items()} if after[0] else None


def _bits(number: int, n: int) -> list[int]:
    return [at for at in range(n) if number >> at & 1]


def largest(people: Sequence[Person], values: Sequence[int]) -> Fraction:
    """The largest posterior; 1 if no world is possible."""
    found = (posteriors if len(values) <= FEW else posteriors_of_many)(people, values)
    return max(found.values()) if found is not None else Fraction(1)


def counted(people: Sequence[Person], values: Sequence[int], binary: bool = False) -> Fraction:
    """The largest posterior without listing worlds: their weights are added up by how often each value is left. Where
    it is `binary`, only the posteriors of value 1 are asked for."""
    copies = tuple(Counter(values)[value] for value in range(len(people[0])))

    @cache
    def weight(who: tuple[int, ...], left: tuple[int, ...]) -> Fraction:
        if not who:
            return Fraction(1)
        ways = ((people[who[0]][x], _less(left, x)) for x, own in enumerate(left) if own)
        return sum((p * weight(who[1:], rest) for p, rest in ways if p), Fraction(0))

    everybody = tuple(range(len(people)))
    total = weight(everybody, copies)
    if not total:
        return Fraction(1)
    different = {tuple(person): t for t, person in enumerate(people)}.values()
    others = [(t, everybody[:t] + everybody[t + 1 :]) for t in different]
    asked = {1} if binary else set(values)
    return max(people[t][x] * weight(rest, _less(copies, x)) for t, rest in others for x in asked) / total


def _less(copies: tuple[int, ...], x: int) -> tuple[int, ...]:
    return (*copies[:x], copies[x] - 1, *copies[x + 1 :])


def bound(people: Sequence[Person], values: Sequence[int]) -> Fraction:
    """C / (1 + (N - 1) / (lam_x lam_o)), the largest over all values x; 1 with a prior of zero."""
    columns = {x: [person[x] for person in people] for x in set(values)}
    if len(columns) == 1 or not all(map(all, columns.values())):
        return Fraction(1)
    lam = {x: max(column) / min(column) for x, column in columns.items()}
    others = {x: max(lam[y] for y in lam if y != x) for x in lam}
    return max(values.count(x) / (1 + (len(people) - 1) / (lam[x] * others[x])) for x in lam)


def against_all_others(f: Sequence[Fraction], copies: int) -> Fraction:
    """The largest posterior of a value with this many copies, known only against all others together."""
    people = [(1 - p, p) for p in f]
    values = [1] * copies + [0] * (len(f) - copies)
    found = (posteriors if len(values) <= FEW else posteriors_of_many)(people, values)
    if copies == len(f):
        return Fraction(1)
    return max(p for (_, x), p in found.items() if x == 1) if found is not None else Fraction(1)


def delta_ceil(n: int, r: Fraction, f_max: Fraction) -> Fraction:
    """The right-hand side of the paper's inequality (4)."""
    if f_max == 1:
        return Fraction(0)
    return (n - r) * f_max / (f_max * (r - 1) / (1 - f_max) + (n - 1))
