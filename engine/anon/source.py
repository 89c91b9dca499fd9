"""From the config's source to one view of the rows under neutral names, read in streams through DuckDB and never loaded
whole. This is where identifiers stop: the view holds the quasi-identifiers q0, q1, ..., the sensitive columns s0, ...,
and the kept columns k0, ... in canonical types (NaN is null, -0.0 is 0.0, categories are text), and no other column.
Everything the config says about the columns is checked here: presence, type, nulls, individuals."""

from __future__ import annotations

import difflib
import glob
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from anon import hierarchy
from anon.config import Columns, Config, Sensitive
from anon.database import literal, quote, translated
from anon.errors import ConfigError, Problem, SourceError

INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
WIDE_INTEGERS = {"UBIGINT", "HUGEINT", "UHUGEINT"}
EXACT_DIGITS = 15  # decimals of at most this many digits keep their text through a double


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
    files: list[tuple[str, int, int]] = field(default_factory=list)  # name, size, time of change

    VIEW = "source_rows"

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The Arrow type of each column of the view."""
        schema = self.query(f"SELECT * FROM {self.VIEW} LIMIT 0").schema
        return {field.name: field.type for field in schema}

    def batches(self, columns: list[Column], size: int = 131_072) -> Iterator[pa.RecordBatch]:
        """Streams the columns, in any order of rows, on a connection of its own."""
        names = ", ".join(column.alias for column in columns)
        with translated("reading the source"):
            yield from self.con.cursor().sql(f"SELECT {names} FROM {self.VIEW}").to_arrow_reader(size)

    def query(self, sql: str) -> pa.Table:
        with translated("reading the source"):
            return self.con.sql(sql).to_arrow_table()

    def check_unchanged(self) -> None:
        """The files must be the same for every pass over them."""
        if self.files and self.files != _stat([Path(name) for name, _, _ in self.files]):
            raise SourceError("the source changed while it was being read; run again when it is complete")


def open_source(con: duckdb.DuckDBPyConnection, config: Config, table: Any, spill: Path) -> Source:
    """Opens the config's source, or the given frame in its place, and checks it against the config."""
    files: list[tuple[str, int, int]] = []
    if table is None:
        paths = resolve(str(config.source.path))
        files = _stat(paths)
        register_files(con, "raw_rows", paths, spill)
    else:
        register_frame(con, "raw_rows", table)
    types = describe(con, "raw_rows")
    columns = _typed_columns(con, config, types)
    _create_view(con, config, columns)
    quasi_identifiers, sensitive, keep = columns
    source = Source(con, quasi_identifiers, sensitive, keep, files=files)
    _check_rows(source, config)
    return source


def resolve(path: str) -> list[Path]:
    """The files behind a path, a glob or a folder, in the order of their names."""
    if Path(path).is_dir():
        for pattern in ("*.parquet", "*.csv"):
            if found := sorted(Path(path).rglob(pattern)):
                return found
        raise SourceError(f"{path}: the folder holds no .parquet and no .csv file")
    found = [Path(path)] if Path(path).exists() else sorted(map(Path, glob.glob(path, recursive=True)))  # noqa: PTH207
    if not found:
        raise SourceError(f"{path}: no such file, and no file matches it as a pattern")
    return found


def _stat(paths: list[Path]) -> list[tuple[str, int, int]]:
    with translated("reading the source"):
        return [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]


def register_files(con: duckdb.DuckDBPyConnection, name: str, paths: list[Path], spill: Path) -> None:
    """Makes a view over Parquet files; CSV files are copied once, typed by all of their values, into the spill."""
    listed = "[" + ", ".join(literal(str(path)) for path in paths) + "]"
    with translated(f"reading {paths[0]}" + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")):
        if paths[0].suffix.lower() != ".csv":
            con.execute(
                f"CREATE VIEW {name} AS SELECT * FROM read_parquet({listed}, hive_partitioning = false)"
            ).fetchall()
            return
        copy = spill / f"{name}.parquet"
        con.execute(
            f"COPY (SELECT * FROM read_csv({listed}, header = true, all_varchar = true, nullstr = '')) "
            f"TO {literal(str(copy))}"
        ).fetchall()
        con.execute(f"CREATE VIEW {name}_text AS SELECT * FROM read_parquet({literal(str(copy))})").fetchall()
        columns = [description[0] for description in con.sql(f"SELECT * FROM {name}_text").description]
        typed = ", ".join(f"{_typed_text(con, f'{name}_text', column)} AS {quote(column)}" for column in columns)
        con.execute(f"CREATE VIEW {name} AS SELECT {typed} FROM {name}_text").fetchall()


def _typed_text(con: duckdb.DuckDBPyConnection, table: str, column: str) -> str:
    """The type that every value of a text column has: a leading zero or a stray word keeps the column text."""
    name = quote(column)
    patterns = {
        "BIGINT": "-?(0|[1-9][0-9]{0,17})",
        "DOUBLE": r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?",
        "DATE": "[0-9]{4}-[0-9]{2}-[0-9]{2}",
        "TIMESTAMP": r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9:]{5,8}(\.[0-9]+)?",
        "BOOLEAN": "true|false",
    }
    fits = ", ".join(
        f"count_if(regexp_full_match({name}, {literal(pattern)}) AND TRY_CAST({name} AS {kind}) IS NOT NULL)"
        for kind, pattern in patterns.items()
    )
    present, *counts = con.sql(f"SELECT count({name}), {fits} FROM {table}").fetchall()[0]
    for kind, count in zip(patterns, counts):
        if present and count == present:
            return f"CAST({name} AS {kind})"
    return name


def register_frame(con: duckdb.DuckDBPyConnection, name: str, frame: Any) -> None:
    """Makes a view over any Arrow-speaking frame."""
    try:
        table = frame if isinstance(frame, pa.Table) else pa.table(frame)
    except (TypeError, ValueError, pa.ArrowInvalid) as error:
        raise SourceError(
            f"a table of type {type(frame).__name__} cannot be read; give an Arrow-speaking frame"
        ) from error
    con.register(name, table)


def describe(con: duckdb.DuckDBPyConnection, name: str) -> dict[str, str]:
    """The columns of a registered table with their DuckDB types."""
    with translated("reading the source"):
        relation = con.sql(f"SELECT * FROM {name}")
        return {column: str(kind) for column, kind in zip(relation.columns, relation.types)}


def _typed_columns(con: duckdb.DuckDBPyConnection, config: Config, types: dict[str, str]) -> list[list[Column]]:
    columns = config.columns
    check_present(columns, types)
    problems: list[Problem] = []
    roles = (
        ("q", "columns.quasi_identifiers", list(columns.quasi_identifiers)),
        ("s", "columns.sensitive", list(columns.sensitive)),
        ("k", "columns.keep", columns.keep),
    )
    typed: list[list[Column]] = []
    for letter, path, names in roles:
        typed.append([])
        for index, name in enumerate(names):
            try:
                kind, sql = canonical(con, "raw_rows", name, types[name], letter)
                if letter == "s":
                    kind, sql = _sensitive(con, name, columns.sensitive[name], kind, sql, index)
                typed[-1].append(Column(name, f"{letter}{index}", kind, sql))
            except Unusable as error:
                problems.append(Problem(f"{path}.{name}", error.args[0], error.args[1]))
            except ConfigError as error:
                problems += error.problems
    if problems:
        raise ConfigError(problems)
    return typed


def check_present(columns: Columns, types: dict[str, str]) -> None:
    """Every named column must be there, under exactly this name and no other spelling of it."""
    lower = [name.lower() for name in types]
    problems = []
    for path, name in named_columns(columns):
        if name not in types:
            near = difflib.get_close_matches(name.lower(), lower, n=1)
            hint = (
                f"did you mean {list(types)[lower.index(near[0])]!r}?"
                if near
                else f"the table has {_some(list(types))}"
            )
            problems.append(Problem(path, f"column {name!r}", "a column of the table", hint))
        elif lower.count(name.lower()) > 1:
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


def canonical(con: duckdb.DuckDBPyConnection, table: str, name: str, type_name: str, letter: str) -> tuple[str, str]:
    """The kind of a column and the SQL expression for its canonical values; letter is q, s or k for its role."""
    column = quote(name)

    def require_none(condition: str, expected: str) -> None:
        with translated("reading the source"):
            count = con.sql(f"SELECT count(*) FROM {table} WHERE {condition}").fetchall()[0][0]
        if count:
            raise Unusable(f"type {type_name} with {count:,} values that are not", expected)

    if type_name in INTEGERS:
        return "integer", f"CAST({column} AS BIGINT)"
    if type_name in WIDE_INTEGERS:
        require_none(f"{column} IS NOT NULL AND TRY_CAST({column} AS BIGINT) IS NULL", "integers below 2^63")
        return "integer", f"CAST({column} AS BIGINT)"
    if type_name in ("FLOAT", "DOUBLE"):
        if letter != "k":
            require_none(f"isinf({column})", "finite numbers")
        missing, number = "'nan'::DOUBLE" if letter == "k" else "NULL", f"CAST({column} AS DOUBLE)"
        return "number", f"CASE WHEN isnan({number}) THEN {missing} ELSE {number} + 0.0::DOUBLE END"
    if type_name.startswith("DECIMAL"):
        if letter != "q":
            return "decimal", column
        scale = int(type_name.rstrip(")").split(",")[1])
        require_none(f"abs({column}) >= 1e{EXACT_DIGITS - scale}", f"of at most {EXACT_DIGITS} digits; round it")
        return "number", f"CAST({column} AS DOUBLE) + 0.0::DOUBLE"
    if type_name == "DATE" or type_name.startswith("TIMESTAMP"):
        require_none(f"isinf({column})", "finite dates")
        return _moment(column, type_name, letter)
    if type_name == "BOOLEAN":
        return "boolean", column
    if type_name in ("VARCHAR", "UUID") or type_name.startswith("ENUM"):
        return "text", f"CAST({column} AS VARCHAR)"
    if letter == "k" and type_name in ("TIME", "BLOB"):
        return "text", column
    raise Unusable(f"type {type_name}", "integers, numbers, decimals, dates, timestamps, booleans or text")


def _moment(column: str, type_name: str, letter: str) -> tuple[str, str]:
    if type_name == "DATE":
        return "date", column
    if letter == "k":
        return "timestamp", column
    if type_name == "TIMESTAMP WITH TIME ZONE":
        return "timestamp", f"timezone('UTC', {column})"
    return "timestamp", f"CAST({column} AS TIMESTAMP)"


def _sensitive(
    con: duckdb.DuckDBPyConnection, name: str, spec: Sensitive, kind: str, sql: str, index: int
) -> tuple[str, str]:
    """A sensitive column as it will be published: rounded, or as the first level of a builder."""
    if spec.round is not None:
        if kind not in ("integer", "number", "decimal"):
            raise Unusable(f"type {kind} with `round`", "a column of numbers")
        scale = max(-int(spec.round.as_tuple().exponent), 0)
        multiple = f"CAST(round(CAST({sql} AS DOUBLE) / {float(spec.round)!r}) AS BIGINT)"
        if scale == 0:
            return "integer", f"{multiple} * {int(spec.round)}"
        return "decimal", f"{multiple} * CAST('{spec.round}' AS DECIMAL(18, {scale}))"
    if spec.builder is None:
        return kind, sql
    with translated("reading the source"):
        values = con.sql(f"SELECT DISTINCT {sql} AS v FROM raw_rows WHERE {sql} IS NOT NULL").to_arrow_table()["v"]
    paths = hierarchy.paths(spec.builder, values.to_pylist(), name)
    con.register(f"labels_{index}", pa.table({"v": values, "label": [path[0] for path in paths]}))
    return "text", f"(SELECT label FROM labels_{index} WHERE v = {sql})"


def _create_view(con: duckdb.DuckDBPyConnection, config: Config, columns: list[list[Column]]) -> None:
    selected = ", ".join(f"{column.sql} AS {column.alias}" for role in columns for column in role)
    with translated("reading the source"):
        con.execute(f"CREATE VIEW all_rows AS SELECT {selected} FROM raw_rows").fetchall()
        keep = []
        for role, policy in ((columns[0], config.nulls.quasi_identifiers), (columns[1], config.nulls.sensitive)):
            if policy == "drop":
                keep += [f"{column.alias} IS NOT NULL" for column in role]
        where = f" WHERE {' AND '.join(keep)}" if keep else ""
        con.execute(f"CREATE VIEW {Source.VIEW} AS SELECT * FROM all_rows{where}").fetchall()


def _check_rows(source: Source, config: Config) -> None:
    """Rows there are, nulls by policy, and one row per individual."""
    columns = [*source.quasi_identifiers, *source.sensitive]
    nulls = "".join(f", count_if({column.alias} IS NULL)" for column in columns)
    with translated("reading the source"):
        total, *missing = source.con.sql(f"SELECT count(*){nulls} FROM all_rows").fetchall()[0]
        if not total:
            raise SourceError("the source has no rows")
        source.rows = source.con.sql(f"SELECT count(*) FROM {source.VIEW}").fetchall()[0][0]
    source.dropped = total - source.rows
    problems = []
    for column, count in zip(columns, missing):
        role = "quasi_identifiers" if column in source.quasi_identifiers else "sensitive"
        if count and getattr(config.nulls, role) == "error":
            hint = f"or set nulls.{role} to value or drop"
            problems.append(
                Problem(
                    f"columns.{role}.{column.name}", f"{count:,} rows without a value", "a value in every row", hint
                )
            )
    if not source.rows:
        problems.append(Problem("nulls", f"all {total:,} rows dropped", "rows with values"))
    if config.columns.individual != "row":
        problems += _individual_problems(source, config)
    if problems:
        raise ConfigError(problems)


def _individual_problems(source: Source, config: Config) -> list[Problem]:
    """Repeated individuals where each should have one row, and individuals whose rows disagree."""
    who, path, problems = quote(config.columns.individual), "columns.individual", []
    with translated("counting individuals"):
        unnamed, repeated = source.con.sql(
            f"SELECT count_if({who} IS NULL), count({who}) - count(DISTINCT {who}) FROM raw_rows"
        ).fetchall()[0]
    if unnamed:
        problems.append(Problem(path, f"{unnamed:,} rows that do not say whose they are", "an individual in every row"))
    if repeated and config.columns.multiplicity == "single":
        hint = "set columns.multiplicity if people have several values"
        found = f"{repeated:,} rows of individuals who already have one"
        problems.append(Problem(path, found, "one row per individual", hint))
    if repeated and (count := _disagreeing(source, who)):
        found = f"{count:,} individuals whose rows disagree on a quasi-identifier"
        problems.append(Problem(path, found, "the same quasi-identifiers in all rows of an individual"))
    return problems


def _disagreeing(source: Source, who: str) -> int:
    differ = " OR ".join(
        f"min({column.sql}) IS DISTINCT FROM max({column.sql}) OR count({column.sql}) NOT IN (0, count(*))"
        for column in source.quasi_identifiers
    )
    with translated("counting individuals"):
        sql = f"SELECT {who} FROM raw_rows WHERE {who} IS NOT NULL GROUP BY {who} HAVING count(*) > 1 AND ({differ})"
        return int(source.con.sql(f"SELECT count(*) FROM ({sql})").fetchall()[0][0])
