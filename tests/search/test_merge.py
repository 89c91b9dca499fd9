"""The merge search against all possible worlds (tests/oracles/robustness.py): whatever it ends in, nobody has a value
with a posterior above 1/r, for any prior; and it says so where it finds nothing."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from math import ceil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon.core.memory import Memory
from anon.criteria import Criterion, Groups, RRobustness, Signatures
from anon.criteria.ck_safety import CKSafety
from anon.criteria.distances import equal
from anon.criteria.group_size import GroupSize
from anon.criteria.l_diversity import l_diversity
from anon.criteria.priors import Prior, estimate
from anon.criteria.t_closeness import TCloseness
from anon.errors import BlockedByValue, UnsafeError
from anon.search.assign import dealing, ordering
from anon.search.assign.seeds import most_groups, sizes
from anon.search.budget import SearchBudget
from tests.helpers.assigning import Grouping, Row, Table, merged, prior
from tests.oracles import robustness

HALF = Fraction(1, 2)


def random_table(rng: random.Random) -> Table:
    values, sizes = rng.randint(2, 6), [rng.randint(1, 4), rng.randint(1, 5)]
    rows = [(*map(rng.randrange, sizes), rng.randrange(values)) for _ in range(rng.randint(4, 30))]
    return Table(rows, values)


def random_prior(rng: random.Random, table: Table) -> Prior:
    """Estimated with smoothing; of similar rows; or binary."""
    attributes = rng.choice([(0,), (1,), (0, 1)])
    signatures = sorted({tuple(row[at] for at in attributes) for row in table.rows})
    kind = rng.choice(["estimated", "similar", "binary"])
    if kind == "estimated":
        counts = np.zeros((len(signatures), table.values), np.int64)
        for row in table.rows:
            counts[signatures.index(tuple(row[at] for at in attributes)), row[-1]] += 1
        return prior(table, attributes, estimate(counts, Fraction(rng.choice([1, 2, 5, 20]))))
    if kind == "similar":
        usual = [rng.randint(2, 9) for _ in range(table.values)]
        weights = [[max(weight + rng.randint(-1, 1), 1) for weight in usual] for _ in signatures]
        return prior(table, attributes, [[Fraction(w, sum(row)) for w in row] for row in weights])
    named = rng.sample(range(table.values), rng.randint(1, table.values - 1))
    return prior(
        table,
        attributes,
        [[Fraction(rng.randint(20, 25), 100) if v in named else None for v in range(table.values)] for _ in signatures],
    )


def questions(group: list[Row], known: Prior) -> list[tuple[list[list[Fraction]], list[int]]]:
    """What an adversary asks of a group: people and the values they share; of a binary prior once for each value."""
    row_of = dict(zip(known.signatures, known.p))
    places = [int(name[1:]) for name in known.attributes]
    people = [row_of[tuple(str(row[at]) for at in places)] for row in group]
    values = [row[-1] for row in group]
    if not known.binary:
        return [([[p or Fraction(0) for p in person] for person in people], values)]
    asked = [value for value in set(values) if value in known.named]
    return [
        ([[1 - (f := person[value] or Fraction(0)), f] for person in people], [int(v == value) for v in values])
        for value in asked
    ]


def largest_posterior(group: list[Row], known: Prior) -> Fraction:
    """Over all people and values of a group, by all possible worlds."""
    found = (robustness.posteriors(people, values) for people, values in questions(group, known))
    asked = (
        Fraction(1) if each is None else max(p for (_, x), p in each.items() if x or not known.binary) for each in found
    )
    return max(asked, default=Fraction(0))


def safe(group: list[Row], known: Prior, r: Fraction) -> bool:
    """By all possible worlds; in a large group by the bound, or by worlds that are added up."""
    if len(group) <= 7:
        return largest_posterior(group, known) <= 1 / r
    return all(
        robustness.bound(people, values) <= 1 / r or robustness.counted(people, values, known.binary) <= 1 / r
        for people, values in questions(group, known)
    )


def assert_safe(table: Table, found: Grouping, r: Fraction, priors: list[Prior]) -> None:
    assert sorted(found.rows.elements()) == sorted(table.rows)
    for group in found.groups:
        assert len(group) >= r
        assert all(safe(group, known, r) for known in priors)


def whole_table(table: Table, priors: list[Prior]) -> Groups:
    """The table as one group, for the criterion that `check` asks."""
    signatures = []
    for known in priors:
        places = [int(name[1:]) for name in known.attributes]
        people = Counter([*known.signatures].index(tuple(str(row[at]) for at in places)) for row in table.rows)
        code, count = (np.array(each) for each in zip(*sorted(people.items())))
        signatures.append(Signatures(np.array([0, len(code)]), code, count))
    counts = np.bincount([row[-1] for row in table.rows], minlength=table.values)
    return replace(Groups.dense(counts[None, :]), signatures=tuple(signatures))


def holds(criterion: Criterion, groups: Groups) -> bool:
    return criterion.holds(criterion.state(groups))


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_no_possible_worlds_give_a_posterior_above_one_over_r(seed: int) -> None:
    rng = random.Random(seed)
    table = random_table(rng)
    priors = [random_prior(rng, table) for _ in range(rng.randint(1, 2))]
    r = Fraction(rng.choice(["1.5", "2", "2.5", "3"]))
    try:
        found = merged(table, r, priors, collapsed=rng.random() < 0.5)
    except UnsafeError:
        return
    assert_safe(table, found, r, priors)


def test_all_ways_to_a_release_are_taken_in_such_tables() -> None:
    """Releases, of which some have pooled groups, some people who joined groups, some groups that were merged, to place
    somebody or because they failed."""
    ways = dict.fromkeys(("released", "pooled_groups", "left_by_pools", "merged_groups", "groups_before_mending"), 0)
    for seed in range(250):
        rng = random.Random(seed)
        table = random_table(rng)
        known = [random_prior(rng, table) for _ in range(rng.randint(1, 2))]
        try:
            found = merged(table, Fraction(2), known)
        except UnsafeError:
            continue
        assert_safe(table, found, Fraction(2), known)
        for way in ways:
            ways[way] += way == "released" or bool(found.facts.get(way, 0))
        if min(ways.values()) > 2:
            return
    raise AssertionError(ways)


def test_the_groups_are_the_same_for_any_order_of_rows_however_they_are_kept(tmp_path: Path) -> None:
    rng = random.Random(5)
    rows = [(rng.randrange(2), rng.randrange(9), rng.randrange(40), rng.randrange(12)) for _ in range(3000)]
    table = Table(rows, 12)
    known = prior(table, [0], [[Fraction(1, 12)] * 12, [Fraction(1, 24)] * 6 + [Fraction(1, 8)] * 6])
    wanted = merged(table, Fraction(3), [known]).canonical()
    for case, memory in enumerate((2**32, 1)):
        spill = tmp_path / str(case)
        spill.mkdir()
        rng.shuffle(rows)
        budget = SearchBudget(Memory(memory), threads=1 + case, spill=spill)
        assert merged(Table(rows, 12), Fraction(3), [known], bool(case), budget).canonical() == wanted


@pytest.mark.parametrize("skewed", [False, True])
def test_classes_that_are_larger_than_a_block_are_dealt_in_chunks(
    monkeypatch: pytest.MonkeyPatch, skewed: bool
) -> None:
    """Where a value goes with a quasi-identifier, chunks of near people would have it too often."""
    monkeypatch.setattr(dealing, "BLOCK", 64)
    monkeypatch.setattr(ordering, "BATCH", 50)
    rng = random.Random(1)
    rows = [(at, rng.randrange(3), at // 50 if skewed else rng.randrange(8)) for at in range(400)]
    table = Table(rows, 8)
    known = prior(table, [1], [[Fraction(1, 8)] * 8] * 3)
    found = merged(table, Fraction(3), [known])
    assert_safe(table, found, Fraction(3), [known])


def test_people_with_near_quasi_identifiers_are_grouped() -> None:
    rng = random.Random(2)
    table = Table([(rng.randrange(1000), rng.randrange(5)) for _ in range(2000)], 5)
    found = merged(table, Fraction(2), [prior(table, [0], [[Fraction(1, 5)] * 5] * len({r[0] for r in table.rows}))])
    spans = [max(row[0] for row in group) - min(row[0] for row in group) for group in found.groups]
    assert sum(spans) / len(spans) < 20


def test_a_value_that_is_too_frequent_is_refused_with_its_share_and_the_largest_r() -> None:
    table = Table([(at, 0 if at < 7 else at) for at in range(20)], 20)
    known = prior(table, [0], [[Fraction(1, 20)] * 20] * 20)
    with pytest.raises(
        BlockedByValue, match=r"7 of 20 individuals \(0.35 of them\) have a value.* r is 2.85714 at most"
    ) as error:
        merged(table, Fraction(3), [known])
    assert error.value.code == 0
    assert_safe(table, merged(table, Fraction("2.85714"), [known]), Fraction("2.85714"), [known])


def test_people_who_cannot_be_placed_are_counted() -> None:
    """Of the three women two have the first disease, and men have it a hundred times less often."""
    rows = [(0, 0), (0, 0), (0, 1), *[(1, at) for at in (0, 1, 2, 3) for _ in range(2)]]
    table = Table(rows, 4)
    p = [["0.5", "0.3", "0.1", "0.1"], ["0.005", "0.395", "0.3", "0.3"]]
    known = prior(table, [0], [[Fraction(each) for each in row] for row in p])
    with pytest.raises(BlockedByValue, match=r"1 of 11 individuals .* Of 3 people with one prior, 2 have a value"):
        merged(table, Fraction(2), [known])


def test_who_has_a_value_that_a_prior_rules_out_cannot_be_protected() -> None:
    table = Table([(0, 0), (0, 1), (1, 0), (1, 1)], 2)
    known = prior(table, [0], [[Fraction(1), Fraction(0)], [HALF, HALF]])
    with pytest.raises(UnsafeError, match=r"; 1 individuals have a value that a prior says nobody .* fail r_rob"):
        merged(table, Fraction(2), [known])


def test_a_value_that_a_prior_rules_out_hides_among_others_if_that_is_safe() -> None:
    """Nobody like the first has the first value, says the prior; in one group of five it may be anybody else's."""
    table = Table([(0, 0), *[(1, value) for value in (0, 1, 2, 3)]], 4)
    known = prior(table, [0], [[Fraction(0), *[Fraction(1, 3)] * 3], [Fraction(1, 4)] * 4])
    found = merged(table, Fraction(2), [known])
    assert len(found.groups) == 1
    assert_safe(table, found, Fraction(2), [known])


def test_alan_and_betty_of_the_papers_table_iii_are_not_grouped() -> None:
    """Tables I to IV: sex and age, four diseases, and the prior of lung cancer by sex. Alan, the only man, has it; a
    woman has it with .003. No group of the four is safe for r = 2, whereas the paper's L_2, two women, is."""
    diseases = ["lung cancer", "hypertension", "flu", "HIV"]
    people = [("male", 41), ("female", 42), ("female", 63), ("female", 64)]
    rows = [(("female", "male").index(sex), age - 41, at) for at, (sex, age) in enumerate(people)]
    table = Table(rows, len(diseases))
    by_sex = [[Fraction("0.003"), None, None, None], [Fraction("0.1"), None, None, None]]
    known = prior(table, [0], by_sex)
    first, second = rows[:2], rows[2:]
    assert largest_posterior(first, known) > Fraction("0.97")
    assert largest_posterior(second, known) == 0
    with pytest.raises(UnsafeError, match="1 of 4 individuals could not be placed"):
        merged(table, Fraction(2), [known])
    men = [(1, 9, 1), (1, 10, 2)]  # two men with other diseases, and Alan has whom to hide among
    more = Table([*rows, *men], len(diseases))
    found = merged(more, Fraction(2), [prior(more, [0], by_sex)])
    assert_safe(more, found, Fraction(2), [prior(more, [0], by_sex)])
    assert next(len(group) for group in found.groups if rows[0] in group) >= 2


@given(
    counts=st.lists(st.integers(0, 9), min_size=1, max_size=6),
    size=st.integers(1, 4),
    copies=st.integers(1, 3),
    limited=st.lists(st.booleans(), min_size=6, max_size=6),
)
def test_the_most_groups_that_can_be_made_with_so_many_copies_of_a_value(
    counts: list[int], size: int, copies: int, limited: list[bool]
) -> None:
    def people(groups: int) -> int:
        return sum(min(c, copies * groups) if limit else c for c, limit in zip(counts, limited))

    feasible = [g for g in range(sum(counts) + 1) if people(g) >= size * g]
    mask = np.array(limited[: len(counts)])
    assert most_groups(np.array([counts]), size, copies, mask).tolist() == [max(feasible)]


@given(least=st.integers(1, 12), r=st.fractions(1, 6, max_denominator=9).filter(lambda r: r > 1))
def test_sizes_that_are_tried_allow_for_ever_more_frequent_values(least: int, r: Fraction) -> None:
    tried = list(sizes(least, r))
    assert tried[0] == (max(least, ceil(r)), 1)
    assert all(Fraction(copies, size) <= 1 / r for size, copies in tried)
    largest = [max(copies for size, copies in tried if size == each) for each in sorted({size for size, _ in tried})]
    shares = [Fraction(copies, size) for copies, size in zip(largest, sorted({size for size, _ in tried}))]
    assert shares == sorted(set(shares))
    if len(shares) < 8:
        assert shares[-1] == 1 / r


def structured_table(rng: random.Random) -> Table:
    """Balanced values, ties, one class or classes of one person, exactly r or one more of everything."""
    values, classes, times = rng.randint(1, 4), rng.randint(1, 3), rng.randint(1, 3)
    rows = [(own, 0, value) for own in range(classes) for value in range(values) for _ in range(times)]
    extra = [(rng.randrange(classes), 1, rng.randrange(values)) for _ in range(rng.randint(0, 2))]
    return Table(rows + extra, values)


def others(rng: random.Random) -> list[Criterion]:
    return rng.choice(
        [
            [],
            [GroupSize(rng.randint(2, 9))],
            [l_diversity("s", "distinct", Fraction(rng.randint(2, 3)))],
            [l_diversity("s", "frequency", Fraction(rng.choice(["1.5", "2", "3"])))],
            [CKSafety("s", Fraction(9, 10), 1)],
        ]
    )


@settings(max_examples=120, deadline=None)
@given(seed=st.integers(0, 10**9), structured=st.booleans())
def test_a_table_is_refused_only_if_it_is_unsafe_as_one_group(seed: int, structured: bool) -> None:
    rng = random.Random(seed)
    table = structured_table(rng) if structured else random_table(rng)
    priors = [random_prior(rng, table) for _ in range(rng.randint(1, 2))] if table.values > 1 else []
    if not priors:
        priors = [prior(table, [0], [[Fraction(1)]] * len({row[0] for row in table.rows}))]
    r, also = Fraction(rng.choice(["1.1", "1.5", "2", "2.5", "3"])), others(rng)
    whole = whole_table(table, priors)
    try:
        found = merged(table, r, priors, others=also)
    except UnsafeError:
        assert not all(holds(criterion, whole) for criterion in (RRobustness("s", r, priors), *also))
        return
    assert_safe(table, found, r, priors)
    counts = np.array([np.bincount([row[-1] for row in group], minlength=table.values) for group in found.groups])
    assert all(holds(criterion, Groups.dense(counts)) for criterion in also)


def test_larger_groups_than_there_are_values_have_copies_of_them() -> None:
    """Two values, half of everybody has each: r = 2 is met by groups of any even size, which was refused with a message
    that 2 is the largest r."""
    table = Table([(at, at % 2) for at in range(40)], 2)
    known = prior(table, [0], [[HALF, HALF]] * 40)
    found = merged(table, Fraction(2), [known], others=[GroupSize(3)])
    assert_safe(table, found, Fraction(2), [known])
    assert len(found.groups) == 10  # of four


def test_a_value_that_no_prior_asks_for_may_be_as_frequent_as_it_is() -> None:
    table = Table([(at % 4, int(at % 10 == 0)) for at in range(200)], 2)
    known = prior(table, [0], [[None, Fraction(at + 1, 20)] for at in range(4)])
    found = merged(table, Fraction(3), [known])
    assert_safe(table, found, Fraction(3), [known])
    assert len(found.groups) > 50


def test_groups_that_fail_another_criterion_are_merged_until_they_do_not() -> None:
    rng = random.Random(8)
    table = Table([(at, rng.randrange(4)) for at in range(120)], 4)
    known = prior(table, [0], [[Fraction(1, 4)] * 4] * 120)
    counts = np.bincount([row[-1] for row in table.rows]).tolist()
    close = TCloseness("s", Fraction("0.15"), equal(4), counts)
    apart, together = merged(table, Fraction(2), [known]), merged(table, Fraction(2), [known], others=[close])
    histograms = np.array([np.bincount([row[-1] for row in group], minlength=4) for group in together.groups])
    assert holds(close, Groups.dense(histograms))
    assert len(apart.groups) > together.facts["groups_before_mending"] > len(together.groups) > 4


def test_an_r_that_is_reached_without_merging_is_reached() -> None:
    seen = 0
    for seed in range(300):
        rng = random.Random(seed)
        table = random_table(rng)
        known = [random_prior(rng, table)]
        try:
            merged(table, Fraction(4), known)
        except UnsafeError as error:
            if hint := re.search("r = ([0-9]+) can be reached", str(error)):
                seen += 1
                assert_safe(table, merged(table, Fraction(hint[1]), known), Fraction(hint[1]), known)
        if seen == 5:
            return
    raise AssertionError("no such hint was given")
