"""Read a published release as LazyFrames of Polars, from its files and its datapackage.json alone, as a recipient
would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anon.errors import ConfigError, SourceError

if TYPE_CHECKING:
    import polars as pl

PACKAGE = "datapackage.json"


def scan(release: Path | str, table: str | None = None) -> pl.LazyFrame:
    """Return one table of a release: `release`, or of a bucketized one `qi` or `sensitive`; the first by default."""
    resources = {each["name"]: each for each in _package(release)["resources"]}
    name = table or next(iter(resources))
    if name not in resources:
        raise ConfigError.at("table", repr(name), f"one of {', '.join(resources)}")
    return _scanned(release, resources[name])


def _package(release: Path | str) -> dict[str, Any]:
    """Return the description of a release, on this machine or on a store."""
    try:
        if isinstance(release, Path):
            content = (release / PACKAGE).read_bytes()
        else:
            from anon.release.stores import content_at

            content = content_at(release, PACKAGE)
        package: dict[str, Any] = json.loads(content)
    except (OSError, ValueError):
        raise SourceError(f"{release}: it has no {PACKAGE} that can be read; give the folder of a release") from None
    return package


def _scanned(release: Path | str, resource: dict[str, Any]) -> pl.LazyFrame:
    import polars as pl

    paths = resource["path"] if isinstance(resource["path"], list) else [resource["path"]]
    places = [str(release / path) if isinstance(release, Path) else f"{release}/{path}" for path in paths]
    if resource["format"] == "parquet":
        return pl.scan_parquet(places, glob=False)
    return pl.scan_csv(places, schema=_csv_types(resource), glob=False)


def _csv_types(resource: dict[str, Any]) -> dict[str, Any]:
    """Return the types of the columns of a CSV file, as the description has them."""
    import polars as pl

    kinds = {
        "integer": pl.Int64, "number": pl.Float64, "date": pl.Date, "datetime": pl.Datetime("us"),
        "boolean": pl.Boolean,
    }  # fmt: skip
    return {field["name"]: kinds.get(field["type"], pl.String) for field in resource["schema"]["fields"]}


# The text of a value in labels of each kind, what stands between two of them, and the type of the bounds.
VALUES = {
    "integer": ("-?[0-9]+", r"(?:\.\.|-)"),
    "number": (r"-?(?:[0-9.]+|inf)", ","),
    "date": ("[0-9]{4}-[0-9]{2}-[0-9]{2}", r"\.\."),
    "timestamp": ("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+", ","),
}


def read(release: Path | str) -> pl.LazyFrame:
    """Return a release with the bounds of its labels: NAME_low and NAME_high after every label of numbers,
    dates or timestamps that is cut freely, read from the labels if the release has no bounds of its own.

    A bucketized release becomes one row for every individual and every sensitive value of their group, with the
    `count` of individuals in the group that have it: which of them is whose is not published."""
    package = _package(release)
    first, *others = package["resources"]
    frame = _with_bounds(_scanned(release, first), package, first)
    for other in others:
        frame = frame.join(_scanned(release, other), on="group", how="left", maintain_order="left_right")
    return frame


def _with_bounds(frame: pl.LazyFrame, package: dict[str, Any], resource: dict[str, Any]) -> pl.LazyFrame:
    """Return a table with bounds after its labels; a release that has bounds, or no labels, as it is."""
    import polars as pl

    cells, names = package.get("cells", {}), [field["name"] for field in resource["schema"]["fields"]]
    if "bounds" in package or not cells:
        return frame
    columns: list[pl.Expr] = []
    for name in names:
        columns.append(pl.col(name))
        about = cells.get(name, {})
        if about.get("kind") in VALUES and "levels" not in about:
            columns += _bounds(name, about["kind"], {*names})
    return frame.select(columns)


def _bounds(name: str, kind: str, taken: set[str]) -> list[pl.Expr]:
    """Return the ends of a column's labels. Ranges without a level cannot be mistaken for a value of another kind."""
    import polars as pl

    if {f"{name}_low", f"{name}_high"} & taken:
        raise ConfigError.at("release", f"a column named like a bound of {name!r}", "a release made with bounds: true")
    value, between = VALUES[kind]
    word = pl.col(name).cast(pl.String).str.strip_prefix("null|")
    low = word.str.extract(rf"^(?:>=|\[)?({value})(?:{between}{value}\)?)?$", 1)
    high = pl.coalesce(
        word.str.extract(rf"^<=?({value})$", 1),
        word.str.extract(rf"^\[?{value}{between}({value})\)?$", 1),
        word.str.extract(rf"^({value})$", 1),
    )
    return [_typed(end, kind).alias(f"{name}_{which}") for end, which in ((low, "low"), (high, "high"))]


def _typed(text: pl.Expr, kind: str) -> pl.Expr:
    import polars as pl

    if kind == "date":
        return text.str.to_date("%Y-%m-%d")
    if kind == "timestamp":
        return text.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f", time_unit="us")
    return text.cast(pl.Int64 if kind == "integer" else pl.Float64)
