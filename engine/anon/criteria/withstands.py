"""Resistance against attacks. It is a property of the release, its recoding and the people behind it, not of the
counts of values in its groups: risk/withstanding.py judges it when the attacks were carried out. To what judges groups
it is a criterion that all of them satisfy, so that it refuses no cut and no node.

>>> from anon.criteria.protocol import Groups
>>> criterion = Withstands()
>>> criterion.verdict(criterion.state(Groups.dense(np.array([[9, 0], [1, 0]])))).safe
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from anon.criteria.protocol import Finding, Floats, GroupCriterion, Groups, Ints

if TYPE_CHECKING:
    from anon.config.criteria.withstands import Withstands as Spec
    from anon.criteria.bind import Binder


class Withstands(GroupCriterion):
    """No demand of any group; the figure is the number of attacks that succeed."""

    name = "withstands"
    relation = "<="
    absorbs = True

    def __init__(self) -> None:
        self.bounds = np.zeros(1)

    @classmethod
    def bind(cls, spec: Spec, binder: Binder, where: str) -> Withstands:
        return cls()

    def measure(self, groups: Groups) -> Floats:
        return np.ones((len(groups), 1))

    def compare(self, groups: Groups, which: Ints, measure: int) -> Ints:
        return np.ones(len(which), np.int64)

    def figure_and_bound(self, measure: int, value: float) -> tuple[float, float]:
        return 0.0, 0.0

    def nearest(self, whole: Groups, finding: Finding) -> list[str]:
        return []
