"""What a run with the lattice leaves: labels of one level per column, suppressed rows that are nowhere, and words where
nothing is safe. And the parts of the search that only large tables come to."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon import release
from anon.core.cell_index import CellIndex
from anon.errors import ConfigError, UnsafeError
from anon.search.lattice import search as lattice
from tests.conftest import House
from tests.helpers.backends import on_every_backend

LATTICE = {"kind": "lattice"}
AGES = {"age": {"intervals": [5, 10], "origin": 1}, "zip": {"digits": 3}}
PEOPLE: dict[str, Any] = {
    "age": [21, 22, 23, 24, 25, 26, 27, 28, 29, 77],
    "zip": ["111", "111", "111", "112", "112", "112", "121", "121", "121", "999"],
    "disease": list("abcabcabca"),
    "note": ["n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9", "HIDDEN"],
}


def wanted(**more: Any) -> dict[str, Any]:
    return {"columns__quasi_identifiers": AGES, "privacy": [{"k_anonymity": {"k": 3}}], "method": LATTICE | more}


@on_every_backend()
def test_every_column_is_published_at_one_level(house: House) -> None:
    told = house.run(pa.table(PEOPLE), **wanted(suppress=0.1, choose="height")).to_dict()
    assert (told["rows"], told["groups"], told["suppressed"]) == (9, 3, 1)
    assert {(row["age"], row["zip"]) for row in house.released().to_pylist()} == {
        ("21-30", z) for z in ("111", "112", "121")
    }
    package = json.loads((house.folder / "out" / "datapackage.json").read_text())
    assert package["suppressed_share"] == 0.1
    assert {name: cells["levels"] for name, cells in package["cells"].items()} == {"age": [2], "zip": [0]}
    manifest = json.loads((house.folder / "out-run" / "manifest.json").read_text())
    assert (manifest["rows"], manifest["suppressed"]) == (10, 1)


@on_every_backend()
def test_a_node_that_covers_one_value_has_its_own_label(house: House) -> None:
    """Somebody alone in an interval is published in that interval, not under the value."""
    table = pa.table({"age": [22] * 3 + [33, 35, 36], "zip": ["111"] * 6, "disease": list("abcabc")})
    house.run(table, **wanted(choose="height"))
    assert {row["age"] for row in house.released().to_pylist()} == {"21-30", "31-40"}


@on_every_backend()
def test_suppressed_rows_are_nowhere_in_the_release(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release.files, "COMPRESSION", "none")
    house.run(pa.table(PEOPLE), **wanted(suppress=0.1, choose="height"), columns__keep=["note"])
    content = b"".join(path.read_bytes() for path in (house.folder / "out").rglob("*") if path.is_file())
    assert b"n9" in content and b"121" in content and b"21-30" in content  # what is published can be read in there
    for word in (b"HIDDEN", b"999", b"71-80", b"77"):
        assert word not in content


def test_csv_and_kept_columns_hold_the_same_rows(house: House) -> None:
    changes = wanted(suppress=0.1) | {"columns__keep": ["note"]}
    house.run(pa.table(PEOPLE), **changes)
    parquet = house.released().to_pylist()
    house.run(pa.table(PEOPLE), **changes, release__format="csv")
    lines = (house.folder / "out" / "release.csv").read_text().splitlines()
    assert lines[1:] == [",".join(f'"{word}"' for word in row.values()) for row in parquet]


def test_a_column_without_levels_is_published_as_it_is_or_not_at_all(house: House) -> None:
    table = pa.table(PEOPLE)
    house.run(table, **wanted() | {"columns__quasi_identifiers": {"age": {}, "zip": {"digits": 3}}})
    assert set(house.released()["age"].to_pylist()) == {"*"}


@on_every_backend()
def test_no_safe_node_is_told_as_elsewhere(house: House) -> None:
    with pytest.raises(UnsafeError, match="no release is safe: even the whole table as one group fails"):
        house.run(pa.table(PEOPLE), **wanted() | {"privacy": [{"k_anonymity": {"k": 11}}]})
    privacy = [{"l_diversity": {"kind": "entropy", "l": 3}}]
    with pytest.raises(
        UnsafeError, match=r"none of the 16 combinations of levels satisfies l_diversity, also if up to 0.05"
    ):
        house.run(pa.table(PEOPLE), **wanted(suppress=0.05) | {"privacy": privacy})
    assert house.cli("run", **wanted() | {"privacy": privacy, "source": {"path": str(house.write(PEOPLE))}}).code == 3
    assert not house.leftovers()


@on_every_backend()
def test_suppression_may_save_what_the_whole_table_fails(house: House) -> None:
    """The tenth person spoils the entropy of the whole table, but may be left out."""
    privacy = [{"l_diversity": {"kind": "entropy", "l": 3}}]
    told = house.run(pa.table(PEOPLE), **wanted(suppress=0.1) | {"privacy": privacy}).to_dict()
    assert told["suppressed"] == 1


def test_a_distance_over_the_tuple_of_one_column_allows_suppression(house: House) -> None:
    """A variational distance names its columns itself, also where there is only one."""
    table = pa.table({"age": [20, 20, 30, 30, 70], "zip": ["111"] * 5, "disease": [0, 5, 0, 5, 5]})
    apart = {"epsilon": 1, "delta": 1, "k": 2, "distance": {"kind": "variational", "columns": ["disease"]}}
    changes = wanted(suppress=0.2, exhaustive=True) | {"columns__quasi_identifiers": {"age": {}, "zip": {"digits": 3}}}
    told = house.run(table, **changes | {"privacy": [{"dissimilarity": apart}]}).to_dict()
    assert (told["groups"], told["suppressed"], told["criteria"][0]["figure"]) == (2, 1, 0.0)


def test_more_people_than_a_counter_counts_are_refused(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lattice, "MOST", len(PEOPLE["age"]) - 1)
    with pytest.raises(ConfigError, match=r"method\.kind.*lattice with 10 rows"):
        house.run(pa.table(PEOPLE), **wanted())


def test_too_many_values_or_nodes_are_refused(house: House) -> None:
    many = pa.table({"age": list(range(70_000)), "zip": ["111"] * 70_000, "disease": ["a"] * 70_000})
    with pytest.raises(ConfigError, match="more values than a column of the lattice may have"):
        house.run(many, **wanted() | {"columns__quasi_identifiers": {"age": {}, "zip": {"digits": 3}}})
    names = [f"q{i}" for i in range(23)]
    wide = pa.table({name: ["a", "b", "b"] for name in names} | {"disease": ["a", "b", "b"]})
    with pytest.raises(ConfigError, match="a lattice of 8,388,608 nodes"):
        house.run(wide, **wanted() | {"columns__quasi_identifiers": {name: {"suppress": True} for name in names}})


@settings(max_examples=60, deadline=None)
@given(
    cells=st.lists(st.lists(st.integers(0, 9), min_size=4, max_size=4), min_size=1, max_size=30, unique_by=tuple),
    largest=st.sampled_from([20, 500, 2**62]),
    table=st.sampled_from([0, 2**25]),
)
def test_cells_are_found_however_large_their_numbers_would_be(cells: Any, largest: int, table: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("anon.core.cell_index.LARGEST", largest)
        patch.setattr("anon.core.cell_index.TABLE", table)
        index = CellIndex(np.array(cells, np.uint16).T, [10] * 4)
        asked = [*cells, *([a, b, 3, 9] for a in range(10) for b in range(10))]
        found = index.find(np.array(asked, np.uint16).T)
    place = {tuple(cell): number for number, cell in enumerate(cells)}
    assert found.tolist() == [place.get(tuple(cell), len(cells)) for cell in asked]


def test_individuals_may_be_suppressed_where_nothing_is_sensitive(house: House) -> None:
    house.write({"age": [20] * 9 + [70], "zip": ["00001"] * 10, "disease": ["flu"] * 10})
    changes = {"columns__sensitive": [], "method": {"kind": "lattice", "suppress": 0.2}}
    told = house.run(**changes).facts
    assert (told["rows"], told["suppressed"]) == (9, 1)
    assert set(house.released()["age"].to_pylist()) == {"20"}
