"""The lattice search on the Adult table against every node counted by SQL, and against what the l-diversity paper says
of that table. The paper's taxonomy trees are not published, so that its numbers of minimal tables need not come out."""

from __future__ import annotations

import csv
import json
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from demo import adult as loader

import anon
from anon.errors import UnsafeError

HIERARCHIES = loader.ROOT / "hierarchies" / "adult"
FIVE = ("age", "sex", "race", "marital_status", "education")
HEIGHTS = {
    "age": 4, "sex": 1, "race": 1, "marital_status": 2, "education": 3, "native_country": 2, "workclass": 2,
    "salary_class": 1,
}  # fmt: skip
MINIMAL = {2: 10, 5: 10, 10: 8, 15: 7, 20: 7, 30: 8, 50: 8}


def config(folder: Path, columns: tuple[str, ...], sensitive: str, privacy: list[Any], **method: Any) -> dict[str, Any]:
    return {
        "source": {"path": str(folder / "none.parquet")},
        "columns": {
            "individual": "row",
            "quasi_identifiers": {name: {"hierarchy": str(HIERARCHIES / f"{name}.csv")} for name in columns},
            "sensitive": [sensitive],
        },
        "privacy": privacy,
        "method": {"kind": "lattice", **method},
        "release": {"path": str(folder / "out")},
    }


def minimal(folder: Path, table: pa.Table, columns: tuple[str, ...], sensitive: str, criterion: Any) -> set[Any]:
    anon.run(config(folder, columns, sensitive, [criterion]), table, overwrite=True)
    found = json.loads((folder / "out-run" / "recoding.json").read_text())["minimal"]
    return {tuple(entry["levels"].values()) for entry in found}


def paths(name: str) -> list[list[str]]:
    with (HIERARCHIES / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file, delimiter=";"))


@pytest.fixture(scope="module")
def smallest(adult: pa.Table) -> dict[tuple[int, ...], int]:
    """The smallest group of every node over five columns."""
    con = duckdb.connect()
    con.register("adult", adult)
    joins, labels = [], []
    for name in FIVE:
        rows = paths(name)
        con.register(f"h_{name}", pa.table({f"l{i}": [row[i] for row in rows] for i in range(len(rows[0]))}))
        joins.append(f"JOIN h_{name} ON {name}::VARCHAR = h_{name}.l0")
        labels += [f"h_{name}.l{i} AS {name}{i}" for i in range(len(rows[0]))]
    con.execute(f"CREATE TABLE labelled AS SELECT {', '.join(labels)} FROM adult {' '.join(joins)}").fetchall()
    found = {}
    for levels in product(*(range(HEIGHTS[name] + 1) for name in FIVE)):
        by = ", ".join(f"{name}{level}" for name, level in zip(FIVE, levels))
        sizes = f"SELECT count(*) AS n FROM labelled GROUP BY {by}"
        found[levels] = con.execute(f"SELECT min(n) FROM ({sizes})").fetchall()[0][0]
    return found


def below(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other))


@pytest.mark.parametrize("name", HEIGHTS)
def test_the_hierarchies_are_as_high_as_the_paper_says_and_cover_the_table(name: str, adult: pa.Table) -> None:
    rows = paths(name)
    assert {len(row) for row in rows} == {HEIGHTS[name] + 1}
    assert {row[-1] for row in rows} == {"*"}
    assert {str(value) for value in adult[name].to_pylist()} <= {row[0] for row in rows}


@pytest.mark.parametrize("k", MINIMAL)
def test_all_minimal_k_anonymous_tables_are_found(
    k: int, tmp_path: Path, adult: pa.Table, smallest: dict[tuple[int, ...], int]
) -> None:
    safe = [levels for levels, size in smallest.items() if size >= k]
    wished = {levels for levels in safe if not any(below(other, levels) for other in safe)}
    found = minimal(tmp_path, adult, FIVE, "salary_class", {"k_anonymity": {"k": k}})
    assert found == wished
    assert len(found) == MINIMAL[k]


def test_no_generalization_is_more_than_entropy_10_57_diverse(tmp_path: Path, adult: pa.Table) -> None:
    criterion = {"l_diversity": {"kind": "entropy", "l": 10.57}}
    with pytest.raises(UnsafeError, match="even the whole table as one group fails"):
        minimal(tmp_path, adult, FIVE, "occupation", criterion)
    criterion["l_diversity"]["l"] = 10.56
    assert (4, 1, 1, 2, 3) in minimal(tmp_path, adult, FIVE, "occupation", criterion)


def test_no_generalization_is_recursive_3_12_diverse(tmp_path: Path, adult: pa.Table) -> None:
    criterion = {"l_diversity": {"kind": "recursive", "c": 3, "l": 12}}
    with pytest.raises(UnsafeError, match="even the whole table as one group fails"):
        minimal(tmp_path, adult, FIVE, "occupation", criterion)


def test_a_minimal_4_anonymous_table_may_have_large_groups(tmp_path: Path, adult: pa.Table) -> None:
    """Section 6: some minimal 4-anonymous tables have more than 1,000 people per group on average."""
    anon.run(config(tmp_path, FIVE, "occupation", [{"k_anonymity": {"k": 4}}]), adult)
    found = json.loads((tmp_path / "out-run" / "recoding.json").read_text())["minimal"]
    assert max(entry["average_group"] for entry in found) > 1_000


def test_suppression_saves_levels(tmp_path: Path, adult: pa.Table) -> None:
    privacy = [{"k_anonymity": {"k": 5}}]
    losses = []
    for share in (0, 0.02):
        result = anon.run(config(tmp_path, FIVE, "occupation", privacy, suppress=share), adult, overwrite=True)
        told = result.to_dict()
        assert told["safe"] and told["suppressed"] <= share * adult.num_rows
        assert told["rows"] + told["suppressed"] == adult.num_rows
        losses.append(json.loads((tmp_path / "out-run" / "recoding.json").read_text())["chosen"]["loss"])
    assert losses[1] < losses[0]
