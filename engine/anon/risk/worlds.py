"""Worlds of a group: who of its people has which of its published values. All of them where they are few, else random
ones, each equally likely."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from anon.core.arrays import Flags, Ints
from anon.criteria import Criterion, Groups

Worlds = NDArray[np.uint8]  # [worlds, people] which of the group's values each has
TABLE = 2**14  # parts of a group, by their counts, that are judged beforehand
LARGEST = 2**52  # the number of a part by its counts, as a float


def number_of_worlds(counts: Ints, most: int) -> int:
    """Return the number of worlds of a group with these counts of values, or a number above `most`.

    >>> number_of_worlds(np.array([2, 1, 1]), 100)
    12
    """
    found, left = 1, int(counts.sum())
    for count in sorted(counts.tolist()):
        for taken in range(1, count + 1):
            found, left = found * left // taken, left - 1
        if found > most:
            break
    return found


def every_world(counts: Ints) -> Worlds:
    """Return all worlds of a group.

    >>> every_world(np.array([2, 1])).tolist()
    [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    """
    worlds, left = np.zeros((1, 0), np.uint8), np.array([counts], np.int64)
    for _ in range(int(counts.sum())):
        pieces, lefts = [], []
        for value in range(len(counts)):
            own = left[:, value] > 0
            pieces.append(np.column_stack([worlds[own], np.full(int(own.sum()), value, np.uint8)]))
            lefts.append(left[own] - np.eye(len(counts), dtype=np.int64)[value])
        worlds, left = np.concatenate(pieces), np.concatenate(lefts)
    return worlds[np.lexsort(worlds.T[::-1])]


def random_worlds(counts: Ints, number: int, seed: int) -> Worlds:
    """Return random worlds of a group, the same for the same seed."""
    each = np.repeat(np.arange(len(counts), dtype=np.uint8), counts)
    return np.random.default_rng(seed).permuted(np.tile(each, (number, 1)), axis=1)


class Judge:
    """Decides whether groups may be parts of a release, as the search did by criteria that judge each alone."""

    def __init__(self, criteria: list[Criterion], values: int) -> None:
        self.criteria, self.values = criteria, values

    def safe(self, counts: Ints) -> Flags:
        """Return whether every criterion accepts groups with these counts [groups, values]; empty groups are safe."""
        safe: Flags = np.ones(len(counts), bool)
        some = np.flatnonzero(counts.any(axis=1))
        groups = Groups.dense(counts[some])
        for criterion in self.criteria:
            safe[some[~criterion.safe_alone(groups, len(some))]] = False
        return safe

    def safe_parts(self, worlds: Worlds, parts: Flags, codes: Ints, counts: Ints) -> Flags:
        """Return [worlds, parts] whether parts of a group [parts, people] are safe in worlds. `codes` and `counts` are
        those of the group's values."""
        if prod((counts + 1).tolist()) > LARGEST:
            own = np.zeros((len(worlds), len(parts), self.values), np.int64)
            for at, code in enumerate(codes.tolist()):
                own[:, :, code] = np.rint((worlds == at).astype(np.float64) @ parts.T)
            return self.safe(own.reshape(-1, self.values)).reshape(len(worlds), len(parts))
        radix = np.cumprod(np.append(1, counts[:-1] + 1))
        keys: Ints = np.rint(radix[worlds].astype(np.float64) @ parts.T).astype(np.int64)
        if prod((counts + 1).tolist()) <= TABLE:
            distinct, place = np.arange(prod((counts + 1).tolist())), keys
        else:
            distinct, place = np.unique(keys, return_inverse=True)
        safe: Flags = self._safe_keys(distinct, radix, codes, counts)[place.reshape(keys.shape)]
        return safe

    def _safe_keys(self, keys: Ints, radix: Ints, codes: Ints, counts: Ints) -> Flags:
        own = np.zeros((len(keys), self.values), np.int64)
        own[:, codes] = keys[:, None] // radix % (counts + 1)
        return self.safe(own)
