"""Files of any kind as one table of DuckDB: Parquet in place, every other kind copied to the spill. The end of its name
says what kind a file is of."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from anon.config import Csv
from anon.config import Source as SourceSpec
from anon.core.database import Database, translated
from anon.errors import ConfigError, SourceError
from anon.source.arrow_files import copy_arrow
from anon.source.csv_detection import Detected, detect
from anon.source.csv_files import register_csv
from anon.source.excel import copy_excel
from anon.source.json_lines import copy_json
from anon.source.lazy import is_lazy, register_lazy
from anon.source.tables import (
    KINDS,
    PARQUET_BEGINS,
    Registered,
    Take,
    kind_of,
    register_frame,
    register_parquet,
    resolve,
)
from anon.source.tokens import NO_TOKENS, Tokens

NOT_KNOWN = f"it is not named {', '.join(KINDS)}, and is no Parquet file under another name"


@dataclass(frozen=True)
class FileOptions:
    """How the files of a source are to be read, as far as the config says so."""

    csv: Csv | None = None
    sheet: str | None = None

    @classmethod
    def from_config(cls, source: SourceSpec) -> FileOptions:
        return cls(source.csv, source.sheet)

    def check(self, kind: str, first: PurePath) -> None:
        """Raise ConfigError for options that are about files of another kind."""
        if self.csv is not None and kind != "CSV":
            raise ConfigError.at("source.csv", f"options of CSV files for {first.name}", "a path to CSV files")
        if self.sheet is not None and kind != "Excel":
            raise ConfigError.at("source.sheet", f"a sheet of {first.name}", "a path to an Excel file")


NO_OPTIONS = FileOptions()


def register(database: Database, name: str, table: Any, spill: Path, as_text: Collection[str] = ()) -> list[str]:
    if isinstance(table, (str, os.PathLike)):
        return register_files(database, name, resolve(os.fspath(table)), spill, as_text).names
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
) -> Registered:
    """Make a view over Parquet files; others are copied once to the spill, but for columns that are not wanted and
    with tokens in place of identifiers. The result has the names of the columns as they are written in the files,
    which DuckDB changes where two are alike."""
    kind = one_kind(paths)
    options.check(kind, paths[0])
    with translated(f"reading {paths[0]}" + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")):
        if kind == "Parquet":
            return register_parquet(database, name, paths)
        if kind == "CSV":
            return register_csv(database, name, paths, spill, options.csv, as_text, take, tokens)
        folder = spill / f"{name}-copy"
        folder.mkdir(mode=0o700)
        if kind == "Arrow":
            copies, names = copy_arrow(paths, folder, take, tokens)
        elif kind == "Excel":
            copies, names = copy_excel(database, paths, folder / "sheet.parquet", options.sheet, take, tokens)
        else:
            copies, names = copy_json(database, paths, folder / "lines.parquet", take, tokens)
        return replace(register_parquet(database, name, copies), names=names)


def one_kind(paths: list[Path]) -> str:
    """Return the kind of all files; SourceError if one is of no known kind, or two are of different ones. A file of
    another name may be Parquet."""
    kinds = [kind_of(path) or ("Parquet" if _begins_as_parquet(path) else None) for path in paths]
    if None in kinds:
        raise SourceError(
            f"{paths[kinds.index(None)]}: {NOT_KNOWN}; "
            "a text file with commas, semicolons, tabs or bars between its fields may be named .csv"
        )
    found = sorted({str(kind) for kind in kinds})
    if len(found) > 1:
        raise SourceError(
            f"{paths[0]} and {len(paths) - 1} more: some are {found[0]} and some are {found[1]}; choose one kind"
        )
    return found[0]


def detected_files(
    database: Database, name: str, paths: list[Path], spill: Path, show_values: bool, sheet: str | None = None
) -> tuple[Registered, Detected | None]:
    """Do as `register_files`, with the options that CSV files show by themselves; return these too."""
    if one_kind(paths) != "CSV":
        return register_files(database, name, paths, spill, options=FileOptions(sheet=sheet)), None
    with translated(f"reading {paths[0]}"):
        return detect(database, name, paths, spill, show_values)


def _begins_as_parquet(path: Path) -> bool:
    with translated(f"reading {path}"), path.open("rb") as file:
        return file.read(len(PARQUET_BEGINS)) == PARQUET_BEGINS
