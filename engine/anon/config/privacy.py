"""The `privacy` section of the config: one model per criterion with its parameters, and the distances and priors they
take. The search enforces these criteria and verify checks them on the written files (config -> source -> cube ->
search -> release -> verify -> report)."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import BeforeValidator, Field, SerializeAsAny, TypeAdapter, ValidationInfo, create_model, model_validator

from anon.config.columns import Columns
from anon.config.mistakes import Loc, Model, closest, mistake, refusal, unknown_key
from anon.config.values import Absent, Count, Exact, File, Mistakes, Name, Names, Positive, as_mapping, by_kind


def _strays(loc: Loc, named: list[str], allowed: list[str], what: str) -> Mistakes:
    for index, name in enumerate(named):
        if name not in allowed:
            yield (*loc, index), mistake(f"a {what} column", closest(name, allowed))


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
_OF_A_KIND = by_kind(*get_args(AlongValues | OfPairs))


def _distance(value: Any, info: ValidationInfo) -> Any:
    """A function can only be given in Python."""
    return value if callable(value) else _OF_A_KIND.func(value, info)  # type: ignore[call-arg]


Distance = Annotated[
    AlongValues | OfPairs | Callable[[Any, Any], Any],
    BeforeValidator(_distance, json_schema_input_type=AlongValues | OfPairs),
]


class Criterion(Model):
    """One condition of `privacy`; `name` is its key in the config."""

    name: ClassVar[str]
    about_values: ClassVar[bool] = True
    sensitive: Name | None = Field(None, description="the sensitive column; the only one when there is one")

    def wrong_columns(self, columns: Columns) -> Mistakes:
        """Columns that the criterion names and the config does not have in that role."""
        known = list(columns.sensitive)
        if self.sensitive is not None and self.sensitive not in known:
            yield ("sensitive",), mistake("one of the sensitive columns", closest(self.sensitive, known))
        elif self.sensitive is None and self.needs_column() and len(known) != 1:
            why = "there are several" if known else "columns.sensitive names none"
            yield (
                ("sensitive",),
                mistake(f"the sensitive column that {self.name} is about, since {why}", found="nothing"),
            )

    def needs_column(self) -> bool:
        return self.about_values

    def about(self) -> list[str]:
        """The sensitive columns whose values it protects."""
        return [self.sensitive] if self.about_values and self.sensitive is not None else []

    def on(self, columns: Columns) -> Self:
        """The criterion with its sensitive column filled in when there is only one."""
        if self.sensitive is None and self.needs_column():
            return self.model_copy(update={"sensitive": next(iter(columns.sensitive), None)})
        return self


class KAnonymity(Criterion):
    """At least k individuals in every class of equal published quasi-identifiers."""

    name = "k_anonymity"
    about_values = False
    k: Positive = Field(description="smallest class, in individuals")


class GroupSize(Criterion):
    """At least k individuals in every group."""

    name = "group_size"
    about_values = False
    k: Positive = Field(description="smallest group, in individuals")


class KeepPossible(Model):
    """Values that must stay possible in every group."""

    values: Names = Field(description="values that must stay possible in every group")
    percent: Exact = Field(ge=0, le=100, description="least share of each of them in every group, in percent")


class LDiversity(Criterion):
    """Every group has l well-represented values."""

    name = "l_diversity"
    kind: Literal["distinct", "frequency", "entropy", "recursive"] = Field(description="what well represented means")
    l: Exact = Field(ge=1, description="number of well-represented values; whole for distinct and recursive")
    c: Exact | None = Field(
        None, gt=0, description="recursive only: factor between the most frequent value and the tail, more than 0"
    )
    dont_care: list[Name] = Field([], description="entropy and recursive only: values that need no protection")
    keep_possible: KeepPossible | None = Field(None, description="values whose absence must not be disclosed either")
    joint: bool = Field(True, description="true: other sensitive columns count as quasi-identifiers (Def 4.6)")
    absent: Absent = None

    @model_validator(mode="after")
    def _parameters_of_the_kind(self) -> Self:
        wrong = list(self._misplaced())
        if wrong:
            raise refusal(wrong)
        return self

    def _misplaced(self) -> Mistakes:
        if self.kind in ("distinct", "recursive") and self.l.as_tuple().exponent != 0:
            yield ("l",), mistake(f"a whole number for kind {self.kind}")
        if self.kind == "recursive" and self.c is None:
            yield ("c",), mistake("a number more than 0, required for kind recursive", found="nothing")
        if self.kind != "recursive" and self.c is not None:
            yield ("c",), mistake(f"no c for kind {self.kind}; it belongs to recursive")
        if self.kind not in ("entropy", "recursive") and self.dont_care:
            yield ("dont_care",), mistake(f"no dont_care for kind {self.kind}; it belongs to entropy and recursive")


class Point(Model):
    """Knowledge that must not be enough: at most l, k and m pieces, confidence below c."""

    l: Count = Field(le=1_000, description="values that the target is known not to have, at most 1,000")
    k: Count = Field(description="other individuals whose values are known")
    m: Count = Field(description="individuals of whom it is known that the target has the value if one of them has it")
    c: Exact = Field(gt=0, le=1, description="the confidence that must stay below this share, of 1")


Points = TypeAdapter(Annotated[list[Point], Field(min_length=1)])


def _points_or_exempt(value: Any, info: ValidationInfo) -> list[Point] | Literal["exempt"]:
    if value == "exempt":
        return "exempt"
    if not isinstance(value, list) or not value:
        raise mistake("a list of points, or exempt", closest(value, ["exempt"]) if isinstance(value, str) else "")
    return Points.validate_python(value, strict=True, context=info.context)


class Skyline(Criterion):
    """No adversary with the knowledge of a point reaches its confidence."""

    name = "skyline"
    points: list[Point] = Field(description="points for every value that is not under values; may be []")
    values: dict[
        Name,
        Annotated[
            list[Point] | Literal["exempt"],
            BeforeValidator(
                _points_or_exempt,
                json_schema_input_type=Annotated[list[Point], Field(min_length=1)] | Literal["exempt"],
            ),
        ],
    ] = Field({}, description="points for single sensitive values, or exempt")
    absent: Absent = None

    @model_validator(mode="after")
    def _some_point(self) -> Self:
        if not self.points and all(points == "exempt" for points in self.values.values()):
            raise refusal([(("points",), mistake("at least one point, here or under values"))])
        return self


class CKSafety(Criterion):
    """Maximum disclosure below c against k implications."""

    name = "ck_safety"
    c: Exact = Field(gt=0, le=1, description="maximum disclosure must stay below this share, of 1")
    k: Count = Field(le=1_000, description="pieces of knowledge (implications), at most 1,000")


class Dissimilarity(Criterion):
    """Few others in a group are similar to anyone in it."""

    name = "dissimilarity"
    distance: Distance = Field(description="distance between sensitive values; in Python also a function of two values")
    epsilon: Exact = Field(ge=0, description="values up to this distance are similar, in units of the distance")
    delta: Exact = Field(ge=0, le=1, description="least share of a group that must be dissimilar, of 1")
    k: Positive = Field(description="smallest group, in individuals")

    def needs_column(self) -> bool:
        return not isinstance(self.distance, Variational)

    def about(self) -> list[str]:
        return self.distance.columns if isinstance(self.distance, Variational) else super().about()

    def wrong_columns(self, columns: Columns) -> Mistakes:
        yield from super().wrong_columns(columns)
        if not isinstance(self.distance, Variational):
            return
        if self.sensitive is not None:
            yield ("sensitive",), mistake("no sensitive column beside those of the variational distance")
        named = self.distance.columns
        yield from _strays(("distance", "columns"), named, list(columns.sensitive), "sensitive")
        for index, name in enumerate(named):
            if name in named[:index]:
                yield ("distance", "columns", index), mistake("each name once")


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
    r: Exact = Field(gt=1, description="posteriors must stay at or below 1/r")
    priors: list[Prior] = Field(min_length=1, description="priors of the adversary; each holds on its own")

    def wrong_columns(self, columns: Columns) -> Mistakes:
        yield from super().wrong_columns(columns)
        known = [*columns.quasi_identifiers, *columns.keep]
        for index, prior in enumerate(self.priors):
            if isinstance(prior, PriorEstimate):
                yield from _strays(("priors", index, "estimate"), prior.estimate, known, "quasi-identifier or kept")


class TCloseness(Criterion):
    """Every group's distribution is within t of the released table's."""

    name = "t_closeness"
    distance: Annotated[AlongValues, by_kind(*get_args(AlongValues))] = Field(
        description="distance between sensitive values"
    )
    t: Exact = Field(ge=0, description="largest distance between distributions, in units of the distance")


class AlphaK(Criterion):
    """No value has more than the share alpha of a group of at least k."""

    name = "alpha_k"
    alpha: Exact = Field(gt=0, description="largest share of a value in a group, of 1")
    k: Positive = Field(description="smallest group, in individuals")
    values: Names | None = Field(None, description="the values this is about; all when absent")
    absent: Absent = None


class EpsilonM(Criterion):
    """At most 1/m of a group lies within epsilon of any value present."""

    name = "epsilon_m"
    epsilon: Exact = Field(ge=0, description="half width of the neighbourhood, in units of the column")
    m: Positive = Field(description="at most 1/m of a group in any neighbourhood")


class KE(Criterion):
    """At least k distinct values over a range of at least e."""

    name = "k_e"
    k: Positive = Field(description="least number of distinct values in a group")
    e: Exact = Field(ge=0, description="least difference of the largest and smallest value, in units of the column")


class Variance(Criterion):
    """A least variance in every group."""

    name = "variance"
    minimum: Exact = Field(ge=0, description="least population variance in a group, in squared units of the column")


CRITERIA: dict[str, type[Criterion]] = {
    model.name: model
    for model in (
        KAnonymity,
        GroupSize,
        LDiversity,
        Skyline,
        CKSafety,
        Dissimilarity,
        RRobustness,
        TCloseness,
        AlphaK,
        EpsilonM,
        KE,
        Variance,
    )
}
# One entry of `privacy` as it is written: a mapping with the criterion's name as its only key.
ITEMS: dict[str, type[Model]] = {
    name: create_model(
        f"Item_{name}",
        __base__=Model,
        __doc__=model.__doc__,
        **{name: (model, Field(description=f"parameters of {name}"))},  # type: ignore[call-overload]
    )
    for name, model in CRITERIA.items()
}


def _criterion(value: Any, info: ValidationInfo) -> Criterion:
    if isinstance(value, Criterion):
        return value
    given = as_mapping(value)
    if len(given) != 1:
        raise mistake("a mapping with one key, the name of the criterion", "begin each criterion with its own `- `")
    name = next(iter(given))
    if name not in CRITERIA:
        raise refusal([((name,), unknown_key(name, CRITERIA))])
    item = ITEMS[name].model_validate(given, context=info.context)
    criterion: Criterion = getattr(item, name)
    return criterion


Item = reduce(or_, ITEMS.values())
Privacy = Annotated[SerializeAsAny[Criterion], BeforeValidator(_criterion, json_schema_input_type=Item)]
