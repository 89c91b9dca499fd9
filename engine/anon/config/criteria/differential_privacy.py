"""Differential privacy by random sampling and k-anonymity in the config."""

from __future__ import annotations

from decimal import Decimal
from functools import cached_property
from typing import Annotated, Self

from pydantic import Field, model_validator

from anon.config.columns import Columns
from anon.config.criterion import ENFORCED, ONE_VALUE, Criterion, Facts, Support
from anon.config.mistakes import closest, mistake, refusal
from anon.config.sampling import Sampling, at_most_the_largest, rounded_share
from anon.config.values import Exact, Mistakes, Name, Share
from anon.core.phrases import figure

DEPENDS = "its groups depend on the data, and the proof is for labels that do not"
SMALLEST = {"epsilon": Decimal("0.001"), "delta": Decimal("1E-30"), "sampling": Decimal("1E-9")}
Level = Annotated[int, Field(ge=0, strict=True)]


class DifferentialPrivacy(Criterion):
    """The release is (epsilon, delta)-differentially private: a random sample of the individuals, at levels that the
    config names, without small groups."""

    name = "differential_privacy"
    position = 14
    support = Support(
        partition=DEPENDS,
        merge=DEPENDS,
        colour=DEPENDS,
        reuse=ENFORCED,
        bucketized="sensitive values are published as they are",
        exact_labels="exact labels tell everybody apart",
        several_values=ONE_VALUE,
    )
    about_values = False
    draws = True
    epsilon: Exact = Field(gt=0, le=5, description="the privacy loss, 0.001 to 5")
    delta: Share = Field(gt=0, lt=1, description="probability of a larger loss, such as 1e-6: below 1 / individuals")
    levels: dict[Name, Level] = Field(
        {},
        description="with method lattice: the level of every quasi-identifier, 0 for its values as they are; chosen "
        "without the data",
    )
    sampling: Share | None = Field(
        None,
        gt=0,
        lt=1,
        description="share of the individuals who are drawn; by default the largest that is allowed, 1 - e^-epsilon",
    )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        least = {name: bound for name, bound in SMALLEST.items() if (getattr(self, name) or 1) < bound}
        if least:
            raise refusal(((name,), mistake(f"at least {bound}")) for name, bound in least.items())
        if self.sampling is not None and not at_most_the_largest(self.sampling, self.epsilon):
            largest = rounded_share(Sampling.derived(self.epsilon, self.delta))
            raise refusal([(("sampling",), mistake(f"at most 1 - e^-epsilon, {largest}"))])
        return self

    @cached_property
    def drawn(self) -> Sampling:
        """Return how individuals are drawn, and how large groups have to be."""
        return Sampling.derived(self.epsilon, self.delta, self.sampling)

    def wrong_columns(self, columns: Columns) -> Mistakes:
        yield from super().wrong_columns(columns)
        yield from self._wrong_levels(list(columns.quasi_identifiers))

    def _wrong_levels(self, names: list[str]) -> Mistakes:
        for name in self.levels:
            if name not in names:
                yield ("levels", name), mistake("a quasi-identifier", closest(name, names))
        missing = [name for name in names if name not in self.levels]
        if self.levels and missing:
            yield ("levels",), mistake(f"a level for every quasi-identifier, also for {', '.join(missing)}")

    @classmethod
    def sentences(cls, spec: Facts, entry: Facts) -> tuple[str, str]:
        return (
            f"Groups have at least {int(entry['bound']):,} individuals. If these are a random sample at levels chosen "
            f"without the data, as `anon run` makes them, the release is ({figure(spec['epsilon'])}, "
            f"{figure(spec['delta'])})-differentially private.",
            f"The smallest group has {figure(entry['figure'])}.",
        )
