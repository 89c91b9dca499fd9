"""`anon check` against the bare GROUP BY that any checker needs: `python bench/check.py [--rows N --groups N]`.

Makes a grouped table (five label columns, one sensitive column of 20 values, one of numbers), then measures in one
run, as whole processes with the same limits, DuckDB counting the groups' histograms and `anon check` with each
criterion alone. Prints a table and keeps it in bench/results/check.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from main_job import measured

LABELS = ("age", "sex", "zip", "admitted", "ward")
CRITERIA: dict[str, list[dict[str, object]]] = {
    "k_anonymity": [{"k_anonymity": {"k": 2}}],
    "l_diversity distinct": [{"l_diversity": {"kind": "distinct", "l": 2}}],
    "l_diversity entropy": [{"l_diversity": {"kind": "entropy", "l": 2}}],
    "l_diversity recursive": [{"l_diversity": {"kind": "recursive", "c": 5, "l": 2}}],
    "skyline, 3 points": [
        {"skyline": {"points": [{"l": 1, "k": 5, "m": m, "c": 0.9} for m in (0, 1, 2)]}},
    ],
    "ck_safety k=3": [{"ck_safety": {"c": 0.99, "k": 3}}],
    "t_closeness equal": [{"t_closeness": {"t": 0.5, "distance": {"kind": "equal"}}}],
    "t_closeness ordered": [{"t_closeness": {"t": 0.5, "distance": {"kind": "ordered"}}}],
    "alpha_k": [{"alpha_k": {"alpha": 0.5, "k": 2}}],
    "dissimilarity equal": [{"dissimilarity": {"epsilon": 0, "delta": 0.5, "k": 2, "distance": {"kind": "equal"}}}],
    "epsilon_m": [{"epsilon_m": {"epsilon": 1, "m": 2, "sensitive": "cost"}}],
    "k_e": [{"k_e": {"k": 2, "e": 1, "sensitive": "cost"}}],
    "variance": [{"variance": {"minimum": 1, "sensitive": "cost"}}],
}
BARE = """
import duckdb, sys
con = duckdb.connect()
con.execute("SET memory_limit = '4GB'").fetchall(); con.execute("SET threads = 2").fetchall()
con.sql(f"SELECT {sys.argv[2]}, {sys.argv[3]}, count(*) AS n FROM '{sys.argv[1]}' GROUP BY ALL").to_arrow_table()
"""
MAKE = """
COPY (SELECT '4' || (g % 10) AS age, CASE WHEN g % 2 = 0 THEN 'F' ELSE 'M' END AS sex, '0' || (1000 + g // 100) AS zip,
  '2024-Q' || (1 + g % 4) AS admitted, 'w' || (g % 100) AS ward,
  'd' || ((i * 2654435761 + g * 40503) // 65536 % 20) AS diagnosis,
  ((i * 2246822519 + g * 3266489917) // 65536 % 20)::INTEGER AS cost
  FROM (SELECT i, i % {groups} AS g FROM range({rows}) AS t(i)) ORDER BY g) TO '{path}'
"""


def config(privacy: list[dict[str, object]], column: str) -> dict[str, object]:
    return {
        "source": {"path": "none.parquet"},
        "columns": {
            "individual": "row",
            "quasi_identifiers": list(LABELS),
            "sensitive": {column: {"as_categories": True}},
        },
        "privacy": privacy,
        "release": {"path": "out"},
        "limits": {"memory": "4GB", "threads": 2},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--groups", type=int, default=200_000)
    given = parser.parse_args()
    anon = str(Path(sys.executable).with_name("anon"))
    lines = ["| criterion | seconds | times the bare GROUP BY | peak MB |", "|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        table, wanted = f"{folder}/table.parquet", Path(folder) / "config.yaml"
        make = f"import duckdb; duckdb.sql({MAKE.format(groups=given.groups, rows=given.rows, path=table)!r})"
        subprocess.run([sys.executable, "-c", make], check=True)
        bare = {}
        for column in ("diagnosis", "cost"):
            bare[column] = min(
                measured([sys.executable, "-c", BARE, table, ", ".join(LABELS), column])[0] for _ in range(2)
            )
            lines.append(f"| bare GROUP BY with {column} | {bare[column]:.1f} | 1.0 | |")
        for name, privacy in CRITERIA.items():
            column = "cost" if name in ("epsilon_m", "k_e", "variance") else "diagnosis"
            wanted.write_text(json.dumps(config(privacy, column)))
            seconds, peak = measured([anon, "check", str(wanted), "--on", table], codes=(0, 3))
            lines.append(f"| {name} | {seconds:.1f} | {seconds / bare[column]:.1f} | {peak / 1e6:,.0f} |")
    head = f"{given.rows:,} rows, {given.groups:,} groups, 20 values, 2 threads, 4GB; whole processes.\n\n"
    text = head + "\n".join(lines) + "\n"
    results = Path(__file__).parent / "results"
    results.mkdir(exist_ok=True)
    (results / "check.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
