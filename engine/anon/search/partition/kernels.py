"""The kernels of the partition search, in kernels.c, kernels_sweep.c, kernels_loss.c, kernels_moving.c and
kernels_top.c, with the scratch space that some of them require."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anon.core.arrays import Codes, Flags, Ints
from anon.core.kernels import kernel

Ranges = tuple[Ints, Ints, Ints]  # of nodes: where each starts and stops, and the column that is evaluated
Cuts = tuple[Ints, Ints]  # where those of each node start, and all cuts
Dropping = tuple[Ints, Ints]  # of nodes: the people who may be dropped, and by how much each then loses more
Sides = NDArray[np.uint8]  # of cuts: which side may be dropped, 1 the lower, 2 the upper, 3 either
Measure = tuple[Ints, Ints, int, int]  # scales of the columns (CSR), least people on a side, people of a small node

RUN = 16_384  # records that `route` moves at a time, a multiple of eight
MOST_SMALL = 64  # people of a node whose cuts kernels_loss.c measures in all columns
BESIDE = 8  # codes beyond the number of records, which `route` needs aside

nearest = kernel("search_nearest")
part_counts = kernel("search_part_counts")
part_sizes = kernel("search_part_sizes")
unique_people = kernel("search_unique_people")
step = kernel("search_step")
top_values = kernel("search_top_values")
top_bounds = kernel("search_top_bounds")
scatter = kernel("search_scatter")

_part_lists = kernel("search_part_lists")
_by_code = kernel("search_by_code")
_sweep = kernel("search_sweep")
_least_loss = kernel("search_least_loss")
_losses = kernel("search_losses")
_drops = kernel("search_drops")
_route = kernel("search_route")
_top_codes = kernel("search_top_codes")
_top_codes_narrow = kernel("search_top_codes_narrow")


def _longest(ranges: Ranges) -> int:
    """Return the number of records of the longest node."""
    start, stop, _ = ranges
    return int((stop - start).max(initial=0))


def part_lists(
    codes: Codes, people: int, times: int, ranges: Ranges, cuts: Cuts, value: int, values: int, *found: Ints
) -> None:
    """Fill in the values of each part. `values` is the number of codes that the value column may have."""
    counter, seen = np.zeros(values, np.int64), np.empty(values, np.int64)
    order = np.empty(_longest(ranges), np.int32)
    ends = np.empty(int(np.diff(cuts[0]).max(initial=0)) + 2, np.int64)
    _part_lists(codes, people, times, *ranges, *cuts, value, *found, counter, seen, order, ends)


def by_code(codes: Codes, ranges: Ranges, order: NDArray[np.int32]) -> None:
    """Order the records of each node by the codes of its column."""
    _by_code(codes, *ranges, order, np.empty(_longest(ranges), np.int32))


def sweep(
    codes: Codes, people: int, ranges: Ranges, order: NDArray[np.int32], value: int, values: int, least: int,
    fewest: Ints, largest: Ints, offset: Ints, cut: Codes, used: Ints,
) -> None:  # fmt: skip
    """Find the cuts of each node whose two sides satisfy the necessary conditions of a safe group."""
    top = np.empty(int(largest.max(initial=0)) + 1, np.int64)
    _sweep(codes, people, *ranges, order, value, values, least, fewest, largest, offset, cut, used, top)


def least_loss(
    codes: Codes, people: int, ranges: Ranges, order: NDArray[np.int32], measure: Measure, cut: Ints, loss: Ints
) -> None:
    """Find the cut of each node that loses least."""
    longest = _longest(ranges)
    scratch = np.empty(longest, np.uint16), np.empty(longest, np.int64)
    _least_loss(codes, people, order, *measure, *ranges, *scratch, cut, loss)


def losses(
    codes: Codes, people: int, ranges: Ranges, order: NDArray[np.int32], measure: Measure
) -> tuple[Ints, Ints, Ints]:
    """Return the number of cuts of each node that leave enough people on both sides, these cuts, and their losses."""
    length = ranges[1] - ranges[0]
    room, total = np.cumsum(length) - length, int(length.sum())
    cut, loss, used = np.empty(total, np.uint16), np.empty(total, np.int64), np.empty(len(length), np.int64)
    _losses(codes, people, order, *measure, *ranges, room, cut, loss, used)
    kept = np.repeat(room - (np.cumsum(used) - used), used) + np.arange(int(used.sum()))
    return used, cut[kept].astype(np.int64), loss[kept]


def drops(
    codes: Codes, people: int, ranges: Ranges, order: NDArray[np.int32], measure: Measure, dropping: Dropping
) -> tuple[Ints, Ints, Ints, Sides]:
    """Return the number of cuts of each node of which one side is dropped, these cuts, their losses, and the sides."""
    length = ranges[1] - ranges[0]
    room, total = np.cumsum(length) - length, int(length.sum())
    cut, loss, sides = np.empty(total, np.uint16), np.empty(total, np.int64), np.empty(total, np.uint8)
    used = np.empty(len(length), np.int64)
    _drops(codes, people, order, *measure, *ranges, *dropping, room, cut, loss, sides, used)
    kept = np.repeat(room - (np.cumsum(used) - used), used) + np.arange(int(used.sum()))
    return used, cut[kept].astype(np.int64), loss[kept], sides[kept]


def route(codes: Codes, ranges: Ranges, cuts: Cuts, peeled: Flags, low: Codes, high: Codes, aside: Codes) -> None:
    """Move the records of each child together. `aside` has a place for each record of the longest node, and BESIDE
    more."""
    longest, parts = _longest(ranges), int(np.diff(cuts[0]).max(initial=1)) + 1
    over, ends = np.empty(longest // 8 + 1, np.uint8), np.empty(parts + 1, np.int64)
    part_of = np.empty(longest if parts > 2 or peeled.any() else 0, np.uint16)
    _route(codes, *ranges, *cuts, peeled, RUN, low, high, over, aside, part_of, ends)


def top_codes(
    codes: Codes, people: int, node: NDArray[np.uint32], column: Ints, offset: Ints, counts: NDArray[Any]
) -> None:
    """Count in counters of eight bytes, or of four."""
    (_top_codes_narrow if counts.dtype == np.uint32 else _top_codes)(codes, people, node, column, offset, counts)
