"""What is asked of the rows is data: evaluated in one pass, answered by name, and never passed without an answer."""

from __future__ import annotations

import datetime
from contextlib import closing

import pyarrow as pa
import pytest

import anon
from anon.backends.spark import rows as spark_rows
from anon.core.database import Database
from anon.errors import Problem, SourceError
from anon.source import requirements
from anon.source.requirements import COUNT, Aggregate, DuckDBRows, Requirement, RowAnswers, Unanswered
from anon.source.rows import Typing
from tests.conftest import House
from tests.helpers.backends import on_every_backend, run_as_plain

MOMENTS = [datetime.datetime(2024, 1, day) for day in range(1, 11)]
TABLE = pa.table(
    {
        "whole": pa.array(range(10), pa.int64()),
        "wide": pa.array([*range(9), 2**63], pa.uint64()),
        "number": pa.array([0.5, float("inf"), float("nan"), None, 1, 2, 3, float("-inf"), 5, 6]),
        "moment": pa.array(MOMENTS, pa.timestamp("us")),
        "nano": pa.array([1, *[1000] * 8, None], pa.timestamp("ns")),
        "text": [str(row) for row in range(10)],
    }
)


def rows(count: int = 60) -> pa.Table:
    ages = pa.array([float(20 + row % 7) for row in range(count)], mask=[row % 10 == 0 for row in range(count)])
    return pa.table({"age": ages, "disease": [f"d{row % 3}" for row in range(count)]})


COLUMNS = {"individual": "row", "quasi_identifiers": {"age": {}}, "sensitive": ["disease"]}
SAFE = [{"k_anonymity": {"k": 2}}]


def test_a_requirement_without_an_answer_is_an_error() -> None:
    required = Requirement("finite", "isinf(v)", Problem("columns.x", f"{COUNT} infinite values", "finite numbers"))
    assert RowAnswers({"finite": 0}).problems([required]) == []
    assert RowAnswers({"finite": 1200}).problems([required])[0].found == "1,200 infinite values"
    for lost in ({}, {"other": 0}, {"finite": None}):
        with pytest.raises(Unanswered, match="finite"):
            RowAnswers(lost).problems([required])
    assert issubclass(Unanswered, SourceError)


@on_every_backend()
def test_a_run_with_a_check_that_was_not_made_fails(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.write(rows())
    asked = requirements.aggregates
    for module in (requirements, spark_rows):
        monkeypatch.setattr(module, "aggregates", lambda questions: asked(questions)[:-1])
    with pytest.raises(Unanswered, match="nulls of"):
        anon.run(house.config(columns=COLUMNS, privacy=SAFE, nulls={"quasi_identifiers": "error"}))
    assert not (house.folder / "out").exists()


@on_every_backend()
def test_rows_are_dropped_for_null_values_on_every_backend(house: House) -> None:
    _, again = run_as_plain(house, rows(), columns=COLUMNS, privacy=SAFE, nulls={"quasi_identifiers": "drop"})
    assert again.facts["left_out"]["rows"]["null_quasi_identifiers"] == 6


def test_batches_of_rows_add_up_to_the_answers_of_the_table() -> None:
    """As on a cluster, whatever the batches are; an executor without a row answers too."""
    with closing(Database.in_memory()) as database:
        database.register("t", TABLE)
        relation = database.query("SELECT * FROM t")
        types = dict(zip(relation.columns, map(str, relation.types)))
        typing = Typing({"sensitive": list(types)}, types)
        asked = requirements.aggregates([requirements.ROWS, *typing.requirements])
        answers = DuckDBRows(database, "t").evaluate(asked)
        assert len(typing.requirements) == 4
        assert {each.name: answers[each.name] for each in asked if answers[each.name]} == {
            "rows": 10,
            "columns.sensitive.wide: integers below 2^63": 1,
            "columns.sensitive.number: finite numbers": 2,
            "columns.sensitive.nano: whole microseconds of the years 1 to 9999": 1,
        }
    for size in (1, 3, 10):
        tasks = [spark_rows.evaluated(TABLE.schema, asked, iter(TABLE.to_batches(size)))]
        tasks += [spark_rows.evaluated(TABLE.schema, asked, iter([]))]
        total = dict(zip(tasks[0]["name"].to_pylist(), [0] * len(asked)))
        for task in tasks:
            for name, number in zip(task["name"].to_pylist(), task["n"].to_pylist()):
                total[name] += number
        assert total == {each.name: answers[each.name] for each in asked}


def test_all_requirements_of_all_columns_are_one_query(house: House) -> None:
    house.write(TABLE.slice(4, 3).append_column("disease", pa.array(["flu", "flu", "hip"])))
    columns = {
        "quasi_identifiers": {"whole": {}, "wide": {}, "number": {}, "moment": {}},
        "sensitive": {"disease": {}},
        "individual": "row",
    }
    planned = house.cli(
        "plan", "--sql", "--json", columns=columns, privacy=[{"k_anonymity": {"k": 2}}], nulls={"sensitive": "error"}
    ).json["sql"]
    asking = [sql for sql in planned if "isinf" in sql or "TRY_CAST" in sql or "9999" in sql or "disease" in sql]
    of_rows = [sql for sql in asking if sql.startswith("SELECT") and "FILTER" in sql]
    assert len(of_rows) == 1
    assert all(part in of_rows[0] for part in ("count(*)", "isinf", "TRY_CAST", "9999", '"disease" IS NULL'))


def test_a_sum_is_asked_for_by_one_name_only() -> None:
    twice = [Aggregate("rows", "count(*)"), Aggregate("rows", "count(x)")]
    with pytest.raises(AssertionError, match="one name"):
        requirements.aggregates(twice)
