"""What docs/scheduled-runs.md and configs/nightly offer to be pasted works: every command is run."""

from __future__ import annotations

import json
import re
import shlex
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from demo import hospital
from typer.testing import CliRunner

from anon.cli.app import app
from tests import ROOT

EXAMPLES = ROOT / "configs" / "nightly"
COMMAND = re.compile(r"^[^#\n]*?\banon (run [^\n]*?)(?: 2>>.*)?$", re.MULTILINE)
SHELLS = ["anon.service", "crontab", "after_dbt.sh"]


@pytest.fixture(scope="module")
def etc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The configs with a small extract, and the recoding made."""
    folder = tmp_path_factory.mktemp("etc")
    hospital.write(20_000, folder / "extract.parquet", False)
    for name in ("recoding.yaml", "reuse.yaml", "nightly.yaml"):
        text = (EXAMPLES / name).read_text()
        text = text.replace("../../demo/out/extract.parquet", str(folder / "extract.parquet"))
        text = text.replace("../../demo/out", str(folder)).replace("../../hierarchies", str(ROOT / "hierarchies"))
        (folder / name).write_text(text)
    assert invoke(f"run {folder}/recoding.yaml") == 0
    return folder


def invoke(command: str) -> int:
    return CliRunner().invoke(app, shlex.split(command, comments=True)).exit_code


def commands(text: str) -> list[str]:
    return COMMAND.findall(text)


def in_place(command: str, folder: Path) -> str:
    return re.sub(r"(/etc/anon/|configs/nightly/|(?<= ))(\w+\.yaml)", rf"{folder}/\2", command)


@pytest.mark.parametrize("name", [*SHELLS, "recoding.yaml"])
def test_the_commands_of_an_example_run(etc: Path, name: str) -> None:
    found = [line.lstrip("# ") for line in (EXAMPLES / name).read_text().splitlines() if "anon run" in line]
    found = [command for line in found for command in commands(line)]
    assert found
    for command in found:
        assert invoke(in_place(command, etc)) == 0


def test_the_commands_of_the_page_run(etc: Path) -> None:
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "docs" / "scheduled-runs.md").read_text(), re.DOTALL)
    found = [command for block in blocks for command in commands(block)]
    assert len(found) == 4
    for command in found:
        assert invoke(in_place(command, etc)) == 0
    assert (etc / "nightly" / "release" / "part-000001.parquet").exists()
    assert (etc / "nightly" / "reused" / "release.parquet").exists()


class Stop(Exception):
    """What a scheduler is told when it must not try again."""

    def __init__(self, text: str, **more: Any) -> None:
        super().__init__(text)


def decorator(*functions: Any, **options: Any) -> Any:
    return functions[0] if functions else lambda function: function


def run_python(name: str, config: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Executes an example with a scheduler that only calls what it is given."""
    results: list[Any] = []

    def task(**options: Any) -> Callable[[Any], Any]:
        return lambda function: lambda: results.append(function())

    airflow, sdk, wrong = (types.ModuleType(each) for each in ("airflow", "airflow.sdk", "airflow.exceptions"))
    sdk.dag, sdk.task, wrong.AirflowFailException = decorator, task, Stop  # type: ignore[attr-defined]
    dagster = types.ModuleType("dagster")
    for each in ("RetryPolicy", "Definitions", "ScheduleDefinition", "MaterializeResult"):
        setattr(dagster, each, lambda *named, **options: options)
    dagster.asset, dagster.Failure = decorator, Stop  # type: ignore[attr-defined]
    for module in (airflow, sdk, wrong, dagster):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    code = (EXAMPLES / name).read_text().replace("/etc/anon/nightly.yaml", str(config))
    space: dict[str, Any] = {"__name__": "example"}
    exec(compile(code, name, "exec"), space)  # the examples are ours
    return results[0] if results else space["release"]()


@pytest.mark.parametrize("name", ["airflow_dag.py", "dagster_asset.py"])
def test_the_examples_in_python_release_and_tell_what_needs_a_person(
    etc: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = run_python(name, etc / "nightly.yaml", monkeypatch)
    told = told.get("metadata", told)
    assert told.get("series", told)["released"] == 20_000
    looser = etc / "looser.yaml"
    looser.write_text((etc / "nightly.yaml").read_text().replace("k: 10", "k: 5"))
    with pytest.raises(Stop, match="a looser k_anonymity than in the nights before"):
        run_python(name, looser, monkeypatch)


def test_a_reusing_config_applies_what_the_recoding_config_made(etc: Path) -> None:
    assert invoke(f"run {etc}/reuse.yaml --overwrite") == 0
    manifest = json.loads((etc / "nightly" / "reused-run" / "manifest.json").read_text())
    made = json.loads((etc / "nightly" / "recoding-run" / "manifest.json").read_text())
    assert manifest["reused"]["run"] == made["run"]
