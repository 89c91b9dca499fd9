"""The compiled loops of the partition search, in kernels.c: what they take, and the scratch that some of them need."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anon.compiled import loop, read, written

Ints = NDArray[np.int64]
Codes = NDArray[np.uint16]

_CODES, _NODES, _IN = read(np.uint16, 2), read(np.uint32), read(np.int64)
_CODES_OUT, _NODES_OUT, _OUT = written(np.uint16, 2), written(np.uint32), written(np.int64)
_ORDER, _ORDER_OUT = read(np.int32), written(np.int32)
_RANGES = _IN, _IN, _IN  # of nodes: where each starts and stops, and the column it is asked about
_CUTS = *_RANGES, _IN, _IN  # the same with the cuts of that column, from which to which, and all of them
RUN = 16_384  # records that `route` moves at a time, eights of them
BESIDE = 8  # codes more than there are records, which `route` sets aside

nearest = loop("search_nearest", _CODES, int, *_RANGES, _IN, _IN, _OUT, _OUT)
part_counts = loop("search_part_counts", _CODES, int, *_CUTS, int, written(np.int64, 2))
part_sizes = loop("search_part_sizes", _CODES, int, *_CUTS, _OUT)
unique_people = loop(
    "search_unique_people", _CODES, int, _IN, _IN, int, written(np.uint64), written(np.uint8), _ORDER_OUT, returns=int
)
step = loop("search_step", _CODES, read(np.uint8), _NODES, _NODES, _NODES_OUT)
top_values = loop("search_top_values", _CODES, int, _NODES, int, written(np.int64, 2))
top_bounds = loop("search_top_bounds", _CODES, _NODES, _IN, _CODES_OUT, _CODES_OUT)
scatter = loop("search_scatter", _CODES, _NODES, _OUT, _ORDER_OUT, _CODES_OUT)

_part_lists = loop("search_part_lists", _CODES, int, int, *_CUTS, int, *[_OUT] * 6, _ORDER_OUT, _OUT)
_by_code = loop("search_by_code", _CODES, *_RANGES, _ORDER_OUT, _ORDER_OUT)
_sweep = loop(
    "search_sweep", _CODES, int, *_RANGES, _ORDER, int, int, int, _IN, _IN, _IN, written(np.uint16), _OUT, _OUT
)  # fmt: skip
_route = loop(
    "search_route", _CODES_OUT, *_CUTS, int, _CODES_OUT, _CODES_OUT, written(np.uint8), written(np.uint16),
    written(np.uint16), _OUT,
)  # fmt: skip
_top_codes = loop("search_top_codes", _CODES, int, _NODES, _IN, _IN, _OUT)
_top_codes_narrow = loop("search_top_codes_narrow", _CODES, int, _NODES, _IN, _IN, _NODES_OUT)
_walk = loop("search_walk", _CODES, _IN, _IN, _IN, _IN, _NODES_OUT)
_walk_narrow = loop(
    "search_walk_narrow", _CODES, read(np.int8), _NODES, read(np.uint16), _NODES, _NODES_OUT
)  # fmt: skip


def part_lists(
    codes: Codes, people: int, times: int, start: Ints, stop: Ints, column: Ints, cut_start: Ints, cut: Ints,
    value: int, values: int, *found: Ints,
) -> None:  # fmt: skip
    """`values`: how many codes the value column may have."""
    counter, seen = np.zeros(values, np.int64), np.empty(values, np.int64)
    order = np.empty(int((stop - start).max(initial=0)), np.int32)
    ends = np.empty(int(np.diff(cut_start).max(initial=0)) + 2, np.int64)
    given = codes, people, times, start, stop, column, cut_start, cut, value
    _part_lists(*given, *found, counter, seen, order, ends)


def by_code(codes: Codes, start: Ints, stop: Ints, column: Ints, order: NDArray[np.int32]) -> None:
    longest = int((stop - start).max(initial=0))
    _by_code(codes, start, stop, column, order, np.empty(longest, np.int32))


def sweep(
    codes: Codes, people: int, start: Ints, stop: Ints, column: Ints, order: NDArray[np.int32], value: int, values: int,
    least: int, fewest: Ints, largest: Ints, room: Ints, cut: NDArray[np.uint16], used: Ints,
) -> None:  # fmt: skip
    top = np.empty(int(largest.max(initial=0)) + 1, np.int64)
    _sweep(codes, people, start, stop, column, order, value, values, least, fewest, largest, room, cut, used, top)


def route(
    codes: Codes, start: Ints, stop: Ints, column: Ints, cut_start: Ints, cut: Ints, low: Codes, high: Codes,
    aside: NDArray[np.uint16],
) -> None:  # fmt: skip
    """`aside`: room for the records of the longest node and BESIDE more."""
    longest, parts = int((stop - start).max(initial=0)), int(np.diff(cut_start).max(initial=1)) + 1
    over, ends = np.empty(longest // 8 + 1, np.uint8), np.empty(parts + 1, np.int64)
    part_of = np.empty(longest if parts > 2 else 0, np.uint16)
    _route(codes, start, stop, column, cut_start, cut, RUN, low, high, over, aside, part_of, ends)


def top_codes(
    codes: Codes, people: int, node: NDArray[np.uint32], column: Ints, room: Ints, counts: NDArray[Any]
) -> None:
    """In counters of eight bytes, or of four."""
    (_top_codes_narrow if counts.dtype == np.uint32 else _top_codes)(codes, people, node, column, room, counts)


def walk(codes: Codes, column: NDArray[Any], *tree: NDArray[Any]) -> None:
    """By a tree as it is searched, or in fewer bytes as it is kept."""
    (_walk_narrow if column.dtype == np.int8 else _walk)(codes, column, *tree)
