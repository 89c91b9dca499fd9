"""Writes the release from the executors: the recoding is broadcast, every row finds its group, and `parts` brings the
rows of a part together and writes it. The forms are those of the local engine (anon.release)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from anon.backends.spark import executors
from anon.backends.spark.counting import SparkRecords, unpacked
from anon.backends.spark.parts import Form, GroupParts, part_name, parts_of, write_table
from anon.backends.spark.source import SparkSource
from anon.config import Config
from anon.cube import Cube, Domain, Encoder
from anon.recoding.levels import AnyRecoding
from anon.recoding.tree import ColumnLabels
from anon.release import WrittenRelease, WrittenValues, package
from anon.release.bounds import ColumnBounds, bounds_of, kinds_of, label_columns, label_types
from anon.release.bucketized import COUNT, GROUP
from anon.release.files import label_type, runs, types_of, value_array
from anon.release.generalized import Layout
from anon.source import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write(source: SparkSource, cube: Cube, recoding: AnyRecoding, config: Config, folder: Path) -> WrittenRelease:
    """Write the parts of the release and its description into the folder, which the executors must have too."""
    sensitive = [cube.domain(column.name) for column in source.sensitive]
    release = SparkRelease(source, cube, recoding, sensitive, config, folder, parts_of(recoding.people))
    return release.generalized() if config.release.form == "generalized" else release.bucketized()


@dataclass(frozen=True)
class SparkRelease:
    """One release under way."""

    source: SparkSource
    cube: Cube
    recoding: AnyRecoding
    sensitive: list[Domain]
    config: Config
    folder: Path
    part: Any

    @property
    def groups(self) -> GroupParts:
        return GroupParts(self.recoding.people, self.part)

    def generalized(self) -> WrittenRelease:
        source, path = self.source, self.folder / "release.parquet"
        layout = Layout.from_source(source, self.recoding, self.sensitive, self.config)
        form = GeneralizedForm(layout.schema, [column.name for column in source.quasi_identifiers], layout)
        rows = write_table(self._rows(self.sensitive, source.keep), path, form, self.groups)
        fields = package.labels(source.quasi_identifiers, "quasi-identifier", layout.bounds)
        fields += package.values(source.sensitive, "sensitive") + package.kept(source.keep, self.config.columns)
        self._describe([self._resource(path, fields, rows)])
        as_they_are = [*source.sensitive, *source.keep]
        types, bounds = label_types(layout.bounds) | types_of(source, as_they_are), kinds_of(layout.bounds)
        return WrittenRelease(path, rows, self.recoding.groups, types, form.labelled, bounds=bounds)

    def bucketized(self) -> WrittenRelease:
        source, qi, values = self.source, self.folder / "qi.parquet", self.folder / "sensitive.parquet"
        labelled = LabelledForm.of(source, self.recoding, self.config)
        people = self._rows([], source.keep) if source.keep else self._people()
        rows = write_table(people, qi, labelled, self.groups)
        counted = CountedForm.of(source, self.sensitive[0])
        held = write_table(self._rows(self.sensitive, []), values, counted, self.groups)
        fields = package.labels(source.quasi_identifiers, "quasi-identifier", labelled.bounds)
        fields += [*package.kept(source.keep, self.config.columns), GROUP]
        held_fields = [GROUP, *package.values(source.sensitive, "sensitive"), COUNT]
        self._describe([self._resource(qi, fields, rows), self._resource(values, held_fields, held)])
        group = {"group": "BIGINT"}
        types = label_types(labelled.bounds) | types_of(source, source.keep) | group
        held_types = group | types_of(source, source.sensitive) | {"count": "BIGINT"}
        held_values, bounds = WrittenValues(values, held_types), kinds_of(labelled.bounds)
        return WrittenRelease(qi, rows, self.recoding.groups, types, labelled.labelled, held_values, bounds=bounds)

    def _resource(self, path: Path, fields: list[dict[str, str]], rows: int) -> dict[str, Any]:
        parts = [f"{path.name}/{part_name(number)}" for number in range(self.groups.parts)]
        return package.resource(path, fields, rows) | {"path": parts}

    def _describe(self, resources: list[dict[str, Any]]) -> None:
        nulls = self.source.left_out.individuals
        package.write_package(self.folder, self.config, resources, self.recoding, nulls, package.cells(self.recoding))

    def _rows(self, sensitive: list[Domain], keep: list[Column]) -> DataFrame:
        """Return (part, group, sensitive codes, kept values, number of rows). Without kept columns the records hold
        all of it. Those who are suppressed are left out."""
        source, recoding = self.source, self.recoding
        codes = [("part", pa.int32()), ("g", pa.int64()), *((f"s{i}", pa.int32()) for i in range(len(sensitive)))]
        kept = [(column.alias, source.types[column.alias]) for column in keep]
        schema = pa.schema([*codes, *kept, ("n", pa.int64())])
        if keep:
            coded = [*source.quasi_identifiers, *source.sensitive[: len(sensitive)]]
            encoder = Encoder(coded, [*recoding.domains, *sensitive])
            given = executors.Broadcast(source.spark, (encoder, recoding, self.part, schema))
            return executors.map_rows(source.select([*coded, *keep]), _kept_rows, given, schema)
        records = self.cube.records
        assert isinstance(records, SparkRecords)
        places = records.width, self.cube.people_at, len(sensitive)
        given = executors.Broadcast(source.spark, (places, recoding, self.part, schema))
        return executors.map_rows(records.frame, _counted_rows, given, schema)

    def _people(self) -> DataFrame:
        """Return (part, group, number of rows): all rows of a group with labels and without kept columns are the
        same."""
        spark, groups = self.source.spark, self.groups
        schema = pa.schema([("part", pa.int32()), ("g", pa.int64()), ("n", pa.int64())])
        numbers = spark.range(0, groups.parts, 1, min(groups.parts, spark.sparkContext.defaultParallelism))
        return executors.map_rows(numbers, _people_rows, executors.Broadcast(spark, (groups, schema)), schema)


@dataclass(frozen=True)
class GeneralizedForm(Form):
    """Rows of (group, sensitive codes, kept values) as the generalized form has them."""

    layout: Layout

    def table(self, rows: pa.Table) -> pa.Table:
        return self.layout.table(rows, *runs(rows.column(0).to_numpy()))


@dataclass(frozen=True)
class LabelledForm(Form):
    """Rows of (group, kept values) as the first table of the bucketized form has them."""

    labels: list[ColumnLabels]
    bounds: list[ColumnBounds]

    @classmethod
    def of(cls, source: SparkSource, recoding: AnyRecoding, config: Config) -> LabelledForm:
        names, types, bounds = [c.name for c in source.quasi_identifiers], source.types, bounds_of(config, recoding)
        fields = [
            field for own in bounds for field in (pa.field(own.column, label_type("parquet")), *own.schema_fields)
        ]
        fields += [pa.field(column.name, types[column.alias]) for column in source.keep]
        return cls(pa.schema([*fields, pa.field("group", pa.int64())]), names, recoding.labels, bounds)

    def table(self, rows: pa.Table) -> pa.Table:
        alike = runs(rows.column(0).to_numpy())
        columns = label_columns(self.labels, self.bounds, *alike)
        return pa.table([*columns, *rows.columns[1:], rows.column(0)], names=self.schema.names).cast(self.schema)


@dataclass(frozen=True)
class CountedForm(Form):
    """Rows of (group, sensitive code, how often) as the second table of the bucketized form has them."""

    sensitive: Domain
    counts = True

    @classmethod
    def of(cls, source: SparkSource, sensitive: Domain) -> CountedForm:
        (column,) = source.sensitive
        kind = source.types[column.alias]
        return cls(pa.schema([("group", pa.int64()), (column.name, kind), ("count", pa.int64())]), [], sensitive)

    def table(self, rows: pa.Table) -> pa.Table:
        values = value_array(self.sensitive, rows.column(1).to_numpy())
        return pa.table([rows.column(0), values, rows.column(2)], names=self.schema.names).cast(self.schema)


def _kept_rows(given: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    encoder, recoding, part, schema = given
    columns, coded = len(recoding.domains), len(encoder.domains)
    for batch in batches:
        codes = encoder.codes(batch)
        group = recoding.assign(codes[:columns]).astype(np.int64)
        of_part = part[np.minimum(group, len(part) - 1)].astype(np.int32)
        values = [pa.array(own.astype(np.int32)) for own in codes[columns:]]
        ends = [*batch.columns[coded:], pa.array(np.ones(len(group), np.int64))]
        rows = pa.record_batch([pa.array(of_part), pa.array(group), *values, *ends], schema=schema)
        yield rows.filter(pa.array(group < recoding.groups)) if recoding.suppressed else rows


def _counted_rows(given: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows made from records: equal ones of a batch are counted here already."""
    (width, people_at, sensitive), recoding, part, schema = given
    columns = len(recoding.domains)
    for codes in unpacked(batches, width):
        group = recoding.assign(codes[:columns]).astype(np.int64)
        people = np.ones(len(group), np.int64)
        if people_at >= 0:
            people = codes[people_at] + (codes[people_at + 1].astype(np.int64) << 16)
        keys = [group, *codes[columns : columns + sensitive].astype(np.int32)]
        order = np.lexsort(keys[::-1])
        order = order[: int((group < recoding.groups).sum())]  # those who are suppressed come last
        if not len(order):
            continue
        keys = [key[order] for key in keys]
        first = np.flatnonzero(np.append(True, np.any([key[1:] != key[:-1] for key in keys], axis=0)))
        listed = [pa.array(key[first]) for key in keys]
        counts = pa.array(np.add.reduceat(people[order], first))
        of_part = pa.array(part[keys[0][first]].astype(np.int32))
        yield pa.record_batch([of_part, *listed, counts], schema=schema)


def _people_rows(given: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    groups, schema = given
    for number in (number for batch in batches for number in batch.column(0).to_pylist()):
        first, last = groups.of(number)
        columns = np.full(last - first, number, np.int32), np.arange(first, last), groups.people[first:last]
        yield pa.record_batch([pa.array(column) for column in columns], schema=schema)
