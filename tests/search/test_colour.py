"""The colour search against the definition of (epsilon, delta)^k-dissimilarity (tests/oracles/proximity.py): every
group that it makes is safe by asking all pairs of its people, and it says so where it finds none."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon.core.memory import Memory
from anon.criteria import distances
from anon.criteria.distances import Distance
from anon.errors import BlockedByValue
from anon.search.assign import dealing, ordering
from anon.search.assign.colour import GREEDY, ROUND_ROBIN
from anon.search.budget import SearchBudget
from tests.helpers.assigning import Grouping, Table, coloured
from tests.oracles import proximity

Measured = Callable[[int, int], Fraction]  # the distance of two codes

TENTHS = ["5311", "4321", "4222", "3421", "2710", "2620", "8101", "3151"]  # Table I of the paper, in tenths
TABLE_I = [[Fraction(int(tenths), 10) for tenths in row] for row in TENTHS]


def kinds(rng: random.Random, values: int) -> Iterator[tuple[Distance, Measured]]:
    """One of each shape of distance, for the engine and for the oracle."""
    numbers = [Fraction(rng.randint(0, 20), 4) for _ in range(values)]
    yield distances.absolute(numbers), lambda a, b: proximity.absolute(numbers[a], numbers[b])
    yield distances.equal(values), proximity.equal
    tuples = [[Fraction(rng.randint(0, 4), 4) for _ in range(3)] for _ in range(values)]
    yield distances.variational(tuples), lambda a, b: proximity.variational(tuples[a], tuples[b])


def assert_safe(table: Table, found: Grouping, measured: Measured, epsilon: Fraction, delta: Fraction, k: int) -> None:
    assert sorted(found.rows.elements()) == sorted(table.rows)
    for group in found.groups:
        values = [row[-1] for row in group]
        assert len(group) >= k
        assert proximity.risk(values, epsilon, measured) <= 1 - delta


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_every_group_satisfies_the_definition(seed: int) -> None:
    rng = random.Random(seed)
    values = rng.randint(2, 8)
    rows = [(rng.randrange(5), rng.randrange(3), rng.randrange(values)) for _ in range(rng.randint(2, 60))]
    table, epsilon = Table(rows, values), Fraction(rng.randint(0, 4), 4)
    delta, k = Fraction(rng.randint(1, 10), 10), rng.randint(1, 5)
    for distance, measured in kinds(rng, values):
        try:
            found = coloured(table, distance, epsilon, delta, k, collapsed=rng.random() < 0.5)
        except BlockedByValue:
            continue
        assert_safe(table, found, measured, epsilon, delta, k)


def test_both_algorithms_find_releases_in_such_tables() -> None:
    ways: dict[str, int] = {ROUND_ROBIN: 0, GREEDY: 0}
    for seed in range(60):
        rng = random.Random(seed)
        values = 8
        table = Table([(rng.randrange(5), rng.randrange(3), rng.randrange(values)) for _ in range(40)], values)
        for distance, measured in kinds(rng, values):
            try:
                found = coloured(table, distance, Fraction(1, 2), Fraction(1, 2), 3)
            except BlockedByValue:
                continue
            assert_safe(table, found, measured, Fraction(1, 2), Fraction(1, 2), 3)
            ways[found.facts["algorithm"]] += 1
    assert min(ways.values()) > 0, ways


def all_partitions(people: Sequence[int]) -> Iterator[list[list[int]]]:
    if not people:
        yield []
        return
    for rest in all_partitions(people[1:]):
        yield [[people[0]], *rest]
        for at, group in enumerate(rest):
            yield [*rest[:at], [people[0], *group], *rest[at + 1 :]]


@settings(max_examples=60, deadline=None)
@given(values=st.lists(st.integers(0, 4), min_size=2, max_size=7), k=st.integers(2, 3))
def test_equal_values_are_refused_only_where_no_grouping_would_do(values: list[int], k: int) -> None:
    """For delta = 1 and distances in a tree the condition is necessary, too."""
    possible = any(
        all(len(group) >= k and proximity.risk(group, Fraction(0), proximity.equal) == 0 for group in groups)
        for groups in all_partitions(values)
    )
    table = Table([(at, value) for at, value in enumerate(values)], 5)
    try:
        coloured(table, distances.equal(5), Fraction(0), Fraction(1), k)
    except BlockedByValue:
        assert not possible
    else:
        assert possible


def test_the_groups_are_the_same_for_any_order_of_rows_however_they_are_kept(tmp_path: Path) -> None:
    rng = random.Random(3)
    rows = [(rng.randrange(9), rng.randrange(40), rng.randrange(30)) for _ in range(3000)]
    tuples = [[Fraction(rng.randint(0, 9), 9) for _ in range(3)] for _ in range(30)]
    for number, distance in enumerate(
        (distances.absolute([Fraction(v) for v in range(30)]), distances.variational(tuples))
    ):
        asked: tuple[Any, ...] = (distance, Fraction(1, 3) if number else Fraction(2), Fraction(3, 5), 4)
        wanted = coloured(Table(rows, 30), *asked).canonical()
        for case, memory in enumerate((2**32, 1)):
            spill = tmp_path / f"{number}-{case}"
            spill.mkdir()
            rng.shuffle(rows)
            budget = SearchBudget(Memory(memory), threads=1 + case, spill=spill)
            assert coloured(Table(rows, 30), *asked, bool(case), budget).canonical() == wanted


def test_tables_that_are_larger_than_a_block_are_dealt_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where numbers go with a quasi-identifier, chunks of near people would be too much alike."""
    monkeypatch.setattr(dealing, "BLOCK", 64)
    monkeypatch.setattr(ordering, "BATCH", 50)
    for skewed in (False, True):
        rng = random.Random(4)
        table = Table([(at, at // 20 if skewed else rng.randrange(20)) for at in range(400)], 20)
        asked = Fraction(1), Fraction(3, 4), 4
        found = coloured(table, distances.absolute([Fraction(v) for v in range(20)]), *asked)
        assert_safe(table, found, lambda a, b: Fraction(abs(a - b)), *asked)


def test_many_people_with_the_same_quasi_identifiers() -> None:
    rng = random.Random(6)
    tuples = [[Fraction(rng.randint(0, 9), 9) for _ in range(3)] for _ in range(12)]
    table = Table([(0, rng.randrange(12)) for _ in range(5000)], 12)
    asked = Fraction(1, 3), Fraction(1, 2), 4
    found = coloured(table, distances.variational(tuples), *asked, collapsed=True)
    assert_safe(table, found, lambda a, b: proximity.variational(tuples[a], tuples[b]), *asked)


def test_the_papers_table_i_can_be_grouped_as_it_is_not_there() -> None:
    """Groups 1 and 2 of Table I have risks 3/4 and 0 for epsilon = 0.1. Other groups of at least three of the same
    people come to 1/2, and none is as near as the first four people are."""

    def measured(a: int, b: int) -> Fraction:
        return proximity.variational(TABLE_I[a], TABLE_I[b])

    epsilon = Fraction("0.1")
    printed = [proximity.risk(group, epsilon, measured) for group in (range(5), range(5, 8))]
    assert printed == [Fraction(3, 4), 0]
    table = Table([(at, at) for at in range(8)], 8)
    found = coloured(table, distances.variational(TABLE_I), epsilon, Fraction(1, 2), 3)
    assert_safe(table, found, measured, epsilon, Fraction(1, 2), 3)
    assert len(found.groups) == 2


def test_a_neighbourhood_that_is_too_large_is_refused_with_the_largest_delta_that_was_reached() -> None:
    numbers = [Fraction(v) for v in range(10)]
    table = Table([(at, at % 3 if at < 60 else at % 10) for at in range(100)], 10)
    line, epsilon, reached = distances.absolute(numbers), Fraction(1), Fraction("0.3")
    with pytest.raises(
        BlockedByValue, match=r"round-robin: 72 of 100 individuals \(0.72 of them\).*reached is 0\.3"
    ) as told:
        coloured(table, line, epsilon, Fraction(1, 2), 5)
    assert told.value.code == 1
    found = coloured(table, line, epsilon, reached, 5)
    assert_safe(table, found, lambda a, b: Fraction(abs(a - b)), epsilon, reached, 5)
    with pytest.raises(BlockedByValue):
        coloured(table, line, epsilon, reached + Fraction(1, 1000), 5)


def test_people_with_near_quasi_identifiers_are_grouped() -> None:
    rng = random.Random(7)
    table = Table([(rng.randrange(1000), rng.randrange(20)) for _ in range(2000)], 20)
    found = coloured(table, distances.absolute([Fraction(v) for v in range(20)]), Fraction(1), Fraction(1, 2), 3)
    spans = [max(row[0] for row in group) - min(row[0] for row in group) for group in found.groups]
    assert sum(spans) / len(spans) < 20


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_a_table_is_refused_only_if_it_is_unsafe_as_one_group(seed: int) -> None:
    """And the largest delta that the refusal names is reached."""
    rng = random.Random(seed)
    values, people = rng.randint(1, 5), rng.choice([2, 5, 12, 40])
    frequent = rng.random()
    rows = [(at, 0 if rng.random() < frequent else rng.randrange(values)) for at in range(people)]
    table, epsilon = Table(rows, values), Fraction(rng.randint(0, 4), 4)
    delta, k = Fraction(rng.choice(["0.001", "0.05", "0.3", "0.5", "0.9", "1"])), rng.randint(1, 5)
    for distance, measured in kinds(rng, values):
        try:
            found = coloured(table, distance, epsilon, delta, k)
        except BlockedByValue as error:
            risk = proximity.risk([row[-1] for row in rows], epsilon, measured)
            assert risk > 1 - delta or people < k
            reached = re.search("largest delta that was reached is ([0-9.]+) ", str(error))
            assert reached is not None
            if Fraction(reached[1]) > 0:
                coloured(table, distance, epsilon, Fraction(reached[1]), k)
            continue
        assert_safe(table, found, measured, epsilon, delta, k)


def test_a_value_that_nearly_everybody_has_takes_large_groups() -> None:
    """Groups of up to 260 can have a share of 259/260 at most."""
    table = Table([(at, int(at % 500 == 0)) for at in range(4000)], 2)
    asked = Fraction(0), Fraction(1, 1000), 5
    found = coloured(table, distances.equal(2), *asked)
    assert_safe(table, found, proximity.equal, *asked)
    assert len(found.groups) > 1
