"""(epsilon, m)-anonymity in the config."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import ceil

from pydantic import Field

from anon.config.criterion import EXHAUSTIVE_ONLY, MERGED, Confidence, Criterion, Facts, Support, column_of
from anon.config.odds import parts_with_odds
from anon.config.values import Exact, Positive
from anon.core.phrases import figure, percent


class EpsilonM(Criterion):
    """At most 1/m of a group lies within epsilon of any value present."""

    name = "epsilon_m"
    position = 10
    support = Support(lattice=EXHAUSTIVE_ONLY)
    loosest = (("epsilon", 0), ("m", 1))
    epsilon: Exact = Field(ge=0, description="half width of the neighbourhood, in units of the column")
    m: Positive = Field(description="at most 1/m of a group in any neighbourhood")

    def with_overlaps(self) -> str:
        return MERGED

    def confidence(self, value: str | None) -> Confidence:
        return Confidence(Fraction(1, self.m))

    def tightened(self, factor: Fraction) -> EpsilonM:
        return self.model_copy(update={"m": ceil(parts_with_odds(Decimal(self.m), factor))})

    def vacuous(self) -> bool:
        return self.m == 1

    @classmethod
    def sentences(cls, spec: Facts, entry: Facts) -> tuple[str, str]:
        return (
            f"At most one in {int(spec['m']):,} of a group has a {column_of(entry)} within {figure(spec['epsilon'])} "
            "of anybody’s.",
            f"The largest share is {percent(float(entry['figure']))}.",
        )
