"""The grammar of the config: `Config` and the sections source, method, release, limits and backend; columns and privacy
have their own modules. `load.py` makes a `Config` of a file or a mapping, and every stage reads its settings from it
alone."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from anon.config.columns import BuilderModel, Columns, Nulls
from anon.config.criterion import Criterion
from anon.config.mistakes import Loc, Model, closest, mistake, one_of, refusal
from anon.config.privacy import Privacy
from anon.config.series import Series
from anon.config.text_files import Csv
from anon.config.values import (
    File,
    Mistakes,
    Name,
    Place,
    Positive,
    SchemaGenerator,
    Share,
    absolute_glob,
    base_folder,
    by_kind,
    is_store,
    nonempty,
    parse_size,
)
from anon.config.warning_codes import Acceptance

NO_SOURCE = "the required key `source`: where the table comes from"
MOST_THREADS = 1_024  # DuckDB starts every thread that it is given


class DuckDB(Model):
    """A query on a DuckDB database file."""

    file: File = Field(description="DuckDB database file, relative to the config")
    query: Name = Field(description="SQL query whose result is the table: one SELECT statement")


class Postgres(Model):
    """A query on a PostgreSQL database."""

    dsn: Name = Field(description="connection string; take the password from ${NAME}", repr=False)
    query: Name = Field(description="SQL query whose result is the table: one SELECT statement")


SOURCES = ("path", "duckdb", "postgres", "table")


class Source(Model):
    """Where the table comes from: exactly one of path, duckdb, postgres, table."""

    path: Annotated[str, BeforeValidator(absolute_glob, json_schema_input_type=Name)] | None = Field(
        None,
        description="Parquet, CSV, JSON lines, Arrow or Excel file, glob or folder, relative to the config, or on "
        "s3://, gs:// or az://",
    )
    csv: Csv | None = Field(None, description="how the CSV files of path are written")
    sheet: Name | None = Field(None, description="sheet of the Excel file of path; needed if it has several")
    duckdb: DuckDB | None = Field(None, description="a query on a DuckDB database file")
    postgres: Postgres | None = Field(None, description="a query on a PostgreSQL database")
    table: Name | None = Field(None, description="name of a Spark table, such as db.name")

    @property
    def kind(self) -> str:
        """Return the name of the key that says where the rows are; nothing if the config has no source."""
        return next((name for name in SOURCES if getattr(self, name) is not None), "")

    @staticmethod
    def none() -> Source:
        """Return the source of a config that has none."""
        return Source.model_construct()

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        given = [name for name in SOURCES if getattr(self, name) is not None]
        if len(given) != 1:
            raise mistake(f"exactly one of {', '.join(SOURCES)}", found=" and ".join(given) or "none of them")
        about = [name for name in ("csv", "sheet") if getattr(self, name) is not None]
        if about and self.path is None:
            found = f"{given[0]} without a path"
            raise refusal([((name,), mistake("a source with a path", found=found)) for name in about])
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        written = handler.resolve_ref_schema(handler(schema))
        return written | {"oneOf": [{"required": [name]} for name in SOURCES]}


class InformationGain(Model):
    """Prefer the split with the highest information gain about a column."""

    information_gain: Name = Field(description="the quasi-identifier, sensitive or kept column that the gain is about")


def _prefer(value: Any, info: ValidationInfo) -> Literal["widest", "balanced", "loss", "public"] | InformationGain:
    if isinstance(value, Mapping | InformationGain):
        return InformationGain.model_validate(value, context=info.context)
    for word in ("widest", "balanced", "loss", "public"):
        if value == word:
            return word
    words = ["widest", "balanced", "loss", "public", "{information_gain: COLUMN}"]
    raise one_of(value, words) if isinstance(value, str) else mistake(" or ".join(words))


Prefer = Literal["widest", "balanced", "loss", "public"] | InformationGain


class Guard(Model):
    """Coins that hide why a group was not cut."""

    skip: Share = Field(Decimal("0.25"), gt=0, lt=1, description="probability that a safe cut is passed over, below 1")
    below: Positive | None = Field(
        None, description="only groups of fewer individuals than this toss coins; 100 by default, none with enforce"
    )
    enforce: bool = Field(
        False,
        description="true: tighten the criteria so that they hold against an adversary who knows the algorithm",
    )

    @property
    def limit(self) -> int | None:
        """Return the number of individuals from which on no coins are tossed; None if there is none."""
        return None if self.enforce else self.below or 100

    @model_validator(mode="after")
    def _enforced_everywhere(self) -> Self:
        if self.enforce and self.below is not None:
            expected = "no below: a cut that is refused without a coin was certainly unsafe, and no bound holds"
            raise refusal([(("below",), mistake(expected, found=f"{self.below} with enforce"))])
        return self


class Partition(Model):
    """Top-down splits of the table (SkylineAnonymize)."""

    kind: Literal["partition"] = Field("partition", description="partition: split the table top down")
    prefer: Annotated[Prefer, BeforeValidator(_prefer, json_schema_input_type=Prefer)] = Field(
        "widest",
        description="which split to prefer: of the widest attribute, the most balanced, the one whose "
        "parts lose least, or by information gain about a column; public: of the widest cell, at the median of the "
        "whole table within it, so that cuts depend on the distribution of each column and on no group",
    )
    cuts: Literal["nodes", "ordered"] = Field(
        "nodes",
        description="splits of columns with hierarchy, suppress or digits: nodes, into all nodes below at once, or "
        "ordered, anywhere in the order of the values, with lists of nodes as labels; intervals and calendar are "
        "always split into nodes",
    )
    labels: Literal["cells", "tight"] = Field(
        "cells",
        description="labels of columns that are cut freely or in order: cells, from cut to cut, or tight, only as far "
        "as the members of the group reach, which reveals that somebody is near each end",
    )
    peel: bool = Field(
        False,
        description="true: of a split of a column with a hierarchy, the parts that are safe leave, and the others stay "
        "together under the label above; false: a split is refused if one of its parts is not safe",
    )
    refine: bool = Field(
        False,
        description="true: afterwards pairs of groups are pooled and divided anew where that loses less, so that "
        "people with equal quasi-identifiers may be in different groups, whose labels may overlap; needs labels: tight",
    )
    guard: Guard | None = Field(None, description="coins that hide why a group was not cut; with prefer public")
    suppress: Share = Field(
        Decimal(0),
        ge=0,
        le=1,
        description="largest share of individuals that may be suppressed, of 1, in the table and under each split: "
        "those in parts that are not safe, where the loss of all falls",
    )

    @model_validator(mode="after")
    def _guards_public_cuts(self) -> Self:
        if self.guard is not None and self.prefer != "public":
            expected = "prefer: public: other cuts depend on the members of a group, which coins do not hide"
            raise refusal([(("guard",), mistake(expected, found="a guard with another preference"))])
        return self


BOUNDED = ("loss", "height")  # metrics for which best-first search has a lower bound


LISTED = 2**15  # combinations of levels up to which all minimal ones are found by default


class Lattice(Model):
    """One level per attribute for the whole table (Incognito)."""

    kind: Literal["lattice"] = Field(description="lattice: one level per attribute for the whole table")
    suppress: Share = Field(
        Decimal(0), ge=0, le=1, description="largest share of individuals that may be suppressed, of 1"
    )
    choose: Literal["loss", "height", "discernibility", "average", "divergence"] = Field(
        "loss", description="the utility metric by which one of the minimal releases is chosen"
    )
    minimal: Literal["all", "best"] | None = Field(
        None,
        description="which minimal releases to find and list: all, or only those found on the way to the best one, "
        "which is the same release, sooner; best needs choose loss or height. By default best if it can be and the "
        f"lattice has more than {LISTED:,} combinations of levels, otherwise all",
    )
    exhaustive: bool = Field(
        False, description="true: check every node, so that criteria without monotonicity work too"
    )

    def lists_all(self, nodes: int) -> bool:
        """Return whether all minimal nodes of a lattice of this size are found."""
        few = nodes <= LISTED or self.choose not in BOUNDED
        return few if self.minimal is None else self.minimal == "all"

    @model_validator(mode="after")
    def _best_has_a_bound(self) -> Self:
        if self.minimal == "best" and self.choose not in BOUNDED:
            found = f"{self.choose} with minimal: best"
            expected = f"{' or '.join(BOUNDED)}, which have a lower bound to search by; or minimal: all"
            raise refusal([(("choose",), mistake(expected, found=found))])
        return self


class Merge(Model):
    """Groups merged bottom up."""

    kind: Literal["merge"] = Field(description="merge: join groups bottom up")


class Colour(Model):
    """Groups by colouring."""

    kind: Literal["colour"] = Field(description="colour: put equal quasi-identifiers into different groups")


class Reuse(Model):
    """The recoding of an earlier run on new rows."""

    kind: Literal["reuse"] = Field(description="reuse: apply the recoding of an earlier run")
    run: File = Field(description="run folder of the earlier run, relative to the config")


Method = Annotated[
    Partition | Lattice | Merge | Colour | Reuse, by_kind(Partition, Lattice, Merge, Colour, Reuse, default="partition")
]


def _within(inner: Path | str, outer: Path | str) -> bool:
    if isinstance(inner, str) or isinstance(outer, str):  # on a store, where paths are plain text
        return f"{inner}/".startswith(f"{outer}/")
    return inner == outer or outer in inner.parents


class Release(Model):
    """What is written, and where."""

    path: Place = Field(
        description="folder for what may be published, relative to the config, or on s3://, gs:// or az://"
    )
    run: File = Field(
        default_factory=lambda data: Path(f"{data['path']}-run"),
        description="local folder for what stays internal, relative to the config; by default the path with -run "
        "added, which a path on a store has not",
    )
    form: Literal["generalized", "bucketized"] = Field(
        "generalized", description="one table of labels, or quasi-identifiers and sensitive values in two tables"
    )
    labels: Literal["generalized", "exact"] | None = Field(
        None, description="bucketized only: quasi-identifiers as labels or as they are; by default as the method needs"
    )
    format: Literal["parquet", "csv"] = Field("parquet", description="file format")
    bounds: bool = Field(
        False, description="true: also NAME_low and NAME_high, the ends of the labels of numbers and dates, typed"
    )
    one_level: bool = Field(
        False, description="true, with method partition: every column at one level, so that its labels do not overlap"
    )
    members: bool = Field(
        True,
        description="true: the run folder keeps, as keyed hashes, who is in which group, so that later releases can be "
        "held against this one; one value per individual and backend local only",
    )
    series: Series = Field(
        None,
        description="several releases that are safe together: `append`, every run adds a part of new individuals, or "
        "`{kind: invariant, m: 3}`, the table is republished whole",
    )

    @model_validator(mode="after")
    def _consistent(self, info: ValidationInfo) -> Self:
        wrong = list(self._misplaced(base_folder(info).resolve()))
        if wrong:
            raise refusal(wrong)
        return self

    @property
    def beside(self) -> Path:
        """Return the local folder beside which a run assembles the release."""
        return self.run if isinstance(self.path, str) else self.path

    def _misplaced(self, base: Path) -> Mistakes:
        if is_store(self.path) and "run" not in self.model_fields_set:
            yield ("run",), mistake("a local folder, because release.path is on a store", found="nothing")
        around = [key for key in ("path", "run") if _within(base, getattr(self, key))]
        for key in around:
            yield (key,), mistake("a folder that does not contain the config; it is replaced as a whole")
        if not around and (_within(self.run, self.path) or _within(self.path, self.run)):
            yield ("run",), mistake("a folder apart from release.path, neither inside the other")
        if self.labels is not None and self.form == "generalized":
            yield ("labels",), mistake("no labels with form generalized; they belong to bucketized")

    def contains(self, path: Path | str) -> bool:
        """Return whether a path lies in one of the two folders, which are replaced as a whole."""
        return _within(path, self.path) or _within(path, self.run)


def _bytes(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    try:
        return parse_size(nonempty(value))
    except ValueError as error:
        raise mistake("a size of at least one byte, such as 2GB or 512MiB") from error


class Limits(Model):
    """What the run may use of the machine."""

    memory: Annotated[int, BeforeValidator(_bytes, json_schema_input_type=Positive | Name)] = Field(
        2_000_000_000, description="memory of the whole process, such as 2GB (10^9 bytes), 512MiB (2^20), or in bytes"
    )
    threads: Annotated[int, Field(ge=1, le=MOST_THREADS)] | None = Field(
        None, description="number of threads; all cores when absent"
    )
    temp: File | None = Field(None, description="folder for the spill, relative to the config")


class Local(Model):
    """This machine."""

    kind: Literal["local"] = Field("local", description="local: DuckDB on this machine")


class Spark(Model):
    """A Spark cluster."""

    kind: Literal["spark"] = Field(description="spark: a Spark cluster")
    master: Name | None = Field(None, description="master URL")
    conf: dict[Name, str] = Field({}, description="Spark settings, as text")


Backend = Annotated[Local | Spark, by_kind(Local, Spark, default="local")]


class Config(Model):
    """Config of an anonymization run; made by `load`."""

    source: Source = Field(
        default_factory=Source.none, description="where the table comes from; needed unless Python passes a table"
    )
    columns: Columns = Field(description="what each column is")
    nulls: Nulls = Field(default_factory=Nulls, description="what missing values mean")
    privacy: list[Privacy] = Field(min_length=1, description="the criteria; all must hold")
    method: Method = Field(default_factory=Partition, description="how the release is searched")
    release: Release = Field(description="what is written, and where")
    limits: Limits = Field(default_factory=Limits, description="what the run may use of the machine")
    backend: Backend = Field(default_factory=Local, description="where the run takes place")
    accept: list[Acceptance] = Field([], description="warnings that are accepted, each with the reason")

    _text: str = PrivateAttr("")
    _base: Path = PrivateAttr(default_factory=Path.cwd)
    _original: dict[str, Any] = PrivateAttr(default_factory=dict)
    _secrets: tuple[tuple[str, str], ...] = PrivateAttr(())
    _trial: str | None = PrivateAttr(None)
    _key: bytes = PrivateAttr(b"")

    @property
    def text(self) -> str:
        """Return the config as written, before variables are put in."""
        return self._text

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the text, in hexadecimal."""
        return hashlib.sha256(self._text.encode()).hexdigest()

    @property
    def base(self) -> Path:
        """Return the folder that relative paths are relative to."""
        return self._base

    @property
    def original(self) -> dict[str, Any]:
        """Return the config as plain JSON data, before variables are put in."""
        return self._original

    @property
    def secrets(self) -> tuple[tuple[str, str], ...]:
        """Return the name and value of every environment variable that was put in."""
        return self._secrets

    @property
    def trial(self) -> str | None:
        """Return the share of the individuals that a trial samples, such as 1%; None if this is no trial."""
        return self._trial

    @property
    def key(self) -> bytes:
        """Return the key of the run from which coins are tossed; nothing before the run has one."""
        return self._key

    def with_key(self, key: bytes) -> Self:
        """Return the config with the key of its run."""
        keyed = self.model_copy()
        keyed._key = key
        return keyed

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        yield "original", self._original

    @field_validator("privacy")
    @classmethod
    def _columns_of_criteria(cls, privacy: list[Criterion], info: ValidationInfo) -> list[Criterion]:
        columns = info.data.get("columns")
        if columns is None:
            return privacy
        wrong = [
            ((index, criterion.name, *loc), said)
            for index, criterion in enumerate(privacy)
            for loc, said in criterion.wrong_columns(columns)
        ]
        if wrong:
            raise refusal(wrong)
        return [criterion.on(columns) for criterion in privacy]

    @field_validator("method")
    @classmethod
    def _column_of_method(cls, method: Model, info: ValidationInfo) -> Model:
        prefer, columns = getattr(method, "prefer", None), info.data.get("columns")
        if isinstance(prefer, InformationGain) and columns and prefer.information_gain not in columns.published():
            hint = closest(prefer.information_gain, columns.published())
            said = mistake("a quasi-identifier, sensitive or kept column", hint)
            raise refusal([(("prefer", "information_gain"), said)])
        return method

    @field_validator("release")
    @classmethod
    def _release_of_columns(cls, release: Release, info: ValidationInfo) -> Release:
        source, columns = info.data.get("source"), info.data.get("columns")
        wrong = list(_form_mistakes(release, columns)) if columns else []
        if source and any(release.contains(path) for path in _source_paths(source)):
            wrong.append((("path",), mistake("folders that do not contain the source; they are replaced as a whole")))
        if wrong:
            raise refusal(wrong)
        return release

    @field_validator("limits")
    @classmethod
    def _spill_apart(cls, limits: Limits, info: ValidationInfo) -> Limits:
        release = info.data.get("release")
        if release and limits.temp and release.contains(limits.temp):
            raise refusal([(("temp",), mistake("a folder outside release.path and release.run"))])
        return limits

    @field_validator("accept")
    @classmethod
    def _known_warnings(cls, accept: list[Acceptance], info: ValidationInfo) -> list[Acceptance]:
        columns = info.data.get("columns")
        names = [columns.individual, *(name for _, name in columns.places())] if columns else []
        wrong = [((at, *loc), said) for at, each in enumerate(accept) for loc, said in each.mistakes(names) if columns]
        if wrong:
            raise refusal(wrong)
        return accept

    @model_validator(mode="after")
    def _published_names(self) -> Self:
        wrong = list(_names_of_bounds(self.columns)) if self.release.bounds else []
        wrong += self._names_of_buckets()
        if wrong:
            raise refusal(wrong)
        return self

    def _names_of_buckets(self) -> list[tuple[Loc, PydanticCustomError]]:
        if self.release.form == "generalized":
            return []
        return [
            (("columns", *loc), mistake("another name; form bucketized writes its own columns `group` and `count`"))
            for loc, name in self.columns.places()
            if loc[0] != "identifiers" and name.lower() in ("group", "count")
        ]


def bounded(builder: BuilderModel) -> bool:
    """Return whether labels of a builder may have bounds: ranges of ordered values, and levels of the calendar."""
    return builder.kind in ("free", "intervals", "calendar")


def _names_of_bounds(columns: Columns) -> Mistakes:
    """Yield the columns that are named like the bounds of another one; DuckDB does not distinguish case."""
    own = {
        f"{name}_{end}".lower(): name
        for name, builder in columns.quasi_identifiers.items()
        if bounded(builder)
        for end in ("low", "high")
    }
    for loc, name in [*columns.places(), (("individual",), columns.individual)]:
        if name.lower() in own:
            expected = f"another name; release.bounds gives it to a bound of {own[name.lower()]}"
            yield ("columns", *loc), mistake(expected, found=f'"{name}"')


def _form_mistakes(release: Release, columns: Columns) -> Mistakes:
    if release.form == "generalized" and columns.multiplicity != "single":
        reason = f"{columns.multiplicity} data are released in bucketized form only"
        yield ("form",), mistake(f"bucketized, because {reason}")
    if release.form == "bucketized" and len(columns.sensitive) != 1:
        yield ("form",), mistake(f"one sensitive column with form bucketized; there are {len(columns.sensitive)}")


def _source_paths(source: Source) -> Iterator[Path | str]:
    if source.duckdb:
        yield source.duckdb.file
    if source.path and is_store(source.path):
        yield source.path[: next((at for at, letter in enumerate(source.path) if letter in "*?["), None)].rstrip("/")
    elif source.path:
        parts = Path(source.path).parts
        fixed = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts))
        yield Path(os.path.realpath(Path(*parts[:fixed])))  # also if it is a link to itself


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the config, for editors."""
    written = Config.model_json_schema(schema_generator=SchemaGenerator)
    return written | {"$schema": SchemaGenerator.schema_dialect, "title": "anon config"}


def tosses_coins(config: Config) -> bool:
    """Return whether a run tosses coins, and needs a key."""
    guarded = isinstance(config.method, Partition) and config.method.guard is not None
    return guarded or any(spec.draws for spec in config.privacy)
