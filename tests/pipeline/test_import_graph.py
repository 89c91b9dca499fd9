"""The packages of the engine import each other in one direction, in the order of the pipeline. docs/architecture.md
shows the same order."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests import ROOT

ENGINE = ROOT / "engine" / "anon"
# Each package may import from those before it; a module at the root is a package of its own.
ORDER = [
    {"core", "errors"}, {"config"}, {"artifacts"}, {"hierarchy"}, {"criteria"}, {"source"}, {"cube"}, {"recoding"},
    {"search"}, {"release"}, {"verify"}, {"risk"}, {"loss"}, {"profile"}, {"report"}, {"runs"}, {"explanation"},
    {"backends"}, {"commands"}, {"pipeline"}, {"cli"}, {"__main__"},
]  # fmt: skip
LOOSE = {"__init__", "__main__", "errors", "pipeline"}  # modules at the root


def modules() -> dict[str, Path]:
    """Return the modules of the engine by their dotted names without `anon`."""
    paths = {".".join(path.relative_to(ENGINE).with_suffix("").parts): path for path in ENGINE.rglob("*.py")}
    return {name.removesuffix(".__init__"): path for name, path in paths.items()}


def imports(path: Path, known: dict[str, Path]) -> set[str]:
    """Return the modules of the engine that a module imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert not node.level, f"{path}: relative imports hide where a name comes from"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    own = (name.removeprefix("anon.") for name in found if name.startswith("anon."))
    return {name if name in known else name.rpartition(".")[0] for name in own} - {""}


def edges() -> set[tuple[str, str]]:
    """Return which module imports which, between packages."""
    known = modules()
    every = {(name, other) for name, path in known.items() for other in imports(path, known) if name != "__init__"}
    return {(name, other) for name, other in every if name.split(".")[0] != other.split(".")[0]}


def test_every_package_has_a_place_in_the_order() -> None:
    placed = set().union(*ORDER)
    assert {name.split(".")[0] for name in modules()} - {"__init__"} == placed


def test_packages_import_only_from_those_before_them() -> None:
    level = {name: number for number, names in enumerate(ORDER) for name in names}
    backward = {(a, b) for a, b in edges() if level[a.split(".")[0]] < level[b.split(".")[0]]}
    assert not backward


@pytest.mark.parametrize("package", sorted(set().union(*ORDER)))
def test_modules_of_a_package_do_not_import_each_other_in_a_circle(package: str) -> None:
    """Imports at the top of a module only: one inside a function may close a circle without harm."""
    known = {name: path for name, path in modules().items() if name.split(".")[0] == package}
    remaining = {name: at_the_top(path, known) - {name} for name, path in known.items()}
    while free := [name for name, needed in remaining.items() if not needed & remaining.keys()]:
        for name in free:
            del remaining[name]
    assert not remaining


def at_the_top(path: Path, known: dict[str, Path]) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    body = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    found = {f"{node.module}.{alias.name}" for node in body if isinstance(node, ast.ImportFrom) for alias in node.names}
    own = (name.removeprefix("anon.") for name in found if name.startswith("anon."))
    return {name if name in known else name.rpartition(".")[0] for name in own} & known.keys()


def test_few_modules_are_loose_at_the_root() -> None:
    assert {path.stem for path in ENGINE.glob("*.py")} == LOOSE
