"""The kernels of the proximity criteria, in kernels_proximity.c."""

from __future__ import annotations

import numpy as np

from anon.core.kernels import kernel
from anon.criteria.protocol import Floats, Groups, Ints

_sort_places = kernel("proximity_sort_places")
largest_window = kernel("proximity_largest_window")
_largest_listed = kernel("proximity_largest_listed")
_distance_in_tree = kernel("proximity_distance_in_tree")
distance_on_line = kernel("proximity_distance_on_line")
variances = kernel("proximity_variances")


def sort_places(start: Ints, place: Ints, count: Ints, places: int, out_place: Ints, out_count: Ints) -> None:
    at, cursor = np.zeros(places + 1, np.int64), start.copy()
    group, entry = np.empty_like(out_place), np.empty_like(out_place)
    _sort_places(start, place, count, places, out_place, out_count, at, cursor, group, entry)


def largest_listed(groups: Groups, near_start: Ints, near: Ints, out: Ints) -> None:
    _largest_listed(*groups.arrays, near_start, near, out, np.zeros(near_start.size - 1, np.int64))


def distance_in_tree(groups: Groups, node: Ints, share: Floats, out: Floats) -> None:
    _distance_in_tree(*groups.arrays, node, share, out, np.zeros(share.shape[1], np.int64))
