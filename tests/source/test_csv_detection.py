"""What `anon init` finds out about a CSV file, and the evidence: nothing is guessed that the cells do not show."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from anon.cli.app import app
from anon.config import Csv
from anon.core.database import connect
from anon.errors import SourceError
from anon.source.csv_detection import Detected, detect
from anon.source.encodings import guess
from anon.source.tables import describe
from tests.source.test_csv_options import EURO, LATIN, NAMES, table, written


def detected(folder: Path, content: bytes, show_values: bool = False) -> tuple[Detected, dict[str, str]]:
    """The options of a file, and the types that its columns have by them."""
    file = folder / "table.csv"
    file.write_bytes(content)
    spill = folder / "spill"
    spill.mkdir()
    with closing(connect(10**9, 2, spill)) as database:
        _, found = detect(database, "rows", [file], spill, show_values)
        return found, describe(database, "rows")


def column(*values: str, name: str = "v", more: int = 0) -> bytes:
    """A file of one column of interest beside a number."""
    listed = [*values, *([values[-1]] * more)]
    return (f"n;{name}\n" + "".join(f"{at};{value}\n" for at, value in enumerate(listed))).encode()


@pytest.mark.parametrize(
    ("text", "encoding", "expected"),
    [
        ("plain", "ascii", "utf-8"),
        ("Müller €", "utf-8", "utf-8"),
        ("Müller €", "utf-8-sig", "utf-8"),
        ("Müller €", "utf-16", "utf-16"),
        ("name;city\nMueller;Bonn\n", "utf-16-le", "utf-16-le"),
        ("name;city\nMueller;Bonn\n", "utf-16-be", "utf-16-be"),
        ("Müller", "cp1252", "windows-1252"),
        ("Müller 5 €", "cp1252", "windows-1252"),
        ("Müller 5 €", "iso-8859-15", "iso-8859-15"),
        ("Müller, cœur", "iso-8859-15", "iso-8859-15"),
        ("Müller, cœur", "cp1252", "windows-1252"),
        ("½ Müller", "cp1252", "windows-1252"),
        ("Señor Muñoz, ¿Nº 5ª?", "cp1252", "windows-1252"),
        ("Käsepäälikkö, šakki, Jyväskylä, Äänekoski, Hämeenlinna, Pääskynen, Mäkelä", "cp1252", "windows-1252"),
        ("Wałęsa, Gdańsk, Łódź, ściąga", "cp1250", "windows-1250"),
        ("Dvořák, Plzeň, šťastný, žlutý kůň", "cp1250", "windows-1250"),
        ("Žižek, Škofja Loka, Čačak", "cp1250", "windows-1250"),
        ("Wałęsa, Gdańsk, ściąga", "iso8859-2", "iso-8859-2"),
    ],
)
def test_the_encoding_is_found_from_the_bytes(tmp_path: Path, text: str, encoding: str, expected: str) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes(text.encode(encoding))
    found = guess(file)
    assert found.label == expected and found.evidence
    assert found.name is not None and file.read_bytes().decode(found.name).removeprefix("\ufeff") == text


def test_bytes_that_are_no_character_of_a_known_encoding_are_not_guessed(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="2 bytes are no character in Windows-1252"):
        detected(tmp_path, "a;b\nMüller;gün\n".encode("cp850"))


FILES: dict[str, tuple[str, list[str], dict[str, Any]]] = {
    "german": ("cp1252", EURO, {}),
    "french": ("iso-8859-15", EURO, {"dates": "%d/%m/%Y", "thousands": "\u00a0"}),
    "swiss": ("utf-8", NAMES, {"decimal": ".", "thousands": "'"}),
    "american": ("utf-16", NAMES, {"delimiter": ",", "decimal": ".", "thousands": ",", "dates": "%m/%d/%Y"}),
    "spanish": ("latin-1", LATIN, {"delimiter": "|", "dates": "%d-%m-%Y", "quote": "'"}),
    "markers": ("utf-8-sig", NAMES, {"delimiter": "\t", "null": "k.A."}),
    "no header": ("utf-8", NAMES, {"header": False}),
}


@pytest.mark.parametrize("name", FILES)
def test_what_is_found_gives_every_column_its_type(tmp_path: Path, name: str) -> None:
    encoding, wards, writing = FILES[name]
    found, types = detected(tmp_path, written(table(wards), **writing).encode(encoding))
    wanted = ["BIGINT", "VARCHAR", "VARCHAR", "VARCHAR", "DOUBLE", "DATE", "VARCHAR"]
    assert list(types.values()) == wanted
    assert found.csv.quote == writing.get("quote", '"')
    assert found.csv.header is writing.get("header", True)
    zips = "zip" if found.csv.header else "column2"
    assert found.csv.types == {zips: "text"}
    assert found.evidence[f"types.{zips}"] == "4 of 7 values begin with a zero, which a number would lose"
    assert set(found.csv.nulls) == ({"k.A."} if "null" in writing else set())


def test_the_yaml_is_what_was_found_with_its_evidence(tmp_path: Path) -> None:
    from anon.config.yaml12 import parse_yaml

    found, _ = detected(tmp_path, written(table(EURO), null="k.A.").encode("cp1252"))
    text = "\n".join(f"{content}  # {comment}" if comment else content for content, comment in found.yaml)
    assert Csv.model_validate(parse_yaml(text, [])["csv"]) == found.csv
    assert 'thousands: "."  # 3 numbers have it between groups of three digits' in text


def test_cells_that_do_not_fit_are_counted_and_their_lines_are_values(tmp_path: Path) -> None:
    good = [f"{day:02}.{month:02}.2024" for month in range(1, 12) for day in range(1, 28)]
    content = column(*good, "SECRET", "31.02.2024", name="seen")
    found, types = detected(tmp_path, content)
    said = "99.3% of 299 values look like dd.mm.yyyy; 2 do not: "
    assert types["seen"] == "DATE" and found.csv.dates == {"seen": "%d.%m.%Y"}
    assert found.evidence["dates.seen"] == said + "line numbers with --show-values"
    (tmp_path / "again").mkdir()
    shown, _ = detected(tmp_path / "again", content, show_values=True)
    assert shown.evidence["dates.seen"] == said + "on lines 299, 300"
    assert not any("SECRET" in line for pair in shown.yaml for line in pair)


def test_a_number_among_words_stays_text(tmp_path: Path) -> None:
    found, types = detected(tmp_path, column("12a", "14", "15", "b", "17"))
    assert types["v"] == "VARCHAR" and not found.csv.types


UNCLEAR: dict[str, tuple[bytes, str]] = {
    "day or month": (column("01/02/2024", "11/12/2024", "05/06/2023"), "none shows which number is the day"),
    "year of two digits": (column("31.12.24", "30.11.68"), "two digits for the year"),
    "thousands or decimals": (column("1.234", "12.345", "7"), "none shows whether thousands or decimals"),
}


@pytest.mark.parametrize("name", UNCLEAR)
def test_what_could_be_read_in_two_ways_stays_text_and_is_said(tmp_path: Path, name: str) -> None:
    content, words = UNCLEAR[name]
    found, types = detected(tmp_path, content)
    assert found.csv.types == {"v": "text"} and types["v"] == "VARCHAR"
    assert words in found.evidence["types.v"]


def test_another_column_of_the_same_form_shows_which_number_is_the_day(tmp_path: Path) -> None:
    content = b"a;b\n01/02/2024;12/31/2024\n11/12/2024;01/30/2024\n"
    found, types = detected(tmp_path, content)
    assert found.csv.dates == {"a": "%m/%d/%Y", "b": "%m/%d/%Y"} and set(types.values()) == {"DATE"}
    assert "as in another column" in found.evidence["dates.a"]


def test_another_column_shows_what_a_mark_is(tmp_path: Path) -> None:
    found, types = detected(tmp_path, b"a;b\n1.234;0,5\n12.345;1,25\n")
    assert (found.csv.decimal, found.csv.thousands, types) == (",", ".", {"a": "BIGINT", "b": "DOUBLE"})


def test_telephone_numbers_are_no_numbers_with_thousands(tmp_path: Path) -> None:
    found, types = detected(tmp_path, column("415 123 456", "415 789 123"))
    assert (found.csv.thousands, types["v"]) == ("", "VARCHAR")


def test_a_word_is_a_marker_only_beside_numbers(tmp_path: Path) -> None:
    found, _ = detected(tmp_path, b"age;city\n1;NA\n2;Bonn\n3;NA\n4;Ulm\n")
    assert not found.csv.nulls
    (tmp_path / "again").mkdir()
    found, types = detected(tmp_path / "again", b"age;city\n1;?\n2;Bonn\nNA;x\n4;Ulm\n")
    assert found.csv.nulls == ["NA", "?"] and types["age"] == "BIGINT"


def test_init_writes_a_config_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    illnesses = ["Grippe", "Röteln", "Grippe"]
    cells = [(at, f"0{1000 + at % 7}", f"{13 + at % 9}.{1 + at % 12:02}.{1950 + at % 9}", illnesses[at % 3], f"{at},50")
             for at in range(300)]  # fmt: skip
    rows = [("nr", "plz", "geboren", "krankheit", "kosten"), *cells]
    text = "".join(";".join(f'"{cell}"' for cell in row) + "\r\n" for row in rows)
    (tmp_path / "t.csv").write_bytes(text.encode("cp1252"))
    asked = ["init", "t.csv", "--individual", "row", "--sensitive", "krankheit", "--drop", "kosten", "--yes"]
    done = CliRunner().invoke(app, [*asked, "--out", "c.yaml"])
    assert done.exit_code == 0, done.stderr
    config = (tmp_path / "c.yaml").read_text()
    assert "encoding: windows-1252" in config and 'geboren: "%d.%m.%Y"' in config
    ran = CliRunner().invoke(app, ["run", "c.yaml", "--json"])
    assert ran.exit_code == 0, ran.stderr
    assert json.loads(ran.stdout)["rows"] == 300
