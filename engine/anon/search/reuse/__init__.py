"""The recoding of an earlier run on new rows (`method: {kind: reuse, run: RUN}`), in place of a search between cube and
release (config -> source -> cube -> search -> release -> verify -> report). `earlier` reads what that run wrote down
and makes sure that the new domains know its values, `tree` and `levels` apply it. Whether the release is safe is for
verify to say; here rows are refused that the recoding has no place for."""

from __future__ import annotations

from pathlib import Path

from anon.core.progress import ProgressCallback
from anon.cube import Cube
from anon.recoding.outcome import GroupCounts, Outcome
from anon.search.reuse.counting import unique_before
from anon.search.reuse.earlier import Earlier
from anon.search.reuse.levels import apply_levels
from anon.search.reuse.tree import apply_tree

__all__ = ["Earlier", "apply"]


def apply(earlier: Earlier, cube: Cube, spill: Path | None, on_progress: ProgressCallback) -> Outcome:
    """The groups of the new rows by an earlier recoding."""
    earlier.check_hierarchies(cube.domains)
    counts = GroupCounts(cube.sensitive, spill)
    apply_it = apply_tree if earlier.method == "partition" else apply_levels
    found = Outcome(apply_it(earlier, cube, counts, on_progress), counts, unique_before(cube))
    cube.records.close()
    return found
