"""Hostile input: every case of the tables ends in its exit code, with a message that a person can act on, without a
traceback, with nothing half-written and no value of the data told. docs/hostile-input.md lists the same cases."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from tests import ROOT
from tests.conftest import House
from tests.helpers import hostile_configs, hostile_places, hostile_tables
from tests.helpers.hostile import TABLE, Case, answer, nothing, seen, text_of, without_marks

CASES: dict[str, Case] = {**hostile_tables.CASES, **hostile_configs.CASES, **hostile_places.CASES}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    """A house with a good table, and a folder for what is temporary inside it."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    house = House(tmp_path)
    house.write(TABLE)
    return house


@pytest.mark.parametrize("name", CASES)
def test_hostile_input_is_answered(home: House, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    case = CASES[name]
    case.make(home)
    (home.folder / "config.yaml").write_bytes(text_of(home, case))
    before = seen(home.folder)
    with monkeypatch.context() as patch:
        case.machine(home, patch)
        told = answer(home, case)
    said = told.stderr + told.stdout
    assert told.code == case.code, said
    assert not [words for words in case.says if words not in told.stderr], said
    assert "Traceback" not in said and "a bug in anon" not in said
    without_marks(said)
    if case.code:
        assert seen(home.folder) == before and not told.stdout
        _check_events(home, case)
    else:
        case.released(home)
        for left in ("manifest.json", "report.json"):
            without_marks((home.folder / "out-run" / left).read_text())


def _check_events(home: House, case: Case) -> None:
    """What programs are told: one object on stdout, events and nothing else on stderr, and the same in both."""
    if case.machine is not nothing:
        return
    told = answer(home, case, "--json", "--log-json")
    assert told.code == told.json["exit_code"] == case.code
    events = [json.loads(line) for line in told.stderr.splitlines()] if case.command[0] == "run" else []
    assert not events or (events[-1]["event"], events[-1]["error"]) == ("failed", told.json["error"])
    if case.code == 2:
        assert told.json["problems"] and all(each["path"] and each["expected"] for each in told.json["problems"])
    without_marks(told.stdout + told.stderr)


def test_the_same_house_without_anything_hostile_is_released(home: House) -> None:
    told = home.cli("run", "--json")
    assert told.code == 0 and told.json["safe"] and home.released().num_rows == TABLE.num_rows


def test_there_are_enough_cases() -> None:
    assert len(CASES) == sum(len(module.CASES) for module in (hostile_tables, hostile_configs, hostile_places)) >= 60


def test_every_case_is_documented() -> None:
    text = (ROOT / "docs" / "hostile-input.md").read_text(encoding="utf-8")
    assert not [name for name, case in CASES.items() if f"| {name} | {case.code} |" not in text]
