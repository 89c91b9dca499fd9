"""What a reproduced figure consists of, and the register of all figures."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from chart import Series, line_chart
from measure import RESULTS, ROOT, described, machine

KEPT = RESULTS / "papers"
CHARTS = ROOT / "docs" / "images" / "papers"
PAPERS = {
    "000": "Privacy Skyline (Chen, LeFevre, Ramakrishnan, VLDB 2007)",
    "001": "General proximity privacy (Wang, Liu, ICDE 2009)",
    "002": "l-Diversity (Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam, TKDD 2007)",
    "003": "Anonymization with probabilistic inference (Wong, Fu, Wang, Xu, Pei, Yu, 2010)",
    "004": "Worst-case background knowledge (Martin, Kifer, Machanavajjhala, Gehrke, Halpern, ICDE 2007)",
}


@dataclass(frozen=True)
class Table:
    """Rows of figures under a heading."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True)
class Chart:
    """Lines over a common axis."""

    name: str
    title: str
    across: str
    up: str
    series: Series


@dataclass(frozen=True)
class Findings:
    """What a figure's function returns: its data, its results, and how they differ from the print."""

    data: str
    differences: str
    tables: Sequence[Table]
    charts: Sequence[Chart] = ()
    trees: str = ""
    seeds: str = ""
    measured: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Figure:
    """A figure or table of a paper and the function that reproduces it."""

    id: str
    title: str
    make: Callable[[], Findings]
    long: bool

    def run(self) -> None:
        """Reproduce the figure, and keep its results and charts."""
        began = time.perf_counter()
        found = self.make()
        seconds = time.perf_counter() - began
        CHARTS.mkdir(parents=True, exist_ok=True)
        for chart in found.charts:
            drawn = line_chart(chart.title, chart.across, chart.up, chart.series)
            (CHARTS / f"{self.id}-{chart.name}.svg").write_text(drawn)
        KEPT.mkdir(parents=True, exist_ok=True)
        kept = asdict(found) | {"id": self.id, "seconds": round(seconds, 1), "machine": described(machine())}
        (KEPT / f"{self.id}.json").write_text(json.dumps(kept, indent=1) + "\n")


FIGURES: dict[str, Figure] = {}


def figure(id: str, title: str, long: bool = False) -> Callable[[Callable[[], Findings]], Callable[[], Findings]]:
    """Register a function as the one that reproduces a figure; `long` ones run only if asked for."""

    def register(make: Callable[[], Findings]) -> Callable[[], Findings]:
        FIGURES[id] = Figure(id, title, make, long)
        return make

    return register
