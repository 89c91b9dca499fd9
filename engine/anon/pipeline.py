"""The main job from end to end (config -> source -> cube -> search -> release -> verify -> report), and the check of a
table that is already grouped. `run` is the way of the data; what follows it are the checks on the way."""

from __future__ import annotations

import hashlib
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from anon import cube as cubes
from anon import release
from anon.config import (
    MOST_THREADS,
    Config,
    InformationGain,
    LDiversity,
    PriorEstimate,
    PriorFile,
    Release,
    Reuse,
    RRobustness,
    Variational,
    load,
    parse_size,
    redact,
    telling_no_secrets,
)
from anon.config.absent import for_release
from anon.config.support import exact_labels, refuse_unsupported
from anon.config.trial import as_trial
from anon.core.checkpoint import Checkpoint
from anon.core.database import at_rest, connect, limit, translated
from anon.core.memory import Memory
from anon.core.progress import Progress
from anon.core.terminal import one_line
from anon.core.text import text
from anon.criteria import CATEGORICAL, always_holds, check_names, named_values, protects
from anon.criteria import RRobustness as BoundRRobustness
from anon.criteria.priors import write_prior
from anon.cube import Combinations, Combined, Cube, Room, Tuples, Widened, records
from anon.errors import ConfigError, Problem, UnsafeError
from anon.explanation.blocking import blocking
from anon.loss.utility import Original, measure, of_run
from anon.recoding.assignment import Assignment
from anon.recoding.levels import AnyRecoding, LevelRecoding
from anon.recoding.tree import Ints, Recoding, refuse_values_like_labels
from anon.report import VERSION, facts
from anon.report.sensitive import sensitive_columns
from anon.report.shape import shape
from anon.report.warnings import repeated
from anon.runs.named_files import check_files
from anon.runs.previous import Standing
from anon.runs.publish import Left, check_places, publish, write_run
from anon.runs.saved_priors import save_estimates
from anon.runs.scratch import scratch
from anon.runs.workspace import State, held, workspace
from anon.search import budget
from anon.search.dispatch import memory_of, searched, threads_of
from anon.source import Column, Source, count_distinct, open_grouped, open_source
from anon.source.left_out import LeftOut
from anon.source.origins import origin_of
from anon.source.persons import refuse_person_keys
from anon.verify import content, judge
from anon.verify.grouped import Grouped

if TYPE_CHECKING:
    import duckdb

    from anon.recoding.outcome import Outcome

MANY_NAMES = 65_537  # distinct values that no cube holds
MANY_NUMBERS = 1_000  # distinct values; more of them are hardly categories
NUMBERS = ("integer", "number", "decimal")
STEPS = 3  # the form of the steps of a search that a checkpoint holds; others are not gone on with


@dataclass(frozen=True)
class Options:
    """What a caller may set beside the config."""

    out: Path | None = None
    memory: int | None = None
    threads: int | None = None
    overwrite: bool = False
    resume: bool = False
    force: bool = False
    sample: str | None = None  # of `run`: a trial on this share of the individuals, such as 1%
    show_values: bool = False
    strict: bool = False
    prior: Path | None = None  # of `check`: stands in for the priors of the config
    save_priors: Path | None = None  # of `check`: the folder for the priors that it estimates

    @classmethod
    def of(cls, **given: Any) -> Options:
        """Options as users give them: paths and sizes may be text."""
        known = [field.name for field in fields(cls)]
        problems = [
            Problem(name, "an unknown option", f"one of {', '.join(known)}") for name in given if name not in known
        ]
        threads, memory = given.get("threads"), given.get("memory")
        if threads is not None and (not isinstance(threads, int) or not 1 <= threads <= MOST_THREADS):
            problems.append(Problem("threads", repr(threads), f"a whole number of 1 to {MOST_THREADS:,}"))
        if isinstance(memory, str):
            try:
                given["memory"] = parse_size(memory)
            except ValueError:
                problems.append(Problem("memory", repr(memory), "a size such as 512MB or 4GB"))
        if problems:
            raise ConfigError(problems)
        paths = {name: Path(given[name]) for name in ("out", "prior", "save_priors") if given.get(name) is not None}
        return cls(**(given | paths))


DEFAULTS = Options()


@dataclass(frozen=True)
class Result:
    """What a run or a check found; `report` holds more than `to_dict`."""

    facts: dict[str, Any]
    report: dict[str, Any]
    release: Path | str | None = None
    run: Path | None = None
    places: dict[str, str] = field(default_factory=dict)  # what a run left, and where, for people to read

    @property
    def safe(self) -> bool:
        return bool(self.facts["safe"])

    def to_dict(self) -> dict[str, Any]:
        return self.facts


@telling_no_secrets(source=True)
def run(config: Any, table: Any = None, options: Options = DEFAULTS, progress: Progress | None = None) -> Result:
    """Source to verified release. `table` stands in for the config's source: any Arrow-speaking frame."""
    config, progress = adjusted(load(config), options), progress or Progress()
    refuse_unsupported(config, run=True)
    check_not_vacuous(config)
    check_files(config, run=True)
    Memory(config.limits.memory).check()
    with held(config, progress) as state:
        if config.backend.kind == "spark":
            from anon.backends.spark import job

            return job.run(config, table, options, progress, state)
        return _run(config, table, options, progress, state)


def _run(config: Config, table: Any, options: Options, progress: Progress, state: State) -> Result:
    """The same by the local engine, for a config that was checked and a release that is locked."""
    limits = config.limits
    before, origin = Standing.of(config, options.show_values), origin_of(config, table)
    overwrite = options.overwrite or (config.trial is not None and bool(before.manifest.get("trial")))
    current = before.is_current(origin)
    if current and not options.force:
        return up_to_date(before, options, progress)
    check_places(config, overwrite or current or before.may_be_current(origin))
    with (
        workspace(state, config, progress.run) as work,
        closing(connect(limits.memory, limits.threads, work.spill)) as con,
    ):
        with progress.stage("source"):
            source = open_source(con, config, origin, work.spill)
            progress.rows = source.rows
            current = current or before.is_current(origin)  # what a database holds is known now
            if current and not options.force:
                return up_to_date(before, options, progress)
            overwrite = overwrite or current  # by the same bytes
            check_places(config, overwrite)
            checkpoint = work.begin(same_run(config, source, options.resume, before.about), options.resume)
            tell_resumed(checkpoint, options, progress)
        with progress.stage("cube"):
            place = partial(records.make, Memory(limits.memory).records, work.spill)
            cube = build_cube(config, source, Room(place, threads_of(config), partial(progress.update, "cube")))
            memory_of(config, cube).check("values")
        with progress.stage("search"), at_rest(con):
            config = save_estimates(config, cube, work.run)
            tell = partial(progress.update, "search")
            outcome = searched(config, cube, work.spill, checkpoint, options.show_values, tell)
        memory = Memory(limits.memory, cube.held + outcome.nbytes)
        memory.check()
        limit(con, memory)
        with progress.stage("release"):
            sensitive = [cube.domain(column.name) for column in source.sensitive]
            written = release.write(source, outcome, sensitive, config, work.release, work.spill)
            left_out = release.left_out(source, outcome.recoding)
            source.check_unchanged()
            progress.rows = written.rows
        left = Left.by(work, outcome.recoding, before)  # before verification reads the files
        with closing(connect(limits.memory, limits.threads, work.spill, held=memory.held)) as outsider:
            with progress.stage("verify"):
                expected = content.expected(source, config, work.run / "recoding.json", outcome, sensitive, memory)
                with at_rest(con):
                    found = judge.verify(outsider, written, config, expected)
                    blocked = blocking_of(found, outcome.recoding, written.number)
            with progress.stage("utility"):
                multiplicity = config.columns.multiplicity
                original = Original(source, cube.domains, sensitive, multiplicity, threads_of(config))
                assert found.table is not None
                measured = of_run(original, found.table, outcome.recoding, exact_labels(config), memory)
            with progress.stage("report"):
                names = facts.Names.of(found, config, options.show_values)
                drawn = {"shows_values": options.show_values, "sensitive": sensitive_columns(found, names)}
                outsider.close()  # with all that it holds of the groups
                drawn |= shape(outcome.recoding, exact_labels(config), options.show_values, written.number)
        told = summed_up(config, options, source, found, names, left_out, outcome, left)
        report = report_of(config, told, found, outcome.recoding, measured, progress) | blocked | drawn
        write_run(work, config, source, left, report)
        publish(work, config, overwrite, left)
    return ended(config, told, report, progress)


def summed_up(
    config: Config,
    options: Options,
    source: Source,
    found: judge.Findings,
    names: facts.Names,
    left_out: LeftOut,
    outcome: Outcome,
    left: Left,
) -> dict[str, Any]:
    """The summary of a run with all that it warns of; UnsafeError if warnings count as failures."""
    told = facts.summary(config, found, names, left_out, outcome.unique)
    told["warnings"] += repeated(source.repeated)
    told["warnings"] += left.warnings(found.individuals)
    if options.strict:
        refuse_warnings(told, "; nothing was published")
    return told


def ended(config: Config, told: dict[str, Any], report: dict[str, Any], progress: Progress) -> Result:
    """The result of a run that has published its release, which is told."""
    progress.warn(told["warnings"])
    progress.done(rows=told["rows"], groups=told["groups"], **({"trial": config.trial} if config.trial else {}))
    return _result(config, told, report)


def _result(config: Config, told: dict[str, Any], report: dict[str, Any]) -> Result:
    """Return the result of a run with the places of what it left, in which variables keep their names."""
    release = config.release
    places = {"trial" if config.trial else "release": release.path, "report": release.run / "report.html"}
    shown = {name: redact(str(place), config.secrets) for name, place in places.items()}
    return Result(told, report, release.path, release.run, shown)


def up_to_date(before: Standing, options: Options, progress: Progress) -> Result:
    """The release that stands there, which a run would only make again."""
    told = before.report["summary"] | {"up_to_date": True}
    if options.strict:
        refuse_warnings(told)
    progress.done(up_to_date=True, rows=told["rows"], groups=told["groups"])
    return _result(before.config, told, before.report)


@telling_no_secrets(source=False)
def check(config: Any, table: Any, options: Options = DEFAULTS, progress: Progress | None = None) -> Result:
    """Judges a table that is already grouped: a path, an Arrow-speaking frame, or a pair (qi, sensitive) of them for a
    bucketized one. Never reads the config's source."""
    config, progress = adjusted(load(config, run=False), options), progress or Progress()
    refuse_unsupported(config, run=False, spreads=True)
    Memory(config.limits.memory).check()
    config = for_release(config, table)
    if options.prior is not None:
        config = _with_prior(config, options.prior)
    check_files(config, run=False)
    prior_files = _prior_files(config, options.save_priors) if options.save_priors is not None else []
    with (
        scratch(config, progress) as spill,
        closing(connect(config.limits.memory, config.limits.threads, spill)) as con,
    ):
        if config.backend.kind == "spark":
            from anon.backends.spark import check as cluster

            found, left_out = cluster.examined(con, config, table, options.show_values, progress)
        else:
            found, left_out = _examined(con, config, table, spill, options, progress)
        _save_priors(config, found, prior_files)
    names = facts.Names.of(found, config, options.show_values)
    told = facts.summary(config, found, names, left_out)
    progress.warn(told["warnings"])
    return Result(told, {"sizes": found.sizes})


def _examined(
    con: duckdb.DuckDBPyConnection, config: Config, table: Any, spill: Path, options: Options, progress: Progress
) -> tuple[judge.Findings, LeftOut]:
    """What is found in a grouped table, and what of it was left out for null values."""
    with progress.stage("read"):
        opened = open_grouped(con, "checked_table", config, table, spill)
        distinct = [count_distinct(con, opened.values, column.sql) for column in opened.sensitive]
        check_sensitive_numbers(config, opened.sensitive, distinct)
        grouped = Grouped.opened(con, opened, config.columns)
    with progress.stage("check"):
        found = judge.examine(grouped, config)
        if options.show_values:
            judge.tell_labels(grouped, found)
    return found, opened.left_out


@telling_no_secrets(source=True)
def utility(config: Any, table: Any, options: Options = DEFAULTS, progress: Progress | None = None) -> Result:
    """Holds a release against the config's source: a path, an Arrow-speaking frame, or a pair (qi, sensitive) of them
    for a bucketized one."""
    config, progress = adjusted(load(config, run=False), options), progress or Progress()
    refuse_unsupported(config, run=False)
    Memory(config.limits.memory).check()
    with (
        scratch(config, progress) as spill,
        closing(connect(config.limits.memory, config.limits.threads, spill)) as con,
    ):
        with progress.stage("read"):
            opened = open_grouped(con, "checked_table", config, table, spill)
            grouped = Grouped.opened(con, opened, config.columns)
        with progress.stage("source"):
            source = open_source(con, config, None, spill)
            original = Original.of(source, config.columns, threads_of(config))
        with progress.stage("utility"):
            told = measure(original, grouped)
            source.check_unchanged()
        people = replace(source.left_out.individuals, suppressed=told["suppressed"])
        told["left_out"] = {"individuals": people.to_dict()}
    return Result(told, {"utility": told})


def refuse_warnings(told: dict[str, Any], then: str = "") -> None:
    """UnsafeError if there are warnings: what --strict asks for."""
    if told["warnings"]:
        lines = [f"  {w['code']}: {w['count']:,} {one_line(w['text'])}" for w in told["warnings"]]
        raise UnsafeError("\n".join([f"warnings count as failures (--strict){then}", *lines]))


def tell_resumed(checkpoint: Checkpoint, options: Options, progress: Progress) -> None:
    """Says whether a run goes on from a checkpoint, to whoever asked for it."""
    if not options.resume:
        return
    steps = checkpoint.steps()
    words = "there is no step of this run to go on from: its search begins anew"
    if checkpoint.damaged:
        words = "the checkpoint is damaged: its search begins anew"
    progress.note("resume", f"it goes on after {steps:,} steps of its search" if steps else words, steps=steps)


def adjusted(config: Config, options: Options) -> Config:
    """The config with what the command line says instead."""
    limits = {name: value for name in ("memory", "threads") if (value := getattr(options, name)) is not None}
    places = config.release if options.out is None else _places(config, options.out.resolve())
    changed = config.model_copy(update={"limits": config.limits.model_copy(update=limits), "release": places})
    return changed if options.sample is None else as_trial(changed, options.sample)


def _places(config: Config, out: Path) -> Release:
    """The release at another place, which like the config's own may not hold what the run needs."""
    if any(part in ("s3:", "gs:", "az:") for part in out.parts):  # the command line takes one of the slashes away
        raise ConfigError.at("--out", "a place on a store", "a local folder; release.path names one on a store")
    release = config.release.model_copy(update={"path": out, "run": Path(f"{out}-run")})
    needed = [config.base, config.limits.temp, config.source.path]
    if any(path is not None and release.contains(Path(path)) for path in needed):
        expected = "a folder without the config, the source and the spill; it is replaced as a whole"
        raise ConfigError.at("--out", str(out), expected)
    return release


def _with_prior(config: Config, file: Path) -> Config:
    """The config with one prior from a file in place of those it names."""
    if not any(isinstance(spec, RRobustness) for spec in config.privacy):
        raise ConfigError.at("--prior", str(file), "a config with r_robustness, whose priors it stands in for")
    prior = {"priors": [PriorFile(file=file.resolve())]}
    privacy = [spec.model_copy(update=prior) if isinstance(spec, RRobustness) else spec for spec in config.privacy]
    return config.model_copy(update={"privacy": privacy})


def _prior_files(config: Config, folder: Path) -> list[Path]:
    """Where the priors that the config estimates are saved; files that exist are not written over."""
    listed = [prior for spec in config.privacy if isinstance(spec, RRobustness) for prior in spec.priors]
    estimated = sum(isinstance(prior, PriorEstimate) for prior in listed)
    if not estimated:
        raise ConfigError.at("--save-priors", str(folder), "a config with r_robustness that estimates a prior")
    files = [folder / f"prior-{number}.csv" for number in range(1, estimated + 1)]
    there = [file for file in files if file.exists() or file.is_symlink()]
    if there:
        raise ConfigError.at("--save-priors", f"{there[0]}, which exists", "a folder without priors")
    return files


def _save_priors(config: Config, found: judge.Findings, files: list[Path]) -> None:
    """Writes the estimated priors in the order of the config."""
    estimated = [
        bound
        for spec, criterion in zip(config.privacy, found.criteria)
        if isinstance(spec, RRobustness) and isinstance(criterion, BoundRRobustness)
        for given, bound in zip(spec.priors, criterion.priors)
        if isinstance(given, PriorEstimate)
    ]
    for prior, file in zip(estimated, files):
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            wrong = f"{file.parent}, which cannot be made ({error.strerror})"
            raise ConfigError.at("--save-priors", wrong, "a folder that can be written") from error
        with translated("saving priors"):
            write_prior(prior, file)


def build_cube(config: Config, source: Source, room: Room) -> Cube:
    """The cube that a run searches."""
    refuse_person_keys(source.persons)
    _check_names(config, source)
    builders = list(config.columns.quasi_identifiers.values())
    cube = cubes.build(source, builders, _target(config), _combined(config), room, *_widened(config, source))
    check_sensitive_numbers(config, source.sensitive, [domain.size for domain in cube.others])
    if not exact_labels(config):
        refuse_values_like_labels(cube.domains)
    return cube


def _check_names(config: Config, source: Source) -> None:
    """A protected value that is misspelt is told before the table is read for the cube: from one column of it."""
    about = {spec.sensitive for spec in config.privacy if named_values(spec)}
    texts: dict[str, list[str | None]] = {}
    for column in source.sensitive:
        if column.name in about:
            values = source.distinct(column, MANY_NAMES)
            if len(values) == MANY_NAMES:
                return  # the cube refuses so many
            texts[column.name] = [None if value is None else text(value) for value in values.to_pylist()]
    if texts:
        check_names(config.privacy, texts)


def _target(config: Config) -> str | None:
    prefer = getattr(config.method, "prefer", None)
    return prefer.information_gain if isinstance(prefer, InformationGain) else None


def _combined(config: Config) -> list[Combined]:
    """The combinations of sensitive columns that criteria look at."""
    found: dict[Combined, None] = {}
    for spec in config.privacy:
        others = tuple(name for name in config.columns.sensitive if name != spec.sensitive)
        if isinstance(spec, LDiversity) and spec.joint and others:
            found[Combinations, (*others, str(spec.sensitive))] = None
        if isinstance(distance := getattr(spec, "distance", None), Variational):
            found[Tuples, tuple(distance.columns)] = None
    return list(found)


def same_run(config: Config, source: Source, resume: bool, about: dict[str, Any]) -> dict[str, Any]:
    """Return what must not have changed when a run that was stopped is resumed. `about`: see `standing.about`."""
    if resume and not source.marks:
        raise ConfigError.at("resume", "a table in memory", "a source with a path, which can be seen to be the same")
    files = [[redact(name, config.secrets), size, changed] for name, size, changed in source.marks]
    made_by = f"{version('anon-engine')}, steps {STEPS}, block {budget.BLOCK}"
    return {
        "config": f"{config.digest}, {_digest_of_settings(config)}",
        "files": about["files"],
        "source": files,
        "version": made_by,
        "trial": config.trial,
    }


def _digest_of_settings(config: Config) -> str:
    """Return a digest of what a search depends on, with the values of variables, which may have changed. It takes
    some time to compute, because it must not give away a value of few letters."""
    settings = repr((config.columns, config.nulls, config.privacy, config.method))
    return hashlib.pbkdf2_hmac("sha256", settings.encode(), config.digest.encode(), 10_000).hex()


def check_not_vacuous(config: Config) -> None:
    if all(always_holds(spec) for spec in config.privacy):
        raise ConfigError.at("privacy", "only criteria that are always true", "a criterion that can fail")


def check_sensitive_numbers(config: Config, columns: list[Column], distinct: list[int]) -> None:
    """Numbers that differ by a cent are different values to a categorical criterion: everybody would look protected.
    `distinct` counts the values of each sensitive column. Where the config rounds a column, labels it or calls its
    numbers categories, that was decided."""
    problems = []
    for column, count in zip(columns, distinct):
        spec = config.columns.sensitive[column.name]
        about = [criterion for criterion in config.privacy if protects(criterion, column.name)]
        many = column.kind == "number" or (column.kind in NUMBERS and count > MANY_NUMBERS)
        categorical = bool(about) and all(criterion.name in CATEGORICAL for criterion in about)
        chosen = spec.as_categories or spec.round is not None or spec.builder is not None
        if many and categorical and not chosen:
            found = f"numbers with {count:,} distinct values, which {about[0].name} takes for categories"
            expected, hint = "`round`, or a criterion for numbers", "or mark it `as_categories: true`"
            problems.append(Problem(f"columns.sensitive.{column.name}", found, expected, hint))
    if problems:
        raise ConfigError(problems)


def _widened(config: Config, source: Source) -> list[Widened]:
    """For a recoding that is reused: adds the values that it speaks of to the domains."""
    if not isinstance(config.method, Reuse):
        return []
    from anon.search.reuse import Earlier

    earlier = Earlier.of(config.method.run)
    earlier.check_columns(source.quasi_identifiers)
    return [earlier.widened]


def blocking_of(
    found: judge.Findings, recoding: AnyRecoding | Assignment, number: Ints | None = None
) -> dict[str, Any]:
    """Of a tree of cuts, which criteria keep its groups from being split further. `number`: of its groups in the
    files, where that is not the recoding's."""
    if not isinstance(recoding, Recoding) or recoding.reused or found.table is None:
        return {}
    finest = np.ones(recoding.groups, bool)
    for labels in recoding.labels:
        finest &= labels.single
    if number is not None:
        finest = finest[np.argsort(number)]
    with translated("examining the release"):
        return {"blocking": blocking(found.table, found.criteria, finest)}


def report_of(
    config: Config,
    told: dict[str, Any],
    found: judge.Findings,
    recoding: AnyRecoding | Assignment,
    utility: dict[str, Any],
    progress: Progress,
) -> dict[str, Any]:
    return {
        "version": VERSION,
        **({"trial": config.trial} if config.trial else {}),
        "summary": told,
        "individual": config.columns.individual,
        "multiplicity": config.columns.multiplicity,
        "form": config.release.form,
        "labels": "exact" if exact_labels(config) else "generalized",
        "method": {"kind": config.method.kind, **config.original.get("method", {})},
        "privacy": config.original["privacy"],
        "utility": utility,
        **({"lattice": recoding.facts} if isinstance(recoding, LevelRecoding) and recoding.facts else {}),
        "group_sizes": {str(size): count for size, count in sorted(found.sizes.items())},
        "seconds": dict(progress.seconds),
    }
