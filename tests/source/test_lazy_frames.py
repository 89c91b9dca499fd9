"""LazyFrames of Polars: evaluated once, only what is used, never whole, and without a word about values. That they give
the bytes of other frames is in test_source, that they keep to the memory in test_out_of_core."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

import anon
from anon.errors import ConfigError, SourceError
from anon.source import lazy
from tests.conftest import House

ROWS = {"age": [20, 21, 22, 30, 31, 32] * 20, "zip": ["02139", "02138"] * 60, "disease": ["Flu", "Cold", "HIV"] * 40}


@pytest.fixture
def frame() -> pl.LazyFrame:
    return pl.LazyFrame(ROWS)


def test_the_query_is_evaluated_once(house: House, frame: pl.LazyFrame) -> None:
    seen: list[int] = []

    def counting(rows: pl.DataFrame) -> pl.DataFrame:
        seen.append(rows.height)
        return rows

    house.run(frame.map_batches(counting, streamable=True))
    assert sum(seen) == len(ROWS["age"])


def test_columns_that_are_not_used_are_not_computed(house: House, frame: pl.LazyFrame) -> None:
    house.run(frame.with_columns(other=pl.col("disease").cast(pl.Int64)))
    assert house.released().column_names == ["age", "zip", "disease"]


def test_the_copy_has_a_token_for_each_identifier_and_is_private(
    house: House, frame: pl.LazyFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies: list[tuple[Any, int, int]] = []
    written = lazy._copy

    def watching(query: Any, taken: Any, tokens: Any, to: Path, stopped: Any) -> None:
        written(query, taken, tokens, to, stopped)
        copies.append((pq.read_table(to), to.parent.stat().st_mode & 0o777, to.stat().st_mode & 0o077))

    monkeypatch.setattr(lazy, "_copy", watching)
    named = frame.with_row_index("name").with_columns(pl.col("name").cast(pl.String) + "-secret")
    house.run(named, columns__identifiers=["name"])
    ((table, folder, others),) = copies
    assert table.column_names == ["age", "zip", "disease", "token of name"]
    assert len(set(table["token of name"].to_pylist())) == len(ROWS["age"])
    assert "secret" not in str(table.to_pylist())
    assert (folder, others) == (0o700, 0)
    assert house.leftovers() == []


def test_a_repeated_identifier_is_reported_as_for_other_frames(house: House, frame: pl.LazyFrame) -> None:
    named = frame.with_columns(name=pl.col("age").cast(pl.String))
    found = [house.run(rows, columns__identifiers=["name"]).to_dict() for rows in (named, named.collect())]
    assert found[0] == found[1]
    assert "repeated_identifier" in str(found[0]["warnings"])


def test_an_identifier_may_be_who_a_row_is_about(house: House, frame: pl.LazyFrame) -> None:
    named = frame.with_row_index("name")
    found = house.run(named, columns__identifiers=["name"], columns__individual="name")
    assert found.to_dict()["individuals"] == len(ROWS["age"])


def test_wide_whole_numbers_are_read(house: House, frame: pl.LazyFrame) -> None:
    house.run(frame)
    expected = house.bytes()
    house.run(frame.with_columns(pl.col("age").cast(pl.Int128)))
    assert house.bytes() == expected


def test_a_missing_column_is_named(house: House, frame: pl.LazyFrame) -> None:
    with pytest.raises(ConfigError, match="disease"):
        house.run(frame.drop("disease"))


def test_a_frame_without_rows_is_refused(house: House, frame: pl.LazyFrame) -> None:
    with pytest.raises(SourceError, match="the table has no rows"):
        house.run(frame.filter(pl.col("age") > 99))


def _failing(rows: pl.DataFrame) -> pl.DataFrame:
    raise ValueError(f"cannot use {rows['disease'][0]}")


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        (lambda frame: frame.with_columns(pl.col("disease").cast(pl.Int64)), "InvalidOperationError"),
        (lambda frame: frame.map_batches(_failing), "ValueError"),
        (lambda frame: frame.select("nothing"), "ColumnNotFoundError"),
        (lambda frame: pl.scan_parquet("missing.parquet"), "FileNotFoundError"),
    ],
)
def test_a_failing_query_is_an_error_of_the_source_without_values(
    house: House, frame: pl.LazyFrame, query: Any, kind: str
) -> None:
    with pytest.raises(SourceError, match=f"cannot be evaluated: {kind}; .* collect") as failed:
        house.run(query(frame))
    assert not any(word in str(failed.value) for word in ("Flu", "HIV", "Cold"))
    assert failed.value.__cause__ is None and failed.value.__suppress_context__
    assert house.leftovers() == []


def test_a_request_to_stop_takes_effect_while_polars_works(house: House, frame: pl.LazyFrame) -> None:
    def interrupting(rows: pl.DataFrame) -> pl.DataFrame:
        os.kill(os.getpid(), signal.SIGINT)
        return rows

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # workers of xdist ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            house.run(frame.map_batches(interrupting))
    finally:
        signal.signal(signal.SIGINT, before)
    assert house.leftovers() == []
    assert not (house.folder / "out").exists()


def test_a_lazy_frame_is_checked_as_other_tables_are(house: House, frame: pl.LazyFrame) -> None:
    house.run(frame)
    released = house.folder / "out"
    assert house.check(pl.scan_parquet(released / "release.parquet")).to_dict() == house.check(released).to_dict()


def test_a_bucketized_pair_may_be_lazy(house: House, frame: pl.LazyFrame) -> None:
    changes = {"release": {"path": "out", "run": "out-run", "form": "bucketized"}}
    house.run(frame, **changes)
    pair = tuple(pl.scan_parquet(house.folder / "out" / f"{name}.parquet") for name in ("qi", "sensitive"))
    config = house.config(**changes)
    assert anon.check(config, pair).to_dict() == anon.check(config, house.folder / "out").to_dict()
