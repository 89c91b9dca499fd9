"""Means within groups by their definition, in exact fractions: the reference for `columns.aggregate`. It stands
outside the way of the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

Row = tuple[Any, ...]
Size = int | str


def rounded(value: Fraction, places: int) -> Fraction:
    """The nearest decimal, of two the one further from zero."""
    scaled = abs(value) * 10**places
    whole = scaled.numerator // scaled.denominator
    whole += 2 * (scaled - whole) >= 1
    return Fraction(whole if value >= 0 else -whole, 10**places)


def runs(values: Sequence[Any], size: Size) -> list[list[Any]]:
    """Values in order, in runs: as many as have `size` values, the first ones with one more until none is left over."""
    count = 1 if size == "group" else max(len(values) // int(size), 1)
    found, at = [], 0
    for left in range(count, 0, -1):
        length = -(-(len(values) - at) // left)  # what is left, shared evenly
        found.append(list(values[at : at + length]))
        at += length
    return found


def in_order(row: Row) -> list[tuple[bool, Any]]:
    """Null comes first."""
    return [(value is not None, 0 if value is None else value) for value in row]


def aggregated(rows: Sequence[Row], means: Mapping[int, tuple[Size, int]]) -> list[Row]:
    """The rows of one group with means in some columns, given by size and places; they may come in any order."""
    ordered = sorted(rows, key=in_order)
    found = [list(row) for row in ordered]
    for column, (size, places) in means.items():
        there = [at for at, row in enumerate(ordered) if row[column] is not None]
        there.sort(key=lambda at: ordered[at][column])  # stable: equal values in the order of their rows
        for run in runs(there, size):
            enough = len(run) >= (2 if size == "group" else int(size))
            total = sum((Fraction(ordered[at][column]) for at in run), Fraction(0))
            for at in run:
                found[at][column] = rounded(total / len(run), places) if enough else None
    return [tuple(row) for row in found]
