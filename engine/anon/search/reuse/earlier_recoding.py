"""Read the recoding of an earlier run (`recoding.json`), and widen the domains of new rows so that they contain every
category that it names, and a code for every cell between its cuts: a cell that is now empty is a code without rows.
Numbers outside fall into the cells at the open ends; categories under no node of the recoding are refused with their
count."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anon import hierarchy
from anon.artifacts.reading import read_manifest, read_recoding
from anon.artifacts.recoding import AssignmentRecoding, LatticeRecoding, RecodedColumn, TreeRecoding
from anon.artifacts.schema import Manifest, ReusedRun
from anon.config import Builder
from anon.core.text import CUTTABLE, text
from anon.cube import Domain
from anon.cube.domain import CODES, EarlierCuts
from anon.cube.ranges import as_numbers, parsed
from anon.cube.value_counts import ValueCounts
from anon.errors import ConfigError, Problem
from anon.hierarchy import HierarchyGap
from anon.recoding.tree import recoded_column
from anon.source import Column

FIELD = "method.run"
EXPECTED = "the run folder of an earlier run with method partition, lattice or reuse"
NEW = "make a new recoding: run once with method partition or lattice"


@dataclass(frozen=True)
class EarlierRecoding:
    """The recoding of an earlier run as it was written."""

    written: bytes
    file: TreeRecoding | LatticeRecoding
    manifest: Manifest

    @classmethod
    def from_run(cls, folder: Path) -> EarlierRecoding:
        """Return the recoding of a run folder; raise ConfigError if there is none that can be reused."""
        manifest = read_manifest(folder, FIELD, EXPECTED)
        file, written = read_recoding(folder, FIELD, EXPECTED)
        if isinstance(file, AssignmentRecoding):
            raise ConfigError.at(FIELD, "a recoding that cannot be reused", EXPECTED)
        if isinstance(file, LatticeRecoding) and file.one_level:
            raise ConfigError.at(FIELD, "a recoding with release.one_level", f"{EXPECTED}, without one_level")
        if manifest.trial:
            raise ConfigError.at(FIELD, "the recoding of a trial, which saw a sample only", EXPECTED)
        return cls(written, file, manifest)

    @property
    def method(self) -> str:
        return self.file.method

    @property
    def provenance(self) -> ReusedRun:
        """Return what the manifest of the run that reuses the recoding says about it."""
        return ReusedRun(run=self.manifest.run, recoding_sha256=hashlib.sha256(self.written).hexdigest())

    @cached_property
    def columns(self) -> dict[str, RecodedColumn]:
        return {column.name: column for column in self.file.columns}

    @property
    def nodes(self) -> list[dict[str, Any]]:
        """Return the nodes of a tree of cuts; none of a lattice."""
        return self.file.nodes if isinstance(self.file, TreeRecoding) else []

    @property
    def suppresses(self) -> bool:
        """Return whether the recoding suppresses rows."""
        return bool(self.suppressed_cells) or any("suppressed" in node for node in self.nodes)

    @property
    def suppressed_cells(self) -> list[list[str | None]]:
        """Return the labels of the cells that a lattice suppressed; none of a tree of cuts."""
        return self.file.suppressed_cells if isinstance(self.file, LatticeRecoding) else []

    @cached_property
    def cuts(self) -> dict[str, list[str]]:
        """Return the bounds, or categories, at which columns without a hierarchy are cut, except for cuts that only
        separate null from the others."""
        nodes = self.nodes
        found: dict[str, dict[str, None]] = {name: {} for name in self.columns}
        for node in nodes:
            if node.get("cut") is not None and nodes[node["children"][0]]["label"] is not None:
                found[node["column"]][node["cut"]] = None
        return {name: list(values) for name, values in found.items()}

    @cached_property
    def _labels(self) -> dict[str, set[str]]:
        """Return the labels of the cells into which columns without a hierarchy are cut, without those of null."""
        nodes = self.nodes
        found: dict[str, set[str]] = {name: set() for name in self.columns}
        for node in nodes:
            if "cut" in node:
                labels = (nodes[child]["label"] for child in node["children"])
                found[node["column"]].update(label.removeprefix("null|") for label in labels if label is not None)
        return found

    def labels(self, column: str) -> set[str | None]:
        """Return the labels of a column's hierarchy at all levels."""
        return {label for row in self.columns[column].hierarchy for label in row}

    @property
    def given(self) -> bool:
        """Return whether its levels were those of a config, and no search chose them."""
        return isinstance(self.file, LatticeRecoding) and self.file.choose == "given"

    @property
    def levels(self) -> dict[str, int]:
        """Return the level that the lattice method chose for each column; raise ConfigError after another method."""
        if not isinstance(self.file, LatticeRecoding):
            raise ConfigError.at(FIELD, "a recoding by cuts", "the run folder of a run with method lattice")
        return self.file.chosen.levels

    def level(self, column: str) -> int:
        """Return the level that the lattice method chose for a column."""
        return self.levels[column]

    def check_columns(self, columns: Sequence[Column]) -> None:
        """Raise ConfigError unless the quasi-identifiers of the config are those of the recoding, of the same kinds and
        in the same order."""
        problems = []
        if [column.name for column in columns] != list(self.columns):
            names, order = [column.name for column in columns], ", ".join(self.columns)
            found, expected = f"the quasi-identifiers {', '.join(names)}", f"those of {FIELD}: {order}"
            if sorted(names) == sorted(self.columns):
                found, expected = f"another order: {', '.join(names)}", f"the order of {FIELD}: {order}"
            problems.append(Problem("columns.quasi_identifiers", found, expected))
        else:
            for column in columns:
                if column.kind != (kind := self.columns[column.name].kind):
                    path = f"columns.quasi_identifiers.{column.name}"
                    problems.append(Problem(path, f"values of kind {column.kind}", f"{kind}, as in {FIELD}", NEW))
        if problems:
            raise ConfigError(problems)

    def check_hierarchies(self, domains: list[Domain]) -> None:
        """Raise ConfigError unless the hierarchies give the values of the recoding the same labels as in that run."""
        problems = []
        for domain in domains:
            then = {row[0]: row[1:] for row in self.columns[domain.column].hierarchy}
            now = {row[0]: row[1:] for row in recoded_column(domain).hierarchy}
            differ = sum(now.get(value) != labels for value, labels in then.items()) if now or then else 0
            if differ or bool(then) != bool(now):
                path = f"columns.quasi_identifiers.{domain.column}"
                found = f"another hierarchy than that of {FIELD} for {differ:,} values"
                problems.append(Problem(path, found, "the same labels for the same values", NEW))
        if problems:
            raise ConfigError(problems)

    def widened(self, column: Column, builder: Builder, counted: ValueCounts) -> ValueCounts:
        """Return the values of a column together with those that the recoding names."""
        then = self.columns[column.name]
        if then.hierarchy or column.kind not in CUTTABLE:
            known = [row[0] for row in then.hierarchy if row[0] is not None] if then.hierarchy else then.values
            self._refuse_new(column, builder, counted, known)
            return _joined(counted, _parsed(known, counted, column), then.nulls)
        bounds = _ordered(_parsed(self.cuts[column.name], counted, column))
        cuts = EarlierCuts(bounds, frozenset(self._labels[column.name])) if len(bounds) else None
        if counted.bins is None and not then.binned:
            own = counted.values.drop_null()
            joined = _joined(counted, pa.concat_arrays([_below(own, bounds), _empty(own, bounds)]), then.nulls)
            if joined.distinct <= CODES:
                return replace(joined, cuts=cuts)
        return _binned(counted, cuts, then.nulls)

    def _refuse_new(self, column: Column, builder: Builder, counted: ValueCounts, known: list[str]) -> None:
        """Raise ConfigError if there are categories under no node of the recoding, which it does not cover."""
        in_order = self._in_order(column.name)
        if (column.kind in CUTTABLE and not in_order) or counted.bins is not None:
            return
        objects, expected = counted.values.to_pylist(), set(known)
        new = [i for i, value in enumerate(objects) if value is not None and text(value) not in expected]
        covered = self._covered(column.name, builder, [objects[i] for i in new])
        outside = [i for i, is_covered in zip(new, covered) if not is_covered]
        if outside:
            rows = int(counted.rows[outside].sum())
            place = "not in the order of" if in_order else "under no node of"
            found = f"{len(outside):,} new values ({rows:,} rows) that are {place} {FIELD}"
            raise ConfigError.at(f"columns.quasi_identifiers.{column.name}", found, "values under its nodes", NEW)

    def _in_order(self, column: str) -> bool:
        """Return whether a column is cut in the order of its hierarchy's leaves, in which new values have no place."""
        return self.columns[column].cuts == "ordered"

    def _covered(self, column: str, builder: Builder, values: list[Any]) -> list[bool]:
        """Return which new values lie under a node of the recoding other than the root, or all if the whole column is
        published as the root."""
        then = self.columns[column]
        rows = then.hierarchy
        if self._in_order(column):
            return [False] * len(values)
        if self.method == "lattice" and self.level(column) == then.height:
            return [True] * len(values)
        if not rows or not values:
            return [not rows and self.method == "partition" and not self.cuts[column]] * len(values)
        try:
            paths = hierarchy.paths(builder, values, column)
        except HierarchyGap:
            return [True] * len(values)  # the cube refuses them, with the values that are missing
        if self.method == "lattice":
            level = self.level(column)
            nodes = {row[level] for row in rows}
            return [0 < level <= len(path) and path[level - 1] in nodes for path in paths]
        labels = {label for row in rows for label in row[1:-1]}
        return [any(label in labels for label in path[:-1]) for path in paths]


def unfit() -> ConfigError:
    """Return the error for a recoding whose parts contradict each other."""
    return ConfigError.at(FIELD, "a recoding.json whose nodes contradict each other", EXPECTED)


def _parsed(words: list[str], counted: ValueCounts, column: Column) -> pa.Array:
    kind = counted.values.type if counted.bins is None else counted.bins.type
    try:
        return parsed(words, str(kind))
    except (pa.ArrowException, ValueError, IndexError):
        path = f"columns.quasi_identifiers.{column.name}"
        raise ConfigError.at(path, f"values of type {kind}", f"the type that {FIELD} was made for", NEW) from None


def _ordered(values: pa.Array) -> pa.Array:
    return values.take(pc.sort_indices(values))


def _joined(counted: ValueCounts, more: pa.Array, nulls: bool) -> ValueCounts:
    """Return all values once, in order, null first."""
    own = counted.values.drop_null()
    values = _ordered(pc.unique(pa.concat_arrays([own, more.cast(own.type)])))
    if nulls or counted.values.null_count:
        values = pa.concat_arrays([pa.nulls(1, own.type), values])
    return ValueCounts(len(values), values, np.zeros(len(values), np.int64))


def _binned(counted: ValueCounts, cuts: EarlierCuts | None, nulls: bool) -> ValueCounts:
    """Return bins that begin at the cuts, and one below them."""
    own = counted.values.drop_null() if counted.bins is None else counted.bins
    bounds = own[:0] if cuts is None else cuts.bounds
    bins = pa.concat_arrays([_below(own, bounds) if _all_above(own, bounds) else own[:1], bounds])
    first = pa.nulls(int(nulls or counted.values.null_count > 0), bins.type)
    return ValueCounts(counted.distinct, first, np.empty(0, np.int64), bins, cuts=cuts)


def _all_above(values: pa.Array, cuts: pa.Array) -> bool:
    """Return whether there are cuts, and no value below the lowest."""
    return len(cuts) > 0 and (not len(values) or values[0].as_py() >= cuts[0].as_py())


def _empty(values: pa.Array, cuts: pa.Array) -> pa.Array:
    """Return the cuts that begin a cell without values: an empty cell is still a cell."""
    begins = np.searchsorted(as_numbers(values), as_numbers(cuts))
    return cuts.filter(pa.array(np.diff(begins, append=len(values)) == 0))


def _below(values: pa.Array, cuts: pa.Array) -> pa.Array:
    """Return a value below the lowest cut if no value lies there: the empty cell there is still a cell."""
    if not _all_above(values, cuts):
        return values[:0]
    if pa.types.is_floating(cuts.type):
        return pa.array([np.nextafter(cuts[0].as_py(), -np.inf)], cuts.type)
    whole = cuts[:1].cast(pa.int32() if pa.types.is_date32(cuts.type) else pa.int64())
    return pc.subtract(whole, pa.scalar(1, whole.type)).cast(cuts.type)
