"""The lattice search on a cluster. The search itself is the local one (anon.search.lattice), on the driver; only where
its frequency sets are counted differs. The first is the cube, every different tuple once. While it is too large for the
driver, sets of fewer columns are rolled up from the smallest that the driver already holds, and the first of these are
chosen so that many others can be made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from anon.backends.spark import executors
from anon.backends.spark.counting import SparkRecords, unpacked
from anon.backends.spark.frequency_sets import COUNTING, Counting, Entries, OfEntries, OfRecords, buckets_for
from anon.core.arrays import Codes
from anon.cube import Cube
from anon.cube.records import InMemory
from anon.recoding.levels import ColumnLevels
from anon.search.lattice.counting import CountedEntries, Numbering, Words, sorting_takes
from anon.search.lattice.frequency import (
    First,
    FrequencySet,
    FrequencySets,
    Node,
    RecordSet,
    SensitiveValues,
    TableFacts,
    different,
    numbered,
)
from anon.search.lattice.search import LatticeSearch
from anon.search.lattice.spill import SpillDatabase

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ENDLESS = 2**63  # bytes: what the driver has taken it has room for
COLLECTED = 2**22  # entries of a set that the driver takes from the cluster, if it has memory for them
SAMPLE = 2**16  # records that tell where numbers lie
PACKED_ROW = 2**16  # records of a packed row, as a rule
BLOCKS = pa.schema([("codes", pa.binary())])


class SparkLattice(LatticeSearch):
    """One search over a cube whose records are on a cluster."""

    @cached_property
    def _cubes(self) -> dict[bool, First]:
        """The cubes that were counted, by whether they tell sensitive values apart."""
        return {}

    @cached_property
    def _sample(self) -> Cube:
        """The cube with some of its records, on the driver."""
        records = self.cube.records
        sampled = _collected(self.cube, records.width, _sampled, max(SAMPLE * PACKED_ROW // records.count, 1))
        return replace(self.cube, records=InMemory(sampled))

    def _sensitive_values(self) -> SensitiveValues:
        return SparkValues(self.cube)

    def _sets(self, about_values: bool, spill: SpillDatabase | None) -> FrequencySets:
        values, budget = self.values if about_values else None, self.budget
        sets = SparkSets(self.cube, self.columns, values, budget.memory.database, budget.threads, spill)
        sets.sample = lambda: self._sample
        if about_values not in self._cubes:
            self._cubes[about_values] = sets.cube()
        sets.first = self._cubes[about_values]
        return sets

    def _add_counts(self, *given: Any) -> None:
        """Keep the records: the release is written from them."""

    def _close_records(self) -> None:
        """Do nothing: the records were kept."""


class SparkValues(SensitiveValues):
    """The combinations of sensitive values that occur in records on a cluster."""

    def _different(self, cube: Cube) -> Codes:
        width = len(cube.others)
        return different(width, [_collected(cube, width, _combinations, (len(cube.domains), width))])


class CubeSet(FrequencySet):
    """The first of all sets, which several searches begin with; it goes when the run ends."""

    def close(self) -> None:
        if not isinstance(self.counted, Entries):
            super().close()


class SparkSets(FrequencySets):
    """Frequency sets that are counted on the cluster as long as what they are rolled up from is there."""

    sample: Callable[[], Cube]  # with some of the records

    def __init__(self, cube: Cube, columns: list[ColumnLevels], values: SensitiveValues | None, *given: Any) -> None:
        super().__init__(cube, columns, values, *given)
        self.first = self.records = RecordSet(cube, values)
        self.ancestors: list[FrequencySet] = []

    def cube(self) -> First:
        """Return every different tuple with its people."""
        columns, levels = self.records.columns, self.records.levels
        numbering = self._numbering(columns, levels)
        found = CubeSet(columns, levels, numbering, self._count(self.records, columns, levels, numbering, self.share))
        if _there(found) is None:
            found.load(ENDLESS)
        return found

    @property
    def at_once(self) -> int:
        return 1 if self._on_cluster(self.first) else super().at_once

    def _on_cluster(self, known: First) -> bool:
        return known is self.records or _there(known) is not None

    def table_facts(self) -> TableFacts:
        there = _there(self.first)
        return super().table_facts() if there is None else TableFacts.from_counts(*there.tally())

    def roll_up(self, known: First, columns: tuple[int, ...], levels: Node) -> FrequencySet:
        if known is self.first and self._on_cluster(known) and len(columns) < len(known.columns):
            known = self._ancestor(columns)
        return super().roll_up(known, columns, levels)

    def _ancestor(self, columns: tuple[int, ...]) -> First:
        """Return the smallest set of these columns and others that the driver holds. If there is none, it gets one
        with as many more columns as it has room for whatever is in it; if it has none for these alone, it is the
        first set."""
        found = [known for known in self.ancestors if set(columns) <= set(known.columns)]
        if found:
            return min(found, key=lambda known: known.entries)
        if not self._surely_fits(columns):
            return self.first
        for column in sorted(self.first.columns, key=lambda j: self.levels[j].size(self.first.levels[j])):
            wider = tuple(sorted({*columns, column}))
            columns = wider if self._surely_fits(wider) else columns
        made = super().roll_up(self.first, columns, self._lowest(columns))
        self.ancestors.append(made)
        while sum(known.bytes for known in self.ancestors) > self.memory // 8:
            self.ancestors.remove(max(self.ancestors, key=lambda known: known.bytes))
        return made

    def _lowest(self, columns: tuple[int, ...]) -> Node:
        return tuple(self.first.levels[j] for j in columns)

    def _surely_fits(self, columns: tuple[int, ...]) -> bool:
        return self._numbering(columns, self._lowest(columns)).space <= self._fits(1, self.share)

    def _fits(self, words: int, limit: int) -> int:
        """Return entries that the driver takes."""
        return min(COLLECTED, limit // sorting_takes(1, words, True))

    def _count(
        self, known: First, columns: tuple[int, ...], levels: Node, numbering: Numbering, limit: int
    ) -> CountedEntries:
        there = _there(known)
        if not self._on_cluster(known):
            return super()._count(known, columns, levels, numbering, limit)
        records = self.records.cube.records
        assert isinstance(records, SparkRecords)
        reader = OfEntries(there.numbering) if there else OfRecords.of(self.records.cube, self.records.values)
        frame = there.frame if there else records.frame
        most, words = min(numbering.space, known.entries), len(numbering.words)
        begins = self._begins(columns, levels, numbering, buckets_for(most, _cores(frame)))
        steps = [self._steps(known, columns, levels, numbering, word) for word in numbering.words]
        return Counting(reader, numbering, steps, begins).count(frame, most, self._fits(words, limit))

    def _begins(self, columns: tuple[int, ...], levels: Node, numbering: Numbering, buckets: int) -> Words:
        """Return first words that buckets begin with, so that they have about as many entries each of a sample, and
        every cell is in one."""
        if buckets == 1:
            return np.empty(0, np.uint64)
        sample = RecordSet(self.sample(), self.records.values)
        steps = [self._steps(sample, columns, levels, numbering, word) for word in numbering.words]
        seen = np.unique(np.concatenate([words[0] for words, _ in numbered(sample.parts(), steps)]))
        begins = seen[np.arange(1, buckets) * len(seen) // buckets]
        if len(numbering.words) == 1:
            begins -= begins % np.uint64(numbering.values)
        return np.unique(begins)


def _there(known: First) -> Entries | None:
    """Return the entries of a set that is on the cluster."""
    counted = known.counted if isinstance(known, FrequencySet) else None
    return counted if isinstance(counted, Entries) else None


def _cores(frame: DataFrame) -> int:
    return int(frame.sparkSession.sparkContext.defaultParallelism)


def _collected(cube: Cube, width: int, work: Callable[[Any, Iterator[Codes]], Iterator[Codes]], given: Any) -> Codes:
    """Return what work makes of the records of each partition, arrays [width, some], side by side."""
    records = cube.records
    assert isinstance(records, SparkRecords)
    sent = executors.Broadcast(records.frame.sparkSession, (records.width, work, given))
    table = executors.collect(executors.map_rows(records.frame, _blocks, sent, BLOCKS), COUNTING, executors.PACKED)
    blocks = [np.frombuffer(codes.as_buffer(), np.uint16).reshape(width, -1) for codes in table["codes"]]
    return np.concatenate(blocks, axis=1)


def _blocks(given: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    width, work, own = given
    for codes in work(own, unpacked(batches, width)):
        yield from executors.packed([(np.ascontiguousarray(codes).tobytes(),)], BLOCKS)


def _sampled(each: int, blocks: Iterator[Codes]) -> Iterator[Codes]:
    """Return some records of each block, from everywhere in it."""
    for codes in blocks:
        yield codes[:, :: -(-codes.shape[1] // each) or 1]


def _combinations(places: tuple[int, int], blocks: Iterator[Codes]) -> Iterator[Codes]:
    """Return the different combinations of what follows the quasi-identifiers."""
    columns, width = places
    yield different(width, (codes[columns : columns + width] for codes in blocks))
