"""Bins of a column whose labels may end only at bounds that the config names (`ends`): multiples of a width, listed
bounds, or the beginnings of calendar units. Values between two bounds share a code, so that no cut falls between them,
and the bound of a bin is that of the config, whatever values lie in it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from anon.config import Free
from anon.cube.domain import EarlierCuts
from anon.cube.value_counts import ValueCounts
from anon.errors import ConfigError
from anon.source import Column

LOWEST = -(2**63)
Start = Callable[[Any], Any]  # the bound that the bin of a value begins at; None below the lowest


def binned(column: Column, builder: Free, counted: ValueCounts) -> ValueCounts:
    """Return the values of a column in bins between the bounds of the config."""
    start = _start(column, builder)
    values, null = counted.values.drop_null(), counted.values.null_count
    starts = [start(value) for value in values.to_pylist()]
    begins = np.array([i for i, each in enumerate(starts) if not i or each != starts[i - 1]], np.int64)
    last = np.append(begins[1:], len(values)) - 1 if len(values) else begins
    rows = np.append(counted.rows[:null], np.add.reduceat(counted.rows[null:], begins) if len(values) else [])
    bounds = pa.array([starts[i] for i in begins.tolist() if starts[i] is not None], values.type)
    return ValueCounts(
        counted.distinct,
        pa.nulls(null, values.type),
        rows.astype(np.int64),
        values.take(pa.array(begins)),
        values.take(pa.array(last)),
        EarlierCuts(bounds, frozenset()),
    )


def _start(column: Column, builder: Free) -> Start:
    """Return the function that finds the bound below a value; ConfigError if the column has other values."""
    ends, path = builder.ends, f"columns.quasi_identifiers.{column.name}.ends"
    if isinstance(ends, str):
        if column.kind not in ("date", "timestamp"):
            raise ConfigError.at(path, f"{ends} for a column of kind {column.kind}", "a number, or a list of numbers")
        return lambda value: _unit_start(ends, value)
    if column.kind not in ("integer", "number"):
        raise ConfigError.at(path, f"numbers for a column of kind {column.kind}", "a column of numbers, or no ends")
    numbers = [*ends, builder.origin] if isinstance(ends, list) else [ends, builder.origin]
    if column.kind == "integer" and any(number != int(number) for number in numbers if number is not None):
        raise ConfigError.at(path, "fractions for a column of whole numbers", "whole numbers")
    as_value: Callable[[Decimal | Fraction | int], Any] = _as_integer if column.kind == "integer" else _as_float
    if isinstance(ends, list):
        exact, bounds = [*map(Fraction, ends)], [None, *map(as_value, ends)]
        return lambda value: bounds[bisect_right(exact, _exact(value))]
    assert ends is not None
    width, origin = Fraction(ends), Fraction(builder.origin)
    return lambda value: as_value(origin + (_exact(value) - origin) // width * width)


def _as_integer(bound: Decimal | Fraction | int) -> int | None:
    """Return a bound as a value of a column of whole numbers; None below all of these, where no label begins."""
    return int(bound) if bound >= LOWEST else None


def _as_float(bound: Decimal | Fraction | int) -> float | None:
    """Do as `_as_integer` for a column of other numbers."""
    try:
        return float(bound)
    except OverflowError:
        return None


def _exact(value: float) -> Fraction:
    """Return a number as it is written."""
    return Fraction(repr(value))


def _unit_start(unit: str, value: date) -> date:
    """Return the beginning of the calendar unit that a date or a moment lies in.

    >>> [_unit_start(unit, date(2024, 8, 17)).isoformat() for unit in ("month", "quarter", "decade")]
    ['2024-08-01', '2024-07-01', '2020-01-01']
    """
    years = {"decade": 10, "century": 100}.get(unit, 1)
    month = {"day": value.month, "month": value.month, "quarter": (value.month - 1) // 3 * 3 + 1}.get(unit, 1)
    first = date(max(value.year // years * years, 1), month, value.day if unit == "day" else 1)
    return datetime.combine(first, time.min) if isinstance(value, datetime) else first
