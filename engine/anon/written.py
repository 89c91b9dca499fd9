"""The files of a release as an outsider finds them, for verify (config -> source -> cube -> search -> release -> verify
-> report): whether their form, their order, the numbers of their groups and their content are what was meant to be
written. Whether that is safe is the criteria's to say."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path

import duckdb

from anon.config import Columns
from anon.database import literal, quote
from anon.grouped import Grouped, Known
from anon.numbering import groups_out_of_order
from anon.release import Written, WrittenValues, checksum
from anon.source import describe

# What spreadsheets take for a formula; a sign before nothing but a number or a range of them is none.
FORMULA = r"(?s)^([=@\t\r\n＝＠＋－]|[+-].*[^0-9.,:/() +-])"
STRANGERS = "has files beside it that do not belong to it"


@dataclass(frozen=True)
class File:
    """A file of a release, with the columns that it must have and the name of the view that shows it."""

    path: Path
    types: dict[str, str]
    view: str

    @property
    def reader(self) -> str:
        """SQL that reads the file."""
        file = literal(str(self.path))
        if self.path.suffix != ".csv":
            return f"read_parquet({file}, hive_partitioning = false)"
        columns = ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in self.types.items())
        return (
            f"read_csv({file}, columns = {{{columns}}}, auto_detect = false, header = true, delim = ',', "
            "quote = '\"', escape = '\"', nullstr = '', allow_quoted_nulls = false, strict_mode = true)"
        )

    def open(self, con: duckdb.DuckDBPyConnection) -> None:
        """Makes the view, in the order of the rows."""
        con.execute(f"CREATE OR REPLACE TEMP VIEW {self.view} AS SELECT * FROM {self.reader}").fetchall()

    def has_other_columns(self, con: duckdb.DuckDBPyConnection) -> bool:
        if self.path.suffix == ".csv":
            with self.path.open(encoding="utf-8", newline="") as file:
                if next(csv.reader(file), []) != list(self.types):
                    return True
        return list(describe(con, self.view).items()) != list(self.types.items())

    def metadata(self, con: duckdb.DuckDBPyConnection) -> int:
        """How many entries a Parquet file carries beside its data."""
        if self.path.suffix == ".csv":
            return 0
        return int(con.sql(f"SELECT count(*) FROM parquet_kv_metadata({literal(str(self.path))})").fetchall()[0][0])

    def checksum(self, con: duckdb.DuckDBPyConnection, columns: list[str], times: str = "1") -> int:
        sql = f"SELECT {checksum([quote(name) for name in columns], times)} FROM {self.view}"
        return int(con.sql(sql).fetchall()[0][0])


def files_of(written: Written) -> list[File]:
    """The one file of a generalized release, or the two of a bucketized one."""
    first = File(written.path, written.types, "written_release")
    values = written.values
    return [first] if values is None else [first, File(values.path, values.types, "written_values")]


def open_written(
    con: duckdb.DuckDBPyConnection, files: list[File], columns: Columns, known: Known | None = None
) -> Grouped:
    """The release as a grouped table; of a part of it with the values that are `known` of the whole."""
    rows, values = files[0].view, files[-1].view
    bucketized = Grouped.of_pair(con, rows, values, columns, known) if len(files) > 1 else None
    return bucketized or Grouped.of(con, rows, columns, known)


def difference_in_form(con: duckdb.DuckDBPyConnection, files: list[File]) -> str:
    """What around the rows is not as it was meant to be, or nothing. Opens the files in the order of their rows."""
    names = sorted(["datapackage.json", *(file.path.name for file in files)])
    if sorted(path.name for path in files[0].path.parent.iterdir()) != names:
        return STRANGERS
    return difference_in_files(con, files)


def difference_in_files(con: duckdb.DuckDBPyConnection, files: list[File]) -> str:
    """The same of the files alone."""
    con.execute("SET preserve_insertion_order = true").fetchall()
    for file in files:
        file.open(con)
    if any(file.has_other_columns(con) for file in files):
        return "does not have the columns that were asked for"
    if any(file.metadata(con) for file in files):
        return "carries metadata"
    return ""


def difference_in_content(grouped: Grouped, written: Written) -> str:
    """What in the rows is not as it was meant to be, or nothing; without any value of the data."""
    rows, (first, *others) = grouped.rows(), files_of(written)
    if rows != written.rows:
        return f"has {rows:,} rows, not {written.rows:,}"
    wrong = [name for name, labels in written.labels.items() if grouped.label_rows(name) != labels]
    if wrong:
        return f"has labels that were not asked for ({', '.join(wrong)})"
    own = [name for name in written.types if name not in written.labels and not (others and name == "group")]
    if first.checksum(grouped.con, own) != written.checksum:
        values = "values" if others else "sensitive or kept values"
        return f"has {values} that are not the source's"
    if written.whole is not None and first.checksum(grouped.con, list(written.types)) != written.whole:
        return "has individuals in other groups than they were meant to be in"
    return _difference_in_values(grouped, written.values, others[0]) if written.values else ""


def _difference_in_values(grouped: Grouped, written: WrittenValues, file: File) -> str:
    """The same for the sensitive values of a bucketized release, and the numbers of its groups."""
    con, (name,) = grouped.con, grouped.sensitive
    # rows are in order, as `rows_out_of_order` makes sure: equal ones are neighbours
    again = "g = lag(g) OVER () AND s0 IS NOT DISTINCT FROM lag(s0) OVER ()"
    pairs = f"SELECT {again} AS again FROM {grouped.COUNTS}"
    rows, twice = con.sql(f"SELECT count(*), count_if(again) FROM ({pairs})").fetchall()[0]
    if rows != written.rows or twice:
        return f"has {rows - twice:,} different values in groups and {rows:,} counts of them, not {written.rows:,}"
    if file.checksum(con, [name], '"count"') != written.checksum:
        return "has sensitive values that are not the source's"
    if file.checksum(con, list(written.types)) != written.whole:
        return "has sensitive values in other groups than they were meant to be in"
    gaps = con.sql(f"SELECT max(g) + 1 - count(*) + abs(min(g)) FROM {grouped.GROUPS}").fetchall()[0][0]
    if gaps:
        return "does not number its groups from 0 on without a gap"
    wrong = groups_out_of_order(grouped)
    return f"has {wrong:,} groups whose numbers are not in canonical order" if wrong else ""


def formula_cells(con: duckdb.DuckDBPyConnection, files: list[File]) -> dict[str, int]:
    """Count per column of CSV files, where there are any, the cells that a spreadsheet may run as a formula. The name
    of the column is a cell, too."""
    found: dict[str, int] = {}
    for file in files:
        if file.path.suffix == ".csv":
            texts = [name for name, kind in file.types.items() if kind == "VARCHAR"]
            counts = [f"count_if(regexp_matches({quote(name)}, {literal(FORMULA)}))" for name in texts]
            row = con.sql(f"SELECT {', '.join(['0', *counts])} FROM {file.view}").fetchall()[0]
            for name in file.types:
                found[name] = int(re.match(FORMULA, name) is not None) + dict(zip(texts, row[1:])).get(name, 0)
    return {name: count for name, count in found.items() if count}


def rows_out_of_order(con: duckdb.DuckDBPyConnection, files: list[File]) -> int:
    """Rows that come before their predecessor in canonical order."""
    return sum(_out_of_order(con, file.reader, list(file.types)) for file in files)


def _out_of_order(con: duckdb.DuckDBPyConnection, reader: str, names: list[str]) -> int:
    """Those of one file. Runs of equal rows are looked at once."""
    columns = [f"c{index}" for index in range(len(names))]
    listed = ", ".join(columns)
    rows = f"SELECT {', '.join(f'{quote(n)} AS {c}' for n, c in zip(names, columns))} FROM {reader}"
    hashed = f"SELECT *, lag(h) OVER () AS before FROM (SELECT *, hash({listed}) AS h FROM ({rows}))"
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
