"""The lower bound of the loss: against its definition, below the best of all partitions of small tables, and the same
for every order of rows; which k it takes from the criteria."""

from __future__ import annotations

from collections.abc import Sequence
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
from anon.loss import lower_bound
from anon.loss.lower_bound import Nearest
from tests.conftest import House
from tests.oracles import lower_bound as oracle

COLUMNS = {"quasi_identifiers": {"age": {}, "zip": {"digits": 2}}, "sensitive": ["disease"], "individual": "row"}
NULLS = {"quasi_identifiers": "value", "sensitive": "value"}
Person = tuple[int | None, str | None]

ages, zips = st.sampled_from([None, 20, 21, 25, 40, -3]), st.sampled_from([None, "00", "01", "11", "22"])
people = st.lists(st.tuples(ages, zips), min_size=2, max_size=7)
STRUCTURED: list[list[Person]] = [
    [(20, "00")] * 5,  # one value
    [(20, "00"), (20, "00"), (40, "22"), (40, "22")],  # pairs
    [(20 + i, "00") for i in range(7)],  # exact ties
    [(20, "00"), (21, "01")],  # exactly k people
    [(None, None), (None, None), (20, "00"), (None, "11"), (20, None)],
]


def table(rows: Sequence[Person]) -> pa.Table:
    columns = {
        "age": pa.array([age for age, _ in rows], pa.int64()),
        "zip": pa.array([z for _, z in rows], pa.string()),
    }
    return pa.table(columns | {"disease": pa.array(["ab"[i % 2] for i in range(len(rows))])})


def measured(rows: pa.Table, release: Any = None, k: int = 2, **changes: Any) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        house = House(Path(folder))
        house.write(rows)
        asked = {"columns": COLUMNS, "nulls": NULLS, "privacy": [{"k_anonymity": {"k": k}}]} | changes
        return anon.utility(house.config(**asked), rows if release is None else release).to_dict()


def positions(rows: Sequence[Person]) -> list[list[Fraction]]:
    """Ages by their distances, null at the lowest; codes by their order, null first."""
    lowest = min((age for age, _ in rows if age is not None), default=0)
    own = [lowest if age is None else age for age, _ in rows]
    order = sorted({z for _, z in rows}, key=lambda z: (z is not None, z))
    return [list(both) for both in zip(scaled(own), scaled([order.index(z) for _, z in rows]))]


def scaled(numbers: list[int]) -> list[Fraction]:
    whole = max(numbers) - min(numbers)
    return [Fraction(each - min(numbers), whole or 1) for each in numbers]


def agrees(rows: list[Person], k: int) -> None:
    found, where = measured(table(rows), k=k)["lower_bound"], positions(rows)
    if len(rows) < k:
        assert found is None
        return
    expected = oracle.bound(where, k)
    assert found == {
        "all": pytest.approx(float(expected), abs=1e-12),
        "standard_error": 0,
        "k": k,
        "sample": len(rows),
        "individuals": len(rows),
    }
    assert expected <= oracle.least_loss(where, k)


@settings(max_examples=25, deadline=None)
@given(people, st.integers(1, 4))
def test_the_bound_is_its_definition_and_below_the_best_of_all_partitions(rows: list[Person], k: int) -> None:
    agrees(rows, k)


@pytest.mark.parametrize("rows", STRUCTURED)
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_structured_tables_are_bounded_too(rows: list[Person], k: int) -> None:
    agrees(rows, k)


def test_the_bound_is_reached_by_pairs_of_equal_people() -> None:
    assert measured(table(STRUCTURED[1]))["lower_bound"]["all"] == 0 == oracle.least_loss(positions(STRUCTURED[1]), 2)


SPREAD: list[Person] = [(i * i % 83, f"{i * 7 % 40:02}") for i in range(400)]


@pytest.mark.parametrize(
    "method",
    [
        {"kind": "partition"},
        {"kind": "partition", "prefer": "loss", "cuts": "ordered", "labels": "tight"},
        {"kind": "lattice", "suppress": 0.1},
    ],
)
def test_releases_lose_at_least_the_bound(house: House, method: dict[str, Any]) -> None:
    house.write(table(SPREAD))
    utility = house.run(columns=COLUMNS, method=method, privacy=[{"k_anonymity": {"k": 4}}]).report["utility"]
    assert 0 < utility["lower_bound"]["all"] <= utility["loss"]["all"]
    assert utility["lower_bound"]["sample"] == 400


def test_a_sample_does_not_depend_on_the_order_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = measured(table(SPREAD))["lower_bound"]["all"]
    monkeypatch.setattr(lower_bound, "SAMPLE", 60)
    shuffled = [SPREAD[i] for i in np.random.default_rng(3).permutation(len(SPREAD))]
    one, other = (measured(table(rows))["lower_bound"] for rows in (SPREAD, shuffled))
    assert one == other and one["sample"] == 60 and one["individuals"] == 400
    assert one["standard_error"] > 0 and abs(one["all"] - whole) < 4 * one["standard_error"]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(1, 4)), min_size=1, max_size=40),
    st.integers(1, 12),
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)
def test_the_nearest_people_are_those_of_a_sorted_list(records: Any, k: int, threads: int, chance: Any) -> None:
    """In batches of any size, with any number of people at each record."""
    where = np.array([record[:2] for record in records], float).T.copy()
    people = np.array([record[2] for record in records])
    nearest = Nearest.from_positions(where, k)
    cut = chance.randint(0, len(records))
    parts = [slice(0, cut), slice(cut, len(records))]
    nearest.add_all(((where[:, part].copy(), people[part].copy()) for part in parts), threads)
    for i in range(len(records)):
        away = np.repeat(np.abs(where - where[:, i : i + 1]).sum(axis=0), people)
        if people.sum() >= k:
            assert nearest.distance[i, 0] == np.sort(away)[k - 1]


@pytest.mark.parametrize(
    ("privacy", "k"),
    [
        ([{"k_anonymity": {"k": 3}}], 3),
        ([{"group_size": {"k": 4}}], 4),
        ([{"k_anonymity": {"k": 3}}, {"group_size": {"k": 4}}], 4),
        ([{"l_diversity": {"kind": "distinct", "l": 2}}], None),
    ],
)
def test_the_largest_k_of_the_criteria_counts(privacy: list[Any], k: int | None) -> None:
    found = measured(table(SPREAD), privacy=privacy)["lower_bound"]
    assert found is None if k is None else found["k"] == k


def test_groups_of_different_labels_have_no_bound(house: House) -> None:
    house.write(table(SPREAD))
    asked = {"columns": COLUMNS, "privacy": [{"group_size": {"k": 4}}]}
    exact = house.run(**asked, release__form="bucketized", release__labels="exact").report["utility"]
    assert exact["loss"]["all"] == 0 and exact["lower_bound"] is None
