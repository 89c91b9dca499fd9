"""(epsilon, delta)^k-dissimilarity in the config."""

from __future__ import annotations

from pydantic import Field

from anon.config.columns import Columns
from anon.config.criterion import ENFORCED, EXHAUSTIVE_ONLY, MERGED, Criterion, Facts, Support, column_of, stray_columns
from anon.config.distances import Distance, Ordered, Variational
from anon.config.mistakes import mistake
from anon.config.values import Exact, Mistakes, Positive, Share
from anon.core.phrases import counted, figure, percent


class Dissimilarity(Criterion):
    """Few others in a group are similar to anyone in it."""

    name = "dissimilarity"
    position = 6
    support = Support(lattice=EXHAUSTIVE_ONLY, colour=ENFORCED)
    loosest = (("epsilon", 0), ("delta", 0), ("k", 1))
    distance: Distance = Field(description="distance between sensitive values; in Python also a function of two values")
    epsilon: Exact = Field(ge=0, description="values up to this distance are similar, in units of the distance")
    delta: Share = Field(ge=0, le=1, description="least share of a group that must be dissimilar, of 1")
    k: Positive = Field(description="smallest group, in individuals")

    def needs_column(self) -> bool:
        return not isinstance(self.distance, Variational)

    def about(self) -> list[str]:
        return list(self.tuple_columns()) or super().about()

    def tuple_columns(self) -> tuple[str, ...]:
        return tuple(self.distance.columns) if isinstance(self.distance, Variational) else ()

    def in_series(self) -> str:
        ranks = "distances of ranks change when a part brings a new value, also for parts that are published"
        return ranks if isinstance(self.distance, Ordered) else ""

    def when_suppressed(self) -> str:
        ranks = "distances of ranks depend on the values that are released, which are not known before the last split"
        return ranks if isinstance(self.distance, Ordered) else ""

    def with_overlaps(self) -> str:
        return MERGED

    def wrong_columns(self, columns: Columns) -> Mistakes:
        yield from super().wrong_columns(columns)
        if not isinstance(self.distance, Variational):
            return
        if self.sensitive is not None:
            yield ("sensitive",), mistake("no sensitive column beside those of the variational distance")
        named = self.distance.columns
        yield from stray_columns(("distance", "columns"), named, list(columns.sensitive), "sensitive")
        for index, name in enumerate(named):
            if name in named[:index]:
                yield ("distance", "columns", index), mistake("each name once")

    def vacuous(self) -> bool:
        return self.delta == 0

    @classmethod
    def sentences(cls, spec: Facts, entry: Facts) -> tuple[str, str]:
        return (
            f"At most {percent(1 - float(spec['delta']))} of the others in a group have a {column_of(entry)} within "
            f"{figure(spec['epsilon'])} of anybody’s, and every group has at least {counted(int(spec['k']))}.",
            f"The largest share is {percent(float(entry['figure']))}.",
        )
