"""The kernels of kernels_refine.c, with their scratch space."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from anon.core.arrays import Codes, Flags, Ints
from anon.core.kernels import kernel

_ways = kernel("search_pool_ways")
_parts = kernel("search_pool_parts")
_near = kernel("search_near_groups")
NEAREST = 128  # groups that a group is pooled with, at most


@dataclass(frozen=True)
class Pool:
    """Individuals with their codes and sensitive values, the scales of the columns (CSR), and their groups: the members
    of group g are member[start[g]:start[g + 1]], ascending."""

    codes: Codes  # [columns, individuals]
    value: NDArray[np.int32]
    values: int
    scales: tuple[Ints, Ints]
    start: Ints
    member: NDArray[np.int32]

    @property
    def _given(self) -> tuple[object, ...]:
        return self.codes, self.value, self.values, *self.scales, self.start, self.member

    @cached_property
    def _scratch(self) -> list[Ints]:
        largest = np.sort(np.diff(self.start))[-2:].sum()
        return [*(np.empty(int(largest), np.int64) for _ in range(4)), np.empty(2 * self.values, np.int64)]

    def ways(self, a: Ints, b: Ints, lost: Ints, least: int, stratified: bool, most: int) -> tuple[Ints, Ints, Ints]:
        """Return the best ways to divide the pools of pairs, the best first [pairs, most]: how much less is lost (0:
        there is no more), the number of the way, and its place."""
        gain, way, place = (np.zeros((len(a), most), np.int64) for _ in range(3))
        _ways(*self._given, *self._scratch, a, b, lost, least, int(stratified), most, gain, way, place)
        return gain, way, place

    def parts(self, a: Ints, b: Ints, way: Ints, place: Ints) -> tuple[Ints, NDArray[np.int32], Ints]:
        """Return where the members of each pool start, the members with those of the first part first, and the size of
        that part."""
        size = np.diff(self.start)
        start = np.append(0, np.cumsum(np.where(a == b, size[a], size[a] + size[b])))
        member, first = np.empty(int(start[-1]), np.int32), np.empty(len(a), np.int64)
        _parts(*self._given, *self._scratch, a, b, way, place, start, member, first)
        return start, member, first


def near_groups(low: Ints, high: Ints, width: Ints, changed: Flags) -> tuple[Ints, Ints]:
    """Return pairs of groups: each changed one with the groups nearest to it, if their common range is not much wider
    than theirs."""
    groups = len(low)
    near, scratch = np.empty((groups, NEAREST), np.int64), np.empty(NEAREST, np.int64)
    _near(low, high, width, changed, near, scratch)
    own, found = np.nonzero(near >= 0)
    other = near[own, found]
    pairs = np.unique(np.minimum(own, other) * groups + np.maximum(own, other))
    return pairs // groups, pairs % groups
