"""The kernels of skylines, in kernels_skyline.c and kernels_skyline_fold.c."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anon.core.kernels import kernel
from anon.criteria.protocol import Floats, Groups, Ints

if TYPE_CHECKING:
    from anon.criteria.skyline import SlotArrays

_lower_minima = kernel("skyline_lower_minima")
_fold = kernel("skyline_fold")
_beside = kernel("skyline_beside")
ratios = kernel("skyline_ratios")
judge = kernel("skyline_judge")


def _largest(slots: SlotArrays) -> tuple[Ints, Ints]:
    """Return scratch space for the largest counts of a group, and for those without one of them."""
    return np.empty(slots.deepest + 1, np.int64), np.empty(slots.deepest, np.int64)


def lower_minima(kind: int, groups: Groups, slots: SlotArrays, owner: Ints, values: Floats) -> None:
    """Lower values[owner] (five per slot) by every group."""
    _lower_minima(kind, *groups.arrays, *slots.arrays, owner, values, *_largest(slots))


def beside(
    kind: int, groups: Groups, slots: SlotArrays, owner: Ints, bounds: tuple[Floats, Floats], release: Floats,
    verdict: NDArray[np.int8], lowers: NDArray[np.int8],
) -> None:  # fmt: skip
    """Judge the minima of a release with the groups of each owner added. `bounds` are the least ratio of each slot and
    its tolerance; the verdicts begin as safe, `lowers` as zeros."""
    minima = release, release.copy()
    _beside(kind, *groups.arrays, *slots.arrays, owner, *bounds, *minima, verdict, lowers, *_largest(slots))


def fold(
    kind: int, groups: Groups, slots: SlotArrays, asked: Ints, depth: Ints, memo: Ints, values: Floats, witness: Ints
) -> None:
    """Lower values (five per slot) by every group, and fill in the witnesses; `memo` has zeros or no rows."""
    scratch = np.empty(slots.deepest + 3, np.int64), np.empty_like(depth), np.empty_like(depth), np.zeros(len(depth))
    known = *slots.arrays, asked, depth
    _fold(kind, *groups.arrays, groups.first, *known, memo, values, witness, *_largest(slots), *scratch)
