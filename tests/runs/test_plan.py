"""`anon plan`: what a run would do, told before it is done, by the steps that the run itself takes; nothing is left."""

from __future__ import annotations

import os
from math import prod
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from anon import cube as cubes
from anon.backends import local
from anon.backends.spark.backend import SparkBackend
from anon.commands.plan import plan
from anon.config import load
from anon.core import memory
from anon.core.database import Database
from anon.core.progress import Progress
from anon.cube import records
from anon.errors import ConfigError
from anon.runs.workspace import locked_release
from tests.conftest import House

ROWS = 600


def table(**more: Any) -> dict[str, Any]:
    return {
        "age": [row * 7 % 90 for row in range(ROWS)],
        "zip": [f"{row * 31 % 50 + 1000:05}" for row in range(ROWS)],
        "disease": [("flu", "cold", "HIV")[row % 3] for row in range(ROWS)],
        **more,
    }


LATTICE = {
    "columns__quasi_identifiers": {"age": {"intervals": [5, 10, 20]}, "zip": {"digits": 5}},
    "method": {"kind": "lattice"},
}


def files(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


def test_a_plan_tells_what_the_run_then_finds(house: House) -> None:
    house.write(table())
    planned = house.cli("plan", "--json")
    assert planned.code == 0, planned.stderr
    told, ran = planned.json, house.cli("run", "--json").json
    assert (told["rows"], told["individuals"]) == (ran["rows"], ran["individuals"]) == (ROWS, ROWS)
    assert told["feasible"] and [entry["name"] for entry in told["criteria"]] == ["k_anonymity"]
    columns = {column["name"]: column for column in told["columns"]}
    assert [columns[name]["distinct"] for name in ("age", "zip", "disease")] == [90, 50, 3]
    assert (columns["age"]["levels"], columns["zip"]["levels"]) == (None, 6)


def test_a_plan_writes_nothing(house: House) -> None:
    house.write(table())
    house.cli("schema")
    before = files(house.folder)
    assert house.cli("plan").code == 0
    assert files(house.folder) == before


@pytest.mark.parametrize("more", [[], [{"group_size": {"k": 2}}]])
def test_what_priors_say_of_the_whole_table_as_one_group_is_planned(house: House, more: list[dict[str, Any]]) -> None:
    house.write(table(sex=["FM"[row % 2] for row in range(ROWS)]))
    robust = {"r_robustness": {"r": 2, "priors": [{"estimate": ["sex"]}]}}
    asked = {
        "columns__quasi_identifiers": {"age": {}, "sex": {"suppress": True}},
        "privacy": [robust, *more],
        "method": {"kind": "merge"},
        "release": {"path": "out", "run": "out-run", "form": "bucketized"},
    }
    told = house.cli("plan", "--json", **asked)
    assert told.code == 0, told.stderr
    names = [name for criterion in (robust, *more) for name in criterion]
    assert told.json["feasible"] and [(entry["name"], entry["safe"]) for entry in told.json["criteria"]] == [
        (name, True) for name in names
    ]
    assert "Nothing was found that prevents a run." in house.cli("plan", **asked).stdout
    assert house.cli("run", **asked).code == 0
    asked["privacy"][0]["r_robustness"]["r"] = 3.5  # type: ignore[index]
    planned = house.cli("plan", **asked)
    assert planned.code == house.cli("run", "--overwrite", **asked).code == 3
    assert "which is a larger share than 1/r" in planned.stdout


def test_equal_rows_are_counted_as_in_the_run(house: House) -> None:
    house.write({name: values * 40 for name, values in table().items()})
    told = house.cli("plan", "--json").json["records"]
    assert told["collapsed"]
    assert told["count"] == len(set(zip(*table().values())))
    assert told["bytes"] == 2 * 5 * told["count"]  # two columns, one value, two halves of the people
    assert told["bytes_each"] == 2 * 3 + 4


def test_records_that_do_not_fit_are_planned_for_the_disk(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.write(table())
    for name in ("records", "marks"):
        monkeypatch.setattr(memory.Memory, name, property(lambda self: 100))
    made: dict[str, int] = {}
    make = records.make

    def noted(room: int, folder: Path | None, count: int, sizes: list[int], name: str) -> records.Records:
        place = make(room, folder, count, sizes, name)
        if isinstance(place, records.OnDisk):
            made[name] = sum(path.stat().st_size for path in place.paths)
        return place

    planned = house.cli("plan", "--json").json
    monkeypatch.setattr(records, "make", noted)
    assert house.cli("run").code == 0
    assert not planned["records"]["in_memory"]
    disk = {name: size for name, size in planned["disk"].items() if name not in ("total", "csv_copy")}
    assert disk == made and planned["disk"]["total"] == sum(made.values())


def test_what_a_plan_says_of_the_disk_is_what_files_take(tmp_path: Path) -> None:
    for count in (1, 5, records.SEGMENT + 1):
        place = records.OnDisk(count, [2, 300, 70_000], tmp_path / f"records-{count}")
        assert records.bytes_on_disk(count, place.sizes) == sum(path.stat().st_size for path in place.paths)
        place.close()


def test_a_csv_source_counts_its_copy(house: House) -> None:
    import pyarrow.csv

    pyarrow.csv.write_csv(pa.table(table()), house.folder / "table.csv")
    assert house.cli("plan", "--json", source__path="table.csv").json["disk"]["csv_copy"] > 0


def test_the_lattice_has_as_many_nodes_as_combinations_of_levels(house: House) -> None:
    house.write(table())
    told = house.cli("plan", "--json", **LATTICE).json
    assert told["lattice"]["nodes"] == prod(column["levels"] for column in told["columns"] if "levels" in column) == 30


def test_a_lattice_that_is_too_large_is_found_early(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    from anon.search.lattice import search as lattice

    monkeypatch.setattr(lattice, "NODES", 10)
    house.write(table())
    planned, ran = house.cli("plan", **LATTICE), house.cli("run", **LATTICE)
    assert planned.code == ran.code == 2 and "a lattice of 30 nodes" in planned.stderr and "30 nodes" in ran.stderr


def test_criteria_that_no_release_can_have_are_exit_3_with_figures(house: House) -> None:
    house.write(table())
    changes = {"privacy": [{"k_anonymity": {"k": 2}}, {"l_diversity": {"kind": "distinct", "l": 4}}]}
    planned, ran = house.cli("plan", "--json", **changes), house.cli("run", "--json", **changes)
    assert planned.code == ran.code == 3
    assert not planned.json["feasible"] and planned.json["reason"] == ran.json["error"]
    assert [(entry["name"], entry["safe"], entry["figure"]) for entry in planned.json["criteria"]] == [
        ("k_anonymity", True, ROWS), ("l_diversity", False, 3),
    ]  # fmt: skip


def test_gaps_of_all_hierarchies_are_told_at_once(house: House) -> None:
    house.write(table(sex=["FM"[row % 2] for row in range(ROWS)]))
    (house.folder / "sex.csv").write_text("F;*\n", encoding="utf-8")
    (house.folder / "zip.csv").write_text("01000;*\n", encoding="utf-8")
    builders = {name: {"hierarchy": str(house.folder / f"{name}.csv")} for name in ("sex", "zip")}
    planned = house.cli("plan", "--json", columns__quasi_identifiers=builders)
    assert planned.code == 2
    assert [problem["path"] for problem in planned.json["problems"]] == [
        "columns.quasi_identifiers.sex.hierarchy", "columns.quasi_identifiers.zip.hierarchy",
    ]  # fmt: skip
    assert "(300 rows)" in planned.json["problems"][0]["found"]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"privacy": [{"k_anonymity": {"k": 1}}]}, 2),
        ({"columns__quasi_identifiers": {"agee": {}}}, 2),
        ({"source": {"path": "nothing.parquet"}}, 5),
        ({"limits": {"memory": "100MB", "temp": "spill"}}, 6),
    ],
)
def test_mistakes_end_as_in_the_run(house: House, changes: dict[str, Any], code: int) -> None:
    house.write(table())
    planned, ran = house.cli("plan", "--json", **changes), house.cli("run", "--json", **changes)
    assert planned.code == ran.code == code
    assert planned.json == ran.json


def test_a_plan_warns_as_the_run_would(house: House) -> None:
    house.write(table())
    changes = {"privacy": [{"k_anonymity": {"k": 5}}, {"l_diversity": {"kind": "distinct", "l": 1}}]}
    planned = house.cli("plan", "--json", **changes)
    codes = [warning["code"] for warning in planned.json["warnings"]]
    assert planned.code == 0 and codes == ["vacuous_criterion"]
    ran = [warning["code"] for warning in house.cli("run", "--json", **changes).json["warnings"]]
    assert set(codes) <= set(ran)
    assert house.cli("plan", "--strict", **changes).code == 3


def test_a_release_that_exists_is_a_warning(house: House) -> None:
    house.write(table())
    house.run()
    told = house.cli("plan", "--json", privacy=[{"k_anonymity": {"k": 3}}])
    assert told.code == 0 and "release_exists" in [warning["code"] for warning in told.json["warnings"]]


def test_a_plan_says_that_a_run_would_do_nothing(house: House) -> None:
    house.write(table())
    assert house.cli("run").code == 0
    told = house.cli("plan", "--json").json
    assert told["up_to_date"] and "release_exists" not in [warning["code"] for warning in told["warnings"]]
    assert "Up to date" in house.cli("plan").stdout


def test_the_queries_are_those_that_the_run_sends(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.write(table())
    planned = house.cli("plan", "--sql", "--json").json["sql"]
    opened: list[Database] = []
    connect = local.connect

    def noted(*limits: Any, **more: Any) -> Database:
        opened.append(connect(*limits, **more).record())
        return opened[-1]

    monkeypatch.setattr(local, "connect", noted)
    assert house.cli("run").code == 0
    assert planned and planned == opened[0].queries[: len(planned)]
    assert any("GROUP BY" in sql for sql in planned)


def test_queries_hide_what_variables_hold(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.write(table(), "hush/table.parquet")
    monkeypatch.setenv("FOLDER", "hush")
    told = house.cli("plan", "--sql", source={"path": "${FOLDER}/table.parquet"})
    assert told.code == 0 and "hush" not in told.stdout and "${FOLDER}" in told.stdout


def test_a_plan_in_words_says_whether_something_stands_in_the_way(house: House) -> None:
    house.write(table())
    told = house.cli("plan").stdout
    assert "600 rows" in told and "Nothing was found that prevents a run." in told
    refused = house.cli("plan", privacy=[{"k_anonymity": {"k": 601}}])
    assert refused.code == 3 and "no release is safe" in refused.stdout
    assert house.cli("run").code == 0
    again = house.cli("plan", privacy=[{"k_anonymity": {"k": 3}}]).stdout
    assert "only with --overwrite" in again and "Nothing else was found that prevents a run." in again


def test_a_frame_stands_in_for_the_source(house: House) -> None:
    told = plan(house.config(), pa.table(table()))
    assert told.facts["rows"] == ROWS and told.report["sql"]


def test_plan_and_run_build_the_same_cube(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.write(table())
    built: list[tuple[int, list[int], bool]] = []
    build = cubes.build

    def noted(*arguments: Any) -> cubes.Cube:
        cube = build(*arguments)
        built.append((cube.records.count, [domain.size for domain in cube.domains], cube.counted))
        return cube

    monkeypatch.setattr(cubes, "build", noted)
    assert house.cli("plan").code == house.cli("run").code == 0
    assert len(built) == 2 and built[0] == built[1]


# What a run refuses


def test_a_place_that_cannot_be_written_is_refused_as_by_the_run(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.write(table())
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != house.folder)
    planned = house.cli("plan", "--json")
    assert planned.code == 2 and planned.json["problems"][0]["path"] == "release.path"
    assert "cannot be written (Permission denied)" in planned.json["error"]


def test_a_place_where_another_run_writes_is_refused_as_by_the_run(house: House) -> None:
    house.write(table())
    with locked_release(load(house.config()), Progress()):
        planned, ran = house.cli("plan", "--json"), house.cli("run", "--json")
        assert planned.code == ran.code == 2
        assert planned.json["error"] == ran.json["error"] and "another run is writing" in ran.json["error"]
    assert house.cli("plan").code == 0


def test_a_value_that_is_too_frequent_for_merging_is_known_before_the_search(house: House) -> None:
    house.write(table(disease=["flu" if row % 3 else "HIV" for row in range(ROWS)]))
    changes = {
        "privacy": [{"r_robustness": {"r": 2, "priors": [{"estimate": ["age"]}]}}],
        "method": {"kind": "merge"},
        "release__form": "bucketized",
    }
    planned, ran = house.cli("plan", "--json", **changes), house.cli("run", "--json", **changes)
    assert planned.code == ran.code == 3
    assert planned.json["reason"] in ran.json["error"] and "larger share than 1/r" in planned.json["reason"]


def test_a_reuse_is_planned_with_all_the_warnings_of_its_run(house: House) -> None:
    rows = table(drug=[f"drug {row}" for row in range(ROWS)])
    house.write(rows)
    keep = {"columns__keep": ["drug"]}
    assert house.cli("run", **keep, release={"path": "first", "run": "first-run"}).code == 0
    again = {**keep, "method": {"kind": "reuse", "run": str(house.folder / "first-run")}}
    planned = house.cli("plan", "--json", **again).json["warnings"]
    ran = house.cli("run", "--json", **again).json["warnings"]
    assert planned == ran and "kept_identifies" in [warning["code"] for warning in ran]
    house.write({name: [*values, *values[:6]] for name, values in rows.items()})
    planned = house.cli("plan", "--json", **again).json["warnings"]
    ran = house.cli("run", "--json", "--overwrite", **again).json["warnings"]
    assert [warning for warning in planned if warning["code"] != "release_exists"] == ran
    assert "intersection" in [warning["code"] for warning in ran]


def test_a_table_of_spark_is_not_planned(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkBackend, "check_installed", lambda: None)
    changes = {"backend": {"kind": "spark"}}
    with pytest.raises(ConfigError, match=r"source.table: found a table of Spark; .*`run` reads tables"):
        plan(house.config(**changes) | {"source": {"table": "db.visits"}})
    (house.folder / "table.csv").write_text("age,zip,disease\n1,2,3\n")
    with pytest.raises(ConfigError, match=r"source.path: found CSV files with backend spark"):
        plan(house.config(**changes) | {"source": {"path": str(house.folder / "table.csv")}})
