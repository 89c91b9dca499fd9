"""Which small groups are safe, by listing all of them. A group is the tuple of the counts of its values. Stands outside
the pipeline, as the reference for what criteria claim about every safe group: its least size, the people outside its
most frequent values, and that it stays safe when groups are merged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

Counts = tuple[int, ...]


def vectors(values: int, people: int) -> Iterator[Counts]:
    """All ways in which exactly `people` have `values` values."""
    if values == 1:
        yield (people,)
        return
    for own in range(people + 1):
        yield from ((own, *rest) for rest in vectors(values - 1, people - own))


def descending(values: int, people: int, most: int | None = None) -> Iterator[Counts]:
    """The same up to the names of the values: the counts descend."""
    most = people if most is None else most
    if values == 0:
        if people == 0:
            yield ()
        return
    for own in range(min(most, people), -(-people // values) - 1, -1):
        yield from ((own, *rest) for rest in descending(values - 1, people - own, own))


def members(counts: Counts) -> list[int]:
    """The value of each member."""
    return [value for value, count in enumerate(counts) for _ in range(count)]


def breach(counts: Counts, value: int, l: int, k: int, m: int) -> Fraction:
    """The breach probability of a value in a group alone, one value per individual (Privacy Skyline, section 6.1), if
    the adversary knows at most (l, k, m)."""
    n, own = sum(counts), counts[value]
    if not own:
        return Fraction(0)
    others = sorted(counts[:value] + counts[value + 1 :], reverse=True)
    ratio = Fraction(max(n - own - sum(others[:l]) - k, 0), own)
    for people in range(n - k - 1, n - k - 1 - m, -1):
        if ratio:
            ratio *= Fraction(people - own, people) if people > own else 0
    return 1 / (1 + ratio)


def half_the_difference(counts: Counts, reference: Sequence[int]) -> Fraction:
    """The earth mover's distance where all values are equally far apart."""
    shares = ((Fraction(own, sum(counts)), Fraction(all_, sum(reference))) for own, all_ in zip(counts, reference))
    return sum((abs(own - all_) for own, all_ in shares), Fraction(0)) / 2


def steps_between(counts: Counts, reference: Sequence[int]) -> Fraction:
    """The earth mover's distance where the values stand in a line, each one step from the next."""
    people, total, work = 0, 0, Fraction(0)
    for own, all_ in zip(counts[:-1], reference[:-1]):
        people, total = people + own, total + all_
        work += abs(Fraction(people, sum(counts)) - Fraction(total, sum(reference)))
    return work / (len(counts) - 1)
