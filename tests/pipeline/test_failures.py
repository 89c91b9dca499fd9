"""A run that fails: nothing of the data is told, limits are kept, the spill is private, signals are exit 130."""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pytest

from anon.backends import local
from anon.config import load
from anon.core import interrupt
from anon.core.database import connect, translated
from anon.errors import AnonError, ResourceError, SourceError
from anon.search import prepare
from tests.conftest import House
from tests.helpers.backends import each_on_every_backend
from tests.helpers.source import ROWS, as_csv

# Nothing of the data is told

MARKS = ("MARK-A", "MARK-B", "777.125", "8886", "1933-03-03")
MARKED = pa.table(
    {
        "id": ["MARK-A", "MARK-A", "MARK-B", None],
        "age": [8886, 8886, None, 8886],
        "zip": ["MARK-A", "MARK-B", None, "MARK-A"],
        "disease": ["MARK-A", None, "MARK-B", "MARK-A"],
        "cost": [777.125, math.inf, None, 777.125],
        "born": [dt.date(1933, 3, 3)] * 4,
        "parts": [["MARK-A"]] * 4,
        "word": pa.array(["MARK-A"] * 4).dictionary_encode(),
    }
)
FAILING: dict[str, dict[str, Any]] = {
    "digits": {},
    "nulls": {"columns__quasi_identifiers": {"age": {}}, "nulls": {"quasi_identifiers": "error"}},
    "individuals": {"columns__quasi_identifiers": {"age": {}}, "columns__individual": "id"},
    "list": {"columns__quasi_identifiers": {"age": {}}, "columns__keep": ["parts"]},
    "infinite": {"columns__quasi_identifiers": {"cost": {}}},
    "intervals": {"columns__quasi_identifiers": {"zip": {"intervals": [5]}}},
    "calendar": {"columns__quasi_identifiers": {"zip": {"calendar": ["year"]}}},
    "round": {"columns__sensitive": {"word": {"round": 5}}},
    "builder": {"columns__sensitive": {"word": {"digits": 3}}},
    "missing column": {"columns__quasi_identifiers": {"nowhere": {}}},
    "unsafe": {
        "columns__quasi_identifiers": {"born": {}},
        "columns__sensitive": ["word"],
        "privacy": [{"skyline": {"points": [{"l": 0, "k": 0, "m": 0, "c": 0.5}]}}],
    },
    "too few": {
        "columns__quasi_identifiers": {"born": {}},
        "columns__sensitive": ["word"],
        "privacy": [{"k_anonymity": {"k": 100}}],
    },
    "named value": {
        "columns__quasi_identifiers": {"born": {}},
        "columns__sensitive": ["word"],
        "privacy": [{"skyline": {"points": [], "values": {"mark-a": "exempt", "other": "exempt"}}}],
    },
}


@each_on_every_backend("name", FAILING, gaps={})
def test_no_failure_tells_a_value_of_the_data(house: House, name: str) -> None:
    house.write(MARKED)
    for options in ((), ("--json", "--debug")):
        outcome = house.cli("run", *options, **FAILING[name])
        assert outcome.code in (2, 3, 5), outcome.stderr
        assert not any(mark in outcome.stdout + outcome.stderr for mark in MARKS)
    with pytest.raises(AnonError) as error:
        house.run(**FAILING[name])
    assert not any(mark in "".join(traceback.format_exception(error.value)) for mark in MARKS)


def test_a_failure_inside_duckdb_does_not_bring_its_text_along(house: House) -> None:
    from anon.core.database import interruptible, translated

    database = connect(10**9, 1, house.folder)
    sql = "SELECT CAST(v AS INTEGER) FROM (VALUES ('MARK-A Parquet')) AS t(v)"
    with pytest.raises(SourceError) as error, translated("reading"):
        database.query(sql).fetchall()
    assert "MARK-A" not in "".join(traceback.format_exception(error.value))
    with pytest.raises(SourceError) as error, translated("reading"):
        list(interruptible(database.query(sql).to_arrow_reader(10), "reading"))
    assert "MARK-A" not in "".join(traceback.format_exception(error.value))


# Limits, spill, signals


def test_duckdb_keeps_to_the_limits(house: House) -> None:
    database = connect(2_300_000_000, 3, house.folder)
    names = ("memory_limit", "threads", "temp_directory", "autoinstall_known_extensions")
    told = database.one("SELECT " + ", ".join(f"current_setting('{name}')" for name in names))
    assert told == ("1.3 GiB", 3, str(house.folder), False)  # the rest is for libraries, records and batches


def test_memory_too_small_to_work_with_is_refused_before_any_work(house: House) -> None:
    with pytest.raises(ResourceError, match="at least 400MB is required"):
        house.run(limits__memory="300MB")
    assert not house.leftovers()


def test_too_little_memory_is_a_matter_of_resources(house: House) -> None:
    from anon.core.database import translated

    database = connect(1, 1, house.folder)
    database.execute("SET memory_limit = '1MB'")
    database.execute("SET temp_directory = ''")
    with pytest.raises(ResourceError, match=r"limits\.memory"), translated("counting"):
        database.query("SELECT count(*) FROM (SELECT DISTINCT range FROM range(1000000))").fetchall()


def test_the_spill_is_private_while_it_lasts(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    (house.folder / "table.csv").write_bytes(as_csv(ROWS))
    modes: list[int] = []
    build = prepare.cubes.build

    def watched(*args: Any, **options: Any) -> Any:
        modes.extend(path.stat().st_mode & 0o777 for path in (house.folder / "spill").iterdir())
        return build(*args, **options)

    monkeypatch.setattr(prepare.cubes, "build", watched)
    house.run(source={"path": "table.csv"})
    assert modes == [0o700]
    assert not house.leftovers()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("large") / "large.parquet"
    columns = "range % 90 AS age, '0' || (1000 + hash(range) % 9000) AS zip, 'd' || hash(range + 7) % 20 AS disease"
    duckdb.sql(f"COPY (SELECT {columns}, hash(range) % 1000 AS kept FROM range(1500000)) TO '{path}'")
    yield path
    path.unlink()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("stage", ["source", "search"])
def test_a_signal_is_exit_130_and_leaves_nothing(house: House, large: Path, number: signal.Signals, stage: str) -> None:
    config = house.config(source={"path": str(large)}, columns__keep=["kept"])
    (house.folder / "config.yaml").write_text(json.dumps(config))
    command = [sys.executable, "-m", "anon", "run", str(house.folder / "config.yaml"), "--log-json"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as job:
        assert job.stderr is not None
        for line in job.stderr:
            if stage in line:
                break
        time.sleep(0.1)
        job.send_signal(number)
        _, said = job.communicate(timeout=60)
    assert job.returncode == 130, said
    assert "Traceback" not in said
    assert not (house.folder / "out").exists()
    for folder in house.leftovers():  # of a search that had begun: its decisions, for --resume
        assert sorted(path.name for path in Path(folder).iterdir()) == ["checkpoint", "lock"]


def failing_source(failure: Exception) -> Callable[..., None]:
    def fails(*_: Any) -> None:
        raise failure

    return fails


@pytest.mark.parametrize(
    "failure", [RuntimeError("Query interrupted"), duckdb.InterruptException("INTERRUPT Error: Interrupted!")]
)
def test_an_interrupt_in_the_words_of_duckdb_is_exit_130(
    house: House, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    house.write(ROWS)
    monkeypatch.setattr(local, "open_source", failing_source(failure))
    outcome = house.cli("run")
    assert outcome.code == 130 and "Traceback" not in outcome.stderr


def test_a_request_to_stop_that_duckdb_takes_for_a_failure_is_exit_130(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a signal arrives while DuckDB waits for a batch that Python makes."""

    def stopped(*_: Any) -> None:
        with translated("writing the release"):
            with suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGTERM)
            raise duckdb.InvalidInputException("Python exception occurred while executing the UDF")

    house.write(ROWS)
    monkeypatch.setattr(local, "open_source", stopped)
    outcome = house.cli("run")
    assert outcome.code == 130 and "interrupted; nothing was published" in outcome.stderr
    assert not interrupt.requested()  # of what follows in the same process


def test_another_failure_is_told_without_its_text_and_without_a_traceback(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.write(ROWS)
    monkeypatch.setattr(local, "open_source", failing_source(RuntimeError("broken by Mrs Jones")))
    outcome = house.cli("run")
    assert outcome.code == 1 and "unexpected RuntimeError" in outcome.stderr
    assert "Traceback" not in outcome.stderr and "Jones" not in outcome.stderr


def test_the_config_of_these_tests_is_a_config(house: House) -> None:
    assert load(house.config()).columns.individual == "row"
