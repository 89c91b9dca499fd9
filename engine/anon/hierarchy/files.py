"""Read hierarchy files (`leaf;level1;level2;...`, as ARX reads and writes them), refuse those that are not a tree with
the lines at fault, and compare them with the values of a column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anon.core.arrays import Ints
from anon.core.memory import LIBRARIES, release_unused, require
from anon.errors import ConfigError, Problem
from anon.hierarchy.csv_files import Problems, Record, RecordColumns, read_records, refuse
from anon.hierarchy.label_levels import LabelLevel, Row, first_of_name


@dataclass
class HierarchyGap(ConfigError):
    """Data values that are not leaves of the hierarchy file. `missing` holds their texts for a caller that may show
    values; the message only counts them."""

    missing: list[str] = field(default_factory=list, repr=False)

    def values(self) -> dict[str, list[str]]:
        return {"missing": self.missing}


@dataclass(frozen=True)
class HierarchyTable:
    """Rows `leaf, level 1, level 2, ...` by level, and the line of the file that each row starts on. `listed` rows were
    made from a list of data values, which messages do not quote."""

    name: str
    where: str
    lines: Ints
    levels: list[LabelLevel]
    listed: bool = False

    @classmethod
    def from_list(cls, name: str, where: str, lines: list[int], rows: list[Row]) -> HierarchyTable:
        """Return the table of rows that were made from a list."""
        return cls(
            name,
            where,
            np.array(lines, np.int64),
            [LabelLevel.from_labels(labels) for labels in zip(*rows)],
            listed=True,
        )

    def __len__(self) -> int:
        return len(self.lines)

    def rows(self, which: Ints | None = None) -> list[Row]:
        """Return some of the rows, or all."""
        which = np.arange(len(self)) if which is None else which
        return list(zip(*(level.at(which) for level in self.levels)))

    def ranks(self) -> Ints:
        """Return the rank of each row when leaves are ordered by the first line of their ancestors, from the top
        down."""
        place = np.empty(len(self), np.int64)
        place[np.lexsort([level.number for level in self.levels])] = np.arange(len(self))
        return place

    def find(self, leaves: Sequence[str]) -> Ints:
        """Return the row of each of some distinct texts, -1 for one that is not a leaf. Every leaf of the table must
        occur once."""
        wanted = pc.index_in(self.levels[0].names, value_set=pa.array(leaves, pa.string()))
        found, rows = np.full(len(leaves), -1, np.int64), np.flatnonzero(np.asarray(wanted.is_valid()))
        found[np.asarray(wanted.drop_null())] = rows
        return found

    def problem(self, index: int, found: str, expected: str) -> Problem:
        return _problem(self.where, self.name, int(self.lines[index]), found, expected)


def _problem(where: str, name: str, line: int, found: str, expected: str) -> Problem:
    return Problem(where, f"{name} line {line}: {found}", expected)


def read(path: Path, where: str, memory: int | None = None) -> HierarchyTable:
    """Return the table of a hierarchy file, refused unless it is a tree. `memory` is the limit of the whole process,
    which a large file may exceed."""
    records, wrong = read_records(path, where), Problems()
    first = next(records, None)
    if first is None:
        raise ConfigError.at(where, f"{path.name} without a row", "at least one row")
    columns = RecordColumns(len(first[1]), inf if memory is None else memory - LIBRARIES)
    columns.fill(_well_formed(chain([first], records), path.name, where, wrong))
    wrong.refuse()
    if memory is not None:
        require(memory, columns.taken, path.name)
    found = checked(
        HierarchyTable(path.name, where, columns.lines, [LabelLevel.from_labels(column) for column in columns.pop()])
    )
    release_unused()  # in which labels were sorted
    return found


def _well_formed(records: Iterable[Record], name: str, where: str, wrong: Problems) -> Iterator[Record]:
    """Yield the records that have the same number of fields as the first one and no empty label; add a problem to
    `wrong` for each of the others."""
    start, width = 0, 0
    for line, fields in records:
        start, width = (start, width) if start else (line, len(fields))
        if len(fields) != width:
            wrong.add(_problem(where, name, line, f"{len(fields)} fields", f"{width} fields, as on line {start}"))
        elif not all(fields[1:]):
            found = f"an empty label at level {fields.index('', 1)}"
            wrong.add(_problem(where, name, line, found, "a label at every level"))
        else:
            yield line, fields


def checked(table: HierarchyTable) -> HierarchyTable:
    """Return the same table, refused unless it is a tree."""
    if not len(table):
        raise ConfigError.at(table.where, f"{table.name} without a row", "at least one row")
    for check in (_repeated_leaves, _second_parents, _ambiguous_labels):
        refuse(check(table))
    return table


def _repeated_leaves(table: HierarchyTable) -> Iterator[Problem]:
    leaves = table.levels[0]
    first = leaves.first[leaves.number]
    for i in np.flatnonzero(first != np.arange(len(first))).tolist():
        j = int(first[i])
        if all(level.number[i] == level.number[j] for level in table.levels):
            yield table.problem(i, f"the same row as on line {table.lines[j]}", "every leaf once")
        else:
            leaf = leaves.names[int(leaves.number[i])].as_py()
            yield table.problem(i, f'leaf "{leaf}" with other labels than on line {table.lines[j]}', "every leaf once")


def _second_parents(table: HierarchyTable) -> Iterator[Problem]:
    for depth, (level, above) in enumerate(pairwise(table.levels[1:]), 1):
        first = level.first[level.number]
        for i in np.flatnonzero(above.number != above.number[first]).tolist():
            (label,), (parent, other) = level.at(np.array([i])), above.at(np.array([i, first[i]]))
            before = f'on line {table.lines[first[i]]} under "{other}"'
            found = f'"{label}" at level {depth} is under "{parent}", {before}'
            yield table.problem(i, found, "one parent for every label")


def _ambiguous_labels(table: HierarchyTable) -> Iterator[Problem]:
    """Yield a problem for each label that stands for different leaves at different levels, the root `*` included.

    The leaf sets of a tree are nested or disjoint, so two that share their first leaf and their size are equal.
    """
    levels = [*table.levels, LabelLevel.for_root(len(table))]
    names = pa.chunked_array([level.names for level in levels])
    first = np.concatenate([level.first for level in levels])
    size = np.concatenate([level.size for level in levels])
    before = first_of_name(names)
    begins = np.cumsum([0, *(len(level.names) for level in levels)])
    for i in np.flatnonzero((first != first[before]) | (size != size[before])).tolist():
        lower, upper = ((int(np.searchsorted(begins, at, "right")) - 1, int(first[at])) for at in (before[i], i))
        yield _ambiguity(table, names[i].as_py(), lower, upper)


def _ambiguity(table: HierarchyTable, label: str, lower: tuple[int, int], upper: tuple[int, int]) -> Problem:
    """Return the problem of an ambiguous label, the one mistake that `listed` rows can have: the others cannot arise
    from a list."""
    kind = "leaf" if lower[0] == 0 else f"level {lower[0]}"
    again = "for the root" if upper[0] == len(table.levels) else f"at level {upper[0]} on line {table.lines[upper[1]]}"
    name = "the label" if table.listed else f'"{label}"'
    found = f"{name} ({kind}) occurs again {again}, for other leaves"
    return table.problem(lower[1], found, "one meaning for every label")


def rooted(table: HierarchyTable) -> HierarchyTable:
    """Return the table with `*` as the root: added above several top labels, or in place of a single one and its
    repeats."""
    levels, top, root = table.levels, table.levels[-1].names, LabelLevel.for_root(len(table))
    if len(levels) == 1 or len(top) > 1:
        return replace(table, levels=[*levels, root])
    keep = max(i for i, level in enumerate(levels) if i == 0 or not level.names.equals(top)) + 1
    return replace(table, levels=[*levels[:keep], *[root] * (len(levels) - keep)])


@dataclass(frozen=True)
class Inspection:
    """The findings of `anon hierarchy test`: counts, and separately the values that are not leaves with their rows, for
    a caller that may show values."""

    facts: dict[str, Any]
    missing: dict[str, int] = field(default_factory=dict, repr=False)


def inspect(path: Path, counts: Mapping[str, int] | None = None) -> Inspection:
    """Return the shape of a hierarchy file and, given the rows of each distinct value of a column, its coverage."""
    table = rooted(read(path, "FILE"))
    facts = shape([len(level.names) for level in table.levels])
    if counts is None:
        return Inspection(facts)
    found = table.find(list(counts)).tolist()
    missing = {value: count for (value, count), row in zip(counts.items(), found) if row < 0}
    coverage = {
        "values": len(counts),
        "rows": sum(counts.values()),
        "missing_values": len(missing),
        "missing_rows": sum(missing.values()),
        "unused_leaves": len(table) - len(counts) + len(missing),
    }
    return Inspection(facts | coverage, missing)


def shape(nodes: list[int]) -> dict[str, Any]:
    """Return the number of leaves, of levels above them, and of nodes per level from the leaves to the root."""
    return {"leaves": nodes[0], "levels": len(nodes) - 1, "nodes_per_level": nodes}
