"""Ten files as insurers, hospitals and statistics offices really have them, each with several troubles at once: old
encodings, decimal commas, national dates, null markers, codes with leading zeros, repeated people, direct identifiers
in three languages. `MESSY` lists them with the answers that a user would give."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from tests.helpers.workbook import write_workbook

Row = dict[str, Any]

GERMAN = (["Jürgen", "Käthe", "Sören", "Ulrike", "Björn", "Gisela"], ["Müller", "Weiß", "Schröder", "Köhler", "Groß"])
FRENCH = (["Zoé", "Benoît", "François", "Hélène", "Loïc", "Inès"], ["Lefèvre", "Garçon", "Bénard", "Dupont", "Noël"])
ENGLISH = (["Mary", "Owen", "Priya", "Jack", "Chloe", "Liam"], ["O'Brien", "Smith", "Patel", "Taylor", "Walsh"])
DIAGNOSES = ["E11.9", "I10", "J45.0", "F32.1", "M54.5", "C50.9", "K21.0", "N18.3"]


@dataclass(frozen=True)
class Messy:
    """A messy file: what writes it to a folder and returns its rows with the texts that identify people, and the
    answers to the questions of `anon init`."""

    write: Callable[[Path], tuple[list[Row], set[str]]]
    individual: str | None  # None: `anon init` proposes it
    sensitive: str
    correction: tuple[str, str] | None = None  # of a cell, which is an answer too

    def answers(self) -> list[str]:
        individual = ["--individual", self.individual] if self.individual else []
        return [*individual, "--sensitive", self.sensitive]


def born(rng: random.Random) -> date:
    return date(1935, 1, 1) + timedelta(days=rng.randrange(27_000))


def name_of(rng: random.Random, names: tuple[list[str], list[str]]) -> tuple[str, str]:
    return rng.choice(names[0]), rng.choice(names[1])


def delimited(rows: list[Row], delimiter: str = ",", quoting: int = csv.QUOTE_MINIMAL, header: bool = True) -> str:
    sink = io.StringIO()
    writer = csv.writer(sink, delimiter=delimiter, quoting=quoting, lineterminator="\r\n")  # type: ignore[arg-type]
    if header:
        writer.writerow(rows[0])
    writer.writerows(row.values() for row in rows)
    return sink.getvalue()


def comma(number: float, thousands: bool = False) -> str:
    """Return a number as Germans write it."""
    text = f"{number:,.2f}" if thousands else f"{number:.2f}"
    return text.translate(str.maketrans(",.", ".,"))


def texts(rows: list[Row], *columns: str) -> set[str]:
    return {str(row[column]) for row in rows for column in columns}


def german_visits(folder: Path) -> tuple[list[Row], set[str]]:
    """Several visits per patient in Windows-1252, with an insurance number that repeats."""
    rng, rows = random.Random(1), []
    for _ in range(300):
        first, last = name_of(rng, GERMAN)
        person = {
            "Versichertennr": f"{rng.choice('ABCDEFG')}{rng.randrange(10**8, 10**9)}",
            "Nachname": last,
            "Vorname": first,
            "Geburtsdatum": born(rng).strftime("%d.%m.%Y"),
            "Geschlecht": rng.choice("mwd" + "mw" * 30),
            "PLZ": f"{rng.choice(['01067', '04109', '10115', '80331'])}",
        }
        for _ in range(rng.randrange(1, 4)):
            visited = date(2024, 1, 1) + timedelta(days=rng.randrange(366))
            rows.append(
                person
                | {
                    "Aufnahme": visited.strftime("%d.%m.%Y"),
                    "Diagnose": rng.choice(DIAGNOSES),
                    "Kosten": comma(rng.uniform(80, 9000)) if rng.random() > 0.02 else "k.A.",
                }
            )
    rng.shuffle(rows)
    (folder / "besuche.csv").write_bytes(delimited(rows, ";").encode("cp1252"))
    return rows, texts(rows, "Versichertennr", "Nachname", "Vorname")


def french_insured(folder: Path) -> tuple[list[Row], set[str]]:
    """One row per insured person in ISO-8859-15, with a euro sign and post codes that begin with zeros."""
    rng, rows = random.Random(2), []
    for _ in range(600):
        first, last = name_of(rng, FRENCH)
        rows.append(
            {
                "Nom": last,
                "Prénom": first,
                "N° sécurité sociale": f"{rng.choice('12')}{rng.randrange(10**13, 10**14)}",
                "Date de naissance": born(rng).strftime("%d/%m/%Y"),
                "Sexe": rng.choice("HF"),
                "Code postal": rng.choice(["01000", "06000", "13001", "75011", "69003"]),
                "Forfait": rng.choice(["base 20 €", "confort 45 €", "premium 80 €"]),
                "Maladie": rng.choice(["diabète", "hypertension", "asthme", "dépression", "N/A"]),
            }
        )
    (folder / "assures.csv").write_bytes(delimited(rows, ";").encode("iso8859-15"))
    return rows, texts(rows, "Nom", "Prénom", "N° sécurité sociale")


def english_claims(folder: Path) -> tuple[list[Row], set[str]]:
    """Claims exported as UTF-16 with tabs and American dates."""
    rng, rows = random.Random(3), []
    for number in range(700):
        first, last = name_of(rng, ENGLISH)
        rows.append(
            {
                "Claim No": 500_000 + number,
                "Member Name": f"{first} {last}",
                "SSN": f"{rng.randrange(100, 900)}-{rng.randrange(10, 99)}-{rng.randrange(1000, 9999)}",
                "DOB": born(rng).strftime("%m/%d/%Y"),
                "Sex": rng.choice("MF"),
                "State": rng.choice(["MA", "NH", "VT", "ME"]),
                "Amount": f"{rng.uniform(20, 5000):,.2f}" if rng.random() > 0.03 else "?",
                "Condition": rng.choice(DIAGNOSES),
            }
        )
    (folder / "claims.txt").write_bytes(delimited(rows, "\t").encode("utf-16"))
    return rows, texts(rows, "Claim No", "Member Name", "SSN")


def german_staff(folder: Path) -> tuple[list[Row], set[str]]:
    """A sheet of a workbook with typed dates and a note beside it."""
    rng, rows = random.Random(4), []
    for number in range(400):
        first, last = name_of(rng, GERMAN)
        rows.append(
            {
                "Personalnummer": 4_000_000 + number,
                "Mitarbeiter": f"{last}, {first}",
                "E-Mail": f"{first[0].lower()}.{number}@firma.example",
                "Geburtstag": born(rng),
                "Abteilung": rng.choice(["Einkauf", "Vertrieb", "Technik", "Verwaltung"]),
                "Gehalt": round(rng.uniform(28_000, 95_000), 2),
                "Krankheitstage": rng.choice([0, 1, 2, 3, 5, 8, 13, None]),
            }
        )
    write_workbook(folder / "personal.xlsx", {"Mitarbeiter": [[*rows[0]], *(list(row.values()) for row in rows)]})
    return rows, texts(rows, "Personalnummer", "Mitarbeiter", "E-Mail")


def english_lab(folder: Path) -> tuple[list[Row], set[str]]:
    """Compressed JSON lines with repeated patients, missing keys and free text."""
    rng, rows = random.Random(5), []
    for _ in range(250):
        first, last = name_of(rng, ENGLISH)
        person = {"mrn": f"MRN{rng.randrange(10**6, 10**7)}", "patient": f"{first} {last}"}
        person |= {"yob": rng.randrange(1935, 2010), "gender": rng.choice(["female", "male"])}
        for _ in range(rng.randrange(1, 5)):
            taken = date(2024, 1, 1) + timedelta(days=rng.randrange(300))
            row = person | {"taken": taken.isoformat(), "test": rng.choice(["HbA1c", "LDL", "TSH", "CRP"])}
            row |= {"comment": f"seen by {rng.choice(ENGLISH[1])}, repeat in {rng.randrange(2, 30)} weeks please"}
            if rng.random() > 0.05:
                row["result"] = rng.choice(["low", "normal", "high", "critical"])
            rows.append(row)
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "lab.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    return rows, texts(rows, "mrn", "patient", "comment")


def french_census(folder: Path) -> tuple[list[Row], set[str]]:
    """A compressed file without a header, with bars and several null markers."""
    rng, rows = random.Random(6), []
    for number in range(800):
        first, last = name_of(rng, FRENCH)
        rows.append(
            {
                "column1": f"FR{number:07}",
                "column2": f"{first} {last}",
                "column3": rng.randrange(18, 95) if rng.random() > 0.02 else "-",
                "column4": rng.choice("HF"),
                "column5": rng.choice(["01", "02", "13", "75", "2A"]),
                "column6": rng.choice(["ouvrier", "employé", "cadre", "retraité", "N/A"]),
                "column7": rng.choice(["aucun", "bac", "licence", "master", "?"]),
            }
        )
    content = delimited(rows, "|", header=False).encode()
    (folder / "recensement.csv.gz").write_bytes(gzip.compress(content))
    return rows, texts(rows, "column1", "column2")


def german_accounts(folder: Path) -> tuple[list[Row], set[str]]:
    """Thousands points and decimal commas, one bad cell in a column of numbers, IBANs."""
    rng, rows = random.Random(7), []
    for number in range(500):
        first, last = name_of(rng, GERMAN)
        rows.append(
            {
                "IBAN": f"DE{rng.randrange(10, 99)}{rng.randrange(10**17, 10**18)}",
                "Kunde": f"{first} {last}",
                "Straße": f"{rng.choice(['Lindenweg', 'Hauptstraße', 'Am Bühl'])} {rng.randrange(1, 99)}",
                "Alter": rng.randrange(18, 92) if number != 321 else "zweiunddreißig",
                "Ort": rng.choice(["Köln", "Düren", "Jülich"]),
                "Einkommen": comma(rng.uniform(900, 9_900), thousands=True),
                "Score": rng.choice(["gut", "mittel", "schwach", "k.A."]),
            }
        )
    (folder / "konten.csv").write_bytes(b"\xef\xbb\xbf" + delimited(rows, ";").encode())
    return rows, texts(rows, "IBAN", "Kunde", "Straße")


def english_quoted(folder: Path) -> tuple[list[Row], set[str]]:
    """Quoted fields with line breaks and commas, zip codes with leading zeros, phone numbers."""
    rng, rows = random.Random(8), []
    for _ in range(500):
        first, last = name_of(rng, ENGLISH)
        rows.append(
            {
                "full_name": f"{last}, {first}",
                "address": f"{rng.randrange(1, 300)} High St,\nFlat {rng.randrange(1, 20)}",
                "phone": f"+44 20 {rng.randrange(10**6, 10**7)}",
                "zip": rng.choice(["02138", "02139", "02140", "03031"]),
                "age": rng.randrange(16, 91),
                "smoker": rng.choice(["yes", "no", "N/A"]),
                "illness": rng.choice(["flu", "measles", "hiv", "asthma", ""]),
            }
        )
    (folder / "survey.csv").write_bytes(delimited(rows, ",", csv.QUOTE_ALL).encode())
    return rows, texts(rows, "full_name", "address", "phone")


def french_stays(folder: Path) -> tuple[list[Row], set[str]]:
    """A compressed hospital file in which people repeat and disagree about where they live."""
    rng, rows = random.Random(9), []
    for _ in range(260):
        first, last = name_of(rng, FRENCH)
        person = {"IPP": rng.randrange(8 * 10**6, 9 * 10**6), "Patient": f"{last} {first}",
                  "Naissance": born(rng).strftime("%d/%m/%Y"), "Sexe": rng.choice(["M", "F"])}  # fmt: skip
        for _ in range(rng.randrange(1, 4)):
            entered = date(2023, 1, 1) + timedelta(days=rng.randrange(600))
            rows.append(
                person
                | {
                    "Commune": rng.choice(["Évry", "Nîmes", "Besançon"]),
                    "Entrée": entered.strftime("%d/%m/%Y"),
                    "Coût": comma(rng.uniform(100, 20_000)),
                    "Motif": rng.choice(["urgence", "programmé", "transfert"]),
                }
            )
    with pa.output_stream(folder / "sejours.csv.zst", compression="zstd") as file:
        file.write(delimited(rows, ";").encode())
    return rows, texts(rows, "IPP", "Patient")


def english_wide(folder: Path) -> tuple[list[Row], set[str]]:
    """An Arrow file of 45 columns, most of them of no use to anybody who wants to single people out."""
    rng, rows = random.Random(10), []
    for number in range(500):
        first, last = name_of(rng, ENGLISH)
        row: Row = {
            "employee": f"{first} {last}",
            "staff_id": f"S{number:05}",
            "mobile": f"07{rng.randrange(10**8, 10**9)}",
        }
        row |= {"age": rng.randrange(18, 67), "sex": rng.choice("FM"), "site": rng.choice(["Leeds", "York", "Hull"])}
        row |= {"grade": rng.choice("ABCDE"), "sick_reason": rng.choice(["back", "stress", "flu", "none"])}
        row |= {f"flag_{index}": rng.random() < 0.5 for index in range(30)}
        row |= {f"score_{index}": rng.randrange(5) for index in range(7)}
        rows.append(row)
    pl.DataFrame(rows).write_ipc(folder / "staff.arrow")
    return rows, texts(rows, "employee", "staff_id", "mobile")


MESSY = {  # file: what writes it, and the two answers of a user
    "besuche.csv": Messy(german_visits, None, "Diagnose"),
    "assures.csv": Messy(french_insured, "row", "Maladie"),
    "claims.txt": Messy(english_claims, "row", "Condition"),
    "personal.xlsx": Messy(german_staff, "row", "Krankheitstage"),
    "lab.jsonl.gz": Messy(english_lab, None, "result"),
    "recensement.csv.gz": Messy(french_census, "row", "column6"),
    "konten.csv": Messy(german_accounts, None, "Score", correction=("zweiunddreißig", "32")),
    "survey.csv": Messy(english_quoted, "row", "illness"),
    "sejours.csv.zst": Messy(french_stays, None, "Motif"),
    "staff.arrow": Messy(english_wide, "row", "sick_reason"),
}
