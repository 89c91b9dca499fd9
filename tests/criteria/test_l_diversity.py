"""l-diversity of every kind against an oracle that shares no code with it, and against the paper's own numbers."""

from __future__ import annotations

import math
import random
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anon.criteria.l_diversity import LDiversity, adjusted_entropy, l_diversity, log_entropic_mean, lower
from anon.criteria.l_diversity.entropy import sign_of_logs
from anon.criteria.protocol import SAFE, Groups, Verdict
from tests.helpers.criterion_laws import check_batches
from tests.oracles import l_diversity as oracle
from tests.oracles import skyline

VALUES = "abcde"
KINDS = ("distinct", "frequency", "entropy", "recursive")
Release = list[list[str]]

groups_ = st.lists(st.integers(0, 6), min_size=5, max_size=5).filter(any)
releases = st.lists(groups_, min_size=1, max_size=5).map(
    lambda rows: [[value for value, count in zip(VALUES, row) for _ in range(count)] for row in rows]
)
factors = st.fractions(Fraction(1, 8), 8, max_denominator=8)
exempt = st.sets(st.sampled_from(VALUES), max_size=4)
shares = st.dictionaries(st.sampled_from(VALUES), st.fractions(0, 40, max_denominator=3), max_size=2)


@st.composite
def demands(draw: Any) -> dict[str, Any]:
    kind = draw(st.sampled_from(KINDS))
    whole = kind in ("distinct", "recursive")
    return {
        "kind": kind,
        "l": Fraction(draw(st.integers(1, 5))) if whole else draw(st.fractions(1, 5, max_denominator=6)),
        "c": draw(factors),
        "dont_care": draw(exempt) if kind in ("entropy", "recursive") else set(),
        "percents": draw(shares),
    }


def histograms(release: Release, first: int = 0) -> Groups:
    counts = np.array([[group.count(value) for value in VALUES] for group in release], np.int64)
    dense = Groups.dense(counts.reshape(-1, len(VALUES)))
    return Groups(dense.n, dense.start, dense.value, dense.count, first)


def criterion(
    kind: str,
    l: Fraction | int | str,
    c: Fraction | int | None = None,
    dont_care: Any = (),
    percents: dict[str, Fraction] | None = None,
) -> LDiversity:
    kept = {VALUES.index(value): percent for value, percent in (percents or {}).items()}
    factor = Fraction(c) if c is not None and kind == "recursive" else None
    return l_diversity("s", kind, Fraction(l), factor, map(VALUES.index, dont_care), kept)


def judged(bound: LDiversity, release: Release) -> Verdict:
    return bound.verdict(bound.state(histograms(release)))


def of_counts(*counts: int) -> list[str]:
    return [value for value, count in zip(VALUES, counts) for _ in range(count)]


# Against the oracle


@settings(max_examples=250, deadline=None)
@given(releases, demands())
def test_verdict_is_that_of_the_definitions(release: Release, asked: dict[str, Any]) -> None:
    bound = criterion(**asked)
    groups = histograms(release)
    expected = oracle.holds(release, **asked)
    assert judged(bound, release).safe == expected
    assert (bound.judge(bound.minima(groups, np.zeros(len(groups), np.int64), 1))[0] == SAFE) == expected


@settings(max_examples=80, deadline=None)
@given(releases, exempt, st.integers(2, 5))
def test_figures_are_the_worst_over_all_groups(release: Release, dont_care: set[str], l: int) -> None:
    assert judged(criterion("distinct", l), release).figure == min(map(oracle.distinct, release))
    share = max(map(oracle.largest_share, release))
    assert judged(criterion("frequency", l), release).figure == pytest.approx(float(share), rel=1e-14)
    entropies = [oracle.adjusted_entropy(group, dont_care) for group in release]
    lowest = min((e for e in entropies if e is not None), default=Decimal("inf"))
    figure = judged(criterion("entropy", l, None, dont_care), release).figure
    assert figure == pytest.approx(float(lowest.exp()), rel=1e-8)
    pairs = [oracle.head_and_tail(group, l, dont_care) for group in release]
    ratios = [0.0 if not head else head / tail if tail else math.inf for head, tail in pairs]
    assert judged(criterion("recursive", l, 3, dont_care), release).figure == pytest.approx(max(ratios), rel=1e-14)


@settings(max_examples=100, deadline=None)
@given(releases)
def test_a_share_exactly_at_the_bound_is_frequent_enough_and_just_above_is_not(release: Release) -> None:
    l = 1 / max(map(oracle.largest_share, release))
    assert judged(criterion("frequency", l), release).safe
    assert not judged(criterion("frequency", l + Fraction(1, 10**18)), release).safe


@settings(max_examples=150, deadline=None)
@given(releases, exempt, st.integers(2, 5))
def test_a_factor_exactly_at_the_ratio_is_not_enough_and_just_above_is(release: Release, y: set[str], l: int) -> None:
    pairs = [oracle.head_and_tail(group, l, y) for group in release]
    assume(any(head for head, _ in pairs) and all(tail or not head for head, tail in pairs))
    c = max(Fraction(head, tail) for head, tail in pairs if head)
    verdict = judged(criterion("recursive", l, c, y), release)
    assert (verdict.safe, verdict.figure) == (False, verdict.bound)
    assert judged(criterion("recursive", l, c + Fraction(1, 10**18), y), release).safe


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(1, 6), st.integers(0, 3))
def test_entropy_of_equal_counts_is_a_tie_however_large_the_dont_care_counts(
    above: list[int], count: int, more: int
) -> None:
    """Don't-care counts at or above the common count are lowered to it: exactly as many values as there are."""
    values = 1 + min(len(above), 4)
    group = of_counts(count, *(count + extra * more for extra in above[:4]))
    for l, safe in ((Fraction(values), True), (values + Fraction(1, 10**18), False)):
        bound = criterion("entropy", l, None, VALUES[1:])
        assert judged(bound, [group]).safe is safe
    assert judged(criterion("entropy", values, None, VALUES[1:]), [group]).figure == values


@pytest.mark.parametrize(
    ("counts", "dont_care", "l"),
    [
        ((4, 1, 1, 1, 1), "", 4),  # 8^8 = 4^8 * 4^4
        ((4, 1, 1, 1, 1), "b", 4),  # b is below the mean and stays
        ((2, 1, 1, 9, 0), "d", 1 + Fraction(2.8284271247461903)),  # irrational: no tie, only close
        ((8, 2, 2, 2, 2), "", 4),
        ((50_000, 12_500, 12_500, 12_500, 12_500), "", 4),
    ],
)
def test_entropy_beside_uneven_ties_is_decided_exactly(counts: tuple[int, ...], dont_care: str, l: Fraction) -> None:
    group = of_counts(*counts)
    for bound in (l - Fraction(1, 10**15), Fraction(l), l + Fraction(1, 10**15)):
        truth = oracle.adjusted_entropy_reaches(group, bound, dont_care)
        assert judged(criterion("entropy", bound, None, dont_care), [group]).safe is truth


def test_irrational_entropy_is_told_from_bounds_thirty_digits_away() -> None:
    """exp(entropy) of 2, 1, 1 is the square root of 8."""
    root = math.isqrt(8 * 10**60)
    for number, safe in ((root, True), (root + 1, False)):
        assert judged(criterion("entropy", Fraction(number, 10**30)), [of_counts(2, 1, 1)]).safe is safe


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 30), st.integers(-12, 12)), max_size=5))
def test_sign_of_logs_is_that_of_the_product_of_powers(powers: list[tuple[int, int]]) -> None:
    product = math.prod(Fraction(number) ** power for number, power in powers)
    assert sign_of_logs(powers) == (product > 1) - (product < 1)


def test_a_product_that_equals_one_only_after_factoring_is_a_tie() -> None:
    assert sign_of_logs([(12**20, 4), (18**40, 2), (6, -240)]) == 0  # 12 * 18 = 6^3
    assert sign_of_logs([(10**40 + 1, 1), (10**40, -1)]) == 1


# Adjusted entropy


def test_algorithm_1_runs_as_in_the_paper() -> None:
    fixed, lowered = lower([3, 4], [11, 10, 3, 2])
    assert (fixed, lowered) == ([3, 4, 2, 3], 2)  # as a set, 3 would be fixed only once and the mean stay 1.136
    assert [round(log_entropic_mean(fixed[:size]), 3) for size in (2, 3, 4)] == [1.263, 1.136, 1.127]
    assert adjusted_entropy([3, 4], [11, 10, 3, 2]) == pytest.approx(1.77297, abs=5e-6)


@settings(max_examples=100, deadline=None)
@given(groups_, st.sets(st.integers(0, 4), max_size=4))
def test_adjusted_entropy_is_the_largest_over_all_stationary_points(counts: list[int], codes: set[int]) -> None:
    group = of_counts(*counts)
    truth = oracle.adjusted_entropy(group, [VALUES[code] for code in codes])
    assume(truth is not None)
    own = [count for code, count in enumerate(counts) if count and code not in codes]
    others = [count for code, count in enumerate(counts) if count and code in codes]
    assert adjusted_entropy(own, others) == pytest.approx(float(truth or 0), abs=1e-13)


def test_a_count_just_below_the_mean_is_fixed_though_floats_cannot_tell() -> None:
    """The mean of n and n + 2 is the logarithm of about n + 1 + 1/2n."""
    n = 10**7
    assert lower([n, n + 2], [n + 1]) == ([n, n + 2, n + 1], 0)
    assert lower([n, n + 2], [n + 2]) == ([n, n + 2], 1)


def test_adjusted_entropy_is_not_reached_by_random_lowering() -> None:
    rng = random.Random(45)
    for _ in range(300):
        own = [rng.randint(1, 9) for _ in range(rng.randint(1, 3))]
        limits = [rng.randint(1, 12) for _ in range(rng.randint(1, 3))]
        best = adjusted_entropy(own, limits)
        for _ in range(20):
            numbers = [*own, *(rng.uniform(1e-9, limit) for limit in limits)]
            total = sum(numbers)
            assert -sum(x / total * math.log(x / total) for x in numbers) <= best + 1e-12


# The paper's tables and what the errata say of them

FIGURE_2 = [["h", "h", "v", "v"], ["c", "h", "v", "v"], ["c", "c", "c", "c"]]
FIGURE_4 = [["h", "v", "c", "c"], ["c", "h", "v", "v"], ["h", "v", "c", "c"]]


def as_values(table: Release) -> Release:
    return [["abc"["hvc".index(value)] for value in group] for group in table]


def test_figure_2_is_not_diverse_at_all() -> None:
    table = as_values(FIGURE_2)
    assert judged(criterion("distinct", 2), table).figure == 1
    assert judged(criterion("entropy", "1.001"), table).worst_group == 2
    assert judged(criterion("recursive", 2, 1000), table).figure == math.inf


def test_figure_4_is_3_diverse_and_entropy_2_8_diverse() -> None:
    table = as_values(FIGURE_4)
    assert judged(criterion("distinct", 3), table).safe
    assert judged(criterion("entropy", "2.8"), table).figure == pytest.approx(2.828, abs=5e-4)
    assert judged(criterion("entropy", "2.8"), table).safe
    assert not judged(criterion("entropy", "2.83"), table).safe


def test_the_group_of_section_4_3_is_recursive_for_c_above_2_only() -> None:
    group = of_counts(2, 1, 1)
    assert not judged(criterion("recursive", 3, 2), [group]).safe
    assert judged(criterion("recursive", 3, Fraction(2001, 1000)), [group]).safe


def test_lowering_dont_care_counts_is_not_the_definition() -> None:
    group, c = of_counts(2, 1, 1), Fraction(1, 2)  # a and b are don't-care values
    assert judged(criterion("recursive", 2, c, "ab"), [group]).safe
    assert oracle.recursive(group, c, 2, "ab")
    assert not oracle.recursive_by_lowering(group, c, 2, "ab")


def test_factor_of_3_hundredths_leaves_less_than_3_percent_not_healthy() -> None:
    """At most c / (c + 1) = 2.91 percent, and strictly."""
    healthy = criterion("recursive", 2, Fraction(3, 100), "a")
    for sick, safe in ((2, True), (3, False)):
        row = Groups.dense(np.array([[100, sick]]))
        assert healthy.verdict(healthy.state(row)).safe is safe


def test_the_hospital_of_section_4_2_needs_no_further_generalization() -> None:
    table = Groups.dense(np.array([[700, 300, 0], [700, 0, 300]]))
    for bound in (criterion("recursive", 2, 1, "a"), criterion("entropy", 2, None, "a")):
        assert bound.verdict(bound.state(table)).safe
    assert not judged(criterion("entropy", "1.9"), [of_counts(7, 3)]).safe


def test_recursive_diversity_is_the_skyline_of_l_less_two_excluded_values() -> None:
    """Proposition 4 of Privacy Skyline: points (l - 2, 0, 0) at c / (c + 1)."""
    rng = random.Random(4)
    seen: Counter[bool] = Counter()
    for _ in range(500):
        release = [rng.choices(VALUES, k=rng.randint(1, 14)) for _ in range(rng.randint(1, 3))]
        c, l = Fraction(rng.randint(1, 12), rng.randint(1, 4)), rng.randint(2, 4)
        points = {value: [(l - 2, 0, 0, c / (c + 1))] for value in VALUES}
        diverse = judged(criterion("recursive", l, c), release).safe
        assert diverse == skyline.safe(release, points), (release, c, l)
        seen[diverse] += 1
    assert min(seen[True], seen[False]) > 50


# Boundaries


def test_a_group_of_dont_care_values_alone_holds() -> None:
    recursive = judged(criterion("recursive", 4, Fraction(1, 100), "ab"), [of_counts(9, 1)])
    assert (recursive.safe, recursive.figure) == (True, 0.0)
    entropy = judged(criterion("entropy", 5, None, "ab"), [of_counts(9, 1)])
    assert (entropy.safe, entropy.figure) == (True, math.inf)


def test_one_is_reached_by_every_group() -> None:
    for kind in KINDS:
        assert judged(criterion(kind, 1, Fraction(1, 1000)), [["a"], ["b", "b"]]).safe
    assert judged(criterion("recursive", 1, Fraction(1, 1000)), [["a"]]).figure == 0


def test_more_values_than_there_are_leave_no_tail() -> None:
    verdict = judged(criterion("recursive", 10**12, 10**6), [of_counts(1, 1, 1), of_counts(5, 5, 5, 5, 5)])
    assert (verdict.safe, verdict.figure, verdict.bound, verdict.worst_group) == (False, math.inf, 10.0**6, 0)


def test_no_groups_lower_no_minimum() -> None:
    none = Groups.dense(np.zeros((0, 5), np.int64))
    for kind in KINDS:
        minima = criterion(kind, 2, 2, (), {"a": Fraction(1)}).minima(none, np.zeros(0, np.int64), 1)
        assert np.array_equal(minima, np.full((1, 2), np.inf))


def test_an_unknown_kind_or_a_recursive_one_without_factor_is_refused() -> None:
    for kind in ("sparse", "recursive"):
        with pytest.raises(ValueError, match=kind):
            l_diversity("s", kind, Fraction(2))


# keep_possible


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_exactly_at_its_percentage_stays_possible(kind: str) -> None:
    group = of_counts(1, 3, 3)
    for percent, safe in ((Fraction(100, 7), True), (Fraction(100, 7) + Fraction(1, 10**18), False)):
        verdict = judged(criterion(kind, 2, 10, (), {"a": percent}), [group])
        assert verdict.safe is safe
        assert verdict.findings[1].figure == pytest.approx(100 / 7)
    assert judged(criterion(kind, 2, 10, (), {"a": Fraction(25)}), [of_counts(1, 2, 1)]).findings[1].figure == 25.0


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_missing_from_one_group_is_found_there(kind: str) -> None:
    verdict = judged(criterion(kind, 2, 10, (), {"a": Fraction(1)}), [of_counts(3, 3), of_counts(0, 3, 3)])
    diversity, share = verdict.findings
    assert (verdict.safe, share.figure, share.bound, verdict.worst_group) == (False, 0.0, 1.0, 1)
    assert (verdict.figure, verdict.bound, diversity.safe) == (diversity.figure, diversity.bound, True)
    assert [finding.safe for finding in verdict.findings] == [True, False]


def test_a_value_that_the_table_lost_is_possible_nowhere() -> None:
    lost = l_diversity("s", "distinct", Fraction(1), None, (), {-1: Fraction(2), -2: Fraction(0)})
    assert [finding.safe for finding in judged(lost, [of_counts(3, 3)]).findings] == [True, False, True]


# What searches rely on


@settings(max_examples=80, deadline=None)
@given(releases, demands(), st.randoms(use_true_random=False))
def test_states_do_not_depend_on_order_or_batches(release: Release, asked: Any, rng: random.Random) -> None:
    bound = criterion(**asked)
    check_batches(bound, release, histograms, rng)


@settings(max_examples=80, deadline=None)
@given(releases, releases, demands())
def test_minima_of_many_candidates_are_those_of_each(one: Release, two: Release, asked: Any) -> None:
    bound = criterion(**asked)
    owner = np.array([0] * len(one) + [1] * len(two))
    minima = bound.minima(histograms(one + two), owner, 2)
    for row, release in zip(minima, (one, two)):
        assert np.array_equal(row, bound.state(histograms(release)).values)
        assert (bound.judge(row[None, :])[0] == SAFE) == judged(bound, release).safe


@settings(max_examples=200, deadline=None)
@given(groups_, groups_, demands())
def test_merging_two_safe_groups_is_safe(one: list[int], two: list[int], asked: Any) -> None:
    bound = criterion(**asked)
    apart, together = Groups.dense(np.array([one, two])), Groups.dense(np.array([one]) + np.array([two]))
    before, after = bound.measure(apart).min(axis=0), bound.measure(together)[0]
    rounding = 1e-12 * np.where(np.isfinite(before), np.maximum(np.abs(before), 1), 0.0)
    assert (after >= before - rounding).all()
    if bound.verdict(bound.state(apart)).safe:
        assert bound.verdict(bound.state(together)).safe


@settings(max_examples=125, deadline=None)
@given(groups_, demands())
def test_no_safe_group_is_smaller_than_the_least_size(counts: list[int], asked: Any) -> None:
    bound = criterion(**asked)
    if judged(bound, [of_counts(*counts)]).safe:
        assert sum(counts) >= bound.least_group


@pytest.mark.parametrize(
    "bound",
    [
        criterion("distinct", 4),
        criterion("frequency", Fraction(7, 2)),
        criterion("entropy", Fraction(7, 2)),
        criterion("recursive", 3, Fraction(2, 5)),
        criterion("recursive", 3, Fraction(1, 2)),
        criterion("recursive", 3, 2),
    ],
)
def test_the_least_size_is_reached_by_a_group_of_different_values(bound: LDiversity) -> None:
    for size, safe in ((bound.least_group, True), (bound.least_group - 1, False)):
        groups = Groups.dense(np.ones((1, size), np.int64))
        assert bound.verdict(bound.state(groups)).safe is safe


@pytest.mark.parametrize("kind", ["entropy", "recursive"])
def test_one_individual_with_a_dont_care_value_is_a_safe_group(kind: str) -> None:
    bound = criterion(kind, 3, Fraction(1, 2), "a")
    assert judged(bound, [["a"]]).safe
    assert bound.least_group == 1


@settings(max_examples=125, deadline=None)
@given(groups_, demands())
def test_thresholds_called_near_would_hold(counts: list[int], asked: dict[str, Any]) -> None:
    whole = histograms([of_counts(*counts)])
    bound = criterion(**asked)
    for finding in bound.verdict(bound.state(whole)).findings:
        for words in [] if finding.safe else bound.nearest(whole, finding):
            name, number = words.replace(" above ", " = ").split(" = ")
            changed = dict(asked)
            if name == "keep_possible.percent":
                changed["percents"] = {VALUES[code]: Fraction(number) for code in [bound.kept[finding.about - 1]]}
            else:
                changed[name] = Fraction(number) + (Fraction(1, 10**6) if name == "c" else 0)
            again = criterion(**changed)
            index = min(finding.about, 1)
            assert again.verdict(again.state(whole)).findings[index].safe, words
