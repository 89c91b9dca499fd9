"""Every criterion of the grammar through `check` and `run`, against its oracle: a grouped table is judged as the oracle
judges its groups, and a release that was found satisfies the oracle."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anon
from anon.config import CRITERIA, load
from anon.config.support import SUPPORT, markdown, refuse_unsupported
from anon.criteria import Criterion
from anon.errors import ConfigError, UnsafeError
from tests import ROOT
from tests.oracles import ck_safety, delta_disclosure, l_diversity, proximity, robustness

Row = dict[str, Any]
Holds = Callable[[list[list[Row]], list[Row]], bool]  # the groups, and the whole table


def each(condition: Callable[[list[Any]], bool], column: str = "d") -> Holds:
    return lambda groups, table: all(condition([row[column] for row in group]) for group in groups)


def jointly(condition: Callable[[list[Any]], bool], column: str, other: str) -> Holds:
    """Definition 4.6: the other sensitive column joins the quasi-identifier."""

    def holds(groups: list[list[Row]], table: list[Row]) -> bool:
        parts = defaultdict(list)
        for number, group in enumerate(groups):
            for row in group:
                parts[number, row[other]].append(row[column])
        return all(condition(values) for values in parts.values())

    return holds


def half() -> Fraction:
    return Fraction(1, 2)


CASES: dict[str, tuple[dict[str, Any], Holds]] = {
    "group_size": ({"k": 3}, each(lambda v: len(v) >= 3)),
    "distinct": ({"kind": "distinct", "l": 2}, each(lambda v: l_diversity.distinct(v) >= 2)),
    "frequency": ({"kind": "frequency", "l": 1.5}, each(lambda v: l_diversity.largest_share(v) <= Fraction(2, 3))),
    "entropy": ({"kind": "entropy", "l": 2}, each(lambda v: l_diversity.entropy_reaches(v, Fraction(2)))),
    "recursive": ({"kind": "recursive", "c": 2, "l": 2}, each(lambda v: l_diversity.recursive(v, Fraction(2), 2))),
    "dont_care": (
        {"kind": "recursive", "c": 1, "l": 2, "dont_care": ["a"], "absent": "ok"},
        each(lambda v: l_diversity.recursive(v, Fraction(1), 2, ["a"])),
    ),
    "keep_possible": (
        {"kind": "distinct", "l": 1, "keep_possible": {"values": ["a"], "percent": 10}, "absent": "ok"},
        each(lambda v: v.count("a") * 10 >= len(v)),
    ),
    "ck_safety": ({"c": 0.9, "k": 1}, lambda g, t: disclosure(g, 1) < Fraction(9, 10)),
    "alpha_k": ({"alpha": 0.6, "k": 2}, each(lambda v: proximity.largest_share(v) <= Fraction(3, 5) and len(v) >= 2)),
    "dissimilarity": (
        {"epsilon": 0, "delta": 0.5, "k": 2, "distance": {"kind": "equal"}},
        each(lambda v: len(v) >= 2 and proximity.risk(v, Fraction(0), proximity.equal) <= half()),
    ),
    "absolute": (
        {"epsilon": 1, "delta": 0.5, "k": 2, "distance": {"kind": "absolute"}, "sensitive": "x"},
        each(lambda v: len(v) >= 2 and proximity.risk(v, Fraction(1), proximity.absolute) <= half(), "x"),
    ),
    "t_closeness": (
        {"t": 0.4, "distance": {"kind": "equal"}},
        lambda g, t: all(work(group, t) <= Fraction(2, 5) for group in g),
    ),
    "delta_disclosure": (
        {"delta": 1.2},
        lambda g, t: all(delta_disclosure.holds(column(group), column(t), Fraction(6, 5)) for group in g),
    ),
    "epsilon_m": (
        {"epsilon": 1, "m": 2, "sensitive": "x"},
        each(lambda v: proximity.neighbour_share(v, Fraction(1)) <= half(), "x"),
    ),
    "k_e": ({"k": 2, "e": 3, "sensitive": "x"}, each(lambda v: len(set(v)) >= 2 and proximity.width(v) >= 3, "x")),
    "variance": ({"minimum": 1.5, "sensitive": "x"}, each(lambda v: proximity.variance(v) >= Fraction(3, 2), "x")),
    "joint": (
        {"kind": "distinct", "l": 2, "joint": True},
        jointly(lambda v: l_diversity.distinct(v) >= 2, "d", "x"),
    ),
}
DIVERSITY = ("distinct", "frequency", "entropy", "recursive", "dont_care", "keep_possible", "joint")
NAMES = dict.fromkeys(DIVERSITY, "l_diversity") | {"absolute": "dissimilarity"}


def disclosure(groups: list[list[Row]], k: int) -> Fraction:
    return ck_safety.disclosure([ck_safety.histogram([row["d"] for row in group]) for group in groups], k)


def column(table: list[Row]) -> list[Any]:
    return [row["d"] for row in table]


def work(group: list[Row], table: list[Row]) -> Fraction:
    return proximity.least_work([row["d"] for row in group], [row["d"] for row in table], proximity.equal)


rows = st.lists(
    st.fixed_dictionaries(
        {"q": st.integers(0, 5), "r": st.integers(0, 2), "d": st.sampled_from("aabc"), "x": st.integers(0, 6)}
    ),
    min_size=3,
    max_size=40,
)


def config(folder: str, case: str) -> dict[str, Any]:
    name, parameters = NAMES.get(case, case), CASES[case][0]
    if name != "group_size":
        parameters = {"sensitive": "d", "joint": False, **parameters}
        if name != "l_diversity":
            del parameters["joint"]
    return {
        "source": {"path": f"{folder}/none.parquet"},
        "columns": {
            "individual": "row",
            "quasi_identifiers": {"q": {}, "r": {"suppress": True}},
            "sensitive": {"d": {}, "x": {"as_categories": True}},
        },
        "privacy": [{name: parameters}],
        "release": {"path": f"{folder}/out"},
    }


def grouped(table: list[Row]) -> list[list[Row]]:
    classes: dict[Any, list[Row]] = defaultdict(list)
    for row in table:
        classes[row["q"], row["r"]].append(row)
    return list(classes.values())


@settings(max_examples=40, deadline=None)
@given(table=rows)
def test_check_judges_as_the_oracle_does(table: list[Row]) -> None:
    """By all criteria at once, each of which is told for itself."""
    with TemporaryDirectory() as folder:
        privacy = [criterion for case in CASES for criterion in config(folder, case)["privacy"]]
        wanted = config(folder, "group_size") | {"privacy": privacy}
        told = anon.check(wanted, pa.Table.from_pylist(table)).to_dict()
    groups = grouped(table)
    expected = {case: holds(groups, table) for case, (_, holds) in CASES.items()}
    assert dict(zip(CASES, (criterion["safe"] for criterion in told["criteria"]), strict=True)) == expected
    assert told["safe"] == all(expected.values())
    assert told["groups"] == len(groups)
    assert all(0 <= criterion["worst_group"] < len(groups) for criterion in told["criteria"])


@pytest.mark.parametrize("case", list(CASES))
def test_a_criterion_alone_decides_whether_a_table_is_safe(case: str) -> None:
    """Two groups that satisfy all of them, and two that fail all of them."""
    good = [{"q": q, "r": 0, "d": "abcabc"[n], "x": n} for q in (0, 1) for n in range(6)]
    if case == "joint":  # every value of the other column with several of this one
        good = [{"q": q, "r": 0, "d": d, "x": x} for q in (0, 1) for d in "ab" for x in (0, 6)]
    bad = [{"q": 0, "r": 0, "d": d, "x": 3} for d in "bb"] + [{"q": 1, "r": 0, "d": d, "x": 4} for d in "cc"]
    for table in (good, bad):
        told = anon.check(config(".", case), pa.Table.from_pylist(table)).to_dict()
        assert told["safe"] == CASES[case][1](grouped(table), table) == (table is good)


@pytest.mark.parametrize("case", list(CASES))
@settings(max_examples=6, deadline=None)
@given(table=rows)
def test_a_release_satisfies_the_oracle_and_none_is_missed_where_the_criterion_is_monotone(
    case: str, table: list[Row]
) -> None:
    with TemporaryDirectory() as folder:
        try:
            anon.run(config(folder, case), pa.Table.from_pylist(table))
        except UnsafeError as error:
            assert "no safe release was found" in str(error) or not CASES[case][1]([table], table)
            return
        published = pq.read_table(Path(folder) / "out" / "release.parquet").to_pylist()
    assert CASES[case][1](grouped(published), published)
    assert len(published) == len(table)


def test_a_criterion_that_is_not_monotone_is_searched_for_below_an_unsafe_table(tmp_path: Path) -> None:
    """Four people a, a, b, b fail (0, 1)-dissimilarity together, but not in two groups of a and b."""
    table = [{"q": q, "r": 0, "d": d, "x": 0} for q in (0, 1) for d in "ab"]
    wanted = config(str(tmp_path), "dissimilarity")
    wanted["privacy"][0]["dissimilarity"]["delta"] = 1
    assert anon.run(wanted, pa.Table.from_pylist(table)).to_dict()["groups"] == 2


def test_a_split_that_makes_a_group_too_small_is_passed_over_below_an_unsafe_table(tmp_path: Path) -> None:
    """The four people of the test above fail together, and r, as wide as q and tried first, would set one apart."""
    table = [{"q": q, "r": int(q == 0 and d == "a"), "d": d, "x": 0} for q in (0, 1) for d in "ab"]
    wanted = config(str(tmp_path), "dissimilarity")
    wanted["privacy"][0]["dissimilarity"]["delta"] = 1
    wanted["columns"]["quasi_identifiers"] = {"r": {"suppress": True}, "q": {}}
    assert anon.run(wanted, pa.Table.from_pylist(table)).to_dict()["groups"] == 2


@pytest.mark.parametrize(
    ("name", "parameters", "code"),
    [
        ("l_diversity", {"kind": "distinct", "l": 1}, "l_diversity"),
        ("t_closeness", {"t": 1, "distance": {"kind": "equal"}}, "t_closeness"),
        ("epsilon_m", {"epsilon": 1, "m": 1, "sensitive": "x"}, "epsilon_m"),
        ("variance", {"minimum": 0, "sensitive": "x"}, "variance"),
    ],
)
def test_a_vacuous_criterion_is_told_and_alone_refused(
    name: str, parameters: dict[str, Any], code: str, tmp_path: Path
) -> None:
    table = pa.Table.from_pylist([{"q": i, "r": 0, "d": "a", "x": i} for i in range(9)])
    wanted = config(str(tmp_path), "group_size") | {"privacy": [{name: {"sensitive": "d", **parameters}}]}
    told = anon.check(wanted, table).to_dict()["warnings"]
    assert [code in warning["text"] for warning in told if warning["code"] == "vacuous_criterion"] == [True]
    with pytest.raises(ConfigError, match="always true"):
        anon.run(wanted, table)


def test_a_criterion_for_numbers_refuses_a_column_of_words(tmp_path: Path) -> None:
    table = pa.Table.from_pylist([{"q": i, "r": 0, "d": "secret", "x": i} for i in range(9)])
    wanted = config(str(tmp_path), "variance")
    wanted["privacy"][0]["variance"]["sensitive"] = "d"
    with pytest.raises(ConfigError, match="a column of numbers") as error:
        anon.check(wanted, table)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("name", list(CRITERIA))
def test_a_criterion_is_a_module_of_its_name_in_the_config_and_one_with_its_mathematics(name: str) -> None:
    spec = CRITERIA[name]
    assert spec.__module__ == f"anon.config.criteria.{name}"
    bound = getattr(import_module(f"anon.criteria.{name}"), spec.__name__)
    assert issubclass(bound, Criterion) and bound.name == name and "bind" not in bound.__abstractmethods__


def test_the_table_of_what_works_with_what_is_in_the_docs() -> None:
    assert set(SUPPORT) == set(CRITERIA)
    assert markdown() in (ROOT / "docs" / "criteria.md").read_text()


ASKED: dict[str, dict[str, Any]] = {
    "k_anonymity": {"k": 2},
    "skyline": {"points": [{"l": 0, "k": 0, "m": 0, "c": 0.5}]},
    "r_robustness": {"r": 2, "priors": [{"estimate": ["r"]}]},
    "l_diversity": CASES["distinct"][0],
    "withstands": {"attacks": ["homogeneity"]},
} | {name: asked for name, (asked, _) in CASES.items() if name in SUPPORT}  # fmt: skip
METHODS: list[dict[str, Any]] = [
    *({"kind": kind} for kind in ("partition", "lattice", "merge", "colour")),
    {"kind": "lattice", "exhaustive": True},
]


# differential_privacy refuses sensitive columns: tests/release/test_private_release.py
AIMED = {"merge": "r_robustness", "colour": "dissimilarity"}  # what these methods want among the criteria


@pytest.mark.parametrize("method", METHODS, ids=lambda method: "-".join(map(str, method.values())))
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize(
    "name", [name for name in SUPPORT if name != "differential_privacy"]
)  # has no sensitive columns
def test_the_table_of_what_works_with_what_decides_what_a_config_may_ask_for(
    tmp_path: Path, name: str, several: bool, method: dict[str, Any]
) -> None:
    names = list(dict.fromkeys([name, AIMED.get(method["kind"], name)]))
    columns = [{} if each in ("k_anonymity", "group_size", "withstands") else {"sensitive": "x"} for each in names]
    privacy = [{each: ASKED[each] | column} for each, column in zip(names, columns)]
    wanted = config(str(tmp_path), "group_size") | {"privacy": privacy, "method": method}
    wanted["columns"]["sensitive"] = {"x": {"as_categories": True}}
    exact = method["kind"] in ("merge", "colour")  # they have no labels, and no other form
    if several:
        wanted["columns"] |= {"individual": "who", "multiplicity": "set"}
    if several or exact:
        wanted["release"] |= {"form": "bucketized", "labels": "exact" if exact else "generalized"}
    told, exhaustive = [SUPPORT[each] for each in names], method.get("exhaustive", False)
    words = [getattr(each, method["kind"]) for each in told]
    words += [each.several_values for each in told if several]
    only_exhaustive = method["kind"] == "lattice" and any("exhaustive" in word for word in words)
    allowed = all(word.startswith(("enforced", "checked")) or "exhaustive" in word for word in words)
    allowed = allowed and not (exact and name == "k_anonymity")
    try:
        refuse_unsupported(load(wanted), run=True)
        refused = False
    except ConfigError as error:
        refused = True
        assert error.problems[0].path in [f"privacy[{at}].{each}" for at, each in enumerate(names)]
    assert refused == (not allowed or (only_exhaustive and not exhaustive))


def robust(folder: str, r: Any) -> dict[str, Any]:
    wanted = config(folder, "group_size")
    wanted["columns"]["quasi_identifiers"] = {"q": {}}
    wanted["columns"]["keep"] = ["r"]
    wanted["privacy"] = [{"r_robustness": {"r": r, "sensitive": "d", "priors": [{"file": f"{folder}/prior.csv"}]}}]
    return wanted


PRIOR = {
    0: {"a": "0.5", "b": "0.3", "c": "0.2"},
    1: {"a": "0.1", "b": "0.6", "c": "0.3"},
    2: {"a": "0.2", "b": "0.2", "c": "0.6"},
}
small = st.lists(
    st.fixed_dictionaries(
        {"q": st.integers(0, 1), "r": st.integers(0, 2), "d": st.sampled_from("abc"), "x": st.integers(0, 1)}
    ),
    min_size=3,
    max_size=9,
)


@settings(max_examples=40, deadline=None)
@given(table=small, r=st.sampled_from([1.1, 1.5, 2, 3]))
def test_check_tells_the_posterior_of_an_adversary_with_a_prior(table: list[Row], r: float) -> None:
    lines = ["r,value,p", *(f"{sig},{value},{p}" for sig, row in PRIOR.items() for value, p in row.items())]
    groups = defaultdict(list)
    for row in table:
        groups[row["q"]].append(row)
    worst = max(
        robustness.largest(
            [tuple(Fraction(PRIOR[row["r"]][value]) for value in "abc") for row in group],
            ["abc".index(row["d"]) for row in group],
        )
        for group in groups.values()
    )
    with TemporaryDirectory() as folder:
        (Path(folder) / "prior.csv").write_text("\n".join(lines))
        told = anon.check(robust(folder, r), pa.Table.from_pylist(table)).to_dict()
    assert told["safe"] == (worst <= 1 / Fraction(str(r)) and min(map(len, groups.values())) >= r)
    if told["criteria"][0]["exact"]:
        assert told["criteria"][0]["figure"] == pytest.approx(float(worst))


def test_a_prior_may_be_estimated_or_given_instead_and_a_run_says_what_else_to_do(tmp_path: Path) -> None:
    table = pa.Table.from_pylist([{"q": i % 2, "r": i % 3, "d": "abc"[i % 3], "x": 0} for i in range(60)])
    wanted = robust(str(tmp_path), 1.01)
    wanted["privacy"][0]["r_robustness"]["priors"] = [{"estimate": ["r"], "smoothing": 1}]
    estimated = anon.check(wanted, table).to_dict()["criteria"][0]["figure"]
    (tmp_path / "even.csv").write_text(
        "r,value,p\n" + "\n".join(f"{s},{v},{p}" for s in range(3) for v, p in zip("abc", (0.4, 0.3, 0.3)))
    )
    given_instead = anon.check(wanted, table, prior=tmp_path / "even.csv").to_dict()["criteria"][0]["figure"]
    assert given_instead == pytest.approx(1 / 3)
    assert estimated > 0.8
    with pytest.raises(ConfigError, match="use merge"):
        anon.run(wanted, table)


def test_a_prior_that_lacks_a_signature_is_refused(tmp_path: Path) -> None:
    table = pa.Table.from_pylist([{"q": 0, "r": i, "d": "a", "x": 0} for i in range(3)])
    (tmp_path / "prior.csv").write_text("r,value,p\n0,a,0.5\n1,a,0.5\n")
    with pytest.raises(ConfigError, match="no line for 1 of the 3 combinations"):
        anon.check(robust(str(tmp_path), 2), table)
