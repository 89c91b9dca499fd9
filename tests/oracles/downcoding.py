"""Downcoding by enumeration: every column of a group that no cut could divide, and how many must share a value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement


def uncut(n: int, values: int, k: int) -> Iterator[tuple[int, ...]]:
    """All columns of n people, in order, of which no boundary between two values leaves k people on both sides."""
    for column in combinations_with_replacement(range(values), n):
        if not any(column[i - 1] != column[i] for i in range(k, n - k + 1)):
            yield column


def unsplit(n: int, children: int, k: int) -> Iterator[tuple[int, ...]]:
    """All columns of n people whose split into the children that have people leaves one with fewer than k."""
    for column in combinations_with_replacement(range(children), n):
        counts = Counter(column)
        if len(counts) > 1 and min(counts.values()) < k:
            yield column


def fewest_sharing(columns: Iterator[Sequence[int]]) -> int:
    """The number of people who share a value in every one of the columns."""
    return min(max(Counter(column).values()) for column in columns)
