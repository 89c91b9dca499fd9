"""The `columns` and `nulls` sections of the config: the role of each column and the builders that make its values
coarser."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from anon.config.aggregation import Aggregation
from anon.config.mistakes import Loc, Model, as_mistakes, closest, mistake, refusal, unknown_key
from anon.config.values import (
    Day,
    Exact,
    File,
    Name,
    NameList,
    Names,
    Number,
    SchemaGenerator,
    as_mapping,
    listed,
    number,
)
from anon.core.text import text


class BuilderModel(Model):
    """How the values of a column become coarser; `kind` is the word users know the builder by."""

    kind: ClassVar[str]

    @property
    def reference_day(self) -> date | None:
        """The day on which birth dates become ages, if the column has birth dates."""
        return getattr(self, "age_on", None)

    @property
    def code_length(self) -> int | None:
        """The length to which codes regain their leading zeros, if they have lost them."""
        return getattr(self, "pad", None)

    def level_names(self) -> list[str]:
        """Return the levels between the values themselves and `*` in words, as far as the builder knows them."""
        return []

    def _cap_names(self) -> list[str] | None:
        """Return what `at_most` may say, from level 1 up; None if only the data decide how many levels there are."""
        return [str(at) for at, _ in enumerate(self.level_names(), 1)]

    @property
    def capped(self) -> bool:
        """Whether labels may be no coarser than a level below `*`."""
        return getattr(self, "at_most", None) is not None

    def cap(self, height: int) -> int:
        """Return the coarsest level of labels, given that of `*`. Level 0 is the value, and so is a calendar's day of a
        column of dates."""
        word, names = getattr(self, "at_most", VALUE), self._cap_names()
        if word == VALUE:
            return 0
        return int(word) if names is None else max(height - len(names) + names.index(word), 0)

    @model_validator(mode="after")
    def _cap_is_a_level(self) -> Self:
        word, names = getattr(self, "at_most", None), self._cap_names()
        if word is None or word == VALUE or (names is None and word.isdecimal() and int(word) > 0):
            return self
        if names is None or word not in names:
            levels = ["the number of a level of the file, 1 or more"] if names is None else names
            raise refusal([(("at_most",), mistake(f"one of its levels: {', '.join([VALUE, *levels])}"))])
        return self


AgeOn = Annotated[
    Day | None,
    Field(description="the column has birth dates: take the age in completed years on this day, such as 2024-12-31"),
]
Pad = Annotated[
    int | None,
    Field(ge=1, le=32, description="length of the codes; shorter ones regain the leading zeros they have lost"),
]


def _weight(value: Any) -> Decimal:
    weight = Decimal(number(value))
    if not Decimal("0.1") <= weight <= 100 or Fraction(weight) * 100 % 1:
        raise mistake("a number from 0.1 to 100 with at most two decimal places")
    return weight


Weight = Annotated[
    Decimal,
    Field(
        gt=0,
        le=100,
        description="how much the detail of the column counts beside that of the others, from 0.1 to 100, with prefer "
        "widest, loss or public and with choose loss; 1 by default",
    ),
    BeforeValidator(_weight),
]


VALUE = "value"  # in at_most: the values as they are


def _cap(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise mistake("a level")
    return value if isinstance(value, str) else text(number(value))


AtMost = Annotated[
    str | None,
    Field(
        description="the coarsest level that labels of the column may have: value; a width of intervals, a number of "
        "bands or of a hierarchy file's level, the digits that are kept, a unit of calendar"
    ),
    BeforeValidator(_cap, json_schema_input_type=str | int | float),
]


class Intervals(BuilderModel):
    """Intervals of growing width; each width divides the next."""

    kind = "intervals"
    intervals: list[Number] = Field(
        min_length=1, description="interval widths in units of the column, ascending, each dividing the next"
    )
    origin: Number = Field(0, description="where an interval begins, in units of the column; 0 by default")
    top: Number | None = Field(None, description="values from here on become one open interval, in units of the column")
    bottom: Number | None = Field(None, description="values below become one open interval, in units of the column")
    age_on: AgeOn = None
    weight: Weight = Decimal(1)
    at_most: AtMost = None

    @field_validator("intervals")
    @classmethod
    def _each_divides_the_next(cls, widths: list[int | Decimal]) -> list[int | Decimal]:
        wrong = [((i,), mistake("a width more than 0")) for i, width in enumerate(widths) if width <= 0]
        if not wrong:
            steps = enumerate(zip(map(Fraction, widths), map(Fraction, widths[1:])), start=1)
            expected = "a larger width that is a whole multiple of the one before"
            wrong = [((i,), mistake(expected)) for i, (low, high) in steps if high <= low or high % low]
        if wrong:
            raise refusal(wrong)
        return widths

    @model_validator(mode="after")
    def _bottom_below_top(self) -> Self:
        if self.top is not None and self.bottom is not None and self.bottom >= self.top:
            raise refusal([(("bottom",), mistake("a number less than top"))])
        return self

    def level_names(self) -> list[str]:
        return [f"intervals of {text(width)}" for width in self.intervals]

    def _cap_names(self) -> list[str]:
        return [text(width) for width in self.intervals]


Bounds = Annotated[list[Number], Field(min_length=1)]


def _one_level_by_itself(bands: Any) -> Any:
    nested = isinstance(bands, list) and any(isinstance(level, list) for level in bands)
    return bands if nested or not isinstance(bands, list) else [bands]


BandLevels = Annotated[
    list[Bounds], BeforeValidator(_one_level_by_itself, json_schema_input_type=Bounds | list[Bounds])
]


class Bands(BuilderModel):
    """Bands between chosen numbers, with open ends; coarser levels merge neighbouring bands."""

    kind = "bands"
    bands: BandLevels = Field(
        min_length=1,
        description="where bands begin, ascending: [0, 18, 65] gives <=-1, 0-17, 18-64, >=65; for coarser levels a "
        "list of such lists, each with some of the numbers of the one before: [[0, 18, 30, 65], [18, 65]]",
    )
    age_on: AgeOn = None
    weight: Weight = Decimal(1)
    at_most: AtMost = None

    @field_validator("bands")
    @classmethod
    def _each_merges_the_one_before(cls, levels: list[list[int | Decimal]]) -> list[list[int | Decimal]]:
        wrong = [
            ((i,), mistake("numbers in ascending order, each once"))
            for i, level in enumerate(levels)
            if any(low >= high for low, high in pairwise(level))
        ]
        wrong += [
            ((i,), mistake("some of the numbers of the level before, fewer than all"))
            for i, (finer, level) in enumerate(pairwise(levels), 1)
            if not set(level) < set(finer)
        ]
        if wrong:
            raise refusal(wrong)
        return levels

    def level_names(self) -> list[str]:
        return [f"bands beginning at {', '.join(map(text, level))}" for level in self.bands]


class Suppress(BuilderModel):
    """The value, then *."""

    kind = "suppress"
    suppress: Literal[True] = Field(description="true: the value as it is, then *")
    age_on: AgeOn = None
    pad: Pad = None
    weight: Weight = Decimal(1)
    at_most: AtMost = None


class HierarchyFile(BuilderModel):
    """A hierarchy from a CSV file."""

    kind = "hierarchy"
    hierarchy: File = Field(description="CSV file leaf;level1;level2;..., relative to the config")
    age_on: AgeOn = None
    pad: Pad = None
    weight: Weight = Decimal(1)
    at_most: AtMost = None

    def _cap_names(self) -> None:
        return None


class Digits(BuilderModel):
    """A code of fixed length that loses its digits from the right."""

    kind = "digits"
    digits: int = Field(ge=1, le=32, description="length of the code in characters")
    pad: Pad = None
    weight: Weight = Decimal(1)
    at_most: AtMost = None

    @model_validator(mode="after")
    def _padded_to_its_length(self) -> Self:
        if self.pad not in (None, self.digits):
            raise refusal([(("pad",), mistake(f"{self.digits}, the length of the code, as in digits"))])
        return self

    def level_names(self) -> list[str]:
        return ["first digit" if left == 1 else f"first {left} digits" for left in range(self.digits - 1, 0, -1)]

    def _cap_names(self) -> list[str]:
        return [str(left) for left in range(self.digits - 1, 0, -1)]


CALENDAR = ("day", "month", "quarter", "year", "decade", "century")


class Calendar(BuilderModel):
    """A date in growing units."""

    kind = "calendar"
    calendar: list[Literal["day", "month", "quarter", "year", "decade", "century"]] = Field(
        min_length=1, description=f"units from fine to coarse, of {', '.join(CALENDAR)}"
    )
    weight: Weight = Decimal(1)
    at_most: AtMost = None

    _one_unit = field_validator("calendar", mode="before")(listed)

    @field_validator("calendar")
    @classmethod
    def _fine_to_coarse(cls, units: list[str]) -> list[str]:
        order = [CALENDAR.index(unit) for unit in units]
        if order != sorted(set(order)):
            raise mistake(f"each unit once, in the order {', '.join(CALENDAR)}", found=", ".join(units))
        return units

    def level_names(self) -> list[str]:
        return list(self.calendar)

    def _cap_names(self) -> list[str]:
        return list(self.calendar)


def _ends(value: Any) -> Any:
    if isinstance(value, str):
        if value not in CALENDAR:
            raise mistake(f"a number, a list of numbers, or one of {', '.join(CALENDAR)}")
        return value
    if not isinstance(value, list):
        if (width := number(value)) <= 0:
            raise mistake("a width more than 0")
        return width
    bounds = [number(each) for each in value]
    if not bounds or any(low >= high for low, high in pairwise(bounds)):
        raise mistake("numbers in ascending order, each once")
    return bounds


Ends = Annotated[
    int | Decimal | str | list[int | Decimal],
    BeforeValidator(_ends, json_schema_input_type=Decimal | Literal[CALENDAR] | list[Decimal]),
]


class Free(BuilderModel):
    """An ordered column without a hierarchy, cut freely."""

    kind = "free"
    ends: Ends | None = Field(
        None,
        description="where labels may begin and end: a number w (multiples of w), numbers in ascending order, or a "
        f"unit of the calendar ({', '.join(CALENDAR)}); then no label ends at a value because somebody has it",
    )
    origin: Number = Field(0, description="with a number as ends: where the multiples are counted from; 0 by default")
    age_on: AgeOn = None
    weight: Weight = Decimal(1)
    at_most: AtMost = None

    @model_validator(mode="after")
    def _cap_is_a_level(self) -> Self:
        if self.at_most is not None:
            expected = f"no at_most, or a builder that has levels: {', '.join(BUILDERS)}"
            raise refusal([(("at_most",), mistake(expected))])
        return self

    @model_validator(mode="after")
    def _origin_of_multiples(self) -> Self:
        if "origin" in self.model_fields_set and not isinstance(self.ends, int | Decimal):
            raise refusal([(("origin",), mistake("no origin without a number as ends"))])
        return self


Built = Intervals | Bands | Suppress | HierarchyFile | Digits | Calendar | Free
BUILDERS: dict[str, type[BuilderModel]] = {
    model.kind: model for model in (Intervals, Bands, Suppress, HierarchyFile, Digits, Calendar)
}
SHARED_KEYS = ["weight", "at_most"]  # of quasi-identifiers, whatever their builder
LABEL_KEYS = {"ends", "origin"}  # of quasi-identifiers that are cut freely
BUILDER_KEYS = list(
    dict.fromkeys(key for model in BUILDERS.values() for key in model.model_fields if key not in SHARED_KEYS)
)
# What a mapping without the word of a builder may mean, by its keys.
UNNAMED: tuple[type[BuilderModel], ...] = (Free, Digits, *BUILDERS.values())


def _marks(model: type[BuilderModel]) -> set[str]:
    """Return the keys that suggest a builder; an origin alone suggests intervals."""
    return set(model.model_fields) - ({"origin"} if model is Free else set())


def _builder(value: Any, info: ValidationInfo) -> BuilderModel:
    if isinstance(value, BuilderModel):
        return value
    given = as_mapping({} if value is None else value)
    named = [kind for kind in BUILDERS if kind in given]
    if len(named) > 1:
        raise mistake(f"one of {', '.join(BUILDERS)}", found=" and ".join(named))
    own = set(given).difference(SHARED_KEYS)
    meant = [BUILDERS[kind] for kind in named] or [m for m in UNNAMED if not own or own & _marks(m)]
    if not meant:
        raise refusal(((key,), unknown_key(key, ["ends", *BUILDER_KEYS, *SHARED_KEYS])) for key in given if key in own)
    return meant[0].model_validate(given, context=info.context)


Builder = Annotated[Built, BeforeValidator(_builder, json_schema_input_type=Built | None)]


class Sensitive(Model):
    """How a sensitive column is published: as it is, rounded, or coarser by a builder."""

    round: Exact | None = Field(
        None, gt=0, description="round numbers to multiples of this, more than 0, in units of the column"
    )
    as_categories: bool = Field(False, description="true: treat numbers as mere names, without distances between them")
    builder: Builder | None = Field(None, description="makes the values coarser")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.round is not None and self.builder is not None:
            raise mistake("either round or a builder", found=f"round and {self.builder.kind}")
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        written = handler.resolve_ref_schema(handler(schema))
        own = {key: value for key, value in written["properties"].items() if key != "builder"}
        branches = [{"properties": own, "type": "object", "additionalProperties": False}]
        for model in (*BUILDERS.values(), *UNNAMED[:1]):
            branch = model.model_json_schema(schema_generator=SchemaGenerator)
            without = {*SHARED_KEYS, *(LABEL_KEYS if model is Free else ())}
            kept = {key: value for key, value in branch["properties"].items() if key not in without}
            branch["properties"] = kept | {"as_categories": own["as_categories"]}
            branches.append(branch)
        return {"description": written["description"], "anyOf": branches}


def _sensitive(value: Any, info: ValidationInfo) -> Sensitive:
    """Return the column with the builder keys of a flat mapping gathered; mistakes keep the place where the user wrote
    them."""
    if isinstance(value, Sensitive):
        return value
    given = dict(as_mapping({} if value is None else value))
    own = {key: given.pop(key) for key in ("round", "as_categories") if key in given}
    stray = [key for key in given if key not in BUILDER_KEYS]
    wrong: list[tuple[Loc, PydanticCustomError]] = [
        ((key,), unknown_key(key, ["round", "as_categories", *BUILDER_KEYS])) for key in stray
    ]
    rest = {key: given[key] for key in given if key not in stray}
    try:
        made = Sensitive.model_validate(own | ({"builder": rest} if rest else {}), context=info.context)
    except ValidationError as error:
        wrong += [(loc[1:] if loc[:1] == ("builder",) else loc, said) for loc, said in as_mistakes(error)]
    if wrong:
        raise refusal(wrong)
    return made


def _named(value: Any) -> Any:
    """Return a list of names as the mapping that it abbreviates."""
    if isinstance(value, Mapping):
        return value
    names = listed(value)
    if not isinstance(names, list):
        raise mistake("a mapping or a list of names")
    names = TypeAdapter(list[Name]).validate_python(names, strict=True)
    wrong = [((i,), mistake("each name once")) for i, name in enumerate(names) if name in names[:i]]
    if wrong:
        raise refusal(wrong)
    return dict.fromkeys(names)


SensitiveColumn = Annotated[Sensitive, BeforeValidator(_sensitive, json_schema_input_type=Sensitive | None)]
ROLES = ("identifiers", "quasi_identifiers", "sensitive", "keep")


class RowRule(Model):
    """Which rows of an individual are used: the only one, or of several the first or the last by a column."""

    keep: Literal["error", "first", "last"] = Field(
        "error", description="of several rows of an individual: an error, or the first or last one is used"
    )
    by: Name | None = Field(
        None, description="the column of numbers, dates or times that orders the rows of an individual, nulls first"
    )

    @property
    def chooses(self) -> bool:
        return self.keep != "error"

    @model_validator(mode="after")
    def _ordered_by_a_column(self) -> Self:
        if self.chooses and self.by is None:
            expected = f"the column that orders the rows of an individual, with keep: {self.keep}"
            raise refusal([(("by",), mistake(expected, "the order of rows in a file means nothing", "nothing"))])
        if not self.chooses and self.by is not None:
            raise refusal([(("by",), mistake("no column with keep: error, which uses every row"))])
        return self


class Columns(Model):
    """What each column is; a column that is not named is dropped."""

    identifiers: NameList = Field([], description="columns that never leave the source stage")
    individual: Name = Field(description="`row` (every row is another person) or the column that says who")
    rows: RowRule = Field(
        default_factory=RowRule, description="one row per individual: what becomes of the others; an error by default"
    )
    multiplicity: Literal["single", "set", "multiset"] = Field("single", description="sensitive values per individual")
    quasi_identifiers: Annotated[
        dict[Name, Builder],
        BeforeValidator(_named, json_schema_input_type=Names | Annotated[dict[Name, Builder], Field(min_length=1)]),
    ] = Field(min_length=1, description="columns an adversary may know, each with what makes it coarser")
    sensitive: Annotated[
        dict[Name, SensitiveColumn],
        BeforeValidator(_named, json_schema_input_type=Name | list[Name] | dict[Name, SensitiveColumn]),
    ] = Field({}, description="columns whose values are to be protected, as a list or with how each is published")
    keep: NameList = Field([], description="columns that are published as they are, or as `aggregate` says")
    aggregate: dict[Name, Aggregation] = Field(
        {}, description="columns of `keep` with numbers that are published as means or rounded"
    )

    def places(self) -> Iterator[tuple[Loc, str]]:
        """Yield the place and name of every column except the individual."""
        for role in ROLES:
            named = getattr(self, role)
            for index, name in enumerate(named):
                yield (role, name if isinstance(named, dict) else index), name

    def published(self) -> list[str]:
        return [*self.quasi_identifiers, *self.sensitive, *self.keep]

    @property
    def means(self) -> dict[str, Aggregation]:
        """The kept columns that are published as means."""
        return {name: spec for name, spec in self.aggregate.items() if spec.mean is not None}

    @model_validator(mode="after")
    def _one_row_each(self) -> Self:
        if not self.rows.chooses:
            return self
        wrong: list[tuple[Loc, PydanticCustomError]] = []
        if self.individual == "row":
            said = mistake("no rows, or the column that says who as individual", found="individual: row")
            wrong.append((("rows",), said))
        if self.multiplicity != "single":
            found = f"keep: {self.rows.keep} with multiplicity: {self.multiplicity}"
            wrong.append((("rows",), mistake("one of the two: one row per individual, or several values", found=found)))
        if str(self.rows.by).lower() == self.individual.lower():
            wrong.append((("rows", "by"), mistake("another column; all rows of an individual agree on this one")))
        if wrong:
            raise refusal(wrong)
        return self

    @model_validator(mode="after")
    def _aggregates_kept_columns(self) -> Self:
        wrong: list[tuple[Loc, PydanticCustomError]] = []
        for name in self.aggregate:
            if name in self.sensitive:
                hint = "criteria judge the values that are published, and a mean is nobody's value; sensitive has round"
                wrong.append((("aggregate", name), mistake("a column of keep", hint, "a sensitive column")))
            elif name not in self.keep:
                wrong.append((("aggregate", name), mistake("a column of keep", closest(name, self.keep))))
        if wrong:
            raise refusal(wrong)
        return self

    @model_validator(mode="after")
    def _one_role_each(self) -> Self:
        # DuckDB takes `Name` and `name` for the same: an identifier must not be published in other letters.
        seen = {} if self.individual == "row" else {self.individual.lower(): "individual"}
        wrong = []
        for loc, name in self.places():
            role = seen.get(name.lower())
            if role is not None and (role, loc[0]) != ("individual", "identifiers"):
                wrong.append((loc, mistake("a column in one role only", found=f'"{name}", which is in {role} already')))
            seen.setdefault(name.lower(), str(loc[0]))
        if wrong:
            raise refusal(wrong)
        return self


class Nulls(Model):
    """What missing values mean."""

    quasi_identifiers: Literal["value", "drop", "error"] = Field(
        "value", description="null in a quasi-identifier: a value of its own, drop the row, or an error"
    )
    sensitive: Literal["value", "drop", "error"] = Field(
        "error", description="null in a sensitive column: a value of its own, drop the row, or an error"
    )
