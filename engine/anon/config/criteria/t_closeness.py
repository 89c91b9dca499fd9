"""t-closeness in the config."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, get_args

from pydantic import Field

from anon.config.criterion import RELATIVE, TO_ALL, Criterion, Facts, column_of
from anon.config.distances import Absolute, AlongValues
from anon.config.loosening import Number, field_number
from anon.config.values import Exact, by_kind
from anon.core.phrases import figure


class TCloseness(Criterion):
    """Every group's distribution is within t of the released table's."""

    name = "t_closeness"
    position = 8
    distance: Annotated[AlongValues, by_kind(*get_args(AlongValues))] = Field(
        description="distance between sensitive values"
    )
    t: Exact = Field(ge=0, description="largest distance between distributions, in units of the distance")

    def in_series(self) -> str:
        return RELATIVE

    def when_suppressed(self) -> str:
        return TO_ALL

    def with_overlaps(self) -> str:
        return ""

    def vacuous(self) -> bool:
        return self.t >= 1 and not isinstance(self.distance, Absolute)

    def numbers(self) -> Iterator[Number]:
        yield field_number(self, "t", None if isinstance(self.distance, Absolute) else 1)

    @classmethod
    def sentences(cls, spec: Facts, entry: Facts) -> tuple[str, str]:
        return (
            f"The values of {column_of(entry)} are spread in every group as in the whole release, up to a distance of "
            f"{figure(spec['t'])}.",
            f"The largest distance is {figure(entry['figure'])}.",
        )
