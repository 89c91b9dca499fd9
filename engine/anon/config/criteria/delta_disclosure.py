"""delta-disclosure privacy in the config."""

from __future__ import annotations

from pydantic import Field

from anon.config.criterion import RELATIVE, TO_ALL, Criterion, Facts, column_of
from anon.config.values import Exact
from anon.core.phrases import figure


class DeltaDisclosure(Criterion):
    """Every value's share of a group is within a factor of e^delta of its share of the released table."""

    name = "delta_disclosure"
    position = 13
    categorical = True
    loosest = (("delta", None),)
    delta: Exact = Field(gt=0, description="|ln(share in a group / share in the table)| must stay below this")

    def in_series(self) -> str:
        return RELATIVE

    def when_suppressed(self) -> str:
        return TO_ALL

    def with_overlaps(self) -> str:
        return ""

    @classmethod
    def sentences(cls, spec: Facts, entry: Facts) -> tuple[str, str]:
        asked = (
            f"Every value of {column_of(entry)} is in every group, and its shares of the group and of the whole "
            f"release differ by a factor of less than e^{figure(spec['delta'])}."
        )
        if entry["figure"] == "inf":
            return asked, "A group lacks a value."
        return asked, f"The largest factor is e^{figure(entry['figure'])}."
