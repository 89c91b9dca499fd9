"""Run the searches that return an assignment of people to groups instead of a recoding, *merge* and *colour*: bind the
criteria, run the search, and merge groups that fail a criterion, or refuse the release."""

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
from anon.search.assign.colour import ColourSearch
from anon.search.assign.mending import Mending
from anon.search.assign.merge import MergeSearch
from anon.search.budget import SearchBudget
from anon.search.cross_tables import Adversaries, CrossTables, MergeAdversary

AIMED = {"merge": ("r_robustness", "group_size"), "colour": ("dissimilarity", "group_size")}


def merge(config: Config, cube: Cube, values: Values, budget: SearchBudget, on_progress: ProgressCallback) -> Outcome:
    """Return groups for r-robustness. `values.cross_table` must be the cross tables of the cube."""
    criteria = bind(config.privacy, values)
    search = merge_search(criteria, cube, values, budget, on_progress)
    return assigned("merge", search, criteria, budget, search.adversaries.all)


def merge_search(
    criteria: list[Criterion], cube: Cube, values: Values, budget: SearchBudget, on_progress: ProgressCallback
) -> MergeSearch:
    """Return the search by merging, ready to run."""
    aimed = [criterion for criterion in criteria if isinstance(criterion, RRobustness)]
    others = [criterion for criterion in criteria if not isinstance(criterion, RRobustness)]
    assert isinstance(values.cross_table, CrossTables)
    return MergeSearch(cube, Adversaries(aimed, values.cross_table), _least(others), budget, on_progress)


def colour(config: Config, cube: Cube, values: Values, budget: SearchBudget, on_progress: ProgressCallback) -> Outcome:
    """Return groups for dissimilarity."""
    criteria = bind(config.privacy, values)
    (aimed,) = [criterion for criterion in criteria if isinstance(criterion, Dissimilarity)]
    return assigned("colour", ColourSearch(cube, aimed, _least(criteria), budget, on_progress), criteria, budget)


def _least(criteria: list[Criterion]) -> int:
    return max((criterion.least_group for criterion in criteria), default=1)


def assigned(
    method: str,
    search: MergeSearch | ColourSearch,
    criteria: list[Criterion],
    budget: SearchBudget,
    adversaries: Sequence[MergeAdversary] = (),
) -> Outcome:
    """Return the result of a search under all criteria; raise UnsafeError if the whole table as one group fails too."""
    assignment = Assignment(method, search.cube.domains, spill=budget.spill)
    unique = search.run(assignment.add)
    assignment.facts = search.facts
    before, own = assignment.groups, np.zeros(assignment.groups, bool)
    own[search.doubtful] = True
    doubtful = [own if c.name in AIMED[method] else np.ones(before, bool) for c in criteria]
    if any(mask.any() for mask in doubtful):
        mending = Mending(assignment, criteria, adversaries, budget)
        if not mending.run(doubtful):
            raise _refusal(method, search.refusal, mending.failing)
        assignment.facts |= {"groups_before_mending": before}
    return Outcome(assignment, None, unique, sum(one.prior.nbytes for one in adversaries))


def _refusal(method: str, search: BlockedByValue | None, failing: list[list[str]]) -> UnsafeError:
    """Return the error with the search's reason for people it could not place, or the criteria that its groups failed
    at first, and the criteria that fail in the end."""
    first, last = (", ".join(names) for names in (failing[0], failing[-1]))
    end = f"merged with ever more groups, up to the whole table as one group, they fail {last}"
    if search is not None:
        return BlockedByValue(f"{search.template}; {end}", search.code)
    return UnsafeError(f"no safe release was found: groups that {method} made do not satisfy {first}; {end}")
