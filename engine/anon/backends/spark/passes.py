"""Passes over records on a cluster, for the top of the tree of cuts: every executor walks its records down the tree so
far and counts, with the kernels and counters of the local engine; pieces of the counters are added up by key, and the
driver gets their sum. Between passes nothing is written: a record finds its node again from the root."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anon.backends.spark import executors
from anon.backends.spark.counting import SparkRecords, unpacked
from anon.core.arrays import Codes
from anon.search.partition.passes import C, Node, Passes, RecordChunk, Tree

PIECE = 65_536  # counters that are added up together
DIRECT = 64_000_000  # bytes of counters that the driver adds up by itself; more are added up by the executors
PIECES = pa.schema([("key", pa.string()), ("counters", pa.binary())])
COUNTING = "counting records"


class WholeChunk(RecordChunk):
    """Records of which all columns are there."""

    def __init__(self, codes: Codes) -> None:
        self.codes = codes

    def columns(self, wanted: Any) -> Codes:
        return self.codes


@dataclass
class PassCosts:
    """What passes have cost, for those who measure."""

    passes: int = 0
    collected: int = 0  # bytes of counters that the driver received
    largest: int = 0  # the most of these in one pass
    broadcast: int = 0  # bytes of work that were sent to each executor


class SparkPasses(Passes):
    """All passes of a search over records that executors hold."""

    def __init__(self, records: SparkRecords) -> None:
        self.records, self.parts = records, records.frame.rdd.getNumPartitions()
        self.facts = PassCosts()

    def count(self, fresh: Callable[[], C], work: Callable[[RecordChunk, Node, C], None], tree: Tree) -> C:
        assert isinstance(self.records, SparkRecords)
        spark = self.records.frame.sparkSession
        given = executors.Broadcast(spark, (self.records.width, fresh, work, tree))
        frame = executors.map_rows(self.records.frame, _count, given, PIECES)
        total = fresh()
        if self.parts * sum(array.nbytes for array in arrays_of(total).values()) > DIRECT:
            merge = executors.Broadcast(spark, None)
            frame = executors.map_rows(frame.repartition("key").sortWithinPartitions("key"), _add, merge, PIECES)
        table = executors.collect(frame, COUNTING, executors.PACKED)
        for key, counters in zip(table["key"].to_pylist(), table["counters"]):
            add_piece(total, key, counters.as_buffer())
        self.facts.passes += 1
        self.facts.collected += table.nbytes
        self.facts.largest = max(self.facts.largest, table.nbytes)
        self.facts.broadcast += given.size
        return total

    def close(self) -> None:
        pass


def arrays_of(counters: Any) -> dict[str, NDArray[Any]]:
    """Return the arrays of counters by name, flat."""
    found = {}
    for name, held in vars(counters).items():
        for key, array in held.items() if isinstance(held, dict) else [("", held)]:
            found[f"{name}.{key}"] = array.reshape(-1)
    return found


def pieces_of(counters: Any, fresh: Any) -> Iterator[tuple[str, bytes]]:
    """Yield the arrays in pieces, without those in which nothing was counted."""
    before = arrays_of(fresh)
    for name, array in arrays_of(counters).items():
        for start in range(0, len(array), PIECE):
            piece = array[start : start + PIECE]
            if (piece != before[name][start : start + PIECE]).any():
                yield f"{name}.{array.dtype.str}.{start}", piece.tobytes()


def add_piece(counters: Any, key: str, piece: pa.Buffer) -> None:
    """Add a piece to counters as their own `add` does: what they reach is the lowest and the highest."""
    name, column, kind, start = key.split(".")
    own = arrays_of(counters)[f"{name}.{column}"]
    _merge(name, own[int(start) :], np.frombuffer(piece, kind))


def _merge(name: str, into: NDArray[Any], other: NDArray[Any]) -> None:
    fold = {"low": np.minimum, "high": np.maximum}.get(name, np.add)
    fold(into[: len(other)], other, out=into[: len(other)])


def _count(given: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    width, fresh, work, tree = given
    own = fresh()
    for codes in unpacked(batches, width):
        work(WholeChunk(codes), walked(codes, tree), own)
    yield from executors.packed(pieces_of(own, fresh()), PIECES)


def walked(codes: Codes, tree: Tree) -> Node:
    """Return the node of the tree that each record reaches."""
    from anon.recoding import kernels

    node = np.zeros(codes.shape[1], np.uint32)
    kernels.walk(codes, *tree, node)
    return node


def _add(given: None, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add up pieces that come in order of their keys."""
    key, total = "", np.empty(0)
    for batch in batches:
        for name, counters in zip(batch.column("key").to_pylist(), batch.column("counters")):
            piece = np.frombuffer(counters.as_buffer(), name.split(".")[2])
            if name == key:
                _merge(name.split(".")[0], total, piece)
                continue
            if key:
                yield from executors.packed([(key, total.tobytes())], PIECES)
            key, total = name, piece.copy()
    if key:
        yield from executors.packed([(key, total.tobytes())], PIECES)
