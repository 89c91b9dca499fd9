"""Sensitive columns as they are published: rounded, labelled, and numbers that are no categories."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

from anon.errors import ConfigError
from tests.conftest import House
from tests.helpers.source import ROWS


def away_from_zero(value: Any, width: str) -> Decimal:
    exact, step = Decimal(str(value)), Decimal(width)
    return (exact / step).quantize(Decimal(1), decimal.ROUND_HALF_UP) * step


def rounded(house: House, values: list[Any], kind: pa.DataType, width: Any) -> list[Any]:
    table = pa.table({"one": [1] * len(values), "it": pa.array(values, kind)})
    columns = {"individual": "row", "quasi_identifiers": {"one": {}}, "sensitive": {"it": {"round": width}}}
    house.run(table, columns=columns)
    return house.released()["it"].to_pylist()


ROUNDED: list[tuple[list[Any], pa.DataType, str]] = [
    ([0, 49, 50, 149, 150, -49, -50, -150], pa.int32(), "100"),
    ([2**53 + 1, 2**53 + 3, -(2**61) - 1], pa.int64(), "2"),
    ([1, 2, 3, -1], pa.int64(), "2.5"),
    ([1.25, 3.75, -1.25, 0.0, -0.0], pa.float64(), "2.5"),
    ([0.05, 0.15, 0.25, 0.35, 0.45, 0.55, -0.35, 1.05, 2.675, 1000000.05], pa.float64(), "0.1"),
    ([0.005, 1.005, 8.345, 1.115, 0.285], pa.float64(), "0.01"),
    ([0.35, 0.25], pa.float32(), "0.1"),
    ([Decimal("0.05"), Decimal("0.15"), Decimal("-0.25"), Decimal("99999.95")], pa.decimal128(9, 2), "0.1"),
    ([Decimal("1234567890123456.5"), Decimal("-0.5")], pa.decimal128(38, 1), "1"),
]


@pytest.mark.parametrize(("values", "kind", "width"), ROUNDED)
def test_rounding_is_exact_and_takes_halves_away_from_zero(
    house: House, values: list[Any], kind: pa.DataType, width: str
) -> None:
    published = rounded(house, values, kind, Decimal(width) if "." in width else int(width))
    assert sorted(map(Decimal, published)) == sorted(away_from_zero(value, width) for value in values)


def test_rounding_keeps_what_is_missing(house: House) -> None:
    table = pa.table({"one": [1] * 3, "it": [math.nan, None, 7.0]})
    columns = {"individual": "row", "quasi_identifiers": {"one": {}}, "sensitive": {"it": {"round": 5}}}
    house.run(table, columns=columns, nulls={"sensitive": "value"})
    assert house.released()["it"].to_pylist() == [None, None, 5]


@pytest.mark.parametrize("values", [["a", "b"], [True, False], [dt.date(2024, 1, 1)] * 2])
def test_only_numbers_can_be_rounded(house: House, values: list[Any]) -> None:
    with pytest.raises(ConfigError, match=r"columns\.sensitive\.it: found type \w+ with `round`"):
        rounded(house, values, None, 5)


def test_numbers_too_large_to_round_are_refused(house: House) -> None:
    with pytest.raises(ConfigError, match="1 values that are not; expected small enough to round"):
        rounded(house, [2**63 - 1, 1], pa.int64(), 100)


@pytest.mark.parametrize(
    ("values", "builder", "labels"),
    [
        ([1, 7, 12, 12], {"intervals": [5, 10]}, ["0-4", "10-14", "10-14", "5-9"]),
        (["02139", "02138", None], {"digits": 5}, [None, "0213*", "0213*"]),
        (["a", "b"], {"suppress": True}, ["*", "*"]),
        ([dt.date(2024, 3, 9), dt.date(2024, 5, 1)], {"calendar": ["quarter", "year"]}, ["2024-Q1", "2024-Q2"]),
        ([dt.date(2024, 3, 9), dt.date(2024, 3, 10)], {"calendar": ["day", "month"]}, ["2024-03-09", "2024-03-10"]),
        ([dt.date(2024, 3, 9), dt.date(2024, 3, 10)], {"calendar": ["day"]}, ["2024-03-09", "2024-03-10"]),
        ([dt.datetime(2024, 3, 9, 7), dt.datetime(2024, 3, 9, 8)], {"calendar": ["day"]}, ["2024-03-09"] * 2),
    ],
)
def test_a_builder_publishes_the_labels_of_its_first_level(
    house: House, values: list[Any], builder: dict[str, Any], labels: list[Any]
) -> None:
    table = pa.table({"one": [1] * len(values), "it": values})
    columns = {"individual": "row", "quasi_identifiers": {"one": {}}, "sensitive": {"it": builder}}
    house.run(table, columns=columns, nulls={"sensitive": "value"})
    assert house.released()["it"].to_pylist() == labels


def test_a_builder_that_does_not_fit_names_the_sensitive_column(house: House) -> None:
    with pytest.raises(ConfigError, match=r"columns\.sensitive\.disease"):
        house.run(ROWS, columns__sensitive={"disease": {"digits": 5}})


SKYLINE = {"privacy": [{"skyline": {"points": [{"l": 0, "k": 0, "m": 0, "c": 1}]}}]}


def numbers(values: list[Any]) -> pa.Table:
    return pa.table({"one": [1] * len(values), "it": values})


def number_columns(**spec: Any) -> dict[str, Any]:
    return {"columns": {"individual": "row", "quasi_identifiers": {"one": {}}, "sensitive": {"it": spec}}, **SKYLINE}


def test_numbers_are_no_categories_unless_the_config_says_so(house: House) -> None:
    for table in (numbers([1.5, 2.5]), numbers(list(range(1001)))):
        with pytest.raises(ConfigError, match="takes for categories"):
            house.run(table, **number_columns())
        assert house.run(table, **number_columns(as_categories=True)).safe
    assert house.run(numbers(list(range(1000))), **number_columns()).safe
    assert house.run(numbers([n / 2 for n in range(1001)]), **number_columns(round=10)).safe


def test_more_than_65536_sensitive_values_are_refused(house: House) -> None:
    with pytest.raises(ConfigError, match=r"columns\.sensitive\.it: found 65,537"):
        house.run(numbers(list(range(65_537))), **number_columns(as_categories=True))
