"""How far runs of equal length are from the best microaggregation: `python bench/microaggregation.py`.

Groups of numbers, each replaced by means of at least n: by runs of nearly equal length of the sorted numbers
(`aggregate: {COLUMN: {mean: n}}`), by MDAV (Domingo-Ferrer and Torra 2005) on one column, and by the optimum of Hansen
and Mukherjee (2003), the shortest path over runs of n to 2n - 1 sorted numbers. The share of the variance that is lost,
over all groups of a kind. Hours per week are drawn from Adult. Keeps the result in bench/results/microaggregation.md
and .json.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))
from measure import ROOT, described, keep, machine, markdown

sys.path.insert(0, str(ROOT))
from demo import adult

Floats = NDArray[np.float64]
SIZES = {12: 400, 50: 100, 400: 12}  # values of a group, and groups
FEWEST = (3, 5)


def spread(values: Floats) -> float:
    return float(((values - values.mean()) ** 2).sum())


def equal_runs(values: Floats, n: int) -> float:
    return sum(spread(run) for run in np.array_split(values, max(len(values) // n, 1)))


def optimum(values: Floats, n: int) -> float:
    best = [0.0] + [np.inf] * len(values)
    for end in range(n, len(values) + 1):
        starts = range(max(0, end - 2 * n + 1), end - n + 1)
        best[end] = min(best[start] + spread(values[start:end]) for start in starts)
    return best[-1]


def mdav(values: Floats, n: int) -> float:
    lost, left = 0.0, values

    def around(centre: float) -> None:
        nonlocal lost, left
        left = left[np.lexsort((left, np.abs(left - centre)))]
        lost, left = lost + spread(left[:n]), left[n:]

    while len(left) >= 3 * n:
        first = left[np.abs(left - left.mean()).argmax()]
        around(first)
        around(left[np.abs(left - first).argmax()])
    if len(left) >= 2 * n:
        around(left[np.abs(left - left.mean()).argmax()])
    return lost + spread(left)


def measured(kind: str, draw: Callable[[int], Floats]) -> list[dict[str, Any]]:
    found = []
    for n in FEWEST:
        for size, count in SIZES.items():
            groups = [np.sort(draw(size)) for _ in range(count)]
            whole = sum(map(spread, groups))
            shares = {f.__name__: sum(f(group, n) for group in groups) / whole for f in (equal_runs, mdav, optimum)}
            found.append({"values": kind, "n": n, "size": size} | shares)
    return found


def main() -> None:
    rng, hours = np.random.default_rng(0), np.array(adult.load(adult.fetch())["hours_per_week"].to_pylist(), np.float64)
    draws: dict[str, Callable[[int], Floats]] = {
        "hours per week": lambda size: rng.choice(hours, size), "normal": lambda size: rng.normal(100, 15, size),
        "lognormal": lambda size: rng.lognormal(8, 1.2, size),
    }  # fmt: skip
    figures = [row for kind, draw in draws.items() for row in measured(kind, draw)]
    head = ("values", "n", "of a group", "equal runs", "MDAV", "optimum")
    rows = [
        (f["values"], f["n"], f["size"], *(f"{f[name]:.1%}" for name in ("equal_runs", "mdav", "optimum")))
        for f in figures
    ]
    text = f"{described(machine())}\n\n{markdown(head, rows)}\n"
    keep("microaggregation", text, {"machine": machine(), "figures": figures})
    print(text)


if __name__ == "__main__":
    main()
