"""Small random tables with random hierarchies for tests of the lattice search, in the engine's terms and in the
oracle's. Outside the way of the data."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import anon
from anon import hierarchy
from anon.cube import Combinations, Cube, Domain
from anon.cube.records import InMemory
from anon.errors import UnsafeError

Row = dict[str, Any]
Tree = dict[Any, tuple[Hashable, ...]]
KINDS = (("d", "text"), ("x", "integer"))
SENSITIVE = ("d", "x")


@dataclass(frozen=True)
class Table:
    """Rows with quasi-identifiers q0, q1, ..., the hierarchy of each, and how the config names it."""

    rows: list[Row]
    trees: dict[str, Tree]
    builders: dict[str, Any] = field(default_factory=dict)

    def frame(self) -> pa.Table:
        columns = {name: [row[name] for row in self.rows] for name in (*self.trees, *SENSITIVE)}
        return pa.table(columns)

    def config(self, folder: Path, privacy: list[Any], **method: Any) -> dict[str, Any]:
        for name, builder in self.builders.items():
            if "hierarchy" in builder:
                lines = [";".join(map(str, path)) for value, path in self.trees[name].items() if value is not None]
                (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
        builders = {
            name: {"hierarchy": str(folder / f"{name}.csv")} if "hierarchy" in builder else builder
            for name, builder in self.builders.items()
        }
        return {
            "source": {"path": str(folder / "none.parquet")},
            "columns": {
                "individual": "row",
                "quasi_identifiers": builders,
                "sensitive": {"d": {}, "x": {"as_categories": True}},
            },
            "privacy": privacy,
            "method": {"kind": "lattice", **method},
            "release": {"path": str(folder / "out")},
        }


def random_tree(rng: random.Random, name: str, values: list[str]) -> Tree:
    """Levels from random groupings, each of the level below; some keep a node as it is, under a new name or not."""
    paths: dict[str, list[str]] = {value: [value] for value in values}
    for level in range(1, rng.randint(0, 2) + 1):
        below = sorted({path[-1] for path in paths.values()})
        above = {label: f"{name}.{level}.{rng.randint(0, len(below) // 2)}" for label in below}
        for path in paths.values():
            path.append(above[path[-1]])
    return {value: (*path, "*") for value, path in paths.items()}


def random_table(seed: int, columns: int = 3, rows: int = 80) -> Table:
    """A table with some columns that depend on each other, some values that are rare, and nulls."""
    rng = random.Random(seed)
    trees: dict[str, Tree] = {}
    builders: dict[str, Any] = {}
    for at in range(rng.randint(1, columns)):
        name, kind = f"q{at}", rng.choice(["file", "file", "file", "suppress", "free"])
        values = [f"v{i}" for i in range(rng.randint(1, 6))]
        trees[name] = random_tree(rng, name, values) if kind == "file" else {value: (value, "*") for value in values}
        builders[name] = {"file": {"hierarchy": True}, "suppress": {"suppress": True}, "free": {}}[kind]
        if rng.random() < 0.25:
            height = len(next(iter(trees[name].values())))
            trees[name][None] = (*[None] * (height - 1), "*")
    names, skew = list(trees), rng.choice([1.0, 1.0, 0.5])
    found = []
    for _ in range(rng.randint(3, rows)):
        row = {name: rng.choices(list(trees[name]), [skew**i for i in range(len(trees[name]))])[0] for name in names}
        found.append(row | {"d": rng.choice("abcd"), "x": rng.randint(0, 6)})
    for name, tree in trees.items():  # a column of nulls only has no type
        found[0][name] = next(value for value in tree if value is not None)
    return Table(found, trees, builders)


def cube_of(table: Table, counted: bool) -> Cube:
    """The cube of a table as it would be built from a source, with the combinations that joint criteria look at."""
    domains = [_domain(table, name) for name in table.trees]
    others = [Domain(n, kind, pa.array(sorted({row[n] for row in table.rows})), True, False) for n, kind in KINDS]
    codes = [[d.objects.index(row[d.column]) for d in (*domains, *others)] for row in table.rows]
    joint = sorted({(x, d) for *_, d, x in codes})
    rows = Counter((*row, joint.index((row[-1], row[-2]))) for row in codes)
    context = np.unique([x for x, _ in joint], return_inverse=True)[1]
    combined = Combinations(context.astype(np.int64), np.array([d for _, d in joint], np.int64))
    listed = sorted(rows) if counted else list(rows.elements())
    totals = [np.bincount([row[len(domains) + i] for row in rows.elements()]) for i in range(3)]
    records = np.array(listed, np.uint16)
    if counted:
        people = np.array([rows[row] for row in listed])
        records = np.column_stack([records, people & 0xFFFF, people >> 16]).astype(np.uint16)
    where = {(Combinations, ("x", "d")): 2}
    people = [np.bincount([row[i] for row in rows.elements()], minlength=d.size) for i, d in enumerate(domains)]
    return Cube(domains, people, [*others, combined], totals, InMemory(records.T.copy()), counted, None, 2, where)


def several_cube_of(table: Table, values: list[list[str]]) -> Cube:
    """The same where the individuals of a table, one a row, have several values each: people once, on their lowest."""
    domains, names = [_domain(table, name) for name in table.trees], sorted({v for own in values for v in own})
    people, times = Counter[tuple[int, ...]](), Counter[tuple[int, ...]]()
    for row, own in zip(table.rows, values):
        cell = tuple(d.objects.index(row[d.column]) for d in domains)
        times.update((*cell, names.index(value)) for value in own)
        people[*cell, names.index(min(own))] += 1
    records = np.array([(*own, people[own], 0, times[own], 0) for own in sorted(times, key=hash)], np.uint16)
    cells = [np.bincount([own[i] for own in people.elements()], minlength=d.size) for i, d in enumerate(domains)]
    totals = [np.bincount([own[-1] for own in times.elements()])]
    others = [Domain("d", "text", pa.array(names), True, False)]
    place = InMemory(records.T.copy())
    return Cube(domains, cells, [*others], totals, place, True, None, 1, people=len(table.rows))


def _domain(table: Table, name: str) -> Domain:
    tree, present = table.trees[name], {row[name] for row in table.rows}
    used = sorted((value for value in tree if value in present and value is not None), key=lambda v: tree[v][::-1])
    null, levels = None in present, None
    if table.builders[name]:
        levels, _ = hierarchy.HierarchyTree.build([tree[value][1:] for value in used], used, null)
    return Domain(name, "text", pa.array(used, pa.string()), True, null, levels)


@dataclass(frozen=True)
class Ran:
    """What a run left."""

    told: dict[str, Any]
    recoding: dict[str, Any]
    released: list[Row]
    bytes: bytes


def run(table: Table, folder: Path, privacy: list[Any], frame: pa.Table | None = None, **method: Any) -> Ran | None:
    """A run over the table; None if there is no safe release."""
    try:
        result = anon.run(
            table.config(folder, privacy, **method), table.frame() if frame is None else frame, overwrite=True
        )
    except UnsafeError:
        return None
    recoding = json.loads((folder / "out-run" / "recoding.json").read_text())
    path = folder / "out" / "release.parquet"
    return Ran(result.to_dict(), recoding, pq.ParquetFile(path).read().to_pylist(), path.read_bytes())
