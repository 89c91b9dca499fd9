"""A Spark cluster of two worker processes for tests."""

from __future__ import annotations

import importlib.util
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from anon.backends.spark import session
from anon.config import Spark
from anon.errors import SourceError

MASTER = "local-cluster[2,1,1024]"
EXECUTORS, WORKERS = "ExecutorBackend", "pyspark.daemon"  # how their processes are called
# A cluster that shares two cores with other tests may be slow to answer; for small tables neither Spark nor Java's
# second compiler need compile, which was half of the processor time of these tests.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
CONF = {
    "spark.driver.extraJavaOptions": JAVA,
    "spark.executor.extraJavaOptions": JAVA,
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


if __name__ == "__main__":  # for the Makefile
    if reason := why_not():
        print(f"the tests on a Spark cluster are skipped: {reason}")
