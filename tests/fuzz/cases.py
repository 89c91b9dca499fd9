"""A case of the fuzz as plain data: a table of people, what the config says of it, and the same for the oracles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.oracles import criteria as oracle
from tests.oracles import partition as tree_oracle

Person = Mapping[str, Any]
TYPES = {"integer": pa.int64(), "number": pa.float64(), "text": pa.string(), "tree": pa.string()}
ID = "id"


@dataclass(frozen=True)
class Quasi:
    """A quasi-identifier: cut freely (integer, number, text), or along a hierarchy (tree), whose labels above each
    value are `above`, the last of them `*`. `builder` is what a config says of it; a hierarchy from a file says `file`.
    """

    name: str
    kind: str
    above: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    builder: Mapping[str, Any] = field(default_factory=dict)

    @property
    def height(self) -> int:
        return len(next(iter(self.above.values()))) if self.kind == "tree" else 1

    def path(self, value: Any) -> tuple[Any, ...]:
        """Return the labels of a value from level 0 to the top. Null is its own label below the top."""
        if self.kind != "tree" or value is None:
            return (*[value] * self.height, "*")
        return (value, *self.above[value])

    def in_order(self, present: set[Any]) -> list[Any]:
        """Return values in the order of their codes: null first, then by value; in a hierarchy by the first leaf in the
        file below each ancestor, from the top down."""
        values = [value for value in present if value is not None]
        first: dict[tuple[int, str], int] = {}
        for place, value in enumerate(self.above):
            for level, label in enumerate(self.path(value)):
                first.setdefault((level, label), place)

        def place_in_tree(value: str) -> list[int]:
            return [first[level, label] for level, label in reversed([*enumerate(self.path(value))])]

        ordered = sorted(values, key=place_in_tree if self.kind == "tree" else None)
        return [None] * (None in present) + ordered

    def text(self) -> str:
        """Return the content of the hierarchy file."""
        return "".join(";".join((value, *labels)) + "\n" for value, labels in self.above.items())


@dataclass(frozen=True)
class Case:
    """A table and a config. `people` have a value for each quasi-identifier and each sensitive column, or a tuple of
    values where individuals have several. `settings` vary how the engine works, which must not change what it finds.
    """

    seed: int
    family: str
    quasi: Sequence[Quasi]
    people: Sequence[Person]
    sensitive: Sequence[str]
    privacy: Sequence[Mapping[str, Mapping[str, Any]]]
    method: Mapping[str, Any]
    multiplicity: str = "single"
    release: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)  # by name, beside the config
    priors: Sequence[oracle.Prior] = ()
    paths: Mapping[str, Mapping[Any, Sequence[Any]]] = field(default_factory=dict)  # of hierarchies of values
    matrices: Mapping[str, Mapping[Any, Mapping[Any, Fraction]]] = field(default_factory=dict)
    groups: Sequence[tuple[int, ...]] = ()  # of a table that is checked
    keep: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def config(self, folder: Path) -> dict[str, Any]:
        """Return the config of the case and write its files to a folder."""
        for name, text in self.files.items():
            (folder / name).write_text(text, encoding="utf-8")
        builders: dict[str, Any] = {}
        for column in self.quasi:
            builders[column.name] = dict(column.builder)
            if "file" in column.builder:
                (folder / f"{column.name}.csv").write_text(column.text(), encoding="utf-8")
                builders[column.name] = {"hierarchy": str(folder / f"{column.name}.csv")}
        single = self.multiplicity == "single"
        return {
            "source": {"path": str(folder / "none.parquet")},
            "columns": {
                "individual": "row" if single else ID,
                "multiplicity": self.multiplicity,
                "quasi_identifiers": builders,
                "sensitive": {name: {"as_categories": True} if name == "x" else {} for name in self.sensitive},
                "keep": list(self.keep),
            },
            "nulls": {"sensitive": "value" if single else "error"},
            "privacy": [_in_folder(item, folder) for item in self.privacy],
            "method": dict(self.method),
            "release": {"path": str(folder / "out"), **self.release},
            "limits": {"threads": 1, "temp": str(folder / "spill")},
        }

    def frame(self) -> pa.Table:
        """Return the source table: a row for each individual, or for each of their values."""
        several = self.multiplicity != "single"
        rows = [
            (number, person, value)
            for number, person in enumerate(self.people)
            for value in (person[self.sensitive[0]] if several else [None])
        ]
        columns = {q.name: pa.array([p[q.name] for _, p, _ in rows], TYPES[q.kind]) for q in self.quasi}
        if several:
            columns |= {ID: pa.array([n for n, _, _ in rows]), self.sensitive[0]: pa.array([v for *_, v in rows])}
        else:
            columns |= {name: sensitive_array(name, [p[name] for _, p, _ in rows]) for name in self.sensitive}
        return pa.table(columns)

    def table(self) -> oracle.Table:
        """Return the table for the oracles of the criteria."""
        return oracle.Table(self.people, self.sensitive, self.multiplicity, self.paths, self.matrices, self.priors)

    def criteria(self) -> list[oracle.Criterion]:
        table = self.table()
        return [oracle.criterion(item, table) for item in self.privacy]

    def codes(self) -> list[tuple[int, ...]]:
        """Return the quasi-identifier codes of each person."""
        columns = [column.in_order({person[column.name] for person in self.people}) for column in self.quasi]
        return [tuple(o.index(p[q.name]) for q, o in zip(self.quasi, columns)) for p in self.people]

    def columns(self) -> list[tree_oracle.Column]:
        """Return the quasi-identifiers for the oracle of the partition search."""
        return [_column(q, q.in_order({person[q.name] for person in self.people})) for q in self.quasi]


def sensitive_array(name: str, values: list[Any]) -> pa.Array:
    return pa.array(values, pa.string() if name == "d" else pa.int64())


def _in_folder(item: Mapping[str, Mapping[str, Any]], folder: Path) -> dict[str, Any]:
    """Return an entry of `privacy` with its files in a folder."""

    def placed(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: str(folder / each) if key == "file" else placed(each) for key, each in value.items()}
        return [placed(each) for each in value] if isinstance(value, list) else value

    found: dict[str, Any] = placed(item)
    return found


def _column(column: Quasi, values: list[Any]) -> tree_oracle.Column:
    if column.kind == "tree":
        return tree_oracle.Hierarchy(_nested(column, values))
    if column.kind == "text":
        return tree_oracle.Free(range(len(values)))
    known = [value for value in values if value is not None]
    return tree_oracle.Free([*known[:1], *known] if None in values else known)  # null lies at the lowest value


def _nested(column: Quasi, values: list[Any]) -> tree_oracle.Tree:
    """Return the hierarchy over the codes of values; null is a child of the root."""

    def under(codes: list[int], level: int) -> tree_oracle.Tree:
        if level < 0:
            return codes[0]
        parts = defaultdict(list)
        for code in codes:
            parts[column.path(values[code])[level]].append(code)
        return tuple(under(part, level - 1) for part in parts.values())

    null = (0,) if values[0] is None else ()
    known = list(range(len(null), len(values)))
    return (*null, *(under(known, column.height - 1) if known else ()))  # type: ignore[misc]
