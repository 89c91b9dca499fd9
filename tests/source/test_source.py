"""The source stage as its users meet it: the same rows in any clothes give the same bytes."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from anon.errors import SourceError
from tests.conftest import House
from tests.helpers.source import EVERYTHING, ROWS, as_csv


def shuffled(table: pa.Table, seed: int = 1) -> pa.Table:
    order = list(range(len(table)))
    random.Random(seed).shuffle(order)
    return table.take(order)


def in_parts(house: House, table: pa.Table, folder: str, suffix: str) -> None:
    for index in range(3):
        path = house.folder / folder / f"year={index}" / f"part.{suffix}"
        path.parent.mkdir(parents=True)
        part = table.slice(index * 5, 5)
        if suffix == "csv":
            path.write_bytes(as_csv(part, ";"))
        else:
            pq.write_table(part, path)


def one_file(house: House) -> str:
    house.write(shuffled(ROWS), row_group_size=2)
    return "table.parquet"


def glob_of_files(house: House) -> str:
    in_parts(house, shuffled(ROWS, 2), "parts", "parquet")
    return "parts/**/**/*.parquet"


def nested_folder(house: House) -> str:
    in_parts(house, shuffled(ROWS, 3), "parts", "parquet")
    for note in ("_temporary/part.parquet", ".hidden.parquet", "_SUCCESS"):
        path = house.folder / "parts" / note
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"not a table")
    return "parts"


def csv_file(house: House) -> str:
    (house.folder / "table.csv").write_bytes(b"\xef\xbb\xbf" + as_csv(shuffled(ROWS)).replace(b"\n", b"\r\n"))
    return "table.csv"


def folder_of_csv(house: House) -> str:
    in_parts(house, shuffled(ROWS, 4), "parts", "csv")
    return "parts"


def name_like_a_pattern(house: House) -> str:
    house.write(ROWS, "part[1].parquet")
    house.write(ROWS.slice(0, 3), "part1.parquet")
    return "part[1].parquet"


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes that the rows give, in whatever clothes they come."""
    house = House(tmp_path_factory.mktemp("expected"))
    house.run(ROWS, **EVERYTHING)
    return house.bytes()


@pytest.mark.parametrize(
    "layout", [one_file, glob_of_files, nested_folder, csv_file, folder_of_csv, name_like_a_pattern]
)
def test_the_bytes_do_not_depend_on_how_the_rows_are_stored(
    house: House, expected: bytes, layout: Callable[[House], str]
) -> None:
    house.run(source={"path": layout(house)}, **EVERYTHING)
    assert house.bytes() == expected


def to_pandas(table: pa.Table) -> Any:
    pytest.importorskip("pandas")
    return table.select(["zip", "disease", "insured"]).to_pandas()


FRAMES: dict[str, Callable[[pa.Table], Any]] = {
    "polars": pl.DataFrame,
    "polars categories": lambda table: pl.DataFrame(table).with_columns(pl.col("disease").cast(pl.Categorical)),
    "polars lazily": pl.LazyFrame,
    "polars lazily, categories": lambda table: pl.LazyFrame(table).with_columns(pl.col("disease").cast(pl.Categorical)),
    "dictionary": lambda t: t.set_column(2, "disease", t["disease"].dictionary_encode()),
    "reader": lambda table: table.to_reader(),
    "batch": lambda table: table.combine_chunks().to_batches()[0],
    "relation": duckdb.from_arrow,
}


@pytest.mark.parametrize("frame", FRAMES)
def test_the_bytes_do_not_depend_on_the_kind_of_frame(house: House, expected: bytes, frame: str) -> None:
    house.run(FRAMES[frame](shuffled(ROWS)), **EVERYTHING)
    assert house.bytes() == expected


def test_a_pandas_frame_gives_the_same_bytes(house: House) -> None:
    frame = to_pandas(ROWS.drop_null())
    columns = {"individual": "row", "quasi_identifiers": {"zip": {"digits": 5}}, "sensitive": ["disease"]}
    house.run(ROWS.drop_null(), columns=columns)
    expected = house.bytes()
    house.run(frame, columns=columns)
    assert house.bytes() == expected


def test_a_parquet_file_may_have_any_name(house: House, expected: bytes) -> None:
    house.write(ROWS, "part-00000")
    house.run(source={"path": "part-00000"}, **EVERYTHING)
    assert house.bytes() == expected


@pytest.mark.parametrize("frame", ["table.parquet", [1, 2], 7])
def test_what_is_no_frame_is_refused_with_its_type(house: House, frame: Any) -> None:
    with pytest.raises(SourceError, match="Arrow-speaking"):
        house.run(frame)


def test_parts_may_have_their_columns_in_another_order(house: House, expected: bytes) -> None:
    house.write(ROWS.slice(0, 6), "parts/1.parquet")
    house.write(ROWS.slice(6).select(ROWS.column_names[::-1]), "parts/2.parquet")
    house.run(source={"path": "parts"}, **EVERYTHING)
    assert house.bytes() == expected
