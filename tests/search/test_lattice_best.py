"""`minimal: best` against `minimal: all` and against the definition of the lattice (tests/oracles/lattice.py): the same
chosen node, ties included, and nothing listed that is not minimal."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from anon.cli.app import app
from anon.config import Lattice, grammar, load
from anon.criteria import bind
from anon.errors import ConfigError, UnsafeError
from anon.recoding.levels import ColumnLevels
from anon.search import dispatch
from anon.search.lattice.best_first import bounds
from anon.search.lattice.search import LatticeSearch
from tests.conftest import House
from tests.helpers.lattice import SENSITIVE, Table, cube_of, random_table, run
from tests.oracles import lattice as oracle
from tests.search.test_lattice import ALL, ERRATIC, PRUNING, criterion, together, wished

METRICS = ("loss", "height")
SHARES = ("0", "0.05", "0.2", "0.5")


def search(table: Table, cases: list[str], share: str, metric: str, every: bool) -> tuple[Any, int]:
    """Return the facts that a search finds, None if nothing is safe, and the number of its checks."""
    with TemporaryDirectory() as folder:
        config = load(table.config(Path(folder), [criterion(case) for case in cases]))
    cube = cube_of(table, True)
    values, checks = dispatch.sensitive_values(config, cube), [0]
    lattice = LatticeSearch(
        cube, bind(config.privacy, values, shared=True), metric, Fraction(share),
        dispatch.released_values(config, values), on_progress=lambda **facts: checks.append(facts["checks"]),
        every=every,
    )  # fmt: skip
    try:
        return lattice.run().recoding, max(checks)
    except UnsafeError:
        return None, max(checks)


def compare(table: Table, cases: list[str], share: str, metric: str) -> None:
    nodes = wished(table, cases, Fraction(share))
    (best, _), (every, _) = (search(table, cases, share, metric, all_of_them) for all_of_them in (False, True))
    assert (best is None) == (every is None) == (not nodes)
    if best is None:
        return
    assert best.facts["chosen"] == every.facts["chosen"] and best.chosen == every.chosen
    assert best.facts["finer"] == every.facts["finer"]
    lowest = min(getattr(node, metric) for node in nodes.values())
    assert float(getattr(nodes[best.chosen], metric)) == pytest.approx(float(lowest), rel=1e-12, abs=1e-12)
    assert best.facts["chosen"] in best.facts["minimal"]
    assert [each for each in every.facts["minimal"] if each in best.facts["minimal"]] == best.facts["minimal"]
    assert best.safe is None and not best.facts["all_minimal"] and "all_minimal" not in every.facts


@pytest.mark.parametrize("case", list(ALL))
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**9), share=st.sampled_from(SHARES), metric=st.sampled_from(METRICS))
def test_the_best_is_chosen_for_every_criterion(case: str, seed: int, share: str, metric: str) -> None:
    compare(random_table(seed), [case], share, metric)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**9),
    cases=st.lists(st.sampled_from(sorted(ALL)), min_size=2, max_size=3, unique=True),
    share=st.sampled_from(SHARES),
    metric=st.sampled_from(METRICS),
)
def test_the_best_is_chosen_for_several_criteria(seed: int, cases: list[str], share: str, metric: str) -> None:
    compare(random_table(seed), cases, share, metric)


def balanced(columns: int, copies: int = 1, odd: int = 0) -> Table:
    """Every combination of values as often as the others, in columns that are alike, so that nodes tie exactly; and
    some people who are alone."""
    values = [f"v{i}" for i in range(4)]
    tree = {value: (value, f"g{i // 2}", f"h{i // 2}", "*") for i, value in enumerate(values)}  # h has one child each
    trees: dict[str, Any] = {f"q{at}": tree for at in range(columns)}
    cells = list(product(values, repeat=columns)) * copies + [("v0",) * columns] * odd
    rows = [dict(zip(trees, cell)) | {"d": "abcd"[at % 4], "x": at % 7} for at, cell in enumerate(cells)]
    return Table(rows, trees, {name: {"hierarchy": True} for name in trees})


def one_value(people: int) -> Table:
    """People who are all alike, in a column with one value and a hierarchy above it."""
    tree: dict[Any, Any] = {"v0": ("v0", "g0", "*")}
    rows = [{"q0": "v0", "q1": "v0", "d": "abcd"[at % 4], "x": at} for at in range(people)]
    return Table(rows, {"q0": tree, "q1": tree}, {"q0": {"hierarchy": True}, "q1": {"hierarchy": True}})


STRUCTURED = {
    "ties": balanced(3), "ties in two columns": balanced(2, 2), "ties and a crowd": balanced(2, 1, 9),
    "one value, k people": one_value(2), "one value, one person": one_value(1), "one value": one_value(40),
}  # fmt: skip


@pytest.mark.parametrize("name", STRUCTURED)
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("case", ["k_anonymity", "skyline", "distinct", "dissimilarity"])
def test_ties_and_extreme_tables_come_to_the_same_node(name: str, share: str, case: str) -> None:
    for metric in METRICS:
        compare(STRUCTURED[name], [case], share, metric)


def test_of_nodes_that_tie_the_first_by_its_levels_is_chosen() -> None:
    """Raising any one of three columns that are alike makes groups of two, and loses the same."""
    for metric in METRICS:
        best, _ = search(balanced(3), ["k_anonymity"], "0", metric, every=False)
        assert best.chosen == (0, 0, 1)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**9),
    case=st.sampled_from(["k_anonymity", "distinct", *ERRATIC]),
    share=st.sampled_from(SHARES),
)
def test_no_safe_node_costs_less_than_its_bound(seed: int, case: str, share: str) -> None:
    table = random_table(seed)
    cube = cube_of(table, True)
    columns = [ColumnLevels(domain) for domain in cube.domains]
    for metric in METRICS:
        found = bounds(columns, cube.by_code, metric)
        for node in oracle.safe_nodes(table.rows, table.trees, SENSITIVE, together([case]), Fraction(share)):
            assert Fraction(float(found[node.levels])) <= getattr(node, metric)
        assert all((np.diff(found, axis=axis) >= 0).all() for axis in range(found.ndim))


@pytest.mark.parametrize("case", PRUNING)
def test_criteria_that_prune_are_checked_on_few_nodes(case: str) -> None:
    table = balanced(4, 1, 9)
    checks = [search(table, [case], "0.05", "loss", every)[1] for every in (False, True)]
    assert checks[0] < checks[1]


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**9), share=st.sampled_from([0.0, 0.2]), case=st.sampled_from(["k_anonymity", *ERRATIC]))
def test_a_run_releases_the_same(seed: int, share: float, case: str) -> None:
    table, method = random_table(seed), {"suppress": share, "exhaustive": case in ERRATIC}
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        every = run(table, Path(one), [criterion(case)], **method)
        best = run(table, Path(other), [criterion(case)], minimal="best", **method)
    assert (every is None) == (best is None)
    if every is not None and best is not None:
        assert best.bytes == every.bytes and best.recoding["all_minimal"] is False
        for key in ("chosen", "finer", "suppressed", "suppressed_cells"):
            assert best.recoding[key] == every.recoding[key]


@pytest.mark.parametrize("metric", ["discernibility", "average", "divergence"])
def test_a_metric_without_a_bound_is_refused(metric: str, tmp_path: Path) -> None:
    config = balanced(1).config(tmp_path, [criterion("k_anonymity")], choose=metric, minimal="best")
    with pytest.raises(ConfigError) as refused:
        load(config)
    (problem,) = refused.value.problems
    assert "method.choose" in str(problem) and f"{metric} with minimal: best" in str(problem)
    assert "loss or height" in str(problem) and "minimal: all" in str(problem)
    config["method"]["minimal"] = "all"
    load(config)


def test_by_default_all_are_listed_in_small_lattices_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, nodes = balanced(1), grammar.LISTED
    config = table.config(tmp_path, [criterion("k_anonymity")])
    method = load(config).method
    assert isinstance(method, Lattice) and method.lists_all(nodes) and not method.lists_all(nodes + 1)
    for changes, listed in (({"minimal": "all"}, True), ({"choose": "divergence"}, True), ({"minimal": "best"}, False)):
        assert method.model_copy(update=changes).lists_all(nodes + 1) is listed
    with TemporaryDirectory() as folder:
        every = run(table, Path(folder), [criterion("k_anonymity")])
    monkeypatch.setattr(grammar, "LISTED", 1)
    best = run(table, tmp_path, [criterion("k_anonymity")])
    assert every is not None and best is not None
    assert best.bytes == every.bytes and best.recoding["all_minimal"] is False and "all_minimal" not in every.recoding


def test_report_and_explanation_say_that_not_all_are_listed(house: House) -> None:
    ages = [20 + i % 40 for i in range(120)]
    house.write({"age": ages, "zip": [f"{i % 7:05d}" for i in range(120)], "disease": ["flu", "cold", "flu"] * 40})
    folder = house.folder / "out-run"
    method = {"kind": "lattice", "suppress": 0.1}
    every = house.run(method=method).report["lattice"]
    explained = json.loads(CliRunner().invoke(app, ["explain", str(folder), "--json"]).stdout)
    page, said = (folder / "report.html").read_text(), CliRunner().invoke(app, ["explain", str(folder)]).stdout
    assert "All minimal combinations" in said and 'id="lattice-map"' in page
    result = house.run(method=method | {"minimal": "best"})
    best = result.report["lattice"]
    assert best["chosen"] == every["chosen"] and best["all_minimal"] is False
    assert "lattice_nodes" not in result.report
    told = json.loads(CliRunner().invoke(app, ["explain", str(folder), "--json"]).stdout)
    assert told["all_minimal"] is False and told["minimal"] == best["minimal"]
    now = told["relaxing"]["now"]
    assert now == {key: value for key, value in explained["relaxing"]["now"].items() if key != "safe_nodes"}
    page, said = (folder / "report.html").read_text(), CliRunner().invoke(app, ["explain", str(folder)]).stdout
    assert "Some minimal combinations" in said and "just below the released one" in said
    assert 'id="lattice-map"' not in page and "before it was certain of the best" in page
