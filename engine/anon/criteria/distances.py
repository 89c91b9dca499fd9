"""Distances between the values of a sensitive column, for the criteria that search and verify ask (config -> source ->
cube -> search -> release -> verify -> report). A distance knows, exactly, which values lie within epsilon of each
other. There are three shapes: on a `Line` (absolute, ordered) a neighbourhood is a window of the sorted values; over
`Levels` (equal, hierarchy) it is everything under one node; `Pairs` (matrix, variational, a function) lists neighbours
one by one, which takes time and memory with the square of the number of values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anon.criteria.arithmetic import FITS, Units
from anon.criteria.distance_matrix import read_matrix
from anon.criteria.protocol import Groups, Ints, exact
from anon.errors import ConfigError, Problem
from anon.hierarchy import HierarchyGap, Tree
from anon.hierarchy.files import read, rooted
from anon.hierarchy.labels import Level

Texts = Sequence[str | None]


class Neighbours(ABC):
    """Which values lie within one epsilon of each other."""

    @abstractmethod
    def largest(self, groups: Groups) -> Ints:
        """The size of the largest neighbourhood of any value of each group, counted within the group."""

    @abstractmethod
    def of(self, code: int) -> list[int]:
        """The codes within epsilon of a code, itself included, ascending."""


@dataclass(frozen=True)
class Windows(Neighbours):
    """Neighbourhoods that are ranges of the values in some order: the value at place p has those from low[p] to
    high[p]. `place` is that of each code."""

    place: Ints
    low: Ints
    high: Ints

    def largest(self, groups: Groups) -> Ints:
        from anon.criteria import kernels_proximity

        sizes = np.empty(len(groups), np.int64)
        kernels_proximity.largest_window(groups.start, *in_order(groups, self.place), self.low, self.high, sizes)
        return sizes

    def of(self, code: int) -> list[int]:
        place = self.place[code]
        return np.flatnonzero((self.place >= self.low[place]) & (self.place <= self.high[place])).tolist()


@dataclass(frozen=True)
class Lists(Neighbours):
    """The neighbours of code c are `code[start[c]:start[c + 1]]`, ascending."""

    start: Ints
    code: Ints

    def largest(self, groups: Groups) -> Ints:
        from anon.criteria import kernels_proximity

        sizes = np.empty(len(groups), np.int64)
        kernels_proximity.largest_listed(groups.start, groups.value, groups.count, self.start, self.code, sizes)
        return sizes

    def of(self, code: int) -> list[int]:
        return self.code[self.start[code] : self.start[code + 1]].tolist()


def in_order(groups: Groups, place: Ints) -> tuple[Ints, Ints]:
    """The places of the values of each group, ascending within it, and their counts in the same order."""
    places = place[groups.value]
    descends = places[1:] < places[:-1]
    descends[groups.start[1:-1] - 1] = False
    if not descends.any():
        return places, groups.count
    from anon.criteria import kernels_proximity

    in_place, counts = np.empty_like(places), np.empty_like(places)
    kernels_proximity.sort_places(groups.start, places, groups.count, len(place), in_place, counts)
    return in_place, counts


class Distance(ABC):
    """A distance between the value codes 0 .. size - 1 of one sensitive column."""

    size: int

    @abstractmethod
    def neighbours(self, epsilon: Fraction) -> Neighbours:
        """Which values lie at a distance of at most epsilon."""


class Line(Distance):
    """Values at points of a line, `units.of` each, measured in ones."""

    def __init__(self, units: Units) -> None:
        self.units, self.size = units, len(units.of)
        self.order = sorted(range(self.size), key=units.of.__getitem__)
        self.place = np.empty(self.size, np.int64)
        self.place[self.order] = np.arange(self.size)

    def neighbours(self, epsilon: Fraction) -> Windows:
        points = [self.units.of[code] for code in self.order]
        reach = int(epsilon * self.units.per_one)  # whole units apart: the fraction of one more cannot matter
        low = [bisect_left(points, point - reach) for point in points]
        high = [bisect_right(points, point + reach) - 1 for point in points]
        return Windows(self.place, np.array(low, np.int64), np.array(high, np.int64))


class Levels(Distance):
    """Values as leaves of a tree of equal depth, `height` levels below the root: two values are as far apart as the
    level of their lowest common ancestor, over the height. `node[level, code]`, numbered from 0 on each level, covers
    the levels below the root."""

    def __init__(self, node: Ints) -> None:
        self.node = np.ascontiguousarray(node, np.int64)
        self.height, self.size = node.shape

    def neighbours(self, epsilon: Fraction) -> Windows:
        level = int(epsilon * self.height)
        node = self.node[level] if level < self.height else np.zeros(self.size, np.int64)
        order = np.argsort(node, kind="stable")
        place = np.empty(self.size, np.int64)
        place[order] = np.arange(self.size)
        low = np.searchsorted(node[order], node[order], "left")
        return Windows(place, low, np.searchsorted(node[order], node[order], "right") - 1)


class Pairs(Distance):
    """Distances without a structure: `row(code)` gives those of a code to all codes, in whole units."""

    def __init__(self, size: int, row: Callable[[int], NDArray[Any]], per_one: int) -> None:
        self.size, self._row, self._per_one = size, row, per_one

    def neighbours(self, epsilon: Fraction) -> Lists:
        reach = int(epsilon * self._per_one)
        lists = [np.flatnonzero(self._row(code) <= reach) for code in range(self.size)]
        start = np.cumsum([0, *map(len, lists)], dtype=np.int64)
        return Lists(start, np.concatenate([np.empty(0, np.int64), *lists]).astype(np.int64))


def absolute(numbers: Sequence[Fraction | None], where: str = "privacy") -> Line:
    """The difference of two numbers.

    >>> absolute([Fraction("0.3"), Fraction("0.1"), Fraction("0.2")]).neighbours(Fraction("0.1")).of(2)
    [0, 1, 2]
    """
    return Line(Units.exactly(numbers, where))


def equal(size: int) -> Levels:
    """0 for equal values, 1 for others."""
    return Levels(np.arange(size)[None, :])


def ordered(
    texts: Texts,
    order: Sequence[str] | None = None,
    numbers: Sequence[Fraction | None] | None = None,
    where: str = "privacy",
) -> Line:
    """The difference of ranks over the number of values less one: in the order given, which is then the whole domain,
    or in natural order (by number, else by text; null is lowest).

    >>> severity = ordered(["high", "low", "medium"], ["low", "medium", "high"])
    >>> severity.neighbours(Fraction("0.5")).of(0)
    [0, 2]
    """
    if order is None:
        return _ranked(texts if numbers is None else numbers)
    rank = {name: place for place, name in enumerate(order)}
    _refuse_unlisted(texts, rank, "the order", where)
    return Line(Units([rank[str(name)] for name in texts], max(len(order) - 1, 1)))


def _ranked(keys: Sequence[Any]) -> Line:
    known = sorted((key, code) for code, key in enumerate(keys) if key is not None)
    codes = [*(code for code, key in enumerate(keys) if key is None), *(code for _, code in known)]
    ranks = np.empty(len(codes), np.int64)
    ranks[codes] = np.arange(len(codes))
    return Line(Units(ranks.tolist(), max(len(codes) - 1, 1)))


def _refuse_unlisted(texts: Texts, listed: Container[str], what: str, where: str) -> None:
    missing = sum(name is None or name not in listed for name in texts)
    if missing:
        found = f"{missing} of {len(texts)} distinct values, null included, that {what} does not name"
        raise ConfigError.at(where, found, "every value that occurs in the data")


def hierarchy_file(texts: Texts, path: Path, where: str = "privacy") -> Levels:
    """The level of the lowest common ancestor in a hierarchy file, over the height up to the level where all leaves of
    the file meet. Null is only under the root."""
    table = read(path, where)
    rows = {row[0]: row for row in rooted(table)}
    missing = [name for name in texts if name is not None and name not in rows]
    if missing:
        found = f"{len(missing)} of {len(texts)} distinct values that are not leaves of {path.name}"
        raise HierarchyGap([Problem(where, found, "every value of the column as a leaf")], missing=missing)
    height = max((level for level, labels in enumerate(zip(*rows.values()), 1) if len(set(labels)) > 1), default=1)
    paths = [(None,) * height if name is None else rows[name][:height] for name in texts]
    return Levels(_numbered(list(zip(*paths))))


def hierarchy_tree(tree: Tree) -> Levels:
    """The same over the codes of a tree that is already built."""
    height = max(int(tree.level[-1]), 1)
    return Levels(_numbered(tree.node_at[:height].tolist()))


def _numbered(levels: Sequence[Sequence[Any]]) -> Ints:
    """The labels of each level as numbers from 0."""
    return np.array([Level.of(labels).number for labels in levels], np.int64)


def matrix_file(texts: Texts, path: Path, where: str = "privacy") -> Pairs:
    """Distances from a CSV file, see `distance_matrix`."""
    table = read_matrix(path, where)
    _refuse_unlisted(texts, table, path.name, where)
    names = [str(name) for name in texts]
    return _tabled([[table[name][other] for other in names] for name in names])


def by_function(values: Sequence[Any], distance: Callable[[Any, Any], Any]) -> Pairs:
    """Whatever a Python function says of two values, asked once for each pair; it is taken to be symmetric. Floats
    count as the decimals they are written as.

    >>> by_function(["ab", "abc", "x"], lambda a, b: abs(len(a) - len(b)) / 10).neighbours(Fraction("0.1")).of(0)
    [0, 1, 2]
    """
    table = [[Fraction(0)] * len(values) for _ in values]
    for one, value in enumerate(values):
        for other in range(one):
            table[one][other] = table[other][one] = exact(distance(value, values[other]))
    return _tabled(table)


def _tabled(table: list[list[Fraction]]) -> Pairs:
    per_one = lcm(*{number.denominator for row in table for number in row})
    units = _compact([int(number * per_one) for row in table for number in row], len(table))
    return Pairs(len(table), units.__getitem__, per_one)


def variational(tuples: Sequence[Sequence[Fraction | None]], where: str = "privacy") -> Pairs:
    """Half the sum of the absolute differences of two tuples of numbers, as between two distributions.

    >>> even, first, second = (Fraction(1, 2), Fraction(1, 2)), (Fraction(1), Fraction(0)), (Fraction(0), Fraction(1))
    >>> variational([even, first, second]).neighbours(Fraction(1, 2)).of(1)
    [0, 1]
    """
    units = Units.exactly([number for numbers in tuples for number in numbers], where)
    points = _compact(units.of, len(tuples))
    return Pairs(len(tuples), lambda code: np.abs(points - points[code]).sum(axis=1), 2 * units.per_one)


def _compact(units: list[int], rows: int) -> NDArray[Any]:
    """A matrix of integers; of Python's own where a sum of differences in a row might not fit."""
    columns = len(units) // max(rows, 1)
    fits = 2 * max(map(abs, units), default=0) * max(columns, 1) < FITS
    return np.array(units, np.int64 if fits else object).reshape(rows, columns)
