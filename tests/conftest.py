"""A house with a table in it: a folder, a tiny config, and `run` and `check` by API and by command line."""

from __future__ import annotations

import copy
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from _pytest.nodeid import coerce_node_id
from demo import adult as adult_table
from typer.testing import CliRunner

import anon
from anon.cli.app import app
from anon.runs.result import Result
from tests.helpers.faults import Count

IN_MEMORY, ROOM = "/dev/shm", 4 * 2**30  # bytes: the largest files of two tests at a time, several times over
TINY: dict[str, Any] = {
    "source": {"path": "table.parquet"},
    "columns": {
        "individual": "row",
        "quasi_identifiers": {"age": {}, "zip": {"digits": 5}},
        "sensitive": ["disease"],
    },
    "privacy": [{"k_anonymity": {"k": 2}}],
    "release": {"path": "out", "run": "out-run"},
    "limits": {"memory": "1GB", "threads": 2, "temp": "spill"},
}


@dataclass(frozen=True)
class Outcome:
    """What a command left: its exit code, and what it wrote where."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.stdout)
        return told


@dataclass(frozen=True)
class House:
    folder: Path
    backend: dict[str, Any] = field(default_factory=lambda: {"kind": "local"})

    def config(self, **changes: Any) -> dict[str, Any]:
        """The tiny config with absolute paths and the backend of the test; `columns__keep=[...]` changes a field of a
        section."""
        config = copy.deepcopy(TINY) | ({} if self.backend["kind"] == "local" else {"backend": self.backend})
        for name, value in changes.items():
            section, _, key = name.partition("__")
            if key:
                config.setdefault(section, {})[key] = value
            else:
                config[section] = value
        config["source"]["path"] = str(self.folder / config["source"]["path"])
        config["release"] = {
            k: str(self.folder / v) if k in ("path", "run") else v for k, v in config["release"].items()
        }
        config["limits"]["temp"] = str(self.folder / config["limits"]["temp"])
        return config

    def write(self, table: pa.Table | dict[str, Any], name: str = "table.parquet", **options: Any) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), path, **options)
        return path

    def run(self, frame: Any = None, **changes: Any) -> Result:
        """A run over a frame or over the source; what an earlier one left is replaced."""
        return anon.run(self.config(**changes), frame, overwrite=True, force=True)

    def check(self, table: Any, **changes: Any) -> Result:
        return anon.check(self.config(**changes), table)

    def cli(self, command: str, *options: str, **changes: Any) -> Outcome:
        """A command by the command line, in this process."""
        path = self.folder / "config.yaml"
        path.write_text(json.dumps(self.config(**changes)), encoding="utf-8")
        told = CliRunner().invoke(app, [command, str(path), *options])
        if told.exception is not None and not isinstance(told.exception, SystemExit):
            raise told.exception
        return Outcome(told.exit_code, told.stdout, told.stderr)

    def released(self, name: str = "release.parquet", place: str = "out") -> pa.Table:
        """A table of a release, the parts of which are one file, or several in the order of their names."""
        path = self.folder / place / name
        parts = sorted(path.iterdir()) if path.is_dir() else [path]
        return pa.concat_tables([pq.ParquetFile(part).read() for part in parts]).combine_chunks()

    def bytes(self) -> bytes:
        return (self.folder / "out" / "release.parquet").read_bytes()

    def leftovers(self) -> list[str]:
        """Folders of runs under way, which must not outlive them."""
        return [str(path) for path in self.folder.rglob("*") if path.name.startswith((".anon-", "anon-"))]


def pytest_configure() -> None:
    """Keep the files of tests where it takes no time to bring one to the disk, if there is room for them."""
    if os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free > ROOM:
        os.environ.setdefault("TMPDIR", IN_MEMORY)
        tempfile.tempdir = None  # it is found anew


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of an xdist group on one worker, so that there is one cluster: pytest-xdist 3.8 writes the group
    into `_nodeid`, which pytest 9.2 no longer reads."""
    for item in items:
        if grouped := vars(item).get("_nodeid"):
            item._id = coerce_node_id(grouped)


@pytest.fixture(scope="session")
def adult() -> pa.Table:
    """The Adult table, where it has been fetched."""
    try:
        return adult_table.load()
    except adult_table.Unavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def faults(request: pytest.FixtureRequest) -> Iterator[Count]:
    """Counts the faults that tests inject, and prints how many at the end."""
    count = Count()
    yield count
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print(f"\n{count.total:,} faults injected")


@pytest.fixture
def in_memory() -> Iterator[Path]:
    """A folder where it takes no time to bring a file to the disk, where there is one."""
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The backend that a test runs on: local, unless its parameter names another (tests.helpers.backends)."""
    name = getattr(request, "param", "local")
    if name == "local":
        return {"kind": "local"}
    from tests.helpers import spark as helpers_spark

    request.getfixturevalue("cluster")
    return helpers_spark.BACKEND


@pytest.fixture
def house(tmp_path: Path, backend: dict[str, Any]) -> House:
    return House(tmp_path, backend)


@pytest.fixture
def spark_here() -> None:
    """For tests that start a Spark cluster of their own; without Java or Spark they are skipped."""
    from tests.helpers import spark as helpers_spark

    helpers_spark.needed()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """A Spark cluster of two worker processes, which all tests share; without Java or Spark they are skipped."""
    from tests.helpers import spark as helpers_spark

    with helpers_spark.started() as spark:
        yield spark
