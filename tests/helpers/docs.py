"""Runs the examples of a page of docs/: a fenced block with a title is a file, a `console` block a session in the
folder of these files. What a session shows below a command must be what the command writes; `...` alone on a line
stands for any lines, blanks count as one, and `# exit 3` behind a command is the exit code that it must have."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from anon.cli.app import app
from tests import ROOT

DOCS = ROOT / "docs"
BLOCK = re.compile(r'^```(\w+)(?: title="([^"\n]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
EXIT = re.compile(r"#.*\bexit (\d+)")


@dataclass(frozen=True)
class Command:
    text: str  # as it is typed
    shown: list[str]  # lines of output

    @property
    def code(self) -> int:
        said = EXIT.search(self.text)
        return int(said[1]) if said else 0


def blocks(text: str) -> Iterator[tuple[str, str, str]]:
    """Language, title and content of every fenced block."""
    yield from BLOCK.findall(text)


def session(content: str) -> list[Command]:
    """The commands of a console block; a backslash at the end of a line goes on in the next."""
    found: list[Command] = []
    for line in content.replace("\\\n", "").splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:], []))
        else:
            found[-1].shown.append(line)
    return found


def play(
    page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, places: Mapping[str, str] | None = None
) -> list[Command]:
    """Does in a folder what a page says, from top to bottom; all commands that were run. `places` are words of the page
    that are others here."""
    monkeypatch.chdir(folder)
    text, played = page.read_text(encoding="utf-8"), []
    for word, here in (places or {}).items():
        text = text.replace(word, here)
    for language, title, content in blocks(text):
        if title:
            (folder / title).parent.mkdir(parents=True, exist_ok=True)
            (folder / title).write_text(content, encoding="utf-8")
        elif language == "console":
            for command in session(content):
                said, code = typed(command.text, folder, monkeypatch)
                assert code == command.code, f"{page.name}: {command.text}: exit {code}\n{said}"
                assert fits(command.shown, said.splitlines()), f"{page.name}: {command.text}: wrote\n{said}"
                played.append(command)
    return played


def typed(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, int]:
    """What a command writes to stdout, and its exit code; `anon` itself runs in this process."""
    words = shlex.split(text, comments=True)
    if words[0] == "export":
        name, _, value = words[1].partition("=")
        monkeypatch.setenv(name, value)
        return "", 0
    if words[0] == "anon" and not {"|", ">", "&&"} & set(words):
        done = CliRunner().invoke(app, words[1:])
        return done.stdout, done.exit_code
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    ran = subprocess.run(["bash", "-c", text], cwd=folder, env=environment, capture_output=True, check=False)
    return ran.stdout.decode(), ran.returncode


def fits(shown: list[str], said: list[str]) -> bool:
    """Whether lines are those shown; nothing shown says nothing."""
    if not any(line.strip() for line in shown):
        return True
    wanted, found = _plain(shown), _plain(said)
    if not wanted:
        return not found
    pattern = "".join("(?:.*\n)*?" if line == "..." else re.escape(line) + "\n" for line in wanted)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in found)) is not None


def _plain(lines: list[str]) -> list[str]:
    return [line for line in (" ".join(line.split()) for line in lines) if line]
