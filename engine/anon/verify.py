"""Looks at a grouped table as an outsider would: groups are the distinct tuples of its quasi-identifier columns as
they stand, histograms are counted by SQL, and the criteria judge them. `check` does this to any table; `verify` does
it to the files just written, before anyone else can see them, and shares with what it checks only the formulas."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from anon.config import Columns, Config
from anon.criteria import Criterion, Groups, Ints, Signatures, State, Values, Verdict, bind
from anon.database import literal, quote, translated
from anon.errors import ConfigError, SourceError, VerificationError
from anon.release import Written, checksum
from anon.source import Unusable, canonical, describe
from anon.values import text

FEW = 5  # individuals; smaller groups are reported
# A sensitive column, those that count as quasi-identifiers beside it, and the attributes of priors.
Reading = tuple[str | None, tuple[str, ...], tuple[tuple[str, ...], ...]]
Signature = tuple[str | None, ...]


@dataclass
class Findings:
    """What was found in a grouped table."""

    rows: int = 0
    groups: int = 0
    smallest: int = 0
    under_5: int = 0
    homogeneous_rows: int = 0
    sizes: dict[int, int] = field(default_factory=dict)  # how many groups have each number of individuals
    verdicts: list[Verdict] = field(default_factory=list)
    criteria: list[Criterion] = field(default_factory=list)
    with_kept: dict[str, dict[str, float]] = field(default_factory=dict)
    values: dict[str, list[str | None]] = field(default_factory=dict)  # sensitive values in code order
    frequency: dict[str, list[int]] = field(default_factory=dict)  # individuals with each of them

    @property
    def safe(self) -> bool:
        return all(verdict.safe for verdict in self.verdicts)


@dataclass(frozen=True)
class Grouped:
    """A table that is already grouped, as a view under neutral names: q0, ... and s0, ... and k0, ..."""

    con: duckdb.DuckDBPyConnection
    quasi_identifiers: list[str]
    sensitive: list[str]
    keep: list[str]

    VIEW = "grouped_rows"

    @classmethod
    def of(cls, con: duckdb.DuckDBPyConnection, table: str, columns: Columns) -> Grouped:
        """The columns of a registered table in the roles that the config gives them; kept ones may be missing."""
        types = describe(con, table)
        sensitive = list(columns.sensitive)
        keep = [name for name in columns.keep if name in types]
        expressions = [quote(name) for name in columns.quasi_identifiers]
        for name in sensitive:
            try:
                expressions.append(canonical(con, table, name, types[name], "s")[1])
            except Unusable as error:
                raise ConfigError.at(f"columns.sensitive.{name}", error.args[0], error.args[1]) from error
        expressions += [quote(name) for name in keep]
        grouped = cls(con, list(columns.quasi_identifiers), sensitive, keep)
        selected = ", ".join(f"{sql} AS {alias}" for sql, alias in zip(expressions, grouped._aliases()))
        con.execute(f"CREATE OR REPLACE TEMP VIEW {cls.VIEW} AS SELECT {selected} FROM {table}").fetchall()
        return grouped

    def _aliases(self) -> list[str]:
        roles = (("q", self.quasi_identifiers), ("s", self.sensitive), ("k", self.keep))
        return [f"{letter}{index}" for letter, names in roles for index in range(len(names))]

    def rows(self) -> int:
        return int(self.con.sql(f"SELECT count(*) FROM {self.VIEW}").fetchall()[0][0])

    def alias(self, name: str) -> str:
        """The neutral name of a quasi-identifier or kept column."""
        for letter, names in (("q", self.quasi_identifiers), ("k", self.keep)):
            if name in names:
                return f"{letter}{names.index(name)}"
        raise ConfigError.at("privacy", f"a prior over {name!r}", "quasi-identifiers or kept columns of the table")

    @property
    def labels(self) -> str:
        return ", ".join(f"q{index}" for index in range(len(self.quasi_identifiers)))


def examine(grouped: Grouped, config: Config, absent: bool = False) -> Findings:
    """Judges a grouped table by the config's criteria and counts what every report tells."""
    found = Findings()
    with translated("examining the table"):
        for index, column in enumerate(grouped.sensitive):
            found.values[column], found.frequency[column] = _code_values(grouped, index)
        if not grouped.rows():
            raise SourceError("the table has no rows")
        values = Values(found.values, found.frequency, partial(_cross_table, grouped))
        found.criteria = bind(config.privacy, values, absent=absent)
        found.verdicts = _judge(grouped, found)
        found.homogeneous_rows = _homogeneous_rows(grouped)
        found.with_kept = {column: _with_kept(grouped, index) for index, column in enumerate(grouped.keep)}
    return found


def _judge(grouped: Grouped, found: Findings) -> list[Verdict]:
    """Streams the histograms that the criteria need through them, each kind of histogram once."""
    first = grouped.sensitive[0] if grouped.sensitive else None
    readings: dict[Reading, list[int]] = {(first, (), ()): []}
    for at, criterion in enumerate(found.criteria):
        readings.setdefault((criterion.column or first, criterion.context, criterion.attributes), []).append(at)
    verdicts: dict[int, Verdict] = {}
    for reading, about in readings.items():
        states: dict[int, State] = {}
        whole: list[Ints] = []  # which group each part of one belongs to
        for groups in _histograms(grouped, *reading):
            if reading == (first, (), ()):
                _count(found, groups)
            if groups.row is not None:
                whole.append(groups.row)
            for at in about:
                state = found.criteria[at].state(groups)
                states[at] = states[at].merge(state) if at in states else state
        for at, state in states.items():
            verdict = found.criteria[at].verdict(state)
            verdicts[at] = _of_whole_groups(verdict, np.concatenate(whole)) if whole else verdict
    return [verdicts[at] for at in range(len(found.criteria))]


def _of_whole_groups(verdict: Verdict, group: Ints) -> Verdict:
    """A verdict about parts of groups in terms of the groups."""
    findings = tuple(replace(finding, group=int(group[finding.group])) for finding in verdict.findings)
    return replace(verdict, worst_group=int(group[verdict.worst_group]), findings=findings)


def _code_values(grouped: Grouped, index: int) -> tuple[list[str | None], list[int]]:
    """Numbers the values of a sensitive column in a table values_N; the values as text and how often each occurs."""
    grouped.con.execute(
        f"CREATE OR REPLACE TEMP TABLE values_{index} AS "
        f"SELECT v, n, row_number() OVER (ORDER BY v NULLS FIRST) - 1 AS code "
        f"FROM (SELECT s{index} AS v, count(*) AS n FROM {grouped.VIEW} GROUP BY s{index})"
    ).fetchall()
    rows = grouped.con.sql(f"SELECT v, n FROM values_{index} ORDER BY code").to_arrow_table()
    return [None if v is None else text(v) for v in rows["v"].to_pylist()], rows["n"].to_pylist()


def _histograms(
    grouped: Grouped, column: str | None, context: tuple[str, ...], attributes: tuple[tuple[str, ...], ...]
) -> Iterator[Groups]:
    """The groups in canonical order as histograms of a sensitive column; without one, of their size alone. With a
    context every group is taken apart by the values of those columns; with attributes each also has, per prior, the
    histogram of their values."""
    signatures = [_signatures(grouped, names) for names in attributes]
    labels = grouped.labels
    parts = ", ".join([labels, *(f"s{grouped.sensitive.index(name)}" for name in context)])
    if column is not None:
        index = grouped.sensitive.index(column)
        counted = f"SELECT {parts}, s{index} AS s, count(*) AS n FROM {grouped.VIEW} GROUP BY {parts}, s{index}"
        inner = f"SELECT c.*, v.code FROM ({counted}) AS c JOIN values_{index} AS v ON c.s IS NOT DISTINCT FROM v.v"
    else:
        inner = f"SELECT {labels}, 0 AS code, count(*) AS n FROM {grouped.VIEW} GROUP BY {labels}"
    order = ", ".join(f"{part} NULLS FIRST" for part in parts.split(", "))
    by_label = ", ".join(f"{label} NULLS FIRST" for label in labels.split(", "))
    row = f", dense_rank() OVER (ORDER BY {by_label}) - 1 AS g" if context else ""
    reader = grouped.con.sql(
        f"SELECT list(code ORDER BY code) AS codes, list(n ORDER BY code) AS counts{row} FROM ({inner}) "
        f"GROUP BY {parts} ORDER BY {order}"
    ).to_arrow_reader(65_536)
    first = 0
    for batch in reader:
        if batch.num_rows:
            groups = _as_groups(batch, first)
            own = tuple(_slice(lists, first, first + len(groups)) for lists in signatures)
            yield replace(groups, signatures=own)
            first += batch.num_rows


def _cross_table(grouped: Grouped, attributes: tuple[str, ...], column: str) -> tuple[list[Signature], Ints]:
    """Numbers the signatures over some columns in a table, and counts people by signature and sensitive value."""
    name, listed = _signature_table(attributes), ", ".join(grouped.alias(a) for a in attributes)
    columns = ", ".join(f"a{i}" for i in range(len(attributes)))
    order = ", ".join(f"a{i} NULLS FIRST" for i in range(len(attributes)))
    grouped.con.execute(
        f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT *, row_number() OVER (ORDER BY {order}) - 1 AS code "
        f"FROM (SELECT DISTINCT {listed} FROM {grouped.VIEW}) AS t({columns})"
    ).fetchall()
    index = grouped.sensitive.index(column)
    counted = grouped.con.sql(
        f"SELECT a.code, v.code, count(*) FROM {grouped.VIEW} JOIN {name} AS a ON {_matches(grouped, attributes)} "
        f"JOIN values_{index} AS v ON s{index} IS NOT DISTINCT FROM v.v GROUP BY ALL"
    ).fetchall()
    rows = grouped.con.sql(f"SELECT {columns} FROM {name} ORDER BY code").fetchall()
    values = grouped.con.sql(f"SELECT count(*) FROM values_{index}").fetchall()[0][0]
    counts = np.zeros((len(rows), values), np.int64)
    for signature, value, people in counted:
        counts[signature, value] = people
    return [tuple(None if part is None else text(part) for part in row) for row in rows], counts


def _signature_table(attributes: tuple[str, ...]) -> str:
    return "signatures_" + hashlib.sha256("\0".join(attributes).encode()).hexdigest()[:16]


def _matches(grouped: Grouped, attributes: tuple[str, ...]) -> str:
    return " AND ".join(f"{grouped.alias(name)} IS NOT DISTINCT FROM a.a{i}" for i, name in enumerate(attributes))


def _signatures(grouped: Grouped, attributes: tuple[str, ...]) -> pa.Table:
    """Per group, in canonical order, the codes of the signatures in it and their people."""
    labels, name = grouped.labels, _signature_table(attributes)
    order = ", ".join(f"{label} NULLS FIRST" for label in labels.split(", "))
    counted = (
        f"SELECT {labels}, a.code, count(*) AS n FROM {grouped.VIEW} JOIN {name} AS a "
        f"ON {_matches(grouped, attributes)} GROUP BY {labels}, a.code"
    )
    return grouped.con.sql(
        f"SELECT list(code ORDER BY code) AS codes, list(n ORDER BY code) AS counts FROM ({counted}) "
        f"GROUP BY {labels} ORDER BY {order}"
    ).to_arrow_table()


def _slice(lists: pa.Table, first: int, last: int) -> Signatures:
    some = lists.slice(first, last - first).combine_chunks()
    groups = _as_groups(some.to_batches()[0], 0)
    return Signatures(groups.start, groups.value, groups.count)


def _as_groups(batch: pa.RecordBatch, first: int) -> Groups:
    codes, counts = batch.column(0), batch.column(1)
    start = np.asarray(counts.offsets).astype(np.int64)
    count = np.ascontiguousarray(counts.values.to_numpy(), np.int64)[start[0] : start[-1]]
    value = np.ascontiguousarray(codes.values.to_numpy(), np.int64)[start[0] : start[-1]]
    start -= start[0]
    row = batch.column(2).to_numpy() if batch.num_columns > 2 else None
    return Groups(np.add.reduceat(count, start[:-1]), start, value, count, first, row)


def _count(found: Findings, groups: Groups) -> None:
    smallest = int(groups.n.min())
    found.smallest = min(found.smallest or smallest, smallest)
    found.rows += int(groups.n.sum())
    found.groups += len(groups)
    found.under_5 += int(groups.n[groups.n < FEW].sum())
    for size, count in zip(*np.unique(groups.n, return_counts=True)):
        found.sizes[int(size)] = found.sizes.get(int(size), 0) + int(count)


def _same(grouped: Grouped) -> str:
    """SQL: whether all rows of a group agree on one of the sensitive columns."""
    columns = [f"s{index}" for index in range(len(grouped.sensitive))]
    agree = [f"(min({c}) IS NOT DISTINCT FROM max({c}) AND count({c}) IN (0, count(*)))" for c in columns]
    return f"({' OR '.join(agree) or 'false'})"


def _homogeneous_rows(grouped: Grouped) -> int:
    """Rows of groups in which everybody has the same value of some sensitive column."""
    same = f"SELECT count(*) AS n FROM {grouped.VIEW} GROUP BY {grouped.labels} HAVING {_same(grouped)}"
    return int(grouped.con.sql(f"SELECT coalesce(sum(n), 0) FROM ({same})").fetchall()[0][0])


def _with_kept(grouped: Grouped, index: int) -> dict[str, float]:
    """What an adversary who knows a kept column too would meet."""
    groups = f"SELECT count(*) AS n, {_same(grouped)} AS same FROM {grouped.VIEW} GROUP BY {grouped.labels}, k{index}"
    smallest, unique, homogeneous, rows = grouped.con.sql(
        f"SELECT min(n), count_if(n = 1), coalesce(sum(n) FILTER (same), 0), sum(n) FROM ({groups})"
    ).fetchall()[0]
    return {
        "smallest_group": int(smallest),
        "unique_share": int(unique) / int(rows),
        "homogeneous_share": int(homogeneous) / int(rows),
    }


def verify(con: duckdb.DuckDBPyConnection, written: Written, config: Config) -> Findings:
    """Examines the files of a release that was just written; VerificationError if they are not what they must be."""
    try:
        with translated("reading it back"):
            _open_release(con, written)
            wrong = _first_difference(con, written)
            if wrong:
                raise VerificationError(f"the written release {wrong}; nothing was published")
            found = examine(Grouped.of(con, "written_release", config.columns), config, absent=True)
    except (SourceError, ConfigError, ValueError) as error:
        told = f" ({error})" if isinstance(error, SourceError) else ""
        raise VerificationError(f"the written release cannot be read back{told}; nothing was published") from error
    if found.groups != written.groups:
        raise VerificationError(
            f"the written release has {found.groups:,} groups, not {written.groups:,}; nothing was published"
        )
    if not found.safe:
        failed = ", ".join(verdict.name for verdict in found.verdicts if not verdict.safe)
        raise VerificationError(f"the written release is not safe ({failed}); nothing was published")
    return found


def _open_release(con: duckdb.DuckDBPyConnection, written: Written) -> None:
    """A view of the file in the order of its rows."""
    file = literal(str(written.path))
    reader = f"read_parquet({file}, hive_partitioning = false)"
    if written.path.suffix == ".csv":
        columns = ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in written.types.items())
        reader = (
            f"read_csv({file}, columns = {{{columns}}}, auto_detect = false, header = true, delim = ',', quote = '\"', "
            "escape = '\"', nullstr = '', allow_quoted_nulls = false, strict_mode = true)"
        )
    con.execute("SET preserve_insertion_order = true").fetchall()
    con.execute(f"CREATE OR REPLACE TEMP VIEW written_release AS SELECT * FROM {reader}").fetchall()


def _first_difference(con: duckdb.DuckDBPyConnection, written: Written) -> str:
    """What in the files is not as it was meant to be, or nothing; without any value of the data."""
    if sorted(path.name for path in written.path.parent.iterdir()) != ["datapackage.json", written.path.name]:
        return "has files beside it that do not belong to it"
    if _has_other_columns(con, written):
        return "does not have the columns that were asked for"
    if _metadata(con, written.path):
        return "carries metadata"
    rows = con.sql("SELECT count(*) FROM written_release").fetchall()[0][0]
    if rows != written.rows:
        return f"has {rows:,} rows, not {written.rows:,}"
    wrong = [name for name, labels in written.labels.items() if _label_rows(con, name) != labels]
    if wrong:
        return f"has labels that were not asked for ({', '.join(wrong)})"
    values = [quote(name) for name in written.types if name not in written.labels]
    if con.sql(f"SELECT {checksum(values)} FROM written_release").fetchall()[0][0] != str(written.checksum):
        return "has sensitive or kept values that are not the source's"
    disorder = _rows_out_of_order(con, list(written.types))
    return f"has {disorder:,} rows out of order" if disorder else ""


def _has_other_columns(con: duckdb.DuckDBPyConnection, written: Written) -> bool:
    if written.path.suffix == ".csv":
        with written.path.open(encoding="utf-8", newline="") as file:
            if next(csv.reader(file), []) != list(written.types):
                return True
    return list(describe(con, "written_release").items()) != list(written.types.items())


def _metadata(con: duckdb.DuckDBPyConnection, path: Path) -> int:
    """How many entries a Parquet file carries beside its data."""
    if path.suffix == ".csv":
        return 0
    return int(con.sql(f"SELECT count(*) FROM parquet_kv_metadata({literal(str(path))})").fetchall()[0][0])


def _label_rows(con: duckdb.DuckDBPyConnection, name: str) -> dict[str | None, int]:
    column = quote(name)
    return dict(con.sql(f"SELECT {column}, count(*) FROM written_release GROUP BY {column}").fetchall())


def _rows_out_of_order(con: duckdb.DuckDBPyConnection, names: list[str]) -> int:
    """Rows that come before their predecessor in canonical order. Runs of equal rows are looked at once."""
    columns = [f"c{index}" for index in range(len(names))]
    listed = ", ".join(columns)
    rows = f"SELECT {', '.join(f'{quote(n)} AS {c}' for n, c in zip(names, columns))} FROM written_release"
    hashed = f"SELECT {listed}, hash({listed}) AS h, lag(hash({listed})) OVER () AS before FROM ({rows})"
    runs = f"SELECT {listed} FROM ({hashed}) WHERE h IS DISTINCT FROM before"
    pairs = f"SELECT {', '.join(f'{c}, lag({c}) OVER () AS p{c}' for c in columns)}, row_number() OVER () AS line"
    earlier = "false"
    for c in reversed(columns):
        earlier = (
            f"CASE WHEN {c} IS NOT DISTINCT FROM p{c} THEN {earlier} "
            f"ELSE {c} IS NULL OR (p{c} IS NOT NULL AND p{c} > {c}) END"
        )
    counted = f"SELECT count(*) FILTER ({earlier}) FROM ({pairs} FROM ({runs})) WHERE line > 1"
    return int(con.sql(counted).fetchall()[0][0])
