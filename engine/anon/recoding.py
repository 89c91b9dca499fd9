"""The recoding that a search ends in: a pure function from quasi-identifier values to a group and its labels. Inside it
works on codes; written down (`recoding.json`) it speaks of values, cut points and hierarchy nodes, so that it can be
read, kept and applied without the cube it came from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from anon.cube import Domain
from anon.cube.domain import CUTTABLE
from anon.errors import ConfigError

Ints = NDArray[np.int64]
FORMAT = 1


@dataclass(frozen=True)
class ColumnLabels:
    """The labels of one column over all groups: each different one once, in canonical order, and who has which."""

    labels: list[str | None]
    of_group: Ints


@dataclass(frozen=True)
class Recoding:
    """A tree of cuts. Node i splits at cut[cut_start[i]:cut_start[i + 1]] of a column into the nodes from child[i] on;
    a leaf has column -1 and in child the number of its group in canonical order."""

    domains: list[Domain]
    column: Ints
    cut_start: Ints
    cut: Ints
    child: Ints
    own_low: Ints  # the cell of each node in the column that its parent is split by
    own_high: Ints
    low: NDArray[np.uint16]  # [groups, columns] the cells of each group
    high: NDArray[np.uint16]
    people: Ints  # individuals per group

    reused: ClassVar[bool] = False  # whether the cuts are an earlier run's

    @property
    def groups(self) -> int:
        return len(self.people)

    def assign(self, codes: NDArray[np.uint16]) -> NDArray[np.uint32]:
        """The group of each row of codes [columns, rows]."""
        from anon.search import kernels

        group = np.zeros(codes.shape[1], np.uint32)
        kernels.walk(codes, self.column, self.cut_start, self.cut, self.child, group)
        return group

    @property
    def suppressed(self) -> int:
        """Individuals who are in no group: a tree of cuts has a group for everybody."""
        return 0

    @cached_property
    def labels(self) -> list[ColumnLabels]:
        """The published labels, per column."""
        return [column_labels(d, self.low[:, j], self.high[:, j]) for j, d in enumerate(self.domains)]

    @property
    def spans(self) -> dict[str, tuple[NDArray[np.float64], float]]:
        """Per column how far the cell of each group spans on the column's own scale, and how far the column does."""
        found = {}
        for j, domain in enumerate(self.domains):
            at = domain.position
            found[domain.column] = (at[self.high[:, j]] - at[self.low[:, j]], float(at[-1] - at[0]))
        return found

    @property
    def height(self) -> None:
        """Steps of generalization, which a tree of cuts has not: its groups are at several levels."""
        return None

    def levels_of(self, column: int) -> list[int]:
        """The levels of a column's hierarchy that its groups are published at."""
        tree = self.domains[column].tree
        assert tree is not None
        order = np.argsort(tree.level, kind="stable")  # of nodes over the same values the highest, as for labels
        level = {(int(tree.low[i]), int(tree.high[i])): int(tree.level[i]) for i in order}
        cells = set(zip(self.low[:, column].tolist(), self.high[:, column].tolist()))
        return sorted({level[cell] for cell in cells})

    def write(self, path: Path) -> None:
        """Writes recoding.json, one node per line."""
        head = {
            "format": FORMAT,
            "method": "partition",
            "groups": self.groups,
            "columns": [column_facts(domain) for domain in self.domains],
        }
        with path.open("w", encoding="utf-8") as file:
            file.write(_json(head)[:-1] + ', "nodes": [\n')
            for number, line in enumerate(self._nodes()):
                file.write(line if number == 0 else f",\n{line}")
            file.write("\n]}\n")

    def _nodes(self) -> Iterator[str]:
        """Nodes in the order of their numbers. Each but the root has the label of its cell in its parent's column; a
        group also has those of its hierarchy columns, which are narrowed to the node that covers it."""
        cuts, columns, children = np.diff(self.cut_start).tolist(), self.column.tolist(), self.child.tolist()
        parent_column = np.full(len(columns), -1)
        split = np.flatnonzero(self.column >= 0)
        parent_column[1:] = np.repeat(self.column[split], np.diff(self.cut_start)[split] + 1)
        label = [cache(lambda low, high, d=domain: _json(d.label(low, high))) for domain in self.domains]
        names = [_json(domain.column) for domain in self.domains]
        narrowed = [(j, names[j]) for j, domain in enumerate(self.domains) if domain.tree is not None]
        cells = {j: (self.low[:, j].tolist(), self.high[:, j].tolist()) for j, _ in narrowed}
        people, texts = self.people.tolist(), [domain.texts for domain in self.domains]
        first_cut = [*self.cut.tolist(), 0]
        own = zip(parent_column.tolist(), self.own_low.tolist(), self.own_high.tolist(), self.cut_start.tolist())
        for i, (above, low, high, at) in enumerate(own):
            start = f'"label": {label[above](low, high)}, ' if i else ""
            j, child = columns[i], children[i]
            if j < 0:
                own_labels = ", ".join(
                    f"{name}: {label[at](cells[at][0][child], cells[at][1][child])}" for at, name in narrowed
                )
                yield f'{{{start}"group": {child}, "people": {people[child]}, "labels": {{{own_labels}}}}}'
                continue
            where = "" if j in cells else f'"cut": {_json(texts[j][first_cut[at]])}, '
            listed = list(range(child, child + cuts[i] + 1))
            yield f'{{{start}"column": {names[j]}, {where}"children": {listed}}}'


def _json(value: Any) -> str:
    return encode_basestring(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def column_facts(domain: Domain) -> dict[str, Any]:
    """What a recoding needs of a column to be applied to other rows: whether null is among its values, whether codes
    are bins of them, and its hierarchy; of categories without one the values."""
    facts: dict[str, Any] = {"name": domain.column, "kind": domain.kind, "nulls": domain.null}
    if domain.kind in CUTTABLE and domain.tree is None:
        facts["binned"] = not domain.single
    elif domain.tree is None:
        facts["values"] = [word for word in domain.texts if word is not None]
    if domain.tree is not None:
        above = domain.tree.labels[domain.tree.node_at[1:]].T.tolist()
        facts["hierarchy"] = [[value, *labels] for value, labels in zip(domain.texts, above)]
    return facts


def column_labels(domain: Domain, low: NDArray[np.uint16], high: NDArray[np.uint16]) -> ColumnLabels:
    cells, inverse = np.unique((low.astype(np.uint32) << 16) | high, return_inverse=True)
    pairs = np.stack([cells >> 16, cells & 0xFFFF], axis=1).astype(np.int64)
    labels = [domain.label(a, b) for a, b in pairs.tolist()]
    return in_order(domain, labels, pairs, inverse.reshape(-1))


def in_order(domain: Domain, labels: list[str | None], cells: Ints, inverse: Ints) -> ColumnLabels:
    """Labels of different cells in canonical order, given which of them each group has."""
    _check_labels(domain, labels, cells)
    order = sorted(range(len(labels)), key=lambda i: (labels[i] is not None, (labels[i] or "").encode()))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return ColumnLabels([labels[i] for i in order], rank[inverse])


def _check_labels(domain: Domain, labels: list[str | None], cells: Ints) -> None:
    """Labels must tell their cells apart, from each other and from the data's own values."""
    if domain.kind == "text":
        values = {word: code for code, word in enumerate(domain.texts)}
        taken = sum(word in values and [values[word]] * 2 != cell for word, cell in zip(labels, cells.tolist()))
        if taken:
            found = f"{taken} generalized labels that are also values of the data"
            path = f"columns.quasi_identifiers.{domain.column}"
            raise ConfigError.at(path, found, "values that no label can be taken for")
    if len(set(labels)) < len(labels):
        raise AssertionError(f"column {domain.column}: two cells have one label")
