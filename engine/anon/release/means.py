"""Replace numbers of kept columns by means within the groups of a generalized release (`columns.aggregate`): univariate
microaggregation by sorted runs, one column at a time.

In an optimal partition of numbers into clusters of at least n, every cluster is a run of the sorted numbers of n to
2n - 1 members (Domingo-Ferrer, Mateo-Sanz 2002; Hansen, Mukherjee 2003). Of the m values that a group has in a column,
runs of nearly equal length are made here: c = m // n of them, the first m % c with one value more. That is not the
optimum, which takes the whole group in memory; one sort, which DuckDB spills, suffices for it. Equal values may be in
two runs. Which of their rows are in which is decided by everything that is published of a row, so that the release is a
function of the rows alone, in whatever order they are read.

Values are whole numbers of the column's last decimal place. A mean is the exact sum over the count, rounded to this
place, halves away from zero. Missing values stay missing and count for no mean; a value of a group with fewer than n is
withheld, and published as missing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from anon.config import Aggregation, Columns
from anon.core.arrays import Floats
from anon.release.files import in_order
from anon.source import Column

FIGURES = ("value", "change", "n")  # of each row, for the loss
DIGITS = 9  # of the figures of a loss that do not depend on the order in which rows with equal labels are added


@dataclass(frozen=True)
class MeanColumn:
    """A kept column that is published as means, in decimals of some places."""

    alias: str
    spec: Aggregation
    places: int

    @classmethod
    def all_of(cls, keep: Sequence[Column], columns: Columns, types: dict[str, pa.DataType]) -> dict[str, MeanColumn]:
        """Return the kept columns that are published as means, by their names."""
        used = ((column, columns.means[column.name]) for column in keep if column.name in columns.means)
        return {column.name: cls(column.alias, spec, _places(types[column.alias])) for column, spec in used}

    @property
    def unit(self) -> str:
        """SQL: one in the last place."""
        return f"CAST('{10**-self.places:.{self.places}f}' AS DECIMAL(18, {self.places}))" if self.places else "1"

    def with_runs(self, rows: str) -> str:
        """Return SQL for rows with the run that the value of each is in, out of rows numbered r in their group g."""
        if self.spec.mean == "group":
            return f"SELECT *, 1 AS {self.alias}_run FROM ({rows})"
        counted = f"SELECT *, count({self.alias}) OVER (PARTITION BY g) AS m FROM ({rows})"
        runs = f"ntile(greatest(m // {self.spec.fewest}, 1))"
        ordered = f"PARTITION BY g, {self.alias} IS NULL ORDER BY {self.alias}, r"
        return f"SELECT * EXCLUDE (m), {runs} OVER ({ordered}) AS {self.alias}_run FROM ({counted})"

    def with_means(self, rows: str) -> str:
        """Return SQL for rows with means in place of values. They also have {alias}_value and {alias}_change, the value
        and its distance from the mean in the last decimal place, and {alias}_n, the number of values of the mean."""
        a, window = self.alias, f"OVER (PARTITION BY g, {self.alias}_run, {self.alias} IS NULL)"
        whole = f"SELECT *, CAST({a} * {10**self.places} AS BIGINT) AS {a}_value FROM ({self.with_runs(rows)})"
        summed = f"SELECT *, sum({a}_value) {window} AS total, count({a}_value) {window} AS {a}_n FROM ({whole})"
        nearest = f"CAST(sign(total) * ((2 * abs(total) + {a}_n) // (2 * {a}_n)) AS BIGINT)"
        rounded = f"SELECT *, CASE WHEN {a}_n >= {self.spec.fewest} THEN {nearest} END AS mean FROM ({summed})"
        return (
            f"SELECT * EXCLUDE ({a}_run, total, mean) REPLACE (mean * {self.unit} AS {a}), "
            f"{a}_value - mean AS {a}_change FROM ({rounded})"
        )


def _places(kind: pa.DataType) -> int:
    return int(kind.scale) if pat.is_decimal(kind) else 0


def means_of(rows: str, names: Sequence[str], means: Sequence[MeanColumn]) -> str:
    """Return SQL for rows of a table, in canonical order, with means: the named columns, the first of which is the
    group, then what `AggregationLoss.add` reads."""
    sql = f"SELECT *, row_number() OVER (PARTITION BY g ORDER BY {in_order(names[1:])}) AS r FROM {rows}"
    for column in means:
        sql = column.with_means(sql)
    figures = [f"{column.alias}_{each}" for column in means for each in FIGURES]
    return f"SELECT {', '.join([*names, *figures])} FROM ({sql}) ORDER BY {in_order(names)}"


@dataclass(frozen=True)
class AggregationLoss:
    """What means lose of the values that they replace, in units of the last decimal place: sums that are added up part
    by part (Chan, Golub, LeVeque 1983)."""

    count: int = 0
    centre: float = 0.0  # the mean of the values
    spread: float = 0.0  # the sum of their squared distances from it
    squares: float = 0.0  # the sum of the squared changes
    changes: float = 0.0  # the sum of the absolute changes
    fewest: int = 0  # values of a mean; 0 if there is no mean
    withheld: int = 0

    def add(self, rows: pa.Table, column: MeanColumn) -> AggregationLoss:
        """Return the loss with some more rows."""
        value, change, n = (rows.column(f"{column.alias}_{each}") for each in FIGURES)
        there = pc.is_valid(change)
        withheld = self.withheld + len(rows) - value.null_count - pc.sum(there).as_py()
        found = replace(self, withheld=withheld)
        if not pc.any(there).as_py():
            return found
        return found._with(*(each.filter(there).to_numpy().astype(np.float64) for each in (value, change, n)))

    def _with(self, value: Floats, change: Floats, n: Floats) -> AggregationLoss:
        count, centre = len(value), math.fsum(value) / len(value)
        both, apart = self.count + count, centre - self.centre
        return replace(
            self,
            count=both,
            centre=self.centre + apart * count / both,
            spread=self.spread + math.fsum((value - centre) ** 2) + apart**2 * self.count * count / both,
            squares=self.squares + math.fsum(change**2),
            changes=self.changes + math.fsum(np.abs(change)),
            fewest=min(int(n.min()), self.fewest or int(n.min())),
        )

    def facts(self, places: int) -> dict[str, Any]:
        """Return the figures of the report."""
        unit = 10.0**-places
        return {
            "variance_lost": _digits(self.squares / self.spread if self.spread else 0.0),
            "mean_change": _digits(unit * self.changes / self.count if self.count else 0.0),
            "fewest": self.fewest or None,
            "withheld": self.withheld,
        }


def _digits(figure: float) -> float:
    return float(f"{figure:.{DIGITS}g}")
