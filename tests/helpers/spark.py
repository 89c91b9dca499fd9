"""A Spark cluster of two worker processes for tests, and a release made there beside the same by the local engine."""

from __future__ import annotations

import importlib.util
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anon
from anon.backends.spark import session
from anon.config import Spark
from anon.errors import SourceError
from anon.runs.result import Result
from tests.conftest import House

MASTER = "local-cluster[2,1,1024]"
EXECUTORS, WORKERS = "ExecutorBackend", "pyspark.daemon"  # how their processes are called
# A cluster that shares two cores with other tests may be slow to answer; for small tables Spark need not compile.
CONF = {
    "spark.worker.timeout": "900",
    "spark.network.timeout": "900s",
    "spark.ui.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
BACKEND = {"kind": "spark", "master": MASTER, "conf": CONF}


def why_not() -> str:
    """Why there can be no cluster here, or nothing."""
    try:
        session.check_java()
    except SourceError as error:
        return str(error)
    if any(importlib.util.find_spec(name) is None for name in ("pyspark", "pandas")):
        return f"backend: Spark is not installed; run: {session.EXTRA}"
    return ""


def needed() -> None:
    """Skips a test where there can be no cluster, saying why."""
    if reason := why_not():
        pytest.skip(reason)


@contextmanager
def started() -> Iterator[Any]:
    """A cluster, or a skipped test that says why there is none."""
    needed()
    with session.session(Spark(kind="spark", master=MASTER, conf=CONF)) as spark:
        yield spark


def processes(kind: str = EXECUTORS) -> list[int]:
    """The processes of a kind in the cluster that this process started; of Python's those that do the work."""
    parent, found = {}, []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            parent[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if kind.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    found = [each for each in found if os.getpid() in _above(each, parent)]
    return [each for each in found if kind == EXECUTORS or parent[each] in found]


def _above(process: int, parent: dict[int, int]) -> Iterator[int]:
    while process in parent:
        process = parent[process]
        yield process


def lose(kind: str) -> None:
    """Kills all processes of a kind in this process's cluster, and whatever comes in their place."""

    def kill_again_and_again() -> None:
        while True:
            for process in processes(kind):
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            time.sleep(0.1)

    Thread(target=kill_again_and_again, daemon=True).start()


def run_both(
    house: House, table: pa.Table, source: Any = None, files: int = 3, **changes: Any
) -> tuple[Result, Result]:
    """A run of the local engine and one on the cluster, which must come to the same recoding, rows and facts; the
    second reads the table from several files, or another source."""
    house.write(table)
    mixed = table.take(pa.array(sorted(range(len(table)), key=lambda row: (row * 7919) % len(table))))
    edges = [part * len(table) // files for part in range(files + 1)]
    for part, (first, last) in enumerate(pairwise(edges)):
        house.write(mixed.slice(first, last - first), f"parts/{part}.parquet")
    config = house.config(**changes)
    local = anon.run(config, overwrite=True, force=True)
    other = at(house, "spark", config) | {"backend": BACKEND}
    other["source"] = {"path": str(house.folder / "parts")} if source is None else {"table": source}
    spark = anon.run(other, overwrite=True, force=True)
    recodings = [(house.folder / run / "recoding.json").read_bytes() for run in ("out-run", "spark-run")]
    assert recodings[0] == recodings[1]
    names = sorted(path.name for path in (house.folder / "out").glob("*.parquet"))
    assert sorted(path.name for path in (house.folder / "spark").glob("*.parquet")) == names
    for name in names:
        there, here = parts(house, name), pq.ParquetFile(house.folder / "out" / name).read()
        assert there.schema.equals(here.schema)
        assert repr(there.to_pylist()) == repr(here.to_pylist())  # NaN is NaN
    assert spark.facts == local.facts
    return local, spark


def at(house: House, name: str, config: dict[str, Any]) -> dict[str, Any]:
    """A config with its release at another place."""
    places = {"path": str(house.folder / name), "run": str(house.folder / f"{name}-run")}
    return config | {"release": config["release"] | places}


def parts(house: House, name: str = "release.parquet") -> pa.Table:
    """A table of the cluster's release, its parts in the order of their names."""
    files = sorted((house.folder / "spark" / name).iterdir())
    assert all(file.name.startswith("part-") for file in files)
    return pa.concat_tables([pq.ParquetFile(file).read() for file in files]).combine_chunks()


if __name__ == "__main__":  # for the Makefile
    if reason := why_not():
        print(f"the tests on a Spark cluster are skipped: {reason}")
