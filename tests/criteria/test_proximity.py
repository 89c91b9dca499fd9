"""Distances and the proximity principles against definitions in exact fractions."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon.criteria.alpha_k import AlphaK
from anon.criteria.dissimilarity import Dissimilarity
from anon.criteria.distances import (
    Distance,
    absolute,
    by_function,
    equal,
    hierarchy_file,
    matrix_file,
    ordered,
    variational,
)
from anon.criteria.epsilon_m import EpsilonM
from anon.criteria.k_e import KE
from anon.criteria.protocol import GroupCriterion, Groups
from anon.criteria.variance import Variance
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

SIZE = 5
TINY = Fraction(1, 10**12)
WARDS = [("flu", "lung"), ("cold", "lung"), ("ulcer", "gut"), ("colic", "gut"), ("healthy", "none")]

groups = st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=12)
releases = st.lists(groups, min_size=1, max_size=6)
decimals = st.integers(-30, 30).map(lambda tenths: Fraction(tenths, 10))
numbers = st.lists(decimals, min_size=SIZE, max_size=SIZE, unique=True)
shares = st.sampled_from([Fraction(a, b) for b in range(1, 9) for a in range(b + 1)])
seeds = st.integers(0, 2**32).map(random.Random)


def values_of(group: list[int], values: Any) -> list[Any]:
    return [values[code] for code in group]


def hierarchy_csv(folder: Path) -> Path:
    path = folder / "diseases.csv"
    path.write_text("".join(f"{leaf};{ward};*\n" for leaf, ward in WARDS))
    return path


def matrix_csv(folder: Path, rows: list[list[Any]], names: list[str]) -> Path:
    path = folder / "matrix.csv"
    lines = [["", *names], *([name, *map(str, row)] for name, row in zip(names, rows))]
    path.write_text("".join(";".join(line) + "\n" for line in lines))
    return path


def distances(rng: random.Random, folder: Path) -> list[tuple[Distance, list[Any], oracle.Distance]]:
    """One distance of every kind over five values, with the same distance by its definition."""
    points = [Fraction(tenths, 10) for tenths in rng.sample(range(-20, 20), SIZE)]
    order = rng.sample("abcdefg", 7)
    names = rng.sample(order, SIZE)
    tuples = [tuple(Fraction(rng.randint(0, 10), 10) for _ in range(3)) for _ in range(SIZE)]
    half = [[Fraction(rng.randint(0, 10), 10) for _ in range(SIZE)] for _ in range(SIZE)]
    table = [[half[max(a, b)][min(a, b)] if a != b else Fraction(0) for b in range(SIZE)] for a in range(SIZE)]
    leaves = [leaf for leaf, _ in WARDS]
    paths = {leaf: (ward, "*") for leaf, ward in WARDS}
    file = matrix_csv(folder, [[float(d) for d in row] for row in table], leaves)
    return [
        (absolute(points), points, oracle.absolute),
        (equal(SIZE), names, oracle.equal),
        (ordered(names, order), names, oracle.ordered(order)),
        (ordered(names), names, oracle.ordered(sorted(names))),
        (hierarchy_file(leaves, hierarchy_csv(folder)), leaves, oracle.by_ancestors(paths)),
        (variational(tuples), tuples, oracle.variational),
        (matrix_file(leaves, file), leaves, lambda a, b: table[leaves.index(a)][leaves.index(b)]),
        (by_function(points, lambda a, b: float(abs(a - b))), points, oracle.absolute),
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("distances")


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(0, 12))
def test_neighbours_are_the_values_within_epsilon_exactly(folder: Path, rng: random.Random, tenths: int) -> None:
    for distance, values, truth in distances(rng, folder):
        at_a_value = truth(values[0], values[1])
        for epsilon in (Fraction(tenths, 10), at_a_value, max(at_a_value - TINY, Fraction(0))):
            near = distance.neighbours(epsilon)
            for code, value in enumerate(values):
                assert near.codes_near(code) == [c for c, v in enumerate(values) if truth(value, v) <= epsilon]


@settings(max_examples=40, deadline=None)
@given(releases, seeds, shares, st.integers(1, 6))
def test_risk_is_that_of_all_pairs_of_members_and_ties_are_safe(
    folder: Path, release: list[list[int]], rng: random.Random, epsilon: Fraction, k: int
) -> None:
    for distance, values, truth in distances(rng, folder):
        risk = max(oracle.risk(values_of(group, values), epsilon, truth) for group in release)
        for delta in (1 - risk, 1 - risk + TINY, Fraction("0.3")):
            criterion = Dissimilarity("s", epsilon, delta, k, distance)
            verdict = judged(criterion, histograms(release, SIZE))
            assert verdict.figure == pytest.approx(float(risk), abs=1e-12)
            assert verdict.safe == (risk <= 1 - delta and min(map(len, release)) >= k)
            assert judged(criterion, shuffled(histograms(release, SIZE), rng)) == verdict


def test_neighbour_lists_longer_than_a_group_give_the_same_counts() -> None:
    rng = random.Random(9)
    size = 60
    points = [Fraction(rng.randint(0, 100), 10) for _ in range(size)]
    release = [[rng.randrange(size) for _ in range(rng.randint(1, 30))] for _ in range(300)]
    for epsilon in (Fraction(1, 2), Fraction(3), Fraction(20)):
        listed = by_function(points, oracle.absolute).neighbours(epsilon).largest(histograms(release, size))
        window = absolute(points).neighbours(epsilon).largest(histograms(release, size))
        truth = [
            max(oracle.neighbours(values_of(group, points), points[code], epsilon, oracle.absolute) for code in group)
            for group in release
        ]
        assert listed.tolist() == window.tolist() == truth


def test_table_i_of_the_paper() -> None:
    """Floats put D(v2, v4) above 0.1; the paper's Example 2 and 4 need it at 0.1."""
    table = (5311, 4321, 4222, 3421, 2710, 2620, 8101, 3151)
    rows = [[Fraction(int(tenths), 10) for tenths in str(row)] for row in table]
    near = variational(rows).neighbours(Fraction("0.1"))
    assert near.codes_near(1) == [0, 1, 2, 3]
    release = histograms([[0, 1, 2, 3, 4], [5, 6, 7]], 8)
    assert near.largest(release).tolist() == [4, 1]
    for delta, safe in ((Fraction("0.25"), True), (Fraction("0.250000000001"), False)):
        verdict = judged(Dissimilarity("s", Fraction("0.1"), delta, 3, variational(rows)), release)
        assert (verdict.safe, verdict.figure, verdict.worst_group) == (safe, pytest.approx(0.75), 0)


def test_a_person_alone_has_risk_one() -> None:
    assert judged(Dissimilarity("s", Fraction(0), Fraction("0.1"), 1, equal(2)), histograms([[0]], 2)).figure == 1
    assert one_safe(Dissimilarity("s", Fraction(0), Fraction(0), 1, equal(2)), [0], 2)
    assert not one_safe(Dissimilarity("s", Fraction(0), TINY, 1, equal(2)), [0], 2)


def test_dissimilarity_is_not_monotone_either_way() -> None:
    criterion = Dissimilarity("s", Fraction(0), Fraction(1), 2, equal(2))
    assert not criterion.monotone
    assert one_safe(criterion, [0, 1], 2) and not one_safe(criterion, [0, 1, 0, 1], 2)
    laxer = Dissimilarity("s", Fraction(0), Fraction(1, 3), 2, equal(2))
    assert one_safe(laxer, [0, 0, 0, 1], 2) and not one_safe(laxer, [0, 0], 2)


def test_a_small_group_is_named_while_the_figure_stays_the_largest_risk() -> None:
    criterion = Dissimilarity("s", Fraction(0), Fraction("0.5"), 3, equal(3))
    verdict = judged(criterion, histograms([[0, 0, 1, 2], [0, 1]], 3))
    assert (verdict.safe, verdict.worst_group) == (False, 1)
    assert (verdict.figure, verdict.bound) == (pytest.approx(1 / 3), 0.5)


@settings(max_examples=100, deadline=None)
@given(releases, st.one_of(st.none(), st.lists(st.integers(0, SIZE - 1), min_size=1, unique=True)), st.integers(1, 6))
def test_alpha_k_is_the_largest_share_with_ties_safe(release: Any, values: list[int] | None, k: int) -> None:
    share = max(oracle.largest_share(group, values) for group in release)
    large = all(len(group) >= k for group in release)
    for alpha in (share, share - TINY, Fraction("0.3")):
        if alpha > 0:
            verdict = judged(AlphaK("s", alpha, k, values), histograms(release, SIZE))
            assert verdict.figure == pytest.approx(float(share), abs=1e-12)
            assert verdict.safe == (share <= alpha and large)


@settings(max_examples=100, deadline=None)
@given(releases, numbers, st.integers(0, 40), st.integers(1, 5))
def test_epsilon_m_is_the_largest_share_around_a_number_present(
    release: Any, points: list[Fraction], tenths: int, m: int
) -> None:
    epsilon = Fraction(tenths, 10)
    share = max(oracle.neighbour_share(values_of(group, points), epsilon) for group in release)
    verdict = judged(EpsilonM("s", epsilon, m, points), histograms(release, SIZE))
    assert verdict.figure == pytest.approx(float(share), abs=1e-12)
    assert verdict.safe == (share <= Fraction(1, m))


def test_epsilon_m_is_not_monotone() -> None:
    criterion = EpsilonM("s", Fraction(1), 2, [Fraction(number) for number in (-1, 0, 1, 10)])
    assert not criterion.monotone
    assert one_safe(criterion, [1, 3], 4) and one_safe(criterion, [0, 2], 4)
    assert judged(criterion, histograms([[0, 1, 2, 3]], 4)).figure == 0.75


@settings(max_examples=100, deadline=None)
@given(releases, numbers, st.integers(1, 5))
def test_k_e_counts_distinct_numbers_and_their_range(release: Any, points: list[Fraction], k: int) -> None:
    distinct = min(len(set(group)) for group in release)
    width = min(oracle.width(values_of(group, points)) for group in release)
    for e in (width, width + TINY, Fraction("1.5")):
        verdict = judged(KE("s", k, e, points), histograms(release, SIZE))
        assert [finding.figure for finding in verdict.findings] == [distinct, pytest.approx(float(width), abs=1e-12)]
        assert [finding.safe for finding in verdict.findings] == [distinct >= k, width >= e]
        assert verdict.safe == (distinct >= k and width >= e)


@settings(max_examples=100, deadline=None)
@given(releases, numbers)
def test_variance_is_exact_at_the_bound(release: Any, points: list[Fraction]) -> None:
    variance = min(oracle.variance(values_of(group, points)) for group in release)
    for minimum in (variance, variance + TINY, Fraction("0.5")):
        verdict = judged(Variance("s", minimum, points), histograms(release, SIZE))
        assert verdict.figure == pytest.approx(float(variance), abs=1e-11)
        assert verdict.safe == (variance >= minimum)


@pytest.mark.parametrize("offset", [Fraction(10**17), Fraction(-(10**30)), Fraction(1, 3)])
def test_small_spreads_of_large_numbers_are_not_lost_in_floats(offset: Fraction) -> None:
    points = [offset + step for step in (0, 1, 3)] + [Fraction(0)]
    group = histograms([[0, 1, 2, 2]], 4)
    assert judged(KE("s", 3, Fraction(3), points), group).safe
    assert not judged(KE("s", 3, 3 + TINY, points), group).safe
    spread = oracle.variance(values_of([0, 1, 2, 2], points))
    assert judged(Variance("s", spread, points), group).safe
    assert judged(Variance("s", spread, points), group).figure == pytest.approx(float(spread))
    assert not judged(Variance("s", spread + TINY, points), group).safe


def test_counts_and_thresholds_beyond_64_bits_are_compared_exactly() -> None:
    half = 2**40
    groups = Groups(np.array([2 * half]), np.array([0, 2]), np.array([0, 1]), np.array([half, half]))
    assert judged(AlphaK("s", Fraction(1, 2), 1), groups).safe
    assert not judged(AlphaK("s", Fraction(1, 2) - Fraction(1, 10**30), 1), groups).safe


def criteria(points: list[Fraction], threshold: Fraction, whole: int) -> list[GroupCriterion]:
    return [
        Dissimilarity("s", Fraction("0.5"), threshold, whole, absolute(points)),
        Dissimilarity("s", Fraction("0.5"), threshold, whole, by_function(points, oracle.absolute)),
        AlphaK("s", threshold or Fraction(1), whole),
        AlphaK("s", threshold or Fraction(1), whole, [0, 3]),
        EpsilonM("s", Fraction("0.5"), whole, points),
        KE("s", whole, 2 * threshold, points),
        Variance("s", threshold, points),
    ]


@settings(max_examples=40, deadline=None)
@given(releases, releases, numbers, shares, st.integers(1, 5), seeds)
def test_states_merge_in_any_order_and_owners_are_kept_apart(
    one: Any, two: Any, points: list[Fraction], threshold: Fraction, whole: int, rng: random.Random
) -> None:
    for criterion in criteria(points, threshold, whole):
        check_batches(criterion, one, lambda part, first: histograms(part, SIZE, first), rng)
        check_owners(criterion, [one, two], SIZE)


@settings(max_examples=100, deadline=None)
@given(groups, groups, numbers, shares, st.integers(1, 5))
def test_merging_keeps_safety_where_claimed_and_no_safe_group_is_below_the_least_size(
    one: Any, two: Any, points: list[Fraction], threshold: Fraction, whole: int
) -> None:
    for criterion in criteria(points, threshold, whole):
        check_merging(criterion, one, two, SIZE)


def nearest(criterion: GroupCriterion, group: list[int], size: int) -> list[str]:
    whole = histograms([group], size)
    return [words for f in judged(criterion, whole).findings if not f.safe for words in criterion.nearest(whole, f)]


def test_the_nearest_thresholds_hold() -> None:
    group, points = [0, 0, 1], [Fraction(0), Fraction(1)]

    def make(kind: Callable[..., GroupCriterion], *fixed: Any) -> Callable[[str], GroupCriterion]:
        return lambda text: kind("s", *(Fraction(text) if argument is None else argument for argument in fixed))

    for build, strict, hint in [
        (make(Dissimilarity, Fraction(0), None, 1, equal(2)), "0.9", "delta = 0.5"),
        (make(AlphaK, None, 1), "0.4", "alpha = 0.666667"),
        (make(KE, 1, None, points), "7", "e = 1"),
        (make(Variance, None, points), "7", "minimum = 0.222222"),
    ]:
        assert nearest(build(strict), group, 2) == [hint]
        assert one_safe(build(hint.split(" = ")[1]), group, 2)
    assert nearest(EpsilonM("s", Fraction(0), 4, points), [0, 0, 1, 1, 1, 0], 2) == ["m = 2"]
    assert nearest(KE("s", 3, Fraction(7), points), group, 2) == ["k = 2", "e = 1"]
    assert nearest(Dissimilarity("s", Fraction(0), Fraction(0), 9, equal(2)), group, 2) == ["k = 3"]


@pytest.mark.parametrize(
    "build",
    [
        lambda numbers: absolute(numbers, "privacy[1].k_e"),
        lambda numbers: variational([numbers], "privacy[1].k_e"),
        lambda numbers: EpsilonM("s", Fraction(1), 2, numbers, "privacy[1].k_e"),
        lambda numbers: KE("s", 1, Fraction(1), numbers, "privacy[1].k_e"),
        lambda numbers: Variance("s", Fraction(1), numbers, "privacy[1].k_e"),
    ],
)
def test_values_without_a_number_are_refused_with_their_count(build: Callable[[Any], Any]) -> None:
    with pytest.raises(ConfigError, match=r"^privacy\[1\]\.k_e: found 1 of 3 distinct values .* drop"):
        build([Fraction(1), None, Fraction(3)])


def test_ordered_is_natural_unless_an_order_is_given() -> None:
    texts: list[str | None] = ["9", "10", None]
    near = Fraction(1, 2)
    assert ordered(texts).neighbours(near).codes_near(1) == [0, 1, 2]
    assert ordered(texts, numbers=[Fraction(9), Fraction(10), None]).neighbours(near).codes_near(0) == [0, 1, 2]
    assert ordered(texts[:2], order=["9", "10", "11", "12", "13"]).neighbours(Fraction(1, 4)).codes_near(0) == [0, 1]
    with pytest.raises(ConfigError, match="found 2 of 3 distinct values, null included, that the order does not name"):
        ordered(texts, order=["9", "11"], where="privacy[0].dissimilarity.distance.order")


def test_hierarchy_distance_is_the_level_of_the_common_ancestor(folder: Path) -> None:
    file = hierarchy_csv(folder)
    near = hierarchy_file(["flu", "cold", "ulcer", None], file).neighbours
    assert near(Fraction("0.49")).codes_near(0) == [0]
    assert near(Fraction("0.5")).codes_near(0) == [0, 1]
    assert near(Fraction("0.99")).codes_near(3) == [3]
    assert near(Fraction(1)).codes_near(3) == [0, 1, 2, 3]
    with pytest.raises(
        ConfigError, match=r"found 2 of 3 distinct values that are not leaves of diseases\.csv"
    ) as caught:
        hierarchy_file(["flu", "gout", "mumps"], file, "privacy[0].dissimilarity.distance.file")
    assert "gout" not in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0, 1], [1]], r"matrix\.csv line 3: 1 distances; expected 2"),
        ([[0, 1]], r"matrix\.csv: 1 values without a line"),
        ([[0, ""], [1, 0]], r"line 2: field 3: nothing"),
        ([[0, "far"], [1, 0]], r"line 2: field 3: no decimal number"),
        ([[0, -1], [-1, 0]], r"line 2: field 3: no decimal number of 0 or more"),
        ([[0, "nan"], [1, 0]], r"line 2: field 3: no decimal number"),
        ([[0, 1], [1, 0.1]], r"line 3: field 3: not 0"),
        ([[0, 1], [2, 0]], r"line 3: field 2: another distance than line 2, field 3"),
    ],
)
def test_a_matrix_that_is_not_complete_symmetric_and_zero_on_the_diagonal_is_refused(
    tmp_path: Path, rows: list[list[Any]], message: str
) -> None:
    where = "privacy[0].dissimilarity.distance.file"
    with pytest.raises(ConfigError, match=message) as caught:
        matrix_file(["a", "b"], matrix_csv(tmp_path, rows, ["a", "b"]), where)
    assert caught.value.problems[0].path == where


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "without a line"),
        (";a;a\na;0;0\n", "line 1: 1 values named twice"),
        (";a;b\na;0;1\na;0;1\n", "line 3: a value that an earlier line begins with"),
        (";a;b\na;0;1\nc;1;0\n", "line 3: a value that the first line does not name"),
    ],
)
def test_a_matrix_names_every_value_once_each_way(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "matrix.csv"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message):
        matrix_file(["a"], file)


def test_a_matrix_may_know_more_values_in_another_order_but_not_fewer(tmp_path: Path) -> None:
    file = tmp_path / "matrix.csv"
    file.write_text(",a,b,c\nc,0.2,0.3,0\na,0,0.1,0.2\nb,0.1,0,0.3\n")
    assert matrix_file(["c", "a"], file).neighbours(Fraction("0.2")).codes_near(0) == [0, 1]
    assert matrix_file(["c", "b"], file).neighbours(Fraction("0.2")).codes_near(0) == [0]
    with pytest.raises(ConfigError, match=r"1 of 2 distinct values, null included, that matrix\.csv does not name"):
        matrix_file(["c", None], file)


def test_65535_values_on_a_line_need_no_pairs() -> None:
    size = 65_535
    near = absolute([Fraction(cents, 100) for cents in range(size)]).neighbours(Fraction("0.1"))
    whole = Groups(np.array([size]), np.array([0, size]), np.arange(size), np.ones(size, np.int64))
    assert near.largest(whole).tolist() == [21]
