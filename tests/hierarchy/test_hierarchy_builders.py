"""Hierarchies: the labels that every builder gives, and the values that it refuses."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon.core.text import text
from anon.errors import ConfigError
from anon.hierarchy import paths
from tests.helpers.hierarchy import Calendar, Digits, Intervals, Suppress, labels, refusal

# Values


@given(st.floats(allow_nan=False))
def test_the_text_of_a_float_is_plain_and_reads_back(value: float) -> None:
    assert float(text(value)) == value
    assert "e" not in text(value).lower()


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6))
def test_equal_numbers_have_equal_texts(value: Decimal) -> None:
    assert Decimal(text(value)) == value
    assert text(value) == text(Decimal(f"{value:f}000"))
    assert text(int(value)) == text(Decimal(int(value)))


# Intervals


def test_the_intervals_of_the_contract() -> None:
    builder = Intervals([5, 10, 20], origin=1, top=85)
    assert labels(builder, 1, 5, 6, 10, 11, 84, 85, 99) == [
        ("1-5", "1-10", "1-20", "*"),
        ("1-5", "1-10", "1-20", "*"),
        ("6-10", "1-10", "1-20", "*"),
        ("6-10", "1-10", "1-20", "*"),
        ("11-15", "11-20", "1-20", "*"),
        ("81-84", "81-84", "81-84", "*"),
        (">=85", ">=85", ">=85", "*"),
        (">=85", ">=85", ">=85", "*"),
    ]


@pytest.mark.parametrize(
    ("builder", "value", "expected"),
    [
        (Intervals([5]), 22, "20-24"),
        (Intervals([5]), -3, "-5..-1"),
        (Intervals([10], origin=-5), 3, "-5..4"),
        (Intervals([1]), 20, "20"),
        (Intervals([1]), -20, "-20"),
        (Intervals([20], top=85), 82, "80-84"),
        (Intervals([20], bottom=18), 19, "18-19"),
        (Intervals([20], bottom=18), 18, "18-19"),
        (Intervals([20], bottom=18), 17, "<=17"),
        (Intervals([20], bottom=18), 2.5, "<18"),
        (Intervals([5], top=86), 85, "85"),
        (Intervals([Decimal("0.75")], origin=Decimal("1.5")), 1.5, "[1.5,2.25)"),
        (Intervals([Decimal("0.1")]), 0.3, "[0.3,0.4)"),
        (Intervals([Decimal("0.1")]), Decimal("0.7"), "[0.7,0.8)"),
        (Intervals([Decimal("0.5")]), 3, "[3,3.5)"),
        (Intervals([5]), 22.0, "[20,25)"),
        (Intervals([5], top=Decimal("84.5")), 84, "[80,84.5)"),
        (Intervals([5], top=10), float("inf"), ">=10"),
        (Intervals([5], bottom=10), float("-inf"), "<10"),
        (Intervals([5]), 10**400, f"{10**400}-{10**400 + 4}"),
    ],
)
def test_the_label_of_a_cell(builder: Intervals, value: Any, expected: str) -> None:
    assert labels(builder, value) == [(expected, "*")]


decimals = st.decimals(-50, 50, places=2)


@given(
    st.lists(decimals, min_size=1, max_size=20),
    st.sampled_from(["0.1", "0.25", "1", "2.5", "7"]),
    st.lists(st.integers(2, 4), max_size=2),
    decimals,
    st.none() | decimals,
    st.booleans(),
)
def test_intervals_agree_with_exact_fractions(
    values: list[Decimal], width: str, factors: list[int], origin: Decimal, top: Decimal | None, as_float: bool
) -> None:
    widths = [Decimal(width)]
    for factor in factors:
        widths.append(widths[-1] * factor)
    given_values = [float(value) for value in values] if as_float else values
    for value, found in zip(values, labels(Intervals(widths, origin, top), *given_values)):
        if top is not None and value >= top:
            assert found == (*[f">={text(top)}"] * len(widths), "*")
            continue
        expected = []
        for w in widths:
            low = Fraction(origin) + (Fraction(value) - Fraction(origin)) // Fraction(w) * Fraction(w)
            high = low + Fraction(w) if top is None else min(low + Fraction(w), Fraction(top))
            assert low <= Fraction(value) < high
            expected.append((low, high))
        bounds = [tuple(Fraction(part) for part in label[1:-1].split(",")) for label in found[:-1]]
        assert bounds == expected


def test_values_that_are_not_numbers_are_counted_and_not_quoted() -> None:
    message = refusal(Intervals([5]), 3, "Smith", True)
    assert message == (
        "columns.quasi_identifiers.c.intervals: found 2 of 3 distinct values that are not numbers; "
        "expected a column of numbers (one word or leading zero among the numbers of a CSV column makes it text)"
    )


def test_a_message_names_the_role_of_the_column() -> None:
    with pytest.raises(ConfigError, match=r"^columns\.sensitive\.cost\.intervals: found 1 of 1"):
        paths(Intervals([5]), ["Smith"], "cost", role="sensitive")  # type: ignore[arg-type]


def test_infinity_needs_an_open_end() -> None:
    message = refusal(Intervals([5]), 3.0, float("inf"), float("nan"))
    assert "2 of 3 distinct values that are infinite or not a number" in message
    assert "`top` and `bottom`" in message


# Suppress, digits, calendar


def test_suppress_gives_the_star() -> None:
    assert labels(Suppress(), "F", "M") == [("*",), ("*",)]


def test_the_digits_of_the_contract() -> None:
    assert labels(Digits(5), "02139") == [("0213*", "021**", "02***", "0****", "*")]
    assert labels(Digits(1), "0", "7") == [("*",), ("*",)]


def test_whole_numbers_of_full_length_are_digits() -> None:
    assert labels(Digits(3), 213) == [("21*", "2**", "*")]
    assert labels(Digits(1), 0, 9) == [("*",), ("*",)]


def test_numbers_without_leading_zeros_are_refused_with_their_count() -> None:
    message = refusal(Digits(5), 2139, 10001)
    assert "columns.quasi_identifiers.c.digits: found 1 of 2 distinct values" in message
    assert "lose their leading zeros" in message
    assert "2139" not in message


@pytest.mark.parametrize("value", ["021399", "0213", "021x9", "0213٣", "", 213999, -2139, 21.39, True])
def test_values_that_are_not_the_digits_are_counted_and_not_quoted(value: Any) -> None:
    message = refusal(Digits(5), "02139", value)
    assert "1 of 2 distinct values that are not exactly 5 digits" in message
    assert text(value) not in message or value == ""


def test_the_calendar_of_the_contract_starts_above_the_day_for_dates() -> None:
    builder = Calendar(["day", "month", "quarter", "year"])
    assert labels(builder, date(2024, 3, 9)) == [("2024-03", "2024-Q1", "2024", "*")]
    assert labels(builder, datetime(2024, 3, 9, 7)) == [("2024-03-09", "2024-03", "2024-Q1", "2024", "*")]


def test_a_sensitive_date_keeps_the_day_that_the_calendar_lists() -> None:
    made = paths(Calendar(["day", "month"]), [date(2024, 3, 9)], "c", role="sensitive")
    assert list(made) == [("2024-03-09", "2024-03", "*")]
    assert list(paths(Calendar(["month"]), [date(2024, 3, 9)], "c", role="sensitive")) == [("2024-03", "*")]


@pytest.mark.parametrize(("month", "quarter"), [(1, 1), (3, 1), (4, 2), (6, 2), (7, 3), (9, 3), (10, 4), (12, 4)])
def test_the_quarter_of_a_month(month: int, quarter: int) -> None:
    assert labels(Calendar(["quarter"]), date(2024, month, 1)) == [(f"2024-Q{quarter}", "*")]


def test_a_time_with_a_zone_is_labelled_in_utc() -> None:
    new_year = datetime(2024, 1, 1, 0, 30, tzinfo=timezone(timedelta(hours=1)))
    assert labels(Calendar(["day", "year"]), new_year) == [("2023-12-31", "2023", "*")]


def test_a_calendar_refuses_what_is_not_a_date() -> None:
    message = refusal(Calendar(["year"]), date(2024, 1, 1), "17.05.2024")
    assert "columns.quasi_identifiers.c.calendar: found 1 of 2 distinct values that are not dates" in message
    assert "2024-03-09 (ISO 8601)" in message and "17.05" not in message
