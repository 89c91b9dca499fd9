"""Map the values of one column to ordered codes: numbers, dates and text in the order of their values, categories in
the order of their hierarchy's leaves, so that every cell that can be published is one contiguous range of codes.
`Domain` translates between values, codes and labels of one column in both directions."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anon.core.arrays import Codes, Floats
from anon.core.text import CUTTABLE, span, text
from anon.cube.bounds import between
from anon.cube.ranges import WHOLE, Side, as_numbers, ends_of, number_of, parsed
from anon.errors import SourceError
from anon.hierarchy import HierarchyTree

CODES = 65_536  # a code is an unsigned 16-bit integer
LOOKUP = 2**22  # whole numbers within a range of this size are encoded through a table
TEXT_VALUES = 64  # text without a hierarchy is listed in labels, so it may not have more values than this
LONG_TEXTS = 8_000_000  # bytes of texts that are found through one table for all batches


@dataclass(frozen=True)
class EarlierCuts:
    """The cuts that an earlier recoding made in a column: the published bounds in order, and the cells that it
    published as one value."""

    bounds: pa.Array
    exact: frozenset[str]


@dataclass(frozen=True)
class Domain:
    """The values of one column that occur in the table, in code order, and the labels of its cells."""

    column: str
    kind: str
    values: pa.Array  # the value of each code, or the smallest of its bin; without null
    single: bool  # every code is one value; otherwise codes are bins
    null: bool  # code 0 is null, and the values start at code 1
    tree: HierarchyTree | None = None
    last: pa.Array | None = None  # of bins the largest value of each
    cuts: EarlierCuts | None = None  # where cells begin and end, if an earlier recoding decided that
    ordered: bool = False  # a column with a tree is cut anywhere in the order of its leaves, not into nodes
    weight: int = 1  # how much its detail counts in a search, beside that of the other columns
    capped: bool = False  # the root of its tree must not be published

    @property
    def size(self) -> int:
        return len(self.values) + self.null

    @property
    def by_nodes(self) -> bool:
        """Return whether the column is split into the nodes of its tree."""
        return self.tree is not None and not self.ordered

    @cached_property
    def texts(self) -> list[str | None]:
        """Return the value of each code as text, None for null."""
        return [None] * self.null + [text(value) for value in self._objects]

    @property
    def objects(self) -> list[Any]:
        """Return the value of each code as it is in the table, None for null."""
        return [None] * self.null + self._objects

    @cached_property
    def _objects(self) -> list[Any]:
        found: list[Any] = self.values.to_pylist()
        return found

    @cached_property
    def position(self) -> Floats:
        """Return the position of each code on the column's scale, to measure widths; null lies at the lowest value."""
        if self.tree is None and self.kind in CUTTABLE and len(self.values):
            numbers = as_numbers(self.values).astype(np.float64)
            return np.concatenate([numbers[:1], numbers]) if self.null else numbers
        return np.arange(self.size, dtype=np.float64)

    @cached_property
    def end_position(self) -> Floats:
        """Return the position of the largest value of each code, which differs from `position` for bins."""
        if self.last is None or self.tree is not None:
            return self.position
        numbers = as_numbers(self.last).astype(np.float64)
        return np.concatenate([self.position[:1], numbers]) if self.null else numbers

    def encode(self, values: pa.Array, codes: Codes | None = None) -> Codes:
        """Return the codes of values, in the array `codes` if it is given. A value outside the domain means that the
        source changed while it was being read, and raises SourceError."""
        codes = np.empty(len(values), np.uint16) if codes is None else codes
        if values.null_count == len(values):
            codes[:] = 0
        elif self._lookup is not None:
            self._look_up(values, *self._lookup, codes)
        elif self.single and self.kind == "text" and self.values.nbytes >= LONG_TEXTS:
            places = (self._place_of_text.get(word.as_py(), -1) for word in values)
            found = np.fromiter(places, np.int64, len(values))
            if (found < 0).sum() > values.null_count:
                raise self._changed()
            codes[:] = found + self.null
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

    @cached_property
    def _place_of_text(self) -> dict[str | None, int]:
        """The place of each text; Arrow would copy all of them to find those of a batch."""
        return {word: place for place, word in enumerate(self._objects)}

    def _changed(self) -> SourceError:
        return SourceError(f"column {self.column!r}: new values appeared while the source was being read")

    @cached_property
    def _lookup(self) -> tuple[int, NDArray[np.int32]] | None:
        """Return for whole numbers that lie close together the lowest, and the code of each from there on, -1 for
        numbers that do not occur; None for other columns."""
        if self.kind not in WHOLE or not len(self.values) or self.values.type not in (pa.int64(), pa.date32()):
            return None
        numbers = as_numbers(self.values).astype(np.int64)
        low, high = int(numbers.min()), int(numbers.max())
        if high - low >= LOOKUP:
            return None
        codes = np.full(high - low + 1, -1, np.int32)
        codes[numbers - low] = np.arange(len(numbers)) + self.null
        return low, codes if self.single else np.maximum.accumulate(codes)

    def _look_up(self, values: pa.Array, low: int, table: NDArray[np.int32], codes: Codes) -> None:
        from anon.cube import kernels

        if not kernels.look_up(as_numbers(_without_nulls(values)), low, table, not self.single, codes):
            raise self._changed()

    @property
    def values_like_labels(self) -> int:
        """Return the number of values, of text without a hierarchy, that could be read as a generalized label of the
        column; if nodes of a hierarchy are listed in labels, that of nodes."""
        if self.tree is not None:
            nodes = {label for label in self.tree.label if label not in (None, "*")}
            return sum(map(_like_label, nodes)) if self.ordered else 0
        return sum(map(_like_label, self._objects)) if self.kind == "text" else 0

    def label(self, low: int, high: int) -> str | None:
        """Return the published label of the cell of codes low..high (inclusive). Where `*` must not be published, the
        cell of all codes has the label of the lowest node over them, as every other cell has."""
        if (low, high) == (0, self.size - 1) and not self.capped:
            return "*"
        if self.tree is not None:
            return self._node_labels[low, high] if (low, high) in self._node_labels else self._nodes_label(low, high)
        if self.null and low == 0:
            return None if high == 0 else f"null|{self._values_label(1, high)}"
        return self._values_label(low, high)

    @cached_property
    def _node_labels(self) -> dict[tuple[int, int], str | None]:
        """Return the labels of tree nodes by code range; of nodes with the same range that of the lowest."""
        tree = self.tree
        assert tree is not None
        order = np.argsort(-tree.level, kind="stable")
        return {(int(tree.low[i]), int(tree.high[i])): tree.label[i] for i in order}

    def nodes(self, low: int, high: int) -> list[int]:
        """Return the fewest nodes of the tree that cover the codes low..high and no others, in order."""
        tree, found = self.tree, []
        assert tree is not None
        while low <= high:
            above = (int(node) for node in tree.node_at[::-1, low])
            found.append(next(node for node in above if tree.low[node] == low and tree.high[node] <= high))
            low = int(tree.high[found[-1]]) + 1
        return found

    def _nodes_label(self, low: int, high: int) -> str:
        """Return the label of several nodes."""
        if self.null and low == 0:
            return f"null|{self.label(1, high)}"
        assert self.tree is not None
        labels = (self._node_labels[int(self.tree.low[n]), int(self.tree.high[n])] for n in self.nodes(low, high))
        return "{" + "|".join(_escaped(label or "") for label in labels) + "}"

    def _values_label(self, low: int, high: int) -> str:
        first, last = int(self.null), self.size - 1
        if low == high and self._published_as_value(low):
            return self._text(low)
        if self.kind in ("text", "boolean"):
            return "{" + "|".join(_escaped(self._text(code)) for code in range(low, high + 1)) + "}"
        if (low, high) == (first, last):
            return "not null"
        if high == last:
            return f">={text(self.bound(low))}"
        end = self.bound(high + 1)
        if self.kind in WHOLE:
            end = text(_before(end))
            return f"<={end}" if low == first else span(text(self.bound(low)), end)
        return f"<{text(end)}" if low == first else f"[{text(self.bound(low))},{text(end)})"

    def _published_as_value(self, code: int) -> bool:
        """Return whether the cell of one code is labelled with its value. Under an earlier recoding it is only if it
        was so in that one."""
        return self.single and (self.cuts is None or self._text(code) in self.cuts.exact)

    def bound(self, code: int) -> Any:
        """Return the published bound between a code and the previous one: values from the bound on are above it."""
        if code not in self._bounds:
            self._bounds[code] = self._bound(code)
        return self._bounds[code]

    @cached_property
    def _bounds(self) -> dict[int, Any]:
        return {}

    def _bound(self, code: int) -> Any:
        lower, upper = self._largest[code - 1 - self.null].as_py(), self._value(code)
        if self.cuts is not None:
            at = int(np.searchsorted(as_numbers(self.cuts.bounds), self.numbers[code - self.null], "right"))
            if at and (bound := self.cuts.bounds[at - 1].as_py()) > lower:
                return bound
        return between(lower, upper)

    @property
    def _largest(self) -> pa.Array:
        """Return the largest value of each code."""
        return self.values if self.last is None else self.last

    @cached_property
    def numbers(self) -> NDArray[Any]:
        """Return the smallest value of each code as a number."""
        return as_numbers(self.values)

    @cached_property
    def largest_numbers(self) -> NDArray[Any]:
        """Return the largest value of each code as a number."""
        return as_numbers(self._largest)

    def cut(self, code: int) -> str | None:
        """Return the text of the cut before a code: the published bound, or the value of a category; None for the cut
        that separates null. In the order of a tree's leaves, the value of the first leaf above."""
        if self.tree is not None:
            return self._text(code)
        if code == self.null:
            return None
        return text(self.bound(code)) if self.kind in CUTTABLE else self._text(code)

    def cut_codes(self, cuts: list[str]) -> dict[str, int]:
        """Return the code that begins at each cut."""
        if self.kind not in CUTTABLE or self.tree is not None:
            return {word: code for code, word in enumerate(self.texts) if word is not None}
        bounds = as_numbers(parsed(cuts, str(self.values.type)))
        codes = np.searchsorted(self.numbers, bounds) + self.null
        return dict(zip(cuts, codes.tolist()))

    def cell(self, label: str | None) -> tuple[int, int]:
        """Return the codes low..high (inclusive) under a published label; raise KeyError if there are none. A range
        need not be one that this domain would publish: it may come from other rows, or from an earlier recoding."""
        if self.tree is not None and label not in self._cells:
            return self._nodes_cell(label)
        if self.tree is not None or self.kind in ("text", "boolean"):
            return self._cells[label]
        if label == "*":
            return 0, self.size - 1
        if label is None or label.startswith("null|"):
            return self._null_cell(label)
        return self._range_cell(label)

    @cached_property
    def _cells(self) -> dict[str | None, tuple[int, int]]:
        """Return every cell that can be published, by its label."""
        if self.tree is not None:
            ends = zip(self.tree.low.tolist(), self.tree.high.tolist())
            return dict(zip(self.tree.label, ends)) | {"*": (0, self.size - 1)}
        codes = range(self.size)
        return {self.label(low, high): (low, high) for low in codes for high in codes[low:]}

    def _nodes_cell(self, label: str | None) -> tuple[int, int]:
        """Return the codes under a label of several nodes; raise KeyError if it is none."""
        word = label or ""
        if self.null and word.startswith("null|"):
            low, high = self.cell(word.removeprefix("null|"))
            if low != 1:
                raise KeyError(label)
            return 0, high
        if (word[:1], word[-1:]) != ("{", "}"):
            raise KeyError(label)
        cells = [self._cells[part] for part in _parts(word)]
        if any(low != high + 1 for (_, high), (low, _) in pairwise(cells)):
            raise KeyError(label)
        return cells[0][0], cells[-1][1]

    def _null_cell(self, label: str | None) -> tuple[int, int]:
        low, high = (1, 0) if label is None else self._range_cell(label.removeprefix("null|"))
        if not self.null or low != 1:
            raise KeyError(label)
        return 0, high

    def _range_cell(self, label: str) -> tuple[int, int]:
        """Return the codes whose values lie in the range of a label; raise KeyError if it covers only part of a bin."""
        low, high = 0, len(self.values)
        if label != "not null":
            start, end, side = ends_of(label, self.kind)
            low = 0 if start is None else self._place(start, "left")
            high = high if end is None else self._place(end, side)
        if low >= high or (label == "not null" and not self.null):
            raise KeyError(label)
        return low + self.null, high - 1 + self.null

    def _place(self, value: Any, side: Side) -> int:
        """Return the number of codes below a value; raise KeyError if it lies inside a bin."""
        place = int(np.searchsorted(self.numbers, value, side))
        if place != np.searchsorted(self.largest_numbers, value, side):
            raise KeyError("inside a bin")
        return place

    def bin_of(self, word: str) -> int:
        """Return the code of the bin that a value, given as text, lies in; raise KeyError if it lies in none."""
        place = int(np.searchsorted(self.numbers, number_of(word, self.kind), "right")) - 1
        if place < 0:
            raise KeyError(word)
        return place + self.null

    def _text(self, code: int) -> str:
        return text(self._value(code))

    def _value(self, code: int) -> Any:
        """Return the value of one code, without converting those of all others."""
        return self.values[code - self.null].as_py()


def _without_nulls(values: pa.Array) -> pa.Array:
    """Return the values with nulls replaced by the smallest value."""
    return values.fill_null(pc.min(values)) if values.null_count else values


def _before(value: Any) -> Any:
    """Return the last whole value before this one."""
    return value - (datetime.timedelta(days=1) if isinstance(value, datetime.date) else 1)


def _like_label(word: str) -> bool:
    """Return whether text has the form of a label that stands for several values.

    >>> [_like_label(word) for word in ("*", "{a|b}", "null|a", "not null", "0213*", "<=19")]
    [True, True, True, True, False, False]
    """
    return word in ("*", "not null") or word.startswith("null|") or (word[:1], word[-1:]) == ("{", "}")


def _parts(label: str) -> list[str]:
    r"""Return the words of a label such as {a|b}, as `_escaped` wrote them.

    >>> _parts(r"{a\|b|c}")
    ['a|b', 'c']
    """
    words = re.findall(r"((?:[^|\\]|\\.)*)\|", label[1:-1] + "|", re.DOTALL)
    return [re.sub(r"\\(.)", r"\1", word, flags=re.DOTALL) for word in words]


def _escaped(word: str) -> str:
    r"""Return a value with the marks of set labels escaped.

    >>> print(_escaped("a|b"))
    a\|b
    """
    for mark in "\\|{}":
        word = word.replace(mark, "\\" + mark)
    return word
