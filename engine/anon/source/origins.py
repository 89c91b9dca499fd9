"""Where the rows of a run come from, before any of them is read: files, a frame, an object store or a database. Local
Parquet files and frames in memory are read where they are; everything else is copied once to the private spill, without
the columns that the config does not use, so that every later pass sees the same rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from anon.config import Columns, Config
from anon.config.private_release import promised
from anon.config.support import require_source
from anon.config.values import is_store
from anon.core.database import Database, quote
from anon.errors import SourceError
from anon.source.checks import check_present, named_columns
from anon.source.files import NO_OPTIONS, FileOptions, one_kind, register_files
from anon.source.lazy import is_lazy, register_lazy
from anon.source.tables import Take, as_arrow, describe, narrow, one, register_frame, resolve, stat
from anon.source.tokens import Tokens

if TYPE_CHECKING:
    import polars as pl

Mark = tuple[str, int, str]  # what a part of the source is known by: its name, its size and when or how it changed
CHANGED = "the source changed while it was being read; run again when it is complete"


class Origin(ABC):
    """A table that can be registered with DuckDB."""

    marks: list[Mark]  # of its parts; those of a database are known when it has been read
    in_place = False  # whether every pass reads it anew
    frame: pa.Table | None = None
    identifiers: Mapping[str, str] = MappingProxyType({})  # the registered column of each, or of its tokens, by name
    types: Mapping[str, str] = MappingProxyType({})  # of all of its columns; "" for those that are not read
    unnamed: list[str] | None = None  # columns that the config does not name and nobody reads, where they are known
    replaces_source = False  # whether the caller gave it in place of the config's source

    @abstractmethod
    def register(self, database: Database, name: str, columns: Columns, spill: Path) -> None:
        """Make it a table with at least the columns that are used; ConfigError if some are not there."""

    def check_unchanged(self) -> None:  # noqa: B027
        """Raise SourceError if it is no longer what was read."""


def wanted(columns: Columns, origin: Origin | None = None) -> Take:
    """Return, of the columns of a table, those that a run reads: not the identifiers, which only have to be there. The
    names of those that the config does not name are noted in `origin`."""
    used = set(columns.published()) | ({columns.individual} - {"row"}) | {columns.rows.by}

    def take(names: list[str]) -> list[str]:
        unnamed = check_present(columns, dict.fromkeys(names, ""), names)
        if origin is not None:
            origin.unnamed = unnamed
        return [name for name in names if name in used]

    return take


def fingerprint(database: Database, name: str, tokens: Collection[str] = ()) -> tuple[int, str]:
    """Return how many rows a table has, and a number that depends on them but not on their order, nor on tokens,
    which are others in every run."""
    listed = ", ".join(quote(column) for column in describe(database, name) if column not in tokens)
    rows, total = one(database, f"SELECT count(*), coalesce(sum(CAST(hash({listed}) AS HUGEINT)), 0) FROM {name}")
    return int(rows), str(total)


class Frame(Origin):
    """An Arrow-speaking frame."""

    replaces_source = True

    def __init__(self, frame: Any) -> None:
        self.frame, self.marks = as_arrow(frame), []

    def register(self, database: Database, name: str, columns: Columns, spill: Path) -> None:
        names = register_frame(database, name, self.frame)
        self.unnamed = check_present(columns, describe(database, name), names)
        self.identifiers = {column: column for column in columns.identifiers}


class LazyRows(Origin):
    """A LazyFrame of Polars. Like a frame, it cannot be recognized as the same by a later run."""

    replaces_source = True

    def __init__(self, frame: pl.LazyFrame) -> None:
        self.query, self.marks = frame, []

    def register(self, database: Database, name: str, columns: Columns, spill: Path) -> None:
        tokens = Tokens.from_columns(columns)
        register_lazy(database, name, self.query, spill, wanted(columns, self), tokens)
        self.identifiers = tokens.columns


class Files(Origin):
    """Files of this machine: a path, a glob or a folder."""

    in_place = True

    def __init__(self, path: str, options: FileOptions = NO_OPTIONS) -> None:
        self.path, self.files, self.options = path, resolve(path), options
        self.marks = stat(self.files)

    def register(self, database: Database, name: str, columns: Columns, spill: Path) -> None:
        tokens = Tokens.from_columns(columns)
        take = wanted(columns, self)
        files, options = self.files, self.options
        names = register_files(database, name, files, spill, take=take, tokens=tokens, options=options).names
        types = describe(database, name)
        self.types = dict.fromkeys(names, "") | types
        self.identifiers = tokens.columns
        if one_kind(self.files) == "Parquet":
            self.unnamed = check_present(columns, types, names)
            named = {column for _, column in named_columns(columns)}
            narrow(database, name, self.files, [column for column in types if column in named] or list(types)[:1])
            self.identifiers = {column: column for column in columns.identifiers}

    def check_unchanged(self) -> None:
        if self.marks != stat(resolve(self.path)):
            raise SourceError(CHANGED)


def origin_of(config: Config, table: Any) -> Origin:
    """Return the origin that the config names, or a frame in its place; of a trial a sample of it, and so of a
    differentially private run."""
    if isinstance(table, Origin):
        return table
    whole, promise = _whole(config, table), promised(config)
    if config.trial is not None:
        from anon.config.trial import share_of
        from anon.source.sample import Sampled

        return Sampled(whole, share_of(config.trial))
    if promise is not None and config.key:
        from anon.source.sample import Drawn

        return Drawn(whole, config, promise.drawn)
    return whole


def _whole(config: Config, table: Any) -> Origin:
    if table is not None:
        return LazyRows(table) if is_lazy(table) else Frame(table)
    require_source(config)
    source = config.source
    if source.duckdb is not None or source.postgres is not None:
        from anon.source import databases

        if source.duckdb is not None:
            return databases.DuckDBQuery(source.duckdb, config)
        assert source.postgres is not None
        from anon.source.postgres import PostgresQuery

        return PostgresQuery(source.postgres, config)
    if is_store(source.path):
        from anon.source.stores import StoredFiles

        return StoredFiles(str(source.path), FileOptions.from_config(source))
    return Files(str(source.path), FileOptions.from_config(source))
