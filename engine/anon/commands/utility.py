"""`anon utility`: measure how much of the source a release keeps."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from anon.config import load, without_secrets
from anon.config.support import refuse_unsupported, require_source
from anon.core.database import connect
from anon.core.memory import Memory
from anon.core.progress import Progress
from anon.loss.utility import Original, measure
from anon.runs.options import DEFAULTS, Options, adjusted
from anon.runs.result import Result
from anon.runs.scratch import scratch
from anon.search.dispatch import threads_of
from anon.source import open_grouped, open_source
from anon.verify.grouped import Grouped


@without_secrets(source=True)
def utility(
    config: Any,
    table: Any,
    options: Options = DEFAULTS,
    progress: Progress | None = None,
    predict: str | None = None,
    run: Path | None = None,
) -> Result:
    """Compare a release with the config's source: a path, an Arrow-speaking frame, or a pair (qi, sensitive) of them
    for a bucketized one. `predict` names a column that classifiers learn to predict from it, and
    `run` the run folder whose report shows that, too."""
    config, progress = adjusted(load(config), options), progress or Progress()
    refuse_unsupported(config, run=False)
    require_source(config)
    if predict is not None:
        from anon.loss.prediction import check_target, prediction

        check_target(predict, config.columns)
    if run is not None:
        from anon.runs.predictions import check_run, write_prediction

        check_run(run, table, predict)
    Memory(config.limits.memory).check()
    with (
        scratch(config, progress) as spill,
        closing(connect(config.limits.memory, config.limits.threads, spill)) as database,
    ):
        with progress.stage("read"):
            opened = open_grouped(database, "checked_table", config, table, spill)
            grouped = Grouped.from_opened(database, opened, config.columns)
        with progress.stage("source"):
            source = open_source(database, config, None, spill)
            original = Original.from_source(source, config.columns, threads_of(config))
        with progress.stage("utility"):
            measured = measure(original, grouped, config.privacy, getattr(config.method, "refine", False))
        if predict is not None:
            with progress.stage("predict"):
                memory = Memory(config.limits.memory)
                measured["prediction"] = prediction(original, grouped, config.columns, predict, memory)
        source.check_unchanged()
        people = replace(source.left_out.individuals, suppressed=measured["suppressed"])
        measured["left_out"] = {"individuals": people.to_dict()}
    if run is not None:
        write_prediction(run, measured["prediction"])
    return Result(measured, {"utility": measured})
