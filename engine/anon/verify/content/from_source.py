"""Compute the expected content of a release from the source and the written recoding."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from anon.config import Columns, Config
from anon.config.support import exact_labels
from anon.core.database import causes, fed
from anon.core.memory import Memory
from anon.cube import Domain
from anon.recoding.assignment import Assignment
from anon.recoding.outcome import Outcome
from anon.recoding.refined import RefinedRecoding
from anon.source import Column, Source, describe
from anon.verify.content.applied import AppliedRecoding
from anon.verify.content.assigned import assigned_content
from anon.verify.content.fingerprint import Content, content_of, row_hash, total
from anon.verify.content.means import rows_with_means
from anon.verify.content.one_row_each import check_choice
from anon.verify.content.reading import read_recoding
from anon.verify.content.refined import refined_content


def expected(
    source: Source, config: Config, path: Path, found: Outcome, sensitive: list[Domain], memory: Memory
) -> Content:
    """Return the expected content of the release of a source under the recoding that was written to a path. Of the
    outcome of the search only an assignment is read, which is on disk beside its recoding.json."""
    check_choice(source, config)
    hashes, recoding = row_hashes(source, config), found.recoding
    if isinstance(recoding, Assignment):
        return assigned_content(source, recoding, sensitive[0], hashes)
    if isinstance(recoding, RefinedRecoding):
        return refined_content(source, config, recoding, sensitive[0], hashes)
    applied = read_recoding(path, source, config, recoding)
    source.database.limit(Memory(memory.total, memory.held + applied.nbytes))
    try:
        if config.columns.means:
            return _content_with_means(source, applied, hashes, config.columns)
        return _content(source, applied, hashes, labelled=not exact_labels(config))
    finally:
        source.database.limit(memory)
        source.check_unchanged()  # a difference that comes from the source is not the release's


def row_hashes(source: Source, config: Config) -> dict[str, str]:
    """Return SQL for the hash h of what is published of a row in addition to its labels; for a bucketized release
    without the sensitive value, whose hash is v."""
    types = describe(source.database, Source.VIEW)

    def hash_of(columns: list[Column]) -> str:
        return row_hash({column.alias: types[column.alias] for column in columns})

    if config.release.form == "generalized":
        return {"h": hash_of([*source.sensitive, *source.keep])}
    exact = source.quasi_identifiers if exact_labels(config) else []
    return {"h": hash_of([*exact, *source.keep]), "v": hash_of(source.sensitive)}


def _content(source: Source, applied: AppliedRecoding, hashes: dict[str, str], labelled: bool) -> Content:
    failures: list[BaseException] = []

    def rows(view: str, own: dict[str, str]) -> pa.RecordBatchReader:
        read = source.rows_of(applied.keys.select(view, own), tables=applied.keys.tables)
        schema = pa.schema([*applied.by.items(), *((name, pa.uint64()) for name in own)])
        return fed(schema, applied.batches(read, labelled), failures)

    by = ", ".join(applied.by)
    own, held = (hashes, {}) if source.multiplicity == "single" else ({"h": hashes["h"]}, {"v": hashes["v"]})
    given = applied.tables() | {"people": rows(source.people_view, own)}
    found = f"SELECT {by}, count(*) AS n, {_totals(own)} FROM people GROUP BY {by}"
    if held:
        given["held"] = rows(source.values_view, held)
        values = f"SELECT {by}, {_totals(held)} FROM held GROUP BY {by}"
        found = f"SELECT * FROM ({found}) LEFT JOIN ({values}) USING ({by})"
    query = content_of(applied.groups(found, labelled), applied.labels if labelled else [], list(hashes))
    with causes(failures):
        (batch,) = source.stream(query, given)
    return Content(*(column[0].as_py() for column in batch.columns))


def _content_with_means(source: Source, applied: AppliedRecoding, hashes: dict[str, str], columns: Columns) -> Content:
    """Do as `_content` for a generalized release with columns of means, which follow from all rows of a group."""
    failures: list[BaseException] = []
    kinds, types, by = describe(source.database, Source.VIEW), source.types, ", ".join(applied.by)
    names = [column.alias for column in (*source.sensitive, *source.keep)]
    read = source.rows_of(applied.keys.select(Source.VIEW, {name: name for name in names}), tables=applied.keys.tables)
    schema = pa.schema([*applied.by.items(), *((name, types[name]) for name in names)])
    rows = fed(schema, applied.batches(read, labelled=True), failures)
    aggregated = [(column.alias, columns.means[column.name]) for column in source.keep if column.name in columns.means]
    means = {alias: (spec, kinds[alias]) for alias, spec in aggregated}
    with causes(failures), rows_with_means(source.database, rows, list(applied.by), names, means) as people:
        hashed = f"SELECT {by}, {hashes['h']} AS h FROM ({people})"
        found = f"SELECT {by}, count(*) AS n, {_totals(hashes)} FROM ({hashed}) GROUP BY {by}"
        (batch,) = source.stream(content_of(applied.groups(found, True), applied.labels, ["h"]), applied.tables())
    return Content(*(column[0].as_py() for column in batch.columns))


def _totals(hashes: dict[str, str]) -> str:
    return ", ".join(f"{total(name)} AS {name}" for name in hashes)
