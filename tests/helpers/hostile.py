"""What the tables of hostile inputs are made of: a case, the house it is tried in, and what every answer must be like.
Outside the way of the data."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from anon.cli.app import app
from tests.conftest import House, Outcome

MARKS = re.compile(r"MARK|(?<![0-9a-f.])777[01]\d(?![0-9a-f])|77\.7|1933-03")  # all values; no answer may hold one
PEOPLE = 12
AGES = [77700 + i for i in range(PEOPLE)]
ZIPS = [f"7770{i}" for i in range(PEOPLE // 2)] * 2
DISEASES = ["MARK-A", "MARK-B", "MARK-C"] * 4
TABLE = pa.table({"age": AGES, "zip": ZIPS, "disease": DISEASES})

Make = Callable[[House], None]
Machine = Callable[[House, pytest.MonkeyPatch], None]


def nothing(*_: Any) -> None:
    pass


@dataclass(frozen=True)
class Case:
    """A bad input and its answer: the exit code, and words that the message must have. `make` changes the house, where
    a good table lies, `machine` what surrounds a run, `changes` the config; `config` is the text of another one."""

    code: int
    says: tuple[str, ...]
    changes: dict[str, Any] = field(default_factory=dict)
    make: Make = nothing
    machine: Machine = nothing
    config: str | bytes | None = None
    command: tuple[str, ...] = ("run", "CONFIG")
    released: Callable[[House], None] = nothing  # of exit 0: what must be true of the release


def holding(table: pa.Table | dict[str, Any], name: str = "table.parquet") -> Make:
    """A table in place of the good one."""

    def make(house: House) -> None:
        house.write(table, name)

    return make


def file(name: str, content: bytes | str) -> Make:
    def make(house: House) -> None:
        path = house.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    return make


def all_of(*makes: Make) -> Make:
    def make(house: House) -> None:
        for each in makes:
            each(house)

    return make


def column(name: str, values: Any) -> pa.Table:
    """The good table with a column replaced, or one more."""
    if name in TABLE.column_names:
        return TABLE.set_column(TABLE.column_names.index(name), name, pa.array(values))
    return TABLE.append_column(name, pa.array(values))


def text_of(house: House, case: Case) -> bytes:
    """The config of a case."""
    if isinstance(case.config, bytes):
        return case.config
    if case.config is not None:
        return case.config.replace("HOUSE", str(house.folder)).encode()
    return json.dumps(house.config(**copy.deepcopy(case.changes)), ensure_ascii=False).encode()


def seen(folder: Path) -> dict[str, str]:
    """All that lies in a folder, with what it holds."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            content = str(path.readlink())
        else:
            content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(folder))] = content
    return found


def answer(house: House, case: Case, *more: str) -> Outcome:
    """What the command of a case says, in this process."""
    places = {"CONFIG": str(house.folder / "config.yaml"), "HOUSE": str(house.folder)}
    words = [word.replace("CONFIG", places["CONFIG"]).replace("HOUSE", places["HOUSE"]) for word in case.command]
    told = CliRunner().invoke(app, [*words, *more])
    if told.exception is not None and not isinstance(told.exception, SystemExit):
        raise told.exception
    return Outcome(told.exit_code, told.stdout, told.stderr)


def without_marks(text: str) -> None:
    """No value of the tables is told; the id of a run and its speed are no values, whatever digits they have."""
    told = MARKS.findall(re.sub(r'"(run|seconds|rows_a_second)": [^,}]*', "", text))
    assert not told, f"{told} in: {text[:2000]}"
