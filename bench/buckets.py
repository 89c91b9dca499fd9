"""Bucketized releases against a plain sort of the same table: `python bench/buckets.py [--rows 1000000 10000000]`.

partition  l-diversity, labels of the groups
merge      r-robustness against a prior by sex and education, exact labels
colour     dissimilarity of costs, exact labels

Whole processes under the same memory limit: `anon run` (read, search, write, verify) and DuckDB sorting the table by
one column into Parquet. The multiples are of seconds of all cores, which other work on the machine disturbs less than
the clock. Prints tables and keeps them in bench/results/buckets.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from measure import (
    ANON,
    Process,
    Target,
    best,
    described,
    finished,
    keep,
    machine,
    markdown,
    sort_command,
    targets_table,
)

# Every number comes from a hash of the row number; low occupations are the frequent ones.
MAKE = """
import duckdb, sys
rows, out = sys.argv[1:]
con = duckdb.connect()
con.execute("SET memory_limit = '2GB'").fetchall()
con.execute("SET enable_progress_bar = false").fetchall()
def drawn(which, size):
    return f"(hash(i * 16 + {which}) % {size})::INTEGER"
sizes = {"age": 73, "education": 16, "marital": 7, "work": 9, "country": 40, "race": 5, "zip": 1000}
columns = ", ".join(f"{drawn(at, size)} AS {name}" for at, (name, size) in enumerate(sizes.items()))
con.execute(f'''COPY (SELECT {columns}, CASE WHEN {drawn(8, 2)} = 0 THEN 'F' ELSE 'M' END AS sex,
  (pow({drawn(9, 1000000)} / 1e6, 1.2) * 13)::INTEGER AS occupation, {drawn(10, 2000)} AS cost
  FROM range({rows}) AS t(i)) TO '{out}' (FORMAT parquet)''').fetchall()
"""
QUASI_IDENTIFIERS = ("age", "sex", "education", "marital", "work", "country", "race", "zip")
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "partition": ("occupation", {"l_diversity": {"kind": "distinct", "l": 4}}),
    "merge": ("occupation", {"r_robustness": {"r": 4, "priors": [{"estimate": ["sex", "education"], "smoothing": 1}]}}),
    "colour": ("cost", {"dissimilarity": {"epsilon": 50, "delta": 0.7, "k": 5, "distance": {"kind": "absolute"}}}),
}
MULTIPLE = 30  # of the sort, in seconds of all cores
HEAD = ("rows", "method", "groups", "anon run", "all cores", "DuckDB sort", "all cores", "multiple", "peak MB")


def config(method: str, table: Path, folder: Path) -> Path:
    sensitive, criterion = CASES[method]
    made = {
        "source": {"path": str(table)},
        "columns": {
            "individual": "row",
            "quasi_identifiers": {name: {} for name in QUASI_IDENTIFIERS},
            "sensitive": [sensitive],
        },
        "privacy": [criterion],
        "method": {"kind": method},
        "release": {"path": str(folder / "release"), "form": "bucketized"},
        "limits": {"temp": str(folder / "spill")},
    }
    path = folder / "config.yaml"
    path.write_text(json.dumps(made))
    return path


def measured(method: str, rows: int, given: argparse.Namespace, folder: Path, sort: Process) -> dict[str, Any]:
    path = config(method, folder / "table.parquet", folder)
    command = [ANON, "run", path, "--overwrite", "--force", "--memory", f"{given.memory}MB", "--threads", given.threads]
    process = best(given.runs, lambda: finished(command))
    report = json.loads((folder / "release-run" / "report.json").read_text())
    return {
        "rows": rows, "method": method, "groups": report["summary"]["groups"], "seconds": process.seconds,
        "cpu": process.cpu, "peak": process.peak, "sort_seconds": sort.seconds, "sort_cpu": sort.cpu,
        "multiple": process.cpu / sort.cpu, "stages": report["seconds"],
    }  # fmt: skip


def line(r: dict[str, Any]) -> tuple[object, ...]:
    return (
        f"{r['rows']:,}", r["method"], f"{r['groups']:,}", f"{r['seconds']:.1f} s", f"{r['cpu']:.1f} s",
        f"{r['sort_seconds']:.1f} s", f"{r['sort_cpu']:.1f} s", f"{r['multiple']:.1f}", f"{r['peak'] / 1e6:,.0f}",
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--method", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--memory", type=int, default=1000, help="in MB")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=1, help="the fastest of so many")
    given = parser.parse_args()
    found: list[dict[str, Any]] = []
    for rows in given.rows:
        with TemporaryDirectory() as place:
            folder = Path(place)
            finished([sys.executable, "-c", MAKE, rows, folder / "table.parquet"])
            command = sort_command(folder / "table.parquet", "zip", f"{given.memory}MB", given.threads, folder)
            sort = best(given.runs, lambda command=command: finished(command))  # type: ignore[misc]
            for method in given.method:
                found.append(measured(method, rows, given, folder, sort))
                print("...", *line(found[-1]), file=sys.stderr, flush=True)
    name = "{method}, {rows:,} rows"
    targets = [Target(f"peak MB, {name.format(**r)}", r["peak"] / 1e6, "<=", given.memory) for r in found]
    targets += [Target(f"multiple of the sort, {name.format(**r)}", r["multiple"], "<=", MULTIPLE) for r in found]
    facts = machine()
    text = (
        f"Bucketized releases within {given.memory} MB, {given.threads} threads. {described(facts)}\n\n"
        f"{markdown(HEAD, map(line, found))}\n\n{targets_table(targets)}\n"
    )
    keep("buckets", text, {"machine": facts, "runs": found})
    print(text)


if __name__ == "__main__":
    main()
