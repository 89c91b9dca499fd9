"""The lattice search on a case against every node of the lattice, one by one."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from anon.errors import UnsafeError
from tests.fuzz import engine
from tests.fuzz.cases import Case
from tests.oracles import lattice as oracle

Nodes = dict[oracle.Levels, oracle.Node]
KEYS = {"average": "average_group"}


def differences(case: Case, folder: Path) -> list[str]:
    """Return where the result of the search differs from its definition."""
    nodes = defined(case)
    given = engine.opened(case, folder)
    try:
        outcome = engine.searched(case, given, folder)
    except UnsafeError as error:
        return [f"refused, though {sorted(nodes)} are safe: {error}"] if nodes else []
    recoding: Any = outcome.recoding
    told = compared(case, recoding.facts, nodes)
    return told or _handed_over(case, given, outcome, nodes[recoding.chosen])


def defined(case: Case) -> Nodes:
    """Return the minimal safe nodes by definition. Sizes and losses count individuals, the divergence counts rows."""
    criteria = case.criteria()
    people = [{**person, "#": number} for number, person in enumerate(case.people)]

    def holds(groups: oracle.Groups, rows: list[oracle.Row]) -> bool:
        numbers = [tuple(row["#"] for row in group) for group in groups]
        released = tuple(sorted(row["#"] for row in rows))
        return all(each.holds(numbers, released) for each in criteria)

    columns = hierarchies(case)
    several = case.multiplicity != "single"
    sensitive = () if several else case.sensitive
    nodes = oracle.minimal(oracle.safe_nodes(people, columns, sensitive, holds, Fraction(case.method["suppress"])))
    if several:
        nodes = [replace(node, divergence=_divergence(case, people, columns, node)) for node in nodes]
    return {node.levels: node for node in nodes}


def hierarchies(case: Case) -> dict[str, dict[Any, tuple[Any, ...]]]:
    """Return per column the labels of each value that occurs, from level 0 to the top."""
    return {q.name: {value: q.path(value) for value in {p[q.name] for p in case.people}} for q in case.quasi}


def _divergence(case: Case, people: Any, columns: Any, node: oracle.Node) -> float:
    (name,) = case.sensitive

    def occurrences(rows: Any) -> list[Any]:
        return [{**row, name: value} for row in rows for value in engine.held_values(case, row)]

    released = {labels: occurrences(group) for labels, group in node.released.items()}
    return oracle.divergence(occurrences(people), columns, [name], node.levels, released)


def compared(case: Case, facts: dict[str, Any], nodes: Nodes) -> list[str]:
    """Return where the minimal nodes, their utility or the chosen node differ."""
    found = {tuple(entry["levels"].values()): entry for entry in facts["minimal"]}
    best = case.method["minimal"] == "best"
    listed = found.keys() <= nodes.keys() if best else found.keys() == nodes.keys()
    if not listed or len(found) != len(facts["minimal"]):
        return [f"minimal nodes {sorted(found)}, not {sorted(nodes)}"]
    told = [f"node {levels}: {text}" for levels, entry in found.items() for text in _utility(entry, nodes[levels])]
    if best:
        told += _not_best(facts["chosen"], nodes, case.method["choose"])
    key = KEYS.get(case.method["choose"], case.method["choose"])
    ranked = sorted(facts["minimal"], key=lambda entry: (entry[key], entry["height"], list(entry["levels"].values())))
    if facts["chosen"] != ranked[0]:
        told.append(f"chose {facts['chosen']['levels']}, not {ranked[0]['levels']}")
    return told


def _not_best(chosen: dict[str, Any], nodes: Nodes, metric: str) -> list[str]:
    """Return whether a minimal node that is not listed would have been better."""
    lowest = min(float(getattr(node, metric)) for node in nodes.values())
    return (
        [] if math.isclose(chosen[metric], lowest, rel_tol=1e-9, abs_tol=1e-9) else [f"a {metric} of {lowest} exists"]
    )


def _utility(entry: dict[str, Any], node: oracle.Node) -> list[str]:
    exactly = {
        "height": node.height, "discernibility": node.discernibility, "suppressed": node.suppressed,
        "groups": len(node.released),
    }  # fmt: skip
    nearly = {"average_group": float(node.average), "loss": float(node.loss), "divergence": node.divergence}
    wrong = [name for name, value in exactly.items() if entry[name] != value]
    wrong += [n for n, value in nearly.items() if not math.isclose(entry[n], value, rel_tol=1e-9, abs_tol=1e-9)]
    return [f"another {name}: {entry[name]}" for name in wrong]


def _handed_over(case: Case, given: engine.Opened, outcome: Any, node: oracle.Node) -> list[str]:
    """Return where the groups and the counts for the release differ from the node."""
    recoding, columns = outcome.recoding, hierarchies(case)
    assigned = recoding.assign(np.array(given.codes, np.uint16).T.copy()).tolist()
    groups = [None if group == recoding.groups else group for group in assigned]
    own = [
        tuple(tree[p[name]][level] for (name, tree), level in zip(columns.items(), node.levels)) for p in case.people
    ]
    told = []
    if any((group is None) != (labels not in node.released) for group, labels in zip(groups, own)):
        told.append("other people suppressed than those whose groups fail")
    pairs = {(group, labels) for group, labels in zip(groups, own) if group is not None}
    if not len(pairs) == len({group for group, _ in pairs}) == len({labels for _, labels in pairs}) == recoding.groups:
        told.append("groups that are not those of equal labels")
    if [groups.count(number) for number in range(recoding.groups)] != recoding.people.tolist():
        told.append("other sizes than its groups have")
    if engine.handed_over(outcome) != engine.expected_counts(case, given, groups):
        told.append("other sensitive values handed over than its groups have")
    if outcome.unique != sum(given.codes.count(codes) == 1 for codes in given.codes):
        told.append(f"{outcome.unique} people unique before")
    return told
