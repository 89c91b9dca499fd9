"""Read the labels of a release back into cells of the source's columns, to compare the two: how many values of the
source lie under a label, and which. This is done once for every distinct label; tables in the database hold the labels
of the members of each group."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anon.core.database import interruptible, translated
from anon.core.text import respelt, text
from anon.criteria import Ints
from anon.cube import Domain
from anon.errors import ConfigError, Problem
from anon.verify.grouped import Grouped, listed

BATCH = 131_072  # boxes
BOXES = "released_boxes"
WHAT = "reading the release"


@dataclass(frozen=True)
class LabelCells:
    """The distinct labels of a column, each as the run of codes low..high and as the run begin..end (without end) of
    the source's distinct values in code order; and the number of individuals who have it."""

    domain: Domain
    labels: list[str | None]
    low: Ints
    high: Ints
    begin: Ints
    end: Ints
    people: Ints

    @property
    def span(self) -> NDArray[Any]:
        """Return the extent of each label on the scale of its column."""
        start, end = self._positions
        found: NDArray[Any] = end[self.high] - start[self.low]
        return np.where(self.end - self.begin > 1, found, 0)  # a value within a bin is that value

    @property
    def whole(self) -> float:
        """Return the extent of the column."""
        start, end = self._positions
        found: float = (end[-1] - start[0]).item()
        return found

    @property
    def _positions(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return where codes begin and end; for a hierarchy as whole numbers, which are added up exactly."""
        both = self.domain.position, self.domain.end_position
        return both if self.domain.tree is None else (both[0].astype(np.int64), both[1].astype(np.int64))

    @property
    def level(self) -> int | None:
        """Return the lowest level that all labels are at; without a hierarchy 0 for unchanged values and 1 for `*`."""
        tree = self.domain.tree
        if tree is None:
            levels = {0 if begin + 1 == end else 1 if label == "*" else None for label, begin, end in self._ranges}
            return levels.pop() if len(levels) == 1 else None
        node = {label: at for at, label in enumerate(tree.label)} | {"*": len(tree.label) - 1}
        if any(label not in node for label in self.labels):  # a list of nodes
            return None
        used = np.array([node[label] for label in self.labels])
        return next((level for level, row in enumerate(tree.node_at) if np.isin(used, row).all()), None)

    @property
    def _ranges(self) -> Iterator[tuple[str | None, int, int]]:
        return zip(self.labels, self.begin.tolist(), self.end.tolist())


@dataclass(frozen=True)
class Boxes:
    """Some of the distinct tuples of labels in each group: the group, the individuals, and per column the number of the
    label."""

    group: Ints
    people: Ints
    labels: list[Ints]


def read_cells(grouped: Grouped, domains: list[Domain], distinct: list[Ints]) -> list[LabelCells]:
    """Read the labels of every column; `distinct` counts the distinct values of the source per code. ConfigError if
    there are labels that no cell of the source's column has."""
    cells, problems = [], []
    for index, (domain, values) in enumerate(zip(domains, distinct)):
        counted = _count_labels(grouped, index)
        found = _cells(domain, values, counted)
        if isinstance(found, Problem):
            problems.append(found)
        else:
            cells.append(found)
    if problems:
        raise ConfigError(problems)
    with translated(WHAT):
        _make_boxes(grouped)
    return cells


def _count_labels(grouped: Grouped, index: int) -> pa.Table:
    """Number the labels of a column in a table; return the labels and the individuals with each."""
    people = f"SELECT q{index} AS label, sum(n) AS n FROM {grouped.GROUPS} GROUP BY label"
    if grouped.bucketized:
        people = f"SELECT q{index} AS label, count(*) AS n FROM {grouped.VIEW} GROUP BY label"
    table = _label_table(index)
    with translated(WHAT):
        grouped.database.execute(
            f"CREATE OR REPLACE TABLE {table} AS SELECT label, CAST(n AS BIGINT) AS n, "
            f"row_number() OVER (ORDER BY label NULLS FIRST) - 1 AS number FROM ({people})"
        )
        return grouped.database.query(f"SELECT label, n FROM {table} ORDER BY number").to_arrow_table()


def _label_table(index: int) -> str:
    return f"released_labels_{index}"


def _cells(domain: Domain, values: Ints, counted: pa.Table) -> LabelCells | Problem:
    codes = {word: code for code, word in enumerate(domain.texts)}
    before = np.append(0, np.cumsum(values))
    labels: list[str | None] = []
    ends, unknown = [], 0
    people = counted["n"].to_numpy().astype(np.int64)
    for label, rows in zip(counted["label"].to_pylist(), people.tolist()):
        try:
            word = None if label is None else text(label)
            word = respelt(word) if word is not None and respelt(word) in codes else word
            ends.append(_run(domain, codes, before, word))
            labels.append(word)
        except (KeyError, TypeError):
            unknown += rows
    if unknown:
        different = len(people) - len(ends)
        found = f"{different:,} labels, of {unknown:,} individuals, that no cell of the source's column has"
        expected = "a release of this config and this source"
        return Problem(f"columns.quasi_identifiers.{domain.column}", found, expected)
    low, high, begin, end = np.array(ends, np.int64).T
    return LabelCells(domain, labels, low, high, begin, end, people)


def _run(domain: Domain, codes: dict[str | None, int], before: Ints, label: str | None) -> tuple[int, int, int, int]:
    """Return the codes low..high of a label, and where its values begin and end among all. A single value counts as one
    value, also within a bin."""
    if label in codes:
        code = codes[label]
        return code, code, int(before[code]), int(before[code]) + 1
    if label is None:
        raise KeyError
    try:
        low, high = domain.cell(label)
    except KeyError:
        if domain.single:
            raise
        code = domain.bin_of(label)
        return code, code, int(before[code]), int(before[code]) + 1
    return low, high, int(before[low]), int(before[high + 1])


def _make_boxes(grouped: Grouped) -> None:
    """Create a table of the boxes; groups are numbered as `histograms` does it."""
    q = grouped.labels
    order = ", ".join(f"{column} NULLS FIRST" for column in q)
    boxes = f"SELECT row_number() OVER (ORDER BY {order}) - 1 AS g, {listed(q)}, n FROM {grouped.GROUPS}"
    if grouped.bucketized:
        boxes = f"SELECT g, {listed(q)}, count(*) AS n FROM {grouped.VIEW} GROUP BY g, {listed(q)}"
    numbers = listed([f"CAST(t{j}.number AS UINTEGER) AS l{j}" for j in range(len(q))])
    joins = joined_labels("b", len(q))
    grouped.database.execute(
        f"CREATE OR REPLACE TABLE {BOXES} AS SELECT b.g, CAST(b.n AS BIGINT) AS n, {numbers} "
        f"FROM ({boxes}) AS b {joins} ORDER BY b.g"
    )


def values_below(distinct: list[Ints]) -> list[Ints]:
    """Return per column the number of the source's distinct values below each code and past the last."""
    return [np.append(0, np.cumsum(counts)) for counts in distinct]


def joined_labels(table: str, columns: int) -> str:
    """Return SQL that joins the numbered labels t0, t1, ... to a table with labels q0, q1, ..."""
    return " ".join(
        f"JOIN {_label_table(j)} AS t{j} ON {table}.q{j} IS NOT DISTINCT FROM t{j}.label" for j in range(columns)
    )


def boxes_between(grouped: Grouped, first: int, last: int) -> Iterator[Boxes]:
    """Yield the boxes of some groups, in the order of their groups, read on a separate connection."""
    numbers = [f"l{j}" for j in range(len(grouped.quasi_identifiers))]
    with closing(grouped.database.cursor()) as database:
        with translated(WHAT):
            reader = database.query(
                f"SELECT g, n, {listed(numbers)} FROM {BOXES} WHERE g BETWEEN {first} AND {last} "
                f"ORDER BY g, {listed(numbers)}"
            ).to_arrow_reader(BATCH)
        for batch in interruptible(reader, WHAT):
            group, people, *labels = (column.to_numpy().astype(np.int64) for column in batch.columns)
            yield Boxes(group, people, labels)


def one_box_each(grouped: Grouped) -> bool:
    """Return whether every group has one tuple of labels, and no other group the same."""
    numbers = listed([f"l{j}" for j in range(len(grouped.quasi_identifiers))])
    with translated(WHAT):
        boxes, groups, tuples = grouped.database.one(
            f"SELECT count(*), count(DISTINCT g), (SELECT count(*) FROM (SELECT DISTINCT {numbers} FROM {BOXES})) "
            f"FROM {BOXES}"
        )
    return bool(boxes == groups == tuples)
