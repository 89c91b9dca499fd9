"""Published labels read by their grammar alone: whether a label contains a value. Stands outside the way of the data,
as the reference for what the release publishes; it knows the words of the label grammar and nothing of cells and
codes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Plain:
    """A column without a hierarchy; `values` are those that occur, which stand for themselves."""

    kind: type
    values: Collection[Any]

    def contains(self, label: str | None, value: Any) -> bool:
        if label is None:
            return value is None
        if label == "*":
            return True
        if label == "not null":
            return value is not None
        if label.startswith("null|"):
            return value is None or self.contains(label.removeprefix("null|"), value)
        return value is not None and self._holds(label, value)

    def _holds(self, label: str, value: Any) -> bool:
        if self.kind is str:
            return value == label if label in self.values else value in listed(label)
        if label.startswith("["):
            low, high = label.removeprefix("[").removesuffix(")").split(",")
            return self._read(low) <= value < self._read(high)
        for sign, holds in ((">=", value.__ge__), ("<=", value.__le__), ("<", value.__lt__)):
            if label.startswith(sign):
                return bool(holds(self._read(label.removeprefix(sign))))
        low, high = self._ends(label)
        return bool(self._read(low) <= value <= self._read(high))

    def _ends(self, label: str) -> tuple[str, str]:
        if ".." in label:
            low, high = label.split("..")
        elif self.kind is int and "-" in label[1:]:
            low, high = label.split("-")
        else:
            low = high = label
        return low, high

    def _read(self, word: str) -> Any:
        return self.kind.fromisoformat(word) if self.kind in (dt.date, dt.datetime) else self.kind(word)


@dataclass(frozen=True)
class Nodes:
    """A column with a hierarchy: the labels above each value, itself first. Null has none but the root."""

    above: Mapping[Any, Collection[str]] = field(default_factory=dict)

    def contains(self, label: str | None, value: Any) -> bool:
        if value is None:
            return label is None or label == "*"
        return label == "*" or label in self.above[value]


def listed(label: str) -> list[str]:
    r"""The values of a label such as {a|b}; a backslash takes the meaning from the character after it.

    >>> listed(r"{a\|b|c\\}")
    ['a|b', 'c\\']
    """
    assert label.startswith("{") and label.endswith("}"), "not a list of values"
    words, escaped = [""], False
    for character in label[1:-1]:
        if escaped or character not in "\\|":
            words[-1] += character
            escaped = False
        elif character == "\\":
            escaped = True
        else:
            words.append("")
    return words
