"""Apply a written recoding to the source's rows: find their groups as a reader of recoding.json does, with the labels
that it gives these groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from anon.core.phrases import counted
from anon.errors import VerificationError
from anon.verify.content.keys import Keys
from anon.verify.content.levels import LevelLabels
from anon.verify.content.tree_groups import WrittenTree


@dataclass(frozen=True)
class AppliedRecoding(ABC):
    """A recoding that assigns rows to groups: `keys` are read from the source, `batches` finds the columns that
    distinguish groups, and `groups` selects the groups that are published."""

    keys: Keys

    @property
    @abstractmethod
    def by(self) -> dict[str, pa.DataType]:
        """Return the columns that distinguish groups."""

    @property
    def labels(self) -> list[str]:
        return [f"l{j}" for j in range(len(self.keys.columns))]

    @property
    def nbytes(self) -> int:
        """Return the bytes of memory that it takes."""
        return 0

    @abstractmethod
    def batches(self, rows: Iterable[pa.RecordBatch], labelled: bool) -> Iterator[pa.RecordBatch]:
        """Yield, from batches of what `keys` selects, the columns `by` and those after the keys. `labelled`: the groups
        are published with labels, which must be true for the rows."""

    @abstractmethod
    def groups(self, groups: str, labelled: bool) -> str:
        """Return SQL that selects the published ones of the groups of a query, with their labels if they have any."""

    @abstractmethod
    def tables(self) -> dict[str, Any]:
        """Return the tables that this SQL reads in addition to the groups."""


@dataclass(frozen=True)
class AppliedTree(AppliedRecoding):
    """A tree of cuts."""

    tree: WrittenTree

    @property
    def by(self) -> dict[str, pa.DataType]:
        return {"g": pa.uint32()}

    @property
    def nbytes(self) -> int:
        return self.tree.nbytes

    def batches(self, rows: Iterable[pa.RecordBatch], labelled: bool) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            keys = self.keys.read(batch)
            group = self.tree.find(keys)
            published = group < self.tree.groups
            if labelled and (untrue := self.tree.untrue(group[published], keys[:, published])):
                raise wrong(f"has labels that are not true for {counted(untrue, 'row')} of the source")
            names = ["g", *batch.schema.names[len(keys) :]]
            found = pa.record_batch([pa.array(group), *batch.columns[len(keys) :]], names=names)
            yield found if published.all() else found.filter(pa.array(published))

    def groups(self, groups: str, labelled: bool) -> str:
        return f"SELECT * FROM ({groups}) LEFT JOIN group_labels USING (g)" if labelled else groups

    def tables(self) -> dict[str, Any]:
        return {"group_labels": self.tree.words}


@dataclass(frozen=True)
class AppliedLevels(AppliedRecoding):
    """The levels of a lattice."""

    levels: list[LevelLabels]
    suppressed: pa.Table  # cells, as the numbers of their labels

    @property
    def nbytes(self) -> int:
        return int(self.suppressed.nbytes)

    @property
    def by(self) -> dict[str, pa.DataType]:
        return {column.alias: pa.int64() for column in self.keys.columns}

    def batches(self, rows: Iterable[pa.RecordBatch], labelled: bool) -> Iterator[pa.RecordBatch]:
        yield from rows

    def groups(self, groups: str, labelled: bool) -> str:
        kept = f"SELECT * FROM ({groups}) ANTI JOIN suppressed_cells USING ({', '.join(self.by)})"
        if not labelled:
            return kept
        words = ", ".join(f"w{j}.l AS l{j}" for j in range(len(self.levels)))
        joins = "".join(f" LEFT JOIN words_{j} AS w{j} ON g.q{j} = w{j}.c" for j in range(len(self.levels)))
        return f"SELECT g.*, {words} FROM ({kept}) AS g{joins}"

    def tables(self) -> dict[str, Any]:
        words = {f"words_{j}": labels.words for j, labels in enumerate(self.levels)}
        return words | {"suppressed_cells": self.suppressed}


def wrong(found: str) -> VerificationError:
    """Return the error for a release that differs from its source."""
    return VerificationError(f"the written release {found}; nothing was published")
