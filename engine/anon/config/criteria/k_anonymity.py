"""k-anonymity in the config."""

from __future__ import annotations

from pydantic import Field

from anon.config.criterion import ENFORCED, Criterion, Facts, Support
from anon.config.values import Positive
from anon.core.phrases import figure


class KAnonymity(Criterion):
    """At least k individuals in every class of equal published quasi-identifiers."""

    name = "k_anonymity"
    position = 1
    support = Support(
        bucketized="refused with exact labels: use group_size",
        exact_labels="exact labels tell everybody apart",
        several_values=ENFORCED,
    )
    about_values = False
    loosest = (("k", 1),)
    k: Positive = Field(description="smallest class, in individuals")

    def with_overlaps(self) -> str:
        return ""

    def vacuous(self) -> bool:
        return self.k == 1

    @classmethod
    def sentences(cls, spec: Facts, entry: Facts) -> tuple[str, str]:
        return (
            f"Everybody has the same published labels as at least {int(spec['k']) - 1:,} others.",
            f"The smallest class has {figure(entry['figure'])} individuals.",
        )
