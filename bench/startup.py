"""What a user waits for before any data: `python bench/startup.py`.

What an installation adds to copying files: compiling all kernels, with the C compiler of the machine; loading them;
`anon --help`, and which libraries it loads; a run on ten rows. Whole processes. Results are kept in
bench/results/startup.md and .json.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import measure
from measure import ANON, Target, markdown

HEAVY = ("numba", "duckdb", "polars", "pyarrow", "numpy")
REFUSED = ("numba", "duckdb", "polars")

COMPILE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import hatch_build
hatch_build.build(Path(sys.argv[2]))
"""
LOAD = """
import importlib, json, time
from pathlib import Path
import numpy
import anon
root = Path(anon.__file__).parent
names = [".".join(["anon", *path.relative_to(root).with_suffix("").parts]) for path in root.rglob("*/kernels*.py")]
packages = [importlib.import_module(name.rpartition(".")[0]) for name in names]  # without kernels of their own
began = time.perf_counter()
for name in names:
    importlib.import_module(name)
print(json.dumps(time.perf_counter() - began))
"""
HELP = """
import contextlib, io, json, sys
from anon.cli.app import app
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    app(["--help"])
print(json.dumps([n for n in NAMES if n in sys.modules]))
"""


def ten_rows(folder: Path) -> list[str]:
    """A run on ten people."""
    people = "\n".join(f"{20 + i},{'FM'[i % 2]},{'abc'[i % 3]}" for i in range(10))
    (folder / "people.csv").write_text(f"age,sex,illness\n{people}\n")
    config = {
        "source": {"path": "people.csv"},
        "columns": {"individual": "row", "quasi_identifiers": {"age": {}, "sex": {}}, "sensitive": ["illness"]},
        "privacy": [{"k_anonymity": {"k": 2}}, {"skyline": {"points": [{"l": 0, "k": 1, "m": 1, "c": 0.9}]}}],
        "release": {"path": "release"},
    }
    (folder / "config.yaml").write_text(json.dumps(config))
    return [ANON, "run", str(folder / "config.yaml"), "--overwrite", "--force"]


def figures(runs: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as temp:
        folder = Path(temp)
        start = measure.finished
        compiled = start([sys.executable, "-c", COMPILE, measure.ROOT, folder])
        loaded = min(json.loads(start([sys.executable, "-c", LOAD]).out) for _ in range(runs))
        run = ten_rows(folder)
        best = measure.best(runs, lambda: start(run))
        asking = [sys.executable, "-c", f"NAMES = {HEAVY!r}\n{HELP}"]
        told = measure.best(runs, lambda: start([ANON, "--help"]))
        return {
            "compile": compiled.seconds, "compile_cpu": compiled.cpu, "load": loaded,
            "ten_rows": best.seconds, "ten_rows_cpu": best.cpu, "ten_rows_peak": best.peak,
            "help": told.seconds, "help_cpu": told.cpu, "help_peak": told.peak,
            "help_loads": json.loads(start(asking).out),
        }  # fmt: skip


def targets(found: dict[str, Any]) -> list[Target]:
    refused = [name for name in REFUSED if name in found["help_loads"]]
    return [
        Target("compiling everything (s)", found["compile"], "<=", 5),
        Target("run on 10 rows (s)", found["ten_rows"], "<=", 2),
        Target(f"of {', '.join(REFUSED)}, loaded by `anon --help`", len(refused), "<=", 0),
    ]


def report(found: dict[str, Any], facts: dict[str, Any]) -> str:
    mega = {name: f"{found[name] / 1e6:,.0f}" for name in ("help_peak", "ten_rows_peak")}
    starts = [
        ("compiling all kernels, at installation", f"{found['compile']:.2f}", f"{found['compile_cpu']:.2f}", ""),
        ("`anon --help`", f"{found['help']:.2f}", f"{found['help_cpu']:.2f}", mega["help_peak"]),
        ("run on 10 rows", f"{found['ten_rows']:.2f}", f"{found['ten_rows_cpu']:.2f}", mega["ten_rows_peak"]),
    ]
    loaded = ", ".join(found["help_loads"]) or f"none of {', '.join(HEAVY)}"
    return "\n\n".join([
        measure.described(facts),
        markdown(("whole process", "seconds", "CPU (s)", "peak MB"), starts),
        f"Loading all kernels takes {found['load'] * 1000:.0f} ms. `anon --help` loads {loaded}.",
        measure.targets_table(targets(found)),
    ]) + "\n"  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="of short processes; the best counts")
    given = parser.parse_args()
    facts, found = measure.machine(), figures(given.runs)
    text = report(found, facts)
    measure.keep("startup", text, {"machine": facts, **found})
    print(text)


if __name__ == "__main__":
    main()
