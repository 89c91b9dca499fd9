"""Which row of an individual is used, by the definition in docs/sources.md, over plain Python values."""

from __future__ import annotations

import math
from typing import Any

Row = dict[str, Any]


def chosen(rows: list[Row], who: str, keep: str, by: str, published: list[str]) -> list[Row]:
    """The published values of one row of each individual: the first or last by a column and then by all others."""
    people: dict[Any, list[Row]] = {}
    for row in rows:
        people.setdefault(row[who], []).append(row)
    found = []
    for own in people.values():
        best = own[0]
        for row in own[1:]:
            order = compare(row, best, [by, *published])
            best = row if (order > 0 if keep == "last" else order < 0) else best
        found.append({name: best[name] for name in published})
    return found


def compare(one: Row, other: Row, columns: list[str]) -> int:
    """Negative, 0 or positive as one row comes before another, is like it, or comes after it."""
    for column in columns:
        a, b = rank(one[column]), rank(other[column])
        if a != b:
            return 1 if a > b else -1
    return 0


def rank(value: Any) -> tuple[Any, ...]:
    """A missing value comes before all others; text is compared by its bytes in UTF-8."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return (0,)
    return 1, value.encode() if isinstance(value, str) else value
