"""`anon explain RUN`: why a run came to its release, from its run folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from anon.cli import app
from tests.conftest import House

ROWS = {
    "age": [20 + i % 40 for i in range(120)],
    "zip": [f"{i % 7:05d}" for i in range(120)],
    "disease": ["flu" if i % 3 else "cold" for i in range(120)],
}


def explain(folder: Path, *options: str) -> tuple[int, str]:
    told = CliRunner().invoke(app, ["explain", str(folder), *options])
    return told.exit_code, told.stdout + told.stderr


@pytest.mark.parametrize("method", [{"prefer": "balanced"}, {"kind": "partition"}, {"kind": "lattice"}])
def test_a_run_is_explained_in_words_and_as_json(house: House, method: dict[str, Any]) -> None:
    house.write(ROWS)
    house.run(method=method)
    folder = house.folder / "out-run"
    told = json.loads(explain(folder, "--json")[1])
    assert told["method"]["kind"] == method.get("kind", "partition")
    assert told["groups"] == len(set(zip(*(house.released()[name].to_pylist() for name in ("age", "zip")))))
    assert ("minimal" in told) == (method.get("kind") == "lattice")
    code, said = explain(folder)
    assert code == 0 and f"by method {told['method']['kind']}" in said and "What was lost" in said


def test_all_minimal_combinations_are_listed(house: House) -> None:
    house.write(ROWS)
    result = house.run(method={"kind": "lattice"})
    told = json.loads(explain(house.folder / "out-run", "--json")[1])
    recoding = json.loads((house.folder / "out-run" / "recoding.json").read_text())
    assert told["minimal"] == recoding["minimal"] == result.report["lattice"]["minimal"]
    assert told["chosen"] in told["minimal"]


@pytest.mark.parametrize("report", [None, "", "{}", '{"method": {}, "utility": 1, "summary": {"criteria": []}}'])
def test_a_folder_that_is_no_run_is_told_so(tmp_path: Path, report: str | None) -> None:
    if report is not None:
        (tmp_path / "report.json").write_text(report)
    code, said = explain(tmp_path)
    assert code == 2 and "run folder" in said and "Traceback" not in said
