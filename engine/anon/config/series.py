"""`release.series` of the config: several releases of one growing or changing table that are safe together."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo

from anon.config.mistakes import Model, one_of
from anon.config.values import by_kind

KINDS = ("append", "{kind: invariant, m: NUMBER}")


class Append(Model):
    """Parts that are added: every run publishes individuals who were in no earlier one."""

    kind: Literal["append"] = Field("append", description="append: every run adds a part of new individuals")


class Invariant(Model):
    """A table that is republished whole (m-invariance)."""

    kind: Literal["invariant"] = Field(description="invariant: the table is republished whole in every run")
    m: Annotated[int, Field(ge=2)] = Field(
        description="values of which every group has each once, the same for an individual in every release; an "
        "adversary who has all releases believes in a value with at most 1/m"
    )


_BY_KIND = by_kind(Append, Invariant)


def _series(value: Any, info: ValidationInfo) -> Any:
    """Return the series of a word or a mapping; of the kinds only `append` has nothing else to say."""
    if value is None:
        return None
    if isinstance(value, str):
        if value != "append":
            raise one_of(value, KINDS)
        return Append()
    return _BY_KIND.func(value, info)  # type: ignore[call-arg]


Series = Annotated[
    Append | Invariant | None,
    BeforeValidator(_series, json_schema_input_type=Literal["append"] | Append | Invariant | None),
]
