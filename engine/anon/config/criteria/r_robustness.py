"""r-robustness in the config, with the priors of its adversaries."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationInfo

from anon.config.columns import Columns
from anon.config.criterion import ENFORCED, Confidence, Criterion, Facts, Support, column_of, stray_columns
from anon.config.mistakes import Model, mistake
from anon.config.values import Exact, File, Mistakes, Names, as_mapping
from anon.core.phrases import percent

_SIMILAR_PRIORS = "needs groups with similar priors: use merge"


class PriorFile(Model):
    """A prior from a file."""

    file: File = Field(description="CSV with attribute columns, value, p and optionally n, relative to the config")


class PriorEstimate(Model):
    """A prior estimated from the data."""

    estimate: Names = Field(description="quasi-identifiers or kept columns the prior depends on")
    smoothing: Exact = Field(Decimal(1), gt=0, description="added to every count, in individuals")


def _prior(value: Any, info: ValidationInfo) -> PriorFile | PriorEstimate:
    if isinstance(value, PriorFile | PriorEstimate):
        return value
    given = as_mapping(value)
    if ("file" in given) == ("estimate" in given):
        found = "file and estimate" if given.keys() >= {"file", "estimate"} else ""
        raise mistake("either file or estimate", found=found)
    model = PriorFile if "file" in given else PriorEstimate
    return model.model_validate(value, context=info.context)


Prior = Annotated[PriorFile | PriorEstimate, BeforeValidator(_prior, json_schema_input_type=PriorFile | PriorEstimate)]


class RRobustness(Criterion):
    """No posterior above 1/r for an adversary with a known prior."""

    name = "r_robustness"
    position = 7
    support = Support(
        partition=_SIMILAR_PRIORS,
        lattice=_SIMILAR_PRIORS,
        merge=ENFORCED,
        colour=_SIMILAR_PRIORS,
        reuse=_SIMILAR_PRIORS,
    )
    categorical = True
    r: Exact = Field(gt=1, description="posteriors must stay at or below 1/r")
    priors: list[Prior] = Field(min_length=1, description="priors of the adversary; each holds on its own")

    def wrong_columns(self, columns: Columns) -> Mistakes:
        yield from super().wrong_columns(columns)
        known = [*columns.quasi_identifiers, *columns.keep]
        for index, prior in enumerate(self.priors):
            if isinstance(prior, PriorEstimate):
                loc = ("priors", index, "estimate")
                yield from stray_columns(loc, prior.estimate, known, "quasi-identifier or kept")

    def confidence(self, value: str | None) -> Confidence:
        return Confidence(1 / Fraction(self.r))

    def in_series(self) -> str:
        estimated = any(isinstance(prior, PriorEstimate) for prior in self.priors)
        return "an estimated prior changes with every part: name a prior file" if estimated else ""

    @classmethod
    def sentences(cls, spec: Facts, entry: Facts) -> tuple[str, str]:
        return (
            f"Somebody who knew beforehand how frequent the values of {column_of(entry)} are ends up at most "
            f"{percent(1 / float(spec['r']))} sure.",
            f"At most they can be {percent(float(entry['figure']))} sure.",
        )
