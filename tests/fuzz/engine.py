"""Runs the engine on a case, in this process and without a source: builds the cube that a source would give, searches
it, and reads the result in terms of people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from anon.config import Config, load
from anon.core.memory import Memory
from anon.criteria import Values
from anon.cube import Combinations, Cube, Domain, Tuples
from anon.cube.records import InMemory, halves
from anon.hierarchy import HierarchyTree
from anon.recoding.outcome import Outcome
from anon.search import dispatch, prepare
from anon.search.budget import SearchBudget
from anon.search.partition.search import record_bytes
from tests.fuzz.cases import TYPES, Case, Quasi, sensitive_array

# Where tables are so large that they are worked on in pieces, or in other ways: so small that these tables are too.
SMALL = (
    ("anon.search.partition.decide.CELLS", 1), ("anon.search.partition.candidates.DENSE", 0),
    ("anon.search.partition.top.COUNTERS", 1), ("anon.search.partition.top.CELLS", 9),
    ("anon.search.partition.passes.CHUNK", 3), ("anon.criteria.skyline.FEW", 0),
    ("anon.search.lattice.counting.PART", 7), ("anon.search.lattice.spill.PART", 7),
    ("anon.search.lattice.frequency.CHUNK", 11), ("anon.search.lattice.frequency.FEW", 0),
    ("anon.search.lattice.frequency.DENSE", 0), ("anon.search.assign.ordering.BATCH", 5),
    ("anon.search.assign.dealing.BLOCK", 8),
)  # fmt: skip


@dataclass
class Opened:
    """A case as the engine sees it before the search. `codes` are the quasi-identifier codes of each person."""

    config: Config
    cube: Cube
    codes: list[tuple[int, ...]]

    @property
    def values(self) -> Values:
        return dispatch.sensitive_values(self.config, self.cube)


def opened(case: Case, folder: Path) -> Opened:
    """Return the cube of a case as a source would give it."""
    config, codes = load(case.config(folder)), case.codes()
    domains = [_domain(case, column) for column in case.quasi]
    if case.multiplicity == "single":
        return Opened(config, _cube(case, config, domains, codes), codes)
    return Opened(config, _several(case, domains, codes), codes)


def _domain(case: Case, column: Quasi) -> Domain:
    values = column.in_order({person[column.name] for person in case.people})
    null, known = None in values, [value for value in values if value is not None]
    tree, kind = None, "text" if column.kind == "tree" else column.kind
    if column.kind == "tree":
        tree, _ = HierarchyTree.build([column.path(value)[1:] for value in known], known, null)
    return Domain(column.name, kind, pa.array(known, TYPES[column.kind]), True, null, tree)


def _sensitive(name: str, held: set[Any]) -> Domain:
    known = sorted(value for value in held if value is not None)
    kind = "text" if name == "d" else "integer"
    return Domain(name, kind, sensitive_array(name, known), True, None in held)


def _cube(case: Case, config: Config, domains: list[Domain], codes: list[tuple[int, ...]]) -> Cube:
    others: list[Any] = [_sensitive(name, {p[name] for p in case.people}) for name in case.sensitive]
    columns = [[other.objects.index(p[other.column]) for p in case.people] for other in others]
    combined = {}
    for kind, names in prepare._combined(config):
        together = list(zip(*(columns[case.sensitive.index(name)] for name in names)))
        listed = sorted(set(together))
        known = np.array(listed, np.int64)
        context = np.unique(known[:, :-1], axis=0, return_inverse=True)[1].reshape(-1)
        combined[kind, names] = len(others)
        others.append(Tuples(known) if kind is Tuples else Combinations(context, known[:, -1]))
        columns.append([listed.index(each) for each in together])
    totals = [np.bincount(column, minlength=other.size) for column, other in zip(columns, others)]
    rows = [(*own, *rest) for own, *rest in zip(codes, *columns)]
    counted = bool(case.settings.get("counted"))
    records = _counted(Counter(rows)) if counted else np.array(rows, np.uint16)
    held = _by_code(codes, domains)
    place, sensitive = InMemory(records.T.copy()), len(case.sensitive)
    return Cube(domains, held, others, totals, place, counted, None, sensitive, combined)


def _counted(rows: Counter[tuple[int, ...]]) -> Any:
    listed = sorted(rows)
    people = np.array([rows[row] for row in listed])
    return np.column_stack([np.array(listed), halves(people).T]).astype(np.uint16)


def _by_code(codes: Sequence[tuple[int, ...]], domains: list[Domain]) -> list[Any]:
    return [np.bincount([own[at] for own in codes], minlength=d.size) for at, d in enumerate(domains)]


def _several(case: Case, domains: list[Domain], codes: list[tuple[int, ...]]) -> Cube:
    """Return a cube of individuals with several values, each counted once, on the record of their lowest value."""
    (name,) = case.sensitive
    own = [held_values(case, person) for person in case.people]
    domain = _sensitive(name, {value for held in own for value in held})
    people, times = Counter[tuple[int, ...]](), Counter[tuple[int, ...]]()
    for cell, held in zip(codes, own):
        times.update((*cell, domain.objects.index(value)) for value in held)
        people[*cell, domain.objects.index(min(held))] += 1
    listed = sorted(times)
    counts = [np.array([of[row] for row in listed]) for of in (people, times)]
    records = np.column_stack([np.array(listed), *(halves(each).T for each in counts)]).astype(np.uint16)
    totals = [np.bincount([row[-1] for row in times.elements()], minlength=domain.size)]
    return Cube(
        domains, _by_code(codes, domains), [domain], totals, InMemory(records.T.copy()), True, None, 1,
        people=len(case.people),
    )  # fmt: skip


def held_values(case: Case, person: Any) -> list[Any]:
    """Return the values of an individual, in a set each once."""
    held = person[case.sensitive[0]]
    return sorted(set(held)) if case.multiplicity == "set" else sorted(held)


def budget_for(case: Case, cube: Cube, folder: Path) -> SearchBudget:
    """Return what the search of a case may use: the individuals of a block, memory or disk, and threads."""
    block = case.settings.get("block", 10**6)
    memory = Memory(0 if case.settings.get("spilled") else 2**32)
    return SearchBudget(memory, case.settings.get("threads", 1), folder, None, block * record_bytes(cube))


def searched(case: Case, given: Opened, folder: Path) -> Outcome:
    """Return what the search finds; UnsafeError if it finds nothing."""
    values = given.values
    with pytest.MonkeyPatch.context() as patch:
        for place, size in SMALL if case.settings.get("small") else ():
            patch.setattr(place, size)
        dispatch.check_whole_table(given.config, given.cube, values, False)
        return dispatch.search(given.config, given.cube, values, budget_for(case, given.cube, folder))


def handed_over(outcome: Outcome) -> Counter[tuple[int, ...]]:
    """Return the counts that the release is made of: how often each group has each sensitive code."""
    found: Counter[tuple[int, ...]] = Counter()
    assert outcome.counts is not None
    for batch in outcome.counts.batches():
        for *entry, times in zip(*(column.to_pylist() for column in batch.columns)):
            found[tuple(entry)] += times
    return found


def expected_counts(case: Case, given: Opened, group_of: Sequence[int | None]) -> Counter[tuple[int, ...]]:
    """Return the same counts from the people of each group."""
    codes = [{value: code for code, value in enumerate(given.cube.domain(n).objects)} for n in case.sensitive]
    found: Counter[tuple[int, ...]] = Counter()
    for group, person in zip(group_of, case.people):
        if group is None:
            continue
        if case.multiplicity == "single":
            found[(group, *(code[person[name]] for code, name in zip(codes, case.sensitive)))] += 1
        else:
            found.update((group, codes[0][value]) for value in held_values(case, person))
    return found
