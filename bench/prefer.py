"""What `prefer: loss` costs beside `prefer: widest`: `python bench/prefer.py [--rows 10M]`.

A whole `anon run` on the table of bench/scaleup.py, seven columns cut freely, k = 1,000 and k = 50, in turns; the
ratio is of the processor seconds of the same round. Results are kept in bench/results/prefer.md and .json.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent))
import measure
from measure import ANON, DATA, Process, markdown
from scaleup import FREE, size_of, size_text, table

ROUNDS = 2
SIZES = (1_000, 50)


def run(data: Path, prefer: str, k: int) -> Process:
    config = {
        "source": {"path": str(data)},
        "columns": {
            "individual": "row",
            "quasi_identifiers": {name: {} for name in FREE[:7]},
            "sensitive": ["zipcode"],
        },
        "privacy": [{"k_anonymity": {"k": k}}, {"l_diversity": {"kind": "distinct", "l": 2}}],
        "method": {"kind": "partition", "prefer": prefer},
        "release": {"path": "release"},
        "limits": {"memory": "1GB", "threads": 2},
    }
    with tempfile.TemporaryDirectory(dir=DATA) as folder:
        path = Path(folder) / "config.json"
        path.write_text(json.dumps(config))
        return measure.finished([ANON, "run", path, "--overwrite"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=size_of, default=10_000_000, metavar="SIZE", help="such as 1M; 10M by default")
    size = parser.parse_args().rows
    data, rows, kept = table(size), [], []
    for k in SIZES:
        rounds = [{prefer: run(data, prefer, k) for prefer in ("widest", "loss")} for _ in range(ROUNDS)]
        ratio = median(each["loss"].cpu / each["widest"].cpu for each in rounds)
        for prefer in ("widest", "loss"):
            cpu, peak = (median(getattr(each[prefer], name) for each in rounds) for name in ("cpu", "peak"))
            rows.append(
                [f"{k:,}", prefer, f"{cpu:.1f} s", f"{peak / 1e6:.0f} MB", f"{ratio:.2f}" if prefer == "loss" else ""]
            )
        kept.append(
            {"k": k, "ratio": ratio, "cpu": [{name: done.cpu for name, done in each.items()} for each in rounds]}
        )
        print(f"k = {k:,}: {ratio:.2f}", flush=True)
    machine = measure.machine()
    head = ["k", "prefer", "CPU of the run", "peak memory", "CPU, loss / widest"]
    about = f"{size_text(size)} rows, limit 1GB, two threads; medians of {ROUNDS} rounds."
    text = f"# What `prefer: loss` costs\n\n{about}\n\n{markdown(head, rows)}\n\n{measure.described(machine)}\n"
    measure.keep("prefer", text, {"machine": machine, "rows": size, "jobs": kept})


if __name__ == "__main__":
    main()
