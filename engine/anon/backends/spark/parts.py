"""Tables of a release as folders of parts, written by the executors: rows of some consecutive groups come together, are
sorted there and written as one part. Which groups make a part follows from the recoding alone, so the files are the
same for any cluster. A part is written under another name and renamed when it is whole: a task that is tried again, or
twice at a time, leaves the same file."""

from __future__ import annotations

import errno
import os
import pwd
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anon.backends.spark import executors
from anon.errors import ConfigError, ResourceError
from anon.release.files import changed, repeated, row_groups, write_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PART = 2**22  # rows; a constant of the format like the row group, so that the files do not depend on any limit
DONE = pa.schema([("part", pa.int32()), ("people", pa.int64()), ("rows", pa.int64())])
WRITING = "writing the release"
Ints = NDArray[np.int64]

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # a disk, a quota, a limit of the process
REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)
ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)


def part_name(number: int) -> str:
    return f"part-{number:06d}.parquet"


def parts_of(people: Ints) -> Ints:
    """Return the part of each group: a part begins with the first group after a number of rows.

    >>> parts_of(np.array([3, PART, 5, 1]))
    array([0, 0, 1, 1])
    """
    wanted = (np.cumsum(people) - people) // PART
    part: Ints = np.unique(wanted, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return part


@dataclass(frozen=True)
class Form(ABC):
    """What the rows of a table are made into."""

    schema: pa.Schema
    labelled: list[str]  # the columns that are labels
    counts: ClassVar[bool] = False  # whether a row holds how often it occurs, or else is repeated

    @abstractmethod
    def table(self, rows: pa.Table) -> pa.Table:
        """Return the rows of (group, other columns; how often, if that is given), in order of groups, as they are
        published."""


@dataclass(frozen=True)
class GroupParts:
    """The people of each group and the part that it goes to."""

    people: Ints
    part: Ints

    @property
    def parts(self) -> int:
        return int(self.part[-1]) + 1

    def of(self, number: int) -> tuple[int, int]:
        """Return the first group of a part, and the first after it."""
        return int(np.searchsorted(self.part, number)), int(np.searchsorted(self.part, number, "right"))


def write_table(rows: DataFrame, path: Path, form: Form, groups: GroupParts) -> int:
    """Write a table from rows (part, group, other columns, how often) in any order; return its number of rows."""
    path.mkdir(mode=0o777)
    spark, parts = rows.sparkSession, groups.parts
    places = max(min(parts, 16 * spark.sparkContext.defaultParallelism), 1)
    together, keys = rows.repartition(places, "part"), rows.columns[:-1]
    if form.counts:
        together = together.groupBy(*keys).sum("n").withColumnRenamed("sum(n)", "n")
    given = executors.Broadcast(spark, (str(path), form, groups))
    ordered = together.sortWithinPartitions(*keys)  # nulls come first
    written = executors.collect(executors.map_rows(ordered, _write, given, DONE), WRITING)
    if sum(written["people"].to_pylist()) != int(groups.people.sum()) or written.num_rows != parts:
        raise changed()
    refuse_unseen([path / part_name(number) for number in range(parts)])
    return sum(written["rows"].to_pylist())


def refuse_unseen(files: list[Path]) -> None:
    """Raise ConfigError if what the executors wrote is not visible here."""
    missing = sum(not file.exists() for file in files)
    if missing:
        wrote = f"{missing:,} of {len(files):,} parts that executors wrote"
        found = f"a folder in which {wrote} are not seen from the driver"
        raise ConfigError.at("release.path", found, "a folder on a file system that driver and executors share")


def _write(given: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write the parts of a partition, whose rows come in order; yield a row for each complete part."""
    path, form, groups = given
    for number, rows in _by_part(batches):
        first, last = groups.of(number)
        part = PartWriter(Path(path) / part_name(number), form, first, np.zeros(last - first, np.int64))
        part.write(rows)
        if not np.array_equal(part.people, groups.people[first:last]):
            raise changed()
        yield from executors.packed([(number, int(part.people.sum()), part.rows)], DONE)


def _by_part(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
    """Return the rows of each part as a stream, which must be used up before the next."""
    waiting = _pieces(batches)
    piece = next(waiting, None)

    def rows(number: int, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        nonlocal piece
        yield batch
        for other, following in waiting:
            if other != number:
                piece = other, following
                return
            yield following

    while piece is not None:
        number, first = piece
        piece = None
        yield number, rows(number, first)


def _pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Return runs of rows of one part, without its number."""
    for batch in batches:
        part = batch.column(0).to_numpy()
        edges = np.append(np.flatnonzero(np.append(True, part[1:] != part[:-1])), len(part)).tolist()
        for first, last in pairwise(edges):
            if last > first:
                yield int(part[first]), batch.slice(first, last - first).select(range(1, batch.num_columns))


@contextmanager
def explained() -> Iterator[None]:
    """Report what is wrong with the place that an executor writes to."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            said = f"{WRITING}: no space left for it in the folder of release.path; make room there and run again"
            raise ResourceError(said) from None
        if error.errno in REFUSED:
            found = f"a folder that the executors, which run as {_user()}, may not write"
            expected = "executors that run as the driver's user, and a file system on which they may write"
            raise ConfigError.at("release.path", found, expected) from None
        if error.errno in ABSENT:
            found, expected = "a folder that the executors do not have", "one that driver and executors share"
            raise ConfigError.at("release.path", found, expected) from None
        raise


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a number without a name, as in containers
        return f"user {os.geteuid()}"


@dataclass
class PartWriter:
    """One part under way: its first group, and what has been written of its groups so far."""

    path: Path
    form: Form
    first: int
    people: Ints
    rows: int = 0

    def write(self, batches: Iterator[pa.RecordBatch]) -> None:
        """Write it in row groups of the fixed size."""
        under_way = self.path.with_name(f".{uuid.uuid4().hex}-{self.path.name}")
        with explained():
            try:
                write_tables(under_way, self.form.schema, self.form.labelled, self._tables(batches))
                os.replace(under_way, self.path)  # noqa: PTH105
            finally:
                with suppress(OSError):  # where nothing may be written, nothing may be removed either
                    under_way.unlink()

    def _tables(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        for rows in row_groups(batches if self.form.counts else self._repeated(batches)):
            if self.form.counts:
                self._count(rows.column(0).to_numpy(), rows.column(rows.num_columns - 1).to_numpy())
            self.rows += rows.num_rows
            yield self.form.table(rows)

    def _repeated(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self._count(batch.column(0).to_numpy(), batch.column(batch.num_columns - 1).to_numpy())
            yield from repeated(batch)

    def _count(self, group: Ints, times: Ints) -> None:
        np.add.at(self.people, group - self.first, times)
