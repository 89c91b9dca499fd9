"""The first hour with ten messy files: from `anon init FILE` to a verified release with at most two answers, without a
direct identifier in any release, and with every row accounted for."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from anon.cli.app import app
from tests.helpers.messy_files import MESSY


def released_texts(folder: Path) -> set[str]:
    """Return every cell of a release as text."""
    tables = [pq.read_table(path) for path in folder.rglob("*.parquet")]
    return {str(value) for table in tables for column in table.columns for value in column.unique().to_pylist()}


@pytest.mark.parametrize("name", MESSY)
def test_a_messy_file_becomes_a_release(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    messy, runner = MESSY[name], CliRunner()
    rows, identifying = messy.write(tmp_path)
    made = runner.invoke(app, ["init", name, *messy.answers(), "--yes", "--out", "c.yaml"])
    assert made.exit_code == 0, made.output
    done = runner.invoke(app, ["run", "c.yaml", "--json"])
    if messy.correction:
        assert done.exit_code == 2 and "on line 323" in done.stderr and messy.correction[0] not in done.output
        text = (tmp_path / name).read_text(encoding="utf-8-sig").replace(*messy.correction)
        (tmp_path / name).write_text(text, encoding="utf-8-sig", newline="")
        done = runner.invoke(app, ["run", "c.yaml", "--json"])
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert facts["safe"] and facts["rows"] + facts["left_out"]["rows"]["all"] == len(rows)
    (release,) = tmp_path.glob("*-release")
    texts = released_texts(release)
    assert texts and not texts & identifying
    words = {word for text in identifying for word in re.findall(r"\w{4,}", text)}
    assert not {word for text in texts for word in re.findall(r"\w{4,}", text)} & words
