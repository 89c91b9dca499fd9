"""Queries on databases as sources. A database is asked once, for the columns that are used, and the answer is copied to
the private spill: every later pass reads that. Here what queries on databases share, and those on DuckDB files;
postgres.py has PostgreSQL."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import duckdb

from anon.config import Columns, Config, DuckDB, redact
from anon.core.database import Database, connect, literal, quote, translated
from anon.errors import ConfigError, SourceError
from anon.source.origins import Origin, fingerprint, wanted
from anon.source.tokens import Tokens

IN_THE_QUERY = (duckdb.CatalogException, duckdb.BinderException, duckdb.ParserException)
ONE_SELECT = "one SELECT statement"
WIDE = {"HUGEINT", "UHUGEINT"}  # which Parquet does not have


class Query(Origin):
    """A query whose answer is the table."""

    def __init__(self, name: str, query: str, config: Config) -> None:
        self.name, self.query, self.config = name, query.strip().rstrip(";"), config
        self.marks = []

    def register(self, database: Database, name: str, columns: Columns | None, spill: Path) -> None:
        """Register the answer as every origin does; without columns, which have no roles yet, all that can be read."""
        copy, tokens = spill / f"{name}.parquet", Tokens.from_columns(columns)
        selected = self.copy(columns, tokens, copy)
        rows = f"SELECT {selected} FROM read_parquet({literal(str(copy))})"
        with translated(f"reading {self.name}"):
            database.execute(f"CREATE VIEW {name} AS {rows}")
        self.identifiers = tokens.columns
        self.marks = [(self.name, *fingerprint(database, name, tokens.columns.values()))]

    @abstractmethod
    def copy(self, columns: Columns | None, tokens: Tokens, to: Path) -> str:
        """Write the answer without columns that are not used and with tokens in place of identifiers; return what
        DuckDB is to select of it."""

    def part(self, listed: str, rows: str = "") -> str:
        """Return the SQL for some columns of the answer."""
        return f"SELECT {listed} FROM (\n{self.query}\n) AS source_query {rows}"

    def not_one_select(self, found: str) -> ConfigError:
        return ConfigError.at(f"source.{self.config.source.kind}.query", found, ONE_SELECT)

    def first_line(self, said: str) -> str:
        """Return the first line of what a database says of the query, without what came from variables."""
        return redact(said.strip().split("\n")[0], self.config.secrets)


class DuckDBQuery(Query):
    """A query on a DuckDB file, which is opened for reading and only while it is copied, on a connection that reaches
    nothing else."""

    def __init__(self, source: DuckDB, config: Config) -> None:
        super().__init__(redact(str(source.file), config.secrets), source.query, config)
        self.file = source.file
        if not self.file.is_file():
            raise SourceError(f"{self.name}: no such DuckDB file")

    def copy(self, columns: Columns | None, tokens: Tokens, to: Path) -> str:
        limits = self.config.limits
        with self._answering(), closing(connect(limits.memory, limits.threads, to.parent, self.file)) as database:
            tokens.share_key(database)
            database.isolate()
            self._check_statement(database)
            answer = database.query(self.part("*", "LIMIT 0"))
            types = dict(zip(answer.columns, map(str, answer.types)))
            taken = wanted(columns)(answer.columns) if columns else answer.columns
            listed = [*(_writable(name, types[name]) for name in taken), *tokens.selected()]
            database.execute(f"COPY ({self.part(', '.join(listed))}) TO {literal(str(to))} (FORMAT parquet)")
        return "*"

    def _check_statement(self, database: Database) -> None:
        """Refuse anything but one SELECT. What parses as one statement by itself has balanced parentheses and ends its
        comments, so `part` cannot give it another meaning."""
        statements = database.statements(self.query)
        if len(statements) != 1:
            raise self.not_one_select(f"{len(statements)} statements")
        if statements[0].type != duckdb.StatementType.SELECT:
            raise self.not_one_select(f"a statement of type {statements[0].type.name}")

    @contextmanager
    def _answering(self) -> Iterator[None]:
        with translated(f"reading {self.name}"):
            try:
                yield
            except IN_THE_QUERY as error:
                raise SourceError(f"{self.name}: the query: {self.first_line(str(error))}") from None
            except duckdb.PermissionException:
                found = "the query, or a view it uses, reads another file or loads an extension"
                raise SourceError(f"{self.name}: {found}; it may read the tables of this file only") from None
            except duckdb.IOException as error:
                if "lock" in str(error):
                    raise SourceError(f"{self.name}: another program has the file open for writing") from None
                if "not a valid DuckDB" in str(error):
                    raise SourceError(f"{self.name}: it is not a DuckDB file of a version that can be read") from None
                raise


def _writable(name: str, type_name: str) -> str:
    column = quote(name)
    return f"CAST({column} AS BIGINT) AS {column}" if type_name in WIDE else column
