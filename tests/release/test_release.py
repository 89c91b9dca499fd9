"""The release as its readers meet it: rows, order, labels, bytes, files and their description."""

from __future__ import annotations

import csv
import datetime as dt
import hashlib
import json
import math
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anon import cube, pipeline, release
from anon.errors import SourceError
from anon.recoding.tree import ColumnLabels
from anon.runs.options import Options
from anon.source import Source
from anon.source import rows as source_rows
from tests.helpers import release as helpers
from tests.helpers.release import KEEP, QUASI_IDENTIFIERS, SENSITIVE, as_table, config, random_rows, released, run

NAMES = [*QUASI_IDENTIFIERS, *SENSITIVE, *KEEP]
TINY = settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def files(folder: Path) -> dict[str, str]:
    """The digests of everything whose bytes are promised."""
    paths = [*(folder / "out").iterdir(), folder / "out-run" / "recoding.json"]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


@dataclass(frozen=True)
class Published:
    """Random rows, and what a run made of them."""

    source: helpers.Rows
    table: pa.Table

    @property
    def rows(self) -> helpers.Rows:
        rows: helpers.Rows = self.table.to_pylist()
        return rows


@pytest.fixture(scope="module", params=range(8))
def published(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Published:
    """A run over few or many random rows, the same for all tests that only look at its release."""
    folder, source = tmp_path_factory.mktemp("published"), random_rows(request.param, 3 + 12 * request.param)
    run(folder, source)
    return Published(source, pq.ParquetFile(folder / "out" / "release.parquet").read())


# Rows and labels


def test_rows_are_published_in_canonical_order(published: Published) -> None:
    rows = published.rows
    key = helpers.canonical_key(NAMES)
    assert list(rows[0]) == NAMES
    assert [key(row) for row in rows] == sorted(key(row) for row in rows)


def test_the_release_is_the_source_with_labels_that_contain_each_value(published: Published) -> None:
    source, rows = published.source, published.rows
    read = helpers.grammar(source)
    labels = sorted({tuple(row[name] for name in QUASI_IDENTIFIERS) for row in rows}, key=str)
    expected = []
    for row in as_table(source).to_pylist():
        mine = [
            label
            for label in labels
            if all(read[n].contains(word, helpers.clean(row[n])) for n, word in zip(QUASI_IDENTIFIERS, label))
        ]
        assert len(mine) == 1, "the labels of groups must not overlap"
        expected.append(dict(zip(QUASI_IDENTIFIERS, mine[0])) | {name: row[name] for name in (*SENSITIVE, *KEEP)})
    assert helpers.counted(rows, NAMES) == helpers.counted(expected, NAMES)


@TINY
@given(seed=st.integers(0, 10**6))
def test_labels_tile_the_domain_so_they_are_not_the_extremes_of_members(tmp_path: Path, seed: int) -> None:
    source, free = random_rows(seed, 60), ["age", "score", "born", "seen", "city"]
    run(tmp_path, source, columns__quasi_identifiers={name: {} for name in free})
    read, rng = helpers.grammar(source), random.Random(seed)
    labels = {tuple(row[name] for name in free) for row in released(tmp_path)}
    domains = [sorted({helpers.clean(row[name]) for row in source}, key=str) for name in free]
    for _ in range(300):
        point = [rng.choice(domain) for domain in domains]
        holders = [
            label for label in labels if all(read[n].contains(word, v) for n, word, v in zip(free, label, point))
        ]
        assert len(holders) == 1


def test_bounds_of_a_cell_are_not_moved_by_its_members(tmp_path: Path) -> None:
    """Men are 10 to 12 and 40 to 42, women 10 to 45: after the cut by age each group keeps the cell of the cut."""
    rows = [{"age": age, "sex": "f", "d": "a"} for age in range(10, 46)]
    rows += [{"age": age, "sex": "m", "d": "a"} for age in (10, 11, 12, 40, 41, 42)]
    columns = {"individual": "row", "quasi_identifiers": {"age": {}, "sex": {"suppress": True}}, "sensitive": ["d"]}
    run(tmp_path, pa.Table.from_pylist(rows), columns=columns)
    men = {row["age"] for row in released(tmp_path) if row["sex"] == "m"}
    low, high = sorted(men)
    assert low.startswith("<=") and int(low[2:]) > 12
    assert high.startswith(">=") and int(high[2:]) < 40


def test_without_kept_columns_the_rows_are_the_same_in_the_same_order(tmp_path: Path) -> None:
    source = random_rows(5, 200)
    run(tmp_path, source)
    kept = [{name: row[name] for name in (*QUASI_IDENTIFIERS, *SENSITIVE)} for row in released(tmp_path)]
    run(tmp_path, source, columns__keep=[])
    assert released(tmp_path) == kept


def test_rows_dropped_for_their_nulls_are_absent(tmp_path: Path) -> None:
    source = random_rows(6, 120)
    run(tmp_path, source, nulls={"quasi_identifiers": "drop", "sensitive": "drop"})
    full = [r for r in source if all(helpers.clean(r[n]) is not None for n in (*QUASI_IDENTIFIERS, *SENSITIVE))]
    assert len(released(tmp_path)) == len(full) > 0


# Bytes


@TINY
@given(seed=st.integers(0, 10**6), data=st.data())
def test_bytes_do_not_depend_on_order_layout_batches_or_threads(tmp_path: Path, seed: int, data: Any) -> None:
    source = random_rows(seed, 60)
    run(tmp_path, source)
    before = files(tmp_path)
    shuffled = as_table(data.draw(st.permutations(source)))
    parts = data.draw(st.integers(1, 4))
    folder = tmp_path / f"parts-{data.draw(st.integers(0, 10**9))}"
    folder.mkdir(exist_ok=True)
    for part in range(parts):
        piece = shuffled.slice(part * 60 // parts, (part + 1) * 60 // parts - part * 60 // parts)
        pq.write_table(piece, folder / f"{parts}-{part}.parquet", row_group_size=data.draw(st.integers(1, 30)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source_rows, "BATCH", data.draw(st.integers(1, 70)))
        threads = data.draw(st.integers(1, 3))
        given_config = config(tmp_path, source={"path": f"{folder}/{parts}-*.parquet"}, limits__threads=threads)
        pipeline.run(given_config, None, Options(overwrite=True, force=True))
    assert files(tmp_path) == before


@pytest.fixture(scope="module")
def large() -> pa.Table:
    """Rows for three row groups of the release, of which the tests make smaller ones."""
    rng, count = np.random.default_rng(7), 75_000
    return pa.table(
        {
            "age": rng.integers(0, 60, count),
            "sex": rng.choice(np.array(["f", "m"]), count),
            "zip": rng.choice(np.array([f"{n:03d}" for n in range(40)]), count),
            "disease": rng.choice(np.array(["flu", "HIV", "ok", "cold"]), count, p=[0.3, 0.1, 0.3, 0.3]),
            "hours": rng.integers(0, 1_000_000, count),
        }
    )


@pytest.mark.parametrize("keep", [[], ["hours"]])
def test_row_groups_of_the_file_are_full_but_for_the_last(
    tmp_path: Path, large: pa.Table, monkeypatch: pytest.MonkeyPatch, keep: list[str]
) -> None:
    monkeypatch.setattr(release.files, "ROW_GROUP", 32_768)
    columns = {
        "individual": "row",
        "quasi_identifiers": {"age": {}, "sex": {"suppress": True}, "zip": {"digits": 3}},
        "sensitive": ["disease"],
        "keep": keep,
    }
    run(tmp_path, large, columns=columns, privacy=[{"k_anonymity": {"k": 50}}])
    parquet = pq.ParquetFile(tmp_path / "out" / "release.parquet")
    sizes = [parquet.metadata.row_group(i).num_rows for i in range(parquet.metadata.num_row_groups)]
    assert sizes == [release.files.ROW_GROUP, release.files.ROW_GROUP, len(large) - 2 * release.files.ROW_GROUP]


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_row_groups_of_long_texts_end_early_wherever_batches_do(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(release.files, "ROW_GROUP", 8)
    monkeypatch.setattr(release.files, "LONG", 100)
    lengths = [10, 0, 89, 1, 250, 20, *[0] * 17, 60, 60, 7]
    rows = pa.record_batch({"t": pa.array(["x" * length if length else None for length in lengths])})
    batches = [rows.slice(start, size) for start in range(0, len(lengths), size)]
    groups = list(release.files.row_groups(batches))
    assert [group.num_rows for group in groups] == [4, 1, 8, 8, 4, 1]
    assert pa.concat_tables(groups).to_pylist() == rows.to_pylist()


# What must not be in the files


def test_the_bytes_hold_no_value_that_is_not_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row groups of 16 rows, so that a dictionary of the whole table would show in each of them."""
    monkeypatch.setattr(release.files, "COMPRESSION", "none")
    monkeypatch.setattr(release.files, "ROW_GROUP", 16)
    rows = [
        {
            "name": f"IDENTIFIER-{i}",
            "town": f"TOWN-{i:03d}",
            "age": 1000 + 7 * (i % 100),
            "d": f"value-{i % 4}" if i else None,
            "note": f"note-{i:03d}",
            "other": f"UNNAMED-{i}",
        }
        for i in range(100)
    ]
    rows[0]["note"] = "ROW-THAT-IS-DROPPED"
    columns = {
        "identifiers": ["name"],
        "individual": "row",
        "quasi_identifiers": {"town": {"suppress": True}, "age": {}},
        "sensitive": ["d"],
        "keep": ["note"],
    }
    run(tmp_path, pa.Table.from_pylist(rows), columns=columns, nulls={"sensitive": "drop"},
        privacy=[{"k_anonymity": {"k": 20}}])  # fmt: skip
    path = tmp_path / "out" / "release.parquet"
    content = path.read_bytes()
    assert b"note-042" in content and b"value-3" in content, "the file is not compressed"
    for marker in (b"IDENTIFIER", b"TOWN", b"UNNAMED", b"DROPPED", b"source.parquet", str(tmp_path).encode()):
        assert marker not in content
        assert marker not in (tmp_path / "out" / "datapackage.json").read_bytes()
    labels = {row["age"] for row in released(tmp_path)}
    shown = {word.strip("<>=") for label in labels for word in label.split("-")}
    hidden = {str(row["age"]) for row in rows} - shown
    assert hidden and not [word for word in hidden if word.encode() in content]
    parquet = pq.ParquetFile(path)
    for index in range(parquet.metadata.num_row_groups):
        own = {row["note"] for row in parquet.read_row_group(index).to_pylist()}
        column = parquet.metadata.row_group(index).column(3)
        start = column.dictionary_page_offset or column.data_page_offset
        chunk = content[start : start + column.total_compressed_size]
        others = {row["note"] for row in rows} - own
        assert not [note for note in others if note.encode() in chunk]


def test_files_carry_no_metadata(tmp_path: Path) -> None:
    run(tmp_path, as_table(random_rows(8, 80)).replace_schema_metadata({"origin": "ward 7"}))
    parquet = pq.ParquetFile(tmp_path / "out" / "release.parquet")
    assert parquet.metadata.metadata is None
    assert parquet.schema_arrow.metadata is None
    assert parquet.metadata.num_columns == len(NAMES)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["datapackage.json", "release.parquet"]


# Types


KEPT_TYPES: dict[str, pa.Array] = {
    "whole": pa.array([-5, None, 3], pa.int8()),
    "unsigned": pa.array([5, None, 2**62], pa.uint64()),
    "number": pa.array([math.nan, None, -0.0], pa.float32()),
    "infinite": pa.array([math.inf, -math.inf, 1e300], pa.float64()),
    "decimal": pa.array([None, "1.50", "-99999999999999999999.125"], pa.string()).cast(pa.decimal128(38, 3)),
    "truth": pa.array([True, None, False]),
    "day": pa.array([dt.date(1, 1, 1), None, dt.date(2024, 2, 29)]),
    "second": pa.array([dt.datetime(2024, 1, 1), None, dt.datetime(1969, 1, 1)], pa.timestamp("s")),
    "milli": pa.array([dt.datetime(2024, 1, 1), None, dt.datetime(1969, 1, 1)], pa.timestamp("ms")),
    "micro": pa.array([dt.datetime(2024, 1, 1, 0, 0, 0, 1), None, dt.datetime(1969, 1, 1)], pa.timestamp("us")),
    "nano": pa.array([1000, None, -1000], pa.timestamp("ns")),
    "zoned": pa.array([dt.datetime(2024, 1, 1), None, dt.datetime(1969, 1, 1)], pa.timestamp("us", "Europe/Zurich")),
    "text": pa.array(["", None, 'a,"b"\n']),
    "category": pa.array(["x", None, "y"]).dictionary_encode(),
}


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_kept_columns_of_every_type_pass_verification(tmp_path: Path, format: str) -> None:
    kept = {name: pa.concat_arrays([values] * 2) for name, values in KEPT_TYPES.items()}
    table = pa.table({"age": [1, 2, 3, 1, 2, 3], **kept})
    columns = {"individual": "row", "quasi_identifiers": {"age": {}}, "keep": list(kept)}
    assert run(tmp_path, table, columns=columns, release__format=format).safe
    if format == "parquet":
        assert helpers.counted(released(tmp_path), list(kept)) == helpers.counted(table.to_pylist(), list(kept))


# CSV


def test_csv_has_the_same_rows_in_the_same_order(tmp_path: Path, published: Published) -> None:
    expected = published.table
    run(tmp_path, published.source, release__format="csv")
    path = tmp_path / "out" / "release.csv"
    labels = {name: pa.string() for name in QUASI_IDENTIFIERS}
    types = labels | {name: expected.schema.field(name).type for name in (*SENSITIVE, *KEEP)}
    read = pyarrow.csv.read_csv(
        path,
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=types, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    )
    rows = [{n: helpers.comparable(v) for n, v in row.items()} for row in read.to_pylist()]
    assert rows == [{n: helpers.comparable(v) for n, v in row.items()} for row in expected.to_pylist()]
    assert {"", None} <= {row["note"] for row in rows} or len({row["note"] for row in rows}) < len(helpers.NOTES)


# The description


def test_datapackage_describes_the_columns_in_order_and_the_criteria_exactly(tmp_path: Path) -> None:
    privacy = [
        {"k_anonymity": {"k": 3}},
        {
            "skyline": {
                "sensitive": "disease",
                "points": [{"l": 0, "k": 0, "m": 0, "c": 1}],
                "values": {"HIV": "exempt"},
            }
        },
    ]
    for format in ("parquet", "csv"):
        run(tmp_path, random_rows(11, 120), privacy=privacy, release__format=format)
        package = json.loads((tmp_path / "out" / "datapackage.json").read_text())
        resource = package["resources"][0]
        types = ["string"] * 7 + ["string", "integer", "number", "number", "string", "datetime"]
        assert [(field["name"], field["type"]) for field in resource["schema"]["fields"]] == list(zip(NAMES, types))
        assert resource["path"] == f"release.{format}"
        assert package["criteria"] == privacy
        assert resource["rows"] == 120
        del package["labels"]  # its examples have dates
        for word in (str(tmp_path), "sha256", "202", "source.parquet", "IDENTIFIER"):
            assert word not in json.dumps(package)


def test_datapackage_names_the_levels_in_use(tmp_path: Path) -> None:
    rows = [{"zip": f"{i % 2}{i % 4}", "sex": "fm"[i % 2], "d": "x"} for i in range(40)]
    columns = {
        "individual": "row",
        "quasi_identifiers": {"zip": {"digits": 2}, "sex": {"suppress": True}},
        "sensitive": ["d"],
    }
    run(tmp_path, pa.Table.from_pylist(rows), columns=columns, privacy=[{"k_anonymity": {"k": 20}}])
    cells = json.loads((tmp_path / "out" / "datapackage.json").read_text())["cells"]
    published = {name: {row[name] for row in released(tmp_path)} for name in ("zip", "sex")}
    assert cells["sex"]["levels"] == ([0] if published["sex"] == {"f", "m"} else [1])
    level = {"*": 2} | {f"{n}*": 1 for n in range(2)}
    assert cells["zip"]["levels"] == sorted({level.get(label, 0) for label in published["zip"]})
    assert cells["zip"]["labels"] == len(published["zip"])


# Failures under way


@pytest.mark.parametrize("failure", [SourceError("new values appeared"), KeyboardInterrupt()])
def test_a_failure_of_the_second_pass_is_told_as_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    class Failing(cube.Encoder):
        def codes(self, batch: pa.RecordBatch) -> Any:
            raise failure

    monkeypatch.setattr(release.rows, "Encoder", Failing)
    with pytest.raises(type(failure)) as caught:
        run(tmp_path, random_rows(1, 30))
    assert caught.value is failure or isinstance(failure, KeyboardInterrupt)  # which is told what is kept


def test_a_source_that_loses_rows_between_passes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = Source.batches

    def fewer(self: Source, columns: list[Any], counted: bool = False, view: str = Source.VIEW) -> Any:
        last = any(column in self.keep for column in columns)  # the pass that the release is written from
        for batch in batches(self, columns, counted, view):
            yield batch.slice(int(last))

    monkeypatch.setattr(Source, "batches", fewer)
    with pytest.raises(SourceError, match="changed between two passes"):
        run(tmp_path, random_rows(1, 30))
    assert not (tmp_path / "out").exists()


def test_labels_of_a_row_group_are_a_dictionary_of_its_own() -> None:
    labels = ColumnLabels(pa.array([None, "1-2", "3-4", ">=5"]), np.array([3, 0, 1, 2]), np.zeros((4, 2), np.int64))
    array = release.files.label_array(labels, np.array([0, 1, 3], np.uint32), np.array([2, 1, 1]))
    assert array.dictionary.to_pylist() == ["3-4", ">=5"]
    assert array.to_pylist() == [">=5", ">=5", None, "3-4"]


FORMULAS = ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", '-2+HYPERLINK("x")', "\t=1", "\r=1", "\n=1", "＝1", "-x"]
HARMLESS = ["-5", "-1.5", "+49 (30) 123-45", "-5..3", "a=b", " =1", "", "-", "1-2", "5@home"]


@pytest.mark.parametrize("form", ["generalized", "bucketized"])
def test_cells_that_spreadsheets_run_are_counted_and_published_as_they_are(tmp_path: Path, form: str) -> None:
    words = FORMULAS + HARMLESS
    same = {"age": [30] * len(words), "net": [-1.5] * len(words), "grade": ["-x"] * len(words)}
    table = pa.table({**same, "disease": words, "=note": words})
    columns = {
        "individual": "row", "quasi_identifiers": {"age": {}, "grade": {}}, "sensitive": ["disease"],
        "keep": ["=note", "net"],
    }  # fmt: skip
    kept = {"columns": columns, "release__form": form, "release__format": "csv", "privacy": [{"k_anonymity": {"k": 2}}]}
    told = run(tmp_path, table, **kept).to_dict()["warnings"]
    counts = {each["text"].split()[2]: each["count"] for each in told if each["code"] == "csv_formula"}
    assert counts == {"disease": len(FORMULAS), "=note": len(FORMULAS) + 1}  # grade is published as `*`
    assert not any(word in each["text"] for each in told for word in FORMULAS if len(word) > 2)
    with (tmp_path / "out" / ("release.csv" if form == "generalized" else "qi.csv")).open(newline="") as file:
        assert sorted(row["=note"] for row in csv.DictReader(file)) == sorted(words)
    run(tmp_path, table, **kept | {"release__format": "parquet"})
    report = json.loads((tmp_path / "out-run" / "report.json").read_text())
    assert "csv_formula" not in [each["code"] for each in report["summary"]["warnings"]]
