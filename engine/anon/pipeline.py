"""The main job: the sequence of its stages. Each stage is a function of what the one before it left; the stages that
touch rows are the backend's (backends/base.py)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from anon import release
from anon.artifacts.schema import Report
from anon.backends import backend_for
from anon.backends.base import Backend
from anon.config import Append, Config, load, redact, without_secrets
from anon.config.support import exact_labels, refuse_unsupported
from anon.core.checkpoint import Checkpoint
from anon.core.memory import Memory, release_unused
from anon.core.progress import Progress
from anon.criteria.value_names import Names
from anon.errors import ConfigError
from anon.recoding.outcome import Outcome
from anon.release import WrittenRelease
from anon.report import facts
from anon.report.guard import guard_facts
from anon.report.recoding_shape import shape
from anon.report.run_report import blocking_of_cuts, report_of
from anon.report.sensitive_columns import sensitive_columns
from anon.report.warnings import people_warnings, signed_off
from anon.risk.composition import FIRST, PART, composition
from anon.risk.every_attack import attack_run
from anon.risk.overview import Attack
from anon.risk.withstanding import refuse_successful
from anon.runs.identity import same_run
from anon.runs.invariant_ledger import replaces_own
from anon.runs.named_files import check_files, check_levels_of_others
from anon.runs.options import DEFAULTS, Options, adjusted
from anon.runs.previous_release import PreviousRelease
from anon.runs.result import Result, refuse_breaches, refuse_warnings
from anon.runs.run_folder import RunArtifacts, check_places, publish, write_run
from anon.runs.run_key import with_early_key, with_key
from anon.runs.saved_priors import save_estimates
from anon.runs.series.night import MustWait, Night
from anon.runs.series.pool import NobodyNew
from anon.runs.workspace import StateFolders, Workspace, locked_release, workspace
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
    config = with_early_key(config)
    previous, origin = PreviousRelease.read(config, show_values), engine.origin(config, table)
    if isinstance(config.release.series, Append):
        return Series(config, table, options, progress, state, previous).run(Night.begin(config, origin))
    overwrite = options.overwrite or (config.trial is not None and previous.is_trial)
    if config.release.series is not None:
        overwrite = replaces_own(config, previous) or overwrite
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
            check_levels_of_others(config, source.marks)
            current = current or previous.is_current(origin)  # what a database holds is known now
            if current and not options.force:
                return _up_to_date(previous, options, progress)
            overwrite = overwrite or current  # by the same bytes
            check_places(config, overwrite)
            identity = same_run(config, source, options.resume, previous.dependencies.files)
            checkpoint = work.begin(identity, options.resume)
            config = with_key(config, checkpoint, work.run)
            _report_resumed(checkpoint, options, progress)
        made = _make(config, options, backend, source, work, checkpoint, previous)
        publish(work, config, overwrite, made.files)
    return _finished(config, progress, made)


@dataclass(frozen=True)
class Made:
    """A verified release that is not published yet, with the report about it."""

    summary: dict[str, Any]
    report: Report
    files: RunArtifacts
    written: WrittenRelease


def _make(
    config: Config,
    options: Options,
    backend: Backend,
    source: Source,
    work: Workspace,
    checkpoint: Checkpoint,
    previous: PreviousRelease,
    night: Night | None = None,
) -> Made:
    """Run the stages from the cube to the report; of a night of a series, also what its ledger needs to know."""
    progress, show_values = backend.progress, options.show_values
    with progress.stage("cube"):
        cube = backend.cube(source)
    with progress.stage("search"), backend.at_rest():
        config = save_estimates(config, cube, work.run)
        search = partial(backend.search, config, cube, checkpoint)
        outcome = search() if night is None else night.searched(search)
    with progress.stage("release"):
        written = backend.write(source, cube, outcome)
        left_out = release.left_out(source, outcome.recoding)
        if night is not None:
            night.save_people(source, outcome, written, work)
        source.check_unchanged()
        progress.rows = written.rows
    files = RunArtifacts.write(work, outcome.recoding, previous)  # before verification reads them
    with progress.stage("verify"):
        found = backend.verify(config, source, cube, outcome, written)
        with backend.at_rest():
            drawn = blocking_of_cuts(found, outcome.recoding, written.number)
            if night is not None:
                night.note(found)
    with progress.stage("utility"):
        utility = backend.utility(source, cube, outcome, found)
        if written.lost_by_means:
            utility["aggregated"] = utility.get("aggregated", {}) | written.lost_by_means
    with progress.stage("attack"):
        people = backend.people(source, cube, outcome)
        with backend.at_rest():
            attacks = attack_run(config, found, outcome.recoding, people, cube)
        release_unused()  # of the attacks
        names = Names.from_config(config, found.values, found.frequency, show_values)
        locate_worst(found, show_values)
        drawn |= {"shows_values": show_values, "sensitive": sensitive_columns(found, names)}
        found.close()  # the comparison needs the memory
        # people of a part are in no earlier one
        together = backend.together(source, cube, outcome, previous) if night is None else {}
    with progress.stage("report"):
        drawn |= shape(outcome.recoding, exact_labels(config), show_values, written.number)
    files = files if night is None else night.named(work, files)
    summary = _summary(config, options, source, found, names, left_out, outcome, files, attacks, together, night)
    summary |= {"series": series} if (series := backend.series()) else {}
    drawn |= guard_facts(config, outcome)
    described = report_of(config, summary, source, found, outcome.recoding, utility, progress)
    return Made(summary, write_run(work, config, source, files, described | drawn), files, written)


def _finished(config: Config, progress: Progress, made: Made) -> Result:
    """Report the end of a run that published something, and return its result."""
    summary = made.summary
    progress.warn(summary["warnings"])
    trial = {"trial": config.trial} if config.trial else {}
    progress.done(rows=summary["rows"], groups=summary["groups"], **trial)
    return _result(config, summary, made.report)


@dataclass(frozen=True)
class Series:
    """A run that adds a part to a series, or has nobody to publish yet."""

    config: Config
    table: Any
    options: Options
    progress: Progress
    state: StateFolders
    previous: PreviousRelease

    def run(self, night: Night) -> Result:
        """Add the part of a night. If its people cannot be published safely, those who came this night are tried
        without those who waited; if they cannot either, everybody waits."""
        if self.options.overwrite:
            expected = "no --overwrite: published parts do not change; a new series needs other folders"
            raise ConfigError.at("--overwrite", "a series", expected)
        if night.is_current(self.previous.dependencies) and not self.options.force:
            return self._up_to_date(night)
        result = self._attempt(night) or self._attempt(night.alone())
        assert result is not None  # a night of fewer people has one
        return result

    def _attempt(self, night: Night) -> Result | None:
        """Return the result of a night, None if it is to be tried with fewer people."""
        config, options, progress, previous = night.config, self.options, self.progress, self.previous
        engine = backend_for(config)
        with (
            workspace(self.state, config, progress.run) as work,
            engine.started(config, self.table, options.show_values, work, progress) as backend,
        ):
            backend.earlier, reason = night.look_back(work.spill), ""
            try:
                with progress.stage("source"):
                    source = backend.open(night.pool)
                    progress.rows = source.rows
                    checkpoint = work.begin(*night.identity(source, options.resume, previous.dependencies.files))
                    _report_resumed(checkpoint, options, progress)
                made = _make(config, options, backend, source, work, checkpoint, previous, night)
                night.publish(work, made.files, made.summary, made.written)
                return _finished(config, progress, made)
            except NobodyNew:
                pass
            except MustWait as error:
                if night.can_be_smaller:
                    return None
                reason = str(error)
                night.save_all_waiting(source, work)
            night.publish_waiting(work, previous.dependencies)
        return self._nothing_published(night, reason)

    def _nothing_published(self, night: Night, reason: str) -> Result:
        """Return the result of a night without a part."""
        series = night.facts(None)
        if reason:
            self.progress.note("waiting", f"{series['waiting']:,} individuals wait: {reason}")
        self.progress.done(rows=0, groups=0)
        summary = {"safe": True, "rows": 0, "individuals": 0, "groups": 0, "suppressed": 0, "criteria": []}
        return self._without_part(summary | {"warnings": [], "series": series} | ({"reason": reason} if reason else {}))

    def _up_to_date(self, night: Night) -> Result:
        """Return the result of a night whose source and config are those of the night before."""
        series = night.facts(None) | {"waiting": night.before.waiting.individuals}
        summary = {} if self.previous.report is None else self.previous.report.summary.to_dict()
        self.progress.done(up_to_date=True, rows=summary.get("rows", 0), groups=summary.get("groups", 0))
        return self._without_part({"safe": True, "warnings": []} | summary | {"series": series, "up_to_date": True})

    def _without_part(self, summary: dict[str, Any]) -> Result:
        places = {"release": redact(str(self.config.release.path), self.config.secrets)}
        return Result(summary, {}, self.config.release.path, self.config.release.run, places)


def _summary(
    config: Config,
    options: Options,
    source: Source,
    found: Findings,
    names: Names,
    left_out: LeftOut,
    outcome: Outcome,
    files: RunArtifacts,
    attacks: list[Attack],
    together: dict[str, Any],
    night: Night | None,
) -> dict[str, Any]:
    """Return the summary of a run with all of its warnings; UnsafeError if warnings count as failures."""
    summary = facts.summary(config, found, names, left_out, outcome.unique)
    every = [*summary["warnings"], *people_warnings(config, source)]
    if night is None:
        every += files.warnings(found.individuals, together)
    else:
        summary["series"] = night.facts(night.number)
    summary |= {"together": together} if together else {}
    summary["warnings"] = signed_off(config, every, all_known=True)
    bound = min((attack.bound for attack in attacks if attack.bound is not None), default=None)
    alone = PART if night is not None else "" if files.before.differs_from(files.release) else FIRST
    every_attack = [*attacks, composition(together, bound, alone)]
    refuse_successful(config, every_attack)
    summary["attacks"] = [attack.to_dict() for attack in every_attack]
    if options.strict:
        refuse_warnings(summary, "; nothing was published")
        refuse_breaches(summary, "; nothing was published")
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
        refuse_breaches(summary)
    progress.done(up_to_date=True, rows=summary["rows"], groups=summary["groups"])
    return _result(previous.config, summary, previous.report)
