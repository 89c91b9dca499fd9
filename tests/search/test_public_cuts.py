"""`prefer: public`: cuts that depend on the cell, the config and the distribution of each column, and on no group. That
the search cuts as its naive definition does is in test_partition."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anon
from anon.search.partition.public import CellTree
from tests.conftest import House
from tests.search.test_tight_labels import COLUMNS, table

PUBLIC = {"kind": "partition", "prefer": "public"}
PRIVACY = [{"k_anonymity": {"k": 4}}]


def released(house: House, rows: pa.Table, **changes: Any) -> pa.Table:
    house.write(rows)
    house.run(columns=COLUMNS, privacy=PRIVACY, **({"method": PUBLIC} | changes))
    return pyarrow.parquet.read_table(house.folder / "out" / "release.parquet")


def halved(people: list[int], low: int, high: int) -> tuple[int, int, int]:
    """The smallest public cell that holds low..high, and its cut, by halving the column."""
    first, last = 0, len(people) - 1
    while first < last:
        below = {c: abs(sum(people[first:c]) - sum(people[c : last + 1])) for c in range(first + 1, last + 1)}
        cut = min(below, key=below.__getitem__)
        if low < cut <= high:
            return first, last, cut
        first, last = (cut, last) if low >= cut else (first, cut - 1)
    return first, last, first


@given(st.data(), st.lists(st.integers(0, 9), min_size=1, max_size=40))
def test_cells_are_those_of_halving_the_column(data: Any, people: list[int]) -> None:
    codes = st.integers(0, len(people) - 1)
    pairs = [sorted(pair) for pair in data.draw(st.lists(st.tuples(codes, codes), min_size=1, max_size=9))]
    low, high = np.array(pairs).T
    found = [array.tolist() for array in CellTree.from_people(np.array(people)).cover(low, high)]
    assert [*zip(*found)] == [halved(people, a, b) for a, b in pairs]


@pytest.mark.parametrize("people", [[1], [0, 0], [5, 0, 0, 0], [1] * 64, [2**40] * 3, [10**6, *[1] * 50]])
def test_cells_of_even_empty_and_skewed_columns(people: list[int]) -> None:
    tree, last = CellTree.from_people(np.array(people)), len(people) - 1
    for low in range(len(people)):
        for high in (low, max((low + last) // 2, low), last):
            found = [int(each[0]) for each in tree.cover(np.array([low]), np.array([high]))]
            assert tuple(found) == halved(people, low, high)


def test_columns_that_are_all_split_by_hierarchies_are_split_as_by_widest(house: House) -> None:
    columns = COLUMNS | {"quasi_identifiers": {"zip": {"digits": 3}, "ward": {"suppress": True}}}
    house.write(table())
    made = []
    for prefer in ("widest", "public"):
        house.run(columns=columns, privacy=PRIVACY, method={"kind": "partition", "prefer": prefer})
        made.append((house.folder / "out" / "release.parquet").read_bytes())
    assert made[0] == made[1]


def test_labels_are_public_cells_or_tight(house: House) -> None:
    rows = table()
    cells, tight = released(house, rows), released(house, rows, method=PUBLIC | {"labels": "tight"})
    assert len(cells.group_by(["age", "height", "ward", "zip"]).aggregate([])) == len(
        tight.group_by(["age", "height", "ward", "zip"]).aggregate([])
    )
    config = house.config(columns=COLUMNS, privacy=PRIVACY)
    loss = [anon.utility(config, each).to_dict()["loss"]["all"] for each in (cells, tight)]
    assert loss[1] <= loss[0]
    assert anon.check(config, cells).to_dict()["safe"]


def test_the_recoding_says_that_labels_are_public_cells(house: House) -> None:
    released(house, table())
    recoding = json.loads((house.folder / "out-run" / "recoding.json").read_text())
    assert recoding["labels"] == "public"
    assert all(set(node["labels"]) == {"age", "height", "ward", "zip"} for node in recoding["nodes"] if "group" in node)


def test_a_reused_recoding_publishes_the_cells_between_its_cuts(house: House) -> None:
    rows = table()
    before = released(house, rows)
    method = {"kind": "reuse", "run": str(house.folder / "out-run")}
    release = {"path": "again", "run": "again-run"}
    house.run(columns=COLUMNS, privacy=PRIVACY, method=method, release=release)
    after = pyarrow.parquet.read_table(house.folder / "again" / "release.parquet")
    names = ["age", "height", "ward", "zip"]
    assert len(before.group_by(names).aggregate([])) == len(after.group_by(names).aggregate([]))


def test_explain_tries_one_cut_of_each_column(house: House) -> None:
    released(house, table(60))
    facts = anon.explain(house.folder / "out-run").to_dict()["relaxing"]["criteria"][0]["refuses_alone"]
    assert 0 < facts["groups"] <= facts["cuts"] <= 4 * facts["groups"]
