"""Writes what may be published: a second stream over the source puts every row in its group by the recoding, DuckDB
brings the rows into canonical order (spilling where it must), and the files are written in row groups of a fixed
size. Their bytes are a function of what is published: no metadata of the source, and dictionaries with only the
values that occur."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from anon.config import Config
from anon.cube import Domain, Encoder
from anon.database import translated
from anon.errors import SourceError
from anon.levels import AnyRecoding
from anon.recoding import ColumnLabels
from anon.search.outcome import Outcome
from anon.source import Source, describe

COMPRESSION = "zstd"
ROW_GROUP = 131_072  # rows; a constant of the format, so that the bytes do not depend on any limit
GRAMMAR = (
    "Quasi-identifiers are published as text labels of cells. `*`: not published. A value by itself: the cell holds "
    "that value only. `20-34`, `-5..3` and `2024-01-01..2024-03-31`: whole numbers and days, both ends included. "
    "`[1.5,2.25)`: numbers from the first up to but not including the second. `<=19`, `<1.5` and `>=85`: open ends. "
    "`{a|b}`: one of these values; a backslash stands before |, {, } and \\ inside a value. `null|` before a label: or "
    "missing. `not null`: any value that is not missing. Labels of hierarchies are the names of their nodes. A missing "
    "label: the value is missing; in CSV it is an empty field without quotes, and an empty text is two quotes."
)


@dataclass(frozen=True)
class Written:
    """A release that was written, and what must be found in it; the verdict on its safety rests on none of that."""

    path: Path
    rows: int
    groups: int
    types: dict[str, str]  # DuckDB's types of the columns, in their order
    labels: dict[str, dict[str | None, int]]  # per quasi-identifier its labels, and rows with each
    checksum: int  # of the sensitive and kept values of all rows, in any order of rows


@dataclass(frozen=True)
class Layout:
    """The columns of a generalized release and how to fill them from group numbers and codes."""

    schema: pa.Schema
    labels: list[ColumnLabels]
    sensitive: list[Domain]
    keep: int

    @classmethod
    def of(cls, source: Source, recoding: AnyRecoding, sensitive: list[Domain], format: str) -> Layout:
        types = source.types
        label = pa.string() if format == "csv" else pa.dictionary(pa.int32(), pa.string())
        fields = [(column.name, label) for column in source.quasi_identifiers]
        fields += [(column.name, types[column.alias]) for column in (*source.sensitive, *source.keep)]
        return cls(pa.schema(fields), recoding.labels, sensitive, len(source.keep))

    def table(self, rows: pa.Table) -> pa.Table:
        """Rows of (group, sensitive codes, kept values), in order of groups, as they are published."""
        group = rows.column(0).to_numpy()
        first = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
        lengths = np.diff(np.append(first, len(group)))
        columns = [_label_array(labels, group[first], lengths) for labels in self.labels]
        for index, domain in enumerate(self.sensitive):
            columns.append(_value_array(domain, rows.column(1 + index).to_numpy()))
        columns += [rows.column(1 + len(self.sensitive) + index) for index in range(self.keep)]
        return pa.table(columns, names=self.schema.names).cast(self.schema)


def _label_array(labels: ColumnLabels, groups: NDArray[np.uint32], lengths: NDArray[np.int64]) -> pa.DictionaryArray:
    """The labels of runs of rows as a dictionary of those that occur here, in order; pyarrow would write every entry of
    a larger one."""
    used, index = np.unique(labels.of_group[groups], return_inverse=True)
    words = [labels.labels[code] for code in used]
    missing = sum(word is None for word in words)  # at most one, and then the first
    repeated = np.repeat(index.astype(np.int32) - missing, lengths)
    return pa.DictionaryArray.from_arrays(
        pa.array(repeated, mask=repeated < 0 if missing else None), pa.array(words[missing:], pa.string())
    )


def _value_array(domain: Domain, codes: NDArray[np.uint16]) -> pa.Array:
    index = codes.astype(np.int64) - domain.null
    return domain.values.take(pa.array(index, mask=index < 0))


def write(source: Source, found: Outcome, sensitive: list[Domain], config: Config, folder: Path) -> Written:
    """Writes the generalized release and its description into the folder."""
    recoding = found.recoding
    layout = Layout.of(source, recoding, sensitive, config.release.format)
    path = folder / f"release.{config.release.format}"
    seen = np.zeros(recoding.groups, np.int64)
    failures: list[BaseException] = []
    with (
        translated("writing the release"),
        _causes(failures),
        closing(source.con.cursor()) as con,
        _writer(path, layout) as writer,
        ThreadPoolExecutor(1) as beside,  # one row group is written while the next is made
    ):
        under_way = None
        for rows in _row_groups(_ordered(con, source, found, sensitive, failures)):
            seen += np.bincount(rows.column(0).to_numpy(), minlength=recoding.groups)
            table = layout.table(rows)
            if under_way is not None:
                under_way.result()
            under_way = beside.submit(writer.write_table, table)
        if under_way is not None:
            under_way.result()
    if not np.array_equal(seen, recoding.people):
        raise SourceError("the source changed between two passes over it; run again when it is complete")
    _write_datapackage(source, recoding, config, path)
    rows, told = int(recoding.people.sum()), _checksum(source, recoding)
    return Written(path, rows, recoding.groups, _types(source), _label_rows(recoding), told)


def _types(source: Source) -> dict[str, str]:
    """The columns of the release with the types that an outsider must find."""
    types = describe(source.con, Source.VIEW)
    labels = {column.name: "VARCHAR" for column in source.quasi_identifiers}
    return labels | {column.name: types[column.alias] for column in (*source.sensitive, *source.keep)}


def _label_rows(recoding: AnyRecoding) -> dict[str, dict[str | None, int]]:
    counted = {}
    for domain, labels in zip(recoding.domains, recoding.labels):
        rows = np.zeros(len(labels.labels), np.int64)
        np.add.at(rows, labels.of_group, recoding.people)
        counted[domain.column] = dict(zip(labels.labels, rows.tolist()))
    return counted


def _checksum(source: Source, recoding: AnyRecoding) -> int:
    """Of the source's rows, but for those who are suppressed."""
    wanted = [*source.sensitive, *source.keep]
    columns = [column.alias for column in wanted]
    if not recoding.suppressed or not columns:
        return int(source.query(f"SELECT {checksum(columns)} FROM {source.VIEW}")[0][0].as_py())
    schema = pa.schema([(name, source.types[name]) for name in columns])
    encoder = Encoder(source.quasi_identifiers, recoding.domains)

    failures: list[BaseException] = []

    def published() -> Iterator[pa.RecordBatch]:
        for batch in source.batches([*source.quasi_identifiers, *wanted]):
            kept = pa.array(recoding.assign(encoder.codes(batch)) < recoding.groups)
            rows = batch.select(range(len(recoding.domains), batch.num_columns)).filter(kept)
            yield pa.record_batch(rows.columns, schema=schema)

    rows = _fed(schema, published(), failures)
    with _causes(failures):
        (batch,) = source.stream(f"SELECT {checksum(columns)} FROM published_rows", {"published_rows": rows})
    return int(batch.column(0)[0].as_py())


def checksum(columns: list[str]) -> str:
    """SQL: a number that depends on the rows of these columns, but not on their order."""
    return f"CAST(sum(CAST(hash({', '.join(columns)}) AS HUGEINT)) AS VARCHAR)" if columns else "max('0')"


def _fed(schema: pa.Schema, batches: Iterator[pa.RecordBatch], failures: list[BaseException]) -> pa.RecordBatchReader:
    """A stream for DuckDB to read, which notes what goes wrong in it for `_causes`."""

    def noting() -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except BaseException as error:
            failures.append(error)
            raise

    return pa.RecordBatchReader.from_batches(schema, noting())


@contextmanager
def _causes(failures: list[BaseException]) -> Iterator[None]:
    """What goes wrong in a stream that DuckDB reads arrives as a failure of DuckDB: raises the cause in its place."""
    try:
        yield
    except Exception:
        if failures:
            raise failures[0] from None
        raise


def _ordered(
    con: duckdb.DuckDBPyConnection,
    source: Source,
    found: Outcome,
    sensitive: list[Domain],
    failures: list[BaseException],
) -> Iterator[pa.RecordBatch]:
    """The published rows in canonical order as (group, sensitive codes, kept values). Without kept columns the search
    has counted them already, and they only need to be repeated."""
    codes = ["g", *(f"s{i}" for i in range(len(sensitive)))]
    if source.keep:
        con.register("published_rows", _grouped(source, found.recoding, sensitive, failures))
        names = codes + [column.alias for column in source.keep]
        listed, order = ", ".join(names), ", ".join(f"{name} NULLS FIRST" for name in names)
        yield from con.sql(f"SELECT {listed} FROM published_rows ORDER BY {order}").to_arrow_reader(ROW_GROUP)
        return
    con.register("group_counts", pa.RecordBatchReader.from_batches(found.counts.schema, found.counts.batches()))
    listed = ", ".join(codes)
    counted = f"SELECT {listed}, sum(n)::BIGINT AS n FROM group_counts GROUP BY {listed} ORDER BY {listed}"
    for batch in con.sql(counted).to_arrow_reader(ROW_GROUP):
        yield from _repeated(batch)


def _repeated(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Each row as often as its last column says, in pieces of bounded size."""
    ends = np.cumsum(batch.column(batch.num_columns - 1).to_numpy())
    rows = batch.select(range(batch.num_columns - 1))
    for start in range(0, int(ends[-1]) if len(ends) else 0, ROW_GROUP):
        wanted = np.arange(start, min(start + ROW_GROUP, int(ends[-1])))
        yield rows.take(pa.array(np.searchsorted(ends, wanted, side="right")))


def _grouped(
    source: Source, recoding: AnyRecoding, sensitive: list[Domain], failures: list[BaseException]
) -> pa.RecordBatchReader:
    """The source's rows as (group, sensitive codes, kept values), in the order they are read."""
    columns = [*source.quasi_identifiers, *source.sensitive, *source.keep]
    domains = [*recoding.domains, *sensitive]
    encoder = Encoder(columns, domains)
    first_value, first_kept, types = len(recoding.domains), len(domains), source.types
    schema = pa.schema(
        [("g", pa.uint32()), *((f"s{i}", pa.uint16()) for i in range(len(sensitive)))]
        + [(column.alias, types[column.alias]) for column in source.keep]
    )

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in source.batches(columns):
            codes = encoder.codes(batch)
            group = recoding.assign(codes[:first_value])
            values = [pa.array(own) for own in codes[first_value:]]
            kept = [batch.column(first_kept + i) for i in range(len(source.keep))]
            rows = pa.record_batch([pa.array(group), *values, *kept], schema=schema)
            yield rows.filter(pa.array(group < recoding.groups)) if recoding.suppressed else rows

    return _fed(schema, batches(), failures)


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


def _writer(path: Path, layout: Layout) -> Any:
    """A writer of whole row groups for the path's format. Smallest and largest labels, as texts, would tell readers
    little, and take as long to find as everything else."""
    if path.suffix == ".csv":
        return pyarrow.csv.CSVWriter(path, layout.schema)
    values = layout.schema.names[len(layout.labels) :]
    return pq.ParquetWriter(
        path, layout.schema, compression=COMPRESSION, version="2.6", store_schema=False, write_statistics=values
    )


FRICTIONLESS = {
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "decimal": {"type": "number"},
    "date": {"type": "date"},
    "timestamp": {"type": "datetime", "format": "any"},
    "boolean": {"type": "boolean"},
}
DIALECT = {"delimiter": ",", "quoteChar": '"', "doubleQuote": True, "lineTerminator": "\n", "header": True}


def _write_datapackage(source: Source, recoding: AnyRecoding, config: Config, path: Path) -> None:
    """The Frictionless description for those who receive the release: nothing about where it came from."""
    rows = int(recoding.people.sum())
    resource = {
        "name": "release",
        "path": path.name,
        "format": config.release.format,
        "schema": {"fields": _fields(source), "missingValues": [""]},
        "rows": rows,
    }
    if config.release.format == "csv":
        resource |= {"profile": "tabular-data-resource", "encoding": "utf-8", "dialect": DIALECT}
    package = {
        "name": "release",
        "profile": "tabular-data-package" if config.release.format == "csv" else "data-package",
        "resources": [resource],
        "labels": GRAMMAR,
        "cells": {d.column: _cells(d, recoding, j) for j, d in enumerate(recoding.domains)},
        "groups": recoding.groups,
        "suppressed_share": recoding.suppressed / (rows + recoding.suppressed),
        "criteria": _without_files(config.original["privacy"]),
    }
    text = json.dumps(package, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    with translated("writing the release"):
        (path.parent / "datapackage.json").write_text(text, encoding="utf-8")


def _fields(source: Source) -> list[dict[str, str]]:
    fields = [{"name": c.name, "type": "string", "role": "quasi-identifier"} for c in source.quasi_identifiers]
    for role, columns in (("sensitive", source.sensitive), ("kept", source.keep)):
        fields += [{"name": c.name, **FRICTIONLESS.get(c.kind, {"type": "string"}), "role": role} for c in columns]
    return fields


def _without_files(value: Any) -> Any:
    """Criteria as written, but for the files they read in the house."""
    if isinstance(value, dict):
        return {key: _without_files(part) for key, part in value.items() if key != "file"}
    return [_without_files(part) for part in value] if isinstance(value, list) else value


def _cells(domain: Domain, recoding: AnyRecoding, j: int) -> dict[str, Any]:
    """How many different cells a column is published in; for a hierarchy also its levels (0: the values)."""
    facts: dict[str, Any] = {"labels": len(recoding.labels[j].labels)}
    if domain.tree is not None:
        facts["levels"] = recoding.levels_of(j)
    return facts
