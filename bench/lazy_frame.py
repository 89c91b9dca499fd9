"""A LazyFrame of 50 million rows within 1 GB: `python bench/lazy_frame.py [--rows 50M]`.

The table is scanned by Polars from Parquet files (those of bench/scaleup.py: Agrawal, Ghosh, Imielinski and Swami 1993)
and passes an expression on its way, so that the frame exists nowhere as a whole. One process runs
`anon.run(config, frame, memory="1GB")` on a config without a source; the time and the peak of its resident memory are
those of the whole process, Polars included. The size of the frame is what `collect()` would take, estimated from its
first 100,000 rows. Results are kept in bench/results/lazy_frame.md and .json; tables stay in bench/data.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import measure
from measure import DATA, RESULTS, Target, markdown
from scaleup import MAKE, size_text

LIMIT = 10**9
JOB = """
import json, sys
import polars as pl
import anon
table, out, rows = sys.argv[1:]
frame = pl.scan_parquet(table).with_columns(salary=pl.col("salary") // 100 * 100, home=pl.col("hvalue") // 1_000)
head = frame.head(100_000).collect()
config = {
    "columns": {
        "individual": "row",
        "quasi_identifiers": ["salary", "age", "elevel", "car", "home", "hyears"],
        "sensitive": "zipcode",
    },
    "privacy": [{"k_anonymity": {"k": 1000}}, {"l_diversity": {"kind": "distinct", "l": 3}}],
    "release": {"path": out},
}
found = anon.run(config, frame, memory="1GB", threads=2)
size = head.estimated_size() / head.height * int(rows)
print(json.dumps({"groups": found.to_dict()["groups"], "rows": found.to_dict()["rows"], "frame": size}))
"""


def made(rows: int) -> Path:
    """The table, made by an earlier bench or now."""
    path = DATA / f"scaleup-{size_text(rows)}.parquet"
    if not path.exists():
        DATA.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".draft")
        subprocess.run([sys.executable, "-c", MAKE, str(rows), str(draft)], check=True)
        draft.rename(path)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="50M")
    rows = int(parser.parse_args().rows.replace("M", "000000"))
    table = made(rows)
    folder = Path(tempfile.mkdtemp(dir=DATA))
    try:
        process = measure.finished([sys.executable, "-c", JOB, table, folder / "out", rows])
    finally:
        shutil.rmtree(folder)
    found = json.loads(process.out)
    targets = [Target("peak resident memory, GB", process.peak / 1e9, "<=", LIMIT / 1e9)]
    line = (f"{rows:,}", f"{found['frame'] / 1e9:.1f} GB", f"{found['groups']:,}", f"{process.seconds:,.0f} s",
            f"{process.cpu:,.0f} s", f"{process.peak / 1e6:,.0f} MB")  # fmt: skip
    facts = measure.machine()
    text = "\n\n".join([
        "# A LazyFrame within 1 GB", "`python bench/lazy_frame.py`: " + measure.described(facts),
        f"Load when it ended: {facts['load']:.1f}; the time by the clock depends on it.",
        markdown(("rows", "frame, collected", "groups", "time", "processor time", "peak of the process"), [line]),
        measure.targets_table(targets),
    ]) + "\n"  # fmt: skip
    if rows == 50_000_000:
        measure.keep("lazy_frame", text, {"machine": facts, "rows": rows, **found, "seconds": process.seconds,
                                          "cpu": process.cpu, "peak": process.peak})  # fmt: skip
        print(f"kept in {RESULTS / 'lazy_frame.md'}")
    print(text)
    sys.exit(not all(target.holds for target in targets))


if __name__ == "__main__":
    main()
