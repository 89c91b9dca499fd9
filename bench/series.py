"""What a night of a series costs: `python bench/series.py [--people N ...] [--nights N]`.

A series begins with N individuals; every further night brings 1% new ones. Measured are the bytes of the ledger for
each individual, and a night beside a run without a series over the same rows and a scan of the ledger. Every figure is
the least of several nights, whole processes, in seconds of all cores and by the clock. Results are kept in
bench/results/series.md and .json.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from measure import ANON, Process, Target, described, finished, keep, machine, markdown, targets_table

PEOPLE = [1_000_000, 10_000_000]
SHARE = 100  # a night brings this part of the people
SCAN = """
import duckdb, sys
con = duckdb.connect()
con.execute("SET threads = 2").fetchall()
con.execute(f"SELECT bit_xor(hi), bit_xor(lo), sum(g) FROM '{sys.argv[1]}/ids-*.parquet'").fetchall()
"""


def write_people(file: Path, first: int, count: int) -> None:
    """Write some individuals, the same for the same numbers."""
    duckdb.sql(f"""COPY (
        SELECT 'person-' || i AS id, (18 + hash(i) % 70)::INTEGER AS age, (hash(i, 1) % 900)::INTEGER AS area,
            ['f', 'm', 'x'][1 + (hash(i, 2) % 3)::INTEGER] AS sex,
            'value ' || (hash(i, 3) % 40) AS illness
        FROM range({first}, {first + count}) AS t(i)) TO '{file}' (FORMAT parquet)""")


def write_config(folder: Path, **release: Any) -> Path:
    """Write a config of a folder's extract and return its place."""
    config = {
        "source": {"path": str(folder / "extract.parquet")},
        "columns": {
            "individual": "id", "quasi_identifiers": {"age": {}, "area": {}, "sex": {}}, "sensitive": ["illness"],
        },
        "privacy": [{"k_anonymity": {"k": 5}}, {"l_diversity": {"kind": "frequency", "l": 3}}],
        "release": {"path": str(folder / "out"), "run": str(folder / "run")} | release,
        "limits": {"memory": "4GB", "threads": 2, "temp": str(folder / "spill")},
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    return folder / "config.json"


def measure_size(people: int, nights: int, folder: Path) -> dict[str, Any]:
    """Return the figures of one size."""
    series, plain = folder / "series", folder / "plain"
    for each in (series, plain):
        each.mkdir()
    nightly, alone = write_config(series, series="append"), write_config(plain, members=False)
    new = people // SHARE
    write_people(series / "extract.parquet", 0, people)
    begun = finished([ANON, "run", nightly])
    processes: dict[str, list[Process]] = {"night": [], "plain": [], "scan": []}
    for night in range(nights):
        write_people(series / "extract.parquet", people + night * new, new)
        shutil.copy(series / "extract.parquet", plain / "extract.parquet")
        processes["scan"].append(finished([sys.executable, "-c", SCAN, series / "run" / "ledger"]))
        processes["night"].append(finished([ANON, "run", nightly]))
        processes["plain"].append(finished([ANON, "run", alone, "--overwrite", "--force"]))
    ledger = sum(file.stat().st_size for file in (series / "run" / "ledger").iterdir())
    figures = {
        name: {"seconds": min(p.seconds for p in own), "cpu": min(p.cpu for p in own), "peak": max(p.peak for p in own)}
        for name, own in processes.items()
    }
    return {
        "people": people, "new": new, "nights": nights, "ledger_bytes": ledger,
        "bytes_each": ledger / (people + nights * new), "first_seconds": begun.seconds, "first_cpu": begun.cpu,
        **figures,
    }  # fmt: skip


def ratio(found: dict[str, Any], of: str) -> float:
    """Return how a night compares with a run over its rows alone and a scan of the ledger."""
    return float(found["night"][of] / (found["plain"][of] + found["scan"][of]))


def report(sizes: list[dict[str, Any]], facts: dict[str, Any]) -> str:
    """Return the results for readers."""
    head = ("individuals", "new", "", "night", "run over the new rows", "scan of the ledger", "night / (run + scan)")
    rows = [
        (f"{f['people']:,}", f"{f['new']:,}", words, *(f"{f[name][of]:.2f}" for name in ("night", "plain", "scan")),
         f"{ratio(f, of):.2f}")
        for f in sizes
        for of, words in (("cpu", "seconds of all cores"), ("seconds", "seconds by the clock"))
    ]  # fmt: skip
    each = [
        (f"{f['people']:,}", f"{f['ledger_bytes']:,}", f"{f['bytes_each']:.1f}", f"{f['first_seconds']:.1f}",
         f"{f['night']['peak'] / 1e6:,.0f}")
        for f in sizes
    ]  # fmt: skip
    targets = [Target("bytes of the ledger for each individual", max(f["bytes_each"] for f in sizes), "<=", 24)]
    targets += [
        Target(f"a night of 1% on {f['people']:,}, seconds of all cores", ratio(f, "cpu"), "<=", 1.3) for f in sizes
    ]
    parts = [
        "# A night of a series",
        markdown(
            ("individuals", "bytes of the ledger", "for each", "first night, seconds", "peak of a night, MB"), each
        ),
        markdown(head, rows),
        targets_table(targets),
        f"{described(facts)} Three quasi-identifiers, k = 5 and frequency l = 3.",
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--people", type=int, nargs="+", default=PEOPLE)
    options.add_argument("--nights", type=int, default=3)
    options.add_argument("--temp", type=Path)
    chosen = options.parse_args()
    sizes, facts = [], machine()
    for people in chosen.people:
        with TemporaryDirectory(dir=chosen.temp) as folder:
            sizes.append(measure_size(people, chosen.nights, Path(folder)))
        text = report(sizes, facts)
        print(text, flush=True)
        keep("series", text, {"machine": facts, "sizes": sizes})


if __name__ == "__main__":
    main()
