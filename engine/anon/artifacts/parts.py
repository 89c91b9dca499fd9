"""Models of the objects in manifest.json and report.json. `schema` has the files. Fields stand in the order in which
they are written: the bytes of a file are those of its model."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Count = Annotated[int, Field(ge=0, le=2**53)]
Several = Annotated[int, Field(ge=1, le=2**53)]
Number = int | Annotated[float, Field(allow_inf_nan=False)]  # a whole number is written without a point
Share = Annotated[int | float, Field(ge=0, le=1.000001)]
Figure = Number | Literal["inf"]
RowRange = Annotated[list[Count], Field(min_length=2, max_length=2)]  # first and last row, from 1
PERCENT = 101  # entries of a list by whole percent


def demand(holds: bool, what: str) -> None:
    """Raise the error that makes pydantic refuse a value, unless the condition holds."""
    if not holds:
        raise ValueError(what)


class ArtifactPart(BaseModel):
    """An object of a file. Keys that only the script of the page reads are kept without being declared, and keys with a
    default may be absent; null is allowed only for keys without a default, and for the `nullable` one."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True, defer_build=True)
    nullable: ClassVar[str] = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the object as it is written, without the keys that it does not have."""
        return self.model_dump(exclude_unset=True)

    def has(self, name: str) -> bool:
        """Return whether the object has a key that may be absent."""
        return name in self.model_fields_set

    @model_validator(mode="before")
    @classmethod
    def _refuse_nulls(cls, data: Any) -> Any:
        if isinstance(data, cls):
            return data
        optional = [name for name, info in cls.model_fields.items() if not info.is_required() and name != cls.nullable]
        demand(isinstance(data, dict) and all(data.get(name, 0) is not None for name in optional), "no null")
        return data


class SourcePart(ArtifactPart):
    """A file with its bytes, or a query with its rows."""

    file: str = ""
    bytes: Count = 0
    query: str = ""
    rows: Count = 0
    changed: str = ""

    @property
    def name(self) -> str:
        return self.query if self.has("query") else self.file

    @property
    def size(self) -> str:
        return f"{self.rows:,} rows" if self.has("query") else f"{self.bytes:,} bytes"

    @model_validator(mode="after")
    def _has_a_size(self) -> Self:
        both = {"query", "rows"} if "query" in self.model_fields_set else {"file", "bytes"}
        demand(both <= self.model_fields_set, "a name and a size")
        return self


class PointFacts(ArtifactPart):
    """A skyline point of a value, and the findings about it."""

    value: str
    l: Count
    k: Count
    m: Count
    c: Annotated[float, Field(gt=0, le=1)]
    breach: Share
    safe: bool
    worst_group: Count
    worst_rows: RowRange = []
    worst_labels: dict[str, str | None] = {}


class KeptPossible(ArtifactPart):
    """A sensitive value that must stay possible in every group, with the smallest percentage that it has."""

    value: str
    percent: Number
    asked: Number
    safe: bool


class Failure(ArtifactPart):
    """A requirement of a criterion that the table does not meet."""

    text: str
    figure: Figure
    bound: Figure
    worst_group: Count


class CriterionFacts(ArtifactPart):
    """The findings about a criterion."""

    name: str
    safe: bool
    figure: Figure | dict[str, Figure]
    bound: Figure | dict[str, Figure]
    relation: str
    worst_group: Count | None  # of one that judges groups
    worst_rows: RowRange = []
    worst_labels: dict[str, str | None] = {}
    sensitive: str | list[str] = ""
    kind: str = ""
    keep_possible: list[KeptPossible] = []
    exact: bool = False
    points: list[PointFacts] = []
    exempt: list[str] = []
    failed: list[Failure] = []

    @model_validator(mode="after")
    def _fits_its_name(self) -> Self:
        both = [isinstance(each, dict) for each in (self.figure, self.bound)]
        demand(both == [self.name == "k_e"] * 2, "two figures of k_e, and one of others")
        if self.name == "skyline":
            demand("points" in self.model_fields_set and isinstance(self.sensitive, str), "the points of a column")
        return self


class WarningFacts(ArtifactPart):
    """A warning."""

    code: str
    count: Count
    text: str
    severity: Literal["high", "low"]
    column: str = ""
    accepted: str = ""


class Risk(ArtifactPart):
    """The probability that an individual is re-identified."""

    highest: Annotated[float, Field(gt=0, le=1)]
    mean: Share
    under_5: Count
    unique_before: Count | None
    homogeneous_rows: Count


class KeptColumnFacts(ArtifactPart):
    """The groups that an adversary sees who also knows a kept column."""

    smallest_group: Count
    unique_share: Share
    homogeneous_share: Share


class LeftOutReasons(ArtifactPart):
    """The number of rows or individuals that are not in the release, by reason."""

    all: Count
    null_quasi_identifiers: Count
    null_sensitive: Count
    suppressed: Count
    other_rows: Count = 0

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        counts = self.null_quasi_identifiers, self.null_sensitive, self.suppressed, self.other_rows
        demand(self.all == sum(counts), "the sum as `all`")
        return self


class OneRowEach(ArtifactPart):
    """Which row of an individual with several is used, and how many others there are."""

    keep: Literal["first", "last"]
    by: str
    rows: Count
    individuals: Count


class LeftOutFacts(ArtifactPart):
    """Rows and individuals that are not in the release."""

    rows: LeftOutReasons
    individuals: LeftOutReasons
    one_row_each: OneRowEach | None = None


class AttackFacts(ArtifactPart):
    """The result of one attack on the release; `individuals` is null if it was not carried out."""

    name: str
    assumes: str
    individuals: Count | None
    largest: Share | None
    bound: Share | None
    exact: bool
    breached: bool
    found: str
    helps: str
    sensitive: str = ""


class SeriesFacts(ArtifactPart):
    """A night of a series: the number of its part, and individuals: in the source for the first time; waiting
    afterwards; released in all parts; and in the source although they were released before."""

    part: Several
    new: Count
    waiting: Count
    released: Count
    again: Count


class TogetherFacts(ArtifactPart):
    """What the release and the one that it replaces reveal together."""

    releases: Several
    individuals: Count
    one_value: Count
    two_values: Count
    largest_belief: Share | None
    at_least: Share | None
    at_most: Share | None
    over: Count
    certainly_over: Count
    contradictory: Count
    exact: bool
    possibly_over: Count
    not_compared: Count
    groups_examined: Count = 0  # of a sample
    groups: Count = 0


class Summary(ArtifactPart):
    """The summary that `run` prints."""

    trial: str = ""
    safe: bool
    rows: Count
    individuals: Several
    groups: Several
    suppressed: Count
    left_out: LeftOutFacts
    criteria: list[CriterionFacts]
    risk: Risk
    with_kept: dict[str, KeptColumnFacts]
    together: TogetherFacts | None = None
    warnings: list[WarningFacts]
    attacks: list[AttackFacts]
    series: SeriesFacts | None = None

    def standing(self, severity: str | None = None) -> list[WarningFacts]:
        """Return the warnings that are not accepted, all or those of one severity."""
        return [each for each in self.warnings if not each.has("accepted") and severity in (None, each.severity)]


class Loss(ArtifactPart):
    """The share of the detail that was lost."""

    all: Share
    columns: dict[str, Share]


class LowerBound(ArtifactPart):
    """The loss that every release with classes of at least k individuals has, over a sample of the individuals."""

    all: Share
    standard_error: Number
    k: Several
    sample: Several
    individuals: Several


class SelectivityClass(ArtifactPart):
    """The relative error of the random queries that select about the same share of the source; the last class includes
    its end."""

    at_least: Share
    below: Share
    median: Number
    mean: Number
    queries: Several


class QueryError(ArtifactPart):
    """The relative error of random queries."""

    median: Number
    mean: Number
    queries: Count
    by_selectivity: list[SelectivityClass]


class AggregationFacts(ArtifactPart):
    """What a column of numbers loses by means or by rounding."""

    nullable = "fewest"
    variance_lost: Number
    mean_change: Number
    fewest: Count | None = None
    withheld: Count = 0


class Scores(ArtifactPart):
    """The accuracy of a classifier, and the area under its ROC curve."""

    accuracy: Share
    auc: Share


class ModelScores(ArtifactPart):
    """A classifier that was trained on the release, and one of its kind that was trained on the source."""

    name: str
    release: Scores
    source: Scores


class TrainedRows(ArtifactPart):
    """The rows that the classifiers were trained with."""

    release: Several
    source: Several


class PredictionFacts(ArtifactPart):
    """How well classifiers predict a column of the source for rows that were held out."""

    column: str
    classes: Several
    features: list[str]
    tested: Several
    matched: Count
    trained: TrainedRows
    majority: Share
    models: list[ModelScores]


class GuardFacts(ArtifactPart):
    """The coins of a guarded search: individuals by the number of candidates that count against their group, those
    without a bound, and the largest factor of the odds."""

    nullable = "below"
    skip: Number
    below: Count | None
    enforced: bool
    individuals: dict[str, Count]
    unbounded: Count
    largest: Number | Literal["inf"]


class UtilityFacts(ArtifactPart):
    """The utility of the release."""

    groups: Count
    average_group: Number
    discernibility: Number
    height: Count | None
    divergence: Number | None
    loss: Loss
    lower_bound: LowerBound | None
    query_error: QueryError | None
    suppressed: Count
    aggregated: dict[str, AggregationFacts] = {}
    prediction: PredictionFacts | None = None


class ColumnFacts(ArtifactPart):
    """The generalization of a quasi-identifier."""

    name: str
    values: Count
    labels: Count
    as_it_is: Share
    not_at_all: Share
    levels: list[Count] = []
    cuts: Count = 0

    @model_validator(mode="after")
    def _has_levels_or_cuts(self) -> Self:
        demand(bool({"levels", "cuts"} & self.model_fields_set), "levels or cuts")
        return self


class ColumnRole(ArtifactPart):
    """A column of the source, its role, and how it is published."""

    name: str
    role: Literal["identifier", "individual", "quasi-identifier", "sensitive", "kept", "row order", "not named"]
    published: str


class TreeNode(ArtifactPart):
    """A part of the table between cuts."""

    nullable = "label"
    individuals: Several
    group: Count = 0
    groups: Count = 1
    smallest: Count = 0
    together: Count = 0
    above: Count = 0
    label: str | None = None
    split: Count = 0


class LevelCombination(ArtifactPart):
    """A combination of levels with its cost."""

    levels: dict[str, Count]
    groups: Count
    average_group: Number
    discernibility: Number
    height: Count
    divergence: Number
    loss: Number
    suppressed: Count


class Finer(ArtifactPart):
    """The combination with one level less in a column, and the positions of the criteria that refuse it."""

    column: str
    level: Count
    refused_by: list[Count]


class LatticeFacts(ArtifactPart):
    """The minimal combinations of levels."""

    nullable = "finer"
    choose: Literal["loss", "height", "discernibility", "average", "divergence", "given"]
    chosen: LevelCombination
    minimal: list[LevelCombination]
    all_minimal: bool = True  # false: `minimal` lists only some of them, the best among them
    finer: list[Finer] | None = None


class Height(ArtifactPart):
    """The combinations of levels of one height."""

    nodes: Count
    safe: Count


class LatticeNodes(ArtifactPart):
    """The number of combinations of levels, by height."""

    levels: list[Count]
    heights: list[Height]
    safe: str = ""


class BlockedGroups(ArtifactPart):
    """A number of groups and of the individuals in them."""

    groups: Count
    individuals: Count


class LargeGroup(ArtifactPart):
    """A group and its size."""

    group: Count
    individuals: Count


class CriterionBlocking(ArtifactPart):
    """The groups that a criterion prevents from being split."""

    name: str
    groups: Count
    individuals: Count
    only: BlockedGroups
    at_most: BlockedGroups
    largest: list[LargeGroup]


class Blocking(ArtifactPart):
    """The criteria that prevent groups from being split."""

    criteria: list[CriterionBlocking]
    refused: BlockedGroups
    finest: BlockedGroups


class ValueFacts(ArtifactPart):
    """A sensitive value."""

    value: str
    individuals: Count
    highest: Share | None = None


class LargestShare(ArtifactPart):
    """Groups and their individuals by the percentage that their most frequent value has."""

    groups: Annotated[list[Count], Field(min_length=PERCENT, max_length=PERCENT)]
    individuals: Annotated[list[Count], Field(min_length=PERCENT, max_length=PERCENT)]


class EliminationFacts(ArtifactPart):
    """The individuals who are affected once values are ruled out."""

    threshold: Share
    affected: Annotated[list[BlockedGroups], Field(min_length=1)]


class DisclosureFacts(ArtifactPart):
    """The maximum disclosure given pieces of knowledge."""

    implications: Annotated[list[Share], Field(min_length=1)]
    negations: Annotated[list[Share], Field(min_length=1)]
    worst: list[str]


class SkylineFacts(ArtifactPart):
    """A knowledge skyline, which the page draws."""

    confidence: Share


class Knowledge(ArtifactPart):
    """The knowledge about a value that the release tolerates."""

    value: str
    curves: dict[str, list[list[Number]]]
    skylines: list[SkylineFacts]


class SensitiveFacts(ArtifactPart):
    """A sensitive column."""

    column: str
    distinct: Count
    values: list[ValueFacts]
    largest_share: LargestShare | None = None
    elimination: EliminationFacts | None = None
    disclosure: DisclosureFacts | None = None
    knowledge: list[Knowledge]

    @model_validator(mode="after")
    def _has_largest_shares(self) -> Self:
        if self.largest_share is not None:
            demand(all(each.highest is not None for each in self.values), "the largest share of each value")
        return self
