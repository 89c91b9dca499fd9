"""The statement with which the page begins: what was published about whom, what was dropped, what is promised and what
is not, and a verdict that is green only if no warning of severity high stands."""

from __future__ import annotations

import csv
import html
import re
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import anon
from anon.artifacts.parts import LeftOutFacts, Summary
from anon.artifacts.reading import read_report
from anon.artifacts.schema import Report
from anon.config import load
from anon.config.columns import Bands, Calendar, Digits, HierarchyFile
from anon.report.columns import configured_source
from anon.report.statement import dropped_rows, level_words, questions, statement, verdict
from anon.source import Source
from anon.source.postgres import PostgresQuery
from tests.conftest import House

PEOPLE = 480
DISEASE = [["Flu", "HIV", "Cold", "Gout"][i % 4] for i in range(PEOPLE)]
TABLE: dict[str, list[Any]] = {
    "name": [f"Person {i}" for i in range(PEOPLE)],
    "age": [20 + i * 7 % 60 for i in range(PEOPLE)],
    "zip": [None if i < 6 else f"0{2100 + i * 11 % 40}" for i in range(PEOPLE)],
    "disease": DISEASE,
    "drug": [f"drug for {each}" for each in DISEASE],
    "note": ["x"] * PEOPLE,
}
COLUMNS = {
    "identifiers": ["name"],
    "individual": "row",
    "quasi_identifiers": {"age": {"intervals": [5, 10, 20]}, "zip": {"digits": 5}},
    "sensitive": ["disease"],
}
CONFIG: dict[str, Any] = {
    "columns": COLUMNS,
    "nulls": {"quasi_identifiers": "drop"},
    "privacy": [{"k_anonymity": 4}, {"l_diversity": {"kind": "distinct", "l": 2}}],
}
LATTICE: dict[str, Any] = CONFIG | {"method": {"kind": "lattice", "suppress": "5%"}}
KEPT: dict[str, Any] = CONFIG | {"columns": COLUMNS | {"keep": ["drug"]}}


def report_and_page(house: House) -> tuple[Report, str]:
    folder = house.folder / "out-run"
    return read_report(folder), html.unescape((folder / "report.html").read_text())


def run(house: House, **changes: Any) -> tuple[Report, str]:
    house.write(pa.table(TABLE))
    told = house.cli("run", "--overwrite", **changes)
    assert told.code == 0, told.stderr
    return report_and_page(house)


def test_the_statement_names_what_was_dropped_and_why(house: House) -> None:
    report, page = run(house, **CONFIG)
    said = statement(report)
    assert said["dropped_columns"] == [
        "name (identifiers, which never leave the source)",
        "drug, note (not named in the config, not read)",
    ]
    assert said["dropped_rows"] == ["6 rows without a quasi-identifier (nulls.quasi_identifiers: drop)"]
    assert said["people"].startswith(f"{PEOPLE - 6} individuals: every row was counted as a different person")
    for line in (*said["dropped_columns"], *said["dropped_rows"], said["people"], said["known"], said["source"]):
        assert line in page


@pytest.mark.parametrize("kind", ["csv", "json", "parquet", "frame", "lazy"])
def test_columns_that_the_config_does_not_name_are_listed_whatever_the_source(house: House, kind: str) -> None:
    given = {"frame": pa.table, "lazy": pl.LazyFrame}
    if kind == "json":
        pl.DataFrame(TABLE).write_ndjson(house.folder / "table.jsonl")
        result = house.run(**CONFIG, source__path="table.jsonl")
    elif kind == "csv":
        with (house.folder / "table.csv").open("w", newline="") as file:
            csv.writer(file).writerows([TABLE, *zip(*TABLE.values())])
        result = house.run(**CONFIG, source__path="table.csv")
    else:
        house.write(pa.table(TABLE))
        result = house.run(given[kind](TABLE) if kind in given else None, **CONFIG)
    named = {each["name"]: (each["role"], each["published"]) for each in result.report["roles"]}
    assert list(named) == ["name", "age", "zip", "disease", "drug", "note"]
    assert named["name"] == ("identifier", "never leaves the source") and named["note"] == ("not named", "not read")
    assert result.report["source"].startswith("a table in memory" if kind in given else "path ")


def test_rows_that_were_suppressed_are_a_reason_of_their_own(house: House) -> None:
    house.write(pa.table(TABLE | {"age": [*TABLE["age"][:-2], 400, 500]}))
    assert house.cli("run", **LATTICE).code == 0
    report, page = report_and_page(house)
    suppressed = report.summary.left_out.rows.suppressed
    assert suppressed and f"{suppressed} rows suppressed" in page


def test_a_row_and_an_individual_are_counted_apart() -> None:
    counts = {"all": 5, "null_quasi_identifiers": 3, "null_sensitive": 0, "suppressed": 2}
    people = {"all": 3, "null_quasi_identifiers": 1, "null_sensitive": 0, "suppressed": 2}
    counts |= {"all": 14, "other_rows": 9}
    chosen = {"keep": "last", "by": "visited", "rows": 9, "individuals": 4}
    found = LeftOutFacts.model_validate({"rows": counts, "individuals": people, "one_row_each": chosen})
    assert dropped_rows(found) == [
        "3 rows without a quasi-identifier, and with them 1 individual (nulls.quasi_identifiers: drop)",
        "2 rows suppressed",
        "9 earlier rows of 4 individuals (columns.rows: keep last by visited)",
    ]


def test_the_statement_says_which_row_of_a_person_was_used(house: House) -> None:
    again = 40  # people with an earlier visit
    table = {name: [*values, *values[-again:]] for name, values in TABLE.items()}
    table["visited"] = [2] * PEOPLE + [1] * again
    house.write(pa.table(table))
    columns = COLUMNS | {"identifiers": [], "individual": "name", "rows": {"keep": "last", "by": "visited"}}
    assert house.cli("run", **CONFIG | {"columns": columns}).code == 0
    report, page = report_and_page(house)
    said = statement(report)
    assert "of several rows of a person the last by visited was used" in said["people"]
    assert said["dropped_rows"][-1] == "40 earlier rows of 40 individuals (columns.rows: keep last by visited)"
    assert "visited (chooses among the rows of a person)" in said["dropped_columns"]
    assert all(line in page for line in (said["people"], *said["dropped_rows"], *said["dropped_columns"]))


def test_ages_bands_and_padded_codes_are_in_words(house: House) -> None:
    born = [f"{1940 + i % 60}-05-0{1 + i % 9}" for i in range(PEOPLE)]
    table = pl.DataFrame(TABLE | {"age": born, "zip": [2100 + i * 11 % 40 for i in range(PEOPLE)]})
    house.write(table.with_columns(pl.col("age").str.to_date()).to_arrow())
    columns = COLUMNS | {
        "quasi_identifiers": {
            "age": {"bands": [[40, 60], [60]], "age_on": "2024-12-31"},
            "zip": {"digits": 5, "pad": 5},
        }
    }
    assert house.cli("run", **LATTICE | {"columns": columns}).code == 0
    report, page = report_and_page(house)
    bands = ["age in bands beginning at 40, 60", "age in bands beginning at 60"]
    assert report.level_names["age"] == ["age on 2024-12-31", *bands, "not published"]
    assert report.level_names["zip"][:2] == ["padded to 5 digits", "first 4 digits"]
    assert report.lattice is not None
    chosen = report.lattice.chosen.levels
    assert chosen["age"] and report.level_names["age"][chosen["age"]] in page


def test_levels_are_in_words(house: House) -> None:
    report, page = run(house, **LATTICE)
    assert report.level_names["age"] == [
        "as it is", "intervals of 5", "intervals of 10", "intervals of 20", "not published"
    ]  # fmt: skip
    assert report.level_names["zip"][1] == "first 4 digits"
    assert report.lattice is not None
    for column, level in report.lattice.chosen.levels.items():
        assert f"{column}: {level_words(report, column, level)}" in page or not level


def test_units_of_a_calendar_are_named_from_the_top_whatever_the_values_are() -> None:
    assert Calendar(calendar=["day", "month", "quarter"]).level_names() == ["day", "month", "quarter"]
    assert Digits(digits=3).level_names() == ["first 2 digits", "first digit"]
    assert Bands.model_validate({"bands": [[0, 18, 65], [18]]}).level_names() == [
        "bands beginning at 0, 18, 65",
        "bands beginning at 18",
    ]
    assert HierarchyFile(hierarchy="x.csv").level_names() == []


@pytest.mark.parametrize("changes", [CONFIG, LATTICE])
def test_the_worst_group_is_found_by_its_rows_in_the_release(house: House, changes: dict[str, Any]) -> None:
    report, page = run(house, **changes)
    rows = house.released().to_pylist()
    for entry in report.summary.criteria:
        first, last = entry.worst_rows
        labels = {(row["age"], row["zip"]) for row in rows[first - 1 : last]}
        others = {(row["age"], row["zip"]) for row in (*rows[: first - 1], *rows[last:])}
        assert len(labels) == 1 and not labels & others
        if entry.name == "k_anonymity":
            assert last - first + 1 == entry.figure
        assert f"rows {first:,} to {last:,} of the release" in page


def test_with_values_the_worst_group_is_named_by_its_labels(house: House) -> None:
    house.write(pa.table(TABLE))
    assert house.cli("run", "--show-values", **CONFIG).code == 0
    report, page = report_and_page(house)
    (entry, _) = report.summary.criteria
    first, _ = entry.worst_rows
    row = house.released().to_pylist()[first - 1]
    assert entry.worst_labels == {"age": row["age"], "zip": row["zip"]}
    assert f"age {row['age']}, zip {row['zip']}" in page


def test_a_bucketized_group_is_named_by_its_number_in_the_files(house: House) -> None:
    form = {"path": "out", "run": "out-run", "form": "bucketized"}
    report, page = run(house, **CONFIG | {"release": form})
    worst = report.summary.criteria[0]
    assert not worst.has("worst_rows") and f"Closest to its bound: group {worst.worst_group}." in page


# The verdict


def test_the_verdict_is_green_only_while_no_warning_of_severity_high_stands(house: House) -> None:
    report, page = run(house, **CONFIG)
    assert verdict(report.summary)["state"] == "safe" and 'class="verdict safe"' in page
    report, page = run(house, **KEPT)
    found = verdict(report.summary)
    assert found["state"] == "caution" and "kept_reveals" in [each.code for each in found["reasons"]]
    assert 'class="verdict caution"' in page and "criteria hold, with reservations</title>" in page
    assert "Safe: every criterion" not in page


def test_what_is_accepted_does_not_stand_but_is_in_the_statement(house: House) -> None:
    codes = ["kept_reveals", "rows_dropped"]
    accept = [{"warning": code, "reason": f"policy {code}"} for code in codes]
    report, page = run(house, **KEPT, accept=accept)
    assert verdict(report.summary)["text"].endswith("; 2 warnings accepted") and 'class="verdict safe"' in page
    assert "Accepted in the config: policy kept_reveals" in page
    (inference,) = [each for each in questions(report) if each["name"] == "Inference"]
    assert inference["state"] == "caution", "the answer to a question does not change because somebody accepts it"


def test_a_table_that_is_not_safe_is_never_anything_else() -> None:
    assert verdict(Summary.model_construct(safe=False, warnings=[]))["state"] == "unsafe"


def test_the_three_questions_have_the_figures_of_the_risk(house: House) -> None:
    report, page = run(house, **KEPT)
    single, link, infer = questions(report)
    risk = report.summary.risk
    assert [each["name"] for each in (single, link, infer)] == ["Singling out", "Linkability", "Inference"]
    assert {meaning: value for value, meaning in single["figures"]}["individuals were unique in the source"] == (
        f"{risk.unique_before:,}"
    )
    assert link["figures"][1][0] == f"{100 * risk.mean:.1f}".rstrip("0").rstrip(".") + "%"
    rows = house.released().to_pylist()
    groups: dict[tuple[Any, Any], list[str]] = {}
    for row in rows:
        groups.setdefault((row["age"], row["zip"]), []).append(row["disease"])
    largest = max(own.count(each) / len(own) for own in groups.values() for each in own)
    assert float(infer["figures"][0][0].rstrip("%")) == pytest.approx(100 * largest, abs=0.06)
    assert ("100%", "have a certain value for one who also knows drug") in infer["figures"]
    for each in (single, link, infer):
        assert each["question"] in page and each["answer"] in page


def test_the_source_is_shown_as_configured_without_passwords_and_values_of_variables() -> None:
    config = {
        "source": {"postgres": {"dsn": "postgresql://me:${PASSWORD}@host/db", "query": "SELECT *\n FROM visits"}},
        "columns": COLUMNS,
        "privacy": [{"k_anonymity": 4}],
        "release": {"path": "out"},
    }

    loaded = load(config, {"PASSWORD": "hunter2"})
    source = Source(None, [], [], [])  # type: ignore[arg-type]
    source.origin = PostgresQuery(loaded.source.postgres, loaded)  # type: ignore[arg-type]
    assert configured_source(loaded, source) == "postgres postgresql://me:***@host/db: SELECT * FROM visits"


def test_python_gets_the_same_report(house: House) -> None:
    house.write(pa.table(TABLE))
    result = anon.run(house.config(**CONFIG))
    assert result.report["roles"] == [each.to_dict() for each in report_and_page(house)[0].roles]
    assert re.fullmatch(r"path /.*table\.parquet", result.report["source"])
