"""Figure 8 of the skyline paper, and what the search promises at size: `python bench/scaleup.py [--figure8]`.

The data are those of Agrawal, Ghosh, Imielinski and Swami (1993): nine attributes, zipcode sensitive, the other eight
cut freely. For each size and each point (l, k, m) with c = 1, a whole `anon run` (read, search, release, verify) stands
against DuckDB sorting the same table by salary and writing it as Parquet, a whole process too, under the same limits.
Then: many groups, one thread against two, memory limits. Results are kept in bench/results/scaleup.md and .json.
`--figure8` measures only the first of these, from 10M to 100M rows, and keeps figure8.md, .json and the chart .svg;
`--quick` tries everything on a million rows and keeps nothing. Tables stay in bench/data (1.7 GB for 100M rows) until
`--clean`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import measure
from chart import line_chart
from measure import ANON, DATA, RESULTS, Failed, Target, markdown

Point = tuple[int, int, int]

POINTS: list[Point] = [(0, 1000, 0), (3, 1000, 10)]
MANY_GROUPS: Point = (3, 5, 0)
MEMORIES = ("512MB", "1GB", "4GB")
SORTED_BY = "salary"
ENOUGH = 30  # seconds that a job is measured for, at least; short ones are run more often
SIZES = {"": 1, "K": 10**3, "M": 10**6}
UNITS = {"MB": 10**6, "GB": 10**9}
STAGES = ("source", "cube", "search", "release", "verify", "utility", "attack", "report")
FREE = ("salary", "commission", "age", "elevel", "car", "hvalue", "hyears", "loan")

# Every number comes from a hash of the row number, so that any row can be made alone.
MAKE = """
import duckdb, sys
rows, out = sys.argv[1:]
def uniform(which, low, high):
    return f"({low} + hash(i * 16 + {which}) % {high - low + 1})::INTEGER"
con = duckdb.connect()
con.execute("SET memory_limit = '2GB'").fetchall()
con.execute("SET enable_progress_bar = false").fetchall()
con.execute(f'''COPY (
  WITH drawn AS (
    SELECT i, {uniform(0, 20000, 150000)} AS salary, {uniform(1, 20, 80)} AS age, {uniform(2, 0, 4)} AS elevel,
      {uniform(3, 1, 20)} AS car, {uniform(4, 0, 8)} AS zipcode, {uniform(5, 1, 30)} AS hyears,
      {uniform(6, 0, 500000)} AS loan
    FROM range({rows}) AS t(i))
  SELECT salary, CASE WHEN salary >= 75000 THEN 0 ELSE {uniform(7, 10000, 75000)} END AS commission, age, elevel, car,
    zipcode, (zipcode + 1) * {uniform(8, 50000, 150000)} AS hvalue, hyears, loan FROM drawn
) TO '{out}' (FORMAT parquet)''').fetchall()
"""


@dataclass(frozen=True)
class Job:
    """An `anon run`, or without a point the sort."""

    rows: int
    point: Point | None
    memory: str
    threads: int


@dataclass(frozen=True)
class Done:
    """What was measured; seconds is None where the process failed."""

    seconds: float | None = None
    cpu: float = 0.0
    peak: int = 0
    groups: int = 0
    depth: int = 0  # of the tree of cuts
    levels: float = 0.0  # that a row goes through, on average
    stages: dict[str, float] = field(default_factory=dict)
    wrong: str = ""


@dataclass
class Bench:
    """Measures jobs in rounds and keeps the best run of each, whichever tables show it; calls `after` whenever one is
    done."""

    runs: int
    after: Callable[[Bench], None]
    done: dict[Job, Done] = field(default_factory=dict)
    rounds: list[dict[Job, Done]] = field(default_factory=list)

    def __call__(self, *jobs: Job) -> list[Done]:
        """Measures some jobs in turns: where a machine's speed varies, it does so for all of them."""
        rounds, began = 0, time.monotonic()
        while rounds < self.runs or time.monotonic() - began < ENOUGH * len(jobs):
            self.rounds.append({})
            for job in jobs:
                self.rounds[-1][job] = found = self._measured(job)
                self.done[job] = better(found, self.done.get(job))
                self.after(self)
            rounds += 1
        return [self.done[job] for job in jobs]

    def ratio(self, figure: Callable[[Done], float | None], one: Job, other: Job) -> float | None:
        """A figure of one job over that of another: the median of the rounds that had both, so that neither is seen at
        a better moment than the other."""
        pairs = [(figure(each[one]), figure(each[other])) for each in self.rounds if one in each and other in each]
        found = [ratio(*pair) for pair in pairs]
        return None if not found or None in found else median(each for each in found if each is not None)

    def once(self, job: Job) -> Done:
        """A job that was measured already, or is now."""
        if job not in self.done:
            self.done[job] = self._measured(job)
            self.after(self)
        return self.done[job]

    def _measured(self, job: Job) -> Done:
        print(f"... {named(job)}", file=sys.stderr, flush=True)
        data = table(job.rows)
        with tempfile.TemporaryDirectory(dir=DATA) as temp:
            folder = Path(temp)
            command = measure.sort_command(data, SORTED_BY, job.memory, job.threads, folder)
            if job.point is not None:
                command = anon_command(job, data, folder)
            os.sync()  # what an earlier process left to be written is not this one's
            try:
                process = measure.finished(command)
            except Failed as failed:
                print(failed, file=sys.stderr)
                return Done(wrong=str(failed).splitlines()[-1])
            told = {} if job.point is None else tree_facts(folder / "release-run")
            return Done(process.seconds, process.cpu, process.peak, **told)


def better(one: Done, other: Done | None) -> Done:
    """The faster of two runs of a job, with the higher peak; a failure is not forgotten."""
    if other is None or one.seconds is None or other.seconds is None:
        return one if other is None or one.seconds is None else other
    return replace(min(one, other, key=lambda done: done.seconds or 0.0), peak=max(one.peak, other.peak))


def named(job: Job) -> str:
    what = "DuckDB sort" if job.point is None else f"anon run {job.point}"
    return f"{what}, {size_text(job.rows)} rows, {job.memory}, {job.threads} threads"


def table(rows: int) -> Path:
    """The table of so many rows, made the first time; it appears in one step."""
    path = DATA / f"scaleup-{size_text(rows)}.parquet"
    if not path.exists():
        DATA.mkdir(exist_ok=True)
        print(f"... making {path.name}", file=sys.stderr, flush=True)
        part = path.with_suffix(".part")
        subprocess.run([sys.executable, "-c", MAKE, str(rows), str(part)], check=True)
        part.rename(path)
    return path


def anon_command(job: Job, data: Path, folder: Path) -> list[str]:
    assert job.point is not None
    l, k, m = job.point
    config = {
        "source": {"path": str(data)},
        "columns": {"individual": "row", "quasi_identifiers": {name: {} for name in FREE}, "sensitive": ["zipcode"]},
        "privacy": [{"skyline": {"points": [{"l": l, "k": k, "m": m, "c": 1}]}}],
        "release": {"path": "release"},
        "limits": {"temp": "spill"},
    }
    (folder / "config.yaml").write_text(json.dumps(config))
    command = [ANON, "run", str(folder / "config.yaml"), "--overwrite", "--force", "--memory", job.memory]
    return [*command, "--threads", str(job.threads)]


def tree_facts(run: Path) -> dict[str, Any]:
    """What the run folder says of stages and of the tree of cuts, whose nodes come after their parents."""
    nodes = json.loads((run / "recoding.json").read_text())["nodes"]
    depth = [0] * len(nodes)
    for number, node in enumerate(nodes):
        for child in node.get("children", ()):
            depth[child] = depth[number] + 1
    people = [node.get("people", 0) if "group" in node else 0 for node in nodes]
    report = json.loads((run / "report.json").read_text())
    levels = sum(d * n for d, n in zip(depth, people)) / sum(people)
    return {
        "groups": report["summary"]["groups"], "depth": max(depth), "levels": levels, "stages": report["seconds"],
    }  # fmt: skip


def size_of(text: str) -> int:
    """Rows as 500K, 10M or 1000000."""
    unit = text[-1:] if text[-1:] in ("K", "M") else ""
    return int(text.removesuffix(unit)) * SIZES[unit]


def size_text(rows: int) -> str:
    unit = next(unit for unit in ("M", "K", "") if rows % SIZES[unit] == 0)
    return f"{rows // SIZES[unit]}{unit}"


def memory_bytes(text: str) -> int:
    return int(text[:-2]) * UNITS[text[-2:]]


def ratio(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one / other


def shown(number: float | None, form: str = "{:.1f}") -> str:
    return "failed" if number is None else form.format(number)


@dataclass(frozen=True)
class Wanted:
    """What a start of the bench measures."""

    rows: list[int]
    points: list[Point]
    memory: str
    threads: int

    def job(self, rows: int, point: Point | None, **other: Any) -> Job:
        return Job(**({"rows": rows, "point": point, "memory": self.memory, "threads": self.threads} | other))

    @property
    def first(self) -> int:
        return min(self.rows)

    @property
    def ends(self) -> list[int]:
        return sorted({min(self.rows), max(self.rows)})


def seconds(done: Done) -> float | None:
    return done.seconds


def searching(done: Done) -> float | None:
    return done.stages.get("search")


def times_sort(bench: Bench, wanted: Wanted, rows: int, point: Point) -> float | None:
    return bench.ratio(seconds, wanted.job(rows, point), wanted.job(rows, None))


def against_sort(bench: Bench, wanted: Wanted) -> str:
    rows = []
    for size in wanted.rows:
        points = wanted.points + ([MANY_GROUPS] if size == wanted.first else [])
        sort, *runs = bench(*(wanted.job(size, point) for point in (None, *points)))
        for point, run in zip(points, runs):
            each = ratio(searching(run), size * run.levels / 1e9 if run.levels else None)
            rows.append((
                size_text(size), point, f"{run.groups:,}", run.depth, f"{run.levels:.1f}", shown(run.seconds),
                shown(sort.seconds), shown(times_sort(bench, wanted, size, point), "{:.2f}x"), shown(each),
                f"{run.peak / 1e6:,.0f}", f"{sort.peak / 1e6:,.0f}",
                *(shown(run.stages.get(name), "{:.2f}") for name in STAGES),
            ))  # fmt: skip
    head = ("rows", "(l,k,m)", "groups", "depth", "levels per row", "anon run (s)", "sort (s)", "ratio")
    return markdown((*head, "search, ns per row and level", "peak MB", "sort's peak MB", *STAGES), rows)


def by_threads(bench: Bench, wanted: Wanted) -> str:
    rows = []
    for point in [*wanted.points, MANY_GROUPS]:
        jobs = [wanted.job(wanted.first, point, threads=threads) for threads in (1, 2)]
        one, two = bench(*jobs)
        stages = (searching(one), searching(two))
        rows.append((
            size_text(wanted.first), point, *(shown(s, "{:.2f}") for s in stages),
            shown(bench.ratio(searching, *jobs), "{:.2f}x"), shown(one.seconds), shown(two.seconds),
            shown(bench.ratio(seconds, *jobs), "{:.2f}x"),
        ))  # fmt: skip
    head = ("rows", "(l,k,m)", "search, 1 thread (s)", "2 threads (s)", "faster", "whole run, 1 thread (s)")
    return markdown((*head, "2 threads (s)", "faster"), rows)


def by_memory(bench: Bench, wanted: Wanted) -> str:
    rows = []
    for size in wanted.ends:
        for memory in MEMORIES:
            for point in wanted.points:
                run = bench.once(wanted.job(size, point, memory=memory))
                within = "yes" if run.seconds is not None and run.peak <= memory_bytes(memory) else "**no**"
                rows.append((
                    size_text(size), memory, point, shown(run.seconds), f"{run.peak / 1e6:,.0f}", within, run.wrong,
                ))  # fmt: skip
    return markdown(("rows", "limit", "(l,k,m)", "anon run (s)", "peak MB", "within the limit", ""), rows)


Sections = dict[str, Callable[[Bench, Wanted], str]]
SECTIONS: Sections = {"Against a sort": against_sort, "One thread against two": by_threads, "Peak memory": by_memory}


def targets(bench: Bench, wanted: Wanted) -> list[Target]:
    """The targets speak of 10M and 100M rows; here of the smallest and the largest size, whatever they are."""
    small, large = min(wanted.rows), max(wanted.rows)

    def took(rows: int, point: Point) -> float | None:
        found = bench.done.get(wanted.job(rows, point))
        return found.seconds if found else None

    def worst(figures: list[float | None]) -> float | None:
        return None if None in figures else max((f for f in figures if f is not None), default=None)

    def against(rows: int, points: list[Point]) -> float | None:
        return worst([times_sort(bench, wanted, rows, point) for point in points])

    points, sizes = wanted.points, (size_text(small), size_text(large))
    grown = worst([ratio(took(large, point), took(small, point)) for point in points if large == 10 * small])
    return [
        Target(f"anon run against the sort, {sizes[1]} rows", against(large, points), "<=", 2.0),
        Target(f"anon run against the sort, {sizes[0]} rows", against(small, points), "<=", 4.0),
        Target(f"time({sizes[1]}) / time({sizes[0]})", grown, "<=", 14),
        Target(f"{MANY_GROUPS} against the sort, {sizes[0]} rows", against(small, [MANY_GROUPS]), "<=", 6.0),
        Target("second core, search stage, the worse point", second_core(bench, wanted), ">=", 1.5),
        Target("peak over the limit, the worst", worst_peak(bench.done, wanted), "<=", 1.0),
    ]


def second_core(bench: Bench, wanted: Wanted) -> float | None:
    pairs = [[wanted.job(wanted.first, point, threads=threads) for threads in (1, 2)] for point in wanted.points]
    found = [bench.ratio(searching, *pair) for pair in pairs]
    return None if None in found else min(f for f in found if f is not None)


def worst_peak(done: dict[Job, Done], wanted: Wanted) -> float | None:
    """The largest share of its limit that a run took; infinite if one failed."""
    jobs = [
        wanted.job(size, point, memory=memory) for size in wanted.ends for memory in MEMORIES for point in wanted.points
    ]
    if any(job not in done for job in jobs):
        return None
    failed = any(done[job].seconds is None for job in jobs)
    return float("inf") if failed else max(done[job].peak / memory_bytes(job.memory) for job in jobs)


def chart(done: dict[Job, Done], wanted: Wanted) -> str:
    lines = {
        ("DuckDB sort and write" if point is None else f"anon run, (l, k, m) = {point}"): [
            (size / 1e6, run.seconds)
            for size in wanted.rows
            if (run := done[wanted.job(size, point)]).seconds is not None
        ]
        for point in (*wanted.points, None)
    }
    title = f"Whole processes, memory {wanted.memory}, {wanted.threads} threads"
    return line_chart(title, "million rows", "seconds", {name: line for name, line in lines.items() if line})


def figures(facts: dict[str, Any], bench: Bench) -> dict[str, Any]:
    rounds = [[asdict(job) | {"seconds": one.seconds} for job, one in each.items()] for each in bench.rounds]
    best = [asdict(job) | asdict(one) for job, one in bench.done.items()]
    return {"machine": facts, "runs": bench.runs, "measured": best, "rounds": rounds}


def report(bench: Bench, wanted: Wanted, facts: dict[str, Any], sections: Sections) -> str:
    head = (
        f"{measure.described(facts)}\n\nMemory {wanted.memory}, {wanted.threads} threads, c = 1; whole processes, the "
        f"best of {bench.runs} rounds or more and the highest peak of all; ratios are the median of the rounds, in "
        f"which the processes took turns. The sort is by {SORTED_BY}, under the same limits, which DuckDB takes for "
        "its buffers only. Levels per row: how deep the groups lie, weighted by people."
    )
    body = [f"## {title}\n\n{write(bench, wanted)}" for title, write in sections.items()]
    return "\n\n".join([head, *body, "## Targets\n\n" + measure.targets_table(targets(bench, wanted))]) + "\n"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)

    def sizes(text: str) -> list[int]:
        return sorted({size_of(part) for part in text.split(",")})

    def points(text: str) -> list[Point]:
        return [tuple(int(n) for n in part.split(",")) for part in text.split(";")]  # type: ignore[misc]

    parser.add_argument("--rows", type=sizes, help="sizes, e.g. 10M,20M (default 10M,100M)")
    parser.add_argument("--figure8", action="store_true", help="10M to 100M rows in steps of 10M, and the chart")
    parser.add_argument("--points", type=points, default=POINTS, help="(l,k,m), e.g. '0,1000,0;3,1000,10' (default)")
    parser.add_argument("--memory", default="1GB", help="a limit such as 512MB or 1GB (default)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3, help="rounds, in which every process runs once (default 3)")
    parser.add_argument("--quick", action="store_true", help="100K and 1M rows, nothing kept")
    parser.add_argument("--clean", action="store_true", help="remove the tables and do nothing else")
    return parser.parse_args()


def rows_of(given: argparse.Namespace) -> list[int]:
    if given.rows:
        return list(given.rows)
    if given.quick:
        return [100_000, 1_000_000]
    return [tens * 10_000_000 for tens in (range(1, 11) if given.figure8 else (1, 10))]


def main() -> None:
    given = arguments()
    if given.clean:
        shutil.rmtree(DATA, ignore_errors=True)
        return
    facts, name = measure.machine(), "figure8" if given.figure8 else "scaleup"

    def save(bench: Bench, text: str = "Not finished.\n") -> None:
        if not given.quick:
            measure.keep(name, text, figures(facts, bench))

    bench, wanted = Bench(given.runs, save), Wanted(rows_of(given), given.points, given.memory, given.threads)
    text = report(bench, wanted, facts, {"Figure 8": against_sort} if given.figure8 else SECTIONS)
    save(bench, text)
    if given.figure8 and not given.quick:
        (RESULTS / f"{name}.svg").write_text(chart(bench.done, wanted))
    print(text)


if __name__ == "__main__":
    main()
