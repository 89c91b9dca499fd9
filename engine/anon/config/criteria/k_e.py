"""(k, e)-anonymity in the config."""

from __future__ import annotations

from pydantic import Field

from anon.config.criterion import Criterion, Facts, column_of
from anon.config.values import Exact, Positive
from anon.core.phrases import figure


class KE(Criterion):
    """At least k distinct values over a range of at least e."""

    name = "k_e"
    position = 11
    loosest = (("k", 1), ("e", 0))
    k: Positive = Field(description="least number of distinct values in a group")
    e: Exact = Field(ge=0, description="least difference of the largest and smallest value, in units of the column")

    def with_overlaps(self) -> str:
        return ""

    def fewest_values(self) -> int:
        return self.k

    def vacuous(self) -> bool:
        return self.k == 1 and self.e == 0

    @classmethod
    def sentences(cls, spec: Facts, entry: Facts) -> tuple[str, str]:
        return (
            f"Every group has at least {int(spec['k']):,} different values of {column_of(entry)}, which span at least "
            f"{figure(spec['e'])}.",
            f"The least that was found: {figure(entry['figure'])}.",
        )
