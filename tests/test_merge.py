"""The merge search against all possible worlds (tests/oracles/robustness.py): whatever it ends in, nobody has a value
with a posterior above 1/r, for any prior; and it says so where it finds nothing."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon.criteria.priors import Prior, estimate
from anon.errors import Blocked, UnsafeError
from anon.memory import Memory
from anon.search import dealing, ordering
from anon.search.means import Means
from anon.search.residue import most_groups
from tests.helpers_assigning import Grouping, Row, Table, merged, prior
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


def largest_posterior(group: list[Row], known: Prior) -> Fraction:
    """Over all people and values of a group, by all possible worlds."""
    row_of = dict(zip(known.signatures, known.p))
    places = [int(name[1:]) for name in known.attributes]
    people = [row_of[tuple(str(row[at]) for at in places)] for row in group]
    values = [row[-1] for row in group]
    if not known.binary:
        return robustness.largest([[p or Fraction(0) for p in person] for person in people], values)
    asked = [value for value in set(values) if value in known.named]
    against = [[person[value] or Fraction(0) for person in people] for value in asked]
    return max((robustness.against_all_others(f, values.count(v)) for v, f in zip(asked, against)), default=Fraction(0))


def assert_safe(table: Table, found: Grouping, r: Fraction, priors: list[Prior]) -> None:
    assert sorted(found.rows.elements()) == sorted(table.rows)
    for group in found.groups:
        values = [row[-1] for row in group]
        assert len(group) >= r
        assert len(set(values)) == len(values), "at most one occurrence of a value"
        assert all(largest_posterior(group, known) <= 1 / r for known in priors)


@settings(max_examples=150, deadline=None)
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
    """Releases, of which some have pooled groups, some people who joined groups, some groups that were merged."""
    ways = dict.fromkeys(("released", "pooled_groups", "left_by_pools", "merged_groups"), 0)
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
    assert min(ways.values()) > 0, ways


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
        means = Means(Memory(memory), threads=1 + case, spill=spill)
        assert merged(Table(rows, 12), Fraction(3), [known], bool(case), means).canonical() == wanted


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
    with pytest.raises(Blocked, match=r"7 of 20 individuals \(0.35 of them\) have a value.*largest r .* is 2") as error:
        merged(table, Fraction(3), [known])
    assert error.value.code == 0
    assert_safe(table, merged(table, Fraction(2), [known]), Fraction(2), [known])


def test_people_who_cannot_be_placed_are_counted() -> None:
    """Of the three women two have the first disease, and men have it a hundred times less often."""
    rows = [(0, 0), (0, 0), (0, 1), *[(1, at) for at in (0, 1, 2, 3) for _ in range(2)]]
    table = Table(rows, 4)
    p = [["0.5", "0.3", "0.1", "0.1"], ["0.005", "0.395", "0.3", "0.3"]]
    known = prior(table, [0], [[Fraction(each) for each in row] for row in p])
    with pytest.raises(Blocked, match=r"1 of 11 individuals .* Of 3 people with one prior, 2 have a value"):
        merged(table, Fraction(2), [known])


def test_who_has_a_value_that_a_prior_rules_out_cannot_be_protected() -> None:
    table = Table([(0, 0), (0, 1), (1, 0), (1, 1)], 2)
    known = prior(table, [0], [[Fraction(1), Fraction(0)], [HALF, HALF]])
    with pytest.raises(UnsafeError, match="1 individuals have a value that a prior says nobody"):
        merged(table, Fraction(2), [known])


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


@given(counts=st.lists(st.integers(0, 9), min_size=1, max_size=6), size=st.integers(1, 4))
def test_the_most_groups_that_can_be_made_without_a_value_twice(counts: list[int], size: int) -> None:
    feasible = [g for g in range(sum(counts) + 1) if sum(min(c, g) for c in counts) >= size * g]
    assert most_groups(np.array([counts]), size).tolist() == [max(feasible)]
