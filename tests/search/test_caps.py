"""Quasi-identifiers whose labels may be no coarser than a level (`at_most`)."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anon
from anon.config import load
from anon.criteria import KAnonymity
from anon.errors import ConfigError, UnsafeError
from anon.search.partition import search as engine
from tests.conftest import House
from tests.helpers.cubes import Table
from tests.oracles import partition as oracle
from tests.search.test_partition import budget, leaves, tables

PRIVACY = [{"k_anonymity": {"k": 3}}]
BUILDERS: dict[str, dict[str, Any]] = {
    "age": {"intervals": [5, 10, 40]},
    "zip": {"digits": 3},
    "born": {"calendar": ["day", "month", "year"]},
    "sex": {"suppress": True},
}


@settings(max_examples=250, deadline=None)
@given(
    tables(), st.sets(st.integers(0, 2)), st.integers(1, 4), st.sampled_from(["widest", "balanced", "loss"]),
    st.booleans(), st.sampled_from([10**6, 9, 1]),
)  # fmt: skip
def test_the_search_starts_at_the_caps_as_its_naive_definition_does(
    table: Table, chosen: set[int], k: int, prefer: Any, peel: bool, block: int
) -> None:
    capped = frozenset(
        at for at in chosen if at < len(table.columns) and isinstance(table.columns[at], oracle.Hierarchy)
    )
    wished = oracle.partition(
        table.rows, table.columns, lambda groups: all(len(group) >= k for group in groups), prefer, block, least=k,
        peel=peel, capped=capped,
    )  # fmt: skip
    if len(table.rows) < k:
        return
    cube = table.cube()
    cube.domains[:] = [replace(domain, capped=at in capped) for at, domain in enumerate(cube.domains)]
    search = engine.PartitionSearch(cube, [KAnonymity(k)], prefer, budget(table, block), peel=peel)
    if wished is None:
        with pytest.raises(UnsafeError, match=r"columns.quasi_identifiers.q\d.at_most"):
            search.run()
        return
    uncut = [(tuple(None if c == o.whole() else c for c, o in zip(cells, table.columns)), own) for cells, own in wished]
    recoding = search.run().recoding
    assert leaves(table, recoding) == sorted(uncut, key=lambda leaf: [c or (-1, -1) for c in leaf[0]])
    assert not any("*" in recoding.labels[at].labels.to_pylist() for at in capped)


def people(rows: int = 400) -> pa.Table:
    rng = random.Random(3)
    return pa.table({
        "age": [rng.randint(0, 79) for _ in range(rows)],
        "zip": [f"{rng.randint(1, 3)}{rng.randint(0, 2)}{rng.randint(0, 2)}" for _ in range(rows)],
        "born": pa.array([rng.randint(18_000, 18_900) for _ in range(rows)], pa.int32()).cast(pa.date32()),
        "sex": [rng.choice("fm") for _ in range(rows)],
        "disease": [rng.choice(["Cold", "Flu"]) for _ in range(rows)],
    })  # fmt: skip


def config(house: House, method: dict[str, Any], **caps: Any) -> dict[str, Any]:
    house.write(people())
    own = {name: builder | ({"at_most": caps[name]} if name in caps else {}) for name, builder in BUILDERS.items()}
    columns = {"individual": "row", "quasi_identifiers": own, "sensitive": ["disease"]}
    return house.config(columns=columns, privacy=PRIVACY, method=method)


def labels(house: House, name: str) -> set[str]:
    return set(pyarrow.parquet.read_table(house.folder / "out" / "release.parquet")[name].to_pylist())


METHODS: list[dict[str, Any]] = [
    {"kind": "partition"}, {"kind": "partition", "peel": True}, {"kind": "partition", "prefer": "loss", "peel": True},
    {"kind": "lattice"}, {"kind": "lattice", "suppress": 0.1, "minimal": "best"},
]  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("name", "cap", "length"), [("age", 40, 5), ("age", 10, 5), ("zip", 1, 3), ("born", "year", 4), ("sex", "value", 1)]
)
def test_labels_are_never_coarser_than_the_cap(
    house: House, method: dict[str, Any], name: str, cap: Any, length: int
) -> None:
    given = config(house, method, **{name: cap})
    anon.run(given)
    found = labels(house, name)
    assert "*" not in found
    if name == "age":
        widths = {int(high) - int(low) + 1 for low, _, high in (each.partition("-") for each in found) if high}
        assert max(widths, default=1) <= cap
    elif name == "zip":
        assert not any(each.endswith("**") and each[0] == "*" for each in found)
    released = pyarrow.parquet.read_table(house.folder / "out" / "release.parquet")
    assert anon.check(given, released).to_dict()["safe"]
    assert anon.utility(given, released).to_dict()["loss"]["all"] < 1


@pytest.mark.parametrize("method", [METHODS[0], METHODS[2], METHODS[3]])
@pytest.mark.parametrize(
    ("values", "builder", "label", "level"),
    [
        (["111", "112", "121", "122"], {"digits": 3, "at_most": 1}, "1**", 2),
        (["111", "112"], {"digits": 3, "at_most": 2}, "11*", 1),
        (["111"], {"digits": 3, "at_most": "value"}, "111", 0),
        ([1, 2, 3, 4], {"intervals": [5, 10], "at_most": 10}, "0-4", 2),
        ([3], {"intervals": [5], "at_most": "value"}, "3", 0),
    ],
)
def test_a_node_below_the_cap_that_everybody_is_under_is_published_as_it_is(
    house: House, method: dict[str, Any], values: list[Any], builder: dict[str, Any], label: str, level: int
) -> None:
    rows = pa.table({"x": values * (12 // len(values)), "disease": ["Cold", "Flu"] * 6})
    columns = {"individual": "row", "quasi_identifiers": {"x": builder}, "sensitive": ["disease"]}
    given = house.config(columns=columns, privacy=[{"k_anonymity": {"k": 12}}], method=method)
    anon.run(given, rows)
    assert labels(house, "x") == {label}
    released = pyarrow.parquet.read_table(house.folder / "out" / "release.parquet")
    assert anon.check(given, released).to_dict()["safe"]
    package = json.loads((house.folder / "out" / "datapackage.json").read_text())
    found = [int(each) for each in re.findall(r'"levels": \[(\d)\]', json.dumps(package))]
    assert len(found) == 1 and found[0] <= level


def test_the_lattice_chooses_the_best_combination_below_the_caps(house: House) -> None:
    """All combinations of levels, of which those above the cap are left out; the chosen one has the least loss."""
    anon.run(config(house, {"kind": "lattice"}))
    free = json.loads((house.folder / "out-run" / "recoding.json").read_text())
    anon.run(config(house, {"kind": "lattice"}, age=40), overwrite=True)
    capped = json.loads((house.folder / "out-run" / "recoding.json").read_text())
    allowed = [node for node in free["minimal"] if node["levels"]["age"] <= 3]
    assert [node["levels"] for node in capped["minimal"]] == [node["levels"] for node in allowed]
    assert capped["chosen"]["loss"] == pytest.approx(min(node["loss"] for node in allowed))


@pytest.mark.parametrize("method", [METHODS[0], METHODS[1], METHODS[3]])
def test_a_cap_that_no_release_can_keep_is_exit_3_and_names_the_column(house: House, method: dict[str, Any]) -> None:
    with pytest.raises(UnsafeError, match=r"at_most.*born|born.at_most") as error:
        anon.run(config(house, method, born="day"))
    assert error.value.exit_code == 3 and not (house.folder / "out").exists()


@pytest.mark.parametrize(
    ("caps", "words"),
    [
        ({"age": 7}, "age.at_most: found number 7; expected one of its levels: value, 5, 10, 40"),
        ({"zip": 3}, "zip.at_most: found number 3; expected one of its levels: value, 2, 1"),
        ({"born": "week"}, 'born.at_most: found text "week"; expected one of its levels: value, day, month, year'),
        ({"sex": 1}, "sex.at_most: found number 1; expected one of its levels: value"),
    ],
)
def test_a_level_that_the_builder_does_not_have_is_refused_with_those_it_has(
    house: House, caps: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError) as error:
        load(config(house, METHODS[0], **caps))
    assert words in str(error.value)


def test_a_column_without_levels_has_no_cap(house: House) -> None:
    given = config(house, METHODS[0])
    given["columns"]["quasi_identifiers"]["age"] = {"at_most": 10}
    with pytest.raises(ConfigError, match=r"age.at_most: .*a builder that has levels"):
        load(given)


def test_a_level_of_a_hierarchy_file_is_a_number(house: House) -> None:
    file = house.folder / "sex.csv"
    file.write_text("f;person;*\nm;person;*\n")
    for cap, words in ((1, ""), (2, "sex.at_most: found level 2; expected one of the levels below `*`: value, 1")):
        given = config(house, METHODS[0])
        given["columns"]["quasi_identifiers"]["sex"] = {"hierarchy": str(file), "at_most": cap}
        if words:
            with pytest.raises(ConfigError) as error:
                anon.run(given, overwrite=True)
            assert words in str(error.value)
        else:
            anon.run(given)
            assert labels(house, "sex") <= {"f", "m", "person"}


def test_a_cap_is_refused_where_labels_are_lists_of_nodes(house: House) -> None:
    with pytest.raises(ConfigError, match=r"zip.at_most: found a level with cuts: ordered; expected cuts: nodes"):
        anon.run(config(house, {"kind": "partition", "cuts": "ordered"}, zip=1))
