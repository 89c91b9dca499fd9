"""Skyline privacy in the config."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationInfo, model_validator

from anon.config.criterion import SEVERAL_EXHAUSTIVE, TOGETHER, Confidence, Criterion, Facts, Support
from anon.config.loosening import Number, step_of
from anon.config.mistakes import Model, closest, mistake, refusal
from anon.config.odds import share_with_odds
from anon.config.values import Absent, Count, Name, Share
from anon.core.phrases import below, counted, percent


class Point(Model):
    """Knowledge that must not be enough: at most l, k and m pieces, confidence below c."""

    l: Count = Field(le=1_000, description="values that the target is known not to have, at most 1,000")
    k: Count = Field(description="other individuals whose values are known")
    m: Count = Field(description="individuals of whom it is known that the target has the value if one of them has it")
    c: Share = Field(gt=0, le=1, description="the confidence that must stay below this share, of 1")


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
    unguarded = "points with m > 0 link people of several groups, and the factors of all these groups would multiply"
    position = 4
    support = Support(several_values=SEVERAL_EXHAUSTIVE)
    categorical = True
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

    def named_values(self) -> set[str]:
        return set(self.values)

    def with_overlaps(self) -> str:
        return TOGETHER

    def confidence(self, value: str | None) -> Confidence | None:
        """Return the lowest confidence of the points of a value: knowing nothing is less than every point."""
        points = self.points if value is None else self.values.get(value, self.points)
        lowest = min((Fraction(point.c) for point in points if isinstance(point, Point)), default=None)
        return None if lowest is None else Confidence(lowest, open=True)

    def links_groups(self) -> bool:
        every = [self.points, *(each for each in self.values.values() if each != "exempt")]
        return any(point.m and point.c < 1 for points in every for point in points)

    def tightened(self, factor: Fraction) -> Skyline | None:
        every = [self.points, *(each for each in self.values.values() if each != "exempt")]
        if any(point.m for points in every for point in points):
            return None

        def tight(points: Any) -> Any:
            changed = ({"c": share_with_odds(point.c, factor)} for point in points)
            return [point.model_copy(update=change) for point, change in zip(points, changed)]

        values = {name: each if each == "exempt" else tight(each) for name, each in self.values.items()}
        return self.model_copy(update={"points": tight(self.points), "values": values})

    def numbers(self) -> Iterator[Number]:
        """Yield the confidence of each point, then its amounts of knowledge."""
        places: list[tuple[str | None, list[Point]]] = [(None, self.points)]
        places += [(value, points) for value, points in self.values.items() if not isinstance(points, str)]
        for value, points in places:
            for at, point in enumerate(points):
                for name, loosest in (("c", 1), ("m", 0), ("k", 0), ("l", 0)):
                    now = Decimal(getattr(point, name))
                    about = "" if value is None else f" for {value}"
                    called = f"{name} of ({point.l}, {point.k}, {point.m}){about}:"
                    step = step_of(now) if name == "c" else Decimal(1)
                    yield Number(called, now, Decimal(loosest), step, self._with(value, at, name))

    def _with(self, value: str | None, at: int, name: str) -> Callable[[Decimal], Skyline]:
        """Return what puts another number into a point of a value, or of the values that are not named."""

        def change(number: Decimal) -> Skyline:
            points = list(self.points if value is None else self.values[value])
            point = points[at]
            assert isinstance(point, Point)
            points[at] = point.model_copy(update={name: number if name == "c" else int(number)})
            update = {"points": points} if value is None else {"values": self.values | {value: points}}
            return self.model_copy(update=update)

        return change

    @classmethod
    def sentences(cls, spec: Facts, entry: Facts) -> tuple[str, str]:
        points = entry["points"]
        distinct = {(p["l"], p["k"], p["m"], p["c"]) for p in points}
        if not points:
            return "No value is to be protected.", "Nothing was to be checked."
        worst = worst_first(points)[0]
        known = knowledge(worst["l"], worst["k"], worst["m"])
        if len(distinct) == 1:
            asked = f"Somebody who knows {known} stays less than {percent(worst['c'])} sure of every value."
        else:
            values = counted(len({point["value"] for point in points}), "value")
            asked = (
                f"Somebody with the knowledge of {len(distinct):,} different points stays less sure of {values} than "
                "each point allows. They are listed below."
            )
        if "exempt" in entry:
            asked += f" Not protected, as the config says: {_listed(entry['exempt'])}."
        return asked, (
            f"Closest: {worst['value']}, of which one who knows {known} can be "
            f"{below(worst['breach'], worst['c'])} sure; allowed is less than {percent(worst['c'])}."
        )


def worst_first(points: list[Facts]) -> list[Facts]:
    """Return points of skylines, those that fail first, and then by the share of their bound that is reached."""
    return sorted(points, key=lambda p: (p["safe"], -p["breach"] / p["c"]))


def knowledge(l: int, k: int, m: int) -> str:
    """Return in words what an adversary of a skyline point knows."""
    parts = []
    if l:
        parts.append(f"{counted(l, 'value')} that the person does not have")
    if k:
        parts.append("the value of 1 other person" if k == 1 else f"the values of {k:,} other people")
    if m:
        one = "1 relative" if m == 1 else f"{m:,} relatives, any"
        parts.append(f"{one} of whom having the value would mean that the person has it")
    return _listed(parts) if parts else "nothing but the group that the person is in"


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
