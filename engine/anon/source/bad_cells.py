"""Cells that are not of the type of their column, in words: how many there are, and where the first ones are. The cells
themselves are data, and are shown only to those who may see values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from anon.errors import ConfigError, Problem

LINES = 5  # that are named
NEARLY = 20  # one cell in this number may be of another type than the rest, which is then reported


@dataclass(frozen=True)
class BadCell:
    """A cell: its file, its line or row there, and its text, which is data."""

    file: str
    line: int
    text: str


@dataclass
class BadCells(ConfigError):
    """Cells that are not of the type of their column. `cells` says which they are; their texts are data."""

    cells: list[str] = field(default_factory=list, repr=False)

    def values(self) -> dict[str, list[str]]:
        return {"cells": self.cells}

    def add(self, problem: Problem, column: str, cells: Sequence[BadCell], unit: str = "line") -> None:
        """Add the problem of a column with its first cells."""
        self.problems.append(problem)
        self.cells += [f"{column}, {cell.file}, {unit} {cell.line}: {cell.text}" for cell in cells]


def nearly(count: int, present: int) -> bool:
    """Return whether enough values are of one type that the others must be mistakes: all but one in twenty, or all but
    one of a few.

    >>> nearly(95, 100), nearly(94, 100), nearly(9, 10), nearly(1, 2)
    (True, False, True, False)
    """
    return present - count <= max(1, present // NEARLY) and 3 * count > 2 * present


def count_in_words(bad: int, present: int, kind: str, cells: Sequence[BadCell], named: bool, unit: str = "line") -> str:
    """Return how many values are not of a kind, and where the first ones are; `named`: also in which file.

    >>> count_in_words(1, 9, "integers", [BadCell("a.csv", 5, "")], named=False)
    '1 of 9 values that are not integers, on line 5'
    """
    return f"{bad:,} of {present:,} values that are not {kind}{places(cells, bad, named, unit)}"


def places(cells: Sequence[BadCell], count: int, named: bool, unit: str = "line") -> str:
    """Return where the first of some cells are, in words.

    >>> places([BadCell("a.csv", 5, ""), BadCell("a.csv", 1007, "")], 9, named=True)
    ', on a.csv line 5, a.csv line 1,007 and others'
    """
    if not cells:
        return ""
    found = [f"{cell.file} {unit} {cell.line:,}" if named else f"{cell.line:,}" for cell in cells]
    units = "" if named else f"{unit} " if len(found) == 1 else f"{unit}s "
    return f", on {units}{', '.join(found)}{' and others' if count > len(cells) else ''}"
