"""Figures 9 to 12 of the l-diversity paper: `python bench/homogeneity.py [--table adult hospital] [--rows 200000]`.

For each k, all minimal k-anonymous generalizations of a table, and how many groups and rows of them tell the sensitive
value of everybody in a group, surely or with 95%. The search is `anon run`; what tables tell is counted here by SQL.

adult     Figures 9 and 11: the Adult table over {age, sex, race, marital status, education}, salary class, with our
          hierarchies in place of the paper's taxonomy trees, which are not published
hospital  in place of Figures 10 and 12, whose table (Lands End, 4.6 million sales) nobody can have: the made-up
          hospital of the demo over columns of the same kinds, {zip code, day of admission, sex, ward, age}, and the
          cost rounded to the nearest 100. The same procedure, not the same numbers.

Prints a table for each and keeps both in bench/results/homogeneity.md.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent))
import lattice
from lattice import adult
from measure import ANON, ROOT, finished, keep, markdown

SHARES = (1.0, 0.95)
KS = (2, 5, 10, 15, 20, 30, 50)
ADULT = lattice.COLUMNS[:5]
LEVELS = {  # of the hospital, by the builders below
    "zip": [f"left(zip, {left})" for left in range(5, -1, -1)],
    "admitted": ["admitted", *(f"date_trunc('{part}', admitted)" for part in ("month", "quarter", "year")), "0"],
    "sex": ["sex", "0"],
    "ward": ["ward", "0"],
    "age": ["age", "age // 5", "age // 10", "age // 20", "0"],
}
BUILDERS = {
    "zip": {"digits": 5},
    "admitted": {"calendar": ["day", "month", "quarter", "year"]},
    "sex": {"suppress": True},
    "ward": {"suppress": True},
    "age": {"intervals": [5, 10, 20]},
}


@dataclass(frozen=True)
class Study:
    """A table to be attacked; `make` writes it to a file and gives a database with every column at every level."""

    title: str
    columns: dict[str, Any]
    sensitive: str
    paper: dict[int, int]  # minimal tables there by k
    make: Callable[[Path, int], duckdb.DuckDBPyConnection]


def adult_levels(table: Path, rows: int) -> duckdb.DuckDBPyConnection:
    people = lattice.adult_people()
    adult.write(people, table, as_csv=False)
    con = duckdb.connect()
    con.register("adult", people)
    joins, labels = [], []
    for name in ADULT:
        with (ROOT / f"hierarchies/adult/{name}.csv").open(newline="", encoding="utf-8") as file:
            listed = list(csv.reader(file, delimiter=";"))
        con.register(f"h_{name}", pa.table({f"l{i}": [row[i] for row in listed] for i in range(len(listed[0]))}))
        joins.append(f"JOIN h_{name} ON {name}::VARCHAR = h_{name}.l0")
        labels += [f"h_{name}.l{i} AS {name}{i}" for i in range(len(listed[0]))]
    columns = ", ".join([*labels, "salary_class AS told"])
    con.execute(f"CREATE TABLE labelled AS SELECT {columns} FROM adult {' '.join(joins)}").fetchall()
    return con


def hospital_levels(table: Path, rows: int) -> duckdb.DuckDBPyConnection:
    finished([sys.executable, ROOT / "demo" / "hospital.py", "--rows", rows, "--out", table])
    con = duckdb.connect()
    labels = [f"{sql} AS {name}{level}" for name, levels in LEVELS.items() for level, sql in enumerate(levels)]
    columns = ", ".join([*labels, "round(cost / 100) AS told"])
    con.execute(f"CREATE TABLE labelled AS SELECT {columns} FROM '{table}'").fetchall()
    return con


STUDIES = {
    "adult": Study(
        "Adult, salary class (Figures 9 and 11)",
        {name: {"hierarchy": str(ROOT / f"hierarchies/adult/{name}.csv")} for name in ADULT},
        "salary_class",
        dict(zip(KS, (8, 12, 12, 8, 10, 10, 5))),
        adult_levels,
    ),
    "hospital": Study(
        "The made-up hospital, cost (in place of Figures 10 and 12, Lands End)",
        BUILDERS,
        "cost",
        dict(zip(KS, (3, 3, 2, 2, 2, 2, 3))),
        hospital_levels,
    ),
}


def affected(con: duckdb.DuckDBPyConnection, levels: dict[str, int], share: float) -> tuple[int, int]:
    """Groups of a node in which a value has at least this share, and the rows in them."""
    by = ", ".join(f"{name}{level}" for name, level in levels.items())
    values = f"SELECT {by}, count(*) AS c FROM labelled GROUP BY {by}, told"
    groups = f"SELECT sum(c) AS n, max(c) AS most FROM ({values}) GROUP BY {by}"
    found = con.execute(f"SELECT count(*), coalesce(sum(n), 0) FROM ({groups}) WHERE most >= {share} * n").fetchall()
    return int(found[0][0]), int(found[0][1])


def minimal(study: Study, table: Path, k: int, folder: Path) -> list[dict[str, int]]:
    rounded = {"round": 100} if study.sensitive == "cost" else {}
    config = {
        "source": {"path": str(table)},
        "columns": {"individual": "row", "quasi_identifiers": study.columns, "sensitive": {study.sensitive: rounded}},
        "privacy": [{"k_anonymity": {"k": k}}],
        "method": {"kind": "lattice"},
        "release": {"path": str(folder / "release")},
    }
    path = folder / "config.yaml"
    path.write_text(json.dumps(config))
    finished([ANON, "run", path, "--overwrite", "--force"])
    recoding = json.loads((folder / "release-run" / "recoding.json").read_text())
    return [entry["levels"] for entry in recoding["minimal"]]


def attacked(study: Study, rows: int) -> list[dict[str, Any]]:
    found = []
    with TemporaryDirectory() as folder:
        table = Path(folder) / "table.parquet"
        con = study.make(table, rows)
        for k, paper in study.paper.items():
            nodes = minimal(study, table, k, Path(folder))
            entry: dict[str, Any] = {"k": k, "paper": paper, "minimal": len(nodes)}
            for share in SHARES:
                told = [affected(con, levels, share) for levels in nodes]
                tables = sum(groups > 0 for groups, _ in told)
                means = [sum(column) / len(nodes) for column in zip(*told)]
                entry[str(share)] = {"tables": tables, "groups": means[0], "rows": means[1]}
            found.append(entry)
    return found


def shown(found: list[dict[str, Any]]) -> str:
    rows = []
    for e in found:
        own = [
            (f"{e[s]['tables']}/{e['minimal']}", f"{e[s]['groups']:.2f}", f"{e[s]['rows']:,.1f}")
            for s in map(str, SHARES)
        ]
        rows.append((e["k"], e["paper"], e["minimal"], *own[0], *own[1]))
    head = ("k", "minimal in the paper", "minimal", "tables, 100%", "groups", "rows", "tables, 95%", "groups", "rows")
    return markdown(head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--table", nargs="+", choices=STUDIES, default=list(STUDIES))
    parser.add_argument("--rows", type=int, default=200_000, help="of the hospital")
    given = parser.parse_args()
    figures = {name: attacked(STUDIES[name], given.rows) for name in given.table}
    parts = [f"## {STUDIES[name].title}\n\n{shown(found)}" for name, found in figures.items()]
    about = "Affected tables of all, and affected groups and rows per table, on average."
    made_up = f"The hospital has {given.rows:,} rows; the minimal tables in the paper are those of Lands End."
    text = "\n\n".join([*parts, f"{about} {made_up if 'hospital' in figures else ''}".strip()]) + "\n"
    keep("homogeneity", text, figures)
    print(text)


if __name__ == "__main__":
    main()
