"""`columns.aggregate` of the config: kept numbers that are published as means or rounded."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from anon.config.mistakes import Model, mistake, refusal
from anon.config.values import Exact
from anon.core.text import text

FEWEST = 2  # values behind a mean: the mean of one value is that value


def _size(value: Any) -> Any:
    if value == "group" or (isinstance(value, int) and not isinstance(value, bool) and value >= FEWEST):
        return value
    raise mistake(f"group, or a number of values of at least {FEWEST}")


Size = Annotated[Literal["group"] | Annotated[int, Field(ge=FEWEST)], BeforeValidator(_size)]


class Aggregation(Model):
    """How the numbers of a kept column are published: as means, or rounded."""

    mean: Size | None = Field(
        None,
        description="`group`: the mean of the group; a number n of at least 2: of the group's values in order, runs of "
        "n to 2n - 1 are replaced by their means. A group with fewer than n values, or with one, publishes none",
    )
    places: int | None = Field(
        None,
        ge=0,
        le=18,
        description="decimal places of means; by default two more than the column has, 6 for floating point",
    )
    round: Exact | None = Field(
        None, gt=0, description="round numbers to multiples of this, more than 0, in units of the column"
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.mean is None) == (self.round is None):
            raise mistake("either mean or round", found="both" if self.mean is not None else "neither")
        if self.mean is None and self.places is not None:
            raise refusal([(("places",), mistake("no places with round, whose width says them"))])
        return self

    @property
    def fewest(self) -> int:
        """The number of values that every mean is made of, at least."""
        return self.mean if isinstance(self.mean, int) else FEWEST

    @property
    def words(self) -> str:
        """What is published, in words.

        >>> Aggregation(mean=5).words, Aggregation(mean="group").words
        ('means of at least 5 values of the group', 'the mean of the group')
        """
        if self.round is not None:
            return f"rounded to multiples of {text(self.round)}"
        return (
            "the mean of the group" if self.mean == "group" else f"means of at least {self.fewest} values of the group"
        )
