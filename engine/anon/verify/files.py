"""Compare the written files of a release with what was to be written: their form, their order, the numbers of their
groups and their content. Whether the content is safe is judged by the criteria."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path

from anon.config import Columns
from anon.core.database import Database, literal, quote
from anon.core.phrases import counted
from anon.release import WrittenRelease
from anon.source import describe
from anon.verify.content import Content
from anon.verify.content.fingerprint import row_hash
from anon.verify.grouped import Grouped, KnownValues
from anon.verify.numbering import groups_out_of_order

# What spreadsheets take for a formula; a sign before nothing but a number or a range of them is none.
FORMULA = r"(?s)^([=@\t\r\n＝＠＋－]|[+-].*[^0-9.,:/() +-])"
STRANGERS = "has files beside it that do not belong to it"
GAPS = "does not number its groups from 0 on without a gap"


@dataclass(frozen=True)
class File:
    """A file of a release, with the columns that it must have and the name of the view that shows it."""

    path: Path
    types: dict[str, str]
    view: str
    hashed: list[str]  # the columns that are published as they are

    @property
    def row_hash(self) -> str:
        """Return SQL for the hash of what a row publishes as it is."""
        return row_hash({quote(name): self.types[name] for name in self.hashed})

    @property
    def reader(self) -> str:
        """Return SQL that reads the file."""
        file = literal(str(self.path))
        if self.path.suffix != ".csv":
            return f"read_parquet({file}, hive_partitioning = false)"
        columns = ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in self.types.items())
        return (
            f"read_csv({file}, columns = {{{columns}}}, auto_detect = false, header = true, delim = ',', "
            "quote = '\"', escape = '\"', nullstr = '', allow_quoted_nulls = false, strict_mode = true)"
        )

    def open(self, database: Database) -> None:
        """Make the view, in the order of the rows."""
        database.execute(f"CREATE OR REPLACE TEMP VIEW {self.view} AS SELECT * FROM {self.reader}")

    def has_other_columns(self, database: Database) -> bool:
        if self.path.suffix == ".csv":
            with self.path.open(encoding="utf-8", newline="") as file:
                if next(csv.reader(file), []) != list(self.types):
                    return True
        return list(describe(database, self.view).items()) != list(self.types.items())

    def metadata(self, database: Database) -> int:
        """Return the number of metadata entries of a Parquet file."""
        if self.path.suffix == ".csv":
            return 0
        return int(database.one(f"SELECT count(*) FROM parquet_kv_metadata({literal(str(self.path))})")[0])


def files_of(written: WrittenRelease) -> list[File]:
    """Return the one file of a generalized release, or the two of a bucketized one."""
    ends = {f"{name}_{end}" for name in written.bounds for end in ("low", "high")}
    plain = [name for name in written.types if name not in written.labelled and name not in ends]
    values = written.values
    if values is None:
        return [File(written.path, written.types, "written_release", plain)]
    *plain, _ = plain  # without the number of the group
    first = File(written.path, written.types, "written_release", plain)
    return [first, File(values.path, values.types, "written_values", [list(values.types)[1]])]


def open_written(database: Database, files: list[File], columns: Columns, known: KnownValues | None = None) -> Grouped:
    """Return the release as a grouped table; for a part of it `known` are the values of the whole."""
    first, *others = files
    if not others:
        return Grouped.from_table(database, first.view, columns, known, first.row_hash)
    return Grouped.from_pair(database, first.view, others[0].view, columns, known, [first.row_hash, others[0].row_hash])


def difference_in_form(database: Database, files: list[File], beside: Path | None = None) -> str:
    """Open the files in the order of their rows; return what is wrong with them apart from the rows, or "". `beside`: a
    file that is verified by others."""
    names = sorted(["datapackage.json", *(file.path.name for file in files), *([beside.name] if beside else [])])
    if sorted(path.name for path in files[0].path.parent.iterdir()) != names:
        return STRANGERS
    return difference_in_files(database, files)


def difference_in_files(database: Database, files: list[File]) -> str:
    """Open the files; return what is wrong with their columns or metadata, or ""."""
    database.execute("SET preserve_insertion_order = true")
    for file in files:
        file.open(database)
    if any(file.has_other_columns(database) for file in files):
        return "does not have the required columns"
    if any(file.metadata(database) for file in files):
        return "carries metadata"
    return ""


def difference_in_content(found: Content, expected: Content) -> str:
    """Return how the rows differ from the source's rows under the recoding, or ""; without any data value."""
    if found.groups != expected.groups:
        return f"has {counted(found.groups, 'group')}, not {expected.groups:,}"
    if found.labels != expected.labels:
        return "has groups with other labels or of other sizes than the source's rows have under the recoding"
    if found != expected:
        return "has groups with other values than the source's rows have under the recoding"
    return ""


def difference_in_numbers(grouped: Grouped, first: int = 0) -> str:
    """Return what is wrong with the counts of values and the numbers of groups of a bucketized release, or "". `first`:
    the first number."""
    database = grouped.database
    # rows are in order, as `rows_out_of_order` makes sure: equal ones are neighbours
    again = "g = lag(g) OVER () AND s0 IS NOT DISTINCT FROM lag(s0) OVER ()"
    twice = database.query(f"SELECT count_if(again) FROM (SELECT {again} AS again FROM {grouped.COUNTS})").fetchall()[
        0
    ][0]
    if twice:
        return f"has {twice:,} sensitive values more than once in a group"
    gaps = f"max(g) - {first} + 1 - count(*) + abs(min(g) - {first})"
    if database.one(f"SELECT {gaps} FROM {grouped.GROUPS}")[0]:
        return GAPS
    wrong = groups_out_of_order(grouped)
    return f"has {counted(wrong, 'group')} whose numbers are not in canonical order" if wrong else ""


def formula_cells(database: Database, files: list[File]) -> dict[str, int]:
    """Return for each column of CSV files that has any the number of cells that a spreadsheet may run as a formula. The
    name of the column is a cell, too."""
    found: dict[str, int] = {}
    for file in files:
        if file.path.suffix == ".csv":
            texts = [name for name, kind in file.types.items() if kind == "VARCHAR"]
            counts = [f"count_if(regexp_matches({quote(name)}, {literal(FORMULA)}))" for name in texts]
            row = database.one(f"SELECT {', '.join(['0', *counts])} FROM {file.view}")
            for name in file.types:
                found[name] = int(re.match(FORMULA, name) is not None) + dict(zip(texts, row[1:])).get(name, 0)
    return {name: count for name, count in found.items() if count}


def rows_out_of_order(database: Database, files: list[File]) -> int:
    """Return the number of rows that come before their predecessor in canonical order."""
    return sum(_out_of_order(database, file.reader, list(file.types)) for file in files)


def _out_of_order(database: Database, reader: str, names: list[str]) -> int:
    """Return the number of these rows in one file. Runs of equal rows are compared once."""
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
    late = f"SELECT count(*) FILTER ({earlier}) FROM ({pairs} FROM ({runs})) WHERE line > 1"
    return int(database.one(late)[0])
