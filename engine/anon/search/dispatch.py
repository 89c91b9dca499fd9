"""The search that a config asks for, between the cube and the release (config -> source -> cube -> search -> release ->
verify -> report): which one it is, what it may use, and what is told when no release is safe."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from anon.config import Config, Lattice, Merge, Reuse
from anon.core.checkpoint import Checkpoint
from anon.core.memory import Memory
from anon.core.progress import ProgressCallback
from anon.core.terminal import one_line
from anon.criteria import Criterion, Groups, Signatures, Values, bind, prunes
from anon.criteria.naming import Names, refusal
from anon.cube import Cube
from anon.errors import BlockedByValue, UnsafeError
from anon.search.budget import SearchBudget
from anon.search.cross_tables import CrossTables

if TYPE_CHECKING:
    from anon.recoding.outcome import Outcome
    from anon.search.lattice import Lattice as LatticeSearch
    from anon.search.partition.search import Partition

CORES = os.cpu_count() or 1
FEW_REFUSALS = 5  # failures that are told of each criterion


class Searches:
    """The classes that search for a recoding on a backend."""

    def partition(self) -> type[Partition]:
        from anon.search.partition.search import Partition

        return Partition

    def lattice(self) -> type[LatticeSearch]:
        from anon.search.lattice import Lattice

        return Lattice


LOCAL = Searches()


def searched(
    config: Config,
    cube: Cube,
    spill: Path,
    checkpoint: Checkpoint,
    show_values: bool,
    on_progress: ProgressCallback,
    searches: Searches = LOCAL,
) -> Outcome:
    """What the search of a run comes to; UnsafeError, in the user's words, if no release is safe."""
    values = sensitive_values(config, cube)
    erratic = check_whole_table(config, cube, values, show_values)
    means = budget_for(config, cube, spill, checkpoint)
    try:
        return search(config, cube, values, means, on_progress, searches)
    except UnsafeError as error:
        said = str(error)
        if isinstance(error, BlockedByValue):
            (column,) = config.columns.sensitive
            said = error.message_naming(one_line(_names(config, values, show_values).of_value(column, error.code)))
        whole = (f"  the whole table as one group: {line}" for line in erratic)
        raise UnsafeError("\n".join([said, *whole])) from None


def search(
    config: Config,
    cube: Cube,
    values: Values,
    means: SearchBudget,
    on_progress: ProgressCallback = lambda **facts: None,
    searches: Searches = LOCAL,
) -> Outcome:
    """Run the config's search. Takes the records of the cube with it."""
    kind = config.method.kind
    if kind == "partition":
        return partition_search(config, cube, values, means, on_progress, searches).run()
    if kind == "lattice":
        return lattice_search(config, cube, values, means, on_progress, searches).run()
    if isinstance(config.method, Reuse):
        from anon.search import reuse

        return reuse.apply(reuse.Earlier.of(config.method.run), cube, means.spill, on_progress)
    from anon.search.assign import dispatch as assign

    assigned = assign.merge if isinstance(config.method, Merge) else assign.colour
    return assigned(config, cube, values, means, on_progress)


def threads_of(config: Config) -> int:
    return min(config.limits.threads or CORES, CORES)


def memory_of(config: Config, cube: Cube) -> Memory:
    """The memory of a search, with what the sensitive values of the cube take of it."""
    split = 0
    if config.method.kind == "partition":
        from anon.search.partition.candidates import largest_split

        split = largest_split(cube)
    return Memory(config.limits.memory, cube.held, split)


def budget_for(
    config: Config, cube: Cube, spill: Path | None = None, checkpoint: Checkpoint | None = None
) -> SearchBudget:
    """What the config's search may use."""
    return SearchBudget(memory_of(config, cube), threads_of(config), spill, checkpoint)


def partition_search(
    config: Config,
    cube: Cube,
    values: Values,
    means: SearchBudget,
    on_progress: ProgressCallback,
    searches: Searches = LOCAL,
) -> Partition:
    """Return the search by partition, ready to run."""
    prefer = config.method.prefer  # type: ignore[union-attr]
    criteria = bind(config.privacy, values, shared=True)
    prefer = prefer if isinstance(prefer, str) else "information_gain"
    return searches.partition()(cube, criteria, prefer, means, on_progress)


def lattice_search(
    config: Config,
    cube: Cube,
    values: Values,
    means: SearchBudget,
    on_progress: ProgressCallback = lambda **facts: None,
    searches: Searches = LOCAL,
) -> LatticeSearch:
    """Return the search over the lattice, ready to run."""
    method = config.method
    assert isinstance(method, Lattice)
    return searches.lattice()(
        cube,
        bind(config.privacy, values, shared=True),
        method.choose,
        Fraction(method.suppress),
        released_values(config, values),
        means,
        on_progress,
    )


def released_values(config: Config, values: Values) -> Callable[[int, list[int]], Criterion]:
    """Binds a criterion, by its place, to the values of its column that are left, given how many have each."""

    def bound(at: int, frequency: list[int]) -> Criterion:
        spec = config.privacy[at]
        (column,), left = spec.about(), [code for code, count in enumerate(frequency) if count]
        texts, objects = values.texts[column], values.objects[column]
        released = Values(
            {column: [texts[code] for code in left]},
            {column: [frequency[code] for code in left]},
            objects={column: [objects[code] for code in left]},
        )
        return bind([spec], released, absent=True)[0]

    return bound


def sensitive_values(config: Config, cube: Cube) -> Values:
    """The sensitive values of the table and how many individuals have each."""
    texts, frequency, objects = {}, {}, {}
    for index, column in enumerate(config.columns.sensitive):
        domain, whole = cube.domain(column), cube.whole_table(index)
        counts = np.zeros(domain.size, np.int64)
        counts[whole.value] = whole.count
        texts[column], frequency[column], objects[column] = domain.texts, counts.tolist(), domain.objects
    crossed = CrossTables(cube, config.limits.memory)
    return Values(texts, frequency, crossed, cube.tuples, objects, config.columns.multiplicity)


def whole_table(cube: Cube, values: Values, criterion: Criterion) -> Groups:
    """Return the table as one group, as a criterion looks at it."""
    signatures = []
    for attributes in criterion.attributes:
        assert isinstance(values.cross_table, CrossTables)
        people = values.cross_table.people(attributes)
        signatures.append(Signatures(np.array([0, len(people)]), np.arange(len(people)), people))
    return replace(cube.whole_table(cube.reading(criterion)), signatures=tuple(signatures))


def check_whole_table(config: Config, cube: Cube, values: Values, show_values: bool) -> list[str]:
    """If the whole table as one group fails a monotone criterion, so does every release. Returns how it fails others,
    which may still hold for smaller groups, or after some of them were suppressed."""
    suppress = _suppressed_share(config)
    names = _names(config, values, show_values)
    lines: list[str] = []
    erratic: list[str] = []
    for criterion in bind(config.privacy, values):
        whole = whole_table(cube, values, criterion)
        failed = [finding for finding in criterion.verdict(criterion.state(whole)).findings if not finding.safe]
        told = lines if prunes(criterion, suppress) else erratic
        for finding in sorted(failed, key=lambda f: f.bound - f.figure)[:FEW_REFUSALS]:
            near = criterion.nearest(whole, finding)
            holds = f"; would hold: {' or '.join(near)}" if near else ""
            told.append(refusal(criterion, finding, names) + holds)
        if len(failed) > FEW_REFUSALS:
            told.append(f"{criterion.name}: {len(failed) - FEW_REFUSALS:,} more")
    if lines:
        intro = "no release is safe: even the whole table as one group fails, and splitting only makes it worse"
        raise UnsafeError("\n".join([intro, *(f"  {line}" for line in lines)]))
    return erratic


def _suppressed_share(config: Config) -> Fraction:
    """The largest share of individuals that may be left out; cells that a recoding suppressed may hold anybody now."""
    if isinstance(config.method, Reuse):
        from anon.search import reuse

        return Fraction(bool(reuse.Earlier.of(config.method.run).data.get("suppressed_cells")))
    return Fraction(getattr(config.method, "suppress", 0))


def _names(config: Config, values: Values, show_values: bool) -> Names:
    return Names.from_config(config, values.texts, values.frequency, show_values)
