"""Turn findings into plain data: what `--json` prints and report.json holds. Data values appear only if the config
names them or the user asked for them; others appear by their rank in frequency."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from anon.config import Config, Skyline
from anon.config import Criterion as Spec
from anon.criteria import Criterion, Finding, RRobustness, Verdict
from anon.criteria.value_names import Names, number
from anon.report.warnings import UNIQUE_SHARE, Warned, value_warnings
from anon.source.left_out import LeftOut
from anon.verify.judge import FEW, NEARLY, Findings

HOMOGENEOUS_SHARE = 0.05
OF_ALL_KEPT = {"kept_identifies": "kept_identify_together", "kept_reveals": "kept_reveal_together"}


def _criterion(verdict: Verdict, criterion: Criterion, spec: Spec, found: Findings, names: Names) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "name": verdict.name,
        "safe": verdict.safe,
        "figure": number(verdict.figure),
        "bound": number(verdict.bound),
        "relation": criterion.relation,
        "worst_group": verdict.worst_group,
    }
    facts |= _located(found, verdict.worst_group)
    if criterion.column is not None or criterion.columns:
        facts["sensitive"] = criterion.column or list(criterion.columns)
    facts |= criterion.details(verdict, partial(names.of_value, criterion.column))
    for point in facts.get("points", []):
        point |= _located(found, point["worst_group"])
    if isinstance(spec, Skyline) and (exempt := [value for value, said in spec.values.items() if said == "exempt"]):
        facts["exempt"] = exempt
    failed = [] if "points" in facts else [_failure(f, criterion, names) for f in verdict.findings if not f.safe]
    return facts | ({"failed": failed} if failed else {})


def _located(found: Findings, group: int) -> dict[str, Any]:
    """Return where a group is in the release, and its labels if they may be shown."""
    rows = {"worst_rows": found.places[group]} if group in found.places else {}
    return rows | ({"worst_labels": found.labels[group]} if group in found.labels else {})


def _failure(finding: Finding, criterion: Criterion, names: Names) -> dict[str, Any]:
    """Return one demand of a criterion that a table does not meet."""
    return {
        "text": criterion.refusal(finding, partial(names.of_value, criterion.column)),
        "figure": number(finding.figure),
        "bound": number(finding.bound),
        "worst_group": finding.group,
    }


def warnings(config: Config, found: Findings, left_out: LeftOut) -> list[dict[str, Any]]:
    """Return what the criteria of the config do not cover, each with the number of those concerned."""
    listed: list[dict[str, Any]] = []

    def warn(code: str, count: int, text: str, column: str | None = None) -> None:
        if count:
            listed.append(Warned(code, count, text, column).to_dict())

    for column in config.columns.sensitive:
        if not any(spec.protects(column) for spec in config.privacy):
            text = f"rows with a value of {column}, which no criterion protects"
            warn("unprotected_sensitive", found.rows, text, column)
    vacuous_criteria = [spec.name for spec in config.privacy if spec.vacuous()]
    warn("vacuous_criterion", len(vacuous_criteria), f"criteria that are always true: {', '.join(vacuous_criteria)}")
    for criterion in found.criteria:
        for prior in criterion.priors if isinstance(criterion, RRobustness) else ():
            missing = len(prior.values) - len(prior.named)
            text = "that a prior does not name: it only separates each named value from the rest"
            warn("binary_prior", missing, f"values of {criterion.column} {text}", criterion.column)
    warn("homogeneous_groups", found.homogeneous_rows, "individuals in groups of one sensitive value")
    near = f"individuals in groups where at least {NEARLY:.0%} share one sensitive value that most people do not have"
    warn("nearly_homogeneous", found.nearly_homogeneous_rows, near)
    warn("groups_under_5", found.under_5, f"individuals in groups of fewer than {FEW}")
    warn("rows_dropped", left_out.rows.null, "rows dropped because of missing values")
    for each in (*_of_kept(found), *value_warnings(config, found)):
        warn(each.code, each.count, each.text, each.column)
    return listed


def _of_kept(found: Findings) -> Iterator[Warned]:
    """Yield the warnings about single kept columns, and about all of them together if no single one causes the same
    warning."""
    warned = set()
    for column, facts in found.with_kept.items():
        for warning in _knowing(found, facts, column):
            yield replace(warning, column=column)
            warned |= {warning.code} if warning.count else set()
    for warning in _knowing(found, found.with_all_kept, "all kept columns"):
        if warning.code not in warned:
            yield replace(warning, code=OF_ALL_KEPT[warning.code])


def _knowing(found: Findings, facts: dict[str, float], known: str) -> Iterator[Warned]:
    """Yield the warnings about an adversary who also knows one kept column, or all of them."""
    people = found.individuals
    if not facts:
        return
    if facts["unique_share"] > UNIQUE_SHARE:
        text = f"individuals unique in their group for an adversary who also knows {known}"
        yield Warned("kept_identifies", round(facts["unique_share"] * people), text)
    if facts["homogeneous_share"] > max(HOMOGENEOUS_SHARE, found.homogeneous_rows / people):
        text = f"individuals whose sensitive value is certain for an adversary who also knows {known}"
        yield Warned("kept_reveals", round(facts["homogeneous_share"] * people), text)


def summary(
    config: Config, found: Findings, names: Names, left_out: LeftOut, unique_before: int | None = None
) -> dict[str, Any]:
    """Return the JSON of `run` and `check`."""
    return {
        **({"trial": config.trial} if config.trial else {}),
        "safe": found.safe,
        "rows": found.rows,
        "individuals": found.individuals,
        "groups": found.groups,
        "suppressed": left_out.individuals.suppressed,
        "left_out": left_out.to_dict(),
        "criteria": [
            _criterion(verdict, criterion, spec, found, names)
            for verdict, criterion, spec in zip(found.verdicts, found.criteria, config.privacy)
        ],
        "risk": {
            "highest": 1 / found.smallest,
            "mean": found.groups / found.individuals,
            "under_5": found.under_5,
            "unique_before": unique_before,
            "homogeneous_rows": found.homogeneous_rows,
        },
        "with_kept": found.with_kept,
        "warnings": warnings(config, found, left_out),
    }
