"""t-closeness against the cheapest transport between two distributions, solved in exact fractions."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon.criteria.distances import Distance, TreeLevels, absolute, by_function, equal, hierarchy_file, ordered
from anon.criteria.protocol import Groups
from anon.criteria.t_closeness import TCloseness
from anon.errors import ConfigError
from tests.helpers.criterion_laws import (
    check_batches,
    check_merging,
    check_owners,
    histograms,
    judged,
    one_safe,
    shuffled,
)
from tests.oracles import proximity as oracle

SIZE = 6
TINY = Fraction(1, 10**12)
LEAVES = "abcdef"
PATHS = {"a": "AX*", "b": "AX*", "c": "BX*", "d": "CY*", "e": "CY*", "f": "DZ*"}
NUMBERS = [Fraction(tenths, 10) for tenths in (25, -10, 0, 31, 7, 100)]

groups = st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=8)
releases = st.lists(groups, min_size=1, max_size=4)
seeds = st.integers(0, 2**32).map(random.Random)
thresholds = st.sampled_from([Fraction(0), Fraction(1, 8), Fraction(1, 4), Fraction(1, 3), Fraction(1, 2), Fraction(1)])


def tree() -> TreeLevels:
    return TreeLevels(np.array([[0, 1, 2, 3, 4, 5], [0, 0, 1, 2, 2, 3], [0, 0, 0, 1, 1, 2]]))


KINDS: list[tuple[Distance, Any, oracle.Distance]] = [
    (equal(SIZE), LEAVES, oracle.equal),
    (ordered(list(LEAVES)), LEAVES, oracle.ordered(LEAVES)),
    (ordered(list(LEAVES), list("fxadbceyz")), LEAVES, oracle.ordered("fxadbceyz")),
    (absolute(NUMBERS), NUMBERS, oracle.absolute),
    (tree(), LEAVES, oracle.by_ancestors(PATHS)),
]


def reference(release: list[list[int]]) -> list[int]:
    return np.bincount(np.concatenate([np.array(group) for group in release]), minlength=SIZE).tolist()


@settings(max_examples=60, deadline=None)
@given(releases, seeds)
def test_the_distance_is_the_least_work_and_ties_are_safe(release: list[list[int]], rng: random.Random) -> None:
    table = [code for group in release for code in group]
    for distance, values, truth in KINDS:

        def between(one: int, other: int, values: Any = values, truth: oracle.Distance = truth) -> Fraction:
            return truth(values[one], values[other])

        work = max(oracle.least_work(group, table, between) for group in release)
        for t in (work, work - TINY, Fraction("0.2")):
            if t >= 0:
                criterion = TCloseness("s", t, distance, reference(release))
                verdict = judged(criterion, histograms(release, SIZE))
                assert verdict.figure == pytest.approx(float(work), abs=1e-9)
                assert verdict.safe == (work <= t)
                assert judged(criterion, shuffled(histograms(release, SIZE), rng)).safe == verdict.safe


@settings(max_examples=150, deadline=None)
@given(groups, groups, groups, thresholds)
def test_merging_keeps_safety_and_no_safe_group_is_below_the_least_size(
    one: list[int], two: list[int], rest: list[int], t: Fraction
) -> None:
    for distance, _, _ in KINDS:
        criterion = TCloseness("s", t, distance, reference([one, two, rest]))
        check_merging(criterion, one, two, SIZE)


@settings(max_examples=50, deadline=None)
@given(releases, releases, thresholds, seeds)
def test_states_merge_in_any_order_and_owners_are_kept_apart(
    one: Any, two: Any, t: Fraction, rng: random.Random
) -> None:
    for distance, _, _ in KINDS:
        criterion = TCloseness("s", t, distance, reference(one + two))
        check_batches(criterion, one, lambda part, first: histograms(part, SIZE, first), rng)
        check_owners(criterion, [one, two], SIZE)


def test_the_numbers_of_the_paper() -> None:
    """Salaries 3k to 11k: {3k, 4k, 5k} is at 0.375 and {6k, 8k, 11k} at 0.167."""
    salaries = ordered([f"{k:02}k" for k in range(3, 12)])
    for group, distance in (([0, 1, 2], Fraction(3, 8)), ([3, 5, 8], Fraction(1, 6))):
        for t, safe in ((distance, True), (distance - TINY, False)):
            criterion = TCloseness("salary", t, salaries, [1] * 9)
            assert one_safe(criterion, group, 9) is safe


def test_a_hierarchy_file_costs_less_for_mass_that_stays_under_one_node(tmp_path: Path) -> None:
    file = tmp_path / "diseases.csv"
    file.write_text("flu;lung\ncold;lung\nulcer;gut\ncolic;gut\n")
    diseases = hierarchy_file(["flu", "cold", "ulcer", "colic"], file)
    criterion = TCloseness("s", Fraction(1, 4), diseases, [1, 1, 1, 1])
    assert judged(criterion, histograms([[0, 2]], 4)).figure == 0.25
    assert judged(criterion, histograms([[0, 1]], 4)).figure == 0.5


def test_the_least_group_holds_enough_values_to_cover_the_table() -> None:
    assert TCloseness("s", Fraction("0.2"), equal(10), [1] * 10).least_group == 8
    assert TCloseness("s", Fraction("0.2"), equal(3), [96, 2, 2]).least_group == 1
    assert TCloseness("s", Fraction(2), equal(3), [1, 1, 1]).least_group == 1


def test_a_gap_of_many_absent_values_is_counted_in_full() -> None:
    size = 65_535
    rng = np.random.default_rng(5)
    counts = rng.integers(0, 3, size)
    held = np.sort(rng.choice(size, 40, replace=False))
    group = Groups(np.array([40]), np.array([0, 40]), held, np.ones(40, np.int64))
    criterion = TCloseness("s", Fraction(1), absolute([Fraction(i) for i in range(size)]), counts.tolist())
    own = np.cumsum(np.bincount(held, minlength=size)) / 40
    expected = np.abs(own - np.cumsum(counts) / counts.sum())[:-1].sum()
    assert judged(criterion, group).figure == pytest.approx(expected, rel=1e-9)


def test_a_distance_of_single_pairs_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^privacy\[2\]\.t_closeness\.distance\.kind: .* equal, ordered"):
        TCloseness("s", Fraction(1), by_function([1, 2], oracle.equal), [1, 1], "privacy[2].t_closeness")


def test_the_nearest_threshold_holds() -> None:
    criterion = TCloseness("s", Fraction(0), equal(3), [1, 1, 1])
    whole = histograms([[0, 0, 1]], 3)
    words = criterion.nearest(whole, judged(criterion, whole).findings[0])
    assert words == ["t = 0.333334"]
    assert one_safe(TCloseness("s", Fraction("0.333334"), equal(3), [1, 1, 1]), [0, 0, 1], 3)
