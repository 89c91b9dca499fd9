"""`anon series`: the state of a ledger, and individuals who are taken out of a series."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import anon
from anon.cli.app import app
from anon.commands import series
from anon.errors import ConfigError, VerificationError
from anon.runs.series.kept_rows import KeptRows
from tests.helpers.series import People, digests, extract, series_config, waiting


@pytest.fixture
def begun(tmp_path: Path) -> tuple[dict[str, Any], People]:
    """A series of two parts, and one person who waits."""
    return begin(tmp_path)


def begin(folder: Path, **release: Any) -> tuple[dict[str, Any], People]:
    config, people = series_config(folder, **release), People(21)
    for size in (40, 30, 1):
        extract(folder, people.arrive(size))
        anon.run(config)
    return config, people


def ids(folder: Path, names: list[str]) -> Path:
    (folder / "ids.txt").write_text("".join(f"{name}\n" for name in names))
    return folder / "ids.txt"


def test_status_lists_the_parts_and_counts_individuals(tmp_path: Path, begun: tuple[dict[str, Any], People]) -> None:
    found = series.status(begun[0]).to_dict()
    assert [(part["part"], part["rows"]) for part in found["parts"]] == [(1, 40), (2, 30)]
    assert (found["released"], found["waiting"], found["withdrawn"], found["nights"]) == (70, 1, 0, 3)
    (tmp_path / "config.json").write_text(json.dumps(begun[0]))
    shown = CliRunner().invoke(app, ["series", "status", str(tmp_path / "config.json")])
    assert shown.exit_code == 0 and "70 released, 1 waiting, 0 withdrawn, after 3 nights" in shown.stdout


def test_a_withdrawal_is_only_counted_before_it_is_confirmed(
    tmp_path: Path, begun: tuple[dict[str, Any], People]
) -> None:
    before = digests(tmp_path)
    found = series.withdraw(begun[0], ids(tmp_path, ["p0", "p70", "nobody"])).to_dict()
    assert (found["individuals"], found["in_parts"], found["waiting"], found["unknown"]) == (3, 1, 1, 1)
    assert found["groups"] == 1 and found["others"] >= 2 and not found["done"]
    assert digests(tmp_path) == before and waiting(tmp_path) == {"p70"}


@pytest.mark.parametrize(
    "release", [{}, {"form": "bucketized"}, {"format": "csv"}, {"form": "bucketized", "format": "csv"}]
)
def test_whole_groups_go_and_nobody_of_them_comes_back(tmp_path: Path, release: dict[str, Any]) -> None:
    config, people = begin(tmp_path, **release)
    table = "qi" if "form" in release else "part"
    suffix = release.get("format", "parquet")
    reader = f"read_{suffix}('{tmp_path}/out/{table}-000001.{suffix}'{', all_varchar = true' * (suffix == 'csv')})"
    before, other = duckdb.sql(f"SELECT * FROM {reader}").fetchall(), digests(tmp_path)
    found = series.withdraw(config, ids(tmp_path, ["p0", "p70", "p99"]), yes=True).to_dict()
    assert found["done"]
    after = duckdb.sql(f"SELECT * FROM {reader}").fetchall()
    gone = [row for row in before if row not in after]
    assert len(before) - len(after) == found["others"] + 1 and len({row[:2] for row in gone}) <= found["groups"] + len(
        gone
    )
    labels = {row[:2] for row in before} - {row[:2] for row in after} if table == "part" else set()
    assert len(labels) == (found["groups"] if table == "part" else 0)
    changed = [name for name, digest in digests(tmp_path).items() if other[name] != digest]
    assert changed == [f"{table}-000001.{suffix}"] + ([f"sensitive-000001.{suffix}"] if table == "qi" else [])
    assert anon.check(config, tmp_path / "out").safe
    extract(tmp_path, list(people.known.values()) + people.arrive(29))  # p99 is the last of them
    night = anon.run(config).to_dict()["series"]
    assert (night["new"], night["again"], night["waiting"]) == (28, 72, 0)
    status = series.status(config).to_dict()
    assert status["withdrawn"] == 3 and status["parts"][0]["withdrawn_groups"] == 1
    again = series.withdraw(config, ids(tmp_path, ["p0", "p1", "p2"]), yes=True).to_dict()
    assert again["done"] and anon.check(config, tmp_path / "out").safe


def test_commands_need_a_series_that_has_begun(tmp_path: Path) -> None:
    config = series_config(tmp_path)
    with pytest.raises(ConfigError, match="where no ledger is"):
        series.status(config)
    plain = config | {"release": {"path": str(tmp_path / "out")}}
    with pytest.raises(ConfigError, match=r"release\.series: found nothing"):
        series.status(plain)


def test_a_kept_column_may_be_called_group(tmp_path: Path) -> None:
    for format in ("parquet", "csv"):
        folder = tmp_path / format
        folder.mkdir()
        config, rows = series_config(folder, format=format), People(3).arrive(40)
        config["columns"] = config["columns"] | {"keep": ["group"]}
        named = [row | {"group": "AB"[row["stay"] % 2]} for row in rows]
        pq.write_table(pa.Table.from_pylist(named), folder / "extract.parquet")
        anon.run(config)
        found = series.withdraw(config, ids(folder, ["p0"]), yes=True).to_dict()
        left = duckdb.sql(f"SELECT count(*) FROM '{folder}/out/part-000001.{format}'").fetchall()
        assert found["groups"] == 1 and left == [(40 - 1 - found["others"],)]


def test_a_part_with_other_members_than_its_ledger_is_not_changed(
    tmp_path: Path, begun: tuple[dict[str, Any], People], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = digests(tmp_path)
    monkeypatch.setattr(KeptRows, "_number", lambda self, labels: len(labels[0]))
    monkeypatch.setattr(KeptRows, "check", lambda self: None)
    with pytest.raises(VerificationError, match="in the groups that go, and its ledger"):
        series.withdraw(begun[0], ids(tmp_path, ["p0"]), yes=True)
    assert digests(tmp_path) == before


def test_csv_parts_are_copied_whatever_their_texts_are(tmp_path: Path) -> None:
    """Missing and empty quasi-identifiers are in groups beside each other, and a text is longer than `csv` reads."""
    config = series_config(tmp_path, [{"k_anonymity": {"k": 3}}], format="csv")
    config["columns"] = {
        "individual": "id", "quasi_identifiers": {"zip": {"suppress": True}}, "sensitive": ["ill"], "keep": ["stay"]
    }  # fmt: skip
    config["nulls"] = {"quasi_identifiers": "value"}
    texts = [None, "", "a", '"b",\n"']
    rows = [{"id": f"p{at}", "zip": texts[at % 4], "ill": "flu", "stay": 'x,\n"' * 40_000} for at in range(12)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "extract.parquet")
    anon.run(config)
    options = "all_varchar = true, max_line_size = 1000000, allow_quoted_nulls = false"
    part = f"read_csv('{tmp_path}/out/part-000001.csv', {options})"
    groups = duckdb.sql(f"SELECT count(DISTINCT coalesce('=' || zip, '')) FROM {part}").fetchall()
    found = series.withdraw(config, ids(tmp_path, ["p1"]), yes=True).to_dict()
    assert (found["groups"], found["others"]) == (1, 2) and groups == [(4,)]
    kept = duckdb.sql(f"SELECT count(*), min(length(stay)) FROM {part}").fetchall()
    assert kept == [(9, 160_000)] and anon.check(config, tmp_path / "out").safe


def test_a_list_of_individuals_is_read_as_it_is(tmp_path: Path) -> None:
    config, people = series_config(tmp_path), People(5)
    rows = people.arrive(40)
    names = ["first", "a\u2028b", "c\x1cd"]
    extract(tmp_path, [row | {"id": name} for row, name in zip(rows, names)] + rows[3:])
    anon.run(config)
    for text in ("\ufefffirst\r\na\u2028b\r\n", "c\x1cd\nfirst\n"):
        (tmp_path / "ids.txt").write_bytes(text.encode())
        found = series.withdraw(config, tmp_path / "ids.txt").to_dict()
        assert (found["individuals"], found["in_parts"], found["unknown"]) == (2, 2, 0)


def test_numbers_in_a_list_are_compared_as_numbers(tmp_path: Path) -> None:
    config, rows = series_config(tmp_path), People(5).arrive(40)
    numbered = [row | {"id": float(at)} for at, row in enumerate(rows)]
    pq.write_table(pa.Table.from_pylist(numbered), tmp_path / "extract.parquet")
    anon.run(config)
    found = series.withdraw(config, ids(tmp_path, ["3", "4.0", "5.5"])).to_dict()
    assert (found["in_parts"], found["unknown"]) == (2, 1)


def test_those_who_were_withdrawn_before_are_not_unknown(tmp_path: Path, begun: tuple[dict[str, Any], People]) -> None:
    config, _ = begun
    file = ids(tmp_path, ["p0", "nobody"])
    series.withdraw(config, file, yes=True)
    again = series.withdraw(config, ids(tmp_path, ["p0", "nobody", "other"])).to_dict()
    assert (again["withdrawn_before"], again["unknown"], again["in_parts"]) == (2, 1, 0)
    (tmp_path / "config.json").write_text(json.dumps(config))
    command = ["series", "withdraw", str(tmp_path / "config.json"), "--individuals", str(file), "--yes"]
    (tmp_path / "ids.txt").write_text("stranger\n")
    shown = CliRunner().invoke(app, command).stdout
    assert "1 id of the list fit nobody in the series: nothing was taken out for them" in " ".join(shown.split())
