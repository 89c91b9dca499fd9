"""The compiled loops of skylines, in kernels.c."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anon.compiled import loop, read, written
from anon.criteria.protocol import Floats, Ints

_INTS, _MATRIX = read(np.int64), read(np.int64, 2)
_OUT, _VALUES = written(np.int64), written(np.float64, 2)

_lower_minima = loop(
    "skyline_lower_minima", int, _INTS, _INTS, _INTS, _INTS, _INTS, _INTS, _INTS, _MATRIX, _VALUES, _OUT, _OUT
)
_fold_skyline = loop(
    "skyline_fold", int, _INTS, _INTS, _INTS, _INTS, _INTS, _INTS, _INTS, _MATRIX, _INTS, written(np.int64, 2),
    _VALUES, written(np.int64, 3), int, _OUT, _OUT, _OUT, _OUT, _OUT, written(np.float64),
)  # fmt: skip
ratios = loop("skyline_ratios", read(np.float64, 2), written(np.float64, 3))
_beside = loop(
    "skyline_beside", int, _INTS, _INTS, _INTS, _INTS, _INTS, _INTS, _INTS, _MATRIX, read(np.float64), read(np.float64),
    read(np.float64), written(np.float64), written(np.int8), written(np.int8), _OUT, _OUT,
)  # fmt: skip
judge = loop("skyline_judge", read(np.float64, 2), read(np.float64), read(np.float64), written(np.int8))


def lower_minima(
    kind: int, n: Ints, start: Ints, value: Ints, count: Ints, owner: Ints, slot_start: Ints, slot_of: Ints,
    knowledge: Ints, values: Floats,
) -> None:  # fmt: skip
    """Lowers values[owner] (five per slot) by every group."""
    most = int(knowledge[:, 0].max(initial=0))
    room = np.empty(most + 1, np.int64), np.empty(most, np.int64)
    _lower_minima(kind, n, start, value, count, owner, slot_start, slot_of, knowledge, values, *room)


def beside(
    kind: int, n: Ints, start: Ints, value: Ints, count: Ints, owner: Ints, slot_start: Ints, slot_of: Ints,
    knowledge: Ints, least: Floats, tolerance: Floats, release: Floats, verdict: NDArray[np.int8],
    lowers: NDArray[np.int8],
) -> None:  # fmt: skip
    """Judges the minima of a release with the groups of each owner added, given verdicts that are safe and zeros."""
    most = int(knowledge[:, 0].max(initial=0))
    room = np.empty(most + 1, np.int64), np.empty(most, np.int64)
    _beside(
        kind, n, start, value, count, owner, slot_start, slot_of, knowledge, least, tolerance, release, release.copy(),
        verdict, lowers, *room,
    )  # fmt: skip


def fold_skyline(
    kind: int, n: Ints, start: Ints, value: Ints, count: Ints, asked: Ints, slot_start: Ints, slot_of: Ints,
    knowledge: Ints, depth: Ints, memo: Ints, values: Floats, witness: Ints, first: int,
) -> None:  # fmt: skip
    """Lowers values[0] (five per slot) by every group, and fills in the witnesses; `memo` has zeros or no rows."""
    most = int(depth[-1]) if len(depth) else 0
    sizes = (most + 1, most, most + 3, len(depth), len(depth))
    room = [np.empty(size, np.int64) for size in sizes]
    _fold_skyline(
        kind, n, start, value, count, asked, slot_start, slot_of, knowledge, depth, memo, values, witness, first,
        *room, np.zeros(len(depth)),
    )  # fmt: skip
