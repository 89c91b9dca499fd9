"""Make the labels of a column's values: one function per builder of the config. Each refuses values that it cannot
label, with their count."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

from anon.core.text import Value, text
from anon.errors import ConfigError, Problem
from anon.hierarchy.files import HierarchyGap, HierarchyTable, read, rooted
from anon.hierarchy.intervals import BandCells, Cells, IntervalCells, in_units
from anon.hierarchy.label_levels import ROOT, Paths, Row

if TYPE_CHECKING:
    from anon.config import Bands, Builder, Calendar, Digits, HierarchyFile, Intervals, Suppress


def paths(builder: Builder, values: Sequence[Value], column: str, *, role: str = "quasi_identifiers") -> Paths:
    """Return the labels of each distinct non-null value, from level 1 up to the root `*`; level 0 is `text(value)`.

    All paths have the same length. Numbers, dates and digits are expected in value order. `role` is the section of the
    config that names the column.
    """
    where = f"columns.{role}.{column}.{builder.kind}"
    builders = _SENSITIVE if role == "sensitive" else _BUILDERS
    found = builders[builder.kind](builder, values, where)
    return _capped(builder, found, f"columns.{role}.{column}.at_most") if builder.capped else found


def _capped(builder: Builder, paths: Paths, where: str) -> Paths:
    """Return the labels without the levels between the cap and the root."""
    height = min(map(len, paths), default=0)
    cap = builder.cap(height)
    if paths and cap >= height:
        levels = ", ".join(["value", *map(str, range(1, height))])
        raise ConfigError.at(where, f"level {cap}", f"one of the levels below `*`: {levels}")
    return Paths([(*row[:cap], row[-1]) for row in paths], paths.where, paths.ranks)


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _is_date(value: Value) -> bool:
    return isinstance(value, date)


# Text that a CSV column of numbers or of dates may hold.
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T].*)?")


def _interval_paths(builder: Intervals, values: Sequence[Any], where: str) -> Paths:
    whole = _whole(values, where)
    cells = IntervalCells.from_numbers(builder.intervals, builder.origin, builder.top, builder.bottom, whole)
    return Paths(cell_paths(cells, values, where), where)


def _band_paths(builder: Bands, values: Sequence[Any], where: str) -> Paths:
    cells = BandCells.from_numbers(builder.bands, _whole(values, where))
    return Paths(cell_paths(cells, values, where), where)


def _whole(values: Sequence[Any], where: str) -> bool:
    """Return whether all values are whole numbers; refuse those that are no numbers."""
    hint = "one word or leading zero among the numbers of a CSV column makes it text"
    _refuse_other_types(values, _is_number, _NUMBER, where, ("numbers", "a column of numbers", hint))
    return all(isinstance(value, int) for value in values)


def cell_paths(cells: Cells, values: Sequence[Any], where: str) -> list[Row]:
    """Return the labels of numbers, made once for all that share their narrowest cell."""
    parts = [cells.part(in_units(value, cells.places)) for value in values]
    _refuse_some(
        parts,
        lambda part: part is not None,
        where,
        "that are infinite or not a number",
        "finite numbers, or `top` and `bottom` to take the rest",
    )
    labels: dict[Any, Row] = {part: cells.path(part) for part in set(parts) if part is not None}
    return [labels[part] for part in parts]


def _suppress_paths(builder: Suppress, values: Sequence[Any], where: str) -> Paths:
    return Paths([(ROOT,)] * len(values), where)


def _digit_paths(builder: Digits, values: Sequence[Any], where: str) -> Paths:
    count = builder.digits
    _refuse_short_numbers(values, count, where)
    _refuse_some(
        values,
        lambda value: _is_digits(value, count),
        where,
        f"that are not exactly {count} digits",
        f"text or whole numbers of exactly {count} digits",
    )
    return Paths([masked(text(value), count) for value in values], where)


def _is_digits(value: Value, count: int) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return False
    digits = text(value)
    return len(digits) == count and digits.isascii() and digits.isdigit()


def _refuse_short_numbers(values: Sequence[Any], count: int, where: str) -> None:
    """Refuse short whole numbers with a message about leading zeros, which they have probably lost."""
    numbers = (value for value in values if isinstance(value, int) and not isinstance(value, bool))
    short = sum(1 for number in numbers if number >= 0 and len(text(number)) < count)
    if short:
        raise ConfigError.at(
            where,
            f"{short} of {len(values)} distinct values that are whole numbers with fewer than {count} digits",
            f"exactly {count} digits in every value",
            f"zip codes stored as numbers lose their leading zeros: `pad: {count}` puts them back",
        )


def masked(value: str, width: int) -> Row:
    """Return labels that mask one more character at each level. Values are aligned on the left and the longest has
    `width` characters; a shorter one stays unchanged until the mask reaches its end."""
    labels = [value if len(value) <= keep else value[:keep] + "*" * (width - keep) for keep in range(width - 1, 0, -1)]
    return (*labels, ROOT)


def _calendar_paths(builder: Calendar, values: Sequence[Any], where: str, *, keep_day: bool = False) -> Paths:
    hint = "in a CSV file every date is written like 2024-03-09 (ISO 8601)"
    _refuse_other_types(values, _is_date, _DATE, where, ("dates", "a column of dates or times", hint))
    keep_day = keep_day or any(isinstance(value, datetime) for value in values)
    periods = [_PERIODS[period] for period in builder.calendar if keep_day or period != "day"]
    days = [_utc(value) for value in values]
    return Paths([(*(label(day) for label in periods), ROOT) for day in days], where)


_PERIODS: dict[str, Callable[[date], str]] = {
    "day": lambda day: f"{day.year:04}-{day.month:02}-{day.day:02}",
    "month": lambda day: f"{day.year:04}-{day.month:02}",
    "quarter": lambda day: f"{day.year:04}-Q{(day.month + 2) // 3}",
    "year": lambda day: f"{day.year:04}",
    "decade": lambda day: _years(day, 10),
    "century": lambda day: _years(day, 100),
}


def _years(day: date, count: int) -> str:
    """Return the label of the years of a decade or century, which begins at a year that ends in 0 or 00.

    >>> _years(date(1987, 3, 9), 10), _years(date(2000, 1, 1), 100)
    ('1980-1989', '2000-2099')
    """
    first = day.year // count * count
    return f"{first:04}-{first + count - 1:04}"


def _utc(value: date) -> date:
    if isinstance(value, datetime) and value.utcoffset() is not None:
        return value.astimezone(UTC)
    return value


def _refuse_some(values: Sequence[Any], fits: Callable[[Any], bool], where: str, what: str, expected: str) -> None:
    bad = sum(1 for value in values if not fits(value))
    if bad:
        raise ConfigError.at(where, f"{bad} of {len(values)} distinct values {what}", expected)


def _refuse_other_types(
    values: Sequence[Any], fits: Callable[[Any], bool], written: re.Pattern[str], where: str, words: tuple[str, ...]
) -> None:
    """Refuse a column of another type. A few stray values make a whole column text, so only those are counted."""
    what, expected, hint = words
    others = [value for value in values if not fits(value)]
    as_text = sum(isinstance(value, str) and written.fullmatch(value) is not None for value in others)
    stray = len(others) - as_text
    if stray:
        raise ConfigError.at(where, f"{stray} of {len(values)} distinct values that are not {what}", expected, hint)
    if as_text:
        raise ConfigError.at(where, f"{what} stored as text", expected)


def _file_paths(builder: HierarchyFile, values: Sequence[Any], where: str) -> Paths:
    table = read(builder.hierarchy, where)
    texts = [text(value) for value in values]
    place = table.find(texts)
    missing = [name for name, row in zip(texts, place.tolist()) if row < 0]
    if missing:
        raise _gap(missing, len(values), table)
    return Paths([row[1:] for row in rooted(table).rows(place)], where, table.ranks()[place].tolist())


def _gap(missing: list[str], total: int, table: HierarchyTable) -> HierarchyGap:
    found = f"{len(missing)} of {total} distinct values that are not leaves of {table.name}"
    hint = "`anon hierarchy test FILE --on TABLE --column C` counts them, --show-values lists them"
    problem = Problem(table.where, found, "every value of the column as a leaf", hint)
    return HierarchyGap([problem], missing=missing)


_BUILDERS: dict[str, Callable[[Any, Sequence[Any], str], Paths]] = {
    "intervals": _interval_paths,
    "bands": _band_paths,
    "suppress": _suppress_paths,
    "digits": _digit_paths,
    "calendar": _calendar_paths,
    "hierarchy": _file_paths,
}
# A sensitive column is published at level 1, so a listed day stays there, although for a date it is the value itself.
_SENSITIVE = _BUILDERS | {"calendar": partial(_calendar_paths, keep_day=True)}
