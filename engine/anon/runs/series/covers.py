"""Read the labels of published parts as ranges of the keys of the source's values. Numbers and dates that are cut
freely have the keys that verification reads from labels (verify/content/labels.py). For other columns a key is the
place of a value among those of the source, in the order of the labels above them; a label that stands for places with
gaps between them becomes several ranges."""

from __future__ import annotations

from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np
import pyarrow as pa

from anon import hierarchy
from anon.config import Builder, Config
from anon.core.text import text
from anon.source import Column, Source
from anon.verify.content.keys import Keys, looked_up
from anon.verify.content.labels import ARROW, NULL, OrderedLabels, Range, Ranges, Row, listed


class PlacedLabels:
    """The labels of a column whose values are looked up: each as the places of the values that it stands for."""

    def __init__(self, rows: list[Row]) -> None:
        """Take the values, each with its labels upwards."""
        self.values = sorted(rows, key=lambda row: [(word is not None, word or "") for word in reversed(row)])
        self.place = {row[0]: at for at, row in enumerate(self.values)}
        self.below: dict[str | None, set[int]] = {}
        for at, row in enumerate(self.values):
            for word in row:
                self.below.setdefault(word, set()).add(at)

    def runs(self, label: str | None) -> list[Range]:
        """Return the runs of places under a label."""
        places = sorted(self._places(label))
        ends = [-1, *(at for at, (a, b) in enumerate(pairwise(places)) if a + 1 != b), len(places) - 1]
        return [(places[a + 1], places[b]) for a, b in pairwise(ends) if b > a]

    def _places(self, label: str | None) -> set[int]:
        """Return the places under a label; under text that may be read in two ways, those of both."""
        found = set(self.below.get(label, ()))
        if label is None:
            return found
        missing = {self.place[None]} if None in self.place else set()
        if label in ("*", "not null"):
            found |= set(self.place.values()) - (missing if label == "not null" else set())
        if label.startswith("null|"):
            found |= missing | self._places(label.removeprefix("null|"))
        if label.startswith("{") and label.endswith("}"):
            found = found.union(*(self.below.get(word, ()) for word in listed(label)))
        return found


class Covers:
    """The keys of the source's quasi-identifiers, and what labels cover of them."""

    def __init__(self, source: Source, config: Config) -> None:
        self.placed: dict[str, PlacedLabels] = {}
        tables: dict[str, pa.Table] = {}
        for column in source.quasi_identifiers:
            builder = config.columns.quasi_identifiers[column.name]
            if builder.kind != "free" or column.kind not in ARROW:
                tables |= looked_up(source, column, partial(self._places_of, column, builder))
        self.columns, self.keys = source.quasi_identifiers, Keys(source.quasi_identifiers, tables)

    def _places_of(self, column: Column, builder: Builder, values: list[Any]) -> list[int]:
        present = sorted(value for value in values if value is not None)
        rows: list[Row] = [[None]] if None in values else []
        if builder.kind == "free":
            rows += [[text(value)] for value in present]
        else:
            rows += [
                [text(value), *path] for value, path in zip(present, hierarchy.paths(builder, present, column.name))
            ]
        labels = self.placed[column.alias] = PlacedLabels(rows)
        return [labels.place[None if value is None else text(value)] for value in values]

    def boxes(self, labels: list[pa.Array]) -> tuple[Ranges, Ranges, Ranges]:
        """Return the boxes [boxes, columns] of tuples of labels, given by column: their lowest and highest keys, and
        the number of the tuple of each."""
        runs = [self._runs(column, own) for column, own in zip(self.columns, labels)]
        whole = [(at, *box) for at, own in enumerate(zip(*runs)) for box in product(*own)]
        numbers = np.array([box[0] for box in whole], np.int64)
        ends = np.array([box[1:] for box in whole], np.int64).reshape(-1, len(self.columns), 2)
        return ends[:, :, 0], ends[:, :, 1], numbers

    def _runs(self, column: Column, labels: pa.Array) -> list[list[Range]]:
        """Return the ranges of each label of a column."""
        entries = labels.dictionary_encode()
        words = entries.dictionary
        if column.alias in self.placed:
            runs = [self.placed[column.alias].runs(word) for word in words.to_pylist()]
            nothing = self.placed[column.alias].runs(None)
        else:
            runs = [[(low, high)] for low, high in OrderedLabels(column.kind).ranges(words).tolist()]
            nothing = [(NULL, NULL)]
        return [nothing if at is None else runs[at] for at in entries.indices.to_pylist()]
