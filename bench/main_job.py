"""The main job against a plain sort of the same table: `python bench/main_job.py [--rows 1000000 ...]`.

Both are whole processes under the same memory limit: `anon run` on the hospital example (read, search, write, verify)
and DuckDB sorting the table by one column into Parquet. Prints a table and keeps it in bench/results/main_job.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parent.parent
SORT = """
import duckdb, sys
table, out, memory, threads, spill = sys.argv[1:]
con = duckdb.connect()
for name, value in (("memory_limit", memory), ("threads", threads), ("temp_directory", spill)):
    con.execute(f"SET {name} = '{value}'").fetchall()
con.execute(f"COPY (SELECT * FROM '{table}' ORDER BY zip) TO '{out}'").fetchall()
"""


def measured(command: list[str], codes: tuple[int, ...] = (0,)) -> tuple[float, int]:
    """Seconds and peak resident bytes of a whole process, which must end with one of the exit codes."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    if os.waitstatus_to_exitcode(status) not in codes:
        raise SystemExit(f"{' '.join(command)}\n{process.stderr.read() if process.stderr else ''}")
    return seconds, usage.ru_maxrss * 1024


def compare(rows: int, memory: str, threads: int, folder: Path) -> dict[str, float]:
    """One size: the best of two runs of each, one after the other."""
    table, out = folder / "extract.parquet", folder / "release"
    subprocess.run([sys.executable, ROOT / "demo/hospital.py", "--rows", str(rows), "--out", table], check=True)
    config = (ROOT / "configs/hospital.yaml").read_text().replace("../demo/out/extract.parquet", str(table))
    (folder / "config.yaml").write_text(config.replace("../hierarchies", str(ROOT / "hierarchies")))
    anon = [str(Path(sys.executable).with_name("anon")), "run", str(folder / "config.yaml"), "--out", str(out)]
    anon += ["--overwrite", "--memory", memory, "--threads", str(threads)]
    sort = [sys.executable, "-c", SORT, str(table), str(folder / "sorted.parquet"), memory, str(threads), str(folder)]
    runs = [(measured(anon), measured(sort)) for _ in range(2)]
    (seconds, peak), (sort_seconds, sort_peak) = (min(run[i] for run in runs) for i in (0, 1))
    stages = json.loads((folder / "release-run/report.json").read_text())
    return {
        "rows": rows, "groups": stages["summary"]["groups"], "seconds": seconds, "peak": peak,
        "sort_seconds": sort_seconds, "sort_peak": sort_peak, **stages["seconds"],
    }  # fmt: skip


def table(results: list[dict[str, float]]) -> str:
    names = ("source", "cube", "search", "release", "verify")
    lines = [
        f"| rows | groups | anon run | DuckDB sort | ratio | peak MB | sort's peak MB | {' | '.join(names)} |",
        "|---" * (7 + len(names)) + "|",
    ]
    for r in results:
        stages = " | ".join(f"{r[name]:.2f} s" for name in names)
        lines.append(
            f"| {r['rows']:,} | {r['groups']:,} | {r['seconds']:.1f} s | {r['sort_seconds']:.1f} s | "
            f"{r['seconds'] / r['sort_seconds']:.1f}x | {r['peak'] / 1e6:,.0f} | {r['sort_peak'] / 1e6:,.0f} | "
            f"{stages} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 4_000_000])
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    results = []
    for rows in given.rows:
        with tempfile.TemporaryDirectory() as folder:
            results.append(compare(rows, given.memory, given.threads, Path(folder)))
    versions = ", ".join(f"{name} {version(name)}" for name in ("anon-engine", "duckdb", "numba", "pyarrow"))
    head = f"Hospital example, memory {given.memory}, {given.threads} threads, {platform.machine()}, {versions}.\n\n"
    text = f"{head}{table(results)}\n\nWhole processes from start to end, the better of two runs each.\n"
    (ROOT / "bench/results").mkdir(exist_ok=True)
    (ROOT / "bench/results/main_job.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
