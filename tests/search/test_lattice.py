"""The lattice search against its definition (tests/oracles/lattice.py): the same minimal nodes with the same utility,
and the release of the chosen one, through whole runs with verification."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon.config import load
from anon.config.support import refuse_unsupported
from anon.criteria import bind
from anon.errors import ConfigError, UnsafeError
from anon.search import dispatch
from anon.search.lattice.search import LatticeSearch, LatticeWalk
from tests.criteria.test_every_criterion import CASES, DIVERSITY, NAMES, each
from tests.helpers.lattice import SENSITIVE, Ran, Table, cube_of, random_table, run
from tests.oracles import lattice as oracle
from tests.oracles import skyline

METRICS = ("loss", "height", "discernibility", "average", "divergence")
ERRATIC = ("dissimilarity", "absolute", "epsilon_m")  # criteria that are not monotone
POINT = {"l": 1, "k": 1, "m": 1, "c": 0.9}
SAME = (0, 1, 1, Fraction(1))
CERTAIN: dict[str, tuple[dict[str, Any], Any]] = {  # nobody may be certain of anything: with suppression these prune
    "certain": (
        {"points": [{"l": 0, "k": 1, "m": 1, "c": 1}]},
        lambda g, t: skyline.safe([[row["d"] for row in group] for group in g], {value: [SAME] for value in "abcd"}),
    ),
    "certain_ck": ({"c": 1, "k": 1}, each(lambda v: len(set(v)) >= 3)),
}
PRUNING = ("k_anonymity", "group_size", "distinct", "k_e", *CERTAIN)  # also with suppression
OWN: dict[str, tuple[dict[str, Any], Any]] = {
    "k_anonymity": ({"k": 2}, each(lambda v: len(v) >= 2)),
    "skyline": (
        {"points": [POINT]},
        lambda g, t: skyline.safe(
            [[row["d"] for row in group] for group in g], {value: [(1, 1, 1, Fraction(9, 10))] for value in "abcd"}
        ),
    ),
}
ALL = {**CASES, **OWN, **CERTAIN}


def criterion(case: str) -> dict[str, Any]:
    names = {**NAMES, "certain": "skyline", "certain_ck": "ck_safety"}
    name, parameters = names.get(case, case), dict(ALL[case][0])
    if name not in ("group_size", "k_anonymity"):
        parameters = {"sensitive": "d", **parameters}
    if case in DIVERSITY:
        parameters.setdefault("joint", False)
    return {name: parameters}


def together(cases: list[str]) -> oracle.Holds:
    return lambda groups, rows: all(ALL[case][1](groups, rows) for case in cases)


def wished(table: Table, cases: list[str], suppress: Fraction) -> dict[oracle.Levels, oracle.Node]:
    nodes = oracle.safe_nodes(table.rows, table.trees, SENSITIVE, together(cases), suppress)
    return {node.levels: node for node in oracle.minimal(nodes)}


def agree(recoding: dict[str, Any], nodes: dict[oracle.Levels, oracle.Node], metric: str) -> None:
    """The same minimal nodes with the same utility, and the best of them chosen."""
    told = {tuple(entry["levels"].values()): entry for entry in recoding["minimal"]}
    assert told.keys() == nodes.keys() and len(told) == len(recoding["minimal"])
    for levels, entry in told.items():
        node = nodes[levels]
        assert (entry["height"], entry["discernibility"]) == (node.height, node.discernibility)
        assert (entry["suppressed"], entry["groups"]) == (node.suppressed, len(node.released))
        assert entry["average_group"] == pytest.approx(float(node.average), rel=1e-12)
        assert entry["loss"] == pytest.approx(float(node.loss), rel=1e-12, abs=1e-12)
        assert entry["divergence"] == pytest.approx(node.divergence, rel=1e-9, abs=1e-9)
    key = "average_group" if metric == "average" else metric
    ranked = sorted(
        recoding["minimal"], key=lambda entry: (entry[key], entry["height"], list(entry["levels"].values()))
    )
    assert recoding["chosen"] == ranked[0]


def searched(table: Table, cases: list[str], counted: bool, suppress: Fraction, metric: str) -> Any:
    """What the search finds in the cube of a table; None if nothing is safe."""
    config, cube = (
        load(table.config(Path("/"), [criterion(case) for case in cases])),
        cube_of(table, counted),
    )
    values = dispatch.sensitive_values(config, cube)
    lattice = LatticeSearch(
        cube, bind(config.privacy, values, shared=True), metric, suppress, dispatch.released_values(config, values)
    )
    try:
        return lattice.run()
    except UnsafeError:
        return None


@pytest.mark.parametrize("case", [case for case in ALL if case not in ERRATIC])
def test_with_suppression_only_criteria_that_need_it_are_checked_on_every_node(case: str) -> None:
    """What prunes asks for fewer nodes than there are, and finds what asking for all of them finds."""
    table = random_table(29)
    told: list[dict[str, Any]] = []
    config = load(table.config(Path("/"), [criterion(case)]))
    cube = cube_of(table, True)
    values = dispatch.sensitive_values(config, cube)
    criteria = bind(config.privacy, values, shared=True)
    rebound, share = dispatch.released_values(config, values), Fraction(1, 5)
    lattice = LatticeSearch(cube, criteria, "loss", share, rebound, on_progress=lambda **facts: told.append(facts))
    safe = lattice._safe_nodes(None)
    checks = sum(facts["columns"] == len(lattice.columns) for facts in told)
    exhaustive = LatticeWalk(lattice._sets(True, None), lattice.judge, lambda **facts: None)
    assert np.array_equal(safe, exhaustive.checked(np.ones(safe.shape, bool)))
    assert (checks < safe.size) == (case in PRUNING), (checks, safe.size)


def assigned(found: Any, table: Table, node: oracle.Node) -> None:
    """Every row is in the group of its labels or suppressed, and the counts handed over are those of the groups."""
    recoding, domains = found.recoding, found.recoding.domains
    codes = np.array([[d.objects.index(row[d.column]) for d in domains] for row in table.rows], np.uint16).T.copy()
    groups = [None if g == recoding.groups else int(g) for g in recoding.assign(codes)]
    labels = {labels: number for number, labels in enumerate(sorted(node.released, key=_canonical))}
    levels = node.levels
    own = [tuple(t[row[n]][level] for (n, t), level in zip(table.trees.items(), levels)) for row in table.rows]
    assert groups == [labels.get(each) for each in own]
    counted: Counter[Any] = Counter()
    for batch in found.counts.batches():
        for *entry, people in zip(*(column.to_pylist() for column in batch.columns)):
            counted[tuple(entry)] += people
    values = [sorted({row[name] for row in table.rows}) for name in SENSITIVE]
    rows = zip(groups, table.rows)
    assert counted == Counter(
        (g, *(of.index(row[n]) for of, n in zip(values, SENSITIVE))) for g, row in rows if g is not None
    )
    exactly = Counter(tuple(row[name] for name in table.trees) for row in table.rows)
    assert found.unique == sum(n == 1 for n in exactly.values())


def _canonical(labels: tuple[Any, ...]) -> list[Any]:
    return [(label is not None, str(label or "").encode()) for label in labels]


@pytest.mark.parametrize("case", list(ALL))
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**9), share=st.sampled_from(["0", "0.05", "0.2", "0.5"]), metric=st.sampled_from(METRICS))
def test_all_minimal_nodes_are_found_for_every_criterion(case: str, seed: int, share: str, metric: str) -> None:
    table = random_table(seed)
    nodes = wished(table, [case], Fraction(share))
    for counted in (False, True):
        found = searched(table, [case], counted, Fraction(share), metric)
        assert (found is None) == (not nodes)
        if found is not None:
            agree(found.recoding.facts, nodes, metric)
            assigned(found, table, nodes[found.recoding.chosen])


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**9),
    cases=st.lists(st.sampled_from(sorted(ALL)), min_size=2, max_size=3, unique=True),
    share=st.sampled_from(["0", "0.2"]),
)
def test_criteria_hold_together(seed: int, cases: list[str], share: str) -> None:
    table = random_table(seed)
    nodes, found = wished(table, cases, Fraction(share)), searched(table, cases, True, Fraction(share), "loss")
    assert (found is None) == (not nodes)
    if found is not None:
        agree(found.recoding.facts, nodes, "loss")


@pytest.mark.parametrize("case", list(ALL))
@settings(max_examples=2, deadline=None)
@given(seed=st.integers(0, 10**9), share=st.sampled_from(["0", "0.2"]))
def test_a_run_releases_the_chosen_node(case: str, seed: int, share: str) -> None:
    table = random_table(seed)
    nodes = wished(table, [case], Fraction(share))
    with TemporaryDirectory() as folder:
        method = {"suppress": float(share), "exhaustive": case in ERRATIC}
        found = run(table, Path(folder), [criterion(case)], **method)
    assert (found is None) == (not nodes)
    if found is not None:
        agree(found.recoding, nodes, "loss")
        published(found, table, nodes[tuple(found.recoding["chosen"]["levels"].values())])


def published(found: Ran, table: Table, node: oracle.Node) -> None:
    names = list(table.trees)
    released = Counter(
        (labels, *(row[name] for name in SENSITIVE)) for labels, group in node.released.items() for row in group
    )
    assert Counter((tuple(row[n] for n in names), *(row[n] for n in SENSITIVE)) for row in found.released) == released
    assert found.told["suppressed"] == node.suppressed == found.recoding["suppressed"]
    assert found.told["rows"] == len(table.rows) - node.suppressed
    cells = oracle.grouped(table.rows, table.trees, node.levels).keys() - node.released.keys()
    assert sorted(map(str, map(list, cells))) == sorted(map(str, found.recoding["suppressed_cells"]))


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10**9), share=st.sampled_from([0.0, 0.2]))
def test_the_order_of_rows_and_how_often_they_come_change_nothing(seed: int, share: float) -> None:
    """Many copies of each row are counted, few are not; and then k asks as much when it is multiplied too."""
    table = random_table(seed)
    mixed = table.frame().take(random.Random(seed).sample(range(len(table.rows)), len(table.rows)))
    with TemporaryDirectory() as one, TemporaryDirectory() as other, TemporaryDirectory() as third:
        first = run(table, Path(one), [{"k_anonymity": {"k": 2}}], suppress=share)
        second = run(table, Path(other), [{"k_anonymity": {"k": 2}}], mixed, suppress=share)
        copied = run(table, Path(third), [{"k_anonymity": {"k": 100}}], pa.concat_tables([mixed] * 50), suppress=share)
    assert (first is None) == (second is None) == (copied is None)
    if first is not None and second is not None and copied is not None:
        assert first.bytes == second.bytes and first.recoding == second.recoding
        levels = [entry["levels"] for entry in first.recoding["minimal"]]
        assert [entry["levels"] for entry in copied.recoding["minimal"]] == levels


@pytest.mark.parametrize("case", ERRATIC)
def test_a_criterion_that_is_not_monotone_is_refused_with_the_reason(case: str, tmp_path: Path) -> None:
    table = Table([{"q0": "v0", "d": "a", "x": 1}], {"q0": {"v0": ("v0", "*")}}, {"q0": {"suppress": True}})
    config = table.config(tmp_path, [criterion(case)])
    with pytest.raises(ConfigError, match="not monotone: only with `exhaustive: true`"):
        refuse_unsupported(load(config), run=True)
    config["method"]["exhaustive"] = True
    refuse_unsupported(load(config), run=True)
