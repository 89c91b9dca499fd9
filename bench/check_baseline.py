"""Checking a release in one scan against the papers' dynamic programs: `python bench/check_baseline.py [--groups N]`.

The experiment of Privacy Skyline, section 7.1 (Figure 7), and the same for (c,k)-safety. Groups of 100 people with 20
uniform sensitive values, all in memory. The dynamic programs hand pieces of knowledge to one group after the other;
they are compiled like the engine, read the same arrays, and compute the figures of equal groups once (skyline) or with
the engine's own recurrence (second column of (c,k)-safety). Every line first checks that all answers agree. Seconds are
CPU time, the best of some runs, for one sensitive value where the knowledge is about a value; "largest counts" is what
of a scan goes to the most frequent values of each group, which both sides need. Prints Markdown; from 10,000 groups on,
which is a million records as in the paper, results are kept in bench/results/check_baseline.md and .json.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from anon.core import kernels as compiled
from anon.core.kernels import kernel
from anon.criteria import Groups, Point, Skyline, State
from anon.criteria.ck_safety import CKSafety
from anon.criteria.kernels_counts import fill_largest
from anon.criteria.protocol import Floats, Ints

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent))
import hatch_build

import measure
from measure import Target, markdown

PEOPLE, VALUES = 100, 20
SMALLEST = 10_000  # groups of the paper's smallest release
ENOUGH = 0.5  # seconds that runs of one program take together, at least
TICK = time.get_clock_info("process_time").resolution  # seconds; what is shorter is not seen


def compiled_programs() -> ctypes.CDLL:
    """Compile the dynamic programs as the engine's kernels are, for the same kind of processor."""
    with tempfile.TemporaryDirectory() as temp:
        hatch_build.build(Path(temp), sources=(Path(__file__).with_name("dynamic_programs.c"),))
        return ctypes.CDLL(str(Path(temp, compiled._path().name)))


_PROGRAMS = compiled_programs()
_minimize2 = kernel("programs_minimize2", _PROGRAMS)
_skyline_figures = kernel("programs_skyline_figures", _PROGRAMS)
_distribute = kernel("programs_distribute", _PROGRAMS)


def minimize2(n: Ints, top: Ints, ours: bool) -> float:
    """The least negated ratio over all ways to hand the target and k pieces of knowledge to the groups."""
    ratio, size = np.empty(1), top.shape[1] + 1
    room = [np.empty((size,) * dimensions) for dimensions in (3, 2, 1)]
    _minimize2(n, top, ours, ratio, *room, np.empty(size - 1), np.empty(size - 1))
    return float(ratio[0])


def skyline_figures(n: Ints, s: Ints, others: Ints, figures: Floats) -> None:
    _skyline_figures(n, s, others, *figures.shape[2:], figures)


def distribute(kind: Ints, figures: Floats) -> float:
    """The same for k known people and a family of m."""
    ratio, (rows, columns) = np.empty(1), figures.shape[2:]
    _distribute(kind, rows - 1, columns - 1, figures, ratio, np.empty((rows, columns)), np.empty((rows, columns)))
    return float(ratio[0])


def synthetic(groups: int, seed: int = 7) -> Groups:
    rng = np.random.default_rng(seed)
    return Groups.dense(rng.multinomial(PEOPLE, [1 / VALUES] * VALUES, size=groups))


def largest(groups: Groups, most: int) -> np.ndarray:
    top = np.zeros((len(groups), most), np.int64)
    fill_largest(groups.start, groups.count, top)
    return top


def skyline_program(groups: Groups, l: int, k: int, m: int) -> float:
    """The breach probability of value 0 by the dynamic program."""
    s = np.zeros(len(groups), np.int64)
    at = np.flatnonzero(groups.value == 0)
    s[np.searchsorted(groups.start, at, side="right") - 1] = groups.count[at]
    top = largest(groups, l + 1)
    others = top.sum(axis=1) - np.maximum(s, top[:, l])
    size = int(groups.n.max()) + 1
    distinct, kind = np.unique((groups.n * size + s) * size + others, return_inverse=True)
    figures = np.empty((len(distinct), 2, k + 1, m + 1))
    skyline_figures(distinct // size**2, distinct // size % size, distinct % size, figures)
    return 1 / (1 + distribute(kind, figures))


def skyline_scan(groups: Groups, l: int, k: int, m: int) -> float:
    criterion = Skyline("s", [[Point(l, k, m, Fraction(1))], *[[] for _ in range(VALUES - 1)]])
    return criterion.verdict(criterion.state(groups)).figure


def largest_counts(groups: Groups, most: int) -> float:
    return float(largest(groups, most)[0, 0])


def ck_program(groups: Groups, k: int, ours: bool) -> float:
    return 1 / (1 + minimize2(groups.n, largest(groups, k + 1), ours))


def ck_scan(groups: Groups, k: int) -> float:
    criterion = CKSafety("s", Fraction(1), k)
    return criterion.verdict(criterion.state(groups)).figure


def seconds(runs: int, work: Callable[..., float], *arguments: Any) -> float:
    taken: list[float] = []
    while len(taken) < runs or sum(taken) < ENOUGH:
        began = time.process_time()
        work(*arguments)
        taken.append(max(time.process_time() - began, TICK))
    return min(taken)


def agree(*answers: float) -> None:
    if not np.allclose(answers, answers[0], rtol=1e-9, atol=0):
        raise SystemExit(f"the answers differ: {answers}")


def skyline_times(groups: int, runs: int) -> Iterator[dict[str, float]]:
    points = [(scale * groups, 10, 10, 10) for scale in (1, 2, 3, 4, 5)]
    points += [(groups, l, 10, 10) for l in (0, 4, 8, 16)]
    points += [(groups, 10, k, 10) for k in (0, 4, 16, 32)]
    points += [(groups, 10, 10, m) for m in (0, 4, 16)]
    for count, l, k, m in points:
        release = synthetic(count)
        agree(skyline_program(release, l, k, m), skyline_scan(release, l, k, m))
        yield {
            "groups": count, "l": l, "k": k, "m": m,
            "program": seconds(runs, skyline_program, release, l, k, m),
            "scan": seconds(runs, skyline_scan, release, l, k, m),
            "largest": seconds(runs, largest_counts, release, l + 1),
        }  # fmt: skip


def skyline_table(times: list[dict[str, float]]) -> str:
    head = ("groups", "l", "k", "m", "dynamic program (s)", "one scan (s)", "its largest counts (s)", "ratio")
    rows = [
        (f"{t['groups']:,}", t["l"], t["k"], t["m"], *(f"{t[name]:.4f}" for name in ("program", "scan", "largest")),
         f"{t['program'] / t['scan']:.0f}")
        for t in times
    ]  # fmt: skip
    return markdown(head, rows)


def targets(times: list[dict[str, float]]) -> list[Target]:
    """What the paper measured: at (10, 10, 10) on average over the sizes, and at k = 32."""
    ratios = {(t["groups"], t["l"], t["k"], t["m"]): t["program"] / t["scan"] for t in times}
    at_ten = [r for point, r in ratios.items() if point[1:] == (10, 10, 10)]
    at_32 = [r for point, r in ratios.items() if point[1:] == (10, 32, 10)]
    return [
        Target("one scan against the dynamic program, (10, 10, 10)", sum(at_ten) / len(at_ten), ">=", 140),
        Target("one scan against the dynamic program, k = 32", at_32[0], ">=", 1000),
    ]


def ck_lines(groups: int, runs: int) -> Iterator[str]:
    yield "| groups | k | MINIMIZE1+2 (s) | MINIMIZE2 on our f (s) | one scan (s) | ratio | ratio on our f |"
    yield "|---|---|---|---|---|---|---|"
    for count, k in [(scale * groups, 5) for scale in (1, 3, 5)] + [(groups, k) for k in (0, 1, 3, 10, 15)]:
        release = synthetic(count)
        agree(ck_program(release, k, False), ck_program(release, k, True), ck_scan(release, k))
        plain, shared = (seconds(runs, ck_program, release, k, ours) for ours in (False, True))
        scan = seconds(runs, ck_scan, release, k)
        figures = f"{plain:.4f} | {shared:.4f} | {scan:.4f} | {plain / scan:.1f} | {shared / scan:.1f}"
        yield f"| {count:,} | {k} | {figures} |"


def split_lines(groups: int, runs: int) -> Iterator[str]:
    yield "| groups | k | all groups again (s) | children merged into the state (s) | ratio |\n|---|---|---|---|---|"
    children = synthetic(2, seed=8)
    for count, k in ((groups, 3), (5 * groups, 3), (5 * groups, 10)):
        release, criterion = synthetic(count), CKSafety("s", Fraction(1), k)
        state = criterion.state(release)

        def merged(one: CKSafety = criterion, whole: State = state) -> float:
            return float(one.judge(whole.merge(one.state(children)).values[None, :])[0])

        again, merge = seconds(runs, ck_program, release, k, True), seconds(100 * runs, merged)
        yield f"| {count:,} | {k} | {again:.4f} | {merge:.6f} | {again / merge:.0f} |"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=SMALLEST, help="groups of the smallest release")
    parser.add_argument("--runs", type=int, default=40, help="runs of the faster programs; the best counts")
    options = parser.parse_args(arguments)
    facts, times = measure.machine(), list(skyline_times(options.groups, options.runs))
    tables = {
        f"Skyline point (l, k, m), groups of {PEOPLE} people, {VALUES} values": skyline_table(times),
        "(c,k)-safety on the same groups": "\n".join(ck_lines(options.groups, options.runs)),
        "(c,k)-safety of one more split, as a search asks it": "\n".join(split_lines(options.groups, options.runs)),
    }
    if options.groups >= SMALLEST:
        tables["Targets"] = measure.targets_table(targets(times))
    text = "\n\n".join(f"## {title}\n\n{table}" for title, table in tables.items()) + "\n"
    if options.groups >= SMALLEST:
        measure.keep("check_baseline", f"{measure.described(facts)}\n\n{text}", {"machine": facts, "skyline": times})
    print(text)


if __name__ == "__main__":
    main()
