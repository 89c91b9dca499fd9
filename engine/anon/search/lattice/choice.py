"""Minimal safe nodes with their utility, and the one that is released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from anon import metrics
from anon.levels import Levels
from anon.search.lattice.frequency import Counts, FrequencySet, Node
from anon.search.lattice.judging import Mask, part


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

    def facts(self, columns: Sequence[Levels]) -> dict[str, Any]:
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


@dataclass(frozen=True)
class Utility:
    """What the metrics need of the table: the people of each tuple of quasi-identifiers and sensitive values, and how
    many combinations of sensitive values there could be."""

    columns: list[Levels]
    source: Counts
    values: int

    def of(self, found: FrequencySet, kept: Mask) -> Choice:
        left = found if kept.all() else part(found, kept)
        n = left.n
        suppressed = int(found.n.sum() - n.sum())
        leaves = [column.leaves(level)[cells] for column, level, cells in zip(self.columns, found.levels, left.cells)]
        losses = [
            metrics.loss(under - 1, column.domain.size - 1, n, suppressed)
            for column, under in zip(self.columns, leaves)
        ]
        area = np.prod([under.astype(np.float64) for under in leaves], axis=0)
        entries = area if left.start is None else np.repeat(area, np.diff(left.start))
        whole = prod(float(column.domain.size) for column in self.columns) * self.values
        return Choice(
            found.levels,
            len(n),
            metrics.height(found.levels),
            metrics.average_group(n),
            metrics.discernibility(n, suppressed),
            metrics.divergence(self.source, left.count, entries, suppressed, whole),
            sum(losses) / len(losses),
            suppressed,
        )


def best(choices: list[Choice], metric: str) -> Choice:
    """The one with the least of a metric; of several the one of least height, then that with the lowest levels in the
    order of the columns."""
    return min(choices, key=lambda choice: (getattr(choice, metric), choice.height, choice.levels))
