"""Add to the report of a run what `anon utility --predict` measured of its release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from anon.artifacts.reading import read_manifest, read_report, sealed_text
from anon.artifacts.schema import Report
from anon.core import disk
from anon.errors import ConfigError
from anon.report.page import render

FIELD = "--run"
FILES = ("release", "qi", "sensitive")


def check_run(run: Path, table: Any, predict: str | None) -> None:
    """Raise ConfigError unless the table is the release of the run, byte for byte, and something is predicted."""
    if predict is None:
        raise ConfigError.at(FIELD, "no --predict", "--predict COLUMN, whose result goes into the report of the run")
    read_report(run)
    published = {name: sha for name, sha in read_manifest(run).release.items() if Path(name).stem in FILES}
    if not isinstance(table, str | Path) or _digests(Path(table), list(published)) != published:
        raise ConfigError.at(FIELD, f"{run}, whose release is not the table", "the run folder of the release in --on")


def _digests(table: Path, names: list[str]) -> dict[str, str]:
    """Return the digests of the files of a release: of those in a folder, or of its only one."""
    places = {name: table / name if table.is_dir() else table for name in names}
    return {name: disk.digest(place) for name, place in places.items() if place.is_file()}


def write_prediction(run: Path, found: dict[str, Any]) -> None:
    """Replace the report of a run by one with the prediction, and render its page again."""
    facts = read_report(run).to_dict()
    facts["utility"]["prediction"] = found
    report = Report.model_validate(facts)
    with disk.errors_at(FIELD, run):
        for name, text in (("report.json", sealed_text(report)), ("report.html", render(report))):
            disk.write_durably(run / name, text.encode())
