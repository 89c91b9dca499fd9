"""Builders and trees in few words, shared by the tests of hierarchies. Outside the way of the data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from anon.core.text import text
from anon.errors import ConfigError
from anon.hierarchy import HierarchyTree, paths

# Stand-ins with the attributes that the builders of the config have.


class Uncapped:
    capped: ClassVar[bool] = False


@dataclass
class Intervals(Uncapped):
    kind: ClassVar[str] = "intervals"
    intervals: list[Any]
    origin: Any = 0
    top: Any = None
    bottom: Any = None


@dataclass
class Bands(Uncapped):
    kind: ClassVar[str] = "bands"
    bands: list[list[Any]]


@dataclass
class Suppress(Uncapped):
    kind: ClassVar[str] = "suppress"
    suppress: bool = True


@dataclass
class HierarchyFile(Uncapped):
    kind: ClassVar[str] = "hierarchy"
    hierarchy: Path


@dataclass
class Digits(Uncapped):
    kind: ClassVar[str] = "digits"
    digits: int


@dataclass
class Calendar(Uncapped):
    kind: ClassVar[str] = "calendar"
    calendar: list[str]


def labels(builder: Any, *values: Any) -> list[tuple[str, ...]]:
    return list(paths(builder, values, "c"))


def tree_of(builder: Any, values: list[Any], null: bool = False) -> tuple[HierarchyTree, list[str]]:
    """The tree of a builder and the text of each code but null's."""
    texts = [text(value) for value in values]
    tree, order = HierarchyTree.build(paths(builder, values, "c"), texts, null)
    return tree, [texts[i] for i in order]


def children(tree: HierarchyTree, node: int) -> list[str | None]:
    return [tree.label[child] for child in tree.child[tree.child_start[node] : tree.child_start[node + 1]]]


def csv_file(folder: Path, content: str | bytes) -> HierarchyFile:
    path = folder / "education.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return HierarchyFile(path)


def refusal(builder: Any, *values: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        paths(builder, values, "c")
    return str(caught.value)


def check_tree(tree: HierarchyTree) -> None:
    codes = tree.node_at.shape[1]
    root = len(tree.label) - 1
    assert (tree.low[root], tree.high[root], tree.parent[root]) == (0, codes - 1, -1)
    assert tree.levels + 1 == len(tree.node_at)
    assert tree.node_at[0].tolist() == list(range(codes))
    for node in range(root + 1):
        members = [c for c in range(codes) if node in tree.node_at[:, c]]
        assert members == list(range(tree.low[node], tree.high[node] + 1))
        assert tree.level[node] == np.flatnonzero(tree.node_at[:, members[0]] == node)[0]
        children = tree.child[tree.child_start[node] : tree.child_start[node + 1]]
        assert all(tree.parent[child] == node for child in children)
        covered = [c for child in children for c in range(tree.low[child], tree.high[child] + 1)]
        assert covered == (members if node >= codes else [])
    meaning: dict[str | None, tuple[int, int]] = {}
    for label, low, high in zip(tree.label, tree.low, tree.high):
        assert meaning.setdefault(label, (low, high)) == (low, high)
