"""The formats of the dates of a file. Which of two numbers is the day shows only where one of them is above twelve; a
column in which none is takes the order of another one of the same form, or stays text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from anon.core.database import Database
from anon.source.bad_cells import nearly
from anon.source.cell_shapes import ColumnShapes
from anon.source.cells import dated
from anon.source.csv_files import TextCopy
from anon.source.tables import one

TIMES = {"": "", " %H:%M": " [09]{1,2}:[09]{2}", " %H:%M:%S": " [09]{1,2}:[09]{2}:[09]{2}"}
YEAR_FIRST = {
    f"%Y{mark}%m{mark}%d": f"[09]{{4}}{re.escape(mark)}[09]{{1,2}}{re.escape(mark)}[09]{{1,2}}" for mark in "./"
}
YEAR_LAST = {mark: f"[09]{{1,2}}{re.escape(mark)}[09]{{1,2}}{re.escape(mark)}" for mark in "./-"}


@dataclass(frozen=True)
class DateColumn:
    """A column of dates: its format, None if the cells do not show it, and the evidence."""

    name: str
    format: str | None
    evidence: str


@dataclass(frozen=True)
class _Form:
    """The dates of a column: the formats that they may have, of which the shape fits all, and how many there are."""

    name: str
    formats: tuple[str, ...]
    count: int
    present: int
    short_year: bool = False

    @property
    def numbers(self) -> str:
        """What forms of the same order have in common."""
        return self.formats[0].split(" ", maxsplit=1)[0]


def date_columns(database: Database, copied: TextCopy, columns: Sequence[ColumnShapes]) -> list[DateColumn]:
    """Return the columns whose cells are dates, but for a few, in a form other than 2024-12-31."""
    forms = [form for column in columns if (form := _form(column)) is not None]
    fitting = {form.name: _fitting(database, copied, form) for form in forms}
    orders: dict[str, str] = {}  # the format that some column shows for dates of a form
    for form in forms:
        if (shown := _shown(form, fitting[form.name])) is not None:
            orders.setdefault(form.numbers, shown)
    return [_decided(form, fitting[form.name], orders) for form in forms]


def _form(column: ColumnShapes) -> _Form | None:
    for formats, pattern, short in _candidates():
        count = column.matching(re.compile(pattern))
        if nearly(count, column.present):
            return _Form(column.name, formats, count, column.present, short)
    return None


def _candidates() -> Iterator[tuple[tuple[str, ...], str, bool]]:
    """Yield the formats, the pattern of the shapes that they have, and whether the year has two digits."""
    for time, after in TIMES.items():
        for written, pattern in YEAR_FIRST.items():
            yield (f"{written}{time}",), pattern + after, False
        for mark, pattern in YEAR_LAST.items():
            for year, digits in (("%Y", "[09]{4}"), ("%y", "[09]{2}")):
                both = tuple(f"{day}{mark}{month}{mark}{year}{time}" for day, month in (("%d", "%m"), ("%m", "%d")))
                yield both, pattern + digits + after, year == "%y"


def _fitting(database: Database, copied: TextCopy, form: _Form) -> dict[str, int]:
    """Return how many cells of a column are dates of each format."""
    (column,) = (column for column in copied.columns if column.name == form.name)
    counts = ", ".join(f"count(*) FILTER ({dated(written).fits(column.text)})" for written in form.formats)
    return dict(zip(form.formats, map(int, one(database, f"SELECT {counts} FROM {copied.base}"))))


def _shown(form: _Form, fitting: dict[str, int]) -> str | None:
    """Return the format that most cells are dates of; None if two are equal."""
    best = max(form.formats, key=lambda written: fitting[written])
    equal = [written for written in form.formats if fitting[written] == fitting[best]]
    return best if len(equal) == 1 and not form.short_year else None


def _decided(form: _Form, fitting: dict[str, int], orders: dict[str, str]) -> DateColumn:
    if form.short_year:
        said = f"{form.count:,} of {form.present:,} values look like dates with two digits for the year: set csv.dates"
        return DateColumn(form.name, None, f"{said} to read 69-99 as 1969-1999")
    own = _shown(form, fitting)
    if own is not None:
        return DateColumn(form.name, own, _evidence(form, fitting, own))
    other = orders.get(form.numbers)
    if other is None:
        said = f"{form.count:,} of {form.present:,} values look like dates, but none shows which number is the day"
        return DateColumn(form.name, None, f"{said}: set csv.dates to {' or '.join(form.formats)}")
    written = other.split(" ", maxsplit=1)[0] + form.formats[0].removeprefix(form.numbers)
    return DateColumn(form.name, written, "no value shows which number is the day; as in another column of this form")


def _evidence(form: _Form, fitting: dict[str, int], own: str) -> str:
    rest = [f"{count:,} would be as {written}" for written, count in fitting.items() if written != own]
    return f"{fitting[own]:,} of {form.present:,} values are dates of this form" + (f"; {rest[0]}" if rest else "")
