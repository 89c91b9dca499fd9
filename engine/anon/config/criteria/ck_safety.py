"""(c,k)-safety in the config."""

from __future__ import annotations

from fractions import Fraction

from pydantic import Field

from anon.config.criterion import TOGETHER, Confidence, Criterion, Facts, column_of
from anon.config.values import Count, Share
from anon.core.phrases import counted, percent


class CKSafety(Criterion):
    """Maximum disclosure below c against k implications."""

    name = "ck_safety"
    unguarded = "implications link people of several groups, and the factors of all these groups would multiply"
    position = 5
    categorical = True
    loosest = (("c", 1), ("k", 0))
    c: Share = Field(gt=0, le=1, description="maximum disclosure must stay below this share, of 1")
    k: Count = Field(le=1_000, description="pieces of knowledge (implications), at most 1,000")

    def with_overlaps(self) -> str:
        return TOGETHER

    def confidence(self, value: str | None) -> Confidence:
        return Confidence(Fraction(self.c), open=True)

    def links_groups(self) -> bool:
        return self.k > 0 and self.c < 1

    @classmethod
    def sentences(cls, spec: Facts, entry: Facts) -> tuple[str, str]:
        return (
            f"Somebody with any {counted(int(spec['k']), 'piece')} of knowledge of the form “if this person has this "
            f"value, then that one has that” stays less than {percent(float(spec['c']))} sure of anybody’s "
            f"{column_of(entry)}.",
            f"At most they can be {percent(float(entry['figure']))} sure.",
        )
