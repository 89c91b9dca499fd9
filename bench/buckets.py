"""Bucketized releases against a plain sort of the same table: `python bench/buckets.py [--rows 1000000 10000000]`.

Whole processes under the same memory limit: `anon run` on the hospital example with `form: bucketized`, with labels and
with exact values, and DuckDB sorting the table by one column into Parquet. Keeps results as bench/results/buckets.*.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from anon.config import parse_size
from measure import (
    ANON,
    ROOT,
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

STAGES = ("source", "cube", "search", "release", "verify", "utility")
FORMS = {"partition, labels": "generalized", "partition, exact": "exact"}  # method and labels


def config_of(table: Path, labels: str) -> str:
    """The hospital example in this form; k_anonymity is about labels, so it becomes group_size."""
    text = (ROOT / "configs/hospital.yaml").read_text().replace("../demo/out/extract.parquet", str(table))
    text = text.replace("../hierarchies", str(ROOT / "hierarchies")).replace("k_anonymity", "group_size")
    return text.replace("form: generalized", f"form: bucketized\n  labels: {labels}")


def compare(rows: int, memory: str, threads: int, runs: int, folder: Path) -> list[dict[str, Any]]:
    """One size: every form, and the sort."""
    table, out = folder / "extract.parquet", folder / "release"
    subprocess.run([sys.executable, ROOT / "demo/hospital.py", "--rows", str(rows), "--out", table], check=True)
    sort = best(runs, lambda: finished(sort_command(table, "zip", memory, threads, folder)))
    found = []
    for name, labels in FORMS.items():
        (folder / "config.yaml").write_text(config_of(table, labels))
        command = [ANON, "run", folder / "config.yaml", "--out", out, "--overwrite", "--memory", memory]
        process = best(runs, lambda: finished([*command, "--threads", threads]))  # noqa: B023
        report = json.loads((folder / "release-run/report.json").read_text())
        found.append(facts(rows, name, process, sort, report))
    return found


def facts(rows: int, name: str, process: Process, sort: Process, report: dict[str, Any]) -> dict[str, Any]:
    return {
        "rows": rows, "form": name, "groups": report["summary"]["groups"], "seconds": process.seconds,
        "cpu": process.cpu, "peak": process.peak, "sort_seconds": sort.seconds, "sort_cpu": sort.cpu,
        "stages": report["seconds"],
    }  # fmt: skip


def row(found: dict[str, Any]) -> list[str]:
    told = [f"{found['rows']:,}", found["form"], f"{found['groups']:,}", f"{found['seconds']:.1f} s"]
    told += [f"{found['seconds'] / found['sort_seconds']:.1f}x", f"{found['cpu'] / found['sort_cpu']:.1f}x"]
    told.append(f"{found['peak'] / 1e6:,.0f} MB")
    return told + [f"{found['stages'].get(stage, 0):.1f}" for stage in STAGES]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=2)
    given = parser.parse_args()
    found: list[dict[str, Any]] = []
    for rows in given.rows:
        with tempfile.TemporaryDirectory() as folder:
            found += compare(rows, given.memory, given.threads, given.runs, Path(folder))
    targets = [Target("peak memory in bytes", max(f["peak"] for f in found), "<=", parse_size(given.memory))]
    about = machine()
    head = ("rows", "method and labels", "groups", "anon run", "times the sort", "of all cores", "peak", *STAGES)
    text = (
        f"Hospital example, form bucketized, memory {given.memory}, {given.threads} threads, the best of {given.runs}. "
        f"{described(about)}\n\n{markdown(head, map(row, found))}\n\n{targets_table(targets)}\n"
    )
    keep("buckets", text, {"machine": about, "runs": found})
    print(text)


if __name__ == "__main__":
    main()
