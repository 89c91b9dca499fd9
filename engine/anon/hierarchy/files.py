"""Hierarchy files (`leaf;level1;level2;...`, as ARX reads and writes them), part of the hierarchy stage between source
and cube in the way of the data (config -> source -> cube -> search -> release -> verify -> report): they are read,
refused with the lines at fault unless they are a tree, and compared with the values of a column."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from anon.errors import ConfigError, Problem
from anon.hierarchy.labels import ROOT, Level, Row, first_of_name

PROBLEMS_SHOWN = 10


@dataclass
class HierarchyGap(ConfigError):
    """Values of the data that are not leaves of the hierarchy file. `missing` holds their texts for a caller that may
    show values; the message only counts them."""

    missing: list[str] = field(default_factory=list, repr=False)


@dataclass(frozen=True)
class Table:
    """Rows `leaf, level 1, level 2, ...` and the line of the file that each one starts on. `listed` rows were made from
    a list of data values, which messages do not quote."""

    name: str
    where: str
    lines: list[int]
    rows: list[Row]
    listed: bool = False

    @cached_property
    def levels(self) -> list[Level]:
        return [Level.of(labels) for labels in zip(*self.rows)]

    def ranks(self) -> list[int]:
        """The place of each row when leaves are ordered by the first line of their ancestors, from the top down."""
        place = np.empty(len(self.rows), np.int64)
        place[np.lexsort([level.number for level in self.levels])] = np.arange(len(self.rows))
        return place.tolist()

    def problem(self, index: int, found: str, expected: str) -> Problem:
        return Problem(self.where, f"{self.name} line {self.lines[index]}: {found}", expected)


def read(path: Path, where: str) -> Table:
    """A hierarchy file, refused unless it is a tree."""
    records = read_records(path, where)
    return checked(Table(path.name, where, [line for line, _ in records], [tuple(fields) for _, fields in records]))


def checked(table: Table) -> Table:
    """The same table, refused unless it is a tree."""
    if not table.rows:
        raise ConfigError.at(table.where, f"{table.name} without a row", "at least one row")
    for check in (_malformed_rows, _repeated_leaves, _second_parents, _ambiguous_labels):
        refuse(list(check(table)))
    return table


def refuse(problems: list[Problem]) -> None:
    """Raises the first few problems, if there are any."""
    if len(problems) > PROBLEMS_SHOWN:
        more = len(problems) - PROBLEMS_SHOWN
        problems = [*problems[:PROBLEMS_SHOWN], Problem(problems[0].path, "", f"{more} more of the same kind")]
    if problems:
        raise ConfigError(problems)


def _malformed_rows(table: Table) -> Iterator[Problem]:
    width = len(table.rows[0])
    for i, row in enumerate(table.rows):
        if len(row) != width:
            yield table.problem(i, f"{len(row)} fields", f"{width} fields, as on line {table.lines[0]}")
        elif not all(row[1:]):
            yield table.problem(i, f"an empty label at level {row.index('', 1)}", "a label at every level")


def _repeated_leaves(table: Table) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for i, row in enumerate(table.rows):
        j = first.setdefault(row[0], i)
        if j == i:
            continue
        if table.rows[j] == row:
            yield table.problem(i, f"the same row as on line {table.lines[j]}", "every leaf once")
        else:
            found = f'leaf "{row[0]}" with other labels than on line {table.lines[j]}'
            yield table.problem(i, found, "every leaf once")


def _second_parents(table: Table) -> Iterator[Problem]:
    for depth, (level, above) in enumerate(pairwise(table.levels[1:]), 1):
        first = level.first[level.number]
        for i in np.flatnonzero(above.number != above.number[first]).tolist():
            label, parent = table.rows[i][depth : depth + 2]
            before = f'on line {table.lines[first[i]]} under "{table.rows[first[i]][depth + 1]}"'
            found = f'"{label}" at level {depth} is under "{parent}", {before}'
            yield table.problem(i, found, "one parent for every label")


def _ambiguous_labels(table: Table) -> Iterator[Problem]:
    """Labels that stand for different leaves at different levels, the root `*` included.

    The leaf sets of a tree are nested or disjoint, so two that share their first leaf and their size are equal.
    """
    levels = [*table.levels, Level.of([ROOT] * len(table.rows))]
    names = [name for level in levels for name in level.names]
    depth = np.repeat(np.arange(len(levels)), [len(level.names) for level in levels])
    first = np.concatenate([level.first for level in levels])
    size = np.concatenate([level.size for level in levels])
    before = first_of_name(names)
    for i in np.flatnonzero((first != first[before]) | (size != size[before])).tolist():
        lower = int(depth[before[i]]), int(first[before[i]])
        yield _ambiguity(table, names[i], lower, (int(depth[i]), int(first[i])))


def _ambiguity(table: Table, label: str, lower: tuple[int, int], upper: tuple[int, int]) -> Problem:
    """The one mistake that `listed` rows can have, the others cannot arise from a list."""
    kind = "leaf" if lower[0] == 0 else f"level {lower[0]}"
    again = "for the root" if upper[0] == len(table.rows[0]) else f"at level {upper[0]} on line {table.lines[upper[1]]}"
    name = "the label" if table.listed else f'"{label}"'
    found = f"{name} ({kind}) stands again {again}, for other leaves"
    return table.problem(lower[1], found, "one meaning for every label")


def rooted(table: Table) -> list[Row]:
    """The rows with `*` as the root: added above several top labels, or in place of a single one and its repeats."""
    top = table.levels[-1].names
    if len(table.levels) == 1 or len(top) > 1:
        return [(*row, ROOT) for row in table.rows]
    keep = max(i for i, level in enumerate(table.levels) if i == 0 or level.names != top) + 1
    return [(*row[:keep], *[ROOT] * (len(row) - keep)) for row in table.rows]


def read_records(path: Path, where: str) -> list[tuple[int, list[str]]]:
    """The records of a CSV file and the line each one starts on, blank lines left out."""
    content = read_text(path, where)
    reader = csv.reader(io.StringIO(content, newline=""), delimiter=_separator(content), strict=True)
    records, line = [], 1
    try:
        for fields in reader:
            if fields:
                records.append((line, fields))
            line = reader.line_num + 1
    except csv.Error as error:
        found = f"{path.name} line {line}: not CSV, {error}"
        raise ConfigError.at(where, found, "fields in balanced double quotes") from None
    return records


def _separator(content: str) -> str:
    """`;` if the first record has one outside its quotes, else `,`."""
    record = re.match(r'(?:"(?:[^"]|"")*"|[^"\r\n])*', content.lstrip("\r\n"))
    bare = re.sub(r'"(?:[^"]|"")*"', "", record[0]) if record else ""
    return ";" if ";" in bare or "," not in bare else ","


def read_text(path: Path, where: str) -> str:
    """The text of a file in UTF-8, with or without a byte order mark."""
    try:
        data = path.read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise ConfigError.at(where, f"{path.name}: {error.strerror}", "a readable file") from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError.at(where, f"{path.name} line {line}: bytes that are not UTF-8", "a file in UTF-8") from None


@dataclass(frozen=True)
class Inspection:
    """What `anon hierarchy test` found: counts, and apart from them the values that are not leaves with their rows, for
    a caller that may show values."""

    facts: dict[str, Any]
    missing: dict[str, int] = field(default_factory=dict, repr=False)


def inspect(path: Path, counts: Mapping[str, int] | None = None) -> Inspection:
    """The shape of a hierarchy file and, with the rows of each distinct value of a column, how far it covers them."""
    rows = rooted(read(path, "FILE"))
    if counts is None:
        return Inspection(shape(rows))
    leaves = {row[0] for row in rows}
    missing = {value: count for value, count in counts.items() if value not in leaves}
    coverage = {
        "values": len(counts),
        "rows": sum(counts.values()),
        "missing_values": len(missing),
        "missing_rows": sum(missing.values()),
        "unused_leaves": len(leaves - counts.keys()),
    }
    return Inspection(shape(rows) | coverage, missing)


def shape(rows: Sequence[Row]) -> dict[str, Any]:
    """The leaves, the levels above them, and the nodes per level from the leaves to the root."""
    return {
        "leaves": len(rows),
        "levels": len(rows[0]) - 1,
        "nodes_per_level": [len(set(labels)) for labels in zip(*rows)],
    }
