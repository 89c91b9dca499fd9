"""Hold some rows of the source out, and take them out of the release, too.

Those who are tested must not be among those who were trained with. A quarter of the source's rows are held out, by a
hash of their rank in the order of all values, which does not depend on the order in which rows are read. The release
has no keys, but rows with equal published values are the same in training: for each row that is held out, one row of
the release is removed whose labels cover its values and which has the same other values. If labels do not overlap, what
is left is exactly the release without these people; if they do, a person's row may be that of somebody else with the
same values. Suppressed people have no row in the release; they are tested with as all others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from anon.core.arrays import Floats, Ints
from anon.core.database import interruptible, translated
from anon.loss.bucketized import label_of_code
from anon.loss.cells import BATCH, BOXES, LabelCells, joined_labels
from anon.loss.prediction.features import PublishedColumn
from anon.source import Source
from anon.verify.grouped import Grouped, listed

TEST_SHARE = 0.25
TESTED = 20_000  # rows at most
ROWS, VALUES = "prediction_rows", "prediction_values"
WHAT = "matching the release with the rows that are held out"


@dataclass(frozen=True)
class Shape:
    """What is learnt from: the columns beside the quasi-identifiers, and the target, which is in every row of the
    release or, if `by_group`, only known by its counts in each group."""

    columns: list[PublishedColumn]
    target: PublishedColumn
    by_group: bool

    @property
    def names(self) -> list[str]:
        return [f"x{number}" for number in range(len(self.columns))]


def draws(first: int, count: int) -> Floats:
    """Return numbers from 0 to 1 that are a hash of consecutive ranks (the finalizer of SplitMix64).

    >>> draws(0, 4).round(3).tolist() == draws(0, 5)[:4].round(3).tolist()
    True
    """
    mixed = np.arange(first + 1, first + count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return (mixed ^ (mixed >> np.uint64(31))).astype(np.float64) / 2.0**64


def split(source: Source, shape: Shape, most: int) -> tuple[pa.Table, pa.Table]:
    """Return rows of the source to train with, about `most` at most, and rows to test with. Rows without a value of the
    target are left out."""
    selected = [column.alias for column in source.quasi_identifiers]
    selected += [f"{column.in_source} AS {name}" for column, name in zip(shape.columns, shape.names)]
    known = f"FROM {source.VIEW} WHERE {shape.target.in_source} IS NOT NULL"
    rows = max(int(source.query(f"SELECT count(*) {known}")[0][0].as_py()), 1)
    test = min(TEST_SHARE, TESTED / rows)
    last = test + min(1 - TEST_SHARE, most / rows)
    sql = f"SELECT {listed(selected)}, {shape.target.in_source} AS y {known} ORDER BY ALL"
    parts: tuple[list[pa.Table], list[pa.Table]] = ([], [])
    first = 0
    for batch in source.rows_of(sql):
        drawn, table = draws(first, batch.num_rows), pa.table(batch)
        for part, wanted in zip(parts, ((drawn >= test) & (drawn < last), drawn < test)):
            part.append(table.filter(pa.array(wanted)))
        first += batch.num_rows
    train, tested = (pa.concat_tables(part) if part else pa.table({}) for part in parts)
    return train, tested


class ReleasedRows:
    """The different rows of a release with their counts, numbered in their order, in a table of the database; if the
    target is only known by group, a second table has the counts of its values. `taken` and `taken_values` are what was
    removed of each."""

    def __init__(self, grouped: Grouped, cells: list[LabelCells], before: list[Ints], shape: Shape) -> None:
        self.database, self.cells, self.shape = grouped.database, cells, shape
        self.label_of_code = [label_of_code(*both) for both in zip(cells, before)]  # None where labels overlap
        self.labels = [f"l{j}" for j in range(len(cells))]
        self.columns = [*self.labels, *shape.names, "g" if shape.by_group else "y"]
        with translated("reading the release"):
            self._count_rows(grouped)
        self.taken, self.taken_values = (np.zeros(self._size(table), np.int64) for table in (ROWS, VALUES))

    def _size(self, table: str) -> int:
        return int(self.database.one(f"SELECT count(*) FROM {table}")[0])

    def _count_rows(self, grouped: Grouped) -> None:
        shape, target = self.shape, self.shape.target.in_release
        sql = [f"CAST(t{j}.number AS INTEGER)" for j in range(len(self.cells))]
        sql += [column.in_release for column in shape.columns] + ["g" if shape.by_group else target]
        selected = listed([f"{each} AS {name}" for each, name in zip(sql, self.columns)])
        known = "" if shape.by_group else f" WHERE {target} IS NOT NULL"
        rows = f"SELECT {selected}, 1 AS c FROM {grouped.VIEW} AS v {joined_labels('v', len(self.cells))}{known}"
        values = f"SELECT g, {target} AS y, c FROM {grouped.values_view} WHERE {target} IS NOT NULL"
        values = values if shape.by_group else "SELECT 0 AS g, '' AS y, 0 AS c LIMIT 0"
        for table, found, names in ((ROWS, rows, self.columns), (VALUES, values, ["g", "y"])):
            key = listed(names)
            self.database.execute(
                f"CREATE OR REPLACE TABLE {table} AS SELECT row_number() OVER (ORDER BY {key}) - 1 AS number, * "
                f"FROM (SELECT {key}, CAST(sum(c) AS BIGINT) AS n FROM ({found}) GROUP BY {key}) ORDER BY number"
            )

    def take_out(self, test: pa.Table, codes: list[Ints]) -> int:
        """Remove a row of the release for each row of the test that has one; return how many have. The codes are those
        of the rows of the test in each quasi-identifier."""
        found, last = 0, -1
        for who, row, n, value, m in self._candidates(test, codes):
            if who == last or self.taken[row] >= n or (self.shape.by_group and self.taken_values[value] >= m):
                continue
            self.taken[row] += 1
            if self.shape.by_group:
                self.taken_values[value] += 1
            found, last = found + 1, who
        return found

    def _candidates(self, test: pa.Table, codes: list[Ints]) -> Iterator[tuple[int, ...]]:
        """Yield for each row of the test, in order, the rows of the release that may be its own with their counts, and
        its value of the target in their group with its count."""
        shape = self.shape
        compared = [name for name, column in zip(shape.names, shape.columns) if column.same]
        same = [f"r.{label} = b.{label}" for label in self.labels]
        same += [f"r.{name} IS NOT DISTINCT FROM t.{name}" for name in compared]
        same.append("r.g = b.g" if shape.by_group else "r.y = t.y")
        values = f"JOIN {VALUES} AS v ON v.g = b.g AND v.y = t.y" if shape.by_group else ""
        counts = "v.number, v.n" if shape.by_group else "0, 0"
        tables = {"prediction_test": self._located(test, codes)} | self._ends
        with closing(self.database.cursor()) as database, translated(WHAT):
            for name, table in tables.items():
                database.register(name, table)
            reader = database.query(
                f"SELECT t.who, r.number, r.n, {counts} FROM prediction_test AS t {self._narrowest} "
                f"JOIN ({self._boxes}) AS b ON {' AND '.join(self._inside)} "
                f"JOIN {ROWS} AS r ON {' AND '.join(same)} {values} ORDER BY ALL"
            ).to_arrow_reader(BATCH)
            for batch in interruptible(reader, WHAT):
                yield from zip(*(column.to_pylist() for column in batch.columns))

    def _located(self, test: pa.Table, codes: list[Ints]) -> pa.Table:
        """Return the rows of the test with their code in each column, or in one whose labels do not overlap, with the
        number of the label that it lies under."""
        found: dict[str, Any] = {"who": np.arange(test.num_rows)}
        for j, (own, label) in enumerate(zip(codes, self.label_of_code)):
            found[f"c{j}"] = own if label is None else label[own]
        return pa.table(found | {name: test[name] for name in (*self.shape.names, "y")})

    @property
    def _overlapping(self) -> list[int]:
        return [j for j, label in enumerate(self.label_of_code) if label is None]

    @property
    def _ends(self) -> dict[str, pa.Table]:
        """Return tables of the first and last code under each label of the columns whose labels overlap."""
        return {
            f"prediction_cells_{j}": pa.table(
                {"number": np.arange(len(self.cells[j].low)), "low": self.cells[j].low, "high": self.cells[j].high}
            )
            for j in self._overlapping
        }

    @property
    def _boxes(self) -> str:
        """Return SQL for the different tuples of labels, in each group if the target is known by group."""
        own = ["b.g"] * self.shape.by_group + [f"b.{label}" for label in self.labels]
        own += [f"e{j}.{side} AS {side}{j}" for j in self._overlapping for side in ("low", "high")]
        joins = " ".join(f"JOIN prediction_cells_{j} AS e{j} ON e{j}.number = b.l{j}" for j in self._overlapping)
        return f"SELECT DISTINCT {listed(own)} FROM {BOXES} AS b {joins}"

    @property
    def _inside(self) -> list[str]:
        """Return SQL for the conditions that the values of a row t of the test lie under the labels of a box b. In the
        column with the narrowest labels they are looked up, so that few boxes are compared in the others."""
        found = [
            f"t.c{j} BETWEEN b.low{j} AND b.high{j}" if label is None else f"t.c{j} = b.l{j}"
            for j, label in enumerate(self.label_of_code)
        ]
        return found if self._narrow is None else [f"b.l{self._narrow} = e.number", *found]

    @property
    def _narrow(self) -> int | None:
        """Return the column with overlapping labels that are narrowest on average, if there is one."""
        return min(self._overlapping, key=lambda j: _mean_width(self.cells[j]), default=None)

    @property
    def _narrowest(self) -> str:
        """Return SQL that joins to a row of the test the labels e that its value in that column lies under."""
        if self._narrow is None:
            return ""
        under = f"SELECT number, unnest(range(low, high + 1)) AS code FROM prediction_cells_{self._narrow}"
        return f"JOIN ({under}) AS e ON e.code = t.c{self._narrow}"

    def training(self, most: int) -> pa.Table:
        """Return rows that were not removed, about `most` at most, each with a `weight`; of a target that is known by
        group, a row for each value that the group has left, weighted by its share."""
        share = min(1.0, most / max(self._examples, 1))
        parts, first = [], 0
        for batch in self._rows_of(f"SELECT * FROM {ROWS} ORDER BY number"):
            left = batch["n"].to_numpy() - self.taken[batch["number"].to_numpy()]
            drawn, whose = draws(first, int(left.sum())) < share, np.repeat(np.arange(len(left)), left)
            parts.append(pa.table(batch).take(pa.array(whose[drawn])))
            first += len(drawn)
        found = pa.concat_tables(parts) if parts else self.database.query(f"FROM {ROWS} LIMIT 0").to_arrow_table()
        if self.shape.by_group:
            return self._with_values(found)
        return found.append_column("weight", pa.array(np.ones(found.num_rows)))

    @property
    def _examples(self) -> int:
        """Return the number of rows to train with; if the target is known by group, before any is removed."""
        if not self.shape.by_group:
            return int(self.database.one(f"SELECT coalesce(sum(n), 0) FROM {ROWS}")[0] - self.taken.sum())
        many = f"SELECT g, count(*) AS many FROM {VALUES} GROUP BY g"
        return int(self.database.one(f"SELECT coalesce(sum(n * many), 0) FROM {ROWS} JOIN ({many}) USING (g)")[0])

    def _with_values(self, members: pa.Table) -> pa.Table:
        """Return a row for each member of a group and each value that the group has left."""
        groups, whose = np.unique(members["g"].to_numpy(), return_inverse=True)
        values = self._values_of(groups)
        left = values["n"].to_numpy() - self.taken_values[values["number"].to_numpy()]
        start, end = (np.searchsorted(values["g"].to_numpy(), groups, side) for side in ("left", "right"))
        below = np.append(0, np.cumsum(left))
        many = (end - start)[whose]
        member = np.repeat(np.arange(len(whose)), many)
        at = np.arange(len(member)) - np.repeat(np.cumsum(many) - many, many) + np.repeat(start[whose], many)
        weight = left[at] / np.maximum(below[end] - below[start], 1)[whose][member]
        found = members.take(pa.array(member)).append_column("y", values["y"].take(pa.array(at)))
        return found.append_column("weight", pa.array(weight)).filter(pa.array(weight > 0))

    def _values_of(self, groups: Ints) -> pa.Table:
        """Return the counts of the values of some groups, in the order of the groups."""
        with closing(self.database.cursor()) as database, translated("reading the release"):
            database.register("prediction_groups", pa.table({"g": groups}))
            return database.query(
                f"SELECT * FROM {VALUES} WHERE g IN (SELECT g FROM prediction_groups) ORDER BY number"
            ).to_arrow_table()

    def _rows_of(self, sql: str) -> Iterator[pa.RecordBatch]:
        with closing(self.database.cursor()) as database, translated("reading the release"):
            reader = database.query(sql).to_arrow_reader(BATCH)
            yield from interruptible(reader, "reading the release")


def _mean_width(cells: LabelCells) -> float:
    """Return the share of a column's codes that a label has, on average over the individuals."""
    return float(((cells.high - cells.low + 1) * cells.people).sum() / (cells.domain.size * cells.people.sum()))
