"""CSV files as they really are: encodings, delimiters, quotes, decimal commas, dates, markers for no value. Whatever a
file is written like, its release is that of the same table in Parquet."""

from __future__ import annotations

import csv
import datetime as dt
import io
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest

from anon.errors import ConfigError, SourceError
from tests.conftest import House

NAMES = ["Müller; Söhne", 'the "old" ward', "two\nlines", "plain", "Łódź", "Œuvre €5", "it's", "a|b\tc"]
LATIN = ["Müller; Söhne", 'the "old" ward', "two\nlines", "plain", "é", "ñandú", "it's", "a|b\tc"]
EURO = ["Müller; Söhne", 'the "old" ward', "two\nlines", "plain", "œuvre", "5 €", "Šimon", "a|b\tc"]
COLUMNS = {
    "individual": "row",
    "quasi_identifiers": {"age": {}, "zip": {"digits": 5}},
    "sensitive": ["disease"],
    "keep": ["ward", "cost", "born", "empty"],
}


def table(wards: list[str]) -> pa.Table:
    return pa.table(
        {
            "age": [20, 21, None, 30, 31, 32, 1040, 41],
            "zip": ["02139", "02138", "02137", "12139", "12138", "12137", "02139", None],
            "disease": ["Flu", "HIV", "Flu", "Cold", "Cold", "HIV", "Flu", "Flu"],
            "ward": pa.array(wards, pa.string()),
            "cost": [1.5, 1234.25, -3.0, None, 0.125, 1234567.5, 7.0, 8.5],
            "born": [dt.date(1980 + day, 1 + day % 12, day + 13) for day in range(8)],
            "empty": pa.array([None] * 8, pa.string()),
        }
    )


def number(value: float | None, decimal: str, thousands: str) -> str:
    if value is None:
        return ""
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"
    return text.replace(",", "T").replace(".", decimal).replace("T", thousands)


def written(
    rows: pa.Table,
    delimiter: str = ";",
    quote: str = '"',
    decimal: str = ",",
    thousands: str = ".",
    dates: str = "%d.%m.%Y",
    null: str = "",
    header: bool = True,
    end: str = "\r\n",
    last: str = "",
) -> str:
    """The table as text, as some spreadsheet or database would write it."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, quotechar=quote, lineterminator=end)
    if header:
        writer.writerow(rows.column_names)
    for row in rows.to_pylist():
        cells = {
            **{name: row[name] for name in ("zip", "disease", "ward", "empty")},
            "age": number(row["age"], decimal, thousands),
            "cost": number(row["cost"], decimal, thousands),
            "born": row["born"].strftime(dates),
        }
        writer.writerow([null if cells[name] in (None, "") else cells[name] for name in rows.column_names])
    return text.getvalue() + last


GERMAN = {"delimiter": ";", "decimal": ",", "thousands": ".", "dates": "%d.%m.%Y"}


@cache
def release_of(*wards: str) -> bytes:
    """The release of the table with some wards, as a frame."""
    with TemporaryDirectory() as folder:
        house = House(Path(folder))
        house.run(table(list(wards)), columns=COLUMNS)
        return house.bytes()


def run_csv(house: House, content: bytes, options: dict[str, Any] | None, **changes: Any) -> bytes:
    (house.folder / "table.csv").write_bytes(content)
    source: dict[str, Any] = {"path": "table.csv"} | ({} if options is None else {"csv": options})
    house.run(source=source, columns=changes.pop("columns", COLUMNS), **changes)
    return house.bytes()


ENCODINGS: dict[str, tuple[str, list[str]]] = {
    "utf-8": ("utf-8", NAMES),
    "utf-8 with a mark": ("utf-8-sig", NAMES),
    "utf-16": ("utf-16", NAMES),
    "utf-16-le": ("utf-16-le", NAMES),
    "utf-16-be": ("utf-16-be", NAMES),
    "windows-1252": ("cp1252", EURO),
    "iso-8859-1": ("latin-1", LATIN),
    "iso-8859-15": ("iso-8859-15", EURO),
}


@pytest.mark.parametrize("name", ENCODINGS)
def test_the_release_does_not_depend_on_the_encoding(house: House, name: str) -> None:
    encoding, wards = ENCODINGS[name]
    expected = release_of(*wards)
    options = GERMAN | {"encoding": name.removesuffix(" with a mark")}
    assert run_csv(house, written(table(wards)).encode(encoding), options) == expected


LAYOUTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "commas": ({"delimiter": ",", "decimal": ".", "thousands": ","}, {"thousands": ","}),
    "tabs": ({"delimiter": "\t"}, {"delimiter": "tab"}),
    "bars": ({"delimiter": "|"}, {"delimiter": "|"}),
    "bars in single quotes": ({"delimiter": "|", "quote": "'"}, {"delimiter": "|", "quote": "'"}),
    "american dates": ({"dates": "%m/%d/%Y"}, {"dates": "%m/%d/%Y"}),
    "a format for one column": ({"dates": "%m/%d/%Y"}, {"dates": {"born": "%m/%d/%Y"}}),
    "iso dates": ({"dates": "%Y-%m-%d"}, {}),
    "packed dates": ({"dates": "%Y%m%d"}, {"dates": {"born": "%Y%m%d"}}),
    "no header": ({"header": False}, {"header": False}),
    "markers for no value": ({"null": "k.A."}, {"nulls": ["", "k.A.", "-"]}),
    "one marker": ({"null": "?"}, {"nulls": "?"}),
    "plain line ends": ({"end": "\n"}, {}),
    "an empty last line": ({"last": "\r\n"}, {}),
    "swiss numbers": ({"decimal": ".", "thousands": "'"}, {"decimal": ".", "thousands": "'"}),
    "french numbers": ({"thousands": "\u202f"}, {"thousands": "\u202f"}),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_release_does_not_depend_on_how_the_table_is_written(house: House, name: str) -> None:
    writing, options = LAYOUTS[name]
    rows = table(NAMES)
    expected = release_of(*NAMES)
    told = {key: value for key, value in GERMAN.items() if not (key == "decimal" and writing.get("decimal") == ".")}
    content = written(rows, **writing)
    columns: dict[str, Any] = COLUMNS
    if not writing.get("header", True):
        numbered = {own: f"column{at}" for at, own in enumerate(rows.column_names, start=1)}
        columns = {
            "individual": "row",
            "quasi_identifiers": {numbered["age"]: {}, numbered["zip"]: {"digits": 5}},
            "sensitive": [numbered["disease"]],
            "keep": [numbered[own] for own in COLUMNS["keep"]],
        }
        renamed = rows.rename_columns(list(numbered.values()))
        house.run(renamed, columns=columns)
        expected = house.bytes()
    assert (
        run_csv(house, content.encode(), told | {"delimiter": writing.get("delimiter", ";")} | options, columns=columns)
        == expected
    )


def test_a_code_that_is_said_to_be_text_keeps_its_form(house: House) -> None:
    rows = {"age": [1, 2, 3, 4], "zip": ["10115", "10117", "10119", "80331"], "disease": ["a", "b", "a", "b"]}
    text = "age;zip;disease\n" + "".join(f"{a};{z};{d}\n" for a, z, d in zip(*rows.values()))
    columns = COLUMNS | {"keep": ["zip"], "quasi_identifiers": {"age": {}}}
    run_csv(house, text.encode(), {"types": {"zip": "text"}}, columns=columns)
    assert house.released().schema.field("zip").type == pa.string()
    run_csv(house, text.encode(), None, columns=columns)
    assert house.released().schema.field("zip").type == pa.int64()


def test_a_marker_for_no_value_counts_in_quotes_too(house: House) -> None:
    text = b'age;zip;disease\n1;02139;"N/A"\n2;02139;N/A\n3;02139;""\n4;02139;Flu\n'
    nulls = {"sensitive": "value"}
    run_csv(house, text, {"nulls": ["", "N/A"]}, columns=COLUMNS | {"keep": []}, nulls=nulls)
    assert sorted(house.released()["disease"].to_pylist(), key=str) == ["Flu", None, None, None]


BAD = (
    'age;zip;disease\r\n1;02139;"two\r\nlines"\r\n"n/a";02139;Flu\r\n\r\n'
    + "".join(f"{age};02139;Flu\r\n" for age in range(3, 90))
    + '"4\r\n5";02139;Flu\r\n"SECRET";02139;HIV\r\n'
)


def test_a_cell_of_another_type_is_reported_with_its_line_and_not_shown(house: House) -> None:
    (house.folder / "table.csv").write_text(BAD, newline="")
    done = house.cli("run", source={"path": "table.csv", "csv": {"delimiter": ";"}})
    assert done.code == 2
    assert "source.csv.types.age: found 3 of 91 values that are not integers, on lines 4, 93, 95" in done.stderr
    assert "SECRET" not in done.stderr
    assert not (house.folder / "out").exists()
    shown = house.cli("run", "--show-values", source={"path": "table.csv", "csv": {"delimiter": ";"}})
    assert "age, table.csv, line 95: SECRET" in shown.stderr


def test_the_type_of_a_column_must_hold_where_it_is_said(house: House) -> None:
    rows = b"age;zip;disease\n1;02139;Flu\nx;02139;Flu\ny;02139;Flu\n"
    with pytest.raises(ConfigError, match=r"types\.age: found 2 of 3 values that are not numbers, on lines 3, 4"):
        run_csv(house, rows, {"types": {"age": "number"}}, columns=COLUMNS | {"keep": []})
    with pytest.raises(ConfigError, match=r"types\.age: found 3 of 3 values that are not dates like %d\.%m\.%Y"):
        run_csv(house, rows, {"dates": {"age": "%d.%m.%Y"}}, columns=COLUMNS | {"keep": []})


def test_a_column_of_codes_is_no_column_of_numbers_with_mistakes(house: House) -> None:
    text = "age;zip;disease\n" + "".join(f"{age};{10000 + age};Flu\n" for age in range(50)) + "50;01067;Flu\n"
    run_csv(
        house, text.encode(), {"delimiter": ";"}, columns=COLUMNS | {"keep": ["zip"], "quasi_identifiers": {"age": {}}}
    )
    assert "01067" in house.released()["zip"].to_pylist()


def test_a_cell_may_be_on_a_later_line_than_its_record(house: House) -> None:
    text = 'note;age;zip;disease\n"a\nb\nc";x;02139;Flu\n' + "".join(f"n;{age};02139;Flu\n" for age in range(9))
    with pytest.raises(ConfigError, match="on line 4"):
        run_csv(house, text.encode(), {}, columns=COLUMNS | {"keep": ["note"]})


@pytest.mark.parametrize(
    ("text", "line"),
    [('a"\n"b', 5), ("one\ntwo", 5), ("plain", 4)],
)
def test_a_record_that_is_not_well_formed_is_named_by_its_line(house: House, text: str, line: int) -> None:
    quoted = '"' + text.replace('"', '""') + '"'
    rows = f"age,zip,disease\n1,02139,{quoted}\n\n2,02139,Flu,SECRET\n"
    with pytest.raises(SourceError, match=f"table.csv, line {line}: it is not well-formed CSV: 4 fields in place of 3"):
        run_csv(house, rows.encode(), None, columns=COLUMNS | {"keep": []})


def test_a_file_in_another_encoding_is_an_error_that_names_it(house: House) -> None:
    content = written(table(EURO)).encode("cp1252")
    with pytest.raises(
        SourceError, match=r"line 2: it is not UTF-8 but windows-1252.*set csv: \{encoding: windows-1252\}"
    ):
        run_csv(house, content, None)
    with pytest.raises(SourceError, match=r"it is not UTF-8 but utf-16, it seems \(it begins with the byte order mark"):
        run_csv(house, written(table(EURO)).encode("utf-16"), None)


def test_a_delimiter_that_the_first_line_hides_is_named(house: House) -> None:
    rows = b"age,in,years;zip;disease\n" + b"1;02139;Flu\n" * 9
    words = r'set csv: \{delimiter: ";"\}, by which 10 of the first 10 records have 3 fields'
    with pytest.raises(ConfigError, match=words):
        run_csv(house, rows, None)
    columns = {"individual": "row", "quasi_identifiers": ["in"], "sensitive": ["age"]}
    with pytest.raises(SourceError, match="line 2: it is not well-formed CSV: 1 fields in place of 3; " + words):
        run_csv(house, rows, None, columns=columns)


def test_lines_that_end_in_different_ways_are_said(house: House) -> None:
    with pytest.raises(SourceError, match="its lines end in different ways"):
        run_csv(
            house, b"age;zip;disease\r\n1;02139;Flu\n2;02139;Flu\r\n3;02139;Flu\n", None, columns=COLUMNS | {"keep": []}
        )


def test_a_column_without_a_name_is_named_after_its_place(house: House) -> None:
    text = b"age;zip;disease;\n1;02139;Flu;\n2;02139;HIV;\n"
    run_csv(house, text, {"delimiter": ";"}, columns=COLUMNS | {"keep": ["column4"]})
    assert house.released()["column4"].to_pylist() == [None, None]


def test_options_for_csv_are_refused_for_other_files(house: House) -> None:
    house.write(table(NAMES))
    with pytest.raises(ConfigError, match=r"source\.csv: found options of CSV files for table\.parquet"):
        house.run(source={"path": "table.parquet", "csv": {"delimiter": ";"}})


def test_nothing_is_left_of_a_copy_in_another_encoding(house: House) -> None:
    run_csv(house, written(table(EURO)).encode("cp1252"), GERMAN | {"encoding": "windows-1252"})
    assert not house.leftovers()


def test_the_up_to_date_check_knows_the_options(house: House) -> None:
    (house.folder / "table.csv").write_bytes(written(table(NAMES)).encode())
    source = {"path": "table.csv", "csv": GERMAN}
    assert house.cli("run", "--json", source=source, columns=COLUMNS).code == 0
    assert house.cli("run", "--json", source=source, columns=COLUMNS).json["up_to_date"]
    other = {"path": "table.csv", "csv": GERMAN | {"nulls": ["Cold"]}}
    again = house.cli("run", "--json", "--overwrite", source=other, columns=COLUMNS, nulls={"sensitive": "drop"})
    assert again.code == 0 and "up_to_date" not in again.json


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "encoding": ({"encoding": "klingon"}, "an encoding such as utf-8"),
    "codec that is no encoding": ({"encoding": "rot13"}, "an encoding such as utf-8"),
    "delimiter": ({"delimiter": ";;"}, "one character"),
    "format": ({"dates": "dd.mm.yyyy"}, "dd.mm.yyyy is written %d.%m.%Y"),
    "format without a year": ({"dates": {"born": "%d.%m."}}, "a format of %d, %m, %Y or %y"),
    "both marks": ({"decimal": ",", "thousands": ","}, "another character than csv.decimal"),
    "numbers as markers": ({"nulls": [-9]}, "put numbers in quotes"),
    "type": ({"types": {"zip": "string"}}, "text, integer, number"),
    "two types": ({"types": {"born": "text"}, "dates": {"born": "%d.%m.%Y"}}, "csv.dates has a format for it"),
    "unknown key": ({"separator": ";"}, "an unknown key"),
}


@pytest.mark.parametrize("name", WRONG)
def test_options_that_make_no_sense_are_mistakes_of_the_config(house: House, name: str) -> None:
    options, words = WRONG[name]
    with pytest.raises(ConfigError) as caught:
        house.run(source={"path": "table.csv", "csv": options})
    assert words in str(caught.value)
    assert str(caught.value).startswith("source.csv")


def test_a_file_larger_than_a_block_is_transcoded_whole(house: House, tmp_path: Path, monkeypatch: Any) -> None:
    from anon.source import encodings

    monkeypatch.setattr(encodings, "BLOCK", 7)
    for encoding in ("utf-16", "utf-8-sig", "cp1252"):
        source, copy = tmp_path / f"{encoding}.txt", tmp_path / f"{encoding}-copy"
        source.write_bytes("a;ü\r\n€;é".encode(encoding))
        encodings.copy_as_utf8(source, encoding, copy)
        assert copy.read_bytes() == "a;ü\r\n€;é".encode()
