"""`anon init --yes` never writes a config that publishes who people are: names, keys, addresses, numbers and free text
are recognized by name and content, repeated people by their rows, whatever kind the source is of."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from datetime import date, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from anon.cli.app import app
from anon.config import load
from anon.profile import columns as profiling

FIRST, LAST = ["Mary", "Ann", "Rosa", "Ida", "John", "Omar"], ["Jones", "Meyer", "Costa", "Novak", "Silva"]
DISEASES = [f"disease {number}" for number in range(40)]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def anon(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def visits(number: str = "patient_no", each: int = 14) -> pa.Table:
    """120 patients with some visits each; every patient has a number that looks like nothing else."""
    rng, rows = random.Random(5), []
    for patient in range(120):
        about = {
            number: 770_000 + patient * 7,
            "first": rng.choice(FIRST),
            "last": rng.choice(LAST),
            "born": date(1940, 1, 1) + timedelta(days=rng.randrange(23_000)),
            "sex": rng.choice("FM"),
            "zip": f"021{rng.randrange(10):02}",
        }
        few = rng.sample(DISEASES, 2)
        rows += [
            about | {"visited": date(2023, 1, 1) + timedelta(days=rng.randrange(300)), "diagnosis": rng.choice(few)}
            for _ in range(each)
        ]
    return pa.Table.from_pylist(rows)


def write(table: pa.Table, kind: str) -> list[str]:
    """The table as a source of a kind, and the arguments that name it."""
    if kind == "csv":
        pa.csv.write_csv(table, "table.csv")
    elif kind == "parquet":
        pq.write_table(table, "table.parquet")
    else:
        with duckdb.connect("table.duckdb") as con:
            con.register("given", table)
            con.execute("CREATE TABLE visits AS SELECT * FROM given")
        return ["table.duckdb", "--query", "SELECT * FROM visits"]
    return [f"table.{kind}"]


@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb"])
@pytest.mark.parametrize("number", ["patient_no", "nr", "code"])
def test_visits_never_publish_numbers_or_names(here: Path, kind: str, number: str) -> None:
    done = anon("init", *write(visits(number), kind), "--sensitive", "diagnosis", "--yes", "--out", "c.yaml")
    assert done.exit_code == 0, done.stderr
    columns = load(here / "c.yaml").columns
    assert (columns.individual, columns.rows.keep, columns.rows.by) == (number, "last", "visited")
    assert columns.identifiers == ["first", "last"]
    done = anon("run", "c.yaml")
    assert done.exit_code == 0, done.stderr
    for file in (here / "table-release").rglob("*.parquet"):
        for column in pq.read_table(file).columns:
            assert not {str(value) for value in column.to_pylist()} & {*FIRST, *LAST, "770000", "770007"}


@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb"])
def test_rows_are_not_people_beside_a_person_key(here: Path, kind: str) -> None:
    source, flags = (
        write(visits(), kind),
        ["--individual", "row", "--sensitive", "diagnosis", "--yes", "--out", "c.yaml"],
    )
    done = anon("init", *source, *flags)
    assert done.exit_code == 2 and "--individual patient_no" in done.stderr and not (here / "c.yaml").exists()
    assert anon("init", *source, *flags, "--identifier", "patient_no").exit_code == 2
    assert anon("init", *source, *flags, "--drop", "patient_no").exit_code == 0
    assert "patient_no" not in load(here / "c.yaml").columns.identifiers


def test_a_person_key_with_gaps_is_asked_for(here: Path) -> None:
    table = visits()
    holes = pa.array([None if row == 3 else value.as_py() for row, value in enumerate(table["patient_no"])])
    pq.write_table(table.set_column(0, "patient_no", holes), "table.parquet")
    done = anon("init", "table.parquet", "--sensitive", "diagnosis", "--yes")
    assert done.exit_code == 2 and "missing in 1 row" in done.stderr and "complete these rows" in done.stderr


DIRECT: dict[str, Any] = {
    "nachname": lambda row: ["Abt", "Bode", "Ciupek"][row % 3],
    "Imię": lambda row: ["Bolko", "Cezar", "Dobrawa"][row % 3],
    "Prénom": lambda row: ["Aude", "Basile"][row % 2],
    "achternaam": lambda row: ["de Aa", "Buur"][row % 2],
    "apellidos": lambda row: ["Abad", "Bueno"][row % 2],
    "cognome": lambda row: ["Abate", "Bruno"][row % 2],
    "who": lambda row: f"{chr(65 + row % 26)}{'aeiou'[row % 5]}l{'aeiou'[row % 7 % 5]}n Qa{'bcdfg'[row % 5]}u",
    "doctor": lambda row: FIRST[row % 6],
    "contact": lambda row: f"p{row % 70}@example.org",
    "reach": lambda row: f"+49 30 {100_000 + row % 90}",
    "reach_digits": lambda row: 4_930_100_000 + row % 90,
    "bank": lambda row: f"DE89 3704 0044 0532 0130 {row % 90:02}",
    "policy": lambda row: f"A{123_456_000 + row % 90}",
    "lives": lambda row: f"{'ABC'[row % 3]}lte Straße {row % 40}",
    "remark": lambda row: f"came in with a cough on day {row % 30}",
    "kundennummer": lambda row: row % 90,
    "running": lambda row: row,
    "notes": lambda row: "long " * 40 + "ab"[row % 2],
    "wide": lambda row: f"x{row % 350}-{row % 11}",
}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_what_identifies_people_is_never_proposed_for_publication(here: Path, kind: str) -> None:
    rng = random.Random(8)
    rows = range(700)
    table = {name: [make(rng.randrange(10_000)) for _ in rows] for name, make in DIRECT.items()}
    table |= {"running": list(rows), "sex": [rng.choice("FM") for _ in rows], "age": [rng.randrange(91) for _ in rows]}
    table |= {
        "town": [f"Town{rng.choice('abcdefghijk')}" for _ in rows],
        "job": [f"job {rng.randrange(9)}" for _ in rows],
    }
    source = write(pa.table(table), kind)
    done = anon("init", *source, "--individual", "row", "--no-sensitive", "--yes", "--out", "c.yaml")
    assert done.exit_code == 0, done.stderr
    assert set(load(here / "c.yaml").columns.published()) == {"sex", "age", "town", "job"}
    text = (here / "c.yaml").read_text(encoding="utf-8")
    assert all(f"{name}: " in text or f"- {name}" in text or f'"{name}"' in text for name in DIRECT)


def test_a_sensitive_column_that_looks_like_an_identifier_is_pointed_out(here: Path) -> None:
    rows = 300
    table = {"sex": ["FM"[row % 2] for row in range(rows)], "remark": [DIRECT["remark"](row) for row in range(rows)]}
    done = anon("init", *write(pa.table(table), "parquet"), "--individual", "row", "--sensitive", "remark", "--yes")
    assert done.exit_code == 0 and "# check it before you publish it: free text" in done.stdout


def tables() -> dict[str, dict[str, list[Any]]]:
    rng, rows = random.Random(2), range(180)
    return {
        "a date of birth that is nearly unique": {
            "born": [date(1930, 1, 1) + timedelta(days=rng.randrange(25_000)) for _ in rows],
            "sex": [rng.choice("FM") for _ in rows],
            "zip": [f"{rng.randrange(9) + 10_000}" for _ in rows],
        },
        "balanced": {"a": [row % 10 for row in rows], "b": [row % 12 for row in rows], "c": [row % 2 for row in rows]},
        "nulls": {
            "a": [None if row % 3 else row for row in rows],
            "b": [None if row % 2 else float(row % 17) for row in rows],
            "c": ["x" if row else "y" for row in rows],
        },
        "unique beside constant pairs": {"a": [row / 7 for row in rows], "b": [row // 90 for row in rows]},
    }


@pytest.mark.parametrize("name", tables())
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_shares_told_are_those_of_a_count_by_hand(here: Path, name: str, kind: str) -> None:
    table = tables()[name]
    rows = list(zip(*table.values()))
    told = json.loads(anon("init", *write(pa.table(table), kind), "--json").stdout)
    known = [each["name"] for each in told["proposal"] if each["role"] == "quasi-identifier"]
    profile = told["profile"]

    def alone(columns: list[str]) -> int:
        at = [list(table).index(column) for column in columns]
        counts = Counter(tuple(row[each] for each in at) for row in rows)
        return sum(count == 1 for count in counts.values())

    shown = [*profile["pairs"], *profile["growing"], *([profile["together"]] if profile["together"] else [])]
    assert {tuple(sorted(pair["columns"])) for pair in profile["pairs"]} == set(combinations(sorted(known), 2))
    for each in shown:
        assert each["rows_alone"] == alone(each["columns"])
    assert max(each["rows_alone"] for each in shown) == alone(known)


BOMB = r"""
import pathlib, re, sys
from anon.cli.app import app
try:
    app(sys.argv[1:])
finally:
    peak = re.search(r"VmHWM:\s+(\d+)", pathlib.Path("/proc/self/status").read_text())
    print(int(peak[1]) * 1024 // 10**6, file=sys.stderr)
"""


def test_huge_texts_stay_within_the_memory(here: Path) -> None:
    rows, text = 600, "x" * 1_000_000
    with pq.ParquetWriter("bomb.parquet", pa.schema({"sex": pa.string(), "note": pa.string()}), compression="zstd",
                          use_dictionary=False) as writer:  # fmt: skip
        columns = {"sex": ["FM"[row % 2] for row in range(rows)], "note": [f"{row} {text}" for row in range(rows)]}
        writer.write_table(pa.table(columns))
    command = ["init", "bomb.parquet", "--individual", "row", "--no-sensitive", "--yes", "--memory", "400MB"]
    done = subprocess.run([sys.executable, "-c", BOMB, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "note: cannot be used: its values are too large for the memory" in done.stdout
    assert "limits: {memory: 400MB}" in done.stdout
    assert int(done.stderr.split()[-1]) < 400


@pytest.mark.parametrize("size", ["much", "100MB"])
def test_a_memory_that_cannot_be_is_refused(here: Path, size: str) -> None:
    done = anon("init", *write(visits(), "parquet"), "--memory", size, "--yes")
    assert done.exit_code == {"much": 2, "100MB": 6}[size] and "memory" in done.stderr


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_are_counted_in_batches(here: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    query = profiling._Profiling._query

    def noting(self: profiling._Profiling, kind: str, columns: list[str]) -> str:
        asked.append(len(columns))
        return query(self, kind, columns)

    monkeypatch.setattr(profiling._Profiling, "_query", noting)
    table = {f"c{at}": [row * (at + 3) % 17 for row in range(200)] for at in range(600)}
    done = anon("init", *write(pa.table(table), kind), "--json")
    assert done.exit_code == 0 and asked == [250, 250, 100]


SYLLABLES = ["ka", "lo", "mi", "ren", "du", "fa", "tos", "vel", "zi", "bar", "gon", "pre"]
RNG = random.Random(21)


def word() -> str:
    return "".join(RNG.choice(SYLLABLES) for _ in range(RNG.randint(2, 3))).capitalize()


FEW_NAMES = [word() for _ in range(15)]  # that no list of names has, each repeated


def digits(form: str) -> str:
    """A number like the form, in which # stands for a digit and @ for a name."""
    return "".join(str(RNG.randrange(10)) if c == "#" else word() if c == "@" else c for c in form)


FOREIGN = {
    "de": "Patientenname Versicherter Geburtsname Kontoinhaber Angehörige Ehemann Hausarzt Betreuer",
    "fr": "nom_usage Prénoms médecin assuré conjoint titulaire",
    "es": "primer_apellido médico titular padre madre asegurado",
    "it": "cognome medico_curante intestatario nominativo assistito",
    "nl": "Voornamen geslachtsnaam huisarts cliënt verzekerde echtgenoot",
    "pl": "nazwisko_rodowe lekarz ubezpieczony pacjent opiekun",
    "en": "next_of_kin emergency_contact attending mother_maiden guardian",
}
FORMS = {
    "de": {
        "Vor- und Zuname": "@ @",
        "KVNR": "A#########",
        "Steuer-ID": "###########",
        "Hausnr": "##",
        "Wohnanschrift": "@weg ##",
        "Handynr": "0171/#######",
        "Aktenzeichen": "# Js ##/22",
        "Kfz-Kennzeichen": "B-XY ###",
        "Fallnummer": "10####",
    },
    "fr": {
        "Nom de famille": "@",
        "NIR": "#############",
        "adresse": "## rue @",
        "tél": "06 12 34 ## 10",
        "n_dossier": "1##",
        "courriel": "@@x.fr",
    },
    "es": {
        "Nombre y apellidos": "@ @",
        "DNI": "########Z",
        "domicilio": "C/ @ ##",
        "móvil": "6########",
        "historia_clinica": "5##",
    },
    "it": {
        "Cognome e nome": "@ @",
        "codice_fiscale": "RSSMRA##A##H###U",
        "cellulare": "34########",
        "residenza": "Largo @ #",
    },
    "nl": {
        "voorletters": "A.B#.",
        "BSN": "#########",
        "polisnummer": "4###",
        "woonadres": "@straat ##",
        "rekeningnr": "NL91ABNA##########",
    },
    "pl": {
        "Imię i nazwisko": "@ @",
        "PESEL": "###########",
        "nr_dowodu": "ABC######",
        "adres": "ul. @ ##",
        "nr_karty": "1##",
    },
    "en": {
        "MRN": "######",
        "plate": "AB## XYZ",
        "device_serial": "SN###",
        "badge": "1##",
        "ip_address": "10.0.#.##",
        "twitter": "@@",
    },
}


@pytest.mark.parametrize("rows", [700, 12])
@pytest.mark.parametrize("language", FOREIGN)
def test_no_language_publishes_who_people_are(here: Path, language: str, rows: int) -> None:
    """Names that no list has, in columns that only their own name gives away, and numbers, also in a tiny table."""
    table: dict[str, Any] = {name: [RNG.choice(FEW_NAMES) for _ in range(rows)] for name in FOREIGN[language].split()}
    table |= {name: [digits(form) for _ in range(rows)] for name, form in FORMS[language].items()}
    table |= {"age": [RNG.randrange(90) for _ in range(rows)], "sex": [RNG.choice("fm") for _ in range(rows)]}
    pq.write_table(pa.table(table), "table.parquet")
    done = anon("init", "table.parquet", "--individual", "row", "--no-sensitive", "--yes", "--out", "c.yaml")
    assert done.exit_code == 0, done.stderr
    assert set(load(here / "c.yaml").columns.published()) <= {"age", "sex"}


def test_names_and_birth_dates_that_repeat_together_are_people_with_several_rows(here: Path) -> None:
    rng = random.Random(3)
    people = [(rng.choice(FIRST), rng.choice(LAST), date(1940, 1, 1) + timedelta(days=97 * at)) for at in range(60)]
    rows = [dict(zip(("Rufname", "Nachname", "geboren"), people[at % 60])) for at in range(600)]
    rows = [row | {"PLZ": f"0{rng.randrange(4)}109", "Diagnose": rng.choice("abcd")} for row in rows]
    pq.write_table(pa.Table.from_pylist(rows), "table.parquet")
    done = anon("init", "table.parquet", "--individual", "row", "--sensitive", "Diagnose", "--yes", "--out", "c.yaml")
    assert done.exit_code == 2 and "--individual" in done.stderr and not (here / "c.yaml").exists()


UNCLEAR: dict[str, list[str]] = {
    "column3": ["Anneliese", "Siegbert", "Roswitha", "Ottokar", "Wiebke", "Tjark"],
    "Angeh.": ["Anneliese", "Jürgen", "Käthe", "Uwe", "Gisela", "Horst"],
    "Betreuung": ["Fr. Abt", "Hr. Bode", "Dr. Ciupek", "Frau Dorn"],
    "Uwagi": ["p. Abramek dzwonił", "p. Bolek prosi", "dr Cichy"],
}


@pytest.mark.parametrize("name", UNCLEAR)
def test_names_under_a_name_that_says_nothing_are_not_published(here: Path, name: str) -> None:
    rng, rows = random.Random(4), range(400)
    table = {name: [rng.choice(UNCLEAR[name]) for _ in rows], "age": [rng.randrange(91) for _ in rows]}
    pq.write_table(pa.table(table | {"Hauptdiagnose": [rng.choice("abcd") for _ in rows]}), "table.parquet")
    done = anon("init", "table.parquet", "--individual", "row", "--yes", "--out", "c.yaml")
    assert done.exit_code == 0, done.stderr
    columns = load(here / "c.yaml").columns
    assert name not in columns.published() and list(columns.sensitive) == ["Hauptdiagnose"]


def test_a_name_of_a_column_with_line_ends_stays_a_name(here: Path) -> None:
    rows = range(60)
    table = {
        "ICD\ncode": [["E11.9", "I10.0", "J45.0"][row % 3] for row in rows],
        "zip\u2028code": [f"0{row % 4}109" for row in rows],
    }
    pq.write_table(pa.table(table), "table.parquet")
    pa.csv.write_csv(pa.table(table), "table.csv")
    for name in ("table.parquet", "table.csv"):
        done = anon("init", name, "--individual", "row", "--no-sensitive", "--yes", "--out", f"{name}.yaml")
        assert done.exit_code == 0, done.stderr
        assert set(load(here / f"{name}.yaml").columns.quasi_identifiers) <= set(table)
