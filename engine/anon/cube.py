"""From the source's rows to records of small integers. Every quasi-identifier becomes an ordered code: numbers, dates
and text in the order of their values, categories in the order of their hierarchy's leaves, so that every cell that
can be published is one contiguous range of codes. `Domain` knows value, code and label of one column in both
directions."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
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
from anon.source import Column, Source, count_distinct, why_text
from anon.values import span, text

CODES = 65_536  # a code is an unsigned 16-bit integer
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
        if self.single:
            entries = values.dictionary_encode()
            known = pc.index_in(entries.dictionary, value_set=self.values)
            table = np.append(np.asarray(known.fill_null(-1)).astype(np.int64) + self.null, 0)
            if (table[:-1] < self.null).any():
                raise SourceError(f"column {self.column!r}: new values appeared while the source was being read")
            index = entries.indices.fill_null(len(table) - 1)
            return table[np.asarray(index)].astype(np.uint16)
        filled = _as_numbers(values.fill_null(self.values[0]))
        codes = np.searchsorted(_as_numbers(self.values), filled, side="right") - 1 + self.null
        if values.null_count:
            codes[np.asarray(values.is_null())] = 0
        return codes.astype(np.uint16)

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
    distinct = source.query(f"SELECT count(DISTINCT {column.alias}) FROM {source.VIEW}")[0][0].as_py()
    free = builder.kind == "free"
    if free and column.kind == "text" and distinct > TEXT_VALUES:
        expected = f"at most {TEXT_VALUES} values, or a hierarchy (suppress, digits, hierarchy)"
        hint = why_text(source.con, source.VIEW, column.alias)
        raise ConfigError.at(path, f"text with {distinct:,} distinct values", expected, hint)
    if distinct >= CODES:
        if not free or column.kind not in CUTTABLE:
            raise ConfigError.at(path, f"{distinct:,} distinct values", f"fewer than {CODES:,}, or numbers cut freely")
        return _binned(source, column)
    domain = _distinct(source, column)
    return domain if free else _with_tree(source, column, domain, builder)


def sensitive(source: Source, column: Column) -> Domain:
    """The domain of a sensitive column."""
    distinct = count_distinct(source.con, source.VIEW, column.alias)
    if distinct >= CODES:
        raise ConfigError.at(
            f"columns.sensitive.{column.name}", f"{distinct:,} values", f"fewer than {CODES:,}: round it"
        )
    return _distinct(source, column)


def _distinct(source: Source, column: Column) -> Domain:
    values = source.query(f"SELECT DISTINCT {column.alias} AS v FROM {source.VIEW} ORDER BY v NULLS FIRST")["v"]
    values = values.combine_chunks()
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    return Domain(column.name, column.kind, values.drop_null(), True, values.null_count > 0)


def _binned(source: Source, column: Column) -> Domain:
    """Exact weighted quantiles: each bin begins where another share of the rows is complete."""
    name, view = column.alias, source.VIEW
    has_null = bool(source.query(f"SELECT count_if({name} IS NULL) FROM {view}")[0][0].as_py())
    table = source.query(
        f"WITH counted AS (SELECT {name} AS v, count(*) AS n FROM {view} WHERE {name} IS NOT NULL GROUP BY {name}), "
        f"binned AS (SELECT v, (sum(n) OVER (ORDER BY v) - n) * {CODES - 1} // sum(n) OVER () AS bin FROM counted) "
        f"SELECT min(v) AS v FROM binned GROUP BY bin ORDER BY v"
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


@dataclass
class Records:
    """Rows as codes: the quasi-identifiers, then the sensitive columns; `people` counts equal rows."""

    codes: NDArray[np.uint16]  # [records, columns]
    people: NDArray[np.uint32]  # [records]

    def __len__(self) -> int:
        return len(self.people)


@dataclass(frozen=True)
class Combinations:
    """The combinations of a context and a sensitive value that occur, in order of both: a record column of its own."""

    context: Ints
    value: Ints

    @property
    def size(self) -> int:
        return len(self.value)

    def groups(self, counts: Ints) -> Groups:
        return Groups.apart(counts, self.context, self.value)


@dataclass(frozen=True)
class Tuples:
    """The tuples of several sensitive columns that occur, as codes, in order: a record column of its own."""

    codes: Ints  # [tuples, columns]

    @property
    def size(self) -> int:
        return len(self.codes)


@dataclass
class Cube:
    """The table as the search sees it: records of quasi-identifier codes, then of the codes of `others`, which are the
    sensitive columns, where the search asks for one the column that it should predict well, and combinations of
    sensitive columns that a criterion looks at together."""

    domains: list[Domain]
    others: list[Domain | Combinations | Tuples]
    records: Records
    target: int | None = None  # index in others
    _combined: dict[tuple[type, tuple[int, ...]], int] = field(default_factory=dict)

    @property
    def individuals(self) -> int:
        return int(self.records.people.sum(dtype=np.int64))

    def value_column(self, name: str | None) -> int:
        """Where a sensitive column stands in others; any will do for a criterion that is about none."""
        return 0 if name is None else [d.column for d in self.others if isinstance(d, Domain)].index(name)

    def domain(self, name: str) -> Domain:
        """The domain of a sensitive column."""
        return next(d for d in self.others if isinstance(d, Domain) and d.column == name)

    def reading(self, criterion: Criterion) -> int:
        """Where what a criterion looks at stands in others; a combination is added when it is asked for first."""
        if criterion.columns:
            return self._combination(Tuples, criterion.columns)
        if criterion.context:
            return self._combination(Combinations, (*criterion.context, str(criterion.column)))
        return self.value_column(criterion.column)

    def tuples(self, columns: tuple[str, ...]) -> Ints:
        """The tuples of some sensitive columns that occur, as codes [tuples, columns]."""
        tuples = self.others[self._combination(Tuples, columns)]
        assert isinstance(tuples, Tuples)
        return tuples.codes

    def _combination(self, kind: type[Combinations | Tuples], columns: tuple[str, ...]) -> int:
        key = (kind, tuple(self.value_column(name) for name in columns))
        if key not in self._combined:
            self._combined[key] = self._combine(*key)
        return self._combined[key]

    def _combine(self, kind: type[Combinations | Tuples], columns: tuple[int, ...]) -> int:
        own = self.records.codes[:, len(self.domains) + np.array(columns)]
        combined = np.zeros(len(self.records), np.int64)
        for place, index in enumerate(columns):
            key = combined * self.others[index].size + own[:, place]
            kept, record, combined = np.unique(key, return_index=True, return_inverse=True)
        if len(kept) >= CODES:
            found = f"{len(kept):,} combinations of sensitive values"
            hint = " or say `joint: false`" if kind is Combinations else ""
            raise ConfigError.at("privacy", found, f"fewer than {CODES:,}; coarsen them{hint}")
        if kind is Tuples:
            self.others.append(Tuples(own[record].astype(np.int64)))
        else:
            self.others.append(Combinations(*np.divmod(kept, self.others[columns[-1]].size)))
        codes = np.hstack([self.records.codes, combined.astype(np.uint16)[:, None]])
        self.records = Records(codes, self.records.people)
        return len(self.others) - 1

    def groups(self, counts: Ints, column: int) -> Groups:
        """Counts [groups, codes] of one of the others as histograms."""
        other = self.others[column]
        return other.groups(counts) if isinstance(other, Combinations) else Groups.dense(counts)

    def whole_table(self, column: int) -> Groups:
        """The table as one group."""
        codes = self.records.codes[:, len(self.domains) + column]
        counts = np.bincount(codes, weights=self.records.people, minlength=self.others[column].size)
        return self.groups(counts.astype(np.int64)[None, :], column)


def encoded(
    source: Source, columns: list[Column], domains: list[Domain]
) -> Iterator[tuple[pa.RecordBatch, NDArray[np.uint16]]]:
    """The rows of the source in batches, each with the codes of the first columns, one per domain."""
    for batch in source.batches(columns):
        codes = np.empty((batch.num_rows, len(domains)), np.uint16)
        for index, domain in enumerate(domains):
            codes[:, index] = domain.encode(batch.column(index))
        yield batch, codes


def build(source: Source, builders: list[Builder], target: str | None = None) -> Cube:
    """Reads the source once per column for the domains, and once for the records."""
    domains = [quasi_identifier(source, c, b) for c, b in zip(source.quasi_identifiers, builders)]
    others = [sensitive(source, column) for column in source.sensitive]
    columns = [*source.quasi_identifiers, *source.sensitive]
    if target is not None:
        column = next(c for c in [*columns, *source.keep] if c.name == target)
        columns.append(column)
        others.append(sensitive(source, column))
    codes = _codes(source, columns, [*domains, *others])
    if not others:
        others = [Domain("", "integer", pa.array([0]), True, False)]
        codes = np.hstack([codes, np.zeros((len(codes), 1), np.uint16)])
    return Cube(domains, list(others), _collapsed(source, codes), None if target is None else len(others) - 1)


def _codes(source: Source, columns: list[Column], domains: list[Domain]) -> NDArray[np.uint16]:
    codes = np.empty((source.rows, len(columns)), np.uint16)
    at = 0
    for _, part in encoded(source, columns, domains):
        if at + len(part) > len(codes):
            raise SourceError("rows appeared while the source was being read")
        codes[at : at + len(part)] = part
        at += len(part)
    if at != len(codes):
        raise SourceError("rows disappeared while the source was being read")
    return codes


def _collapsed(source: Source, codes: NDArray[np.uint16]) -> Records:
    """Equal rows become one record where that at least halves the table, judged on a sample of the keys."""
    if _distinct_share(codes) > 0.5:
        return Records(codes, np.ones(len(codes), np.uint32))
    names = [f"c{index}" for index in range(codes.shape[1])]
    source.con.register("record_codes", pa.table({name: codes[:, i].copy() for i, name in enumerate(names)}))
    listed = ", ".join(names)
    table = source.query(f"SELECT {listed}, count(*)::UINTEGER AS people FROM record_codes GROUP BY {listed}")
    source.con.unregister("record_codes")
    collapsed = np.empty((table.num_rows, len(names)), np.uint16)
    for index, name in enumerate(names):
        collapsed[:, index] = table[name].to_numpy()
    return Records(collapsed, table["people"].to_numpy().astype(np.uint32))


def _distinct_share(codes: NDArray[np.uint16]) -> float:
    """Distinct rows over rows, among the rows whose hash falls in one of 64 parts: the same for any order of rows."""
    key = np.zeros(len(codes), np.uint64)
    for index in range(codes.shape[1]):
        key = (key ^ codes[:, index]) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    sample = key[key >> np.uint64(58) == 0] if len(key) > 64_000 else key
    return len(np.unique(sample)) / len(sample) if len(sample) else 1.0
