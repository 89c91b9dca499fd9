"""What an adversary who knows everybody's quasi-identifiers concludes from a release whose labels may overlap, by
enumeration: every way to give the released rows to people whom their labels cover is equally likely. For at most 8
people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from fractions import Fraction
from math import lcm

Row = Hashable


def worlds(people: Sequence[Row], rows: Sequence[Row], covers: Callable[[Row, Row], bool]) -> Iterator[tuple[int, ...]]:
    """Yield the row of each person, for every way to match them."""
    fitting = [[at for at, row in enumerate(rows) if covers(row, person)] for person in people]

    def extended(taken: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(taken) == len(people):
            yield taken
            return
        for at in fitting[len(taken)]:
            if at not in taken:
                yield from extended((*taken, at))

    return extended(())


def beliefs(
    people: Sequence[Row], rows: Sequence[Row], covers: Callable[[Row, Row], bool]
) -> list[dict[int, Fraction]]:
    """Return for each person the probability of each row."""
    found, total = [Counter[int]() for _ in people], 0
    for world in worlds(people, rows, covers):
        total += 1
        for own, at in zip(found, world):
            own[at] += 1
    return [{at: Fraction(count, total) for at, count in own.items()} for own in found]


def as_group(belief: dict[int, Fraction], values: Sequence[Hashable]) -> list[Hashable]:
    """Return the distribution of a person's value as a group with these shares."""
    shares: dict[Hashable, Fraction] = {}
    for at, share in belief.items():
        shares[values[at]] = shares.get(values[at], Fraction(0)) + share
    whole = 2 * lcm(*(share.denominator for share in shares.values()))
    return [value for value, share in shares.items() for _ in range(int(share * whole))]
