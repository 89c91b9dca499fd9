"""Variance control in the config."""

from __future__ import annotations

from pydantic import Field

from anon.config.criterion import Criterion, Facts, column_of
from anon.config.values import Exact
from anon.core.phrases import figure


class Variance(Criterion):
    """A least variance in every group."""

    name = "variance"
    position = 12
    loosest = (("minimum", 0),)
    minimum: Exact = Field(ge=0, description="least population variance in a group, in squared units of the column")

    def with_overlaps(self) -> str:
        return ""

    def vacuous(self) -> bool:
        return self.minimum == 0

    @classmethod
    def sentences(cls, spec: Facts, entry: Facts) -> tuple[str, str]:
        return (
            f"The variance of {column_of(entry)} is at least {figure(spec['minimum'])} in every group.",
            f"The smallest is {figure(entry['figure'])}.",
        )
