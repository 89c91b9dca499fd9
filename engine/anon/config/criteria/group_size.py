"""The size of groups in the config."""

from __future__ import annotations

from pydantic import Field

from anon.config.criterion import ENFORCED, Criterion, Facts, Support
from anon.config.values import Positive
from anon.core.phrases import counted, figure


class GroupSize(Criterion):
    """At least k individuals in every group."""

    name = "group_size"
    position = 2
    support = Support(merge=ENFORCED, colour=ENFORCED, several_values=ENFORCED)
    about_values = False
    loosest = (("k", 1),)
    k: Positive = Field(description="smallest group, in individuals")

    def follows_from_unique(self, m: int) -> bool:
        return self.k <= m

    def with_overlaps(self) -> str:
        return ""

    def vacuous(self) -> bool:
        return self.k == 1

    @classmethod
    def sentences(cls, spec: Facts, entry: Facts) -> tuple[str, str]:
        return (
            f"Every group has at least {counted(int(spec['k']))}.",
            f"The smallest has {figure(entry['figure'])}.",
        )
