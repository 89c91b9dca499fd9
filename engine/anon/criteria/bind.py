"""From the criteria of the config to criteria bound to the sensitive values of one table: named values become codes,
and a name that is no value of the data is a mistake, because a misspelt value would go unprotected."""

from __future__ import annotations

import difflib

from anon import config as grammar
from anon.criteria.k_anonymity import KAnonymity
from anon.criteria.protocol import Criterion, exact
from anon.criteria.skyline import Point, Skyline
from anon.errors import ConfigError, Problem

Texts = dict[str, list[str | None]]  # per sensitive column its values as text, in code order

CATEGORICAL = (
    "skyline",
    "l_diversity",
    "ck_safety",
    "alpha_k",
    "r_robustness",
)  # values are names to them, not numbers


def bind(privacy: list[grammar.Criterion], texts: Texts, shared: bool = False, absent: bool = False) -> list[Criterion]:
    """The criteria for a table. `shared`: only the verdict matters, not each finding. `absent`: a named value may be
    missing, as from a release that lost it."""
    problems: list[Problem] = []
    bound: list[Criterion] = []
    for index, spec in enumerate(privacy):
        if isinstance(spec, (grammar.KAnonymity, grammar.GroupSize)):
            bound.append(KAnonymity(spec.k, spec.name))
        elif isinstance(spec, grammar.Skyline):
            values = texts[str(spec.sensitive)]
            if not absent and spec.absent is None:
                problems += _unknown(list(spec.values), values, f"privacy[{index}].skyline.values")
            bound.append(Skyline(str(spec.sensitive), _points(spec, values), shared))
    if problems:
        raise ConfigError(problems)
    return bound


def _points(spec: grammar.Skyline, values: list[str | None]) -> list[list[Point]]:
    default = [_point(point) for point in spec.points]
    named = {
        name: [] if isinstance(points, str) else [_point(point) for point in points]
        for name, points in spec.values.items()
    }
    return [default if value is None else named.get(value, default) for value in values]


def _point(point: grammar.Point) -> Point:
    return Point(point.l, point.k, point.m, exact(point.c))


def _unknown(names: list[str], values: list[str | None], path: str) -> list[Problem]:
    """Names that are no values of the data. A near miss is told only where it differs from a value by case or space:
    naming any other value would quote the data."""
    known = {value for value in values if value is not None}
    folded = {value.strip().casefold() for value in known}
    problems = []
    for name in names:
        if name not in known:
            near = "a value differs from it only in case or space" if name.strip().casefold() in folded else ""
            others = difflib.get_close_matches(name, [n for n in names if n in known], n=1)
            hint = near or (f"{others[0]!r} is there" if others else "set `absent: ok` if it may be missing")
            problems.append(Problem(f"{path}.{name}", f"{name!r}", "a value that occurs in the data", hint))
    return problems


def vacuous(spec: grammar.Criterion) -> bool:
    """Whether a criterion holds for every table."""
    return isinstance(spec, (grammar.KAnonymity, grammar.GroupSize)) and spec.k == 1


def protects(spec: grammar.Criterion, column: str) -> bool:
    """Whether a criterion is about the values of a sensitive column."""
    return spec.about_values and spec.sensitive == column
