"""The rows of the config's source as one view under neutral names, read in streams. This is where identifiers stop: the
view holds the quasi-identifiers q0, q1, ..., the sensitive columns s0, ..., and the kept columns k0, ... in canonical
types, and no other column."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from anon.config import Aggregation, Builder, Columns, Config, Limits, Nulls, Sensitive
from anon.core.database import Database, interruptible, quote, translated
from anon.core.memory import Memory
from anon.errors import ConfigError, Problem, SourceError
from anon.source import long_texts
from anon.source.checks import (
    LONGEST,
    Cell,
    NullPolicy,
    any_of,
    individual_problems,
    individual_sql,
    named_in_every_row,
    people_of,
    width_problems,
)
from anon.source.left_out import LeftOut, OtherRows, Reasons, left_out_people
from anon.source.long_texts import Texts
from anon.source.one_row_each import CHOSEN, FIELD, MOMENT, choose, typed_moment, ways_on
from anon.source.origins import Mark, Origin, origin_of
from anon.source.person_keys import PersonKey, PersonSearch, attributes_of, part_compared
from anon.source.requirements import ROWS, DuckDBRows, Requirement, RowAnswers, Rows, SqlTable
from anon.source.tables import describe, why_text
from anon.source.types import (
    TypedColumn,
    Unusable,
    UnusableText,
    aggregated,
    as_builders_take_it,
    labels_of,
    narrow,
    rounded,
    type_column,
)

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
    stored: tuple[str, str] | None = (
        None  # kind and SQL in the source, if it is rounded, or ages or padded codes replace it
    )

    @property
    def as_stored(self) -> tuple[str, str]:
        """The kind and the SQL of the values as the source has them."""
        return self.stored or (self.kind, self.sql)


@dataclass
class Source:
    """The rows of the config's source as a view, with the counts that the checks came upon."""

    database: Database
    quasi_identifiers: list[Column]
    sensitive: list[Column]
    keep: list[Column]
    rows: int = 0
    left_out: LeftOut = field(default_factory=LeftOut)  # for null values
    origin: Origin | None = None
    multiplicity: str = "single"
    repeated: dict[str, tuple[int, int]] = field(default_factory=dict)  # see `PersonSearch`
    spelled_alike: int = 0  # individuals whose name or number is that of another one but for its spelling
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
            self.database.execute(sql)

    def batches(self, columns: list[Column], counted: bool = False, view: str = VIEW) -> Iterator[pa.RecordBatch]:
        """Stream the columns, in any order of rows, on a separate connection. `counted`: equal rows once, with their
        number in a last column."""
        names = ", ".join(column.alias for column in columns)
        rows = f"SELECT {names} FROM {view}"
        if counted:
            rows = f"SELECT {names}, count(*) FROM {view} GROUP BY {names}"
        size = max(min(VALUES // max(len(columns), 1), LARGEST), BATCH // 4)
        yield from self.rows_of(rows, self.within(size, [column.alias for column in columns]))

    def within(self, rows: int, aliases: Iterable[str]) -> int:
        """Return the rows of a batch, at most the given number, fewer where the texts of some columns are long."""
        width = sum(self.widths.get(alias, 0) for alias in aliases)
        return min(rows, max(int(TEXT / max(width, 1)), FEWEST))

    def rows_of(
        self, sql: str, batch: int | None = None, tables: dict[str, pa.Table] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Stream the result of a query on the views, and perhaps other tables, on a separate connection."""
        frame = {} if self.frame is None else {"raw_rows": self.frame}
        return self.stream(sql, frame | (tables or {}), batch or self.within(BATCH, self.widths))

    def stream(self, sql: str, tables: dict[str, Any], batch: int = BATCH) -> Iterator[pa.RecordBatch]:
        """Stream the result of a query on a separate connection, which does not know what was registered with
        another."""
        with closing(self.database.cursor()) as database:
            with translated("reading the source"):
                for name, table in tables.items():
                    database.register(name, table)
                reader = database.query(sql).to_arrow_reader(batch)
            yield from interruptible(reader, "reading the source")

    def ends(self, columns: list[Column]) -> dict[str, tuple[int, int]]:
        """Return the lowest and highest value of columns of whole numbers or dates (as days) that have any. Unlike
        for other numbers, what Parquet files say of them can be believed."""
        listed = []
        for column in columns:
            number = f"({column.alias} - DATE '1970-01-01')" if column.kind == "date" else column.alias
            listed += [f"min({number})::BIGINT", f"max({number})::BIGINT"]
        with self.database.all_optimizers():
            found = [column[0].as_py() for column in self.query(f"SELECT {', '.join(listed)} FROM {self.VIEW}")]
        pairs = zip(columns, zip(found[0::2], found[1::2]))
        return {column.alias: ends for column, ends in pairs if ends[0] is not None}

    def query(self, sql: str) -> pa.Table:
        with translated("reading the source"):
            return self.database.query(sql).to_arrow_table()

    def distinct(self, column: Column, most: int) -> pa.ChunkedArray:
        """Return the distinct values of a column, at most `most` of them."""
        return self.query(f"SELECT DISTINCT {column.alias} FROM {self.VIEW} LIMIT {most}")[0]

    def rows_with(self, column: Column, values: pa.Array) -> int:
        """Return the number of rows that have one of some values."""
        self.database.register("some_values", pa.table({"v": values}))
        counted = self.query(f"SELECT count(*) FROM {self.VIEW} WHERE {column.alias} IN (SELECT v FROM some_values)")
        return int(counted[0][0].as_py())

    def why_text(self, column: Column) -> str:
        """Return a hint at what may have made a column text."""
        return why_text(DuckDBRows(self.database, self.VIEW), column.alias)

    @property
    def used_rows(self) -> str:
        """The relation of the rows that are used, with `who` each is about."""
        return "kept_rows" if self.left_out.one_row_each is None else CHOSEN

    def use_one_row_each(self, other: OtherRows) -> None:
        """Note that one row of every individual was chosen, and count the others as left out."""
        self.left_out = self.left_out.with_other_rows(other)
        self.rows -= other.rows

    def check_unchanged(self) -> None:
        """Raise SourceError if what every pass reads anew is no longer the same."""
        if self.origin is not None and self.origin.in_place:
            self.origin.check_unchanged()


@dataclass(frozen=True)
class CheckedRows:
    """What one pass over the rows of a source gives: the columns in their canonical types by role, the labels in place
    of their values, the number of rows, those that are dropped, and the problems of single rows."""

    columns: list[list[Column]]
    labels: dict[str, pa.Table]
    total: int
    dropped: Reasons
    problems: list[Problem]
    moment: str | None = None  # the SQL of what orders the rows of an individual, of whom one is used
    text: bool = False  # whether individuals are named by text

    @property
    def aliases(self) -> list[str]:
        return [column.alias for role in self.columns for column in role]

    @property
    def rows(self) -> int:
        """The rows that are not dropped."""
        return self.total - self.dropped.all


def open_source(database: Database, config: Config, table: Any, spill: Path) -> Source:
    """Open the config's source, or the given frame in its place, and check it against the config."""
    origin = origin_of(config, table)
    origin.register(database, "raw_rows", config.columns, spill)
    types = describe(database, "raw_rows")
    who = individual_sql(config.columns, types)
    raw = DuckDBRows(database, "raw_rows")
    checked = check_rows(raw, config, types, who)
    columns = checked.columns
    create_labels(database, checked.labels)
    create_views(database, config.nulls, columns, who, checked.moment)
    if who is not None and config.columns.multiplicity != "single":
        _create_views_of_people(database, columns)
    people = checked.dropped
    if who is not None and people.all:
        people = left_out_people(DuckDBRows(database, Source.NULLS), Source.NULLS)
    left_out = LeftOut(checked.dropped, people)
    quasi_identifiers, sensitive, keep = columns
    multiplicity = config.columns.multiplicity
    source = Source(database, quasi_identifiers, sensitive, keep, checked.rows, left_out, origin, multiplicity)
    if checked.moment is not None:
        check_people(source, checked, None)
        source.use_one_row_each(choose(database, config.columns.rows, checked.aliases))
        create_source(database, checked.aliases, CHOSEN)
    ways = partial(ways_on, config.columns, origin.types or types)
    check_people(source, checked, None if who is None else DuckDBRows(database, source.used_rows), ways)
    check_widths(source, config.limits)
    if config.columns.individual == "row":
        _find_persons(source, config, raw, checked.total)
    return source


def _find_persons(source: Source, config: Config, raw: DuckDBRows, total: int) -> None:
    """Find rows that are of one person although each counts as another."""
    assert source.origin is not None
    identifiers = {name: quote(column) for name, column in source.origin.identifiers.items()}
    published = [*source.quasi_identifiers, *source.keep]
    stored = {column.name: column.as_stored for column in published}
    kinds, sql = ({name: both[at] for name, both in stored.items()} for at in (0, 1))
    search = PersonSearch(raw, attributes_of(config.columns, kinds, identifiers | sql), part_compared(total))
    source.repeated, source.persons = search.repeated_identifiers(), search.found()


def check_rows(rows: Rows, config: Config, types: dict[str, str], who: str | None) -> CheckedRows:
    """Type the columns of the config and check the rows, in one pass over these; `who` is the SQL for whom a row is
    about. Only the labels of a builder take another pass. SourceError or ConfigError if columns cannot be used."""
    columns = config.columns
    roles = {
        "quasi_identifiers": list(columns.quasi_identifiers),
        "sensitive": list(columns.sensitive),
        "keep": list(columns.keep),
    }
    typing = Typing(roles, types, columns)
    policy = NullPolicy(config.nulls, typing.cells)
    requirements = policy.requirements + ([] if who is None else [named_in_every_row(who, policy)])
    dropped = policy.aggregates if policy.drops else []
    moment = typed_moment(columns.rows, types)
    ordered = moment.requirements if isinstance(moment, TypedColumn) else ()
    answers = rows.evaluate([ROWS, *typing.requirements, *requirements, *ordered, *dropped])
    if not (total := int(answers[ROWS.name])):
        raise SourceError("the table has no rows")
    typed, problems = typing.usable(rows, answers)
    problems += answers.problems(ordered) + _moment_problems(rows, moment)
    if problems:
        raise ConfigError(problems)
    reasons = policy.dropped(answers) if policy.drops else Reasons()
    by = moment.sql if isinstance(moment, TypedColumn) else None
    text = who is not None and types[columns.individual] == "VARCHAR"
    return CheckedRows(list(typed.values()), typing.labels, total, reasons, answers.problems(requirements), by, text)


def _moment_problems(rows: Rows, moment: TypedColumn | Unusable | None) -> list[Problem]:
    """Return why a column cannot order the rows of an individual."""
    if isinstance(moment, UnusableText):
        moment = moment.explained(why_text(rows, moment.sql))
    return [moment.problem(FIELD)] if isinstance(moment, Unusable) else []


class Typing:
    """Columns of a config by role with the types that a table has for them. `columns`, for a source, says how the
    values of quasi-identifiers and of sensitive columns are taken; labels are taken as they are."""

    def __init__(self, roles: Mapping[str, list[str]], types: dict[str, str], columns: Columns | None = None) -> None:
        self.roles, self.types, self.columns = roles, types, columns
        self.labels: dict[str, pa.Table] = {}  # of sensitive columns, by the name that the SQL of the column uses
        self.typed = {(role, name): self._typed(role, name) for role, names in roles.items() for name in names}

    def _typed(self, role: str, name: str) -> TypedColumn | Unusable:
        path, type_name = f"columns.{role}.{name}", self.types[name]
        try:
            column = self._stored(role, name)
            spec, builder = self._spec(role, name), self._builder(role, name)
            if spec is not None and spec.round is not None:
                return rounded(path, spec.round, column, type_name)
            if aggregation := self._aggregation(role, name):
                return aggregated(path, aggregation, column, type_name)
            return column if builder is None else as_builders_take_it(path, builder, column)
        except Unusable as error:
            return error

    def _stored(self, role: str, name: str) -> TypedColumn:
        # numbers that are aggregated are finite, and NaN is none, as in sensitive columns
        letter = "s" if self._aggregation(role, name) else role[0]
        return type_column(f"columns.{role}.{name}", quote(name), self.types[name], letter)

    def _aggregation(self, role: str, name: str) -> Aggregation | None:
        return self.columns.aggregate.get(name) if self.columns and role == "keep" else None

    def _spec(self, role: str, name: str) -> Sensitive | None:
        return self.columns.sensitive[name] if self.columns and role == "sensitive" else None

    def _builder(self, role: str, name: str) -> Builder | None:
        if self.columns and role == "quasi_identifiers":
            return self.columns.quasi_identifiers[name]
        return spec.builder if (spec := self._spec(role, name)) else None

    @property
    def requirements(self) -> list[Requirement]:
        """What the rows must meet so that all columns can be used."""
        usable = (column for column in self.typed.values() if isinstance(column, TypedColumn))
        return [requirement for column in usable for requirement in column.requirements]

    @property
    def cells(self) -> list[Cell]:
        """The columns whose missing values have a policy."""
        return [
            Cell(role, name, column.missing)
            for (role, name), column in self.typed.items()
            if isinstance(column, TypedColumn) and role != "keep"
        ]

    def usable(self, rows: Rows, answers: RowAnswers) -> tuple[dict[str, list[Column]], list[Problem]]:
        """Return the columns by role as the rows allow them, and the problems of all that they do not."""
        problems: list[Problem] = []
        found: dict[str, list[Column]] = {role: [] for role in self.roles}
        for role, names in self.roles.items():
            for index, name in enumerate(names):
                try:
                    column = self._usable(rows, answers, role, index)
                    small = narrow(name, self.types[name], column.sql)
                    stored = self._as_stored(role, name)
                    found[role].append(Column(name, f"{role[0]}{index}", column.kind, column.sql, small, stored))
                except Unusable as error:
                    problems.append(error.problem(f"columns.{role}.{name}"))
                except ConfigError as error:
                    problems += error.problems
        return found, problems

    def _as_stored(self, role: str, name: str) -> tuple[str, str] | None:
        """Return the kind and the SQL of a column in the source, if its builder takes other values or it is rounded."""
        builder, spec = self._builder(role, name), self._spec(role, name)
        changed = role == "quasi_identifiers" and builder and (builder.reference_day or builder.code_length) is not None
        published = spec or self._aggregation(role, name)
        if not changed and (published is None or published.round is None):
            return None
        column = self._stored(role, name)
        return column.kind, column.sql

    def _usable(self, rows: Rows, answers: RowAnswers, role: str, index: int) -> TypedColumn:
        """Return a column, perhaps with labels in place of values; Unusable or ConfigError if the rows forbid it."""
        name = self.roles[role][index]
        column = self.typed[role, name]
        if isinstance(column, UnusableText):
            raise column.explained(why_text(rows, column.sql))
        if isinstance(column, Unusable):
            raise column
        if problems := answers.problems(column.requirements):
            raise ConfigError(problems[:1])
        builder = None if role != "sensitive" else self._builder(role, name)
        if builder is None or builder.kind == "free":
            return column
        table = f"labels_{index}"
        self.labels[table] = labels_of(name, builder, rows, column)
        return replace(column, kind="text", sql=f"(SELECT label FROM {table} WHERE v = {column.sql})")


def create_labels(database: Database, labels: dict[str, pa.Table]) -> None:
    """Create the tables that the SQL of columns with labels reads."""
    with translated("reading the source"):
        for name, table in labels.items():
            database.register("labels_made", table)
            database.execute(f"CREATE TABLE {name} AS SELECT * FROM labels_made")
            database.unregister("labels_made")


def create_views(
    database: Database, nulls: Nulls, columns: list[list[Column]], who: str | None, moment: str | None = None
) -> None:
    """Create the views all_rows, their nulls, kept_rows without those to drop, and that of the source, which does not
    say whom rows are about. `moment` orders the rows of an individual: then the source has those that are chosen."""
    every = [column for role in columns for column in role]
    selected = ", ".join(f"{column.sql} AS {column.alias}" for column in every)
    narrow = ", ".join(f"{column.narrow or column.sql} AS {column.alias}" for column in every)
    needed = [f"{alias} IS NOT NULL" for role in droppable(nulls, columns) for alias in role]
    with translated("reading the source"):
        by = f", {moment} AS {MOMENT}" if moment else ""
        database.execute(f"CREATE VIEW all_rows AS SELECT {selected}, {who or 'NULL'} AS who{by} FROM raw_rows")
        database.execute(f"CREATE VIEW {Source.NULLS} AS {select_nulls(nulls, columns, 'all_rows')}")
        where = f" WHERE {' AND '.join(needed)}" if needed else ""
        database.execute(f"CREATE VIEW kept_rows AS SELECT * FROM all_rows{where}")
        if moment is None:
            listed = ", ".join(column.alias for column in every)
            database.execute(f"CREATE VIEW {Source.VIEW} AS SELECT {listed} FROM kept_rows")
            database.execute(f"CREATE VIEW {Source.NARROW} AS SELECT * FROM (SELECT {narrow} FROM raw_rows){where}")


def create_source(database: Database, aliases: list[str], rows: str) -> None:
    """Create the views of a source of which one row of every individual was chosen."""
    with translated("reading the source"):
        for view in (Source.VIEW, Source.NARROW):
            database.execute(f"CREATE VIEW {view} AS SELECT {', '.join(aliases)} FROM {rows}")


def droppable(nulls: Nulls, columns: list[list[Column]]) -> list[list[str]]:
    """Return the quasi-identifiers and the sensitive columns without which a row is dropped, as the view calls them."""
    policies = ((columns[0], nulls.quasi_identifiers), (columns[1], nulls.sensitive))
    return [[column.alias for column in role if policy == "drop"] for role, policy in policies]


def select_nulls(nulls: Nulls, columns: list[list[Column]], rows: str) -> str:
    """Return the SQL, for DuckDB and Spark alike, for whom each row is about and the nulls for which it is dropped."""
    missing = (any_of([f"{alias} IS NULL" for alias in role]) for role in droppable(nulls, columns))
    no_quasi_identifier, no_sensitive = missing
    return f"SELECT who, {no_quasi_identifier} AS no_quasi_identifier, {no_sensitive} AS no_sensitive FROM {rows}"


def _create_views_of_people(database: Database, columns: list[list[Column]]) -> None:
    """Create the views of a source whose individuals may have several values; they do not say whom rows are about."""
    first = ", ".join(f"first({c.alias}) AS {c.alias}" for c in (*columns[0], *columns[2]))
    own = ", ".join(column.alias for column in (*columns[0], *columns[1]))
    values = f"SELECT {own} FROM (SELECT DISTINCT who, {own} FROM kept_rows)"
    with translated("reading the source"):
        database.execute(f"CREATE VIEW {Source.PEOPLE} AS SELECT {first} FROM kept_rows GROUP BY who")
        database.execute(f"CREATE VIEW {Source.VALUES} AS {values}")


def check_widths(source: Source, limits: Limits) -> None:
    """Measure the texts of a source; ConfigError if those of which every different one is held are too long,
    ResourceError if the memory is too little for them."""
    roles = [("quasi_identifiers", source.quasi_identifiers), ("sensitive", source.sensitive), ("keep", source.keep)]
    cells = [(role, column) for role, columns in roles for column in columns if column.kind == "text"]
    if not cells:
        return
    lengths = [f"strlen({column.alias})" for _, column in cells]
    sql = ", ".join(f"avg({n}), max({n}), count_if({n} > {LONGEST})" for n in lengths)
    found = source.database.one(f"SELECT {sql} FROM {Source.VIEW}")
    source.widths = {column.alias: mean or 0.0 for (_, column), mean in zip(cells, found[0::3])}
    if problems := width_problems([(role, c.name, n) for (role, c), n in zip(cells, found[2::3]) if role != "keep"]):
        raise ConfigError(problems)
    longest = {column.alias: most or 0 for (_, column), most in zip(cells, found[1::3])}
    kept, held = ([c.alias for role, c in cells if (role == "keep") == keep] for keep in (True, False))
    _make_room(source, long_texts.measure(source.database, Source.VIEW, kept, held, longest), limits)


def _make_room(source: Source, found: Texts, limits: Limits) -> None:
    """Leave to DuckDB the memory and the threads that long texts allow; ResourceError if they allow none."""
    most = limits.threads or os.cpu_count() or 1
    threads = found.threads(limits.memory, most)
    if threads < most:
        source.threads = threads
        source.database.set("threads", threads)
    if found.held:
        source.held = found.held
        source.database.limit(Memory(limits.memory, found.held))


def check_people(source: Source, checked: CheckedRows, people: SqlTable | None, ways: Callable[[], str] = str) -> None:
    """Refuse a source without a row that is kept, and rows that are not as the config says: ConfigError. `people` has
    the rows that are used with `who` each is about, where the config names individuals; `ways` says what to do about
    several rows of one."""
    if not source.rows:
        raise ConfigError.at("nulls", f"all {source.left_out.rows.all:,} rows dropped", "rows with values")
    problems = checked.problems
    if people is not None:
        known, kept = ({c.name: c.alias for c in columns} for columns in (source.quasi_identifiers, source.keep))
        found = people_of(people, "who", checked.text)
        problems = problems + individual_problems(people, "who", known, source.multiplicity, kept, ways(), found)
        source.spelled_alike = found.alike
    if problems:
        raise ConfigError(problems)
