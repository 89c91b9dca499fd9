"""The partition search on a cluster (anon.search.partition): the top of the tree is decided on the driver from what
passes over the records count; then the records of each block are gathered in one place and searched there to the end,
as the local engine does it. Decisions come in the same order, so the tree is the same. What a block came to is checked
on the driver against the state that the blocks before it left, and if it does not hold the block is searched again."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from anon.backends.spark import executors
from anon.backends.spark.counting import SparkRecords, unpacked
from anon.backends.spark.passes import SparkPasses, walked
from anon.core.arrays import Codes, Ints
from anon.core.checkpoint import Arrays
from anon.criteria import State
from anon.cube.records import InMemory, Records
from anon.errors import SourceError
from anon.recoding.outcome import GroupCounts
from anon.search.partition import block, top
from anon.search.partition.block import BlockResult, runs_of
from anon.search.partition.candidates import Demands, OpenNodes
from anon.search.partition.fragments import Fragment
from anon.search.partition.passes import Tree
from anon.search.partition.search import LEVELS, PartitionSearch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HELD = 64_000_000  # bytes of records that a task holds before it hands them over by block
GATHERED = pa.schema([("block", pa.int64()), ("root", pa.binary()), ("codes", pa.binary())])
RESULTS = pa.schema([("block", pa.int64()), ("arrays", pa.binary())])
SEARCHING = "searching blocks"


class SparkPartition(PartitionSearch):
    """One search over a cube whose records are on a cluster."""

    passes: SparkPasses | None = None

    def _blocks_at_once(self) -> int:
        assert isinstance(self.cube.records, SparkRecords)
        return int(self.cube.records.frame.sparkSession.sparkContext.defaultParallelism)

    def _largest_block(self) -> int:
        """Return the size of a block. Executors search the blocks, and the memory that is known is the driver's."""
        return self.budget.block

    def _top(
        self, state: list[State], counts: GroupCounts
    ) -> tuple[list[Fragment], Records, OpenNodes, int, list[State]]:
        cube, rules = self.cube, self.rules
        if cube.individuals <= self.limit:
            root = top.root(cube, rules)
            self.tree = _uncut()
            return [], cube.records, root, 0, state
        assert isinstance(cube.records, SparkRecords)
        self.passes = SparkPasses(cube.records)
        upper = top.Top(cube, rules, self.passes, self.limit, self.budget)
        ended = top.search(upper, rules, state, self.pace.advance, self.steps)
        self.tree = upper.tree()
        unique = self._unique(ended.groups, ended.group_records)
        unique += self._unique(ended.dropped, ended.dropped_records)
        return [upper.fragment], cube.records, ended.roots, unique, ended.state

    def _blocks(self, records: Records, nodes: OpenNodes, state: list[State]) -> Iterator[BlockResult]:
        """Search all blocks from one state, and yield what they found in order; where that does not hold together
        with what the blocks before came to, the next ones are searched again."""
        runs = list(runs_of(nodes.people, self.limit))
        if not runs:  # the groups of the top are all there are
            return
        known = {at: self.steps.finished(f"block-{run[0]}", BlockResult.from_arrays) for at, run in enumerate(runs)}
        gathered = self._gather(nodes, runs)
        wanted = [at for at, found in known.items() if found is None]
        known |= self._searched(gathered, nodes, runs, wanted, state)
        cores = gathered.sparkSession.sparkContext.defaultParallelism
        for at, run in enumerate(runs):
            found = known.pop(at)
            assert found is not None
            merged = found.after(state)
            if not self.rules.hold(merged):
                known |= self._searched(gathered, nodes, runs, list(range(at, min(at + cores, len(runs)))), state)
                found = known.pop(at)
                assert found is not None
                merged = found.state
            self.steps.finish(f"block-{run[0]}", found)
            state = merged
            people = int(nodes.people[slice(*run)].sum())
            self.pace.advance(people * LEVELS, blocks=len(runs) - at - 1)
            yield found
        gathered.unpersist()

    def _gather(self, nodes: OpenNodes, runs: list[tuple[int, int]]) -> DataFrame:
        """Return the records with all of a block's in one partition."""
        of_node = np.full(len(self.tree[0]), -1)
        for at, (first, last) in enumerate(runs):
            of_node[nodes.start[first:last]] = at
        root = np.zeros(len(self.tree[0]), np.uint32)
        root[nodes.start] = np.concatenate([np.arange(last - first) for first, last in runs])
        frame = self._by_block((of_node, root, np.ones(len(runs), np.int64)), len(runs))
        return executors.on_disk(frame) if self.rules.whole else frame  # else each is searched once

    def _by_block(self, places: tuple[Ints, Any, Ints], blocks: int) -> DataFrame:
        records = self.cube.records
        assert isinstance(records, SparkRecords)
        spark = records.frame.sparkSession
        given = executors.Broadcast(spark, (records.width, len(self.cube.domains), self.tree, *places))
        packed = executors.map_rows(records.frame, _placed, given, GATHERED)
        parts = max(min(blocks, 16 * spark.sparkContext.defaultParallelism), 1)
        return packed.repartition(parts, "block").sortWithinPartitions("block")

    def _searched(
        self, gathered: DataFrame, nodes: OpenNodes, runs: list[tuple[int, int]], wanted: list[int], state: list[State]
    ) -> dict[int, BlockResult | None]:
        if not wanted:
            return {}
        cube = replace(self.cube, records=InMemory(np.empty((0, 0), np.uint16)))
        roots = {at: nodes.take(slice(*runs[at])) for at in wanted}
        spark = gathered.sparkSession
        given = executors.Broadcast(spark, (self.cube.records.width, cube, self.rules, roots, state))
        if len(wanted) < len(runs):
            gathered = gathered.where(gathered["block"].isin(wanted))
        table = executors.collect(executors.map_rows(gathered, _search, given, RESULTS), SEARCHING, executors.PACKED)
        found = zip(table["block"].to_pylist(), table["arrays"])
        return {at: BlockResult.from_arrays(_loaded(arrays.as_buffer())) for at, arrays in found}

    def _unique(self, groups: OpenNodes, records: Ints) -> int:
        """Return individuals who are alone with their codes in groups of the top, each of which may take several
        places."""
        if not len(groups):
            return 0
        parts = -(-records // self.limit)
        of_node, times = np.full(len(self.tree[0]), -1), np.maximum(parts, 1)
        of_node[groups.start] = np.cumsum(times) - times
        several = np.ones(int(times.sum()), np.int64)
        several[np.cumsum(times) - times] = times
        frame = self._by_block((of_node, np.zeros(len(of_node), np.uint32), several), int(times.sum()))
        cube = replace(self.cube, records=InMemory(np.empty((0, 0), np.uint16)))
        given = executors.Broadcast(frame.sparkSession, (self.cube.records.width, cube))
        table = executors.collect(executors.map_rows(frame, _alone, given, RESULTS), SEARCHING, executors.PACKED)
        return sum(int(np.frombuffer(each.as_buffer(), np.int64)[0]) for each in table["arrays"])


def _uncut() -> Tree:
    """Return a tree of the root alone."""
    return np.array([-1]), np.zeros(2, np.int64), np.empty(0, np.int64), np.zeros(1, np.int64), np.zeros(1, bool)


def _placed(given: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return records by their block, each with the number of its root there. Of several blocks for one node, the sum
    of a record's codes says which it goes to, so that equal records come together."""
    width, columns, tree, of_node, root, several = given
    held: list[tuple[Codes, Any, Any]] = []
    size = 0
    for codes in unpacked(batches, width):
        node = walked(codes, tree)
        to = of_node[node]
        more = several[to] * (to >= 0)
        if (more > 1).any():
            to = to + np.where(more > 1, codes[:columns].sum(axis=0, dtype=np.int64) % np.maximum(more, 1), 0)
        held.append((codes, to, root[node]))
        size += codes.nbytes
        if size > HELD:
            yield from _by_block(held)
            held, size = [], 0
    if held:
        yield from _by_block(held)


def _by_block(held: list[tuple[Codes, Any, Any]]) -> Iterator[pa.RecordBatch]:
    codes, to, root = (np.concatenate(arrays, axis=-1) for arrays in zip(*held))
    order = np.argsort(to, kind="stable")
    codes, to, root = np.ascontiguousarray(codes[:, order]), to[order], root[order]
    edges = np.append(np.flatnonzero(np.append(True, to[1:] != to[:-1])), len(to))
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist()):
        if to[first] >= 0:
            own = int(to[first]), root[first:last].tobytes(), codes[:, first:last].tobytes()
            yield from executors.packed([own], GATHERED)


def _blocks_of(batches: Iterator[pa.RecordBatch], width: int) -> Iterator[tuple[int, Codes, Any]]:
    """Return the blocks in a partition, which is in order of them: number, records, and the root of each."""
    number, codes, roots = -1, [np.empty((width, 0), np.uint16)], [np.empty(0, np.uint32)]
    for batch in batches:
        for at, root, own in zip(batch.column("block").to_pylist(), batch.column("root"), batch.column("codes")):
            if at != number:
                if number >= 0:
                    yield number, np.concatenate(codes, axis=1), np.concatenate(roots)
                number, codes, roots = at, [], []
            codes.append(np.frombuffer(own.as_buffer(), np.uint16).reshape(width, -1))
            roots.append(np.frombuffer(root.as_buffer(), np.uint32))
    if number >= 0:
        yield number, np.concatenate(codes, axis=1), np.concatenate(roots)


def _search(given: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield what the blocks of a partition come to, without the counts that a local release is made of."""
    from anon.search.partition import kernels

    width, cube, rules, roots, state = given
    for number, codes, root in _blocks_of(batches, width):
        nodes: OpenNodes = roots[number]
        begin, moved = np.zeros(len(nodes) + 2, np.int64), np.empty_like(codes)
        kernels.scatter(codes, root, begin, np.empty(len(root), np.int32), moved)
        nodes = replace(nodes, start=begin[:-2].copy(), stop=begin[1:-1].copy())
        if cube.people_at < 0 and ((nodes.stop - nodes.start) != nodes.people).any():
            raise SourceError("the source changed between two passes over it; run again when it is complete")
        found = block.search(cube, rules, moved, nodes, state)
        empty = np.empty(0, np.int64)
        found = replace(found, group=empty, codes=np.empty((0, cube.sensitive), np.uint16), people=empty)
        yield from executors.packed([(number, _saved(found.arrays()))], RESULTS)


def _alone(given: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    width, cube = given
    for number, codes, _ in _blocks_of(batches, width):
        piece = block.Block(cube, [], Demands(), codes)
        unique = piece.unique(block.whole_range(codes.shape[1]), np.array([0]))
        yield from executors.packed([(number, np.int64(unique).tobytes())], RESULTS)


def _saved(arrays: Arrays) -> bytes:
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    return file.getvalue()


def _loaded(saved: pa.Buffer) -> Arrays:
    with np.load(io.BytesIO(saved)) as found:
        return dict(found)
