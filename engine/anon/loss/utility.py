"""Measure how much of its source a release keeps: the block `utility` of the report and of `anon utility`. The release
is read as an outsider reads it (grouped), its labels are read back into cells of the source's columns (cells), and sums
over both go into the formulas of `metrics`. The source is only streamed, or grouped by SQL."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from anon.config import Columns, Criterion
from anon.core.database import Database
from anon.core.memory import Memory
from anon.core.text import text
from anon.criteria import Ints
from anon.cube import Domain
from anon.cube.building import quasi_identifier, sensitive
from anon.cube.ranges import as_numbers
from anon.cube.value_counts import count
from anon.errors import ResourceError, SourceError
from anon.loss import bucketized
from anon.loss.cells import LabelCells, boxes_between, one_box_each, read_cells, values_below
from anon.loss.lower_bound import least_class, lower_bound
from anon.loss.queries import QUERIES, Floats, Queries, ReleasedGroups, error
from anon.loss.rounding import lost_by_rounding
from anon.recoding import metrics
from anon.recoding.assignment import Assignment
from anon.recoding.levels import AnyRecoding
from anon.recoding.refined import RefinedRecoding
from anon.source import Column, Source
from anon.verify.grouped import Grouped, Reading, code_tuples, listed
from anon.verify.histograms import histograms

MEASURED = 1_000_000  # rows; for more, a run leaves what needs further passes over the source to `anon utility`
JOINED = 8_000_000  # bytes that a database needs for each column of labels, all of which it joins to the groups at once
LONG_TEXT = 256  # mean bytes from which on texts are compared by their hashes of 64 bits
DIGITS = 12  # of the divergence that do not depend on the order in which a database adds


@dataclass(frozen=True)
class Original:
    """The source with the domains that a release of it is compared by."""

    source: Source
    quasi_identifiers: list[Domain]
    sensitive: list[Domain]
    multiplicity: str = "single"
    threads: int = 1

    @classmethod
    def from_source(cls, source: Source, columns: Columns, threads: int) -> Original:
        """Read the source for its domains."""
        roles = [*source.quasi_identifiers, *source.sensitive]
        counted = list(count(source, roles, threads))
        builders = list(columns.quasi_identifiers.values())
        own = [quasi_identifier(source, *each)[0] for each in zip(source.quasi_identifiers, builders, counted)]
        rest = [sensitive(*each) for each in zip(source.sensitive, counted[len(own) :])]
        return cls(source, own, rest, columns.multiplicity, threads)

    @property
    def columns(self) -> list[Column]:
        return [*self.source.quasi_identifiers, *self.source.sensitive]

    @property
    def _rows(self) -> str:
        """Return SQL for a row for every sensitive value of an individual."""
        return f"SELECT {listed([column.alias for column in self.columns])} FROM {self.source.values_view}"

    @cached_property
    def individuals(self) -> int:
        if self.multiplicity == "single":
            return self.source.rows
        return int(self.source.query("SELECT count(DISTINCT who) FROM kept_rows")[0][0].as_py())

    @cached_property
    def rows(self) -> int:
        """Return the number of sensitive values of individuals."""
        return int(self.source.query(f"SELECT count(*) FROM ({self._rows})")[0][0].as_py())

    def batches(self) -> Iterator[pa.RecordBatch]:
        yield from self.source.rows_of(self._rows)

    def log_counts(self) -> float:
        """Return the sum of n log n over the distinct rows, where n is the count of each."""
        names = listed([self._compared(column) for column in self.columns])
        counted = self.source.query(
            f"SELECT n, count(*) AS tuples FROM (SELECT count(*) AS n FROM ({self._rows}) GROUP BY {names}) "
            "GROUP BY n ORDER BY n"
        )
        n, tuples = (counted[name].to_numpy().astype(np.float64) for name in ("n", "tuples"))
        return math.fsum((n * tuples * np.log(n)).tolist())

    def _compared(self, column: Column) -> str:
        """SQL: what tells the values of a column apart. Groups by long texts would hold them all."""
        return f"hash({column.alias})" if self.source.widths.get(column.alias, 0) > LONG_TEXT else column.alias

    def distinct(self) -> list[Ints]:
        """Return per quasi-identifier the number of distinct values of each code, which is above 1 only for bins."""
        return [self._distinct(*both) for both in zip(self.source.quasi_identifiers, self.quasi_identifiers)]

    def _distinct(self, column: Column, domain: Domain) -> Ints:
        if domain.single:
            return np.ones(domain.size, np.int64)
        counts, starts = np.zeros(domain.size, np.int64), as_numbers(domain.values)
        counts[: domain.null] = 1
        distinct = f"SELECT DISTINCT {column.alias} FROM {Source.VIEW} WHERE {column.alias} IS NOT NULL"
        for batch in self.source.rows_of(distinct):
            bins = np.searchsorted(starts, as_numbers(batch.column(0)), side="right") - 1 + domain.null
            counts += np.bincount(bins, minlength=domain.size)
        return counts


@dataclass(frozen=True)
class ReleaseSums:
    """Sums over the groups of a release."""

    expected: Floats  # per query
    logs: float | None  # n log(n / area + suppressed / whole) over labels and values; None if groups share labels


def of_run(
    original: Original,
    table: Grouped,
    recoding: AnyRecoding | Assignment,
    exact: bool,
    privacy: list[Criterion],
    memory: Memory,
) -> dict[str, Any]:
    """Return the facts about the release of a run; for a large or wide table only those that its recoding has. A
    verified release is not lost because there is not enough memory to measure it."""
    if original.source.rows <= MEASURED and JOINED * len(original.quasi_identifiers) <= memory.database:
        with suppress(ResourceError):
            return measure(original, table, privacy, isinstance(recoding, RefinedRecoding))
    return of_recoding(recoding, exact)


def of_recoding(recoding: AnyRecoding | Assignment, exact: bool) -> dict[str, Any]:
    """Return the facts about a release that its recoding has: without the divergence, the error of queries and the
    lower bound of the loss. `exact`: quasi-identifiers are published as they are, and only suppressed individuals are
    lost."""
    height: int | None = 0
    losses = {}
    span: metrics.Numbers
    for at, domain in enumerate(recoding.domains):
        if isinstance(recoding, Assignment) or exact:
            span, whole = np.zeros(1), domain.size - 1.0
        else:
            (span, whole), height = recoding.span(at), recoding.height
        losses[domain.column] = metrics.loss(span, whole, recoding.people, recoding.suppressed)
    return {
        "groups": recoding.groups,
        "average_group": metrics.average_group(recoding.people),
        "discernibility": metrics.discernibility(recoding.people, recoding.suppressed),
        "height": height,
        "divergence": None,
        "loss": _with_mean(losses),
        "lower_bound": None,
        "query_error": None,
        "suppressed": recoding.suppressed,
    }


def measure(
    original: Original, grouped: Grouped, privacy: list[Criterion], overlapping: bool = False
) -> dict[str, Any]:
    """Return the facts about a release of a source; SourceError or ConfigError if it cannot be one. The loss is bounded
    from below by what the criteria demand. If labels of different groups may be `overlapping`, it has no
    divergence, whose densities are of one label each."""
    k = least_class(privacy, grouped.bucketized)
    distinct = original.distinct()
    with _resting(original.source.database, grouped.database):
        cells = read_cells(grouped, original.quasi_identifiers, distinct)
        people = grouped.database.query(f"SELECT n FROM {grouped.GROUPS}").to_arrow_table()["n"].to_numpy()
        suppressed = _absent(original.individuals, int(people.sum()), "individuals")
        compared = Comparison(original, grouped, cells, values_below(distinct))
        queries = Queries.draw(original.quasi_identifiers, original.sensitive)
        released = compared.released(queries)
    with _sharing(grouped.database, original.source.database):
        logs, missing = compared.log_densities(released.logs)
    with _resting(grouped.database, original.source.database):
        divergence = compared.divergence(logs, missing)
        counted = queries.rows(original.batches(), original.threads)
        least = None if k is None else lower_bound(original, k)
    return {
        "groups": len(people),
        "average_group": metrics.average_group(people),
        "discernibility": metrics.discernibility(people, suppressed),
        "height": _height(cells),
        "divergence": None if overlapping else divergence,
        "loss": _loss(cells, suppressed),
        "lower_bound": least,
        "query_error": error(counted, released.expected, original.rows),
        "suppressed": suppressed,
        **({"aggregated": rounded} if (rounded := lost_by_rounding(original.source)) else {}),
    }


def _resting(database: Database, working: Database) -> AbstractContextManager[None]:
    """Make one of two connections leave its memory to the other."""
    return nullcontext() if database is working else database.at_rest()


@contextmanager
def _sharing(database: Database, other: Database) -> Iterator[None]:
    """Let two connections work at the same time."""
    if database is other:
        yield
        return
    with database.halved(), other.halved():
        yield


def _absent(source: int, table: int, what: str) -> int:
    if table > source:
        raise SourceError(f"the table has {table - source:,} more {what} than the source: it is not a release of it")
    return source - table


def _height(cells: list[LabelCells]) -> int | None:
    """Return the height; None if a column is published at several levels."""
    levels = [column.level for column in cells]
    known = [level for level in levels if level is not None]
    return metrics.height(known) if len(known) == len(levels) else None


def _loss(cells: list[LabelCells], suppressed: int) -> dict[str, Any]:
    return _with_mean({c.domain.column: metrics.loss(c.span, c.whole, c.people, suppressed) for c in cells})


def _with_mean(losses: dict[str, float]) -> dict[str, Any]:
    return {"all": math.fsum(losses.values()) / len(losses), "columns": losses}


@dataclass(frozen=True)
class Comparison:
    """A source and its release. `before` counts, per code of a quasi-identifier and past the last, the source's
    distinct values below it."""

    original: Original
    grouped: Grouped
    cells: list[LabelCells]
    before: list[Ints]

    @cached_property
    def suppressed(self) -> int:
        """Return the number of rows of the source that the release does not have."""
        grouped, columns = self.grouped, self.grouped.sensitive
        released = sum(grouped.frequency[columns[0]]) if columns else grouped.rows()
        return _absent(self.original.rows, released, "sensitive values")

    @cached_property
    def everywhere(self) -> float:
        """Return the density of those who are missing if they are spread over all tuples of values."""
        return self.suppressed / self._whole

    @property
    def _whole(self) -> float:
        """Return the number of possible tuples of quasi-identifier and sensitive values."""
        sizes = [float(below[-1]) for below in self.before] + [float(d.size) for d in self.original.sensitive]
        return math.prod(sizes)

    @cached_property
    def codes(self) -> Ints:
        """Return [value, sensitive column]: the source's codes of the release's values, or of its tuples of them."""
        columns = tuple(self.grouped.sensitive)
        if not columns:
            return np.zeros((1, 0), np.int64)
        own = [self._own_codes(*both) for both in zip(columns, self.original.sensitive)]
        if len(columns) == 1:
            return own[0][:, None]
        tuples = code_tuples(self.grouped, columns)
        return np.stack([codes[tuples[:, place]] for place, codes in enumerate(own)], axis=1)

    def _own_codes(self, column: str, domain: Domain) -> Ints:
        known = {word: code for code, word in enumerate(domain.texts)}
        found = [known.get(None if v is None else text(v), -1) for v in self.grouped.objects[column]]
        unknown = found.count(-1)
        if unknown:
            raise SourceError(
                f"column {column!r}: {unknown:,} sensitive values that the source does not have: "
                "the table is not a release of it"
            )
        return np.array(found, np.int64)

    def released(self, queries: Queries) -> ReleaseSums:
        """Sum over the groups of the release and their boxes, in one stream."""
        expected, sums = np.zeros(QUERIES), []
        alone = not self.grouped.bucketized or one_box_each(self.grouped)
        codes, everywhere = np.ascontiguousarray(self.codes), self.everywhere  # before the stream takes the connection
        on_labels = queries.of_labels(self.cells, self.before)
        for groups in histograms(self.grouped, Reading(tuple(self.grouped.sensitive))):
            numbers = groups.first + np.arange(len(groups)) if groups.row is None else groups.row
            released, area = ReleasedGroups(groups, numbers, codes), np.ones(len(groups))
            for boxes in boxes_between(self.grouped, int(numbers[0]), int(numbers[-1])):
                queries.expect(on_labels, released, boxes, expected)
                if alone:
                    area[np.searchsorted(numbers, boxes.group)] = self._area(boxes.labels)
            each = np.repeat(area, np.diff(groups.start))
            sums.append(metrics.released_log_sum(groups.count, each, everywhere))
        return ReleaseSums(expected, math.fsum(sums) if alone else None)

    def _area(self, labels: list[Ints]) -> Floats:
        area = np.ones(len(labels[0]))
        for cells, numbers in zip(self.cells, labels):
            area *= (cells.end - cells.begin)[numbers]
        return area

    def log_densities(self, logs: float | None) -> tuple[float | None, int]:
        """Return the sum of the log densities that the release gives the source's rows, and the number of rows that it
        leaves out; None if the groups of a bucketized release share labels whose cells overlap."""
        if logs is None or (self.suppressed and self.grouped.bucketized):
            joined = bucketized.log_densities(self)
            if joined is not None:
                return joined, 0  # those who are missing are among the source's rows
        return logs, self.suppressed

    def divergence(self, logs: float | None, suppressed: int) -> float | None:
        """Return the divergence of the release from the source; None if the log densities are not known."""
        if logs is None:
            return None
        total, own = self.original.rows, self.original.log_counts()
        found = metrics.divergence_of_sums(total, own, logs, suppressed, self._whole)
        return float(f"{found:.{DIGITS}g}")
