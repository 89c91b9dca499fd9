"""Parse published labels by their grammar: each as the range of keys that it covers. Keys are whole numbers in the
order of a column's values: for numbers and dates they follow from the value, for categories they are the places in the
list of recoding.json. Null is the lowest key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anon.artifacts.recoding import RecodedColumn

Range = tuple[int, int]
Ranges = NDArray[np.int64]
Row = list[str | None]  # a value and its labels upwards
NULL, LOWEST, HIGHEST = -(2**63), -(2**63) + 1, 2**63 - 1
ALL = NULL, HIGHEST
NOWHERE = HIGHEST, NULL  # a range without keys
ARROW = {"integer": pa.int64(), "date": pa.date32(), "timestamp": pa.timestamp("us"), "number": pa.float64()}
WORDS = {  # how a value is written in a label of each kind, and the separator of a range
    "integer": ("-?[0-9]+", r"(?:\.\.|-)"),
    "date": ("[0-9-]+", r"\.\."),
    "number": ("-?[0-9.]+", ","),
    "timestamp": ("[0-9T:.-]+", ","),
}


def as_keys(kind: str, values: pa.Array) -> NDArray[np.int64]:
    """Return the keys of numbers, dates or timestamps."""
    missing = np.asarray(values.is_null())
    if kind == "number":
        bits = np.asarray(values.fill_null(0.0)).view(np.int64)
        keys = bits ^ ((bits >> 63) & HIGHEST)  # in the order of the numbers
    else:
        days = values.cast(pa.int32()) if kind == "date" else values
        keys = np.asarray(days.cast(pa.int64()).fill_null(0))
    return np.where(missing, NULL, np.maximum(keys, LOWEST))


def keys_of_texts(kind: str, texts: pa.Array) -> NDArray[np.int64]:
    """Return the keys of numbers, dates or timestamps as labels and cuts write them; ValueError for other texts."""
    return as_keys(kind, texts.cast(ARROW[kind]))


@dataclass(frozen=True)
class OrderedLabels:
    """The labels of numbers, dates or timestamps that are cut freely."""

    kind: str

    def ranges(self, labels: pa.Array) -> Ranges:
        """Return [labels, 2]: the first and the last key of each label. Vectorized, because every group may have its
        own labels."""
        value, between = WORDS[self.kind]
        parts = pc.extract_regex(
            labels, f"^(?P<null>null\\|)?(?P<sign>>=|<=|<|\\[)?(?P<low>{value})(?:{between}(?P<high>{value})\\)?)?$"
        )
        sign, null = pc.struct_field(parts, "sign"), pc.struct_field(parts, "null")
        low = keys_of_texts(self.kind, _words(parts, "low"))
        high = keys_of_texts(self.kind, _words(parts, "high"))
        first = np.where(_equals(sign, "<=") | _equals(sign, "<"), LOWEST, low)
        last = np.where(_equals(sign, ">="), HIGHEST, np.where(high == NULL, low, high))
        last = last - (_equals(sign, "<") | _equals(sign, "["))
        found = np.stack([np.where(_equals(null, "null|"), NULL, first), last], axis=1)
        found[np.asarray(parts.is_null())] = NOWHERE
        for word, own in (("*", ALL), ("not null", (LOWEST, HIGHEST))):
            found[_equals(labels, word)] = own
        found[np.asarray(labels.is_null())] = NULL
        return found


def outside_labels(kind: str, words: list[str], labels: list[str]) -> int:
    """Return how many numbers, given as text, lie outside the range that their label says. Whole numbers may also have
    labels of other numbers: [1.5,3).

    >>> outside_labels("integer", ["17", "18", "2", "3"], ["0-17", "0-17", "[1.5,3)", "*"])
    1
    """
    values, written = pa.array(words, pa.string()), pa.array(labels, pa.string())
    inside = np.zeros(len(words), bool)
    for each in dict.fromkeys((kind, "number")):
        rest = np.flatnonzero(~inside)
        ranges = OrderedLabels(each).ranges(written.take(pa.array(rest)))
        keys = keys_of_texts(each, values.take(pa.array(rest)))
        inside[rest] = (ranges[:, 0] <= keys) & (keys <= ranges[:, 1])
    return int((~inside).sum())


def _words(parts: pa.StructArray, name: str) -> pa.Array:
    words = pc.struct_field(parts, name)
    return pc.if_else(pc.equal(words, ""), None, words)


def _equals(words: pa.Array, word: str) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = np.asarray(pc.fill_null(pc.equal(words, word), False))
    return found


@dataclass(frozen=True)
class ListedLabels:
    """The labels of text or truth values that are cut freely, given the list of the values."""

    place: dict[str | None, int]

    @classmethod
    def from_values(cls, values: list[str]) -> ListedLabels:
        return cls({None: NULL} | {value: at for at, value in enumerate(values)})

    def ranges(self, labels: pa.Array) -> Ranges:
        return _each(self.range_of, labels)

    def range_of(self, label: str | None) -> Range:
        if label in self.place:
            return self.place[label], self.place[label]
        if label == "*":
            return ALL
        if label is None:
            return NOWHERE
        if label.startswith("null|"):
            return NULL, self.range_of(label.removeprefix("null|"))[1]
        if label == "not null":
            return LOWEST, HIGHEST
        places = sorted(self.place[word] for word in listed(label))
        if places != list(range(places[0], places[-1] + 1)):
            raise ValueError("a label that leaves values out")
        return places[0], places[-1]


@dataclass(frozen=True)
class HierarchyLabels:
    """The labels of a hierarchy: those of its rows that recoding.json lists, each a value and its labels upwards."""

    rows: dict[str | None, Row]
    nodes: dict[str | None, Range]
    ordered: bool = False  # the column is cut in the order of the rows, and labels may list nodes

    @classmethod
    def from_rows(cls, rows: list[Row], ordered: bool = False) -> HierarchyLabels:
        found: dict[str | None, Range] = {}
        times: dict[str | None, int] = {}
        for place, row in enumerate(rows):
            for label in set(row):
                found[label] = found.get(label, (place, place))[0], place
                times[label] = times.get(label, 0) + 1
        if any(high - low + 1 != times[label] for label, (low, high) in found.items()):
            raise ValueError("a hierarchy whose nodes do not cover neighbouring values")
        return cls({row[0]: row for row in rows}, found | {"*": ALL}, ordered)

    def ranges(self, labels: pa.Array) -> Ranges:
        return _each(self.range_of, labels)

    def range_of(self, label: str | None) -> Range:
        if label in self.nodes or label is None or not self.ordered:
            return self.nodes[label]
        if label.startswith("null|"):
            return self._joined([self.nodes[None], self.range_of(label.removeprefix("null|"))])
        return self._joined([self.nodes[word] for word in listed(label)])

    def _joined(self, parts: list[Range]) -> Range:
        if any(last + 1 != first for (_, last), (first, _) in pairwise(parts)):
            raise ValueError("a label that leaves values out")
        return parts[0][0], parts[-1][1]

    def place(self, row: Row) -> int:
        """Return the key of a value, given with its labels upwards: that of the first label that the hierarchy has."""
        known = (self.nodes[label][0] for label in row if label in self.nodes and label != "*")
        return next(known, HIGHEST)


Grammar = OrderedLabels | ListedLabels | HierarchyLabels


def grammar_of(column: RecodedColumn) -> Grammar:
    """Return the grammar of the labels of a column of recoding.json."""
    if column.hierarchy:
        return HierarchyLabels.from_rows(column.hierarchy, column.cuts == "ordered")
    if column.kind in ARROW:
        return OrderedLabels(column.kind)
    return ListedLabels.from_values(column.values)


def _each(range_of: Callable[[str | None], Range], labels: pa.Array) -> Ranges:
    """Return [labels, 2]: the first and the last key of each label; for a label that cannot be parsed, a range without
    keys."""
    return np.array([_range_or_nothing(range_of, label) for label in labels.to_pylist()], np.int64).reshape(-1, 2)


def _range_or_nothing(range_of: Callable[[str | None], Range], label: str | None) -> Range:
    try:
        return range_of(label)
    except (KeyError, ValueError):
        return NOWHERE


def listed(label: str) -> list[str]:
    r"""Return the values of a label such as {a|b}; a backslash escapes the character after it.

    >>> listed(r"{a\|b|c\\}")
    ['a|b', 'c\\']
    """
    if not (label.startswith("{") and label.endswith("}")):
        raise ValueError("a label that is no list")
    words, escaped = [""], False
    for letter in label[1:-1]:
        if not escaped and letter in "\\|":
            words += [""] if letter == "|" else []
            escaped = letter == "\\"
            continue
        words[-1] += letter
        escaped = False
    return words
