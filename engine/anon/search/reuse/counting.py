"""Count the new rows under an earlier recoding: the stream over the records through which both kinds of recoding are
applied, the sensitive values of every group, and the individuals who were unique in the source."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from anon.core import interrupt
from anon.core.arrays import Codes, Ints
from anon.core.cell_index import combined
from anon.core.progress import ProgressCallback
from anon.cube import Cube
from anon.recoding.outcome import GroupCounts

BATCH = 262_144  # records
COUNTED = 10_000_000  # records among which the unique ones are counted


def batches(cube: Cube, on_progress: ProgressCallback) -> Iterator[tuple[Codes, Codes, Ints]]:
    """Yield codes of the quasi-identifiers, codes of the sensitive columns, and people of the records."""
    width, records = len(cube.domains), cube.records
    for start in range(0, records.count, BATCH):
        interrupt.check()
        codes = records.read(start, min(start + BATCH, records.count))
        yield codes[:width], codes[width : width + cube.sensitive], cube.people_of(codes)
        on_progress(done=min(start + BATCH, records.count), of=records.count)


def add(counts: GroupCounts, group: Ints, sensitive: Codes, people: Ints) -> None:
    """Add records to the counts of their groups, with equal ones combined."""
    key = combined([group, *sensitive])
    _, first, same = np.unique(key, return_index=True, return_inverse=True)
    total = np.bincount(same.reshape(-1), weights=people, minlength=len(first)).astype(np.int64)
    counts.add(group[first], sensitive[:, first].T, total)


def unique_before(cube: Cube) -> int | None:
    """Return the number of individuals with unique quasi-identifiers; None where that would take too much memory."""
    if cube.records.count > COUNTED:
        return None
    parts = [(codes.copy(), people) for codes, _, people in batches(cube, lambda **facts: None)]
    codes, people = (np.concatenate(each, axis=-1) for each in zip(*parts))
    _, same = np.unique(combined(list(codes)), return_inverse=True)
    return int((np.bincount(same.reshape(-1), weights=people) == 1).sum())
