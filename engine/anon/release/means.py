"""Replace numbers of kept columns by means within the groups of a generalized release (`columns.aggregate`): univariate
microaggregation by sorted runs, one column at a time.

In an optimal partition of numbers into clusters of at least n, every cluster is a run of the sorted numbers of n to
2n - 1 members (Domingo-Ferrer, Mateo-Sanz 2002; Hansen, Mukherjee 2003). Of the m values that a group has in a column,
runs of nearly equal length are made here: c = m // n of them, the first m % c with one value more. That is not the
optimum, which takes a whole group in memory; this takes sorts and joins, which DuckDB spills. Equal values may be in
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
from anon.core.database import Database
from anon.release.files import in_order
from anon.source import Column

ROWS = "rows_in_order"
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

    @property
    def value(self) -> str:
        """SQL: a value in the last place."""
        return f"CAST({self.alias} * {10**self.places} AS BIGINT)"

    @property
    def table(self) -> str:
        """The table of means by g, or of runs by r."""
        return f"means_{self.alias}"

    @property
    def key(self) -> str:
        """SQL: what finds the mean of a row."""
        return f"rows.g = {self.table}.g" if self.spec.mean == "group" else f"rows.rowid = {self.table}.r"

    def create(self, database: Database) -> None:
        """Create the table of means, from the rows in canonical order."""
        if self.spec.mean == "group":
            rows = f"SELECT g, {self.value} AS v FROM {ROWS}"
            database.execute(f"CREATE TEMP TABLE {self.table} AS {self._means(rows, 'g')}")
            return
        rows = f"SELECT g, rowid AS r, {self.value} AS v FROM {ROWS} WHERE {self.alias} IS NOT NULL"
        _create_in_order(database, "sorted_values", rows, "g, v, r")
        database.execute(f"CREATE TEMP TABLE values_in_runs AS {self._runs('sorted_values')}")
        database.execute("DROP TABLE sorted_values")
        database.execute(f"CREATE TEMP TABLE means_of_runs AS {self._means('SELECT * FROM values_in_runs', 'g, run')}")
        joined = "SELECT r, mean, n FROM values_in_runs JOIN means_of_runs USING (g, run)"
        database.execute(f"CREATE TEMP TABLE {self.table} AS {joined}")
        for table in ("values_in_runs", "means_of_runs"):
            database.execute(f"DROP TABLE {table}")

    def _runs(self, table: str) -> str:
        """Return SQL for the run of each value of a sorted table. Values are counted from the last one, t = 0: the last
        runs are those of q values."""
        groups = f"SELECT g, max(rowid) AS last, count(*) AS m FROM {table} GROUP BY g"
        counted = f"SELECT g, last, m, greatest(m // {self.spec.fewest}, 1) AS c FROM ({groups})"
        shares = f"SELECT g, last, m // c AS q, (c - m % c) * (m // c) AS short FROM ({counted})"
        run = "CASE WHEN t < short THEN t // q ELSE short // q + (t - short) // (q + 1) END"
        placed = f"SELECT g, r, v, q, short, last - {table}.rowid AS t FROM {table} JOIN ({shares}) USING (g)"
        return f"SELECT g, r, v, {run} AS run FROM ({placed})"

    def _means(self, rows: str, by: str) -> str:
        summed = f"SELECT {by}, sum(v) AS total, count(v) AS n FROM ({rows}) GROUP BY {by}"
        nearest = "CAST(sign(total) * ((2 * abs(total) + n) // (2 * n)) AS BIGINT)"
        return f"SELECT {by}, n, CASE WHEN n >= {self.spec.fewest} THEN {nearest} END AS mean FROM ({summed})"

    @property
    def published(self) -> str:
        """SQL: what is published of a row; nothing if it has no value."""
        return f"CASE WHEN {self.alias} IS NOT NULL THEN {self.table}.mean * {self.unit} END"

    @property
    def figures(self) -> list[str]:
        """SQL: what `AggregationLoss.add` reads of a row: the value, its change and the count of the mean."""
        found = self.value, f"{self.value} - {self.table}.mean", f"{self.table}.n"
        return [f"{sql} AS {self.alias}_{name}" for sql, name in zip(found, FIGURES)]


def _places(kind: pa.DataType) -> int:
    return int(kind.scale) if pat.is_decimal(kind) else 0


def create_means(database: Database, rows: str, names: Sequence[str], means: Sequence[MeanColumn]) -> str:
    """Create the tables of means of the rows of a table, whose first column is the group; return SQL for the rows in
    canonical order, with the figures of their means. Sorts, groups and joins spill; windows would hold a group."""
    _create_in_order(database, ROWS, f"SELECT {', '.join(names)} FROM {rows}", in_order(names))
    for column in means:
        column.create(database)
    own = {column.alias: f"{column.published} AS {column.alias}" for column in means}
    listed = [own.get(name, f"rows.{name}") for name in names]
    listed += [figure for column in means for figure in column.figures]
    joins = [f"LEFT JOIN {column.table} ON {column.key}" for column in means]
    joined = f"SELECT {', '.join(listed)} FROM {ROWS} AS rows {' '.join(joins)}"
    return f"SELECT * FROM ({joined}) ORDER BY {in_order(names)}"


def _create_in_order(database: Database, table: str, rows: str, order: str) -> None:
    """Create a table whose rowid numbers its rows in an order."""
    database.set("preserve_insertion_order", True)
    database.execute(f"CREATE TEMP TABLE {table} AS {rows} ORDER BY {order}")
    database.set("preserve_insertion_order", False)


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
