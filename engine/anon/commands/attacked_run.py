"""Attack a release whose run folder is at hand (`anon attack --run`): the attacks that need the recoding and the people
behind it are carried out too. The source of the run is read again, and its search repeated, because no file of a run
says who has which quasi-identifiers; that the repeated recoding is the one that was published is checked by its digest.
Nothing is written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anon.artifacts.reading import read_manifest, read_recoding
from anon.artifacts.schema import Manifest
from anon.backends.local import LocalBackend
from anon.config import Config, load
from anon.config.support import refuse_unsupported
from anon.config.trial import as_trial
from anon.core import disk
from anon.core.checkpoint import Checkpoint
from anon.core.database import connect
from anon.core.progress import Progress
from anon.cube import Cube
from anon.errors import ConfigError, SourceError
from anon.recoding.outcome import Outcome
from anon.risk.composition import composition
from anon.risk.every_attack import attack_run
from anon.risk.overview import Attack
from anon.risk.people import SampledPeople
from anon.runs.held_releases import table_with
from anon.runs.options import Options, adjusted
from anon.runs.previous_release import dependencies, manifest_marks
from anon.runs.run_key import with_key_of
from anon.runs.saved_priors import save_estimates
from anon.runs.scratch import scratch
from anon.runs.workspace import RunFolders
from anon.source import open_grouped
from anon.source.origins import origin_of
from anon.verify import judge
from anon.verify.grouped import Grouped

SAME = ("columns", "nulls", "privacy", "method")  # sections of the config on which the groups depend
CHANGED = "the source of the run has changed, or cannot be read as it was, so that its people are not known"


@dataclass(frozen=True)
class RepeatedRun:
    """The search of a run, repeated: what it came to, and the people of some groups."""

    config: Config
    cube: Cube
    outcome: Outcome
    people: SampledPeople | None


def attacks_on(config: Config, table: Any, run: Path, options: Options, progress: Progress) -> list[Attack]:
    """Return the results of all attacks on the release of a run, and on it together with earlier ones that are held."""
    manifest = _manifest(config, table, run)
    with _repeated(manifest, run, options, progress) as made, progress.stage("attack"):
        limits = made.config.limits
        with scratch(config, progress) as spill, closing(connect(limits.memory, limits.threads, spill)) as database:
            opened = open_grouped(database, "attacked_table", made.config, table, spill)
            found = judge.examine(Grouped.from_opened(database, opened, made.config.columns), made.config)
            attacks = attack_run(made.config, found, made.outcome.recoding, made.people, made.cube)
            together = table_with(database, made.config, table, options.held_with, spill)
    bound = min((attack.bound for attack in attacks if attack.bound is not None), default=None)
    return [*attacks, composition(together, bound)]


def _manifest(config: Config, table: Any, run: Path) -> Manifest:
    """Return the manifest of a run; ConfigError unless it is one of this config, and the table is its release."""
    if not isinstance(table, str | os.PathLike):
        raise ConfigError.at("--on", "a frame", "the folder of a release, with --run")
    manifest = read_manifest(run, "--run")
    read_recoding(run, "--run")  # refuses one of another run
    place = Path(table)
    folder = place.parent if place.is_file() else place
    if not folder.is_dir() or disk.digests(folder) != manifest.release:
        raise ConfigError.at("--on", f"{table}, which is not the release of the run", "its folder, as the run wrote it")
    if any(config.original.get(name) != manifest.config.get(name) for name in SAME):
        raise ConfigError.at("--run", f"{run}, a run of another config", f"one with the same {', '.join(SAME)}")
    return manifest


@contextmanager
def _repeated(manifest: Manifest, run: Path, options: Options, progress: Progress) -> Iterator[RepeatedRun]:
    """Read the source of a run again and repeat its search; SourceError if that does not come to the same recoding."""
    config = _config(manifest, run, options)
    limits = config.limits
    with scratch(config, progress) as spill, closing(connect(limits.memory, limits.threads, spill)) as database:
        folders = RunFolders(spill, spill / "release", spill / "run")
        for folder in (folders.run, spill / "checkpoint"):
            folder.mkdir()
        backend = LocalBackend(config, options.show_values, folders, progress, database)
        with progress.stage("source"):
            source = backend.open(origin_of(config, None))
            if manifest_marks(source.marks, config) != manifest.source:
                raise SourceError(CHANGED)
        with progress.stage("cube"):
            cube = backend.cube(source)
        with progress.stage("search"), backend.at_rest():
            config = save_estimates(config, cube, folders.run)
            outcome = backend.search(config, cube, Checkpoint(spill / "checkpoint"))
            outcome.recoding.write(folders.run / "recoding.json")
        if disk.digest(folders.run / "recoding.json") != manifest.recoding_sha256:
            raise SourceError("the same search now comes to another recoding; was the run made by another version?")
        yield RepeatedRun(config, cube, outcome, backend.people(source, cube, outcome))


def _config(manifest: Manifest, run: Path, options: Options) -> Config:
    """Return the config of a run as it was."""
    if not manifest.source:
        raise SourceError("the source of the run was a table in memory, so that its people are not known")
    config = load(manifest.config, base=Path(manifest.base))
    refuse_unsupported(config, run=True)
    if config.release.series is not None or config.backend.kind != "local":
        found = "a run of a series" if config.backend.kind == "local" else "a run on Spark"
        raise ConfigError.at("--run", found, "a run that makes one release, with backend local")
    config = as_trial(config, manifest.trial) if manifest.trial else config
    if dependencies(config, False).files != manifest.files:
        raise SourceError("a file that the config of the run names has changed")
    return adjusted(with_key_of(config, run), options)
