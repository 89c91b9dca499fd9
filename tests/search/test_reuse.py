"""An earlier run's recoding on new rows: the same bytes for the same rows, cells that stay where they were for others,
and a refusal where rows have no place in it or are no longer safe."""

from __future__ import annotations

import datetime as dt
import json
import math
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anon
from anon.commands.plan import plan
from anon.errors import ConfigError, UnsafeError
from tests.conftest import House
from tests.helpers import release as helpers_release

WARDS = {"North": ["n1", "n2", "n3"], "South": ["s1", "s2", "s3"]}
COLUMNS: dict[str, Any] = {
    "individual": "row",
    "quasi_identifiers": {"age": {}, "zip": {"digits": 3}, "seen": {"calendar": ["day", "month"]}, "ward": {}},
    "sensitive": ["disease"],
    "keep": ["cost"],
}
METHODS: dict[str, dict[str, Any]] = {
    "partition": {"kind": "partition"},
    "lattice": {"kind": "lattice"},
    "suppressing": {"kind": "lattice", "suppress": 0.3},
}


def rows(seed: int, count: int, **fixed: Any) -> pa.Table:
    rng = random.Random(seed)
    wards = [ward for region in WARDS.values() for ward in region]
    made = [
        {
            "age": rng.randint(20, 50),
            "zip": f"02{rng.randint(0, 2)}",
            "seen": dt.date(2024, rng.randint(1, 3), rng.randint(1, 28)),
            "ward": rng.choice(wards),
            "disease": rng.choice(["Flu", "HIV", "Cold"]),
            "cost": float(rng.randint(0, 3)),
        }
        | fixed
        for _ in range(count)
    ]
    return pa.Table.from_pylist(made)


def hierarchy(house: House) -> None:
    lines = [f"{ward};{region};*" for region, wards in WARDS.items() for ward in (*wards, f"{region[0].lower()}9")]
    (house.folder / "ward.csv").write_text("\n".join(lines))


def config(house: House, method: dict[str, Any], out: str, k: int = 3) -> dict[str, Any]:
    made = house.config(method=method, privacy=[{"k_anonymity": {"k": k}}])
    made["columns"] = dict(COLUMNS)
    made["columns"]["quasi_identifiers"] = {
        **made["columns"]["quasi_identifiers"],
        "ward": {"hierarchy": str(house.folder / "ward.csv")},
    }
    made["release"] = {"path": str(house.folder / out), "run": str(house.folder / f"{out}-run")}
    return made


def first(house: House, table: pa.Table, kind: str = "partition") -> list[bytes]:
    hierarchy(house)
    anon.run(config(house, METHODS[kind], "first"), table)
    return files(house, "first")


def again(house: House, table: pa.Table, k: int = 3, run: str = "first-run") -> list[dict[str, Any]]:
    method = {"kind": "reuse", "run": str(house.folder / run)}
    anon.run(config(house, method, "again", k), table, overwrite=True)
    released: list[dict[str, Any]] = pa.parquet.read_table(house.folder / "again" / "release.parquet").to_pylist()
    return released


def planned(house: House, table: pa.Table, k: int = 3) -> dict[str, Any]:
    before = {path for path in house.folder.rglob("*") if path.is_file()}
    found = plan(config(house, {"kind": "reuse", "run": str(house.folder / "first-run")}, "again", k), table).to_dict()
    assert {path for path in house.folder.rglob("*") if path.is_file()} == before
    return found


def files(house: House, out: str) -> list[bytes]:
    places = [*(house.folder / out).iterdir(), house.folder / f"{out}-run" / "recoding.json"]
    return [path.read_bytes() for path in sorted(places)]


@pytest.mark.parametrize("kind", METHODS)
def test_the_same_rows_give_the_same_bytes(house: House, kind: str) -> None:
    table = rows(1, 400)
    made = first(house, table, kind)
    again(house, table.take(pa.array(random.Random(2).sample(range(400), 400))))
    assert files(house, "again") == made


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10_000), count=st.integers(6, 60))
def test_random_tables_with_every_kind_of_column_give_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, seed: int, count: int
) -> None:
    folder = tmp_path_factory.mktemp("random")
    table = helpers_release.as_table(helpers_release.random_rows(seed, count))
    helpers_release.run(folder, table)
    made = (folder / "out" / "release.parquet").read_bytes()
    changes = {"method": {"kind": "reuse", "run": str(folder / "out-run")}, "release": {"path": str(folder / "two")}}
    helpers_release.run(folder, table, **changes)
    assert (folder / "two" / "release.parquet").read_bytes() == made


def test_more_of_the_same_rows_fall_into_the_same_cells(house: House) -> None:
    table = rows(1, 400)
    first(house, table)
    names = list(COLUMNS["quasi_identifiers"])
    before = {tuple(row[name] for name in names) for row in pa.parquet.read_table(
        house.folder / "first" / "release.parquet").to_pylist()}  # fmt: skip
    twice = again(house, pa.concat_tables([table, table]))
    assert len(twice) == 800
    assert {tuple(row[name] for name in names) for row in twice} == before


def test_labels_are_the_cells_between_the_earlier_cuts_and_numbers_outside_fall_into_the_ends(house: House) -> None:
    """Cut at 15, 25 and 35; new numbers below, above and between."""
    hierarchy(house)
    ages = [10] * 3 + [20] * 3 + [30] * 3 + [40] * 3
    fixed = {"zip": "021", "seen": dt.date(2024, 1, 1), "ward": "n1", "disease": "Flu", "cost": 1.0}
    table = pa.Table.from_pylist([{"age": age, **fixed} for age in ages])
    first(house, table)
    assert {row["age"] for row in pa.parquet.read_table(house.folder / "first" / "release.parquet").to_pylist()} == {
        "10", "20", "30", "40",
    }  # fmt: skip
    new = [-5] * 2 + [14] + [15, 21, 24] + [25, 33, 34] + [35, 88, 99]
    found = again(house, pa.Table.from_pylist([{"age": age, **fixed} for age in new]))
    assert sorted(row["age"] for row in found) == sorted(["<=14"] * 3 + ["15-24"] * 3 + ["25-34"] * 3 + [">=35"] * 3)
    gone = again(house, pa.Table.from_pylist([{"age": age, **fixed} for age in [24] * 3 + [30] * 3]))
    assert {row["age"] for row in gone} == {"15-24", "30"}


MOMENT = dt.datetime(1969, 7, 20, 20, 17, 40)
MILLISECOND, MICROSECOND = dt.timedelta(milliseconds=1), dt.timedelta(microseconds=1)
NEIGHBOURS: dict[str, tuple[pa.DataType, list[Any], list[Any], str, str]] = {
    "integer": (pa.int64(), [-30, -10], [-21, -20], "<=-21", ">=-20"),
    "decimal": (pa.decimal128(9, 2), [1.5, 1.6], [1.54, 1.55], "<1.55", ">=1.55"),
    "number": (pa.float64(), [1e-3, 1.5e-3], [math.nextafter(0.0013, 0), 0.0013], "<0.0013", ">=0.0013"),
    "date": (
        pa.date32(), [dt.date(1969, 12, 20), dt.date(1970, 1, 20)], [dt.date(1969, 12, 31), dt.date(1970, 1, 1)],
        "<=1969-12-31", ">=1970-01-01",
    ),
    "timestamp": (
        pa.timestamp("us"), [MOMENT, MOMENT + 3 * MILLISECOND],
        [MOMENT + MILLISECOND - MICROSECOND, MOMENT + MILLISECOND],
        "<1969-07-20T20:17:40.001", ">=1969-07-20T20:17:40.001",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", NEIGHBOURS)
def test_a_value_between_earlier_neighbours_is_in_the_cell_that_its_label_says(house: House, kind: str) -> None:
    """The bound lies between the values of then: what lies just below it now, and what lies at it, are parted."""
    type_, then, now, below, above = NEIGHBOURS[kind]
    columns = {"individual": "row", "quasi_identifiers": {"q": {}}, "sensitive": ["disease"]}
    made = house.config(columns=columns, privacy=[{"k_anonymity": {"k": 2}}])

    def table(values: list[Any]) -> pa.Table:
        exact = [Decimal(str(value)) for value in values] if kind == "decimal" else values
        return pa.table({"q": pa.array(exact, type_), "disease": ["Flu"] * len(values)})

    anon.run(made, table(then * 2))
    cut = json.loads((house.folder / "out-run" / "recoding.json").read_text())["nodes"][0]["cut"]
    assert above == f">={cut}"
    made["method"] = {"kind": "reuse", "run": made["release"]["run"]}
    made["release"] = {"path": str(house.folder / "again")}
    anon.run(made, table(then + now))
    found = pa.parquet.read_table(house.folder / "again" / "release.parquet")["q"].to_pylist()
    assert sorted(found) == sorted([below, above] * 2)


def test_more_new_values_than_there_are_codes_fall_into_the_earlier_cells(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table may have as many values as there are codes, and none in a cell of then."""
    monkeypatch.setattr("anon.search.reuse.earlier_recoding.CODES", 4)
    columns = {"individual": "row", "quasi_identifiers": {"age": {}}, "sensitive": ["disease"]}
    made = house.config(columns=columns, privacy=[{"k_anonymity": {"k": 2}}])
    anon.run(made, pa.table({"age": [10, 10, 20, 20, 30, 30], "disease": ["Flu"] * 6}))
    made["method"] = {"kind": "reuse", "run": made["release"]["run"]}
    made["release"] = {"path": str(house.folder / "again")}
    anon.run(made, pa.table({"age": [8, 9, 11, 12], "disease": ["Flu"] * 4}))
    assert pa.parquet.read_table(house.folder / "again" / "release.parquet")["age"].to_pylist() == ["<=14"] * 4


def test_more_categories_of_then_and_now_than_there_are_codes_are_refused(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    first(house, rows(1, 100))
    monkeypatch.setattr("anon.cube.building.CODES", 6)
    with pytest.raises(ConfigError, match=r"quasi_identifiers\.ward: found 7 distinct values; expected at most 6"):
        again(house, rows(1, 20, ward="n9", zip="020", seen=dt.date(2024, 1, 1), age=30))


@pytest.mark.parametrize("nulls", ["before", "after"])
def test_missing_numbers_are_lowest_whether_they_occurred_or_not(house: House, nulls: str) -> None:
    hierarchy(house)
    fixed = {"zip": "021", "seen": dt.date(2024, 1, 1), "ward": "n1", "disease": "Flu", "cost": 1.0}
    without = [{"age": age, **fixed} for age in [10] * 3 + [20] * 3]
    some = [{"age": age, **fixed} for age in [None] * 3 + [10] * 3 + [20] * 3]
    old, new = (some, without) if nulls == "before" else (without, some)
    first(house, pa.Table.from_pylist(old))
    found = again(house, pa.Table.from_pylist(new))
    labels = ["10"] * 3 + ["20"] * 3 if nulls == "before" else ["20"] * 3 + ["null|10"] * 6
    assert sorted(row["age"] for row in found) == sorted(labels)


@pytest.mark.parametrize("nulls", ["before", "after"])
def test_missing_values_are_null_at_an_earlier_level_whether_they_occurred_or_not(house: House, nulls: str) -> None:
    """Of a lattice that chose level 1 of three: North, South and null."""
    fixed = {"age": 30, "zip": "021", "seen": dt.date(2024, 1, 1), "disease": "Flu", "cost": 1.0}
    without = [{"ward": ward, **fixed} for wards in WARDS.values() for ward in wards]
    some = [*without, *[{"ward": None, **fixed}] * 3]
    old, new = (some, without) if nulls == "before" else (without, some)
    first(house, pa.Table.from_pylist(old), "lattice")
    found = [row["ward"] for row in again(house, pa.Table.from_pylist(new))]
    assert found == [None] * 3 * (nulls == "after") + ["North"] * 3 + ["South"] * 3


def test_a_new_value_under_a_known_node_is_placed_there(house: House) -> None:
    """n9 is under North; everybody of North is one group, South is another."""
    fixed = {"age": 30, "zip": "021", "seen": dt.date(2024, 1, 1), "disease": "Flu", "cost": 1.0}
    table = pa.Table.from_pylist([{"ward": ward, **fixed} for wards in WARDS.values() for ward in wards])
    first(house, table)
    new = pa.Table.from_pylist([{"ward": ward, **fixed} for ward in ("n9", "n9", "n9", "s1", "s2", "s3")])
    assert sorted(row["ward"] for row in again(house, new)) == ["North"] * 3 + ["South"] * 3


def test_a_new_category_is_refused_with_its_count_and_not_by_name(house: House) -> None:
    first(house, rows(1, 200))
    path = house.folder / "ward.csv"
    path.write_text(path.read_text() + "\nw1;West;*\nw2;West;*")
    with pytest.raises(ConfigError, match=r"2 new values \(5 rows\) that are under no node of method.run") as caught:
        again(house, pa.concat_tables([rows(2, 100), rows(3, 3, ward="w1"), rows(3, 2, ward="w2")]))
    assert "w1" not in str(caught.value)
    assert not (house.folder / "again").exists()


@pytest.mark.parametrize("kind", ["partition", "lattice"])
def test_a_new_word_of_a_column_without_a_hierarchy_is_refused(house: House, kind: str) -> None:
    hierarchy(house)
    table = rows(1, 200)
    shape = {"quasi_identifiers": {"ward": {}, "age": {"intervals": [100]}}}
    fixed = {"zip": "021", "seen": dt.date(2024, 1, 1)}
    made = config(house, METHODS[kind], "first")
    made["columns"] |= shape
    anon.run(made, table)
    reuse = config(house, {"kind": "reuse", "run": str(house.folder / "first-run")}, "again")
    reuse["columns"] |= shape
    anon.run(reuse, rows(1, 200, **fixed))
    with pytest.raises(ConfigError, match=r"1 new values \(4 rows\)"):
        anon.run(reuse, pa.concat_tables([table, rows(5, 4, ward="n1a")]), overwrite=True)


def test_a_place_that_nobody_was_in_is_exit_3_with_the_count(house: House) -> None:
    """The young are split by ward as the old are, but nobody young was in South."""
    fixed = {"zip": "021", "seen": dt.date(2024, 1, 1), "disease": "Flu", "cost": 1.0}
    table = pa.Table.from_pylist(
        [{"age": 10, "ward": ward, **fixed} for ward in ["n1"] * 3 + ["n2"] * 3]
        + [{"age": 90, "ward": ward, **fixed} for ward in ["n1"] * 3 + ["s1"] * 3]
    )
    first(house, table)
    more = pa.Table.from_pylist([{"age": 11, "ward": "n3", **fixed}] * 2)
    with pytest.raises(UnsafeError, match="the recoding has no group for 2 individuals") as caught:
        again(house, pa.concat_tables([table, more]))
    assert planned(house, pa.concat_tables([table, more]))["reason"] == str(caught.value)
    assert not (house.folder / "again").exists()


@pytest.mark.parametrize("kind", METHODS)
def test_rows_that_make_a_group_too_small_are_exit_3_and_nothing_is_published(house: House, kind: str) -> None:
    table = rows(1, 400)
    first(house, table, kind)
    few, k = (table, 4) if kind == "partition" else (table.slice(0, 60), 20)
    with pytest.raises(UnsafeError, match=r"no longer safe for these rows: k_anonymity [13] ") as caught:
        again(house, few, k)
    found = planned(house, few, k)
    assert (found["feasible"], found["reason"]) == (False, str(caught.value))
    assert planned(house, table)["feasible"]
    assert not (house.folder / "again").exists()
    assert house.leftovers() == []


def test_cells_that_were_suppressed_stay_suppressed(house: House) -> None:
    fixed = {"zip": "021", "seen": dt.date(2024, 1, 1), "ward": "n1"}
    table = pa.concat_tables([rows(1, 60, age=30, **fixed), rows(2, 2, age=99, **fixed)])
    first(house, table, "suppressing")
    assert json.loads((house.folder / "first-run" / "recoding.json").read_text())["suppressed"] == 2
    assert len(again(house, pa.concat_tables([table] * 3))) == 3 * 60


def test_what_is_left_of_suppressed_cells_may_be_safe_where_the_whole_table_is_not(house: House) -> None:
    """Four people of eight, all with Flu, are suppressed; with them Flu has a share of 3/4."""
    table = pa.table({"age": [30] * 4 + [99] * 4, "disease": ["Flu", "HIV"] * 2 + ["Flu"] * 4})
    columns = {"individual": "row", "quasi_identifiers": {"age": {}}, "sensitive": ["disease"]}
    made = house.config(columns=columns, privacy=[{"l_diversity": {"kind": "frequency", "l": 2}}])
    anon.run(made | {"method": {"kind": "lattice", "suppress": 0.5}}, table)
    bytes_then = house.bytes()
    reused = made | {"method": {"kind": "reuse", "run": made["release"]["run"]}}
    anon.run(reused | {"release": {"path": str(house.folder / "again")}}, table)
    assert (house.folder / "again" / "release.parquet").read_bytes() == bytes_then


def test_a_reused_recoding_can_be_reused(house: House) -> None:
    table = rows(1, 400)
    made = first(house, table)
    again(house, pa.concat_tables([table, table]))
    anon.run(config(house, {"kind": "reuse", "run": str(house.folder / "again-run")}, "third"), table)
    assert files(house, "third") == made
    manifests = [json.loads((house.folder / f"{out}-run" / "manifest.json").read_text()) for out in ("again", "third")]
    assert manifests[1]["reused"]["run"] == manifests[0]["run"]
    assert manifests[1]["reused"]["recoding_sha256"] == manifests[0]["recoding_sha256"]


def test_many_numbers_are_binned_and_still_give_the_same_bytes(house: House) -> None:
    count = 70_000
    table = pa.table({"age": list(range(0, 2 * count, 2)), "disease": ["Flu", "HIV"] * (count // 2)})
    made = house.config(privacy=[{"k_anonymity": {"k": 500}}])
    made["columns"] = {"individual": "row", "quasi_identifiers": {"age": {}}, "sensitive": ["disease"]}
    anon.run(made, table)
    before = house.bytes()
    made["method"] = {"kind": "reuse", "run": made["release"]["run"]}
    made["release"] = {"path": str(house.folder / "again")}
    anon.run(made, table)
    assert (house.folder / "again" / "release.parquet").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"quasi_identifiers": {"age": {}, "zip": {"digits": 3}}}, "those of method.run: age, zip, seen, ward"),
        ({"sensitive": ["cost"], "keep": []}, ""),
    ],
)
def test_the_columns_must_be_those_of_the_recoding(house: House, change: dict[str, Any], words: str) -> None:
    table = rows(1, 100)
    first(house, table)
    made = config(house, {"kind": "reuse", "run": str(house.folder / "first-run")}, "again")
    made["columns"] |= change
    if words:
        with pytest.raises(ConfigError, match=words):
            anon.run(made, table)
    else:
        made["columns"]["sensitive"] = {"cost": {"as_categories": True}}
        assert anon.run(made, table).safe


def test_another_kind_of_column_and_another_hierarchy_are_refused(house: House) -> None:
    table = rows(1, 100)
    first(house, table)
    floats = table.set_column(0, "age", table["age"].cast(pa.float64()))
    with pytest.raises(ConfigError, match=r"values of kind number; expected integer, as in method\.run"):
        again(house, floats)
    path = house.folder / "ward.csv"
    path.write_text(path.read_text().replace("n1;North", "n1;South"))
    with pytest.raises(ConfigError, match=r"another hierarchy than that of method\.run for 1 values"):
        again(house, table)


@pytest.mark.parametrize("broken", ["missing", "empty", "garbled", "trial"])
def test_a_run_without_a_recoding_is_exit_2(house: House, broken: str) -> None:
    table = rows(1, 100)
    first(house, table)
    run: Path = house.folder / "first-run"
    if broken == "trial":
        manifest = json.loads((run / "manifest.json").read_text())
        (run / "manifest.json").write_text(json.dumps(manifest | {"trial": "1%"}))
    elif broken == "garbled":
        (run / "recoding.json").write_text("{")
    elif broken == "empty":
        (run / "recoding.json").write_text("{}")
    else:
        run = house.folder / "nowhere"
    with pytest.raises(ConfigError, match=r"method\.run: found"):
        again(house, table, run=run.name)
