"""Register Parquet files and frames as one table of DuckDB: which files a path stands for, Parquet as it is, any
Arrow-speaking frame. Nothing here knows what a column is for."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import pyarrow as pa

from anon.core.database import Database, file_list, in_utf8, literal, quote, translated
from anon.errors import SourceError
from anon.source.cells import ANY_DATE, CSV_TYPES
from anon.source.requirements import Aggregate, Rows

FORMATS = (".parquet", ".csv")  # of releases
KINDS = {  # of sources, by how their names end
    ".parquet": "Parquet",
    ".csv": "CSV",
    ".tsv": "CSV",
    ".txt": "CSV",
    ".jsonl": "JSON lines",
    ".ndjson": "JSON lines",
    ".arrow": "Arrow",
    ".feather": "Arrow",
    ".ipc": "Arrow",
    ".xlsx": "Excel",
}
COMPRESSED = {".gz": "gzip", ".zst": "zstd"}
PARQUET_BEGINS = b"PAR1"
Take = Callable[[list[str]], list[str]]  # of the columns that a table has, those that are wanted


@dataclass(frozen=True)
class Registered:
    """A registered table: the names of its columns as they are written in the source, and from what the view reads
    each of its own. A query on the view binds all of them, one on a part binds that part."""

    names: list[str]
    base: str
    sql: dict[str, str]

    @classmethod
    def from_view(cls, database: Database, view: str) -> Registered:
        names = list(describe(database, view))
        return cls(names, view, {name: quote(name) for name in names})

    def part(self, columns: Iterable[str]) -> str:
        """Return the SQL for some columns of the table."""
        return f"(SELECT {', '.join(f'{self.sql[name]} AS {quote(name)}' for name in columns)} FROM {self.base})"


def resolve(path: str) -> list[Path]:
    """Return the files behind a path, a glob or a folder, in the order of their names."""
    if Path(path).is_dir():
        if not (found := data_files(Path(path))):
            raise SourceError(f"{path}: the folder holds no file that is named {', '.join(KINDS)}")
        return _once(_plain(found))
    if Path(path).exists():
        return _plain([Path(path)])
    matches = {Path(match) for match in glob.glob(path, recursive=True)}  # noqa: PTH207
    found = sorted({file for match in matches for file in (data_files(match) if match.is_dir() else [match])})
    if not found:
        raise SourceError(f"{path}: no such file, and no file matches it as a pattern")
    return _once(_plain(found))


def _plain(files: list[Path]) -> list[Path]:
    """Return the files; SourceError if one is a pipe or a device, which a second pass would wait for forever, or if
    its name cannot be written in SQL."""
    if unnamed := [file for file in files if not in_utf8(file)]:
        raise SourceError(f"{unnamed[0]}: its path is not in UTF-8; rename it")
    if other := [file for file in files if file.exists() and not file.is_file()]:
        raise SourceError(f"{other[0]}: it is not a file but a pipe, a socket or a device; copy it to a file first")
    return files


def _once(files: list[Path]) -> list[Path]:
    """Return the files; SourceError if one is there under two names: people whose rows are read twice hide behind
    themselves."""
    seen: dict[tuple[int, int], Path] = {}
    for file in filter(Path.exists, files):
        about = file.stat()
        first = seen.setdefault((about.st_dev, about.st_ino), file)
        if first is not file:
            raise SourceError(f"{first} and {file} are one file, whose rows would count twice; choose one by a pattern")
    return files


def data_files(folder: Path) -> list[Path]:
    """Return the tables anywhere in a folder. Names that begin with a dot or an underscore are other programs' notes,
    and those that end in .txt people's."""
    return sorted(
        file
        for file in folder.rglob("*")
        if kind_of(file) is not None
        and ".txt" not in file.suffixes
        and file.is_file()
        and not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)
    )


def kind_of(path: PurePath) -> str | None:
    """Return the kind of a file by its name; None if it has another.

    >>> kind_of(Path("a.csv")), kind_of(Path("a.jsonl.GZ")), kind_of(Path("a.parquet.gz")), kind_of(Path("a.doc"))
    ('CSV', 'JSON lines', None, None)
    """
    if path.suffix.lower() in COMPRESSED:
        kind = KINDS.get(PurePath(path.stem).suffix.lower())
        return kind if kind in ("CSV", "JSON lines") else None
    return KINDS.get(path.suffix.lower())


def bucketized_pair(table: Any) -> tuple[Any, Any] | None:
    """Return the quasi-identifiers and the sensitive values of a bucketized table: two frames or paths, or a folder
    with `qi` and `sensitive`, each a Parquet or CSV file or a folder of parts. None for any other table."""
    if isinstance(table, tuple) and len(table) == 2:
        return table
    if not isinstance(table, (str, os.PathLike)) or not Path(table).is_dir():
        return None
    folder, names = Path(table), ("qi", "sensitive")
    there = [[folder / f"{name}{end}" for end in FORMATS if (folder / f"{name}{end}").exists()] for name in names]
    if not any(there):
        return None
    for name, found in zip(names, there):
        if len(found) != 1:
            what = "more than one" if found else "no"
            raise SourceError(f"{folder}: {what} table `{name}`; a bucketized folder holds one qi and one sensitive")
    (qi,), (sensitive,) = there
    own = {qi, sensitive, qi.with_stem("counterfeits")}
    more = [file for file in data_files(folder) if not own & {file, *file.parents}]
    if more:
        raise SourceError(f"{folder}: {len(more):,} more tables beside {qi.name} and {sensitive.name}")
    return qi, sensitive


def stat(paths: list[Path]) -> list[tuple[str, int, str]]:
    """Return what each file is known by: its name, its size, and when its content and its inode changed. Programs can
    set the first time back, but not the second. Inode numbers are left out: some network mounts renumber files."""
    marks = []
    for path in paths:
        with translated(f"reading {path}"):
            about = path.stat()
        marks.append((str(path), about.st_size, f"{about.st_mtime_ns}-{about.st_ctime_ns}"))
    return marks


def register_parquet(database: Database, name: str, paths: list[Path]) -> Registered:
    files = file_list(paths)
    _check_same_columns(database, files)
    base = f"read_parquet({files}, hive_partitioning = false)"
    database.execute(f"CREATE VIEW {name} AS SELECT * FROM {base}")
    schema = f"SELECT name, num_children FROM parquet_schema({file_list(paths[:1])})"
    names = list(_top_level(database.query(schema).fetchall()))
    return Registered(names, base, {column: quote(column) for column in describe(database, name)})


def narrow(database: Database, name: str, paths: list[Path], columns: list[str]) -> None:
    """Restrict the view over Parquet files to some columns. Every query binds all that a view has, which takes longer
    than to read them where there are thousands."""
    listed = ", ".join(map(quote, columns))
    rows = f"SELECT {listed} FROM read_parquet({file_list(paths)}, hive_partitioning = false)"
    with translated(f"reading {paths[0]}"):
        database.execute(f"CREATE OR REPLACE VIEW {name} AS {rows}")


def _top_level(elements: list[tuple[str, int | None]]) -> Iterator[str]:
    """Return the columns of a Parquet schema, which lists every node before its children; the first is the root.

    >>> list(_top_level([("root", 2), ("a", 1), ("list", None), ("b", None)]))
    ['a', 'b']
    """
    inside = 0
    for name, children in elements[1:]:
        if not inside:
            yield name
        inside = max(inside - 1, 0) + (children or 0)


def _check_same_columns(database: Database, files: str) -> None:
    """Refuse parts of one table that have other columns or types: DuckDB would assume those of the first part."""
    kind = "concat_ws(' ', name, type, type_length, num_children, converted_type, scale, precision, logical_type)"
    parts = database.query(
        f"SELECT file_name, list({kind} ORDER BY {kind}) FILTER (column_id > 0) AS columns "
        f"FROM parquet_schema({files}) GROUP BY file_name ORDER BY file_name"
    ).fetchall()
    first = parts[0]
    other = [Path(file).name for file, columns in parts[1:] if columns != first[1]]
    if other:
        more = f" and {len(other) - 1} more" if len(other) > 1 else ""
        raise SourceError(
            f"{other[0]}{more}: not the same columns and types as {Path(first[0]).name}; parts of a table must agree"
        )


def as_arrow(frame: Any) -> pa.Table:
    try:
        return frame if isinstance(frame, pa.Table) else pa.table(frame)
    except (TypeError, ValueError, pa.ArrowException):
        kind = type(frame).__name__
        raise SourceError(f"a table of type {kind} cannot be read; give an Arrow-speaking frame") from None


def register_frame(database: Database, name: str, frame: Any) -> list[str]:
    """Make a view over any Arrow-speaking frame, for this connection, and return the names of its columns."""
    table = as_arrow(frame)
    with translated(f"reading a table of type {type(frame).__name__}"):
        database.register(name, table)
    return list(table.column_names)


def describe(database: Database, name: str) -> dict[str, str]:
    """Return the columns of a registered table with their DuckDB types."""
    with translated("reading the source"):
        relation = database.query(f"SELECT * FROM {name}")
        return {column: str(kind) for column, kind in zip(relation.columns, relation.types)}


def one(database: Database, sql: str) -> tuple[Any, ...]:
    with translated("reading the source"):
        row: tuple[Any, ...] = database.one(sql)
        return row


def count_rows(database: Database, table: str) -> int:
    if not (rows := int(one(database, f"SELECT count(*) FROM {table}")[0])):
        raise SourceError("the table has no rows")
    return rows


def why_text(rows: Rows, column: str) -> str:
    """Return a hint at what may have made a column text although most of its values look otherwise: counts only."""
    patterns = {"numbers": CSV_TYPES["DOUBLE"], "dates": CSV_TYPES["DATE"], "any dates": ANY_DATE}
    asked = [Aggregate.counting(name, f"regexp_full_match(v, {literal(like)})") for name, like in patterns.items()]
    answers = rows.evaluate_distinct(column, [Aggregate("all", "count(*)"), *asked])
    total, numbers, dates, any_dates = (int(answers[name]) for name in ("all", *patterns))
    if 2 * numbers > total:
        text = "and one is enough to make a CSV column text; source.csv: {} names their lines"
        return f"{total - numbers:,} of them are not numbers, {text}"
    if 2 * any_dates > total:
        form = "the form that is read; source.csv.dates names others"
        return f"{total - dates:,} of them are not dates like 2024-03-09 (ISO 8601), {form}"
    return ""


def count_distinct(database: Database, table: str, sql: str) -> int:
    """Return how many different values an expression takes; null is one of them."""
    return int(one(database, f"SELECT count(*) FROM (SELECT DISTINCT {sql} FROM {table})")[0])
