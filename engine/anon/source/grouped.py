"""A table that is already grouped, registered and held against the config as a source is (config -> source -> cube ->
search -> release -> verify -> report); `check` reads it in place of a source. It is one table of labels, or the two of
a bucketized one: `qi`, a row for every individual, and `sensitive`, how often each group has each value."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from anon.config import Columns, Config
from anon.core.database import quote, translated
from anon.errors import ConfigError, Problem, SourceError
from anon.source.checks import check_present, individual_problems, individual_sql, null_problems
from anon.source.left_out import LeftOut, count_left_out, null_values_sql
from anon.source.rows import Column
from anon.source.tables import bucketized_pair, count_rows, describe, one, register
from anon.source.types import Unusable, as_read, canonical

OWN = ("group", "count")  # columns of a bucketized table that no config names


@dataclass(frozen=True)
class GroupedTable:
    """The registered tables by name: that of the individuals' rows and that of the sensitive values, which is another
    one only if the table is bucketized; the sensitive columns, typed as a source's are; and the rows
    left out for null values."""

    rows: str
    values: str
    sensitive: list[Column]
    left_out: LeftOut = field(default_factory=LeftOut)

    @property
    def bucketized(self) -> bool:
        return self.rows != self.values


def open_grouped(con: duckdb.DuckDBPyConnection, name: str, config: Config, table: Any, spill: Path) -> GroupedTable:
    """Registers a table that is already grouped: a path, a frame, or for a bucketized one a folder or a pair.

    The source's own columns may be missing. Without the column of individuals every row is another one, which only
    single values allow. Quasi-identifiers of a CSV file stay the text they are, as labels. A missing label is a label,
    published like any other: no row is dropped for it, whatever `nulls` says, though it may call it an error.
    """
    pair = bucketized_pair(table)
    return _open_pair(con, name, config, pair, spill) if pair else _open_labels(con, name, config, table, spill)


def _open_labels(con: duckdb.DuckDBPyConnection, name: str, config: Config, table: Any, spill: Path) -> GroupedTable:
    every = f"{name}_read"
    names = register(con, every, table, spill, as_text=config.columns.quasi_identifiers)
    columns, types = present(config.columns, names), describe(con, every)
    check_present(columns, types, names)
    total = count_rows(con, every)
    sensitive, problems = sensitive_columns(con, every, columns, types)
    drop = [column.sql for column in sensitive if config.nulls.sensitive == "drop"]
    where = f" WHERE {' AND '.join(f'{cell} IS NOT NULL' for cell in drop)}" if drop else ""
    with translated("reading the table"):
        con.execute(f"CREATE TEMP VIEW {name} AS SELECT * FROM {every}{where}").fetchall()
    left = int(one(con, f"SELECT count(*) FROM {name}")[0]) if drop else total
    if not left:
        problems.append(Problem("nulls.sensitive", f"all {total:,} rows dropped", "rows with values"))
    cells = [("sensitive", column.name, column.sql) for column in sensitive]
    problems += _row_problems(con, name, config, columns, types, cells)
    if problems:
        raise ConfigError(problems)
    who = individual_sql(columns, types)
    nulls = f"({null_values_sql(every, who or 'NULL', [], drop)}) AS nulls"
    left_out = count_left_out(con, nulls, who is not None) if left < total else LeftOut()
    return GroupedTable(name, name, sensitive, left_out)


def present(columns: Columns, names: list[str]) -> Columns:
    """The columns of the config that a grouped table must have."""
    hidden: dict[str, Any] = {"identifiers": [], "keep": [column for column in columns.keep if column in names]}
    if columns.multiplicity == "single" and columns.individual not in names:
        hidden["individual"] = "row"
    return columns.model_copy(update=hidden)


def sensitive_columns(
    con: duckdb.DuckDBPyConnection, table: str, columns: Columns, types: dict[str, str]
) -> tuple[list[Column], list[Problem]]:
    sensitive: list[Column] = []
    problems: list[Problem] = []
    for index, column in enumerate(columns.sensitive):
        try:
            sensitive.append(Column(column, f"s{index}", *canonical(con, table, column, types[column], "s")))
        except Unusable as error:
            problems.append(error.problem(f"columns.sensitive.{column}"))
    return sensitive, problems


def _row_problems(
    con: duckdb.DuckDBPyConnection,
    table: str,
    config: Config,
    columns: Columns,
    types: dict[str, str],
    cells: list[tuple[str, str, str]],
) -> list[Problem]:
    """Missing values that the config calls an error, and rows that are not their individual's."""
    labels = [as_read(con, table, column, types[column]) for column in columns.quasi_identifiers]
    named = [("quasi_identifiers", column, quote(column)) for column in columns.quasi_identifiers]
    problems = null_problems(con, table, named + cells, config)
    who = individual_sql(columns, types)
    return problems + (individual_problems(con, table, who, labels, columns.multiplicity) if who else [])


def _open_pair(
    con: duckdb.DuckDBPyConnection, name: str, config: Config, pair: tuple[Any, Any], spill: Path
) -> GroupedTable:
    _check_columns(config.columns)
    qi, values = f"{name}_qi", f"{name}_sensitive"
    names = register(con, qi, pair[0], spill, as_text=config.columns.quasi_identifiers)
    held = register(con, values, pair[1], spill)
    _check_apart(config.columns, names, held)
    # every row of qi is another individual, whatever the multiplicity
    people = present(config.columns.model_copy(update={"multiplicity": "single", "sensitive": {}}), names)
    alone = {"identifiers": [], "individual": "row", "quasi_identifiers": {}, "keep": []}
    types, value_types = describe(con, qi), describe(con, values)
    check_present(people, types, names)
    check_present(config.columns.model_copy(update=alone), value_types, held)
    count_rows(con, qi)
    sensitive, problems = sensitive_columns(con, values, config.columns, value_types)
    problems += _row_problems(con, qi, config, people, types, [])
    if config.nulls.sensitive != "value":
        problems += [problem for column in sensitive for problem in _missing(con, values, column)]
    if problems:
        raise ConfigError(problems)
    return GroupedTable(qi, values, sensitive)


def _check_columns(columns: Columns) -> None:
    """What the config says must fit a bucketized table."""
    problems = [
        Problem(f"columns.{'.'.join(map(str, loc))}", f"a column {name!r}", "another name in a bucketized table")
        for loc, name in columns.places()
        if loc[0] != "identifiers" and name.lower() in OWN
    ]
    if len(columns.sensitive) != 1:
        found = f"{len(columns.sensitive)} sensitive columns with a bucketized table"
        problems.append(Problem("columns.sensitive", found, "one sensitive column"))
    if problems:
        raise ConfigError(problems)


def _check_apart(columns: Columns, qi: list[str], sensitive: list[str]) -> None:
    """A table that links the sensitive values to the individuals is not bucketized, whatever its files are called."""
    here, there = ({name.lower() for name in names} for names in (qi, sensitive))
    if any(name.lower() in here for name in columns.sensitive):
        raise SourceError("qi: it has the sensitive column too; in a bucketized table only sensitive has it")
    linked = sum(name.lower() in there for name in [*columns.quasi_identifiers, *columns.keep])
    if linked:
        raise SourceError(f"sensitive: it has {linked} of the columns that belong to qi; only `group` is in both")


def _missing(con: duckdb.DuckDBPyConnection, table: str, column: Column) -> list[Problem]:
    count = one(con, f"SELECT count(*) FROM {table} WHERE {column.sql} IS NULL")[0]
    hint = "or set nulls.sensitive to value; whose rows to drop is not told"
    found = Problem(f"columns.sensitive.{column.name}", f"{count:,} rows without a value", "a value in every row", hint)
    return [found] if count else []
