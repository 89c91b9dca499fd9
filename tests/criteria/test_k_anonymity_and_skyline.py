"""k-anonymity and the skyline criterion against oracles that share no code with them."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon.criteria import CLOSE, SAFE, UNSAFE, Criterion, Groups, KAnonymity, Point, Skyline
from anon.criteria.l_diversity import l_diversity
from tests.helpers.criterion_laws import check_batches
from tests.oracles import skyline as formula
from tests.oracles import worlds

VALUES = "abcd"
Release = list[list[str]]

releases = st.lists(st.lists(st.sampled_from(VALUES), min_size=1, max_size=9), min_size=1, max_size=6)
knowledge = st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4))
thresholds = st.fractions(Fraction(1, 20), 1, max_denominator=40)


def histograms(release: Release, first: int = 0) -> Groups:
    counts = np.array([[group.count(value) for value in VALUES] for group in release], np.int64)
    dense = Groups.dense(counts.reshape(-1, len(VALUES)))
    return Groups(dense.n, dense.start, dense.value, dense.count, first)


def skyline(points: list[list[Point]], shared: bool = False) -> Skyline:
    return Skyline("s", points, shared)


def same_for_all(*points: Point) -> list[list[Point]]:
    return [list(points) for _ in VALUES]


def test_breach_equals_all_reconstructions_and_groundings_on_thousands_of_tiny_releases() -> None:
    rng = random.Random(20070923)
    informative = 0
    for _ in range(3_000):
        people = rng.randint(2, 6)
        split = rng.randint(1, people)
        values = ["a", *(rng.choice("bcd" if rng.random() < 0.8 else VALUES) for _ in range(people - 1))]
        rng.shuffle(values)
        release = [group for group in (values[:split], values[split:]) if group]
        l, k, m = rng.choice([0, 0, 1, 2]), rng.choice([0, 0, 1, 2]), rng.choice([0, 1, 2])
        criterion = skyline([[Point(l, k, m, Fraction(1))], [], [], []])
        verdict = criterion.verdict(criterion.state(histograms(release)))
        truth = worlds.breach(release, "a", l, k, m)
        assert verdict.figure == pytest.approx(float(truth), abs=1e-12), (release, l, k, m)
        assert verdict.safe == (truth < 1)
        informative += 0 < truth < 1
    assert informative > 300


@pytest.mark.parametrize("kind", ["set", "multiset"])
def test_breach_of_several_values_per_individual_equals_all_worlds(kind: str) -> None:
    rng = random.Random(41)
    informative = 0
    for _ in range(1_000):
        release = [some_group(rng, kind) for _ in range(rng.randint(1, 2))]
        amount = rng.choice([0, 0, 1, 2]), rng.choice([0, 0, 1]), rng.choice([0, 1, 2])
        criterion = Skyline("s", [[Point(*amount, Fraction(1))], [], []], multiplicity=kind)
        verdict = criterion.verdict(criterion.state(occurrences(release)))
        truth = worlds.worst_case(worlds.many_worlds(release, kind), worlds.MANY, "a", amount)
        assert verdict.figure == pytest.approx(float(truth), abs=1e-11), (release, amount)
        assert verdict.safe == (truth < 1)
        informative += 0 < truth < 1
    assert informative > 100


def some_group(rng: random.Random, kind: str) -> tuple[int, str]:
    """A few people and their values."""
    people = rng.randint(1, 4 if kind == "set" else 3)
    most = people if kind == "set" else 3
    counts = [rng.randint(0, min(most, 2)), rng.randint(0, min(most, 2)), rng.randint(0, 1)]
    return people, "".join(value * count for value, count in zip("abc", counts))


def occurrences(release: list[tuple[int, str]]) -> Groups:
    dense = Groups.dense(np.array([[held.count(value) for value in "abc"] for _, held in release], np.int64))
    return Groups(np.array([people for people, _ in release]), dense.start, dense.value, dense.count)


@pytest.mark.parametrize(
    ("kind", "apart", "amount"),
    [("set", [(1, "bc"), (2, "a")], (2, 0, 0)), ("multiset", [(1, "bb"), (2, "a")], (1, 0, 0))],
)
def test_merging_groups_of_several_values_may_raise_the_breach(kind: str, apart: Any, amount: Any) -> None:
    criterion = Skyline("s", [[Point(*amount, Fraction(1))], [], []], multiplicity=kind)
    assert not criterion.monotone
    merged = [(sum(people for people, _ in apart), "".join(held for _, held in apart))]
    figures = [criterion.verdict(criterion.state(occurrences(release))).figure for release in (apart, merged)]
    assert figures == [pytest.approx(1 / 2), pytest.approx(9 / 17)]


def test_powers_beyond_a_million_bits_are_close_enough_to_decide() -> None:
    from anon.criteria.skyline import power

    assert (
        abs(power(Fraction(999_999, 1_000_000), 2_000_000) - power(Fraction(999_999, 1_000_000), 1_000_000) ** 2)
        < 1e-80
    )


@settings(max_examples=200, deadline=None)
@given(releases, st.lists(st.tuples(knowledge, thresholds), min_size=1, max_size=3))
def test_verdict_and_figures_are_those_of_the_exact_closed_form(release: Release, asked: list[Any]) -> None:
    points = [Point(*amount, c) for amount, c in asked]
    criterion = skyline(same_for_all(*points))
    verdict = criterion.verdict(criterion.state(histograms(release)))
    assert verdict.safe == formula.safe(release, {v: [(p.l, p.k, p.m, p.c) for p in points] for v in VALUES})
    for finding in verdict.findings:
        point, value = finding.about.point, VALUES[finding.about.value]
        exact = formula.breach(release, value, point.l, point.k, point.m)
        assert finding.figure == pytest.approx(float(exact), abs=1e-12)
        assert finding.safe == (exact < point.c)


@settings(max_examples=150, deadline=None)
@given(releases, knowledge)
def test_a_threshold_exactly_at_the_breach_is_not_safe_and_just_above_it_is(release: Release, amount: Any) -> None:
    breach = formula.breach(release, "a", *amount)
    for c, safe in ((breach, False), (breach + Fraction(1, 10**15), True)):
        if 0 < c <= 1:
            criterion = skyline([[Point(*amount, c)], [], [], []])
            groups = histograms(release)
            assert criterion.verdict(criterion.state(groups)).safe is safe
            judged = criterion.judge(criterion.minima(groups, np.zeros(len(groups), np.int64), 1))[0]
            assert judged == CLOSE or (breach in (0, 1) and judged == (SAFE if safe else UNSAFE))


@settings(max_examples=150, deadline=None)
@given(releases, st.lists(st.tuples(knowledge, thresholds), min_size=1, max_size=2), st.randoms(use_true_random=False))
def test_states_do_not_depend_on_order_or_batches(release: Release, asked: list[Any], rng: random.Random) -> None:
    for criterion in (skyline(same_for_all(*(Point(*a, c) for a, c in asked))), KAnonymity(3)):
        whole = criterion.state(histograms(release))
        parts = [criterion.state(histograms([group], first=index)) for index, group in enumerate(release)]
        rng.shuffle(parts)
        merged = parts[0]
        for part in parts:
            merged = merged.merge(part) if rng.random() < 0.5 else part.merge(merged)
        for part in parts:
            merged = merged.merge(part)
        assert np.array_equal(whole.values, merged.values)
        assert np.array_equal(whole.witness, merged.witness)


@pytest.mark.parametrize("kind", ["set", "multiset"])
@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 2**32), amount=knowledge, c=thresholds)
def test_states_of_several_values_do_not_depend_on_order_or_batches(
    kind: str, seed: int, amount: Any, c: Fraction
) -> None:
    rng = random.Random(seed)
    release = [some_group(rng, kind) for _ in range(rng.randint(1, 5))]
    criterion = Skyline("s", [[Point(*amount, c)]] * 3, multiplicity=kind)

    def batch(part: list[Any], first: int) -> Groups:
        return replace(occurrences(part), first=first)

    check_batches(criterion, release, batch, rng)


@settings(max_examples=150, deadline=None)
@given(releases, releases, st.lists(st.tuples(knowledge, thresholds), min_size=1, max_size=2))
def test_minima_of_many_candidates_are_those_of_each(one: Release, two: Release, asked: list[Any]) -> None:
    for shared in (False, True):
        criterion = skyline(same_for_all(*(Point(*a, c) for a, c in asked)), shared)
        owner = np.array([0] * len(one) + [1] * len(two))
        minima = criterion.minima(histograms(one + two), owner, 2)
        for row, release in zip(minima, (one, two)):
            assert np.array_equal(row, criterion.state(histograms(release)).values)
            verdict = criterion.verdict(criterion.state(histograms(release)))
            judged = criterion.judge(row[None, :])[0]
            assert judged == CLOSE or (judged == SAFE) == verdict.safe


@settings(max_examples=300, deadline=None)
@given(releases, releases, releases, st.lists(st.tuples(knowledge, thresholds), min_size=1, max_size=2), st.booleans())
def test_groups_beside_a_release_are_judged_as_all_of_its_minima_would_be(
    whole: Release, one: Release, two: Release, asked: list[Any], some_exempt: bool
) -> None:
    """The slots of values that do not occur in the groups are passed over; what was lowered for one candidate is not
    for the next."""
    points = same_for_all(*(Point(*a, c) for a, c in asked))
    criterion = skyline([[], *points[1:]] if some_exempt else points)
    state = criterion.state(histograms(whole))
    if not criterion.holds(state):
        return
    before, owner = state.copy(), np.array([0] * len(one) + [1] * len(two))
    verdict, free = criterion.beside(histograms(one + two), owner, 2, state)
    wished, wished_free = Criterion.beside(criterion, histograms(one + two), owner, 2, state)
    assert free.tolist() == wished_free.tolist()
    assert (verdict == UNSAFE).tolist() == (wished == UNSAFE).tolist()
    merged = state.merge(criterion.state(histograms(one)))
    assert verdict[0] == CLOSE or (verdict[0] == SAFE) == criterion.holds(merged)
    assert np.array_equal(state.values, before.values)
    lowered = criterion.lowered(state, histograms(one))
    assert np.array_equal(lowered.values, merged.values) and np.array_equal(lowered.witness, merged.witness)


@settings(max_examples=150, deadline=None)
@given(releases, st.lists(st.tuples(knowledge, thresholds), min_size=1, max_size=2))
def test_values_that_share_a_slot_get_the_same_verdict(release: Release, asked: list[Any]) -> None:
    points = same_for_all(*(Point(*a, c) for a, c in asked))
    own, shared = skyline(points), skyline(points, shared=True)
    groups = histograms(release)
    assert own.verdict(own.state(groups)).safe == shared.verdict(shared.state(groups)).safe


@settings(max_examples=150, deadline=None)
@given(releases, st.tuples(knowledge, thresholds))
def test_merging_two_groups_never_raises_the_breach(release: Release, asked: Any) -> None:
    if len(release) < 2:
        return
    criterion = skyline(same_for_all(Point(*asked[0], asked[1])))
    apart = criterion.verdict(criterion.state(histograms(release)))
    together = criterion.verdict(criterion.state(histograms([release[0] + release[1], *release[2:]])))
    assert together.figure <= apart.figure + 1e-12


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from(VALUES), min_size=1, max_size=30),
    st.lists(st.tuples(knowledge, thresholds), min_size=1, max_size=2),
)
def test_no_safe_group_is_smaller_than_the_least_size(group: list[str], asked: list[Any]) -> None:
    criterion = skyline(same_for_all(*(Point(*a, c) for a, c in asked)))
    if criterion.verdict(criterion.state(histograms([group]))).safe:
        assert len(group) >= criterion.least_group


@pytest.mark.parametrize(
    ("release", "amount", "breach"),
    [
        ([["a", "b", "b", "c", "c"], ["d"]], (0, 0, 2), Fraction(1, 3)),  # a tiny group without the value has V = 1
        ([["b", "c"]], (2, 2, 2), Fraction(0)),  # nobody has it: T is infinite, never 0 / 0
        ([["a", "b"]], (0, 2, 2), Fraction(1)),  # more is known than there are people
        ([["a", "b", "b"]], (3, 0, 0), Fraction(1)),  # fewer other values than l
        ([["a", "b", "c", "d"]], (0, 0, 0), Fraction(1, 4)),
        ([["a"]], (0, 0, 0), Fraction(1)),
    ],
)
def test_boundary_rules_of_the_errata(release: Release, amount: tuple[int, int, int], breach: Fraction) -> None:
    criterion = skyline([[Point(*amount, Fraction(1))], [], [], []])
    verdict = criterion.verdict(criterion.state(histograms(release)))
    assert verdict.figure == float(breach)
    assert verdict.safe == (breach < 1)


@pytest.mark.parametrize(
    ("kind", "release", "amount", "breach"),
    [
        *((kind, [(5, "abbcc"), (1, "b")], (0, 0, 2), Fraction(1, 3)) for kind in ("set", "multiset")),  # errata 1
        *((kind, [(2, "bc")], (1, 1, 1), Fraction(0)) for kind in ("set", "multiset")),  # nobody has it
        *((kind, [(2, "ab")], (0, 2, m), Fraction(1)) for kind in ("set", "multiset") for m in (0, 2)),  # all known
        *((kind, [(3, "ab")], (3, 0, 0), Fraction(3, 7)) for kind in ("set", "multiset")),  # fewer others than l
        *((kind, [(3, "ab")], (0, 2, 1), Fraction(1)) for kind in ("set", "multiset")),  # n - k - 1 is zero
        *((kind, [(3, "a"), (2, "bb")], (0, 0, 3), Fraction(1)) for kind in ("set", "multiset")),  # n - k - m is
        ("set", [(2, "aa")], (0, 0, 0), Fraction(1)),  # both have it
        ("multiset", [(2, "aa")], (0, 0, 0), Fraction(3, 4)),  # occurrences are labelled: one may have both
    ],
)
def test_boundary_rules_of_the_errata_for_several_values(
    kind: str, release: Any, amount: Any, breach: Fraction
) -> None:
    criterion = Skyline("s", [[Point(*amount, Fraction(1))], [], []], multiplicity=kind)
    assert worlds.worst_case(worlds.many_worlds(release, kind), worlds.MANY, "a", amount) == breach
    assert criterion.verdict(criterion.state(occurrences(release))).figure == pytest.approx(float(breach), abs=1e-12)


def test_a_product_that_underflows_is_not_taken_for_zero() -> None:
    """c = 1 asks for a negated ratio above 0; forty factors of about 1e-9 are below the smallest double but above 0."""
    n, s, m = 2_000_000_100, 2_000_000_000, 40
    groups = Groups(np.array([n]), np.array([0, 2]), np.array([0, 1]), np.array([s, 100]))
    criterion = Skyline("s", [[Point(0, 0, m, Fraction(1))], []])
    assert 0.0 < criterion.state(groups).values[0] < 1e-140
    assert criterion.verdict(criterion.state(groups)).safe


def test_the_nearest_thresholds_hold_and_the_next_do_not() -> None:
    counts = [5, 3, 2, 2]
    whole = Groups.dense(np.array([counts]))
    release = [[value for value, count in zip(VALUES, counts) for _ in range(count)]]
    point = Point(2, 4, 3, Fraction(6, 10))
    criterion = skyline([[point], [], [], []])
    finding = criterion.verdict(criterion.state(whole)).findings[0]
    assert not finding.safe
    for words in criterion.nearest(whole, finding):
        if " = " in words:
            name, number = words.split(" = ")
            amount = {"l": point.l, "k": point.k, "m": point.m} | {name: int(number)}
            assert formula.breach(release, "a", **amount) < point.c
            assert formula.breach(release, "a", **(amount | {name: int(number) + 1})) >= point.c


@settings(max_examples=100, deadline=None)
@given(releases, st.integers(1, 6))
def test_k_anonymity_is_the_smallest_group(release: Release, k: int) -> None:
    criterion = KAnonymity(k)
    verdict = criterion.verdict(criterion.state(histograms(release)))
    assert verdict.safe == formula.safe_k(release, k)
    assert verdict.figure == min(map(len, release))
    assert len(release[verdict.worst_group]) == verdict.figure


def test_k_anonymity_is_the_skyline_of_k_less_two_known_people_over_identities() -> None:
    """Proposition 3 of Privacy Skyline: with everybody's identity as their value, points (0, k - 2, 0) at c = 1."""
    rng = random.Random(3)
    seen = set()
    for _ in range(500):
        sizes, k = [rng.randint(1, 6) for _ in range(rng.randint(1, 4))], rng.randint(2, 6)
        owner = np.repeat(np.arange(len(sizes)), sizes)
        groups = Groups.dense((owner == np.arange(len(sizes))[:, None]).astype(np.int64))
        one, other = KAnonymity(k), Skyline("s", [[Point(0, k - 2, 0, Fraction(1))]] * len(owner))
        safe = one.verdict(one.state(groups)).safe
        assert other.verdict(other.state(groups)).safe == safe == (min(sizes) >= k)
        seen.add(safe)
    assert seen == {True, False}


@settings(max_examples=150, deadline=None)
@given(releases, st.fractions(Fraction(1, 4), 12, max_denominator=4), st.integers(2, 4))
def test_recursive_diversity_is_the_skyline_of_l_less_two_excluded_values(
    release: Release, c: Fraction, l: int
) -> None:
    """Proposition 4 of Privacy Skyline: points (l - 2, 0, 0) at c / (c + 1)."""
    groups = histograms(release)
    one, other = l_diversity("s", "recursive", Fraction(l), c), skyline(same_for_all(Point(l - 2, 0, 0, c / (c + 1))))
    assert one.verdict(one.state(groups)).safe == other.verdict(other.state(groups)).safe


def test_knowledge_far_beyond_the_table_is_judged_at_once() -> None:
    counts = np.array([[400, 300, 200, 100]])
    criterion = skyline(same_for_all(Point(3, 10**7, 10**7, Fraction(99, 100))))
    assert criterion.least_group > 10**7
    verdict = criterion.verdict(criterion.state(Groups.dense(counts)))
    assert verdict.figure == 1.0 and not verdict.safe
    assert criterion.nearest(Groups.dense(counts), verdict.findings[0]) == []
