"""The recoding that a search returns: a pure function from quasi-identifier values to a group and its labels. In memory
it works on codes; in its file (`recoding.json`) it consists of values, cut points and hierarchy nodes, so that it can
be read, kept and applied without the cube it came from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anon.artifacts.recoding import FORMAT, WITH_REST, WITH_SUPPRESSED, Reach, RecodedColumn, TreeHead
from anon.core.arrays import Codes, Flags, Floats, Ints
from anon.core.text import CUTTABLE
from anon.cube import Domain
from anon.errors import ConfigError, Problem

NODES = 16_384  # that are written at a time, and labels of a column that are remembered meanwhile
LABELS = 16_384  # that are made at a time
BOUND = 160  # bytes of a bound between two codes as objects, about


@dataclass(frozen=True)
class ColumnLabels:
    """The labels of one column over all groups: each distinct one once, in canonical order, and the index of each
    group's label. There may be millions of groups, so the indexes have the narrowest type possible."""

    labels: pa.Array  # of texts
    of_group: NDArray[Any]
    cells: Ints  # [labels, 2] the lowest and the highest code under each

    @property
    def nbytes(self) -> int:
        """Return the bytes of memory that the labels take."""
        return self.of_group.nbytes + self.cells.nbytes + int(self.labels.nbytes)

    @property
    def low(self) -> Codes:
        """Return the lowest code in the cell of each group."""
        lowest: Codes = self.cells[:, 0].astype(np.uint16)[self.of_group]
        return lowest

    @property
    def high(self) -> Codes:
        """Return the highest code in the cell of each group."""
        highest: Codes = self.cells[:, 1].astype(np.uint16)[self.of_group]
        return highest

    @property
    def single(self) -> Flags:
        """Return whether the cell of each group holds one code."""
        single: Flags = np.asarray(self.cells[:, 0] == self.cells[:, 1])[self.of_group]
        return single

    def for_groups(self, groups: NDArray[Any]) -> ColumnLabels:
        """Return the labels of some groups."""
        return replace(self, of_group=self.of_group[groups])


class LabelledGroups:
    """Groups with a label per column, as cuts make them."""

    domains: list[Domain]
    labels: list[ColumnLabels]  # the published labels, per column
    people: Ints  # individuals per group
    suppressed: int = 0  # individuals without a group

    @property
    def groups(self) -> int:
        return len(self.people)

    def span(self, column: int) -> tuple[Floats, float]:
        """Return the span of the cell of each group on a column's scale, and the span of the column."""
        domain, labels = self.domains[column], self.labels[column]
        start, end = domain.position, domain.end_position
        return (end[labels.cells[:, 1]] - start[labels.cells[:, 0]])[labels.of_group], float(end[-1] - start[0])

    @property
    def height(self) -> None:
        """Return None: there are no steps of generalization, because groups are at several levels."""
        return None

    def levels_of(self, column: int) -> list[int]:
        """Return the levels of a column's hierarchy at which groups are published."""
        tree = self.domains[column].tree
        assert tree is not None
        order = np.argsort(tree.level, kind="stable")  # the highest of nodes over the same values that may be published
        order = order[: len(order) - self.domains[column].capped]
        level = {(int(tree.low[i]), int(tree.high[i])): int(tree.level[i]) for i in order}
        found: set[int] = set()
        for low, high in self.labels[column].cells.tolist():
            several = {int(tree.level[node]) for node in self.domains[column].nodes(low, high)}
            found |= {level[low, high]} if (low, high) in level else several
        return sorted(found)


@dataclass(frozen=True)
class Recoding(LabelledGroups):
    """A tree of cuts. Node i splits at cut[cut_start[i]:cut_start[i + 1]] of a column into the nodes from child[i] on;
    a leaf has column -1 and in child the number of its group in canonical order, or the number of all groups if its
    rows are suppressed. The last child of a node that is
    peeled has all codes between the ends of the others, which the cuts then are."""

    domains: list[Domain]
    column: NDArray[np.int8]
    cut_start: NDArray[np.uint32]
    cut: Codes
    child: NDArray[np.uint32]
    peeled: Flags
    own_low: Codes  # the cell of each node in the column that its parent is split by
    own_high: Codes
    labels: list[ColumnLabels]  # the published labels, per column
    people: Ints  # individuals per group
    reach: Reach = field(default="cells", kw_only=True)  # of labels of columns that are cut freely
    suppressed: int = field(default=0, kw_only=True)  # individuals without a group

    reused: ClassVar[bool] = False  # whether the cuts are those of an earlier run

    def assign(self, codes: Codes) -> NDArray[np.uint32]:
        """Return the group of each row of codes [columns, rows]; the number of groups for a suppressed row."""
        from anon.recoding import kernels

        group = np.zeros(codes.shape[1], np.uint32)
        kernels.walk(codes, self.column, self.cut_start, self.cut, self.child, self.peeled, group)
        return group

    @property
    def children(self) -> Ints:
        """Return the number of children of each node, at least 1 also for a leaf."""
        starts: Ints = self.cut_start.astype(np.int64)
        return children_of(starts[1:] - starts[:-1], self.peeled)

    @property
    def is_group(self) -> Flags:
        """Return which nodes are groups; other leaves are suppressed."""
        found: Flags = (self.column < 0) & (self.child < self.groups)
        return found

    @property
    def people_of_leaves(self) -> Ints:
        """Return the individuals of the group of each node, 0 where the node is no group."""
        found, group = np.zeros(len(self.column), np.int64), self.is_group
        found[group] = self.people[self.child[group]]
        return found

    @property
    def nbytes(self) -> int:
        """Return the bytes of memory that it takes, with the bounds that its domains cache."""
        bounds = BOUND * sum(domain.size for domain in self.domains if domain.tree is None)
        own = (
            self.column, self.cut_start, self.cut, self.child, self.peeled, self.own_low, self.own_high, self.people,
        )  # fmt: skip
        return bounds + sum(array.nbytes for array in own) + sum(labels.nbytes for labels in self.labels)

    def write(self, path: Path) -> None:
        """Write recoding.json, one node per line."""
        columns = [recoded_column(domain) for domain in self.domains]
        labels: dict[str, Any] = {} if self.reach == "cells" else {"labels": self.reach}
        form = WITH_SUPPRESSED if self.suppressed else WITH_REST if self.peeled.any() else FORMAT
        facts: dict[str, Any] = {"suppressed": self.suppressed} if self.suppressed else {}
        head = TreeHead(format=form, method="partition", groups=self.groups, **facts, columns=columns, **labels)
        with path.open("w", encoding="utf-8") as file:
            file.write(_json(head.to_dict())[:-1] + ', "nodes": [\n')
            for number, line in enumerate(self._nodes()):
                file.write(line if number == 0 else f",\n{line}")
            file.write("\n]}\n")

    def _nodes(self) -> Iterator[str]:
        """Yield the nodes in the order of their numbers. Each but the root has the label of its cell in its parent's
        column; a group also has those of its hierarchy columns, which are narrowed to the node that covers it, and if
        labels are narrower than from cut to cut those of all columns."""
        split = np.flatnonzero(self.column >= 0)
        above = np.full(len(self.column), -1, np.int8)  # the column that the parent of each node is split by
        above[1:] = np.repeat(self.column[split], self.children[split])
        label: list[Callable[[int, int], str]] = [
            lru_cache(NODES)(lambda low, high, d=domain: _json(d.label(low, high))) for domain in self.domains
        ]
        for first in range(0, len(above), NODES):
            yield from self._some_nodes(first, above[first : first + NODES], label)

    def _some_nodes(self, first: int, above: NDArray[np.int8], label: list[Callable[[int, int], str]]) -> Iterator[str]:
        last = first + len(above)
        names = [_json(domain.column) for domain in self.domains]
        is_group = self.is_group[first:last]
        group = np.where(is_group, self.child[first:last], 0)
        people, narrowed = self.people[group].tolist(), self._narrowed(group, label, names)
        starts, columns = self.cut_start[first : last + 1].astype(np.int64), self.column[first:last].tolist()
        children = children_of(np.diff(starts), self.peeled[first:last]).tolist()
        cut = [*self.cut[starts[0] : starts[-1]].tolist(), 0]
        own = (above, self.own_low[first:last], self.own_high[first:last], self.child[first:last], starts - starts[0])
        for i, (over, low, high, child, at) in enumerate(zip(*(array.tolist() for array in own))):
            start = f'"label": {label[over](low, high)}, ' if first + i else ""
            j = columns[i]
            if j < 0 and not is_group[i]:
                yield f'{{{start}"suppressed": true}}'
                continue
            if j < 0:
                yield f'{{{start}"group": {child}, "people": {people[i]}, "labels": {{{narrowed[i]}}}}}'
                continue
            where = f'"cut": {_json(self.domains[j].cut(cut[at]))}, ' if not self.domains[j].by_nodes else ""
            rest = ', "rest": true' if self.peeled[first + i] else ""
            yield f'{{{start}"column": {names[j]}, {where}"children": {list(range(child, child + children[i]))}{rest}}}'

    def _narrowed(self, group: NDArray[Any], label: list[Callable[[int, int], str]], names: list[str]) -> list[str]:
        """Return the labels of some groups in the columns where these are narrowed, as text of JSON objects."""
        columns = []
        for j, domain in enumerate(self.domains):
            if domain.tree is not None or self.reach != "cells":
                own = self.labels[j].for_groups(group)
                columns.append([f"{names[j]}: {label[j](*cell)}" for cell in zip(own.low.tolist(), own.high.tolist())])
        return [", ".join(parts) for parts in zip(*columns)] if columns else [""] * len(group)


def children_of(cuts: Ints, peeled: Flags) -> Ints:
    """Return the number of children of nodes with these numbers of cuts.

    >>> children_of(np.array([1, 2, 3, 4]), np.array([False, True, True, True])).tolist()
    [2, 2, 3, 3]
    """
    return np.where(peeled, (cuts + 1) // 2, cuts) + 1


def _json(value: Any) -> str:
    return encode_basestring(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def recoded_column(domain: Domain) -> RecodedColumn:
    """Return a column as a recoding requires it to be applied to other rows: whether null is among its values, whether
    codes are bins of them, and its hierarchy; for categories without one the values."""
    facts: dict[str, Any] = {"name": domain.column, "kind": domain.kind, "nulls": domain.null}
    if domain.kind in CUTTABLE and domain.tree is None:
        facts["binned"] = not domain.single
    elif domain.tree is None:
        facts["values"] = [word for word in domain.texts if word is not None]
    if domain.tree is not None:
        above = domain.tree.labels[domain.tree.node_at[1:]].T.tolist()
        facts |= {"cuts": "ordered"} if domain.ordered else {}
        facts["hierarchy"] = [[value, *labels] for value, labels in zip(domain.texts, above)]
    return RecodedColumn.model_validate(facts)


def column_labels(domain: Domain, low: Codes, high: Codes) -> ColumnLabels:
    """Return the labels of a column, given the lowest and the highest code in the cell of each group."""
    both = (low.astype(np.uint32) << 16) | high
    cells = np.unique(both)
    pairs = np.stack([cells >> 16, cells & 0xFFFF], axis=1).astype(np.int64)
    pieces = [pa.array([], pa.string())]
    for first in range(0, len(pairs), LABELS):
        some = pairs[first : first + LABELS].tolist()
        pieces.append(pa.array([domain.label(a, b) for a, b in some], pa.string()))
    return in_order(domain, pa.concat_arrays(pieces), pairs, np.searchsorted(cells, both))


def in_order(domain: Domain, labels: pa.Array, cells: Ints, inverse: Ints) -> ColumnLabels:
    """Return the labels of distinct cells in canonical order; `inverse` is the index of each group's cell."""
    _refuse_labels_like_values(domain, labels, cells)
    order = pc.array_sort_indices(labels, null_placement="at_start").to_numpy()  # by the bytes of UTF-8
    rank = np.empty(len(order), np.min_scalar_type(len(order)))
    rank[order] = np.arange(len(order))
    labels = labels.take(pa.array(order))
    if pc.any(pc.equal(labels[1:], labels[:-1])).as_py():
        raise AssertionError(f"column {domain.column}: two cells have one label")
    return ColumnLabels(labels, rank[inverse], cells[order])


def refuse_values_like_labels(domains: list[Domain]) -> None:
    """Raise ConfigError if text without a hierarchy has values that would be published as if they were generalized.
    Hierarchies refuse such values themselves, and no number or date looks like a label."""
    problems = []
    for domain in domains:
        if count := domain.values_like_labels:
            found = f"{count:,} distinct values with the form of a label for several values"
            expected = "values other than `*`, `not null`, `null|...` and `{...}`"
            hint = "replace them in the source; if they stand for missing values, make them null"
            problems.append(Problem(f"columns.quasi_identifiers.{domain.column}", found, expected, hint))
    if problems:
        raise ConfigError(problems)


def _refuse_labels_like_values(domain: Domain, labels: pa.Array, cells: Ints) -> None:
    """Raise ConfigError if the label of a cell is a value of the data outside it."""
    if domain.kind == "text":
        values = {word: code for code, word in enumerate(domain.texts)}
        words = labels.to_pylist()
        taken = sum(word in values and [values[word]] * 2 != cell for word, cell in zip(words, cells.tolist()))
        if taken:
            found = f"{taken} generalized labels that are also values of the data"
            path = f"columns.quasi_identifiers.{domain.column}"
            raise ConfigError.at(path, found, "values that cannot be mistaken for a label")
