"""Writes what may be published: a second stream over the source puts every row in its group by the recoding, DuckDB
brings the rows into canonical order (spilling where it must), and the files are written in row groups of a fixed
size. Their bytes are a function of what is published: no metadata of the source, and dictionaries with only the
values that occur."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from anon.config import Config
from anon.cube import Domain, encoded
from anon.database import translated
from anon.errors import SourceError
from anon.recoding import ColumnLabels, Recoding
from anon.source import Source

ROW_GROUP = 131_072  # rows; a constant of the format, so that the bytes do not depend on any limit
GRAMMAR = (
    "Quasi-identifiers are published as text labels of cells. `*`: not published. A value by itself: the cell holds "
    "that value only. `20-34`, `-5..3` and `2024-01-01..2024-03-31`: whole numbers and days, both ends included. "
    "`[1.5,2.25)`: numbers from the first up to but not including the second. `<=19`, `<1.5` and `>=85`: open ends. "
    "`{a|b}`: one of these values; a backslash stands before |, {, } and \\ inside a value. `null|` before a label: or "
    "missing. `not null`: any value that is not missing. Labels of hierarchies are the names of their nodes. A missing "
    "label: the value is missing."
)


@dataclass(frozen=True)
class Layout:
    """The columns of a generalized release and how to fill them from group numbers and codes."""

    names: list[str]
    labels: list[ColumnLabels]
    sensitive: list[Domain]
    keep: int

    @classmethod
    def of(cls, source: Source, recoding: Recoding, sensitive: list[Domain]) -> Layout:
        names = [c.name for c in (*source.quasi_identifiers, *source.sensitive, *source.keep)]
        return cls(names, recoding.labels, sensitive, len(source.keep))

    def table(self, rows: pa.Table) -> pa.Table:
        """Rows of (group, sensitive codes, kept values) as they are published."""
        group = rows.column(0).to_numpy()
        columns = [_label_array(labels, group) for labels in self.labels]
        for index, domain in enumerate(self.sensitive):
            columns.append(_value_array(domain, rows.column(1 + index).to_numpy()))
        columns += [rows.column(1 + len(self.sensitive) + index) for index in range(self.keep)]
        return pa.table(columns, names=self.names)


def _label_array(labels: ColumnLabels, group: NDArray[np.uint32]) -> pa.DictionaryArray:
    """Labels as a dictionary of those that occur here, in order; pyarrow would write every entry of a larger one."""
    used, index = np.unique(labels.of_group[group], return_inverse=True)
    words = [labels.labels[code] for code in used]
    mask = np.array([word is None for word in words], bool)[index]
    missing = sum(word is None for word in words)  # at most one, and then the first
    return pa.DictionaryArray.from_arrays(
        pa.array(index.astype(np.int32) - missing, mask=mask), pa.array(words[missing:], pa.string())
    )


def _value_array(domain: Domain, codes: NDArray[np.uint16]) -> pa.Array:
    index = codes.astype(np.int64) - domain.null
    return domain.values.take(pa.array(index, mask=index < 0))


def write(source: Source, recoding: Recoding, sensitive: list[Domain], config: Config, folder: Path) -> Path:
    """Writes the generalized release into the folder and returns the file's path."""
    layout = Layout.of(source, recoding, sensitive)
    path = folder / f"release.{config.release.format}"
    seen = np.zeros(recoding.groups, np.int64)
    writer: Any = None
    with translated("writing the release"):
        for rows in _row_groups(_ordered(source, recoding, sensitive)):
            seen += np.bincount(rows.column(0).to_numpy(), minlength=recoding.groups)
            table = layout.table(rows)
            if writer is None:
                writer = _writer(path, table.schema)
            _write(writer, table)
        if writer is not None:
            writer.close()
    if not np.array_equal(seen, recoding.people):
        raise SourceError("the source changed between two passes over it; run again when it is complete")
    return path


def _ordered(source: Source, recoding: Recoding, sensitive: list[Domain]) -> Iterator[pa.RecordBatch]:
    """The published rows in canonical order as (group, sensitive codes, kept values). Without kept columns equal rows
    are counted first and repeated afterwards, which is cheaper than sorting them."""
    con = source.con.cursor()
    codes = ["g", *(f"s{i}" for i in range(len(sensitive)))]
    names = codes + [column.alias for column in source.keep]
    con.register("published_rows", _grouped(source, recoding, sensitive))
    if source.keep:
        listed, order = ", ".join(names), ", ".join(f"{name} NULLS FIRST" for name in names)
        yield from con.sql(f"SELECT {listed} FROM published_rows ORDER BY {order}").to_arrow_reader(ROW_GROUP)
        return
    listed = ", ".join(names)
    counted = f"SELECT {listed}, count(*) AS n FROM published_rows GROUP BY {listed} ORDER BY {listed}"
    for batch in con.sql(counted).to_arrow_reader(ROW_GROUP):
        yield from _repeated(batch)


def _repeated(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Each row as often as its last column says, in pieces of bounded size."""
    ends = np.cumsum(batch.column(batch.num_columns - 1).to_numpy())
    rows = batch.select(range(batch.num_columns - 1))
    for start in range(0, int(ends[-1]) if len(ends) else 0, ROW_GROUP):
        wanted = np.arange(start, min(start + ROW_GROUP, int(ends[-1])))
        yield rows.take(pa.array(np.searchsorted(ends, wanted, side="right")))


def _grouped(source: Source, recoding: Recoding, sensitive: list[Domain]) -> pa.RecordBatchReader:
    """The source's rows as (group, sensitive codes, kept values), in the order they are read."""
    columns = [*source.quasi_identifiers, *source.sensitive, *source.keep]
    domains = [*recoding.domains, *sensitive]
    first_kept = len(domains)
    schema = pa.schema(
        [("g", pa.uint32()), *((f"s{i}", pa.uint16()) for i in range(len(sensitive)))]
        + [(column.alias, source.types[column.alias]) for column in source.keep]
    )

    def batches() -> Iterator[pa.RecordBatch]:
        for batch, codes in encoded(source, columns, domains):
            group = recoding.assign(codes[:, : len(recoding.domains)])
            values = [pa.array(codes[:, len(recoding.domains) + i].copy()) for i in range(len(sensitive))]
            kept = [batch.column(first_kept + i) for i in range(len(source.keep))]
            yield pa.record_batch([pa.array(group), *values, *kept], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _row_groups(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The same rows in tables of exactly ROW_GROUP rows, the last one shorter."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        while rows >= ROW_GROUP:
            table = pa.Table.from_batches(held)
            yield table.slice(0, ROW_GROUP).combine_chunks()
            held, rows = table.slice(ROW_GROUP).to_batches(), rows - ROW_GROUP
    if rows:
        yield pa.Table.from_batches(held).combine_chunks()


def _writer(path: Path, schema: pa.Schema) -> Any:
    if path.suffix == ".csv":
        return pyarrow.csv.CSVWriter(path, _plain(schema))
    return pq.ParquetWriter(path, schema, compression="zstd", version="2.6", store_schema=False)


def _write(writer: Any, table: pa.Table) -> None:
    if isinstance(writer, pyarrow.csv.CSVWriter):
        writer.write_table(table.cast(_plain(table.schema)))
    else:
        writer.write_table(table, row_group_size=ROW_GROUP)


def _plain(schema: pa.Schema) -> pa.Schema:
    """The schema with text in place of dictionaries."""
    return pa.schema([(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type) for f in schema])


FRICTIONLESS = {
    "integer": "integer",
    "number": "number",
    "decimal": "number",
    "date": "date",
    "timestamp": "datetime",
    "boolean": "boolean",
}


def write_datapackage(source: Source, recoding: Recoding, config: Config, path: Path, suppressed: int) -> None:
    """The Frictionless description for those who receive the release: nothing about where it came from."""
    fields = [{"name": c.name, "type": "string", "role": "quasi-identifier"} for c in source.quasi_identifiers]
    for role, columns in (("sensitive", source.sensitive), ("kept", source.keep)):
        fields += [{"name": c.name, "type": FRICTIONLESS.get(c.kind, "string"), "role": role} for c in columns]
    rows = int(recoding.people.sum())
    resource = {
        "name": "release",
        "path": path.name,
        "format": config.release.format,
        "schema": {"fields": fields, "missingValues": [""]},
        "rows": rows,
    }
    package = {
        "name": "release",
        "profile": "tabular-data-package",
        "resources": [resource],
        "labels": GRAMMAR,
        "cells": {d.column: _levels_used(d, recoding, j) for j, d in enumerate(recoding.domains)},
        "groups": recoding.groups,
        "suppressed_share": suppressed / (rows + suppressed),
        "criteria": config.original["privacy"],
    }
    text = json.dumps(package, indent=2, ensure_ascii=False) + "\n"
    (path.parent / "datapackage.json").write_text(text, encoding="utf-8")


def _levels_used(domain: Domain, recoding: Recoding, j: int) -> dict[str, Any]:
    """How many different cells a column is published in; for a hierarchy also its levels (0: the values)."""
    facts: dict[str, Any] = {"labels": len(recoding.labels[j].labels)}
    if domain.tree is not None:
        published = set(recoding.labels[j].labels)
        levels = {int(level) for level, label in zip(domain.tree.level, domain.tree.label) if label in published}
        facts["levels"] = sorted(levels)
    return facts
