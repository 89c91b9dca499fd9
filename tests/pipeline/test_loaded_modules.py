"""What each command loads: words come at once, without the libraries that do the work, and no command loads more than
its work needs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import anon
from anon.cli.app import app
from tests.conftest import House
from tests.helpers.series import People, extract, series_config

HEAVY = ("adbc_driver_postgresql", "duckdb", "jinja2", "numpy", "pandas", "polars", "pyarrow", "pyspark", "sklearn")
TABLES = {"duckdb", "numpy", "pyarrow", "pandas"}  # pyarrow loads pandas where it is installed
# What a command may load for its work. Nobody needs Polars or Spark for a file.
MAY_LOAD: dict[str, set[str]] = {
    "run": TABLES | {"jinja2"},
    "check": TABLES,
    "explore": TABLES,
    "disclose": TABLES,
    "attack": TABLES,
    "utility": TABLES,
    "report": TABLES | {"jinja2"},
    "explain": TABLES,  # it searches again
    "plan": TABLES,
    "init": TABLES,
    "schema": set(),
    "series status": TABLES,
    "series withdraw": TABLES,
    "series rebuild": TABLES,
    "hierarchy build intervals": TABLES,
    "hierarchy build prefix": TABLES,
    "hierarchy build parents": TABLES,
    "hierarchy build country": TABLES,
    "hierarchy build icd10": TABLES,
    "hierarchy build atc": TABLES,
    "hierarchy build isco": TABLES,
    "hierarchy build isced": TABLES,
    "hierarchy build postcode": TABLES,
    "hierarchy build auto": TABLES,
    "hierarchy test": TABLES,
}
# Commands that may load the same in a process forked from one that has loaded nothing but the command line.
PROBE = """
import json, os, sys
from anon.cli.app import app
heavy, groups = json.loads(sys.argv[1]), json.loads(sys.argv[2])
BEFORE
def code(command):
    try:
        app(command)
    except SystemExit as end:
        return end.code
for commands in groups:
    read, write = os.pipe()
    if not os.fork():
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        codes = [code(command) for command in commands]
        told = {"codes": codes, "loaded": [name for name in heavy if name in sys.modules]}
        os.write(write, json.dumps(told).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        print(told.read() or "null", flush=True)
    os.wait()
"""


def probed(groups: list[list[list[str]]], folder: Path, before: str = "") -> list[dict[str, Any]]:
    """The exit codes of each group of commands, and what they loaded."""
    code = [sys.executable, "-c", PROBE.replace("BEFORE", before), json.dumps(HEAVY), json.dumps(groups)]
    done = subprocess.run(code, capture_output=True, text=True, check=True, cwd=folder)
    return [json.loads(line) for line in done.stdout.splitlines()]


def every_command(command: Any, *path: str) -> list[list[str]]:
    parts = getattr(command, "commands", None)
    if parts is None:
        return [list(path)]
    return [found for name, part in parts.items() for found in every_command(part, *path, name)]


def test_every_command_is_listed() -> None:
    assert {" ".join(path) for path in every_command(get_command(app))} == MAY_LOAD.keys()


def test_words_need_no_heavy_library(tmp_path: Path) -> None:
    asked = [["--help"], ["--version"], ["schema"], ["hierarchy", "--help"]]
    asked += [[*path, "--help"] for path in every_command(get_command(app))]
    assert len(asked) > len(MAY_LOAD)
    assert probed([asked], tmp_path) == [{"codes": [0] * len(asked), "loaded": []}]


def test_the_probe_sees_a_heavy_library(tmp_path: Path) -> None:
    assert probed([[["--help"]]], tmp_path, "import numpy") == [{"codes": [0], "loaded": ["numpy"]}]


@pytest.fixture
def commands(house: House) -> dict[str, list[str]]:
    """Each command at work; those that need a run come after it."""
    house.write({"age": [20 + i % 7 for i in range(60)], "zip": ["02139", "02138"] * 30, "disease": list("abc") * 20})
    (house.folder / "config.yaml").write_text(json.dumps(house.config()))
    (house.folder / "codes.txt").write_text("02138\n02139\n")
    (house.folder / "parents.csv").write_text("a;letters\nb;letters\n")
    codes = {"country": "FR", "icd10": "E11.9", "atc": "A10BA02", "isco": "2212", "isced": "3", "postcode": "02139"}
    (house.folder / "list.csv").write_text(f"{','.join([*codes, 'auto'])}\n{','.join([*codes.values(), 'a'])}\n")
    for name in ("series", "lost"):
        _begin_series(house.folder, name)
    shutil.rmtree(house.folder / "lost" / "run")
    on = ["config.yaml", "--on", "out"]
    roles = ["--individual", "row", "--sensitive", "disease", "--yes", "--out", "made.yaml"]
    return {
        "run": ["config.yaml"], "check": on, "utility": on, "attack": on, "disclose": [*on, "--max-k", "1"],
        "explore": [*on, "--value", "a", "--confidence", "0.9"], "report": ["out-run"], "explain": ["out-run"],
        "plan": ["config.yaml"], "init": ["table.parquet", *roles], "schema": [],
        "series status": ["series.json"], "series withdraw": ["series.json", "--individuals", "codes.txt", "--yes"],
        "series rebuild": ["lost.json"],
        "hierarchy build intervals": ["--from", "0", "--to", "9", "--width", "5"],
        "hierarchy build prefix": ["codes.txt", "--out", "codes.csv"],
        "hierarchy build parents": ["parents.csv"],
        **{f"hierarchy build {name}": ["list.csv", "--from", name] for name in (*codes, "auto")},
        "hierarchy build postcode": ["list.csv", "--from", "postcode", "--country", "US", "--pad", "5"],
        "hierarchy test": ["codes.csv"],
    }  # fmt: skip


def _begin_series(folder: Path, name: str) -> None:
    """Make the first part of a series."""
    (folder / name).mkdir()
    config = series_config(folder / name)
    (folder / f"{name}.json").write_text(json.dumps(config))
    extract(folder / name, People(1).arrive(40))
    anon.run(config)


def test_no_command_loads_more_than_its_work_needs(house: House, commands: dict[str, list[str]]) -> None:
    alike: dict[frozenset[str], list[str]] = {}
    for name in commands:
        alike.setdefault(frozenset(MAY_LOAD[name]), []).append(name)
    groups = [[[*name.split(), *commands[name]] for name in names] for names in alike.values()]
    for (allowed, names), told in zip(alike.items(), probed(groups, house.folder), strict=True):
        assert dict(zip(names, told["codes"])) == dict.fromkeys(names, 0)
        assert set(told["loaded"]) <= allowed, names
    assert commands.keys() == MAY_LOAD.keys()


WITHOUT_PANDAS = """
import sys
from anon.core import without_pandas
without_pandas.refuse()
import pyarrow
pyarrow.array([1])
assert "pandas" not in sys.modules
without_pandas.allow()
import pandas
"""


def test_pyarrow_does_not_load_pandas_in_the_process_of_a_command() -> None:
    pytest.importorskip("pandas")
    subprocess.run([sys.executable, "-c", WITHOUT_PANDAS], check=True)
