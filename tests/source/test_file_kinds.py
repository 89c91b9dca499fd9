"""Files of every kind that can be a source: Excel, JSON lines, Arrow IPC, compressed text. Each gives the release of
the same table in Parquet."""

from __future__ import annotations

import datetime as dt
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pytest

import anon
from anon.errors import ConfigError, ResourceError, SourceError
from tests.conftest import House
from tests.helpers.source import EVERYTHING, ROWS, as_csv
from tests.helpers.workbook import write_workbook

IDENTIFIED = ROWS.append_column("name", [[f"N{at // 2}" for at in range(len(ROWS))]])
TWICE: dict[str, Any] = {"columns": EVERYTHING["columns"] | {"identifiers": ["name"]}}


def plain(value: Any) -> Any:
    return (
        value.isoformat(sep=" ")
        if isinstance(value, dt.datetime)
        else str(value)
        if isinstance(value, dt.date)
        else value
    )


def as_json(table: pa.Table) -> bytes:
    """Objects of which a null is sometimes a key with null, and sometimes no key."""
    lines = []
    for at, row in enumerate(table.to_pylist()):
        known = {key: plain(value) for key, value in row.items() if value is not None or at % 2}
        lines.append(json.dumps(known, ensure_ascii=False))
    return "\n\n".join(lines).encode() + b"\n"


def zstd(content: bytes) -> bytes:
    return bytes(pa.compress(content, codec="zstd", asbytes=True))


def arrow_file(path: Path, table: pa.Table) -> None:
    with pa.ipc.new_file(path, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        for start in range(0, len(table), 5):
            writer.write_table(table.slice(start, 5))


def arrow_stream(path: Path, table: pa.Table) -> None:
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=5)


def workbook(path: Path, table: pa.Table) -> None:
    rows = [list(row.values()) for row in table.to_pylist()]
    write_workbook(path, {"Patients": [table.column_names, *rows[:4], [None] * len(table.column_names), *rows[4:]]})


KINDS: dict[str, Callable[[Path, pa.Table], Any]] = {
    "table.csv.gz": lambda path, table: path.write_bytes(gzip.compress(as_csv(table))),
    "two members.csv.gz": lambda path, table: path.write_bytes(
        gzip.compress(as_csv(table)[:100]) + gzip.compress(as_csv(table)[100:])
    ),
    "table.csv.zst": lambda path, table: path.write_bytes(zstd(as_csv(table))),
    "table.tsv": lambda path, table: path.write_bytes(as_csv(table, "\t")),
    "table.jsonl": lambda path, table: path.write_bytes(as_json(table)),
    "table.ndjson": lambda path, table: path.write_bytes(as_json(table)),
    "table.jsonl.gz": lambda path, table: path.write_bytes(gzip.compress(as_json(table))),
    "table.ndjson.zst": lambda path, table: path.write_bytes(zstd(as_json(table))),
    "table.arrow": arrow_file,
    "table.ipc": arrow_stream,
    "table.feather": lambda path, table: pl.DataFrame(table).write_ipc(path),
    "table.xlsx": workbook,
}


@pytest.mark.parametrize("name", KINDS)
def test_the_bytes_do_not_depend_on_the_kind_of_file(house: House, name: str) -> None:
    house.run(IDENTIFIED, **TWICE)
    expected = house.bytes()
    KINDS[name](house.folder / name, IDENTIFIED)
    done = house.run(source={"path": name}, **TWICE)
    assert house.bytes() == expected
    assert [warning["count"] for warning in done.facts["warnings"] if warning["code"] == "repeated_identifier"] == [12]
    assert not house.leftovers()


@pytest.mark.parametrize("name", ["table.jsonl.gz", "table.arrow", "table.xlsx"])
def test_a_source_that_did_not_change_is_up_to_date(house: House, name: str) -> None:
    KINDS[name](house.folder / name, IDENTIFIED)
    assert house.cli("run", source={"path": name}, **TWICE).code == 0
    assert house.cli("run", "--json", source={"path": name}, **TWICE).json["up_to_date"]
    KINDS[name](house.folder / name, IDENTIFIED.slice(0, 10))
    again = house.cli("run", "--json", "--overwrite", source={"path": name}, **TWICE)
    assert again.json["rows"] == 10


@pytest.mark.parametrize("name", ["table.jsonl", "table.arrow"])
def test_a_table_may_be_in_parts(house: House, name: str) -> None:
    house.run(IDENTIFIED, **TWICE)
    expected = house.bytes()
    for part in range(3):
        folder = house.folder / "parts" / str(part)
        folder.mkdir(parents=True)
        KINDS[name](folder / name, IDENTIFIED.slice(4 * part, 4))
    house.run(source={"path": "parts"}, **TWICE)
    assert house.bytes() == expected


@pytest.mark.parametrize("name", ["table.jsonl", "table.arrow", "table.xlsx", "table.csv.gz"])
def test_init_profiles_files_of_every_kind(house: House, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from anon.cli.app import app

    monkeypatch.chdir(house.folder)
    KINDS[name](house.folder / name, IDENTIFIED)
    done = CliRunner().invoke(app, ["init", name, "--json"])
    assert done.exit_code == 0, done.stderr
    kinds = {column["name"]: column["kind"] for column in json.loads(done.stdout)["profile"]["columns"]}
    assert kinds["age"] == "integer" and kinds["weight"] == "number" and kinds["zip"] == "text"
    assert (kinds["admitted"], kinds["seen"], kinds["insured"]) == ("date", "timestamp", "boolean")


SHEETS = {"Patients": [["age", "zip", "disease"], [20, "02139", "Flu"], [21, "02139", "HIV"]], "Notes": [["x"]]}


def test_a_sheet_is_chosen_by_its_name(house: House) -> None:
    write_workbook(house.folder / "t.xlsx", SHEETS, first_row=3)
    with pytest.raises(ConfigError, match=r"source\.sheet: found nothing; .*\(t\.xlsx has 'Patients', 'Notes'\)"):
        house.run(source={"path": "t.xlsx"})
    with pytest.raises(ConfigError, match="found 'patients'; expected one of the sheets"):
        house.run(source={"path": "t.xlsx", "sheet": "patients"})
    house.run(source={"path": "t.xlsx", "sheet": "Patients"})
    assert house.released().num_rows == 2


def test_init_takes_and_writes_the_sheet(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from anon.cli.app import app

    monkeypatch.chdir(house.folder)
    write_workbook(house.folder / "t.xlsx", SHEETS)
    asked = ["init", "t.xlsx", "--individual", "row", "--sensitive", "disease", "--quasi-identifier", "age", "--yes"]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 2 and "t.xlsx has 'Patients', 'Notes'" in done.stderr
    done = CliRunner().invoke(app, [*asked, "--sheet", "Patients"])
    assert "source: {path: t.xlsx, sheet: Patients}" in done.stdout


def test_a_sheet_of_another_kind_of_file_is_refused(house: House) -> None:
    house.write(ROWS)
    with pytest.raises(ConfigError, match=r"source\.sheet: found a sheet of table\.parquet"):
        house.run(source={"path": "table.parquet", "sheet": "Patients"})


def test_numbers_and_text_in_a_column_of_codes_are_text(house: House) -> None:
    """Excel drops the zeros of what it takes for a number, and nobody types all codes in the same way."""
    rows = [[age, "01067" if age % 2 else 10115, "Flu" if age % 3 else "HIV"] for age in range(8)]
    write_workbook(house.folder / "t.xlsx", {"P": [["age", "zip", "disease"], *rows]})
    house.run(source={"path": "t.xlsx"}, columns__keep=["zip"], columns__quasi_identifiers={"age": {}})
    assert sorted(set(house.released()["zip"].to_pylist())) == ["01067", "10115"]


def mixed_sheet(path: Path, rows: list[list[Any]]) -> None:
    write_workbook(path, {"P": [["age", "zip", "disease"], *rows]})


def mixed_lines(path: Path, rows: list[list[Any]]) -> None:
    names = ("age", "zip", "disease")
    path.write_text("\n" + "".join(json.dumps(dict(zip(names, row))) + "\n" for row in rows))


@pytest.mark.parametrize(
    ("name", "write", "place"), [("t.xlsx", mixed_sheet, "row 13"), ("t.jsonl", mixed_lines, "line 13")]
)
def test_one_cell_of_another_type_is_named_by_its_place(
    house: House, name: str, write: Callable[[Path, list[list[Any]]], None], place: str
) -> None:
    rows = [[age, "02139", "Flu"] for age in range(20)]
    rows[11][0] = "SECRET"
    write(house.folder / name, rows)
    done = house.cli("run", source={"path": name})
    assert done.code == 2
    assert f"1 of 20 values that are not {'integers' if name == 't.xlsx' else 'numbers'}, on {place}" in done.stderr
    assert "SECRET" not in done.stderr
    assert "SECRET" in house.cli("run", "--show-values", source={"path": name}).stderr


def test_numbers_too_long_for_64_bits_are_text_in_json(house: House) -> None:
    lines = [f'{{"age": {at}, "zip": {12345678901234567890 + at}, "disease": "Flu"}}' for at in range(4)]
    (house.folder / "t.jsonl").write_text("\n".join(lines))
    house.run(source={"path": "t.jsonl"}, columns__keep=["zip"], columns__quasi_identifiers={"age": {}})
    assert "12345678901234567893" in house.released()["zip"].to_pylist()


def test_keys_of_json_may_have_any_characters(house: House) -> None:
    rows = [{'a."~/': at, "disease": "Flu", "nested": {"x": 1}} for at in range(4)]
    (house.folder / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    columns = {"individual": "row", "quasi_identifiers": ['a."~/'], "sensitive": ["disease"]}
    house.run(source={"path": "t.jsonl"}, columns=columns)
    assert house.released().column_names == ['a."~/', "disease"]
    with pytest.raises(ConfigError, match=r"columns\.keep\.nested: found type VARCHAR\[\]"):
        house.run(source={"path": "t.jsonl"}, columns=columns | {"keep": ["nested"]})


UNREADABLE: dict[str, tuple[str, bytes, str]] = {
    "json": ("t.jsonl", b'{"age": 1}\n{"age": 2}\n{"age": SECRET}\n{"age": 4}\n', "t.jsonl, line 3: it is not JSON"),
    "a list": ("t.jsonl", b'{"age": 1}\n["SECRET"]\n', "1 lines are no JSON objects"),
    "empty json": ("t.jsonl", b"", "column"),
    "arrow": ("t.arrow", b"SECRET" * 20, "it is not an Arrow IPC file"),
    "excel": ("t.xlsx", b"SECRET" * 20, "it is not an Excel workbook"),
    "gzip": ("t.csv.gz", b"SECRET" * 20, "reading"),
    "cut off": ("t.csv.gz", gzip.compress(as_csv(ROWS))[:-20], "reading"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_is_said_in_plain_words(house: House, name: str) -> None:
    file, content, words = UNREADABLE[name]
    (house.folder / file).write_bytes(content)
    done = house.cli("run", source={"path": file})
    assert done.code in (2, 5) and words in done.stderr and "SECRET" not in done.stderr
    assert not house.leftovers()


def test_a_workbook_larger_than_the_memory_is_refused(house: House) -> None:
    from anon.source import excel

    write_workbook(house.folder / "t.xlsx", SHEETS)
    with pytest.raises(ResourceError, match="a workbook is read whole, and takes about 0 MB"):
        excel._check_size(house.folder / "t.xlsx", 100)


def test_excel_needs_its_package(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "python_calamine", None)
    write_workbook(house.folder / "t.xlsx", SHEETS)
    with pytest.raises(SourceError, match=r"pip install 'anon-engine\[excel\]'"):
        house.run(source={"path": "t.xlsx"})


def test_categories_of_an_arrow_file_are_text(house: House) -> None:
    """Polars writes them as dictionaries of views, which no Parquet writer takes."""
    table = pl.DataFrame({"age": [20, 20, 30, 30], "zip": ["02139"] * 4, "disease": ["Flu", "HIV", "Flu", "HIV"]})
    kinds = {"zip": pl.Categorical, "disease": pl.Enum(["HIV", "Flu"])}
    table.write_parquet(house.folder / "t.parquet")
    table.cast(kinds).write_ipc(house.folder / "t.arrow")  # type: ignore[arg-type]
    anon.run(house.config(source={"path": str(house.folder / "t.parquet")}))
    plain = house.released()
    anon.run(house.config(source={"path": str(house.folder / "t.arrow")}), overwrite=True)
    assert house.released() == plain
