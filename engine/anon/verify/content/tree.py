"""A tree of cuts as recoding.json has it, applied to the keys of the source's rows. Nothing here knows the codes that
the search worked with, nor the tree that it holds: this is how a reader of recoding.json finds a row's group."""

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
    """The labels of one column over all groups: the different ones, which each group has, and the keys under each."""

    words: pa.Array
    of_group: NDArray[Any]
    ranges: Ints  # [words, 2]

    @classmethod
    def from_codes(cls, words: pa.Array, codes: NDArray[Any], grammar: Grammar) -> GroupLabels:
        """The labels of groups, given as places in a list of words."""
        used, of_group = np.unique(codes, return_inverse=True)
        own = words.take(pa.array(used))
        return cls(own, of_group.reshape(-1).astype(np.min_scalar_type(len(own))), grammar.ranges(own))

    @property
    def nbytes(self) -> int:
        return int(self.words.nbytes) + self.of_group.nbytes + self.ranges.nbytes

    def covers(self, group: Numbers, keys: Ints) -> NDArray[np.bool_]:
        """Whether the label of each row's group is true of the row's key."""
        first, last = self.ranges[self.of_group[group]].T
        covered: NDArray[np.bool_] = (first <= keys) & (keys <= last)
        return covered

    def array(self, groups: slice) -> pa.Array:
        """The labels of some groups."""
        return self.words.take(pa.array(self.of_group[groups]))


@dataclass(frozen=True)
class Tree:
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
        """The group of each row of keys [columns, rows]."""
        found = np.empty(keys.shape[1], np.uint32)
        kernels.walk(keys, self.nodes, self.low, found)
        return found

    def untrue(self, group: Numbers, keys: Ints) -> int:
        """How many rows have a label that does not cover their value."""
        true = np.ones(len(group), bool)
        for labels, own in zip(self.labels, keys):
            true &= labels.covers(group, own)
        return len(true) - int(true.sum())

    @property
    def words(self) -> pa.RecordBatchReader:
        """The groups, g, with their labels l0, l1, ..."""
        names = [f"l{j}" for j in range(len(self.labels))]
        schema = pa.schema([("g", pa.uint32()), *((name, pa.string()) for name in names)])

        def batches() -> Iterator[pa.RecordBatch]:
            for first in range(0, self.groups, BATCH):
                some = slice(first, min(first + BATCH, self.groups))
                numbers = pa.array(np.arange(some.start, some.stop, dtype=np.uint32))
                yield pa.record_batch([numbers, *(labels.array(some) for labels in self.labels)], schema=schema)

        return pa.RecordBatchReader.from_batches(schema, batches())
