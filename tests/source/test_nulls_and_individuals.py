"""What the source stage makes of missing values and of the rows of one individual, by the config's policy."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

from anon.errors import ConfigError
from tests.conftest import House
from tests.helpers.backends import on_every_backend
from tests.helpers.source import ROWS

# Nulls

GAPS = pa.table({"age": [1, None, 2, 2, None, 1], "zip": ["02139"] * 6, "disease": ["a", "b", None, "a", None, "b"]})


@on_every_backend()
def test_missing_values_are_values_where_the_config_says_so(house: House) -> None:
    result = house.run(GAPS, nulls={"quasi_identifiers": "value", "sensitive": "value"})
    assert result.facts["rows"] == 6
    assert house.released()["disease"].null_count == 2


@on_every_backend()
@pytest.mark.parametrize(
    ("policy", "rows"),
    [
        ({"quasi_identifiers": "drop", "sensitive": "value"}, 4),
        ({"quasi_identifiers": "value", "sensitive": "drop"}, 4),
        ({"quasi_identifiers": "drop", "sensitive": "drop"}, 3),
    ],
)
def test_rows_with_missing_values_are_dropped_and_counted(house: House, policy: dict[str, str], rows: int) -> None:
    result = house.run(GAPS, nulls=policy)
    assert result.facts["rows"] == rows
    warned = {warning["code"]: warning["count"] for warning in result.facts["warnings"]}
    assert warned["rows_dropped"] == 6 - rows


@on_every_backend()
def test_missing_values_are_errors_with_their_counts(house: House) -> None:
    with pytest.raises(ConfigError) as error:
        house.run(GAPS, nulls={"quasi_identifiers": "error", "sensitive": "error"})
    assert [p.path for p in error.value.problems] == ["columns.quasi_identifiers.age", "columns.sensitive.disease"]
    assert all("2 rows without a value" in p.found for p in error.value.problems)


@on_every_backend()
def test_a_dropped_row_is_no_error_in_another_column(house: House) -> None:
    with pytest.raises(ConfigError, match="disease: found 1 row without"):
        house.run(GAPS, nulls={"quasi_identifiers": "drop", "sensitive": "error"})


@on_every_backend()
def test_nan_counts_as_missing(house: House) -> None:
    table = pa.table({"age": [1.5, math.nan, None], "zip": ["02139"] * 3, "disease": ["a"] * 3})
    with pytest.raises(ConfigError, match="age: found 2 rows without"):
        house.run(table, nulls={"quasi_identifiers": "error"})


@on_every_backend()
def test_dropping_every_row_is_a_mistake_in_the_config(house: House) -> None:
    table = pa.table({"age": pa.nulls(3, pa.int64()), "zip": ["02139"] * 3, "disease": ["a"] * 3})
    with pytest.raises(ConfigError, match="all 3 rows dropped"):
        house.run(table, nulls={"quasi_identifiers": "drop"})


# Individuals


def people(ids: list[Any], ages: list[Any]) -> pa.Table:
    return pa.table({"id": ids, "age": ages, "zip": ["02139"] * len(ids), "disease": ["a"] * len(ids)})


def individual_error(house: House, table: pa.Table, **changes: Any) -> list[str]:
    with pytest.raises(ConfigError) as error:
        house.run(table, columns__individual="id", **changes)
    assert {p.path for p in error.value.problems} == {"columns.individual"}
    return [p.found for p in error.value.problems]


@on_every_backend()
def test_rows_of_nobody_are_counted(house: House) -> None:
    assert individual_error(house, people([1, None, None], [1, 1, 1])) == ["2 rows without an individual"]
    assert individual_error(house, people([1.0, math.nan, 2.0], [1] * 3)) == ["1 row without an individual"]


@on_every_backend()
def test_repeated_individuals_are_counted_and_disagreement_is_another_problem(house: House) -> None:
    repeats = "2 rows that repeat an individual, of 1 individual with several rows"
    assert individual_error(house, people([1, 1, 1, 2], [5, 5, 5, 6])) == [repeats]
    repeats = "2 rows that repeat an individual, of 2 individuals with several rows"
    disagree = "1 individual whose rows disagree on a quasi-identifier (age: 1)"
    assert individual_error(house, people([1, 1, 2, 2], [5, 6, 7, 7])) == [repeats, disagree]
    assert individual_error(house, people([1, 1, 2, 2], [5, None, 7, 7])) == [repeats, disagree]


@on_every_backend()
def test_a_dropped_row_does_not_repeat_an_individual(house: House) -> None:
    table = people([1, 1, 2], [5, None, 6])
    assert house.run(table, columns__individual="id", nulls={"quasi_identifiers": "drop"}).facts["rows"] == 2


@on_every_backend()
def test_individuals_and_identifiers_are_never_published(house: House) -> None:
    ids = [f"INDIVIDUAL-{n}" for n in range(12)]
    table = ROWS.append_column("id", [ids]).append_column("name", [[f"IDENTIFIER-{n}" for n in range(12)]])
    table = table.append_column("unnamed", [[f"UNNAMED-{n}" for n in range(12)]])
    house.run(table, columns__individual="id", columns__identifiers=["name"])
    assert house.released().column_names == ["age", "zip", "disease"]
    for path in (path for place in ("out", "out-run") for path in (house.folder / place).rglob("*") if path.is_file()):
        assert not any(mark in path.read_bytes() for mark in (b"INDIVIDUAL-", b"IDENTIFIER-", b"UNNAMED-"))
