"""`anon init` of tables with several rows per person: what it proposes, asks and writes gives a config that runs."""

from __future__ import annotations

import json
import random
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from anon.cli import init as cli_init
from anon.cli.app import app
from anon.config import load

DISEASES = ["Flu", "Cold", "HIV", "Asthma", "Burn"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def anon(*arguments: str, **options: Any) -> Result:
    return CliRunner().invoke(app, list(arguments), **options)


def visits(*without: str, each: int = 6) -> pa.Table:
    """150 patients who have had nearly every disease, so that all of their values together protect nobody."""
    draw, rows = random.Random(2), []
    for patient in range(150):
        person = {"patient_id": f"P{patient:05}", "born": date(1930, 1, 1) + timedelta(draw.randrange(30_000))}
        person |= {"sex": draw.choice("fm"), "zip": f"{draw.randrange(30) + 10_000}"}
        for number in range(draw.randint(each - 2, each)):
            row = {"visited": date(2023, 1, 1) + timedelta(draw.randrange(400)), "visit_nr": number + 1}
            row |= {"ward": draw.choice("ABC"), "cost": draw.randrange(2_000), "diagnosis": draw.choice(DISEASES)}
            rows.append(person | row)
    return pa.Table.from_pylist(rows).drop_columns(list(without))


def written(here: Path, *flags: str) -> Any:
    done = anon("init", "table.parquet", *flags, "--out", "c.yaml", "--overwrite")
    assert done.exit_code == 0, done.stderr
    return load(here / "c.yaml")


@pytest.mark.parametrize(
    ("without", "rule"),
    [
        ((), ("last", "visited", "single")),
        (("visited",), ("last", "visit_nr", "single")),
        (("visited", "visit_nr"), ("error", None, "multiset")),
        (("visited", "visit_nr", "born", "sex", "zip"), ("last", "cost", "single")),  # rows agree on nothing
    ],
)
def test_without_an_answer_the_config_runs(here: Path, without: tuple[str, ...], rule: tuple[Any, ...]) -> None:
    pq.write_table(visits(*without), "table.parquet")
    config = written(here, "--yes")
    columns = config.columns
    assert columns.individual == "patient_id" and list(columns.sensitive) == ["diagnosis"]
    assert (columns.rows.keep, columns.rows.by, columns.multiplicity) == rule
    ran = anon("run", "c.yaml", "--json")
    assert ran.exit_code == 0, ran.stderr
    assert json.loads(ran.stdout)["individuals"] == 150


def test_the_reason_for_the_row_is_a_comment(here: Path) -> None:
    pq.write_table(visits(), "table.parquet")
    written(here, "--yes")
    text = Path("c.yaml").read_text()
    assert "rows: {keep: last, by: visited}" in text and "# the newest row of each: it differs between rows" in text
    assert "diagnosis: {}" in text and "# by its name; check it" in text


@pytest.mark.parametrize(
    ("flag", "rule"),
    [
        ("first:visited", ("first", "visited", "single")),
        ("last:visit_nr", ("last", "visit_nr", "single")),
        ("set", ("error", None, "set")),
        ("multiset", ("error", None, "multiset")),
    ],
)
def test_a_flag_says_what_becomes_of_several_rows(here: Path, flag: str, rule: tuple[Any, ...]) -> None:
    pq.write_table(visits(), "table.parquet")
    columns = written(here, "--yes", "--rows", flag).columns
    assert (columns.rows.keep, columns.rows.by, columns.multiplicity) == rule
    assert anon("run", "c.yaml").exit_code == 0


@pytest.mark.parametrize("flag", ["newest", "last", "last:", "set:visited", "last:nothing"])
def test_a_flag_that_says_nothing_is_exit_2(here: Path, flag: str) -> None:
    pq.write_table(visits(), "table.parquet")
    done = anon("init", "table.parquet", "--yes", "--rows", flag, "--out", "c.yaml")
    assert done.exit_code == 2 and "--rows" in done.stderr and not Path("c.yaml").exists()


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        ("", ("last", "visited", "single")),
        ("1", ("last", "visited", "single")),
        ("2", ("last", "visit_nr", "single")),
        ("3", ("error", None, "multiset")),
        ("patient_id", ("last", "visited", "single")),
        ("row\npatient_id", ("last", "visited", "single")),  # rows are not people here: it is asked again
    ],
)
def test_the_question_who_offers_the_ways_with_several_rows(
    here: Path, monkeypatch: pytest.MonkeyPatch, answer: str, rule: tuple[Any, ...]
) -> None:
    monkeypatch.setattr(cli_init.InitOptions, "interactive", property(lambda asked: True))
    pq.write_table(visits(), "table.parquet")
    done = anon("init", "table.parquet", "--out", "c.yaml", input=f"{answer}\ndiagnosis\n")
    assert done.exit_code == 0, done.stderr
    assert "1  patient_id: the newest row of each by visited" in done.stderr
    columns = load(here / "c.yaml").columns
    assert (columns.rows.keep, columns.rows.by, columns.multiplicity) == rule


def test_a_table_of_one_row_each_needs_no_rule(here: Path) -> None:
    pq.write_table(visits(each=2).slice(0, 1).select(["sex", "diagnosis"]), "one.parquet")
    rows = {"patient_id": [f"P{n}" for n in range(60)], "sex": ["f", "m"] * 30, "illness": ["a", "b", "c"] * 20}
    pq.write_table(pa.table(rows), "table.parquet")
    columns = written(here, "--yes").columns
    assert (columns.individual, columns.rows.keep) == ("patient_id", "error")
    assert anon("run", "c.yaml").exit_code == 0


def test_fewer_people_than_k_lower_it(here: Path) -> None:
    rows = {"patient_id": ["a", "b", "c"], "sex": ["f", "m", "f"], "illness": ["a", "b", "c"]}
    pq.write_table(pa.table(rows), "table.parquet")
    config = written(here, "--yes")
    assert config.privacy[0].k == 3
    assert anon("run", "c.yaml").exit_code == 0


@pytest.mark.parametrize("key", ["patient_id", "id"])
def test_a_few_people_are_told_apart_by_the_name_of_their_key(here: Path, key: str) -> None:
    """Twelve patients are too few to show by their rows that visits are of one person."""
    few = visits().slice(0, 60)
    few = few.rename_columns([key, *few.column_names[1:]])
    pq.write_table(few, "table.parquet")
    assert written(here, "--yes").columns.individual == key
    with_gap = pa.array([None, *few[key].to_pylist()[1:]])
    pq.write_table(few.set_column(0, key, with_gap), "table.parquet")
    done = anon("init", "table.parquet", "--yes")
    assert done.exit_code == 2 and "--individual COLUMN" in done.stderr


def test_nothing_is_open_once_everything_is_proposed(here: Path) -> None:
    pq.write_table(visits(), "table.parquet")
    told = json.loads(anon("init", "table.parquet", "--yes", "--json").stdout)
    assert told["unanswered"] == [] and "rows: {keep: last, by: visited}" in told["config"]


# Wide tables


def test_a_wide_table_has_few_quasi_identifiers_and_publishes_no_other(here: Path) -> None:
    draw, rows = random.Random(4), range(800)
    table = {"age": [draw.randrange(90) for _ in rows], "sex": [draw.choice("fm") for _ in rows]}
    table |= {"job": [f"job {draw.randrange(40)}" for _ in rows]}
    table |= {f"answer_{n}": [draw.choice("yn") for _ in rows] for n in range(50)}
    pq.write_table(pa.table(table), "table.parquet")
    columns = written(here, "--yes", "--quasi-identifier", "answer_7").columns
    assert {"age", "sex", "job", "answer_7"} <= set(columns.quasi_identifiers) and len(columns.published()) <= 11
    text = Path("c.yaml").read_text()
    assert text.count("left out of 52 columns: ") >= 40
    assert anon("run", "c.yaml").exit_code == 0


def test_a_memory_that_is_too_small_is_named_as_the_flag(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from anon.errors import ResourceError
    from anon.profile import columns

    def too_small(*anything: Any) -> None:
        raise ResourceError("reading the source: limits.memory is too small for this step; raise it")

    monkeypatch.setattr(columns, "profile", too_small)
    pq.write_table(visits(), "table.parquet")
    done = anon("init", "table.parquet", "--yes")
    assert done.exit_code == 6 and "--memory is too small" in done.stderr and "limits.memory" not in done.stderr
