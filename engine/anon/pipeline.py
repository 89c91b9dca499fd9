"""The main job: the sequence of its stages. Each stage is a function of what the one before it left; the stages that
touch rows are the backend's (backends/base.py)."""

from __future__ import annotations

from typing import Any

from anon import release
from anon.artifacts.schema import Report
from anon.backends import backend_for
from anon.config import Config, load, redact, without_secrets
from anon.config.support import exact_labels, refuse_unsupported
from anon.core.checkpoint import Checkpoint
from anon.core.memory import Memory
from anon.core.progress import Progress
from anon.criteria.value_names import Names
from anon.recoding.outcome import Outcome
from anon.report import facts
from anon.report.recoding_shape import shape
from anon.report.run_report import blocking_of_cuts, report_of
from anon.report.sensitive_columns import sensitive_columns
from anon.report.warnings import repeated, signed_off
from anon.runs.identity import same_run
from anon.runs.named_files import check_files
from anon.runs.options import DEFAULTS, Options, adjusted
from anon.runs.previous_release import PreviousRelease
from anon.runs.result import Result, refuse_warnings
from anon.runs.run_folder import RunArtifacts, check_places, publish, write_run
from anon.runs.saved_priors import save_estimates
from anon.runs.workspace import StateFolders, locked_release, workspace
from anon.search.prepare import check_not_vacuous
from anon.source import Source
from anon.source.left_out import LeftOut
from anon.verify.judge import Findings, locate_worst


@without_secrets(source=True, replaced=True)
def run(config: Any, table: Any = None, options: Options = DEFAULTS, progress: Progress | None = None) -> Result:
    """Make a verified release of the config's source, or of a table in its place: any Arrow-speaking frame, or with
    backend spark a DataFrame of Spark."""
    config, progress = adjusted(load(config), options), progress or Progress()
    refuse_unsupported(config, run=True)
    check_not_vacuous(config)
    check_files(config, run=True)
    Memory(config.limits.memory).check()
    with locked_release(config, progress) as state:
        return _run(config, table, options, progress, state)


def _run(config: Config, table: Any, options: Options, progress: Progress, state: StateFolders) -> Result:
    """Run the stages, for a config that was checked and a release that is locked."""
    engine, show_values = backend_for(config), options.show_values
    previous, origin = PreviousRelease.read(config, show_values), engine.origin(config, table)
    overwrite = options.overwrite or (config.trial is not None and previous.is_trial)
    current = previous.is_current(origin)
    if current and not options.force:
        return _up_to_date(previous, options, progress)
    check_places(config, overwrite or current or previous.may_be_current(origin))
    with (
        workspace(state, config, progress.run) as work,
        engine.started(config, table, show_values, work, progress) as backend,
    ):
        with progress.stage("source"):
            source = backend.open(origin)
            progress.rows = source.rows
            current = current or previous.is_current(origin)  # what a database holds is known now
            if current and not options.force:
                return _up_to_date(previous, options, progress)
            overwrite = overwrite or current  # by the same bytes
            check_places(config, overwrite)
            identity = same_run(config, source, options.resume, previous.dependencies.files)
            checkpoint = work.begin(identity, options.resume)
            _report_resumed(checkpoint, options, progress)
        with progress.stage("cube"):
            cube = backend.cube(source)
        with progress.stage("search"), backend.at_rest():
            config = save_estimates(config, cube, work.run)
            outcome = backend.search(config, cube, checkpoint)
        with progress.stage("release"):
            written = backend.write(source, cube, outcome)
            left_out = release.left_out(source, outcome.recoding)
            source.check_unchanged()
            progress.rows = written.rows
        files = RunArtifacts.write(work, outcome.recoding, previous)  # before verification reads them
        with progress.stage("verify"):
            found = backend.verify(config, source, cube, outcome, written)
            with backend.at_rest():
                drawn = blocking_of_cuts(found, outcome.recoding, written.number)
        with progress.stage("utility"):
            utility = backend.utility(source, cube, outcome, found)
            if written.lost_by_means:
                utility["aggregated"] = utility.get("aggregated", {}) | written.lost_by_means
        with progress.stage("report"):
            names = Names.from_config(config, found.values, found.frequency, show_values)
            locate_worst(found, show_values)
            drawn |= {"shows_values": show_values, "sensitive": sensitive_columns(found, names)}
            found.close()
            drawn |= shape(outcome.recoding, exact_labels(config), show_values, written.number)
        summary = _summary(config, options, source, found, names, left_out, outcome, files)
        described = report_of(config, summary, source, found, outcome.recoding, utility, progress)
        report = write_run(work, config, source, files, described | drawn)
        publish(work, config, overwrite, files)
    progress.warn(summary["warnings"])
    trial = {"trial": config.trial} if config.trial else {}
    progress.done(rows=summary["rows"], groups=summary["groups"], **trial)
    return _result(config, summary, report)


def _summary(
    config: Config,
    options: Options,
    source: Source,
    found: Findings,
    names: Names,
    left_out: LeftOut,
    outcome: Outcome,
    files: RunArtifacts,
) -> dict[str, Any]:
    """Return the summary of a run with all of its warnings; UnsafeError if warnings count as failures."""
    summary = facts.summary(config, found, names, left_out, outcome.unique)
    every = [*summary["warnings"], *repeated(source.repeated), *files.warnings(found.individuals)]
    summary["warnings"] = signed_off(config, every, all_known=True)
    if options.strict:
        refuse_warnings(summary, "; nothing was published")
    return summary


def _report_resumed(checkpoint: Checkpoint, options: Options, progress: Progress) -> None:
    """Report whether a run resumes from a checkpoint, if that was asked for."""
    if not options.resume:
        return
    steps = checkpoint.steps()
    words = (
        f"resuming after {steps:,} steps of the search" if steps else "no step to resume from; the search starts anew"
    )
    if checkpoint.damaged:
        words = "the checkpoint is damaged; the search starts anew"
    progress.note("resume", words, steps=steps)


def _result(config: Config, summary: dict[str, Any], report: Report) -> Result:
    """Return the result of a run with the places of its files, in which variables keep their names."""
    places = {"trial" if config.trial else "release": config.release.path, "report": config.release.run / "report.html"}
    shown = {name: redact(str(place), config.secrets) for name, place in places.items()}
    return Result(summary, report.to_dict(), config.release.path, config.release.run, shown)


def _up_to_date(previous: PreviousRelease, options: Options, progress: Progress) -> Result:
    """Return the release that is already there, which a run would only make again."""
    assert previous.report is not None
    summary = previous.report.summary.to_dict() | {"up_to_date": True}
    if options.strict:
        refuse_warnings(summary)
    progress.done(up_to_date=True, rows=summary["rows"], groups=summary["groups"])
    return _result(previous.config, summary, previous.report)
