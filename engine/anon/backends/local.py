"""Run the stages on this machine: DuckDB reads, sorts and verifies, the kernels search, Arrow writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from anon import release
from anon.backends.base import Backend
from anon.config import Config
from anon.config.support import exact_labels
from anon.core.checkpoint import Checkpoint
from anon.core.database import Database, connect
from anon.core.memory import Memory
from anon.core.progress import Progress
from anon.cube import Cube, Domain, RecordStore, records
from anon.loss.utility import Original, of_run
from anon.recoding.outcome import Outcome
from anon.release import WrittenRelease
from anon.runs.workspace import RunFolders
from anon.search import dispatch
from anon.search.prepare import build_cube, check_sensitive_numbers
from anon.source import Source, count_distinct, open_grouped, open_source
from anon.source.left_out import LeftOut
from anon.source.origins import Origin, origin_of
from anon.verify import content, judge
from anon.verify.grouped import Grouped
from anon.verify.judge import Findings


class LocalBackend(Backend):
    """One run on this machine."""

    @staticmethod
    def origin(config: Config, table: Any) -> Origin:
        return origin_of(config, table)

    @staticmethod
    def check_installed() -> None:
        pass  # DuckDB and the kernels are dependencies

    @classmethod
    @contextmanager
    def started(
        cls, config: Config, table: Any, show_values: bool, work: RunFolders, progress: Progress
    ) -> Iterator[Backend]:
        limits = config.limits
        with closing(connect(limits.memory, limits.threads, work.spill)) as database:
            yield cls(config, show_values, work, progress, database)

    def open(self, origin: Origin) -> Source:
        return open_source(self.database, self.config, origin, self.work.spill)

    def cube(self, source: Source) -> Cube:
        place = partial(records.make, Memory(self.config.limits.memory).records, self.work.spill)
        store = RecordStore(place, dispatch.threads_of(self.config), self.report_progress("cube"))
        cube = build_cube(self.config, source, store)
        dispatch.memory_of(self.config, cube).check("values")
        return cube

    def search(self, config: Config, cube: Cube, checkpoint: Checkpoint) -> Outcome:
        report = self.report_progress("search")
        return dispatch.searched(config, cube, self.work.spill, checkpoint, self.show_values, report)

    def at_rest(self) -> AbstractContextManager[None]:
        return self.database.at_rest()

    def write(self, source: Source, cube: Cube, outcome: Outcome) -> WrittenRelease:
        memory = self._memory(source, cube, outcome)
        memory.check()
        self.database.limit(memory)
        return release.write(source, outcome, _sensitive(source, cube), self.config, self.work.release, self.work.spill)

    def verify(self, config: Config, source: Source, cube: Cube, outcome: Outcome, written: WrittenRelease) -> Findings:
        limits, memory = config.limits, self._memory(source, cube, outcome)
        threads = source.threads or limits.threads
        outsider = connect(limits.memory, threads, self.work.spill, held=memory.held)
        try:
            recoding = self.work.run / "recoding.json"
            expected = content.expected(source, config, recoding, outcome, _sensitive(source, cube), memory)
            with self.database.at_rest():
                return judge.verify(outsider, written, config, expected)
        except BaseException:
            outsider.close()
            raise

    def utility(self, source: Source, cube: Cube, outcome: Outcome, found: Findings) -> dict[str, Any]:
        assert found.table is not None
        config, sensitive = self.config, _sensitive(source, cube)
        threads, multiplicity = dispatch.threads_of(config), config.columns.multiplicity
        original = Original(source, cube.domains, sensitive, multiplicity, threads)
        memory = self._memory(source, cube, outcome)
        return of_run(original, found.table, outcome.recoding, exact_labels(config), config.privacy, memory)

    def _memory(self, source: Source, cube: Cube, outcome: Outcome) -> Memory:
        """Return the memory of the stages after the search."""
        return Memory(self.config.limits.memory, source.held + cube.held + outcome.nbytes)

    @staticmethod
    def examine(
        database: Database, config: Config, table: Any, spill: Path, show_values: bool, progress: Progress
    ) -> tuple[Findings, LeftOut]:
        with progress.stage("read"):
            opened = open_grouped(database, "checked_table", config, table, spill)
            distinct = [count_distinct(database, opened.values, column.sql) for column in opened.sensitive]
            check_sensitive_numbers(config, opened.sensitive, distinct)
            grouped = Grouped.from_opened(database, opened, config.columns)
        with progress.stage("check"):
            found = judge.examine(grouped, config)
            if show_values:
                judge.add_labels(grouped, found)
        return found, opened.left_out


def _sensitive(source: Source, cube: Cube) -> list[Domain]:
    return [cube.domain(column.name) for column in source.sensitive]
