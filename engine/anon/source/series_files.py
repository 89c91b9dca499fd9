"""The files of a series as one table: a folder whose tables are named like parts, `part-000001.parquet` or the pair
`qi-000001.parquet` and `sensitive-000001.parquet`, each a file or, from a cluster, a folder of files. Groups of
different parts are different groups, so the table has the number of the part of each row in a column of its own."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from anon.core.database import Database, quote
from anon.errors import SourceError
from anon.source.files import register
from anon.source.tables import data_files

PART = re.compile(r"(part|qi|sensitive)-(\d{6})\.(?:parquet|csv)")
Parts = dict[int, Path]  # the file of each part, or a folder of files, by its number


def series_tables(table: Any) -> dict[str, Parts]:
    """Return the files of a series by table: `part`, or `qi` and `sensitive`. Nothing for any other table: the files of
    one table from a cluster are numbered from 0 on."""
    if not isinstance(table, (str, os.PathLike)) or not Path(table).is_dir():
        return {}
    found: dict[str, Parts] = {}
    for file in data_files(Path(table)):
        own = file if file.parent == Path(table) else file.parent
        if (named := PART.fullmatch(own.name)) is None or own.parent != Path(table):
            return {}
        found.setdefault(named[1], {})[int(named[2])] = own
    if any(0 in parts for parts in found.values()):
        return {}
    if set(found) not in ({"part"}, {"qi", "sensitive"}, set()):
        raise SourceError(f"{table}: parts of different forms; a series has `part`, or `qi` and `sensitive`")
    if "qi" in found and found["qi"].keys() != found["sensitive"].keys():
        raise SourceError(f"{table}: parts of `qi` and `sensitive` that do not belong together")
    return found


def register_parts(
    database: Database, name: str, parts: Parts, spill: Path, as_text: Collection[str] = ()
) -> tuple[list[str], str]:
    """Make a view over the parts of a table; return the names of its columns, and the one with the number of the
    part."""
    names: dict[int, list[str]] = {}
    for number, file in parts.items():
        names[number] = register(database, f"{name}_{number}", file, spill, as_text)
    first = next(iter(names.values()))
    if any(sorted(own) != sorted(first) for own in names.values()):
        raise SourceError("parts of a series that do not have the same columns")
    part = "part"
    while part.lower() in {column.lower() for column in first}:
        part += "_"
    listed = ", ".join(map(quote, first))
    rows = [f"SELECT {listed}, {number} AS {quote(part)} FROM {name}_{number}" for number in parts]
    database.execute(f"CREATE VIEW {name} AS {' UNION ALL '.join(rows)}")
    return first, part
