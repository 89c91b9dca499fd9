"""The docs build without a broken link, have every page on their map, and have every command, flag and field of the
config in a reference that is what the code says."""

from __future__ import annotations

import doctest
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import typer
from docs import generate
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

import anon
from anon.cli.app import app
from anon.config import CRITERIA, Config
from anon.config.mistakes import Model
from tests.helpers.docs import DOCS

ROOT = DOCS.parent
LINK = re.compile(r"\]\(([^)#\s]+\.md)[^)]*\)")


def site(docs: Path, to: Path, **settings: Any) -> None:
    build(load_config(str(ROOT / "mkdocs.yml"), docs_dir=str(docs), site_dir=str(to), strict=True, **settings))


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
    yield
    for name in ("mkdocs", "mkdocs.commands.build"):
        logging.getLogger(name).handlers.clear()


def test_the_docs_build_without_a_warning(tmp_path: Path) -> None:
    site(DOCS, tmp_path)
    pages = {path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")}
    assert [page for page in pages if not (tmp_path / page).exists()] == []
    assert not list(tmp_path.rglob("*.py"))
    fetched = re.compile(r'(?:src|href)="https?:|@import|url\(https?:')
    for page in pages:
        links = re.sub(r"<a [^>]*>", "", (tmp_path / page).read_text())
        assert not fetched.search(links), f"{page} asks the network for something"


@pytest.mark.parametrize("text", ["[gone](gone.md)", "[gone](index.md#gone)", "[gone](../README.md)"])
def test_a_broken_link_fails_the_build(tmp_path: Path, text: str) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text(f"# A page\n\n{text}\n")
    with pytest.raises(Abort):
        site(docs, tmp_path / "site", nav=["index.md"])


def test_a_page_that_is_not_in_the_navigation_fails_the_build(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("index.md", "stray.md"):
        (docs / name).write_text("# A page\n")
    with pytest.raises(Abort):
        site(docs, tmp_path / "site", nav=["index.md"])


def test_every_page_is_on_the_map_and_in_the_navigation() -> None:
    pages = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")} - {"index.md"}
    assert sorted(pages - set(LINK.findall((DOCS / "index.md").read_text()))) == []


def test_the_pages_of_the_docs_that_code_and_readme_name_are_there() -> None:
    files = [ROOT / "README.md", *ROOT.glob("configs/**/*.*"), *ROOT.glob("engine/anon/**/*.py")]
    named = {name for file in files for name in re.findall(r"\bdocs/([\w/-]+\.md)", file.read_text())}
    assert named and sorted(name for name in named if not (DOCS / name).exists()) == []


def test_the_files_and_names_that_contributing_says_to_touch_are_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    files = re.findall(r"`((?:engine|tests|docs)/[\w./-]+)`", text)
    assert len(files) > 40 and [name for name in files if "NAME" not in name and not (ROOT / name).exists()] == []
    sources = [*ROOT.glob("engine/anon/**/*.py"), ROOT / "tests" / "pipeline" / "test_loaded_modules.py"]
    code = "".join(path.read_text() for path in sources)
    names = set(re.findall(r"`(_?[A-Z]\w+|_\w+|[a-z]+_[a-z]+)`", text)) - {"NAME"}
    assert len(names) > 20 and [name for name in names if not re.search(rf"\b{name}\b", code)] == []


@pytest.mark.parametrize("name", generate.PAGES)
def test_the_reference_is_what_the_code_says(name: str) -> None:
    written = (DOCS / "reference" / name).read_text()
    assert written == generate.PAGES[name](), "run `make docs`"


def parts(page: str) -> dict[str, str]:
    """The sections of a page by their headings."""
    found = re.split(r"^## (.+)$", (DOCS / "reference" / page).read_text(), flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2]))


def test_every_command_and_flag_is_in_the_reference() -> None:
    written, missing = parts("cli.md"), []

    def walk(command: Any, path: str) -> None:
        for name, each in getattr(command, "commands", {}).items():
            called = f"{path} {name}"
            rows = re.findall(r"^\| `([^` ]*)", written.get(called, ""), re.MULTILINE)
            flags = [flag for option in each.params for flag in option.opts if flag.startswith("-")]
            missing.extend(f"{called} {flag}" for flag in flags if flag not in (*rows, "--help"))
            missing.extend([] if called in written else [called])
            walk(each, called)

    walk(typer.main.get_command(app), "anon")
    assert len(written) >= 15
    assert missing == []


def models(kind: type[Model]) -> set[type[Model]]:
    return {kind, *(found for each in kind.__subclasses__() for found in models(each))}


def test_every_field_of_the_config_is_in_the_reference_with_its_meaning() -> None:
    text = (DOCS / "reference" / "config.md").read_text()
    fields = [
        (model.__name__, name, field)
        for model in models(Model)
        if model.__module__.startswith("anon.config.") and not model.__name__.startswith("Item_")
        for name, field in model.model_fields.items()
    ]
    assert len(fields) > 80 and ("Config", "privacy", Config.model_fields["privacy"]) in fields
    rows = re.findall(r"^\| `(\w+)` \| .*? \| .*? \| (.*) \|$", text, re.MULTILINE)
    absent = [
        f"{model}.{name}"
        for model, name, field in fields
        if (name, generate.cell(field.description or "")) not in rows and (model, name) != ("Sensitive", "builder")
    ]
    assert absent == []


def test_every_criterion_has_a_page_that_the_overview_links() -> None:
    overview = (DOCS / "criteria.md").read_text()
    assert {path.stem for path in (DOCS / "criteria").glob("*.md")} == set(CRITERIA)
    assert [name for name in CRITERIA if f"](criteria/{name}.md)" not in overview] == []


@pytest.mark.parametrize("page", ["how-it-works.md", "python.md"])
def test_what_a_page_says_to_python_comes_out(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = doctest.testfile(str(DOCS / page), module_relative=False)
    assert found.attempted >= 10 and found.failed == 0


def test_what_is_said_about_analysing_a_release_comes_out(
    adult: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = doctest.testfile(str(DOCS / "analysing.md"), module_relative=False)
    assert found.attempted >= 20 and found.failed == 0


def test_the_page_about_python_has_every_function() -> None:
    page = (DOCS / "python.md").read_text()
    assert [name for name in anon.__all__ if f"`anon.{name}(" not in page] == []


def measured_figures(text: str) -> list[tuple[str, list[str]]]:
    """Files of bench/results that a row, a point or a paragraph names, each with the seconds and megabytes there."""
    found = []
    for part in re.split(r"\n(?=\||- )|\n\n", text):
        files = set(re.findall(r"bench/results/(\w+\.md)", part))
        if len(files) == 1:
            seconds = re.findall(r"\| (\d+\.\d+) \|", part) if part.startswith("|") else []
            numbers = re.findall(r"(\d[\d,.]*) (?:MB|s|seconds)\b", part)
            found.append((files.pop(), seconds + numbers))
    return found


@pytest.mark.parametrize("page", ["benchmarks.md", "comparison.md", "limits.md", "operating.md"])
def test_measured_figures_are_those_of_the_benches(page: str) -> None:
    quoted = [(file, number) for file, numbers in measured_figures((DOCS / page).read_text()) for number in numbers]
    results = {file: (ROOT / "bench" / "results" / file).read_text() for file, _ in quoted}
    assert quoted
    wrong = [
        (file, number) for file, number in quoted if not re.search(rf"(?<![\d.,]){re.escape(number)}\b", results[file])
    ]
    assert wrong == []


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def measured_rows(text: str) -> list[tuple[str, str]]:
    """Rows of numbers in the tables of each section that names one file of bench/results, with that file."""
    found = []
    for section in re.split(r"^## ", text, flags=re.MULTILINE):
        files = set(re.findall(r"bench/results/(\w+\.md)", section))
        rows = re.findall(r"^\|.*\|$", section, re.MULTILINE)
        if len(files) == 1:
            (file,) = files
            found += [(file, row) for row in rows if re.search(r"\d", row) and "---" not in row]
    return found


def in_order(wanted: list[str], found: list[str]) -> bool:
    """Whether all that is wanted is found, in this order, perhaps with others between."""
    rest = iter(found)
    return all(each in rest for each in wanted)


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "benchmarks.md"], ids=lambda page: page.stem)
def test_rows_of_measured_tables_are_rows_of_the_benches(page: Path) -> None:
    """All cells of a row stand in one and the same row of the file, so that no figure is put beside another's."""
    rows = measured_rows(page.read_text())
    results = {file: (ROOT / "bench" / "results" / file).read_text().splitlines() for file, _ in rows}
    assert len(rows) >= 4
    assert [row for file, row in rows if not any(in_order(cells(row), cells(line)) for line in results[file])] == []


def test_the_page_on_the_architecture_names_what_there_is() -> None:
    """Every package is in its table once, and every module that it names is a file."""
    page, engine = (DOCS / "architecture.md").read_text(), ROOT / "engine" / "anon"
    listed = re.findall(r"^\| `(\w+)` \|", page.split("## One run")[0], re.MULTILINE)
    packages = {path.parent.name for path in engine.glob("*/__init__.py")}
    modules = {path.stem for path in engine.glob("*.py") if not path.stem.startswith("__")}
    assert sorted(listed) == sorted(packages | modules)
    named = re.findall(rf"`((?:{'|'.join(packages)})/[\w/]*(?:\.py)?)`", page)
    assert len(named) > 40 and [name for name in named if not (engine / name).exists()] == []
    functions = re.findall(r"`(\w+)` in `([\w/]+\.py)`", page)
    absent = [
        f"{file}: {name}"
        for name, file in functions
        if not re.search(rf"^(?:def|class) {name}\b", (engine / file).read_text(), re.MULTILINE)
    ]
    assert len(functions) > 10 and absent == []
