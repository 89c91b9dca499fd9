"""Minimal safe nodes with their utility, and the one that is released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from anon.core.arrays import Flags, Ints
from anon.recoding import metrics
from anon.recoding.levels import ColumnLevels
from anon.search.lattice.counting import Part
from anon.search.lattice.frequency import FrequencySet, Node
from anon.search.lattice.judging import Judge


@dataclass(frozen=True)
class Choice:
    """A minimal safe node and what it costs; smaller is better in all metrics."""

    levels: Node
    groups: int
    height: int
    average: float
    discernibility: int
    divergence: float
    loss: float
    suppressed: int

    def facts(self, columns: Sequence[ColumnLevels]) -> dict[str, Any]:
        """What recoding.json tells of it."""
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


class Published:
    """What is published of a node, summed up group by group, and how many individuals are not, with how many rows."""

    def __init__(self, columns: Sequence[ColumnLevels], levels: Node) -> None:
        self.groups = self.people = self.squares = self.suppressed = self.rows = self.missing = 0
        self.under = [np.zeros(column.size(level), np.int64) for column, level in zip(columns, levels)]

    def add(self, part: Part, kept: Flags) -> None:
        """Adds the groups of a part that are published."""
        left = part.where(kept)
        people = int(left.n.sum())
        self.suppressed += int(part.n.sum()) - people
        self.rows += part.rows
        self.missing += part.rows - left.rows
        self.groups += len(left.n)
        self.people += people
        self.squares += metrics.discernibility(left.n)
        for under, nodes in zip(self.under, left.cells):
            np.add.at(under, nodes, left.n)


@dataclass(frozen=True)
class Utility:
    """What the metrics need of the table: the sum of n log n over the rows n of each tuple of quasi-identifiers and
    sensitive values, and how many combinations of sensitive values there could be."""

    columns: list[ColumnLevels]
    judge: Judge
    source: float
    values: int

    def of(self, found: FrequencySet) -> Choice:
        """A safe node by its groups."""
        which, told = range(len(self.judge.criteria)), Published(self.columns, found.levels)
        for part in found.parts():
            told.add(part, self.judge.kept(part, which))
        leaves = [column.leaves(level) for column, level in zip(self.columns, found.levels)]
        losses = [
            metrics.loss(under - 1, column.domain.size - 1, people, told.suppressed)
            for column, under, people in zip(self.columns, leaves, told.under)
        ]
        total = told.people + told.suppressed
        return Choice(
            found.levels,
            told.groups,
            metrics.height(found.levels),
            told.people / told.groups,
            told.squares + told.suppressed * total,
            self._divergence(found, leaves, told.missing, told.rows),
            sum(losses) / len(losses),
            told.suppressed,
        )

    def _divergence(self, found: FrequencySet, leaves: list[Ints], missing: int, rows: int) -> float:
        whole = prod(float(column.domain.size) for column in self.columns) * self.values
        released = 0.0  # parts are the same wherever the set lives, and so is what their sums are rounded to
        for part in found.parts():
            left = part.where(self.judge.kept(part, range(len(self.judge.criteria))))
            area = np.prod([under[nodes].astype(np.float64) for under, nodes in zip(leaves, left.cells)], axis=0)
            start, _, count = left.histograms()
            released += metrics.released_log_sum(count, np.repeat(area, np.diff(start)), missing / whole)
        return metrics.divergence_of_sums(rows, self.source, released, missing, whole)


def best(choices: list[Choice], metric: str) -> Choice:
    """The one with the least of a metric; of several the one of least height, then that with the lowest levels in the
    order of the columns."""
    return min(choices, key=lambda choice: (getattr(choice, metric), choice.height, choice.levels))
