"""The searches that end in an assignment of people to groups instead of a recoding, *merge* and *colour*, as the
pipeline calls them: binds the criteria, runs the search, and merges groups that fail a criterion, or refuses them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anon.config import Config
from anon.core.progress import ProgressCallback
from anon.criteria import Criterion, Dissimilarity, RRobustness, Values, bind
from anon.cube import Cube
from anon.errors import BlockedByValue, UnsafeError
from anon.recoding.assignment import Assignment
from anon.recoding.outcome import Outcome
from anon.search.assign.colour import Colour
from anon.search.assign.mending import Mending
from anon.search.assign.merge import Merge
from anon.search.budget import SearchBudget
from anon.search.cross_tables import Adversaries, Adversary, CrossTables

AIMED = {"merge": ("r_robustness", "group_size"), "colour": ("dissimilarity", "group_size")}


def merge(config: Config, cube: Cube, values: Values, means: SearchBudget, on_progress: ProgressCallback) -> Outcome:
    """Groups for r-robustness. `values.cross_table` are the cross tables of the cube."""
    criteria = bind(config.privacy, values)
    aimed = [criterion for criterion in criteria if isinstance(criterion, RRobustness)]
    others = [criterion for criterion in criteria if not isinstance(criterion, RRobustness)]
    assert isinstance(values.cross_table, CrossTables)
    adversaries = Adversaries(aimed, values.cross_table)
    search = Merge(cube, adversaries, _least(others), means, on_progress)
    return assigned("merge", search, criteria, means, adversaries.all)


def colour(config: Config, cube: Cube, values: Values, means: SearchBudget, on_progress: ProgressCallback) -> Outcome:
    """Groups for dissimilarity."""
    criteria = bind(config.privacy, values)
    (aimed,) = [criterion for criterion in criteria if isinstance(criterion, Dissimilarity)]
    return assigned("colour", Colour(cube, aimed, _least(criteria), means, on_progress), criteria, means)


def _least(criteria: list[Criterion]) -> int:
    return max((criterion.least_group for criterion in criteria), default=1)


def assigned(
    method: str,
    search: Merge | Colour,
    criteria: list[Criterion],
    means: SearchBudget,
    adversaries: Sequence[Adversary] = (),
) -> Outcome:
    """Return what a search comes to under all criteria; UnsafeError if the whole table as one group fails too."""
    assignment = Assignment(method, search.cube.domains, spill=means.spill)
    unique = search.run(assignment.add)
    assignment.facts = search.facts
    before, own = assignment.groups, np.zeros(assignment.groups, bool)
    own[search.doubtful] = True
    doubtful = [own if c.name in AIMED[method] else np.ones(before, bool) for c in criteria]
    if any(mask.any() for mask in doubtful):
        mending = Mending(assignment, criteria, adversaries, means)
        if not mending.run(doubtful):
            raise _refusal(method, search.refusal, mending.failing)
        assignment.facts |= {"groups_before_mending": before}
    return Outcome(assignment, None, unique, sum(one.prior.nbytes for one in adversaries))


def _refusal(method: str, search: BlockedByValue | None, failing: list[list[str]]) -> UnsafeError:
    """What the search says of people it could not place, or what its groups failed at first, and what fails in the
    end."""
    first, last = (", ".join(names) for names in (failing[0], failing[-1]))
    end = f"merged with ever more groups, up to the whole table as one group, they fail {last}"
    if search is not None:
        return BlockedByValue(f"{search.template}; {end}", search.code)
    return UnsafeError(f"no safe release was found: groups that {method} made do not satisfy {first}; {end}")
