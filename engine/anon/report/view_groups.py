"""Prepare the groups of a release for the page: their sizes, the information loss, and the cuts or levels."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np

from anon.artifacts.parts import (
    ColumnFacts,
    LatticeFacts,
    LatticeNodes,
    LevelCombination,
    SelectivityClass,
    TreeNode,
)
from anon.artifacts.schema import Report
from anon.core.phrases import figure, percent
from anon.report.promises import aggregated, least_loss, predicted
from anon.report.statement import level_words
from anon.report.tables import table

BINS = 32  # of the histogram of sizes
TRAINED_ON = ("release", "source")
LISTED = 60  # nodes of the tree, and minimal nodes of the lattice


def groups(report: Report) -> dict[str, Any]:
    """Return the groups by size."""
    sizes = sorted((int(size), count) for size, count in report.group_sizes.items())
    bins, risk = _bins(sizes), report.summary.risk
    rows = [(b["name"], f"{b['groups']:,}", f"{b['individuals']:,}") for b in bins]
    label = f"Histogram of {report.summary.groups:,} groups by size, in {len(bins)} classes"
    return {
        "smallest": f"{sizes[0][0]:,}",
        "median": f"{_median(sizes):,}",
        "largest": f"{sizes[-1][0]:,}",
        "highest": percent(risk.highest),
        "mean": percent(risk.mean),
        "table": table("Groups by size", ["individuals in the group", "groups", "individuals"], rows),
        "data": {"label": label, "bins": bins},
    }


def _median(sizes: list[tuple[int, int]]) -> int:
    half = sum(count for _, count in sizes) / 2
    below = accumulate(count for _, count in sizes)
    return next(size for (size, _), seen in zip(sizes, below) if seen >= half)


def size_classes(group_sizes: dict[str, int]) -> list[dict[str, Any]]:
    """Return the classes of sizes of the groups of a report, each with its groups and individuals."""
    return _bins(sorted((int(size), count) for size, count in group_sizes.items()))


def _bins(sizes: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """Return classes of sizes: single sizes if they are few, otherwise classes that widen by a constant factor."""
    low, high = sizes[0][0], sizes[-1][0]
    edges = np.arange(low, high + 2)
    if len(edges) > BINS:
        edges = np.unique(np.geomspace(low, high + 1, BINS).round().astype(np.int64))
    size, count = np.array(sizes, np.int64).T
    place = np.searchsorted(edges, size, side="right") - 1
    many, inside = (np.zeros(len(edges) - 1, np.int64) for _ in range(2))
    np.add.at(many, place, count)
    np.add.at(inside, place, count * size)
    return [
        {"name": f"{a:,}" if a == b - 1 else f"{a:,} to {b - 1:,}", "low": a, "groups": g, "individuals": n}
        for a, b, g, n in zip(edges[:-1].tolist(), edges[1:].tolist(), many.tolist(), inside.tolist())
    ]


def lost(report: Report) -> dict[str, Any]:
    """Return the information loss per column, and the other measures of utility."""
    utility, columns = report.utility, {column.name: column for column in report.columns}
    loss, error = utility.loss, utility.query_error
    shares = loss.columns.items()
    rows = [{"name": name, "share": share, "title": f"{name}: {percent(share)}"} for name, share in shares]
    mean = {"name": "all columns", "share": loss.all, "title": f"the mean: {percent(loss.all)}", "all": True}
    mean |= {} if utility.lower_bound is None else {"bound": utility.lower_bound.all}
    last = "cuts" if any(column.has("cuts") for column in report.columns) else "level"
    head = ["column", "lost", "values before", "labels", "unchanged", "fully generalized", last]
    return {
        "table": table("Loss per column", head, (_lost_row(report, columns[name], share) for name, share in shares)),
        "error": error
        and {"queries": f"{error.queries:,}", "median": percent(error.median), "mean": percent(error.mean)},
        "least": utility.lower_bound and least_loss(utility.lower_bound.to_dict()),
        "divergence": utility.divergence and figure(utility.divergence),
        "height": utility.height,
        "discernibility": figure(utility.discernibility),
        "aggregated": [f"{share} {meaning}" for share, meaning in aggregated(utility.to_dict())],
        "data": {"label": "Loss per column, in percent", "rows": [*rows, mean]},
    }


def queries(report: Report) -> dict[str, Any] | None:
    """Return the error of random COUNT queries by the share of the source that they select, if that differs."""
    error = report.utility.query_error
    if error is None or len(error.by_selectivity) < 2:
        return None
    classes = [(selectivity(each.at_least, each.below), each) for each in error.by_selectivity]
    head = ["a query selects", "median error", "mean error", "queries"]
    rows = [(name, percent(each.median), percent(each.mean), f"{each.queries:,}") for name, each in classes]
    bars = [{"name": name, "share": each.median, "title": _class_title(name, each)} for name, each in classes]
    largest = max(each.median for _, each in classes) or 1.0
    label = "Median error of COUNT queries by the share of rows that they select, in percent"
    return {
        "table": table("Error of COUNT queries by the share of rows that they select", head, rows),
        "data": {"label": label, "rows": bars, "largest": largest},
    }


def prediction(report: Report) -> dict[str, Any] | None:
    """Return the accuracy of classifiers that predict a column, if `anon utility` measured it for this run."""
    found = report.utility.prediction
    if found is None:
        return None
    trained = [(f"{each.name}, trained on the {on}", getattr(each, on)) for each in found.models for on in TRAINED_ON]
    head = ["classifier", "accuracy", "AUC"]
    rows = [(name, percent(each.accuracy), f"{each.auc:.3f}") for name, each in trained]
    bars = [
        {"name": name, "share": each.accuracy, "title": f"{name}: {percent(each.accuracy)}", "bound": found.majority}
        | ({"all": True} if name.endswith("source") else {})
        for name, each in trained
    ]
    label = f"Accuracy of classifiers that predict {found.column}, in percent"
    return {
        **predicted(found.to_dict()),
        "table": table(f"Prediction of {found.column}", head, rows),
        "data": {"label": label, "rows": bars},
    }


def selectivity(at_least: float, below: float) -> str:
    """Return a class of queries in words.

    >>> selectivity(0, 0.001), selectivity(0.01, 0.02), selectivity(0.5, 1)
    ('below 0.1% of the rows', '1% to 2% of the rows', '50% of the rows or more')
    """
    if not at_least:
        return f"below {percent(below)} of the rows"
    low, high = percent(at_least), percent(below)
    return f"{low} of the rows or more" if below == 1 else f"{low} to {high} of the rows"


def _class_title(name: str, each: SelectivityClass) -> str:
    many = "1 query" if each.queries == 1 else f"{each.queries:,} queries"
    return f"{name}: {percent(each.median)} in the median of {many}"


def _lost_row(report: Report, column: ColumnFacts, share: float) -> tuple[str, ...]:
    words = (level_words(report, column.name, level) for level in column.levels)
    how = f"{column.cuts:,}" if column.has("cuts") else ", ".join(words)
    counts = (f"{column.values:,}", f"{column.labels:,}")
    return column.name, percent(share), *counts, percent(column.as_it_is), percent(column.not_at_all), how


def tree(report: Report) -> dict[str, Any] | None:
    """Return the tree of cuts of the partition method."""
    if not report.tree:
        return None
    nodes, names = report.tree, [column.name for column in report.columns]
    rows = [_node_row(nodes, at, names) for at in range(min(len(nodes), LISTED))]
    head = ["part", "of", "by", "individuals", "share", "groups", "cut further by"]
    return {
        "cuts": [(column.name, f"{column.cuts:,}") for column in report.columns],
        "whole": sum(node.has("group") for node in nodes) == report.summary.groups,
        "table": table(f"The first cuts ({len(rows):,} parts)", head, rows, 3),
        "data": {"columns": names, "nodes": [node.to_dict() for node in nodes]},
    }


def _node_row(nodes: list[TreeNode], at: int, names: list[str]) -> tuple[str, ...]:
    node, of, by = nodes[at], "", ""
    if node.has("above"):
        of, by = f"{node.above:,}", names[nodes[node.above].split]
    if node.has("label"):
        by += f": {'missing' if node.label is None else node.label}"
    further = names[node.split] if node.has("split") else "not cut" if node.has("group") else "not listed"
    share = percent(node.individuals / nodes[0].individuals)
    return f"{at:,}", of, by, f"{node.individuals:,}", share, f"{node.groups:,}", further


def lattice(report: Report) -> dict[str, Any] | None:
    """Return the combinations of levels of the lattice method; the map of safe ones only if the search found all."""
    found = report.lattice
    if found is None:
        return None
    rest = [choice for choice in found.minimal if choice != found.chosen]
    head = ["what is coarser", "released", "groups", "loss", "divergence", "height", "suppressed"]
    rows = [_choice(report, found.chosen, "yes"), *(_choice(report, choice, "no") for choice in rest[: LISTED - 1])]
    count = f"{len(found.minimal):,}"
    given = found.choose == "given"
    title = "Combination of levels" if given else f"Minimal combinations of levels ({len(rows):,} of {count})"
    return {
        "minimal": count,
        "given": given,
        "choose": {"average": "average group"}.get(found.choose, found.choose),
        "table": table(title, head, rows, 2),
        "mapped": report.lattice_nodes is not None,
        **({"data": None} if report.lattice_nodes is None else _lattice_map(report, found, report.lattice_nodes)),
    }


def _lattice_map(report: Report, found: LatticeFacts, nodes: LatticeNodes) -> dict[str, Any]:
    """Return the numbers of combinations of levels and of safe ones, and the data of their map."""
    every, safe = sum(row.nodes for row in nodes.heights), sum(row.safe for row in nodes.heights)
    minimal = [list(choice.levels.values()) for choice in found.minimal]
    names, chosen = list(found.chosen.levels), list(found.chosen.levels.values())
    label = f"Lattice of {every:,} combinations of levels, {safe:,} of them safe, {len(minimal):,} minimal"
    return {
        "nodes": f"{every:,}",
        "safe": f"{safe:,}",
        "each": nodes.has("safe"),
        "data": nodes.to_dict()
        | {"columns": names, "names": [report.level_names[name] for name in names]}
        | {"minimal": minimal, "chosen": chosen, "label": label},
    }


def _choice(report: Report, choice: LevelCombination, mark: str) -> tuple[str, ...]:
    above = [(column, level) for column, level in choice.levels.items() if level]
    levels = ", ".join(f"{column}: {level_words(report, column, level)}" for column, level in above) or "nothing"
    costs = choice.groups, choice.loss, choice.divergence, choice.height, choice.suppressed
    return levels, mark, *map(figure, costs)
