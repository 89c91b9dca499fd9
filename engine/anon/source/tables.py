"""Register files and frames as one table of DuckDB: which files a path stands for, Parquet as it is, CSV typed by all
of its values, any Arrow-speaking frame. Nothing here knows what a column is for."""

from __future__ import annotations

import codecs
import csv
import glob
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from anon.core.database import Database, file_list, in_utf8, literal, quote, translated
from anon.errors import SourceError
from anon.source.lazy import is_lazy, register_lazy
from anon.source.many_columns import VECTOR, answers, stacked
from anon.source.requirements import Aggregate, Rows
from anon.source.tokens import NO_TOKENS, Tokens

SEPARATORS = ",;\t|"
FORMATS = (".parquet", ".csv")
PARQUET_BEGINS = b"PAR1"
EMPTY = "''"
BLOCK = 8 * 2**20  # bytes; under half of the 32 MB from which on DuckDB drops an unquoted last line without an error

# A CSV column has the first type that all its values are written like; a leading zero or a stray word keeps it text.
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_MOMENT = _DAY + r"[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
ANY_DATE = "[0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{1,4}"  # also 9.3.2024 and 03/09/24
Take = Callable[[list[str]], list[str]]  # of the columns that a table has, those that are wanted
CSV_TYPES = {
    "BIGINT": "-?(0|[1-9][0-9]{0,17})",
    "DOUBLE": r"-?(0|[1-9][0-9]{0,14})(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?",
    "DATE": _DAY,
    "TIMESTAMP": _MOMENT,
    "TIMESTAMPTZ": _MOMENT + "(Z|[-+][0-9]{2}(:?[0-9]{2})?)",
    "BOOLEAN": "true|false|True|False|TRUE|FALSE",
}


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
        if not (found := _data_files(Path(path))):
            raise SourceError(f"{path}: the folder holds no .parquet and no .csv file")
        return _once(_plain(found))
    if Path(path).exists():
        return _plain([Path(path)])
    matches = {Path(match) for match in glob.glob(path, recursive=True)}  # noqa: PTH207
    found = sorted({file for match in matches for file in (_data_files(match) if match.is_dir() else [match])})
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


def _data_files(folder: Path) -> list[Path]:
    """Return the tables anywhere in a folder. Names that begin with a dot or an underscore are other programs'
    notes."""
    return sorted(
        file
        for file in folder.rglob("*")
        if file.suffix.lower() in FORMATS
        and file.is_file()
        and not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)
    )


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
    more = [file for file in _data_files(folder) if not {qi, sensitive} & {file, *file.parents}]
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
) -> list[str]:
    """Do as `registered_files`; return the names of the columns as they are written in the files, which DuckDB
    changes where two are alike."""
    return registered_files(database, name, paths, spill, as_text, take, tokens).names


def registered_files(
    database: Database,
    name: str,
    paths: list[Path],
    spill: Path,
    as_text: Collection[str] = (),
    take: Take = list,
    tokens: Tokens = NO_TOKENS,
) -> Registered:
    """Make a view over Parquet files; CSV files are copied once, typed by all of their values, into the spill, but
    for columns that are not wanted and with tokens in place of identifiers."""
    if other := [path for path in paths if not _is_known(path)]:
        raise SourceError(
            f"{other[0]}: neither a Parquet file nor named .csv, and no other kind can be read; "
            "a text file with commas, semicolons, tabs or bars between its fields may be named .csv"
        )
    kinds = {path.suffix.lower() == ".csv" for path in paths}
    if len(kinds) > 1:
        raise SourceError(f"{paths[0]} and {len(paths) - 1} more: some are CSV and some are not; choose one kind")
    with translated(f"reading {paths[0]}" + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")):
        if kinds == {True}:
            return _register_csv(database, name, paths, spill, as_text, take, tokens)
        return _register_parquet(database, name, paths)


def _is_known(path: Path) -> bool:
    """Return whether a file is named like Parquet or CSV, or has another name and begins as Parquet does."""
    if path.suffix.lower() in FORMATS:
        return True
    with translated(f"reading {path}"), path.open("rb") as file:
        return file.read(len(PARQUET_BEGINS)) == PARQUET_BEGINS


def _register_parquet(database: Database, name: str, paths: list[Path]) -> Registered:
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


def _register_csv(
    database: Database,
    name: str,
    paths: list[Path],
    spill: Path,
    as_text: Collection[str],
    take: Take,
    tokens: Tokens,
) -> Registered:
    separator, names = _header(paths[0])
    other = [path.name for path in paths[1:] if _header(path) != (separator, names)]
    if other:
        raise SourceError(f"{other[0]}: its first line differs from that of {paths[0].name}; parts must agree")
    for path in paths:
        _check_bytes(path)
    aliases = [f"c{index}" for index in range(len(names))]
    columns = ", ".join(f"{alias}: 'VARCHAR'" for alias in aliases)
    wanted = take(names)
    used = [(alias, own) for alias, own in zip(aliases, names) if own in wanted]
    made = [(f"t{index}", own) for index, own in enumerate(tokens.names)]
    listed = [alias for alias, _ in used]
    listed += [f"{tokens.sql(f'nullif(c{names.index(own)}, {EMPTY})')} AS {alias}" for alias, own in made]
    copy = literal(str(spill / f"{name}.parquet"))
    tokens.share_key(database)
    rows = (
        f"SELECT {', '.join(listed)} FROM read_csv({file_list(paths)}, columns = {{{columns}}}, "
        f"auto_detect = false, header = true, delim = {literal(separator)}, quote = '\"', escape = '\"', "
        "strict_mode = true, nullstr = '', allow_quoted_nulls = false)"
    )
    _copy_rows(database, rows, copy)
    base = f"read_parquet({copy})"
    database.execute(f"CREATE VIEW {name}_text AS SELECT * FROM {base}")
    kinds = _text_types(
        database, base, [a for a, n in used if n not in as_text], sum(path.stat().st_size for path in paths)
    )
    typed = [(kinds.get(alias, alias), own) for alias, own in used]
    typed += [(alias, tokens.columns[own]) for alias, own in made]
    selected = ", ".join(f"{sql} AS {quote(column)}" for sql, column in typed)
    database.execute(f"CREATE VIEW {name} AS SELECT {selected} FROM {name}_text")
    return Registered(names, base, dict(zip(describe(database, name), (sql for sql, _ in typed))))


def _copy_rows(database: Database, rows: str, copy: str) -> None:
    """Copy the rows of a query to a Parquet file. Every thread holds some rows of all columns: where that is too much,
    one thread and small row groups do."""
    try:
        database.execute(f"COPY ({rows}) TO {copy} (FORMAT parquet)")
    except duckdb.OutOfMemoryException:
        (threads,) = one(database, "SELECT current_setting('threads')")
        database.execute("SET threads = 1")
        database.execute(f"COPY ({rows}) TO {copy} (FORMAT parquet, ROW_GROUP_SIZE {VECTOR})")
        database.execute(f"SET threads = {threads}")


def _header(path: Path) -> tuple[str, list[str]]:
    """Return the separator that divides the first line into most fields, and these."""

    def fields(separator: str) -> list[str]:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return next(csv.reader(file, delimiter=separator), [])

    try:
        separator = max(SEPARATORS, key=lambda mark: len(fields(mark)))
        names = fields(separator)
    except UnicodeDecodeError as error:
        if error.object.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise SourceError(f"{path}: it is UTF-16, as some spreadsheets write it; save it as UTF-8") from None
        line = error.object[: error.start].count(b"\n") + 1
        raise SourceError(f"{path}: line {line}: it is not UTF-8") from None
    except csv.Error:
        raise SourceError(f"{path}: line 1: it is not well-formed CSV") from None
    if not path.stat().st_size:
        raise SourceError(f"{path}: the file is empty")
    if not names or not all(names):
        raise SourceError(f"{path}: line 1: it does not name every column")
    return separator, names


def _check_bytes(path: Path) -> None:
    """Refuse a CSV file with zero bytes or with a line so long that DuckDB may drop the row it holds.

    A file that was cut off while it was written often ends in zeros. Every line of two blocks or more leaves one block
    without a line end; DuckDB itself refuses shorter ones that are too long."""
    line = 1
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            ends = block.count(b"\n") or block.count(b"\r")
            if (zero := block.find(0)) >= 0:
                line += block.count(b"\n", 0, zero)
                raise SourceError(f"{path}: line {line}: it holds zero bytes; the file is damaged or no text")
            if len(block) == BLOCK and not ends:
                raise SourceError(f"{path}: line {line}: it is too long, over {BLOCK:,} bytes")
            line += ends


def _text_types(database: Database, base: str, columns: Sequence[str], size: int) -> dict[str, str]:
    """Return the SQL for each text column in the type that every value of it has; `size`: bytes of the files. An
    empty field is null where it is not quoted, and in typed columns always."""
    rows = int(one(database, f"SELECT count(*) FROM {base}")[0])
    fits = ", ".join(
        f"count_if(regexp_full_match(v, {literal(pattern)}) AND TRY_CAST(v AS {kind}) IS NOT NULL)"
        for kind, pattern in CSV_TYPES.items()
    )
    found: dict[str, str] = {}

    def query(part: Sequence[str]) -> str:
        return f"SELECT nth, count(nullif(v, '')), {fits} FROM {stacked(base, part)} GROUP BY nth"

    for column, answer in answers(database, columns, rows, query, size // max(rows * len(columns), 1)):
        present, *counts = answer or (0,)
        kinds = [kind for kind, count in zip(CSV_TYPES, counts) if present and count == present]
        found |= {column: f"CAST(nullif({column}, '') AS {kinds[0]})"} if kinds else {}
    return found


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
        return f"{total - numbers:,} of them are not numbers, and one is enough to make a CSV column text"
    if 2 * any_dates > total:
        return f"{total - dates:,} of them are not dates like 2024-03-09 (ISO 8601), the form that is read"
    return ""


def count_distinct(database: Database, table: str, sql: str) -> int:
    """Return how many different values an expression takes; null is one of them."""
    return int(one(database, f"SELECT count(*) FROM (SELECT DISTINCT {sql} FROM {table})")[0])
