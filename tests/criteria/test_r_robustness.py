"""r-robustness against all possible worlds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from math import ceil, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon.criteria import r_robustness
from anon.criteria.priors import Prior
from anon.criteria.protocol import SAFE, Groups, Signatures, Verdict
from anon.criteria.r_robustness import RRobustness, Worlds
from tests.helpers.criterion_laws import check_batches
from tests.oracles import robustness as oracle

VALUES = 4
SIGNATURES = 3
TINY = Fraction(1, 10**12)

Member = tuple[int, int]  # signature, value
members = st.tuples(st.integers(0, SIGNATURES - 1), st.integers(0, VALUES - 1))
groups = st.lists(members, min_size=1, max_size=6)
releases = st.lists(groups, min_size=1, max_size=5)
rates = st.sampled_from([Fraction(n, 10) for n in (11, 15, 20, 25, 30, 40)] + [Fraction(4, 3)])
seeds = st.integers(0, 2**32).map(random.Random)


def full(rows: Iterable[Iterable[Fraction | None]]) -> Prior:
    p = [list(row) for row in rows]
    return Prior.from_rows(["q"], [(str(code),) for code in range(len(p))], [str(code) for code in range(len(p[0]))], p)


def some_prior(rng: random.Random, binary: bool, zeros: bool = False) -> Prior:
    """Few different probabilities, so that ties are common; in binary ones the first and third value are named."""
    least = 0 if zeros else 1
    if binary:
        asked = [[Fraction(rng.randint(least, 10 - least), 10) for _ in range(VALUES)] for _ in range(SIGNATURES)]
        return full([[p if code in (0, 2) else None for code, p in enumerate(row)] for row in asked])
    counts = [[rng.randint(least, 4) for _ in range(VALUES)] for _ in range(SIGNATURES)]
    return full([[Fraction(count, max(sum(row), 1)) for count in row] for row in counts])


def csr(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    counted = [sorted(Counter(row).items()) for row in rows]
    start = np.concatenate([[0], np.cumsum([len(row) for row in counted])]).astype(np.int64)
    flat = [pair for row in counted for pair in row]
    return start, np.array([code for code, _ in flat], np.int64), np.array([count for _, count in flat], np.int64)


def batch(release: list[list[Member]], priors: int = 1, first: int = 0) -> Groups:
    n = np.array([len(group) for group in release], np.int64)
    signatures = Signatures(*csr([[signature for signature, _ in group] for group in release]))
    return Groups(n, *csr([[value for _, value in group] for group in release]), first, None, (signatures,) * priors)


def judged(criterion: RRobustness, release: list[list[Member]], priors: int = 1) -> Verdict:
    return criterion.verdict(criterion.state(batch(release, priors)))


def truth(prior: Prior, group: list[Member]) -> Fraction:
    """The largest posterior of a group by enumeration, 1 where there is no possible world."""
    if not prior.binary:
        return oracle.largest([prior.p[signature] for signature, _ in group], [value for _, value in group])
    copies = Counter(value for _, value in group)
    named = [value for value in prior.named if value in copies]
    return max(
        (oracle.against_all_others([prior.p[s][value] for s, _ in group], copies[value]) for value in named),
        default=Fraction(0),
    )


def enough(prior: Prior, r: Fraction, group: list[Member]) -> bool:
    return truth(prior, group) <= 1 / r and len(group) >= r


@settings(max_examples=200, deadline=None)
@given(releases, seeds, st.booleans(), st.booleans(), rates)
def test_posteriors_are_those_of_all_worlds(
    release: list[list[Member]], rng: random.Random, binary: bool, zeros: bool, r: Fraction
) -> None:
    prior = some_prior(rng, binary, zeros)
    posteriors = [truth(prior, group) for group in release]
    verdict = judged(RRobustness("s", r, [prior]), release)
    assert verdict.safe == all(enough(prior, r, group) for group in release)
    if verdict.safe:
        assert verdict.figure == pytest.approx(float(max(posteriors)), rel=1e-9)
        assert posteriors[verdict.worst_group] == max(posteriors)


@settings(max_examples=200, deadline=None)
@given(groups, seeds, st.booleans())
def test_a_posterior_of_exactly_one_over_r_is_safe_and_anything_above_is_not(
    group: list[Member], rng: random.Random, binary: bool
) -> None:
    prior = some_prior(rng, binary)
    posterior = truth(prior, group)
    if not 0 < posterior < 1:
        return
    for r, safe in ((1 / posterior, True), (1 / posterior - TINY, True), (1 / posterior + TINY, False)):
        if r > 1:
            verdict = judged(RRobustness("s", r, [prior]), [group])
            assert verdict.safe == safe
            assert verdict.figure == pytest.approx(float(posterior), rel=1e-9)
            assert verdict.findings[0].about.exact


@settings(max_examples=500, deadline=None)
@given(groups, seeds, st.booleans(), st.booleans())
def test_the_bound_is_never_below_the_posterior(
    group: list[Member], rng: random.Random, binary: bool, zeros: bool
) -> None:
    prior = some_prior(rng, binary, zeros)
    criterion = RRobustness("s", Fraction(2), [prior])
    adversary, one = criterion._adversaries[0], batch([group])
    asked = adversary.questions(one)
    bounds = [adversary.worlds(one, g, e).bound() for g, e in zip(asked.group.tolist(), asked.entry.tolist())]
    assert max(bounds, default=1) >= truth(prior, group)
    assert 1 / adversary.bounds(one, asked) == pytest.approx([float(bound) for bound in bounds])


@settings(max_examples=200, deadline=None)
@given(st.lists(members, min_size=1, max_size=40), seeds, st.booleans(), st.booleans())
def test_the_compiled_loop_finds_the_posteriors_of_the_exact_sums(
    group: list[Member], rng: random.Random, binary: bool, zeros: bool
) -> None:
    """Also in groups that are too large to go through all worlds one by one, and in those that have none."""
    one = batch([group])
    adversary = RRobustness("s", Fraction(2), [some_prior(rng, binary, zeros)])._adversaries[0]
    asked = adversary.questions(one)
    for g, e, found in zip(asked.group.tolist(), asked.entry.tolist(), adversary.posteriors(one, asked).tolist()):
        posterior = adversary.worlds(one, g, e).posterior()
        assert found == pytest.approx(float(1 / posterior) if posterior else nan, rel=1e-9, nan_ok=True)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(1, 6), seeds)
def test_both_ways_of_adding_up_worlds_agree_with_enumeration(
    tenths: list[int], copies: int, rng: random.Random
) -> None:
    """Few signatures with many people and few values with many copies take different sides."""
    n = len(tenths)
    copies = min(copies, n)
    f = [Fraction(tenth, 10) for tenth in tenths]
    classes = Counter(f)
    if copies < n:
        rows = [[p, 1 - p] for p in classes]
        worlds = Worlds(list(classes.values()), [copies, n - copies], rows, 1)
        assert worlds.posterior() == oracle.against_all_others(f, copies)
    people = [[Fraction(rng.randint(1, 5)) for _ in range(n)] for _ in range(n)]
    assert Worlds([1] * n, [1] * n, people, n).posterior() == oracle.largest(people, range(n))


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 7), st.integers(1, 99), st.integers(1, 99))
def test_the_bound_is_tight_for_one_likely_person_and_a_binary_prior(n: int, high: int, low: int) -> None:
    f = [Fraction(max(high, low), 100)] + [Fraction(min(high, low), 100)] * (n - 1)
    worlds = Worlds([1, n - 1], [1, n - 1], [[f[0], 1 - f[0]], [f[-1], 1 - f[-1]]], 1)
    assert worlds.bound() == worlds.posterior() == oracle.against_all_others(f, 1)


@pytest.mark.parametrize(
    ("n", "r", "f_max", "printed"),
    [
        (3, 2, "0.1", 0.0474),
        (3, 2, "0.3", 0.1235),
        (3, 2, "0.5", 0.1667),
        (3, 2, "0.9", 0.0818),
        (4, 2, "0.3", 0.1750),
        (6, 2, "0.3", 0.2211),
        (6, 3, "0.3", 0.1537),
        (6, 4, "0.3", 0.0955),
    ],
)
def test_table_v_is_where_the_verdict_turns(n: int, r: int, f_max: str, printed: float) -> None:
    top = Fraction(f_max)
    ceiling = oracle.delta_ceil(n, Fraction(r), top)
    assert round(float(ceiling), 4) == printed
    group = [(0, 0)] + [(1, 1)] * (n - 1)
    for below, safe in ((ceiling, True), (ceiling - TINY, True), (ceiling + TINY, False)):
        prior = full([[top, None], [top - below, None]])
        assert judged(RRobustness("s", Fraction(r), [prior]), [group]).safe == safe


def test_example_2_is_safe() -> None:
    f = [Fraction("0.1"), Fraction("0.08"), Fraction("0.09")]
    assert round(float(oracle.delta_ceil(3, Fraction(2), f[0])), 4) == 0.0474
    group = [(0, 0), (1, 1), (2, 1)]
    verdict = judged(RRobustness("s", Fraction(2), [full([[p, None] for p in f])]), [group])
    assert verdict.safe
    assert verdict.figure == pytest.approx(float(oracle.against_all_others(f, 1)))


@pytest.mark.parametrize(
    ("rows", "r", "posterior"),
    [
        ([".1 .1", ".1 .8"], Fraction(2), Fraction(8, 9)),
        ([".1 .06 .06", ".06 .1 .1", ".06 .1 .1"], Fraction(2), Fraction(25, 43)),
        (["1/10 3/5 3/10", "4/31 24/31 3/31", "9/31 19/31 3/31"], Fraction(3, 2), Fraction(292, 413)),
    ],
)
def test_what_the_paper_s_theorem_would_let_pass_is_not_safe(rows: list[str], r: Fraction, posterior: Fraction) -> None:
    prior = full([[Fraction(p) for p in row.split()] for row in rows])
    verdict = judged(RRobustness("s", r, [prior]), [[(code, code) for code in range(len(rows))]])
    assert not verdict.safe
    assert verdict.figure == pytest.approx(float(posterior))
    assert verdict.findings[0].about.exact


def test_two_safe_groups_may_be_unsafe_together() -> None:
    prior = full([[Fraction("0.1"), None], [Fraction("0.001"), None]])
    criterion = RRobustness("s", Fraction(2), [prior])
    likely, unlikely = [(0, 0), (0, 1), (0, 1)], [(1, 0), (1, 1), (1, 1)]
    assert judged(criterion, [likely, unlikely]).safe
    assert not judged(criterion, [likely + unlikely]).safe
    assert not criterion.monotone


def test_what_no_world_explains_is_not_safe() -> None:
    for p in (Fraction(0), Fraction(1)):
        verdict = judged(RRobustness("s", Fraction(2), [full([[p, None]])]), [[(0, 0), (0, 1), (0, 1)]])
        assert (verdict.safe, verdict.figure, verdict.findings[0].about.exact) == (False, 1.0, False)


def test_a_zero_that_rules_out_too_little_is_settled_by_the_posterior() -> None:
    rows = [[Fraction(p) for p in row] for row in (("0", "1/2", "1/2"), ("1/3",) * 3, ("1/3",) * 3)]
    group = [(0, 1), (1, 0), (2, 2)]
    verdict = judged(RRobustness("s", Fraction(2), [full(rows)]), [group])
    assert (verdict.safe, verdict.figure) == (True, pytest.approx(0.5))


def test_groups_without_a_named_value_must_only_be_large_enough() -> None:
    criterion = RRobustness("s", Fraction("2.5"), [full([[Fraction("0.1"), None]])])
    verdict = judged(criterion, [[(0, 1)] * 3])
    assert (verdict.safe, verdict.figure) == (True, 0.0)
    assert not judged(criterion, [[(0, 1)] * 2]).safe


def test_beyond_the_limit_of_states_the_bound_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    prior = full(
        [[Fraction("0.2"), Fraction("0.3"), Fraction("0.5")], [Fraction("0.4"), Fraction("0.3"), Fraction("0.3")]]
    )
    group = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    posterior = truth(prior, group)
    criterion = RRobustness("s", 1 / posterior, [prior])
    assert judged(criterion, [group]).safe
    monkeypatch.setattr(r_robustness, "LIMIT", 8)
    verdict = judged(criterion, [group])
    assert not verdict.safe
    assert not verdict.findings[0].about.exact
    assert verdict.figure > float(posterior)
    assert criterion.details(verdict, str) == {"exact": False}
    assert judged(RRobustness("s", Fraction("1.1"), [prior]), [group]).safe


def test_large_groups_neither_overflow_nor_vanish() -> None:
    prior = full([[Fraction("0.001"), None], [Fraction("0.002"), None]])
    group = [(0, 0)] + [(0, 1)] * 999 + [(1, 1)] * 1000
    posterior = Fraction(2, 998) / (1000 * Fraction(1, 999) + 1000 * Fraction(2, 998))
    verdict = judged(RRobustness("s", Fraction(1000), [prior]), [group])
    assert verdict.findings[0].about.exact
    assert verdict.figure == pytest.approx(float(posterior), rel=1e-9)
    many = [(0, 0)] * 30 + [(0, 1)] * 30 + [(1, 0)] * 30 + [(1, 1)] * 33
    worlds = Worlds(
        [60, 63], [60, 63], [[Fraction(1, 1000), Fraction(999, 1000)], [Fraction(2, 1000), Fraction(998, 1000)]], 1
    )
    assert judged(RRobustness("s", Fraction(3, 2), [prior]), [many]).figure == pytest.approx(
        float(worlds.posterior() or 0)
    )


@settings(max_examples=80, deadline=None)
@given(releases, seeds, rates)
def test_each_prior_holds_on_its_own_and_the_worst_is_told(
    release: list[list[Member]], rng: random.Random, r: Fraction
) -> None:
    priors = [some_prior(rng, binary) for binary in (False, True, False)]
    verdict = judged(RRobustness("s", r, priors), release, priors=3)
    alone = [judged(RRobustness("s", r, [prior]), release) for prior in priors]
    assert verdict.safe == all(one.safe for one in alone)
    assert [finding.figure for finding in verdict.findings] == [one.figure for one in alone]
    if verdict.safe:
        assert verdict.figure == max(one.figure for one in alone)


def test_a_second_criterion_finds_its_signatures_further_on() -> None:
    prior = full([[Fraction("0.1"), None], [Fraction("0.003"), None]])
    one = batch([[(0, 0), (1, 1)]])
    wrong = Signatures(np.array([0, 1]), np.array([0]), np.array([2]))
    two = Groups(one.n, one.start, one.value, one.count, 0, None, (wrong, one.signatures[0]))
    criterion = RRobustness("s", Fraction(2), [prior], first=1)
    assert criterion.verdict(criterion.state(two)).figure == pytest.approx(0.9736328125)


@settings(max_examples=80, deadline=None)
@given(releases, seeds, rates, st.booleans())
def test_states_do_not_depend_on_batches_or_order(
    release: list[list[Member]], rng: random.Random, r: Fraction, binary: bool
) -> None:
    criterion = RRobustness("s", r, [some_prior(rng, binary, zeros=True)])
    check_batches(criterion, release, lambda part, first: batch(part, first=first), rng)


@settings(max_examples=80, deadline=None)
@given(st.lists(releases, min_size=1, max_size=4), seeds, rates, st.booleans())
def test_minima_of_many_owners_are_those_of_each_and_decide_as_the_verdict(
    candidates: list[list[list[Member]]], rng: random.Random, r: Fraction, binary: bool
) -> None:
    criterion = RRobustness("s", r, [some_prior(rng, binary, zeros=True)])
    owner = np.repeat(np.arange(len(candidates)), [len(release) for release in candidates])
    minima = criterion.minima(batch([group for release in candidates for group in release]), owner, len(candidates))
    for row, release in zip(minima, candidates):
        alone = criterion.minima(batch(release), np.zeros(len(release), np.int64), 1)[0]
        assert np.array_equal(row, alone)
        assert (criterion.judge(row[None, :])[0] == SAFE) == judged(criterion, release).safe
        for group in release:
            if len(group) < ceil(r):
                assert criterion.judge(row[None, :])[0] != SAFE
                assert criterion.least_group == ceil(r)


@settings(max_examples=150, deadline=None)
@given(groups, seeds, st.booleans(), st.booleans())
def test_the_nearest_r_holds_for_all_priors_and_the_next_does_not(
    group: list[Member], rng: random.Random, binary: bool, other: bool
) -> None:
    priors = [some_prior(rng, binary), some_prior(rng, other)]
    criterion, whole = RRobustness("s", Fraction(7), priors), batch([group], priors=2)
    for finding in criterion.verdict(criterion.state(whole)).findings:
        words = [] if finding.safe else criterion.nearest(whole, finding)
        largest = max(Fraction(1, len(group)), *(truth(prior, group) for prior in priors))
        assert len(words) == (not finding.safe and largest < 1)
        for hint in words:
            nearest = Fraction(hint.removeprefix("r = "))
            for r, safe in ((nearest, True), (nearest + Fraction(1, 10**5), False)):
                assert judged(RRobustness("s", r, priors), [group], priors=2).safe == safe
