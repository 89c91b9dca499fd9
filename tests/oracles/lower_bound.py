"""The least loss of a release in which everybody shares labels with k people, by enumeration of all partitions of a few
people into groups of at least k, and of what a group then has to publish. Nothing of the engine is used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

Person = Sequence[Fraction]  # positions in every column, from 0 to 1


def partitions(people: list[int], k: int) -> Iterator[list[list[int]]]:
    """All partitions into groups of at least k."""

    def extended(at: int, groups: list[list[int]]) -> Iterator[list[list[int]]]:
        if at == len(people):
            if all(len(group) >= k for group in groups):
                yield groups
            return
        for place in range(len(groups)):
            yield from extended(
                at + 1, [[*group, people[at]] if i == place else group for i, group in enumerate(groups)]
            )
        yield from extended(at + 1, [*groups, [people[at]]])

    return extended(0, [])


def width(group: Sequence[Person]) -> Fraction:
    """The mean extent of the narrowest box around a group."""
    columns = list(zip(*group))
    return sum((max(column) - min(column) for column in columns), Fraction(0)) / len(columns)


def least_loss(people: Sequence[Person], k: int) -> Fraction:
    """The least mean loss of all partitions."""
    every = partitions(list(range(len(people))), k)
    losses = (sum(len(group) * width([people[i] for i in group]) for group in groups) for groups in every)
    return Fraction(min(losses)) / len(people)


def bound(people: Sequence[Person], k: int) -> Fraction:
    """The mean distance to the k-th nearest, oneself being the first."""
    reach = (sorted(width([own, other]) for other in people)[k - 1] for own in people)
    return sum(reach, Fraction(0)) / len(people)
