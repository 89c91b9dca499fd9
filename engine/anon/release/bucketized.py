"""The bucketized form of a release: a row of quasi-identifiers and kept columns for every individual with the number of
their group (qi), and the count of each sensitive value in each group (sensitive). Rows are in the order of their
columns, so that the position of a row of `qi` reveals nothing about the sensitive value. Groups are numbered in the
order of their published quasi-identifiers; where those are equal, by their sensitive values, and then by their kept
columns.

Groups of a recoding have no quasi-identifiers in common. With labels their canonical order is already known; with exact
values it is the order in which they first appear among the rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from anon.config import Config
from anon.config.support import exact_labels
from anon.core.arrays import Ints
from anon.core.database import Database, causes, translated
from anon.cube import Domain
from anon.recoding.assignment import Assignment
from anon.recoding.levels import AnyRecoding
from anon.recoding.outcome import Outcome
from anon.release import package
from anon.release.assigned import AssignedRelease
from anon.release.bounds import ColumnBounds, bounds_of, kinds_of, label_columns, label_types
from anon.release.files import (
    READ,
    ROW_GROUP,
    WrittenRelease,
    WrittenValues,
    changed,
    in_order,
    label_type,
    repeated,
    row_groups,
    runs,
    text_bytes_of_codes,
    types_of,
    value_array,
    write_tables,
)
from anon.release.rows import counted, in_groups
from anon.source import Column, Source

GROUP = {"name": "group", "type": "integer", "role": "group"}
COUNT = {"name": "count", "type": "integer", "role": "count"}


@dataclass(frozen=True)
class BucketizedRelease:
    """A release in progress."""

    source: Source
    found: Outcome
    sensitive: Domain
    config: Config
    folder: Path
    spill: Path
    failures: list[BaseException]
    number: list[Ints] = field(
        default_factory=list
    )  # of the groups, where it differs from the recoding's or the assignment's

    @property
    def exact(self) -> bool:
        return exact_labels(self.config)

    @property
    def labelled(self) -> list[str]:
        """Return the columns that are published as labels."""
        return [] if self.exact else [column.name for column in self.source.quasi_identifiers]

    @cached_property
    def bounds(self) -> list[ColumnBounds]:
        """The bounds of the columns that are published as labels."""
        recoding = self.found.recoding
        return [] if self.exact or isinstance(recoding, Assignment) else bounds_of(self.config, recoding)

    @property
    def plain(self) -> list[Column]:
        """Return the columns of individuals that are published unchanged."""
        return [*self.source.quasi_identifiers, *self.source.keep][len(self.labelled) :]

    def file(self, name: str) -> Path:
        return self.folder / f"{name}.{self.config.release.format}"

    def write(self, database: Database) -> int:
        """Write both files; return the number of rows of the second."""
        recoding, counts = self.found.recoding, self.found.counts
        if isinstance(recoding, Assignment):
            assigned = AssignedRelease(database, self.source, recoding, self.sensitive, self.spill, self.failures)
            self._write_qi(assigned.tables())
            self.number.append(assigned.rank.astype(np.int64))
            if recoding.counterfeits is not None:
                self._write_counterfeits(recoding.counterfeits)
            return self._write_sensitive(assigned.counts())
        assert counts is not None, "a recoding comes with the counts of its groups"
        seen = GroupNumbering(recoding.groups)
        rows = self._exact if self.exact else self._labelled
        self._write_qi(rows(database, recoding, seen))
        if not np.array_equal(seen.people, recoding.people):
            raise changed()
        if self.exact:
            self.number.append(seen.rank.astype(np.int64))
            counts.rank = seen.rank[counts.rank]
        return self._write_sensitive(counted(database, counts, 1))

    def _exact(self, database: Database, recoding: AnyRecoding, seen: GroupNumbering) -> Iterator[pa.Table]:
        """Yield the rows of the source (quasi-identifiers, kept values, group) in canonical order."""
        plain = [column.alias for column in (*self.source.quasi_identifiers, *self.source.keep)]
        for rows in row_groups(self._in_order(database, recoding, plain, "g")):
            group = pa.array(seen.numbers(rows.column("g").to_numpy()))
            yield rows.set_column(len(plain), "g", group)

    def _labelled(self, database: Database, recoding: AnyRecoding, seen: GroupNumbering) -> Iterator[pa.Table]:
        """Yield the same with labels. Without kept columns all rows of a group are equal, and none is read."""
        keep = [column.alias for column in self.source.keep]
        batches = self._in_order(database, recoding, ["g", *keep]) if keep else _repeated(recoding.people)
        for rows in row_groups(batches):
            group = rows.column("g").to_numpy()
            seen.numbers(group)
            arrays = label_columns(recoding.labels, self.bounds, *runs(group))
            names = [f"q{j}" for j in range(len(arrays))]
            yield pa.table([*arrays, *rows.columns[1:], rows.column("g")], names=[*names, *keep, "g"])

    def _in_order(
        self, database: Database, recoding: AnyRecoding, by: list[str], *more: str
    ) -> Iterator[pa.RecordBatch]:
        """Yield the individuals of the source in the order of some columns, with those and `more` columns."""
        plain = [column for column in (*self.source.quasi_identifiers, *self.source.keep) if column.alias in by]
        view = self.source.people_view
        database.register("published_rows", in_groups(self.source, recoding, [], plain, self.failures, view))
        query = f"SELECT {', '.join((*by, *more))} FROM published_rows ORDER BY {in_order(by)}"
        yield from database.query(query).to_arrow_reader(self.source.within(READ, by))

    def _write_qi(self, tables: Iterable[pa.Table]) -> None:
        """Write the file of individuals from tables of (quasi-identifiers or labels, kept values, group) of a row group
        each."""
        types, labels = self.source.types, self.labelled
        fields = [
            field
            for own in self.bounds
            for field in (pa.field(own.column, label_type(self.config.release.format)), *own.schema_fields)
        ]
        schema = pa.schema([*fields, *((c.name, types[c.alias]) for c in self.plain), ("group", pa.int64())])
        named = (table.rename_columns(schema.names).cast(schema) for table in tables)
        write_tables(self.file("qi"), schema, labels, named)

    def _write_sensitive(self, counts: Iterable[pa.RecordBatch]) -> int:
        """Write the file of sensitive values from (group, sensitive code, count) in order; return its number of
        rows."""
        (column,) = self.source.sensitive
        kind = self.source.types[column.alias]
        schema = pa.schema([("group", pa.int64()), (column.name, kind), ("count", pa.int64())])
        rows: list[int] = []

        def tables() -> Iterator[pa.Table]:
            for table in row_groups(
                counts, lambda rows: text_bytes_of_codes(self.sensitive, rows.column(1).to_numpy())
            ):
                rows.append(table.num_rows)
                values = value_array(self.sensitive, table.column(1).to_numpy())
                yield pa.table([table.column(0), values, table.column(2)], names=schema.names).cast(schema)

        write_tables(self.file("sensitive"), schema, [], tables())
        return sum(rows)

    def _write_counterfeits(self, fakes: Ints) -> None:
        """Write the number of counterfeits of each group that has any."""
        published = np.argsort(self.number[0])  # the groups in the order of their numbers
        group = np.flatnonzero(fakes[published])
        table = pa.table({"group": group.astype(np.int64), "count": fakes[published][group].astype(np.int64)})
        write_tables(self.file("counterfeits"), table.schema, [], [table])

    @property
    def counterfeits(self) -> Path | None:
        """Return the file of the counterfeits, if the release has one."""
        recoding = self.found.recoding
        with_fakes = isinstance(recoding, Assignment) and recoding.counterfeits is not None
        return self.file("counterfeits") if with_fakes else None

    def describe(self, rows: int, held: int) -> None:
        """Write the description of the two files."""
        source, recoding = self.source, self.found.recoding
        qi = package.labels(source.quasi_identifiers, "quasi-identifier", self.bounds)
        if self.exact:
            qi = package.values(source.quasi_identifiers, "quasi-identifier")
        qi += [*package.kept(source.keep, self.config.columns), GROUP]
        values = [GROUP, *package.values(source.sensitive, "sensitive"), COUNT]
        files = [package.resource(self.file("qi"), qi, rows), package.resource(self.file("sensitive"), values, held)]
        if self.counterfeits is not None:
            assert isinstance(recoding, Assignment) and recoding.counterfeits is not None
            fakes = int(np.count_nonzero(recoding.counterfeits))
            files.append(package.resource(self.counterfeits, [GROUP, COUNT], fakes))
        cells = None if isinstance(recoding, Assignment) or self.exact else package.cells(recoding)
        package.write_package(self.folder, self.config, files, recoding, source.left_out.individuals, cells)

    def written(self, rows: int) -> WrittenRelease:
        """Return the form that the files must have."""
        source = self.source
        types = label_types(self.bounds) | types_of(source, self.plain) | {"group": "BIGINT"}
        held_types = {"group": "BIGINT"} | types_of(source, source.sensitive) | {"count": "BIGINT"}
        values = WrittenValues(self.file("sensitive"), held_types)
        number = self.number[0] if self.number else None
        groups, bounds = self.found.recoding.groups, kinds_of(self.bounds)
        return WrittenRelease(
            self.file("qi"), rows, groups, types, self.labelled, values, number, bounds, counterfeits=self.counterfeits
        )


def write(
    source: Source, found: Outcome, sensitive: Domain, config: Config, folder: Path, spill: Path
) -> WrittenRelease:
    """Write the bucketized release and its description into the folder; return its form."""
    failures: list[BaseException] = []
    release = BucketizedRelease(source, found, sensitive, config, folder, spill, failures)
    with translated("writing the release"), causes(failures), closing(source.database.cursor()) as database:
        held = release.write(database)
    rows = int(found.recoding.people.sum())
    release.describe(rows, held)
    return release.written(rows)


class GroupNumbering:
    """Numbers groups in the order in which they are first seen, and counts their rows."""

    def __init__(self, groups: int) -> None:
        self.rank, self.people, self.known = np.full(groups, -1, np.int32), np.zeros(groups, np.uint32), 0

    def numbers(self, group: Ints) -> Ints:
        """Return the numbers of the groups of further rows."""
        listed, first, times = np.unique(group, return_index=True, return_counts=True)
        new = self.rank[listed] < 0
        fresh = listed[new][np.argsort(first[new])]
        self.rank[fresh] = self.known + np.arange(len(fresh))
        self.known += len(fresh)
        self.people[listed] += times.astype(np.uint32)
        return self.rank[group].astype(np.int64)


def _repeated(people: Ints) -> Iterator[pa.RecordBatch]:
    """Yield the number of each group, repeated for each of its people."""
    for start in range(0, len(people), ROW_GROUP):
        group = np.arange(start, min(start + ROW_GROUP, len(people)), dtype=np.uint32)
        yield from repeated(pa.record_batch([pa.array(group), pa.array(people[group])], names=["g", "n"]))
