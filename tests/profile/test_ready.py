"""What `init` proposes where a builder or a hierarchy is ready for a column: ages, postcodes, classifications."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import anon
from anon.cli.app import app
from anon.config import load
from anon.profile.columns import ColumnProfile, Shape
from anon.profile.ready import ready_builder


def text(name: str, *sample: str) -> ColumnProfile:
    return ColumnProfile(name, "VARCHAR", "text", distinct=len(sample), shape=Shape(sample=sample))


def dates(name: str, first: str, last: str) -> ColumnProfile:
    shape = Shape(least=dt.date.fromisoformat(first), most=dt.date.fromisoformat(last))
    return ColumnProfile(name, "DATE", "date", distinct=9, shape=shape)


@pytest.mark.parametrize(
    ("column", "command"),
    [
        (text("code", "E11.9", "C50.1", "F00.-"), "icd10"),
        (text("diagnose", "E119", "C50", "F00"), "icd10"),
        (text("code", "A10BA02", "N02BE01", "C09AA"), "atc"),
        (text("from", "FR", "DE", "US"), "country"),
        (text("Nationality", "French", "German", "Swiss"), "country"),
        (text("Beruf", "2212", "0110", "5223"), "isco"),
        (text("isced level", "ED3", "ED5", "ED6"), "isced"),
    ],
)
def test_codes_come_with_the_command_that_builds_their_hierarchy(column: ColumnProfile, command: str) -> None:
    builder, _, note = ready_builder(column) or ("", "", "")
    assert builder == "suppress: true"
    assert "3 of 3 sampled values" in note
    name = f"'{column.name}'" if " " in column.name else column.name
    assert f"`anon hierarchy build {command} TABLE --from {name} --out {command}.csv`" in note


def test_codes_of_digits_can_be_hidden_digit_by_digit_without_a_hierarchy() -> None:
    shape = Shape(4, 4, 3, sample=("2212", "0110", "5223"))
    builder = ready_builder(ColumnProfile("isco", "VARCHAR", "text", distinct=3, shape=shape))
    assert builder is not None and builder[0] == "digits: 4"


@pytest.mark.parametrize(
    "column",
    [
        text("code", "E11.9", "C50.1"),
        text("ward", "A01", "B02", "C03"),
        text("state", "NY", "TX", "CA", "OH"),
        text("digits", "2212", "0110", "5223"),
        text("words", "cold", "flu", "fever"),
        dates("admitted", "1950-01-01", "2001-01-01"),
        dates("born", "1700-01-01", "2001-01-01"),
        dates("born", "1950-01-01", "2999-01-01"),
        ColumnProfile("born", "DATE", "date"),
        ColumnProfile("weight", "INTEGER", "integer", distinct=9, shape=Shape(5, 3, 9, whole=True)),
        ColumnProfile("zip", "INTEGER", "integer", distinct=9, shape=Shape(5, 5, 9, whole=True)),
        ColumnProfile("flag", "BOOLEAN", "boolean", distinct=2),
    ],
    ids=lambda column: column.name,
)
def test_nothing_is_ready_for_other_columns(column: ColumnProfile) -> None:
    assert ready_builder(column) is None


def test_the_day_of_ages_is_the_end_of_a_year_that_no_birth_date_is_after() -> None:
    year = dt.datetime.now(dt.UTC).year
    for last, expected in (("2001-05-05", year - 1), (f"{year}-01-01", year)):
        builder = (ready_builder(dates("born", "1950-01-01", last)) or ("",))[0]
        assert builder.startswith(f"age_on: {expected}-12-31, bands: [[0, 18, ")


def test_a_proposed_config_runs_and_publishes_no_birth_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = range(400)
    table: dict[str, Any] = {
        "Geburtsdatum": pa.array([dt.date(1940, 1, 1) + dt.timedelta(days=row * 71 % 25_000) for row in rows]),
        "plz": pa.array([1000 + row * 37 % 90 * 250 for row in rows]),
        "ill": [("flu", "cold", "hiv")[row % 3] for row in rows],
    }
    pq.write_table(pa.table(table), "people.parquet")
    flags = ["--individual", "row", "--sensitive", "ill", "--quasi-identifier", "Geburtsdatum", "--yes"]
    done = CliRunner().invoke(app, ["init", "people.parquet", *flags, "--out", "c.yaml"])
    assert done.exit_code == 0
    builders = load("c.yaml").columns.quasi_identifiers
    assert builders["Geburtsdatum"].reference_day is not None
    assert builders["plz"].code_length == 5
    anon.run("c.yaml")
    (release,) = tmp_path.glob("**/release.parquet")
    labels = set(pq.read_table(release)["Geburtsdatum"].to_pylist())
    assert not any(label[:2] in ("19", "20") and len(label) > 5 for label in labels)
    assert labels & {"18-64", ">=65", "65-79", "30-44", "*"}
