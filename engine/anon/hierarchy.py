"""Hierarchies of one quasi-identifier column, between source and cube in the way of the data (config -> source ->
cube -> search -> release -> verify -> report): a builder of the config, or a hierarchy file in the form that ARX reads,
gives every value of the column its labels level by level, and `Tree` turns these into nodes over ordered integer codes,
each node one contiguous range of codes. The rows of a new hierarchy file are made here as well."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anon.errors import ConfigError, Problem
from anon.values import Value, text

if TYPE_CHECKING:
    from anon.config import Builder, Calendar, Digits, HierarchyFile, Intervals, Suppress

ROOT = "*"
PROBLEMS_SHOWN = 10

Number = int | Decimal
Row = tuple[str, ...]


@dataclass
class HierarchyGap(ConfigError):
    """Values of the data that are not leaves of the hierarchy file. `missing` holds their texts for a caller that may
    show values; the message only counts them."""

    missing: list[str] = field(default_factory=list, repr=False)


class Paths(list[Row]):
    """The labels of each value from level 1 up to the root. `where` is the config field they come from; `ranks`, for a
    hierarchy file, is the place of each value among the leaves of the file."""

    def __init__(self, rows: Iterable[Row], where: str, ranks: list[int] | None = None) -> None:
        super().__init__(rows)
        self.where = where
        self.ranks = ranks


def paths(builder: Builder, values: Sequence[Value], column: str) -> Paths:
    """The labels of each distinct non-null value, from level 1 up to the root `*`; level 0 is `text(value)`.

    All paths have the same length. Numbers, dates and digits are expected in value order.
    """
    where = f"columns.quasi_identifiers.{column}.{builder.kind}"
    return _BUILDERS[builder.kind](builder, values, where)


# Builders


@dataclass(frozen=True)
class _Cells:
    """The cells of an interval builder. All numbers are counted in units of 10**-places, so that they are integers and
    every comparison is exact."""

    widths: list[int]
    origin: int
    top: int | None
    bottom: int | None
    places: int
    whole: bool
    written: dict[int, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, widths: Sequence[Number], origin: Number, top: Number | None, bottom: Number | None, whole: bool
    ) -> _Cells:
        given = [n for n in (*widths, origin, top, bottom) if n is not None]
        places = max(len(text(n).partition(".")[2]) for n in given)

        def units(number: Number) -> int:
            return int(_units(number, places))

        return cls(
            widths=[units(width) for width in widths],
            origin=units(origin),
            top=None if top is None else units(top),
            bottom=None if bottom is None else units(bottom),
            places=places,
            whole=whole and places == 0,
        )

    def part(self, unit: int | float) -> int | str | None:
        """Equal for values with equal labels: the label of an open end, or the number of the narrowest cell. None for
        infinity without an open end to take it, and for NaN."""
        if self.top is not None and unit >= self.top:
            return self._top_label
        if self.bottom is not None and unit < self.bottom:
            return self._bottom_label
        return (unit - self.origin) // self.widths[0] if isinstance(unit, int) else None

    def path(self, part: int | str) -> Row:
        """The labels of all levels for one part."""
        if isinstance(part, str):
            return (*[part] * len(self.widths), ROOT)
        unit = self.origin + part * self.widths[0]
        return (*(self._cell(unit, width) for width in self.widths), ROOT)

    def _cell(self, unit: int, width: int) -> str:
        low = unit - (unit - self.origin) % width
        high = low + width
        if self.bottom is not None:
            low = max(low, self.bottom)
        if self.top is not None:
            high = min(high, self.top)
        return _whole_range(low, high - 1) if self.whole else f"[{self._number(low)},{self._number(high)})"

    @cached_property
    def _top_label(self) -> str:
        return f">={self._number(self.top or 0)}"

    @cached_property
    def _bottom_label(self) -> str:
        bottom = self.bottom or 0
        return f"<={bottom - 1}" if self.whole else f"<{self._number(bottom)}"

    def _number(self, unit: int) -> str:
        """Neighbouring cells and all levels share their bounds, so each is written once."""
        if unit not in self.written:
            self.written[unit] = text(Decimal(f"{unit}E-{self.places}"))
        return self.written[unit]


def _whole_range(low: int, high: int) -> str:
    if low == high:
        return str(low)
    return f"{low}..{high}" if low < 0 else f"{low}-{high}"


def _units(number: int | float | Decimal, places: int) -> int | float:
    """The number in units of 10**-places, rounded down; infinity and NaN stay what they are."""
    exact = Decimal(float.__repr__(number)) if isinstance(number, float) else number
    if isinstance(exact, Decimal) and not exact.is_finite():
        return float(exact)
    numerator, denominator = exact.as_integer_ratio()
    return numerator * 10**places // denominator


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _interval_paths(builder: Intervals, values: Sequence[Any], where: str) -> Paths:
    _refuse_some(values, _is_number, where, "that are not numbers", "a column of numbers")
    whole = all(isinstance(value, int) for value in values)
    cells = _Cells.of(builder.intervals, builder.origin, builder.top, builder.bottom, whole)
    return Paths(_cell_paths(cells, values, where), where)


def _cell_paths(cells: _Cells, values: Sequence[Any], where: str) -> list[Row]:
    parts = [cells.part(_units(value, cells.places)) for value in values]
    _refuse_some(
        parts,
        lambda part: part is not None,
        where,
        "that are infinite or not a number",
        "finite numbers, or `top` and `bottom` to take the rest",
    )
    labels: dict[Any, Row] = {part: cells.path(part) for part in set(parts) if part is not None}
    return [labels[part] for part in parts]


def _suppress_paths(builder: Suppress, values: Sequence[Any], where: str) -> Paths:
    return Paths([(ROOT,)] * len(values), where)


def _digit_paths(builder: Digits, values: Sequence[Any], where: str) -> Paths:
    count = builder.digits
    _refuse_short_numbers(values, count, where)
    _refuse_some(
        values,
        lambda value: _is_digits(value, count),
        where,
        f"that are not exactly {count} digits",
        f"text or whole numbers of exactly {count} digits",
    )
    return Paths([_masked(text(value), count) for value in values], where)


def _is_digits(value: Value, count: int) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return False
    digits = text(value)
    return len(digits) == count and digits.isascii() and digits.isdigit()


def _refuse_short_numbers(values: Sequence[Any], count: int, where: str) -> None:
    """Short whole numbers have probably lost their leading zeros, which deserves its own words."""
    numbers = (value for value in values if isinstance(value, int) and not isinstance(value, bool))
    short = sum(1 for number in numbers if number >= 0 and len(text(number)) < count)
    if short:
        raise ConfigError.at(
            where,
            f"{short} of {len(values)} distinct values that are whole numbers with fewer than {count} digits",
            f"exactly {count} digits in every value",
            "zip codes stored as numbers lose their leading zeros: store the column as text",
        )


def _masked(value: str, width: int) -> Row:
    """Labels that hide one more character at each level. Values are aligned on the left and the longest has `width`
    characters; a shorter one stays as it is until its own end is reached."""
    labels = [value if len(value) <= keep else value[:keep] + "*" * (width - keep) for keep in range(width - 1, 0, -1)]
    return (*labels, ROOT)


def _calendar_paths(builder: Calendar, values: Sequence[Any], where: str) -> Paths:
    _refuse_some(
        values, lambda value: isinstance(value, date), where, "that are not dates", "a column of dates or times"
    )
    timed = any(isinstance(value, datetime) for value in values)
    periods = [_PERIODS[period] for period in builder.calendar if timed or period != "day"]
    days = [_utc(value) for value in values]
    return Paths([(*(label(day) for label in periods), ROOT) for day in days], where)


_PERIODS: dict[str, Callable[[date], str]] = {
    "day": lambda day: f"{day.year:04}-{day.month:02}-{day.day:02}",
    "month": lambda day: f"{day.year:04}-{day.month:02}",
    "quarter": lambda day: f"{day.year:04}-Q{(day.month + 2) // 3}",
    "year": lambda day: f"{day.year:04}",
}


def _utc(value: date) -> date:
    if isinstance(value, datetime) and value.utcoffset() is not None:
        return value.astimezone(UTC)
    return value


def _refuse_some(values: Sequence[Any], fits: Callable[[Any], bool], where: str, what: str, expected: str) -> None:
    bad = sum(1 for value in values if not fits(value))
    if bad:
        raise ConfigError.at(where, f"{bad} of {len(values)} distinct values {what}", expected)


def _file_paths(builder: HierarchyFile, values: Sequence[Any], where: str) -> Paths:
    table = _read(builder.hierarchy, where)
    place = {row[0]: i for i, row in enumerate(table.rows)}
    texts = [text(value) for value in values]
    missing = [name for name in texts if name not in place]
    if missing:
        raise _gap(missing, len(values), table)
    rows, ranks = _rooted(table), table.ranks()
    return Paths([rows[place[name]][1:] for name in texts], where, [ranks[place[name]] for name in texts])


def _gap(missing: list[str], total: int, table: _Table) -> HierarchyGap:
    found = f"{len(missing)} of {total} distinct values that are not leaves of {table.name}"
    hint = "`anon hierarchy test FILE --on TABLE --column C` counts them"
    problem = Problem(table.where, found, "every value of the column as a leaf", hint)
    return HierarchyGap([problem], missing=missing)


_BUILDERS: dict[str, Callable[[Any, Sequence[Any], str], Paths]] = {
    "intervals": _interval_paths,
    "suppress": _suppress_paths,
    "digits": _digit_paths,
    "calendar": _calendar_paths,
    "hierarchy": _file_paths,
}


# Hierarchy files


@dataclass(frozen=True)
class _Level:
    """The labels of one level: the distinct ones by their first row, the number of each row's label among them, and for
    each label its first row and its count of rows."""

    names: list[str]
    number: NDArray[np.int64]
    first: NDArray[np.int64]
    size: NDArray[np.int64]

    @classmethod
    def of(cls, labels: Sequence[str]) -> _Level:
        numbers = {name: i for i, name in enumerate(dict.fromkeys(labels))}
        number = np.fromiter(map(numbers.__getitem__, labels), np.int64, len(labels))
        _, first, size = np.unique(number, return_index=True, return_counts=True)
        return cls(list(numbers), number, first, size)


@dataclass(frozen=True)
class _Table:
    """Rows `leaf, level 1, level 2, ...` and the line of the file that each one starts on."""

    name: str
    where: str
    lines: list[int]
    rows: list[Row]

    @cached_property
    def levels(self) -> list[_Level]:
        return [_Level.of(labels) for labels in zip(*self.rows)]

    def ranks(self) -> list[int]:
        """The place of each row when leaves are ordered by the first line of their ancestors, from the top down."""
        place = np.empty(len(self.rows), np.int64)
        place[np.lexsort([level.number for level in self.levels])] = np.arange(len(self.rows))
        return place.tolist()

    def problem(self, index: int, found: str, expected: str) -> Problem:
        return Problem(self.where, f"{self.name} line {self.lines[index]}: {found}", expected)


def _read(path: Path, where: str) -> _Table:
    """A hierarchy file, refused unless it is a tree."""
    records = _records(path, where)
    table = _Table(path.name, where, [line for line, _ in records], [tuple(fields) for _, fields in records])
    return _checked(table)


def _checked(table: _Table) -> _Table:
    if not table.rows:
        raise ConfigError.at(table.where, f"{table.name} without a row", "at least one row")
    for check in (_malformed_rows, _repeated_leaves, _second_parents, _ambiguous_labels):
        _refuse(list(check(table)))
    return table


def _refuse(problems: list[Problem]) -> None:
    if len(problems) > PROBLEMS_SHOWN:
        more = len(problems) - PROBLEMS_SHOWN
        problems = [*problems[:PROBLEMS_SHOWN], Problem(problems[0].path, "", f"{more} more of the same kind")]
    if problems:
        raise ConfigError(problems)


def _malformed_rows(table: _Table) -> Iterator[Problem]:
    width = len(table.rows[0])
    for i, row in enumerate(table.rows):
        if len(row) != width:
            yield table.problem(i, f"{len(row)} fields", f"{width} fields, as on line {table.lines[0]}")
        elif not all(row[1:]):
            yield table.problem(i, f"an empty label at level {row.index('', 1)}", "a label at every level")


def _repeated_leaves(table: _Table) -> Iterator[Problem]:
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


def _second_parents(table: _Table) -> Iterator[Problem]:
    for depth, (level, above) in enumerate(pairwise(table.levels[1:]), 1):
        first = level.first[level.number]
        for i in np.flatnonzero(above.number != above.number[first]).tolist():
            label, parent = table.rows[i][depth : depth + 2]
            before = f'on line {table.lines[first[i]]} under "{table.rows[first[i]][depth + 1]}"'
            found = f'"{label}" at level {depth} is under "{parent}", {before}'
            yield table.problem(i, found, "one parent for every label")


def _ambiguous_labels(table: _Table) -> Iterator[Problem]:
    """Labels that stand for different leaves at different levels, the root `*` included.

    The leaf sets of a tree are nested or disjoint, so two that share their first leaf and their size are equal.
    """
    levels = [*table.levels, _Level.of([ROOT] * len(table.rows))]
    names = [name for level in levels for name in level.names]
    depth = np.repeat(np.arange(len(levels)), [len(level.names) for level in levels])
    first = np.concatenate([level.first for level in levels])
    size = np.concatenate([level.size for level in levels])
    before = _first_of_name(names)
    for i in np.flatnonzero((first != first[before]) | (size != size[before])).tolist():
        lower = int(depth[before[i]]), int(first[before[i]])
        yield _ambiguity(table, names[i], lower, (int(depth[i]), int(first[i])))


def _first_of_name(names: Sequence[str | None]) -> NDArray[np.int64]:
    """For each name the first index it stands at."""
    home: dict[str | None, int] = {}
    return np.fromiter(map(home.setdefault, names, range(len(names))), np.int64, len(names))


def _ambiguity(table: _Table, label: str, lower: tuple[int, int], upper: tuple[int, int]) -> Problem:
    kind = "leaf" if lower[0] == 0 else f"level {lower[0]}"
    again = "for the root" if upper[0] == len(table.rows[0]) else f"at level {upper[0]} on line {table.lines[upper[1]]}"
    found = f'"{label}" ({kind}) stands again {again}, for other leaves'
    return table.problem(lower[1], found, "one meaning for every label")


def _rooted(table: _Table) -> list[Row]:
    """The rows with `*` as the root: added above several top labels, or in place of a single one and its repeats."""
    top = table.levels[-1].names
    if len(table.levels) == 1 or len(top) > 1:
        return [(*row, ROOT) for row in table.rows]
    keep = max(i for i, level in enumerate(table.levels) if i == 0 or level.names != top) + 1
    return [(*row[:keep], *[ROOT] * (len(row) - keep)) for row in table.rows]


def _records(path: Path, where: str) -> list[tuple[int, list[str]]]:
    """The records of a CSV file and the line each one starts on, blank lines left out."""
    content = _content(path, where)
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


def _content(path: Path, where: str) -> str:
    try:
        data = path.read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise ConfigError.at(where, f"{path.name}: {error.strerror}", "a readable file") from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError.at(where, f"{path.name} line {line}: bytes that are not UTF-8", "a file in UTF-8") from None


def inspect(path: Path, values: Iterable[str] | None = None) -> dict[str, Any]:
    """What `anon hierarchy test` reports of a file: leaves, levels above them, nodes per level from the leaves to the
    root; with values, how many distinct ones are `missing` from the leaves and how many leaves are `unused`."""
    table = _read(path, str(path))
    rows = _rooted(table)
    leaves = {row[0] for row in rows}
    given = None if values is None else set(values)
    return {
        "leaves": len(leaves),
        "levels": len(rows[0]) - 1,
        "nodes_per_level": [len(set(labels)) for labels in zip(*rows)],
        "missing": None if given is None else len(given - leaves),
        "unused": None if given is None else len(leaves - given),
    }


# The tree


@dataclass(frozen=True, eq=False)
class Tree:
    """The nodes of a hierarchy over codes 0, 1, ...; node i < codes is the leaf of code i, the root is the last node.

    `levels` is the level of the root, `node_at[level, code]` the node of a code at each level from 0. Per node: its
    label (None for null), its inclusive code range, its parent (-1 for the root) and the lowest level it stands at. The
    children of a node are `child[child_start[node]:child_start[node + 1]]`, in code order.
    """

    levels: int
    node_at: NDArray[np.int32]
    label: tuple[str | None, ...]
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    parent: NDArray[np.int32]
    level: NDArray[np.int32]
    child_start: NDArray[np.int32]
    child: NDArray[np.int32]

    @classmethod
    def build(cls, paths: Sequence[Row], texts: Sequence[str], null: bool) -> tuple[Tree, NDArray[np.int64]]:
        """The tree over the leaves `texts` with the label paths `paths`, and the order of the leaves in it: the leaf
        with code i (i + 1 if `null`) is the input leaf order[i]. Null has code 0 and hangs from the root."""
        ranks = paths.ranks if isinstance(paths, Paths) else None
        order = np.arange(len(paths)) if ranks is None else np.argsort(np.asarray(ranks, dtype=np.int64), kind="stable")
        columns: list[Row] = list(zip(*(paths[i] for i in order))) if paths else [()]
        inner = _inner_levels(columns)
        nodes = _Nodes([texts[i] for i in order], null)
        for level, labels in enumerate(columns):
            nodes.add_level(labels, whole=level >= inner)
        nodes.refuse_same_labels(paths.where if isinstance(paths, Paths) else "columns.quasi_identifiers")
        return nodes.tree(), order.astype(np.int64)

    def common(self, low_codes: ArrayLike, high_codes: ArrayLike) -> NDArray[np.int32]:
        """The lowest node that covers both codes, element by element."""
        low, high = np.asarray(low_codes), np.asarray(high_codes)
        found = self.node_at[self.levels][low]
        for row in self.node_at[self.levels - 1 :: -1]:
            found = np.where(row[low] == row[high], row[low], found)
        return found

    def splits(self, node: int) -> NDArray[np.int32]:
        """The first codes of the children of a node, in order; empty for a leaf."""
        return self.low[self.child[self.child_start[node] : self.child_start[node + 1]]]

    @cached_property
    def labels(self) -> NDArray[np.object_]:
        """The labels as an array, to be indexed by an array of nodes."""
        return np.array(self.label, dtype=object)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; `from_dict` gives the same tree back."""
        arrays = {name: getattr(self, name).tolist() for name in ("low", "high", "parent", "level")}
        return {"levels": self.levels, "label": list(self.label), **arrays}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Tree:
        low, high, parent, level = (np.asarray(data[name], np.int32) for name in ("low", "high", "parent", "level"))
        rows = [np.arange(high[-1] + 1, dtype=np.int32)]
        for above in range(1, data["levels"] + 1):
            up = parent[rows[-1]]
            rows.append(np.where((up >= 0) & (level[up] == above), up, rows[-1]))
        children = _children(parent, low)
        return cls(data["levels"], np.stack(rows), tuple(data["label"]), low, high, parent, level, *children)


def _children(parent: NDArray[np.int32], low: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    below = np.flatnonzero(parent >= 0)
    child = below[np.lexsort((low[below], parent[below]))]
    start = np.concatenate([[0], np.cumsum(np.bincount(parent[below], minlength=len(parent)))])
    return start.astype(np.int32), child.astype(np.int32)


def _inner_levels(columns: list[Row]) -> int:
    """How many levels lie below the root and its repeats."""
    root = set(columns[-1])
    if len(root) > 1:
        raise ValueError("the last label is not the same for all leaves")
    return max((level for level, labels in enumerate(columns, 1) if set(labels) != root), default=0)


class _Nodes:
    """A tree that grows from the leaves up, one level of labels at a time."""

    def __init__(self, texts: list[str], null: bool) -> None:
        self.null = int(null)
        codes = len(texts) + self.null
        if codes == 0 or len(set(texts)) != len(texts):
            raise ValueError("a tree needs at least one leaf, and every leaf once")
        self.label: list[str | None] = [*[None] * self.null, *texts]
        self.rows = [np.arange(codes, dtype=np.int32)]
        self.low = self.high = self.rows[0]
        self.level = np.zeros(codes, np.int32)

    def add_level(self, labels: Sequence[str], whole: bool) -> None:
        """Puts the next level on top; `labels` are those of the leaves in order, without null. A whole level is one
        node, which takes null in."""
        row = self.rows[-1]
        low, names = (np.zeros(1, np.int32), list(labels[:1]) or [ROOT]) if whole else self._ranges(labels)
        high = np.append(low[1:], len(row)).astype(np.int32) - 1
        below = row[low]
        same = (self.low[below] == low) & (self.high[below] == high)
        new = ~same | np.array([self.label[node] != name for node, name in zip(below, names)], dtype=bool)
        nodes = np.where(new, len(self.label) + np.cumsum(new) - 1, below).astype(np.int32)
        self.label += [name for name, is_new in zip(names, new) if is_new]
        self.low, self.high = np.append(self.low, low[new]), np.append(self.high, high[new])
        self.level = np.append(self.level, np.full(new.sum(), len(self.rows), np.int32))
        self.rows.append(np.repeat(nodes, high - low + 1))

    def _ranges(self, labels: Sequence[str]) -> tuple[NDArray[np.int32], Sequence[str | None]]:
        """First code and label of each node of a level, null alone."""
        level = _Level.of(labels)
        if np.any(np.diff(level.number) < 0):
            raise ValueError("leaves under one label are not next to each other")
        low = level.first.astype(np.int32) + self.null
        if np.any(self.rows[-1][low] == self.rows[-1][np.maximum(low - 1, 0)], where=low > 0):
            raise ValueError("a label has two parents")
        return np.append(np.zeros(self.null, np.int32), low), [*[None] * self.null, *level.names]

    def refuse_same_labels(self, where: str) -> None:
        """A label must say which codes it stands for."""
        before = _first_of_name(self.label)
        clashes = np.unique(before[(self.low != self.low[before]) | (self.high != self.high[before])])
        if len(clashes):
            data = np.count_nonzero(clashes < len(self.rows[0]))
            found = f"{len(clashes)} labels with two meanings, {data} of them also data values"
            raise ConfigError.at(where, found, "labels that are distinct from each other and from all data values")

    def tree(self) -> Tree:
        parent = np.full(len(self.label), -1, np.int32)
        for row, above in zip(self.rows, self.rows[1:]):
            parent[row[row != above]] = above[row != above]
        children = _children(parent, self.low)
        node_at = np.stack(self.rows)
        return Tree(len(node_at) - 1, node_at, tuple(self.label), self.low, self.high, parent, self.level, *children)


# Rows for new hierarchy files


def interval_rows(
    low: int,
    high: int,
    widths: Sequence[Number],
    origin: Number = 0,
    top: Number | None = None,
    bottom: Number | None = None,
) -> list[Row]:
    """Rows for the whole numbers from low to high, with one level per width, as the `intervals` builder has them."""
    if low > high:
        raise ConfigError.at("intervals", f"{low} to {high}", "a lowest number that is not above the highest")
    if not widths or widths[0] <= 0 or any(wide <= narrow or wide % narrow for narrow, wide in pairwise(widths)):
        found = f"widths {', '.join(map(text, widths))}" if widths else "no widths"
        raise ConfigError.at("intervals", found, "widths above 0, each dividing the next")
    if top is not None and bottom is not None and bottom >= top:
        raise ConfigError.at("intervals", f"bottom {text(bottom)} and top {text(top)}", "bottom below top")
    values = range(low, high + 1)
    labels = _cell_paths(_Cells.of(widths, origin, top, bottom, whole=True), values, "intervals")
    return [(text(value), *above) for value, above in zip(values, labels)]


def prefix_rows(path: Path) -> list[Row]:
    """Rows for the values of a text file, one per line (blank lines and repeats are left out), that hide one more
    character at each level: `02139`, `0213*`, ..., `*`."""
    lines: dict[str, int] = {}
    for number, line in enumerate(io.StringIO(_content(path, str(path)), newline=None), 1):
        if value := line.rstrip("\n"):
            lines.setdefault(value, number)
    width = max(map(len, lines), default=0)
    rows = [(value, *_masked(value, width)) for value in lines]
    return _checked(_Table(path.name, str(path), list(lines.values()), rows)).rows


def parent_rows(path: Path) -> list[Row]:
    """Rows from a CSV file of pairs `value,parent`, in any order and without a header. A value that is no parent is a
    leaf; a leaf with few ancestors is repeated at the levels that it lacks."""
    pairs = _pairs(path)
    parent = _with_one_top({value: above for _, value, above in pairs})
    inner = set(parent.values())
    chains = {value: _chain(value, parent, f"{path} line {line}") for line, value, _ in pairs}
    depth = max(map(len, chains.values()), default=0)
    leaves = [(line, chains[value]) for line, value, _ in pairs if value not in inner]
    rows = [(*[chain[0]] * (depth - len(chain)), *chain) for _, chain in leaves]
    return _rooted(_checked(_Table(path.name, str(path), [line for line, _ in leaves], rows)))


def _pairs(path: Path) -> list[tuple[int, str, str]]:
    """Line, value and parent of each pair."""
    first: dict[str, int] = {}
    problems = []
    records = _records(path, str(path))
    for line, fields in records:
        if len(fields) != 2 or not all(fields):
            problems.append(Problem(f"{path} line {line}", f"{sum(map(bool, fields))} names", "a value and its parent"))
        elif first.setdefault(fields[0], line) != line:
            found = f'"{fields[0]}", which line {first[fields[0]]} has already'
            problems.append(Problem(f"{path} line {line}", found, "every value once"))
    _refuse(problems)
    return [(line, value, above) for line, (value, above) in records]


def _with_one_top(parent: dict[str, str]) -> dict[str, str]:
    """The same parents, with `*` above the tops when there are several."""
    tops = dict.fromkeys(above for above in parent.values() if above not in parent)
    return parent if len(tops) < 2 else {**parent, **{top: ROOT for top in tops if top != ROOT}}


def _chain(value: str, parent: dict[str, str], where: str) -> Row:
    """A value and its ancestors, from the bottom up."""
    chain = [value]
    while chain[-1] in parent:
        chain.append(parent[chain[-1]])
        if len(chain) > len(parent) + 1:
            raise ConfigError.at(where, f'"{value}", whose ancestors go round in a circle', "parents that end at a top")
    return tuple(chain)


def write_rows(rows: Iterable[Row], path: Path) -> None:
    """Writes rows as a hierarchy file: UTF-8, separated by `;`, quoted where needed."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(";".join(map(_quoted, row)) + "\n" for row in rows)


def _quoted(name: str) -> str:
    """The csv module of Python 3.11 leaves a lone carriage return bare, and a byte order mark would be lost."""
    return '"' + name.replace('"', '""') + '"' if not name or any(c in name for c in ';,"\r\n\ufeff') else name
