"""What a run says when it is stopped, resumed, refused or fails: enough to know what to do next, to people and to
programs, and as early as it can be known."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import duckdb
import pytest
from typer.testing import CliRunner

import anon
from anon import release
from anon.backends import local
from anon.cli.app import app
from anon.errors import AnonError, ConfigError, SourceError
from anon.search import prepare
from tests.conftest import House
from tests.helpers.source import ROWS

POINT = {"l": 0, "k": 0, "m": 0, "c": 0.99}


def stops(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


# Stopped and resumed


def test_a_run_that_is_stopped_says_what_is_kept_and_how_to_go_on(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.write(ROWS)
    with monkeypatch.context() as patch:
        patch.setattr(release, "write", stops)
        told = house.cli("run")
    assert told.code == 130
    assert "steps of its search are kept in" in told.stderr and "with --resume continues from there" in told.stderr
    (kept,) = house.leftovers()
    assert f"{kept}/checkpoint" in told.stderr
    again = house.cli("run", "--resume")
    assert again.code == 0 and "resume: resuming after" in again.stderr


def test_a_run_that_is_stopped_before_its_search_says_that_nothing_is_left(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.write(ROWS)
    monkeypatch.setattr(local, "build_cube", stops)
    told = house.cli("run", "--json")
    assert told.json["error"] == "interrupted; nothing was published, and no checkpoint was kept"
    assert not house.leftovers()


def test_resume_says_when_there_is_nothing_to_go_on_from(house: House) -> None:
    house.write(ROWS)
    assert "resume: no step to resume from" in house.cli("run", "--resume").stderr
    events = events_of(house.cli("run", "--resume", "--log-json", "--overwrite", "--force").stderr)
    assert [event["steps"] for event in events if event["event"] == "resume"] == [0]


# Events


def events_of(said: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in said.splitlines()]


def test_a_run_that_fails_ends_with_an_event_and_no_other_line(house: House) -> None:
    house.write(ROWS)
    told = house.cli("run", "--log-json", privacy=[{"k_anonymity": {"k": 100}}])
    last = events_of(told.stderr)[-1]
    assert (told.code, last["event"], last["exit_code"]) == (3, "failed", 3)
    assert "k_anonymity" in last["error"] and last["problems"] == []


@pytest.mark.parametrize("options", [["--memory", "lots"], ["--sample", "none"]])
def test_mistakes_on_the_command_line_are_events_too(house: House, options: list[str]) -> None:
    last = events_of(house.cli("run", "--log-json", *options).stderr)[-1]
    assert (last["event"], last["exit_code"], len(last["problems"])) == ("failed", 2, 1)


def test_an_interrupt_and_a_fault_are_events_too(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.write(ROWS)
    for failure, code in ((KeyboardInterrupt(), 130), (ZeroDivisionError("02139"), 1), (MemoryError(), 6)):

        def fails(*_: Any, failure: BaseException = failure) -> None:
            raise failure

        monkeypatch.setattr(local, "build_cube", fails)
        told = house.cli("run", "--log-json")
        assert (told.code, events_of(told.stderr)[-1]["exit_code"]) == (code, code)
        assert "02139" not in told.stderr


def test_warnings_are_events(house: House) -> None:
    house.write(ROWS)
    told = house.cli("run", "--log-json", "--json")
    warned = [event["code"] for event in events_of(told.stderr) if event["event"] == "warning"]
    assert warned == [warning["code"] for warning in told.json["warnings"]] != []


# Warnings that count


@pytest.mark.parametrize("command", ["check", "attack", "plan"])
def test_strict_says_which_warnings_count(house: House, command: str) -> None:
    path = str(house.write(ROWS.select(["age", "zip", "disease"])))
    options = [] if command == "plan" else ["--on", path]
    privacy = {"privacy": [{"k_anonymity": {"k": 1}}, {"l_diversity": {"kind": "distinct", "l": 1, "absent": "ok"}}]}
    changes = {} if command == "plan" else privacy
    told, plain = (house.cli(command, *options, *more, **changes) for more in (["--strict", "--json"], ["--json"]))
    assert plain.code == 0 and plain.json == told.json
    warned = [warning["code"] for warning in told.json["warnings"]]
    assert told.code == (3 if warned else 0)
    assert all(f"  {code}: " in told.stderr for code in warned) and ("--strict" in told.stderr) == bool(warned)


# As early as possible


def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "open_source", lambda *_, **__: pytest.fail("it was read first"))


MISSING_FILES: dict[str, dict[str, Any]] = {
    "columns.quasi_identifiers.zip.hierarchy": {"columns__quasi_identifiers": {"zip": {"hierarchy": "zip.csv"}}},
    "columns.sensitive.disease.hierarchy": {"columns__sensitive": {"disease": {"hierarchy": "d.csv"}}},
    "privacy[0].t_closeness.distance.file": {
        "privacy": [{"t_closeness": {"t": 0.5, "distance": {"kind": "hierarchy", "file": "d.csv"}}}]
    },
    "privacy[0].dissimilarity.distance.file": {
        "privacy": [
            {"dissimilarity": {"epsilon": 0, "delta": 0.5, "k": 2, "distance": {"kind": "matrix", "file": "m.csv"}}}
        ]
    },
    "method.run": {"method": {"kind": "reuse", "run": "nowhere"}},
}


@pytest.mark.parametrize("field", MISSING_FILES)
@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_file_that_is_missing_is_told_before_the_source_is_read(
    house: House, monkeypatch: pytest.MonkeyPatch, field: str, command: str
) -> None:
    house.write(ROWS)
    unread(monkeypatch)
    told = house.cli(command, "--json", **MISSING_FILES[field])
    assert [problem["path"] for problem in told.json["problems"]] == [field]


def test_all_files_that_are_missing_are_told_at_once(house: House) -> None:
    house.write(ROWS)
    zips = {"hierarchy": str(house.folder / "zip.csv")}
    with pytest.raises(ConfigError) as error:
        house.run(columns__quasi_identifiers={"age": zips, "zip": zips})
    assert len(error.value.problems) == 2


@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_misspelt_value_is_told_before_the_table_is_read_for_the_cube(
    house: House, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    house.write(ROWS)
    monkeypatch.setattr(prepare.cubes, "build", lambda *_: pytest.fail("a cube was built"))
    told = house.cli(command, "--json", privacy=[{"skyline": {"points": [POINT], "values": {"flu": "exempt"}}}])
    assert [problem["path"] for problem in told.json["problems"]] == ["privacy[0].skyline.values.flu"]


# Places and columns


def test_a_recoding_with_the_columns_in_another_order_says_so(house: House) -> None:
    house.run(ROWS)
    columns = {"zip": {"digits": 5}, "age": {}}
    method = {"kind": "reuse", "run": str(house.folder / "out-run")}
    with pytest.raises(
        ConfigError, match=r"found another order: zip, age; expected the order of method\.run: age, zip"
    ):
        anon.run(
            house.config(columns__quasi_identifiers=columns, method=method, release={"path": "b", "run": "c"}), ROWS
        )


SECRET = "p4ss/w0rd"


@pytest.mark.parametrize("command", ["run", "check", "plan", "utility", "attack"])
def test_the_value_of_a_variable_is_in_no_failure(house: House, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setenv("ANON_SECRET", SECRET)
    config = house.config(limits__temp="/sys/${ANON_SECRET}")
    config["source"] = {"path": "/nowhere/${ANON_SECRET}.parquet"}
    (house.folder / "config.yaml").write_text(json.dumps(config))
    options = [] if command in ("run", "plan") else ["--on", str(house.write(ROWS))]
    told = CliRunner().invoke(app, [command, str(house.folder / "config.yaml"), *options])
    assert told.exit_code in (2, 5) and "${ANON_SECRET}" in told.stderr and SECRET not in told.output


def test_the_value_of_a_variable_is_in_no_exception(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANON_SECRET", SECRET)
    config = house.config()
    config["source"] = {"path": "/nowhere/${ANON_SECRET}.parquet"}
    with pytest.raises(SourceError, match=r"/nowhere/\$\{ANON_SECRET\}\.parquet: no such file"):
        anon.run(config)


# A disk that is really full

LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
from anon.__main__ import main
sys.argv = ["anon", "run", {config!r}]
main()
"""


@pytest.mark.parametrize("kind", ["release", "spill"])
def test_a_file_that_cannot_grow_is_exit_6_and_leaves_nothing(house: House, kind: str) -> None:
    """A limit on files stands in for a disk without space, which not every machine lets a test have."""
    path = house.folder / "table.parquet"
    known = "hash(range) % 50000 AS age, '0' || (1000 + hash(range) % 9000) AS zip"
    rows = f"SELECT {known}, md5(range::TEXT) AS kept, 'd' || range % 7 AS disease FROM range(60000)"
    duckdb.sql(f"COPY ({rows}) TO '{path}'")
    name = path.name
    if kind == "spill":
        name = "table.csv"
        duckdb.sql(f"COPY (FROM '{path}') TO '{house.folder / name}'")
    config = house.config(source={"path": name}, columns__keep=["kept"])
    (house.folder / "config.yaml").write_text(json.dumps(config))
    before = sorted(house.folder.rglob("*"))
    script = LIMITED.format(config=str(house.folder / "config.yaml"))
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert told.returncode == 6, told.stderr
    assert "no space left" in told.stderr and "Traceback" not in told.stderr
    assert sorted(house.folder.rglob("*")) == before


def test_failures_can_be_reworded() -> None:
    for error in (SourceError("a b"), ConfigError.at("x", "a", "b", "a")):
        error.reword(lambda said: said.replace("a", "A"))
        assert isinstance(error, AnonError) and "A" in str(error) and "a " not in str(error)
