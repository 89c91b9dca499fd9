"""What the benches share: whole processes measured from outside, the sort they are held against, targets, and the files
of results. Uses the standard library only."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "bench" / "results"
DATA = ROOT / "bench" / "data"
ANON = str(Path(sys.executable).with_name("anon"))
PACKAGES = ("anon-engine", "duckdb", "numpy", "pyarrow")

# A process starts with the peak of the one that started it, so a small one stands in between. Its last line tells.
BETWEEN = """
import json, os, sys, time
began = time.perf_counter()
_, status, usage = os.wait4(os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ), 0)
seconds, code = time.perf_counter() - began, os.waitstatus_to_exitcode(status)
print("\\n" + json.dumps([code, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024]), file=sys.stderr)
"""
SORT = """
import duckdb, sys
table, out, column, memory, threads, spill = sys.argv[1:]
con = duckdb.connect()
for name, value in (("memory_limit", memory), ("threads", threads), ("temp_directory", spill)):
    con.execute(f"SET {name} = '{value}'").fetchall()
con.execute("SET enable_progress_bar = false").fetchall()
con.execute(f"COPY (SELECT * FROM '{table}' ORDER BY {column}) TO '{out}' (FORMAT parquet)").fetchall()
"""


class Failed(SystemExit):
    """A process that ended as it should not have; the message is what it said."""


@dataclass(frozen=True)
class Process:
    """A whole process from start to end."""

    code: int
    seconds: float  # by the clock on the wall
    cpu: float  # seconds of all cores
    peak: int  # resident bytes
    out: str
    err: str


def watch(
    command: Sequence[object], patience: float | None = None, env: dict[str, str] | None = None
) -> Process | None:
    """Runs a command to its end; None if that takes longer than `patience` seconds."""
    between = [sys.executable, "-S", "-E", "-c", BETWEEN, *map(str, command)]
    env = dict(os.environ if env is None else env)
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed copy has the bytecode of its modules
    pipe = subprocess.PIPE
    process = subprocess.Popen(between, stdout=pipe, stderr=pipe, text=True, start_new_session=True, env=env)
    try:
        out, err = process.communicate(timeout=patience)
    except BaseException as stopped:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if isinstance(stopped, subprocess.TimeoutExpired):
            return None
        raise
    said, _, told = err.rstrip("\n").rpartition("\n")
    if process.returncode:
        raise Failed(f"{command[0]} cannot be started\n{err}")
    code, seconds, cpu, peak = json.loads(told)
    return Process(code, seconds, cpu, peak, out, said.rstrip("\n"))


def finished(command: Sequence[object], codes: tuple[int, ...] = (0,), env: dict[str, str] | None = None) -> Process:
    """A process that must end with one of the exit codes."""
    process = watch(command, env=env)
    if process is None or process.code not in codes:
        raise Failed(f"{' '.join(map(str, command))}\n{process.err if process else ''}")
    return process


def measured(command: Sequence[object], codes: tuple[int, ...] = (0,)) -> tuple[float, int]:
    """Seconds and peak resident bytes of a process that must end with one of the exit codes."""
    process = finished(command, codes)
    return process.seconds, process.peak


def sort_command(table: Path, column: str, memory: str, threads: int, folder: Path) -> list[str]:
    """DuckDB sorting a Parquet file by one column into another one in the folder, where it may spill too."""
    out = folder / "sorted.parquet"
    return [sys.executable, "-c", SORT, str(table), str(out), column, memory, str(threads), str(folder)]


@dataclass(frozen=True)
class Target:
    """What a bench is held to; figure None where it was not measured."""

    words: str
    figure: float | None
    relation: str  # <= or >=
    bound: float

    @property
    def holds(self) -> bool | None:
        if self.figure is None:
            return None
        return self.figure <= self.bound if self.relation == "<=" else self.figure >= self.bound


def targets_table(targets: Iterable[Target]) -> str:
    words = {True: "holds", False: "**missed**", None: "not measured"}
    rows = [
        (t.words, "" if t.figure is None else f"{t.figure:,.4g}", f"{t.relation} {t.bound:,g}", words[t.holds])
        for t in targets
    ]
    return markdown(("target", "measured", "asked", ""), rows)


def markdown(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def machine() -> dict[str, Any]:
    """What figures depend on besides the code."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    versions = {name: version(name) for name in PACKAGES}
    return {
        "cores": os.cpu_count(), "memory": memory, "architecture": platform.machine(),
        "python": platform.python_version(), "load": os.getloadavg()[0], **versions,
    }  # fmt: skip


def described(facts: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {facts[name]}" for name in ("python", *PACKAGES))
    return f"{facts['cores']} cores, {facts['memory'] / 1e9:.0f} GB, {facts['architecture']}; {versions}."


def keep(name: str, text: str, figures: dict[str, Any]) -> None:
    """Keeps results as NAME.md, for readers, and NAME.json, with all that was measured."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text)
    (RESULTS / f"{name}.json").write_text(json.dumps(figures, indent=1) + "\n")


def best(runs: int, run: Callable[[], Process], enough: float = 0) -> Process:
    """The fastest of some runs, or of more until so many seconds have passed, with the highest peak of all."""
    done: list[Process] = []
    while len(done) < runs or sum(process.seconds for process in done) < enough:
        done.append(run())
    fastest, peak = min(done, key=lambda process: process.seconds), max(process.peak for process in done)
    return Process(fastest.code, fastest.seconds, fastest.cpu, peak, fastest.out, fastest.err)
