"""Runs that are stopped or killed, and what goes on from there. That it ends with the bytes of an undisturbed run is in
test_same_release."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon import pipeline
from anon.errors import ConfigError
from anon.pipeline import Options
from tests.helpers_killed import anon_run

ROWS = 3_000  # a block of the processes that are killed holds a few hundred of them


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


def left(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if ".anon" in str(path))


def test_an_interrupted_run_keeps_its_checkpoint_and_nothing_else(config: Path) -> None:
    stopped = anon_run(config, steps=4, by="SIGTERM")
    assert stopped.code == 130
    kept = left(config.parent)
    assert [name for name in kept if "checkpoint" in name]
    assert not [name for name in kept if "work" in name or "release" in name or "anon-run" in name]
    folder = next(config.parent.glob(".anon-spill-*"))
    assert folder.stat().st_mode & 0o777 == 0o700
    assert anon_run(config, "--resume").code == 0
    assert not left(config.parent)


def test_finished_steps_are_not_done_again(config: Path) -> None:
    anon_run(config, steps=6)
    checkpoint = next(config.parent.glob(".anon-spill-*")) / "checkpoint"
    before = {file.name: file.stat().st_mtime_ns for file in checkpoint.glob("*.npz")}
    anon_run(config, "--resume", steps=len(before) + 2)
    after = {file.name: file.stat().st_mtime_ns for file in checkpoint.glob("*.npz")}
    assert before.items() <= after.items()
    assert len(after) > len(before)


def test_another_config_is_not_gone_on_with_but_told(config: Path) -> None:
    anon_run(config, steps=4)
    config.write_text(config.read_text().replace('"k": 20', '"k": 25'))
    refused = anon_run(config, "--resume")
    assert refused.code == 2
    assert "another config" in refused.stderr
    assert "without --resume" in refused.stderr
    assert left(config.parent)  # it is still there for the config it belongs to
    assert anon_run(config).code == 0
    assert not left(config.parent)


def test_another_source_is_not_gone_on_with(config: Path) -> None:
    anon_run(config, steps=4)
    table = pq.read_table(config.parent / "source.parquet")
    pq.write_table(table.slice(1), config.parent / "source.parquet")
    refused = anon_run(config, "--resume")
    assert refused.code == 2
    assert "another source" in refused.stderr


def test_another_version_is_not_gone_on_with(config: Path) -> None:
    anon_run(config, steps=4)
    mark = next(config.parent.glob(".anon-spill-*")) / "checkpoint" / "run.json"
    mark.write_text(json.dumps(json.loads(mark.read_text()) | {"version": "0.0.1, steps 1"}))
    refused = anon_run(config, "--resume")
    assert refused.code == 2
    assert "another version" in refused.stderr and "without --resume" in refused.stderr
    assert list(config.parent.rglob("*.npz"))


def test_a_source_that_cannot_be_read_for_now_leaves_the_checkpoint_alone(config: Path) -> None:
    source = config.parent / "source.parquet"
    rows = source.rename(config.parent / "rows.parquet")
    source.symlink_to(rows)
    anon_run(config, steps=4)
    source.unlink()
    source.write_bytes(rows.read_bytes()[:100])
    assert anon_run(config, "--resume").code == 5
    source.unlink()
    source.symlink_to(rows)
    resumed = anon_run(config, "--resume")
    assert resumed.code == 0 and "goes on after" in resumed.stderr
    assert not left(config.parent)


@pytest.mark.parametrize("kept", [0, 200, -1])
def test_a_checkpoint_with_a_step_that_is_not_whole_is_begun_anew(config: Path, kept: int) -> None:
    """As after a machine that went down: a file may have its name before it has its content."""
    anon_run(config, steps=6)
    step = next(iter(config.parent.rglob("level-1.npz")))
    step.write_bytes(step.read_bytes()[:kept])
    resumed = anon_run(config, "--resume")
    assert resumed.code == 0 and "begins anew" in resumed.stderr
    assert not left(config.parent)


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
