"""A run whose release is published ends well, or with a documented exit code, whoever does not listen to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

CONFIG = {
    "source": {"path": "table.parquet"},
    "columns": {"individual": "row", "quasi_identifiers": {"größe": {}}, "sensitive": ["sickness"]},
    "privacy": [{"k_anonymity": {"k": 2}}],
    "release": {"path": "out"},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    table = pa.table({"größe": [170, 171, 180, 181] * 5, "sickness": ["flu", "cold"] * 10})
    pq.write_table(table, tmp_path / "table.parquet")
    (tmp_path / "config.yaml").write_text(json.dumps(CONFIG))
    return tmp_path


def ended(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A command after its end, which was told to write no other letters than those of ASCII."""
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (">&-", 0),
        ("2>&-", 0),
        (">&- 2>&-", 0),
        ("2>/dev/full", 0),
        (">/dev/full", 6),
        (">/dev/full 2>/dev/full", 6),
        ("--json >/dev/full", 6),
        ("--json >&-", 0),
        ("--log-json 2>/dev/full", 0),
        ("| true", 0),
        ("--json | true", 0),
    ],
)
def test_a_stream_that_cannot_be_written_loses_nothing(folder: Path, end: str, code: int) -> None:
    command = f'set -o pipefail; "$1" -m anon run config.yaml {end}'
    done = ended(folder, "bash", "-c", command, "bash", sys.executable)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    told = "/dev/full" in end and "2>" not in end
    assert ("standard output cannot be written (No space left on device)" in done.stderr) == told
    assert (folder / "out" / "release.parquet").exists() and not list(folder.glob("*.part*"))


def test_a_folder_that_is_gone_is_told(folder: Path) -> None:
    (folder / "gone").mkdir()
    command = 'cd gone; rmdir ../gone; "$1" -m anon plan ../config.yaml --json'
    done = ended(folder, "bash", "-c", command, "bash", sys.executable)
    assert done.returncode == 2 and "is gone" in done.stderr and "Traceback" not in done.stderr
    assert json.loads(done.stdout)["exit_code"] == 2 and "is gone" in done.stdout


def test_letters_that_a_terminal_does_not_have_are_told_by_number(folder: Path) -> None:
    done = ended(folder, sys.executable, "-m", "anon", "plan", "config.yaml")
    assert done.returncode == 0 and r"gr\xf6\xdfe" in done.stdout
    exact = json.loads(ended(folder, sys.executable, "-m", "anon", "plan", "config.yaml", "--json").stdout)
    assert "größe" in [column["name"] for column in exact["columns"]]
