"""The lattice search on real and on large data: `python bench/lattice.py [--part adult large zip best] [--rows N]`.

adult  the Adult table, quasi-identifiers of 3 to 8 columns, 6-anonymity and entropy 6-diversity, all minimal tables
       (Figure 13 of the l-diversity paper); whole `anon run`, from the start of the process to the files written
large  Adult-like rows, 5 quasi-identifiers, k = 5, against DuckDB doing one GROUP BY over the same columns and one copy
zip    sex, age, race, education and a zip code of 30,000 values, k = 5, 4% suppressed, within 1GB
best   `minimal: all` against `minimal: best` on Adult, Heritage Health, census-income and 3M flights, k = 5, with 0%,
       2% and 4% suppressed

Gets the Adult table by itself and makes the others of it. Prints tables and keeps them in bench/results/lattice.md,
with all that was measured in lattice.json and Figure 13 as a chart in lattice.svg, and `best` in lattice_best.md and
.json; after each part, so that one that fails does not take the others with it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parent))
from chart import line_chart
from measure import (
    ANON,
    RESULTS,
    ROOT,
    Process,
    Target,
    best,
    described,
    finished,
    keep,
    machine,
    markdown,
    targets_table,
)
from utility_tables import TABLES, flights_table

sys.path.insert(0, str(ROOT))
from demo import adult

COLUMNS = ("age", "sex", "race", "marital_status", "education", "native_country", "workclass", "salary_class")
LARGE, ZIP = COLUMNS[:5], ("sex", "age", "race", "education", "zip")
ZIPS = 30_000
PARTS = ("adult", "large", "zip", "best")
BATCH = 1_000_000  # rows
SHARES = (0.0, 0.02, 0.04)  # that may be suppressed
ARX = {"Adult": (4.0, 4.4, 4.2), "Heritage Health": (4.8, 21.8, 26.4), "census-income": (5.7, 14.5, 11.8)}
NOTE = """CPU seconds of whole processes of `anon run`, the better of two. ARX: CPU seconds of version 3.9.2 (global
optimum, the same k and shares), measured on two cores of the same kind on these tables, with the same columns and
hierarchies for Adult only: of Heritage Health it had 69,345 rows, and for both others the columns of another choice.
For 2.4 million flights with 5 columns it took 195 s."""
BASELINE = """
import duckdb, sys
table, out, columns, memory, threads, spill = sys.argv[1:]
con = duckdb.connect()
for name, value in (("memory_limit", memory), ("threads", threads), ("temp_directory", spill)):
    con.execute(f"SET {name} = '{value}'").fetchall()
con.execute("SET enable_progress_bar = false").fetchall()
con.execute("SET preserve_insertion_order = false").fetchall()
con.execute(f"CREATE TABLE counted AS SELECT {columns}, count(*) AS n FROM '{table}' GROUP BY {columns}").fetchall()
con.execute(f"COPY (SELECT * FROM '{table}') TO '{out}' (FORMAT parquet)").fetchall()
"""


def adult_people() -> pa.Table:
    """The Adult table, fetched if it is not there."""
    try:
        return adult.load(adult.fetch())
    except adult.Unavailable as error:
        raise SystemExit(str(error)) from None


def config(table: Path, columns: tuple[str, ...], folder: Path, privacy: list[Any], **method: Any) -> Path:
    builders = {name: {"hierarchy": str(ROOT / f"hierarchies/adult/{name}.csv")} for name in columns if name != "zip"}
    builders = {name: builders.get(name, {"digits": 5}) for name in columns}
    named = {"individual": "row", "quasi_identifiers": builders, "sensitive": ["occupation"]}
    return written(table, named, folder, privacy, **method)


def written(table: Path, columns: dict[str, Any], folder: Path, privacy: list[Any], **method: Any) -> Path:
    """Write a config of the lattice method."""
    made = {
        "source": {"path": str(table)},
        "columns": columns,
        "privacy": privacy,
        "method": {"kind": "lattice", **method},
        "release": {"path": str(folder / "release")},
    }
    path = folder / "config.yaml"
    path.write_text(json.dumps(made))
    return path


def run(path: Path, memory: str, threads: int) -> tuple[Process, dict[str, Any], dict[str, Any]]:
    command = [ANON, "run", path, "--overwrite", "--force", "--memory", memory, "--threads", threads]
    process = best(2, lambda: finished(command))
    folder = path.parent / "release-run"
    report, recoding = (json.loads((folder / f"{name}.json").read_text()) for name in ("report", "recoding"))
    return process, report, recoding


def adult_part(given: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    table = folder / "adult.parquet"
    adult.write(adult_people(), table, as_csv=False)
    wanted = {"6-anonymity": {"k_anonymity": {"k": 6}}, "entropy 6": {"l_diversity": {"kind": "entropy", "l": 6}}}
    found = []
    for size in range(3, 9):
        for name, criterion in wanted.items():
            path = config(table, COLUMNS[:size], folder, [criterion])
            process, report, recoding = run(path, given.memory, given.threads)
            found.append(
                {"columns": size, "criterion": name, "seconds": process.seconds, "peak": process.peak,
                 "minimal": len(recoding["minimal"]), "search": report["seconds"]["search"]}
            )  # fmt: skip
    return found


def mixed(numbers: np.ndarray[Any, np.dtype[np.uint64]], salt: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """A hash of row numbers (splitmix64), so that any row can be made alone."""
    z = numbers * np.uint64(16) + np.uint64(salt + 1)
    z = z * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def rows_like_adult(columns: tuple[str, ...], rows: int) -> Iterator[pa.Table]:
    """Every column as often as in Adult, but independent of the others, which leaves more different rows; zip codes
    are dense at one end."""
    people = adult_people()
    zips = pa.array([f"{number:05}" for number in range(ZIPS)])
    for start in range(0, rows, BATCH):
        numbers = np.arange(start, min(start + BATCH, rows), dtype=np.uint64)
        made = {}
        for salt, name in enumerate((*columns, "occupation")):
            drawn = mixed(numbers, salt)
            if name == "zip":
                share = (drawn >> np.uint64(11)).astype(np.float64) / 2**53
                made[name] = zips.take(pa.array((share**1.5 * ZIPS).astype(np.int64)))
            else:
                made[name] = people[name].combine_chunks().take(pa.array(drawn % np.uint64(people.num_rows)))
        yield pa.table(made)


def made(columns: tuple[str, ...], rows: int, path: Path) -> Path:
    writer = None
    for table in rows_like_adult(columns, rows):
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()
    return path


def large_part(given: argparse.Namespace, folder: Path, columns: tuple[str, ...], **method: Any) -> dict[str, Any]:
    table = made(columns, given.rows, folder / "table.parquet")
    path = config(table, columns, folder, [{"k_anonymity": {"k": 5}}], **method)
    process, report, recoding = run(path, "1GB", given.threads)
    out, listed = folder / "copy.parquet", ", ".join(columns)
    baseline = [sys.executable, "-c", BASELINE, table, out, listed, "1GB", given.threads, folder]
    plain = best(2, lambda: finished(baseline))
    return {
        "rows": given.rows, "seconds": process.seconds, "peak": process.peak, "baseline": plain.seconds,
        "baseline_peak": plain.peak, "minimal": len(recoding["minimal"]), "suppressed": recoding["suppressed"],
        "stages": report["seconds"],
    }  # fmt: skip


def best_part(given: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for name, load in {**TABLES, "flights": flights_table}.items():
        table, path = load(), folder / "table.parquet"
        table.rows.write_parquet(path)
        columns = {
            "individual": "row", "quasi_identifiers": table.builders(folder, "all"), "sensitive": [table.sensitive],
        }  # fmt: skip
        for share in SHARES:
            both = [_searched(given, path, columns, {"suppress": share, "minimal": each}) for each in ("all", "best")]
            assert both[0]["chosen"] == both[1]["chosen"], f"{name}: the two searches chose different levels"
            found += [{"table": name, "rows": table.rows.height} | each for each in both]
    return found


def _searched(given: argparse.Namespace, path: Path, columns: dict[str, Any], method: dict[str, Any]) -> dict[str, Any]:
    at = written(path, columns, path.parent, [{"k_anonymity": {"k": 5}}], **method)
    process, report, recoding = run(at, given.memory, given.threads)
    return method | {
        "listed": len(recoding["minimal"]), "cpu": process.cpu, "seconds": process.seconds, "peak": process.peak,
        "search": report["seconds"]["search"], "chosen": recoding["chosen"], "suppressed": recoding["suppressed"],
    }  # fmt: skip


def seconds(number: float) -> str:
    return f"{number:.2f} s"


def megabytes(number: int) -> str:
    return f"{number / 1e6:,.0f}"


def adult_table(found: list[dict[str, Any]]) -> str:
    head = ("columns", "criterion", "minimal tables", "anon run", "of it search", "peak MB")
    rows = [
        (r["columns"], r["criterion"], r["minimal"], seconds(r["seconds"]), seconds(r["search"]), megabytes(r["peak"]))
        for r in found
    ]
    return markdown(head, rows)


def large_table(found: dict[str, dict[str, Any]]) -> str:
    head = (
        "data", "rows", "minimal", "suppressed", "anon run", "GROUP BY and copy", "ratio", "peak MB", "its peak MB",
        "stages",
    )  # fmt: skip
    rows = []
    for name, r in found.items():
        stages = ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in r["stages"].items())
        rows.append(
            (name, f"{r['rows']:,}", r["minimal"], f"{r['suppressed']:,}", f"{r['seconds']:.1f} s",
             f"{r['baseline']:.1f} s", f"{r['seconds'] / r['baseline']:.1f}x", megabytes(r["peak"]),
             megabytes(r["baseline_peak"]), stages)
        )  # fmt: skip
    return markdown(head, rows)


def tell_best(found: list[dict[str, Any]]) -> str:
    """Keeps the comparison of `minimal: all` and `best`, apart from the rest."""
    facts = machine()
    head = ("table", "rows", "may suppress", "minimal", "listed", "suppressed", "CPU", "ARX", "of it search", "peak MB")
    rows = [
        (r["table"], f"{r['rows']:,}", f"{r['suppress']:.0%}", r["minimal"], f"{r['listed']:,}", f"{r['suppressed']:,}",
         seconds(r["cpu"]), *_arx(r), seconds(r["search"]), megabytes(r["peak"]))
        for r in found
    ]  # fmt: skip
    text = f"{described(facts)}\n\n{markdown(head, rows)}\n\n{NOTE}\n"
    keep("lattice_best", text, {"machine": facts, "best": found})
    return text


def _arx(found: dict[str, Any]) -> tuple[str]:
    return (f"{ARX[found['table']][SHARES.index(found['suppress'])]:.1f} s",) if found["table"] in ARX else ("",)


def targets(small: list[dict[str, Any]], large: dict[str, dict[str, Any]], rows: int) -> list[Target]:
    seven = [r["seconds"] for r in small if r["columns"] == 7]
    full = large if rows >= 10_000_000 else {}
    ratio = full["large"]["seconds"] / full["large"]["baseline"] if "large" in full else None
    zips = full.get("zip", {})
    return [
        Target("Adult, 7 columns, all minimal tables, seconds", max(seven, default=None), "<=", 2.0),
        Target("10M rows, 5 columns, k = 5, against GROUP BY and copy", ratio, "<=", 3),
        Target("10M rows with a zip code, 4% suppressed, seconds", zips.get("seconds"), "<=", 40),
        Target("... its peak memory, MB", zips["peak"] / 1e6 if zips else None, "<=", 1_000),
    ]


def chart(small: list[dict[str, Any]]) -> str:
    """Figure 13: seconds by the size of the quasi-identifier."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for r in small:
        lines.setdefault(r["criterion"], []).append((r["columns"], r["seconds"]))
    title = "Adult, all minimal tables: whole anon run by size of the quasi-identifier"
    return line_chart(title, "columns", "seconds", lines)


def tell(small: list[dict[str, Any]], large: dict[str, dict[str, Any]], rows: int) -> str:
    """Keeps what was measured so far."""
    facts = machine()
    parts = [targets_table(targets(small, large, rows))]
    parts += [adult_table(small)] if small else []
    parts += [large_table(large)] if large else []
    text = f"{described(facts)}\n\n" + "\n\n".join(parts) + "\n\nWhole processes, the better of two runs each.\n"
    keep("lattice", text, {"machine": facts, "adult": small, "large": large})
    if small:
        (RESULTS / "lattice.svg").write_text(chart(small))
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--memory", default="1GB", help="of the runs on Adult; the others have 1GB")
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    small: list[dict[str, Any]] = []
    large: dict[str, dict[str, Any]] = {}
    text = ""
    for part in given.part:
        with TemporaryDirectory() as folder:
            if part == "adult":
                small = adult_part(given, Path(folder))
            elif part == "large":
                large["large"] = large_part(given, Path(folder), LARGE)
            elif part == "zip":
                large["zip"] = large_part(given, Path(folder), ZIP, suppress=0.04)
            else:
                print(tell_best(best_part(given, Path(folder))))
        text = text if part == "best" else tell(small, large, given.rows)
    print(text)


if __name__ == "__main__":
    main()
