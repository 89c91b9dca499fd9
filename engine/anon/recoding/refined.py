"""The result of a partition search with its post-pass (search/partition/refine.py): people with equal quasi-identifiers
may be in different groups, so groups have labels, as in a tree of cuts, but individuals an assignment to them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from anon.core.arrays import Ints
from anon.cube import Domain
from anon.recoding.assignment import Assignment
from anon.recoding.tree import ColumnLabels, LabelledGroups

REFINED = "partition, refined"  # the method in recoding.json


@dataclass(frozen=True)
class RefinedRecoding(LabelledGroups):
    """Groups in canonical order, with the assignment that has the same numbers."""

    domains: list[Domain]
    labels: list[ColumnLabels]
    people: Ints
    assignment: Assignment

    reused: ClassVar[bool] = False

    @property
    def nbytes(self) -> int:
        """Return the bytes of memory that it takes."""
        return self.assignment.nbytes + self.people.nbytes + sum(labels.nbytes for labels in self.labels)

    def write(self, path: Path) -> None:
        """Write recoding.json: without the groups of individuals, which would be as large as the table."""
        self.assignment.write(path)
