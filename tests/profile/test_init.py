"""`anon init`: what it sees in a table, what it proposes and why, what only people can answer, and that the config it
writes runs as it is."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from demo import hospital
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from anon.cli import init as cli_init
from anon.cli.app import app
from anon.config import load
from anon.profile.columns import ColumnProfile, Profile, Shape
from anon.profile.proposal import Answers, propose
from anon.profile.writing import as_yaml

ROWS = 400
SECRET = "Kowalski"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def people(**more: Any) -> pa.Table:
    """A small table with a column of every kind."""
    rows = range(ROWS)
    columns = {
        "person_id": [f"P{row:05}" for row in rows],
        "name": [f"{SECRET} {row % 97}" for row in rows],
        "age": [row * 7 % 93 for row in rows],
        "sex": ["FM"[row % 2] for row in rows],
        "zip": [f"{row * 13 % 40 + 1000:05}" for row in rows],
        "born": [date(1950, 1, 1) + timedelta(days=row * 37 % 9000) for row in rows],
        "smokes": [row % 3 == 0 for row in rows],
        "children": [row % 4 for row in rows],
        "disease": [("flu", "cold", "HIV", "asthma")[row * 5 % 7 % 4] for row in rows],
        "country": ["here" for _ in rows],
        **more,
    }
    return pa.table(columns)


def anon(*arguments: str, **options: Any) -> Result:
    return CliRunner().invoke(app, list(arguments), **options)


FLAGS = ("--individual", "person_id", "--sensitive", "disease", "--yes")


def proposal(*flags: str, table: str = "table.parquet") -> dict[str, dict[str, Any]]:
    done = anon("init", table, *(flags or FLAGS), "--json")
    assert done.exit_code == 0, done.stderr
    return {each["name"]: each for each in json.loads(done.stdout)["proposal"]}


# What is written


def test_the_config_runs_as_it_is(here: Path) -> None:
    pq.write_table(people(), here / "table.parquet")
    assert anon("init", "table.parquet", *FLAGS, "--out", "c.yaml").exit_code == 0
    planned = anon("plan", "c.yaml", "--json")
    assert planned.exit_code == 0 and json.loads(planned.stdout)["feasible"]
    assert anon("run", "c.yaml").exit_code == 0
    released = pq.read_table(here / "table-release" / "release.parquet")
    assert released.column_names == ["age", "sex", "zip", "born", "smokes", "children", "disease"]


def test_the_config_of_the_demo_extract_runs_as_it_is(here: Path) -> None:
    hospital.main(["--rows", "3000", "--out", "extract.parquet"])
    done = anon("init", "extract.parquet", "--individual", "patient_id", "--sensitive", "diagnosis", "--yes",
                "--out", "c.yaml")  # fmt: skip
    assert done.exit_code == 0
    config = load(here / "c.yaml")
    assert config.columns.identifiers == ["name"] and config.columns.individual == "patient_id"
    assert config.columns.quasi_identifiers["zip"].kind == "digits"
    assert config.columns.quasi_identifiers["admitted"].kind == "calendar"
    assert anon("run", "c.yaml").exit_code == 0


def test_the_config_of_adult_runs_as_it_is(here: Path, adult: pa.Table) -> None:
    pq.write_table(adult.slice(0, 5000), here / "adult.parquet")
    done = anon("init", "adult.parquet", "--individual", "row", "--sensitive", "occupation", "--yes", "--out", "c.yaml")
    assert done.exit_code == 0, done.stderr
    assert anon("run", "c.yaml").exit_code == 0


def test_sensitive_numbers_are_rounded_and_protected_as_numbers(here: Path) -> None:
    pq.write_table(people(cost=[row * 17.31 for row in range(ROWS)]), here / "table.parquet")
    flags = ("--individual", "person_id", "--sensitive", "cost", "--sensitive", "disease", "--yes")
    assert anon("init", "table.parquet", *flags, "--out", "c.yaml").exit_code == 0
    config = load(here / "c.yaml")
    assert config.columns.sensitive["cost"].round is not None
    assert [spec.name for spec in config.privacy] == ["k_anonymity", "l_diversity", "t_closeness"]
    assert anon("run", "c.yaml").exit_code == 0


def test_rows_without_a_sensitive_value_are_dropped_and_that_is_said(here: Path) -> None:
    table = people()
    missing = pa.array([None if row % 50 == 0 else "flu" if row % 2 else "cold" for row in range(ROWS)])
    pq.write_table(table.set_column(table.column_names.index("disease"), "disease", missing), here / "table.parquet")
    assert anon("init", "table.parquet", *FLAGS, "--out", "c.yaml").exit_code == 0
    assert load(here / "c.yaml").nulls.sensitive == "drop"
    assert "8 rows without a value are dropped" in (here / "c.yaml").read_text(encoding="utf-8")
    assert anon("run", "c.yaml").exit_code == 0


def test_every_column_is_in_the_config_with_a_reason(here: Path) -> None:
    pq.write_table(people(), here / "table.parquet")
    text = anon("init", "table.parquet", *FLAGS).stdout
    for name in people().column_names:
        assert re.search(rf"^ .*\b{name}\b.*#|^  #   {name}: ", text, re.MULTILINE), name


def test_the_source_is_named_as_seen_from_the_config(here: Path) -> None:
    (here / "data").mkdir()
    (here / "configs").mkdir()
    pq.write_table(people(), here / "data" / "table.parquet")
    assert anon("init", "data/table.parquet", *FLAGS, "--out", "configs/c.yaml").exit_code == 0
    assert load(here / "configs" / "c.yaml").source.path == str(here / "data" / "table.parquet")


def test_no_value_of_the_data_is_told_unless_asked_for(here: Path) -> None:
    pq.write_table(people(), here / "table.parquet")
    for flags in ((), ("--json",), ("--out", "c.yaml")):
        done = anon("init", "table.parquet", *FLAGS, *flags)
        told = (
            done.stdout + done.stderr + (here / "c.yaml").read_text(encoding="utf-8")
            if "--out" in flags
            else done.stdout
        )
        for value in (SECRET, "P00001", "asthma", "1950", "01013"):
            assert value not in told
    profile = json.loads(anon("init", "table.parquet", *FLAGS, "--json").stdout)["profile"]
    assert not any("least" in column for column in profile["columns"])
    shown = json.loads(anon("init", "table.parquet", *FLAGS, "--json", "--show-values").stdout)["profile"]
    assert {"name": "age", "least": "0", "most": "92"}.items() <= shown["columns"][2].items()


# What is proposed


def test_each_column_has_the_role_that_it_looks_like(here: Path) -> None:
    pq.write_table(
        people(cost=[row * 1.5 for row in range(ROWS)], lists=[[row] for row in range(ROWS)]), "table.parquet"
    )
    roles = {name: each["role"] for name, each in proposal().items()}
    assert roles == {
        "name": "identifier", "age": "quasi-identifier", "sex": "quasi-identifier", "zip": "quasi-identifier",
        "born": "quasi-identifier", "smokes": "quasi-identifier", "children": "quasi-identifier",
        "disease": "sensitive", "country": "drop", "cost": "quasi-identifier", "lists": "drop",
    }  # fmt: skip


def test_a_key_is_an_identifier(here: Path) -> None:
    pq.write_table(people(), here / "table.parquet")
    assert proposal("--individual", "row", "--sensitive", "disease", "--yes")["person_id"]["role"] == "identifier"


@pytest.mark.parametrize("as_text", [True, False])
def test_a_zip_code_that_lost_its_leading_zero_is_pointed_out(here: Path, as_text: bool) -> None:
    """CSV keeps leading zeros; a frame of numbers has lost them. The config runs all the same."""
    table = people()
    codes = [row * 13 % 40 * 250 + 1000 for row in range(ROWS)]  # 1000 ... 10750
    column = pa.array([f"{code:05}" if as_text else code for code in codes])
    pa.csv.write_csv(table.set_column(table.column_names.index("zip"), "zip", column), here / "table.csv")
    found = proposal(table="table.csv")["zip"]
    assert bool(found["notes"]) != as_text
    assert as_text or "lost its leading zeros" in found["notes"][0]
    assert anon("init", "table.csv", *FLAGS, "--out", "c.yaml").exit_code == 0
    builder = load(here / "c.yaml").columns.quasi_identifiers["zip"]
    assert (builder.kind, builder.code_length) == ("digits", None if as_text else 5)
    assert anon("run", "c.yaml").exit_code == 0


def test_flags_overrule_what_the_data_speaks_for(here: Path) -> None:
    pq.write_table(people(), here / "table.parquet")
    found = proposal(*FLAGS, "--keep", "children", "--drop", "age", "--identifier", "zip", "--quasi-identifier", "name")
    assert [found[name]["role"] for name in ("children", "age", "zip", "name")] == [
        "keep", "drop", "identifier", "quasi-identifier"
    ]  # fmt: skip


def test_rows_alone_are_counted_for_columns_pairs_and_growing_sets(here: Path) -> None:
    rows = 120
    pq.write_table(pa.table({"a": [r % 10 for r in range(rows)], "b": [r % 12 for r in range(rows)],
                             "c": [r % 4 for r in range(rows)], "d": ["x" if r else "y" for r in range(rows)]}),
                   here / "table.parquet")  # fmt: skip
    profile = json.loads(anon("init", "table.parquet", "--json").stdout)["profile"]
    assert [column["rows_alone"] for column in profile["columns"]] == [0, 0, 0, 1]
    alone = {tuple(pair["columns"]): pair["rows_alone"] for pair in profile["pairs"]}
    pairs = [(r % 10, r % 12) for r in range(rows)]
    assert alone["a", "b"] == sum(pairs.count(pair) == 1 for pair in pairs)
    grown = [each["rows_alone"] for each in profile["growing"]]
    assert grown == sorted(set(grown)) and profile["growing"][0]["columns"] == profile["pairs"][0]["columns"]


# What only people know


def test_what_cannot_be_seen_must_be_answered(here: Path) -> None:
    pq.write_table(people(), here / "table.parquet")
    done = anon("init", "table.parquet", "--out", "c.yaml")
    assert done.exit_code == 2
    assert all(flag in done.stderr for flag in ("--individual row", "--sensitive COLUMN", "--yes", "'person_id'"))
    assert not (here / "c.yaml").exists()


def test_json_without_answers_gives_the_profile_and_what_is_open(here: Path) -> None:
    pq.write_table(people(), here / "table.parquet")
    told = json.loads(anon("init", "table.parquet", "--json").stdout)
    assert told["unanswered"] == ["--individual", "--sensitive"] and told["profile"]["rows"] == ROWS


@pytest.mark.parametrize("row", ["Jones,Mary,02139,HIV", "mary@example.org,x,y,z", "Jones,1970-02-03,x,y"])
@pytest.mark.parametrize("options", [[], ["--json"], ["--sensitive", "H status"]])
def test_a_first_row_of_data_is_neither_written_nor_told(here: Path, row: str, options: list[str]) -> None:
    (here / "table.csv").write_text("\n".join([row, *["Miller,Ann,02138,Flu", "Smith,Mary,02139,HIV"] * 5]))
    asked = ["table.csv", "--individual", "row", "--sensitive", "illness", "--yes", "--out", "c.yaml"]
    done = anon("init", *asked, *options)
    assert done.exit_code == 2 and "'column4'" in done.stderr
    assert not [value for value in row.split(",") if value in done.stdout + done.stderr and len(value) > 1]
    assert not (here / "c.yaml").exists()


def test_names_that_look_like_data_are_taken_if_values_may_be_shown(here: Path) -> None:
    years = {"2022": list(range(40)), "2023": list(range(40)), "town": ["a", "b"] * 20}
    pq.write_table(pa.table(years), here / "table.parquet")
    asked = ("init", "table.parquet", "--individual", "row", "--no-sensitive", "--yes")
    assert (anon(*asked).exit_code, anon(*asked, "--show-values").exit_code) == (2, 0)


def test_visits_are_not_taken_for_people(here: Path) -> None:
    table = people()
    visits = pa.array([f"P{row // 2:05}" for row in range(ROWS)])
    pq.write_table(table.set_column(0, "person_id", visits), here / "table.parquet")
    assert anon("init", "table.parquet", *FLAGS, "--out", "c.yaml").exit_code == 0
    columns = load(here / "c.yaml").columns
    assert (columns.individual, columns.rows.keep) == ("person_id", "last")
    done = anon("init", "table.parquet", *FLAGS, "--rows", "multiset")  # rows of a person agree on nothing
    assert (done.exit_code, done.stdout) == (2, "") and "200 rows that repeat an individual" in done.stderr


MISTAKES: dict[str, tuple[list[str], str]] = {
    "a column that is not there": (["--sensitive", "diseases"], "did you mean 'disease'?"),
    "a column in two roles": (["--sensitive", "age", "--keep", "age"], "a second time"),
    "both answers about sensitive columns": (["--sensitive", "age", "--no-sensitive"], "one of the two"),
    "k of one": (["--k", "1"], "--k"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_exit_2(here: Path, name: str) -> None:
    flags, word = MISTAKES[name]
    pq.write_table(people(), here / "table.parquet")
    done = anon("init", "table.parquet", "--individual", "row", "--yes", *flags)
    assert (done.exit_code, done.stdout) == (2, "") and word in done.stderr


def test_no_table_is_exit_5(here: Path) -> None:
    assert anon("init", "nothing.parquet", *FLAGS).exit_code == 5


def test_a_file_is_replaced_only_when_told_to(here: Path) -> None:
    pq.write_table(people(), here / "table.parquet")
    (here / "c.yaml").write_text("mine", encoding="utf-8")
    assert anon("init", "table.parquet", *FLAGS, "--out", "c.yaml").exit_code == 2
    assert (here / "c.yaml").read_text(encoding="utf-8") == "mine"
    assert anon("init", "table.parquet", *FLAGS, "--out", "c.yaml", "--overwrite").exit_code == 0
    assert load(here / "c.yaml") and not [path for path in here.iterdir() if path.name.startswith(".")]


# A database


FLAGS = ("--individual", "person_id", "--sensitive", "disease", "--yes")


def test_a_query_on_a_database_becomes_the_source_of_a_config_that_runs(here: Path) -> None:
    with duckdb.connect(here / "house.db") as con:
        con.register("given", people())
        con.execute("CREATE TABLE visits AS SELECT *, [1] AS listed FROM given")
    query = 'SELECT *\nFROM visits  -- "all"'
    done = anon("init", "house.db", "--query", query, *FLAGS, "--out", "sub.yaml")
    assert done.exit_code == 0, done.stderr
    config = load(here / "sub.yaml")
    assert config.source.duckdb is not None and config.source.duckdb.query == query
    assert "listed" not in config.columns.published()
    assert anon("run", "sub.yaml").exit_code == 0
    assert (here / "house-release" / "release.parquet").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("postgresql://me@127.0.0.1:1/db",), "--query: found nothing"),
        (("postgresql://me:secret@127.0.0.1:1/db", "--query", "SELECT 1"), "the password as ${NAME}"),
        (("postgresql://me:${NOT_SET_HERE}@127.0.0.1:1/db", "--query", "SELECT 1"), "NOT_SET_HERE"),
    ],
)
def test_a_database_needs_a_query_and_keeps_its_password_in_the_environment(
    here: Path, arguments: tuple[str, ...], words: str
) -> None:
    done = anon("init", *arguments, *FLAGS, "--out", "c.yaml")
    assert done.exit_code == 2 and words in done.stderr and "secret" not in done.stderr
    assert list(here.iterdir()) == []


def test_a_database_that_does_not_answer_is_exit_5(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PW_OF_THE_TEST", "verysecret")
    dsn = "postgresql://me:${PW_OF_THE_TEST}@127.0.0.1:1/db"
    done = anon("init", dsn, "--query", "SELECT 1", *FLAGS, "--out", "c.yaml")
    assert done.exit_code == 5 and "verysecret" not in done.stderr and list(here.iterdir()) == []


# On a terminal


def test_questions_have_the_proposal_as_default(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_init.InitOptions, "interactive", property(lambda asked: True))
    pq.write_table(people(), here / "table.parquet")
    # who (first a slip), what, then the roles of eight columns: the fourth is told otherwise
    said = ["persons", "person_id", "disease", "", "", "", "drop", "", "", "", ""]
    done = anon("init", "table.parquet", "--review", "--out", "c.yaml", input="\n".join(said) + "\n")
    assert done.exit_code == 0, done.stderr
    columns = load(here / "c.yaml").columns
    assert columns.individual == "person_id" and list(columns.sensitive) == ["disease"]
    assert list(columns.quasi_identifiers) == ["age", "sex", "born", "smokes", "children"]
    assert "there is no column 'persons'" in done.stderr


def test_an_answer_that_cannot_be_is_asked_for_again(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_init.InitOptions, "interactive", property(lambda asked: True))
    pq.write_table(people().select(["sex", "disease", "age"]), here / "table.parquet")
    said = ["wat", "row", "diseases", "disease", "wat", "", ""]
    done = anon("init", "table.parquet", "--review", "--out", "c.yaml", input="\n".join(said) + "\n")
    assert done.exit_code == 0, done.stderr
    assert load(here / "c.yaml").columns.individual == "row"
    assert "there is no column 'diseases'" in done.stderr and "one of identifier, quasi-identifier" in done.stderr


def test_roles_of_a_review_that_a_run_would_refuse_are_asked_for_again(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All values of a person can be published of one sensitive column, not of two."""
    monkeypatch.setattr(cli_init.InitOptions, "interactive", property(lambda asked: True))
    visits = {"person": [n // 2 for n in range(80)], "sex": ["FM"[n // 2 % 2] for n in range(80)]}
    visits |= {"drug": [f"d{n % 5}" for n in range(80)], "disease": [f"s{n % 3}" for n in range(80)]}
    pq.write_table(pa.table(visits), here / "table.parquet")
    flags = ("--individual", "person", "--sensitive", "disease", "--rows", "multiset", "--out", "c.yaml")
    said = ["quasi-identifier", "sensitive", "quasi-identifier", "drop"]
    done = anon("init", "table.parquet", "--review", *flags, input="\n".join(said) + "\n")
    assert done.exit_code == 0, done.stderr
    assert done.stderr.count("found 2 columns, and 40 rows that repeat an individual") == 1
    columns = load(here / "c.yaml").columns
    assert list(columns.sensitive) == ["disease"] and list(columns.quasi_identifiers) == ["sex"]


def test_two_answers_are_enough(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_init.InitOptions, "interactive", property(lambda asked: True))
    pq.write_table(people(), here / "table.parquet")
    done = anon("init", "table.parquet", "--out", "c.yaml", input="\n\n")
    assert done.exit_code == 0, done.stderr
    columns = load(here / "c.yaml").columns
    assert columns.individual == "person_id" and list(columns.sensitive) == ["disease"]
    assert anon("run", "c.yaml").exit_code == 0


def test_whoever_ends_the_questions_with_ctrl_d_has_interrupted(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_init.InitOptions, "interactive", property(lambda asked: True))
    pq.write_table(people(), here / "table.parquet")
    done = anon("init", "table.parquet", "--out", "c.yaml", input="person_id\n")
    assert done.exit_code == 130 and "error: interrupted" in done.stderr
    assert not (here / "c.yaml").exists()


def test_a_terminal_is_asked(here: Path) -> None:
    pq.write_table(people().select(["sex", "disease", "age"]), here / "table.parquet")
    (here / "anon.yaml").touch()
    command = [sys.executable, "-m", "anon", "init", "table.parquet"]
    leader, follower = pty.openpty()
    asked = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, cwd=here)
    os.close(follower)
    answers = {"Who is a row": "row\n", "may nobody learn": "disease\n"}
    seen, until = "", time.monotonic() + 60
    while time.monotonic() < until and asked.poll() is None:
        if select.select([leader], [], [], 0.2)[0]:
            try:
                seen += os.read(leader, 4096).decode()
            except OSError:
                break
        for question in [question for question in answers if question in seen]:
            os.write(leader, answers.pop(question).encode())
    assert asked.wait(30) == 0
    os.close(leader)
    assert (here / "anon.yaml").read_text() == ""
    assert list(load(here / "anon-2.yaml").columns.quasi_identifiers) == ["sex", "age"]


# Names


names = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=12).filter(
    lambda name: "\0" not in name
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(names, min_size=3, max_size=6, unique_by=str.lower))
def test_columns_of_any_name_come_back_from_the_config(tmp_path: Path, columns: list[str]) -> None:
    shape = Shape(shortest=1, longest=2)
    profile = Profile(50, [ColumnProfile(name, "VARCHAR", "text", 0, 7, 0, shape) for name in columns])
    answers = Answers("row", (columns[0],) if "${" not in columns[0] else (), {})
    chosen = propose(profile, answers)
    if not any(each.role == "quasi-identifier" for each in chosen):
        return
    out = tmp_path / "c.yaml"
    out.write_text(as_yaml(profile, answers, chosen, "table.parquet", out), encoding="utf-8")
    named = load(out).columns
    assert set(named.sensitive) == set(answers.sensitive)
    assert list(named.quasi_identifiers) == [each.name for each in chosen if each.role == "quasi-identifier"]
