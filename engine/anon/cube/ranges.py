"""Values of a column that is cut freely, and the ranges of its labels, read back from the text that `values.text` and
`Domain.label` write: as numbers in the order of the column."""

from __future__ import annotations

from typing import Any, Literal

import pyarrow as pa
from numpy.typing import NDArray

from anon.values import span, text

WHOLE = ("integer", "date")  # kinds whose cells have a last value
Side = Literal["left", "right"]


def as_numbers(values: pa.Array) -> NDArray[Any]:
    """Numbers, dates and timestamps as numpy numbers in the same order."""
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    found: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return found


def parsed(texts: list[str], type_name: str) -> pa.Array:
    kinds = {"int64": pa.int64(), "double": pa.float64(), "date32[day]": pa.date32(), "string": pa.string()}
    if type_name == "bool":
        return pa.array([word == "true" for word in texts], pa.bool_())
    if type_name in kinds:
        return pa.array(texts, pa.string()).cast(kinds[type_name])
    if type_name.startswith("timestamp"):
        return pa.array(texts, pa.string()).cast(pa.timestamp("us"))
    precision, scale = type_name.split("(")[1].rstrip(")").split(",")
    return pa.array(texts, pa.string()).cast(pa.decimal128(int(precision), int(scale)))


def number_of(word: str, type_name: str) -> Any:
    """A value, given as text, as a number; KeyError if it is none."""
    try:
        value = parsed([word], type_name)
        same = text(value[0].as_py()) == word
    except (ValueError, OverflowError):
        raise KeyError(word) from None
    if not same or word in ("nan", "inf", "-inf"):
        raise KeyError(word)
    return as_numbers(value)[0].item()


def ends_of(label: str, kind: str, type_name: str) -> tuple[Any, Any, Side]:
    """Where the range of a label begins and ends, None at an open end, and the side of its end that it stops on: left
    if it does not hold its end, right if it does. KeyError if it is no range.

    >>> ends_of("20-34", "integer", "int64"), ends_of("[1.5,2.25)", "number", "double")
    ((20, 34, 'right'), (1.5, 2.25, 'left'))
    """

    def number(word: str) -> Any:
        return number_of(word, type_name)

    if label.startswith(">="):
        return number(label[2:]), None, "left"
    if kind not in WHOLE:
        if label.startswith("<"):
            return None, number(label[1:]), "left"
        start, _, end = label.removeprefix("[").removesuffix(")").partition(",")
        if f"[{start},{end})" == label:
            return number(start), number(end), "left"
    elif label.startswith("<="):
        return None, number(label[2:]), "right"
    else:
        start, _, end = label.partition(".." if ".." in label else "-")
        if start and span(start, end) == label:
            return number(start), number(end), "right"
    value = number(label)
    return value, value, "right"
