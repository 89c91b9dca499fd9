"""Verdicts and figures of criteria on a table that is already grouped, against their definitions: by the criteria
themselves on histograms (`judge`), and by `anon.check` on a table or on a bucketized pair (`check`)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import anon
from anon.criteria import Criterion, Groups, State, bind
from tests.fuzz import engine
from tests.fuzz.cases import ID, TYPES, Case, sensitive_array
from tests.oracles import criteria as oracle

NEAR = 1e-9
ONE_MEASURE = (
    *oracle.SIZES,
    "t_closeness",
    "epsilon_m",
    "variance",
    "delta_disclosure",
)  # the worst group is that of the figure


def judged(case: Case, folder: Path) -> list[str]:
    """Return where the criteria, applied to histograms of the groups, differ from their definitions."""
    given = engine.opened(case, folder)
    told = []
    for number, (criterion, defined) in enumerate(zip(bind(given.config.privacy, given.values), case.criteria())):
        if criterion.attributes:
            continue  # judged through a table, which has the attributes of priors
        verdict = criterion.verdict(_state(case, given, criterion))
        found = {"safe": verdict.safe, "figure": verdict.figure}
        found |= criterion.details(verdict, lambda code, c=criterion: given.cube.domain(c.column).objects[code])
        told += [f"privacy[{number}] {text}" for text in compared(found, defined, case.groups)]
    return told


def _state(case: Case, given: engine.Opened, criterion: Criterion) -> State:
    """Return the state of a criterion over the groups of a case, merged from two batches."""
    cube, reading = given.cube, given.cube.reading(criterion)
    codes, size = _codes(case, given, reading), given.cube.others[reading].size
    half = (len(case.groups) + 1) // 2
    states = []
    for groups in filter(None, (case.groups[:half], case.groups[half:])):
        counts = [np.bincount([code for p in group for code in codes[p]], minlength=size) for group in groups]
        dense = Groups.dense(np.array(counts))
        n = np.array([len(group) for group in groups])
        states.append(criterion.state(cube.seen_by(Groups(n, dense.start, dense.value, dense.count), reading)))
    return states[0].merge(states[-1])


def _codes(case: Case, given: engine.Opened, reading: int) -> list[list[int]]:
    """Return the codes of each person in one of the columns that criteria read."""
    cube = given.cube
    if case.multiplicity != "single":
        objects = cube.domain(case.sensitive[0]).objects
        return [[objects.index(value) for value in engine.held_values(case, person)] for person in case.people]
    column = cube.records.read(0, cube.records.count)[len(cube.domains) + reading]
    return [[int(code)] for code in column]


def compared(found: Mapping[str, Any], defined: oracle.Criterion, groups: oracle.Groups) -> list[str]:
    """Return where a verdict and its figures differ from the definition."""
    verdict = defined.verdict(groups, tuple(sorted(person for group in groups for person in group)))
    name, told = defined.name, []
    if found["safe"] != verdict.safe:
        told.append(f"{name} is said to be {found['safe']}, not {verdict.safe}")
    exact_figure = found.get("exact", True) and (name != "r_robustness" or _large_enough(defined, groups))
    if exact_figure and not close(found["figure"], verdict.figure):
        told.append(f"{name} has the figure {found['figure']}, not {verdict.figure}")
    if name == "skyline":
        told += _points(found["points"], verdict.points)
    return told


def _large_enough(defined: oracle.Criterion, groups: oracle.Groups) -> bool:
    return min(map(len, groups)) >= oracle.exact(defined.p["r"])


def _points(found: Sequence[Mapping[str, Any]], expected: Mapping[Any, Any]) -> list[str]:
    """Return where the breaches of a skyline differ; a point that is written twice has two equal ones."""
    seen = {(str(point["value"]).replace("null", "None"), point["l"], point["k"], point["m"]): point for point in found}
    wanted = {(str(value), *amount): breach for (value, *amount), breach in expected.items()}
    if seen.keys() != wanted.keys():
        return [f"skyline has points {sorted(seen)}, not {sorted(wanted)}"]
    wrong = [key for key, breach in wanted.items() if not close(seen[key]["breach"], breach)]
    return [f"skyline has breach {seen[key]['breach']} at {key}, not {wanted[key]}" for key in wrong]


def close(found: Any, expected: Any) -> bool:
    """Return whether a figure is as expected, up to rounding."""
    if isinstance(expected, Mapping):
        return all(close(found[key], value) for key, value in expected.items())
    return math.isclose(math.inf if found == "inf" else found, float(expected), rel_tol=NEAR, abs_tol=NEAR)


def differences(case: Case, folder: Path) -> list[str]:
    """Return where `anon.check` of the table of a case differs from the definitions."""
    bucketized = case.release.get("form") == "bucketized"
    table = _pair(case) if bucketized else _labelled(case)
    found = anon.check(case.config(folder), table, show_values=True).to_dict()
    return told_of(case, found, case.groups, bucketized)


def told_of(case: Case, found: Mapping[str, Any], groups: oracle.Groups, bucketized: bool) -> list[str]:
    """Return where the summary of a run or check differs from its groups, which are given in canonical order."""
    told = []
    classes = equal_people(case, groups) if bucketized else groups
    for number, (facts, defined) in enumerate(zip(found["criteria"], case.criteria(), strict=True)):
        own = classes if defined.name == "k_anonymity" else groups
        told += [f"privacy[{number}] {text}" for text in compared(facts, defined, own)]
        if not told and not bucketized and defined.name in ONE_MEASURE:
            worst = defined.verdict([groups[facts["worst_group"]]], tuple(sorted(p for g in groups for p in g)))
            told += [] if close(facts["figure"], worst.figure) else [f"{defined.name} has another worst group"]
    expected = _summary(case, groups) | {"safe": all(facts["safe"] for facts in found["criteria"])}
    seen = {**found, **found["risk"]}
    return told + [
        f"{key} is {seen[key]}, not {value}" for key, value in expected.items() if not close(seen[key], value)
    ]


def equal_people(case: Case, groups: oracle.Groups) -> list[oracle.Group]:
    """Return the people of groups in classes of equal quasi-identifiers."""
    classes: dict[Any, list[int]] = {}
    for group in groups:
        for person in group:
            classes.setdefault(tuple(case.people[person][q.name] for q in case.quasi), []).append(person)
    return [tuple(each) for each in classes.values()]


def _summary(case: Case, groups: oracle.Groups) -> dict[str, Any]:
    sizes = [len(group) for group in groups]
    return {
        "individuals": sum(sizes),
        "groups": len(sizes),
        "highest": 1 / min(sizes),
        "mean": len(sizes) / sum(sizes),
        "under_5": sum(size for size in sizes if size < 5),
        "homogeneous_rows": sum(len(group) for group in groups if _homogeneous(case, group)),
    }


def _homogeneous(case: Case, group: oracle.Group) -> bool:
    """Return whether all members have the same value of some sensitive column; for multisets, which do not show who has
    what, whether there is only one value."""
    if case.multiplicity == "single":
        return any(len({case.people[person][name] for person in group}) == 1 for name in case.sensitive)
    counts = Counter(value for person in group for value in engine.held_values(case, case.people[person]))
    return len(counts) == 1 if case.multiplicity == "multiset" else max(counts.values(), default=0) == len(group)


def _labelled(case: Case) -> pa.Table:
    """Return a generalized table whose groups have labels in their order, the first one null."""
    rows = []
    for number, group in enumerate(case.groups):
        labels = {q.name: "*" for q in case.quasi} | {case.quasi[0].name: f"g{number:03}" if number else None}
        for person in group:
            own = case.people[person]
            several = case.multiplicity != "single"
            held = own[case.sensitive[0]] if several else [None]
            for value in held:
                sensitive = {case.sensitive[0]: value} if several else {name: own[name] for name in case.sensitive}
                rows.append({**labels, ID: person, **{name: own[name] for name in case.keep}, **sensitive})
    columns = {q.name: pa.array([row[q.name] for row in rows], pa.string()) for q in case.quasi}
    columns |= {ID: pa.array([row[ID] for row in rows])} if case.multiplicity != "single" else {}
    columns |= {name: sensitive_array(name, [row[name] for row in rows]) for name in case.sensitive}
    return pa.table(columns | {name: pa.array([row[name] for row in rows]) for name in case.keep})


def _pair(case: Case) -> tuple[pa.Table, pa.Table]:
    """Return a bucketized table with group numbers that have gaps and quasi-identifiers as they are."""
    (name,) = case.sensitive
    members = [(3 * number + 1, person) for number, group in enumerate(case.groups) for person in group]
    qi = {q.name: pa.array([case.people[p][q.name] for _, p in members], TYPES[q.kind]) for q in case.quasi}
    counts: Counter[tuple[int, Any]] = Counter()
    for group, person in members:
        own = case.people[person]
        held = [own[name]] if case.multiplicity == "single" else engine.held_values(case, own)
        counts.update((group, value) for value in held)
    sensitive = {
        "group": pa.array([group for group, _ in counts], pa.int64()),
        name: sensitive_array(name, [value for _, value in counts]),
        "count": pa.array(counts.values(), pa.int64()),
    }
    return pa.table(qi | {"group": pa.array([group for group, _ in members])}), pa.table(sensitive)
