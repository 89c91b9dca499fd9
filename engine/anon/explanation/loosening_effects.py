"""Measure the effect of relaxing the criteria of a run, for `explain`: the source of the run is read again, its search
is repeated, and then once more for each next looser setting that would let something be published in more detail.
Nothing is written.

The effort is bounded by `WORK`, the rows of all these searches together. What is not measured is reported as such."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anon.artifacts.schema import Manifest, Report
from anon.config import Config, Criterion, load
from anon.config.grammar import tosses_coins
from anon.config.loosening import Number
from anon.config.private_release import promised
from anon.config.support import exact_labels, refuse_unsupported
from anon.config.trial import as_trial
from anon.core.database import connect
from anon.core.progress import Progress
from anon.criteria import bind
from anon.cube import Cube, RecordStore
from anon.cube.records import InMemory
from anon.errors import ConfigError, ResourceError, SourceError, UnsafeError
from anon.explanation.loosening_steps import Setting, next_setting
from anon.loss.utility import of_recoding
from anon.recoding.levels import LevelRecoding
from anon.recoding.tree import Recoding
from anon.runs.options import Options, adjusted
from anon.runs.previous_release import dependencies, manifest_marks
from anon.runs.scratch import scratch
from anon.search import dispatch
from anon.search.prepare import build_cube
from anon.source import open_source
from anon.source.origins import origin_of

if TYPE_CHECKING:
    from anon.explanation.refused_nodes import RefusedNodes
    from anon.search.lattice.frequency import Node

WORK = 4_000_000  # rows of all searches together
NOT_APPLICABLE = {
    "merge": "people are assigned to groups one by one, so there are no cuts or levels that a criterion refuses; a "
    "smaller r lets groups be smaller",
    "colour": "people are assigned to groups one by one, so there are no cuts or levels that a criterion refuses; a "
    "smaller delta lets groups be smaller",
    "refine": "groups were divided anew after the cuts (method.refine), so there are no cuts that a criterion refuses; "
    "explain a run without refine",
    "reuse": "the groups are those of an earlier run, whatever the criteria; explain that run",
}
Facts = dict[str, Any]


class NotMeasured(Exception):
    """The reason why the effect of relaxing is not measured."""


@dataclass
class RelaxedCriterion:
    """The findings about one criterion: what it alone refuses, and looser settings, each with the number of groups or
    nodes that it would let pass and the result of its search (None if that was not measured)."""

    spec: Criterion
    refused: Facts
    settings: list[Setting]
    passing: list[Facts]
    results: list[Facts | None] = field(default_factory=list)

    def to_dict(self) -> Facts:
        settings = [
            {"setting": setting.text, "to": float(setting.to)} | passing | (facts or {"groups": None, "loss": None})
            for setting, passing, facts in zip(self.settings, self.passing, self.results)
        ]
        return {"name": self.spec.name, "refuses_alone": self.refused, "settings": settings}


def relaxing(manifest: Manifest, report: Report, options: Options, progress: Progress) -> Facts:
    """Return the effect of relaxing each criterion of a run, or why it is not measured."""
    try:
        if reason := NOT_APPLICABLE.get("refine" if getattr(report.method, "refine", False) else report.method.kind):
            raise NotMeasured(reason)
        if manifest.rows > WORK // 2:
            raise NotMeasured(f"more than {WORK // 2:,} rows")
        config = _config(manifest, options)
        with progress.stage("source"):
            rerun = _rerun(config, manifest, report, progress)
        with progress.stage("relax"):
            return rerun.facts()
    except NotMeasured as reason:
        return {"measured": False, "why": str(reason)}
    except ResourceError as error:
        return {"measured": False, "why": str(error)}


def _config(manifest: Manifest, options: Options) -> Config:
    try:
        config = load(manifest.config, base=Path(manifest.base), source=bool(manifest.source))
        refuse_unsupported(config, run=True)
        if config.release.one_level:
            raise NotMeasured("release.one_level merged the groups that the search found")
        if promised(config) is not None:
            raise NotMeasured("its levels are given, and how large groups have to be follows from epsilon and delta")
        if tosses_coins(config):
            raise NotMeasured("other criteria would toss the same coins, and hide nothing any more")
        if manifest.trial:
            config = as_trial(config, manifest.trial)
        if dependencies(config, False).files != manifest.files:
            raise NotMeasured("a file that the config names has changed")
    except ConfigError as error:
        why = f"the config or a file that it names can no longer be read ({error.problems[0]})"
        raise NotMeasured(why) from None
    return adjusted(config, options)


def _rerun(config: Config, manifest: Manifest, report: Report, progress: Progress) -> Rerun:
    """Build the cube of the run again, and repeat its search."""
    limits = config.limits
    changed = NotMeasured("the source has changed, or cannot be read")
    if not manifest.source:
        raise NotMeasured("the source was a table in memory")
    try:
        with scratch(config, progress) as spill, closing(connect(limits.memory, limits.threads, spill)) as database:
            source = open_source(database, config, origin_of(config, None), spill)
            if manifest_marks(source.marks, config) != manifest.source:
                raise changed
            cube = build_cube(config, source, RecordStore(threads=dispatch.threads_of(config)))
            source.check_unchanged()
    except (SourceError, ConfigError):
        raise changed from None
    try:
        rerun = Rerun(config, cube, manifest.rows, partial(progress.update, "relax"))
    except UnsafeError:
        raise changed from None
    if rerun.now["groups"] != report.utility.groups:
        raise NotMeasured("the same search now gives other groups")
    return rerun


class Rerun:
    """The search of a run, repeated as it was and with other criteria."""

    def __init__(self, config: Config, cube: Cube, rows: int, on_progress: Callable[..., None]) -> None:
        self.config, self.rows, self.on_progress, self.searches = config, rows, on_progress, 0
        self._cube, self._codes = cube, cube.records.read(0, cube.records.count)
        self.values = dispatch.sensitive_values(config, cube)
        self.budget = dispatch.budget_for(config, cube)
        self.criteria = bind(config.privacy, self.values, shared=True)
        self.recoding = self._search(config.privacy)
        self.now = self._result(self.recoding)

    @property
    def cube(self) -> Cube:
        """Return a copy of the cube, whose records a search may reorder."""
        return replace(self._cube, records=InMemory(self._codes.copy()))

    def facts(self) -> Facts:
        """Return what --json prints as `relaxing`."""
        listed, together = self._partition() if isinstance(self.recoding, Recoding) else self._lattice()
        for tried, place in _in_turn(listed):
            tried.results[place] = self._measured(listed.index(tried), tried.settings[place].spec)
        without = [self._without(at) for at in range(len(listed))]
        criteria = [tried.to_dict() | {"without": result} for tried, result in zip(listed, without)]
        return {
            "measured": True,
            "rows": self.rows,
            "searches": self.searches,
            "now": self.now,
            **({"refused_together": together} if together is not None else {}),
            "criteria": criteria,
        }

    def _search(self, privacy: list[Criterion]) -> Recoding | LevelRecoding:
        self.searches += 1
        self.on_progress(searches=self.searches)
        config = self.config.model_copy(update={"privacy": privacy})
        recoding = dispatch.search(config, self.cube, self.values, self.budget).recoding
        assert isinstance(recoding, Recoding | LevelRecoding)
        return recoding

    def _result(self, recoding: Recoding | LevelRecoding) -> Facts:
        utility = of_recoding(recoding, exact_labels(self.config))
        facts = {"groups": utility["groups"], "loss": utility["loss"]["all"], "suppressed": utility["suppressed"]}
        if not isinstance(recoding, LevelRecoding):
            return facts
        facts["levels"] = recoding.facts["chosen"]["levels"]
        return facts if recoding.safe is None else facts | {"safe_nodes": int(recoding.safe.sum())}

    def _measured(self, at: int, spec: Criterion | None) -> Facts | None:
        """Return the result of the search with another criterion, or none, in place of one; None if that is too much
        work."""
        if (self.searches + 1) * self.rows > WORK:
            return None
        privacy = self.config.privacy
        try:
            return self._result(self._search([*privacy[:at], *([spec] if spec else []), *privacy[at + 1 :]]))
        except UnsafeError:  # with a criterion that is not monotone there may be no release at all
            return None

    def _without(self, at: int) -> Facts | None:
        return self._measured(at, None) if len(self.config.privacy) > 1 else None

    def _bound(self, spec: Criterion) -> Any:
        return bind([spec], self.values, shared=True)[0]

    def _partition(self) -> tuple[list[RelaxedCriterion], Facts]:
        """Return the next settings that would let a group be cut further."""
        from anon.explanation.refused_cuts import RefusedCuts

        assert isinstance(self.recoding, Recoding)
        public, peel = (
            getattr(self.config.method, "prefer", None) == "public",
            getattr(self.config.method, "peel", False),
        )
        refused = RefusedCuts(self.cube, self.criteria, self.recoding, public, peel)

        def changes(at: int, spec: Criterion) -> bool:
            return refused.would_change(at, self._bound(spec))

        listed = []
        for at, spec in enumerate(self.config.privacy):
            settings = list(_settings(spec, partial(changes, at)))
            passing = [{"splits": refused.split_by(at, self._bound(each.spec))} for each in settings]
            listed.append(RelaxedCriterion(spec, refused.facts(at), settings, passing))
        return _unmeasured(listed), refused.together()

    def _lattice(self) -> tuple[list[RelaxedCriterion], None]:
        """Return the next settings that would make another node safe, or one just below the released one."""
        from anon.explanation.refused_nodes import RefusedNodes

        assert isinstance(self.recoding, LevelRecoding)
        search = dispatch.lattice_search(self.config, self.cube, self.values, self.budget)
        refused, listed = RefusedNodes(search, self.recoding), []
        for at, spec in enumerate(self.config.privacy):
            found: dict[str, Setting] = {}
            for nodes in (refused.alone[at], refused.released[at]):
                changes = partial(self._node_changes, refused, at, nodes)
                steady = refused.judge.steady
                found |= {each.text: each for each in _settings(spec, changes, steady)} if nodes else {}
            settings = list(found.values())
            passing = [{"nodes": self._nodes_passed(refused, at, refused.alone[at], each.spec)} for each in settings]
            listed.append(RelaxedCriterion(spec, refused.facts(at), settings, passing))
        return _unmeasured(listed), None

    def _node_changes(self, refused: RefusedNodes, at: int, nodes: list[Node], spec: Criterion) -> bool:
        return any(self._nodes_passed(refused, at, [node], spec) for node in nodes)

    def _nodes_passed(self, refused: RefusedNodes, at: int, nodes: list[Node], spec: Criterion) -> int:
        privacy = self.config.privacy
        config = self.config.model_copy(update={"privacy": [*privacy[:at], spec, *privacy[at + 1 :]]})
        rebound = dispatch.released_values(config, self.values)
        return refused.passed_by(at, self._bound(spec), rebound, nodes)


def _settings(spec: Criterion, changes: Callable[[Criterion], bool], steady: bool = True) -> Iterator[Setting]:
    each: Number
    for each in spec.numbers():
        if found := next_setting(each, changes, steady):
            yield found


def _unmeasured(listed: list[RelaxedCriterion]) -> list[RelaxedCriterion]:
    for tried in listed:
        tried.results = [None] * len(tried.settings)
    return listed


def _in_turn(listed: list[RelaxedCriterion]) -> Iterator[tuple[RelaxedCriterion, int]]:
    """Yield the first setting of each criterion, then the second of each, and so on."""
    for row in zip_longest(*([(tried, place) for place in range(len(tried.settings))] for tried in listed)):
        yield from (each for each in row if each is not None)
