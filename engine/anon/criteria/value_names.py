"""Name sensitive values in messages and reports: those that the config names, and all of them with
`--show-values`, as they are; others by their rank in frequency."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from anon.config import Config
from anon.core.terminal import one_line
from anon.criteria.protocol import Criterion, Finding


@dataclass(frozen=True)
class Names:
    """The names of sensitive values in messages."""

    values: dict[str, list[str | None]]
    frequency: dict[str, list[int]]
    shown: set[str]
    show_all: bool

    @classmethod
    def from_config(
        cls, config: Config, values: dict[str, list[str | None]], frequency: dict[str, list[int]], show_values: bool
    ) -> Names:
        named = set().union(*(spec.named_values() for spec in config.privacy))
        return cls(values, frequency, named, show_values)

    def of_value(self, column: str | None, code: int) -> str:
        if column is None:
            return ""
        value = self.values[column][code]
        if value in self.shown or self.show_all:
            return "null" if value is None else value
        return f"value #{self._ranks[column][code]} by frequency"

    @cached_property
    def _ranks(self) -> dict[str, list[int]]:
        """Return per column the rank of each value, from 1 for the most frequent; of ties the lower value first."""
        ranks = {}
        for column, counts in self.frequency.items():
            order = np.argsort(-np.array(counts, np.int64), kind="stable")
            rank = np.empty(len(order), np.int64)
            rank[order] = np.arange(1, len(order) + 1)
            ranks[column] = rank.tolist()
        return ranks


def number(value: float) -> float | str:
    """Return a number for JSON, which has no infinity."""
    return "inf" if math.isinf(value) else value


def refusal(criterion: Criterion, finding: Finding, names: Names) -> str:
    """Return in words what a criterion demands and what was found instead."""
    columns = ", ".join([criterion.column] if criterion.column else criterion.columns)
    about = f" ({columns})" if columns else ""
    words: str = one_line(criterion.refusal(finding, partial(names.of_value, criterion.column)))
    return f"{criterion.name}{one_line(about)}: {words}"
