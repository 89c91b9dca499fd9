"""Figures 5 and 6 of the background-knowledge paper on Adult: maximum disclosure by pieces of knowledge and by entropy.

Occupation is sensitive; age (6 levels), marital status (3), race and sex (2 each) are generalized for the whole table.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise, product
from typing import Any

import pyarrow as pa

import anon
from measure import ROOT

from .adult_tables import people
from .figure import Chart, Findings, Table, figure

MOST = 12  # pieces of knowledge
LINES = (1, 3, 5, 7, 9, 11)  # of Figure 6
WIDTHS = (1, 5, 10, 20, 40, 1000)  # of ages per level
KINDS = ("implications", "negations")
OTHER_TREES = {  # of marital status, level 1
    "spouse present or not (ours)": None,
    "married, was married, never married": {
        "Married-civ-spouse": "married", "Married-AF-spouse": "married", "Married-spouse-absent": "married",
        "Separated": "was married", "Divorced": "was married", "Widowed": "was married", "Never-married": "never",
    },
    "ever married or never": {
        "Married-civ-spouse": "ever", "Married-AF-spouse": "ever", "Married-spouse-absent": "ever",
        "Separated": "ever", "Divorced": "ever", "Widowed": "ever", "Never-married": "never",
    },
}  # fmt: skip
Levels = tuple[int, int, int, int]  # of age, marital status, race and sex
DATA = "Adult, {age, marital status, race, gender}; occupation is sensitive"
TREES = (
    "age in intervals of 5, 10, 20 and 40 years from 1 on; marital status by whether the spouse is present, then "
    "suppressed; race and gender suppressed. The paper's tree of marital status is not published"
)


def statuses(tree: dict[str, str] | None) -> dict[str, tuple[str, str, str]]:
    """Return the labels of each marital status by level."""
    lines = (ROOT / "hierarchies/adult/marital_status.csv").read_text(encoding="utf-8").splitlines()
    ours = {line.split(";")[0]: line.split(";")[1] for line in lines}
    return {value: (value, (tree or ours)[value], "*") for value in ours}


def generalized(levels: Levels, tree: dict[str, str] | None = None) -> pa.Table:
    """Return Adult at one level for each column."""
    table, width, labels = people(), WIDTHS[levels[0]], statuses(tree)
    stars = ["*"] * table.num_rows
    return pa.table(
        {
            "age": [f"{(age - 1) // width}" for age in table["age"].to_pylist()],
            "marital_status": [labels[value][levels[1]] for value in table["marital_status"].to_pylist()],
            "race": stars if levels[2] else table["race"],
            "sex": stars if levels[3] else table["sex"],
            "occupation": table["occupation"],
        }
    )


def disclosed(table: pa.Table, most: int) -> dict[str, list[float]]:
    """Return the maximum disclosure for 0, 1, ... pieces of knowledge of each kind."""
    config = {
        "source": {"path": "unused.parquet"},
        "columns": {
            "individual": "row",
            "quasi_identifiers": {name: {} for name in table.column_names[:-1]},
            "sensitive": ["occupation"],
        },
        "privacy": [{"ck_safety": {"c": 1, "k": 1}}],
        "release": {"path": "unused"},
    }
    found = anon.disclose(config, table, most).to_dict()
    return {kind: found[kind] for kind in KINDS}


def least_entropy(table: pa.Table) -> float:
    """Return the least entropy of a group's occupations, in nats."""
    columns = table.column_names[:-1]
    groups: dict[tuple[Any, ...], list[int]] = {}
    for row in table.group_by(table.column_names).aggregate([([], "count_all")]).to_pylist():
        groups.setdefault(tuple(row[name] for name in columns), []).append(row["count_all"])
    return min(-sum(c / sum(g) * math.log(c / sum(g)) for c in g) for g in groups.values())


@cache
def anonymizations(tree: str) -> list[dict[str, Any]]:
    """Return all 72 tables but those in which somebody's occupation is certain, each with its curves."""
    found = []
    for levels in product(range(6), range(3), range(2), range(2)):
        table = generalized(levels, OTHER_TREES[tree])
        curves = disclosed(table, max(LINES))
        if curves["implications"][0] < 1:
            found.append({"levels": levels, "entropy": round(least_entropy(table), 9)} | curves)
    return found


def frontier(tables: list[dict[str, Any]], kind: str, k: int) -> list[tuple[float, float]]:
    """Return for each entropy the least disclosure of the tables that have it."""
    least: dict[float, float] = {}
    for each in tables:
        least[each["entropy"]] = min(least.get(each["entropy"], 1.0), each[kind][k])
    return sorted(least.items())


def rises(line: list[tuple[float, float]]) -> int:
    """Return how often a line rises from one entropy to the next."""
    return sum(after > before + 1e-12 for (_, before), (_, after) in pairwise(line))


@figure("004-5", "Figure 5: disclosure by pieces of background knowledge")
def figure_5() -> Findings:
    found = disclosed(generalized((WIDTHS.index(20), 2, 1, 1)), MOST)
    rows = [(k, *(f"{found[kind][k]:.4f}" for kind in KINDS)) for k in range(MOST + 1)]
    return Findings(
        DATA + "; age in intervals of 20, everything else suppressed",
        "The paper shows curves without numbers. As there, implications disclose at least what negations do, and not "
        "much more. The same by the command line: `anon disclose CONFIG --on TABLE --max-k 12`.",
        [Table("Maximum disclosure", ("pieces", *KINDS), rows)],
        [Chart("curves", "Maximum disclosure, age in intervals of 20", "pieces of knowledge", "maximum disclosure",
               {kind: [(float(k), p) for k, p in enumerate(found[kind])] for kind in KINDS})],
        "age in intervals of 20 from 1 on",
    )  # fmt: skip


def by_entropy(kind: str) -> Findings:
    """Return Figure 6 for one kind of knowledge, with how monotone its lines are under other trees."""
    ours, *_ = OTHER_TREES
    tables = anonymizations(ours)
    lines = {f"{k} {'piece' if k == 1 else 'pieces'}": frontier(tables, kind, k) for k in LINES}
    heights = [h for h, _ in next(iter(lines.values()))]
    rows = [(f"{h:.4f}", *(f"{dict(line)[h]:.4f}" for line in lines.values())) for h in heights]
    first = next(iter(lines.values()))
    up = [(a, b) for a, b in pairwise(first) if b[1] > a[1] + 1e-12]
    named = {each["entropy"]: each for each in sorted(tables, key=lambda table: -table[kind][LINES[0]])}
    causes = [
        (f"{a[0]:.4f} to {b[0]:.4f}", f"{a[1]:.4f} to {b[1]:.4f}", _levels(named[a[0]]), _levels(named[b[0]]))
        for a, b in up
    ]
    trees = [
        (name, len(anonymizations(name)), *(rises(frontier(anonymizations(name), kind, k)) for k in LINES))
        for name in OTHER_TREES
    ]
    return Findings(
        DATA + f"; {len(tables)} of 72 tables, those in which nobody's occupation is certain",
        'The paper states that the disclosure "monotonically decreases" with the entropy. In ours it mostly falls, but '
        "not always, whatever the tree of marital status (last table). Entropy and disclosure measure different "
        "things: the least entropy is that of the group with the fewest effective values, the disclosure with one "
        "piece of knowledge is decided by the largest share of one value (after the most frequent other is ruled "
        "out), often in another group. Where the line rises, a table with a higher least entropy has a group in "
        "which one occupation is more frequent.",
        [
            Table("Least maximum disclosure by least entropy (nats)", ("entropy", *lines), rows),
            Table(
                "Where the line of one piece rises", ("entropy", "disclosure", "levels before", "levels after"), causes
            ),
            Table("How often each line rises, by tree of marital status", ("tree", "tables", *lines), trees),
        ],
        [
            Chart(
                "curves",
                f"Least maximum disclosure by entropy, {kind}",
                "least entropy of a group (nats)",
                "maximum disclosure",
                lines,
            )
        ],
        TREES,
        measured={"tables": tables},
    )


def _levels(table: dict[str, Any]) -> str:
    age, status, race, sex = table["levels"]
    years = ("as it is", *(f"by {width}" for width in WIDTHS[1:-1]), "*")[age]
    return f"age {years}, status level {status}, race {'*' if race else 'kept'}, gender {'*' if sex else 'kept'}"


@figure("004-6", "Figure 6: disclosure by entropy, implications")
def figure_6() -> Findings:
    return by_entropy("implications")


@figure("004-6n", "The twin of Figure 6 that the paper does not show: negations")
def figure_6_negations() -> Findings:
    return by_entropy("negations")
