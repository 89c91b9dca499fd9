"""Observed belief by counting random worlds, straight from the proof of Theorem 3.1 of the l-diversity paper. Stands
outside the way of the data, as the reference for `explore`. A population says how many people have each signature and
value; a world gives the values to its people and draws the table from them; all worlds are equally likely, and those
that fit the release and hold the target are counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, permutations, product

Population = Sequence[Sequence[int]]  # people by signature and value


def observed(population: Population, signature: int, counts: Sequence[int]) -> list[Fraction] | None:
    """The belief in each value about a person with this signature, who is in the release, which is one group with these
    counts of values; None if no world fits."""
    worlds = [0] * len(counts)
    blocks = [sorted(Counter(dict(enumerate(row))).elements()) for row in population]
    target = sum(map(len, blocks[:signature]))
    if not blocks[signature]:
        return None
    wanted = sorted(Counter(dict(enumerate(counts))).elements())
    for assignment in product(*(set(permutations(block)) for block in blocks)):
        values = [value for block in assignment for value in block]
        for sample in combinations(range(len(values)), len(wanted)):
            if target in sample and sorted(values[i] for i in sample) == wanted:
                worlds[values[target]] += 1
    total = sum(worlds)
    return [Fraction(count, total) for count in worlds] if total else None


def by_theorem(
    counts: Sequence[int], given_signature: Sequence[Fraction], given_group: Sequence[Fraction]
) -> list[Fraction]:
    """Theorem 3.1 in fractions."""
    weights = [n * q / g if n else Fraction(0) for n, q, g in zip(counts, given_signature, given_group)]
    return [weight / sum(weights) for weight in weights]
