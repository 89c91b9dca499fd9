"""Apply a tree of cuts as recoding.json has it to the keys of the source's rows. Neither the codes nor the tree of the
search are used here: this is how a reader of recoding.json finds a row's group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anon.verify.content import kernels
from anon.verify.content.labels import Grammar

BATCH = 65_536  # groups whose labels are listed at a time
Numbers = NDArray[np.uint32]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class GroupLabels:
    """The labels of one column over all groups: the distinct labels, the label of each group, and the keys under
    each."""

    words: pa.Array
    of_group: NDArray[Any]
    ranges: Ints  # [words, 2]

    @classmethod
    def from_codes(cls, words: pa.Array, codes: NDArray[Any], grammar: Grammar) -> GroupLabels:
        """Return the labels of groups, given as places in a list of words."""
        used, of_group = np.unique(codes, return_inverse=True)
        own = words.take(pa.array(used))
        return cls(own, of_group.reshape(-1).astype(np.min_scalar_type(len(own))), grammar.ranges(own))

    @property
    def nbytes(self) -> int:
        return int(self.words.nbytes) + self.of_group.nbytes + self.ranges.nbytes

    def covers(self, group: Numbers, keys: Ints) -> NDArray[np.bool_]:
        """Flag the rows whose key the label of their group covers."""
        first, last = self.ranges[self.of_group[group]].T
        covered: NDArray[np.bool_] = (first <= keys) & (keys <= last)
        return covered

    def array(self, groups: slice) -> pa.Array:
        """Return the labels of some groups."""
        return self.words.take(pa.array(self.of_group[groups]))


@dataclass(frozen=True)
class WrittenTree:
    """The nodes [nodes, 2] in the form that kernels.c describes, the keys of those with more than two children, and the
    labels of the groups per column."""

    nodes: Ints
    low: Ints
    labels: list[GroupLabels]

    @property
    def groups(self) -> int:
        return len(self.labels[0].of_group)

    @property
    def nbytes(self) -> int:
        return self.nodes.nbytes + self.low.nbytes + sum(labels.nbytes for labels in self.labels)

    def find(self, keys: Ints) -> Numbers:
        """Return the group of each row of keys [columns, rows]; the number of groups for a suppressed row."""
        found = np.empty(keys.shape[1], np.uint32)
        kernels.walk(keys, self.nodes, self.low, found)
        return found

    def untrue(self, group: Numbers, keys: Ints) -> int:
        """Return the number of rows with a label that does not cover their value."""
        return untrue(self.labels, group, keys)

    @property
    def words(self) -> pa.RecordBatchReader:
        """Return the groups, g, with their labels l0, l1, ..."""
        names = [f"l{j}" for j in range(len(self.labels))]
        schema = pa.schema([("g", pa.uint32()), *((name, pa.string()) for name in names)])

        def batches() -> Iterator[pa.RecordBatch]:
            for first in range(0, self.groups, BATCH):
                some = slice(first, min(first + BATCH, self.groups))
                numbers = pa.array(np.arange(some.start, some.stop, dtype=np.uint32))
                yield pa.record_batch([numbers, *(labels.array(some) for labels in self.labels)], schema=schema)

        return pa.RecordBatchReader.from_batches(schema, batches())


def untrue(labels: list[GroupLabels], group: Numbers, keys: Ints) -> int:
    """Return the number of rows in groups of which a label does not cover their key."""
    true = np.ones(len(group), bool)
    for column, own in zip(labels, keys):
        true &= column.covers(group, own)
    return len(true) - int(true.sum())
