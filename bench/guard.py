"""What public cuts and coins cost: `python bench/guard.py [--table NAME]`.

Four tables: Adult, Heritage Health and census-income (bench/utility_tables.py), and the patients of demo/hospital.py
with the config configs/hospital.yaml. Loss is that of bench/utility.py, and for the hospital the one of report.json.
Results are kept in bench/results/guard.md and .json.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import yaml

sys.path.insert(0, str(Path(__file__).parent))
import anon
import measure
from anon.errors import UnsafeError

sys.path.insert(0, str(measure.ROOT))
from demo import hospital

from utility import Column, judged, released
from utility_tables import TABLES, Table, Unavailable

HOSPITAL = "hospital demo"
K = {"k_anonymity": {"k": 5}}
CRITERIA: dict[str, list[dict[str, Any]]] = {
    "k = 5": [K],
    "k = 5, frequency l = 3": [K, {"l_diversity": {"kind": "frequency", "l": 3}}],
}
COLUMNS = {"hierarchies": "all", "numbers cut freely": "categories", "all cut freely": "none"}
KEYS = ("table", "criteria", "columns", "method")
METHODS: dict[str, dict[str, Any]] = {
    "widest": {"prefer": "widest"},
    "public": {"prefer": "public"},
    "guard 0.1, 200": {"prefer": "public", "guard": {"skip": 0.1, "below": 200}},
    "guard 0.25, 100": {"prefer": "public", "guard": {"skip": 0.25}},
    "guard 0.25, 200": {"prefer": "public", "guard": {"skip": 0.25, "below": 200}},
    "guard 0.5, 100": {"prefer": "public", "guard": {"skip": 0.5}},
}
GUARD = "guard 0.25, 200"  # that is held to the targets
LEAST = 5  # k


def of_table(name: str, table: Table) -> list[dict[str, Any]]:
    """Return the figures of a real table, for all criteria, columns and methods."""
    found = []
    for criteria, privacy in CRITERIA.items():
        for columns, treed in COLUMNS.items():
            for method, own in METHODS.items():
                with TemporaryDirectory() as temp, suppress(UnsafeError):  # the whole table may fail the criteria
                    folder, began = Path(temp), time.process_time()
                    release = released(table, table.rows, table.builders(folder, treed), own, folder, privacy)
                    cpu = time.process_time() - began
                    error, loss = judged(table, release)
                    groups = release.select(pl.struct(list(table.hierarchies)).n_unique()).item()
                    found.append(
                        {"table": name, "criteria": criteria, "columns": columns, "method": method, "loss": loss,
                         "query_error": error, "groups": groups, "cpu": cpu,
                         "forced": forced(table, release, own) if criteria == "k = 5" and treed == "none" else None}
                    )  # fmt: skip
                    print(found[-1], flush=True)
    return found


def forced(table: Table, release: pl.DataFrame, method: dict[str, Any]) -> dict[str, int]:
    """Return the number of generalized cells, and of those in which the fact that no cut was made forces at least half
    or nine tenths of the group to share one exact value, given k-anonymity alone. With medians of the members, no cut
    of a group of n >= 2k is possible only if all but 2(k - 1) share a value. With public cuts, all but k - 1 are on one
    side of the only cut, which is one value if the cell has two. Where coins were tossed, no cut proves nothing."""
    public, tossing = method["prefer"] == "public", method.get("guard", {})
    below = tossing.get("below", 100) if tossing else 0
    columns = {name: Column.from_table(table, name) for name in table.hierarchies}
    covered = {
        name: {label: int(column.covered(label).sum()) for label in release[name].unique()}
        for name, column in columns.items()
    }
    found = {"generalized": 0, "half": 0, "nine tenths": 0}
    for *labels, people in release.group_by(list(columns)).len().iter_rows():
        for name, label in zip(columns, labels):
            values = covered[name][label]
            found["generalized"] += people * (values > 1)
            if people < max(2 * LEAST, below) or (values != 2 if public else values == 1):
                continue
            share = (people - (LEAST - 1) * (1 if public else 2)) / people
            found["half"] += people * (share >= 0.5)
            found["nine tenths"] += people * (share >= 0.9)
    return found


def of_hospital() -> list[dict[str, Any]]:
    """Return the figures of the hospital demo, with its own config."""
    path = measure.ROOT / "configs" / "hospital.yaml"
    config = yaml.safe_load(path.read_text().replace("../hierarchies", str(measure.ROOT / "hierarchies")))
    rows, found = hospital.rows(0, 100_000), []
    for method, own in METHODS.items():
        with TemporaryDirectory() as temp:
            began = time.process_time()
            config |= {"method": {"kind": "partition", **own}, "release": {"path": f"{temp}/out"}}
            report = anon.run(config, rows).report
            cpu = time.process_time() - began
        utility = report["utility"]
        found.append(
            {"table": HOSPITAL, "criteria": "its own", "columns": "its own", "method": method,
             "loss": utility["loss"]["all"], "query_error": utility["query_error"]["median"],
             "groups": utility["groups"], "cpu": cpu}
        )  # fmt: skip
        print(found[-1], flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", choices=[*TABLES, HOSPITAL], action="append")
    arguments = parser.parse_args()
    figures: list[dict[str, Any]] = []
    for name in arguments.table or [*TABLES, HOSPITAL]:
        try:
            figures += of_hospital() if name == HOSPITAL else of_table(name, TABLES[name]())
        except Unavailable as reason:
            print(reason, file=sys.stderr)
    if not arguments.table:
        measure.keep("guard", text(figures), {"figures": figures, "machine": measure.machine()})


def text(figures: list[dict[str, Any]]) -> str:
    """Return the page of results."""
    at = {tuple(each[key] for key in KEYS): each for each in figures}
    rows = []
    for case in dict.fromkeys(tuple(each[key] for key in KEYS[:-1]) for each in figures):
        own = [at.get((*case, method)) for method in METHODS]
        rows.append([*case, *("" if each is None else f"{each['loss']:.3f} / {each['groups']:,}" for each in own)])
    head = "# Public cuts and coins\n\nLoss / groups; `guard p, n`: public cuts, skip p, below n."
    shown = [each for each in figures if each.get("forced")]
    names = ["generalized", "half", "nine tenths"]
    cells = [
        [each["table"], each["method"], *(f"{each['forced'][name]:,}" for name in names), times(each, at)]
        for each in shown
    ]
    second = 'Cells of k = 5, all cut freely, in which "no cut was made" forces half or nine tenths to share a value:'
    tables = (
        measure.markdown([*KEYS[:-1], *METHODS], rows),
        measure.markdown(["table", "method", *names, "loss, times that of public"], cells),
        measure.targets_table(targets(at)),
    )
    every = "\n\n".join([head, tables[0], second, tables[1], tables[2], measure.described(measure.machine())])
    return f"{every}\n"


def times(each: dict[str, Any], at: dict[tuple[str, ...], dict[str, Any]]) -> str:
    """Return how many times the loss of public cuts without coins a method loses."""
    public = at[(*(each[key] for key in KEYS[:-1]), "public")]
    return f"{each['loss'] / public['loss']:.2f}"


def targets(at: dict[tuple[str, ...], dict[str, Any]]) -> list[measure.Target]:
    """Return what the guard is held to on Adult with k = 5, where all columns are cut freely."""
    case = ("Adult", "k = 5", "all cut freely")
    guarded, public = at.get((*case, GUARD)), at.get((*case, "public"))
    if guarded is None or public is None:
        return []
    half = guarded["forced"]["half"]
    return [
        measure.Target(f"Adult, {GUARD}: cells forced to 50%", half, "<=", 0),
        measure.Target(f"Adult, {GUARD}: loss, times that of public", guarded["loss"] / public["loss"], "<=", 1.25),
    ]


if __name__ == "__main__":
    main()
