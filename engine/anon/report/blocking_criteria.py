"""Find the criteria that keep the groups of a release from being split further, for report.json and `explain`, from the
groups that verification has counted.

A criterion blocks a group if no cut at all, wherever it lies, could leave parts that are safe for it: the group has
fewer than twice the individuals of the smallest safe group, or too few outside its most frequent values. Only relaxing
it could divide such a group. The finest groups have nothing left to cut, whatever the criteria; the others have cuts
left, of which the search found none safe for every criterion. So relaxing one criterion alone divides at most the
groups that are not the finest and that no other one blocks; which of them it does, `relaxing` finds out from the
source."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anon.criteria import Criterion, Groups, Ints
from anon.verify.grouped import Grouped, Reading
from anon.verify.histograms import histograms

Flags = NDArray[np.bool_]
MANY = 2_000_000  # groups; with more of them blocking is not reported
LARGEST = 5  # blocked groups that are listed for each criterion


def blocking(grouped: Grouped, criteria: list[Criterion], finest: Flags) -> dict[str, Any]:
    """Return for each criterion, in their order, the numbers of groups and individuals that it blocks, that no other
    criterion blocks, and that relaxing it could divide at most, and the largest groups that it blocks. `finest` flags
    the groups, in the order of `grouped`, that have nothing left to cut."""
    groups = len(finest)
    if groups > MANY:
        return {}
    readings = {_reading(grouped, criterion) for criterion in criteria}
    blocked, sizes = np.zeros((len(criteria), groups), bool), np.zeros(groups, np.int64)
    for reading in readings:
        own = [at for at, criterion in enumerate(criteria) if _reading(grouped, criterion) == reading]
        first = 0
        for batch in histograms(grouped, reading):
            for at in own:
                blocked[at, first : first + len(batch)] = _blocks(criteria[at], batch)
            sizes[first : first + len(batch)] = batch.n
            first += len(batch)
    blocked &= ~finest
    times = blocked.sum(axis=0)
    entries = [_entry(criterion, blocked[at], times, sizes, finest) for at, criterion in enumerate(criteria)]
    return {"criteria": entries, "refused": _counted((times == 0) & ~finest, sizes), "finest": _counted(finest, sizes)}


def _counted(which: Flags, sizes: Ints) -> dict[str, int]:
    return {"groups": int(which.sum()), "individuals": int(sizes[which].sum())}


def _reading(grouped: Grouped, criterion: Criterion) -> Reading:
    """Return how to read whole groups for a criterion: by its column, if it has one."""
    return Reading((criterion.column,) if criterion.column else tuple(grouped.sensitive[:1]))


def _blocks(criterion: Criterion, groups: Groups) -> Flags:
    from anon.search.partition.candidates import Demands

    pairs = criterion.demands if not criterion.context else ()
    largest, fewest = (np.array([pair[i] for pair in pairs], np.int64) for i in (0, 1))
    return Demands(criterion.least_group, 0, fewest, largest).barren(groups.n, groups)


def _entry(criterion: Criterion, own: Flags, times: Ints, sizes: Ints, finest: Flags) -> dict[str, Any]:
    most = np.argsort(np.where(own, -sizes, 0), kind="stable")[: min(LARGEST, int(own.sum()))].tolist()
    return {
        "name": criterion.name,
        **_counted(own, sizes),
        "only": _counted(own & (times == 1), sizes),
        "at_most": _counted((times == own) & ~finest, sizes),
        "largest": [{"group": group, "individuals": int(sizes[group])} for group in most],
    }
