"""Reproduce the figures and tables of the five papers: `python bench/paper.py 002-15 [...]`, `all [--long]` or `list`.

Each figure makes or downloads its data, runs `anon`, draws charts and keeps its results in bench/results/papers/; then
docs/figures.md is written anew from all kept results, with the paper's printed values beside ours. `all` leaves out the
figures that take long (minutes to an hour, marked in `list`) unless `--long` is given; a figure named by its id always
runs. `page` only writes the page.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from measure import ROOT
from papers.every import FIGURES
from papers.page import PAGE, order, page


def chosen(words: list[str], long: bool) -> list[str]:
    """Return the ids of the figures to run."""
    if unknown := [word for word in words if word not in ("all", "page", *FIGURES)]:
        raise SystemExit(f"error: no figure {', '.join(unknown)}; the figures are {', '.join(order(FIGURES))}")
    every = [id for id in order(FIGURES) if long or not FIGURES[id].long] if "all" in words else []
    return list(dict.fromkeys([*every, *(word for word in words if word in FIGURES)]))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", nargs="+", metavar="FIGURE", help="ids such as 002-15, or all, list, page")
    parser.add_argument("--long", action="store_true", help="with all: also the figures that take long")
    options = parser.parse_args(arguments)
    if options.figures == ["list"]:
        for id in order(FIGURES):
            print(f"{id:9} {FIGURES[id].title}{' (long)' if FIGURES[id].long else ''}")
        return
    for id in chosen(options.figures, options.long):
        print(f"{id}  {FIGURES[id].title}", flush=True)
        FIGURES[id].run()
    PAGE.write_text(page())
    print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
