"""Models of manifest.json and report.json: a run builds and writes them; `report`, `explain`, `reuse` and a later run
read them. A file whose digest is right but whose content does not have this form was written by another program; it is
refused here instead of failing halfway."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from anon.artifacts.parts import (
    ArtifactPart,
    Blocking,
    ColumnFacts,
    ColumnRole,
    Count,
    GuardFacts,
    LatticeFacts,
    LatticeNodes,
    Number,
    OneRowEach,
    SensitiveFacts,
    SourcePart,
    Summary,
    TreeNode,
    UtilityFacts,
    WarningFacts,
    demand,
)  # fmt: skip
from anon.config import CRITERIA

MANIFEST, REPORT = 3, 8  # the versions that this anon writes and reads


def _moment(text: str) -> str:
    datetime.fromisoformat(text)
    return text


class Dependencies(ArtifactPart):
    """What a release and its report depend on in addition to the source."""

    anon: str
    config_sha256: str
    files: dict[str, str]
    values_shown: bool
    trial: str | None


class Provenance(ArtifactPart):
    """The facts that the report page takes from the manifest."""

    run: str
    anon: str
    began: Annotated[str, AfterValidator(_moment)]
    config_sha256: str
    source: list[SourcePart]
    rows: Count
    rows_dropped: Count
    release: dict[str, str]


class PreviousRun(ArtifactPart):
    """The run whose release this one replaced."""

    run: str
    manifest_sha256: str


class ReusedRun(ArtifactPart):
    """The run whose recoding this one applied."""

    run: str
    recoding_sha256: str


class Manifest(ArtifactPart):
    """manifest.json."""

    version: Annotated[int, Field(ge=MANIFEST, le=MANIFEST)]
    run: str
    began: str
    config: dict[str, Any]  # as its author wrote it; `config.load` reads it
    base: Annotated[str, Field(pattern=r"^[^\x00]*$")]
    anon: str
    config_sha256: str
    files: dict[str, str]
    values_shown: bool
    trial: str | None
    source: list[SourcePart]
    rows: Count
    rows_dropped: Count
    one_row_each: OneRowEach | None = None
    suppressed: Count
    warnings: list[WarningFacts]
    release: dict[str, str]
    recoding_sha256: str
    members_sha256: str = ""
    previous: PreviousRun | None = None
    reused: ReusedRun | None = None

    @property
    def dependencies(self) -> Dependencies:
        return Dependencies(**{name: getattr(self, name) for name in Dependencies.model_fields})

    @property
    def provenance(self) -> Provenance:
        return Provenance(**{name: getattr(self, name) for name in Provenance.model_fields})


def _criterion(item: dict[str, Any]) -> dict[str, Any]:
    """Return a criterion as the config has it, checked for its name and the numbers that its sentence requires."""
    demand(len(item) == 1, "one name")
    ((name, spec),) = item.items()
    demand(name in CRITERIA and isinstance(spec, dict), "a criterion")
    for field, info in CRITERIA[name].model_fields.items():
        if info.annotation in (int, Decimal) or (field == "c" and spec.get("kind") == "recursive"):
            demand(_is_number(spec.get(field)), field)
    demand(name != "l_diversity" or isinstance(spec.get("kind"), str), "a kind")
    return item


def _is_number(value: Any) -> bool:
    """Return whether a value is a number as a config is serialized: decimals that no float equals are text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return False
    try:
        return Decimal(str(value)).is_finite() and abs(float(value)) < 10**18
    except (ArithmeticError, ValueError):
        return False


class MethodFacts(ArtifactPart):
    """The method as the config has it."""

    kind: str

    @property
    def settings(self) -> dict[str, Any]:
        """Return the settings that the config names; which a method has is declared in its grammar, not here."""
        return self.model_extra or {}


def _sizes(sizes: dict[str, int]) -> dict[str, int]:
    demand(bool(sizes) and all(size.isascii() and size.isdigit() and len(size) < 16 for size in sizes), "sizes")
    demand(
        "0" not in {size.lstrip("0") or "0" for size in sizes} and sum(sizes.values()) > 0, "groups that are not empty"
    )
    return sizes


class Report(ArtifactPart):
    """report.json."""

    version: Annotated[int, Field(ge=REPORT, le=REPORT)]
    trial: str = ""
    summary: Summary
    individual: str
    multiplicity: str
    form: Literal["generalized", "bucketized"]
    labels: Literal["exact", "generalized"]
    source: str
    roles: list[ColumnRole]
    other_columns: Literal["listed", "unknown"]
    level_names: dict[str, list[str]]
    method: MethodFacts
    privacy: list[Annotated[dict[str, Any], AfterValidator(_criterion)]]
    utility: UtilityFacts
    lattice: LatticeFacts | None = None
    guard: GuardFacts | None = None
    group_sizes: Annotated[dict[str, Count], AfterValidator(_sizes)]
    seconds: dict[str, Number]
    blocking: Blocking | dict[str, Any] = Field({})
    shows_values: bool
    sensitive: list[SensitiveFacts]
    columns: list[ColumnFacts]
    tree: list[TreeNode] = Field([])
    lattice_nodes: LatticeNodes | None = None
    provenance: Provenance

    @property
    def blocked(self) -> Blocking | None:
        """Return what the criteria block; None if that was not measured."""
        return self.blocking if isinstance(self.blocking, Blocking) else None

    @model_validator(mode="after")
    def _parts_agree(self) -> Self:
        names, found = [next(iter(item)) for item in self.privacy], [each.name for each in self.summary.criteria]
        demand(names == found, "what was found of each criterion")
        columns = [column.name for column in self.columns]
        demand(sorted(columns) == sorted(self.utility.loss.columns), "the loss of each column")
        if self.lattice is None:
            demand(self.lattice_nodes is None, "the combinations of levels")
        else:
            every = [at for node in self.lattice.finer or [] for at in node.refused_by]
            demand(all(at < len(names) for at in every), "the places of criteria")
        if self.blocked is not None:
            demand(len(self.blocked.criteria) == len(names), "what each criterion blocks")
        else:
            demand(not self.blocking, "what the criteria block")
        return self

    @model_validator(mode="after")
    def _tree_is_connected(self) -> Self:
        if self.has("tree"):
            demand(bool(self.tree) and all(column.has("cuts") for column in self.columns), "nodes, cuts")
        for number, node in enumerate(self.tree):
            demand(node.split < len(self.columns), "the number of a column")
            if node.has("above") or number:
                demand(node.above < number, "a node before it")
                demand(self.tree[node.above].has("split"), "a node that is split")
        return self
