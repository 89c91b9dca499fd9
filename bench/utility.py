"""How much detail releases keep: `python bench/utility.py [--table NAME] [--settings NAME] [--criteria]
[--suppress]`.

k = 5, nobody suppressed unless a row says so, on Adult, Heritage Health and census-income (bench/utility_tables.py).
One evaluator, here, for every release: it reads the labels back as sets of values of the source and shares no code with
anon.

- loss: of a number (highest - lowest) / range, of a category (values - 1) / (all values - 1), of a cell of somebody
  who is suppressed 1; the mean over all cells of the table.
- query error: 1,000 random COUNT queries, each with a run of consecutive values of two quasi-identifiers and of the
  sensitive column that would select a twentieth of an even table. The release answers by expectation, with all values
  under a label equally likely. The median of |answer - count| / max(count, a thousandth of the rows).

ARX is not on PyPI. Its figures are quoted from DATA.md (version 3.9.2, local recoding); for Heritage Health and
census-income they are of other columns of the same tables, so that they can only be compared roughly there. `local`
repeats ARX's local recoding on our tables: the best full-domain recoding with suppression, by the lattice method, then
the same on those whom it suppressed, until nobody is. Results are kept in bench/results/utility.md and .json.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))
import anon
import measure
from anon.errors import UnsafeError
from utility_tables import TABLES, Table, Unavailable

K = 5
QUERIES, SELECTIVITY, FLOOR = 1_000, 0.05, 0.001
ARX = {"Adult": (0.035, 0.034), "Heritage Health": (0.025, 0.048), "census-income": (0.023, 0.020)}
SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {  # which columns have hierarchies, and the method
    "widest, hierarchies": ("all", {}),
    "widest, cut freely": ("none", {}),
    "widest, cut freely, tight": ("none", {"labels": "tight"}),
    "widest, hierarchies, peel": ("all", {"peel": True}),
    "loss, hierarchies": ("all", {"prefer": "loss"}),
    "loss, hierarchies, peel": ("all", {"prefer": "loss", "peel": True}),
    "widest, categories peeled, tight": ("categories", {"peel": True, "labels": "tight"}),
    "loss, categories peeled, tight": ("categories", {"prefer": "loss", "peel": True, "labels": "tight"}),
    "loss, cut freely, tight": ("none", {"prefer": "loss", "labels": "tight"}),
    "widest, ordered, tight": ("categories", {"cuts": "ordered", "labels": "tight"}),
    "loss, ordered, cells": ("categories", {"prefer": "loss", "cuts": "ordered"}),
    "loss, ordered, tight": ("categories", {"prefer": "loss", "cuts": "ordered", "labels": "tight"}),
    "loss, ordered, tight, refined": (
        "categories",
        {"prefer": "loss", "cuts": "ordered", "labels": "tight", "refine": True},
    ),
}
SUPPRESSING = {  # partitions of which people are dropped, which --suppress measures
    f"{setting}, {share:.0%} suppressed": (SETTINGS[setting][0], {**SETTINGS[setting][1], "suppress": share})
    for setting in ("widest, hierarchies", "widest, hierarchies, peel", "loss, ordered, tight")
    for share in (0, 0.02, 0.04)
}
BEST = "loss, ordered, tight, refined"
ARX_LOSS = {"entropy l-diversity, l = 3": (0.067, 353), "t-closeness, t = 0.3": (0.285, 1_834), "k = 50": (0.101, None)}
CRITERIA: dict[str, list[dict[str, Any]]] = {
    "entropy l-diversity, l = 3": [{"k_anonymity": {"k": K}}, {"l_diversity": {"kind": "entropy", "l": 3}}],
    "t-closeness, t = 0.3": [{"k_anonymity": {"k": K}}, {"t_closeness": {"t": 0.3, "distance": {"kind": "equal"}}}],
    "k = 50": [{"k_anonymity": {"k": 50}}],
}
NUMBER = r"-?[0-9]+"
SPAN = re.compile(rf"({NUMBER})(?:-|\.\.)({NUMBER})")
LEAST_SHARE = 0.01  # of the people that each round of local recoding must publish
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Column:
    """A quasi-identifier as the evaluator sees it: its values in order, and which of them each hierarchy label has."""

    values: list[Any]
    nodes: dict[str, set[str]]

    @classmethod
    def from_table(cls, table: Table, name: str) -> Column:
        rows = table.hierarchies[name]
        present = set(table.rows[name].unique().to_list())
        numeric = table.rows.schema[name] == pl.Int64
        values = sorted(present) if numeric else [row[0] for row in rows if row[0] in present]
        nodes: dict[str, set[str]] = {}
        for row in rows:
            for label in row:
                nodes.setdefault(label, set()).add(row[0])
        return cls(values, nodes)

    def covered(self, label: str) -> Flags:
        """Return which values a label stands for."""
        if label == "*":
            return np.ones(len(self.values), bool)
        if isinstance(self.values[0], int) and (ends := _ends(label)):
            return np.array([ends[0] <= value <= ends[1] for value in self.values])
        words = label[1:-1].split("|") if label[0] == "{" else [label]
        found = set().union(*(self.nodes[word] for word in words))
        return np.array([str(value) in found for value in self.values])

    def loss(self, covered: Flags) -> float:
        if isinstance(self.values[0], int):
            own = [value for value, inside in zip(self.values, covered) if inside]
            return float((own[-1] - own[0]) / (self.values[-1] - self.values[0]))
        return float((covered.sum() - 1) / (len(covered) - 1))


def _ends(label: str) -> tuple[float, float] | None:
    if label.startswith("<="):
        return -np.inf, int(label[2:])
    if label.startswith(">="):
        return int(label[2:]), np.inf
    if found := SPAN.fullmatch(label):
        return int(found[1]), int(found[2])
    return (int(label), int(label)) if re.fullmatch(NUMBER, label) else None


@dataclass(frozen=True)
class Query:
    """Runs of codes first..last of some columns, the last of them the sensitive one."""

    runs: dict[str, tuple[int, int]]


def queries(table: Table, columns: dict[str, Column], sensitive: list[str]) -> list[Query]:
    rng, share = random.Random(1), SELECTIVITY ** (1 / 3)

    def run(size: int) -> tuple[int, int]:
        length = int(np.ceil(size * share))
        first = rng.randrange(size - length + 1)
        return first, first + length - 1

    sizes = {name: len(column.values) for name, column in columns.items()}
    picked = [[*rng.sample(list(columns), 2)] for _ in range(QUERIES)]
    return [
        Query({name: run(sizes[name]) for name in pair} | {table.sensitive: run(len(sensitive))}) for pair in picked
    ]


def judged(table: Table, released: pl.DataFrame) -> tuple[float, float]:
    """Return the query error and the loss of a release."""
    columns = {name: Column.from_table(table, name) for name in table.hierarchies}
    sensitive = sorted(table.rows[table.sensitive].unique().to_list())
    source = {name: _codes(table.rows[name], column.values) for name, column in columns.items()}
    source[table.sensitive] = _codes(table.rows[table.sensitive], sensitive)
    labels, losses = {}, []
    cells: dict[str, NDArray[np.int64]] = {}
    for name, column in columns.items():
        words = released[name].unique().to_list()
        masks = np.array([column.covered(word) for word in words])
        cells[name] = _codes(released[name], words)
        kept = np.array([column.loss(mask) for mask in masks])[cells[name]].sum()
        losses.append((kept + table.rows.height - released.height) / table.rows.height)
        labels[name] = np.hstack([np.zeros((len(words), 1)), masks.cumsum(axis=1)]) / masks.sum(axis=1)[:, None]
    own = _codes(released[table.sensitive], sensitive)
    errors = []
    for query in queries(table, columns, sensitive):
        inside, expected = np.ones(table.rows.height, bool), np.ones(released.height)
        for name, (first, last) in query.runs.items():
            inside &= (first <= source[name]) & (source[name] <= last)
            if name == table.sensitive:
                expected *= (first <= own) & (own <= last)
            else:
                expected *= (labels[name][:, last + 1] - labels[name][:, first])[cells[name]]
        count = int(inside.sum())
        errors.append(abs(expected.sum() - count) / max(count, FLOOR * table.rows.height, 1))
    return float(np.median(errors)), float(np.mean(losses))


def _codes(values: pl.Series, order: list[Any]) -> NDArray[np.int64]:
    place = {value: at for at, value in enumerate(order)}
    return values.replace_strict(place, return_dtype=pl.Int64).to_numpy()


def released(
    table: Table,
    rows: pl.DataFrame,
    qi: dict[str, Any],
    method: dict[str, Any],
    folder: Path,
    privacy: list[dict[str, Any]] | None = None,
) -> pl.DataFrame:
    """Return the release of some rows of a table."""
    config = {
        "source": {"path": "rows.parquet"},
        "columns": {"individual": "row", "quasi_identifiers": qi, "sensitive": [table.sensitive]},
        "privacy": privacy or [{"k_anonymity": {"k": K}}],
        "method": {"kind": "partition", **method},
        "release": {"path": str(folder / "out")},
    }
    anon.run(config, rows, overwrite=True)
    release = pl.read_parquet(folder / "out" / "release.parquet")
    if not anon.check(config, release).to_dict()["safe"]:
        raise AssertionError("a released table does not pass `anon check`")
    return release


def local(table: Table, folder: Path) -> pl.DataFrame:
    """Return a release by local recoding as ARX does it: rounds of the lattice method with suppression."""
    qi, rest, found = table.builders(folder, "all"), table.rows, []
    while rest.height:
        share = 1 - LEAST_SHARE if rest.height >= 2 * K else 0
        try:
            part = released(table, rest, qi, {"kind": "lattice", "suppress": share}, folder)
        except UnsafeError:
            break
        found.append(part)
        rest = _suppressed(table, rest, folder)
    return pl.concat(found)


def _suppressed(table: Table, rows: pl.DataFrame, folder: Path) -> pl.DataFrame:
    """Return the rows that the last round suppressed, found by the levels of its recoding.json."""
    recoding = json.loads((folder / "out-run" / "recoding.json").read_text())
    levels, labels = recoding["chosen"]["levels"], []
    for name, level in levels.items():
        path = {row[0]: ([*row, "*"])[min(level, len(row) - 1)] for row in table.hierarchies[name]}
        labels.append(pl.col(name).cast(pl.String).replace_strict(path).alias(f"_{name}"))
    tagged = rows.with_columns(labels)
    names = [f"_{name}" for name in levels]
    return tagged.filter(pl.len().over(names) < K).select(rows.columns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", choices=list(TABLES), action="append")
    parser.add_argument("--settings", choices=["local", *SETTINGS, *SUPPRESSING], action="append")
    parser.add_argument("--criteria", action="store_true", help="Adult under other criteria than k = 5")
    parser.add_argument("--suppress", action="store_true", help="Adult with partitions that suppress")
    arguments = parser.parse_args()
    if arguments.criteria:
        by_criterion()
        return
    if arguments.suppress:
        by_suppression()
        return
    figures: list[dict[str, Any]] = []
    for name in arguments.table or TABLES:
        try:
            table = TABLES[name]()
        except Unavailable as reason:
            print(reason, file=sys.stderr)
            continue
        for setting in arguments.settings or ["local", *SETTINGS]:
            figures.append(measure_one(name, table, setting))
            print(figures[-1])
    if not arguments.table and not arguments.settings:
        measure.keep("utility", text(figures), {"figures": figures, "arx": ARX, "machine": measure.machine()})


def by_criterion() -> None:
    """Measure Adult under other criteria than k = 5; keep the results."""
    table, figures = TABLES["Adult"](), []
    for name, privacy in CRITERIA.items():
        for setting in ("widest, hierarchies", "widest, hierarchies, peel", "loss, ordered, tight", BEST):
            figures.append(measure_one("Adult", table, setting, privacy) | {"criteria": name})
            print(figures[-1])
    rows = [
        (
            each["criteria"],
            f"anon partition, {each['settings']}",
            _pair(each["query_error"], each["loss"]),
            each["groups"],
        )
        for each in figures
    ]
    for name, (loss, suppressed) in ARX_LOSS.items():
        at = next(place for place, row in enumerate(rows) if row[0] == name)
        without = "" if suppressed is None else f", {suppressed:,} suppressed"
        rows.insert(at, (name, f"ARX 3.9.2 as quoted{without}", f"- / {loss:.3f}", "-"))
    head = (
        "# Detail kept on Adult under other criteria\n\nMedian error of COUNT queries / loss; anon suppresses nobody. "
        "Every release of anon passes `anon check`."
    )
    page = f"{head}\n\n{measure.markdown(['criteria', '', 'error / loss', 'groups'], rows)}\n\n"
    facts = {"figures": figures, "arx_loss": ARX_LOSS, "machine": measure.machine()}
    measure.keep("utility_criteria", f"{page}{measure.described(measure.machine())}\n", facts)


def by_suppression() -> None:
    """Measure Adult with partitions that suppress people; keep the results."""
    figures = [measure_one("Adult", TABLES["Adult"](), setting) for setting in SUPPRESSING]
    rows = [
        (each["settings"], _pair(each["query_error"], each["loss"]), each["suppressed"], each["groups"])
        for each in figures
    ]
    head = (
        f"# Partition with suppression on Adult at k = {K}\n\nMedian error of COUNT queries / loss, in which somebody "
        "who is suppressed counts 1 in every column. The share is what may be suppressed. Every release passes "
        "`anon check`."
    )
    table = measure.markdown(["", "error / loss", "suppressed", "groups"], rows)
    facts = {"figures": figures, "machine": measure.machine()}
    measure.keep("utility_suppress", f"{head}\n\n{table}\n\n{measure.described(measure.machine())}\n", facts)


def measure_one(name: str, table: Table, setting: str, privacy: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    with TemporaryDirectory() as temp:
        folder, began = Path(temp), time.process_time()
        if setting == "local":
            release = local(table, folder)
        else:
            treed, method = {**SETTINGS, **SUPPRESSING}[setting]
            release = released(table, table.rows, table.builders(folder, treed), method, folder, privacy)
        cpu = time.process_time() - began
        error, loss = judged(table, release)
    groups = release.select(pl.struct(list(table.hierarchies)).n_unique()).item()
    return {
        "table": name, "settings": setting, "query_error": error, "loss": loss, "groups": groups,
        "suppressed": table.rows.height - release.height, "cpu": cpu,
    }  # fmt: skip


def text(figures: list[dict[str, Any]]) -> str:
    """Return the page of results."""
    names = list(dict.fromkeys(each["table"] for each in figures))
    settings = list(dict.fromkeys(each["settings"] for each in figures))
    at = {(each["table"], each["settings"]): each for each in figures}
    rows: list[list[str]] = [["ARX 3.9.2, local recoding, as quoted", *(_pair(*ARX[name]) for name in names)]]
    for setting in settings:
        cells = [at[name, setting] for name in names]
        title = "local recoding by rounds of the lattice method" if setting == "local" else f"anon partition, {setting}"
        rows.append([title, *(_pair(each["query_error"], each["loss"]) for each in cells)])
    head = (
        f"# Detail kept at k = {K}\n\nMedian relative error of {QUERIES:,} COUNT queries / normalized loss; lower is "
    )
    best = [at[name, BEST] for name in names]
    shares = [(each["query_error"] / ARX[name][0], each["loss"] / ARX[name][1]) for name, each in zip(names, best)]
    rows.append([f"{BEST}: part of ARX's figures", *(f"{error:.2f} / {loss:.2f}" for error, loss in shares)])
    head += "better. Nobody is suppressed, and every release of anon passes `anon check`."
    return f"{head}\n\n{measure.markdown(['', *names], rows)}\n\n{measure.described(measure.machine())}\n"


def _pair(error: float, loss: float) -> str:
    return f"{error:.3f} / {loss:.3f}"


if __name__ == "__main__":
    main()
