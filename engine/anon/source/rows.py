"""The rows of the config's source as one view under neutral names, read in streams (config -> source -> cube -> search
-> release -> verify -> report). This is where identifiers stop: the view holds the quasi-identifiers q0, q1, ..., the
sensitive columns s0, ..., and the kept columns k0, ... in canonical types, and no other column."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from anon.config import Columns, Config, Limits, Nulls
from anon.core.database import all_optimizers, interruptible, limit, quote, translated
from anon.core.memory import Memory
from anon.errors import ConfigError, Problem
from anon.source import texts
from anon.source.checks import (
    LONGEST,
    individual_problems,
    individual_sql,
    null_problems,
    repeated_identifiers,
    width_problems,
)
from anon.source.left_out import LeftOut, count_left_out, null_values_sql
from anon.source.origins import Mark, Origin, origin_of
from anon.source.persons import PersonKey, attributes_of, person_keys
from anon.source.tables import count_rows, describe, one
from anon.source.texts import Texts
from anon.source.types import Unusable, canonical, narrow, published

BATCH = 32_768  # rows of a batch of any query's result
VALUES, LARGEST = 2**20, 131_072  # values of a batch of some columns, and rows if these are few
TEXT, FEWEST = 4_000_000, 2_048  # bytes of texts in a batch, about, and the rows that DuckDB makes at a time


@dataclass(frozen=True)
class Column:
    """A column in use: its name in the source, its name in the view, its kind and the SQL that makes it canonical."""

    name: str
    alias: str
    kind: str  # integer | number | decimal | date | timestamp | boolean | text
    sql: str
    narrow: str = ""  # the same in fewer bits, if the source has them so


@dataclass
class Source:
    """The rows of the config's source as a view, with the counts that the checks came upon."""

    con: duckdb.DuckDBPyConnection
    quasi_identifiers: list[Column]
    sensitive: list[Column]
    keep: list[Column]
    rows: int = 0
    left_out: LeftOut = field(default_factory=LeftOut)  # for null values
    origin: Origin | None = None
    multiplicity: str = "single"
    repeated: dict[str, tuple[int, int]] = field(default_factory=dict)  # see `repeated_identifiers`
    widths: dict[str, float] = field(default_factory=dict)  # bytes of a text, on average, per column of the view
    held: int = 0  # bytes that the different texts of quasi-identifiers and sensitive columns take, if they are long
    threads: int | None = None  # of DuckDB, if long texts allow fewer than the config
    persons: list[PersonKey] = field(default_factory=list)  # where every row counts as a person: what says otherwise

    VIEW = "source_rows"
    NARROW = "narrow_rows"  # the same rows in as few bits as the source has, which are streamed in half the time
    NULLS = "null_values"  # of every row `who` it is about, and the nulls for which it is dropped
    PEOPLE = "source_people"  # a row for every individual, without sensitive columns
    VALUES = "source_values"  # a row for every different value of an individual, without kept columns

    @property
    def people_view(self) -> str:
        """The view that has a row for every individual."""
        return self.VIEW if self.multiplicity == "single" else self.PEOPLE

    @property
    def values_view(self) -> str:
        """The view that has a row for every sensitive value of an individual."""
        return self.VALUES if self.multiplicity == "set" else self.VIEW

    @property
    def marks(self) -> list[Mark]:
        """What the source is known by; a frame by nothing."""
        return self.origin.marks if self.origin else []

    @property
    def frame(self) -> pa.Table | None:
        return self.origin.frame if self.origin else None

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The Arrow type of each column of the view."""
        schema = self.query(f"SELECT * FROM {self.VIEW} LIMIT 0").schema
        return {field.name: field.type for field in schema}

    def run(self, sql: str) -> None:
        with translated("reading the source"):
            self.con.execute(sql).fetchall()

    def batches(self, columns: list[Column], counted: bool = False, view: str = VIEW) -> Iterator[pa.RecordBatch]:
        """Streams the columns, in any order of rows, on a connection of its own. `counted`: equal rows once, with how
        many they are in a last column."""
        names = ", ".join(column.alias for column in columns)
        rows = f"SELECT {names} FROM {view}"
        if counted:
            rows = f"SELECT {names}, count(*) FROM {view} GROUP BY {names}"
        size = max(min(VALUES // max(len(columns), 1), LARGEST), BATCH // 4)
        yield from self.rows_of(rows, self.within(size, [column.alias for column in columns]))

    def within(self, rows: int, aliases: Iterable[str]) -> int:
        """The rows of a batch, so many or fewer, with texts of some columns."""
        width = sum(self.widths.get(alias, 0) for alias in aliases)
        return min(rows, max(int(TEXT / max(width, 1)), FEWEST))

    def rows_of(
        self, sql: str, batch: int | None = None, tables: dict[str, pa.Table] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The result of a query on the views, and perhaps other tables, in batches, on a connection of its own."""
        frame = {} if self.frame is None else {"raw_rows": self.frame}
        return self.stream(sql, frame | (tables or {}), batch or self.within(BATCH, self.widths))

    def stream(self, sql: str, tables: dict[str, Any], batch: int = BATCH) -> Iterator[pa.RecordBatch]:
        """The result of a query in batches, on a connection of its own, which does not know what was registered with
        another."""
        with closing(self.con.cursor()) as con:
            with translated("reading the source"):
                for name, table in tables.items():
                    con.register(name, table)
                reader = con.sql(sql).to_arrow_reader(batch)
            yield from interruptible(reader, "reading the source")

    def ends(self, columns: list[Column]) -> dict[str, tuple[int, int]]:
        """The lowest and highest value of columns of whole numbers or dates (as days) that have any. Unlike for other
        numbers, what Parquet files say of them can be believed."""
        listed = []
        for column in columns:
            number = f"({column.alias} - DATE '1970-01-01')" if column.kind == "date" else column.alias
            listed += [f"min({number})::BIGINT", f"max({number})::BIGINT"]
        with all_optimizers(self.con):
            found = [column[0].as_py() for column in self.query(f"SELECT {', '.join(listed)} FROM {self.VIEW}")]
        pairs = zip(columns, zip(found[0::2], found[1::2]))
        return {column.alias: ends for column, ends in pairs if ends[0] is not None}

    def query(self, sql: str) -> pa.Table:
        with translated("reading the source"):
            return self.con.sql(sql).to_arrow_table()

    def distinct(self, column: Column, most: int) -> pa.ChunkedArray:
        """The different values of a column, or so many of them."""
        return self.query(f"SELECT DISTINCT {column.alias} FROM {self.VIEW} LIMIT {most}")[0]

    def rows_with(self, column: Column, values: pa.Array) -> int:
        """How many rows have one of some values."""
        self.con.register("some_values", pa.table({"v": values}))
        counted = self.query(f"SELECT count(*) FROM {self.VIEW} WHERE {column.alias} IN (SELECT v FROM some_values)")
        return int(counted[0][0].as_py())

    def check_unchanged(self) -> None:
        """What every pass reads anew must be the same for all of them."""
        if self.origin is not None and self.origin.in_place:
            self.origin.check_unchanged()


def open_source(con: duckdb.DuckDBPyConnection, config: Config, table: Any, spill: Path) -> Source:
    """Opens the config's source, or the given frame in its place, and checks it against the config."""
    origin = origin_of(config, table)
    origin.register(con, "raw_rows", config.columns, spill)
    types = describe(con, "raw_rows")
    total = count_rows(con, "raw_rows")
    columns = typed_columns(con, config.columns, types)
    who = individual_sql(config.columns, types)
    create_views(con, config.nulls, columns, who)
    if who is not None and config.columns.multiplicity != "single":
        _create_views_of_people(con, columns)
    rows = int(one(con, f"SELECT count(*) FROM {Source.VIEW}")[0])
    quasi_identifiers, sensitive, keep = columns
    multiplicity = config.columns.multiplicity
    left_out = count_left_out(con, Source.NULLS, who is not None) if rows < total else LeftOut()
    source = Source(con, quasi_identifiers, sensitive, keep, rows, left_out, origin, multiplicity)
    check_rows(source, config, con, "kept_rows", who)
    check_widths(source, config.limits)
    if config.columns.individual == "row":
        identifiers = {name: quote(column) for name, column in origin.identifiers.items()}
        source.repeated = repeated_identifiers(con, "raw_rows", identifiers, total)
        published = [*quasi_identifiers, *keep]
        kinds, sql = ({column.name: getattr(column, about) for column in published} for about in ("kind", "sql"))
        source.persons = person_keys(con, "raw_rows", attributes_of(config.columns, kinds, identifiers | sql), True)
    return source


def typed_columns(con: duckdb.DuckDBPyConnection, columns: Columns, types: dict[str, str]) -> list[list[Column]]:
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
                    kind, sql = published(con, name, columns.sensitive[name], kind, sql, index)
                typed[-1].append(Column(name, f"{role[0]}{index}", kind, sql, narrow(name, types[name], sql)))
            except Unusable as error:
                problems.append(error.problem(f"columns.{role}.{name}"))
            except ConfigError as error:
                problems += error.problems
    if problems:
        raise ConfigError(problems)
    return typed


def create_views(con: duckdb.DuckDBPyConnection, nulls: Nulls, columns: list[list[Column]], who: str | None) -> None:
    """all_rows, their nulls, kept_rows without those to drop, and the view of the source, which does not tell who they
    are."""
    every = [column for role in columns for column in role]
    selected = ", ".join(f"{column.sql} AS {column.alias}" for column in every)
    narrow = ", ".join(f"{column.narrow or column.sql} AS {column.alias}" for column in every)
    policies = ((columns[0], nulls.quasi_identifiers), (columns[1], nulls.sensitive))
    droppable = [[column.alias for column in role if policy == "drop"] for role, policy in policies]
    needed = [f"{alias} IS NOT NULL" for role in droppable for alias in role]
    with translated("reading the source"):
        con.execute(f"CREATE VIEW all_rows AS SELECT {selected}, {who or 'NULL'} AS who FROM raw_rows").fetchall()
        con.execute(f"CREATE VIEW {Source.NULLS} AS {null_values_sql('all_rows', 'who', *droppable)}").fetchall()
        where = f" WHERE {' AND '.join(needed)}" if needed else ""
        con.execute(f"CREATE VIEW kept_rows AS SELECT * FROM all_rows{where}").fetchall()
        listed = ", ".join(column.alias for column in every)
        con.execute(f"CREATE VIEW {Source.VIEW} AS SELECT {listed} FROM kept_rows").fetchall()
        con.execute(f"CREATE VIEW {Source.NARROW} AS SELECT * FROM (SELECT {narrow} FROM raw_rows){where}").fetchall()


def _create_views_of_people(con: duckdb.DuckDBPyConnection, columns: list[list[Column]]) -> None:
    """The views of a source whose individuals may have several values, which do not tell who they are either."""
    first = ", ".join(f"first({c.alias}) AS {c.alias}" for c in (*columns[0], *columns[2]))
    own = ", ".join(column.alias for column in (*columns[0], *columns[1]))
    values = f"SELECT {own} FROM (SELECT DISTINCT who, {own} FROM kept_rows)"
    with translated("reading the source"):
        con.execute(f"CREATE VIEW {Source.PEOPLE} AS SELECT {first} FROM kept_rows GROUP BY who").fetchall()
        con.execute(f"CREATE VIEW {Source.VALUES} AS {values}").fetchall()


def check_widths(source: Source, limits: Limits) -> None:
    """Measure the texts of a source; ConfigError if those of which every different one is held are too long,
    ResourceError if the memory is too little for them."""
    roles = [("quasi_identifiers", source.quasi_identifiers), ("sensitive", source.sensitive), ("keep", source.keep)]
    cells = [(role, column) for role, columns in roles for column in columns if column.kind == "text"]
    if not cells:
        return
    lengths = [f"strlen({column.alias})" for _, column in cells]
    sql = ", ".join(f"avg({n}), max({n}), count_if({n} > {LONGEST})" for n in lengths)
    found = one(source.con, f"SELECT {sql} FROM {Source.VIEW}")
    source.widths = {column.alias: mean or 0.0 for (_, column), mean in zip(cells, found[0::3])}
    if problems := width_problems([(role, c.name, n) for (role, c), n in zip(cells, found[2::3]) if role != "keep"]):
        raise ConfigError(problems)
    longest = {column.alias: most or 0 for (_, column), most in zip(cells, found[1::3])}
    kept, held = ([c.alias for role, c in cells if (role == "keep") == keep] for keep in (True, False))
    _make_room(source, texts.measure(source.con, Source.VIEW, kept, held, longest), limits)


def _make_room(source: Source, found: Texts, limits: Limits) -> None:
    """Leave to DuckDB the memory and the threads that long texts allow; ResourceError if they allow none."""
    most = limits.threads or os.cpu_count() or 1
    threads = found.threads(limits.memory, most)
    if threads < most:
        source.threads = threads
        source.run(f"SET threads = {threads}")
    if found.held:
        source.held = found.held
        limit(source.con, Memory(limits.memory, found.held))


def check_rows(source: Source, config: Config, con: duckdb.DuckDBPyConnection, table: str, who: str | None) -> None:
    """Rows are left, nulls by policy, and one row per individual, in a table with the rows and `who` each is about."""
    if not source.rows:
        raise ConfigError.at("nulls", f"all {source.left_out.rows.all:,} rows dropped", "rows with values")
    cells = [("quasi_identifiers", column.name, column.alias) for column in source.quasi_identifiers]
    cells += [("sensitive", column.name, column.alias) for column in source.sensitive]
    problems = null_problems(con, table, cells, config)
    if who is not None:
        aliases = [column.alias for column in source.quasi_identifiers]
        kept = [column.alias for column in source.keep]
        problems += individual_problems(con, table, "who", aliases, source.multiplicity, kept)
    if problems:
        raise ConfigError(problems)
