"""What only a cluster has, and what must not change the release: parts that executors write, blocks that tasks search,
passes of bounded size, executors that are lost, and tables that Spark alone reads."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import pytest

import anon
from anon.errors import ConfigError, SourceError
from anon.search import budget
from anon.search.partition import search as partition
from anon.search.partition import top
from anon.search.partition.decide import Rules
from tests.conftest import House
from tests.helpers import spark as cluster_of
from tests.helpers.backends import at, only_spark, run_as_plain
from tests.helpers.people import COLUMNS, people

pytestmark = only_spark

DISEASE = {"sensitive": "disease"}
ALONE = [
    {"k_anonymity": {"k": 4}},
    {"l_diversity": {"kind": "distinct", "l": 2} | DISEASE},
    {"l_diversity": {"kind": "entropy", "l": 1.4} | DISEASE},
    {"l_diversity": {"kind": "recursive", "c": 9, "l": 2} | DISEASE},
    {"t_closeness": {"t": 0.9, "distance": {"kind": "equal"}} | DISEASE},
    {"alpha_k": {"alpha": 0.9, "k": 3} | DISEASE},
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


@pytest.mark.long
def test_criteria_that_judge_groups_alone_with_kept_columns_and_many_parts(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anon.backends.spark.parts.PART", 400)
    columns = COLUMNS | {"keep": ["seen", "dose"]}
    run_as_plain(house, people(), columns=columns, privacy=ALONE)
    written = list((house.folder / "again" / "release.parquet").iterdir())
    package = json.loads((house.folder / "again" / "datapackage.json").read_text())
    assert len(written) > 2
    assert package["resources"][0]["path"] == [f"release.parquet/{name}" for name in sorted(p.name for p in written)]
    assert not house.leftovers()


@pytest.mark.long
def test_criteria_that_judge_all_groups_together(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
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
    run_as_plain(house, people(), columns=COLUMNS, privacy=TOGETHER)
    assert len(searched) > 1


@pytest.mark.long
@pytest.mark.parametrize("keep", [[], ["dose"]])
def test_the_bucketized_form(house: House, keep: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anon.backends.spark.parts.PART", 200)
    privacy = [{"k_anonymity": {"k": 5}}, {"l_diversity": {"kind": "distinct", "l": 2} | DISEASE}]
    changes: dict[str, Any] = {"columns": COLUMNS | {"keep": keep}, "privacy": privacy}
    run_as_plain(house, people(600), release__form="bucketized", **changes)
    assert len(list((house.folder / "again" / "sensitive.parquet").iterdir())) > 1


@pytest.mark.long
def test_equal_rows_are_counted_and_what_the_driver_gets_is_bounded(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass brings no more counters to the driver than the slices it is made of."""
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
    _, wide = run_as_plain(house, table, columns=columns, privacy=[{"k_anonymity": {"k": 5}}])
    for name, slice_size in (("COUNTERS", 10), ("CELLS", 20)):
        monkeypatch.setattr(top, name, slice_size)
    _, narrow = run_as_plain(house, table, columns=columns, privacy=[{"k_anonymity": {"k": 5}}])
    assert narrow.facts == wide.facts
    assert facts[1].passes > facts[0].passes
    assert facts[1].largest < facts[0].largest


def test_an_executor_that_is_killed_in_the_middle_changes_nothing(
    house: House, monkeypatch: pytest.MonkeyPatch
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
    run_as_plain(house, people(), columns=COLUMNS | {"keep": ["dose"]}, privacy=[{"k_anonymity": {"k": 4}}])
    assert killed


@pytest.mark.long
def test_sources_that_spark_does_not_read_are_refused(house: House) -> None:
    (house.folder / "table.csv").write_text("age\n1\n")
    with pytest.raises(ConfigError, match="CSV"):
        anon.run(house.config(source={"path": "table.csv"}))
    with pytest.raises(SourceError, match="no such table"):
        anon.run(house.config() | {"source": {"table": "no.where"}})


@pytest.mark.long
def test_a_table_of_the_catalog_and_a_frame_are_sources(cluster: Any, house: House) -> None:
    table = people(600)
    cluster.createDataFrame(table).repartition(5).createOrReplaceTempView("people")
    changes: dict[str, Any] = {"columns": COLUMNS, "privacy": [{"k_anonymity": {"k": 4}}]}
    local, _ = run_as_plain(house, table, source="people", **changes)
    given = anon.run(at(house, "given", house.config(**changes)), cluster.table("people").coalesce(1))
    assert given.facts == local.facts
    assert (house.folder / "given" / "release.parquet").is_dir()
