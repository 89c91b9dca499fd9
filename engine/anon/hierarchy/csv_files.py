"""Read the CSV files that a config names beside the source (hierarchies, priors, distances), record by record, and
collect them into `RecordColumns` of Arrow text, which take little more memory than the file has bytes."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from math import inf
from pathlib import Path

import numpy as np
import pyarrow as pa

from anon.core.arrays import Ints
from anon.errors import ConfigError, Problem

Record = tuple[int, list[str]]  # the line it starts on, and its fields
PROBLEMS_SHOWN = 10
BATCH = 5_000  # records that are added to columns at a time
RECORD = 100  # bytes that sorting takes per record, beside its text
HEAD = 1 << 20  # characters that are read to detect the separator


def read_records(path: Path, where: str) -> Iterator[Record]:
    """Yield the records of a CSV file, blank lines left out."""
    with _opened(path, where) as file:
        separator = _separator(file.read(HEAD))
        file.seek(0)
        reader, line = csv.reader(file, delimiter=separator, strict=True), 1
        try:
            for fields in reader:
                if fields:
                    yield line, fields
                line = reader.line_num + 1
        except csv.Error as error:
            found = f"{path.name} line {line}: not CSV, {error}"
            raise ConfigError.at(where, found, "fields in balanced double quotes") from None


class RecordColumns:
    """The fields of records by column, and the lines that the records start on. Where they would take more than `limit`
    bytes, they are only counted: `taken` is what they take, or would."""

    def __init__(self, width: int, limit: float = inf) -> None:
        self.limit, self.taken = limit, 0
        self.lines: Ints = np.empty(0, np.int64)
        self._chunks: list[list[pa.Array]] = [[] for _ in range(width)]

    def fill(self, records: Iterable[Record]) -> None:
        """Add records, each with one field per column."""
        lines = []
        while batch := list(islice(records, BATCH)):
            columns = [pa.array(fields, pa.string()) for fields in zip(*(fields for _, fields in batch))]
            self.taken += len(batch) * RECORD + 2 * sum(column.nbytes for column in columns)
            if self.taken <= self.limit:
                lines.append(np.array([line for line, _ in batch], np.int64))
                for chunks, column in zip(self._chunks, columns):
                    chunks.append(column)
        if self.taken <= self.limit:
            self.lines = np.concatenate([self.lines, *lines])

    def pop(self) -> Iterator[pa.ChunkedArray]:
        """Yield the columns in order, and remove each from this object."""
        while self._chunks:
            yield pa.chunked_array(self._chunks.pop(0), pa.string())


def read_text(path: Path, where: str) -> str:
    """Return the text of a file in UTF-8, with or without a byte order mark."""
    with _opened(path, where) as file:
        return file.read()


class Problems:
    """The first few problems of a file, and the number of the others."""

    def __init__(self) -> None:
        self.shown: list[Problem] = []
        self.more = 0

    def add(self, problem: Problem) -> None:
        if len(self.shown) < PROBLEMS_SHOWN:
            self.shown.append(problem)
        else:
            self.more += 1

    def refuse(self) -> None:
        """Raise ConfigError with the problems, if there are any."""
        more = [Problem(self.shown[0].path, "", f"{self.more} more of the same kind")] if self.more else []
        if self.shown:
            raise ConfigError([*self.shown, *more])


def refuse(problems: Iterable[Problem]) -> None:
    """Raise ConfigError with the first few problems, if there are any, and the number of the others."""
    found = Problems()
    for problem in problems:
        found.add(problem)
    found.refuse()


@contextmanager
def _opened(path: Path, where: str) -> Iterator[io.TextIOWrapper]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield file
    except OSError as error:
        raise ConfigError.at(where, f"{path.name}: {error.strerror}", "a readable file") from None
    except UnicodeDecodeError:
        found = f"{path.name} line {_undecodable(path)}: bytes that are not UTF-8"
        raise ConfigError.at(where, found, "a file in UTF-8") from None


def _undecodable(path: Path) -> int:
    """Return the number of the first line that is not UTF-8."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    raise AssertionError("every line is UTF-8")


def _separator(content: str) -> str:
    """Return `;` if the first record has one outside its quotes, else `,`."""
    record = re.match(r'(?:"(?:[^"]|"")*"|[^"\r\n])*', content.lstrip("\r\n"))
    bare = re.sub(r'"(?:[^"]|"")*"', "", record[0]) if record else ""
    return ";" if ";" in bare or "," not in bare else ","
