"""Assemble report.json from what the stages of a run found."""

from __future__ import annotations

from typing import Any

import numpy as np

from anon.artifacts.schema import REPORT
from anon.config import Config
from anon.config.support import exact_labels
from anon.core.arrays import Ints
from anon.core.database import translated
from anon.core.progress import Progress
from anon.recoding.assignment import Assignment
from anon.recoding.levels import AnyRecoding, LevelRecoding
from anon.recoding.tree import Recoding
from anon.report.blocking_criteria import blocking
from anon.report.columns import configured_source, level_names, other_columns, roles
from anon.source import Source
from anon.verify.judge import Findings


def report_of(
    config: Config,
    summary: dict[str, Any],
    source: Source,
    found: Findings,
    recoding: AnyRecoding | Assignment,
    utility: dict[str, Any],
    progress: Progress,
) -> dict[str, Any]:
    """Return report.json without what is drawn and without its provenance."""
    return {
        "version": REPORT,
        **({"trial": config.trial} if config.trial else {}),
        "summary": summary,
        "individual": config.columns.individual,
        "multiplicity": config.columns.multiplicity,
        "form": config.release.form,
        "labels": "exact" if exact_labels(config) else "generalized",
        "source": configured_source(config, source),
        "roles": roles(config, source),
        "other_columns": other_columns(source),
        "level_names": level_names(config, recoding.domains),
        "method": {"kind": config.method.kind, **config.original.get("method", {})},
        "privacy": config.original["privacy"],
        "utility": utility,
        **({"lattice": recoding.facts} if isinstance(recoding, LevelRecoding) and recoding.facts else {}),
        "group_sizes": {str(size): count for size, count in sorted(found.sizes.items())},
        "seconds": dict(progress.seconds),
    }


def blocking_of_cuts(found: Findings, recoding: AnyRecoding | Assignment, number: Ints | None = None) -> dict[str, Any]:
    """Return which criteria keep the groups of a tree of cuts from being split further. `number`: the number of each
    group in the files, where that is not the recoding's."""
    if not isinstance(recoding, Recoding) or recoding.reused or found.table is None:
        return {}
    finest = np.ones(recoding.groups, bool)
    for labels in recoding.labels:
        finest &= labels.single
    if number is not None:
        finest = finest[np.argsort(number)]
    with translated("examining the release"):
        return {"blocking": blocking(found.table, found.criteria, finest)}
