"""Identifiers as tokens. Sources that are copied to the spill hold a token in place of each identifier: equal values
have equal tokens, and without the key, which is written nowhere, nothing else can be read off them. They show whether
rows share a person."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

import pyarrow as pa

from anon.config import Columns
from anon.core.database import Database, literal, quote

KEY = "anon_token_key"  # the variable of a connection that holds the key


@dataclass(frozen=True)
class Tokens:
    """The identifiers that are read as tokens: all of them where every row counts as another person, else none."""

    names: tuple[str, ...] = ()
    key: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)

    @classmethod
    def from_columns(cls, columns: Columns | None) -> Tokens:
        return cls(tuple(columns.identifiers) if columns is not None and columns.individual == "row" else ())

    @property
    def columns(self) -> dict[str, str]:
        """The column of a copy that holds the tokens of each identifier."""
        return {name: f"token of {name}" for name in self.names}

    def share_key(self, database: Database) -> None:
        """Give a connection the key, apart from the queries that use it."""
        database.execute(f"SET VARIABLE {KEY} = ?", [self.key])

    def sql(self, column: str) -> str:
        """Return the SQL of DuckDB for the token of an expression, on a connection that has the key."""
        return f"CASE WHEN {column} IS NOT NULL THEN hash(getvariable({literal(KEY)}), CAST({column} AS VARCHAR)) END"

    def selected(self) -> list[str]:
        """Return the SQL of DuckDB for all tokens, by the names of their columns."""
        return [f"{self.sql(quote(name))} AS {quote(token)}" for name, token in self.columns.items()]


NO_TOKENS = Tokens()


class TokenMaker:
    """Makes the tokens of batches that have the identifiers."""

    def __init__(self, tokens: Tokens) -> None:
        self.names, self._sql = list(tokens.names), f"SELECT {', '.join(tokens.selected())} FROM identified"
        self.schema = pa.schema([(token, pa.uint64()) for token in tokens.columns.values()])
        self._database = Database.in_memory()
        tokens.share_key(self._database)

    def tokens(self, batch: pa.RecordBatch) -> list[pa.Array]:
        if not self.names:
            return []
        self._database.register("identified", batch)
        found = self._database.query(self._sql).to_arrow_table().combine_chunks()
        return [column.chunk(0) for column in found.columns]

    def close(self) -> None:
        self._database.close()
