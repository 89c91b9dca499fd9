"""Utility of a release by its definitions, on tables small enough to count by hand: over the values that lie under each
label, in exact fractions. Stands outside the way of the data, as the reference for `anon utility`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

Value = Hashable
Row = tuple[tuple[Value, ...], tuple[Value, ...]]  # quasi-identifiers and sensitive values
Box = tuple[frozenset[Value], ...]  # per quasi-identifier the values of the source under a label


@dataclass(frozen=True)
class Group:
    """A box for every individual, and the sensitive values of all of them, of nobody in particular."""

    boxes: list[Box]
    values: list[tuple[Value, ...]]


def area(box: Box) -> int:
    return math.prod(map(len, box))


def average_group(groups: Sequence[Group]) -> Fraction:
    return Fraction(sum(len(group.boxes) for group in groups), len(groups))


def discernibility(groups: Sequence[Group], individuals: int) -> int:
    released = [len(group.boxes) for group in groups]
    return sum(size**2 for size in released) + (individuals - sum(released)) * individuals


def loss(groups: Sequence[Group], column: int, position: dict[Value, Any], individuals: int) -> Fraction:
    """The mean share of the column's scale that an individual is published in; who is not published is everywhere."""
    whole = Fraction(max(position.values())) - Fraction(min(position.values()))
    if not whole:
        return Fraction(0)
    total, released = Fraction(0), 0
    for group in groups:
        for box in group.boxes:
            places = [Fraction(position[value]) for value in box[column]]
            total += (max(places) - min(places)) / whole
            released += 1
    return (total + individuals - released) / individuals


def expected(groups: Sequence[Group], wanted: Box, sensitive: Sequence[frozenset[Value]]) -> Fraction:
    """The rows in a box of values that the release lets one expect."""
    found = Fraction(0)
    for group in groups:
        held = sum(all(v in some for v, some in zip(value, sensitive)) for value in group.values)
        for box in group.boxes:
            inside = math.prod(len(own & asked) for own, asked in zip(box, wanted))
            found += Fraction(inside, area(box)) * Fraction(held, len(group.boxes))
    return found


def divergence(rows: Sequence[Row], groups: Sequence[Group]) -> float:
    """The sum of F log(F / F*) over the rows' different tuples. Rows that are not in the release are spread evenly over
    all tuples that the source's values allow."""
    missing = len(rows) - sum(len(group.values) for group in groups)
    columns = [*zip(*(qi for qi, _ in rows)), *zip(*(values for _, values in rows))]
    everything = math.prod(len(set(column)) for column in columns)
    total = 0.0
    for (qi, values), count in Counter(rows).items():
        own = tuple(frozenset([value]) for value in qi)
        told = expected(groups, own, [frozenset([value]) for value in values])
        told += Fraction(missing, everything)
        total += count * (math.log(count) - math.log(told))
    return total / len(rows)


def error(count: int, found: Fraction, rows: int) -> Fraction:
    """Relative to the count, or to a thousandth of the rows if that is more, but not to less than a row."""
    return abs(found - count) / max(Fraction(count), Fraction(rows, 1000), Fraction(1))


def by_selectivity(
    errors: Sequence[Fraction], counts: Sequence[int], rows: int
) -> list[tuple[Fraction, Fraction, list[Fraction]]]:
    """The errors of the queries that count at least one share of all rows and less than the next, or all rows."""
    ends = [Fraction(each, 1000) for each in (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)]
    found = []
    for low, high in pairwise(ends):
        some = [e for e, c in zip(errors, counts) if low <= Fraction(c, rows) < high or high == 1 == Fraction(c, rows)]
        found += [(low, high, some)] if some else []
    return found
