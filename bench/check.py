"""`anon check` against the bare GROUP BY that any checker needs: `python bench/check.py [--large]`.

Makes a grouped table (five label columns, a sensitive column of 20 values and one of 20 numbers, a kept column, and
patients with two rows each), then measures in one run, as whole processes with the same limits, DuckDB counting the
groups' histograms and `anon check` with each criterion of the grammar alone. Prints a table and keeps it in
bench/results/check.md; on a machine that is busy with other things, the seconds of all cores tell more than the clock.
`--large` measures only a skyline of 10 points, on 100 million rows in a million groups, and keeps check_large.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))
from measure import ANON, Process, best, described, finished, keep, machine, markdown

LABELS = ("age", "sex", "zip", "admitted", "ward")
VALUES = 20
SHIFTS = 4  # values of the kept column
BARES = {
    "diagnosis": "diagnosis, count(*)",
    "cost": "cost, count(*)",
    "diagnosis and cost": "diagnosis, cost, count(*)",
    "patients by diagnosis": "diagnosis, count(DISTINCT patient)",
}


class Case(NamedTuple):
    """A criterion to measure and the bare GROUP BY it is held against."""

    name: str
    privacy: dict[str, Any]
    bare: str = "diagnosis"
    multiplicity: str = "single"


def diversity(name: str, **asked: Any) -> Case:
    return Case(f"l_diversity {name}", {"l_diversity": {"kind": name.split(",")[0], "l": 2, **asked}})


def skyline(name: str, bare: str = "diagnosis", multiplicity: str = "single") -> Case:
    points = [{"l": 1, "k": 5, "m": m, "c": 0.9} for m in (0, 1, 2)]
    return Case(f"skyline, {name}", {"skyline": {"points": points}}, bare, multiplicity)


def dissimilarity(bare: str = "diagnosis", **distance: Any) -> Case:
    asked = {"epsilon": 0.2, "delta": 0.1, "k": 2, "distance": distance}
    return Case(f"dissimilarity {distance['kind']}", {"dissimilarity": asked}, bare)


def closeness(bare: str = "diagnosis", **distance: Any) -> Case:
    return Case(f"t_closeness {distance['kind']}", {"t_closeness": {"t": 0.5, "distance": distance}}, bare)


def robustness(name: str, **prior: Any) -> Case:
    return Case(f"r_robustness, {name}", {"r_robustness": {"r": 2, "priors": [prior]}})


CASES = [
    Case("k_anonymity", {"k_anonymity": {"k": 2}}),
    Case("group_size", {"group_size": {"k": 2}}),
    diversity("distinct"),
    diversity("frequency"),
    diversity("entropy"),
    diversity("entropy, dont_care", dont_care=["d0", "d1"]),
    diversity("recursive", c=5),
    diversity("recursive, dont_care", c=5, dont_care=["d0", "d1"]),
    diversity("recursive, keep_possible", c=5, keep_possible={"values": ["d0"], "percent": 1}),
    Case(
        "l_diversity distinct of two columns",
        {"l_diversity": {"kind": "distinct", "l": 2, "sensitive": "diagnosis"}},
        "diagnosis and cost",
    ),
    skyline("3 points"),
    Case(
        "skyline, 10 points", {"skyline": {"points": [{"l": l, "k": 5 * l, "m": 10 - l, "c": 0.99} for l in range(10)]}}
    ),
    skyline("3 points, set", "patients by diagnosis", "set"),
    skyline("3 points, multiset", "diagnosis", "multiset"),
    Case("ck_safety k=3", {"ck_safety": {"c": 0.99, "k": 3}}),
    Case("ck_safety k=10", {"ck_safety": {"c": 0.99, "k": 10}}),
    dissimilarity(kind="equal"),
    dissimilarity(kind="ordered"),
    dissimilarity(kind="hierarchy", file="tree.csv"),
    dissimilarity(kind="matrix", file="matrix.csv"),
    dissimilarity("cost", kind="absolute"),
    dissimilarity("cost", kind="variational", columns=["cost"]),
    closeness(kind="equal"),
    closeness(kind="ordered"),
    closeness(kind="hierarchy", file="tree.csv"),
    closeness("cost", kind="absolute"),
    Case("alpha_k", {"alpha_k": {"alpha": 0.5, "k": 2}}),
    Case("epsilon_m", {"epsilon_m": {"epsilon": 1, "m": 2}}, "cost"),
    Case("k_e", {"k_e": {"k": 2, "e": 1}}, "cost"),
    Case("variance", {"variance": {"minimum": 1}}, "cost"),
    robustness("prior of a quasi-identifier from a file", file="by_sex.csv"),
    robustness("prior of a kept column from a file", file="by_shift.csv"),
    robustness("the same about one value, bound enough", file="one_even.csv"),
    robustness("the same about one value, posteriors needed", file="one_uneven.csv"),
    robustness("prior of a quasi-identifier, estimated", estimate=["sex"]),
    robustness("prior of a kept column, estimated", estimate=["shift"]),
]
BARE = """
import duckdb, sys
con = duckdb.connect()
for name, value in (("memory_limit", "4GB"), ("threads", "2"), ("enable_progress_bar", "false")):
    con.execute(f"SET {name} = '{value}'").fetchall()
con.sql(f"SELECT {sys.argv[2]}, {sys.argv[3]} AS n FROM '{sys.argv[1]}' GROUP BY ALL").to_arrow_table()
"""
MAKE = """
import duckdb, sys
con = duckdb.connect()
con.execute("SET enable_progress_bar = false").fetchall()
con.execute(sys.argv[1]).fetchall()
"""
TABLE = """
COPY (SELECT '4' || (g % 10) AS age, CASE WHEN g % 2 = 0 THEN 'F' ELSE 'M' END AS sex, '0' || (1000 + g // 100) AS zip,
  '2024-Q' || (1 + g % 4) AS admitted, 'w' || (g % 100) AS ward, i // (2 * {groups}) * {groups} + g AS patient,
  'd' || ((i * 2654435761 + g * 40503) // 65536 % {values}) AS diagnosis,
  ((i * 2246822519 + g * 3266489917) // 65536 % {values})::INTEGER AS cost,
  's' || ((i * 374761393 + g * 668265263) // 65536 % {shifts}) AS shift
  FROM (SELECT i, i % {groups} AS g FROM range({rows}) AS t(i)) ORDER BY g) TO '{path}'
"""


def config(case: Case) -> dict[str, Any]:
    sensitive = [column for column in ("diagnosis", "cost") if column in case.bare]
    several = case.multiplicity != "single"
    by_shift = "shift" in json.dumps(case.privacy) or "one_" in json.dumps(case.privacy)
    return {
        "source": {"path": "none.parquet"},
        "columns": {
            "individual": "patient" if several else "row",
            "multiplicity": case.multiplicity,
            "quasi_identifiers": list(LABELS),
            "sensitive": {column: {"as_categories": True} for column in sensitive},
            "keep": ["shift"] if by_shift else [],
        },
        "privacy": [case.privacy],
        "release": {"path": "out", "form": "bucketized" if several else "generalized"},
        "limits": {"memory": "4GB", "threads": 2},
    }


def write_files(folder: Path) -> None:
    """The tree and the matrix of the diagnoses, and priors over them."""
    names = [f"d{code}" for code in range(VALUES)]
    tree = [f"{name};{'low' if code < VALUES // 2 else 'high'};*" for code, name in enumerate(names)]
    (folder / "tree.csv").write_text("\n".join(tree) + "\n")
    rows = [[f"{abs(a - b) / VALUES:.2f}" for b in range(VALUES)] for a in range(VALUES)]
    matrix = [["", *names], *([name, *row] for name, row in zip(names, rows))]
    (folder / "matrix.csv").write_text("\n".join(";".join(line) for line in matrix) + "\n")
    shifts = [f"s{code}" for code in range(SHIFTS)]
    write_prior(folder / "by_sex.csv", "sex", ["F", "M"], names, lambda at, code: 0.05)
    write_prior(folder / "by_shift.csv", "shift", shifts, names, lambda at, code: 0.05 + (-1) ** code * 0.002 * at)
    write_prior(folder / "one_even.csv", "shift", shifts, names[:1], lambda at, code: 0.05 + 0.002 * at)
    write_prior(folder / "one_uneven.csv", "shift", shifts, names[:1], lambda at, code: 0.002 + 0.02 * at)


def write_prior(path: Path, column: str, of: list[str], values: list[str], p: Callable[[int, int], float]) -> None:
    lines = [f"{name},{value},{p(at, code):.3f}" for at, name in enumerate(of) for code, value in enumerate(values)]
    path.write_text("\n".join([f"{column},value,p", *lines]) + "\n")


def make(folder: Path, rows: int, groups: int) -> str:
    """The table, and every file that a config names."""
    path = str(folder / "table.parquet")
    table = TABLE.format(groups=groups, rows=rows, path=path, values=VALUES, shifts=SHIFTS)
    subprocess.run([sys.executable, "-c", MAKE, table], check=True)
    write_files(folder)
    return path


def line(name: str, process: Process, bare: Process) -> list[str]:
    ratios = process.seconds / bare.seconds, process.cpu / bare.cpu
    return [name, *(f"{figure:.1f}" for figure in (process.seconds, ratios[0], process.cpu, ratios[1])),
            f"{process.peak / 1e6:,.0f}"]  # fmt: skip


def compare(table: str, folder: Path, cases: list[Case], runs: int) -> list[list[str]]:
    """The rows of the table of results."""
    bares, rows = {}, []
    for name, counted in BARES.items():
        if all(case.bare != name for case in cases):
            continue
        command = [sys.executable, "-c", BARE, table, ", ".join(LABELS), counted]
        bares[name] = best(2, partial(finished, command))
        rows.append(line(f"*bare GROUP BY: {name}*", bares[name], bares[name]))
    wanted = folder / "config.yaml"
    for case in cases:
        wanted.write_text(json.dumps(config(case)))
        against = "" if case.bare in ("diagnosis", "cost") else f" (*{case.bare}*)"
        checked = best(runs, partial(finished, [ANON, "check", wanted, "--on", table], codes=(0, 3)))
        rows.append(line(case.name + against, checked, bares[case.bare]))
        print(*rows[-1], sep="  ", file=sys.stderr)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--groups", type=int, default=200_000)
    parser.add_argument("--large", action="store_true", help="100M rows, 1M groups, a skyline of 10 points")
    given = parser.parse_args()
    cases, runs, kept = CASES, 1, "check"
    if given.large:
        given.rows, given.groups, runs, kept = 100_000_000, 1_000_000, 2, "check_large"
        cases = [case for case in CASES if case.name == "skyline, 10 points"]
    facts = machine()
    with tempfile.TemporaryDirectory() as folder:
        rows = compare(make(Path(folder), given.rows, given.groups), Path(folder), cases, runs)
    head = ("criterion", "seconds", "times the bare GROUP BY", "seconds of all cores", "times the bare's", "peak MB")
    text = (
        f"{given.rows:,} rows, {given.groups:,} groups, {VALUES} values, 2 threads, 4GB; whole processes; load of the "
        f"machine at the start {facts['load']:.1f}.\n{described(facts)}\n\n{markdown(head, rows)}\n"
    )
    keep(kept, text, {"machine": facts, "rows": given.rows, "groups": given.groups, "measured": rows})
    print(text)


if __name__ == "__main__":
    main()
