"""Read a table that is already grouped, as an outsider sees it: make views of the files or frames under neutral names,
and count its groups by SQL; `histograms` counts the values in them. `verify` and `check` read a table in this way,
which shares nothing with the search that made the table. Groups are the distinct tuples of the quasi-identifier columns
as they are, or the `group` of a bucketized table."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from anon.config import Columns
from anon.core.database import Database, quote, translated
from anon.core.phrases import counted
from anon.criteria import Ints
from anon.criteria.prior_tables import Counting, SignatureTable, check_room
from anon.errors import ConfigError, SourceError
from anon.source import GroupedTable, Unusable, as_read, canonical, describe, individual_sql

FEW_VALUES = 64  # at most; their counts are columns of one row for each group: a GROUP BY of the labels alone
KnownValues = dict[tuple[str, ...], pa.Table]  # by sensitive columns: their values v, the count n and the code of each
GROUPS_OF_A_PART = 10**10  # more than any part has
READ = 4_096  # sensitive values that are read at a time
LONG_TEXTS = 8_000_000  # bytes of the distinct texts of a column from which on rows are counted by their hashes


class Reading(NamedTuple):
    """A kind of histograms: the sensitive column, or several whose tuple is the value; other sensitive columns that
    count as quasi-identifiers; the attributes of priors. `classes`: only the sizes of the classes of equal published
    labels, whatever groups they are in."""

    columns: tuple[str, ...]
    context: tuple[str, ...] = ()
    attributes: tuple[tuple[str, ...], ...] = ()
    classes: bool = False


@dataclass(frozen=True)
class Grouped:
    """A table that is already grouped, as a view under neutral names: q0, ... and s0, ... and k0, ..., and `who` if
    individuals have several values, or `c`, the count of a row, if equal rows were counted before. For a bucketized
    table the view has a row for every individual with the number of the group, g; a second view, COUNTS, has the count
    c of a value s0 in a group. A table, GROUPS, has a row for every group, in canonical order: its rows and its
    individuals, n, and the counts of each value of sensitive columns with few values."""

    database: Database
    quasi_identifiers: list[str]
    sensitive: list[str]
    keep: list[str]
    multiplicity: str = "single"
    bucketized: bool = False
    objects: dict[str, list[Any]] = field(default_factory=dict)  # sensitive values in code order
    frequency: dict[str, list[int]] = field(default_factory=dict)  # the count of each of them
    facts: dict[Reading, str] = field(default_factory=dict)  # the tables that hold the histograms of each kind, if any
    known: KnownValues = field(default_factory=dict)  # of the whole table, if this is a part of it
    weighted: bool = False  # the view has equal rows only once
    by_hash: set[tuple[str, ...]] = field(default_factory=set)  # sensitive columns whose values hashes distinguish
    parts: bool = False  # the view has the part of a series, p
    hashed: bool = False  # the view and COUNTS have the `hash` of each row, GROUPS the sum of those of the view

    VIEW = "grouped_rows"
    COUNTS = "grouped_counts"
    GROUPS = "counted_groups"

    @classmethod
    def from_opened(cls, database: Database, table: GroupedTable, columns: Columns) -> Grouped:
        if table.bucketized:
            return cls.from_pair(database, table.rows, table.values, columns, part=table.part)
        return cls.from_table(database, table.rows, columns, part=table.part)

    @classmethod
    def from_table(
        cls,
        database: Database,
        table: str,
        columns: Columns,
        known: KnownValues | None = None,
        hashed: str = "",
        part: str = "",
    ) -> Grouped:
        """Return a registered table with its columns in the roles of the config; kept ones may be missing. If it is a
        part of a table, `known` are the values of the whole. `hashed`: SQL for a hash of each row; `part`: the column
        with the part of a series, whose groups are different from those of other parts."""
        types = describe(database, table)
        grouped = cls(
            database,
            list(columns.quasi_identifiers),
            list(columns.sensitive),
            [name for name in columns.keep if name in types],
            columns.multiplicity,
            known=known or {},
            hashed=bool(hashed),
            parts=bool(part),
        )
        named = grouped._published(table, types, part) | ({"hash": hashed} if hashed else {})
        named |= {f"s{i}": _sensitive(database, table, name, types) for i, name in enumerate(columns.sensitive)}
        if columns.multiplicity != "single":
            named["who"] = str(individual_sql(columns, types))
        _view(database, cls.VIEW, named, table)
        return grouped._counted()

    @classmethod
    def from_pair(
        cls,
        database: Database,
        qi: str,
        sensitive: str,
        columns: Columns,
        known: KnownValues | None = None,
        hashed: Sequence[str] = (),
        part: str = "",
    ) -> Grouped:
        """Return the two registered tables of a bucketized one, which must have the same groups. `hashed`: SQL for a
        hash of the rows of each; `part`: the column with the part of a series, which has groups of its own."""
        types, held = describe(database, qi), describe(database, sensitive)
        keep = [name for name in columns.keep if name in types]
        names = list(columns.quasi_identifiers), list(columns.sensitive), keep
        grouped = cls(
            database, *names, columns.multiplicity, bucketized=True, known=known or {}, hashed=bool(hashed),
            parts=bool(part),
        )  # fmt: skip
        before = f"{quote(part)} * {GROUPS_OF_A_PART} + " if part else ""
        own, of_values = ({"hash": hashed[0]}, {"hash": hashed[1]}) if hashed else ({}, {})
        _view(
            database,
            cls.VIEW,
            grouped._published(qi, types, part) | {"g": before + _whole(database, qi, "qi", "group", types)} | own,
            qi,
        )
        counts = of_values | {
            "g": before + _whole(database, sensitive, "sensitive", "group", held),
            "s0": _sensitive(database, sensitive, grouped.sensitive[0], held),
            "c": _whole(database, sensitive, "sensitive", "count", held),
        }
        _view(database, cls.COUNTS, counts, sensitive)
        _check_agreement(grouped)
        return grouped._counted()

    @classmethod
    def from_part(
        cls, database: Database, rows: pa.Table, columns: Columns, keep: list[str], known: KnownValues
    ) -> Grouped:
        """Return rows with neutral names and canonical values, which are all rows of some groups of a table."""
        database.register(cls.VIEW, rows)
        names = list(columns.quasi_identifiers), list(columns.sensitive), keep
        weighted = columns.multiplicity == "single"
        return cls(database, *names, columns.multiplicity, known=known, weighted=weighted)._counted()

    def _published(self, table: str, types: dict[str, str], part: str) -> dict[str, str]:
        """Return SQL for the labels, the kept columns and the part by their neutral names."""
        named = dict(zip(self.labels, self.quasi_identifiers))
        named |= {f"k{index}": name for index, name in enumerate(self.keep)}
        own = {"p": quote(part)} if part else {}
        return own | {alias: as_read(self.database, table, name, types[name]) for alias, name in named.items()}

    def _counted(self) -> Grouped:
        """Return the table with its sensitive values numbered and its groups counted."""
        with translated("reading the table"):
            coded = {name: code_values(self, (name,)) for name in self.sensitive}
            objects, frequency = ({name: both[i] for name, both in coded.items()} for i in (0, 1))
            grouped = replace(self, objects=objects, frequency=frequency)
            counts = [grouped._counts_of_few(name) for name in self.sensitive if grouped.has_few(name)]
            sums = ["sum(hash) AS hash"] if self.hashed and not self.bucketized else []
            selected = listed([*self.key, f"{self.many()} AS rows", f"{self.people} AS n", *sums, *counts])
            self.database.execute("SET preserve_insertion_order = true")  # what is kept in order is read in order
            self.database.execute(
                f"CREATE OR REPLACE TEMP TABLE {self.GROUPS} AS "
                f"SELECT {selected} FROM {self.VIEW} GROUP BY {listed(self.key)} ORDER BY {in_order(self.key)}"
            )
        return grouped

    def has_few(self, column: str) -> bool:
        """Return whether GROUPS has the counts of the values of a sensitive column."""
        return self.multiplicity == "single" and not self.bucketized and len(self.objects[column]) <= FEW_VALUES

    def counted_as(self, column: str) -> list[str]:
        """Return the columns of GROUPS for the values of a sensitive column."""
        return [f"s{self.sensitive.index(column)}_{code}" for code in range(len(self.objects[column]))]

    def _counts_of_few(self, column: str) -> str:
        """Return SQL for those columns. Values are compared as constants, which a reader of dictionaries does once for
        each."""
        value, table = value_of(self, (column,))
        self.database.execute(f"SET VARIABLE {table} = (SELECT list(v ORDER BY code) FROM {table})")
        same = f"{value} IS NOT DISTINCT FROM getvariable('{table}')"
        counts = [self.many(f"{same}[{place}]") for place in range(1, len(self.objects[column]) + 1)]
        return listed([f"({count})::UINTEGER AS {alias}" for count, alias in zip(counts, self.counted_as(column))])

    def rows(self) -> int:
        return int(self.database.one(f"SELECT coalesce(sum(rows), 0) FROM {self.GROUPS}")[0])

    def alias(self, name: str) -> str:
        """Return the neutral name of a quasi-identifier or kept column."""
        for letter, names in (("q", self.quasi_identifiers), ("k", self.keep)):
            if name in names:
                return f"{letter}{names.index(name)}"
        raise ConfigError.at("privacy", f"a prior over {name!r}", "quasi-identifiers or kept columns of the table")

    @property
    def labels(self) -> list[str]:
        return [f"q{index}" for index in range(len(self.quasi_identifiers))]

    @property
    def classes(self) -> list[str]:
        """Return the columns that distinguish the classes of equal published labels."""
        return ["p", *self.labels] if self.parts else self.labels

    @property
    def key(self) -> list[str]:
        """Return the columns that distinguish groups."""
        return ["g"] if self.bucketized else self.classes

    @property
    def values_view(self) -> str:
        """Return the view that has the sensitive values."""
        return self.COUNTS if self.bucketized else self.VIEW

    @property
    def people(self) -> str:
        """Return SQL for the number of individuals among some rows."""
        return "count(DISTINCT who)" if self.multiplicity != "single" and not self.bucketized else self.many()

    @property
    def times(self) -> str:
        """Return SQL for the count of a sensitive value in some rows; in a set, the number of individuals who have
        it."""
        if self.bucketized:
            return "CAST(sum(c) AS BIGINT)"
        return "count(DISTINCT who)" if self.multiplicity == "set" else self.many()

    def many(self, which: str = "") -> str:
        """Return SQL for the number of rows of the table behind some rows of the view, or behind those that satisfy a
        condition."""
        only = f" FILTER ({which})" if which else ""
        return f"coalesce(CAST(sum(c){only} AS BIGINT), 0)" if self.weighted else f"count(*){only}"

    def sizes(self, by: Sequence[str]) -> str:
        """Return SQL for the number of individuals, n, with each combination of some columns."""
        return f"SELECT {listed(by)}, {self.people} AS n FROM {self.VIEW} GROUP BY {listed(by)}"

    def counts(self, by: Sequence[str], value: str = "s0") -> str:
        """Return SQL for the count, n, of each sensitive value s with each combination of some columns."""
        columns = listed(by)
        return f"SELECT {columns}, {value} AS s, {self.times} AS n FROM {self.values_view} GROUP BY {columns}, s"


def _view(database: Database, name: str, columns: dict[str, str], table: str) -> None:
    selected = ", ".join(f"{sql} AS {alias}" for alias, sql in columns.items())
    with translated("reading the table"):
        database.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT {selected} FROM {table}")


def _sensitive(database: Database, table: str, name: str, types: dict[str, str]) -> str:
    try:
        return canonical(database, table, name, types[name], "s")[1]
    except Unusable as error:
        raise ConfigError([error.problem(f"columns.sensitive.{name}")]) from error


def _whole(database: Database, table: str, name: str, column: str, types: dict[str, str]) -> str:
    """Return SQL for the column `group` or `count` of a bucketized table, which holds whole numbers, above 0 if it
    counts."""
    if column not in types:
        raise SourceError(f"{name}: no column `{column}`, which a bucketized table has")
    try:
        kind, sql = canonical(database, table, column, types[column], "q")
    except Unusable:
        kind = ""
    with translated("reading the table"):
        rows = database.query(f"SELECT count(*) FROM {table}").fetchall()[0][0]
    if not rows:  # nobody has a value; a CSV file without rows has no types either
        return f"CAST({quote(column)} AS BIGINT)"
    if kind != "integer":
        raise SourceError(f"{name}: `{column}` is not a column of whole numbers")
    wrong = f"{sql} IS NULL" + (f" OR {sql} < 1" if column == "count" else "")
    with translated("reading the table"):
        count = database.one(f"SELECT count(*) FROM {table} WHERE {wrong}")[0]
    if count:
        positive = "positive " if column == "count" else ""
        raise SourceError(f"{name}: {counted(count, 'row')} whose `{column}` is not a {positive}whole number")
    return sql


def _check_agreement(grouped: Grouped) -> None:
    """Raise SourceError if the two tables of a bucketized one cannot be about the same individuals."""
    held = f"SELECT g, sum(c) AS every, 0 AS most FROM {grouped.COUNTS} GROUP BY g"
    if grouped.multiplicity == "set":
        held = f"SELECT g, sum(n) AS every, max(n) AS most FROM ({grouped.counts(['g'])}) GROUP BY g"
    with translated("reading the table"):
        valueless, nobody, other, excess = grouped.database.one(
            "SELECT count_if(every IS NULL), count_if(n IS NULL), count_if(every <> n), count_if(most > n) "
            f"FROM ({grouped.sizes(['g'])}) FULL JOIN ({held}) USING (g)"
        )
    wrong = [
        (valueless if grouped.multiplicity == "single" else 0, "groups of qi that are not in sensitive"),
        (nobody, "groups of sensitive that are not in qi"),
        (other if grouped.multiplicity == "single" else 0, "groups with another number of values than of individuals"),
        (excess if grouped.multiplicity == "set" else 0, "groups with a value that occurs more often than individuals"),
    ]
    problems = [f"{count:,} {what}" for count, what in wrong if count]
    if problems:
        raise SourceError(f"qi and sensitive do not belong together: {'; '.join(problems)}")


def listed(columns: Sequence[str]) -> str:
    return ", ".join(columns)


def in_order(columns: Sequence[str]) -> str:
    return ", ".join(f"{column} NULLS FIRST" for column in columns)


def same_in(columns: Sequence[str], one: str, other: str) -> str:
    """Return SQL for the condition that two tables agree on some columns; nulls are equal."""
    return " AND ".join(f"{one}.{column} IS NOT DISTINCT FROM {other}.{column}" for column in columns)


def value_of(grouped: Grouped, columns: tuple[str, ...]) -> tuple[str, str]:
    """Return SQL for the value of a sensitive column, or the tuple of several; and the table that numbers them."""
    places = [grouped.sensitive.index(name) for name in columns]
    parts = ", ".join(f"s{place} := s{place}" for place in places)
    return f"s{places[0]}" if len(places) == 1 else f"struct_pack({parts})", "values_" + "_".join(map(str, places))


def numbered(counted: str) -> str:
    """Return SQL for values v with the count n of each, numbered in their order."""
    return f"SELECT v, n, row_number() OVER (ORDER BY v NULLS FIRST) - 1 AS code FROM ({counted})"


def compared(grouped: Grouped, columns: tuple[str, ...]) -> tuple[str, str]:
    """SQL: what of a sensitive value finds it in the table that numbers them, and the same there. Rows that are counted
    by long texts would take these texts along."""
    value, _ = value_of(grouped, columns)
    return (f"hash({value})", "hash(v.v)") if columns in grouped.by_hash else (value, "v.v")


def _hashes_tell(grouped: Grouped, columns: tuple[str, ...], table: str) -> bool:
    """Whether the texts of some sensitive columns are long, and no two values have the same hash."""
    if len(columns) > 1:
        long = any((name,) in grouped.by_hash for name in columns)
    else:
        (size,) = grouped.database.one(f"SELECT coalesce(sum(strlen(v::VARCHAR)), 0) FROM {table}")
        long = size >= LONG_TEXTS
    return long and bool(grouped.database.one(f"SELECT count(*) = count(DISTINCT hash(v)) FROM {table}")[0])


def code_values(grouped: Grouped, columns: tuple[str, ...]) -> tuple[list[Any], list[int]]:
    """Number the values of a sensitive column, or the tuples of several; return the values and the count of each."""
    value, table = value_of(grouped, columns)
    counted = numbered(f"SELECT {value} AS v, {grouped.times} AS n FROM {grouped.values_view} GROUP BY v")
    if columns in grouped.known:
        grouped.database.register("known_values", grouped.known[columns])
        counted = "SELECT v, n, code FROM known_values"
    grouped.database.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS {counted}")
    if _hashes_tell(grouped, columns, table):
        grouped.by_hash.add(columns)
    values: list[Any] = []
    times: list[int] = []
    for batch in grouped.database.query(f"SELECT v, n FROM {table} ORDER BY code").to_arrow_reader(READ):
        values += batch.column(0).to_pylist()
        times += batch.column(1).to_pylist()
    return values, times


def code_tuples(grouped: Grouped, columns: tuple[str, ...]) -> Ints:
    """Number the tuples of some sensitive columns; return each as the codes of its values."""
    tuples, _ = code_values(grouped, columns)
    return codes_of(tuples, [grouped.objects[name] for name in columns])


def codes_of(tuples: list[dict[str, Any]], objects: list[list[Any]]) -> Ints:
    """Return tuples of values as codes, given the values of each place in code order."""
    codes = [{value: code for code, value in enumerate(values)} for values in objects]
    return np.array([[code[v] for code, v in zip(codes, parts.values())] for parts in tuples], np.int64)


def labels_of(grouped: Grouped, groups: set[int]) -> dict[int, dict[str, str | None]]:
    """Return the labels of some groups, by their places in canonical order; nothing for a bucketized table, whose
    groups have their own numbers, and members with different labels."""
    if grouped.bucketized:
        return {}
    labels, places = listed(grouped.labels), ", ".join(str(group) for group in sorted(groups))
    rows = grouped.database.query(
        f"SELECT place, CAST(COLUMNS(* EXCLUDE (place)) AS VARCHAR) FROM "
        f"(SELECT {labels}, row_number() OVER (ORDER BY {in_order(grouped.key)}) - 1 AS place "
        f"FROM {grouped.GROUPS}) WHERE place IN ({places}) ORDER BY place"
    ).fetchall()
    return {place: dict(zip(grouped.quasi_identifiers, own)) for place, *own in rows}


def rows_of(grouped: Grouped, groups: set[int]) -> dict[int, list[int]]:
    """Return the first and the last row of some groups in a table in canonical order, from 1; nothing for a bucketized
    table, whose groups have their own numbers."""
    if grouped.bucketized:
        return {}
    places = ", ".join(str(group) for group in sorted(groups))
    order = f"ORDER BY {in_order(grouped.key)}"
    found = grouped.database.query(
        f"SELECT place, before - rows + 1, before FROM (SELECT rows, row_number() OVER ({order}) - 1 AS place, "
        f"CAST(sum(rows) OVER ({order} ROWS UNBOUNDED PRECEDING) AS BIGINT) AS before FROM {grouped.GROUPS}) "
        f"WHERE place IN ({places}) ORDER BY place"
    ).fetchall()
    return {place: [first, last] for place, first, last in found}


def cross_table(
    grouped: Grouped, attributes: tuple[str, ...], column: str, memory: int | None = None
) -> tuple[SignatureTable, Counting | None]:
    """Number the signatures over some columns in a table; return them, and a function that counts people by signature
    and sensitive value, which a bucketized table does not show. `memory`: of the whole process, which a prior over them
    may exceed."""
    name, aliases = signature_table(attributes), listed([grouped.alias(a) for a in attributes])
    columns = [f"a{i}" for i in range(len(attributes))]
    grouped.database.execute(
        f"CREATE OR REPLACE TEMP TABLE {name} AS "
        f"SELECT *, row_number() OVER (ORDER BY {in_order(columns)}) - 1 AS code "
        f"FROM (SELECT DISTINCT {aliases} FROM {grouped.VIEW}) AS t({listed(columns)})"
    )
    value, table = value_of(grouped, (column,))
    shape = [grouped.database.one(f"SELECT count(*) FROM {each}")[0] for each in (name, table)]
    check_room(memory, *shape)
    rows = grouped.database.query(f"SELECT {listed(columns)} FROM {name} ORDER BY code").to_arrow_table()
    counting = partial(_people_by_signature, grouped, attributes, value, table, shape)
    return SignatureTable.from_columns(rows.columns), None if grouped.bucketized else counting


def _people_by_signature(
    grouped: Grouped, attributes: tuple[str, ...], value: str, table: str, shape: list[int]
) -> Ints:
    counted = grouped.database.query(
        f"SELECT a.code AS a, v.code AS v, {grouped.many()} AS n FROM {grouped.VIEW} "
        f"JOIN {signature_table(attributes)} AS a ON {matches(grouped, attributes)} "
        f"JOIN {table} AS v ON {value} IS NOT DISTINCT FROM v.v GROUP BY ALL"
    ).fetchnumpy()
    counts = np.zeros(shape, np.int64)
    counts[counted["a"], counted["v"]] = counted["n"]
    return counts


def signature_table(attributes: tuple[str, ...]) -> str:
    """Return the name of the table that numbers the signatures over some columns."""
    return "signatures_" + hashlib.sha256("\0".join(attributes).encode()).hexdigest()[:16]


def matches(grouped: Grouped, attributes: tuple[str, ...]) -> str:
    return " AND ".join(f"{grouped.alias(name)} IS NOT DISTINCT FROM a.a{i}" for i, name in enumerate(attributes))
