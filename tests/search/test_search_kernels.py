"""Kernels of the partition search against their definitions, in every library that was compiled from them: the one for
processors with wide vectors has other code in part."""

from __future__ import annotations

import ctypes
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anon.core import kernels as compiled
from anon.search.partition import kernels

LIBRARIES = [
    path
    for path in (compiled.FOLDER / "kernels.so", compiled.FOLDER / "kernels-avx2.so")
    if path.exists() and ("avx2" not in path.name or compiled._has_wide_vectors())
]
EXAMPLES = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
UNTOUCHED = 12_345
UNREACHED = 65_535  # by a part without records


@pytest.fixture(params=LIBRARIES, ids=lambda path: path.stem)
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = ctypes.CDLL(str(request.param))
    for name in ("_route", "_by_code", "_sweep"):
        monkeypatch.setattr(kernels, name, compiled.kernel(getattr(kernels, name).__name__, loaded))


@st.composite
def nodes(draw: st.DrawFn) -> list[np.ndarray[Any, Any]]:
    """Records of some nodes, [columns, records] each, also ones that are in order or all alike."""
    columns, most = draw(st.integers(1, 3)), draw(st.sampled_from([1, 5, 65_535]))
    found = []
    for size in draw(st.lists(st.integers(1, 75), min_size=1, max_size=3)):
        codes = np.random.default_rng(draw(st.integers(0, 99))).integers(0, most + 1, (columns, size))
        found.append(np.sort(codes, axis=1) if draw(st.booleans()) else codes)
    return found


@EXAMPLES
@given(of_nodes=nodes(), draw=st.data())
def test_records_are_moved_into_their_parts_and_nowhere_else(
    library: None, of_nodes: list[np.ndarray[Any, Any]], draw: st.DataObject
) -> None:
    gap, cut_start, cuts, start, reach, peeled = 9, [0], [], [], [], []
    bounded = draw.draw(st.integers(1, len(of_nodes[0])))
    records = sum(codes.shape[1] + gap for codes in of_nodes)
    held = np.full((len(of_nodes[0]), records), UNTOUCHED, np.uint16)
    expected = held.copy()
    at = 0
    for codes in of_nodes:
        inside = st.sampled_from(sorted({*codes[0].tolist(), 1}))
        own = sorted(draw.draw(st.sets(inside, min_size=1, max_size=3)))
        part = np.searchsorted(own, codes[0], side="right")
        peeled.append(draw.draw(st.booleans()))
        rest = (len(own) + 1) // 2 if peeled[-1] else len(own)
        part = np.where(part % 2, part // 2, rest) if peeled[-1] else part
        order, sizes = np.argsort(part, kind="stable"), np.bincount(part, minlength=rest + 1)
        size = codes.shape[1]
        held[:, at : at + size], expected[:, at : at + size] = codes, codes[:, order]
        start.append(at)
        for inside_part in np.split(codes[:bounded, order], np.cumsum(sizes)[:-1], axis=1):
            one = inside_part.shape[1] > 0
            reach.append([(row.min(), row.max()) if one else (UNREACHED, 0) for row in inside_part])
        cuts += own
        cut_start.append(len(cuts))
        at += size + gap
    stop = np.array(start) + [codes.shape[1] for codes in of_nodes]
    low, high = (np.full((len(reach), bounded), end, np.uint16) for end in (UNREACHED, 0))
    longest = max(codes.shape[1] for codes in of_nodes)
    aside = np.full(longest + kernels.BESIDE + gap, UNTOUCHED, np.uint16)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "RUN", draw.draw(st.sampled_from([8, 16, 64, 16_384])))
        column = np.zeros(len(start), np.int64)
        ranges, own_cuts = (np.array(start), stop, column), (np.array(cut_start), np.array(cuts))
        kernels.route(held, ranges, own_cuts, np.array(peeled), low, high, aside)
    assert (held == expected).all()
    assert (aside[-gap:] == UNTOUCHED).all()
    assert np.stack([low, high], axis=2).tolist() == np.array(reach).tolist()


def may_be_safe(values: list[int], least: int, demands: list[tuple[int, int]]) -> bool:
    counts = sorted((values.count(value) for value in set(values)), reverse=True)
    return len(values) >= least and all(sum(counts[largest:]) >= fewest for largest, fewest in demands)


def cuts_of(codes: list[int], values: list[int], least: int, demands: list[tuple[int, int]]) -> list[int]:
    """Every cut that leaves on both sides what a safe group needs, the nearest to the median first."""
    found = []
    occurring = sorted(set(codes))
    for below, above in pairwise(occurring):
        sides = [[v for c, v in zip(codes, values) if (c > below) == upper] for upper in (False, True)]
        if all(may_be_safe(side, least, demands) for side in sides):
            found.append((abs(2 * len(sides[0]) - len(codes)), (below + above + 1) // 2))
    return [cut for _, cut in sorted(found)]


@EXAMPLES
@given(
    of_nodes=st.lists(
        st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3), st.integers(1, 3)), min_size=2, max_size=25),
        min_size=1,
        max_size=3,
    ),
    least=st.integers(1, 4),
    demands=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5)), max_size=2),
    counted=st.booleans(),
)
def test_a_sweep_finds_all_cuts_that_are_not_hopeless_from_the_median_outward(
    library: None,
    of_nodes: list[list[tuple[int, int, int]]],
    least: int,
    demands: list[tuple[int, int]],
    counted: bool,
) -> None:
    flat = [(code, value, people if counted else 1) for node in of_nodes for code, value, people in node]
    codes = np.array([[*record, 0] for record in flat], np.uint16).T.copy()
    stop = np.cumsum([len(node) for node in of_nodes])
    start = stop - [len(node) for node in of_nodes]
    column, order = np.zeros(len(stop), np.int64), np.empty(len(flat), np.int32)
    ranges = start, stop, column
    kernels.by_code(codes, ranges, order)
    cut, used = np.empty(len(flat), np.uint16), np.empty(len(stop), np.int64)
    largest, fewest = (np.array([demand[i] for demand in demands], np.int64) for i in (0, 1))
    people, values = 2 if counted else -1, 4 if demands else 0
    kernels.sweep(codes, people, ranges, order, 1, values, least, fewest, largest, start, cut, used)
    for node, first, count in zip(of_nodes, start.tolist(), used.tolist()):
        each = [(code, value) for code, value, people in node for _ in range(people if counted else 1)]
        wanted = cuts_of([code for code, _ in each], [value for _, value in each], least, demands)
        assert cut[first : first + count].tolist() == wanted
