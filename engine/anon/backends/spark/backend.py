"""Run the stages on a cluster. The driver holds the domains, the tree and its labels; records and rows stay with the
executors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anon.backends.base import Backend
from anon.backends.spark import check, content, executors, release, verify
from anon.backends.spark.counting import SparkRecordStore
from anon.backends.spark.series import SparkRows
from anon.backends.spark.session import check_installed, session
from anon.backends.spark.source import SparkSource, check_files, open_source, origin_of
from anon.config import Config, Spark
from anon.config.support import exact_labels
from anon.config.values import is_store
from anon.core.checkpoint import Checkpoint
from anon.core.database import Database, connect, translated
from anon.core.disk import make_private
from anon.core.progress import Progress
from anon.cube import Cube
from anon.errors import ConfigError
from anon.loss.utility import MEASURED, of_recoding
from anon.recoding.assignment import Assignment
from anon.recoding.levels import AnyRecoding
from anon.recoding.outcome import Outcome
from anon.release import WrittenRelease
from anon.runs.series.pool import Pool
from anon.runs.workspace import RunFolders
from anon.search import dispatch
from anon.search.prepare import build_cube
from anon.source import Source
from anon.source.left_out import LeftOut
from anon.source.origins import Origin
from anon.source.tables import resolve
from anon.verify.files import files_of, open_written
from anon.verify.grouped import Grouped
from anon.verify.judge import Findings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from anon.search.lattice.search import LatticeSearch
    from anon.search.partition.search import PartitionSearch

EXCHANGED = "exchanged"  # the folder beside the release in which driver and executors exchange files about a series


class SparkSearches(dispatch.Searches):
    """The searches that leave the records with the executors."""

    def partition(self) -> type[PartitionSearch]:
        from anon.backends.spark.partition import SparkPartition

        return SparkPartition

    def lattice(self) -> type[LatticeSearch]:
        from anon.backends.spark.lattice import SparkLattice

        return SparkLattice


@dataclass
class SparkBackend(Backend):
    """One run on a cluster."""

    spark: SparkSession = field(kw_only=True)

    @staticmethod
    def origin(config: Config, table: Any) -> Origin:
        return origin_of(config, table)

    @staticmethod
    def check_installed() -> None:
        check_installed()

    @classmethod
    def check_plan(cls, config: Config, table: Any) -> None:
        super().check_plan(config, table)
        if table is None and config.source.table is not None:
            hint = "a plan reads files on this machine; `run` reads tables"
            raise ConfigError.at("source.table", "a table of Spark", "source.path", hint)
        if table is None and not is_store(config.source.path):
            check_files(resolve(str(config.source.path)))

    @classmethod
    @contextmanager
    def started(
        cls, config: Config, table: Any, show_values: bool, work: RunFolders, progress: Progress
    ) -> Iterator[Backend]:
        limits = config.limits
        assert isinstance(config.backend, Spark)
        with (
            session(config.backend, table) as spark,
            executors.cleared(),
            closing(connect(limits.memory, limits.threads, work.spill)) as database,
        ):
            yield cls(config, show_values, work, progress, database, spark=spark)

    def open(self, origin: Origin) -> Source:
        if not isinstance(origin, Pool):
            return open_source(self.spark, self.database, self.config, origin)
        folder = make_private(self.work.release.with_name(EXCHANGED), "release.path")
        rows = SparkRows(self.database, self.config.columns, origin, folder)
        return open_source(self.spark, self.database, self.config, origin.whole, rows.narrowed)

    def cube(self, source: Source) -> Cube:
        return build_cube(self.config, source, SparkRecordStore(on_progress=self.report_progress("cube")))

    def search(self, config: Config, cube: Cube, checkpoint: Checkpoint) -> Outcome:
        report = self.report_progress("search")
        spill, searches = self.work.spill, SparkSearches()
        return dispatch.searched(config, cube, spill, checkpoint, self.show_values, report, searches, self.earlier)

    def write(self, source: Source, cube: Cube, outcome: Outcome) -> WrittenRelease:
        assert isinstance(source, SparkSource)
        written = release.write(source, cube, _recoding(outcome), self.config, self.work.release)
        cube.records.close()
        return written

    def verify(self, config: Config, source: Source, cube: Cube, outcome: Outcome, written: WrittenRelease) -> Findings:
        assert isinstance(source, SparkSource)
        expected = content.expected(source, config, self.work.run / "recoding.json", _recoding(outcome))
        source.check_unchanged()
        source.close()
        found = verify.verify(self.spark, self.database, written, config, expected, self.earlier)
        if written.rows <= MEASURED:
            found.table = self._on_the_driver(written)
        return found

    def _on_the_driver(self, written: WrittenRelease) -> Grouped:
        """Return a release that is small, for what the report says of its groups beside the verdicts."""
        files = [replace(file, path=file.path / "*.parquet") for file in files_of(written)]
        with translated("reading the release back"):
            for file in files:
                file.open(self.database)
        return open_written(self.database, files, self.config.columns)

    def utility(self, source: Source, cube: Cube, outcome: Outcome, found: Findings) -> dict[str, Any]:
        return of_recoding(outcome.recoding, exact_labels(self.config))

    @staticmethod
    def examine(
        database: Database, config: Config, table: Any, spill: Path, show_values: bool, progress: Progress
    ) -> tuple[Findings, LeftOut]:
        return check.examined(database, config, table, show_values, progress)


def _recoding(outcome: Outcome) -> AnyRecoding:
    assert not isinstance(outcome.recoding, Assignment), "refused with the config"
    return outcome.recoding
