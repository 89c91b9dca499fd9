"""Hierarchies that are cut anywhere in the order of their leaves."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anon
from anon.criteria import KAnonymity
from anon.cube import Domain
from anon.errors import ConfigError
from anon.hierarchy import HierarchyTree
from anon.search.partition import search as engine
from anon.verify.content.labels import HierarchyLabels
from tests.conftest import House
from tests.helpers.cubes import Table
from tests.oracles import partition as oracle
from tests.search.test_partition import budget, leaves, tables

PLACES = {"North": {"Coast": ["n|1", "n2"], "Hills": ["n3"]}, "South": {"Plain": ["s1", "s{2}", "s3"]}}
COLUMNS: dict[str, Any] = {
    "individual": "row",
    "quasi_identifiers": {"age": {}, "place": {"hierarchy": "place.csv"}, "zip": {"digits": 2}},
    "sensitive": ["disease"],
}
METHOD = {"kind": "partition", "cuts": "ordered", "labels": "tight", "prefer": "loss"}
PRIVACY = [{"k_anonymity": {"k": 3}}]


def rows() -> list[list[str]]:
    return [[leaf, area, side, "*"] for side, areas in PLACES.items() for area in areas for leaf in areas[area]]


def domain(null: bool) -> Domain:
    known = [row[0] for row in rows()]
    tree, _ = HierarchyTree.build([tuple(row[1:]) for row in rows()], known, null)
    return Domain("place", "text", pa.array(known), True, null, tree, ordered=True)


@pytest.mark.parametrize("null", [False, True])
def test_a_label_lists_the_fewest_nodes_and_is_read_back(null: bool) -> None:
    column = domain(null)
    listed: list[list[str | None]] = [[None, None, None, "*"]] if null else []
    grammar = HierarchyLabels.from_rows([*listed, *rows()], ordered=True)
    tree = column.tree
    assert tree is not None
    labels = set()
    for low, high in combinations(range(column.size + 1), 2):
        label = column.label(low, high - 1)
        labels.add(label)
        assert column.cell(label) == (low, high - 1)
        if label != "*":
            assert grammar.range_of(label) == (low, high - 1)
        inside = [n for n in range(len(tree.label)) if low <= tree.low[n] and tree.high[n] < high]
        assert len(column.nodes(low, high - 1)) == fewest(tree, inside, set(range(low, high)))
    assert len(labels) == column.size * (column.size + 1) // 2


def fewest(tree: HierarchyTree, nodes: list[int], codes: set[int]) -> int:
    for count in range(1, len(codes) + 1):
        for some in combinations(nodes, count):
            if set().union(*(range(tree.low[n], tree.high[n] + 1) for n in some)) == codes:
                return count
    raise AssertionError


def test_a_list_that_leaves_a_value_out_is_no_label() -> None:
    for label in (r"{n\|1|n3}", "{Coast|Plain}", "{}", "{nowhere}", "null|Coast"):
        with pytest.raises(KeyError):
            domain(False).cell(label)


@settings(max_examples=150, deadline=None)
@given(tables(), st.integers(1, 3), st.sampled_from(["widest", "loss"]), st.sampled_from([10**6, 5]), st.booleans())
def test_ordered_columns_are_cut_as_free_columns_of_their_leaves(
    table: Table, k: int, prefer: Any, block: int, tight: bool
) -> None:
    free = [oracle.Free([float(at) for at in range(column.whole()[1] + 1)]) for column in table.columns]
    trees = [isinstance(column, oracle.Hierarchy) for column in table.columns]
    free = [own if treed else column for own, treed, column in zip(free, trees, table.columns)]  # type: ignore[misc]
    wished = oracle.partition(
        table.rows, free, lambda groups: all(len(group) >= k for group in groups), prefer, block, tight=tight, least=k
    )
    if wished is None:
        return
    cube = table.cube()
    cube.domains[:] = [replace(each, ordered=each.tree is not None) for each in cube.domains]
    found = engine.PartitionSearch(cube, [KAnonymity(k)], prefer, budget(table, block), tight=tight).run().recoding
    uncut = [(tuple(None if c == o.whole() else c for c, o in zip(cells, free)), own) for cells, own in wished]
    assert leaves(table, found) == sorted(uncut, key=lambda leaf: [cell or (-1, -1) for cell in leaf[0]])


def people(count: int = 200, seed: int = 3) -> pa.Table:
    rng = random.Random(seed)
    places = [row[0] for row in rows()]
    made = [
        {
            "age": rng.randint(20, 40),
            "place": rng.choice([None, *places, places[0]]),
            "zip": f"{rng.randint(0, 3)}{rng.randint(0, 3)}",
            "disease": rng.choice(["Flu", "HIV"]),
        }
        for _ in range(count)
    ]
    return pa.Table.from_pylist(made)


def made(house: House, table: pa.Table, **method: Any) -> pa.Table:
    (house.folder / "place.csv").write_text("\n".join(";".join(row) for row in rows()))
    house.write(table)
    columns = COLUMNS | {"quasi_identifiers": COLUMNS["quasi_identifiers"] | {
        "place": {"hierarchy": str(house.folder / "place.csv")}}}  # fmt: skip
    config = house.config(columns=columns, privacy=PRIVACY, method=METHOD | method)
    anon.run(config, overwrite=True)
    released = pyarrow.parquet.read_table(house.folder / "out" / "release.parquet")
    assert anon.check(config, released).to_dict()["safe"]
    utility = anon.utility(config, released).to_dict()
    assert utility["suppressed"] == 0
    return released


@pytest.mark.parametrize("labels", ["cells", "tight"])
@pytest.mark.parametrize("prefer", ["widest", "loss", "balanced"])
def test_a_release_in_order_is_verified_checked_and_measured(house: House, labels: str, prefer: str) -> None:
    released = made(house, people(), labels=labels, prefer=prefer)
    if prefer == "loss":
        assert any(label and "|" in label for label in released["place"].unique().to_pylist())


def test_the_recoding_of_a_release_in_order_can_be_reused(house: House) -> None:
    released = made(house, people(), labels="cells")
    columns = COLUMNS | {"quasi_identifiers": COLUMNS["quasi_identifiers"] | {
        "place": {"hierarchy": str(house.folder / "place.csv")}}}  # fmt: skip
    method = {"kind": "reuse", "run": str(house.folder / "out-run")}
    config = house.config(columns=columns, privacy=PRIVACY, method=method)
    config["release"] = {"path": str(house.folder / "again"), "run": str(house.folder / "again-run")}
    anon.run(config)
    assert pyarrow.parquet.read_table(house.folder / "again" / "release.parquet") == released
    shuffled = people().take(pa.array(np.random.default_rng(1).permutation(200)))
    anon.run(config, shuffled, overwrite=True)
    assert pyarrow.parquet.read_table(house.folder / "again" / "release.parquet") == released


@pytest.mark.parametrize("kind", [str, int])
def test_a_value_that_the_order_of_a_reused_recoding_does_not_have_is_refused(house: House, kind: type) -> None:
    lines = [f"{at};{at // 4};*" for at in range(12)]
    (house.folder / "step.csv").write_text("\n".join(line.replace(";", ";n", 1) for line in lines))
    columns = COLUMNS | {"quasi_identifiers": {"step": {"hierarchy": str(house.folder / "step.csv")}}}
    table = pa.table({"step": [kind(at) for at in range(11)] * 3, "disease": ["Flu", "HIV", "Cold"] * 11})
    config = house.config(columns=columns, privacy=PRIVACY, method=METHOD)
    anon.run(config, table)
    again = house.config(
        columns=columns, privacy=PRIVACY, method={"kind": "reuse", "run": str(house.folder / "out-run")}
    )
    again["release"] = {"path": str(house.folder / "again"), "run": str(house.folder / "again-run")}
    anon.run(again, table)
    more = pa.table({"step": [kind(at) for at in range(12)] * 3, "disease": ["Flu", "HIV", "Cold"] * 12})
    with pytest.raises(ConfigError, match=r"1 new values .3 rows. that are not in the order"):
        anon.run(again, more, overwrite=True)


def test_nodes_with_the_form_of_a_list_are_refused(house: House) -> None:
    table = people()
    (house.folder / "place.csv").write_text("\n".join(";".join(row) for row in rows()).replace("Coast", "{a|b}"))
    columns = COLUMNS | {"quasi_identifiers": {"place": {"hierarchy": str(house.folder / "place.csv")}}}
    config = house.config(columns=columns, privacy=PRIVACY, method=METHOD)
    with pytest.raises(ConfigError):
        anon.run(config, table)
