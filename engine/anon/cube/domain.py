"""The values of one column as ordered codes: numbers, dates and text in the order of their values, categories in the
order of their hierarchy's leaves, so that every cell that can be published is one contiguous range of codes. `Domain`
knows value, code and label of one column in both directions."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anon.errors import SourceError
from anon.hierarchy import Tree
from anon.values import span, text

CODES = 65_536  # a code is an unsigned 16-bit integer
LOOKUP = 2**22  # whole numbers within a range of this size are encoded through a table
TEXT_VALUES = 64  # text without a hierarchy is listed in labels, so it may not have more values than this
WHOLE = ("integer", "date")  # kinds whose cells have a last value
CUTTABLE = ("integer", "number", "date", "timestamp")  # kinds that may be binned when they have too many values


@dataclass(frozen=True)
class Domain:
    """The values of one column that occur in the table, in code order, and the labels of its cells."""

    column: str
    kind: str
    values: pa.Array  # the value of each code, or the smallest of its bin; without null
    single: bool  # every code is one value; otherwise codes are bins
    null: bool  # code 0 is null, and the values start at code 1
    tree: Tree | None = None

    @property
    def size(self) -> int:
        return len(self.values) + self.null

    @cached_property
    def texts(self) -> list[str | None]:
        """The value of each code as text, None for null."""
        return [None] * self.null + [text(value) for value in self._objects]

    @property
    def objects(self) -> list[Any]:
        """The value of each code as it is in the table, None for null."""
        return [None] * self.null + self._objects

    @cached_property
    def _objects(self) -> list[Any]:
        found: list[Any] = self.values.to_pylist()
        return found

    @cached_property
    def position(self) -> NDArray[np.float64]:
        """Where each code lies on the column's own scale, to measure widths; null lies at the lowest value."""
        if self.tree is None and self.kind in CUTTABLE and len(self.values):
            numbers = as_numbers(self.values).astype(np.float64)
            return np.concatenate([numbers[:1], numbers]) if self.null else numbers
        return np.arange(self.size, dtype=np.float64)

    def encode(self, values: pa.Array, codes: NDArray[np.uint16] | None = None) -> NDArray[np.uint16]:
        """Codes of values, in the array given for them. A value outside the domain means that the source changed under
        way."""
        codes = np.empty(len(values), np.uint16) if codes is None else codes
        if values.null_count == len(values):
            codes[:] = 0
        elif self._lookup is not None:
            self._look_up(values, *self._lookup, codes)
        elif self.single:
            entries = values.dictionary_encode()
            known = pc.index_in(entries.dictionary.cast(self.values.type), value_set=self.values)
            table = np.append(np.asarray(known.fill_null(-1)).astype(np.int64) + self.null, 0)
            if (table[:-1] < self.null).any():
                raise self._changed()
            codes[:] = table[np.asarray(entries.indices.fill_null(len(table) - 1))]
        else:
            filled = as_numbers(_without_nulls(values))
            codes[:] = np.searchsorted(as_numbers(self.values), filled, side="right") - 1 + self.null
        if values.null_count:
            codes[np.asarray(values.is_null())] = 0
        return codes

    def _changed(self) -> SourceError:
        return SourceError(f"column {self.column!r}: new values appeared while the source was being read")

    @cached_property
    def _lookup(self) -> tuple[int, NDArray[np.int32]] | None:
        """For whole numbers that lie close together: the lowest, and the code of each from there on, -1 for none."""
        if self.kind not in WHOLE or not len(self.values) or self.values.type not in (pa.int64(), pa.date32()):
            return None
        numbers = as_numbers(self.values).astype(np.int64)
        low, high = int(numbers.min()), int(numbers.max())
        if high - low >= LOOKUP:
            return None
        codes = np.full(high - low + 1, -1, np.int32)
        codes[numbers - low] = np.arange(len(numbers)) + self.null
        return low, codes if self.single else np.maximum.accumulate(codes)

    def _look_up(self, values: pa.Array, low: int, table: NDArray[np.int32], codes: NDArray[np.uint16]) -> None:
        from anon.cube import kernels

        if not kernels.look_up(as_numbers(_without_nulls(values)), low, table, not self.single, codes):
            raise self._changed()

    def label(self, low: int, high: int) -> str | None:
        """The published label of the cell of codes low..high (inclusive)."""
        if (low, high) not in self._labels:
            self._labels[low, high] = self._label(low, high)
        return self._labels[low, high]

    @cached_property
    def _labels(self) -> dict[tuple[int, int], str | None]:
        """Labels that were asked for: order, release and recoding ask for the same ones."""
        return {}

    def _label(self, low: int, high: int) -> str | None:
        if (low, high) == (0, self.size - 1):
            return "*"
        if self.tree is not None:
            return self._node_labels[low, high]
        if self.null and low == 0:
            return None if high == 0 else f"null|{self._values_label(1, high)}"
        return self._values_label(low, high)

    @cached_property
    def _node_labels(self) -> dict[tuple[int, int], str | None]:
        """Labels of tree nodes by code range; of nodes with the same range the lowest."""
        tree = self.tree
        assert tree is not None
        order = np.argsort(-tree.level, kind="stable")
        return {(int(tree.low[i]), int(tree.high[i])): tree.label[i] for i in order}

    def _values_label(self, low: int, high: int) -> str:
        first, last = int(self.null), self.size - 1
        if low == high and self.single:
            return self._text(low)
        if self.kind in ("text", "boolean"):
            return "{" + "|".join(_escaped(self._text(code)) for code in range(low, high + 1)) + "}"
        if (low, high) == (first, last):
            return "not null"
        if high == last:
            return f">={self._text(low)}"
        end = self._end(high)
        if self.kind in WHOLE:
            return f"<={end}" if low == first else span(self._text(low), end)
        return f"<{end}" if low == first else f"[{self._text(low)},{end})"

    def _end(self, code: int) -> str:
        """Where a cell that ends with this code ends: the last whole value before the next code, or the next itself."""
        following = self._value(code + 1)
        return text(_before(following) if self.kind in WHOLE else following)

    def cell(self, label: str | None) -> tuple[int, int]:
        """The codes low..high (inclusive) of the cell with a published label; KeyError if there is none."""
        if self.tree is not None or self.kind in ("text", "boolean"):
            return self._cells[label]
        if label == "*":
            return 0, self.size - 1
        if label is None:
            return 0, 0
        low, high = self._range_cell(label.removeprefix("null|"))
        return (0 if label.startswith("null|") else low), high

    @cached_property
    def _cells(self) -> dict[str | None, tuple[int, int]]:
        """Every cell that can be published, by its label."""
        if self.tree is not None:
            ends = zip(self.tree.low.tolist(), self.tree.high.tolist())
            return dict(zip(self.tree.label, ends)) | {"*": (0, self.size - 1)}
        codes = range(self.size)
        return {self.label(low, high): (low, high) for low in codes for high in codes[low:]}

    @cached_property
    def _ends(self) -> tuple[dict[str, int], dict[str, int]]:
        """The codes by the texts that their cells begin with, and by those that they end with."""
        first, last = int(self.null), self.size - 1
        starts = {text(value): code for code, value in enumerate(self._objects, first)}
        return starts, {self._end(code): code for code in range(first, last)}

    def _range_cell(self, label: str) -> tuple[int, int]:
        first, last = int(self.null), self.size - 1
        starts, ends = self._ends
        if label == "not null":
            return first, last
        if label in starts:
            return starts[label], starts[label]
        if label.startswith(">="):
            return starts[label[2:]], last
        if label.startswith("<"):
            return first, ends[label.lstrip("<=")]
        mark = next((mark for mark in (",", "..", "-") if mark in label), " ")
        low, _, high = label.strip("[)").partition(mark)
        return starts[low], ends[high]

    def bin_of(self, word: str) -> int:
        """The code of the bin that a value, given as text, lies in; KeyError if it lies in none."""
        try:
            value = as_numbers(parsed([word], str(self.values.type)))
        except pa.ArrowInvalid:
            raise KeyError(word) from None
        place = int(np.searchsorted(as_numbers(self.values), value, side="right")[0]) - 1
        if place < 0:
            raise KeyError(word)
        return place + self.null

    def _text(self, code: int) -> str:
        return text(self._value(code))

    def _value(self, code: int) -> Any:
        """The value of one code, without those of all others."""
        return self.values[code - self.null].as_py()

    def to_dict(self) -> dict[str, Any]:
        """Everything about the domain as plain data, in values and never in codes."""
        return {
            "column": self.column,
            "kind": self.kind,
            "single": self.single,
            "null": self.null,
            "type": str(self.values.type),
            "values": [text(value) for value in self._objects],
            "tree": None if self.tree is None else self.tree.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Domain:
        values = parsed(data["values"], data["type"])
        tree = None if data["tree"] is None else Tree.from_dict(data["tree"])
        return cls(data["column"], data["kind"], values, data["single"], data["null"], tree)


def as_numbers(values: pa.Array) -> NDArray[Any]:
    """Numbers, dates and timestamps as numpy numbers in the same order."""
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    found: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return found


def _without_nulls(values: pa.Array) -> pa.Array:
    """Some of the values in the place of those that are missing."""
    return values.fill_null(pc.min(values)) if values.null_count else values


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


def _before(value: Any) -> Any:
    """The last whole value before this one."""
    return value - (datetime.timedelta(days=1) if isinstance(value, datetime.date) else 1)


def _escaped(word: str) -> str:
    r"""
    >>> print(_escaped("a|b"))
    a\|b
    """
    for mark in "\\|{}":
        word = word.replace(mark, "\\" + mark)
    return word


