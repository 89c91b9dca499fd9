"""A run as a step of a nightly job: no work for the same input, one run at a time, events, trials, and a warning where
a release replaces another."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import anon
from anon.config.trial import share_of
from anon.errors import ConfigError, UnsafeError
from anon.search import prepare
from tests.conftest import House
from tests.helpers.source import as_csv

ROWS = pa.table(
    {
        "who": [i // 2 for i in range(2000)],
        "age": [20 + i // 2 % 7 for i in range(2000)],
        "zip": [f"0213{i // 2 % 5}" for i in range(2000)],
        "disease": ["Flu" if i % 3 else "HIV" for i in range(2000)],
    }
)


def manifest(house: House, run: str = "out-run") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((house.folder / run / "manifest.json").read_text())
    return found


@contextmanager
def no_work(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(prepare.cubes, "build", lambda *_: pytest.fail("a cube was built"))
        yield


def test_the_same_input_and_config_again_is_up_to_date(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.write(ROWS)
    made = house.cli("run", "--json")
    before = {path: path.stat().st_mtime_ns for path in house.folder.rglob("*") if path.name != "config.yaml"}
    with no_work(monkeypatch):
        again = house.cli("run", "--json")
    after = {path: path.stat().st_mtime_ns for path in house.folder.rglob("*") if path.name != "config.yaml"}
    assert (made.code, again.code) == (0, 0)
    assert again.json == made.json | {"up_to_date": True}
    assert after == before
    said = house.cli("run").stdout
    assert said == "Up to date: the release was made from the same source by the same config; nothing was done.\n"


def test_force_makes_it_again(house: House) -> None:
    house.write(ROWS)
    house.cli("run")
    first = manifest(house)
    assert "up_to_date" not in house.cli("run", "--force", "--json").json
    assert manifest(house)["run"] != first["run"]
    assert manifest(house)["release"] == first["release"]


def test_force_does_not_replace_another_release(house: House) -> None:
    house.write(ROWS)
    house.cli("run")
    first = manifest(house)
    touched(house)
    refused = house.cli("run", "--force", "--json")
    assert refused.code == 2 and "--overwrite" in refused.json["problems"][0]["hint"]
    assert manifest(house) == first


def touched(house: House) -> None:
    house.write(ROWS.slice(0, 1500))


def set_back(house: House) -> None:
    """Other rows in as many bytes, under the old time of modification."""
    table = house.folder / "table.parquet"
    about, before = table.stat(), table.read_bytes()
    house.write(ROWS.set_column(3, "disease", pc.replace_substring(ROWS["disease"], "HIV", "H1V")))
    after = table.read_bytes()
    assert len(after) == len(before) and after != before
    os.utime(table, ns=(about.st_atime_ns, about.st_mtime_ns))


def more_files(house: House) -> None:
    house.write(ROWS, "table.parquet/more.parquet")


def other_hierarchy(house: House) -> None:
    (house.folder / "zip.csv").write_text((house.folder / "zip.csv").read_text().replace("low", "Low"))


def other_release(house: House) -> None:
    house.write(ROWS, "out/release.parquet")


@pytest.mark.parametrize("change", [touched, set_back, more_files, other_hierarchy, other_release])
def test_whatever_the_release_depends_on_makes_a_new_run(house: House, change: Any) -> None:
    lines = [f"0213{i};{'low' if i < 3 else 'high'};*" for i in range(5)]
    (house.folder / "zip.csv").write_text("\n".join(lines))
    house.write(ROWS, "table.parquet/part.parquet") if change is more_files else house.write(ROWS)
    zips = {"age": {}, "zip": {"hierarchy": str(house.folder / "zip.csv")}}
    assert house.cli("run", columns__quasi_identifiers=zips).code == 0
    assert house.cli("run", "--json", columns__quasi_identifiers=zips).json["up_to_date"]
    change(house)
    refused = house.cli("run", columns__quasi_identifiers=zips)
    assert (refused.code, "which exists" in refused.stderr) == (2, True)
    assert "up_to_date" not in house.cli("run", "--overwrite", "--json", columns__quasi_identifiers=zips).json


def test_another_config_makes_a_new_run(house: House) -> None:
    house.write(ROWS)
    house.cli("run")
    assert "up_to_date" not in house.cli("run", "--json", "--overwrite", privacy=[{"k_anonymity": {"k": 3}}]).json


def test_a_variable_that_matters_is_never_taken_for_the_same(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.write(ROWS)
    skyline = {"skyline": {"points": [], "values": {"HIV": [{"l": 0, "k": 1, "m": 0, "c": 0.99}]}, "sensitive": "${S}"}}
    for column in ("disease", "disease"):
        monkeypatch.setenv("S", column)
        assert "up_to_date" not in house.cli("run", "--json", "--overwrite", privacy=[skyline]).json


def test_a_database_is_read_and_then_found_to_be_the_same(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    file = house.folder / "house.db"
    config = house.config()
    config["source"] = {"duckdb": {"file": str(file), "query": "SELECT * FROM visits"}}

    def fill(rows: pa.Table) -> None:
        with duckdb.connect(file) as con:
            con.register("given", rows)
            con.execute("CREATE OR REPLACE TABLE visits AS SELECT * FROM given ORDER BY random()")

    fill(ROWS)
    anon.run(config)
    fill(ROWS)
    with no_work(monkeypatch):
        assert anon.run(config).facts["up_to_date"]
    fill(ROWS.slice(0, 1900))
    with pytest.raises(ConfigError, match="which exists"):
        anon.run(config)
    assert "up_to_date" not in anon.run(config, overwrite=True).facts


def test_strict_still_refuses_what_was_warned_about(house: House) -> None:
    house.write(ROWS)
    assert house.cli("run").code == 0
    assert house.cli("run", "--strict").code == 3


def test_two_runs_never_write_one_release(house: House) -> None:
    house.write(ROWS)
    (house.folder / "config.yaml").write_text(json.dumps(house.config()))
    code = (
        "import sys, time; from anon import pipeline, release\n"
        "write = release.write\n"
        "def slow(*about):\n    print('writing', flush=True); sys.stdin.read(); return write(*about)\n"
        "release.write = slow; pipeline.run(sys.argv[1])\n"
    )
    command = [sys.executable, "-c", code, str(house.folder / "config.yaml")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"writing\n"
        second = house.cli("run")
        assert (second.code, "another run is writing" in second.stderr) == (2, True)
        other.communicate()
    assert other.returncode == 0
    assert house.cli("run", "--json").json["up_to_date"]


def events(stderr: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stderr.splitlines() if line.startswith("{")]


def test_events_tell_run_stage_rows_and_seconds(house: House) -> None:
    house.write(ROWS)
    told = events(house.cli("run", "--log-json").stderr)
    ends = [event for event in told if event["event"] == "end"]
    assert [(event["stage"], event["rows"]) for event in ends] == [
        (stage, 2000) for stage in ("source", "cube", "search", "release", "verify", "utility", "attack", "report")
    ]
    assert all(event["seconds"] >= 0 for event in ends)
    assert (told[-1]["event"], told[-1]["rows"]) == ("done", 2000)
    assert {event["run"] for event in told} == {manifest(house)["run"]}
    again = events(house.cli("run", "--log-json").stderr)
    assert [(event["event"], event["up_to_date"]) for event in again] == [("done", True)]


def test_a_release_that_replaces_another_warns_and_names_it(house: House) -> None:
    house.write(ROWS)
    assert not warned(house.cli("run", "--json").json)
    assert "previous" not in manifest(house)
    assert not warned(house.cli("run", "--json", "--force", "--overwrite").json)
    before = (house.folder / "out-run" / "manifest.json").read_bytes()
    house.write(ROWS.slice(0, 1500))
    told = house.cli("run", "--json", "--overwrite").json
    assert warned(told) == [1500]
    previous = {"run": json.loads(before)["run"], "manifest_sha256": hashlib.sha256(before).hexdigest()}
    assert manifest(house)["previous"] == previous
    house.write(ROWS.slice(0, 1400))
    assert house.cli("run", "--overwrite", "--strict").code == 3


def warned(told: dict[str, Any]) -> list[int]:
    return [warning["count"] for warning in told["warnings"] if warning["code"] == "intersection"]


def test_reuse_of_the_recoding_warns_that_releases_can_be_subtracted(house: House) -> None:
    house.write(ROWS)
    house.cli("run", "--json")
    house.write(pa.concat_tables([ROWS, ROWS.slice(0, 10)]))
    method = {"kind": "reuse", "run": str(house.folder / "out-run")}
    told = house.cli("run", "--json", "--overwrite", method=method).json
    assert warned(told) == [2010]
    assert any("subtract" in warning["text"] for warning in told["warnings"])


PEOPLE = {"columns__individual": "who", "columns__multiplicity": "single"}


def one_each() -> pa.Table:
    return ROWS.take(pa.array(range(0, 2000, 2)))


def test_a_trial_is_marked_everywhere_and_is_not_the_release(house: House) -> None:
    house.write(ROWS)
    outcome = house.cli("run", "--sample", "10%")
    assert outcome.code == 0
    assert "A trial on 10% of the individuals: this is not the release" in outcome.stdout
    assert not (house.folder / "out").exists() and not (house.folder / "out-run").exists()
    package = json.loads((house.folder / "out-trial" / "datapackage.json").read_text())
    report = json.loads((house.folder / "out-run-trial" / "report.json").read_text())
    assert package["name"] == "trial"
    assert "not to be published" in package["trial"]
    assert (report["trial"], report["summary"]["trial"], manifest(house, "out-run-trial")["trial"]) == ("10%",) * 3
    assert house.cli("run", "--sample", "10%", "--json", "--force").json["trial"] == "10%"
    assert events(house.cli("run", "--sample", "10%", "--log-json", "--force").stderr)[-1]["trial"] == "10%"
    assert "up_to_date" not in house.cli("run", "--sample", "11%", "--json").json
    house.run()
    assert "trial" not in json.loads((house.folder / "out" / "datapackage.json").read_text())


def test_a_trial_takes_about_its_share_of_rows(house: House) -> None:
    found = anon.run(house.config(), ROWS, sample="10%").facts["rows"]
    assert 140 <= found <= 260  # 2,000 rows: 200 within four and a half standard deviations


def test_the_sample_is_the_same_for_every_layout(house: House) -> None:
    expected: bytes | None = None
    shuffled = ROWS.take(pa.array(sorted(range(2000), key=lambda i: hashlib.sha256(str(i).encode()).digest())))
    house.write(ROWS, "a/table.parquet", row_group_size=100)
    house.write(shuffled.slice(0, 700), "b/1.parquet")
    house.write(shuffled.slice(700), "b/2.parquet")
    (house.folder / "c.csv").write_bytes(as_csv(shuffled))
    for path in ("a", "b", "c.csv"):
        anon.run(house.config(source={"path": path}), sample="20%", threads=1 if path == "b" else 2)
        found = (house.folder / "out-trial" / "release.parquet").read_bytes()
        expected = expected or found
        assert found == expected


def test_the_sample_takes_all_rows_of_an_individual_or_none(house: House) -> None:
    """Whether somebody is in it is a matter of the MD5 of the text that says who, in Python as in SQL."""
    config = house.config(columns__individual="who", columns__keep=["row"])
    limit = f"{int(Fraction(1, 5) * 2**128):032x}"
    table = one_each().append_column("row", pa.array(range(1000)))
    anon.run(config, table, sample="20%")
    released = pq.read_table(house.folder / "out-trial" / "release.parquet")["row"].to_pylist()
    assert sorted(released) == [who for who in range(1000) if hashlib.md5(str(who).encode()).hexdigest() < limit]


def test_a_value_that_the_sample_lacks_is_no_mistake_of_the_config(house: House) -> None:
    rows = ROWS.set_column(3, "disease", pa.array(["Rare", *["Flu", "Cold"] * 999, "Flu"]))
    privacy = [{"skyline": {"points": [], "values": {"Rare": [{"l": 0, "k": 1, "m": 0, "c": 0.9}]}}}]
    with pytest.raises(ConfigError, match="Rary"):
        anon.run(house.config(privacy=json.loads(json.dumps(privacy).replace("Rare", "Rary"))), rows)
    assert anon.run(house.config(privacy=[*privacy, {"k_anonymity": {"k": 2}}]), rows, sample="5%").safe


@pytest.mark.parametrize("sample", ["0%", "100%", "1", "x%", "-1%", "", "101%"])
def test_a_share_that_is_none_is_refused(house: House, sample: str) -> None:
    with pytest.raises(ConfigError, match="sample: found"):
        anon.run(house.config(), ROWS, sample=sample)
    assert share_of("2.5%") == Fraction(1, 40)


def test_a_sample_without_anybody_is_refused(house: House) -> None:
    with pytest.raises(ConfigError, match="without anybody"):
        anon.run(house.config(), ROWS.slice(0, 2), sample="0.0001%")


def test_a_trial_is_judged_by_the_same_criteria(house: House) -> None:
    with pytest.raises(UnsafeError):
        anon.run(house.config(privacy=[{"k_anonymity": {"k": 900}}]), ROWS, sample="1%")
    assert not (house.folder / "out-trial").exists()


def test_reading_the_clock_is_not_needed(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes backwards changes nothing: what counts is that nothing changed, not what is newer."""
    path = house.write(ROWS)
    house.cli("run")
    monkeypatch.setattr(time, "time", lambda: 1.0)
    assert house.cli("run", "--json").json["up_to_date"]
    os.utime(path, (1, 1))
    assert "up_to_date" not in house.cli("run", "--json", "--overwrite").json


def test_a_trial_does_not_replace_a_release_that_is_none(house: House) -> None:
    house.write(ROWS)
    assert house.cli("run", "--out", str(house.folder / "out-trial")).code == 0
    before = (house.folder / "out-trial" / "datapackage.json").read_bytes()
    assert house.cli("run", "--out", str(house.folder / "out"), "^sample: ", "50%").code == 2
    assert (house.folder / "out-trial" / "datapackage.json").read_bytes() == before


@pytest.mark.parametrize("name", ["times", "place", "said"])
def test_columns_may_have_any_name_in_a_sample(tmp_path: Path, name: str) -> None:
    table = pa.table({name: [n % 10 for n in range(1000)], "s": [f"v{n % 4}" for n in range(1000)]})
    config = {
        "source": {"path": "people.parquet"},
        "columns": {"individual": "row", "quasi_identifiers": {name: {}}, "sensitive": ["s"]},
        "privacy": [{"k_anonymity": {"k": 2}}],
        "release": {"path": str(tmp_path / "out")},
    }
    found = anon.run(config, table, sample="50%")
    assert 400 < found.facts["rows"] < 600
