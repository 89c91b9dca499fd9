"""What a user waits for before any data: `python bench/startup.py`.

The first start after an installation, when numba compiles every loop (an empty NUMBA_CACHE_DIR stands in for it):
module by module in one process, and all as a run loads them, which starts a second process then;
`anon --help`, and which libraries it loads; a run on ten rows with the loops compiled. Whole processes. Results are
kept in bench/results/startup.md and .json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import measure
from measure import ANON, Target, markdown

HEAVY = ("numba", "duckdb", "polars", "pyarrow", "numpy")
REFUSED = ("numba", "duckdb", "polars")

# Loops have explicit types, so importing a module compiles those in it. numba is imported first: it is no compilation.
# Modules by name, because a package may load the loops of its modules when it is imported.
COMPILE = """
import importlib, json, time
from pathlib import Path
import numba, numpy
import anon
root = Path(anon.__file__).parent
files = [path for path in sorted(root.rglob("*.py")) if "@compiled" in path.read_text()]
taken = {}
for path in files:
    name = ".".join(["anon", *path.relative_to(root).with_suffix("").parts])
    began = time.perf_counter()
    importlib.import_module(name)
    taken[name] = time.perf_counter() - began
print(json.dumps(taken))
"""
# The same as a run does it, with a second process if there is no cache.
TOGETHER = """
import json, time
import numba, numpy
from anon import loops
began = time.perf_counter()
loops.load(set(loops.MODULES))
print(json.dumps(time.perf_counter() - began))
"""
HELP = """
import contextlib, io, json, sys
sys.argv = ["anon", "--help"]
from anon.__main__ import main
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    main()
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
        env = os.environ | {"NUMBA_CACHE_DIR": str(folder / "numba")}
        start = partial(measure.finished, env=env)
        compiling, together = [sys.executable, "-c", COMPILE], [sys.executable, "-c", TOGETHER]
        first_start, second_start = start(compiling), start(compiling)
        empty = os.environ | {"NUMBA_CACHE_DIR": str(folder / "together")}
        first_together, second_together = (measure.finished(together, env=empty) for _ in range(2))
        run = ten_rows(folder)
        first = start(run)  # compiles what has no explicit types, if anything
        best = measure.best(runs, lambda: start(run))
        asking = [sys.executable, "-c", f"NAMES = {HEAVY!r}\n{HELP}"]
        loaded = json.loads(start(asking).out)
        told = measure.best(runs, lambda: start([ANON, "--help"]))
    return {
        "compile": json.loads(first_start.out), "load": json.loads(second_start.out),
        "compile_together": json.loads(first_together.out), "load_together": json.loads(second_together.out),
        "compile_cpu": first_start.cpu - second_start.cpu, "ten_rows_first": first.seconds, "ten_rows": best.seconds,
        "ten_rows_cpu": best.cpu, "ten_rows_peak": best.peak,
        "help": told.seconds, "help_cpu": told.cpu, "help_peak": told.peak, "help_loads": loaded,
    }  # fmt: skip


def targets(found: dict[str, Any]) -> list[Target]:
    cold = found["compile_together"] - found["load_together"]
    refused = [name for name in REFUSED if name in found["help_loads"]]
    return [
        Target("compiling everything (s)", cold, "<=", 5),
        Target("run on 10 rows, compiled (s)", found["ten_rows"], "<=", 2),
        Target(f"of {', '.join(REFUSED)}, loaded by `anon --help`", len(refused), "<=", 0),
    ]


def report(found: dict[str, Any], facts: dict[str, Any]) -> str:
    modules = [
        (name, f"{seconds:.2f}", f"{found['load'][name]:.2f}")
        for name, seconds in sorted(found["compile"].items(), key=lambda one: -one[1])
    ]
    mega = {name: f"{found[name] / 1e6:,.0f}" for name in ("help_peak", "ten_rows_peak")}
    total = [(f"{sum(found[part].values()):.2f}") for part in ("compile", "load")]
    both = [f"{found[part]:.2f}" for part in ("compile_together", "load_together")]
    starts = [
        ("`anon --help`", f"{found['help']:.2f}", f"{found['help_cpu']:.2f}", mega["help_peak"]),
        ("run on 10 rows", f"{found['ten_rows']:.2f}", f"{found['ten_rows_cpu']:.2f}", mega["ten_rows_peak"]),
        ("run on 10 rows, the first after compiling", f"{found['ten_rows_first']:.2f}", "", ""),
    ]
    loaded = ", ".join(found["help_loads"]) or f"none of {', '.join(HEAVY)}"
    return "\n\n".join([
        measure.described(facts),
        markdown(("module", "compiled (s)", "loaded again (s)"), [*modules, ("all", *total), ("all by `load`", *both)]),
        markdown(("whole process", "seconds", "CPU (s)", "peak MB"), starts),
        f"Compiling takes {found['compile_cpu']:.1f} s of CPU in one process. `anon --help` loads {loaded}.",
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
