"""Find the groups of an examined table that attain the minima of the criteria about all groups together: the later
parts of a series are judged beside these (criteria/earlier.py)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from anon.criteria import EarlierGroups, Groups
from anon.criteria.earlier import Histogram
from anon.verify.grouped import Grouped, Reading
from anon.verify.histograms import histograms
from anon.verify.judge import Findings


def attaining_groups(found: Findings) -> EarlierGroups:
    """Return the groups that attain the minima of the states that were found; where the table was judged in parts,
    those that attain the minima of a part."""
    if found.attaining.groups or found.table is None:
        return found.attaining
    needed: dict[str, set[int]] = {}
    for at, criterion in enumerate(found.criteria):
        if not criterion.alone:
            needed.setdefault(str(criterion.column), set()).update(found.states[at].witness[:, -1].tolist())
    return EarlierGroups(
        {column: list(_histograms(found.table, column, ids, found.values[column])) for column, ids in needed.items()}
    )


def _histograms(grouped: Grouped, column: str, ids: set[int], texts: list[str | None]) -> Iterator[Histogram]:
    """Yield some groups, by their numbers, as histograms of a sensitive column."""
    for batch in histograms(grouped, Reading((column,))):
        number = batch.first + np.arange(len(batch)) if batch.row is None else batch.row
        for at in np.flatnonzero(np.isin(number, list(ids))).tolist():
            yield _histogram(batch, at, texts)


def _histogram(groups: Groups, at: int, texts: list[str | None]) -> Histogram:
    own = slice(int(groups.start[at]), int(groups.start[at + 1]))
    values, counts = groups.value[own].tolist(), groups.count[own].tolist()
    return Histogram(int(groups.n[at]), {texts[value]: count for value, count in zip(values, counts)})
