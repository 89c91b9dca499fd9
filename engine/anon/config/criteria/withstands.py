"""Resistance against attacks in the config: the release is attacked, and published only if no attack succeeds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from anon.config.criterion import CHECKED, Criterion, Facts, Support
from anon.core.phrases import counted

if TYPE_CHECKING:
    from anon.config.grammar import Config

Attacked = Literal["minimality", "definetti", "composition", "downcoding", "homogeneity", "kept_columns"]


class Withstands(Criterion):
    """No attack of a list breaks what the other criteria promise."""

    name = "withstands"
    position = 90
    support = Support(partition=CHECKED, lattice=CHECKED, bucketized=CHECKED, several_values=CHECKED)
    about_values = False
    about_groups = False
    attacks: list[Attacked] = Field(
        min_length=1,
        description="the attacks that must fail: minimality, definetti, composition, downcoding, homogeneity, "
        "kept_columns (docs/attacks.md)",
    )

    def always_holds(self) -> bool:
        """Return True: it is about what the other criteria promise, and demands nothing without them."""
        return True

    def with_overlaps(self) -> str:
        return ""

    @classmethod
    def sentences(cls, spec: Facts, entry: Facts) -> tuple[str, str]:
        number = counted(len(spec["attacks"]), "attack")
        named = ", ".join(each.replace("_", " ") for each in spec["attacks"])
        return f"The release withstands {number}: {named}.", "Each was carried out, and none succeeded."


def must_withstand(config: Config, attack: str) -> bool:
    """Return whether a config demands that an attack fails."""
    return any(isinstance(spec, Withstands) and attack in spec.attacks for spec in config.privacy)
