"""A query on PostgreSQL as the source, through the ADBC driver, which is an extra and imported only here. The answer is
read as one stream in one snapshot that cannot write, and copied to the private spill. Neither the connection string nor
what the server says of values is ever repeated."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from anon.config import Columns, Config, Postgres
from anon.core import interrupt
from anon.core.database import Database, literal, quote, translated
from anon.core.phrases import counted
from anon.errors import ConfigError, Problem, SourceError
from anon.source.databases import Query
from anon.source.origins import wanted
from anon.source.tokens import Tokens
from anon.source.types import USABLE

INSTALL = "pip install 'anon-engine[postgres]'"
SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
AS_THEY_ARE = {
    *("bool", "int2", "int4", "int8", "float4", "float8", "text", "varchar", "name"),
    *("date", "timestamp", "timestamptz"),
}
SEVERAL = "cannot insert multiple commands"  # what the server says of more than one statement
DIGITS = 38  # of a decimal of DuckDB
ASK = "psql, asked the same, says why"  # its messages may quote values, so they are not repeated here
CONNECTING = {  # what libpq says, without the values in it
    "password authentication failed": "the user or the password was refused",
    "no password supplied": "the server asks for a password; take it from ${NAME}, PGPASSWORD or ~/.pgpass",
    "no pg_hba.conf entry": "the server does not let this user in from here",
    "Connection refused": "no server answers at that host and port",
    "could not translate host name": "the host is not known",
    "timeout expired": "the server did not answer in time",
    "does not exist": "there is no such database or user",
    "invalid": "the connection string is not one (postgresql://user:${NAME}@host:port/database)",
    "missing": "the connection string is not one (postgresql://user:${NAME}@host:port/database)",
}


class PostgresQuery(Query):
    """A query on a PostgreSQL database."""

    def __init__(self, source: Postgres, config: Config) -> None:
        super().__init__("PostgreSQL", source.query, config)
        self.dsn = source.dsn
        try:
            with interrupt.restored_handlers():
                self.driver: Any = import_module("adbc_driver_postgresql.dbapi")
        except ImportError:
            raise SourceError(f"source.postgres needs the ADBC driver for PostgreSQL: {INSTALL}") from None

    def copy(self, columns: Columns | None, tokens: Tokens, to: Path) -> str:
        def copied() -> list[pa.Field]:
            return self._copied(connection, columns, tokens, to)

        with closing(interrupt.run_interruptible(self._connected, lambda: False)) as connection:
            taken = interrupt.run_interruptible(copied, lambda: _cancelled(connection))
        return ", ".join([*(_typed(field, to, self.name) for field in taken), *map(quote, tokens.columns.values())])

    def _copied(self, connection: Any, columns: Columns | None, tokens: Tokens, to: Path) -> list[pa.Field]:
        """Write the answer; return its columns."""
        with self._answering(), closing(connection.cursor()) as cursor:
            cursor.execute("SET client_encoding TO 'UTF8'")
            connection.commit()
            cursor.execute(SNAPSHOT)
            self._check_statement(cursor)
            cursor.execute(self.part("*", "LIMIT 0"))
            schema = cursor.fetch_arrow_table().schema
            taken = _taken(schema, columns)
            cursor.execute(self.part(", ".join([*map(_selected, taken), *_tokens(tokens)])))
            self._write(cursor.fetch_record_batch(), to)
        return taken

    def _check_statement(self, cursor: Any) -> None:
        """Let the server parse the query by itself, without running it. Its protocol takes one statement at a time;
        `part`, which makes a subquery of it, takes only a SELECT."""
        try:
            cursor.adbc_execute_schema(self.query)
        except self.driver.ProgrammingError as error:
            if SEVERAL in str(error):
                raise self.not_one_select("several statements") from None
            raise

    def _write(self, batches: pa.RecordBatchReader, to: Path) -> None:
        with pq.ParquetWriter(to, batches.schema, compression="lz4", store_schema=False) as writer:
            for batch in batches:
                interrupt.check()
                writer.write_batch(batch)

    def _connected(self) -> Any:
        try:
            return self.driver.connect(self.dsn)
        except self.driver.Error as error:
            said = str(error)
            reason = next((words for mark, words in CONNECTING.items() if mark in said), f"it failed; {ASK}")
            raise SourceError(f"connecting to PostgreSQL: {reason}") from None

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Translate failures without values: only what is wrong in the query itself is reported as the server says
        it. Those of a stream under way come as failures of Arrow or of the system, as those of our own disk do."""
        try:
            yield
        except (self.driver.Error, OSError, pa.ArrowException) as error:
            state, said = re.search(r"SQLSTATE: (\w{5})", str(error)), re.search(r"ERROR:\s+([^\n]*)", str(error))
            if state and state[1].startswith("42") and said:
                raise SourceError(f"PostgreSQL: the query: {self.first_line(said[1])}") from None
            if state or isinstance(error, self.driver.Error) or "libpq" in str(error):
                known = f" (SQLSTATE {state[1]})" if state else "" if said else ", or the connection broke"
                raise SourceError(f"reading PostgreSQL: the server refused the query{known}; {ASK}") from None
            with translated("reading PostgreSQL"):
                raise error from None


def _cancelled(connection: Any) -> bool:
    connection.adbc_cancel()
    return True


def _type(field: pa.Field) -> str:
    """Return the name that PostgreSQL has for a column's type."""
    metadata = field.metadata or {}
    name: bytes = metadata.get(b"POSTGRESQL:type") or metadata.get(b"ADBC:postgresql:typname") or b""
    return name.decode()


def _taken(schema: pa.Schema, columns: Columns | None) -> list[pa.Field]:
    """Return the columns to read: those that are used, of which none may be unusable, or all that can be read."""
    if columns is None:
        return [field for field in schema if not _unusable(field)]
    taken = [schema.field(name) for name in wanted(columns)(schema.names)]
    _refuse_unusable(taken, columns)
    return taken


def _unusable(field: pa.Field) -> bool:
    """Return whether a type has no text that says what it is; others are read as they are, as decimals or as text."""
    no_text = (pa.types.is_nested, pa.types.is_binary, pa.types.is_time, pa.types.is_duration, pa.types.is_interval)
    return _type(field) == "money" or any(test(field.type) for test in no_text)


def _refuse_unusable(fields: list[pa.Field], columns: Columns) -> None:
    places = {name: f"columns.{'.'.join(map(str, place))}" for place, name in columns.places()}
    problems = [
        Problem(places.get(field.name, "columns.individual"), f"type {_type(field)}", USABLE, "cast it in the query")
        for field in fields
        if _unusable(field)
    ]
    if problems:
        raise ConfigError(problems)


def _selected(field: pa.Field) -> str:
    column = quote(field.name)
    return column if _type(field) in AS_THEY_ARE else f"{column}::text AS {column}"


def _tokens(tokens: Tokens) -> Iterator[str]:
    """Return the SQL for the tokens of identifiers; md5 is what every server has."""
    for name, token in tokens.columns.items():
        yield f"md5({literal(tokens.key)} || {quote(name)}::text) AS {quote(token)}"


def _typed(field: pa.Field, copy: Path, name: str) -> str:
    """Return what DuckDB is to select of the copy: text that stands for exact numbers becomes a decimal."""
    column = quote(field.name)
    if _type(field) != "numeric":
        return column
    precision, scale = _declared(field) or _digits(column, copy, name)
    if precision > DIGITS:
        found = f"{name}: column {field.name!r}: numbers of {precision} digits"
        raise SourceError(f"{found}; at most {DIGITS} can be read: round them in the query")
    return f"CAST(nullif({column}, 'NaN') AS DECIMAL({precision}, {scale})) AS {column}"


def _declared(field: pa.Field) -> tuple[int, int] | None:
    """Return precision and scale of a type like numeric(10, 2); PostgreSQL keeps them in one number."""
    modifier = int((field.metadata or {}).get(b"POSTGRESQL:typmod", b"-1")) - 4
    precision, scale = modifier >> 16, modifier & 0x7FF
    return (precision, scale) if modifier >= 0 and scale <= precision else None


def _digits(column: str, copy: Path, name: str) -> tuple[int, int]:
    """Return precision and scale that all values of a column fit in."""
    whole, places = f"split_part(ltrim({column}, '-'), '.', 1)", f"split_part({column}, '.', 2)"
    sql = (
        f"SELECT coalesce(max(length({whole})), 1), coalesce(max(length({places})), 0), "
        f"count_if(contains({column}, 'Infinity')) FROM read_parquet({literal(str(copy))}) WHERE {column} <> 'NaN'"
    )
    with translated(f"reading {name}"), closing(Database.in_memory()) as database:
        digits, scale, infinite = database.one(sql)
    if infinite:
        values = counted(infinite, "value that is", "values that are")
        raise SourceError(f"{name}: column {column}: {values} not finite; filter them in the query")
    return int(digits) + int(scale), int(scale)
