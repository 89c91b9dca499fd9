"""The typed bounds of labels (`release: {bounds: true}`): for every quasi-identifier whose labels are ranges of
numbers, dates or timestamps, two columns beside its labels, NAME_low and NAME_high, with the ends of the cell. They are
a function of the label, so they publish nothing more, and rows stay in the same order.

    label          low          high
    20-34          20           34            both ends are in the cell
    [1.5,2.25)     1.5          2.25          the second is not, for kinds number and timestamp
    >=85           85           null          null where the cell is open
    7              7            7
    null|<=19      null         19            missing values have no ends
    *, not null    null         null
    2024-Q1        2024-01-01   2024-03-31    levels of the calendar, as days
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anon.config import Config, Intervals
from anon.config.grammar import bounded
from anon.core.arrays import Ints
from anon.cube.domain import Domain
from anon.cube.ranges import ends_of
from anon.recoding.levels import AnyRecoding
from anon.recoding.tree import ColumnLabels
from anon.release.files import label_array

ARROW = {
    "integer": pa.int64(),
    "number": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "calendar": pa.date32(),
}
DUCKDB = {"integer": "BIGINT", "number": "DOUBLE", "date": "DATE", "timestamp": "TIMESTAMP", "calendar": "DATE"}
FRICTIONLESS = {
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "date": {"type": "date"},
    "timestamp": {"type": "datetime", "format": "any"},
    "calendar": {"type": "date"},
}
Ends = tuple[Any, Any]


@dataclass(frozen=True)
class ColumnBounds:
    """The bounds of a column's distinct labels, in the order of these; none where its labels have no bounds."""

    column: str
    kind: str = ""  # of the bounds: integer, number, date, timestamp, or calendar for levels of it
    low: pa.Array | None = None
    high: pa.Array | None = None

    @property
    def names(self) -> list[str]:
        return [f"{self.column}_{end}" for end in ("low", "high")] if self.kind else []

    @property
    def schema_fields(self) -> list[pa.Field]:
        return [pa.field(name, ARROW[self.kind]) for name in self.names]

    @property
    def types(self) -> dict[str, str]:
        """The DuckDB types of the label and its bounds."""
        return {self.column: "VARCHAR"} | dict.fromkeys(self.names, DUCKDB.get(self.kind, ""))

    @property
    def fields(self) -> list[dict[str, str]]:
        """The bounds for datapackage.json."""
        ends = zip(self.names, ("low", "high"))
        about = {**FRICTIONLESS.get(self.kind, {}), "role": "bound", "of": self.column}
        return [{"name": name, **about, "end": end} for name, end in ends]

    def arrays(self, labels: NDArray[Any], lengths: Ints) -> list[pa.Array]:
        """Return the bounds of runs of rows, given the label of each run."""
        if self.low is None or self.high is None:
            return []
        places = pa.array(np.repeat(labels, lengths))
        return [self.low.take(places), self.high.take(places)]


def bounds_of(config: Config, recoding: AnyRecoding) -> list[ColumnBounds]:
    """Return the bounds of every quasi-identifier, all without any if the config does not ask for them."""
    if not config.release.bounds:
        return [ColumnBounds(domain.column) for domain in recoding.domains]
    return [
        _bounds(domain, bound_kind(config, domain), labels.labels.to_pylist())
        for domain, labels in zip(recoding.domains, recoding.labels)
    ]


def kinds_of(bounds: Iterable[ColumnBounds]) -> dict[str, str]:
    """Return the kind of the bounds of each column that has any."""
    return {own.column: own.kind for own in bounds if own.kind}


def label_types(bounds: Iterable[ColumnBounds]) -> dict[str, str]:
    """Return the DuckDB types of all labels, each followed by its bounds."""
    return {name: kind for own in bounds for name, kind in own.types.items()}


def label_columns(
    labels: list[ColumnLabels], bounds: list[ColumnBounds], groups: NDArray[Any], lengths: Ints
) -> list[pa.Array]:
    """Return the labels of runs of rows of some groups, each column followed by its bounds."""
    columns: list[pa.Array] = []
    for own, ends in zip(labels, bounds):
        columns += [label_array(own, groups, lengths), *ends.arrays(own.of_group[groups], lengths)]
    return columns


def bound_kind(config: Config, domain: Domain) -> str:
    """Return the kind of a column's bounds, nothing if it has none."""
    builder = config.columns.quasi_identifiers[domain.column]
    if not bounded(builder):
        return ""
    if builder.kind == "calendar":
        return "calendar"
    if builder.kind == "free":
        return domain.kind if domain.kind in ARROW else ""
    assert isinstance(builder, Intervals)
    numbers = [*builder.intervals, builder.origin, builder.top, builder.bottom]
    whole = domain.kind == "integer" and all(number is None or number == int(number) for number in numbers)
    return "integer" if whole else "number"


def _bounds(domain: Domain, kind: str, labels: list[str | None]) -> ColumnBounds:
    if not kind:
        return ColumnBounds(domain.column)
    read: Callable[[str, str], Ends] = _days if kind == "calendar" else _range
    ends = [_ends(label, kind, read) for label in labels]
    low, high = (_array([pair[end] for pair in ends], kind) for end in (0, 1))
    return ColumnBounds(domain.column, kind, low, high)


def _array(values: list[Any], kind: str) -> pa.Array:
    if kind in ("date", "timestamp"):
        plain = pa.array(values, pa.int32() if kind == "date" else pa.int64())
        return plain.cast(ARROW[kind])
    return pa.array(values, ARROW[kind])


def _ends(label: str | None, kind: str, read: Callable[[str, str], Ends]) -> Ends:
    word = (label or "*").removeprefix("null|")
    return (None, None) if word in ("*", "not null") else read(word, kind)


def _range(word: str, kind: str) -> Ends:
    try:
        low, high, _ = ends_of(word, kind)
    except KeyError:  # a decimal of more digits than a float has
        low = high = float(word)
    return low, high


def _days(word: str, kind: str) -> Ends:
    """Return the first and the last day of a level of the calendar.

    >>> [" to ".join(map(str, _days(word, ""))) for word in ("2024-02", "2024-Q2", "2020-2029")]
    ['2024-02-01 to 2024-02-29', '2024-04-01 to 2024-06-30', '2020-01-01 to 2029-12-31']
    """
    if found := re.fullmatch(r"(\d{4}-\d{2}-\d{2})(T.*)?", word):
        day = date.fromisoformat(found[1])
        return day, day
    if found := re.fullmatch(r"(\d{4})-(\d{2})", word):
        return _months(int(found[1]), int(found[2]), 1)
    if found := re.fullmatch(r"(\d{4})-Q([1-4])", word):
        return _months(int(found[1]), 3 * int(found[2]) - 2, 3)
    if found := re.fullmatch(r"(\d{4})-(\d{4})", word):
        return date(int(found[1]), 1, 1), date(int(found[2]), 12, 31)
    return _months(int(word), 1, 12) if re.fullmatch(r"\d{4}", word) else (None, None)


def _months(year: int, month: int, count: int) -> Ends:
    last = month + count - 1
    return date(year, month, 1), date(year, last, calendar.monthrange(year, last)[1])
