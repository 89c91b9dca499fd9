"""All figures: importing a module registers its figures."""

from . import (
    disclosure_curves,
    diversity_attacks,
    diversity_utility,
    skyline_figures,
    skyline_monotone,
    worked_examples,
)
from .figure import FIGURES

MODULES = (
    disclosure_curves, diversity_attacks, diversity_utility, skyline_figures, skyline_monotone, worked_examples,
)  # fmt: skip
__all__ = ["FIGURES", "MODULES"]
