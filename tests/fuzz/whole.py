"""Whole runs: `anon.run` on the table of a case, what it published against the definitions, and `anon.check` on it."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import anon
from anon.errors import ConfigError, UnsafeError
from tests.fuzz import assigning, checking, engine, lattice, partition
from tests.fuzz.cases import Case, Person, Quasi
from tests.oracles.labels import Nodes, Plain

KINDS = {"integer": int, "number": float, "text": str}
Labels = tuple[Any, ...]
Release = dict[Labels, Counter[Any]]  # the sensitive values of each group, by its labels


def differences(case: Case, folder: Path) -> list[str]:
    """Return where a run and a check of its release differ from the definitions."""
    for name in ("out", "out-run"):
        shutil.rmtree(folder / name, ignore_errors=True)
    config = case.config(folder)
    try:
        result = anon.run(config, case.frame(), show_values=True).to_dict()
    except ConfigError as error:
        return [] if "always true" in str(error) else [f"refused the config: {error}"]
    except UnsafeError as error:
        return _refused(case, str(error), folder)
    published, wrong = (_assigned if case.method["kind"] in ("merge", "colour") else _recoded)(case, folder)
    if wrong:
        return wrong
    wrong = [f"run: {text}" for text in checking.told_of(published, result, published.groups, False)]
    if not any("estimate" in prior for item in case.privacy for prior in _priors(item)):
        checked = anon.check(config, folder / "out", show_values=True).to_dict()
        wrong += [f"check: {text}" for text in checking.told_of(published, checked, published.groups, False)]
    return wrong


def _priors(item: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return list(item.get("r_robustness", {}).get("priors", []))


def _refused(case: Case, said: str, folder: Path) -> list[str]:
    kind = case.method["kind"]
    if kind in ("merge", "colour"):
        return assigning.refusal(case, case.criteria(), said)
    expected = lattice.defined(case) if kind == "lattice" else partition.defined(case, folder)
    return [f"refused, though there is a safe release: {said}"] if expected else []


def _recoded(case: Case, folder: Path) -> tuple[Case, list[str]]:
    """Return the case with the published groups, which are found by their labels alone, and what is wrong with them."""
    release = _release(case, folder / "out")
    order = sorted(release, key=lambda labels: [(label is not None, str(label).encode()) for label in labels])
    readers = [_reader(q, {person[q.name] for person in case.people}) for q in case.quasi]
    groups: dict[Labels, list[int]] = {labels: [] for labels in order}
    nested = json.loads((folder / "out-run" / "recoding.json").read_text()) if case.method.get("peel") else None
    for number, person in enumerate(case.people):
        own = [
            labels
            for labels in order
            if all(r.contains(label, person[q.name]) for r, label, q in zip(readers, labels, case.quasi))
        ]
        if nested:
            reached = order[_walked(nested["nodes"], person, {q.name: r for q, r in zip(case.quasi, readers)})]
            own = [reached] if reached in own else [*own, reached]
        if len(own) > 1:
            return case, [f"labels of {len(own)} groups hold for one person"]
        if own:
            groups[own[0]].append(number)
    found = replace(case, groups=[tuple(members) for members in groups.values()])
    wrong = ["a group with other values than its people"] * any(
        release[labels] != _counts(case, members) for labels, members in groups.items()
    )
    expected, more = _expected(case, folder)
    if sorted(found.groups) != sorted(expected):
        more.append(f"groups of {sorted(map(len, found.groups))} people, not of {sorted(map(len, expected))}")
    return found, wrong + more


def _walked(nodes: list[Any], person: Person, readers: Mapping[str, Plain | Nodes]) -> int:
    """Return the group that a tree of cuts leads to. Its labels need not, because the rest of a split has a label that
    also holds for people who left."""
    node = nodes[0]
    while "children" in node:
        value, reader, below = person[node["column"]], readers[node["column"]], [nodes[at] for at in node["children"]]
        node = next(child for child in below if reader.contains(child["label"], value))
    return int(node["group"])


def _expected(case: Case, folder: Path) -> tuple[list[tuple[int, ...]], list[str]]:
    if case.method["kind"] == "partition":
        return [tuple(members) for _, members in partition.defined(case, folder) or []], []
    recoding, nodes = json.loads((folder / "out-run" / "recoding.json").read_text()), lattice.defined(case)
    wrong = lattice.compared(case, recoding, nodes)
    if wrong:
        return [], wrong
    chosen = nodes[tuple(recoding["chosen"]["levels"].values())]
    return [tuple(sorted(row["#"] for row in group)) for group in chosen.released.values()], []


def _reader(column: Quasi, values: set[Any]) -> Plain | Nodes:
    if column.kind == "tree":
        return Nodes({value: column.path(value) for value in values if value is not None})
    return Plain(KINDS[column.kind], values - {None})


def _rows(file: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.ParquetFile(file).read().to_pylist()
    return found


def _release(case: Case, folder: Path) -> Release:
    """Return the published groups: how often each tuple of sensitive values occurs."""
    release: Release = {}
    names = [column.name for column in case.quasi]
    if case.release.get("form") != "bucketized":
        for row in _rows(folder / "release.parquet"):
            values = release.setdefault(tuple(row[name] for name in names), Counter())
            values[tuple(row[name] for name in case.sensitive)] += 1
        return release
    labels = {row["group"]: tuple(row[name] for name in names) for row in _rows(folder / "qi.parquet")}
    for row in _rows(folder / "sensitive.parquet"):
        release.setdefault(labels[row["group"]], Counter())[row[case.sensitive[0]],] += row["count"]
    return release


def _counts(case: Case, members: list[int]) -> Counter[Any]:
    own = [case.people[person] for person in members]
    if case.multiplicity == "single":
        return Counter(tuple(person[name] for name in case.sensitive) for person in own)
    return Counter((value,) for person in own for value in engine.held_values(case, person))


def _assigned(case: Case, folder: Path) -> tuple[Case, list[str]]:
    """Return the same for a release that does not show who in a group has which value: they are dealt out anyhow."""
    names, (name,) = [column.name for column in case.quasi], case.sensitive
    held: dict[int, list[Any]] = {}
    for row in _rows(folder / "out" / "sensitive.parquet"):
        held.setdefault(row["group"], []).extend([row[name]] * row["count"])
    people, groups = list[Any](), dict[int, list[int]]()
    for row in _rows(folder / "out" / "qi.parquet"):
        groups.setdefault(row["group"], []).append(len(people))
        people.append({own: row[own] for own in names} | {name: held[row["group"]].pop()})
    found = replace(case, people=people, groups=[tuple(members) for members in groups.values()])
    wrong = ["groups with more values than people"] * any(held.values())
    for columns in (names, [name]):
        before, after = (Counter(tuple(p[each] for each in columns) for p in rows) for rows in (case.people, people))
        wrong += [f"other values of {columns} than the table has"] * (before != after)
    failed = [each.name for each in found.criteria() if not each.holds(found.groups)]
    return found, wrong + [f"{each} does not hold" for each in failed]
