"""Read the values of a column that is cut freely, and the ranges of its labels, back from the text that `core.text` and
`Domain.label` write, as numbers in the order of the column."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anon.core.text import span, text

WHOLE = ("integer", "date")  # kinds whose cells have a last value
READERS: dict[str, Callable[[str], Any]] = {
    "integer": int,
    "number": float,
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
}
EPOCH = datetime.fromisoformat("1970-01-01")
Side = Literal["left", "right"]


def as_numbers(values: pa.Array) -> NDArray[Any]:
    """Return numbers, dates and timestamps as numpy numbers in the same order, aligned in memory as the kernels
    require."""
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    return np.require(values.to_numpy(zero_copy_only=False), requirements="A")


def parsed(texts: list[str], type_name: str) -> pa.Array:
    """Return values, given as text, as an array of the Arrow type of this name."""
    kinds = {"int64": pa.int64(), "double": pa.float64(), "date32[day]": pa.date32(), "string": pa.string()}
    if type_name == "bool":
        return pa.array([word == "true" for word in texts], pa.bool_())
    if type_name in kinds:
        return pa.array(texts, pa.string()).cast(kinds[type_name])
    if type_name.startswith("timestamp"):
        return pa.array(texts, pa.string()).cast(pa.timestamp("us"))
    precision, scale = type_name.split("(")[1].rstrip(")").split(",")
    return pa.array(texts, pa.string()).cast(pa.decimal128(int(precision), int(scale)))


def number_of(word: str, kind: str) -> Any:
    """Return a value, given as text, as the number that `as_numbers` makes of it; raise KeyError if it is no value.

    >>> number_of("1970-01-02", "date"), number_of("1969-12-31T23:59:59", "timestamp"), number_of("1.5", "number")
    (1, -1000000, 1.5)
    """
    try:
        value = READERS[kind](word)
        same = text(value) == word
    except (ValueError, OverflowError):
        raise KeyError(word) from None
    zoned = isinstance(value, datetime) and value.tzinfo is not None
    if not same or zoned or (kind == "integer" and abs(value) >= 2**63) or word in ("nan", "inf", "-inf"):
        raise KeyError(word)
    if isinstance(value, datetime):
        return (value - EPOCH) // timedelta(microseconds=1)
    return value.toordinal() - EPOCH.toordinal() if isinstance(value, date) else value


def ends_of(label: str, kind: str) -> tuple[Any, Any, Side]:
    """Return where the range of a label begins and ends, None at an open end, and `left` if it excludes its end,
    `right` if it includes it. Raise KeyError if it is not a range.

    >>> ends_of("20-34", "integer"), ends_of("[1.5,2.25)", "number"), ends_of(">=-5", "integer")
    ((20, 34, 'right'), (1.5, 2.25, 'left'), (-5, None, 'left'))
    """
    if label.startswith(">="):
        return number_of(label[2:], kind), None, "left"
    if kind not in WHOLE:
        if label.startswith("<"):
            return None, number_of(label[1:], kind), "left"
        start, _, end = label.removeprefix("[").removesuffix(")").partition(",")
        if f"[{start},{end})" == label:
            return number_of(start, kind), number_of(end, kind), "left"
    elif label.startswith("<="):
        return None, number_of(label[2:], kind), "right"
    else:
        start, _, end = label.partition(".." if ".." in label else "-")
        if start and span(start, end) == label:
            return number_of(start, kind), number_of(end, kind), "right"
    value = number_of(label, kind)
    return value, value, "right"
