"""Runs that are stopped or killed, and what goes on from there. That it ends with the bytes of an undisturbed run is in
test_same_release."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon import pipeline
from anon.config import load
from anon.core import disk
from anon.core.checkpoint import LIMIT, MARK, Checkpoint, CheckpointMark, RunIdentity
from anon.core.progress import Progress
from anon.errors import ConfigError, ResourceError
from anon.runs import identity
from anon.runs.options import Options
from anon.runs.workspace import locked_release
from anon.search import budget
from tests.helpers.killed import BLOCK, anon_run

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
    (folder,) = config.parent.glob(".anon-*")
    assert sorted(path.name for path in folder.iterdir()) == ["checkpoint", "lock"]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert anon_run(config, "--resume").code == 0
    assert not left(config.parent)


def test_finished_steps_are_not_done_again(config: Path) -> None:
    anon_run(config, steps=6)
    checkpoint = next(config.parent.glob(".anon-*/checkpoint"))
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
    mark = next(config.parent.glob(".anon-*/checkpoint")) / "run.json"
    content = disk.read_sealed(mark)
    content["run"]["version"] = "0.0.1, steps 1"
    disk.write_sealed(mark, content)
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
    assert resumed.code == 0 and "resuming after" in resumed.stderr
    assert not left(config.parent)


# What a resumed run must have in common with the one that was stopped


@pytest.fixture
def by_files(config: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A config that names a hierarchy and a distance, and has a setting from a variable."""
    (config.parent / "q0.csv").write_text("".join(f"{n};{n // 100} hundred;*\n" for n in range(1000)))
    (config.parent / "s.csv").write_text("".join(f"{n};part {n // 3};*\n" for n in range(6)))
    settings = json.loads(config.read_text())
    settings["columns"]["quasi_identifiers"]["q0"] = {"hierarchy": "q0.csv"}
    distance = {"kind": "hierarchy", "file": "s.csv"}
    settings["privacy"].append({"t_closeness": {"t": 0.9, "distance": distance}})
    settings["method"] = {"kind": "partition", "prefer": "${PREFER}"}
    config.write_text(json.dumps(settings))
    monkeypatch.setenv("PREFER", "widest")
    monkeypatch.setattr(budget, "BLOCK", BLOCK)
    return config


def stop(config: Path) -> None:
    """A run that is interrupted after some steps of its search."""
    save, steps = Checkpoint.save, []

    def stopping(self: Checkpoint, name: str, arrays: Any) -> None:
        save(self, name, arrays)
        steps.append(name)
        if len(steps) == 4:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "save", stopping)
        with pytest.raises(KeyboardInterrupt, match="steps of its search are kept"):
            pipeline.run(config)


def change_hierarchy(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Two leaves change places, as if two cities were named in each other's province."""
    text = (folder / "q0.csv").read_text()
    swapped = text.replace("5;0 hundred", "5;9 hundred").replace("950;9 hundred", "950;0 hundred")
    (folder / "q0.csv").write_text(swapped)


def change_distance(folder: Path, patch: pytest.MonkeyPatch) -> None:
    (folder / "s.csv").write_text((folder / "s.csv").read_text().replace("2;part 0;", "2;part 1;"))


def change_variable(folder: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("PREFER", "balanced")


def change_block(folder: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(budget, "BLOCK", 5_000)


def change_steps(folder: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(identity, "STEPS", 0)


CHANGED = {
    change_hierarchy: "another files than",
    change_distance: "another files than",
    change_variable: "another config than",
    change_block: "another version than",
    change_steps: "another version than",
}


@pytest.mark.parametrize("change", CHANGED, ids=lambda change: change.__name__)
def test_a_run_is_resumed_only_if_nothing_that_it_depends_on_has_changed(
    by_files: Path, monkeypatch: pytest.MonkeyPatch, change: Any
) -> None:
    stop(by_files)
    change(by_files.parent, monkeypatch)
    with pytest.raises(ConfigError, match=CHANGED[change]):
        pipeline.run(by_files, None, Options(resume=True))
    assert list(by_files.parent.rglob("*.npz"))  # still there for the run that it belongs to
    assert not (by_files.parent / "out").exists()


def test_a_run_that_names_files_is_resumed(by_files: Path) -> None:
    stop(by_files)
    (mark,) = by_files.parent.rglob("run.json")
    assert b"widest" not in mark.read_bytes()  # the value of a variable
    (by_files.parent / "q0.csv").touch()  # the same content
    pipeline.run(by_files, None, Options(resume=True))
    assert not left(by_files.parent)


# Damaged checkpoints


@pytest.mark.parametrize("kept", [0, 200, -1])
def test_a_search_whose_checkpoint_is_damaged_begins_anew(config: Path, kept: int) -> None:
    """As after a machine that went down: a file may have its name before it has its content."""
    anon_run(config, steps=6)
    step = next(iter(config.parent.rglob("level-1.npz")))
    step.write_bytes(step.read_bytes()[:kept])
    resumed = anon_run(config, "--resume")
    assert resumed.code == 0 and "the checkpoint is damaged; the search starts anew" in resumed.stderr
    assert not left(config.parent)


RUN = RunIdentity(config="1", files={}, source=[], version="1", trial=None)


@pytest.fixture
def stopped(in_memory: Path) -> Path:
    """The folder of a checkpoint with two steps."""
    made = Checkpoint(in_memory / "checkpoint")
    made.begin(RUN, resume=False)
    made.save(LIMIT, {"individuals": np.array(7)})
    made.save("level-1", {"cut": np.arange(5), "axis": np.ones(3, np.uint8)})
    return made.folder


def resumed_steps(folder: Path) -> int:
    """The steps of a checkpoint that can be resumed; one that is damaged begins anew, and says so."""
    again = Checkpoint(folder)
    again.begin(RUN, resume=True)
    assert again.damaged == (not again.steps())
    if not again.damaged:
        found = again.load("level-1")
        assert found is not None and (found["cut"] == np.arange(5)).all() and again.load("level-2") is None
    return again.steps()


def test_a_checkpoint_is_resumed(stopped: Path) -> None:
    assert resumed_steps(stopped) == 1


@pytest.mark.parametrize("name", ["run.json", "limit.npz", "level-1.npz"])
def test_any_changed_byte_of_a_checkpoint_is_noticed(stopped: Path, name: str) -> None:
    whole = {path.name: path.read_bytes() for path in stopped.iterdir()}
    for at in range(0, len(whole[name]), 5):
        for changed in (whole[name][:at], _flipped(whole[name], at)):
            for each, content in (whole | {name: changed}).items():
                (stopped / each).write_bytes(content)
            assert resumed_steps(stopped) == 0, at


def _flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ (1 << at % 8)]) + content[at + 1 :]


def test_steps_of_another_search_are_noticed(stopped: Path, in_memory: Path) -> None:
    """Also if that was of the same run, which may have had another number of threads and so other blocks."""
    whole = {path.name: path.read_bytes() for path in stopped.iterdir()}
    other = Checkpoint(in_memory / "other")
    other.begin(RUN, resume=False)
    other.save("level-1", {"cut": np.arange(5), "axis": np.ones(3, np.uint8)})
    foreign = {
        "a step of another search": {"level-1.npz": (other.folder / "level-1.npz").read_bytes()},
        "a step under another name": {"level-2.npz": whole["level-1.npz"]},
        "no size of blocks": {"limit.npz": None},
    }
    for what, files in foreign.items():
        for name, content in (whole | files).items():
            (stopped / name).unlink(missing_ok=True)
            if content is not None:
                (stopped / name).write_bytes(content)
        assert resumed_steps(stopped) == 0, what


def test_a_checkpoint_of_another_version_is_refused_and_kept(stopped: Path) -> None:
    later = RUN.model_copy(update={"version": "2"})
    with pytest.raises(ConfigError, match="--resume: found another version than when the checkpoint was made") as error:
        Checkpoint(stopped).begin(later, resume=True)
    assert error.value.exit_code == 2 and resumed_steps(stopped) == 1


MARKS = [*RunIdentity.model_fields, *CheckpointMark.model_fields]


@pytest.mark.parametrize("missing", [*MARKS, None])
def test_a_checkpoint_of_another_form_is_refused_and_kept(stopped: Path, missing: str | None) -> None:
    """That of an earlier version, which lacked a field, or of another program: both with a digest that is right."""
    whole = disk.read_sealed(stopped / MARK)
    other = {"name": "adult", "resources": []}
    run = {name: value for name, value in whole["run"].items() if name != missing}
    older = {name: value for name, value in (whole | {"run": run}).items() if name != missing}
    disk.write_sealed(stopped / MARK, older if missing else other)
    with pytest.raises(ConfigError, match="found a checkpoint that this version of anon did not make") as error:
        Checkpoint(stopped).begin(RUN, resume=True)
    assert error.value.exit_code == 2 and "without --resume" in str(error.value)
    disk.write_sealed(stopped / MARK, whole)
    assert resumed_steps(stopped) == 1


@pytest.mark.parametrize("content", [b"no JSON", b'{"name": "adult", "resources": []}'])
def test_a_checkpoint_whose_mark_has_no_digest_counts_as_damaged(stopped: Path, content: bytes) -> None:
    (stopped / MARK).write_bytes(content)
    assert resumed_steps(stopped) == 0


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_fails_while_a_step_is_saved_leaves_nothing(
    config: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    monkeypatch.setattr(budget, "BLOCK", BLOCK)
    replace, saved = Path.replace, []

    def fails(path: Path, target: Path) -> Path:
        saved.append(target)
        if len(saved) == 3:
            raise OSError(error, os.strerror(error))
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(ResourceError, match="writing the checkpoint"):
        pipeline.run(config)
    assert saved[-1].suffix == ".npz" and not left(config.parent)


def test_two_runs_never_write_one_release(config: Path) -> None:
    with locked_release(load(config), Progress()), pytest.raises(ConfigError, match="another run is writing"):
        pipeline.run(config)
    assert pipeline.run(config).safe


def test_resume_of_a_table_in_memory_is_refused(config: Path) -> None:
    table = pq.read_table(config.parent / "source.parquet")
    with pytest.raises(ConfigError, match="a table in memory"):
        pipeline.run(config, table, Options(resume=True))
