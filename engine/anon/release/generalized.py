"""The generalized form of a release: one table of the labels of the quasi-identifiers, the sensitive values and the
kept columns. DuckDB sorts the rows into canonical order, and spills where it must."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anon.config import Config
from anon.core.arrays import Ints
from anon.core.database import Database, causes, translated
from anon.cube import Domain
from anon.recoding.assignment import Assignment
from anon.recoding.levels import AnyRecoding
from anon.recoding.outcome import Outcome
from anon.recoding.refined import RefinedRecoding
from anon.recoding.tree import ColumnLabels
from anon.release import package
from anon.release.assigned import AssignedRelease
from anon.release.bounds import ColumnBounds, bounds_of, kinds_of, label_columns, label_types
from anon.release.files import (
    READ,
    WrittenRelease,
    changed,
    in_order,
    label_type,
    repeated,
    row_groups,
    runs,
    text_bytes,
    text_bytes_of_codes,
    types_of,
    value_array,
    write_tables,
)
from anon.release.means import AggregationLoss, MeanColumn, create_means
from anon.release.rows import counted, in_groups
from anon.source import Source


@dataclass(frozen=True)
class Layout:
    """The columns of a generalized release and how to fill them from group numbers and codes."""

    schema: pa.Schema
    labels: list[ColumnLabels]
    sensitive: list[Domain]
    keep: int
    bounds: list[ColumnBounds]

    @classmethod
    def from_source(cls, source: Source, recoding: AnyRecoding, sensitive: list[Domain], config: Config) -> Layout:
        """Return the layout of the release of a source under a recoding."""
        types, bounds = source.types, bounds_of(config, recoding)
        # a column that cannot be null takes a third less time to read and to write
        fields = [
            field
            for own, labels in zip(bounds, recoding.labels)
            for field in (
                pa.field(own.column, label_type(config.release.format), labels.labels.null_count > 0),
                *own.schema_fields,
            )
        ]
        fields += [
            pa.field(column.name, types[column.alias], domain.null)
            for column, domain in zip(source.sensitive, sensitive)
        ]
        fields += [pa.field(column.name, types[column.alias]) for column in source.keep]
        return cls(pa.schema(fields), recoding.labels, sensitive, len(source.keep), bounds)

    def text_bytes(self, rows: pa.RecordBatch) -> Ints:
        """The bytes of the sensitive and the kept texts of each row."""
        found = text_bytes(rows)
        for index, domain in enumerate(self.sensitive):
            found += text_bytes_of_codes(domain, rows.column(1 + index).to_numpy())
        return found

    def table(self, rows: pa.Table, groups: NDArray[Any], lengths: Ints) -> pa.Table:
        """Return rows of (group, sensitive codes, kept values), in order of groups, as they are published; `groups` and
        `lengths` are the runs of equal groups."""
        columns = label_columns(self.labels, self.bounds, groups, lengths)
        for index, domain in enumerate(self.sensitive):
            columns.append(value_array(domain, rows.column(1 + index).to_numpy()))
        columns += [rows.column(1 + len(self.sensitive) + index) for index in range(self.keep)]
        return pa.table(columns, names=self.schema.names).cast(self.schema)


def write(
    source: Source, found: Outcome, sensitive: list[Domain], config: Config, folder: Path, spill: Path
) -> WrittenRelease:
    """Write the generalized release and its description into the folder; return its form."""
    recoding = found.recoding
    assert not isinstance(recoding, Assignment), "people with equal quasi-identifiers in several groups have no labels"
    layout = Layout.from_source(source, recoding, sensitive, config)
    path = folder / f"release.{config.release.format}"
    seen = np.zeros(recoding.groups, np.int64)
    failures: list[BaseException] = []
    means = MeanColumn.all_of(source.keep, config.columns, source.types)
    losses = dict.fromkeys(means, AggregationLoss())

    def tables(database: Database) -> Iterator[pa.Table]:
        ordered = _ordered(database, source, found, recoding, sensitive, list(means.values()), spill, failures)
        for rows in row_groups(ordered, layout.text_bytes):
            groups, lengths = runs(rows.column(0).to_numpy())
            seen[groups] += lengths
            losses.update({name: losses[name].add(rows, column) for name, column in means.items()})
            yield layout.table(rows, groups, lengths)

    with translated("writing the release"), causes(failures), closing(source.database.cursor()) as database:
        labels = [column.name for column in source.quasi_identifiers]
        write_tables(path, layout.schema, labels, tables(database))
    if not np.array_equal(seen, recoding.people):
        raise changed()
    rows, values = int(recoding.people.sum()), [*source.sensitive, *source.keep]
    fields = package.labels(source.quasi_identifiers, "quasi-identifier", layout.bounds)
    fields += package.values(source.sensitive, "sensitive") + package.kept(source.keep, config.columns)
    resource = package.resource(path, fields, rows)
    package.write_package(folder, config, [resource], recoding, source.left_out.individuals, package.cells(recoding))
    types = label_types(layout.bounds) | types_of(source, values)
    lost = {name: losses[name].facts(column.places) for name, column in means.items()}
    return WrittenRelease(
        path, rows, recoding.groups, types, labels, bounds=kinds_of(layout.bounds), lost_by_means=lost
    )


def _ordered(
    database: Database,
    source: Source,
    found: Outcome,
    recoding: AnyRecoding,
    sensitive: list[Domain],
    means: list[MeanColumn],
    spill: Path,
    failures: list[BaseException],
) -> Iterator[pa.RecordBatch]:
    """Yield the published rows in canonical order as (group, sensitive codes, kept values), followed by figures about
    means. Without kept columns the search has counted the rows already, and they only need to be repeated."""
    if source.keep:
        if isinstance(recoding, RefinedRecoding):
            rows = AssignedRelease(database, source, recoding.assignment, sensitive[0], spill, failures).in_groups()
        else:
            rows = in_groups(source, recoding, sensitive, source.keep, failures)
        database.register("published_rows", rows)
        names = rows.schema.names
        query = f"SELECT {', '.join(names)} FROM published_rows ORDER BY {in_order(names)}"
        query = create_means(database, "published_rows", names, means) if means else query
        yield from database.query(query).to_arrow_reader(source.within(READ, names))
        return
    assert found.counts is not None, "a recoding comes with the counts of its groups"
    for batch in counted(database, found.counts, len(sensitive)):
        yield from repeated(batch)
