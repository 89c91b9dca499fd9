"""From the source's rows to records of small integers. Every quasi-identifier becomes an ordered code: numbers, dates
and text in the order of their values, categories in the order of their hierarchy's leaves, so that every cell that
can be published is one contiguous range of codes. `Domain` knows value, code and label of one column in both
directions."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anon import hierarchy
from anon.config import Builder
from anon.criteria import Criterion, Groups, Ints
from anon.errors import ConfigError, SourceError
from anon.hierarchy import HierarchyGap, Tree
from anon.records import Records, in_memory
from anon.source import Column, Source, why_text
from anon.values import span, text

CODES = 65_536  # a code is an unsigned 16-bit integer
LOOKUP = 2**22  # whole numbers within a range of this size are encoded through a table
TEXT_VALUES = 64  # text without a hierarchy is listed in labels, so it may not have more values than this
WHOLE = ("integer", "date")  # kinds whose cells have a last value
CUTTABLE = ("integer", "number", "date", "timestamp")  # kinds that may be binned when they have too many values


@dataclass(frozen=True)
class Domain:
    """The values of one column that occur in the table, in code order, and the labels of its cells."""

    column: str
    kind: str
    values: pa.Array  # the value of each code, or the smallest of its bin; without null
    single: bool  # every code is one value; otherwise codes are bins
    null: bool  # code 0 is null, and the values start at code 1
    tree: Tree | None = None

    @property
    def size(self) -> int:
        return len(self.values) + self.null

    @cached_property
    def texts(self) -> list[str | None]:
        """The value of each code as text, None for null."""
        return [None] * self.null + [text(value) for value in self._objects]

    @property
    def objects(self) -> list[Any]:
        """The value of each code as it is in the table, None for null."""
        return [None] * self.null + self._objects

    @cached_property
    def _objects(self) -> list[Any]:
        return self.values.to_pylist()

    @cached_property
    def position(self) -> NDArray[np.float64]:
        """Where each code lies on the column's own scale, to measure widths; null lies at the lowest value."""
        if self.tree is None and self.kind in CUTTABLE and len(self.values):
            numbers = _as_numbers(self.values).astype(np.float64)
            return np.concatenate([numbers[:1], numbers]) if self.null else numbers
        return np.arange(self.size, dtype=np.float64)

    def encode(self, values: pa.Array) -> NDArray[np.uint16]:
        """Codes of values. A value outside the domain means that the source changed under way."""
        if self._lookup is not None:
            return self._looked_up(values, *self._lookup)
        if self.single:
            entries = values.dictionary_encode()
            known = pc.index_in(entries.dictionary, value_set=self.values)
            table = np.append(np.asarray(known.fill_null(-1)).astype(np.int64) + self.null, 0)
            if (table[:-1] < self.null).any():
                raise self._changed()
            index = entries.indices.fill_null(len(table) - 1)
            return table[np.asarray(index)].astype(np.uint16)
        filled = _as_numbers(values.fill_null(self.values[0]))
        codes = np.searchsorted(_as_numbers(self.values), filled, side="right") - 1 + self.null
        return self._with_nulls(codes.astype(np.uint16), values)

    def _changed(self) -> SourceError:
        return SourceError(f"column {self.column!r}: new values appeared while the source was being read")

    def _with_nulls(self, codes: NDArray[np.uint16], values: pa.Array) -> NDArray[np.uint16]:
        if values.null_count:
            codes[np.asarray(values.is_null())] = 0
        return codes

    @cached_property
    def _lookup(self) -> tuple[int, NDArray[np.int32]] | None:
        """For whole numbers that lie close together: the lowest, and the code of each from there on, -1 for none."""
        if self.kind not in ("integer", "date") or not len(self.values):
            return None
        numbers = _as_numbers(self.values).astype(np.int64)
        low, high = int(numbers.min()), int(numbers.max())
        if high - low >= LOOKUP:
            return None
        codes = np.full(high - low + 1, -1, np.int32)
        codes[numbers - low] = np.arange(len(numbers)) + self.null
        return low, codes if self.single else np.maximum.accumulate(codes)

    def _looked_up(self, values: pa.Array, low: int, table: NDArray[np.int32]) -> NDArray[np.uint16]:
        numbers = _as_numbers(values.fill_null(self.values[0]) if values.null_count else values)
        place = numbers.astype(np.int64) - low
        if len(place) and place.min() < 0:
            raise self._changed()
        if self.single and len(place) and place.max() >= len(table):
            raise self._changed()
        codes = table.take(place, mode="clip")  # above the lowest value of the last bin is in it
        if len(codes) and codes.min() < 0:
            raise self._changed()
        return self._with_nulls(codes.astype(np.uint16), values)

    def label(self, low: int, high: int) -> str | None:
        """The published label of the cell of codes low..high (inclusive)."""
        if (low, high) == (0, self.size - 1):
            return "*"
        if self.tree is not None:
            return self._node_labels[low, high]
        if self.null and low == 0:
            return None if high == 0 else f"null|{self._values_label(1, high)}"
        return self._values_label(low, high)

    @cached_property
    def _node_labels(self) -> dict[tuple[int, int], str | None]:
        """Labels of tree nodes by code range; of nodes with the same range the lowest."""
        tree = self.tree
        assert tree is not None
        order = np.argsort(-tree.level, kind="stable")
        return {(int(tree.low[i]), int(tree.high[i])): tree.label[i] for i in order}

    def _values_label(self, low: int, high: int) -> str:
        first, last = int(self.null), self.size - 1
        if low == high and self.single:
            return self._text(low)
        if self.kind in ("text", "boolean"):
            return "{" + "|".join(_escaped(self._text(code)) for code in range(low, high + 1)) + "}"
        if (low, high) == (first, last):
            return "not null"
        if high == last:
            return f">={self._text(low)}"
        end = self._end(high)
        if self.kind in WHOLE:
            return f"<={end}" if low == first else span(self._text(low), end)
        return f"<{end}" if low == first else f"[{self._text(low)},{end})"

    def _end(self, code: int) -> str:
        """Where a cell that ends with this code ends: the last whole value before the next code, or the next itself."""
        following = self._objects[code + 1 - self.null]
        return text(_before(following) if self.kind in WHOLE else following)

    def cell(self, label: str | None) -> tuple[int, int]:
        """The codes low..high (inclusive) of the cell with a published label; KeyError if there is none."""
        if self.tree is not None or self.kind in ("text", "boolean"):
            return self._cells[label]
        if label == "*":
            return 0, self.size - 1
        if label is None:
            return 0, 0
        low, high = self._range_cell(label.removeprefix("null|"))
        return (0 if label.startswith("null|") else low), high

    @cached_property
    def _cells(self) -> dict[str | None, tuple[int, int]]:
        """Every cell that can be published, by its label."""
        if self.tree is not None:
            return {label: cell for cell, label in self._node_labels.items()}
        codes = range(self.size)
        return {self.label(low, high): (low, high) for low in codes for high in codes[low:]}

    def _range_cell(self, label: str) -> tuple[int, int]:
        first, last = int(self.null), self.size - 1
        starts = {text(value): code for code, value in enumerate(self._objects, first)}
        ends = {self._end(code): code for code in range(first, last)}
        if label == "not null":
            return first, last
        if label in starts:
            return starts[label], starts[label]
        if label.startswith(">="):
            return starts[label[2:]], last
        if label.startswith("<"):
            return first, ends[label.lstrip("<=")]
        mark = next((mark for mark in (",", "..", "-") if mark in label), " ")
        low, _, high = label.strip("[)").partition(mark)
        return starts[low], ends[high]

    def _text(self, code: int) -> str:
        return text(self._objects[code - self.null])

    def to_dict(self) -> dict[str, Any]:
        """Everything about the domain as plain data, in values and never in codes."""
        return {
            "column": self.column,
            "kind": self.kind,
            "single": self.single,
            "null": self.null,
            "type": str(self.values.type),
            "values": [text(value) for value in self._objects],
            "tree": None if self.tree is None else self.tree.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Domain:
        values = _parsed(data["values"], data["type"])
        tree = None if data["tree"] is None else Tree.from_dict(data["tree"])
        return cls(data["column"], data["kind"], values, data["single"], data["null"], tree)


def _as_numbers(values: pa.Array) -> NDArray[Any]:
    """Numbers, dates and timestamps as numpy numbers in the same order."""
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    return values.to_numpy(zero_copy_only=False)


def _parsed(texts: list[str], type_name: str) -> pa.Array:
    kinds = {"int64": pa.int64(), "double": pa.float64(), "date32[day]": pa.date32(), "string": pa.string()}
    if type_name == "bool":
        return pa.array([word == "true" for word in texts], pa.bool_())
    if type_name in kinds:
        return pa.array(texts, pa.string()).cast(kinds[type_name])
    if type_name.startswith("timestamp"):
        return pa.array(texts, pa.string()).cast(pa.timestamp("us"))
    precision, scale = type_name.split("(")[1].rstrip(")").split(",")
    return pa.array(texts, pa.string()).cast(pa.decimal128(int(precision), int(scale)))


def _before(value: Any) -> Any:
    """The last whole value before this one."""
    return value - (datetime.timedelta(days=1) if isinstance(value, datetime.date) else 1)


def _escaped(word: str) -> str:
    r"""
    >>> print(_escaped("a|b"))
    a\|b
    """
    for mark in "\\|{}":
        word = word.replace(mark, "\\" + mark)
    return word


def quasi_identifier(source: Source, column: Column, builder: Builder) -> Domain:
    """The domain of a quasi-identifier: its distinct values, or bins of them when there are too many, and its tree."""
    path = f"columns.quasi_identifiers.{column.name}"
    with counted_values(source, [column]) as distinct:
        free = builder.kind == "free"
        if free and column.kind == "text" and distinct > TEXT_VALUES:
            expected = f"at most {TEXT_VALUES} values, or a hierarchy (suppress, digits, hierarchy)"
            hint = why_text(source.con, source.VIEW, column.alias)
            raise ConfigError.at(path, f"text with {distinct:,} distinct values", expected, hint)
        if distinct > CODES:
            if not free or column.kind not in CUTTABLE:
                expected = f"at most {CODES:,}, or numbers cut freely"
                raise ConfigError.at(path, f"{distinct:,} distinct values", expected)
            return _binned(source, column)
        domain = _distinct(source, column)[0]
    return domain if free else _with_tree(source, column, domain, builder)


def sensitive(source: Source, column: Column) -> tuple[Domain, Ints]:
    """The domain of a sensitive column, and how many rows have each of its values."""
    with counted_values(source, [column]) as distinct:
        if distinct > CODES:
            raise ConfigError.at(
                f"columns.sensitive.{column.name}", f"{distinct:,} values", f"at most {CODES:,}: round it"
            )
        return _distinct(source, column)


@contextmanager
def counted_values(source: Source, columns: list[Column]) -> Iterator[int]:
    """A table `counted` of the values of some columns, null included, and the rows n with each; how many there are."""
    listed = ", ".join(column.alias for column in columns)
    source.run(f"CREATE TEMP TABLE counted AS SELECT {listed}, count(*) AS n FROM {source.VIEW} GROUP BY {listed}")
    try:
        yield int(source.query("SELECT count(*) FROM counted")[0][0].as_py())
    finally:
        source.run("DROP TABLE counted")


def _distinct(source: Source, column: Column) -> tuple[Domain, Ints]:
    table = source.query(f"SELECT {column.alias} AS v, n FROM counted ORDER BY v NULLS FIRST").combine_chunks()
    values = table["v"].combine_chunks() if table.num_rows else pa.array([], table["v"].type)
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks)
    domain = Domain(column.name, column.kind, values.drop_null(), True, values.null_count > 0)
    return domain, table["n"].to_numpy().astype(np.int64)


def _binned(source: Source, column: Column) -> Domain:
    """Exact weighted quantiles: each bin begins where another share of the rows is complete."""
    name = column.alias
    has_null = bool(source.query(f"SELECT count(*) FROM counted WHERE {name} IS NULL")[0][0].as_py())
    table = source.query(
        f"WITH binned AS (SELECT {name} AS v, (sum(n) OVER (ORDER BY {name}) - n) * {CODES - 1} // sum(n) OVER () "
        f"AS bin FROM counted WHERE {name} IS NOT NULL) SELECT min(v) AS v FROM binned GROUP BY bin ORDER BY v"
    )
    values = pa.concat_arrays(table["v"].chunks)
    return Domain(column.name, column.kind, values, False, has_null)


def _with_tree(source: Source, column: Column, domain: Domain, builder: Builder) -> Domain:
    objects = domain.values.to_pylist()
    try:
        paths = hierarchy.paths(builder, objects, column.name)
    except HierarchyGap as gap:
        missing = pa.array([value for value in objects if text(value) in set(gap.missing)], domain.values.type)
        source.con.register("missing_values", pa.table({"v": missing}))
        rows = source.query(
            f"SELECT count(*) FROM {source.VIEW} WHERE {column.alias} IN (SELECT v FROM missing_values)"
        )
        first, *rest = gap.problems
        counted = replace(first, found=f"{first.found} ({rows[0][0].as_py():,} rows)")
        raise HierarchyGap([counted, *rest], gap.missing) from None
    tree, order = Tree.build(paths, [text(value) for value in objects], domain.null)
    return Domain(column.name, column.kind, domain.values.take(pa.array(order)), True, domain.null, tree)


@dataclass(frozen=True)
class Combinations:
    """The combinations of a context and a sensitive value that occur, in order of both: a record column of its own."""

    context: Ints
    value: Ints

    @property
    def size(self) -> int:
        return len(self.value)


@dataclass(frozen=True)
class Tuples:
    """The tuples of several sensitive columns that occur, as codes, in order: a record column of its own."""

    codes: Ints  # [tuples, columns]

    @property
    def size(self) -> int:
        return len(self.codes)


Other = Domain | Combinations | Tuples
Combined = tuple[type, tuple[str, ...]]  # Combinations or Tuples, of sensitive columns


@dataclass
class Cube:
    """The table as the search sees it: records of quasi-identifier codes, then of the codes of `others`, which are the
    sensitive columns, where the search asks for one the column that it should predict well, and combinations of
    sensitive columns that a criterion looks at together. Where equal rows were counted, the people of a record follow
    in two halves."""

    domains: list[Domain]
    others: list[Other]
    totals: list[Ints]  # per other the people of the table by code
    records: Records
    counted: bool = False  # equal rows are one record
    target: int | None = None  # index in others
    sensitive: int = 1  # how many of the others are sensitive columns; they come first
    combined: dict[Combined, int] = field(default_factory=dict)  # where combinations stand in others

    @property
    def individuals(self) -> int:
        return int(self.totals[0].sum())

    @property
    def people_at(self) -> int:
        """The column of the records that the people begin in; -1 if every record is one person."""
        return len(self.domains) + len(self.others) if self.counted else -1

    def value_column(self, name: str | None) -> int:
        """Where a sensitive column stands in others; any will do for a criterion that is about none."""
        return 0 if name is None else [d.column for d in self.others if isinstance(d, Domain)].index(name)

    def domain(self, name: str) -> Domain:
        """The domain of a sensitive column."""
        return next(d for d in self.others if isinstance(d, Domain) and d.column == name)

    def reading(self, criterion: Criterion) -> int:
        """Where what a criterion looks at stands in others."""
        if criterion.columns:
            return self.combined[Tuples, criterion.columns]
        if criterion.context:
            return self.combined[Combinations, (*criterion.context, str(criterion.column))]
        return self.value_column(criterion.column)

    def tuples(self, columns: tuple[str, ...]) -> Ints:
        """The tuples of some sensitive columns that occur, as codes [tuples, columns]."""
        tuples = self.others[self.combined[Tuples, columns]]
        assert isinstance(tuples, Tuples)
        return tuples.codes

    def seen_by(self, groups: Groups, column: int) -> Groups:
        """Groups of codes of one of the others as those see them who look at it."""
        other = self.others[column]
        return groups.apart(other.context, other.value) if isinstance(other, Combinations) else groups

    def whole_table(self, column: int) -> Groups:
        """The table as one group."""
        return self.seen_by(Groups.dense(self.totals[column][None, :]), column)


@dataclass(frozen=True)
class Encoder:
    """From rows of the source to records: the columns it reads, their domains, and the combinations that follow them,
    each with the places of its columns among those and its tuples of codes in order."""

    columns: list[Column]
    domains: list[Domain]
    combinations: list[tuple[list[int], Ints]] = field(default_factory=list)

    def codes(self, batch: pa.RecordBatch) -> NDArray[np.uint16]:
        """The codes of the first columns of a batch."""
        codes = np.empty((batch.num_rows, len(self.domains) + len(self.combinations)), np.uint16)
        for index, domain in enumerate(self.domains):
            codes[:, index] = domain.encode(batch.column(index))
        for index, (places, known) in enumerate(self.combinations, len(self.domains)):
            codes[:, index] = self._combined(codes[:, places], known)
        return codes

    def _combined(self, codes: NDArray[np.uint16], known: Ints) -> Ints:
        key, of = np.zeros(len(codes), np.int64), np.zeros(len(known), np.int64)
        for place in range(codes.shape[1]):  # keys stay small: after each column they are places among those known
            steps, of = np.unique(of * CODES + known[:, place], return_inverse=True)
            wanted = key * CODES + codes[:, place]
            key = np.searchsorted(steps, wanted)
            if (steps[np.minimum(key, len(steps) - 1)] != wanted).any():
                raise SourceError("new combinations of values appeared while the source was being read")
        return key


def build(
    source: Source,
    builders: list[Builder],
    target: str | None = None,
    combined: Collection[Combined] = (),
    room: Callable[[int, int], Records] = in_memory,
) -> Cube:
    """Reads the source once per column for the domains, and once for the records, for which `room` gives a place."""
    domains = [quasi_identifier(source, c, b) for c, b in zip(source.quasi_identifiers, builders)]
    read = [*source.sensitive]
    if target is not None:
        read.append(next(c for c in [*source.quasi_identifiers, *source.sensitive, *source.keep] if c.name == target))
    others, totals = [list(both) for both in zip(*(sensitive(source, column) for column in read))] or [[], []]
    if not others:
        others, totals = [Domain("", "integer", pa.array([0]), True, False)], [np.array([source.rows])]
    at = None if target is None else len(read) - 1
    cube = Cube(domains, others, totals, in_memory(0, 0), False, at, len(source.sensitive))
    known = [_combine(source, cube, *both) for both in combined]
    encoder = Encoder([*source.quasi_identifiers, *read], [*domains, *others[: len(read)]], known)
    cube.counted = _worth_counting(source, encoder.columns)
    width = len(domains) + len(cube.others) + 2 * cube.counted
    cube.records = _records(source, encoder, cube.counted, room(source.rows, width))
    return cube


def _combine(source: Source, cube: Cube, kind: type, names: tuple[str, ...]) -> tuple[list[int], Ints]:
    """Adds a combination of sensitive columns to the cube; where its columns stand in records, and its tuples."""
    columns = [next(c for c in source.sensitive if c.name == name) for name in names]
    with counted_values(source, columns) as distinct:
        if distinct > CODES:
            hint = " or say `joint: false`" if kind is Combinations else ""
            found = f"{distinct:,} combinations of sensitive values"
            raise ConfigError.at("privacy", found, f"at most {CODES:,}; coarsen them{hint}")
        table = source.query("SELECT * FROM counted").combine_chunks()
    codes = [cube.domain(c.name).encode(table[c.alias].combine_chunks()).astype(np.int64) for c in columns]
    order = np.lexsort(codes[::-1])
    known = np.stack(codes, axis=1)[order]
    cube.combined[kind, names] = len(cube.others)
    if kind is Tuples:
        cube.others.append(Tuples(known))
    else:
        context = np.unique(known[:, :-1], axis=0, return_inverse=True)[1].reshape(-1)
        cube.others.append(Combinations(context, known[:, -1]))
    cube.totals.append(table["n"].to_numpy().astype(np.int64)[order])
    return [len(cube.domains) + cube.value_column(name) for name in names], known


def _worth_counting(source: Source, columns: list[Column]) -> bool:
    """Whether equal rows, counted once, would at least halve the table: judged on the rows whose hash falls in one of
    64 parts. It only decides how fast the search is."""
    listed = ", ".join(column.alias for column in columns)
    sampled = " WHERE h % 64 = 0" if source.rows > 64_000 else ""
    hashed = f"SELECT hash({listed}) AS h FROM {source.VIEW}"
    rows, distinct = source.query(f"SELECT count(*), count(DISTINCT h) FROM ({hashed}){sampled}")
    return 2 * distinct[0].as_py() <= rows[0].as_py()


def _records(source: Source, encoder: Encoder, counted: bool, records: Records) -> Records:
    """Encodes the rows of the source; all of them must still be there."""
    at, rows, width = 0, 0, len(encoder.domains) + len(encoder.combinations)
    for batch in source.batches(encoder.columns, counted=counted):
        codes = np.zeros((batch.num_rows, records.width), np.uint16)
        codes[:, :width] = encoder.codes(batch)
        people = batch.column(batch.num_columns - 1).to_numpy() if counted else None
        if people is not None:
            codes[:, -2], codes[:, -1] = people & 0xFFFF, people >> 16
        rows += batch.num_rows if people is None else int(people.sum())
        if rows > source.rows:
            raise SourceError("rows appeared while the source was being read")
        records.write(at, codes)
        at += batch.num_rows
    if rows != source.rows:
        raise SourceError("rows disappeared while the source was being read")
    records.count = at
    return records
