"""A table that is already grouped, registered and compared with the config as a source is; `check` reads it in place of
a source. It is one table of labels, or the two of
a bucketized one: `qi`, a row for every individual, and `sensitive`, how often each group has each value."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anon.config import Columns, Config, RowRule
from anon.core.database import Database, quote, translated
from anon.errors import ConfigError, Problem, SourceError
from anon.source.checks import (
    Cell,
    NullPolicy,
    check_present,
    individual_problems,
    individual_sql,
    named_in_every_row,
)
from anon.source.files import register
from anon.source.left_out import LeftOut, Reasons, left_out_people
from anon.source.requirements import COUNTED_ROWS, ROWS, DuckDBRows, Question, Requirement, RowAnswers, Rows
from anon.source.rows import Column, Typing
from anon.source.series_files import register_parts, series_tables
from anon.source.tables import bucketized_pair, describe
from anon.source.types import label_sql, negative_zeros

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
    part: str = ""  # the column with the number of the part of a series

    @property
    def bucketized(self) -> bool:
        return self.rows != self.values


def open_grouped(database: Database, name: str, config: Config, table: Any, spill: Path) -> GroupedTable:
    """Register a table that is already grouped: a path, a frame, or for a bucketized one a folder or a pair.

    The source's own columns may be missing. Without the column of individuals every row is another one, which only
    single values allow. Quasi-identifiers of a CSV file stay the text they are, as labels. A missing label is a label,
    published like any other: no row is dropped for it, whatever `nulls` says, though it may call it an error.
    """
    series = series_tables(table)
    if "part" in series:
        return _open_labels(database, name, config, series["part"], spill)
    pair = (series["qi"], series["sensitive"]) if series else bucketized_pair(table)
    return (
        _open_pair(database, name, config, pair, spill) if pair else _open_labels(database, name, config, table, spill)
    )


def _registered(
    database: Database, name: str, table: Any, spill: Path, as_text: Collection[str] = ()
) -> tuple[list[str], str]:
    """Register a table, or the parts of one; return the names of its columns, and the one of the part, if it has
    any."""
    if isinstance(table, dict):
        return register_parts(database, name, table, spill, as_text)
    return register(database, name, table, spill, as_text), ""


def _open_labels(database: Database, name: str, config: Config, table: Any, spill: Path) -> GroupedTable:
    every = f"{name}_read"
    names, part = _registered(database, every, table, spill, config.columns.quasi_identifiers)
    columns, types = present(config.columns, names), describe(database, every)
    check_present(columns, _without(types, part), names)
    who = individual_sql(columns, types)
    checked = check_labels(DuckDBRows(database, every), config, columns, types, who)
    policy, problems = checked.policy, checked.problems
    with translated("reading the table"):
        where = f" WHERE NOT {policy.no_sensitive}" if policy.drops else ""
        database.execute(f"CREATE TEMP VIEW {name} AS SELECT * FROM {every}{where}")
    kept = DuckDBRows(database, name)
    if who is not None:
        problems = problems + individual_problems(kept, who, checked.labels_of(columns), columns.multiplicity)
    if problems:
        raise ConfigError(problems)
    people = checked.dropped
    if who is not None and people.all:
        nulls = f"SELECT {who} AS who, false AS no_quasi_identifier, {policy.no_sensitive} AS no_sensitive FROM {every}"
        people = left_out_people(kept, f"({nulls}) AS nulls")
    return GroupedTable(name, name, checked.sensitive, LeftOut(checked.dropped, people), part)


@dataclass(frozen=True)
class CheckedLabels:
    """What one pass over a grouped table gives: the sensitive columns in their canonical types, the SQL of the labels
    as a reader compares them, the number of rows, those that are dropped, and the problems of single rows."""

    sensitive: list[Column]
    labels: list[str]
    total: int
    dropped: Reasons
    problems: list[Problem]
    policy: NullPolicy
    answers: RowAnswers

    @property
    def rows(self) -> int:
        """The rows that are not dropped."""
        return self.total - self.dropped.all

    def labels_of(self, columns: Columns) -> dict[str, str]:
        """Return the SQL of the labels by the names of their columns."""
        return dict(zip(columns.quasi_identifiers, self.labels, strict=True))


def check_labels(
    rows: Rows,
    config: Config,
    columns: Columns,
    types: dict[str, str],
    who: str | None,
    more: Sequence[Question] = (),
) -> CheckedLabels:
    """Type the sensitive columns of a grouped table and check its rows, in one pass over these; `more` is asked in the
    same pass."""
    typing = Typing({"sensitive": list(columns.sensitive)}, types)
    named = [Cell("quasi_identifiers", name, f"{quote(name)} IS NULL") for name in columns.quasi_identifiers]
    # a missing label is a label
    keeps = "value" if config.nulls.quasi_identifiers == "drop" else config.nulls.quasi_identifiers
    policy = NullPolicy(config.nulls.model_copy(update={"quasi_identifiers": keeps}), named + typing.cells)
    required = policy.requirements + ([] if who is None else [named_in_every_row(who, policy)])
    asked = [*typing.requirements, *required, *(policy.aggregates if policy.drops else []), *more]
    asked += [zeros for name in columns.quasi_identifiers for zeros in negative_zeros(name, types[name])]
    answers = rows.evaluate([ROWS, *asked])
    if not (total := int(answers[ROWS.name])):
        raise SourceError("the table has no rows")
    sensitive, problems = typing.usable(rows, answers)
    refused = {problem.path for problem in problems}
    dropped = policy.dropped(answers) if policy.drops else Reasons()
    if dropped.all == total:
        problems.append(Problem("nulls.sensitive", f"all {total:,} rows dropped", "rows with values"))
    problems += answers.problems([each for each in required if each.message.path not in refused])
    labels = [label_sql(name, types[name], answers) for name in columns.quasi_identifiers]
    return CheckedLabels(sensitive["sensitive"], labels, total, dropped, problems, policy, answers)


def present(columns: Columns, names: list[str]) -> Columns:
    """Return the columns of the config that a grouped table must have."""
    keep = [column for column in columns.keep if column in names]
    hidden: dict[str, Any] = {"identifiers": [], "keep": keep, "rows": RowRule()}
    if columns.multiplicity == "single" and columns.individual not in names:
        hidden["individual"] = "row"
    return columns.model_copy(update=hidden)


def _open_pair(database: Database, name: str, config: Config, pair: tuple[Any, Any], spill: Path) -> GroupedTable:
    _check_columns(config.columns)
    qi, values = f"{name}_qi", f"{name}_sensitive"
    names, part = _registered(database, qi, pair[0], spill, config.columns.quasi_identifiers)
    held, of_values = _registered(database, values, pair[1], spill)
    if part != of_values:
        raise SourceError("qi and sensitive: only one of them has a column named like the part")
    _check_apart(config.columns, names, held)
    # every row of qi is another individual, whatever the multiplicity
    people = present(config.columns.model_copy(update={"multiplicity": "single", "sensitive": {}}), names)
    alone = {"identifiers": [], "individual": "row", "rows": RowRule(), "quasi_identifiers": {}, "keep": []}
    types, value_types = describe(database, qi), describe(database, values)
    check_present(people, _without(types, part), names)
    check_present(config.columns.model_copy(update=alone), _without(value_types, part), held)
    who = individual_sql(people, types)
    rows = DuckDBRows(database, qi)
    checked = check_labels(rows, config, people, types, who)
    problems = checked.problems
    if who is not None:
        problems = problems + individual_problems(rows, who, checked.labels_of(people), people.multiplicity)
    sensitive = _check_values(DuckDBRows(database, values), config, value_types, problems)
    return GroupedTable(qi, values, sensitive, part=part)


def _without(types: dict[str, str], part: str) -> dict[str, str]:
    return {name: kind for name, kind in types.items() if name != part}


def _check_values(rows: Rows, config: Config, types: dict[str, str], of_people: list[Problem]) -> list[Column]:
    """Return the sensitive column of a bucketized table; ConfigError with its problems and those of the people."""
    typing = Typing({"sensitive": list(config.columns.sensitive)}, types)
    missing = [_value_in_every_row(cell) for cell in typing.cells if config.nulls.sensitive != "value"]
    answers = rows.evaluate([*typing.requirements, *missing])
    sensitive, problems = typing.usable(rows, answers)
    refused = {problem.path for problem in problems}
    problems += of_people + answers.problems([each for each in missing if each.message.path not in refused])
    if problems:
        raise ConfigError(problems)
    return sensitive["sensitive"]


def _check_columns(columns: Columns) -> None:
    """Refuse a config that does not fit a bucketized table."""
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
    """Refuse a table that links the sensitive values to the individuals: it is not bucketized, whatever its files are
    called."""
    here, there = ({name.lower() for name in names} for names in (qi, sensitive))
    if any(name.lower() in here for name in columns.sensitive):
        raise SourceError("qi: it has the sensitive column too; in a bucketized table only sensitive has it")
    linked = sum(name.lower() in there for name in [*columns.quasi_identifiers, *columns.keep])
    if linked:
        raise SourceError(f"sensitive: it has {linked} of the columns that belong to qi; only `group` is in both")


def _value_in_every_row(cell: Cell) -> Requirement:
    hint = "or set nulls.sensitive to value; the table does not say whose rows to drop"
    path = f"columns.{cell.role}.{cell.name}"
    message = Problem(path, f"{COUNTED_ROWS} without a value", "a value in every row", hint)
    return Requirement(f"nulls of {path}", cell.missing, message)
