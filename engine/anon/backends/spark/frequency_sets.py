"""Frequency sets on a cluster, the fourth place where the lattice search keeps them (anon.search.lattice.counting): the
executors number and count what they hold, entries with numbers in the same range come together and are added up there.
What is few enough for the driver is collected; the rest stays on the disks of the executors, packed: a row of Spark is
a block of entries in order, and the partitions are in order too, so that the driver can read them as a stream."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from anon.backends.spark import executors
from anon.backends.spark.counting import unpacked
from anon.backends.spark.failures import on_spark
from anon.core import interrupt
from anon.cube import Cube
from anon.cube.building import OtherColumn
from anon.cube.records import InMemory
from anon.search.lattice import frequency
from anon.search.lattice.counting import (
    NONE,
    Block,
    CellPart,
    CountedEntries,
    CounterTable,
    Counts,
    Numbering,
    SortedEntries,
    Words,
)
from anon.search.lattice.frequency import SensitiveValues, Steps

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COUNTING = "counting frequency sets"
BUCKET = 2**20  # entries of a partition
LEAST = 2**16  # entries that are worth a partition of their own
BUCKETS = 2**13  # partitions at most
DENSE = 2**22  # counters of a task
HELD = 2**22  # entries that a task holds before it counts equal ones
PACKED = pa.schema([("bucket", pa.int64()), ("n", pa.int64()), ("words", pa.binary()), ("counts", pa.binary())])
PICKLED = pa.schema([("pickled", pa.binary())])
NAMES: dict[int, list[int]] = {1: [0]}  # of partitions, by how many there are


class Entries:
    """Entries of a frequency set on the cluster, in order. A cell is in one partition."""

    bytes = 0

    def __init__(self, frame: DataFrame, numbering: Numbering, entries: int) -> None:
        self.frame, self.numbering, self.entries = frame, numbering, entries

    def blocks(self) -> Iterator[Block]:
        """Return the entries as a stream: the driver holds those of one partition."""
        with on_spark(COUNTING), executors.batches_of(self.frame.sparkSession, executors.PACKED):
            rows = self.frame.select("words", "counts").toLocalIterator()
        while True:
            interrupt.check()
            with on_spark(COUNTING):
                row = next(rows, None)
            if row is None:
                return
            yield _block(row.words, row.counts, len(self.numbering.words))

    def tally(self) -> tuple[Counter[int], int]:
        """Return how many entries occur how often, and how many people are alone in their cell, counted by the
        executors."""
        given = executors.Broadcast(self.frame.sparkSession, self.numbering)
        table = executors.collect(executors.map_rows(self.frame, _tally, given, PICKLED), COUNTING, executors.PACKED)
        times, alone = Counter[int](), 0
        for pickled in table["pickled"]:
            more, own = pickle.loads(pickled.as_buffer())  # noqa: S301 - our own executors'
            times.update(more)
            alone += own
        return times, alone

    def close(self) -> None:
        self.frame.unpersist()


@dataclass(frozen=True)
class OfRecords:
    """Reads parts from the packed records of a cube, of which only the outline is needed."""

    cube: Cube
    values: SensitiveValues | None
    width: int

    @classmethod
    def of(cls, cube: Cube, values: SensitiveValues | None) -> OfRecords:
        domains = [replace(domain, values=domain.values[:0], tree=None) for domain in cube.domains]
        others: list[OtherColumn] = [domains[0]] * len(cube.others)
        empty = InMemory(np.empty((0, 0), np.uint16))
        outline = replace(cube, domains=domains, by_code=[], others=others, totals=[], records=empty, combined={})
        return cls(outline, values, cube.records.width)

    def parts(self, batches: Iterator[pa.RecordBatch]) -> Iterator[CellPart]:
        for codes in unpacked(batches, self.width):
            yield from frequency.RecordSet(replace(self.cube, records=InMemory(codes)), self.values).parts()


@dataclass(frozen=True)
class OfEntries:
    """Reads parts from the packed entries of a frequency set."""

    numbering: Numbering

    def parts(self, batches: Iterator[pa.RecordBatch]) -> Iterator[CellPart]:
        for words, counts in _unpacked(batches, len(self.numbering.words)):
            yield self.numbering.part(words, counts)


Reader = OfRecords | OfEntries


@dataclass(frozen=True)
class Counting:
    """What executors need to know to count a frequency set: how parts of the one below are read and numbered, and the
    first words that buckets begin with."""

    reader: Reader
    numbering: Numbering
    steps: list[Steps]
    begins: Words  # of all buckets but the first

    def count(self, frame: DataFrame, most: int, fits: int) -> CountedEntries:
        """Count the entries; `most`: those that there could be, `fits`: those that the driver takes."""
        spark, parts = frame.sparkSession, len(self.begins) + 1
        names = _names_of_partitions(spark, parts)
        given = executors.Broadcast(spark, (self, names)), executors.Broadcast(spark, len(self.numbering.words))
        numbers = executors.map_rows(frame, _count, given[0], PACKED)
        merged = executors.map_rows(numbers.repartition(parts, "bucket"), _merge, given[1], PACKED)
        counted = self._made(merged, most, fits)
        with on_spark(COUNTING):
            for each in given:
                each.broadcast.unpersist()  # there are many sets; what is lost and made again asks for it again
        return counted

    def _made(self, merged: DataFrame, most: int, fits: int) -> CountedEntries:
        if most <= fits:
            return self._collected(merged)
        merged = executors.on_disk(merged)
        entries = int(executors.collect(merged.groupBy().sum("n"), COUNTING, executors.PACKED)[0][0].as_py())
        if entries > fits:
            return Entries(merged, self.numbering, entries)
        counted = self._collected(merged)
        merged.unpersist()
        return counted

    def _collected(self, frame: DataFrame) -> CountedEntries:
        words = len(self.numbering.words)
        table = executors.collect(frame, COUNTING, executors.PACKED)
        blocks = [_block(w.as_buffer(), c.as_buffer(), words) for w, c in zip(table["words"], table["counts"])]
        return _sorted(blocks, words)


def buckets_for(most: int, cores: int) -> int:
    """Return in how many buckets entries are added up, given how many there could be."""
    return min(max(-(-most // BUCKET), min(2 * cores, -(-most // LEAST)), 1), BUCKETS)


def _names_of_partitions(spark: SparkSession, parts: int) -> list[int]:
    """For each partition a number that Spark's own hash sends there."""
    if parts not in NAMES:
        with on_spark(COUNTING):
            rows = spark.range(0, 64 * parts, 1, 1).selectExpr("id", f"pmod(hash(id), {parts}) as part").toArrow()
        names = dict(zip(rows["part"].to_pylist(), rows["id"].to_pylist()))
        NAMES[parts] = [names[part] for part in range(parts)]
    return NAMES[parts]


def _block(words: Any, counts: Any, width: int) -> Block:
    return np.frombuffer(words, np.uint64).reshape(width, -1), np.frombuffer(counts, np.uint32)


def _unpacked(batches: Iterator[pa.RecordBatch], width: int) -> Iterator[Block]:
    for batch in batches:
        for words, counts in zip(batch.column("words"), batch.column("counts")):
            yield _block(words.as_buffer(), counts.as_buffer(), width)


def _packed(bucket: int, words: Words, counts: Counts) -> Iterator[pa.RecordBatch]:
    row = bucket, len(counts), np.ascontiguousarray(words).tobytes(), counts.tobytes()
    yield from executors.packed([row], PACKED)


def _sorted(blocks: Sequence[Block], width: int) -> SortedEntries:
    if not blocks:
        return SortedEntries(np.empty((width, 0), np.uint64), NONE)
    counts = [c if len(c) else np.ones(w.shape[1], np.uint32) for w, c in blocks]  # none: one each
    return SortedEntries(np.concatenate([words for words, _ in blocks], axis=1), np.concatenate(counts))


def _count(given: tuple[Counting, list[int]], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Count what a task holds, and yield it by bucket."""
    counting, names = given
    parts, space = counting.reader.parts(batches), counting.numbering.space
    for counted in _in_table(parts, counting.steps[0], space) if space <= DENSE else _in_turns(parts, counting.steps):
        for words, counts in counted.blocks():
            edges = [0, *np.searchsorted(words[0], counting.begins).tolist(), len(counts)]
            for name, first, last in zip(names, edges[:-1], edges[1:]):
                if first < last:
                    yield from _packed(name, words[:, first:last], counts[first:last])


def _in_table(parts: Iterator[CellPart], steps: Steps, space: int) -> Iterator[CountedEntries]:
    counts = np.zeros(space, np.uint32)
    for part in parts:
        frequency.add_to_table(part, steps, counts)
    yield CounterTable(counts)


def _in_turns(parts: Iterator[CellPart], steps: list[Steps]) -> Iterator[CountedEntries]:
    held: list[Block] = []
    for block in frequency.numbered(parts, steps):
        held.append(block)
        if sum(words.shape[1] for words, _ in held) >= HELD:
            yield _sorted(held, len(steps))
            held = []
    if held:
        yield _sorted(held, len(steps))


def _merge(width: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add up the entries of one bucket."""
    held: list[Block] = []
    merged = 0
    for block in _unpacked(batches, width):
        held.append(block)
        if sum(words.shape[1] for words, _ in held) >= HELD + 2 * merged:
            counted = _sorted(held, width)
            held, merged = [(counted.words, counted.people)], counted.entries
    for words, counts in _sorted(held, width).blocks():
        yield from _packed(0, words, counts)


def _tally(numbering: Numbering, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    found = frequency.tally(numbering, _unpacked(batches, len(numbering.words)))
    yield from executors.packed([(pickle.dumps(found),)], PICKLED)
