"""Run the stages on this machine: DuckDB reads, sorts and verifies, the kernels search, Arrow writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from anon import release
from anon.backends.base import Backend
from anon.config import Config, Invariant
from anon.config.support import exact_labels
from anon.core.checkpoint import Checkpoint
from anon.core.database import Database, connect
from anon.core.memory import Memory, release_unused
from anon.core.progress import Progress
from anon.cube import Cube, Domain, RecordStore, records
from anon.loss.utility import Original, of_run
from anon.recoding.outcome import Outcome
from anon.release import WrittenRelease
from anon.risk.people import SampledPeople, sample_people
from anon.runs.held_releases import with_previous
from anon.runs.invariant_series import InvariantRelease
from anon.runs.members import are_kept, write_members
from anon.runs.previous_release import PreviousRelease
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

    invariant: InvariantRelease | None = None  # of a series that republishes its table whole

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
        source = open_source(self.database, self.config, origin, self.work.spill)
        if isinstance(self.config.release.series, Invariant):
            self.invariant = InvariantRelease.arranged(self.config, source)
        return source

    def cube(self, source: Source) -> Cube:
        place = partial(records.make, Memory(self.config.limits.memory).records, self.work.spill)
        store = RecordStore(place, dispatch.threads_of(self.config), self.report_progress("cube"))
        cube = build_cube(self.config, source, store)
        dispatch.memory_of(self.config, cube).check("values")
        return cube

    def search(self, config: Config, cube: Cube, checkpoint: Checkpoint) -> Outcome:
        if self.invariant is not None:
            return self.invariant.outcome(cube, self.work.spill)
        report = self.report_progress("search")
        spill, earlier = self.work.spill, self.earlier
        return dispatch.searched(config, cube, spill, checkpoint, self.show_values, report, earlier=earlier)

    def at_rest(self) -> AbstractContextManager[None]:
        return self.database.at_rest()

    def write(self, source: Source, cube: Cube, outcome: Outcome) -> WrittenRelease:
        memory = self._memory(source, cube, outcome)
        memory.check()
        self.database.limit(memory)
        config, work, sensitive = self.config, self.work, _sensitive(source, cube)
        written = release.write(source, outcome, sensitive, config, work.release, work.spill)
        if self.invariant is not None:
            self.invariant.write_ledger(work.run)
        if are_kept(config):
            write_members(work.run, config, source, outcome.recoding, sensitive, written.number)
        return written

    def verify(self, config: Config, source: Source, cube: Cube, outcome: Outcome, written: WrittenRelease) -> Findings:
        limits, memory = config.limits, self._memory(source, cube, outcome)
        threads = source.threads or limits.threads
        outsider = connect(limits.memory, threads, self.work.spill, held=memory.held)
        try:
            recoding = self.work.run / "recoding.json"
            release_unused()  # of the writers
            expected = content.expected(source, config, recoding, outcome, _sensitive(source, cube), memory)
            if self.invariant is not None:
                self.invariant.verify(written, self.work.run)
            with self.database.at_rest():
                return judge.verify(outsider, written, config, expected, self.earlier)
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

    def people(self, source: Source, cube: Cube, outcome: Outcome) -> SampledPeople | None:
        if self.config.columns.multiplicity != "single" or len(source.sensitive) != 1:
            return None
        return sample_people(source, outcome, _sensitive(source, cube)[0])

    def series(self) -> dict[str, Any]:
        return {} if self.invariant is None else self.invariant.facts()

    def together(self, source: Source, cube: Cube, outcome: Outcome, previous: PreviousRelease) -> dict[str, Any]:
        if not are_kept(self.config):
            return {}
        limits, memory = self.config.limits, self._memory(source, cube, outcome)
        with (
            self.database.at_rest(),
            closing(connect(limits.memory, limits.threads, self.work.spill, held=memory.held)) as database,
        ):
            return with_previous(database, self.config, self.work, previous)

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
