"""Mistakes on the command line: exit 2 with the usage on stderr, and with --json one object on stdout as for every
other failure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from anon.cli.app import app

MISTAKES = {
    "no config": (["run"], "CONFIG"),
    "no such command": (["nosuch"], "nosuch"),
    "no such option": (["run", "config.yaml", "--nosuch"], "--nosuch"),
    "no such option of all": (["--nosuch"], "--nosuch"),
    "a missing option": (["check", "config.yaml"], "--on"),
    "a value out of range": (["run", "config.yaml", "--threads", "0"], "--threads"),
    "of a command within a command": (["hierarchy", "build", "intervals"], "--from"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_usage_is_one_json_object_with_json(name: str) -> None:
    arguments, word = MISTAKES[name]
    plain, told = CliRunner().invoke(app, arguments), CliRunner().invoke(app, [*arguments, "--json"])
    assert (plain.exit_code, plain.stdout) == (2, "") and word in plain.stderr
    error = json.loads(told.stdout)
    assert told.exit_code == error["exit_code"] == 2
    assert word in error["error"] and word in error["problems"][0]["found"]


def test_help_is_no_mistake() -> None:
    told = CliRunner().invoke(app, ["run", "--help"])
    assert told.exit_code == 0 and "--json" in told.stdout and "bool" not in told.stdout


def commands(group: Any, *names: str) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        yield from commands(command, *names, name) if hasattr(command, "commands") else [(*names, name)]


@pytest.mark.parametrize("names", list(commands(typer.main.get_command(app))), ids=" ".join)
def test_every_command_takes_what_scripts_say_to_all(names: tuple[str, ...]) -> None:
    told = CliRunner().invoke(app, [*names, "--help"])
    flags = ("--json", "--show-values", "--strict", "--log-json", "--debug")
    assert [flag for flag in flags if flag not in told.stdout] == []


def test_the_version_can_be_asked_for() -> None:
    told = CliRunner().invoke(app, ["--version"])
    assert (told.exit_code, told.stdout) == (0, f"anon {version('anon-engine')}\n")


@pytest.mark.parametrize("names", list(commands(typer.main.get_command(app))), ids=" ".join)
def test_a_flag_without_effect_says_so(names: tuple[str, ...]) -> None:
    command: Any = typer.main.get_command(app)
    for name in names:
        command = command.commands[name]
    helps = {option.opts[0]: option.help for option in command.params}
    warns = {("run",), ("check",), ("explore",), ("plan",)}
    assert ("No effect" in helps["--strict"]) == (names not in warns)
    silent = {("report",), ("schema",)} | {
        each for each in commands(typer.main.get_command(app)) if each[0] == "hierarchy"
    }
    assert ("No effect" in helps["--log-json"]) == (names in silent)
