"""(c,k)-safety against possible worlds, all implications, and the paper's own dynamic program."""

from __future__ import annotations

import random
from fractions import Fraction
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon.criteria import CLOSE, SAFE, UNSAFE, Groups, State
from anon.criteria.ck_safety import CKSafety, DisclosureCurves, absences
from tests.oracles import ck_safety as oracle
from tests.oracles.ck_safety import Histogram

Tables = list[Histogram]

small = st.lists(st.integers(1, 6), min_size=1, max_size=6)
skewed = st.builds(
    lambda large, ones: [*large, *[1] * ones], st.lists(st.integers(2, 60), min_size=1, max_size=3), st.integers(0, 30)
)
group = st.one_of(small, skewed).map(lambda counts: tuple(sorted(counts, reverse=True)))
tables = st.lists(group, min_size=1, max_size=4)
pieces = st.integers(0, 5)
thresholds = st.fractions(Fraction(1, 10), 1, max_denominator=40)

ONE_FREQUENT = (60, *[1] * 40)
TWO_FREQUENT = (45, 45, *[1] * 10)
BEST_FOR_ONE = (13_000, *[100] * 70)
BEST_FOR_TWO = (9_000, 9_000, *[100] * 20)
BEST_FOR_FIVE = (3_998, 3_998, 3_998, 3_998, 3_998, *[1] * 10)


def batch(release: Tables, first: int = 0) -> Groups:
    start = np.cumsum([0, *map(len, release)])
    value = np.concatenate([np.arange(len(counts)) for counts in release])
    return Groups(np.array([sum(counts) for counts in release]), start, value, np.array(sum(release, ())), first)


def state_of(criterion: CKSafety, release: Tables) -> State:
    return criterion.state(batch(release))


def tiny_release(rng: random.Random, people: int, values: str) -> list[list[str]]:
    everyone = [rng.choice(values) for _ in range(rng.randint(2, people))]
    split = rng.choice([len(everyone), rng.randint(1, len(everyone))])
    return [group for group in (everyone[:split], everyone[split:]) if group]


def test_disclosure_equals_all_worlds_and_all_sets_of_simple_implications() -> None:
    rng = random.Random(2007)
    informative = 0
    for index in range(150):
        people, values = rng.choice([(6, "abcd"), (6, "abbcc")]) if index % 5 else (4, "abcd")
        release = tiny_release(rng, people, values)
        k = rng.choice([0, 1, 1, 2]) if sum(map(len, release)) < 6 else rng.choice([0, 1])
        groups = [oracle.histogram(group) for group in release]
        truth = oracle.simple(release, k)
        assert oracle.disclosure(groups, k) == truth, (release, k)
        curves = DisclosureCurves.from_groups(batch(groups), k)
        assert curves.implications()[k] == pytest.approx(float(truth), abs=1e-12)
        assert curves.negations()[k] == pytest.approx(float(oracle.negated(release, k)), abs=1e-12)
        informative += 0 < truth < 1
    assert informative > 35


@pytest.mark.parametrize(
    ("release", "k", "truth"),
    [
        (["abc"], 0, Fraction(1, 3)),
        (["abc"], 1, Fraction(1, 2)),
        (["aabc"], 1, Fraction(3, 4)),
        (["aabb"], 1, Fraction(1)),
        (["aab", "ab"], 1, Fraction(1)),
        (["ab", "ab"], 0, Fraction(1, 2)),
        (["aaab"], 2, Fraction(1)),
    ],
)
def test_longer_implications_tell_no_more_than_simple_ones(release: list[str], k: int, truth: Fraction) -> None:
    groups = [oracle.histogram(group) for group in release]
    assert oracle.basic(release, k) == oracle.simple(release, k) == oracle.disclosure(groups, k) == truth


@settings(max_examples=150, deadline=None)
@given(tables, pieces, thresholds)
def test_verdict_and_figure_are_those_of_the_dynamic_program(release: Tables, k: int, c: Fraction) -> None:
    criterion = CKSafety("s", c, k)
    verdict = criterion.verdict(state_of(criterion, release))
    truth = oracle.disclosure(release, k)
    assert verdict.figure == pytest.approx(float(truth), abs=1e-12)
    assert verdict.safe == (truth < c)
    assert criterion.holds(state_of(criterion, release)) == (truth < c)


@settings(max_examples=100, deadline=None)
@given(tables, pieces)
def test_a_threshold_exactly_at_the_disclosure_is_not_safe_and_just_above_it_is(release: Tables, k: int) -> None:
    truth = oracle.disclosure(release, k)
    for c, safe in ((truth, False), (truth + Fraction(1, 10**15), True)):
        if c <= 1:
            criterion = CKSafety("s", c, k)
            state = state_of(criterion, release)
            assert criterion.holds(state) is criterion.verdict(state).safe is safe
            judged = criterion.judge(state.values[None, :])[0]
            assert judged == (UNSAFE if truth == 1 else CLOSE) or (safe and judged == SAFE)


@settings(max_examples=80, deadline=None)
@given(tables, pieces, st.randoms(use_true_random=False))
def test_states_do_not_depend_on_order_or_batches(release: Tables, k: int, rng: random.Random) -> None:
    criterion = CKSafety("s", Fraction(1, 2), k)
    whole = state_of(criterion, release)
    parts = [criterion.state(batch([group], first=index)) for index, group in enumerate(release)]
    rng.shuffle(parts)
    merged = parts[0]
    for part in [*parts, *parts]:
        merged = merged.merge(part) if rng.random() < 0.5 else part.merge(merged)
    assert np.array_equal(whole.values, merged.values)
    assert np.array_equal(whole.witness, merged.witness)


@settings(max_examples=80, deadline=None)
@given(tables, tables, pieces, thresholds)
def test_minima_of_many_candidates_are_those_of_each(one: Tables, two: Tables, k: int, c: Fraction) -> None:
    criterion = CKSafety("s", c, k)
    minima = criterion.minima(batch(one + two), np.array([0] * len(one) + [1] * len(two)), 2)
    judged = criterion.judge(minima)
    for row, verdict, release in zip(minima, judged, (one, two)):
        state = state_of(criterion, release)
        assert np.array_equal(row, state.values)
        assert verdict == CLOSE or (verdict == SAFE) == criterion.holds(state)


@settings(max_examples=125, deadline=None)
@given(st.lists(st.lists(st.integers(0, 12), min_size=5, max_size=5).filter(any), min_size=2, max_size=4), pieces)
def test_merging_two_groups_never_raises_the_disclosure(counts: list[list[int]], k: int) -> None:
    together = [[a + b for a, b in zip(counts[0], counts[1])], *counts[2:]]
    before, after = (
        DisclosureCurves.from_groups(Groups.dense(np.array(release)), k).implications()[k]
        for release in (counts, together)
    )
    assert after <= before + 1e-12


@settings(max_examples=125, deadline=None)
@given(group, st.integers(1, 4), st.integers(1, 4))
def test_atoms_kept_together_in_a_group_tell_at_least_as_much_as_their_product(
    counts: Histogram, a: int, b: int
) -> None:
    f = [absence.chance for absence in absences(sum(counts), (*counts, *[0] * 9)[:9])]
    assert f[a + b] <= f[a] * f[b]
    assert f[a + b + 1] <= f[a + 1] * f[b]


@settings(max_examples=100, deadline=None)
@given(group, st.integers(0, 7))
def test_exact_absences_are_those_of_the_recursion_and_their_people_reach_them(counts: Histogram, h: int) -> None:
    n = sum(counts)
    chance, people = absences(n, (*counts, *[0] * h)[:h])[h]
    assert chance == oracle.absent(counts, h)
    assert sum(people) == h and len(people) <= n
    assert chance == prod(Fraction(max(n - i - sum(counts[:own]), 0), n - i) for i, own in enumerate(people))
    assert (chance == 0) == (h >= len(counts))


@settings(max_examples=100, deadline=None)
@given(tables, pieces)
def test_the_atoms_told_reach_the_maximum(release: Tables, k: int) -> None:
    target, *others = people = DisclosureCurves.from_groups(batch(release), k).implication_atoms(k)
    assert target.target and not any(person.target for person in others)
    assert sum(len(person.ranks) for person in people) == k
    ratio = Fraction(sum(release[target.group]), release[target.group][0])
    for index, counts in enumerate(release):
        values = sorted((len(p.ranks) + p.target for p in people if p.group == index), reverse=True)
        ratio *= prod(
            Fraction(max(sum(counts) - i - sum(counts[:own]), 0), sum(counts) - i) for i, own in enumerate(values)
        )
    assert float(1 / (1 + ratio)) == pytest.approx(float(oracle.disclosure(release, k)), abs=1e-12)


@pytest.mark.parametrize(
    ("release", "k", "places"),
    [
        ([ONE_FREQUENT, TWO_FREQUENT], 2, 2),
        ([TWO_FREQUENT, ONE_FREQUENT, (5, 5, 5, 5, 5, 5)], 4, 2),
        ([BEST_FOR_FIVE, BEST_FOR_ONE, BEST_FOR_TWO], 7, 3),
    ],
)
def test_the_worst_case_may_need_several_groups(release: Tables, k: int, places: int) -> None:
    truth = oracle.disclosure(release, k)
    assert truth > oracle.within_one_group(release, k)
    criterion = CKSafety("s", truth, k)
    verdict = criterion.verdict(state_of(criterion, release))
    assert not verdict.safe and verdict.figure == float(truth)
    assert len({person.group for person in verdict.findings[0].about}) == places
    for left_out in range(len(release)) if places == len(release) else ():
        assert oracle.disclosure(release[:left_out] + release[left_out + 1 :], k) < truth
    assert CKSafety("s", truth + Fraction(1, 10**15), k).holds(state_of(criterion, release))


def test_many_releases_of_frequent_and_rare_values_need_two_groups() -> None:
    rng, needed = random.Random(15), 0
    for _ in range(60):
        one, two = rng.randint(200, 300), rng.randint(140, 190)
        release = [(one, *[1] * (400 - one)), (two, two, *[1] * (400 - 2 * two))]
        k = rng.choice([2, 4])
        truth = oracle.disclosure(release, k)
        assert DisclosureCurves.from_groups(batch(release), k).implications()[k] == pytest.approx(
            float(truth), abs=1e-12
        )
        needed += truth > oracle.within_one_group(release, k)
    assert needed >= 15


def test_the_papers_table_and_its_hannah_and_charlie() -> None:
    men, women = (2, 2, 1), (2, 1, 1, 1)
    assert 1 / (1 + oracle.target(men, 0) * oracle.absent(women, 1)) == Fraction(10, 19)
    assert oracle.disclosure([men, women], 1) == Fraction(2, 3)
    criterion = CKSafety("disease", Fraction(2, 3), 1)
    verdict = criterion.verdict(state_of(criterion, [men, women]))
    assert (verdict.safe, verdict.figure, verdict.worst_group) == (False, float(Fraction(2, 3)), 0)


@settings(max_examples=80, deadline=None)
@given(tables, st.integers(2, 6), st.fractions(Fraction(1, 4), 6, max_denominator=12))
def test_negated_atoms_are_recursive_diversity(release: Tables, l: int, c: Fraction) -> None:
    truth = oracle.negated_disclosure(release, l - 2)
    assert (truth < c / (c + 1)) == oracle.recursively_diverse(release, c, l)
    curves = DisclosureCurves.from_groups(batch(release), l - 2)
    assert curves.negations()[l - 2] == pytest.approx(float(truth), abs=1e-12)
    ((worst, target, ranks),) = curves.negation_atoms(l - 2)
    assert oracle.negated_disclosure([release[worst]], l - 2) == truth
    assert target and ranks == tuple(range(1, l - 1))


def test_the_errata_example_is_not_recursively_diverse_at_equality() -> None:
    assert oracle.negated_disclosure([(2, 1, 1)], 1) == Fraction(2, 3)
    assert not oracle.recursively_diverse([(2, 1, 1)], Fraction(2), 3)


@settings(max_examples=60, deadline=None)
@given(tables, tables, pieces)
def test_curves_of_merged_batches_are_those_of_the_whole(one: Tables, two: Tables, k: int) -> None:
    whole = DisclosureCurves.from_groups(batch(one + two), k)
    merged = DisclosureCurves.from_groups(batch(two, first=len(one)), k).merge(
        DisclosureCurves.from_groups(batch(one), k)
    )
    assert merged.implications() == whole.implications()
    assert merged.negations() == whole.negations()
    assert merged.negation_atoms(k) == whole.negation_atoms(k)
    assert whole.implications() == sorted(whole.implications())
    assert all(n <= i + 1e-12 for n, i in zip(whole.negations(), whole.implications()))
    for fewer in range(k + 1):
        assert whole.implications()[fewer] == pytest.approx(float(oracle.disclosure(one + two, fewer)), abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(group, pieces, thresholds)
def test_no_safe_group_is_smaller_than_the_least_size(counts: Histogram, k: int, c: Fraction) -> None:
    criterion = CKSafety("s", c, k)
    if criterion.holds(state_of(criterion, [counts])):
        assert sum(counts) >= criterion.least_group


@given(pieces, thresholds)
def test_the_least_size_is_reached_by_a_group_of_different_values(k: int, c: Fraction) -> None:
    criterion = CKSafety("s", c, k)
    for size, safe in ((criterion.least_group, True), (criterion.least_group - 1, False)):
        assert size == 0 or criterion.holds(state_of(criterion, [(1,) * size])) is safe


@settings(max_examples=60, deadline=None)
@given(tables, pieces, thresholds)
def test_where_groups_are_judged_alone_the_release_is_safe_iff_each_is(release: Tables, k: int, c: Fraction) -> None:
    for criterion in (CKSafety("s", c, 0), CKSafety("s", Fraction(1), k)):
        assert criterion.alone
        each = all(criterion.holds(state_of(criterion, [counts])) for counts in release)
        assert criterion.holds(state_of(criterion, release)) is each
    assert CKSafety("s", Fraction(99, 100), 1).alone is False


def test_confidence_one_asks_for_two_values_more_than_pieces() -> None:
    for values, safe in ((5, True), (4, False)):
        criterion = CKSafety("s", Fraction(1), 3)
        assert criterion.holds(state_of(criterion, [(1,) * 30, (9,) * values])) is safe


def test_a_product_that_underflows_is_not_taken_for_zero() -> None:
    k = 40
    counts = (2_000_000_000, *[1] * (k + 1))
    criterion = CKSafety("s", Fraction(1), k)
    state = state_of(criterion, [counts])
    assert 0 < state.values[k] < 1e-290
    assert criterion.holds(state) and criterion.verdict(state).safe
    assert not CKSafety("s", Fraction(1), k + 1).holds(state_of(CKSafety("s", Fraction(1), k + 1), [counts]))


def test_no_groups_disclose_nothing() -> None:
    criterion = CKSafety("s", Fraction(1, 2), 2)
    empty = criterion.state(Groups.dense(np.zeros((0, 3), np.int64)))
    assert criterion.verdict(empty).safe and criterion.holds(empty)
    some = state_of(criterion, [(2, 1)])
    assert np.array_equal(empty.merge(some).witness, some.witness)


def test_the_nearest_thresholds_hold_and_the_next_do_not() -> None:
    counts = (5, 4, 3, 3, 2, 2, 1)
    criterion = CKSafety("s", Fraction(1, 2), 4)
    finding = criterion.verdict(state_of(criterion, [counts])).findings[0]
    above, fewer = criterion.nearest(batch([counts]), finding)
    assert above == f"c above {float(oracle.disclosure([counts], 4)):.6g}"
    k = int(fewer.removeprefix("k = "))
    assert oracle.disclosure([counts], k) < criterion.c <= oracle.disclosure([counts], k + 1)


def test_the_bench_against_the_dynamic_programs_finds_equal_answers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench import check_baseline

    monkeypatch.setattr(check_baseline, "ENOUGH", 0)  # the clock of a busy machine may stand still for so little work
    check_baseline.main(["--groups", "3", "--runs", "1"])
    printed = capsys.readouterr().out
    assert printed.count("##") == 3
    assert all(line.startswith(("|", "##")) for line in printed.splitlines() if line)
