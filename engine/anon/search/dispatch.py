"""Run the search that a config selects: choose its class and its budget, and make the message when no release is
safe."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from anon.config import Config, Lattice, Merge, Partition, Reuse
from anon.config.mistakes import below
from anon.config.private_release import promised
from anon.core.checkpoint import Checkpoint
from anon.core.memory import Memory
from anon.core.progress import ProgressCallback
from anon.core.terminal import one_line
from anon.criteria import Criterion, EarlierGroups, Groups, Signatures, Values, bind, prunes
from anon.criteria.value_names import Names, refusal
from anon.cube import Cube
from anon.errors import BlockedByValue, ConfigError, Problem, UnsafeError
from anon.search.budget import SearchBudget
from anon.search.cross_tables import CrossTables

if TYPE_CHECKING:
    from anon.recoding.outcome import Outcome
    from anon.search.lattice.search import LatticeSearch
    from anon.search.partition.guard import Guard
    from anon.search.partition.search import PartitionSearch

CORES = os.cpu_count() or 1
FEW_REFUSALS = 5  # failures that are reported for each criterion


class Searches:
    """The classes that search for a recoding on a backend."""

    def partition(self) -> type[PartitionSearch]:
        from anon.search.partition.search import PartitionSearch

        return PartitionSearch

    def lattice(self) -> type[LatticeSearch]:
        from anon.search.lattice.search import LatticeSearch

        return LatticeSearch


LOCAL = Searches()


def searched(
    config: Config,
    cube: Cube,
    spill: Path,
    checkpoint: Checkpoint,
    show_values: bool,
    on_progress: ProgressCallback,
    searches: Searches = LOCAL,
    earlier: EarlierGroups | None = None,
) -> Outcome:
    """Return the result of a run's search; raise UnsafeError, with values named as the user may see them, if no release
    is safe. `earlier`: groups that are published already, beside which it must be safe."""
    values = sensitive_values(config, cube, earlier)
    erratic = check_whole_table(config, cube, values, show_values)
    budget = budget_for(config, cube, spill, checkpoint)
    try:
        return search(config, cube, values, budget, on_progress, searches)
    except UnsafeError as error:
        raise _naming_the_value(error, config, values, show_values, erratic) from None


def _naming_the_value(
    error: UnsafeError, config: Config, values: Values, show_values: bool, erratic: list[str]
) -> UnsafeError:
    message = str(error)
    if isinstance(error, BlockedByValue):
        (column,) = config.columns.sensitive
        message = error.message_naming(one_line(_names(config, values, show_values).of_value(column, error.code)))
    return UnsafeError("\n".join([message, *(f"  the whole table as one group: {line}" for line in erratic)]))


def check_before_search(config: Config, cube: Cube, values: Values, show_values: bool) -> None:
    """Raise what a run would raise before the work of its search: UnsafeError if no release can be safe, ConfigError if
    the table is too large for the method."""
    erratic = check_whole_table(config, cube, values, show_values)
    budget = budget_for(config, cube)
    if isinstance(config.method, Lattice):
        lattice_search(config, cube, values, budget)
    elif isinstance(config.method, Merge):
        from anon.search.assign.dispatch import merge_search

        search = merge_search(bind(config.privacy, values), cube, values, budget, lambda **facts: None)
        try:
            search.refuse_frequent()
        except UnsafeError as error:
            raise _naming_the_value(error, config, values, show_values, erratic) from None


def search(
    config: Config,
    cube: Cube,
    values: Values,
    budget: SearchBudget,
    on_progress: ProgressCallback = lambda **facts: None,
    searches: Searches = LOCAL,
) -> Outcome:
    """Return the result of the config's search, which consumes the records of the cube."""
    kind = config.method.kind
    if promised(config) is not None:
        levels = _promised_levels(config, cube)
        return lattice_search(config, cube, values, budget, on_progress, searches).run_at(levels)
    if kind == "partition":
        found = partition_search(config, cube, values, budget, on_progress, searches).run()
        if not config.release.one_level:
            return found
        from anon.recoding.one_level import at_one_level

        return at_one_level(found)
    if kind == "lattice":
        return lattice_search(config, cube, values, budget, on_progress, searches).run()
    if isinstance(config.method, Reuse):
        from anon.search import reuse

        return reuse.apply(reuse.EarlierRecoding.from_run(config.method.run), cube, budget.spill, on_progress)
    from anon.search.assign import dispatch as assign

    assigned = {"merge": assign.merge, "colour": assign.colour}[kind]
    return assigned(config, cube, values, budget, on_progress)


def threads_of(config: Config) -> int:
    """Return the number of threads of a run."""
    return min(config.limits.threads or CORES, CORES)


def memory_of(config: Config, cube: Cube) -> Memory:
    """Return the memory of a search, with the part that the sensitive values of the cube take."""
    split = 0
    if config.method.kind == "partition":
        from anon.search.partition.candidates import largest_split

        split = largest_split(cube)
    return Memory(config.limits.memory, cube.held, split)


def budget_for(
    config: Config, cube: Cube, spill: Path | None = None, checkpoint: Checkpoint | None = None
) -> SearchBudget:
    """Return the resources that the config's search may use."""
    return SearchBudget(memory_of(config, cube), threads_of(config), spill, checkpoint)


def partition_search(
    config: Config,
    cube: Cube,
    values: Values,
    budget: SearchBudget,
    on_progress: ProgressCallback,
    searches: Searches = LOCAL,
) -> PartitionSearch:
    """Return the search by partition, ready to run."""
    method = config.method
    assert isinstance(method, Partition)
    from anon.search.partition.dropping import Suppression

    criteria = bind(config.privacy, values, shared=True)
    prefer = method.prefer if isinstance(method.prefer, str) else "information_gain"
    tight, guard = method.labels == "tight", _guard(config, cube, values)
    suppression = Suppression.from_share(Fraction(method.suppress))
    return searches.partition()(
        cube, criteria, prefer, budget, on_progress, tight, method.peel, method.refine, guard, suppression
    )


def _guard(config: Config, cube: Cube, values: Values) -> Guard | None:
    """Return the coins of a search; with the criteria of each level, if these are enforced."""
    from anon.search.partition.guard import MOST, Guard

    method = config.method
    if not isinstance(method, Partition) or method.guard is None:
        return None
    skip, levels = Fraction(method.guard.skip), []
    for level in range(1, MOST + 1) if method.guard.enforce else ():
        specs = [spec.tightened(skip**-level) for spec in config.privacy]
        criteria = bind([spec for spec in specs if spec is not None], values, shared=True)
        levels.append([(criterion, cube.reading(criterion)) for criterion in criteria])
    return Guard(config.key, skip, method.guard.limit, levels)


def lattice_search(
    config: Config,
    cube: Cube,
    values: Values,
    budget: SearchBudget,
    on_progress: ProgressCallback = lambda **facts: None,
    searches: Searches = LOCAL,
) -> LatticeSearch:
    """Return the search over the lattice, ready to run."""
    from anon.recoding.levels import ColumnLevels
    from anon.search.lattice.search import GIVEN, size

    given = promised(config) is not None
    method = config.method if isinstance(config.method, Lattice) else Lattice(kind="lattice")
    nodes = size([ColumnLevels(domain) for domain in cube.domains])
    return searches.lattice()(
        cube,
        bind(config.privacy, values, shared=True),
        GIVEN if given else method.choose,
        _suppressed_share(config),
        released_values(config, values),
        budget,
        on_progress,
        every=not given and method.lists_all(nodes),
    )


def _promised_levels(config: Config, cube: Cube) -> tuple[int, ...]:
    """Return the level of each quasi-identifier of a differentially private release, which no part of the data
    chose."""
    from anon.recoding.levels import ColumnLevels

    levels, path = _levels_of_config(config)
    problems = []
    for domain in cube.domains:
        height = ColumnLevels(domain).height
        if (level := levels[domain.column]) > height:
            problems.append(Problem(below(path, domain.column), f"level {level}", f"0 to {height}, the highest"))
    if problems:
        raise ConfigError(problems)
    return tuple(levels[domain.column] for domain in cube.domains)


def _levels_of_config(config: Config) -> tuple[dict[str, int], str]:
    """Return levels by column, and where the config has them."""
    if isinstance(config.method, Reuse):
        from anon.search import reuse

        return reuse.EarlierRecoding.from_run(config.method.run).levels, reuse.FIELD
    promise = promised(config)
    assert promise is not None
    return promise.levels, f"privacy[{config.privacy.index(promise)}].differential_privacy.levels"


def released_values(config: Config, values: Values) -> Callable[[int, list[int]], Criterion]:
    """Return the function that binds a criterion, by its position, to the values of its column that remain, given the
    number of individuals with each."""

    def bound(at: int, frequency: list[int]) -> Criterion:
        spec = config.privacy[at]
        (column,), remaining = spec.about(), [code for code, count in enumerate(frequency) if count]
        texts, objects = values.texts[column], values.objects[column]
        released = Values(
            {column: [texts[code] for code in remaining]},
            {column: [frequency[code] for code in remaining]},
            objects={column: [objects[code] for code in remaining]},
        )
        return bind([spec], released, absent=True)[0]

    return bound


def sensitive_values(config: Config, cube: Cube, earlier: EarlierGroups | None = None) -> Values:
    """Return the sensitive values of the table and the number of individuals with each, with the groups that are
    published already."""
    texts, frequency, objects = {}, {}, {}
    for index, column in enumerate(config.columns.sensitive):
        domain, whole = cube.domain(column), cube.whole_table(index)
        counts = np.zeros(domain.size, np.int64)
        counts[whole.value] = whole.count
        texts[column], frequency[column], objects[column] = domain.texts, counts.tolist(), domain.objects
    crossed = CrossTables(cube, config.limits.memory)
    earlier = earlier or EarlierGroups()
    return Values(texts, frequency, crossed, cube.tuples, objects, config.columns.multiplicity, earlier)


def whole_table(cube: Cube, values: Values, criterion: Criterion) -> Groups:
    """Return the table as one group, as a criterion reads it."""
    signatures = []
    for attributes in criterion.attributes:
        assert isinstance(values.cross_table, CrossTables)
        people = values.cross_table.people(attributes)
        signatures.append(Signatures(np.array([0, len(people)]), np.arange(len(people)), people))
    return replace(cube.whole_table(cube.reading(criterion)), signatures=tuple(signatures))


def check_whole_table(config: Config, cube: Cube, values: Values, show_values: bool) -> list[str]:
    """Raise UnsafeError if the whole table as one group fails a monotone criterion, because then every release does.
    Return how it fails other criteria, which may still hold for smaller groups, or after some were suppressed."""
    suppress = _suppressed_share(config)
    names = _names(config, values, show_values)
    lines: list[str] = []
    erratic: list[str] = []
    for criterion in bind(config.privacy, values):
        whole = whole_table(cube, values, criterion)
        state = criterion.with_earlier(criterion.state(whole))
        failed = [finding for finding in criterion.verdict(state).findings if not finding.safe]
        messages = lines if prunes(criterion, suppress) else erratic
        for finding in sorted(failed, key=lambda f: f.bound - f.figure)[:FEW_REFUSALS]:
            near = criterion.nearest(whole, finding)
            holds = f"; would hold: {' or '.join(near)}" if near else ""
            messages.append(refusal(criterion, finding, names) + holds)
        if len(failed) > FEW_REFUSALS:
            messages.append(f"{criterion.name}: {len(failed) - FEW_REFUSALS:,} more")
    if lines:
        intro = "no release is safe: even the whole table as one group fails, and splitting only makes it worse"
        raise UnsafeError("\n".join([intro, *(f"  {line}" for line in lines)]))
    return erratic


def _suppressed_share(config: Config) -> Fraction:
    """Return the largest share of individuals that may be suppressed; with a reused recoding that suppresses some it
    is 1, because these may now hold any individuals, and so it is in a differentially private release."""
    if promised(config) is not None:
        return Fraction(1)
    if isinstance(config.method, Reuse):
        from anon.search import reuse

        return Fraction(reuse.EarlierRecoding.from_run(config.method.run).suppresses)
    return Fraction(getattr(config.method, "suppress", 0))


def _names(config: Config, values: Values, show_values: bool) -> Names:
    return Names.from_config(config, values.texts, values.frequency, show_values)
