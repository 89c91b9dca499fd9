"""On a Spark cluster the release is that of the local engine: same recoding, same rows, same facts."""

from __future__ import annotations

import datetime
import json
import os
import signal
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from demo import hospital

import anon
from anon import pipeline
from anon.core.progress import Progress
from anon.errors import ConfigError, SourceError
from anon.runs.options import Options
from anon.search import budget
from anon.search.partition import search as partition
from anon.search.partition import top
from anon.search.partition.decide import Rules
from tests.conftest import House
from tests.helpers import spark as cluster_of

pytestmark = pytest.mark.xdist_group("spark")
ROWS = 1_500

DISEASE = {"sensitive": "disease"}
ALONE = [
    {"k_anonymity": {"k": 4}},
    {"l_diversity": {"kind": "distinct", "l": 2} | DISEASE},
    {"l_diversity": {"kind": "entropy", "l": 1.4} | DISEASE},
    {"l_diversity": {"kind": "recursive", "c": 9, "l": 2} | DISEASE},
    {"t_closeness": {"t": 0.9, "distance": {"kind": "equal"}} | DISEASE},
    {"alpha_k": {"alpha": 0.9, "k": 3} | DISEASE},
]
NUMBERS = [
    {"k_e": {"k": 2, "e": 500, "sensitive": "cost"}},
    {"variance": {"minimum": 100, "sensitive": "cost"}},
    {"epsilon_m": {"epsilon": 100, "m": 2, "sensitive": "cost"}},
    {"dissimilarity": {"epsilon": 50, "delta": 0.1, "k": 3, "sensitive": "cost", "distance": {"kind": "absolute"}}},
]
TOGETHER = [
    {
        "skyline": {
            "points": [{"l": 1, "k": 2, "m": 2, "c": 0.9}],
            "values": {"d0": [{"l": 1, "k": 3, "m": 1, "c": 0.9}]},
        }
    },
    {"ck_safety": {"c": 0.95, "k": 2}},
    {"group_size": {"k": 3}},
]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small enough that a small table has a top of several levels, and many blocks."""
    monkeypatch.setattr(budget, "BLOCK", 5_000)
    monkeypatch.setattr(partition, "SMALLEST_BLOCK", 1)


def people(rows: int = ROWS) -> pa.Table:
    """A table with every type of column and with missing values."""
    draw = np.random.default_rng(rows)
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(int(day)) for day in draw.integers(0, 200, rows)]
    some = draw.random(rows) < 0.1
    return pa.table(
        {
            "name": [f"person {row}" for row in range(rows)],
            "age": pa.array(draw.integers(0, 100, rows).astype(np.int16), mask=some),
            "zip": [f"{code:05d}" for code in draw.integers(0, 400, rows)],
            "weight": pa.array(np.where(some, np.nan, draw.normal(70, 20, rows).round(1)).astype(np.float32)),
            "admitted": pa.array(days),
            "smokes": pa.array((draw.random(rows) < 0.3).tolist(), pa.bool_()),
            "disease": [f"d{code}" for code in draw.choice(5, rows, p=[0.4, 0.3, 0.15, 0.1, 0.05])],
            "cost": pa.array([Decimal(int(cents)).scaleb(-2) for cents in draw.integers(0, 10**6, rows)]),
            "seen": pa.array(draw.integers(0, 10**12, rows), pa.timestamp("us")),
            "dose": pa.array(np.where(some, np.nan, draw.integers(-2, 3, rows) * 0.5)),
            "visits": pa.array(draw.integers(0, 4, rows)),
        }
    )


COLUMNS: dict[str, Any] = {
    "identifiers": ["name"],
    "individual": "row",
    "quasi_identifiers": {
        "age": {}, "zip": {"digits": 5}, "weight": {}, "admitted": {"calendar": ["day", "month", "year"]},
        "smokes": {"suppress": True},
    },
    "sensitive": ["disease"],
}  # fmt: skip


@pytest.mark.long
def test_criteria_that_judge_groups_alone_with_kept_columns_and_many_parts(
    cluster: Any, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anon.backends.spark.parts.PART", 400)
    columns = COLUMNS | {"keep": ["seen", "dose"]}
    cluster_of.run_both(house, people(), columns=columns, privacy=ALONE)
    written = list((house.folder / "spark" / "release.parquet").iterdir())
    package = json.loads((house.folder / "spark" / "datapackage.json").read_text())
    assert len(written) > 2
    assert package["resources"][0]["path"] == [f"release.parquet/{name}" for name in sorted(p.name for p in written)]
    assert not house.leftovers()


@pytest.mark.long
def test_criteria_about_numbers_and_splits_by_balance(cluster: Any, house: House) -> None:
    columns = COLUMNS | {"sensitive": {"cost": {"round": 10}}}
    cluster_of.run_both(house, people(), columns=columns, privacy=NUMBERS, method={"prefer": "balanced"}, files=1)


@pytest.mark.long
def test_criteria_that_judge_all_groups_together(cluster: Any, house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks are searched from the state that the top left; those that do not hold with what came before, which is said
    here of every fifth, are searched again. And the driver adds up no counters by itself."""
    from anon.backends.spark import passes
    from anon.backends.spark.partition import SparkPartition

    searched: list[int] = []
    search = SparkPartition._searched

    def counting(self: Any, gathered: Any, nodes: Any, runs: Any, wanted: list[int], state: Any) -> Any:
        searched.append(len(wanted))
        return search(self, gathered, nodes, runs, wanted, state)

    held: list[bool] = []

    def hold(self: Any, state: Any) -> bool:
        held.append(len(held) % 5 != 4)
        return held[-1]

    monkeypatch.setattr(SparkPartition, "_searched", counting)
    monkeypatch.setattr(Rules, "hold", hold)
    monkeypatch.setattr(passes, "DIRECT", 0)
    cluster_of.run_both(house, people(), columns=COLUMNS, privacy=TOGETHER)
    assert len(searched) > 1


@pytest.mark.long
@pytest.mark.parametrize("keep", [[], ["dose"]])
def test_the_bucketized_form(cluster: Any, house: House, keep: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anon.backends.spark.parts.PART", 200)
    privacy = [{"k_anonymity": {"k": 5}}, {"l_diversity": {"kind": "distinct", "l": 2} | DISEASE}]
    changes: dict[str, Any] = {"columns": COLUMNS | {"keep": keep}, "privacy": privacy}
    cluster_of.run_both(house, people(600), release__form="bucketized", **changes)
    assert len(list((house.folder / "spark" / "sensitive.parquet").iterdir())) > 1


@pytest.mark.long
def test_several_sensitive_columns_and_splits_by_information(cluster: Any, house: House) -> None:
    columns = COLUMNS | {"sensitive": {"disease": {}, "cost": {"round": 5000}, "visits": {}}, "keep": ["dose"]}
    distance = {"kind": "variational", "columns": ["cost", "visits"]}
    privacy = [
        {"l_diversity": {"kind": "distinct", "l": 2, "sensitive": "disease"}},
        {"dissimilarity": {"epsilon": 0.1, "delta": 0.1, "k": 3, "distance": distance}},
    ]
    method = {"prefer": {"information_gain": "disease"}}
    cluster_of.run_both(house, people(), columns=columns, privacy=privacy, method=method)


@pytest.mark.long
def test_equal_rows_are_counted_and_what_the_driver_gets_is_bounded(
    cluster: Any, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass brings no more counters to the driver than the slices that it is told to make."""
    from anon.backends.spark.passes import SparkPasses

    facts: list[Any] = []
    close = SparkPasses.__init__

    def noted(self: Any, records: Any) -> None:
        close(self, records)
        facts.append(self.facts)

    monkeypatch.setattr(SparkPasses, "__init__", noted)
    monkeypatch.setattr(budget, "BLOCK", 1_000)
    table = people().select(["age", "smokes", "disease"])
    columns = COLUMNS | {"identifiers": [], "quasi_identifiers": {"age": {}, "smokes": {"suppress": True}}}
    _, wide = cluster_of.run_both(house, table, columns=columns, privacy=[{"k_anonymity": {"k": 5}}])
    for name, slice_size in (("COUNTERS", 10), ("CELLS", 20)):
        monkeypatch.setattr(top, name, slice_size)
    _, narrow = cluster_of.run_both(house, table, columns=columns, privacy=[{"k_anonymity": {"k": 5}}])
    assert narrow.facts == wide.facts
    assert facts[1].passes > facts[0].passes
    assert facts[1].largest < facts[0].largest


@pytest.mark.long
def test_more_values_than_codes_make_the_same_bins(cluster: Any, house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "BLOCK", 200_000)
    rows = 70_000
    draw = np.random.default_rng(7)
    fine = np.where(draw.random(rows) < 0.01, np.nan, draw.random(rows))
    table = pa.table({"fine": fine, "disease": draw.choice(["a", "b", "c"], rows).tolist()})
    columns = {"individual": "row", "quasi_identifiers": {"fine": {}}, "sensitive": ["disease"]}
    cluster_of.run_both(house, table, columns=columns, privacy=[{"k_anonymity": {"k": 500}}])


def test_an_executor_that_is_killed_in_the_middle_changes_nothing(
    cluster: Any, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    from anon.backends.spark.passes import SparkPasses

    killed: list[int] = []
    count = SparkPasses.count

    def count_and_kill(self: Any, *given: Any) -> Any:
        if self.facts.passes == 1 and not killed:
            killed.extend(cluster_of.processes()[:1])
            os.kill(killed[0], signal.SIGKILL)
        return count(self, *given)

    monkeypatch.setattr(SparkPasses, "count", count_and_kill)
    cluster_of.run_both(house, people(), columns=COLUMNS | {"keep": ["dose"]}, privacy=[{"k_anonymity": {"k": 4}}])
    assert killed


@pytest.mark.long
def test_a_table_of_the_catalog_and_a_frame_are_sources(cluster: Any, house: House) -> None:
    table = people(600)
    cluster.createDataFrame(table).repartition(5).createOrReplaceTempView("people")
    changes: dict[str, Any] = {"columns": COLUMNS, "privacy": [{"k_anonymity": {"k": 4}}]}
    local, _ = cluster_of.run_both(house, table, source="people", **changes)
    config = cluster_of.at(house, "given", house.config(**changes)) | {"backend": cluster_of.BACKEND}
    given = anon.run(config, cluster.table("people").coalesce(1))
    assert given.facts == local.facts
    assert (house.folder / "given" / "release.parquet").is_dir()


@pytest.mark.long
def test_adult(cluster: Any, house: House, adult: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "BLOCK", 100_000)
    columns = {
        "individual": "row",
        "quasi_identifiers": {"age": {}, "sex": {"suppress": True}, "race": {"suppress": True}, "education": {}},
        "sensitive": ["occupation"],
    }
    skyline = {"skyline": {"points": [{"l": 3, "k": 5, "m": 2, "c": 0.9}]}}
    cluster_of.run_both(house, adult, columns=columns, privacy=[{"k_anonymity": {"k": 10}}, skyline])


@pytest.mark.long
def test_the_demo(cluster: Any, house: House) -> None:
    path = cluster_of.ROOT / "configs" / "hospital.yaml"
    text = path.read_text(encoding="utf-8").replace("../hierarchies", str(cluster_of.ROOT / "hierarchies"))
    config = yaml.safe_load(text)
    config["privacy"][1]["skyline"]["absent"] = "ok"
    parts = {name: config[name] for name in ("columns", "privacy", "method")}
    cluster_of.run_both(house, hospital.rows(0, 5_000), **parts)


@pytest.mark.long
def test_mistakes_in_the_data_are_told_as_by_the_local_engine(cluster: Any, house: House) -> None:
    table = people(300).append_column("id", pa.array([*range(299), 0]))
    house.write(table.append_column("patient_id", pa.array([row // 3 for row in range(300)])))
    cases: list[dict[str, Any]] = [
        {"columns": COLUMNS | {"individual": "id"}},
        {"columns": COLUMNS | {"quasi_identifiers": {"agee": {}}}},
        {"columns": COLUMNS | {"quasi_identifiers": {"name": {}}, "identifiers": []}},
        {"columns": COLUMNS, "nulls": {"quasi_identifiers": "error"}},
        {"columns": COLUMNS | {"identifiers": ["name", "patient_id"]}},
        {"columns": COLUMNS | {"quasi_identifiers": {"name": {"digits": 3}}, "identifiers": []}},
    ]
    for changes in cases:
        said = []
        for backend in ({"kind": "local"}, cluster_of.BACKEND):
            with pytest.raises(ConfigError) as refused:
                anon.run(house.config(**changes) | {"backend": backend}, overwrite=True)
            said.append(str(refused.value))
        assert said[0] == said[1]
    assert not house.leftovers()
    (house.folder / "table.csv").write_text("age\n1\n")
    with pytest.raises(ConfigError, match="CSV"):
        anon.run(house.config(source={"path": "table.csv"}) | {"backend": cluster_of.BACKEND})
    with pytest.raises(SourceError, match="no such table"):
        anon.run(house.config() | {"backend": cluster_of.BACKEND, "source": {"table": "no.where"}})


@pytest.mark.long
def test_ages_bands_and_padded_codes(cluster: Any, house: House) -> None:
    """Birth dates repeat in rows that agree on the rest, which would make a key of persons of anything but a date."""
    table = people()
    born = [datetime.date(1950, 1, 1) + datetime.timedelta(days=40 * (row // 2)) for row in range(ROWS)]
    table = table.append_column("born", pa.array(born)).append_column("code", pa.array(range(ROWS)))
    builders = {
        "born": {"age_on": "2035-02-28", "bands": [[0, 18, 30, 45, 65, 80], [18, 65]]},
        "code": {"digits": 5, "pad": 5},
        "weight": {"bands": [50, 62.5, 75]},
        "admitted": {"calendar": ["month", "decade", "century"]},
    }
    columns = COLUMNS | {"quasi_identifiers": builders}
    local, _ = cluster_of.run_both(house, table, columns=columns)
    assert local.to_dict()["groups"] > 50


@pytest.mark.long
def test_a_run_that_was_stopped_goes_on_where_it_was(cluster: Any, house: House) -> None:
    class Stops(Progress):
        def update(self, name: str, done: int = 0, of: int = 0, **facts: int) -> None:
            if facts.get("level") == 2:
                raise KeyboardInterrupt

    house.write(people())
    config = house.config(columns=COLUMNS, privacy=[{"k_anonymity": {"k": 4}}]) | {"backend": cluster_of.BACKEND}
    with pytest.raises(KeyboardInterrupt):
        pipeline.run(config, None, Options(), Stops())
    resumed = anon.run(config, resume=True)
    whole = anon.run(cluster_of.at(house, "whole", config) | {"backend": {"kind": "local"}})
    assert resumed.facts == whole.facts
