"""The lattice search over individuals with several values, as a set or a multiset, against its definition: every node
by exhaustive enumeration, in every place that frequency sets may live, and whole runs with verification."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anon
from anon.config import load
from anon.criteria import bind
from anon.errors import UnsafeError
from anon.recoding.outcome import Outcome
from anon.search import dispatch
from anon.search.budget import SearchBudget
from anon.search.lattice import frequency
from anon.search.lattice.frequency import FrequencySets, SensitiveValues
from anon.search.lattice.search import LatticeSearch
from anon.search.lattice.spill import SpillDatabase
from tests.conftest import House
from tests.helpers import bucketized
from tests.helpers.lattice import Table, random_table, several_cube_of
from tests.oracles import lattice as oracle
from tests.oracles import skyline
from tests.search.test_lattice import agree
from tests.search.test_lattice_places import places

KINDS = ["set", "multiset"]
PLACES = ["usual", "sorted", "words", "spilled", "spilled words"]
POINTS = {"alone": [(1, 1, 0, "0.8"), (0, 2, 0, "0.7")], "families": [(1, 0, 1, "0.9")]}
BUILDERS = {"age": {"intervals": [5, 10, 20]}, "hours": {"intervals": [2]}}


@dataclass(frozen=True)
class Crowd:
    """Individuals, one a row of a table, with several values each."""

    table: Table
    kind: str
    values: list[list[str]]

    @property
    def people(self) -> list[oracle.Row]:
        return [row | {"held": own} for row, own in zip(self.table.rows, self.values)]


def random_crowd(seed: int, kind: str) -> Crowd:
    table, rng = random_table(seed), random.Random(seed)
    drawn = [rng.choices("abcd", [4, 2, 2, 1], k=rng.randint(1, 4)) for _ in table.rows]
    return Crowd(table, kind, [sorted(set(own)) if kind == "set" else own for own in drawn])


def told(people: list[oracle.Row]) -> list[oracle.Row]:
    """A row for each occurrence of a value."""
    return [{**row, "d": value} for row in people for value in row["held"]]


def criterion(case: str) -> dict[str, Any]:
    if case == "size":
        return {"group_size": {"k": 3}}
    return {"skyline": {"points": [dict(zip("lkmc", (*amount, float(c)))) for *amount, c in POINTS[case]]}}


def holds(case: str, kind: str) -> oracle.Holds:
    def safe(groups: oracle.Groups, _: list[oracle.Row]) -> bool:
        if case == "size":
            return all(len(group) >= 3 for group in groups)
        release = [(len(group), [value for row in group for value in row["held"]]) for group in groups]
        return all(
            skyline.many_breach(release, value, l, k, m, kind) < Fraction(c)
            for value in "abcd"
            for l, k, m, c in POINTS[case]
        )

    return safe


def safe_nodes(crowd: Crowd, cases: list[str], suppress: Fraction) -> dict[oracle.Levels, oracle.Node]:
    """Sizes and losses are those of individuals, the divergence that of occurrences."""
    every, columns, people = [holds(case, crowd.kind) for case in cases], crowd.table.trees, crowd.people
    nodes = oracle.safe_nodes(people, columns, (), lambda *given: all(own(*given) for own in every), suppress)
    found = {}
    for node in nodes:
        released = {labels: told(group) for labels, group in node.released.items()}
        divergence = oracle.divergence(told(people), columns, ["d"], node.levels, released)
        found[node.levels] = replace(node, divergence=divergence)
    return found


def searched(crowd: Crowd, cases: list[str], suppress: Fraction, metric: str, budget: SearchBudget) -> Outcome | None:
    given = crowd.table.config(Path("/"), [criterion(case) for case in cases])
    given["columns"] |= {"individual": "id", "multiplicity": crowd.kind, "sensitive": ["d"]}
    given["release"]["form"] = "bucketized"
    config, cube = load(given), several_cube_of(crowd.table, crowd.values)
    values = dispatch.sensitive_values(config, cube)
    criteria, released = bind(config.privacy, values, shared=True), dispatch.released_values(config, values)
    try:
        return LatticeSearch(cube, criteria, metric, suppress, released, budget).run()
    except UnsafeError:
        return None


def handed_over(found: Any, crowd: Crowd, node: oracle.Node) -> None:
    """Each published group with its people, once each, and the occurrences of its values; and who was unique."""
    recoding, names, trees = found.recoding, sorted({v for own in crowd.values for v in own}), crowd.table.trees
    rows = [[d.objects.index(row[d.column]) for d in recoding.domains] for row in crowd.people]
    groups = recoding.assign(np.array(rows, np.uint16).T.copy()).tolist()
    labels: dict[int, set[Any]] = {}
    for group, row in zip(groups, crowd.people):
        own = tuple(tree[row[name]][level] for (name, tree), level in zip(trees.items(), node.levels))
        if group < recoding.groups:
            labels.setdefault(group, set()).add(own)
        else:
            assert own not in node.released
    assert {group: next(iter(own)) for group, own in labels.items()}.keys() == set(range(len(node.released)))
    assert all(len(own) == 1 for own in labels.values())
    released = [node.released[next(iter(labels[group]))] for group in range(len(labels))]
    assert recoding.people.tolist() == [len(group) for group in released]
    counts: Counter[Any] = Counter()
    for batch in found.counts.batches():
        for group, value, times in zip(*(column.to_pylist() for column in batch.columns)):
            counts[group, names[value]] += times
    assert counts == Counter((number, row["d"]) for number, group in enumerate(released) for row in told(group))
    exactly = Counter(tuple(row[name] for name in trees) for row in crowd.people)
    assert found.unique == sum(n == 1 for n in exactly.values())


def explained(facts: dict[str, Any], crowd: Crowd, cases: list[str], suppress: Fraction) -> None:
    """The criteria that refuse the nodes right below the chosen one."""
    safe = [safe_nodes(crowd, [case], suppress) for case in cases]
    for entry in facts["finer"]:
        levels = facts["chosen"]["levels"] | {entry["column"]: entry["level"]}
        refused = [at for at, nodes in enumerate(safe) if tuple(levels.values()) not in nodes]
        assert entry["refused_by"] == refused


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", PLACES)
@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 10**9),
    share=st.sampled_from(["0", "0.1", "0.4"]),
    cases=st.sampled_from([["size"], ["alone"], ["families"], ["size", "alone"], ["families", "size"]]),
    metric=st.sampled_from(["loss", "average", "discernibility", "divergence"]),
    threads=st.sampled_from([1, 3]),
)
def test_all_minimal_nodes_are_found_in_every_place(
    kind: str, place: str, seed: int, share: str, cases: list[str], metric: str, threads: int
) -> None:
    crowd, suppress = random_crowd(seed, kind), Fraction(share)
    safe = safe_nodes(crowd, cases, suppress)
    nodes = {node.levels: node for node in oracle.minimal(list(safe.values()))}
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        places(patch, place)
        patch.setattr(frequency, "MANY", 0)
        found = searched(crowd, cases, suppress, metric, SearchBudget(threads=threads, spill=Path(folder)))
        assert (found is None) == (not nodes)
        if found is not None:
            agree(found.recoding.facts, nodes, metric)
            handed_over(found, crowd, nodes[found.recoding.chosen])
            explained(found.recoding.facts, crowd, cases, suppress)


@pytest.mark.parametrize("place", PLACES)
def test_only_people_are_counted_where_values_do_not_matter(place: str, tmp_path: Path) -> None:
    crowd = random_crowd(3, "multiset")
    cube, names = several_cube_of(crowd.table, crowd.values), tuple(range(len(crowd.table.trees)))
    with pytest.MonkeyPatch.context() as patch:
        places(patch, place)
        database = SpillDatabase(tmp_path, 0, 1)
        columns, entries = LatticeSearch(cube, []).columns, []
        for values in (None, SensitiveValues(cube)):
            sets = FrequencySets(cube, columns, values, 10**9, 1, database)
            assert sets.first.entries == sum(len(part.count) for part in sets.first.parts())
            found = sets.roll_up(sets.first, names, (0,) * len(names))
            cells = Counter({tuple(c): n for p in found.parts() for c, n in zip(p.cells.T.tolist(), p.n.tolist())})
            entries.append((found.entries, cells))
        database.close()
    own = Counter(tuple(row[name] for name in crowd.table.trees) for row in crowd.people)
    values = {(*(row[name] for name in crowd.table.trees), row["d"]) for row in told(crowd.people)}
    assert [many for many, _ in entries] == [len(own), len(own) + len(values)]
    assert all(sorted(cells.values()) == sorted(own.values()) for _, cells in entries)


def crowded(house: House, kind: str, one_each: bool = False) -> dict[str, Any]:
    """A source of people with several values, in any order, and what a config says of it."""
    rng = random.Random(5)
    rows = []
    for number in range(400):
        age = rng.randint(20, 39) if number >= 4 else 90
        person = {"id": f"p{number}", "age": age, "hours": rng.randint(0, 5)}
        drawn = rng.choices("abcdefgh", k=1 if one_each else rng.randint(1, 4))
        rows += [person | {"disease": value} for value in drawn]
    rng.shuffle(rows)
    house.write(pa.Table.from_pylist(rows))
    columns = {"individual": "id", "multiplicity": kind, "quasi_identifiers": BUILDERS, "sensitive": ["disease"]}
    return {
        "source": {"path": "table.parquet"},
        "columns": columns,
        "privacy": [{"group_size": {"k": 6}}, {"skyline": {"points": [{"l": 1, "k": 1, "m": 1, "c": 0.6}]}}],
        "method": {"kind": "lattice", "exhaustive": True, "suppress": 0.1},
        "release": {"path": "out", "run": "out-run", "form": "bucketized"},
    }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("labels", ["generalized", "exact"])
def test_a_run_with_suppression_is_verified_and_tells_its_utility(house: House, kind: str, labels: str) -> None:
    config = crowded(house, kind)
    config["release"]["labels"] = labels
    result = house.run(**config).to_dict()
    chosen = json.loads((house.folder / "out-run" / "recoding.json").read_text())["chosen"]
    qi, sensitive = bucketized.released(house.folder / "out")
    sizes = Counter(row["group"] for row in qi)
    assert (result["individuals"], result["suppressed"]) == (len(qi), 400 - len(qi)) and len(qi) < 400
    assert (chosen["groups"], chosen["suppressed"]) == (len(sizes), 400 - len(qi)) and min(sizes.values()) >= 6
    assert sum(row["count"] for row in sensitive) > len(qi)
    held = bucketized.values_of(sensitive, "disease")
    release = [(sizes[group], list(held[group].elements())) for group in sizes]
    assert all(skyline.many_breach(release, value, 1, 1, 1, kind) < Fraction("0.6") for value in "abcdefgh")
    if labels == "generalized":
        measured = anon.utility(house.config(**config), house.folder / "out").to_dict()
        for name in ("groups", "average_group", "discernibility", "suppressed"):
            assert measured[name] == chosen[name]
        assert measured["loss"]["all"] == pytest.approx(chosen["loss"], rel=1e-12)
        assert measured["divergence"] == pytest.approx(chosen["divergence"], rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_with_one_value_each_the_release_is_that_of_single_values(house: House, kind: str) -> None:
    seen = []
    for multiplicity in ("single", kind):
        config = crowded(house, multiplicity, one_each=True)
        house.run(**config | {"privacy": [{"group_size": {"k": 6}}]})
        names = ("qi.parquet", "sensitive.parquet")
        recoding = json.loads((house.folder / "out-run" / "recoding.json").read_text())
        seen.append(([(house.folder / "out" / name).read_bytes() for name in names], recoding["minimal"]))
    assert seen[0] == seen[1]
