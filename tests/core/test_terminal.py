"""What a terminal or a log gets to see of names and values that would take it over: escapes, and nothing raw."""

from __future__ import annotations

import ast
import json
import unicodedata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import anon
from anon.cli.app import app
from anon.core.terminal import json_text, one_line, printable
from anon.errors import ConfigError, SourceError
from tests.conftest import House

EVIL = "\x1b[2K\x1b]0;title\x07\x9b31m\u202e\u2066\u2028\u00ad\nerror: none\ttab"
COLUMN = f"age{EVIL}"
VALUE = f"HIV{EVIL}"
HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
ENGINE = Path(anon.__file__).parent


def raw(text: str) -> list[str]:
    """The characters of a text that a terminal would act on."""
    return [c for c in text if unicodedata.category(c) in HIDDEN and c != "\n"]


def table() -> pa.Table:
    return pa.table({COLUMN: [20, 21, 30, 31] * 3, "zip": ["02139"] * 12, "disease": [VALUE, "Flu", "Cold"] * 4})


def columns() -> dict[str, Any]:
    return {"individual": "row", "quasi_identifiers": {COLUMN: {}, "zip": {"digits": 5}}, "sensitive": ["disease"]}


COMMANDS = [
    ("run", []),
    ("run", ["--show-values", "--log-json"]),
    ("run", ["--debug"]),
    ("plan", ["--sql", "--show-values"]),
    ("check", ["--on", "TABLE", "--show-values"]),
    ("explore", ["--on", "TABLE", "--value", VALUE, "--confidence", "0.5", "--show-values"]),
    ("disclose", ["--on", "TABLE", "--max-k", "2", "--show-values"]),
    ("attack", ["--on", "TABLE", "--show-values"]),
    ("check", ["--on", f"nowhere{EVIL}"]),
    ("check", [f"--{EVIL}"]),
    (f"check{EVIL}", []),
]


@pytest.mark.parametrize(("command", "options"), COMMANDS, ids=lambda part: ascii(part)[:40])
@pytest.mark.parametrize("fails", [False, True])
def test_names_and_values_are_printed_as_escapes(house: House, command: str, options: list[str], fails: bool) -> None:
    path = house.write(table(), f"table{EVIL.replace('/', '')}.parquet")
    options = [str(path) if option == "TABLE" else option for option in options]
    privacy = [
        {"k_anonymity": {"k": 2}},
        {"alpha_k": {"alpha": 0.1 if fails else 0.9, "k": 2, "values": [VALUE]}},
    ]
    ended = house.cli(command, *options, source={"path": path.name}, columns=columns(), privacy=privacy)
    assert raw(ended.stdout) == raw(ended.stderr) == []
    assert "--sql" in options or "\nerror: none" not in ended.stdout + ended.stderr  # SQL has lines of its own
    if command == "plan":
        assert r"age\x1b[2K\x1b]0;title" in ended.stdout


@pytest.mark.parametrize("command", ["plan", "check"])
def test_json_is_exact_and_printable(house: House, command: str) -> None:
    path = house.write(table())
    options = ["--json", "--show-values"] + (["--on", str(path)] if command == "check" else [])
    ended = house.cli(command, *options, columns=columns(), privacy=[{"l_diversity": {"kind": "distinct", "l": 2}}])
    assert raw(ended.stdout) == []
    if command == "plan":
        assert COLUMN in [column["name"] for column in ended.json["columns"]]
    else:
        assert COLUMN in ended.json["criteria"][0]["worst_labels"]


def test_a_profile_and_a_hierarchy_are_printed_as_escapes(house: House) -> None:
    path = house.write(table())
    (house.folder / "h.csv").write_text("Flu;*\nCold;*\n")
    for words in (
        ["init", str(path), "--individual", "row", "--sensitive", "disease", "--yes", "--out", str(house.folder / "c")],
        ["init", str(path), "--individual", "row", "--sensitive", "nothing", "--yes", "--show-values"],
        ["hierarchy", "test", str(house.folder / "h.csv"), "--on", str(path), "--column", "disease", "--show-values"],
        ["hierarchy", "test", str(house.folder / "h.csv"), "--on", str(path), "--column", COLUMN],
        ["hierarchy", "test", str(house.folder / f"none{EVIL.replace('/', '')}")],
    ):
        told = CliRunner().invoke(app, words)
        assert raw(told.stdout) == raw(told.stderr) == [], words[:2]
        assert "\nerror: none" not in told.stdout + told.stderr


texts = st.text(st.characters(codec="utf-8"), max_size=8) | st.text(EVIL, max_size=5)


@given(st.recursive(texts | st.none() | st.integers(), lambda part: st.lists(part) | st.dictionaries(texts, part)))
def test_json_reads_back_and_one_line_is_one(facts: Any) -> None:
    assert raw(json_text(facts)) == [] and json.loads(json_text(facts)) == facts
    assert json.loads(json_text(facts, indent=2)) == facts
    if isinstance(facts, str):
        assert [c for c in one_line(facts) if unicodedata.category(c) in HIDDEN and c not in "\u200c\u200d"] == []
        assert printable(printable(facts)) == printable(facts)


def test_words_that_join_letters_stay_as_they_are() -> None:
    assert printable("نمی\u200cخواهم 👩\u200d⚕️ é 漢字　") == "نمی\u200cخواهم 👩\u200d⚕️ é 漢字　"


def test_a_message_is_one_line_but_for_several_problems() -> None:
    problem = ConfigError.at(f"columns.{COLUMN}", "x\ny", "z")
    assert "\n" not in str(problem) and problem.to_dict()["problems"][0]["found"] == "x\ny"
    assert raw(one_line(str(SourceError(f"reading {EVIL}")))) == []


def test_text_leaves_the_command_at_one_place() -> None:
    """What writes to standard output elsewhere writes a file there: a config, or a hierarchy."""
    found = set()
    for path in ENGINE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if called in ("print", "typer.echo", "typer.secho") or called.startswith(("sys.stdout.w", "sys.stderr.w")):
                found.add((path.name, called))
    assert found == {
        ("terminal.py", "print"),
        ("init.py", "sys.stdout.write"),
        ("hierarchy.py", "sys.stdout.writelines"),
        ("code_lists.py", "sys.stdout.writelines"),
    }
