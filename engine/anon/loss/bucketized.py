"""Compute the divergence of a bucketized release from its source where people with the same labels are in several
groups: everybody may have the values of any group that has their labels. This is joined by SQL, because there may be as
many published labels as rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from anon.core.database import causes, fed, translated
from anon.criteria import Ints
from anon.errors import SourceError
from anon.loss.cells import BOXES, LabelCells
from anon.verify.grouped import Grouped, listed

if TYPE_CHECKING:
    from anon.loss.utility import Comparison, Original

SHARES, COUNTED = "released_shares", "source_tuples"
LARGEST = 2**62  # packed labels stay below


def log_densities(compared: Comparison) -> float | None:
    """Return the sum over the source's rows of log(released rows like it / area + density of those who are missing).
    None if a value lies under two labels of its column."""
    original, grouped, cells, codes = compared.original, compared.grouped, compared.cells, compared.codes[:, 0]
    numbers = [label_of_code(*both) for both in zip(cells, compared.before)]
    if any(each is None for each in numbers):
        return None
    own = np.full(original.sensitive[0].size, -1, np.int64)
    own[codes] = np.arange(len(codes))
    _make_shares(grouped)
    failures: list[BaseException] = []
    packing = Packing.from_cells(cells)
    reader = _source_rows(original, cells, [each for each in numbers if each is not None], own, packing, failures)
    keys = listed([*packing.names, "s"])
    with closing(grouped.database.cursor()) as database, translated("comparing source and release"), causes(failures):
        database.register("source_labels", reader)
        counted = f"SELECT {keys}, any_value(area) AS area, count(*) AS n FROM source_labels GROUP BY {keys}"
        database.execute(f"CREATE OR REPLACE TABLE {COUNTED} AS {counted}")
        expected = (
            f"SELECT {keys}, sum(b.n * v.share) AS w FROM {COUNTED} JOIN ({packing.boxes}) AS b "
            f"USING ({listed(packing.names)}) JOIN {SHARES} AS v USING (g, s) GROUP BY {keys}"
        )
        logs, strange = database.query(
            f"WITH densities AS (SELECT n, coalesce(w, 0) / area + {compared.everywhere!r}::DOUBLE AS f "
            f"FROM {COUNTED} LEFT JOIN ({expected}) USING ({keys})) "
            "SELECT fsum(n * ln(f)) FILTER (f > 0), coalesce(sum(n) FILTER (f = 0), 0) FROM densities"
        ).fetchall()[0]
    if strange:
        raise SourceError(f"the table has no trace of {int(strange):,} rows of the source: it is not a release of it")
    return float(logs)


def label_of_code(cells: LabelCells, before: Ints) -> Ints | None:
    """Return the number of the label that each code lies under, -1 for none; None if there are two, or if a part of a
    bin has a label. `before` counts the source's values below each code."""
    if (before[cells.high + 1] > cells.end).any():
        return None
    numbers = np.full(cells.domain.size, -1, np.int64)
    for number, (low, high) in enumerate(zip(cells.low.tolist(), cells.high.tolist())):
        if (numbers[low : high + 1] >= 0).any():
            return None
        numbers[low : high + 1] = number
    return numbers


def _make_shares(grouped: Grouped) -> None:
    """Create a table of the share of each sensitive value, s, in each group."""
    with translated("reading the release"):
        grouped.database.execute(
            f"CREATE OR REPLACE TABLE {SHARES} AS "
            f"SELECT g, v.code::INTEGER AS s, c.n / z.n AS share FROM ({grouped.counts(['g'])}) AS c "
            f"JOIN {grouped.GROUPS} AS z USING (g) JOIN values_0 AS v ON c.s IS NOT DISTINCT FROM v.v"
        )


def _source_rows(
    original: Original,
    cells: list[LabelCells],
    numbers: list[Ints],
    own: Ints,
    packing: Packing,
    failures: list[BaseException],
) -> pa.RecordBatchReader:
    """Return the source's rows as packed labels, the release's code of the sensitive value, and the area under the
    labels."""
    words = [(name, pa.int64()) for name in packing.names]
    schema = pa.schema([*words, ("s", pa.int32()), ("area", pa.float64())])

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in original.batches():
            area, columns = np.ones(batch.num_rows), []
            for column, number, values in zip(cells, numbers, batch.columns):
                columns.append(number[column.domain.encode(values)])
                area *= (column.end - column.begin)[columns[-1]]
            sensitive = own[original.sensitive[0].encode(batch.column(len(cells)))].astype(np.int32)
            arrays = [pa.array(each) for each in (*packing.words(columns), sensitive, area)]
            yield pa.record_batch(arrays, schema=schema)

    return fed(schema, batches(), failures)


@dataclass(frozen=True)
class Packing:
    """Labels of several columns packed into as few numbers as possible, by which a join takes less memory and time.
    `runs` are the columns that share a number, `sizes` the numbers of labels of each column."""

    runs: list[list[int]]
    sizes: list[int]

    @classmethod
    def from_cells(cls, cells: list[LabelCells]) -> Packing:
        sizes, runs, space = [len(column.labels) for column in cells], [], LARGEST + 1
        for j, size in enumerate(sizes):
            if space * size > LARGEST:
                runs.append([j])
                space = size
            else:
                runs[-1].append(j)
                space *= size
        return cls(runs, sizes)

    @property
    def names(self) -> list[str]:
        return [f"t{number}" for number in range(len(self.runs))]

    @property
    def boxes(self) -> str:
        """Return SQL for the boxes of the release with their labels packed."""
        words = []
        for name, (first, *others) in zip(self.names, self.runs):
            word = f"l{first}::BIGINT"
            for j in others:
                word = f"({word} * {self.sizes[j]} + l{j})"
            words.append(f"{word} AS {name}")
        return f"SELECT g, n, {listed(words)} FROM {BOXES}"

    def words(self, numbers: list[Ints]) -> list[Ints]:
        """Return the packed numbers of labels; -1 for a row with a value under no label, which no box has."""
        nowhere = np.logical_or.reduce([each < 0 for each in numbers])
        found = []
        for first, *others in self.runs:
            word = numbers[first]
            for j in others:
                word = word * self.sizes[j] + numbers[j]
            found.append(np.where(nowhere, -1, word))
        return found
