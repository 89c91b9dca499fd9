"""The main job against a plain sort of the same table: `python bench/main_job.py [--rows 1000000 ...]`.

Both are whole processes under the same memory limit: `anon run` on the hospital example (read, search, write, verify)
and DuckDB sorting the table by one column into Parquet. Prints a table and keeps it in bench/results/main_job.md.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from measure import ANON, ROOT, measured, sort_command


def compare(rows: int, memory: str, threads: int, folder: Path) -> dict[str, float]:
    """One size: the best of two runs of each, one after the other."""
    table, out = folder / "extract.parquet", folder / "release"
    subprocess.run([sys.executable, ROOT / "demo/hospital.py", "--rows", str(rows), "--out", table], check=True)
    config = (ROOT / "configs/hospital.yaml").read_text().replace("../demo/out/extract.parquet", str(table))
    (folder / "config.yaml").write_text(config.replace("../hierarchies", str(ROOT / "hierarchies")))
    anon = [ANON, "run", str(folder / "config.yaml"), "--out", str(out)]
    anon += ["--overwrite", "--force", "--memory", memory, "--threads", str(threads)]
    sort = sort_command(table, "zip", memory, threads, folder)
    runs = [(measured(anon), measured(sort)) for _ in range(2)]
    (seconds, peak), (sort_seconds, sort_peak) = (min(run[i] for run in runs) for i in (0, 1))
    stages = json.loads((folder / "release-run/report.json").read_text())
    return {
        "rows": rows, "groups": stages["summary"]["groups"], "seconds": seconds, "peak": peak,
        "sort_seconds": sort_seconds, "sort_peak": sort_peak, **stages["seconds"],
    }  # fmt: skip


def table(results: list[dict[str, float]]) -> str:
    names = ("source", "cube", "search", "release", "verify", "utility")
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
    versions = ", ".join(f"{name} {version(name)}" for name in ("anon-engine", "duckdb", "numpy", "pyarrow"))
    head = f"Hospital example, memory {given.memory}, {given.threads} threads, {platform.machine()}, {versions}.\n\n"
    text = f"{head}{table(results)}\n\nWhole processes from start to end, the better of two runs each.\n"
    (ROOT / "bench/results").mkdir(exist_ok=True)
    (ROOT / "bench/results/main_job.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
