"""Splits by hierarchies of which the safe parts leave, and the rest stay together (`peel: true`)."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anon
from anon.criteria import Groups, KAnonymity, Point, Skyline
from anon.errors import ConfigError, UnsafeError, VerificationError
from anon.recoding import tree
from anon.search.partition import search as engine
from anon.search.partition.peel import PeelOrder, one_by_one
from tests.conftest import House
from tests.helpers.backends import LOCAL, assert_same_release, at, on_every_backend
from tests.helpers.cubes import Table
from tests.oracles import partition as oracle
from tests.oracles import skyline
from tests.search.test_partition import VALUES, budget, leaves, tables

PRIVACY = [{"k_anonymity": {"k": 4}}]
METHOD = {"kind": "partition", "peel": True}
PLACES = {"North": ["n1", "n2", "n3", "n4"], "South": ["s1", "s2", "s3"], "West": ["w1", "w2"]}


def people(rows: int = 200, seed: int = 5) -> pa.Table:
    """Of the places of a side the first has most people, the last very few."""
    rng = random.Random(seed)
    sides = [rng.choice(["North", "North", "South"]) for _ in range(rows)]
    return pa.table({
        "age": [rng.randint(20, 60) for _ in sides],
        "place": [PLACES[side][min(int(rng.expovariate(1.5)), len(PLACES[side]) - 1)] for side in sides],
        "sex": [rng.choice(["f"] * 8 + ["m"] * 8 + ["x"]) for _ in sides],
        "disease": [rng.choice(["Cold", "Flu", "HIV"]) for _ in sides],
    })  # fmt: skip


def columns_of(house: House) -> dict[str, Any]:
    lines, file = (
        [f"{leaf};{side};*\n" for side, listed in PLACES.items() for leaf in listed],
        house.folder / "place.csv",
    )
    house.folder.mkdir(exist_ok=True)
    file.write_text("".join(lines))
    builders = {"age": {}, "place": {"hierarchy": str(file)}, "sex": {"suppress": True}}
    return {"individual": "row", "quasi_identifiers": builders, "sensitive": ["disease"]}


def made(house: House, rows: pa.Table, **changes: Any) -> dict[str, Any]:
    house.write(rows)
    return house.config(**({"columns": columns_of(house), "privacy": PRIVACY, "method": METHOD} | changes))


def released(house: House, name: str = "out") -> pa.Table:
    return pyarrow.parquet.read_table(house.folder / name / "release.parquet")


def nodes_of(house: House) -> list[dict[str, Any]]:
    recoding = json.loads((house.folder / "out-run" / "recoding.json").read_text())
    assert recoding["format"] == 2
    return list(recoding["nodes"])


def peelable(table: Table, members: list[int], column: oracle.Hierarchy, at: int, safe: Any) -> bool:
    """Whether any set of children of the hierarchy node that covers a group could leave it, all subsets tried."""
    codes = [table.rows[member][0][at] for member in members]
    spans = [oracle._span(child) for child in oracle._children(oracle._covering(column.tree, codes))]
    parts = [[m for m, code in zip(members, codes) if low <= code <= high] for low, high in spans]
    parts = [part for part in parts if part]
    for count in range(1, len(parts) + 1):
        for leave in combinations(range(len(parts)), count):
            rest = [m for i, part in enumerate(parts) if i not in leave for m in part]
            if all(safe(parts[i]) for i in leave) and (not rest or safe(rest)) and len(parts) > 1:
                return True
    return False


@settings(max_examples=300, deadline=None)
@given(
    tables(), st.integers(1, 4), st.integers(0, 2), st.integers(8, 20), st.sampled_from(["widest", "loss"]),
    st.sampled_from([10**6, 9, 1]),
)  # fmt: skip
def test_no_subset_of_the_children_could_leave_any_group(
    table: Table, k: int, known: int, c: int, prefer: str, block: int
) -> None:
    """Exhaustively, for criteria that are monotone and judge groups alone; and all groups are safe."""
    points = {value: [(1, known, 0, Fraction(c, 20))] for value in VALUES}

    def safe(members: list[int]) -> bool:
        group = [[table.rows[member][1] for member in members]]
        return len(members) >= k and bool(skyline.safe(group, points))

    if not safe(list(range(len(table.rows)))):
        return
    rules = [KAnonymity(k), Skyline("s", [[Point(1, known, 0, Fraction(c, 20))]] * len(table.values), shared=True)]
    found = engine.PartitionSearch(table.cube(), rules, prefer, peel=True).run()
    groups = leaves(table, found.recoding)
    assert sorted(member for _, members in groups for member in members) == list(range(len(table.rows)))
    assert len({cells for cells, _ in groups}) == len(groups)
    for _, members in groups:
        assert safe(members)
        for index, column in enumerate(table.columns):
            if isinstance(column, oracle.Hierarchy):
                assert not peelable(table, members, column, index, safe)


@pytest.mark.parametrize(
    ("sizes", "k", "groups"),
    [
        ([9, 2, 8, 3], 5, [[0], [2], [1, 3]]),  # the rest is exactly k
        ([9, 2, 8, 2], 5, [[0], [1, 2, 3]]),  # four are too few: the smaller safe child stays with them
        ([5, 5, 4], 5, [[0, 2], [1]]),  # a tie: the first in order stays
        ([5, 5, 5], 5, [[0], [1], [2]]),
        ([5, 4], 5, [[0, 1]]),  # of two children none can leave the other
        ([4, 4, 4], 5, [[0, 1, 2]]),  # none is safe
        ([20, 4], 5, [[0, 1]]),
        ([1, 20, 1, 1, 1, 1, 20], 5, [[0, 2, 3, 4, 5], [1], [6]]),
    ],
)
def test_the_children_that_leave(sizes: list[int], k: int, groups: list[list[int]]) -> None:
    rows = [((code,), "a") for code, size in enumerate(sizes) for _ in range(size)]
    table = Table([oracle.Hierarchy(tuple(range(len(sizes))))], rows)
    found = engine.PartitionSearch(table.cube(), [KAnonymity(k)], peel=True).run()
    codes = [sorted({rows[member][0][0] for member in members}) for _, members in leaves(table, found.recoding)]
    assert sorted(codes) == sorted(groups)


def test_the_order_of_candidates_is_that_of_the_definition() -> None:
    """Two splits: one with two unsafe parts, one with none."""
    order = PeelOrder(np.array([0, 4, 7]), np.array([7, 1, 9, 2, 6, 5, 8]), np.array([1, 0, 1, 0, 1, 1, 1], bool), 3)
    peels = order.peels(np.arange(len(order.split)))
    listed, at = [], 0
    for split in peels.split.tolist():
        size = 4 if split == 0 else 3
        listed.append((split, np.flatnonzero(peels.leaves[at : at + size]).tolist()))
        at += size
    first = [(0, [0, 2]), (0, [2]), (0, [0])]
    assert listed == [*first, (1, [0, 1, 2]), (1, [2]), (1, [0]), (1, [1])]
    assert order.rank.tolist() == [0, 1, 2, 0, 1, 2, 3]


def test_one_by_one_every_part_leaves_alone() -> None:
    peels = one_by_one(np.array([0, 3, 5]))
    assert peels.split.tolist() == [0, 0, 0, 1]
    assert peels.leaving.tolist() == [1, 1, 1, 2]


def test_merged_groups_have_the_counts_of_their_parts() -> None:
    groups = Groups.dense(np.array([[1, 0, 2], [0, 0, 0], [3, 4, 0], [0, 1, 1]]))
    merged = groups.merged(np.array([0, 2, 3, 0, 1]), np.array([1, 1, 0, 2, 2]), 3)
    dense = np.zeros((3, 3), int)
    dense[np.repeat(np.arange(3), np.diff(merged.start)), merged.value] = merged.count
    assert dense.tolist() == [[0, 1, 1], [4, 4, 2], [1, 0, 2]] and merged.n.tolist() == [2, 10, 3]


def test_a_few_people_in_rare_places_do_not_keep_the_others_coarse(house: House) -> None:
    config = made(house, people())
    anon.run(config)
    peeled = anon.utility(config, released(house)).to_dict()["loss"]["all"]
    assert anon.check(config, released(house)).to_dict()["safe"]
    plain = made(house, people(), method={"kind": "partition"})
    anon.run(plain, overwrite=True)
    assert peeled < 0.7 * anon.utility(plain, released(house)).to_dict()["loss"]["all"]


def test_the_recoding_names_the_rest_and_labels_it_as_the_node_above(house: House) -> None:
    anon.run(made(house, people()))
    nodes = nodes_of(house)
    split = next(node for node in nodes if node.get("rest"))
    labels = [nodes[child]["label"] for child in split["children"]]
    assert len(labels) > 1
    under = {"*": {*PLACES, "f", "m", "x"}} | {side: {side, *leaves} for side, leaves in PLACES.items()}
    assert all(label in under[labels[-1]] for label in labels[:-1])


@pytest.mark.parametrize("labels", ["cells", "tight"])
@pytest.mark.parametrize("form", ["generalized", "bucketized"])
def test_every_form_and_kind_of_label_is_published_and_verified(house: House, labels: str, form: str) -> None:
    config = made(house, people(), method=METHOD | {"labels": labels, "prefer": "loss"})
    config["release"] |= {"form": form}
    config["privacy"] = [{"group_size": {"k": 4}}, {"l_diversity": {"kind": "entropy", "l": 2}}]
    anon.run(config)
    assert any(node.get("rest") for node in nodes_of(house))
    assert anon.check(config, house.folder / "out").to_dict()["safe"]
    assert anon.explain(house.folder / "out-run").to_dict()


def test_verification_finds_a_rest_that_the_recoding_does_not_name(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = tree.Recoding.write

    def without(recoding: Any, path: Path) -> None:
        plain(recoding, path)
        path.write_text(path.read_text().replace(', "rest": true', ""))

    monkeypatch.setattr(tree.Recoding, "write", without)
    with pytest.raises(VerificationError):
        anon.run(made(house, people()))


def again(house: House, rows: pa.Table) -> dict[str, Any]:
    config = made(house, rows, method={"kind": "reuse", "run": str(house.folder / "out-run")})
    return config | {"release": {"path": str(house.folder / "again"), "run": str(house.folder / "again-run")}}


def test_a_reused_recoding_gives_the_same_rows(house: House) -> None:
    anon.run(made(house, people()))
    anon.run(again(house, people()))
    assert released(house, "again") == released(house)


def test_a_place_that_is_new_in_a_region_joins_the_rest_there(house: House) -> None:
    """More people, some in places that the rest of their region had nobody in; verification finds the same groups."""
    anon.run(made(house, people()))
    more = pa.concat_tables([people(), people(400, seed=7)])
    known = set(people()["place"].to_pylist())
    more = more.filter(pa.array([place in known for place in more["place"].to_pylist()]))
    try:
        anon.run(again(house, more))
    except UnsafeError as error:
        assert "the recoding has no group for" in str(error)
    else:
        assert released(house, "again").num_rows == more.num_rows


def test_a_place_that_the_recoding_does_not_know_has_no_group(house: House) -> None:
    rows = people()
    anon.run(made(house, rows.filter(pa.array([place != "n4" for place in rows["place"].to_pylist()]))))
    new = pa.concat_tables([rows, rows.slice(0, 1).set_column(1, "place", [["n4"]])])
    with pytest.raises(UnsafeError, match="the recoding has no group for"):
        anon.run(again(house, new))


def test_one_level_takes_the_level_that_holds_every_rest(house: House) -> None:
    config = made(house, people())
    config["release"] |= {"one_level": True}
    anon.run(config)
    assert anon.check(config, released(house)).to_dict()["safe"]


@on_every_backend(always=True)
def test_the_same_release_on_every_backend(house: House) -> None:
    """Also with a criterion about all groups together."""
    privacy = [{"k_anonymity": {"k": 4}}, {"ck_safety": {"c": 0.97, "k": 1}}]
    config = made(house, people(600), privacy=privacy)
    anon.run(config | {"backend": LOCAL})
    anon.run(at(house, "again", config))
    assert_same_release(house, "out", "again")
    assert any(node.get("rest") for node in nodes_of(house))


def test_public_cuts_are_not_peeled(house: House) -> None:
    config = made(house, people(), method=METHOD | {"prefer": "public"})
    with pytest.raises(ConfigError, match=r"method.peel: found true with prefer public"):
        anon.run(config)


def test_more_parts_may_leave_than_sixteen_bits_count_the_cuts_of() -> None:
    """Two people have each value but the last two, which stay together. A part that leaves takes up to two cuts."""
    size = 33_000
    rows = [((code,), "a") for code in range(size) for _ in range(1 + (code < size - 2))]
    table = Table([oracle.Hierarchy(tuple(range(size)))], rows)
    recoding = engine.PartitionSearch(table.cube(), [KAnonymity(2)], "widest", budget(table), peel=True).run().recoding
    assert recoding.groups == size - 1 and recoding.children[0] == size - 1
    group = recoding.assign(np.arange(size, dtype=np.uint16)[None])
    assert len(set(group[:-2].tolist())) == size - 2 and group[-1] == group[-2]
