"""Write the run folder, and publish the release. Everything is written into private folders beside its place, and put
into place when the written files have passed verification (publication.py). Until then nothing of a run is visible, and
a run that fails leaves nothing."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from anon.artifacts.reading import sealed_text
from anon.artifacts.schema import MANIFEST, Manifest, Report
from anon.config import Config, Reuse, redact
from anon.core import disk, interrupt
from anon.core.database import translated
from anon.errors import ConfigError, Problem, ResourceError
from anon.recoding.assignment import Assignment
from anon.recoding.levels import AnyRecoding
from anon.release.publication import Move, Publication, Step, Upload
from anon.report.page import render
from anon.runs.members import MEMBERS
from anon.runs.previous_release import PreviousRelease, digest, manifest_marks
from anon.runs.workspace import Workspace
from anon.source import Source

RUN_LEAVES = re.compile(
    r"(release|qi|sensitive|counterfeits)\.(parquet|csv)|datapackage\.json|(manifest|recoding|report)\.json|report\.html|prior-\d+\.csv|"
    r"(members|run)\.key|members\.parquet|ledger"
)


def check_places(config: Config, overwrite: bool) -> None:
    """Raise ConfigError if the release would replace something, unless it may overwrite it; only what an earlier run
    left is ever replaced."""
    problems = []
    for name, mark in (("path", "datapackage.json"), ("run", "manifest.json")):
        place: Path | str = getattr(config.release, name)
        shown = redact(str(place), config.secrets)
        if isinstance(place, str):
            problems += _problems_on_store(place, shown, overwrite)
            continue
        with disk.errors_at(f"release.{name}", place):
            names = _names_at(place)
        if names is None or not _left_by_a_run(names, mark):
            expected = "a new folder, or one of an earlier run with nothing else in it"
            problems.append(Problem(f"release.{name}", f"{shown}, which no run wrote", expected))
        elif not overwrite and names:
            problems.append(Problem(f"release.{name}", f"{shown}, which exists", "a new folder", "or say --overwrite"))
    if problems:
        raise ConfigError(problems)


def _problems_on_store(place: str, shown: str, overwrite: bool) -> list[Problem]:
    """Return the problems of a place on a store. Unlike a folder, it may hold what a broken upload left, which has no
    mark and may be replaced as well."""
    from anon.release.stores import names_at

    names = names_at(place)
    if any(not RUN_LEAVES.fullmatch(name) for name in names):
        expected = "a place without objects, or with those of an earlier run and nothing else"
        return [Problem("release.path", f"{shown}, which holds what no run wrote", expected)]
    if names and not overwrite:
        return [Problem("release.path", f"{shown}, which exists", "a place without objects", "or say --overwrite")]
    return []


def _names_at(place: Path) -> list[str] | None:
    """Return what is in a folder, nothing if there is none; None if the place is taken by anything else."""
    if not disk.exists(place):
        return []
    return disk.names(place) if disk.is_folder(place) else None


def _left_by_a_run(names: list[str], mark: str) -> bool:
    """Return whether a folder is empty, or holds what a run leaves and nothing else."""
    return not names or (mark in names and all(RUN_LEAVES.fullmatch(name) for name in names))


@dataclass(frozen=True)
class RunArtifacts:
    """What a run has written before its report: SHA-256 of the files of its release, of its recoding and of the file of
    its members, if it has one; and the release that was there before."""

    release: dict[str, str]
    recoding: str
    members: str
    before: PreviousRelease

    @classmethod
    def write(cls, work: Workspace, recoding: AnyRecoding | Assignment, before: PreviousRelease) -> RunArtifacts:
        """Write the recoding into the run folder; return the digests of the files that verification will read."""
        path = work.run / "recoding.json"
        with translated("writing the run folder", disk=True):
            recoding.write(path)
            return cls(disk.digests(work.release), disk.digest(path), digest(work.run / MEMBERS), before)

    def warnings(self, individuals: int, together: dict[str, Any]) -> list[dict[str, Any]]:
        return self.before.warnings(self.release, self.recoding, individuals, together)


def write_run(
    work: Workspace, config: Config, source: Source, artifacts: RunArtifacts, facts: dict[str, Any]
) -> Report:
    """Write the manifest, the report and its page into the run folder, which stays internal; return the report. `facts`
    are those of the report without its provenance."""
    manifest = Manifest(
        version=MANIFEST,
        run=work.run_id,
        began=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(work.began)),
        config=config.original,
        base=str(config.base),
        **dict(artifacts.before.dependencies),
        source=manifest_marks(source.marks, config),
        rows=source.rows,
        rows_dropped=source.left_out.rows.all,
        **_one_row_each(source),
        suppressed=facts["summary"]["suppressed"],
        warnings=facts["summary"]["warnings"],
        release=artifacts.release,
        recoding_sha256=artifacts.recoding,
        members_sha256=artifacts.members,
        **artifacts.before.previous(),
        **_reused(config),
    )
    report = Report.model_validate(facts | {"provenance": manifest.provenance})
    with translated("writing the run folder", disk=True):
        for name, artifact in (("manifest.json", manifest), ("report.json", report)):
            (work.run / name).write_text(sealed_text(artifact), encoding="utf-8")
        (work.run / "report.html").write_text(render(report), encoding="utf-8")
    return report


def _one_row_each(source: Source) -> dict[str, Any]:
    """Return which row of an individual was used, and how many others were not."""
    chosen = source.left_out.one_row_each
    return {} if chosen is None else {"one_row_each": asdict(chosen)}


def _reused(config: Config) -> dict[str, Any]:
    if not isinstance(config.method, Reuse):
        return {}
    from anon.search.reuse import EarlierRecoding

    return {"reused": EarlierRecoding.from_run(config.method.run).provenance}


def publish(work: Workspace, config: Config, overwrite: bool, artifacts: RunArtifacts) -> None:
    """Put the release and its run folder in place: both or neither, and only what was verified. What was in their
    places before is afterwards in the workspace, and goes with it."""
    check_places(config, overwrite)  # again: the run took its time, and others may have written there
    release = config.release
    with _publishing():
        run = Move(work.run, release.run, disk.digests(work.run) | {"recoding.json": artifacts.recoding})
        files = _publication_of(work.release, release.path, artifacts.release)
    # a folder comes last, because readers look there; an upload first, because it may fail or take long
    put_in_place(work, (run, files) if isinstance(files, Move) else (files, run))


def put_in_place(work: Workspace, steps: tuple[Step, ...]) -> None:
    """Carry out the steps of a publication, all or none, and only with the files that have the digests of the steps."""
    state, publication = work.state, Publication(work.state.journal, steps)
    with _publishing():
        publication.check()
        disk.chmod_tree(work.release, state.umask)
        for folder in (work.run, work.release):
            disk.sync_tree(folder)
            disk.sync_folder(folder.parent)
    interrupt.check()
    failure = publication.carry_out(state.signals.begin, state.checkpoint.folder)
    state.published = True
    if failure is not None:
        why = f"not everything could be cleaned up ({failure.strerror}); the next run to this place does that"
        state.alert(f"the release is published, but {why}")


@contextmanager
def _publishing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ResourceError(f"publishing: {error.strerror}; nothing was published") from error


def _publication_of(folder: Path, place: Path | str, digests: dict[str, str]) -> Move | Upload:
    return Move(folder, place, digests) if isinstance(place, Path) else Upload(folder, place, digests)
