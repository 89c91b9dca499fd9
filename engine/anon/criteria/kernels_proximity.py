"""The compiled loops of the proximity criteria, in kernels_proximity.c."""

from __future__ import annotations

import numpy as np

from anon.compiled import loop, read, written
from anon.criteria.protocol import Floats, Ints

_IN = read(np.int64)
_FLOATS = read(np.float64)
_OUT = written(np.int64)
_FLOATS_OUT = written(np.float64)

_sort_places = loop("proximity_sort_places", _IN, _IN, _IN, int, _OUT, _OUT, _OUT, _OUT, _OUT, _OUT)
largest_window = loop("proximity_largest_window", _IN, _IN, _IN, _IN, _IN, _OUT)
_largest_listed = loop("proximity_largest_listed", _IN, _IN, _IN, _IN, _IN, _OUT, _OUT)
_distance_in_tree = loop(
    "proximity_distance_in_tree", _IN, _IN, _IN, _IN, read(np.int64, 2), read(np.float64, 2), _FLOATS_OUT, _OUT
)
distance_on_line = loop("proximity_distance_on_line", _IN, _IN, _IN, _IN, _FLOATS, _FLOATS, _FLOATS, _FLOATS_OUT)
variances = loop("proximity_variances", _IN, _IN, _IN, _FLOATS, _FLOATS_OUT)


def sort_places(start: Ints, place: Ints, count: Ints, places: int, out_place: Ints, out_count: Ints) -> None:
    at, cursor = np.zeros(places + 1, np.int64), start.copy()
    group, entry = np.empty_like(out_place), np.empty_like(out_place)
    _sort_places(start, place, count, places, out_place, out_count, at, cursor, group, entry)


def largest_listed(start: Ints, value: Ints, count: Ints, near_start: Ints, near: Ints, out: Ints) -> None:
    _largest_listed(start, value, count, near_start, near, out, np.zeros(near_start.size - 1, np.int64))


def distance_in_tree(n: Ints, start: Ints, value: Ints, count: Ints, node: Ints, share: Floats, out: Floats) -> None:
    _distance_in_tree(n, start, value, count, node, share, out, np.zeros(share.shape[1], np.int64))
