"""Measure the error of random COUNT queries that are answered from the release instead of the source. The queries are a
function of the source's columns, so that they are the same for all releases of a table. Each has predicates on two
quasi-identifiers (or the only one) and a sensitive column, as in Anatomy (Xiao, Tao, VLDB 2006): a predicate is a run
of consecutive values of its column in its order, of such a length that all predicates together would select a twentieth
of a table of independent, evenly distributed columns. Every column has 64 runs with random starts, and every query
picks columns and one of their runs.

A release answers by expectation: all values under a label are assumed to be equally likely, and everybody in a group to
have its sensitive values in the shares of the group."""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anon.criteria import Groups, Ints
from anon.cube import Domain
from anon.loss.cells import Boxes, LabelCells

QUERIES = 1_000
RUNS = 64  # of each column; they are the bits of a word
SEED = 0
DIMENSIONS = 2  # quasi-identifiers in a query
SELECTIVITY = 0.05
FLOOR = 0.001  # share of all rows: errors of smaller counts are relative to this
CLASSES = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500)  # thousandths of all rows, where classes of counts begin

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ReleasedGroups:
    """Some groups of a release, with their numbers; codes[value, sensitive column] are those of the source."""

    groups: Groups
    numbers: Ints
    codes: Ints


@dataclass(frozen=True)
class LabelQueries:
    """Queries in terms of labels: run r of a column has the source's distinct values from low[column, r] up to but not
    including high. If every label is a value, `inside` has for each a bit for every run that it lies in."""

    cells: list[LabelCells]
    low: Ints
    high: Ints
    inside: list[NDArray[np.uint64]] | None


@dataclass(frozen=True)
class Queries:
    """Queries over the domains of quasi-identifiers and then of sensitive columns. Run r of a column has the codes
    low[column, r]..high[column, r]; a query selects the rows in one run of each of its columns: column[query,
    predicate] and run[query, predicate]. Queries that begin alike are next to each other."""

    domains: list[Domain]
    low: Ints
    high: Ints
    column: Ints
    run: Ints

    @classmethod
    def draw(cls, quasi_identifiers: list[Domain], sensitive: list[Domain]) -> Queries:
        """Return the queries about these columns."""
        rng, domains, split = random.Random(SEED), [*quasi_identifiers, *sensitive], len(quasi_identifiers)
        predicates = min(DIMENSIONS, split) + min(1, len(sensitive))
        share = SELECTIVITY ** (1 / predicates)
        runs = [[_run(rng, domain.size, share) for _ in range(RUNS)] for domain in domains]
        low, high = np.moveaxis(np.array(runs, np.int64), 2, 0).copy()
        drawn = []
        for _ in range(QUERIES):
            columns = _some(rng, range(split), DIMENSIONS) + _some(rng, range(split, len(domains)), 1)
            drawn.append([(column, int(rng.random() * RUNS)) for column in columns])
        column, run = np.moveaxis(np.array(sorted(drawn), np.int64), 2, 0).copy()
        return cls(domains, low, high, column, run)

    def rows(self, batches: Iterable[pa.RecordBatch], threads: int) -> Ints:
        """Return the number of rows of the source that each query counts; batches have the columns in the order of the
        domains."""
        from anon.loss import kernels

        inside = self._inside()

        def count(batch: pa.RecordBatch) -> NDArray[np.uint64]:
            codes = np.stack([domain.encode(values) for domain, values in zip(self.domains, batch.columns)])
            counts = np.zeros(QUERIES, np.uint64)
            kernels.count_rows(codes, inside, (self.column, self.run), counts)
            return counts

        total = np.zeros(QUERIES, np.uint64)
        under_way: deque[Future[NDArray[np.uint64]]] = deque()
        with ThreadPoolExecutor(threads) as pool:
            for batch in batches:
                under_way.append(pool.submit(count, batch))
                if len(under_way) > threads:
                    total += under_way.popleft().result()
            for future in under_way:
                total += future.result()
        return total.astype(np.int64)

    def _inside(self) -> NDArray[np.uint64]:
        """Return [column, code]: a bit for every run that the code lies in."""
        inside = np.zeros((len(self.domains), max(domain.size for domain in self.domains)), np.uint64)
        for column, (low, high) in enumerate(zip(self.low.tolist(), self.high.tolist())):
            for bit, (first, last) in enumerate(zip(low, high)):
                inside[column, first : last + 1] |= np.uint64(1 << bit)
        return inside

    def expect(self, queries_on_labels: LabelQueries, released: ReleasedGroups, boxes: Boxes, expected: Floats) -> None:
        """Add to each query the expected number of rows given some boxes of a release."""
        from anon.loss import kernels

        groups, at = released.groups, np.searchsorted(released.numbers, boxes.group)
        own = boxes.people, at, groups.start, released.codes[groups.value], groups.count, groups.n
        runs, queries = (queries_on_labels.low, queries_on_labels.high), (self.column, self.run)
        if queries_on_labels.inside is not None:
            words = np.stack([inside[labels] for inside, labels in zip(queries_on_labels.inside, boxes.labels)])
            kernels.expect_values(own, words, runs, queries, expected)
            return
        begin, end = (
            np.stack([getattr(cell, side)[labels] for cell, labels in zip(queries_on_labels.cells, boxes.labels)])
            for side in ("begin", "end")
        )
        kernels.expect_rows(own, begin, end, runs, queries, expected)

    def of_labels(self, cells: list[LabelCells], before: list[Ints]) -> LabelQueries:
        """Return the queries in terms of a release's labels. `before` counts, per code of a quasi-identifier and past
        the last, the source's distinct values below it."""
        low, high = self.low.copy(), self.high + 1
        for column, below in enumerate(before):
            low[column], high[column] = below[low[column]], below[high[column]]
        if any((cell.end - cell.begin != 1).any() for cell in cells):
            return LabelQueries(cells, low, high, None)
        return LabelQueries(cells, low, high, [_words(cell.begin, *runs) for cell, *runs in zip(cells, low, high)])


def _words(values: Ints, low: Ints, high: Ints) -> NDArray[np.uint64]:
    """Return for each value a word with a bit for every run that it lies in."""
    words = np.zeros(len(values), np.uint64)
    for bit, (first, last) in enumerate(zip(low.tolist(), high.tolist())):
        words[(first <= values) & (values < last)] |= np.uint64(1 << bit)
    return words


def _run(rng: random.Random, size: int, share: float) -> tuple[int, int]:
    """Return the ends of a random run of a share of `size` codes."""
    length = math.ceil(size * share)
    low = int(rng.random() * (size - length + 1))
    return low, low + length - 1


def _some(rng: random.Random, columns: range, most: int) -> list[int]:
    """Return at most `most` of the columns at random, in order."""
    left = list(columns)
    chosen = [left.pop(int(rng.random() * len(left))) for _ in range(min(most, len(left)))]
    return sorted(chosen)


def error(counted: Ints, expected: Floats, rows: int) -> dict[str, Any]:
    """Return the errors relative to the count in the source, or to a thousandth of its rows if the count is smaller; of
    all queries, and of those that select about the same share of the source."""
    least = max(rows * FLOOR, 1.0)
    errors = np.abs(expected - counted) / np.maximum(counted, least)
    return _averages(errors) | {"by_selectivity": _by_selectivity(errors, counted, rows)}


def _averages(errors: Floats) -> dict[str, Any]:
    return {
        "median": float(np.median(errors)),
        "mean": math.fsum(errors.tolist()) / len(errors),
        "queries": len(errors),
    }


def _by_selectivity(errors: Floats, counted: Ints, rows: int) -> list[dict[str, Any]]:
    """Return the errors by the share of the source's rows that a query counts, without classes that no query is in."""
    place = np.searchsorted(np.array(CLASSES) * rows, counted * 1000, side="right") - 1
    ends = [each / 1000 for each in (*CLASSES, 1000)]
    return [
        {"at_least": ends[at], "below": ends[at + 1]} | _averages(errors[place == at])
        for at in range(len(CLASSES))
        if (place == at).any()
    ]
