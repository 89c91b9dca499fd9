"""What can go wrong with a cluster, told with the right exit code and what to do; most of it needs no cluster."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import anon
from anon.backends.spark import failures, parts, session
from anon.backends.spark.release import CountedForm
from anon.errors import AnonError, ClusterLost, ConfigError, ResourceError, SourceError
from tests.conftest import House

BACKEND = {"kind": "spark", "master": "local[1]"}
NO_SPARK = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pyspark", "pandas", "py4j"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import importlib, pkgutil, anon
for found in pkgutil.walk_packages(anon.__path__, "anon."):
    if found.name != "anon.__main__" and not found.name.startswith("anon.kernels"):  # libraries of C
        importlib.import_module(found.name)
anon.run(__import__("json").loads(sys.argv[1]))
"""


def spark_config(house: House, **changes: Any) -> dict[str, Any]:
    house.write({"age": [1, 2, 3], "zip": ["00001"] * 3, "disease": ["a", "b", "c"]})
    return house.config(**changes) | {"backend": BACKEND}


def test_the_core_imports_and_runs_without_spark(house: House) -> None:
    config = {name: part for name, part in spark_config(house).items() if name != "backend"}
    subprocess.run([sys.executable, "-c", NO_SPARK, json.dumps(config)], check=True)
    assert (house.folder / "out" / "release.parquet").is_file()


def test_a_missing_extra_is_told_with_the_command_that_installs_it(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(SourceError, match=r"pip install 'anon-engine\[spark\]'"):
        anon.run(spark_config(house))
    assert not house.leftovers()


@pytest.mark.parametrize("home", [True, False])
def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: bool) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if home:
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SourceError, match=r"needs Java, and there is none .*install Java 17"):
        session.check_java()


VERSIONS = [("1.8.0_292", False), ("11.0.2", False), ("17.0.15", True), ("21", True)]


@pytest.mark.parametrize(("version", "fine"), VERSIONS)
def test_java_must_be_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, fine: bool) -> None:
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    if fine:
        session.check_java()
        return
    with pytest.raises(SourceError, match=r"needs Java 17 or later, and .* is Java"):
        session.check_java()


class Py4JJavaError(Exception):
    """As Spark raises it."""


Py4JJavaError.__module__ = "py4j.protocol"


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        ("ExecutorLostFailure (executor 3 exited)", ClusterLost, "lost for good; see why in the logs"),
        ("Master removed our application: FAILED", ClusterLost, "lost for good"),
        ("ModuleNotFoundError: No module named 'anon'", SourceError, "install the same version of anon-engine"),
        ("java.io.IOException: No space left on device", ResourceError, "no space left"),
        ("EOFException occurred while reading the port number from pyspark.daemon's stdout", SourceError, "not start"),
        ("from pyspark.daemon's stdout and terminated with code: 137.", ResourceError, "memoryOverhead"),
        ("OSError: [Errno 27] File too large", ResourceError, "spark.local.dir"),
        ("Python worker exited unexpectedly (crashed)", ResourceError, "spark.executor.memoryOverhead"),
        ("org.apache.hadoop.security.AccessControlException: denied", SourceError, "give that user the right"),
        ("ValueError: secret value 4711", SourceError, r"Spark failed \(ValueError\)"),
    ],
)
def test_failures_of_spark_are_told_in_words_of_our_own(said: str, kind: type[AnonError], words: str) -> None:
    with pytest.raises(kind, match=words) as told, failures.on_spark("searching"):
        raise Py4JJavaError(said)
    assert "4711" not in str(told.value)


def test_our_own_failures_come_back_from_executors_as_they_were() -> None:
    for error in (SourceError("a {b}\nc"), ConfigError.at("release.path", "x", "y", "z")):
        said = f'Traceback:\nRuntimeError: {failures.marked(error)}\n at java.lang {{"x": 1}}'
        with pytest.raises(type(error)) as told, failures.on_spark("searching"):
            raise Py4JJavaError(said)
        assert str(told.value) == str(error)


def test_other_exceptions_are_left_alone() -> None:
    with pytest.raises(ValueError, match="ours"), failures.on_spark("searching"):
        raise ValueError("ours")


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (errno.EROFS, ConfigError, r"release\.path: .*executors, which run as"),
        (errno.ESTALE, ConfigError, r"release\.path: .*executors do not have"),
        (errno.EDQUOT, ResourceError, r"no space left .* release\.path; make room there"),
        (errno.EIO, OSError, "Errno 5"),
    ],
)
def test_a_part_that_cannot_be_written_says_what_the_place_must_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[Exception], words: str
) -> None:
    def refused(*given: Any) -> Any:
        raise OSError(number, "")

    monkeypatch.setattr(parts, "write_tables", refused)
    form = CountedForm(pa.schema([]), [], None)  # type: ignore[arg-type]
    part = parts.PartWriter(tmp_path / "part-000000.parquet", form, 0, np.zeros(1, np.int64))
    with pytest.raises(kind, match=words):
        part.write(iter(()))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"method": {"kind": "merge"}}, "method.kind: found merge with backend spark.*partition or lattice"),
        ({"method": {"kind": "colour"}}, "method.kind: found colour with backend spark.*partition or lattice"),
        ({"release": {"path": "out", "form": "bucketized", "labels": "exact"}}, "release.labels: found exact with"),
        ({"columns__multiplicity": "set", "release__form": "bucketized"}, "multiplicity: found set with"),
        ({"release__format": "csv"}, "release.format: found csv with backend spark"),
    ],
)
def test_what_a_cluster_cannot_do_is_refused_when_the_config_is_read(
    house: House, changes: dict[str, Any], words: str
) -> None:
    config = spark_config(house, **changes)
    with pytest.raises(ConfigError, match=words):
        anon.run(config)


@pytest.mark.parametrize(("path", "words"), [("s3://b/out", "the address of a store"), ("s3a://b/out", "a local path")])
def test_a_release_of_a_cluster_is_on_no_store(house: House, path: str, words: str) -> None:
    config = spark_config(house)
    config["release"] |= {"path": path, "run": str(house.folder / "run")}
    with pytest.raises(ConfigError, match=f"release.path: .*{words}"):
        anon.run(config)


def test_a_table_of_a_catalog_needs_a_cluster(house: House) -> None:
    with pytest.raises(ConfigError, match=r"source.table: .*backend: {kind: spark}"):
        anon.run(house.config() | {"source": {"table": "db.people"}})


def test_what_works_on_one_machine_says_so(house: House) -> None:
    config = spark_config(house)
    with pytest.raises(ConfigError, match=r"backend.kind: .*backend local"):
        anon.utility(config, config["source"]["path"])
