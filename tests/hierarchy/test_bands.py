"""Hierarchies: the bands of the `bands` builder, and the decades and centuries of a calendar."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon.hierarchy import HierarchyTree
from tests.helpers.hierarchy import Bands, Calendar, check_tree, labels, tree_of

AGES = [0, 18, 30, 45, 65, 80]


def test_the_bands_of_the_contract_at_their_edges() -> None:
    assert labels(Bands([AGES]), -1, 0, 17, 18, 29, 30, 44, 45, 64, 65, 79, 80, 121) == [
        (label, "*")
        for label in [
            *("<=-1", "0-17", "0-17", "18-29", "18-29", "30-44", "30-44"),
            *("45-64", "45-64", "65-79", "65-79", ">=80", ">=80"),
        ]
    ]


def test_coarser_levels_merge_bands() -> None:
    builder = Bands([AGES, [0, 18, 65], [18]])
    assert labels(builder, -5, 17, 18, 64, 65, 80) == [
        ("<=-1", "<=-1", "<=17", "*"),
        ("0-17", "0-17", "<=17", "*"),
        ("18-29", "18-64", ">=18", "*"),
        ("45-64", "18-64", ">=18", "*"),
        ("65-79", ">=65", ">=18", "*"),
        (">=80", ">=65", ">=18", "*"),
    ]


@pytest.mark.parametrize(
    ("bounds", "value", "expected"),
    [
        ([18], 17, "<=17"),
        ([18], 18, ">=18"),
        ([0, 1, 5], 0, "0"),
        ([-10, -5, 5], -6, "-10..-6"),
        ([-10, -5, 5], 4, "-5..4"),
        ([-10, -5, 5], -11, "<=-11"),
        ([Decimal("18.5"), 25], 24.9, "[18.5,25)"),
        ([Decimal("18.5"), 25], 18.4, "<18.5"),
        ([Decimal("18.5"), 25], 18, "<18.5"),
        ([18, 25], 24.5, "[18,25)"),
        ([18, 25], 17.5, "<18"),
        ([18, 25], 25.0, ">=25"),
        ([Decimal("0.1"), Decimal("0.3")], 0.3, ">=0.3"),
        ([Decimal("0.1"), Decimal("0.3")], Decimal("0.299"), "[0.1,0.3)"),
        ([0], float("inf"), ">=0"),
        ([0], float("-inf"), "<0"),
        ([0], 10**400, ">=0"),
    ],
)
def test_the_label_of_a_band(bounds: list[Any], value: Any, expected: str) -> None:
    assert labels(Bands([bounds]), value) == [(expected, "*")]


@st.composite
def nested_bands(draw: st.DrawFn) -> list[list[int]]:
    levels = [sorted(draw(st.sets(st.integers(-20, 20), min_size=1, max_size=8)))]
    while len(levels[-1]) > 1 and draw(st.booleans()):
        levels.append(sorted(draw(st.sets(st.sampled_from(levels[-1]), min_size=1, max_size=len(levels[-1]) - 1))))
    return levels


def named(label: str) -> tuple[float, float]:
    """The ends of a label, read a second time."""
    if label.startswith("<="):
        return float("-inf"), int(label[2:])
    if label.startswith(">="):
        return int(label[2:]), float("inf")
    low, _, high = label.partition("..") if ".." in label else (label, "", label)
    if ".." not in label and "-" in label[1:]:
        low, _, high = label.partition("-")
    return int(low), int(high)


@settings(deadline=None)
@given(nested_bands(), st.sets(st.integers(-25, 25), min_size=1))
def test_every_label_covers_its_values_and_no_other_bound_lies_inside(levels: list[list[int]], drawn: set[int]) -> None:
    values = sorted(drawn)
    for value, path in zip(values, labels(Bands(levels), *values)):
        for bounds, label in zip(levels, path):
            low, high = named(label)
            assert low <= value <= high
            assert not any(low < bound <= high for bound in bounds)
            assert {low, high + 1} <= {*bounds, float("-inf"), float("inf")}


@settings(deadline=None)
@given(nested_bands(), st.sets(st.integers(-25, 25), min_size=1), st.booleans())
def test_bands_are_a_tree_over_any_values(levels: list[list[int]], drawn: set[int], null: bool) -> None:
    tree, _ = tree_of(Bands(levels), sorted(drawn), null)
    check_tree(tree)


def test_one_value_in_one_band_is_a_tree_of_one_child_per_level() -> None:
    tree, texts = tree_of(Bands([AGES, [18]]), [42])
    check_tree(tree)
    assert (texts, tree.label) == (["42"], ("42", "30-44", ">=18", "*"))
    assert isinstance(tree, HierarchyTree)


def test_decades_and_centuries_are_ranges_of_years() -> None:
    builder = Calendar(["year", "decade", "century"])
    assert labels(builder, date(1899, 12, 31), date(1900, 1, 1), date(1987, 6, 5), date(2000, 1, 1)) == [
        ("1899", "1890-1899", "1800-1899", "*"),
        ("1900", "1900-1909", "1900-1999", "*"),
        ("1987", "1980-1989", "1900-1999", "*"),
        ("2000", "2000-2009", "2000-2099", "*"),
    ]
    assert labels(Calendar(["century"]), date(7, 1, 1)) == [("0000-0099", "*")]


@settings(deadline=None)
@given(st.dates(), st.dates())
def test_calendar_levels_are_nested(one: date, other: date) -> None:
    builder = Calendar(["day", "month", "quarter", "year", "decade", "century"])
    for low, high in zip(*labels(builder, one, other)):
        if low == high:
            break
    else:
        raise AssertionError("the root is the same")
    paths = list(zip(*labels(builder, one, other)))
    same = [low == high for low, high in paths]
    assert same == sorted(same)
