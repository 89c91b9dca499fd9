"""The distances between sensitive values that criteria take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, ValidationInfo

from anon.config.mistakes import Model
from anon.config.values import File, Names, by_kind


class Absolute(Model):
    """The difference of two numbers."""

    kind: Literal["absolute"] = Field(description="absolute: difference of two numbers, in units of the column")


class Equal(Model):
    """0 for equal values, 1 for others."""

    kind: Literal["equal"] = Field(description="equal: 0 for equal values, 1 for others")


class Ordered(Model):
    """The difference of ranks."""

    kind: Literal["ordered"] = Field(description="ordered: difference of ranks over the number of values less one")
    order: Names | None = Field(None, description="the values from lowest to highest; natural order when absent")


class HierarchyDistance(Model):
    """The level of the lowest common ancestor."""

    kind: Literal["hierarchy"] = Field(description="hierarchy: level of the lowest common ancestor over the height")
    file: File = Field(description="hierarchy CSV, relative to the config")


class Matrix(Model):
    """Distances from a file."""

    kind: Literal["matrix"] = Field(description="matrix: distances from a file")
    file: File = Field(description="CSV with a symmetric, complete matrix and zero diagonal, relative to the config")


class Variational(Model):
    """The distance of tuples of sensitive values."""

    kind: Literal["variational"] = Field(description="variational: the tuple of several columns is the sensitive value")
    columns: Names = Field(description="the sensitive columns of the tuple, which hold numbers")


AlongValues = Absolute | Equal | Ordered | HierarchyDistance  # along a line or a tree, which t_closeness needs
OfPairs = Matrix | Variational
_BY_KIND = by_kind(*get_args(AlongValues | OfPairs))


def _distance(value: Any, info: ValidationInfo) -> Any:
    """Return a distance from what the config has; a function can only be given in Python."""
    return value if callable(value) else _BY_KIND.func(value, info)  # type: ignore[call-arg]


Distance = Annotated[
    AlongValues | OfPairs | Callable[[Any, Any], Any],
    BeforeValidator(_distance, json_schema_input_type=AlongValues | OfPairs),
]
