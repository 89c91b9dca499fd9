"""Runs that are stopped or killed, and what goes on from there: always the same bytes as an undisturbed run."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon import pipeline
from anon.errors import ConfigError
from anon.pipeline import Options
from anon.search import means

ROWS, BLOCK = 30_000, 40_000  # a block holds a few thousand of them

SCRIPT = """
import os, signal, sys
import anon.pipeline as pipeline
from anon.checkpoint import Checkpoint
from anon.progress import Progress
from anon.search import means, partition
means.BLOCK = {block}
partition.SMALLEST_BLOCK = 1
steps, last = 0, {steps}
save, stage = Checkpoint.save, Progress.stage

def dying_save(self, name, arrays):
    global steps
    save(self, name, arrays)
    steps += 1
    if steps == last:
        os.kill(os.getpid(), signal.{signal})

def dying_stage(self, name):
    if name == {stage!r}:
        os.kill(os.getpid(), signal.{signal})
    return stage(self, name)

Checkpoint.save, Progress.stage = dying_save, dying_stage
from anon.__main__ import main
sys.argv = ["anon", "run", {config!r}, *{more!r}]
main()
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    table = {f"q{i}": rng.integers(0, 1000, ROWS) for i in range(3)} | {"s": rng.integers(0, 6, ROWS)}
    pq.write_table(pa.table(table), tmp_path / "source.parquet")
    settings = {
        "source": {"path": "source.parquet"},
        "columns": {"individual": "row", "quasi_identifiers": {f"q{i}": {} for i in range(3)}, "sensitive": ["s"]},
        "privacy": [{"skyline": {"points": [{"l": 1, "k": 20, "m": 3, "c": 0.9}]}}],
        "release": {"path": "out", "run": "out-run"},
        "limits": {"memory": "1GB", "threads": 2},
    }
    (tmp_path / "config.yaml").write_text(json.dumps(settings))
    return tmp_path / "config.yaml"


def start(
    config: Path, *more: str, steps: int = 0, stage: str = "", by: str = "SIGKILL"
) -> subprocess.CompletedProcess[str]:
    """A run in a process of its own that is ended after some steps of its search or before a stage."""
    script = SCRIPT.format(block=BLOCK, steps=steps, stage=stage, signal=by, config=str(config), more=list(more))
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False)


def published(folder: Path) -> dict[str, bytes]:
    files = [*(folder / "out").iterdir(), folder / "out-run" / "recoding.json"]
    return {file.name: file.read_bytes() for file in files}


def left(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if ".anon" in str(path))


def undisturbed(config: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    monkeypatch.setattr(means, "BLOCK", BLOCK)
    pipeline.run(config, None, Options(overwrite=True, force=True))
    return published(config.parent)


@pytest.mark.parametrize("at", [1, 2, 4, 7, 11])
def test_a_killed_search_goes_on_and_ends_with_the_same_bytes(
    config: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    killed = start(config, steps=at)
    assert killed.returncode == -signal.SIGKILL
    assert not (config.parent / "out").exists()
    assert start(config, "--resume").returncode == 0
    resumed = published(config.parent)
    assert not left(config.parent)
    assert resumed == undisturbed(config, monkeypatch)


@pytest.mark.parametrize("stage", ["source", "cube", "search", "release", "verify", "utility", "report"])
def test_a_run_killed_at_a_stage_goes_on_and_ends_with_the_same_bytes(
    config: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    assert start(config, stage=stage).returncode == -signal.SIGKILL
    assert start(config, "--resume").returncode == 0
    resumed = published(config.parent)
    assert not left(config.parent)
    assert resumed == undisturbed(config, monkeypatch)


def test_a_run_killed_at_random_moments_ends_with_the_same_bytes(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed again and again, a little later every time, until it is done."""
    moments, code = random.Random(7), -signal.SIGKILL
    script = SCRIPT.format(block=BLOCK, steps=0, stage="", signal="SIGKILL", config=str(config), more=["--resume"])
    lifetime, kills = 0.6, 0
    while code == -signal.SIGKILL and not (config.parent / "out").exists():  # it may be killed when it has published
        run = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE)
        try:
            run.communicate(timeout=lifetime * moments.uniform(0.5, 1.5))
        except subprocess.TimeoutExpired:
            run.kill()
            run.communicate()
        code, lifetime, kills = run.returncode, lifetime * 1.4, kills + 1
    assert code in (0, -signal.SIGKILL)
    assert kills > 2
    assert code == -signal.SIGKILL or not left(config.parent)
    assert published(config.parent) == undisturbed(config, monkeypatch)


def test_an_interrupted_run_keeps_its_checkpoint_and_nothing_else(config: Path) -> None:
    stopped = start(config, steps=4, by="SIGTERM")
    assert stopped.returncode == 130
    kept = left(config.parent)
    assert [name for name in kept if "checkpoint" in name]
    assert not [name for name in kept if "work" in name or "release" in name or "anon-run" in name]
    folder = next(config.parent.glob(".anon-spill-*"))
    assert folder.stat().st_mode & 0o777 == 0o700
    assert start(config, "--resume").returncode == 0
    assert not left(config.parent)


def test_finished_steps_are_not_done_again(config: Path) -> None:
    start(config, steps=6)
    checkpoint = next(config.parent.glob(".anon-spill-*")) / "checkpoint"
    before = {file.name: file.stat().st_mtime_ns for file in checkpoint.glob("*.npz")}
    start(config, "--resume", steps=len(before) + 2)
    after = {file.name: file.stat().st_mtime_ns for file in checkpoint.glob("*.npz")}
    assert before.items() <= after.items()
    assert len(after) > len(before)


def test_another_config_is_not_gone_on_with_but_told(config: Path) -> None:
    start(config, steps=4)
    config.write_text(config.read_text().replace('"k": 20', '"k": 25'))
    refused = start(config, "--resume")
    assert refused.returncode == 2
    assert "another config" in refused.stderr
    assert "without --resume" in refused.stderr
    assert left(config.parent)  # it is still there for the config it belongs to
    assert start(config).returncode == 0
    assert not left(config.parent)


def test_another_source_is_not_gone_on_with(config: Path) -> None:
    start(config, steps=4)
    table = pq.read_table(config.parent / "source.parquet")
    pq.write_table(table.slice(1), config.parent / "source.parquet")
    refused = start(config, "--resume")
    assert refused.returncode == 2
    assert "another source" in refused.stderr


def test_two_runs_never_write_one_release(config: Path) -> None:
    from anon.config import load
    from anon.workspace import workspace

    with workspace(load(config), "first"), pytest.raises(ConfigError, match="another run is writing"):
        pipeline.run(config)
    assert pipeline.run(config).safe


def test_resume_of_a_table_in_memory_is_refused(config: Path) -> None:
    table = pq.read_table(config.parent / "source.parquet")
    with pytest.raises(ConfigError, match="a table in memory"):
        pipeline.run(config, table, Options(resume=True))


@pytest.mark.parametrize("stage", ["search", "release"])
def test_a_killed_lattice_search_begins_again_and_ends_with_the_same_bytes(config: Path, stage: str) -> None:
    """It keeps no checkpoint, so that there is nothing to go on from."""
    settings = json.loads(config.read_text()) | {"method": {"kind": "lattice"}, "privacy": [{"k_anonymity": {"k": 5}}]}
    config.write_text(json.dumps(settings))
    assert start(config).returncode == 0
    undisturbed = published(config.parent)
    assert start(config, "--overwrite", "--force", stage=stage).returncode == -signal.SIGKILL
    assert not list(config.parent.rglob("*.npz"))
    assert start(config, "--overwrite", "--force", "--resume").returncode == 0
    assert published(config.parent) == undisturbed
    assert not left(config.parent)
