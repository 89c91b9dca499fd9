"""Knowledge skylines of many groups: `python bench/explore.py [--groups 1000000] [--people 10]`.

Makes a release of random groups with 20 sensitive values, and measures whole processes: `anon explore` for one value at
one confidence and for three values at two, and `anon check` with one skyline point for every value, which reads the
same table. Prints a table and keeps it in bench/results/risk.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parent))
from measure import ANON, DATA, best, described, finished, keep, machine, markdown

VALUES = 20
BATCH = 1_000_000  # rows


def make(path: Path, groups: int, people: int) -> None:
    """Groups of people / 2 to 3 / 2 people whose values differ more than by chance, so that there is something safe."""
    rng = np.random.default_rng(20)
    sizes = rng.integers(people // 2, people + people // 2 + 1, groups)
    label = np.repeat(np.arange(groups), sizes)
    place = np.arange(len(label)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    place += np.repeat(rng.integers(0, VALUES, groups), sizes)
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = pa.schema([("cell", pa.int64()), ("s", pa.string())])
    with pq.ParquetWriter(path, schema) as file:
        for at in range(0, len(label), BATCH):
            part = label[at : at + BATCH]
            codes = (place[at : at + BATCH] + rng.integers(0, 4, len(part))) % VALUES
            values = pa.array([f"v{code:02d}" for code in range(VALUES)]).take(pa.array(codes))
            file.write_table(pa.table([pa.array(part), values], schema=schema))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--groups", type=int, default=1_000_000)
    parser.add_argument("--people", type=int, default=10, help="mean number of people in a group")
    parser.add_argument("--memory", default="2GB")
    given = parser.parse_args()
    table = DATA / f"explore-{given.groups}-{given.people}.parquet"
    if not table.exists():
        make(table, given.groups, given.people)
    path = DATA / "explore.yaml"
    made = {
        "source": {"path": str(table)},
        "columns": {"individual": "row", "quasi_identifiers": {"cell": {}}, "sensitive": ["s"]},
        "privacy": [{"skyline": {"points": [{"l": 1, "k": 1, "m": 1, "c": 0.95}]}}],
        "release": {"path": str(DATA / "explore-release")},
        "limits": {"memory": given.memory},
    }
    path.write_text(json.dumps(made))
    on = ["--on", table, "--json"]
    three = [word for value in ("v00", "v07", "v19") for word in ("--value", value)]
    commands = {
        "explore, 1 value, 1 confidence": ["explore", path, *on, "--value", "v00", "--confidence", "0.95"],
        "explore, 3 values, 2 confidences": ["explore", path, *on, *three, "--confidence", "0.5", "--confidence", "1"],
        "check, 1 point for each of 20 values": ["check", path, *on],
    }
    rows, figures = [], {}
    for name, command in commands.items():
        process = best(2, lambda command=command: finished([ANON, *command], (0, 3)))  # type: ignore[misc]
        told = json.loads(process.out)
        points = sum(len(skyline["points"]) for skyline in told.get("skylines", []))
        rows.append((name, f"{process.seconds:.1f}", f"{process.cpu:.1f}", f"{process.peak / 1e6:,.0f}", points))
        figures[name] = {"seconds": process.seconds, "cpu": process.cpu, "peak": process.peak, "points": points}
    facts = machine()
    head = ("command", "seconds", "CPU seconds", "peak MB", "points")
    title = f"{given.groups:,} groups of {given.people} people on average, {VALUES} values, --memory {given.memory}"
    text = f"{title}\n\n{markdown(head, rows)}\n\n{described(facts)} Load average {facts['load']:.1f}.\n"
    keep("explore", text, {"machine": facts, "commands": figures})
    print(text)


if __name__ == "__main__":
    main()
