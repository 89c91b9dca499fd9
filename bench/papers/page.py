"""Write docs/figures.md from the kept results."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from measure import ROOT, markdown

from .figure import FIGURES, KEPT, PAPERS

PAGE = ROOT / "docs" / "figures.md"
HEAD = """# Figures of the papers

Every figure and table of the five papers, reproduced. `python bench/paper.py ID` makes the data of one, runs `anon`,
draws the charts and writes this page anew; `python bench/paper.py all` does it for all but those marked long, which
`--long` adds. Results are kept in `bench/results/papers/`. Each section says what data and trees were used, and where
and why its numbers differ from the print.
"""


def _section(id: str, kept: dict[str, Any]) -> str:
    """Return the section of one figure."""
    facts = [("command", f"`python bench/paper.py {id}`"), ("data", kept["data"])]
    facts += [(name, kept[name]) for name in ("trees", "seeds") if kept[name]]
    facts.append(("took", f"{kept['seconds']:,} s on {kept['machine'].rstrip('.')}"))
    parts = [f"### {id} {FIGURES[id].title}", "\n".join(f"- **{name}**: {text}" for name, text in facts)]
    parts.append(kept["differences"])
    parts += [f"{table['title']}:\n\n{markdown(table['head'], table['rows'])}" for table in kept["tables"]]
    parts += [f"![{chart['title']}](images/papers/{id}-{chart['name']}.svg)" for chart in kept["charts"]]
    return "\n\n".join(parts)


def order(ids: Iterable[str]) -> list[str]:
    """Return ids by paper, then by number: 002-1.1 before 002-09."""
    return sorted(ids, key=lambda id: (id[:3], float(re.match(r"[0-9.]+", id[4:])[0]), id))  # type: ignore[index]


def page() -> str:
    """Return the page from all results that are kept."""
    ids = order(FIGURES)
    kept = {id: json.loads((KEPT / f"{id}.json").read_text()) for id in ids if (KEPT / f"{id}.json").exists()}
    index = [(f"`{id}`", FIGURES[id].title, "long" if FIGURES[id].long else "") for id in ids]
    parts = [HEAD.rstrip(), markdown(("id", "figure", ""), index)]
    for number, paper in PAPERS.items():
        if mine := [id for id in kept if id.startswith(number)]:
            parts += [f"## {paper}", *(_section(id, kept[id]) for id in mine)]
    return "\n\n".join(parts) + "\n"
