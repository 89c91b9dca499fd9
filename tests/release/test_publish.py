"""Publication: both folders or neither, nothing of a failed run, nothing of anybody else replaced; and what the run
folder and the terminal tell."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from typer.testing import CliRunner

from anon import pipeline, release
from anon.backends import local
from anon.cli.app import app
from anon.commands.check import check
from anon.core import disk
from anon.errors import ConfigError, UnsafeError
from anon.release import publication
from anon.report import facts, terminal
from anon.runs.options import Options
from anon.runs.result import Result
from anon.search import dispatch, prepare
from anon.verify import judge
from tests.helpers import release as helpers

COLUMNS: dict[str, Any] = {"individual": "row", "quasi_identifiers": {"age": {}}, "sensitive": ["d"], "keep": ["h"]}
PRIVACY = [
    {"k_anonymity": {"k": 5}},
    {
        "skyline": {
            "points": [{"l": 0, "k": 0, "m": 0, "c": 1}],
            "values": {"named": [{"l": 0, "k": 1, "m": 0, "c": 1}]},
        }
    },
]
OVERWRITE = Options(overwrite=True, force=True)


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Any]:
    write_source(tmp_path)
    return helpers.config(tmp_path, columns=COLUMNS, privacy=PRIVACY, nulls={})


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a run over the source has left its two folders, for tests that only need some earlier run."""
    folder = tmp_path_factory.mktemp("published")
    write_source(folder)
    pipeline.run(helpers.config(folder, columns=COLUMNS, privacy=PRIVACY, nulls={}))
    return folder


def copy_earlier(published: Path, folder: Path) -> None:
    for name in ("out", "out-run"):
        shutil.copytree(published / name, folder / name)


def write_source(folder: Path, shift: int = 0) -> None:
    values = ["named", "HIDDEN-1", "HIDDEN-2"]
    rows = [{"age": shift + i % 40, "d": values[i % 3], "h": i % 2} for i in range(80)]
    pq.write_table(pa.Table.from_pylist(rows), folder / "source.parquet")


def contents(*folders: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()}


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


# Places


def test_a_run_leaves_two_folders_and_nothing_else(tmp_path: Path, given: dict[str, Any]) -> None:
    given["release"]["path"] = str(tmp_path / "new" / "parent" / "out")
    result = pipeline.run(given)
    assert result.run == tmp_path / "new" / "parent" / "out-run"
    assert everything(tmp_path / "new") == [
        "parent", "parent/out", "parent/out-run", "parent/out-run/manifest.json", "parent/out-run/members.key",
        "parent/out-run/members.parquet", "parent/out-run/recoding.json", "parent/out-run/report.html",
        "parent/out-run/report.json", "parent/out/datapackage.json", "parent/out/release.parquet",
    ]  # fmt: skip
    assert everything(tmp_path)[0] == "new"


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_the_run_folder_is_private_and_the_release_follows_the_umask(given: dict[str, Any], umask: int) -> None:
    before = os.umask(umask)
    try:
        result = pipeline.run(given)
    finally:
        os.umask(before)
    assert result.release and result.run
    assert stat.S_IMODE(result.run.stat().st_mode) == 0o700
    assert stat.S_IMODE(result.release.stat().st_mode) == 0o777 & ~umask
    for path in result.release.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


def test_an_existing_release_is_refused_before_any_work(
    tmp_path: Path, given: dict[str, Any], published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_earlier(published, tmp_path)
    before = contents(tmp_path)
    monkeypatch.setattr(local, "open_source", lambda *_: pytest.fail("the source was opened"))
    with pytest.raises(ConfigError, match="--overwrite") as caught:
        pipeline.run(given)
    assert [problem.path for problem in caught.value.problems] == ["release.path", "release.run"]
    assert contents(tmp_path) == before


@pytest.mark.parametrize("can_exchange", [True, False])
def test_overwrite_replaces_an_earlier_release(
    tmp_path: Path, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch, can_exchange: bool
) -> None:
    if not can_exchange:
        monkeypatch.setattr(disk, "exchange", lambda *_: False)
    pipeline.run(given)
    before = contents(tmp_path / "out", tmp_path / "out-run")
    write_source(tmp_path, shift=100)
    pipeline.run(given, None, OVERWRITE)
    after = contents(tmp_path / "out", tmp_path / "out-run")
    assert after.keys() == before.keys()
    same = {Path(name).name for name in after if after[name] == before[name]}
    assert same <= {"datapackage.json", "members.key"}
    assert everything(tmp_path) == sorted(
        ["out", "out-run", "source.parquet", *(n[len(str(tmp_path)) + 1 :] for n in after)]
    )


@pytest.mark.parametrize("name", ["out", "out-run"])
@pytest.mark.parametrize("what", ["folder", "file"])
def test_what_no_run_wrote_is_never_replaced(tmp_path: Path, given: dict[str, Any], name: str, what: str) -> None:
    place = tmp_path / name
    if what == "file":
        place.write_text("thesis")
    else:
        place.mkdir()
        (place / "thesis.txt").write_text("thesis")
    before = contents(tmp_path)
    with pytest.raises(ConfigError, match="which no run wrote"):
        pipeline.run(given, None, OVERWRITE)
    assert contents(tmp_path) == before


def test_a_release_that_somebody_added_a_file_to_is_not_replaced(tmp_path: Path, given: dict[str, Any]) -> None:
    pipeline.run(given)
    (tmp_path / "out" / "NOTES.txt").write_text("thesis")
    with pytest.raises(ConfigError, match="nothing else in it"):
        pipeline.run(given, None, OVERWRITE)
    assert (tmp_path / "out" / "NOTES.txt").read_text() == "thesis"


def test_an_empty_folder_may_be_filled(tmp_path: Path, given: dict[str, Any]) -> None:
    (tmp_path / "out").mkdir()
    assert pipeline.run(given).safe
    assert (tmp_path / "out" / "release.parquet").is_file()


def test_a_symlink_is_followed_and_stays(tmp_path: Path, given: dict[str, Any]) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "elsewhere")
    given["release"]["run"] = str(tmp_path / "run")
    pipeline.run(given)
    assert (tmp_path / "out").is_symlink()
    assert (tmp_path / "elsewhere" / "release.parquet").is_file()


def test_a_symlink_that_appears_under_way_is_not_replaced(
    tmp_path: Path, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "thesis").mkdir()
    original = release.write

    def slow(*arguments: Any) -> Any:
        (tmp_path / "out").symlink_to(tmp_path / "thesis")
        return original(*arguments)

    monkeypatch.setattr(release, "write", slow)
    with pytest.raises(ConfigError, match="which no run wrote"):
        pipeline.run(given, None, OVERWRITE)
    assert (tmp_path / "out").is_symlink() and not (tmp_path / "out-run").exists()


def test_a_release_that_appears_under_way_is_not_replaced(
    tmp_path: Path, given: dict[str, Any], published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = release.write

    def overtaken(*arguments: Any) -> Any:
        copy_earlier(published, tmp_path)
        return original(*arguments)

    monkeypatch.setattr(release, "write", overtaken)
    with pytest.raises(ConfigError, match="which exists"):
        pipeline.run(given)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out-run", "source.parquet"]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only to root")
def test_a_read_only_parent_is_refused(tmp_path: Path, given: dict[str, Any]) -> None:
    parent = tmp_path / "locked"
    parent.mkdir(mode=0o500)
    given["release"]["path"] = str(parent / "out")
    with pytest.raises(ConfigError, match="cannot be written"):
        pipeline.run(given)


@pytest.mark.parametrize("field", ["release.path", "release.run", "limits.temp"])
def test_a_place_below_a_file_is_refused_by_its_name(tmp_path: Path, given: dict[str, Any], field: str) -> None:
    section, key = field.split(".")
    given[section][key] = str(tmp_path / "source.parquet" / "below" / "x")
    given["release"].setdefault("run", str(tmp_path / "run"))
    with pytest.raises(ConfigError) as caught:
        pipeline.run(given)
    assert field in {problem.path for problem in caught.value.problems}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source.parquet"]


def test_out_may_not_hold_what_the_run_needs(tmp_path: Path, given: dict[str, Any]) -> None:
    (tmp_path / "config.yaml").write_text(json.dumps(given))
    for out in (tmp_path, tmp_path / "source.parquet"):
        with pytest.raises(ConfigError, match="--out"):
            pipeline.run(tmp_path / "config.yaml", None, Options(out=out, overwrite=True))
    result = pipeline.run(tmp_path / "config.yaml", None, Options(out=tmp_path / "other"))
    assert (result.release, result.run) == (tmp_path / "other", tmp_path / "other-run")


# Failures


STAGES: list[tuple[Any, str]] = [
    (local, "open_source"),
    (prepare.cubes, "build"),
    (dispatch, "search"),
    (release, "write"),
    (release.package, "write_package"),
    (judge, "verify"),
    (facts, "summary"),
    (pipeline, "report_of"),
    (pipeline, "write_run"),
    (pipeline, "publish"),
    (disk, "sync_tree"),
    (publication.Move, "put"),
]


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize(("module", "name"), STAGES, ids=[name for _, name in STAGES])
@pytest.mark.parametrize("earlier", [False, True])
def test_a_failure_anywhere_leaves_what_was_there(
    tmp_path: Path,
    given: dict[str, Any],
    published: Path,
    monkeypatch: pytest.MonkeyPatch,
    module: Any,
    name: str,
    failure: type[BaseException],
    earlier: bool,
) -> None:
    if earlier:
        copy_earlier(published, tmp_path)
    before, listed = contents(tmp_path), everything(tmp_path)

    def fails(*_: Any, **__: Any) -> None:
        raise failure

    monkeypatch.setattr(module, name, fails)
    with pytest.raises(failure):
        pipeline.run(given, None, OVERWRITE)
    if failure is KeyboardInterrupt:  # which leaves a checkpoint of the decisions, and nothing else
        for folder in tmp_path.glob(".anon-*"):
            assert {path.name for path in folder.iterdir()} == {"lock", "checkpoint"}
            shutil.rmtree(folder)
    assert contents(tmp_path) == before and everything(tmp_path) == listed


def test_the_run_folder_is_in_place_before_the_release(
    tmp_path: Path, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, original = [], publication.Move.put

    def watched(self: publication.Move) -> None:
        original(self)
        seen.append(self.place.name)

    monkeypatch.setattr(publication.Move, "put", watched)
    pipeline.run(given)
    assert seen == ["out-run", "out"]


def test_strict_publishes_nothing_when_there_are_warnings(tmp_path: Path, given: dict[str, Any]) -> None:
    given["privacy"] = [{"k_anonymity": {"k": 3}}]
    (tmp_path / "config.yaml").write_text(json.dumps(given))
    with pytest.raises(UnsafeError, match="unprotected_sensitive"):
        pipeline.run(given, None, Options(strict=True))
    result = CliRunner().invoke(app, ["run", str(tmp_path / "config.yaml"), "--strict"])
    assert result.exit_code == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.yaml", "source.parquet"]


def test_a_table_that_no_release_protects_is_told_in_few_lines(tmp_path: Path, given: dict[str, Any]) -> None:
    rows = [{"age": 1, "d": f"HIDDEN-{i}", "h": 0} for i in range(1005)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "source.parquet")
    given["privacy"] = [{"skyline": {"points": [{"l": 0, "k": 1004, "m": 0, "c": 0.5}]}}]
    with pytest.raises(UnsafeError) as caught:
        pipeline.run(given)
    lines = str(caught.value).splitlines()
    assert len(lines) == 2 + dispatch.FEW_REFUSALS and lines[-1].endswith("1,000 more")
    assert "HIDDEN" not in str(caught.value)


def test_criteria_that_cannot_fail_are_refused_before_any_work(tmp_path: Path, given: dict[str, Any]) -> None:
    given["privacy"] = [{"k_anonymity": {"k": 1}}]
    (tmp_path / "source.parquet").unlink()
    with pytest.raises(ConfigError, match="always true"):
        pipeline.run(given)


# What is told


def test_manifest_and_report_are_versioned_and_true(tmp_path: Path, given: dict[str, Any]) -> None:
    result = pipeline.run(given)
    manifest = json.loads((tmp_path / "out-run" / "manifest.json").read_text())
    report = json.loads((tmp_path / "out-run" / "report.json").read_text())
    assert (manifest["version"], report["version"]) == (3, 8)
    digests = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in (tmp_path / "out").iterdir()}
    assert manifest["release"] == digests
    about = (tmp_path / "source.parquet").stat()
    source = {"file": str(tmp_path / "source.parquet"), "bytes": about.st_size}
    assert manifest["source"] == [source | {"changed": f"{about.st_mtime_ns}-{about.st_ctime_ns}"}]
    assert (manifest["rows"], manifest["rows_dropped"]) == (80, 0)
    assert manifest["config"] == given
    assert report["individual"] == "row"
    assert report["summary"] == result.to_dict()
    groups = {int(n): count for n, count in report["group_sizes"].items()}
    assert sum(n * count for n, count in groups.items()) == 80
    assert sum(groups.values()) == result.to_dict()["groups"]
    assert list(report["seconds"]) == ["source", "cube", "search", "release", "verify", "utility", "attack", "report"]
    assert report["provenance"].items() <= manifest.items()
    for content in (manifest, report):
        others = {name: value for name, value in content.items() if name != "sha256"}
        text = json.dumps(others, ensure_ascii=False)
        assert content["sha256"] == hashlib.sha256(text.encode()).hexdigest()


def test_secrets_are_in_no_file_and_no_message(
    tmp_path: Path, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "s3cr3t-folder"
    monkeypatch.setenv("PLACE", secret)
    (tmp_path / secret).mkdir()
    (tmp_path / "source.parquet").rename(tmp_path / secret / "source.parquet")
    given["source"]["path"] = str(tmp_path / "${PLACE}" / "source.parquet")
    given["release"] = {"path": str(tmp_path / "${PLACE}-out"), "run": str(tmp_path / "run")}
    result = pipeline.run(given)
    assert result.release and result.run
    assert not [name for name, text in contents(result.release, result.run).items() if secret.encode() in text]
    assert "${PLACE}" in (result.run / "manifest.json").read_text()
    given["privacy"] = [{"k_anonymity": {"k": 3}}]
    with pytest.raises(ConfigError) as caught:
        pipeline.run(given)
    assert secret not in str(caught.value)


def test_the_report_names_values_only_where_it_may(tmp_path: Path, given: dict[str, Any]) -> None:
    pipeline.run(given)
    report = (tmp_path / "out-run" / "report.json").read_text()
    assert '"named"' in report and "HIDDEN" not in report and "by frequency" in report
    pipeline.run(given, None, Options(overwrite=True, force=True, show_values=True))
    assert "HIDDEN-1" in (tmp_path / "out-run" / "report.json").read_text()


def printed(result: Result, width: int, places: dict[str, str]) -> list[str]:
    out = io.StringIO()
    terminal.show(Console(file=out, width=width), result.facts, result.report, places)
    return [line.rstrip() for line in out.getvalue().splitlines()]


@pytest.mark.parametrize("width", [80, 120])
def test_the_summary_fits_the_terminal(
    tmp_path: Path, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.chdir(tmp_path)
    result = pipeline.run(given)
    lines = printed(result, width, {"release": str(result.release), "report ": "/elsewhere/report.json"})
    assert lines[0] == "The release is written and verified: every criterion holds."
    assert ["criterion", "holds", "found", "required", "worst", "group"] in [line.split() for line in lines]
    assert "release  out" in lines and "report   /elsewhere/report.json" in lines
    assert "every row was counted as a different person (individual: row)" in lines
    assert max(map(len, lines)) <= width


def test_the_headline_of_a_check_says_what_was_checked(given: dict[str, Any]) -> None:
    safe = pa.table({"age": ["*"] * 6, "d": ["named", "x", "y"] * 2})
    assert printed(check(given, safe), 80, {})[0] == "The table is safe: every criterion holds."
    unsafe = pa.table({"age": ["*"] * 2, "d": ["named"] * 2})
    lines = printed(check(given, unsafe), 80, {})
    assert lines[0] == "The table is not safe."
    assert any(line.startswith("Worst against the bound") for line in lines)
