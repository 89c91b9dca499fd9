"""Figures 5 and 6 of the worst-case-background-knowledge paper on the Adult table: `python bench/disclosure.py`.

Figure 5  the highest confidence that 0 to 12 pieces of knowledge give, with age in intervals of 20 and everything else
          suppressed: `anon disclose`, whose --json is the figure's data
Figure 6  the least of that over all 72 tables with age in intervals of 5, 10, 20, 40, ..., against the least entropy
          of their groups, without the tables that tell somebody's occupation at once

Occupation is sensitive; age (6 levels), marital status (3), race and sex (2 each) are generalized for the whole table.
The taxonomy of marital status is ours. Prints tables and keeps them, with charts, in bench/results/.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.csv

sys.path.insert(0, str(Path(__file__).parent))
from chart import line_chart
from measure import ANON, RESULTS, ROOT, finished, keep, markdown

sys.path.insert(0, str(ROOT))
from demo import adult

import anon

MOST = 12  # pieces of knowledge
LINES = (1, 3, 5, 7, 9, 11)  # of Figure 6
WIDTHS = (1, 5, 10, 20, 40, 1000)  # of ages per level
Levels = tuple[int, int, int, int]  # of age, marital status, race and sex


def marital() -> dict[str, list[str]]:
    lines = (ROOT / "hierarchies/adult/marital_status.csv").read_text(encoding="utf-8").splitlines()
    return {line.split(";")[0]: line.split(";") for line in lines}


def generalized(people: pa.Table, levels: Levels) -> pa.Table:
    """The table at one level for each column."""
    width, tree = WIDTHS[levels[0]], marital()
    ages = [f"{(age - 1) // width}" for age in people["age"].to_pylist()]
    status = [tree[value][levels[1]] for value in people["marital_status"].to_pylist()]
    race = ["*"] * len(ages) if levels[2] else people["race"].to_pylist()
    sex = ["*"] * len(ages) if levels[3] else people["sex"].to_pylist()
    columns = {"age": ages, "marital_status": status, "race": race, "sex": sex}
    return pa.table(columns | {"occupation": people["occupation"]})


def config(folder: Path) -> Path:
    columns = {name: {} for name in ("age", "marital_status", "race", "sex")}
    made = {
        "source": {"path": str(folder / "none.parquet")},
        "columns": {"individual": "row", "quasi_identifiers": columns, "sensitive": ["occupation"]},
        "privacy": [{"ck_safety": {"c": 1, "k": 1}}],
        "release": {"path": str(folder / "release")},
    }
    path = folder / "config.yaml"
    path.write_text(json.dumps(made))
    return path


def least_entropy(table: pa.Table) -> float:
    """The least entropy of a group's occupations, in nats."""
    columns = [name for name in table.column_names if name != "occupation"]
    groups: dict[tuple[Any, ...], list[int]] = {}
    for row in table.group_by(table.column_names).aggregate([([], "count_all")]).to_pylist():
        groups.setdefault(tuple(row[name] for name in columns), []).append(row["count_all"])
    return min(-sum(c / sum(g) * math.log(c / sum(g)) for c in g) for g in groups.values())


def figure_5(people: pa.Table, folder: Path) -> dict[str, list[float]]:
    table = folder / "figure-5.csv"
    pa.csv.write_csv(generalized(people, (WIDTHS.index(20), 2, 1, 1)), table)
    process = finished([ANON, "disclose", config(folder), "--on", table, "--max-k", MOST, "--json"])
    told = json.loads(process.out)
    return {kind: told[kind] for kind in ("implications", "negations")}


def figure_6(people: pa.Table, folder: Path) -> list[dict[str, Any]]:
    found = []
    for levels in product(range(6), range(3), range(2), range(2)):
        table = generalized(people, levels)
        curve = anon.disclose(config(folder), table, max(LINES)).to_dict()["implications"]
        if curve[0] < 1:
            found.append({"levels": levels, "entropy": least_entropy(table), "implications": curve})
    return found


def frontier(tables: list[dict[str, Any]], k: int) -> list[tuple[float, float]]:
    """For each entropy the least disclosure of the tables that have it."""
    least: dict[float, float] = {}
    for each in tables:
        h = round(each["entropy"], 9)
        least[h] = min(least.get(h, 1.0), each["implications"][k])
    return sorted(least.items())


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter).parse_args()
    people = adult.load(adult.fetch())
    with TemporaryDirectory() as folder:
        five, six = figure_5(people, Path(folder)), figure_6(people, Path(folder))
    curves = {kind: list(enumerate(values)) for kind, values in five.items()}
    lines = {f"{k} pieces": frontier(six, k) for k in LINES}
    rows = [(k, f"{i:.4f}", f"{n:.4f}") for k, (i, n) in enumerate(zip(*five.values()))]
    text = f"Figure 5: maximum disclosure\n\n{markdown(('pieces', *five), rows)}\n\n"
    head = ("least entropy of a group (nats)", *lines)
    rows = [(f"{h:.4f}", *(f"{dict(line)[h]:.4f}" for line in lines.values())) for h, _ in lines["1 pieces"]]
    text += f"Figure 6: the least maximum disclosure by entropy, over {len(six)} of 72 tables in which nobody's\n"
    text += f"occupation is told at once\n\n{markdown(head, rows)}\n"
    keep("disclosure", text, {"figure_5": five, "figure_6": six})
    for name, title, across, series in (
        ("figure-5", "Maximum disclosure, age in intervals of 20", "pieces of knowledge", curves),
        ("figure-6", "Least maximum disclosure by entropy", "least entropy of a group (nats)", lines),
    ):
        (RESULTS / f"disclosure-{name}.svg").write_text(line_chart(title, across, "maximum disclosure", series))
    print(text)


if __name__ == "__main__":
    main()
