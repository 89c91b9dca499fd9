"""Figures 9 and 11 of the l-diversity paper with our hierarchies: `python bench/homogeneity.py`.

For each k, all minimal k-anonymous generalizations of the Adult table over {age, sex, race, marital status, education},
and how many groups and rows of them tell the salary class of everybody in a group, surely or with 95%. The search is
`anon run`; what the tables tell is counted here by SQL. Prints a table and keeps it in bench/results/homogeneity.md.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent))
import lattice
from lattice import adult
from measure import ANON, ROOT, finished, keep, markdown

COLUMNS, SENSITIVE = lattice.COLUMNS[:5], "salary_class"
PAPER = {2: 8, 5: 12, 10: 12, 15: 8, 20: 10, 30: 10, 50: 5}  # minimal tables in Figures 9 and 11


def labelled(table: pa.Table) -> duckdb.DuckDBPyConnection:
    """The table with every column at every level: age0, age1, ..."""
    con = duckdb.connect()
    con.register("adult", table)
    joins, labels = [], []
    for name in COLUMNS:
        with (ROOT / f"hierarchies/adult/{name}.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file, delimiter=";"))
        con.register(f"h_{name}", pa.table({f"l{i}": [row[i] for row in rows] for i in range(len(rows[0]))}))
        joins.append(f"JOIN h_{name} ON {name}::VARCHAR = h_{name}.l0")
        labels += [f"h_{name}.l{i} AS {name}{i}" for i in range(len(rows[0]))]
    listed = ", ".join([*labels, SENSITIVE])
    con.execute(f"CREATE TABLE labelled AS SELECT {listed} FROM adult {' '.join(joins)}").fetchall()
    return con


def affected(con: duckdb.DuckDBPyConnection, levels: dict[str, int], share: float) -> tuple[int, int]:
    """Groups of a node in which a value has at least this share, and the rows in them."""
    by = ", ".join(f"{name}{level}" for name, level in levels.items())
    values = f"SELECT {by}, count(*) AS c FROM labelled GROUP BY {by}, {SENSITIVE}"
    groups = f"SELECT sum(c) AS n, max(c) AS most FROM ({values}) GROUP BY {by}"
    found = con.execute(f"SELECT count(*), coalesce(sum(n), 0) FROM ({groups}) WHERE most >= {share} * n").fetchall()
    return int(found[0][0]), int(found[0][1])


def minimal(table: Path, k: int, folder: Path) -> list[dict[str, int]]:
    path = lattice.config(table, COLUMNS, folder, [{"k_anonymity": {"k": k}}])
    path.write_text(path.read_text().replace('"occupation"', f'"{SENSITIVE}"'))
    finished([ANON, "run", path, "--overwrite", "--force"])
    recoding = json.loads((folder / "release-run" / "recoding.json").read_text())
    return [entry["levels"] for entry in recoding["minimal"]]


def main() -> None:
    people = lattice.adult_people()
    con, found = labelled(people), []
    with TemporaryDirectory() as folder:
        table = Path(folder) / "adult.parquet"
        adult.write(people, table, as_csv=False)
        for k, paper in PAPER.items():
            nodes = minimal(table, k, Path(folder))
            entry: dict[str, Any] = {"k": k, "paper": paper, "minimal": len(nodes)}
            for share in (1.0, 0.95):
                told = [affected(con, levels, share) for levels in nodes]
                tables = sum(groups > 0 for groups, _ in told)
                means = [sum(column) / len(nodes) for column in zip(*told)]
                entry[str(share)] = {"tables": tables, "groups": means[0], "rows": means[1]}
            found.append(entry)
    rows = []
    for e in found:
        own = [
            (f"{e[s]['tables']}/{e['minimal']}", f"{e[s]['groups']:.2f}", f"{e[s]['rows']:,.1f}")
            for s in ("1.0", "0.95")
        ]
        rows.append((e["k"], e["paper"], e["minimal"], *own[0], *own[1]))
    head = ("k", "minimal in the paper", "minimal", "tables, 100%", "groups", "rows", "tables, 95%", "groups", "rows")
    text = f"{markdown(head, rows)}\n\nAffected tables of all, and affected groups and rows per table, on average.\n"
    keep("homogeneity", text, {"k": found})
    print(text)


if __name__ == "__main__":
    main()
