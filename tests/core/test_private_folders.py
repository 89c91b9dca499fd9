"""The private folders of a run: no two runs write to one place, nobody else can make or read them, and what a killed
process left is removed by a later start."""

from __future__ import annotations

import io
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from anon import pipeline
from anon.backends import local
from anon.commands.explain import explain
from anon.config import load
from anon.core import disk
from anon.core.progress import Progress
from anon.errors import ConfigError, ResourceError, VerificationError
from anon.runs.options import DEFAULTS
from anon.runs.scratch import PREFIX, scratch
from anon.runs.workspace import StateFolders, locked_release, state_folder, workspace
from anon.search import prepare
from anon.verify import judge
from tests.conftest import House
from tests.helpers.faults import KILLED, forked

ROWS = pa.table({"age": [20, 20, 30, 30] * 5, "zip": ["02139"] * 20, "disease": ["Flu", "HIV"] * 10})


@pytest.fixture
def written(house: House) -> House:
    house.write(ROWS)
    return house


def other_run(house: House, **changes: Any) -> None:
    """A run for a release that is being written."""
    with pytest.raises(ConfigError, match="another run is writing"):
        house.run(**changes)


# One run at a time


PLACES = {
    "another temporary folder": {"limits__temp": "temp-2"},
    "another run folder": {"release": {"path": "out", "run": "other-run"}},
    "the run folder of another release": {"release": {"path": "other", "run": "out-run"}},
}


@pytest.mark.parametrize("changes", PLACES.values(), ids=PLACES)
def test_two_runs_that_share_a_place_exclude_each_other(written: House, changes: dict[str, Any]) -> None:
    with locked_release(load(written.config()), Progress()):
        other_run(written, **changes)
    written.run(**changes)
    assert not written.leftovers()


def test_another_run_cannot_change_what_is_verified(written: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second run with another temporary folder, which begins when the first one has written its release, does not
    touch it: what is published is what was verified."""
    plain = judge.verify

    def overtaken(*arguments: Any) -> Any:
        monkeypatch.setattr(judge, "verify", plain)
        other_run(written, limits__temp="temp-2", privacy=[{"k_anonymity": {"k": 10}}])
        return plain(*arguments)

    monkeypatch.setattr(judge, "verify", overtaken)
    assert written.run().facts["groups"] == 2
    assert written.released().num_rows == 20
    assert written.check(str(written.folder / "out")).facts["groups"] == 2


@pytest.mark.parametrize("name", ["release.parquet", "datapackage.json", "more.txt", "recoding.json"])
def test_only_files_that_were_verified_are_published(
    written: House, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    plain = pipeline.write_run

    def changing(work: Any, *more: Any) -> Any:
        report = plain(work, *more)
        ((work.run if name == "recoding.json" else work.release) / name).write_bytes(b"others")
        return report

    monkeypatch.setattr(pipeline, "write_run", changing)
    with pytest.raises(VerificationError, match="changed after they were verified; nothing was published"):
        written.run()
    assert not written.leftovers() and not (written.folder / "out").exists()


# Nobody else's folders


def insecure(folder: Path, how: str) -> None:
    """What another user might have put where a private folder goes."""
    if how == "link":
        (folder.parent / "elsewhere").mkdir()
        folder.symlink_to(folder.parent / "elsewhere")
    elif how == "file":
        folder.touch()
    else:
        folder.mkdir()
        folder.chmod(0o777 if how == "open" else 0o700)


@pytest.mark.parametrize(
    ("name", "how"),
    [("out", how) for how in ("link", "file", "open", "other user")] + [("out-run", how) for how in ("link", "open")],
)
def test_a_state_folder_that_is_not_private_is_refused(
    written: House, monkeypatch: pytest.MonkeyPatch, name: str, how: str
) -> None:
    folder = state_folder(written.folder / name, written.folder / name)
    insecure(folder, how)
    before = sorted(written.folder.rglob("*"))
    if how == "other user":
        monkeypatch.setattr(disk.os, "geteuid", lambda: os.getuid() + 1)
    words = {"link": "a symbolic link", "file": "not a folder", "open": "other users may use", "other user": "another"}
    with pytest.raises(ConfigError, match=words[how]):
        written.run()
    assert sorted(written.folder.rglob("*")) == before


def test_a_lock_that_is_a_link_creates_nothing(written: House) -> None:
    folder = state_folder(written.folder / "out", written.folder / "out")
    folder.mkdir(mode=0o700)
    (folder / "lock").symlink_to(written.folder / "created")
    with pytest.raises(ConfigError, match=r"release\.path"):
        written.run()
    assert not (written.folder / "created").exists()


def test_the_spill_has_another_name_each_time_and_is_private(written: House, monkeypatch: pytest.MonkeyPatch) -> None:
    (written.folder / "table.csv").write_text("age,zip,disease\n" + "20,02139,Flu\n30,02139,HIV\n" * 9)
    seen: list[Path] = []
    build = prepare.cubes.build

    def watched(*arguments: Any, **options: Any) -> Any:
        (spill,) = (written.folder / "spill").iterdir()
        files = [path for path in spill.rglob("*") if path.is_file()]
        assert len(files) > 1 and not any(stat.S_IMODE(path.stat().st_mode) & 0o077 for path in (spill, *files))
        seen.append(spill)
        return build(*arguments, **options)

    monkeypatch.setattr(prepare.cubes, "build", watched)
    for _ in range(2):
        written.run(source={"path": "table.csv"})
    assert len(set(seen)) == 2 and all(path.name.startswith(PREFIX) for path in seen)


def test_what_duckdb_spills_is_private(tmp_path: Path) -> None:
    config = {"limits": {"temp": str(tmp_path)}, **minimal(tmp_path)}
    with scratch(load(config), Progress()) as folder:
        database = local.connect(10**9, 1, folder)
        database.execute("SET memory_limit = '30MB'")
        database.execute("CREATE TEMP TABLE t AS SELECT hash(range) AS h FROM range(8000000)")
        spilled = [path for path in folder.rglob("*") if path.is_file()]
        assert len(spilled) > 1 and not any(path.stat().st_mode & 0o077 for path in spilled)
        database.close()


def minimal(folder: Path) -> dict[str, Any]:
    return {
        "source": {"path": str(folder / "none.parquet")},
        "columns": {"individual": "row", "quasi_identifiers": {"age": {}}, "sensitive": ["d"]},
        "privacy": [{"k_anonymity": {"k": 2}}],
        "release": {"path": str(folder / "out")},
    }


def test_threads_that_run_at_the_same_time_leave_the_umask_as_it_was() -> None:
    before = os.umask(0o022)
    try:
        first, second = disk.private_umask(), disk.private_umask()
        assert first.__enter__() == second.__enter__() == 0o022
        first.__exit__(None, None, None)
        assert os.umask(0o077) == 0o077
        second.__exit__(None, None, None)
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)


# What killed processes left


def left_by_a_killed_run(house: House, **changes: Any) -> None:
    config = load(house.config(**changes))

    def killed() -> None:
        with locked_release(config, Progress()) as state, workspace(state, config, "killed") as work:
            (work.spill / "rows.parquet").write_text("raw rows")
            (work.release / "release.parquet").write_text("unverified")
            os._exit(KILLED)

    assert forked(killed) == KILLED
    assert house.leftovers()


@pytest.mark.parametrize("changes", [{}, {"limits__temp": "temp-2"}, {"release": {"path": "out", "run": "run-2"}}])
def test_the_next_start_removes_what_a_killed_run_left(written: House, changes: dict[str, Any]) -> None:
    left_by_a_killed_run(written)
    written.run(**changes)
    assert not written.leftovers()


def killed_in_scratch(folder: Path) -> None:
    config = load({"limits": {"temp": str(folder)}, **minimal(folder)})

    def killed() -> None:
        with scratch(config, Progress()) as spill:
            (spill / "rows.parquet").write_text("raw rows")
            os._exit(KILLED)

    assert forked(killed) == KILLED


@contextmanager
def living(folder: Path) -> Iterator[Path]:
    """A spill folder of another process that is at work."""
    config = load({"limits": {"temp": str(folder)}, **minimal(folder)})
    made, announce = os.pipe()
    hear, end = os.pipe()
    child = os.fork()
    if not child:
        with scratch(config, Progress()) as spill:
            os.write(announce, str(spill).encode())
            os.read(hear, 1)
        os._exit(0)
    yield Path(os.read(made, 1000).decode())
    os.write(end, b"x")
    os.waitpid(child, 0)
    for handle in (made, announce, hear, end):
        os.close(handle)


def test_a_check_removes_the_spill_of_a_killed_one_and_no_other(
    written: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(written.folder / "spill"))
    spill = written.folder / "spill"
    killed_in_scratch(spill)
    assert len(list(spill.iterdir())) == 1
    others = spill / f"{PREFIX}others"
    others.mkdir(mode=0o755)
    with living(spill) as at_work:
        written.check(ROWS)
        assert set(spill.iterdir()) == {others, at_work}
        assert list(at_work.iterdir())
    assert set(spill.iterdir()) == {others}


@pytest.mark.parametrize("command", ["check", "utility", "explain", "plan", "attack"])
def test_every_command_removes_what_a_killed_one_left(written: House, command: str) -> None:
    written.run()
    killed_in_scratch(written.folder / "spill")
    on = [] if command == "plan" else ["--on", str(written.folder / "out")]
    if command == "explain":
        explain(written.folder / "out-run", DEFAULTS, Progress())
    else:
        assert written.cli(command, *on).code == 0
    assert not written.leftovers()


# Cleanup that fails


def failing_rmdir(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    rmdir = os.rmdir

    def fails(path: Any, *rest: Any, **more: Any) -> None:
        if part in str(path):
            raise OSError(5, "Input/output error")
        rmdir(path, *rest, **more)

    monkeypatch.setattr(os, "rmdir", fails)


def test_cleanup_that_fails_says_so_and_the_next_start_does_it(written: House, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        failing_rmdir(patch, PREFIX)
        outcome = written.cli("run")
    assert outcome.code == 0 and (written.folder / "out" / "release.parquet").is_file()
    assert f"warning: {written.folder}/spill/{PREFIX}" in outcome.stderr
    assert "could not be removed (Input/output error); it may hold personal data" in outcome.stderr
    written.run(limits__temp="temp-2")
    assert not written.leftovers()


def test_cleanup_of_a_check_that_fails_says_so(written: House, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        failing_rmdir(patch, PREFIX)
        outcome = written.cli("check", "--on", str(written.write(ROWS)), "--log-json")
    assert '"event": "alert"' in outcome.stderr and "could not be removed" in outcome.stderr


@pytest.mark.parametrize("error", [28, 5])
@pytest.mark.parametrize("call", ["mkdir", "open"])
def test_a_disk_that_is_full_or_broken_at_the_start_is_exit_6(
    written: House, monkeypatch: pytest.MonkeyPatch, call: str, error: int
) -> None:
    """No room for a file or a folder more, as when the inodes are used up."""
    plain = getattr(os, call)

    def fails(path: Any, *rest: Any, **more: Any) -> Any:
        if ".anon-" in str(path) and (call == "mkdir" or rest[0] & os.O_CREAT):
            raise OSError(error, os.strerror(error))
        return plain(path, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fails)
        with pytest.raises(ResourceError, match=f"{os.strerror(error)}; nothing was published"):
            written.run()
        with pytest.raises(ResourceError):
            written.check(ROWS)
    assert not written.leftovers()


@pytest.mark.parametrize("error", [28, 5])
@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("listdir", "out"),
        ("scandir", "out"),
        ("listdir", "out-run"),
        ("open", "recoding.json"),
        ("open", "manifest.json"),
    ],
)
def test_a_disk_that_breaks_at_any_place_is_exit_6_and_never_a_fault_of_anon(
    written: House, monkeypatch: pytest.MonkeyPatch, call: str, name: str, error: int
) -> None:
    """Also where a folder is listed or a file of ours is read: nothing of that is a mistake of the program."""
    written.run()
    before = written.bytes()
    library: Any = io if call == "open" else os
    plain = getattr(library, call)

    def fails(path: Any, *rest: Any, **more: Any) -> Any:
        if Path(str(path)).name == name:
            raise OSError(error, os.strerror(error), str(path))
        return plain(path, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr(library, call, fails)
        commands = [written.cli("run", "--overwrite", "--force")]
        commands.append(written.cli("check", "--on", str(written.folder / "out")))
    assert {outcome.code for outcome in commands} <= {0, 6} and any(outcome.code == 6 for outcome in commands)
    assert written.bytes() == before and not written.leftovers()


def test_the_state_of_a_release_is_gone_when_it_ends(written: House) -> None:
    with locked_release(load(written.config()), Progress()) as state:
        assert isinstance(state, StateFolders) and stat.S_IMODE(state.folder.stat().st_mode) == 0o700
    assert not written.leftovers()


def test_a_folder_that_another_start_removes_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look, seen = disk.not_private, []

    def removed_first(folder: Path) -> str:
        seen.append(folder)
        if len(seen) == 1:
            folder.rmdir()
        return look(folder)

    monkeypatch.setattr(disk, "not_private", removed_first)
    handle = disk.make_and_lock(tmp_path / "spill", "limits.temp")
    assert handle is not None and len(seen) == 2
    disk.close(handle)
