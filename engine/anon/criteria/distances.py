"""Distances between the values of a sensitive column. A distance knows exactly which values lie within epsilon of each
other. There are three shapes: on a `Line` (absolute, ordered) a neighbourhood is a window of the sorted values; over
`TreeLevels` (equal, hierarchy) it is everything under one node; `Pairs` (matrix, variational, a function) lists
neighbours one by one, which takes time and memory with the square of the number of values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anon.criteria.arithmetic import FITS, Units
from anon.criteria.distance_matrix import read_matrix
from anon.criteria.protocol import NEAR, Groups, Ints, exact
from anon.errors import ConfigError, Problem
from anon.hierarchy import HierarchyGap
from anon.hierarchy.csv_files import refuse
from anon.hierarchy.files import read, rooted

Texts = Sequence[str | None]
Function = Callable[[Any, Any], Any]

PAIRED = 5_000  # distinct values of a distance that is computed pair by pair
ANSWER = "a finite number for every two values"  # of a function that is a distance
ROUNDING = Fraction(1, 10**9)  # how far a function of floats may be from symmetric, and from 0 for equal values


class Neighbours(ABC):
    """Which values lie within one epsilon of each other."""

    @abstractmethod
    def largest(self, groups: Groups) -> Ints:
        """Return the size of the largest neighbourhood of any value of each group, counted within the group."""

    @abstractmethod
    def codes_near(self, code: int) -> list[int]:
        """Return the codes within epsilon of a code, itself included, ascending."""


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

    def codes_near(self, code: int) -> list[int]:
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
        kernels_proximity.largest_listed(groups, self.start, self.code, sizes)
        return sizes

    def codes_near(self, code: int) -> list[int]:
        found: list[int] = self.code[self.start[code] : self.start[code + 1]].tolist()
        return found


def in_order(groups: Groups, place: Ints) -> tuple[Ints, Ints]:
    """Return the places of the values of each group, ascending within it, and their counts in the same order."""
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
        """Return which values are at a distance of at most epsilon."""


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


class TreeLevels(Distance):
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
    """Distances without a structure, looked at pair by pair."""

    @abstractmethod
    def within(self, code: int, epsilon: Fraction) -> Ints:
        """Return the codes within epsilon of a code, ascending."""

    def neighbours(self, epsilon: Fraction) -> Lists:
        lists = [self.within(code, epsilon).astype(np.int32) for code in range(self.size)]
        start = np.cumsum([0, *map(len, lists)], dtype=np.int64)
        return Lists(start, np.concatenate([np.empty(0, np.int32), *lists]).astype(np.int64))


class RankedPairs(Pairs):
    """`rank[code, code]` is the place of a distance among `distances`, which ascend."""

    def __init__(self, rank: Ints, distances: list[Fraction]) -> None:
        self.rank, self.distances, self.size = rank, distances, len(rank)

    def within(self, code: int, epsilon: Fraction) -> Ints:
        return np.flatnonzero(self.rank[code] < bisect_right(self.distances, epsilon))


class Points(Pairs):
    """Half the sum of the absolute differences of two tuples of numbers, `units[column, code]` each."""

    def __init__(self, units: NDArray[Any], per_one: int) -> None:
        self.size, self.per_one = units.shape[1], per_one
        self.units = units - units.min(axis=1, keepdims=True)
        spans = self.units.max(axis=1).tolist()
        self.fits = sum(spans) < FITS
        self.units = self.units.astype(np.int64 if self.fits else object)
        self.widest = max(1, *spans)
        self.shares = (self.units / self.widest).astype(np.float64)

    def within(self, code: int, epsilon: Fraction) -> Ints:
        reach = int(2 * epsilon * self.per_one)  # whole units apart: the fraction of one more cannot matter
        if self.fits:
            return np.flatnonzero(np.abs(self.units - self.units[:, code, None]).sum(axis=0) <= reach)
        excess = np.abs(self.shares - self.shares[:, code, None]).sum(axis=0) - float(Fraction(reach, self.widest))
        near, close = excess < 0, np.flatnonzero(np.abs(excess) < NEAR)
        near[close] = np.abs(self.units[:, close] - self.units[:, code, None]).sum(axis=0) <= reach
        return np.flatnonzero(near)


def absolute(numbers: Sequence[Fraction | None], where: str = "privacy") -> Line:
    """Return the distance that is the difference of two numbers.

    >>> absolute([Fraction("0.3"), Fraction("0.1"), Fraction("0.2")]).neighbours(Fraction("0.1")).codes_near(2)
    [0, 1, 2]
    """
    return Line(Units.exactly(numbers, where))


def equal(size: int) -> TreeLevels:
    """Return the distance that is 0 for equal values and 1 for others."""
    return TreeLevels(np.arange(size)[None, :])


def ordered(
    texts: Texts,
    order: Sequence[str] | None = None,
    numbers: Sequence[Fraction | None] | None = None,
    where: str = "privacy",
) -> Line:
    """Return the distance in ranks over the number of values less one: in the order given, which is then the whole
    domain, or in natural order (by number, else by text; null is lowest).

    >>> severity = ordered(["high", "low", "medium"], ["low", "medium", "high"])
    >>> severity.neighbours(Fraction("0.5")).codes_near(0)
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


def hierarchy_file(texts: Texts, path: Path, where: str = "privacy") -> TreeLevels:
    """Return the level of the lowest common ancestor in a hierarchy file, over the height up to the level where all
    leaves of the file meet. Null is only under the root."""
    table, names = rooted(read(path, where)), [name for name in texts if name is not None]
    place = table.find(names)
    missing = [name for name, row in zip(names, place.tolist()) if row < 0]
    if missing:
        found = f"{len(missing)} of {len(texts)} distinct values that are not leaves of {path.name}"
        raise HierarchyGap([Problem(where, found, "every value of the column as a leaf")], missing=missing)
    height = max((number for number, level in enumerate(table.levels, 1) if len(level.names) > 1), default=1)
    rows = iter(table.rows(place))
    paths = [(None,) * height if name is None else next(rows)[:height] for name in texts]
    return TreeLevels(_numbered(list(zip(*paths))))


def _numbered(levels: Sequence[Sequence[Any]]) -> Ints:
    """Return the labels of each level as numbers from 0."""
    known = [{label: number for number, label in enumerate(dict.fromkeys(labels))} for labels in levels]
    return np.array([[numbers[label] for label in labels] for numbers, labels in zip(known, levels)], np.int64)


def matrix_file(texts: Texts, path: Path, where: str = "privacy") -> RankedPairs:
    """Return distances from a CSV file, see `distance_matrix`."""
    table = read_matrix(path, where)
    _refuse_unlisted(texts, table, path.name, where)
    names = [str(name) for name in texts]
    distances = sorted({distance for row in table.values() for distance in row.values()})
    place = {distance: rank for rank, distance in enumerate(distances)}
    return RankedPairs(
        np.array([[place[table[name][other]] for other in names] for name in names], np.int64), distances
    )


def by_function(values: Sequence[Any], function: Function, where: str = "privacy") -> RankedPairs:
    """Return the distance that a Python function gives. Floats count as the decimals they are written as. What rounding
    may do to a function that is symmetric and zero for equal values, 1e-9, is forgiven, and the smaller number counts.

    >>> by_lengths = by_function(["ab", "abc", "x"], lambda a, b: abs(len(a) - len(b)) / 10)
    >>> by_lengths.neighbours(Fraction("0.1")).codes_near(0)
    [0, 1, 2]
    """
    _refuse_many(len(values), where)
    rank, distances = _answers(values, function, where)
    refuse(list(_no_distance(rank, distances, where)))
    rank = np.minimum(rank, rank.T)
    np.fill_diagonal(rank, 0)
    return RankedPairs(rank, distances)


def _answers(values: Sequence[Any], function: Function, where: str) -> tuple[Ints, list[Fraction]]:
    """Return what the function says of every pair, as places among the different answers, which ascend."""
    known: dict[Any, int] = {}
    numbers: list[Fraction] = []
    place = np.empty((len(values), len(values)), np.int32)
    for row, one in zip(place, values):
        for column, other in enumerate(values):
            said = _call(function, one, other, where)
            key = (type(said), said)
            if key not in known:
                known[key] = len(numbers)
                numbers.append(_number(said, where))
            row[column] = known[key]
    distances = sorted({Fraction(0), *numbers})
    rank = {distance: rank for rank, distance in enumerate(distances)}
    return np.array([rank[number] for number in numbers], np.int64)[place], distances


def _call(function: Function, one: Any, other: Any, where: str) -> Any:
    """Return the answer of a function. An error in it is reported by its type, since its text may quote values."""
    try:
        said = function(one, other)
    except Exception as error:
        raise ConfigError.at(where, f"a function that raised {type(error).__name__}", ANSWER) from error
    if isinstance(said, bool) or not isinstance(said, Number):
        raise ConfigError.at(where, f"a function that gave a {type(said).__name__}", ANSWER)
    return said


def _number(said: Any, where: str) -> Fraction:
    try:
        return exact(said)
    except ValueError:
        found = f"a function that gave a {type(said).__name__} that is no finite number"
        raise ConfigError.at(where, found, ANSWER) from None


def _no_distance(rank: Ints, distances: list[Fraction], where: str) -> Iterator[Problem]:
    negative = int((rank < bisect_left(distances, -ROUNDING)).sum())
    if negative:
        yield Problem(where, f"a function that is below 0 for {negative:,} pairs of values", "distances of 0 or more")
    apart = sum(abs(distances[own]) > ROUNDING for own in rank.diagonal())
    if apart:
        yield Problem(where, f"a function that is not 0 for {apart:,} values and themselves", "0 for equal values")
    differ = np.argwhere(np.triu(rank != rank.T))
    lopsided = sum(not _alike(distances[rank[a, b]], distances[rank[b, a]]) for a, b in differ)
    if lopsided:
        yield Problem(where, f"a function that is not the same both ways for {lopsided:,} pairs", "f(a, b) = f(b, a)")


def _alike(one: Fraction, other: Fraction) -> bool:
    return abs(one - other) <= ROUNDING * max(abs(one), abs(other), Fraction(1))


def _refuse_many(size: int, where: str) -> None:
    if size > PAIRED:
        expected = f"at most {PAIRED:,} for a distance that is computed pair by pair"
        raise ConfigError.at(where, f"{size:,} distinct values", expected, "round them: columns.sensitive")


def variational(tuples: Sequence[Sequence[Fraction | None]], where: str = "privacy") -> Points:
    """Return the distance that is half the sum of the absolute differences of two tuples, as of two distributions.

    >>> even, first, second = (Fraction(1, 2), Fraction(1, 2)), (Fraction(1), Fraction(0)), (Fraction(0), Fraction(1))
    >>> variational([even, first, second]).neighbours(Fraction(1, 2)).codes_near(1)
    [0, 1]
    """
    _refuse_many(len(tuples), where)
    units = Units.exactly([number for numbers in tuples for number in numbers], where)
    return Points(np.array(units.of, object).reshape(len(tuples), -1).T, units.per_one)
