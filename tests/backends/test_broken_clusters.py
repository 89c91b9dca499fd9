"""A cluster that really breaks under a run, and executors that really may not write, or have no room: each run is a
process of its own, because a process has one cluster."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import anon
from tests.conftest import House
from tests.helpers import spark as cluster_of
from tests.helpers.backends import SPARK
from tests.helpers.killed import anon_run

pytestmark = [*SPARK, pytest.mark.long, pytest.mark.usefixtures("spark_here")]
ROWS = 3_000  # a block of these processes holds a few hundred of them
NOBODY = 65534


def config(house: House, **conf: str) -> Path:
    """A run over a random table on a cluster that gives up early, and that keeps what it spills in the house."""
    draw = np.random.default_rng(3)
    ages, zips = draw.integers(0, 1000, ROWS), [f"{code:05d}" for code in draw.integers(0, 1000, ROWS)]
    house.write({"age": ages, "zip": zips, "disease": [f"d{code}" for code in draw.integers(0, 6, ROWS)]})
    soon = {"spark.deploy.maxExecutorRetries": "1", "spark.local.dir": str(house.folder / "disks")}
    backend = cluster_of.BACKEND | {"conf": cluster_of.CONF | soon | conf}
    path = house.folder / "config.yaml"
    path.write_text(json.dumps(house.config(privacy=[{"k_anonymity": {"k": 20}}], backend=backend)))
    return path


def python(house: House, *before: str) -> dict[str, str]:
    """Executors whose Python is started by a script with some lines before."""
    script = house.folder / "python"
    script.write_text("\n".join(["#!/bin/sh", *before, f'exec $WITH {sys.executable} "$@"', ""]))
    script.chmod(0o755)
    return {"spark.pyspark.python": str(script)}


def nothing_was_published(house: House) -> bool:
    return not any((house.folder / name).exists() for name in ("out", "out-run"))


def test_executors_that_are_lost_for_good_leave_a_search_that_goes_on(house: House) -> None:
    path = config(house)
    lost = anon_run(path, steps=2, by=partial(cluster_of.lose, cluster_of.EXECUTORS))
    assert lost.code == 5
    told = lost.stderr.splitlines()[-1]
    assert "executors were lost for good; see why in the logs of the cluster" in told
    assert "2 steps of its search are kept in" in told and "the same command with --resume continues from there" in told
    assert nothing_was_published(house)
    (kept,) = house.leftovers()
    assert sorted(each.name for each in Path(kept).iterdir()) == ["checkpoint", "lock"]
    resumed = anon_run(path, "--resume")
    assert resumed.code == 0 and "it goes on after 2 steps" in resumed.stderr
    assert not house.leftovers()
    recoding = (house.folder / "out-run" / "recoding.json").read_bytes()
    anon.run(json.loads(path.read_text()) | {"backend": {"kind": "local"}}, overwrite=True, force=True)
    assert (house.folder / "out-run" / "recoding.json").read_bytes() == recoding


@pytest.mark.parametrize("stage", ["release", "verify"])
def test_executors_that_are_lost_after_the_search_publish_nothing(house: House, stage: str) -> None:
    """And say nothing about the release: it did not fail its verification."""
    lost = anon_run(config(house), stage=stage, by=partial(cluster_of.lose, cluster_of.EXECUTORS))
    assert lost.code == 5
    assert "executors were lost for good" in lost.stderr and "--resume continues from there" in lost.stderr
    assert nothing_was_published(house)
    (kept,) = house.leftovers()
    assert sorted(each.name for each in Path(kept).iterdir()) == ["checkpoint", "lock"]


def test_python_processes_that_are_killed_for_good_are_taken_for_a_lack_of_memory(house: House) -> None:
    """As the system kills those that have too much."""
    once = config(house, **{"spark.task.maxFailures": "1"})
    lost = anon_run(once, stage="release", by=partial(cluster_of.lose, cluster_of.WORKERS))
    assert lost.code == 6
    assert "ran out of memory; raise spark.executor.memory and spark.executor.memoryOverhead" in lost.stderr
    assert nothing_was_published(house) and not house.leftovers()


def test_executors_of_another_user_may_not_write_the_release(house: House) -> None:
    """What is not published yet is for the driver's user alone."""
    with_other = f"setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups"
    other = python(house, "unset SPARK_LOCAL_DIRS", f"WITH='{with_other}'")  # the disks of Spark are not theirs either
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("to run executors as another user takes root and setpriv")
    if subprocess.run([other["spark.pyspark.python"], "-c", "import anon, pyspark"], check=False).returncode:
        pytest.skip("another user may not read the Python packages that these tests run with")
    refused = anon_run(config(house, **other, **{"spark.io.encryption.enabled": "true"}))  # else by files of root
    assert refused.code == 2
    assert "release.path: found a folder that the executors, which run as nobody, may not write" in refused.stderr
    assert "expected executors that run as the driver's user" in refused.stderr
    assert nothing_was_published(house) and not house.leftovers()


def test_executors_without_room_for_the_release_say_where_to_make_some(house: House) -> None:
    """The system lets no file of theirs grow over a kilobyte."""
    full = anon_run(config(house, **python(house, "ulimit -f 1")))
    assert full.code == 6
    assert "no space left for it in the folder of release.path; make room there" in full.stderr
    assert nothing_was_published(house) and not house.leftovers()
