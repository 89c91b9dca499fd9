"""(alpha, k)-anonymity in the config."""

from __future__ import annotations

from fractions import Fraction

from pydantic import Field

from anon.config.criterion import Confidence, Criterion, Facts, column_of
from anon.config.odds import share_with_odds
from anon.config.values import Absent, Names, Positive, Share
from anon.core.phrases import counted, percent


class AlphaK(Criterion):
    """No value has more than the share alpha of a group of at least k."""

    name = "alpha_k"
    position = 9
    categorical = True
    loosest = (("alpha", 1), ("k", 1))
    alpha: Share = Field(gt=0, description="largest share of a value in a group, of 1")
    k: Positive = Field(description="smallest group, in individuals")
    values: Names | None = Field(None, description="the values this is about; all when absent")
    absent: Absent = None

    def named_values(self) -> set[str]:
        return set(self.values or ())

    def confidence(self, value: str | None) -> Confidence | None:
        return Confidence(Fraction(self.alpha)) if self.values is None or value in self.values else None

    def with_overlaps(self) -> str:
        return ""

    def follows_from_unique(self, m: int) -> bool:
        return self.alpha * m >= 1 and self.k <= m

    def tightened(self, factor: Fraction) -> AlphaK:
        return self.model_copy(update={"alpha": share_with_odds(self.alpha, factor)})

    def vacuous(self) -> bool:
        return self.alpha >= 1

    @classmethod
    def sentences(cls, spec: Facts, entry: Facts) -> tuple[str, str]:
        return (
            f"No {'value' if spec.get('values') is None else 'named value'} of {column_of(entry)} has more than "
            f"{percent(float(spec['alpha']))} of any group, and every group has at least {counted(int(spec['k']))}.",
            f"The largest share is {percent(float(entry['figure']))}.",
        )
