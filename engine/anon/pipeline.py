"""The main job from end to end, and the check of a table that is already grouped. Everything is written beside its
place first and renamed into it when the written files have passed verification; until then nothing of a run can be
seen."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import duckdb

from anon import cube as cubes
from anon import release, verify
from anon.config import Config, InformationGain, load
from anon.criteria import CATEGORICAL, Criterion, bind, protects, vacuous
from anon.cube import Cube
from anon.database import connect, translated
from anon.errors import ConfigError, Problem, ResourceError, UnsafeError
from anon.progress import Progress
from anon.recoding import Recoding
from anon.report import facts
from anon.source import Source, check_present, describe, open_source, register_files, register_frame, resolve

MANY_NUMBERS = 1_000  # distinct values; more of them are hardly categories
NUMBERS = ("integer", "number", "decimal")


@dataclass(frozen=True)
class Options:
    """What a caller may set beside the config."""

    out: Path | None = None
    memory: int | None = None
    threads: int | None = None
    overwrite: bool = False
    show_values: bool = False
    strict: bool = False


DEFAULTS = Options()


@dataclass(frozen=True)
class Result:
    """What a run or a check found; `report` holds more than `to_dict`."""

    facts: dict[str, Any]
    report: dict[str, Any]
    release: Path | None = None
    run: Path | None = None

    @property
    def safe(self) -> bool:
        return bool(self.facts["safe"])

    def to_dict(self) -> dict[str, Any]:
        return self.facts


def run(config: Any, table: Any = None, options: Options = DEFAULTS, progress: Progress | None = None) -> Result:
    """Source to verified release. `table` stands in for the config's source: any Arrow-speaking frame."""
    config, progress = adjusted(load(config), options), progress or Progress()
    _check_places(config, options.overwrite)
    began = time.time()
    with workspace(config) as work:
        with progress.stage("source"):
            con = connect(config.limits.memory, config.limits.threads, work.spill)
            source = open_source(con, config, table, work.spill)
        with progress.stage("cube"):
            cube = cubes.build(source, list(config.columns.quasi_identifiers.values()), _target(config))
            _check_sensitive_numbers(config, source, cube)
            unique_before = _unique(source)
        with progress.stage("search"):
            recoding = _search(config, cube, options, progress)
        with progress.stage("release"):
            sensitive = cube.others[: len(source.sensitive)]
            path = release.write(source, recoding, sensitive, config, work.release)
            release.write_datapackage(source, recoding, config, path, suppressed=0)
            source.check_unchanged()
        with progress.stage("verify"):
            outsider = connect(config.limits.memory, config.limits.threads, work.spill)
            found = verify.verify(outsider, path, config, source.rows, _published_types(con, source))
        names = facts.Names.of(found, config, options.show_values)
        told = facts.summary(config, found, names, 0, unique_before, source.dropped)
        if options.strict and told["warnings"]:
            codes = ", ".join(warning["code"] for warning in told["warnings"])
            raise UnsafeError(f"warnings count as failures (--strict): {codes}; nothing was published")
        report = _report(config, told, found, recoding, progress)
        _write_run(work, config, source, recoding, report, began)
        publish(work, config)
    return Result(told, report, config.release.path, config.release.run)


def check(config: Any, table: Any, options: Options = DEFAULTS, progress: Progress | None = None) -> Result:
    """Judges a table that is already grouped: a path or an Arrow-speaking frame. Never reads the config's source."""
    config, progress = adjusted(load(config), options), progress or Progress()
    with tempfile.TemporaryDirectory(prefix="anon-", dir=config.limits.temp) as folder:
        con = connect(config.limits.memory, config.limits.threads, Path(folder))
        with progress.stage("read"):
            if isinstance(table, (str, os.PathLike)):
                register_files(con, "checked_table", resolve(os.fspath(table)), Path(folder))
            else:
                register_frame(con, "checked_table", table)
            columns = config.columns.model_copy(update={"identifiers": [], "individual": "row", "keep": []})
            types = describe(con, "checked_table")
            check_present(columns, types)
            grouped = verify.Grouped.of(con, "checked_table", config.columns)
        with progress.stage("check"):
            found = verify.examine(grouped, config)
    names = facts.Names.of(found, config, options.show_values)
    told = facts.summary(config, found, names, 0, None)
    return Result(told, {"sizes": found.sizes})


def adjusted(config: Config, options: Options) -> Config:
    """The config with what the command line says instead."""
    limits = {name: value for name in ("memory", "threads") if (value := getattr(options, name)) is not None}
    places = {} if options.out is None else {"path": options.out.resolve(), "run": Path(f"{options.out.resolve()}-run")}
    return config.model_copy(
        update={
            "limits": config.limits.model_copy(update=limits),
            "release": config.release.model_copy(update=places),
        }
    )


def _target(config: Config) -> str | None:
    prefer = config.method.prefer  # type: ignore[union-attr]
    return prefer.information_gain if isinstance(prefer, InformationGain) else None


def _unique(source: Source) -> int:
    """Individuals who are alone with their quasi-identifiers in the source."""
    listed = ", ".join(column.alias for column in source.quasi_identifiers)
    alone = f"SELECT 1 FROM {source.VIEW} GROUP BY {listed} HAVING count(*) = 1"
    return int(source.query(f"SELECT count(*) FROM ({alone})")[0][0].as_py())


def _check_sensitive_numbers(config: Config, source: Source, cube: Cube) -> None:
    """Numbers that differ by a cent are different values to a categorical criterion: everybody would look protected."""
    problems = []
    for column, domain in zip(source.sensitive, cube.others):
        spec = config.columns.sensitive[column.name]
        about = [criterion for criterion in config.privacy if protects(criterion, column.name)]
        many = column.kind == "number" or (column.kind in NUMBERS and domain.size > MANY_NUMBERS)
        if (
            many
            and about
            and all(c.name in CATEGORICAL for c in about)
            and not spec.as_categories
            and spec.round is None
        ):
            found = f"numbers with {domain.size:,} distinct values, which {about[0].name} takes for categories"
            hint = "or mark it `as_categories: true`"
            problems.append(
                Problem(f"columns.sensitive.{column.name}", found, "`round`, or a criterion for numbers", hint)
            )
    if all(vacuous(spec) for spec in config.privacy):
        problems.append(Problem("privacy", "only criteria that are always true", "a criterion that can fail"))
    if problems:
        raise ConfigError(problems)


def _search(config: Config, cube: Cube, options: Options, progress: Progress) -> Recoding:
    from anon.search.partition import Partition

    texts = {domain.column: domain.texts for domain in cube.others}
    _check_whole_table(config, cube, bind(config.privacy, texts), options.show_values)
    prefer = config.method.prefer  # type: ignore[union-attr]

    def tell(level: int, nodes: int, people: int) -> None:
        progress.update("search", level=level, open_nodes=nodes, individuals=people)

    return Partition(
        cube,
        bind(config.privacy, texts, shared=True),
        prefer if isinstance(prefer, str) else "information_gain",
        config.limits.threads or os.cpu_count() or 1,
        tell,
    ).run()


def _check_whole_table(config: Config, cube: Cube, criteria: list[Criterion], show_values: bool) -> None:
    """All criteria here are monotone: if the whole table as one group is not safe, no release is."""
    found = verify.Findings()
    for domain, index in ((d, i) for i, d in enumerate(cube.others)):
        found.values[domain.column] = domain.texts
        group = cube.whole_table(index)
        counts = [0] * domain.size
        for code, count in zip(group.value.tolist(), group.count.tolist()):
            counts[code] = count
        found.frequency[domain.column] = counts
    names = facts.Names.of(found, config, show_values)
    lines = []
    for criterion in criteria:
        whole = cube.whole_table(cube.value_column(criterion.column))
        for finding in criterion.verdict(criterion.state(whole)).findings:
            if not finding.safe:
                near = criterion.nearest(whole, finding)
                lines.append(
                    facts.refusal(criterion, finding, names) + (f"; would hold: {' or '.join(near)}" if near else "")
                )
    if lines:
        intro = "no release is safe: even the whole table as one group fails, and splitting only makes it worse"
        raise UnsafeError("\n".join([intro, *(f"  {line}" for line in lines)]))


def _published_types(con: duckdb.DuckDBPyConnection, source: Source) -> dict[str, str]:
    """The columns of the release with the types that an outsider must find."""
    types = describe(con, Source.VIEW)
    labels = {column.name: "VARCHAR" for column in source.quasi_identifiers}
    return labels | {column.name: types[column.alias] for column in (*source.sensitive, *source.keep)}


# What a run writes, and where


@dataclass(frozen=True)
class Workspace:
    """Folders of a run under way, beside the places they will be renamed to."""

    spill: Path
    release: Path
    run: Path
    run_id: str


@contextmanager
def workspace(config: Config) -> Iterator[Workspace]:
    """Private folders for one run, removed whatever happens."""
    run_id = uuid.uuid4().hex[:12]
    places = (config.limits.temp or config.release.run.parent, config.release.path.parent, config.release.run.parent)
    made: list[Path] = []
    try:
        try:
            for place, word in zip(places, ("spill", "release", "run")):
                place.mkdir(parents=True, exist_ok=True)
                folder = place / f".anon-{word}-{run_id}"
                folder.mkdir(mode=0o700)
                made.append(folder)
        except OSError as error:
            raise ConfigError.at(
                "release.path", f"a folder that cannot be written ({error.strerror})", "a writable one"
            ) from error
        yield Workspace(made[0], made[1], made[2], run_id)
    finally:
        for folder in made:
            shutil.rmtree(folder, ignore_errors=True)


def _check_places(config: Config, overwrite: bool) -> None:
    """A release is replaced only when told to, and only what an earlier run left is ever replaced."""
    problems = []
    for name, mark in (("path", "datapackage.json"), ("run", "manifest.json")):
        place: Path = getattr(config.release, name)
        if not place.exists() and not place.is_symlink():
            continue
        if place.is_symlink() or not place.is_dir() or (any(place.iterdir()) and not (place / mark).is_file()):
            problems.append(
                Problem(f"release.{name}", f"{place}, which no run wrote", "a new folder, or one of an earlier run")
            )
        elif not overwrite and any(place.iterdir()):
            problems.append(Problem(f"release.{name}", f"{place}, which exists", "a new folder", "or say --overwrite"))
    if problems:
        raise ConfigError(problems)


def _report(
    config: Config, told: dict[str, Any], found: verify.Findings, recoding: Recoding, progress: Progress
) -> dict[str, Any]:
    return {
        "version": 1,
        "summary": told,
        "individual": config.columns.individual,
        "method": config.original.get("method", {"kind": "partition"}),
        "privacy": config.original["privacy"],
        "loss": recoding.loss,
        "group_sizes": {str(size): count for size, count in sorted(found.sizes.items())},
        "seconds": dict(progress.seconds),
    }


def _write_run(
    work: Workspace, config: Config, source: Source, recoding: Recoding, report: dict[str, Any], began: float
) -> None:
    with translated("writing the run folder"):
        recoding.write(work.run / "recoding.json")
        manifest = {
            "version": 1,
            "run": work.run_id,
            "anon": version("anon-engine"),
            "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
            "config": config.original,
            "config_sha256": config.digest,
            "source": [{"file": name, "bytes": size} for name, size, _ in source.files],
            "rows": source.rows,
            "rows_dropped": source.dropped,
            "release": {file.name: _sha256(file) for file in sorted(work.release.iterdir())},
        }
        for name, content in (("manifest.json", manifest), ("report.json", report)):
            text = json.dumps(content, indent=2, ensure_ascii=False, default=str) + "\n"
            (work.run / name).write_text(text, encoding="utf-8")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def publish(work: Workspace, config: Config) -> None:
    """Renames the run folder and then, as the last step, the release into place."""
    umask = os.umask(0)
    os.umask(umask)
    work.release.chmod(0o777 & ~umask)
    try:
        _rename(work.run, config.release.run)
        _rename(work.release, config.release.path)
    except OSError as error:
        raise ResourceError(f"publishing: {error.strerror}") from error


def _rename(staged: Path, place: Path) -> None:
    """Renames, or where an earlier one stands exchanges the two in one step and removes the old."""
    if not place.exists():
        staged.rename(place)
    elif _exchange(staged, place):
        shutil.rmtree(staged)
    else:
        aside = staged.with_name(staged.name + "-old")
        place.rename(aside)
        staged.rename(place)
        shutil.rmtree(aside)


def _exchange(first: Path, second: Path) -> bool:
    """Linux's renameat2 with RENAME_EXCHANGE; False where the system or the file system does not have it."""
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    here, exchange = -100, 2
    return bool(call(here, os.fsencode(first), here, os.fsencode(second), exchange) == 0)
