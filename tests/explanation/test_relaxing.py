"""What relaxing a criterion would buy: `explain` against an enumeration of every cut, and against runs of the looser
configs."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anon
from anon.config import Equal, TCloseness, load
from anon.explanation.loosening_steps import next_setting
from anon.search import dispatch
from tests.conftest import House
from tests.helpers.lattice import cube_of, random_table

Row = dict[str, Any]
FREE: dict[str, Any] = {"age": {}, "zip": {}}


def people(seed: int, count: int = 60) -> list[Row]:
    """Everybody has another age, by which they are known in a release with exact labels."""
    draw = random.Random(seed)
    ages = draw.sample(range(200), count)
    return [{"age": age, "zip": draw.randrange(6), "disease": draw.choice("aaabbc")} for age in ages]


def columns(rows: list[Row]) -> pa.Table:
    return pa.table({name: [row[name] for row in rows] for name in rows[0]})


def relaxed(house: House, **changes: Any) -> dict[str, Any]:
    house.run(**changes)
    told: dict[str, Any] = anon.explain(house.folder / "out-run").to_dict()["relaxing"]
    assert told["measured"], told
    return told


HOLDS = {
    "group_size": lambda part, k: len(part) >= k,
    "l_diversity": lambda part, l: len({row["disease"] for row in part}) >= l,
    "alpha": lambda part, alpha: max(Counter(row["disease"] for row in part).values()) <= alpha * len(part),
}


def cuts(group: list[Row]) -> list[list[list[Row]]]:
    """Every cut of a group in two by a column."""
    found = []
    for column in ("age", "zip"):
        for cut in sorted({row[column] for row in group})[1:]:
            below = [row for row in group if row[column] < cut]
            found.append([below, [row for row in group if row not in below]])
    return found


@pytest.mark.parametrize("seed", range(4))
def test_refused_cuts_and_the_next_settings_are_those_of_an_enumeration(house: House, seed: int) -> None:
    rows, k, l = people(seed), 4, 2
    house.write(columns(rows))
    changes: dict[str, Any] = {
        "privacy": [{"group_size": {"k": k}}, {"l_diversity": {"kind": "distinct", "l": l}}],
        "columns__quasi_identifiers": FREE,
    }
    exact = {"path": "out", "run": "out-run", "form": "bucketized", "labels": "exact"}
    told = relaxed(house, **changes, release=exact)
    qi = pq.ParquetFile(house.folder / "out" / "qi.parquet").read().to_pylist()
    group_of = {row["age"]: row["group"] for row in qi}
    groups = [[row for row in rows if group_of[row["age"]] == g] for g in sorted(set(group_of.values()))]
    asked = [("group_size", k), ("l_diversity", l)]

    def refused_alone(group: list[Row], at: int) -> list[list[list[Row]]]:
        (own, bound), (other, limit) = asked[at], asked[1 - at]
        fine = [parts for parts in cuts(group) if all(HOLDS[other](part, limit) for part in parts)]
        return [parts for parts in fine if not all(HOLDS[own](part, bound) for part in parts)]

    for at, tried in enumerate(told["criteria"]):
        name, bound = asked[at]
        alone = [(group, refused_alone(group, at)) for group in groups]
        hit = [group for group, found in alone if found]
        count = sum(len(found) for _, found in alone)
        expected = {"groups": len(hit), "individuals": sum(map(len, hit)), "cuts": count, "looked_at": count}
        assert tried["refuses_alone"] == expected
        looser = (n for n in range(bound - 1, 0, -1) if any(
            all(HOLDS[name](part, n) for part in parts) for _, found in alone for parts in found))  # fmt: skip
        first = next(looser, None)
        assert [setting["to"] for setting in tried["settings"]] == ([] if first is None else [first])
        for setting in tried["settings"]:
            fits = [any(all(HOLDS[name](part, first) for part in parts) for parts in found) for _, found in alone]
            assert setting["splits"] == sum(fits)
    several = [
        group for group in groups
        if cuts(group) and not any(refused_alone(group, at) for at in (0, 1))
    ]  # fmt: skip
    assert told["refused_together"] == {"groups": len(several), "individuals": sum(map(len, several))}
    assert any(tried["settings"] for tried in told["criteria"])


@pytest.mark.parametrize("method", ["partition", "lattice"])
def test_what_is_bought_is_what_a_run_with_the_looser_config_comes_to(house: House, method: str) -> None:
    house.write(columns(people(7, 150)))
    age = {"intervals": [5, 20, 100]}
    changes: dict[str, Any] = {"columns__quasi_identifiers": {"age": age, "zip": {}}, "method": {"kind": method}}
    if method == "lattice":
        changes["columns__quasi_identifiers"]["zip"] = {"suppress": True}
    privacy = [{"k_anonymity": {"k": 8}}, {"alpha_k": {"alpha": 0.6, "k": 2}}]
    told = relaxed(house, privacy=privacy, **changes)
    tried = [(at, setting) for at, each in enumerate(told["criteria"]) for setting in each["settings"]]
    assert tried
    for at, setting in tried:
        name, _, number = setting["setting"].split(" ")[0], None, setting["to"]
        ((kind, spec),) = privacy[at].items()
        looser = [*privacy[:at], {kind: spec | {name: int(number) if name == "k" else number}}, *privacy[at + 1 :]]
        report = house.run(privacy=looser, **changes).report
        assert setting["groups"] == report["utility"]["groups"]
        assert setting["loss"] == pytest.approx(report["utility"]["loss"]["all"])
        if method == "lattice":
            assert setting["safe_nodes"] == sum(row["safe"] for row in report["lattice_nodes"]["heights"])
            assert setting["safe_nodes"] > told["now"]["safe_nodes"]
    for at, each in enumerate(told["criteria"]):
        report = house.run(privacy=[*privacy[:at], *privacy[at + 1 :]], **changes).report
        assert each["without"]["groups"] == report["utility"]["groups"]


@pytest.mark.parametrize("suppress", ["0", "0.1"])
def test_nothing_changes_in_a_lattice_before_the_next_setting(house: House, suppress: str) -> None:
    house.write(columns(people(3, 120)))
    changes: dict[str, Any] = {
        "columns__quasi_identifiers": {"age": {"intervals": [10, 50]}, "zip": {"suppress": True}},
        "method": {"kind": "lattice", "suppress": float(suppress)},
    }
    told = relaxed(house, privacy=[{"k_anonymity": {"k": 17}}], **changes)
    setting = told["criteria"][0]["settings"][0]
    safe = {}
    for k in (int(setting["to"]), int(setting["to"]) + 1):
        heights = house.run(privacy=[{"k_anonymity": {"k": k}}], **changes).report["lattice_nodes"]["heights"]
        safe[k] = sum(row["safe"] for row in heights)
    assert safe[int(setting["to"]) + 1] == told["now"]["safe_nodes"] < safe[int(setting["to"])]


def test_the_next_setting_is_the_first_that_changes_something_even_if_later_ones_do_not() -> None:
    (number,) = (
        each for each in TCloseness(t=Decimal("0.2"), distance=Equal(kind="equal")).numbers() if each.name == "t"
    )

    def changes(looser: Any) -> bool:
        return looser.t in (Decimal("0.33"), Decimal("0.34"), Decimal("0.9"))

    found = next_setting(number, changes, steady=False)
    assert found is not None and found.to == Decimal("0.33")


@pytest.mark.parametrize(
    ("criterion", "suppress", "steady"),
    [
        ({"t_closeness": {"t": 0.2, "distance": {"kind": "equal"}}}, 0, True),
        ({"t_closeness": {"t": 0.2, "distance": {"kind": "equal"}}}, 0.1, False),
        ({"skyline": {"points": [{"l": 0, "k": 0, "m": 1, "c": 0.9}]}}, 0.1, False),
        ({"skyline": {"points": [{"l": 0, "k": 0, "m": 0, "c": 0.9}]}}, 0.1, True),
        ({"ck_safety": {"c": 0.9, "k": 1}}, 0.1, False),
        ({"k_anonymity": {"k": 2}}, 0.1, True),
    ],
)
def test_steps_are_halved_only_where_looser_criteria_never_refuse_more(
    criterion: Any, suppress: float, steady: bool
) -> None:
    ((name, parameters),) = criterion.items()
    own = parameters if name == "k_anonymity" else {"sensitive": "d", **parameters}
    table = random_table(3)
    config = load(table.config(Path("/"), [{name: own}], suppress=suppress))
    cube = cube_of(table, True)
    values = dispatch.sensitive_values(config, cube)
    search = dispatch.lattice_search(config, cube, values, dispatch.budget_for(config, cube))
    assert search.judge.steady is steady


def test_a_point_for_everybody_is_relaxed_with_the_state_of_the_whole_release(house: House) -> None:
    house.write(columns(people(11, 90)))
    point = {"l": 1, "k": 2, "m": 1, "c": 0.97}
    changes: dict[str, Any] = {"columns__quasi_identifiers": FREE}
    told = relaxed(house, privacy=[{"skyline": {"points": [point]}}], **changes)
    (tried,) = told["criteria"]
    assert tried["refuses_alone"]["groups"] and tried["settings"] and tried["without"] is None
    for setting in tried["settings"]:
        name, to = setting["setting"][0], setting["to"]
        looser = [{"skyline": {"points": [point | {name: to if name == "c" else int(to)}]}}]
        assert setting["groups"] == house.run(privacy=looser, **changes).report["utility"]["groups"]


def test_explaining_leaves_everything_as_it_was(house: House) -> None:
    house.write(columns(people(5)))
    house.run(columns__quasi_identifiers=FREE)
    before = {path: path.read_bytes() for path in house.folder.rglob("*") if path.is_file()}
    anon.explain(house.folder / "out-run")
    assert before == {path: path.read_bytes() for path in house.folder.rglob("*") if path.is_file()}
    assert not house.leftovers()


@pytest.mark.parametrize("change", ["source", "frame", "reuse"])
def test_it_is_said_why_nothing_was_measured(house: House, change: str) -> None:
    table = columns(people(6))
    house.write(table)
    house.run(table if change == "frame" else None, columns__quasi_identifiers=FREE)
    if change == "source":
        house.write(columns(people(8)))
    if change == "reuse":
        earlier = house.folder / "earlier"
        (house.folder / "out-run").rename(earlier)
        house.run(method={"kind": "reuse", "run": str(earlier)}, columns__quasi_identifiers=FREE)
    told = anon.explain(house.folder / "out-run").to_dict()["relaxing"]
    words = {"source": "has changed", "frame": "table in memory", "reuse": "earlier run"}[change]
    assert not told["measured"] and words in told["why"]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"k_anonymity": {"k": 5}}, [("k", "4")]),
        ({"l_diversity": {"kind": "entropy", "l": 2.5}}, [("l", "2.4")]),
        ({"l_diversity": {"kind": "recursive", "c": 3, "l": 4}}, [("l", "3"), ("c", "3.1")]),
        ({"ck_safety": {"c": 0.85, "k": 2}}, [("c", "0.86"), ("k", "1")]),
        ({"t_closeness": {"t": 0.2, "distance": {"kind": "equal"}}}, [("t", "0.21")]),
        ({"alpha_k": {"alpha": 0.5, "k": 1}}, [("alpha", "0.51")]),
        ({"variance": {"minimum": 250000}}, [("minimum", "240000")]),
    ],
)
def test_numbers_are_loosened_one_step_at_a_time(house: House, written: Any, expected: list[tuple[str, str]]) -> None:
    (spec,) = load(house.config(privacy=[written])).privacy
    found = [next_setting(number, lambda looser: True) for number in spec.numbers()]
    assert [(each.number.name, each.to) for each in found if each] == [(n, Decimal(to)) for n, to in expected]
    assert all(each.spec != spec for each in found if each)
    assert [next_setting(number, lambda looser: False) for number in spec.numbers()] == [None] * len(found)


EQUAL = {"kind": "equal"}
NUMERIC = [
    {"l_diversity": {"kind": "entropy", "l": 3}},
    {"l_diversity": {"kind": "frequency", "l": 2.5}},
    {"l_diversity": {"kind": "recursive", "c": 1.5, "l": 3}},
    {"ck_safety": {"c": 0.8, "k": 1}},
    {"t_closeness": {"t": 0.3, "distance": EQUAL}},
    {"dissimilarity": {"epsilon": 1, "delta": 0.3, "k": 4, "distance": {"kind": "absolute"}}},
    {"epsilon_m": {"epsilon": 0, "m": 3}},
    {"k_e": {"k": 4, "e": 4}},
    {"variance": {"minimum": 2}},
]


@pytest.mark.parametrize("criterion", NUMERIC, ids=lambda each: "-".join(next(iter(each.items()))[0].split()))
def test_every_criterion_of_a_tree_of_cuts_can_be_relaxed(house: House, criterion: dict[str, Any]) -> None:
    draw = random.Random(2)
    rows = [row | {"disease": draw.randrange(7)} for row in people(2, 100)]
    house.write(columns(rows))
    changes: dict[str, Any] = {"columns__quasi_identifiers": FREE}
    (tried,) = relaxed(house, privacy=[criterion], **changes)["criteria"]
    assert tried["refuses_alone"]["groups"] and tried["settings"]
    ((name, spec),) = criterion.items()
    for setting in tried["settings"]:
        number = setting["setting"].split(" ")[0]
        to = setting["to"]
        looser = {name: spec | {number: int(to) if to == int(to) else to}}
        assert setting["groups"] == house.run(privacy=[looser], **changes).report["utility"]["groups"]
        assert setting["splits"] >= 1


def test_sets_of_values_and_several_sensitive_columns_are_relaxed_too(house: House) -> None:
    draw = random.Random(4)
    ages = [draw.randrange(60) for _ in range(80)]
    pairs = [(who, value) for who in range(80) for value in draw.sample("abcdef", draw.randrange(1, 4))]
    table = {"who": [who for who, _ in pairs], "age": [ages[who] for who, _ in pairs]}
    house.write(table | {"zip": [who % 5 for who, _ in pairs], "disease": [value for _, value in pairs]})
    point = {"skyline": {"points": [{"l": 0, "k": 1, "m": 1, "c": 0.8}]}}
    sets = {"columns__quasi_identifiers": FREE, "columns__individual": "who", "columns__multiplicity": "set"}
    release = {"path": "out", "run": "out-run", "form": "bucketized"}
    (tried,) = relaxed(house, privacy=[point], release=release, **sets)["criteria"]
    assert tried["settings"] and all(setting["groups"] for setting in tried["settings"])
    two = [row | {"job": draw.choice("xyz")} for row in people(9, 100)]
    house.write(columns(two))
    joint = [{"l_diversity": {"kind": "distinct", "l": 2, "sensitive": name}} for name in ("disease", "job")]
    both = {"columns__quasi_identifiers": FREE, "columns__sensitive": ["disease", "job"]}
    told = relaxed(house, privacy=joint, **both)["criteria"]
    without = [house.run(privacy=[spec], **both).report["utility"]["groups"] for spec in reversed(joint)]
    assert [tried["without"]["groups"] for tried in told] == without
