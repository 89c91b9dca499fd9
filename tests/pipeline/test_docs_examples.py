"""What docs/ show is what happens: the tutorial from an extract in PostgreSQL to a release, as it is written, and the
worked example on the page of every criterion, with its numbers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anon.config import CRITERIA, Config, load
from anon.config.support import refuse_unsupported
from anon.config.yaml12 import parse_yaml
from anon.errors import Problem
from tests.helpers.docs import DOCS, blocks, fits, play
from tests.helpers.services import PASSWORD, Postgres, postgres_server

HOUSE = "@localhost:5432/house"
SECTIONS = ("**Meaning.**", "**Against whom.**", "## Example", "## What it costs", "## When it")


@pytest.mark.parametrize("name", CRITERIA)
def test_the_example_of_a_criterion_comes_out_as_its_page_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = DOCS / "criteria" / f"{name}.md"
    played = play(page, tmp_path, monkeypatch)
    assert any(command.text.startswith("anon check") and command.shown for command in played)
    text = page.read_text()
    assert [section for section in SECTIONS if section not in text] == []


def test_the_examples_of_hierarchies_come_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(play(DOCS / "hierarchies.md", tmp_path, monkeypatch)) == 5


def test_the_tutorial_on_visits_leads_to_verified_releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANON", str(DOCS.parent))
    played = play(DOCS / "visits.md", tmp_path, monkeypatch)
    assert [command.text.split()[1] for command in played if command.text.startswith("anon ")] == [
        "init", "plan", "run", "check", "run", "init", "run",
    ]  # fmt: skip


def test_every_page_with_files_to_try_is_tried() -> None:
    pages = {
        path.relative_to(DOCS) for path in DOCS.rglob("*.md") if any(title for _, title, _ in blocks(path.read_text()))
    }
    assert pages == {
        Path("tutorial.md"),
        Path("hierarchies.md"),
        *(Path("criteria", f"{name}.md") for name in CRITERIA),
    }


BASE: dict[str, Any] = {
    "source": {"path": "table.csv"},
    "columns": {"individual": "row", "quasi_identifiers": ["age", "sex"], "sensitive": ["diagnosis"]},
    "privacy": [{"group_size": {"k": 2}}],
    "release": {"path": "out"},
}
SNIPPETS = [
    pytest.param(content, id=f"{path.stem}-{number}")
    for path in sorted(DOCS.rglob("*.md"))
    for number, (language, title, content) in enumerate(blocks(path.read_text()))
    if language == "yaml" and not title and content.lstrip()[0] != "#"
]


@pytest.mark.parametrize("content", SNIPPETS)
def test_what_the_docs_offer_for_a_config_is_one(content: str) -> None:
    problems: list[Problem] = []
    given = parse_yaml(content, problems)
    assert problems == [] and set(given) <= set(Config.model_fields)
    config = load(BASE | given, {"HOUSE_PASSWORD": "x"})
    refuse_unsupported(config, run="method" in given or "privacy" in given, spreads=True)


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    yield from postgres_server()


def test_the_tutorial_leads_to_a_verified_release(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("psql") is None:
        pytest.skip("needs psql: apt-get install -y postgresql-client")
    postgres.execute("CREATE DATABASE house")
    monkeypatch.setenv("HOUSE_PASSWORD", PASSWORD)
    monkeypatch.setenv("ANON", str(DOCS.parent))
    places = {"//reader": "//tester", HOUSE: f"@127.0.0.1:{postgres.port}/house"}
    played = play(DOCS / "tutorial.md", tmp_path, monkeypatch, places)
    assert [command.text.split()[1] for command in played if command.text.startswith("anon ")] == [
        "init", "init", "plan", "run", "run", "check", "run",
    ]  # fmt: skip
    assert (tmp_path / "visits-run" / "report.html").exists()
    written = "".join(path.read_text() for path in tmp_path.glob("*.yaml"))
    assert "HOUSE_PASSWORD" in written and PASSWORD not in written


def test_an_example_that_says_something_else_is_noticed() -> None:
    said = ["The table is safe.", "  k_anonymity   yes    3   >= 3", "", "What is left"]
    assert fits(["...", "k_anonymity yes 3 >= 3", "..."], said)
    assert fits(["The table is safe.", "..."], said)
    assert not fits(["...", "k_anonymity yes 4 >= 3", "..."], said)
    assert not fits(["The table is safe."], said)
    assert not fits(["...", "What is left", "k_anonymity yes 3 >= 3"], said)
