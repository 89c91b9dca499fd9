"""Write `datapackage.json`, the Frictionless description for recipients of a release: its files, columns, label
grammar, levels and criteria, and nothing about its source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from anon.config import Columns, Config
from anon.config.private_release import promised
from anon.core.database import translated
from anon.cube import Domain
from anon.recoding.assignment import Assignment
from anon.recoding.levels import AnyRecoding
from anon.release.bounds import ColumnBounds
from anon.source import Column
from anon.source.left_out import Reasons

GRAMMAR = (
    "Quasi-identifiers are published as text labels of cells; `cells` has the kind of each column's values. `*`: not "
    "published. A value by itself: the cell holds that value only. Kinds integer and date: `20-34`, `-5..3` and "
    "`2024-01-01..2024-03-31`, both ends included. Kinds number and timestamp: `[1.5,2.25)`, from the first up to but "
    "not including the second. `<=19`, `<1.5` and `>=85`: open ends. Bounds are round and need not be values of the "
    "table. Kinds text and boolean: `{a|b}`, one of these values; a backslash stands before |, {, } and \\ inside a "
    "value. `null|` before a label: or missing. `not null`: any value that is not missing. Columns with `levels` have "
    "a hierarchy: their labels are values, the names of nodes, and `*`. A missing label: the value is missing; in CSV "
    "it is an empty field without quotes, and an empty text is two quotes."
)
BOUNDS = (
    "Columns with the role `bound` have the ends of the label in the column `of`: `low` and `high`, missing where the "
    "cell is open, not published or a missing value. Both ends are in the cell; only the high end of a range such as "
    "`[1.5,2.25)` or `<1.5` is not. Levels of a calendar have their first and last day."
)
LISTS = " With `cuts` ordered, a label may also list neighbouring nodes, `{a|b}`: a value under one of them."
TRIAL = "A trial on {} of the individuals, which is not the release and not to be published."
FRICTIONLESS = {
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "decimal": {"type": "number"},
    "date": {"type": "date"},
    "timestamp": {"type": "datetime", "format": "any"},
    "boolean": {"type": "boolean"},
}
DIALECT = {"delimiter": ",", "quoteChar": '"', "doubleQuote": True, "lineTerminator": "\n", "header": True}


def write_package(
    folder: Path,
    config: Config,
    resources: list[dict[str, Any]],
    recoding: AnyRecoding | Assignment,
    left_out: Reasons,
    cells: dict[str, Any] | None,
) -> None:
    """Write the description of the files of a release; `left_out` has the individuals who are not in it because of null
    values, `cells` the facts about its labels, if its quasi-identifiers have labels."""
    package: dict[str, Any] = {
        "name": "release" if config.trial is None else "trial",
        **({} if config.trial is None else {"trial": TRIAL.format(config.trial)}),
        "profile": "tabular-data-package" if config.release.format == "csv" else "data-package",
        "resources": resources,
        **({} if cells is None else {"labels": _grammar(cells), "cells": cells}),
        **({"ages_on": days} if (days := _reference_days(config)) else {}),
        **({"bounds": BOUNDS} if config.release.bounds else {}),
        "groups": recoding.groups,
        **_shares(config, recoding, left_out.all),
        "criteria": published_criteria(config),
    }
    text = json.dumps(package, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    with translated("writing the release", disk=True):
        (folder / "datapackage.json").write_text(text, encoding="utf-8")


def _shares(config: Config, recoding: AnyRecoding | Assignment, dropped: int) -> dict[str, Any]:
    """Return the shares of the individuals who are not in the release. Of a differentially private one they are secret:
    it says with which probability somebody was drawn, and how large groups had to be."""
    if (promise := promised(config)) is not None:
        return {"sampling": {"share": float(promise.drawn.share), "smallest_group": promise.drawn.k}}
    individuals = int(recoding.people.sum()) + recoding.suppressed + dropped
    return {"suppressed_share": recoding.suppressed / individuals, "null_share": dropped / individuals}


def _reference_days(config: Config) -> dict[str, str]:
    """Return for each column that is published as ages the day of these ages."""
    columns = config.columns
    builders = columns.quasi_identifiers | {name: spec.builder for name, spec in columns.sensitive.items()}
    days = {name: builder.reference_day for name, builder in builders.items() if builder is not None}
    return {name: day.isoformat() for name, day in days.items() if day is not None}


def _grammar(cells: dict[str, Any]) -> str:
    return GRAMMAR + LISTS if any("cuts" in facts for facts in cells.values()) else GRAMMAR


def resource(path: Path, fields: list[dict[str, str]], rows: int) -> dict[str, Any]:
    """Return the description of one file of a release."""
    format = path.suffix.removeprefix(".")
    described: dict[str, Any] = {
        "name": path.stem,
        "path": path.name,
        "format": format,
        "schema": {"fields": fields, "missingValues": [""]},
        "rows": rows,
    }
    if format == "csv":
        described |= {"profile": "tabular-data-resource", "encoding": "utf-8", "dialect": DIALECT}
    return described


def labels(columns: list[Column], role: str, bounds: list[ColumnBounds] | None = None) -> list[dict[str, str]]:
    """Return the fields of columns that are published as labels, each followed by its bounds."""
    own = [column.fields for column in bounds] if bounds else [[] for _ in columns]
    return [
        field
        for column, ends in zip(columns, own)
        for field in ({"name": column.name, "type": "string", "role": role}, *ends)
    ]


def values(columns: list[Column], role: str) -> list[dict[str, str]]:
    """Return the fields of columns that are published unchanged."""
    return [{"name": c.name, **FRICTIONLESS.get(c.kind, {"type": "string"}), "role": role} for c in columns]


def kept(columns: list[Column], config: Columns) -> list[dict[str, str]]:
    """Return the fields of kept columns, with what is published of those that are aggregated."""
    words = {name: {"description": spec.words} for name, spec in config.aggregate.items()}
    return [field | words.get(field["name"], {}) for field in values(columns, "kept")]


def cells(recoding: AnyRecoding) -> dict[str, Any]:
    """Return the kind of each column's values and the number of distinct cells in which it is published; for a
    hierarchy also its levels (0: the values)."""
    return {domain.column: _cells(domain, recoding, j) for j, domain in enumerate(recoding.domains)}


def published_criteria(config: Config) -> list[dict[str, Any]]:
    """Return the criteria of a config as a release publishes them."""
    found: list[dict[str, Any]] = _without_files(config.original["privacy"])
    return found


def _without_files(value: Any) -> Any:
    """Return criteria as written, without the internal files that they read."""
    if isinstance(value, dict):
        return {key: _without_files(part) for key, part in value.items() if key != "file"}
    return [_without_files(part) for part in value] if isinstance(value, list) else value


def _cells(domain: Domain, recoding: AnyRecoding, j: int) -> dict[str, Any]:
    facts: dict[str, Any] = {"kind": domain.kind, "labels": len(recoding.labels[j].labels)}
    if domain.tree is not None:
        facts["levels"] = recoding.levels_of(j)
        facts |= {"cuts": "ordered"} if domain.ordered else {}
    return facts
