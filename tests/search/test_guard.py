"""The guarded search: the same groups and counts as by its definition, and on tiny tables, over all worlds and coins,
no posterior beyond the stated bound."""

from __future__ import annotations

import hmac
from fractions import Fraction
from functools import cache
from math import ceil
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon.criteria import Criterion, KAnonymity
from anon.criteria.alpha_k import AlphaK
from anon.search.partition import search as engine
from anon.search.partition.guard import MOST, UNBOUNDED, Guard
from tests.helpers.cubes import Table
from tests.oracles import guard as oracle
from tests.oracles.partition import Free, Hierarchy
from tests.search.test_partition import budget, leaves, tables

SKIPS = [Fraction(1, 10), Fraction(1, 4), Fraction(1, 2)]
KEY = b"k" * 32
TinyTable = tuple[list[Any], list[tuple[int, ...]], list[str]]


def alpha(bound: Fraction, factor: Fraction) -> Fraction:
    """The share whose odds are those of the bound divided by the factor."""
    return bound / (bound + (1 - bound) * factor)


def level(bound: Fraction, skip: Fraction) -> oracle.Level:
    @cache
    def enough(most: int, people: int, s: int) -> bool:
        return Fraction(most, people) <= alpha(bound, skip**-s)

    return lambda values, s: enough(max(map(values.count, values)), len(values), s)


def coin(skip: Fraction) -> oracle.Coin:
    def heads(cell: tuple[tuple[int, int], ...], column: int) -> bool:
        words = [low for low, _ in cell] + [high for _, high in cell] + [column]
        text = b"".join(word.to_bytes(4, "little") for word in words)
        return Fraction(int.from_bytes(hmac.digest(KEY, text, "sha256")[:8], "big"), 2**64) < skip

    return heads


def criteria(k: int, bound: Fraction) -> list[Criterion]:
    return [KAnonymity(k), AlphaK("s", bound, 1)]


@settings(max_examples=400, deadline=None)
@given(
    tables(), st.integers(1, 3), st.sampled_from([Fraction(1, 2), Fraction(2, 3), Fraction(9, 10), Fraction(1)]),
    st.sampled_from(SKIPS), st.sampled_from([None, 1, 6, 15]), st.booleans(), st.sampled_from([10**6, 6, 1]),
    st.booleans(),
)  # fmt: skip
def test_the_search_is_that_of_its_definition(
    table: Table,
    k: int,
    bound: Fraction,
    skip: Fraction,
    below: int | None,
    enforce: bool,
    block: int,
    collapsed: bool,
) -> None:
    values = [value for _, value in table.rows]
    if len(values) < k or not level(bound, skip)(values, 0):
        return
    below = None if enforce else below
    defined = oracle.Guarded(
        [codes for codes, _ in table.rows],
        table.columns,
        level(bound, skip),
        skip,
        max(k, ceil(1 / bound)),
        below,
        enforce,
        coin(skip),
    )
    ((chance, tree),) = defined.trees(values)
    assert chance == 1
    cube = table.cube(collapsed)
    tight = [[(c, cube.reading(c)) for c in criteria(k, alpha(bound, skip**-s))] for s in range(1, MOST + 1)]
    guard = Guard(KEY, skip, below, tight if enforce else [])
    limits = budget(table, block)
    found = engine.PartitionSearch(cube, criteria(k, bound), "public", limits, guard=guard).run()
    assert found.passed is not None
    members = [frozenset(own) for _, own in leaves(table, found.recoding)]
    assert sorted(map(sorted, members)) == sorted(sorted(group.members) for group in tree.groups())
    group = found.recoding.assign(np.array([codes for codes, _ in table.rows], np.uint16).T.copy())
    for each in tree.groups():
        (number,) = {int(group[who]) for who in each.members}
        wished = each.counted()
        assert int(found.passed[number]) == (UNBOUNDED if wished is None else wished)


@st.composite
def tiny(draw: st.DrawFn) -> TinyTable:
    """At most six people: random ones, and ones with equal counts or neighbours that agree."""
    free, tree = Free([0, 1, 2]), Hierarchy(((0, 1), 2))
    shapes = [[Free([0, 1, 2, 3])], [free, Free([0, 1])], [Hierarchy(((0, 1), 2, (3, 4)))], [free, tree]]
    columns = draw(st.sampled_from(shapes))
    people = draw(st.integers(2, 6))
    codes = [tuple(draw(st.integers(0, column.whole()[1])) for column in columns) for _ in range(people)]
    shaped = draw(st.sampled_from(["random", "halves", "one apart", "all apart"]))
    values = {
        "halves": ["a"] * (people // 2) + ["b"] * (people - people // 2),
        "one apart": ["a"] + ["b"] * (people - 1),
        "all apart": list("abcdef"[:people]),
    }.get(shaped) or [draw(st.sampled_from("abc")) for _ in range(people)]
    return list(columns), codes, values


few, thousands = settings(max_examples=300, deadline=None), settings(max_examples=5_000, deadline=None)
tiny_tables = given(
    tiny(),
    st.sampled_from([Fraction(1, 2), Fraction(2, 3), Fraction(3, 4), Fraction(9, 10)]),
    st.sampled_from(SKIPS),
    st.integers(1, 2),
)


def hold_against_the_bound(table: TinyTable, bound: Fraction, skip: Fraction, least: int) -> None:
    """Odds of at most p^-s times those of the share."""
    columns, codes, values = table
    if not level(bound, skip)(values, 0):
        return
    search = oracle.Guarded(codes, columns, level(bound, skip), skip, least)
    for group, _, _, share, belief in oracle.posteriors(search, values, oracle.shape):
        counted = group.counted()
        assert counted is not None
        assert belief <= alpha(share, skip**counted)


def hold_against_the_promise(table: TinyTable, bound: Fraction, skip: Fraction, least: int) -> None:
    columns, codes, values = table
    if not level(bound, skip)(values, 0):
        return
    search = oracle.Guarded(codes, columns, level(bound, skip), skip, least, enforce=True)
    for what in (oracle.shape, oracle.groups):
        for *_, belief in oracle.posteriors(search, values, what):
            assert belief <= bound


@few
@tiny_tables
def test_no_posterior_exceeds_the_bound(table: TinyTable, bound: Fraction, skip: Fraction, least: int) -> None:
    hold_against_the_bound(table, bound, skip, least)


@few
@tiny_tables
def test_an_enforced_guard_keeps_the_promised_confidence(
    table: TinyTable, bound: Fraction, skip: Fraction, least: int
) -> None:
    hold_against_the_promise(table, bound, skip, least)


@pytest.mark.long
@thousands
@tiny_tables
def test_both_hold_in_thousands_of_tables(table: TinyTable, bound: Fraction, skip: Fraction, least: int) -> None:
    hold_against_the_bound(table, bound, skip, least)
    hold_against_the_promise(table, bound, skip, least)


def test_a_cut_that_was_not_made_reveals_values_and_coins_hide_them() -> None:
    """One group of a, a, a, b, b: cut into the first three and the others it would be safe unless these agree."""
    codes = [(0,), (0,), (0,), (1,), (1,)]
    largest = {}
    for skip in (Fraction(0), *SKIPS):
        search = oracle.Guarded(codes, [Free([0, 1])], level(Fraction(3, 4), skip or Fraction(1)), skip)
        together = [["a", "b", "a", "a", "b"], ["b", "b", "a", "a", "a"]]
        beliefs = [found for world in together for found in oracle.posteriors(search, world, oracle.groups)]
        ratios = [
            belief / (1 - belief) / (share / (1 - share)) for *_, share, belief in beliefs if 0 < belief < 1 > share
        ]
        largest[skip] = max(ratios)
    assert largest[Fraction(0)] > largest[Fraction(1, 10)] > largest[Fraction(1, 4)] > largest[Fraction(1, 2)] > 1
