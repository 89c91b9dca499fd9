"""`anon hierarchy build` and `anon hierarchy test` as a user meets them: what they print, write and refuse, and a built
file in the hands of `anon run`."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from anon.cli.app import app

SECRET = "Kowalski"
INTERVALS = ["--from", "0", "--to", "99", "--width", "5", "--width", "10"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def anon(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def build(*arguments: str) -> Result:
    return anon("hierarchy", "build", *arguments)


def written(path: Path, *lines: str) -> str:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path.name


# Building


def test_rows_go_to_stdout_without_a_file(here: Path) -> None:
    done = build("intervals", "--from", "-1", "--to", "1", "--width", "5")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "-1;-5..-1;*\n0;0-4;*\n1;0-4;*\n", "")


def test_the_open_ends_and_the_origin_are_those_of_the_builder(here: Path) -> None:
    ends = ["--origin", "1", "--top", "85", "--bottom", "18", "--out", "age.csv"]
    assert build("intervals", *INTERVALS, *ends).exit_code == 0
    rows = (here / "age.csv").read_text(encoding="utf-8").splitlines()
    assert (rows[17], rows[18], rows[21]) == ("17;<=17;<=17;*", "18;18-20;18-20;*", "21;21-25;21-30;*")
    assert (rows[84], rows[85]) == ("84;81-84;81-84;*", "85;>=85;>=85;*")


def test_what_was_written_is_summed_up(here: Path) -> None:
    done = build("intervals", *INTERVALS, "--out", "age.csv")
    assert "age.csv was written: 100 leaves, 3 levels above them" in done.stdout
    assert [line.split()[-2] for line in done.stdout.splitlines() if line.startswith("│")] == ["100", "20", "10", "1"]


def test_json_holds_the_rows_or_names_the_file(here: Path) -> None:
    written(here / "zips.txt", "02139", "02140")
    shape = {"leaves": 2, "levels": 5, "nodes_per_level": [2, 2, 1, 1, 1, 1]}
    rows = [["02139", "0213*", "021**", "02***", "0****", "*"], ["02140", "0214*", "021**", "02***", "0****", "*"]]
    assert json.loads(build("prefix", "zips.txt", "--json").stdout) == shape | {"hierarchy": rows}
    named = build("prefix", "zips.txt", "--json", "--out", "zip.csv")
    assert json.loads(named.stdout) == shape | {"file": "zip.csv"}


def test_parents_become_paths(here: Path) -> None:
    written(here / "places.csv", "Paris,France", "France,Europe", "Nauru,Oceania")
    assert build("parents", "places.csv").stdout == "Paris;France;Europe;*\nNauru;Nauru;Oceania;*\n"


def test_a_file_is_replaced_only_when_told_to(here: Path) -> None:
    written(here / "age.csv", "precious")
    refused = build("intervals", *INTERVALS, "--out", "age.csv")
    assert refused.exit_code == 2
    assert refused.stderr == "error: --out: found age.csv, which exists; expected a new file (or say --overwrite)\n"
    assert (here / "age.csv").read_text(encoding="utf-8") == "precious\n"
    assert build("intervals", *INTERVALS, "--out", "age.csv", "--overwrite").exit_code == 0
    assert (here / "age.csv").read_text(encoding="utf-8").startswith("0;0-4;0-9;*\n")


def test_a_place_that_cannot_be_written_is_refused(here: Path) -> None:
    done = build("intervals", *INTERVALS, "--out", "nowhere/age.csv")
    assert done.exit_code == 2
    assert "--out: found nowhere/age.csv: No such file or directory" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--from", "9", "--to", "1", "--width", "5"], "--from and --to: found 9 and 1"),
        (["--from", "1", "--to", "9", "--width", "5", "--width", "7"], "--width: found 5, 7; expected widths above 0"),
        (["--from", "1", "--to", "9", "--width", "0"], "--width: found 0"),
        ([*INTERVALS, "--top", "5", "--bottom", "5"], "--bottom and --top: found 5 and 5"),
        (["--from", "1", "--to", "9"], "--width"),
        (["--from", "one", "--to", "9", "--width", "5"], "--from"),
    ],
)
def test_intervals_that_make_no_hierarchy_are_refused(here: Path, arguments: list[str], words: str) -> None:
    done = build("intervals", *arguments, "--out", "age.csv")
    assert done.exit_code == 2
    assert words in done.stderr
    assert not (here / "age.csv").exists()


@pytest.mark.parametrize(
    ("kind", "lines", "words"),
    [
        ("prefix", [SECRET, f"{SECRET[:-1]}*"], "list line 2: the label (leaf) occurs again at level 1 on line 1"),
        ("prefix", [], "list without a row"),
        ("parents", [f"{SECRET},x", f"{SECRET},y"], "list line 2: the value of line 1 again"),
        ("parents", [f"{SECRET},x", SECRET], "list line 2: 1 names"),
        ("parents", [f"{SECRET},x", f"x,{SECRET}"], "list line 1: a value whose ancestors form a cycle"),
        ("parents", [f'"{SECRET},x'], "list line 1: not CSV"),
    ],
)
def test_a_mistake_in_a_list_is_told_by_its_line_and_never_quoted(
    here: Path, kind: str, lines: list[str], words: str
) -> None:
    done = build(kind, written(here / "list", *lines), "--out", "h.csv", "--json")
    assert done.exit_code == 2
    assert words in done.stderr
    assert json.loads(done.stdout)["problems"][0]["path"] == "LIST"
    assert SECRET[:-1] not in done.output
    assert not (here / "h.csv").exists()


def test_a_list_that_is_not_there_is_refused(here: Path) -> None:
    done = build("parents", "gone.csv")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "error: LIST: found gone.csv: No such file or directory; expected a readable file\n"


# Testing


@pytest.fixture
def table(here: Path) -> str:
    """A column `ward` that the file `ward.csv` covers but for one value in two rows, and a null."""
    written(here / "ward.csv", "Cardiology;Medicine;*", "Pneumology;Medicine;*", "Trauma;Surgery;*")
    values = ["Cardiology", "Cardiology", "Trauma", SECRET, SECRET, ""]
    return written(here / "table.csv", "ward,day", *(f"{value},2024-03-09" for value in values))


TREE = {"leaves": 3, "levels": 2, "nodes_per_level": [3, 2, 1]}
COVERAGE = {"values": 3, "rows": 5, "missing_values": 1, "missing_rows": 2, "unused_leaves": 1}


def on_file(*arguments: str) -> Result:
    return anon("hierarchy", "test", *arguments)


def test_a_tree_passes_with_its_counts(table: str) -> None:
    done = on_file("ward.csv")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "ward.csv is a tree: 3 leaves, 2 levels above them" in done.stdout
    assert json.loads(on_file("ward.csv", "--json").stdout) == TREE


def test_a_gap_is_counted_in_values_and_rows_and_not_quoted(table: str) -> None:
    done = on_file("ward.csv", "--on", table, "--column", "ward")
    assert done.exit_code == 2
    assert "ward: 1 of 3 distinct values, in 2 of 5 rows with a value, are not leaves" in done.stdout
    as_json = on_file("ward.csv", "--on", table, "--column", "ward", "--json")
    assert (as_json.exit_code, json.loads(as_json.stdout)) == (2, TREE | COVERAGE)
    assert SECRET not in done.output + as_json.output


def test_a_gap_is_listed_on_demand(table: str) -> None:
    asked = ("ward.csv", "--on", table, "--column", "ward", "--show-values")
    assert f'│ "{SECRET}"' in on_file(*asked).stdout
    told = json.loads(on_file(*asked, "--json").stdout)
    assert told == TREE | COVERAGE | {"missing": [{"value": SECRET, "rows": 2}]}


def test_a_long_list_of_missing_values_ends_with_a_count(table: str, here: Path) -> None:
    many = written(here / "many.csv", "ward", *(f"ward {number:02}" for number in range(50)))
    done = on_file("ward.csv", "--on", many, "--column", "ward", "--show-values")
    assert '"ward 19"' in done.stdout
    assert '"ward 20"' not in done.stdout
    assert "and 30 more; --json lists all" in done.stdout


def test_markup_in_a_value_is_shown_as_it_is(table: str, here: Path) -> None:
    odd = written(here / "odd.csv", "ward", "[red]x[/nothing]")
    assert '"[red]x[/nothing]"' in on_file("ward.csv", "--on", odd, "--column", "ward", "--show-values").stdout


def test_a_covered_column_passes(table: str, here: Path) -> None:
    covered = written(here / "covered.csv", "ward", "Trauma", "Trauma")
    done = on_file("ward.csv", "--on", covered, "--column", "ward")
    assert done.exit_code == 0
    assert "ward: all 1 distinct values in 2 rows with a value are leaves" in done.stdout
    assert "2 leaves do not occur in the column" in done.stdout


def test_numbers_and_dates_are_compared_by_their_text(here: Path) -> None:
    written(here / "h.csv", "2.5;low;*", "30;high;*", "2024-03-09;day;*")
    numbers = written(here / "t.csv", "n,d", "2.50,2024-03-09", "30.0,2024-03-09")
    assert on_file("h.csv", "--on", numbers, "--column", "n").exit_code == 0
    assert on_file("h.csv", "--on", numbers, "--column", "d").exit_code == 0


def test_a_file_that_is_not_a_tree_is_refused_with_its_line(here: Path) -> None:
    written(here / "h.csv", "a;x;p;*", "b;x;q;*")
    done = on_file("h.csv", "--json")
    assert done.exit_code == 2
    assert 'FILE: found h.csv line 2: "x" at level 1 is under "q"' in done.stderr
    assert json.loads(done.stdout)["exit_code"] == 2


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--on", "table.csv"], 2, "--column: found nothing; expected --column together with --on"),
        (["--column", "ward"], 2, "--on: found nothing; expected --on together with --column"),
        (
            ["--on", "table.csv", "--column", "wards"],
            2,
            "found column 'wards'; expected a column of the table (did you",
        ),
        (["--on", "table.csv", "--column", "zzz"], 2, "(the table has 'ward', 'day')"),
        (["--on", "gone.csv", "--column", "ward"], 5, "gone.csv: no such file"),
        (["--on", "ward.parquet", "--column", "ward"], 5, "reading ward.parquet"),
    ],
)
def test_a_table_that_cannot_be_compared_is_refused(
    table: str, here: Path, arguments: list[str], code: int, words: str
) -> None:
    written(here / "ward.parquet", "not Parquet")
    done = on_file("ward.csv", *arguments)
    assert (done.exit_code, done.stdout) == (code, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_table_without_a_header_does_not_have_its_first_row_told(here: Path) -> None:
    written(here / "h.csv", "a;*")
    written(here / "rows.csv", "HIV status positive,44", "HIV status negative,45")
    done = on_file("h.csv", "--on", "rows.csv", "--column", "HIV status")
    assert done.exit_code == 2 and "positive" not in done.stderr
    shown = on_file("h.csv", "--on", "rows.csv", "--column", "HIV status", "--show-values")
    assert 'columns: "column1"' in shown.stderr and "positive" not in shown.stderr


def test_debug_adds_the_traceback(here: Path) -> None:
    assert "Traceback" in on_file("gone.csv", "--debug").stderr


# In a run


@pytest.fixture
def config(here: Path) -> str:
    """Ages 20 to 59 with a built hierarchy that a config names."""
    assert build("intervals", *INTERVALS, "--out", "age.csv").exit_code == 0
    written(here / "people.csv", "age,illness", *(f"{20 + n % 40},{'Flu' if n % 2 else 'Asthma'}" for n in range(80)))
    return written(
        here / "config.yaml",
        "source: {path: people.csv}",
        "columns:",
        "  individual: row",
        "  quasi_identifiers: {age: {hierarchy: age.csv}}",
        "  sensitive: [illness]",
        "privacy: [{k_anonymity: {k: 10}}]",
        "release: {path: out, run: out-run, format: csv}",
    )


def test_a_built_file_is_tested_and_then_used_by_a_run(config: str, here: Path) -> None:
    assert on_file("age.csv", "--on", "people.csv", "--column", "age").exit_code == 0
    done = anon("run", config, "--json")
    assert done.exit_code == 0, done.stderr
    with (here / "out" / "release.csv").open(encoding="utf-8", newline="") as file:
        labels = {row["age"] for row in csv.DictReader(file)}
    assert labels == {f"{low}-{low + 4}" for low in range(20, 60, 5)}


def gap(config: str, here: Path, *options: str) -> tuple[Result, dict[str, Any]]:
    with (here / "people.csv").open("a", encoding="utf-8") as file:
        file.write("777,Flu\n777,Flu\n888,Flu\n")
    done = anon("run", config, "--json", *options)
    assert done.exit_code == 2
    assert not (here / "out").exists()
    return done, json.loads(done.stdout)


def test_a_run_counts_the_gap_in_values_and_rows_and_quotes_nothing(config: str, here: Path) -> None:
    done, told = gap(config, here)
    words = (
        "columns.quasi_identifiers.age.hierarchy: found 2 of 42 distinct values that are not leaves of age.csv (3 rows)"
    )
    assert words in done.stderr
    assert "missing" not in told
    assert "777" not in done.output


def test_a_run_lists_the_gap_on_demand(config: str, here: Path) -> None:
    done, told = gap(config, here, "--show-values")
    assert '  missing: "777"\n  missing: "888"\n' in done.stderr
    assert told["missing"] == ["777", "888"]


def test_a_builder_of_a_sensitive_column_is_refused_under_its_own_path(config: str, here: Path) -> None:
    text = (here / config).read_text(encoding="utf-8")
    (here / config).write_text(text.replace("[illness]", "{illness: {intervals: [5]}}"), encoding="utf-8")
    done = anon("run", config)
    assert done.exit_code == 2
    assert "columns.sensitive.illness.intervals: found 2 of 2 distinct values that are not numbers" in done.stderr
