"""From the config's source to one view of the rows under neutral names, read in streams through DuckDB and never loaded
whole (config -> source -> cube -> search -> release -> verify -> report). This is where identifiers stop: the view
holds the quasi-identifiers q0, q1, ..., the sensitive columns s0, ..., and the kept columns k0, ... in canonical types
(NaN is null, -0.0 is 0.0, categories are text), and no other column. Everything the config says about the columns is
checked here, for a source and for a table that is already grouped alike: presence, type, nulls, individuals."""

from __future__ import annotations

import csv
import difflib
import glob
import os
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from anon import hierarchy
from anon.config import Columns, Config, Sensitive
from anon.database import file_list, interruptible, literal, quote, translated
from anon.errors import ConfigError, Problem, SourceError

INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
WIDE_INTEGERS = {"UBIGINT", "HUGEINT", "UHUGEINT"}
EXACT_DIGITS = 15  # decimals of at most this many digits keep their text through a double
PLACES = 18  # decimal places that rounding is exact for
LARGEST = 4e18  # numbers, and multiples of `round`, stay well inside 64 bits
DISTINCT_FOR_BUILDER = 1_000_000  # values of a sensitive column that a builder may have to label
SEPARATORS = ",;\t|"
USABLE = "integers, numbers, decimals, dates, timestamps, booleans or text"

# A CSV column has the first type that all its values are written like; a leading zero or a stray word keeps it text.
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_MOMENT = _DAY + r"[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
CSV_TYPES = {
    "BIGINT": "-?(0|[1-9][0-9]{0,17})",
    "DOUBLE": r"-?(0|[1-9][0-9]{0,14})(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?",
    "DATE": _DAY,
    "TIMESTAMP": _MOMENT,
    "TIMESTAMPTZ": _MOMENT + "(Z|[-+][0-9]{2}(:?[0-9]{2})?)",
    "BOOLEAN": "true|false|True|False|TRUE|FALSE",
}


@dataclass(frozen=True)
class Column:
    """A column in use: its name in the source, its name in the view, its kind and the SQL that makes it canonical."""

    name: str
    alias: str
    kind: str  # integer | number | decimal | date | timestamp | boolean | text
    sql: str


@dataclass
class Source:
    """The rows of the config's source as a view, with the counts that the checks came upon."""

    con: duckdb.DuckDBPyConnection
    quasi_identifiers: list[Column]
    sensitive: list[Column]
    keep: list[Column]
    rows: int = 0
    dropped: int = 0
    path: str | None = None
    files: list[tuple[str, int, int]] = field(default_factory=list)  # name, size, time of change
    frame: pa.Table | None = None

    VIEW = "source_rows"

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The Arrow type of each column of the view."""
        schema = self.query(f"SELECT * FROM {self.VIEW} LIMIT 0").schema
        return {field.name: field.type for field in schema}

    def batches(self, columns: list[Column], size: int = 131_072) -> Iterator[pa.RecordBatch]:
        """Streams the columns, in any order of rows, on a connection of its own."""
        names = ", ".join(column.alias for column in columns)
        with closing(self.con.cursor()) as con:
            if self.frame is not None:  # a cursor does not know what was registered with its connection
                register_frame(con, "raw_rows", self.frame)
            with translated("reading the source"):
                reader = con.sql(f"SELECT {names} FROM {self.VIEW}").to_arrow_reader(size)
            yield from interruptible(reader, "reading the source")

    def query(self, sql: str) -> pa.Table:
        with translated("reading the source"):
            return self.con.sql(sql).to_arrow_table()

    def check_unchanged(self) -> None:
        """The files, and which files there are, must be the same for every pass over them."""
        if self.path is not None and self.files != _stat(resolve(self.path)):
            raise SourceError("the source changed while it was being read; run again when it is complete")


def open_source(con: duckdb.DuckDBPyConnection, config: Config, table: Any, spill: Path) -> Source:
    """Opens the config's source, or the given frame in its place, and checks it against the config."""
    path = str(config.source.path) if table is None else None
    frame = None if table is None else as_arrow(table)
    files = [] if path is None else _stat(resolve(path))
    names = _register(con, "raw_rows", frame if path is None else path, spill)
    types = describe(con, "raw_rows")
    check_present(config.columns, types, names)
    total = _count_rows(con, "raw_rows")
    columns = _typed_columns(con, config.columns, types)
    who = _individual(config.columns, types)
    _create_views(con, config, columns, who)
    rows = int(_one(con, f"SELECT count(*) FROM {Source.VIEW}")[0])
    quasi_identifiers, sensitive, keep = columns
    source = Source(con, quasi_identifiers, sensitive, keep, rows, total - rows, path, files, frame)
    _check_rows(source, config, who)
    return source


def open_grouped(con: duckdb.DuckDBPyConnection, name: str, config: Config, table: Any, spill: Path) -> None:
    """Registers a table that is already grouped, a path or a frame, and checks it as a source is checked. The source's
    own columns may be missing; quasi-identifiers of a CSV file stay the text they are, as labels."""
    columns = config.columns
    names = _register(con, name, table, spill, as_text=columns.quasi_identifiers)
    types = describe(con, name)
    has_individual = columns.individual != "row" and columns.individual in names
    kept = [column for column in columns.keep if column in names]
    hidden = {"identifiers": [], "keep": kept} | ({} if has_individual else {"individual": "row"})
    columns = columns.model_copy(update=hidden)
    check_present(columns, types, names)
    _count_rows(con, name)
    labels = [quote(column) for column in columns.quasi_identifiers]
    problems: list[Problem] = []
    cells = [("quasi_identifiers", column, quote(column)) for column in columns.quasi_identifiers]
    for column in columns.sensitive:
        try:
            cells.append(("sensitive", column, canonical(con, name, column, types[column], "s")[1]))
        except Unusable as error:
            problems.append(error.problem(f"columns.sensitive.{column}"))
    problems += _null_problems(con, name, cells, config)
    if has_individual:
        problems += _individual_problems(con, name, str(_individual(columns, types)), labels, columns.multiplicity)
    if problems:
        raise ConfigError(problems)


# Files and frames


def resolve(path: str) -> list[Path]:
    """The files behind a path, a glob or a folder, in the order of their names."""
    if Path(path).is_dir():
        if not (found := _data_files(Path(path))):
            raise SourceError(f"{path}: the folder holds no .parquet and no .csv file")
        return found
    if Path(path).exists():
        return [Path(path)]
    matches = {Path(match) for match in glob.glob(path, recursive=True)}  # noqa: PTH207
    found = sorted({file for match in matches for file in (_data_files(match) if match.is_dir() else [match])})
    if not found:
        raise SourceError(f"{path}: no such file, and no file matches it as a pattern")
    return found


def _data_files(folder: Path) -> list[Path]:
    """The tables anywhere in a folder. Names that begin with a dot or an underscore are other programs' notes."""
    return sorted(
        file
        for file in folder.rglob("*")
        if file.suffix.lower() in (".parquet", ".csv")
        and file.is_file()
        and not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)
    )


def _stat(paths: list[Path]) -> list[tuple[str, int, int]]:
    with translated("reading the source"):
        return [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]


def _register(
    con: duckdb.DuckDBPyConnection, name: str, table: Any, spill: Path, as_text: Collection[str] = ()
) -> list[str]:
    if isinstance(table, (str, os.PathLike)):
        return register_files(con, name, resolve(os.fspath(table)), spill, as_text)
    return register_frame(con, name, table)


def register_files(
    con: duckdb.DuckDBPyConnection, name: str, paths: list[Path], spill: Path, as_text: Collection[str] = ()
) -> list[str]:
    """Makes a view over Parquet files; CSV files are copied once, typed by all of their values, into the spill.

    Returns the names of the columns as they are written in the files, which DuckDB changes where two are alike.
    """
    kinds = {path.suffix.lower() == ".csv" for path in paths}
    if len(kinds) > 1:
        raise SourceError(f"{paths[0]} and {len(paths) - 1} more: some are CSV and some are not; choose one kind")
    with translated(f"reading {paths[0]}" + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")):
        if kinds == {True}:
            return _register_csv(con, name, paths, spill, as_text)
        return _register_parquet(con, name, paths)


def _register_parquet(con: duckdb.DuckDBPyConnection, name: str, paths: list[Path]) -> list[str]:
    files = file_list(paths)
    _check_same_columns(con, files)
    con.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet({files}, hive_partitioning = false)").fetchall()
    schema = f"SELECT name, num_children FROM parquet_schema({file_list(paths[:1])})"
    return list(_top_level(con.sql(schema).fetchall()))


def _top_level(elements: list[tuple[str, int | None]]) -> Iterator[str]:
    """The columns of a Parquet schema, which lists every node before its children; the first is the root.

    >>> list(_top_level([("root", 2), ("a", 1), ("list", None), ("b", None)]))
    ['a', 'b']
    """
    inside = 0
    for name, children in elements[1:]:
        if not inside:
            yield name
        inside = max(inside - 1, 0) + (children or 0)


def _check_same_columns(con: duckdb.DuckDBPyConnection, files: str) -> None:
    """Parts of one table have the same columns of the same types; DuckDB would take the first part's word for it."""
    kind = "concat_ws(' ', name, type, type_length, num_children, converted_type, scale, precision, logical_type)"
    parts = con.sql(
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
    con: duckdb.DuckDBPyConnection, name: str, paths: list[Path], spill: Path, as_text: Collection[str]
) -> list[str]:
    separator, names = _header(paths[0])
    other = [path.name for path in paths[1:] if _header(path) != (separator, names)]
    if other:
        raise SourceError(f"{other[0]}: its first line differs from that of {paths[0].name}; parts must agree")
    aliases = [f"c{index}" for index in range(len(names))]
    columns = ", ".join(f"{alias}: 'VARCHAR'" for alias in aliases)
    copy = literal(str(spill / f"{name}.parquet"))
    con.execute(
        f"COPY (SELECT * FROM read_csv({file_list(paths)}, columns = {{{columns}}}, auto_detect = false, "
        f"header = true, delim = {literal(separator)}, quote = '\"', escape = '\"', strict_mode = true, "
        f"nullstr = '', allow_quoted_nulls = false)) TO {copy} (FORMAT parquet)"
    ).fetchall()
    con.execute(f"CREATE VIEW {name}_text AS SELECT * FROM read_parquet({copy})").fetchall()
    typed = [a if n in as_text else _typed_text(con, f"{name}_text", a) for a, n in zip(aliases, names)]
    selected = ", ".join(f"{sql} AS {quote(column)}" for sql, column in zip(typed, names))
    con.execute(f"CREATE VIEW {name} AS SELECT {selected} FROM {name}_text").fetchall()
    return names


def _header(path: Path) -> tuple[str, list[str]]:
    """The separator that divides the first line into most fields, and these."""

    def fields(separator: str) -> list[str]:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return next(csv.reader(file, delimiter=separator), [])

    try:
        separator = max(SEPARATORS, key=lambda mark: len(fields(mark)))
        names = fields(separator)
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise SourceError(f"{path}: line {line}: it is not UTF-8") from None
    except csv.Error:
        raise SourceError(f"{path}: line 1: it is not well-formed CSV") from None
    if not names or not all(names):
        raise SourceError(f"{path}: line 1: it does not name every column")
    return separator, names


def _typed_text(con: duckdb.DuckDBPyConnection, table: str, column: str) -> str:
    """SQL for a text column in the type that every value of it has. An empty field is null where it is not quoted, and
    in typed columns always."""
    fits = ", ".join(
        f"count_if(regexp_full_match({column}, {literal(pattern)}) AND TRY_CAST({column} AS {kind}) IS NOT NULL)"
        for kind, pattern in CSV_TYPES.items()
    )
    present, *counts = _one(con, f"SELECT count(nullif({column}, '')), {fits} FROM {table}")
    for kind, count in zip(CSV_TYPES, counts):
        if present and count == present:
            return f"CAST(nullif({column}, '') AS {kind})"
    return column


def as_arrow(frame: Any) -> pa.Table:
    try:
        return frame if isinstance(frame, pa.Table) else pa.table(frame)
    except (TypeError, ValueError, pa.ArrowException):
        kind = type(frame).__name__
        raise SourceError(f"a table of type {kind} cannot be read; give an Arrow-speaking frame") from None


def register_frame(con: duckdb.DuckDBPyConnection, name: str, frame: Any) -> list[str]:
    """Makes a view over any Arrow-speaking frame, for this connection, and returns the names of its columns."""
    table = as_arrow(frame)
    with translated(f"reading a table of type {type(frame).__name__}"):
        con.register(name, table)
    return list(table.column_names)


def describe(con: duckdb.DuckDBPyConnection, name: str) -> dict[str, str]:
    """The columns of a registered table with their DuckDB types."""
    with translated("reading the source"):
        relation = con.sql(f"SELECT * FROM {name}")
        return {column: str(kind) for column, kind in zip(relation.columns, relation.types)}


def _one(con: duckdb.DuckDBPyConnection, sql: str) -> tuple[Any, ...]:
    with translated("reading the source"):
        row: tuple[Any, ...] = con.sql(sql).fetchall()[0]
        return row


def _count_rows(con: duckdb.DuckDBPyConnection, table: str) -> int:
    if not (rows := int(_one(con, f"SELECT count(*) FROM {table}")[0])):
        raise SourceError("the table has no rows")
    return rows


# Columns


def check_present(columns: Columns, types: dict[str, str], names: list[str] | None = None) -> None:
    """Every named column must be there, under exactly this name and no other spelling of it. `names` are the table's
    own, in the order of `types`: DuckDB renames the second of two that differ only in case."""
    names = list(types) if names is None else names
    lower = [name.lower() for name in names]
    usable = {name for name, seen in zip(names, types) if name == seen and lower.count(name.lower()) == 1}
    wanted = list(named_columns(columns))
    # A CSV file without a header has data where the names should be: then none is told.
    listed = f"the table has {_some(names)}" if any(name in names for _, name in wanted) else "no column named is there"
    problems = []
    for path, name in wanted:
        if name not in names:
            near = difflib.get_close_matches(name.lower(), lower, n=1)
            hint = f"did you mean {names[lower.index(near[0])]!r}?" if near else listed
            problems.append(Problem(path, f"column {name!r}", "a column of the table", hint))
        elif name not in usable:
            problems.append(Problem(path, f"column {name!r}", "a name that differs from every other by more than case"))
    if problems:
        raise ConfigError(problems)


def named_columns(columns: Columns) -> Iterator[tuple[str, str]]:
    """(path in the config, column) for every column that the config names."""
    for index, name in enumerate(columns.identifiers):
        yield f"columns.identifiers[{index}]", name
    if columns.individual != "row":
        yield "columns.individual", columns.individual
    for name in columns.quasi_identifiers:
        yield f"columns.quasi_identifiers.{name}", name
    for name in columns.sensitive:
        yield f"columns.sensitive.{name}", name
    for index, name in enumerate(columns.keep):
        yield f"columns.keep[{index}]", name


def _some(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")


class Unusable(Exception):
    """A column of a type that cannot play its role: what was found, what would be right."""

    def problem(self, path: str) -> Problem:
        return Problem(path, self.args[0], self.args[1])


def _typed_columns(con: duckdb.DuckDBPyConnection, columns: Columns, types: dict[str, str]) -> list[list[Column]]:
    problems: list[Problem] = []
    roles: list[tuple[str, Iterable[str]]] = [
        ("quasi_identifiers", columns.quasi_identifiers),
        ("sensitive", columns.sensitive),
        ("keep", columns.keep),
    ]
    typed: list[list[Column]] = []
    for role, names in roles:
        typed.append([])
        for index, name in enumerate(names):
            try:
                kind, sql = canonical(con, "raw_rows", name, types[name], role[0])
                if role == "sensitive":
                    kind, sql = _published(con, name, columns.sensitive[name], kind, sql, index)
                typed[-1].append(Column(name, f"{role[0]}{index}", kind, sql))
            except Unusable as error:
                problems.append(error.problem(f"columns.{role}.{name}"))
            except ConfigError as error:
                problems += error.problems
    if problems:
        raise ConfigError(problems)
    return typed


def canonical(con: duckdb.DuckDBPyConnection, table: str, name: str, type_name: str, letter: str) -> tuple[str, str]:
    """The kind of a column and the SQL expression for its canonical values; letter is q, s or k for its role."""
    column = quote(name)
    if type_name in INTEGERS:
        return "integer", f"CAST({column} AS BIGINT)"
    if type_name in WIDE_INTEGERS:
        wide = f"{column} IS NOT NULL AND TRY_CAST({column} AS BIGINT) IS NULL"
        _require_none(con, table, type_name, wide, "integers below 2^63")
        return "integer", f"CAST({column} AS BIGINT)"
    if type_name in ("FLOAT", "DOUBLE"):
        if letter != "k":
            _require_none(con, table, type_name, f"isinf({column})", "finite numbers")
        return "number", _number(column, type_name, "'nan'::DOUBLE" if letter == "k" else "NULL")
    if type_name.startswith("DECIMAL"):
        if letter != "q":
            return "decimal", column
        long = f"abs({column}) >= 1e{EXACT_DIGITS - _scale(type_name)}"
        _require_none(con, table, type_name, long, f"of at most {EXACT_DIGITS} digits; round it")
        return "number", f"CAST({column} AS DOUBLE) + 0.0::DOUBLE"
    if type_name == "DATE" or type_name.startswith("TIMESTAMP"):
        return _moment(con, table, column, type_name, letter)
    if type_name == "BOOLEAN":
        return "boolean", column
    if type_name in ("VARCHAR", "UUID") or (type_name.startswith("ENUM") and type_name.endswith(")")):
        return "text", f"CAST({column} AS VARCHAR)"
    raise Unusable(f"type {_plain_type(type_name)}", USABLE)


def _require_none(con: duckdb.DuckDBPyConnection, table: str, type_name: str, condition: str, expected: str) -> None:
    count = _one(con, f"SELECT count(*) FROM {table} WHERE {condition}")[0]
    if count:
        raise Unusable(f"type {type_name} with {count:,} values that are not", expected)


def _plain_type(type_name: str) -> str:
    """The name of a type without what it is made of: the members of an ENUM are data.

    >>> _plain_type("STRUCT(a INTEGER)"), _plain_type("ENUM('a', 'b')[]"), _plain_type('"NULL"')
    ('STRUCT', 'ENUM[]', 'NULL')
    """
    return re.sub(r"\(.*\)", "", type_name, flags=re.DOTALL).strip('"')


def _scale(decimal_type: str) -> int:
    return int(decimal_type.rstrip(")").split(",")[1])


def _number(column: str, type_name: str, missing: str) -> str:
    """A double without NaN and -0.0. A FLOAT is taken for the shortest decimal that it stands for, as text is."""
    number = f"CAST(CAST({column} AS VARCHAR) AS DOUBLE)" if type_name == "FLOAT" else column
    return f"CASE WHEN isnan({column}) THEN {missing} ELSE {number} + 0.0::DOUBLE END"


def _moment(con: duckdb.DuckDBPyConnection, table: str, column: str, type_name: str, letter: str) -> tuple[str, str]:
    """Days, or microseconds in UTC; a kept moment keeps its zone."""
    if type_name.endswith("_NS"):
        _require_none(con, table, type_name, f"epoch_ns({column}) % 1000 <> 0", "whole microseconds")
    zoned = type_name in ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS")
    kind = "DATE" if type_name == "DATE" else "TIMESTAMPTZ" if zoned else "TIMESTAMP"
    moment = f"CAST({column} AS {kind})"
    strange = f"NOT isfinite({moment}) OR year({moment}) NOT BETWEEN 1 AND 9999"
    _require_none(con, table, type_name, strange, "of the years 1 to 9999")
    if type_name == "DATE":
        return "date", column
    return "timestamp", f"timezone('UTC', {moment})" if zoned and letter != "k" else moment


# Sensitive columns as they will be published


def _published(
    con: duckdb.DuckDBPyConnection, name: str, spec: Sensitive, kind: str, sql: str, index: int
) -> tuple[str, str]:
    """A sensitive column as it is, rounded, or as the first level of a builder."""
    if spec.round is not None:
        return _rounded(con, spec.round, kind, sql)
    if spec.builder is None:
        return kind, sql
    with translated("reading the source"):
        distinct = f"SELECT DISTINCT {sql} AS v FROM raw_rows WHERE {sql} IS NOT NULL LIMIT {DISTINCT_FOR_BUILDER + 1}"
        values = con.sql(f"SELECT v FROM ({distinct}) ORDER BY v").to_arrow_table()["v"]
    if len(values) > DISTINCT_FOR_BUILDER:
        raise Unusable("too many distinct values for a builder", f"at most {DISTINCT_FOR_BUILDER:,}; round it")
    paths = hierarchy.paths(spec.builder, values.to_pylist(), name, role="sensitive")
    labels = pa.table({"v": values, "label": pa.array([path[0] for path in paths], pa.string())})
    with translated("reading the source"):
        con.register("labels_made", labels)
        con.execute(f"CREATE TABLE labels_{index} AS SELECT * FROM labels_made").fetchall()
        con.unregister("labels_made")
    return "text", f"(SELECT label FROM labels_{index} WHERE v = {sql})"


def _rounded(con: duckdb.DuckDBPyConnection, width: Decimal, kind: str, sql: str) -> tuple[str, str]:
    """The nearest multiple of the width, halves away from zero."""
    if kind not in ("integer", "number", "decimal"):
        raise Unusable(f"type {kind} with `round`", "a column of numbers")
    places = max(-int(width.normalize().as_tuple().exponent), 0)
    if places > PLACES:
        raise Unusable(f"`round` to {places} places", f"at most {PLACES} places")
    large = f"abs(CAST({sql} AS DOUBLE)) >= {LARGEST * min(1.0, float(width))!r}"
    _require_none(con, "raw_rows", kind, large, f"small enough to round: below {LARGEST:g} multiples")
    count = _nearest_double(width, sql) if kind == "number" else _nearest_exact(con, width, places, kind, sql)
    multiple = f"CAST({count} AS BIGINT)"
    if places == 0:
        return "integer", f"{multiple} * {int(width)}"
    return "decimal", f"{multiple} * CAST('{width:f}' AS DECIMAL(18, {places}))"


def _nearest_double(width: Decimal, sql: str) -> str:
    """SQL: how many widths. What misses a half by no more than the error of the division is a half: 0.35 / 0.1."""
    share = f"({sql} / {float(width)!r}::DOUBLE)"
    return f"sign({share}) * floor(abs({share}) * (1 + 4e-16::DOUBLE) + 0.5::DOUBLE)"


def _nearest_exact(con: duckdb.DuckDBPyConnection, width: Decimal, places: int, kind: str, sql: str) -> str:
    """SQL: how many widths, in whole numbers of the smaller unit of the two."""
    scale, units = 0, f"CAST({sql} AS HUGEINT)"
    if kind == "decimal":
        with translated("reading the source"):
            scale = _scale(str(con.sql(f"SELECT {sql} FROM raw_rows LIMIT 0").types[0]))
        if scale > PLACES:
            raise Unusable(f"decimals with {scale} places with `round`", f"at most {PLACES} places")
        units = f"CAST(replace(CAST({sql} AS VARCHAR), '.', '') AS HUGEINT)"
    most = max(scale, places)
    value, step = f"({units} * {10 ** (most - scale)}::HUGEINT)", int(width.scaleb(most))
    return f"sign({value}) * ((2 * abs({value}) + {step}::HUGEINT) // {2 * step}::HUGEINT)"


# Rows


def _individual(columns: Columns, types: dict[str, str]) -> str | None:
    """SQL for who a row is about; None where every row is another person."""
    if columns.individual == "row":
        return None
    who = quote(columns.individual)
    floating = types[columns.individual] in ("FLOAT", "DOUBLE")
    return f"CASE WHEN isnan({who}) THEN NULL ELSE {who} END" if floating else who


def _create_views(con: duckdb.DuckDBPyConnection, config: Config, columns: list[list[Column]], who: str | None) -> None:
    """all_rows, kept_rows without those to drop, and the view of the source, which does not know the individuals."""
    every = [column for role in columns for column in role]
    selected = ", ".join(f"{column.sql} AS {column.alias}" for column in every)
    policies = ((columns[0], config.nulls.quasi_identifiers), (columns[1], config.nulls.sensitive))
    needed = [f"{column.alias} IS NOT NULL" for role, policy in policies if policy == "drop" for column in role]
    with translated("reading the source"):
        con.execute(f"CREATE VIEW all_rows AS SELECT {selected}, {who or 'NULL'} AS who FROM raw_rows").fetchall()
        where = f" WHERE {' AND '.join(needed)}" if needed else ""
        con.execute(f"CREATE VIEW kept_rows AS SELECT * FROM all_rows{where}").fetchall()
        listed = ", ".join(column.alias for column in every)
        con.execute(f"CREATE VIEW {Source.VIEW} AS SELECT {listed} FROM kept_rows").fetchall()


def _check_rows(source: Source, config: Config, who: str | None) -> None:
    """Rows are left, nulls by policy, and one row per individual."""
    if not source.rows:
        raise ConfigError.at("nulls", f"all {source.dropped:,} rows dropped", "rows with values")
    cells = [("quasi_identifiers", column.name, column.alias) for column in source.quasi_identifiers]
    cells += [("sensitive", column.name, column.alias) for column in source.sensitive]
    problems = _null_problems(source.con, "kept_rows", cells, config)
    if who is not None:
        aliases = [column.alias for column in source.quasi_identifiers]
        problems += _individual_problems(source.con, "kept_rows", "who", aliases, config.columns.multiplicity)
    if problems:
        raise ConfigError(problems)


def _null_problems(
    con: duckdb.DuckDBPyConnection, table: str, cells: list[tuple[str, str, str]], config: Config
) -> list[Problem]:
    """Columns (role, name, SQL) with missing values that the config calls an error."""
    strict = [cell for cell in cells if getattr(config.nulls, cell[0]) == "error"]
    if not strict:
        return []
    missing = _one(con, f"SELECT {', '.join(f'count_if({sql} IS NULL)' for _, _, sql in strict)} FROM {table}")
    return [
        Problem(
            f"columns.{role}.{name}",
            f"{count:,} rows without a value",
            "a value in every row",
            f"or set nulls.{role} to value or drop",
        )
        for (role, name, _), count in zip(strict, missing)
        if count
    ]


def _individual_problems(
    con: duckdb.DuckDBPyConnection, table: str, who: str, quasi_identifiers: list[str], multiplicity: str
) -> list[Problem]:
    """Rows of nobody, repeated individuals where each should have one row, and individuals whose rows disagree."""
    path, problems = "columns.individual", []
    unnamed, repeated = _one(con, f"SELECT count_if({who} IS NULL), count({who}) - count(DISTINCT {who}) FROM {table}")
    if unnamed:
        problems.append(Problem(path, f"{unnamed:,} rows that do not say whose they are", "an individual in every row"))
    if repeated and multiplicity == "single":
        hint = "set columns.multiplicity if people have several values"
        found = f"{repeated:,} rows of individuals who already have one"
        problems.append(Problem(path, found, "one row per individual", hint))
    if repeated and (count := _disagreeing(con, table, who, quasi_identifiers)):
        found = f"{count:,} individuals whose rows disagree on a quasi-identifier"
        problems.append(Problem(path, found, "the same quasi-identifiers in all rows of an individual"))
    return problems


def _disagreeing(con: duckdb.DuckDBPyConnection, table: str, who: str, quasi_identifiers: list[str]) -> int:
    differ = " OR ".join(
        f"min({q}) IS DISTINCT FROM max({q}) OR count({q}) NOT IN (0, count(*))" for q in quasi_identifiers
    )
    people = f"SELECT 1 FROM {table} WHERE {who} IS NOT NULL GROUP BY {who} HAVING count(*) > 1 AND ({differ})"
    return int(_one(con, f"SELECT count(*) FROM ({people})")[0])
