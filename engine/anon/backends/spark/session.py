"""Find or start the Spark session of a run, before anything is read: what is missing for that is reported with what to
do about it. A session that was there before is left as it was."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anon.backends.spark.failures import on_spark
from anon.backends.spark.properties import submitted
from anon.config import Spark
from anon.core import without_pandas
from anon.errors import SourceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTRA = "pip install 'anon-engine[spark]'"
JAVA = 17  # the oldest that Spark 4 runs on
ROWS = 65_536  # of a batch of plain rows between Spark and Python
DURING = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS),
    "spark.sql.shuffle.partitions": None,  # as the cluster has cores, unless the config says otherwise
}


@contextmanager
def session(backend: Spark, table: Any = None) -> Iterator[SparkSession]:
    """Yield the session of a table that is a DataFrame, the one that is active, or a new one, which is stopped
    afterwards."""
    pyspark = _imported()
    found = getattr(table, "sparkSession", None) or pyspark.sql.SparkSession.getActiveSession()
    spark = found or _started(pyspark, backend)
    if not hasattr(spark, "sparkContext"):
        raise SourceError("backend: a session of Spark Connect cannot run this; use one that is on the cluster itself")
    before = {name: spark.conf.get(name, None) for name in DURING}
    group = f"anon-{uuid.uuid4().hex}"
    try:
        _settle(spark, backend)
        spark.sparkContext.setJobGroup(group, "anon")
        with on_spark("working with Spark"):  # a cluster may be gone wherever it is asked for something
            yield spark
    except BaseException:
        with suppress(Exception):  # what went wrong is more to the point than that the cluster is gone
            spark.sparkContext.cancelJobGroup(group)
        raise
    finally:
        with suppress(Exception):
            _end(spark, before, stop=found is None)


def is_frame(table: Any) -> bool:
    """Return whether a table is a DataFrame of Spark, without importing Spark to find out."""
    kinds = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(table).__mro__}
    return any(re.fullmatch(r"pyspark\.sql\..*\bDataFrame", kind) for kind in kinds)


def check_installed() -> None:
    """Raise SourceError if Spark cannot be started here."""
    _imported()
    check_java()


def _imported() -> Any:
    without_pandas.allow()
    try:
        import pandas
        import pyspark.sql
    except ImportError as error:
        raise SourceError(f"backend: Spark needs {error.name}, which is not installed; run: {EXTRA}") from None
    for name, found, least, below in (("pyspark", pyspark.__version__, 4, 5), ("pandas", pandas.__version__, 2, 3)):
        if not least <= int(found.split(".")[0]) < below:
            raise SourceError(f"backend: Spark needs {name} {least}, and {name} {found} is installed; run: {EXTRA}")
    return pyspark


def check_java() -> None:
    """Raise SourceError if there is no Java that Spark runs on."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    do = f"install Java {JAVA} or 21 (such as the package openjdk-{JAVA}-jre-headless) and set JAVA_HOME to its folder"
    try:
        ran = subprocess.run([java or "java", "-version"], capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        where = f"in JAVA_HOME ({home})" if home else "on the PATH, and JAVA_HOME is not set"
        raise SourceError(f"backend: Spark needs Java, and there is none {where}; {do}") from None
    version = re.search(r'version "(?:1\.)?(\d+)', ran.stderr)
    if version and int(version[1]) < JAVA:
        raise SourceError(f"backend: Spark needs Java {JAVA} or later, and {java} is Java {version[1]}; {do}")


def _started(pyspark: Any, backend: Spark) -> SparkSession:
    check_java()
    builder = pyspark.sql.SparkSession.builder.appName("anon")
    master = backend.master or backend.conf.get("spark.master") or os.environ.get("MASTER")
    if master:
        builder = builder.master(master)
    conf = {"spark.ui.showConsoleProgress": "false"} | backend.conf
    here = master is None or master.startswith("local")
    with _environment(pyspark, conf.get("spark.pyspark.python"), here), on_spark("starting Spark"):
        with submitted(conf):
            pyspark.SparkContext.setSystemProperty("spark.app.name", "anon")  # starts Java, if it is not running yet
        for name, value in conf.items():  # goes through a socket now, and reaches a Java that was running before
            builder = builder.config(name, value)
        spark: SparkSession = builder.getOrCreate()
        spark.sparkContext.setLogLevel(backend.conf.get("spark.log.level", "ERROR"))
        return spark


@contextmanager
def _environment(pyspark: Any, python: str | None, here: bool) -> Iterator[None]:
    """Set where processes of a cluster on one machine find Spark, each other and this Python; the Python of executors
    elsewhere, where the config names one."""
    wanted = {"PYSPARK_PYTHON": python or (sys.executable if here else None)}
    if here:
        wanted |= {"SPARK_HOME": str(Path(pyspark.__file__).parent), "SPARK_LOCAL_IP": "127.0.0.1"}
    missing = {name: value for name, value in wanted.items() if value is not None and name not in os.environ}
    os.environ.update(missing)
    on_interrupt = signal.getsignal(signal.SIGINT)  # which Spark takes for itself
    try:
        yield
    finally:
        for name in missing:
            del os.environ[name]
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, on_interrupt)


def _settle(spark: SparkSession, backend: Spark) -> None:
    """Apply the settings of a run that a session accepts while it is running."""
    cores = spark.sparkContext.defaultParallelism
    for name, value in DURING.items():
        spark.conf.set(name, backend.conf.get(name) or value or str(max(2 * cores, 2)))


def _end(spark: SparkSession, before: dict[str, str | None], stop: bool) -> None:
    if stop:
        spark.stop()
        return
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)
