"""Spill frequency sets that do not fit in memory to tables of a separate DuckDB database, in a folder of the spill,
which moves data beyond its limit to the disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import cached_property
from itertools import count
from pathlib import Path
from threading import Lock

import numpy as np
import pyarrow as pa

from anon.core import interrupt
from anon.core.database import Database, causes, connect, fed, interruptible, translated
from anon.search.lattice import kernels
from anon.search.lattice.counting import NONE, PART, Block, sort

LEAST = 40_000_000  # bytes with which DuckDB can sort
ROOMY = 100_000_000  # bytes from which on it can sort in several threads
WHAT = "counting in the spill"


class SpillDatabase:
    """A database for frequency sets, opened for the first one. One set is made at a time."""

    def __init__(self, folder: Path, memory: int, threads: int) -> None:
        self.folder, self.memory = folder / "frequency-sets", max(memory, LEAST)
        self.threads = threads if self.memory >= ROOMY else 1
        self._names, self._lock = count(), Lock()

    @cached_property
    def database(self) -> Database:
        with translated(WHAT, disk=True):
            self.folder.mkdir(mode=0o700)
            database = connect(self.memory, self.threads, self.folder)
            database.limit_bytes(self.memory)
            database.set("preserve_insertion_order", True)
        return database

    def counted(self, blocks: Iterator[Block], words: int) -> SpilledTable:
        """Return a table of entries that are given in any order and repeatedly."""
        failures: list[BaseException] = []
        keys = [f"k{word}" for word in range(words)]
        schema = pa.schema([*((key, pa.uint64()) for key in keys), ("n", pa.uint32())])
        with self._lock:
            table = f"set{next(self._names)}"
            with (
                translated(WHAT, disk=True),
                causes(failures),
                closing(self.database.cursor()) as reading,
                closing(self.database.cursor()) as writing,
            ):
                reading.register("entries", fed(schema, _batches(map(_collapsed, blocks), schema), failures))
                reader = reading.query(f"SELECT * FROM entries ORDER BY {', '.join(keys)}").to_arrow_reader(PART)
                ordered = _batches(_merged(_blocks(reader)), schema)
                writing.register("ordered", fed(schema, ordered, failures))
                writing.execute(f"CREATE TABLE {table} AS SELECT * FROM ordered")
                (entries,) = writing.one(f"SELECT count(*) FROM {table}")
        return SpilledTable(self.database, table, entries)

    def close(self) -> None:
        if "database" in self.__dict__:
            self.database.close()


class SpilledTable:
    """Entries in a table of the database, in order."""

    bytes = 0

    def __init__(self, database: Database, name: str, entries: int) -> None:
        self.database, self.name, self.entries = database, name, entries

    def blocks(self) -> Iterator[Block]:
        with closing(self.database.cursor()) as database:
            with translated(WHAT, disk=True):
                reader = database.query(f"SELECT * FROM {self.name}").to_arrow_reader(PART)
            yield from _blocks(interruptible(reader, WHAT))

    def close(self) -> None:
        with translated(WHAT, disk=True), closing(self.database.cursor()) as database:
            database.execute(f"DROP TABLE {self.name}")


def _batches(blocks: Iterator[Block], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for words, people in blocks:
        interrupt.check()
        yield pa.record_batch([pa.array(column) for column in (*words, people)], schema=schema)


def _blocks(batches: Iterator[pa.RecordBatch]) -> Iterator[Block]:
    for batch in batches:
        *words, people = (column.to_numpy() for column in batch.columns)
        yield np.stack(words), people


def _collapsed(block: Block) -> Block:
    """Return entries in order, equal ones combined."""
    words, people = block
    people = sort(words, people)
    count = kernels.collapse(words, people)
    return words[:, :count], people[:count]


def _merged(blocks: Iterator[Block]) -> Iterator[Block]:
    """Yield entries in order with equal ones combined, also where they are in two blocks."""
    last: Block = np.empty((0, 0), np.uint64), NONE
    for words, people in blocks:
        if len(last[1]):
            words, people = np.concatenate([last[0], words], axis=1), np.append(last[1], people)
        people = people.copy()
        entries = kernels.collapse(words, people)
        yield words[:, : entries - 1], people[: entries - 1]
        last = words[:, entries - 1 : entries].copy(), people[entries - 1 : entries].copy()
    if len(last[1]):
        yield last
