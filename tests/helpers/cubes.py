"""Small cubes made by hand for tests of the search, in the engine's terms and in the oracle's."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anon.cube import Cube, Domain
from anon.cube.records import InMemory
from anon.hierarchy import HierarchyTree
from tests.oracles import partition as oracle


@dataclass(frozen=True)
class Table:
    """Rows of codes and a sensitive value per row; columns as the oracle wants them."""

    columns: list[oracle.Column]
    rows: list[tuple[tuple[int, ...], str]]

    @property
    def values(self) -> list[str]:
        return sorted({value for _, value in self.rows})

    def cube(self, collapsed: bool = False) -> Cube:
        code_of = {value: code for code, value in enumerate(self.values)}
        coded = [(*codes, code_of[value]) for codes, value in self.rows]
        counts = Counter(coded) if collapsed else None
        listed = sorted(counts) if counts is not None else coded
        people = [counts[row] for row in listed] if counts is not None else [1] * len(listed)
        domains = [domain(f"q{index}", column) for index, column in enumerate(self.columns)]
        values = Domain("s", "text", pa.array(self.values), True, False)
        rows = np.array(listed, np.uint16).reshape(len(listed), -1)
        if collapsed:
            halves = np.array([(n & 0xFFFF, n >> 16) for n in people], np.uint16).reshape(-1, 2)
            rows = np.hstack([rows, halves])
        total = np.bincount([code_of[value] for _, value in self.rows], minlength=len(self.values))
        held = [np.bincount([codes[j] for codes, _ in self.rows], minlength=d.size) for j, d in enumerate(domains)]
        return Cube(domains, held, [values], [total], InMemory(rows.T.copy()), collapsed)


def domain(name: str, column: oracle.Column) -> Domain:
    """The engine's domain of an oracle's column."""
    if isinstance(column, oracle.Free):
        return Domain(name, "integer", pa.array([int(p) for p in column.position], pa.int64()), True, False)
    leaves = [f"leaf{code}" for code in range(column.whole()[1] + 1)]
    tree, _ = HierarchyTree.build(_paths(column.tree), leaves, False)
    return Domain(name, "text", pa.array(leaves), True, False, tree)


def _paths(tree: oracle.Tree) -> list[tuple[str, ...]]:
    """The labels above every leaf, padded at the bottom so that all have the same length."""
    found: list[list[str]] = []

    def walk(node: oracle.Tree, above: list[str]) -> None:
        if isinstance(node, int):
            found.append([f"leaf{node}", *above])
            return
        for child in node:
            walk(child, [f"n{len(above)}.{_first(node)}", *above] if above else ["*"])

    walk(tree, [])
    height = max(map(len, found))
    return [tuple([path[0]] * (height - len(path)) + path[1:]) for path in found]


def _first(node: oracle.Tree) -> int:
    return node if isinstance(node, int) else _first(node[0])
