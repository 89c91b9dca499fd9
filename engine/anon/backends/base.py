"""Define what a backend does: the stages of `pipeline.run` and of `check` that touch rows. Everything else of a run,
the sequence of stages, the messages, the report and the publication, is the same on every backend."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anon.config import Config
from anon.core.checkpoint import Checkpoint
from anon.core.database import Database
from anon.core.progress import Progress, ProgressCallback
from anon.criteria.earlier import EarlierGroups

if TYPE_CHECKING:
    from anon.cube import Cube
    from anon.recoding.outcome import Outcome
    from anon.release import WrittenRelease
    from anon.risk.people import SampledPeople
    from anon.runs.previous_release import PreviousRelease
    from anon.runs.workspace import RunFolders
    from anon.source import Source
    from anon.source.left_out import LeftOut
    from anon.source.origins import Origin
    from anon.verify.judge import Findings


@dataclass
class Backend(ABC):
    """One run on a backend. The stages are called in the order in which they stand here."""

    config: Config
    show_values: bool
    work: RunFolders
    progress: Progress
    database: Database
    earlier: EarlierGroups = field(default_factory=EarlierGroups)  # published already: the release is safe beside them

    @staticmethod
    @abstractmethod
    def origin(config: Config, table: Any) -> Origin:
        """Return where the rows come from: the config's source, or the table in its place."""

    @staticmethod
    @abstractmethod
    def check_installed() -> None:
        """Raise SourceError if something is missing that the backend needs."""

    @classmethod
    def check_plan(cls, config: Config, table: Any) -> None:
        """Raise what a run would raise before it reads a row, and what keeps a plan from reading the rows, which it
        does on this machine."""
        cls.check_installed()

    @classmethod
    @abstractmethod
    def started(
        cls, config: Config, table: Any, show_values: bool, work: RunFolders, progress: Progress
    ) -> AbstractContextManager[Backend]:
        """Start what the stages need, and stop it at the end."""

    @abstractmethod
    def open(self, origin: Origin) -> Source:
        """Open the source and check its rows against the config."""

    @abstractmethod
    def cube(self, source: Source) -> Cube:
        """Encode the rows of the source as records."""

    @abstractmethod
    def search(self, config: Config, cube: Cube, checkpoint: Checkpoint) -> Outcome:
        """Find a safe recoding; UnsafeError if there is none. Takes the records of the cube with it where the release
        does not need them."""

    @abstractmethod
    def write(self, source: Source, cube: Cube, outcome: Outcome) -> WrittenRelease:
        """Write the release into the workspace."""

    @abstractmethod
    def verify(self, config: Config, source: Source, cube: Cube, outcome: Outcome, written: WrittenRelease) -> Findings:
        """Examine the written files as an outsider would, and compare them with the source under the written recoding;
        VerificationError if they are not what they must be."""

    @abstractmethod
    def utility(self, source: Source, cube: Cube, outcome: Outcome, found: Findings) -> dict[str, Any]:
        """Measure how much of the source the release keeps."""

    def people(self, source: Source, cube: Cube, outcome: Outcome) -> SampledPeople | None:
        """Return the people of some groups with their own quasi-identifiers, for attacks by somebody who knows these;
        None if individuals do not have one value of one sensitive column, or if the backend cannot read them."""
        return None

    def series(self) -> dict[str, Any]:
        """Return the facts about an invariant series of which the run makes a release."""
        return {}

    def together(self, source: Source, cube: Cube, outcome: Outcome, previous: PreviousRelease) -> dict[str, Any]:
        """Measure what the release and the one that it replaces reveal together; nothing where that is not known."""
        return {}

    @staticmethod
    @abstractmethod
    def examine(
        database: Database, config: Config, table: Any, spill: Path, show_values: bool, progress: Progress
    ) -> tuple[Findings, LeftOut]:
        """Judge a table that is already grouped (`check`); return also what null values leave out of it."""

    def at_rest(self) -> AbstractContextManager[None]:
        """While the search needs the memory: hold as little of it as possible."""
        return nullcontext()

    def report_progress(self, stage: str) -> ProgressCallback:
        """Return a function that reports facts about a stage."""

        def report(**facts: Any) -> None:
            self.progress.update(stage, **facts)

        return report
