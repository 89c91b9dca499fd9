"""The CSV files that a config names beside the source (hierarchies, priors, distances): read a record at a time, and
gathered into `Columns` of Arrow text, which take little more than the file does."""

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
from numpy.typing import NDArray

from anon.errors import ConfigError, Problem

Record = tuple[int, list[str]]  # the line it starts on, and its fields
PROBLEMS_SHOWN = 10
BATCH = 5_000  # records that are put into columns at a time
RECORD = 100  # bytes that telling a record from all others takes, beside its text
HEAD = 1 << 20  # characters, among which the separator is found


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


class Columns:
    """The fields of records by column, and the lines that these start on. Where they would take more than there is
    room for, they are only counted: `taken` is what they take, or would."""

    def __init__(self, width: int, room: float = inf) -> None:
        self.room, self.taken = room, 0
        self.lines: NDArray[np.int64] = np.empty(0, np.int64)
        self._chunks: list[list[pa.Array]] = [[] for _ in range(width)]

    def fill(self, records: Iterable[Record]) -> None:
        """Take records, all as wide as the columns are many."""
        lines = []
        while batch := list(islice(records, BATCH)):
            columns = [pa.array(fields, pa.string()) for fields in zip(*(fields for _, fields in batch))]
            self.taken += len(batch) * RECORD + 2 * sum(column.nbytes for column in columns)
            if self.taken <= self.room:
                lines.append(np.array([line for line, _ in batch], np.int64))
                for chunks, column in zip(self._chunks, columns):
                    chunks.append(column)
        if self.taken <= self.room:
            self.lines = np.concatenate([self.lines, *lines])

    def pop(self) -> Iterator[pa.ChunkedArray]:
        """Yield the columns in order, each of which is gone from here afterwards."""
        while self._chunks:
            yield pa.chunked_array(self._chunks.pop(0), pa.string())


def read_text(path: Path, where: str) -> str:
    """Read the text of a file in UTF-8, with or without a byte order mark."""
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
        """Raise them, if there are any."""
        more = [Problem(self.shown[0].path, "", f"{self.more} more of the same kind")] if self.more else []
        if self.shown:
            raise ConfigError([*self.shown, *more])


def refuse(problems: Iterable[Problem]) -> None:
    """Raise the first few problems, if there are any, with the number of the others."""
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
    """Find the first line that is not UTF-8."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    raise AssertionError("every line is UTF-8")


def _separator(content: str) -> str:
    """`;` if the first record has one outside its quotes, else `,`."""
    record = re.match(r'(?:"(?:[^"]|"")*"|[^"\r\n])*', content.lstrip("\r\n"))
    bare = re.sub(r'"(?:[^"]|"")*"', "", record[0]) if record else ""
    return ";" if ";" in bare or "," not in bare else ","
