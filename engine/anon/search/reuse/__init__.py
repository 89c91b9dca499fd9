"""Apply the recoding of an earlier run to new rows (`method: {kind: reuse, run: RUN}`), in place of a search. `earlier`
reads the file of that run and makes sure that the new domains contain its values, `tree` and `levels` apply it.
Verification decides whether the release is safe; here only rows are refused that the recoding does not cover."""

from __future__ import annotations

from pathlib import Path

from anon.core.progress import ProgressCallback
from anon.cube import Cube
from anon.recoding.outcome import GroupCounts, Outcome
from anon.search.reuse.counting import unique_before
from anon.search.reuse.earlier_recoding import FIELD, EarlierRecoding
from anon.search.reuse.levels import apply_levels
from anon.search.reuse.tree import apply_tree

__all__ = ["FIELD", "EarlierRecoding", "apply"]


def apply(earlier: EarlierRecoding, cube: Cube, spill: Path | None, on_progress: ProgressCallback) -> Outcome:
    """Return the groups of the new rows under an earlier recoding."""
    earlier.check_hierarchies(cube.domains)
    counts = GroupCounts(cube.sensitive, spill)
    apply_it = apply_tree if earlier.method == "partition" else apply_levels
    found = Outcome(apply_it(earlier, cube, counts, on_progress), counts, unique_before(cube))
    cube.records.close()
    return found
