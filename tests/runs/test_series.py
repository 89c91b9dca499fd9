"""Series of releases: parts that are added night by night are safe together, never change, and nobody is in two."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anon
from anon.commands import series
from anon.errors import ConfigError, SourceError, VerificationError
from tests.helpers.series import CRITERIA, People, check_series, digests, extract, series_config


def night(folder: Path, config: dict[str, Any], rows: list[Any], **options: Any) -> dict[str, Any]:
    """Run one night; the parts of earlier ones must be what they were."""
    extract(folder, rows)
    before = digests(folder)
    result = anon.run(config, **options).to_dict()
    assert digests(folder).items() >= before.items(), "a published part changed"
    facts: dict[str, Any] = result["series"]
    return facts


def test_a_series_leaves_parts_a_description_and_a_private_ledger(tmp_path: Path) -> None:
    config, people = series_config(tmp_path), People(1)
    assert night(tmp_path, config, people.arrive(40)) == {
        "part": 1, "new": 40, "waiting": 0, "released": 40, "again": 0
    }  # fmt: skip
    night(tmp_path, config, people.arrive(30))
    package = json.loads((tmp_path / "out" / "datapackage.json").read_text())
    assert [each["path"] for each in package["resources"]] == ["part-000001.parquet", "part-000002.parquet"]
    assert [each["rows"] for each in package["resources"]] == [40, 30]
    assert {each["path"]: each["hash"] for each in package["resources"]} == {
        name: f"sha256:{digest}" for name, digest in digests(tmp_path).items()
    }
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "datapackage.json", "part-000001.parquet", "part-000002.parquet"
    ]  # fmt: skip
    ledger = tmp_path / "run" / "ledger"
    assert stat.S_IMODE(ledger.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in ledger.iterdir()} == {0o600}
    kept = {"hi": pa.uint64(), "lo": pa.uint64(), "g": pa.uint32()}  # no text
    assert all(pq.read_schema(file) == pa.schema(kept.items()) for file in ledger.glob("ids-*"))
    assert (tmp_path / "run" / "report.html").exists() and (tmp_path / "run" / "recoding-000001.json").exists()


def test_a_part_does_not_depend_on_the_key_or_on_the_memory(tmp_path: Path) -> None:
    found = []
    for place, memory in (("a", "600MB"), ("b", "2GB")):
        folder = tmp_path / place
        folder.mkdir()
        config, people = series_config(folder), People(5)
        config["limits"]["memory"] = memory
        for size in (50, 3, 40):
            night(folder, config, people.arrive(size))
        found.append(digests(folder))
    assert found[0] == found[1]


def test_releases_that_are_safe_alone_and_not_together_are_not_both_published(tmp_path: Path) -> None:
    """Two groups whose breach probability is 5/8 at most, and 12/19 together: the target in one, its family in the
    other (errata 7 of Privacy Skyline)."""
    point = {"l": 1, "k": 1, "m": 2, "c": 0.63}
    config = series_config(tmp_path, [{"skyline": {"points": [], "values": {"s": [point]}}}])
    people = People(1)
    (tmp_path / "apart").mkdir()
    for number, values in ((1, "swxyz"), (2, "s" * 6 + "a" * 17 + "bcdefgh")):
        rows = [row | {"ill": value, "age": 30, "zip": "00"} for row, value in zip(people.arrive(len(values)), values)]
        people.known |= {row["id"]: row for row in rows}
        found = night(tmp_path, config, rows)
        anon.run(config | {"release": {"path": str(tmp_path / f"plain-{number}")}})  # each by itself is safe
        shutil.copy(tmp_path / f"plain-{number}" / "release.parquet", tmp_path / "apart" / f"part-{number:06d}.parquet")
    assert not anon.check(config, tmp_path / "apart").safe
    assert (found["part"], found["waiting"], found["released"]) == (None, 30, 5)
    assert night(tmp_path, config, people.arrive(60, "bcdefgh"))["waiting"] == 0
    check_series(tmp_path, config, people)


# What a night may bring.


def test_rows_of_released_individuals_are_counted_and_left_out_whatever_changed(tmp_path: Path) -> None:
    config, people = series_config(tmp_path), People(2)
    rows = people.arrive(40)
    night(tmp_path, config, rows)
    changed = [rows[0] | {"ill": "z"}, rows[1] | {"age": 19, "zip": "99"}]
    found = night(tmp_path, config, changed + people.arrive(20))
    assert (found["again"], found["new"], found["part"]) == (2, 20, 2)
    assert night(tmp_path, config, changed) == {"part": None, "new": 0, "waiting": 0, "released": 60, "again": 2}


def test_a_night_without_rows_and_one_with_a_single_row_publish_nothing(tmp_path: Path) -> None:
    config, people = series_config(tmp_path), People(2)
    assert night(tmp_path, config, []) == {"part": None, "new": 0, "waiting": 0, "released": 0, "again": 0}
    assert night(tmp_path, config, people.arrive(1))["waiting"] == 1
    night(tmp_path, config, people.arrive(30))
    assert night(tmp_path, config, [])["part"] is None
    assert night(tmp_path, config, people.arrive(1)) == {
        "part": None,
        "new": 1,
        "waiting": 1,
        "released": 31,
        "again": 0,
    }
    check_series(tmp_path, config, people)


def test_late_arrivals_and_those_who_waited_come_with_the_next_part(tmp_path: Path) -> None:
    config, people = series_config(tmp_path), People(3)
    night(tmp_path, config, people.arrive(30))
    late = people.arrive(2)
    assert night(tmp_path, config, late)["waiting"] == 2
    found = night(tmp_path, config, people.arrive(30))  # an incremental extract does not have them any more
    assert (found["part"], found["released"], found["waiting"]) == (2, 62, 0)
    check_series(tmp_path, config, people)


def test_who_waits_and_is_in_the_source_again_has_the_new_row(tmp_path: Path) -> None:
    config, people = series_config(tmp_path), People(3)
    (row,) = people.arrive(1)
    night(tmp_path, config, [row])
    people.known[row["id"]] = row | {"ill": "e", "stay": 99}
    assert night(tmp_path, config, [people.known[row["id"]], *people.arrive(30)])["released"] == 31
    check_series(tmp_path, config, people)


def test_who_waits_and_is_deleted_from_the_source_still_waits_until_withdrawn(tmp_path: Path) -> None:
    config, people = series_config(tmp_path), People(3)
    night(tmp_path, config, people.arrive(30))
    (row,) = people.arrive(1)
    night(tmp_path, config, [row])
    assert night(tmp_path, config, [])["waiting"] == 1
    (tmp_path / "ids.txt").write_text(row["id"])
    assert series.withdraw(config, tmp_path / "ids.txt", yes=True).facts["waiting"] == 1
    assert night(tmp_path, config, people.arrive(30))["released"] == 60


def test_a_published_column_of_another_type_is_refused(tmp_path: Path) -> None:
    config, people = series_config(tmp_path), People(3)
    night(tmp_path, config, people.arrive(30))
    table = pa.Table.from_pylist(people.arrive(30))
    texts = table.set_column(table.column_names.index("stay"), "stay", table["stay"].cast(pa.string()))
    with pytest.raises(SourceError, match="stay is VARCHAR, not BIGINT"):
        anon.run(config, texts)
    assert list(digests(tmp_path)) == ["part-000001.parquet"]


def test_a_sample_is_a_trial_beside_the_series(tmp_path: Path) -> None:
    config, people = series_config(tmp_path), People(3)
    night(tmp_path, config, people.arrive(60))
    before = digests(tmp_path)
    assert anon.run(config, sample="50%").to_dict()["individuals"] < 60  # all of the source, released or not
    assert (tmp_path / "out-trial").exists() and digests(tmp_path) == before


def test_people_who_cannot_be_published_do_not_block_those_who_come_later(tmp_path: Path) -> None:
    config, people = series_config(tmp_path), People(4)
    assert night(tmp_path, config, people.arrive(50, "a"))["waiting"] == 50
    found = night(tmp_path, config, people.arrive(30))
    assert (found["part"], found["released"], found["waiting"]) == (1, 30, 50)
    assert night(tmp_path, config, people.arrive(200, "bcde"))["waiting"] == 0
    check_series(tmp_path, config, people)


def test_a_clock_that_moved_back_changes_nothing(tmp_path: Path) -> None:
    config, people = series_config(tmp_path), People(6)
    night(tmp_path, config, people.arrive(30))
    rows = people.arrive(30)
    extract(tmp_path, rows)
    os.utime(tmp_path / "extract.parquet", (1, 1))
    assert anon.run(config).to_dict()["series"]["part"] == 2
    check_series(tmp_path, config, people)


def test_the_same_source_again_is_up_to_date(tmp_path: Path) -> None:
    config, people = series_config(tmp_path), People(6)
    night(tmp_path, config, people.arrive(30))
    before = digests(tmp_path)
    again = anon.run(config).to_dict()
    assert again["up_to_date"] and again["series"]["released"] == 30
    assert anon.run(config, force=True).to_dict()["series"] == {
        "part": None, "new": 0, "waiting": 0, "released": 30, "again": 30
    }  # fmt: skip
    assert digests(tmp_path) == before


# What a config may change.


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"columns": {"keep": []}}, "columns.keep: found another setting than in the nights before"),
        ({"release": {"form": "bucketized"}}, "release.form: found bucketized; expected generalized, as in the nights"),
        ({"release": {"format": "csv"}}, "release.format"),
        ({"privacy": [{"k_anonymity": {"k": 2}}, *CRITERIA[1:]]}, "privacy: found a looser k_anonymity than"),
        ({"privacy": CRITERIA[:3]}, "privacy: found a looser ck_safety than"),
    ],
)
def test_columns_form_and_looser_criteria_need_a_new_series(
    tmp_path: Path, change: dict[str, Any], problem: str
) -> None:
    config, people = series_config(tmp_path), People(7)
    night(tmp_path, config, people.arrive(30))
    extract(tmp_path, people.arrive(30))
    (key, value), before = next(iter(change.items())), digests(tmp_path)
    new = config | {key: config[key] | value if isinstance(value, dict) else value}
    with pytest.raises(ConfigError) as refused:
        anon.run(new)
    assert problem in str(refused.value) and digests(tmp_path) == before


def test_criteria_may_be_tightened(tmp_path: Path) -> None:
    config, people = series_config(tmp_path), People(7)
    night(tmp_path, config, people.arrive(30))
    tighter = config | {
        "privacy": [{"k_anonymity": {"k": 6}}, *CRITERIA[1:], {"l_diversity": {"kind": "distinct", "l": 3}}]
    }
    assert night(tmp_path, tighter, people.arrive(60))["part"] == 2
    assert anon.check(tighter, tmp_path / "out" / "part-000002.parquet").safe
    with pytest.raises(ConfigError, match="a looser k_anonymity"):
        night(tmp_path, config, people.arrive(60))


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ([{"k_anonymity": {"k": 3}}], [{"k_anonymity": {"k": 3}}, {"ck_safety": {"c": 0.6, "k": 1}}]),
        ([{"ck_safety": {"c": 0.8, "k": 1}}], [{"ck_safety": {"c": 0.8, "k": 2}}]),
    ],
)
def test_a_criterion_about_all_groups_that_earlier_parts_fail_makes_everybody_wait(
    tmp_path: Path, before: list[Any], now: list[Any]
) -> None:
    """The ledger has the groups that decide the criteria of the night before; others are judged from the parts."""
    config, people = series_config(tmp_path, before), People(1)
    assert night(tmp_path, config, people.arrive(30, "aaabc"))["part"] == 1
    tighter = config | {"privacy": now}
    assert anon.plan(tighter).to_dict()["feasible"]  # nobody is new
    extract(tmp_path, people.arrive(60, "abcdefgh"))
    assert not anon.plan(tighter).to_dict()["feasible"]
    assert anon.run(tighter).to_dict()["series"]["waiting"] == 60
    check_series(tmp_path, config, people)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"columns": {"individual": "row"}}, "columns.individual: found row with series append"),
        ({"method": {"kind": "lattice"}}, "method.kind: found lattice with series append"),
        ({"privacy": [{"t_closeness": {"t": 0.2, "distance": {"kind": "equal"}}}]}, "changes with every part"),
        (
            {"privacy": [{"r_robustness": {"r": 2, "priors": [{"estimate": ["zip"]}]}}]},
            "an estimated prior changes with every part",
        ),
    ],
)
def test_what_a_series_does_not_work_with_is_refused(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    extract(tmp_path, People(1).arrive(30))
    config = series_config(tmp_path)
    (key, value) = next(iter(change.items()))
    new = config | {key: config[key] | value if key == "columns" else value}
    with pytest.raises(ConfigError) as refused:
        anon.run(new)
    assert problem in str(refused.value)


# What may happen to the files.


def test_a_part_that_changed_or_is_gone_stops_the_series(tmp_path: Path) -> None:
    config, people = series_config(tmp_path), People(8)
    night(tmp_path, config, people.arrive(30))
    night(tmp_path, config, people.arrive(30))
    part = tmp_path / "out" / "part-000001.parquet"
    content = part.read_bytes()
    extract(tmp_path, people.arrive(30))
    for damage in (lambda: part.write_bytes(content[:-9] + b"123456789"), part.unlink):
        damage()
        with pytest.raises(VerificationError, match=r"part-000001\.parquet is not the file that was published"):
            anon.run(config)
    part.write_bytes(content)
    assert anon.run(config).to_dict()["series"]["part"] == 3


@pytest.mark.parametrize("name", ["ids-000001.parquet", "ledger.json"])
def test_a_damaged_ledger_stops_the_series(tmp_path: Path, name: str) -> None:
    config, people = series_config(tmp_path), People(8)
    night(tmp_path, config, people.arrive(30))
    file = tmp_path / "run" / "ledger" / name
    file.write_bytes(file.read_bytes().replace(b"a", b"b"))
    extract(tmp_path, people.arrive(30))
    with pytest.raises((VerificationError, ConfigError), match="the last run left"):
        anon.run(config)


def test_parts_without_a_ledger_are_not_added_to(tmp_path: Path) -> None:
    config, people = series_config(tmp_path), People(8)
    night(tmp_path, config, people.arrive(30))
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(ConfigError, match="without a ledger"):
        anon.run(config)


def test_a_series_is_not_overwritten(tmp_path: Path) -> None:
    config, people = series_config(tmp_path), People(8)
    night(tmp_path, config, people.arrive(30))
    with pytest.raises(ConfigError, match="published parts do not change"):
        anon.run(config, overwrite=True)
    plain = config | {"release": {key: value for key, value in config["release"].items() if key != "series"}}
    with pytest.raises(ConfigError, match="which no run wrote"):
        anon.run(plain, overwrite=True)


def test_ids_of_another_type_are_refused(tmp_path: Path) -> None:
    config, people = series_config(tmp_path), People(9)
    del config["source"]
    rows = people.arrive(40)
    anon.run(config, pa.Table.from_pylist(rows))
    numbers = [row | {"id": at} for at, row in enumerate(rows)]
    with pytest.raises(ConfigError, match=r"columns.individual: found values of type whole numbers; expected text"):
        anon.run(config, pa.Table.from_pylist(numbers))


def test_a_plan_counts_who_is_new_waits_and_was_released(tmp_path: Path) -> None:
    config, people = series_config(tmp_path), People(9)
    first = people.arrive(40)
    night(tmp_path, config, first)
    night(tmp_path, config, people.arrive(1))
    extract(tmp_path, first[:3] + people.arrive(30))
    before = digests(tmp_path)
    found = anon.plan(config).to_dict()
    assert found["series"] == {"part": None, "new": 30, "waiting": 1, "released": 40, "again": 3}
    assert found["individuals"] == 31 and found["feasible"] and digests(tmp_path) == before
    extract(tmp_path, first)
    nobody = series_config(tmp_path)
    night(tmp_path, nobody, people.arrive(40))
    extract(tmp_path, first)
    assert anon.plan(config).to_dict()["rows"] == 0
