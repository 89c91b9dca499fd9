"""Prediction by definition: the area under the ROC curve by all pairs, and what is left of a release when people are
taken out of it by their keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from fractions import Fraction


def auc(scores: Sequence[Sequence[float]], classes: Sequence[int]) -> Fraction:
    """Return the mean over the classes, by their rows, of the share of pairs in the right order, ties by half."""
    if len(set(classes)) < 2:
        return Fraction(1, 2)
    found = Fraction(0)
    for one, many in Counter(classes).items():
        own = [row[one] for row, each in zip(scores, classes) if each == one]
        other = [row[one] for row, each in zip(scores, classes) if each != one]
        right = sum(Fraction((a > b) * 2 + (a == b), 2) for a in own for b in other)
        found += right / (len(own) * len(other)) * Fraction(many, len(classes))
    return found


def left(published: Sequence[Hashable], held_out: Sequence[int]) -> Counter[Hashable]:
    """Return the published rows, which are in the order of people, without those of some people."""
    return Counter(row for who, row in enumerate(published) if who not in set(held_out))


def expectation(values: Sequence[str], under: Sequence[str]) -> list[Fraction]:
    """Return for each value the probability of it if all values under a label are equally likely."""
    return [Fraction(under.count(value), len(under)) for value in values]
