"""Turn findings into plain data: what `--json` prints and report.json holds. Data values appear only if the config
names them or the user asked for them; others appear by their rank in frequency."""

from __future__ import annotations

from functools import partial
from typing import Any

from anon.config import Config, Skyline
from anon.config import Criterion as Spec
from anon.criteria import Criterion, Finding, Verdict
from anon.criteria.value_names import Names, number
from anon.report.warnings import warnings_of
from anon.source.left_out import LeftOut
from anon.verify.judge import Findings


def _criterion(verdict: Verdict, criterion: Criterion, spec: Spec, found: Findings, names: Names) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "name": verdict.name,
        "safe": verdict.safe,
        "figure": number(verdict.figure),
        "bound": number(verdict.bound),
        "relation": criterion.relation,
        "worst_group": verdict.worst_group if spec.about_groups else None,
    }
    facts |= _located(found, verdict.worst_group) if spec.about_groups else {}
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
        "warnings": warnings_of(config, found, left_out),
    }
