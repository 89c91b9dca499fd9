"""The records of a CSV file in UTF-8, one by one with the line of the file on which each begins. DuckDB reads the rows;
this finds the lines to name when something is wrong with them."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from anon.core import interrupt
from anon.core.database import Database
from anon.source.bad_cells import LINES, BadCell

if TYPE_CHECKING:
    from _csv import Reader

BATCH = 20_000  # records
LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class CsvLayout:
    """How the fields of a file are divided, and the names of its columns."""

    delimiter: str
    quote: str
    names: tuple[str, ...]
    header: bool = True


class Malformed(Exception):
    """A record that is not well-formed: the line on which it begins, and why."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(line, why)
        self.line, self.why = line, why


def reader(lines: Iterable[str], delimiter: str, quote: str, strict: bool = True) -> Reader:
    """Return Python's reader of CSV for a delimiter and a quote, which may be none."""
    if not quote:
        return csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE, strict=strict)
    return csv.reader(lines, delimiter=delimiter, quotechar=quote, doublequote=True, strict=strict)


def records(path: Path, layout: CsvLayout) -> Iterator[tuple[int, list[str]]]:
    """Yield the records after the header, without empty lines; Malformed at the first that is not well-formed."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = reader(file, layout.delimiter, layout.quote)
        line, first = 1, layout.header
        try:
            for record in rows:
                if record and not first:
                    yield line, record
                line, first = rows.line_num + 1, False
        except csv.Error:
            raise Malformed(line, "a quote is not closed, or stands inside a field") from None


def first_malformed(path: Path, layout: CsvLayout) -> tuple[int, str] | None:
    """Return the line of the first record that has another number of fields than the file has columns, and why it is
    refused; None if there is none."""
    width = len(layout.names)
    try:
        for line, record in records(path, layout):
            if len(record) != width:
                return line, f"{len(record):,} fields in place of {width:,}"
    except Malformed as error:
        return error.line, error.why
    return None


def bad_cells(paths: list[Path], layout: CsvLayout, bad: Mapping[str, str]) -> dict[str, list[BadCell]]:
    """Return the first cells of each column that meet a condition, given as SQL about the text `v`."""
    found: dict[str, list[BadCell]] = {column: [] for column in bad}
    with closing(Database.in_memory()) as database:
        for path, batch in _batches(paths, layout):
            interrupt.check()
            for column, condition in bad.items():
                if (more := LINES - len(found[column])) > 0:
                    found[column] += _matching(database, path, batch, layout.names.index(column), condition)[:more]
            if all(len(cells) == LINES for cells in found.values()):
                break
    return found


def _batches(paths: list[Path], layout: CsvLayout) -> Iterator[tuple[Path, list[tuple[int, list[str]]]]]:
    for path in paths:
        batch = []
        for record in records(path, layout):
            batch.append(record)
            if len(batch) == BATCH:
                yield path, batch
                batch = []
        yield path, batch


def _matching(
    database: Database, path: Path, batch: list[tuple[int, list[str]]], place: int, condition: str
) -> list[BadCell]:
    cells = [(_line_of(line, record, place), record[place]) for line, record in batch]
    table = pa.table({"line": [line for line, _ in cells], "v": pa.array([text for _, text in cells], pa.string())})
    database.register("cells", table)
    rows = database.query(f"SELECT line, v FROM cells WHERE {condition} ORDER BY line LIMIT {LINES}").fetchall()
    return [BadCell(path.name, int(line), text) for line, text in rows]


def _line_of(line: int, record: list[str], place: int) -> int:
    """Return the line of a field: fields before it may have line ends in quotes.

    >>> _line_of(7, ["a\\r\\nb", "c"], 0), _line_of(7, ["a\\r\\nb", "c"], 1)
    (7, 8)
    """
    return line + sum(len(LINE_END.findall(field)) for field in record[:place])
