"""The locked dependencies: each has hashes, none names a place to get it from, and they are those of pyproject.toml."""

from __future__ import annotations

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = {"runtime": [], **{name: PROJECT["optional-dependencies"][name] for name in ("dev", "quality", "spark")}}


@pytest.mark.parametrize("name", EXTRAS)
def test_a_lock_has_every_dependency_with_hashes(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.lock").read_text(encoding="utf-8")
    entries = re.split(r"^(?=\S)", text, flags=re.MULTILINE)[1:]
    pinned: dict[str, set[str]] = {}
    for entry in entries:
        matched = re.match(r"([\w.-]+)==([^\s;]+)", entry)
        assert matched and "--hash=sha256:" in entry, entry.splitlines()[0]
        pinned.setdefault(canonicalize_name(matched[1]), set()).add(matched[2])
    for wanted in map(Requirement, [*PROJECT["dependencies"], *EXTRAS[name]]):
        versions = pinned[canonicalize_name(wanted.name)]
        assert all(wanted.specifier.contains(version) for version in versions), wanted
    assert "://" not in text and "index-url" not in text
