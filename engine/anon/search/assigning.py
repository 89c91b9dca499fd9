"""The searches that end in an assignment of people to groups instead of a recoding, *merge* and *colour*, as the
pipeline calls them: binds the criteria, runs the search, and refuses what it found if a criterion that the method does
not aim at fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pyarrow as pa

from anon.config import Config
from anon.criteria import Criterion, Dissimilarity, Groups, RRobustness, State, Values, bind
from anon.cube import Cube
from anon.database import connect, interruptible, translated
from anon.errors import UnsafeError
from anon.progress import Tell
from anon.search.adversaries import Adversaries, CrossTables
from anon.search.assignment import Assignment
from anon.search.colour import Colour
from anon.search.means import Means
from anon.search.merge import Merge
from anon.search.outcome import Outcome

BATCH = 131_072  # entries


def merge(config: Config, cube: Cube, values: Values, means: Means, tell: Tell) -> Outcome:
    """Groups for r-robustness. `values.cross_table` are the cross tables of the cube."""
    criteria = bind(config.privacy, values)
    aimed = [criterion for criterion in criteria if isinstance(criterion, RRobustness)]
    assert isinstance(values.cross_table, CrossTables)
    search = Merge(cube, Adversaries(aimed, values.cross_table), _least(criteria), means, tell)
    return _outcome("merge", search, criteria, "r_robustness", means)


def colour(config: Config, cube: Cube, values: Values, means: Means, tell: Tell) -> Outcome:
    """Groups for dissimilarity."""
    criteria = bind(config.privacy, values)
    (aimed,) = [criterion for criterion in criteria if isinstance(criterion, Dissimilarity)]
    return _outcome("colour", Colour(cube, aimed, _least(criteria), means, tell), criteria, "dissimilarity", means)


def _least(criteria: list[Criterion]) -> int:
    return max(criterion.least_group for criterion in criteria)


def _outcome(method: str, search: Merge | Colour, criteria: list[Criterion], aimed: str, means: Means) -> Outcome:
    assignment = Assignment(method, search.cube.domains, spill=means.spill)
    unique = search.run(assignment.add)
    assignment.facts = search.facts
    others = [criterion for criterion in criteria if criterion.name not in (aimed, "group_size")]
    if others:
        _refuse_unsafe(method, assignment, others, means)
    priors = [prior for criterion in criteria if isinstance(criterion, RRobustness) for prior in criterion.priors]
    return Outcome(assignment, None, unique, sum(prior.nbytes for prior in priors))


def _refuse_unsafe(method: str, assignment: Assignment, criteria: list[Criterion], means: Means) -> None:
    """UnsafeError if the groups fail criteria that the method does not aim at."""
    states: list[State] = []
    for groups in _histograms(assignment, means):
        found = [criterion.state(groups) for criterion in criteria]
        states = [before.merge(after) for before, after in zip(states, found)] if states else found
    failed = [criterion.verdict(state) for criterion, state in zip(criteria, states)]
    told = [f"{v.name} ({v.figure:.6g}, asked for {v.bound:.6g})" for v in failed if not v.safe]
    if told:
        raise UnsafeError(
            f"no safe release was found: the groups that {method} made do not satisfy {', '.join(told)}, which it does "
            "not aim at"
        )


def _histograms(assignment: Assignment, means: Means) -> Iterator[Groups]:
    """The groups with the values they have, in pieces."""
    reader = pa.RecordBatchReader.from_batches(assignment.schema, assignment.batches())
    query = "SELECT g, s0, sum(n)::BIGINT AS n FROM assigned GROUP BY g, s0 ORDER BY g, s0"
    held: list[pa.RecordBatch] = []
    assert means.spill is not None
    with closing(connect(means.memory.total, means.threads, means.spill)) as con:
        con.register("assigned", reader)
        with translated("checking the groups"):
            batches = con.sql(query).to_arrow_reader(BATCH)
        for batch in interruptible(batches, "checking the groups"):
            if batch.num_rows:
                held.append(batch)
                group = batch.column(0).to_numpy()
                whole = int(np.searchsorted(group, group[-1]))  # the last group may go on in the next batch
                if whole:
                    yield _groups([*held[:-1], batch.slice(0, whole)])
                    held = [batch.slice(whole)]
    if held:
        yield _groups(held)


def _groups(batches: list[pa.RecordBatch]) -> Groups:
    group, value, count = (np.concatenate([b.column(i).to_numpy() for b in batches]).astype(np.int64) for i in range(3))
    first = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
    return Groups(np.add.reduceat(count, first), np.append(first, len(group)), value, count, int(group[0]))
