"""Measure the utility of the minimal safe nodes, and choose the one that is released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from anon.core.arrays import Flags, Ints
from anon.recoding import metrics
from anon.recoding.levels import ColumnLevels
from anon.search.lattice.counting import CellPart
from anon.search.lattice.frequency import FrequencySet, Node
from anon.search.lattice.judging import Judge


@dataclass(frozen=True)
class Choice:
    """A minimal safe node and its cost; smaller is better in all metrics."""

    levels: Node
    groups: int
    height: int
    average: float
    discernibility: int
    divergence: float
    loss: float
    suppressed: int

    def facts(self, columns: Sequence[ColumnLevels]) -> dict[str, Any]:
        """Return the facts about the node for recoding.json."""
        names = [column.domain.column for column in columns]
        return {
            "levels": dict(zip(names, self.levels)),
            "groups": self.groups,
            "average_group": self.average,
            "discernibility": self.discernibility,
            "height": self.height,
            "divergence": self.divergence,
            "loss": self.loss,
            "suppressed": self.suppressed,
        }


class PublishedTotals:
    """Sums over the published groups of a node, and the number of individuals and rows that are not published."""

    def __init__(self, columns: Sequence[ColumnLevels], judge: Judge, found: FrequencySet) -> None:
        self.groups = self.people = self.squares = self.suppressed = self.rows = self.missing = 0
        self.under = [np.zeros(column.size(level), np.int64) for column, level in zip(columns, found.levels)]
        for part in found.parts():
            self._add(part, judge.kept(part, range(len(judge.criteria))))
        losses = [
            metrics.loss(column.leaves(level) - 1, column.domain.size - 1, people, self.suppressed)
            for column, level, people in zip(columns, found.levels, self.under)
        ]
        self.loss = metrics.weighted_mean(losses, [column.domain.weight for column in columns])

    def _add(self, part: CellPart, kept: Flags) -> None:
        """Add the groups of a part that are published."""
        published = part.where(kept)
        people = int(published.n.sum())
        self.suppressed += int(part.n.sum()) - people
        self.rows += part.rows
        self.missing += part.rows - published.rows
        self.groups += len(published.n)
        self.people += people
        self.squares += metrics.discernibility(published.n)
        for under, nodes in zip(self.under, published.cells):
            np.add.at(under, nodes, published.n)


@dataclass(frozen=True)
class UtilityMeasure:
    """Measures the utility of nodes, given facts about the table: the sum of n log n over the rows n of each tuple of
    quasi-identifiers and sensitive values, and the number of possible combinations of sensitive values."""

    columns: list[ColumnLevels]
    judge: Judge
    source: float
    values: int

    def measure(self, found: FrequencySet) -> Choice:
        """Return a safe node with its cost, from its groups."""
        totals = PublishedTotals(self.columns, self.judge, found)
        leaves = [column.leaves(level) for column, level in zip(self.columns, found.levels)]
        total = totals.people + totals.suppressed
        return Choice(
            found.levels,
            totals.groups,
            metrics.height(found.levels),
            totals.people / totals.groups,
            totals.squares + totals.suppressed * total,
            self._divergence(found, leaves, totals.missing, totals.rows),
            totals.loss,
            totals.suppressed,
        )

    def _divergence(self, found: FrequencySet, leaves: list[Ints], missing: int, rows: int) -> float:
        whole = prod(float(column.domain.size) for column in self.columns) * self.values
        released = 0.0  # parts are the same wherever the set is stored, and so is the rounding of their sums
        for part in found.parts():
            published = part.where(self.judge.kept(part, range(len(self.judge.criteria))))
            area = np.prod([under[nodes].astype(np.float64) for under, nodes in zip(leaves, published.cells)], axis=0)
            start, _, count = published.histograms()
            released += metrics.released_log_sum(count, np.repeat(area, np.diff(start)), missing / whole)
        return metrics.divergence_of_sums(rows, self.source, released, missing, whole)


def best(choices: list[Choice], metric: str) -> Choice:
    """Return the choice with the lowest metric; of several the one with the lowest height, then the one with the lowest
    levels in the order of the columns."""
    return min(choices, key=lambda choice: (getattr(choice, metric), choice.height, choice.levels))
