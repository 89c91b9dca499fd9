"""The main job on a cluster, from end to end: the stages of the local engine (anon.pipeline), those that touch rows on
the executors. The driver holds the domains, the tree and its labels; records and rows stay with the executors."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from anon import pipeline
from anon.backends.spark import content, release, spread, verify
from anon.backends.spark.counting import SparkRoom
from anon.backends.spark.session import session
from anon.backends.spark.source import open_source, origin_of
from anon.config import Config, Spark
from anon.config.support import exact_labels
from anon.core.database import connect, translated
from anon.core.progress import Progress
from anon.loss.utility import MEASURED, of_recoding
from anon.recoding.assignment import Assignment
from anon.recoding.levels import AnyRecoding
from anon.release import Written
from anon.report import facts
from anon.report.sensitive import sensitive_columns
from anon.report.shape import shape
from anon.runs.previous import Standing
from anon.runs.publish import Left, check_places, publish, write_run
from anon.runs.workspace import State, Workspace, workspace
from anon.search.dispatch import searched
from anon.verify.files import files_of, open_written
from anon.verify.grouped import Grouped
from anon.verify.judge import Findings

if TYPE_CHECKING:
    import duckdb
    from pyspark.sql import SparkSession

    from anon.source.origins import Origin


def run(config: Config, table: Any, options: pipeline.Options, progress: Progress, state: State) -> pipeline.Result:
    """Source to verified release, for a config that was checked and a release that is locked. `table` may be a
    DataFrame of Spark."""
    before, origin = Standing.of(config, options.show_values), origin_of(config, table)
    current = before.is_current(origin)
    if current and not options.force:
        return pipeline.up_to_date(before, options, progress)
    check_places(config, options.overwrite or current)
    limits = config.limits
    assert isinstance(config.backend, Spark)
    with (
        workspace(state, config, progress.run) as work,
        session(config.backend, table) as spark,
        spread.cleared(),
        closing(connect(limits.memory, limits.threads, work.spill)) as con,
    ):
        return Job(config, options, progress, work, spark, con).run(origin, before)


@dataclass(frozen=True)
class Job:
    """One run, with the cluster and the workspace that it has."""

    config: Config
    options: pipeline.Options
    progress: Progress
    work: Workspace
    spark: SparkSession
    con: duckdb.DuckDBPyConnection

    def run(self, origin: Origin, before: Standing) -> pipeline.Result:
        config, options, progress = self.config, self.options, self.progress
        with progress.stage("source"):
            source = open_source(self.spark, self.con, config, origin)
            progress.rows = source.rows
            same = pipeline.same_run(config, source, options.resume, before.about)
            checkpoint = self.work.begin(same, options.resume)
            pipeline.tell_resumed(checkpoint, options, progress)
        with progress.stage("cube"):
            cube = pipeline.build_cube(config, source, SparkRoom(tell=partial(progress.update, "cube")))
        with progress.stage("search"):
            tell = partial(progress.update, "search")
            outcome = searched(config, cube, self.work.spill, checkpoint, options.show_values, tell)
        recoding = outcome.recoding
        assert not isinstance(recoding, Assignment), "refused with the config"
        with progress.stage("release"):
            written = release.write(source, cube, recoding, config, self.work.release)
            left_out = source.left_out.with_suppressed(recoding.suppressed, recoding.suppressed)  # a row each
            source.check_unchanged()
            cube.records.close()
            progress.rows = written.rows
        left = Left.by(self.work, recoding, before)  # before verification reads the files
        with progress.stage("verify"):
            expected = content.expected(source, config, self.work.run / "recoding.json", recoding)
            source.check_unchanged()
            source.close()
            found = verify.verify(self.spark, self.con, written, config, expected)
        names = facts.Names.of(found, config, options.show_values)
        told = pipeline.summed_up(config, options, source, found, names, left_out, outcome, left)
        with progress.stage("report"):
            drawn = self._drawn(found, written, recoding, names)
        measured = of_recoding(recoding, exact_labels(config))
        report = pipeline.report_of(config, told, found, recoding, measured, progress) | drawn
        write_run(self.work, config, source, left, report)
        publish(self.work, config, options.overwrite or before.is_current(origin), left)
        return pipeline.ended(config, told, report, progress)

    def _drawn(self, found: Findings, written: Written, recoding: AnyRecoding, names: facts.Names) -> dict[str, Any]:
        """What the report tells beside the summary; of the groups only if the release is small."""
        if written.rows <= MEASURED:
            found.table = _on_the_driver(self.con, written, self.config)
        told = pipeline.blocking_of(found, recoding) | {"shows_values": self.options.show_values}
        told["sensitive"] = sensitive_columns(found, names) if found.table else []
        return told | shape(recoding, exact_labels(self.config), self.options.show_values)


def _on_the_driver(con: duckdb.DuckDBPyConnection, written: Written, config: Config) -> Grouped:
    """A release that is small, for what the report tells of its groups beside the verdicts."""
    files = [replace(file, path=file.path / "*.parquet") for file in files_of(written)]
    with translated("reading the release back"):
        for file in files:
            file.open(con)
    return open_written(con, files, config.columns)
