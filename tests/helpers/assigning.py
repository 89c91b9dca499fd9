"""Small tables for tests of the merge and colour searches, run on cubes without the rest of the engine, and the groups
that they make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from anon.criteria import Criterion, Dissimilarity, RRobustness
from anon.criteria.distances import Distance
from anon.criteria.priors import Prior
from anon.cube import Cube, Domain
from anon.cube.records import InMemory
from anon.recoding.assignment import Assignment
from anon.search.assign.colour import ColourSearch
from anon.search.assign.dispatch import assigned
from anon.search.assign.merge import MergeSearch
from anon.search.budget import SearchBudget
from anon.search.cross_tables import Adversaries, CrossTables, MergeAdversary

Row = tuple[int, ...]  # quasi-identifier codes, then the code of the sensitive value
Probabilities = Sequence[Sequence[Fraction | None]]


@dataclass(frozen=True)
class Table:
    """Rows of codes; `values` is how many sensitive values there are."""

    rows: list[Row]
    values: int

    def cube(self, collapsed: bool = False) -> Cube:
        counted = Counter(self.rows)
        listed = sorted(counted) if collapsed else self.rows
        rows = np.array(listed, np.uint16).reshape(len(listed), -1)
        total = np.bincount(rows[:, -1], [counted[row] if collapsed else 1 for row in listed], self.values)
        if collapsed:
            halves = [(counted[row] & 0xFFFF, counted[row] >> 16) for row in listed]
            rows = np.hstack([rows, np.array(halves, np.uint16)])
        domains = [
            Domain(f"q{at}", "integer", pa.array(range(max(column) + 1), pa.int64()), True, False)
            for at, column in enumerate(list(zip(*self.rows))[:-1])
        ]
        own = Domain("s", "text", pa.array([f"v{code:03}" for code in range(self.values)]), True, False)
        by_code = [np.bincount(column) for column in list(zip(*self.rows))[:-1]]
        return Cube(domains, by_code, [own], [total.astype(np.int64)], InMemory(rows.T.copy()), collapsed)


@dataclass(frozen=True)
class Grouping:
    """What a search came to: groups of rows, and what it tells of itself."""

    groups: list[list[Row]]
    facts: dict[str, Any]
    unique: int

    @property
    def rows(self) -> Counter[Row]:
        return Counter(row for group in self.groups for row in group)

    def canonical(self) -> list[list[Row]]:
        return sorted(sorted(group) for group in self.groups)


def _run(
    method: str,
    search: MergeSearch | ColourSearch,
    criteria: list[Criterion],
    adversaries: Sequence[MergeAdversary],
    budget: SearchBudget,
) -> Grouping:
    with TemporaryDirectory() as folder:
        budget = budget if budget.spill else replace(budget, spill=Path(folder))
        found = assigned(method, search, criteria, budget, adversaries)
        assert isinstance(found.recoding, Assignment) and found.unique is not None
        groups: dict[int, list[Row]] = {}
        for batch in found.recoding.batches():
            for *row, group, people in zip(*(column.to_pylist() for column in batch.columns)):
                groups.setdefault(group, []).extend([tuple(row)] * people)
    assert sorted(groups) == list(range(len(groups))), "groups are numbered without gaps"
    assert [len(groups[number]) for number in range(len(groups))] == found.recoding.people.tolist()
    return Grouping([groups[number] for number in sorted(groups)], found.recoding.facts, found.unique)


def prior(table: Table, attributes: Sequence[int], p: Probabilities) -> Prior:
    """A prior over some columns, with a row for each of their signatures in the table, in order."""
    signatures = sorted({tuple(row[at] for at in attributes) for row in table.rows})
    words = [tuple(map(str, signature)) for signature in signatures]
    values: list[str | None] = [str(value) for value in range(table.values)]
    return Prior.from_rows([f"q{at}" for at in attributes], words, values, [*map(list, p)])


def merged(
    table: Table,
    r: Fraction,
    priors: Sequence[Prior],
    collapsed: bool = False,
    budget: SearchBudget | None = None,
    others: Sequence[Criterion] = (),
) -> Grouping:
    cube, budget = table.cube(collapsed), budget or SearchBudget()
    crossed = CrossTables(cube)
    for each in priors:
        crossed(tuple(each.attributes), "s")
    criterion = RRobustness("s", r, priors)
    criterion.attributes = tuple(tuple(each.attributes) for each in priors)
    adversaries, least = Adversaries([criterion], crossed), max((other.least_group for other in others), default=1)
    search = MergeSearch(cube, adversaries, least, budget)
    return _run("merge", search, [criterion, *others], adversaries.all, budget)


def coloured(
    table: Table,
    distance: Distance,
    epsilon: Fraction,
    delta: Fraction,
    k: int,
    collapsed: bool = False,
    budget: SearchBudget | None = None,
) -> Grouping:
    criterion, budget = Dissimilarity("s", epsilon, delta, k, distance), budget or SearchBudget()
    search = ColourSearch(table.cube(collapsed), criterion, criterion.least_group, budget)
    return _run("colour", search, [criterion], (), budget)
