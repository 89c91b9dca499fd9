"""Files of any kind as one table of DuckDB: Parquet in place, CSV copied to the spill. The end of its name says what
kind a file is of."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anon.config import Csv
from anon.config import Source as SourceSpec
from anon.core.database import Database, translated
from anon.errors import ConfigError, SourceError
from anon.source.csv_detection import Detected, detect
from anon.source.csv_files import register_csv
from anon.source.lazy import is_lazy, register_lazy
from anon.source.tables import (
    FORMATS,
    PARQUET_BEGINS,
    Registered,
    Take,
    register_frame,
    register_parquet,
    resolve,
)
from anon.source.tokens import NO_TOKENS, Tokens


@dataclass(frozen=True)
class FileOptions:
    """How the files of a source are to be read, as far as the config says so."""

    csv: Csv | None = None

    @classmethod
    def from_config(cls, source: SourceSpec) -> FileOptions:
        return cls(source.csv)

    def check(self, paths: list[Path]) -> None:
        """Raise ConfigError for options that are about files of another kind."""
        if self.csv is not None and (other := [path for path in paths if not is_csv(path)]):
            raise ConfigError.at("source.csv", f"options of CSV files for {other[0].name}", "a path to CSV files")


NO_OPTIONS = FileOptions()


def is_csv(path: Path) -> bool:
    return path.suffix.lower() == ".csv"


def register(database: Database, name: str, table: Any, spill: Path, as_text: Collection[str] = ()) -> list[str]:
    if isinstance(table, (str, os.PathLike)):
        return register_files(database, name, resolve(os.fspath(table)), spill, as_text)
    if is_lazy(table):
        return register_lazy(database, name, table, spill)
    return register_frame(database, name, table)


def register_files(
    database: Database,
    name: str,
    paths: list[Path],
    spill: Path,
    as_text: Collection[str] = (),
    take: Take = list,
    tokens: Tokens = NO_TOKENS,
    options: FileOptions = NO_OPTIONS,
) -> list[str]:
    """Do as `registered_files`; return the names of the columns as they are written in the files, which DuckDB
    changes where two are alike."""
    return registered_files(database, name, paths, spill, as_text, take, tokens, options).names


def registered_files(
    database: Database,
    name: str,
    paths: list[Path],
    spill: Path,
    as_text: Collection[str] = (),
    take: Take = list,
    tokens: Tokens = NO_TOKENS,
    options: FileOptions = NO_OPTIONS,
) -> Registered:
    """Make a view over Parquet files; CSV files are copied once, typed by all of their values, into the spill, but
    for columns that are not wanted and with tokens in place of identifiers."""
    if other := [path for path in paths if not _is_known(path)]:
        raise SourceError(
            f"{other[0]}: neither a Parquet file nor named .csv, and no other kind can be read; "
            "a text file with commas, semicolons, tabs or bars between its fields may be named .csv"
        )
    kinds = {is_csv(path) for path in paths}
    if len(kinds) > 1:
        raise SourceError(f"{paths[0]} and {len(paths) - 1} more: some are CSV and some are not; choose one kind")
    options.check(paths)
    with translated(f"reading {paths[0]}" + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")):
        if kinds == {True}:
            return register_csv(database, name, paths, spill, options.csv, as_text, take, tokens)
        return register_parquet(database, name, paths)


def detected_files(
    database: Database, name: str, paths: list[Path], spill: Path, show_values: bool
) -> tuple[Registered, Detected | None]:
    """Do as `registered_files`, with the options that CSV files show by themselves; return these too."""
    if not all(map(is_csv, paths)):
        return registered_files(database, name, paths, spill), None
    with translated(f"reading {paths[0]}"):
        return detect(database, name, paths, spill, show_values)


def _is_known(path: Path) -> bool:
    """Return whether a file is named like Parquet or CSV, or has another name and begins as Parquet does."""
    if path.suffix.lower() in FORMATS:
        return True
    with translated(f"reading {path}"), path.open("rb") as file:
        return file.read(len(PARQUET_BEGINS)) == PARQUET_BEGINS
