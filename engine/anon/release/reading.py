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

    place = release / resource["path"] if isinstance(release, Path) else f"{release}/{resource['path']}"
    if resource["format"] == "parquet":
        return pl.scan_parquet(place / "*.parquet" if isinstance(place, Path) and place.is_dir() else place)
    return pl.scan_csv(place, schema=_csv_types(resource))


def _csv_types(resource: dict[str, Any]) -> dict[str, Any]:
    """Return the types of the columns of a CSV file, as the description has them."""
    import polars as pl

    kinds = {
        "integer": pl.Int64, "number": pl.Float64, "date": pl.Date, "datetime": pl.Datetime("us"),
        "boolean": pl.Boolean,
    }  # fmt: skip
    return {field["name"]: kinds.get(field["type"], pl.String) for field in resource["schema"]["fields"]}
