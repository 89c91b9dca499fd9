"""Sources that are not there, cannot be read or change while they are read: exit 5 or 2 in plain words."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from anon import release
from anon.errors import ConfigError, SourceError
from tests.conftest import House
from tests.helpers.source import ROWS, as_csv


def test_all_missing_columns_are_told_at_once_with_near_misses(house: House) -> None:
    with pytest.raises(ConfigError) as error:
        house.run(ROWS, columns__quasi_identifiers={"Age": {}, "zipp": {}, "colour": {}}, columns__keep=["weight"])
    hints = [p.hint for p in error.value.problems]
    assert hints[:2] == ["did you mean 'age'?", "did you mean 'zip'?"]
    assert hints[2].startswith("the table has 'age', 'zip', 'disease'")


def test_a_csv_file_without_header_does_not_have_its_first_row_told(house: House) -> None:
    (house.folder / "table.csv").write_text("SECRET,44,HIV\nx,45,Flu\n")
    outcome = house.cli("run", source={"path": "table.csv"})
    assert outcome.code == 2
    assert "SECRET" not in outcome.stderr and "HIV" not in outcome.stderr


@pytest.mark.parametrize("command", [["run"], ["plan"], ["check", "--on", "{table}"], ["utility", "--on", "{table}"]])
def test_a_first_row_of_data_is_not_quoted_as_a_near_miss(house: House, command: list[str]) -> None:
    file = house.folder / "table.csv"
    file.write_text("44,02139,HIV status positive\n" + "45,02138,HIV status negative\n" * 5)
    about: dict[str, Any] = {"source": {"path": "table.csv"}, "columns__sensitive": ["HIV status"]}
    words = [part.format(table=file) for part in command]
    for options in ([], ["--json"], ["--log-json"]):
        told = house.cli(*words, *options, **about)
        assert told.code == 2 and "positive" not in told.stdout + told.stderr
        assert "has the table a header?" in told.stdout + told.stderr
    told = house.cli(*words, "--json", "--show-values", **about)
    assert told.json["columns"] == ["44", "02139", "HIV status positive"]


def test_a_near_miss_is_told_where_one_column_is_there_but_for_its_spelling(house: House) -> None:
    with pytest.raises(ConfigError, match="did you mean 'disease'") as error:
        house.run(ROWS, columns__quasi_identifiers={"AGE": {}}, columns__sensitive=["diseas"])
    assert error.value.problems[0].hint == "did you mean 'age'?"


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_columns_that_differ_only_in_case_cannot_be_told_apart(house: House, suffix: str) -> None:
    names = ["age", "Age", "age_1", "zip", "disease"]
    table = pa.table([[1, 2], [3, 4], [5, 6], ["02139"] * 2, ["a"] * 2], names=names)
    house.write(table)
    (house.folder / "table.csv").write_bytes(as_csv(table))
    for wanted in ("age", "Age", *(["age_1"] if suffix == "parquet" else [])):  # DuckDB calls the second age `age_1`
        with pytest.raises(ConfigError, match=f"column '{wanted}'; expected a name that differs"):
            house.run(source={"path": f"table.{suffix}"}, columns__quasi_identifiers={wanted: {}})
    assert house.run(source={"path": f"table.{suffix}"}, columns__quasi_identifiers={"zip": {}}).safe


def truncated(house: House) -> str:
    path = house.write(ROWS)
    path.write_bytes(path.read_bytes()[:-30])
    return path.name


def garbled(house: House) -> str:
    path = house.write(ROWS)
    content = path.read_bytes()
    path.write_bytes(content[:4] + bytes(len(content) // 2) + content[4 + len(content) // 2 :])
    return path.name


def file_of(name: str, content: bytes) -> Callable[[House], str]:
    def layout(house: House) -> str:
        (house.folder / name).write_bytes(content)
        return name

    return layout


def empty_folder(house: House) -> str:
    (house.folder / "empty").mkdir()
    return "empty"


def other_schema(change: Callable[[pa.Table], pa.Table]) -> Callable[[House], str]:
    def layout(house: House) -> str:
        house.write(ROWS, "parts/1.parquet")
        house.write(change(ROWS), "parts/2.parquet")
        return "parts"

    return layout


def both_kinds(house: House) -> str:
    house.write(ROWS, "parts/1.parquet")
    (house.folder / "parts" / "2.csv").write_bytes(as_csv(ROWS))
    return "parts"


def other_header(house: House) -> str:
    (house.folder / "parts").mkdir()
    (house.folder / "parts" / "1.csv").write_bytes(as_csv(ROWS))
    (house.folder / "parts" / "2.csv").write_bytes(as_csv(ROWS.select(ROWS.column_names[::-1])))
    return "parts"


HEAD = b"age,zip,disease\n20,02139,SECRET\n"
UNREADABLE: dict[str, tuple[Callable[[House], str], str]] = {
    "missing": (lambda house: "nowhere.parquet", "no such file"),
    "no match": (lambda house: "nowhere/*.parquet", "no file matches"),
    "empty folder": (empty_folder, "the folder holds no file that is named .parquet, .csv"),
    "truncated": (truncated, "cut off"),
    "garbled": (garbled, "reading"),
    "no parquet": (file_of("t.parquet", b"SECRET" * 9), "not a Parquet file"),
    "empty file": (file_of("t.parquet", b""), "not a Parquet file"),
    "other type": (
        other_schema(lambda t: t.set_column(0, "age", t["age"].cast(pa.string()))),
        "2.parquet: not the same columns and types as 1.parquet",
    ),
    "other columns": (other_schema(lambda t: t.append_column("SECRETS", [[1] * 12])), "not the same columns"),
    "fewer columns": (other_schema(lambda t: t.drop_columns(["insured"])), "not the same columns"),
    "both kinds": (both_kinds, "some are CSV and some are Parquet"),
    "other header": (other_header, "2.csv: its first line differs from that of 1.csv"),
    "no rows": (lambda house: house.write(ROWS.slice(0, 0)).name, "no rows"),
    "header only": (file_of("t.csv", b"age,zip,disease\n"), "no rows"),
    "empty csv": (file_of("t.csv", b""), "t.csv: the file is empty"),
    "blank csv": (file_of("t.csv", b"\n\n"), "does not name every column"),
    "spreadsheet": (file_of("t.xlsx", b"PK\3\4SECRET"), "t.xlsx: it is not an Excel workbook"),
    "csv by another name": (file_of("t.doc", b"age,zip,disease\n1,2,SECRET\n"), "may be named .csv"),
    "unnamed column": (file_of("t.csv", b"age,,disease\n1,2,3\n"), "does not name every column"),
    "not utf-8": (file_of("t.csv", HEAD + b"21,02139,SECR\xffET\n"), "line 3: it is not UTF-8"),
    "header not utf-8": (file_of("t.csv", b"age,zip,SECR\xffET\n1,2,3\n"), "line 1: it is not UTF-8"),
    "long line": (file_of("t.csv", HEAD + b"21,02139,SECRET,SECRET\n"), "t.csv, line 3: it is not well-formed"),
    "short line": (file_of("t.csv", HEAD + b"SECRET\n"), "line 3: it is not well-formed"),
    "last line of 33 MB": (file_of("t.csv", HEAD + b"21,02139," + b"SECRET" * 5_500_000), "line 3: it is too long"),
    "last line of 32 MB after many": (
        file_of("t.csv", HEAD + b"20,02139,Flu\n" * 645_000 + b"21,02139," + b"SECRET" * 5_333_334 + b"\n"),
        "it is too long",
    ),
    "zeros at the end": (file_of("t.csv", HEAD + b"21,02139,SECRET" + b"\0" * 4096), "line 3: it holds zero bytes"),
    "40 MB of zeros": (file_of("t.csv", HEAD + b"\0" * 40_000_000), "line 3: it holds zero bytes"),
    "zeros instead of rows": (file_of("t.csv", HEAD + b"21,02139,SECRET\n\0\0\n"), "line 4: it holds zero bytes"),
    "open quote": (file_of("t.csv", HEAD + b'21,02139,"SECRET\n'), "line 3: it is not well-formed"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_is_exit_5_in_plain_words(house: House, name: str) -> None:
    layout, words = UNREADABLE[name]
    outcome = house.cli("run", source={"path": layout(house)})
    assert outcome.code == 5, outcome.stderr
    assert words in outcome.stderr
    assert "SECRET" not in outcome.stderr + outcome.stdout
    assert not house.leftovers() and not (house.folder / "out").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_exit_5(house: House) -> None:
    house.write(ROWS).chmod(0)
    outcome = house.cli("run")
    assert outcome.code == 5 and "permission" in outcome.stderr.lower()


def append_file(folder: Path) -> None:
    pq.write_table(ROWS, folder / "parts" / "2.parquet")


def append_rows(folder: Path) -> None:
    pq.write_table(pa.concat_tables([ROWS, ROWS]), folder / "parts" / "1.parquet")


def remove_file(folder: Path) -> None:
    (folder / "parts" / "1.parquet").unlink()


@pytest.mark.parametrize("change", [append_file, append_rows, remove_file])
def test_a_source_that_changes_between_passes_is_exit_5(
    house: House, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    house.write(ROWS, "parts/1.parquet")
    write = release.write

    def changed_before(*args: Any, **options: Any) -> Any:
        change(house.folder)
        return write(*args, **options)

    monkeypatch.setattr(release, "write", changed_before)
    with pytest.raises(SourceError):
        house.run(source={"path": "parts"})
    assert not house.leftovers() and not (house.folder / "out").exists() and not (house.folder / "out-run").exists()


def test_texts_that_are_too_long_to_be_held_are_counted_and_not_quoted(house: House) -> None:
    word = "SECRET" * 5_462  # 32,772 bytes
    at, rest = ROWS.schema.get_field_index("disease"), ROWS["disease"].to_pylist()[1:]
    table = ROWS.set_column(at, "disease", pa.array([word, *rest]))
    with pytest.raises(ConfigError) as refused:
        house.run(table)
    assert "1 row with a value of more than 32,768 bytes" in str(refused.value)
    assert "columns.sensitive.disease" in str(refused.value) and "SECRET" not in str(refused.value)
    assert house.run(ROWS.set_column(at, "disease", pa.array([word[:32_768], *rest]))).safe
