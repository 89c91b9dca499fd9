"""Prepare the risk sections of the page: knowledge skylines, maximum disclosure, and attacks before and after."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from anon.artifacts.parts import PointFacts, SensitiveFacts
from anon.artifacts.schema import Report
from anon.core.phrases import percent
from anon.report.attack_rows import HEAD, attack_row
from anon.report.tables import table

THRESHOLDS = (100, 95, 90, 75, 50)  # percent
Required = tuple[str, str, float]  # a column, a value of it and a confidence


def skylines(report: Report) -> dict[str, Any] | None:
    """Return the values whose skylines are drawn, each with the points that the config requires at a confidence."""
    several, required = len(report.sensitive) > 1, _required(report)
    found = []
    for facts in report.sensitive:
        for each in facts.knowledge:
            about = facts.column, each.value
            own = [sky.to_dict() | {"asked": _asked(required, (*about, sky.confidence))} for sky in each.skylines]
            found.append({"name": ": ".join(about) if several else about[1], "curves": each.curves, "skylines": own})
    return {"count": len(found), "data": found} if found else None


def _required(report: Report) -> dict[Required, list[PointFacts]]:
    found: dict[Required, list[PointFacts]] = {}
    for entry in report.summary.criteria:
        for point in entry.points:
            found.setdefault((str(entry.sensitive), point.value, point.c), []).append(point)
    return found


def _asked(required: dict[Required, list[PointFacts]], about: Required) -> list[dict[str, Any]]:
    return [point.to_dict() for point in required.get(about, [])]


def attacks(report: Report) -> dict[str, Any]:
    """Return what an adversary could do with the source, and can do with the release."""
    summary, risk = report.summary, report.summary.risk
    everybody, before = summary.individuals + summary.suppressed, risk.unique_before
    certain, exact = risk.homogeneous_rows, report.labels == "exact"
    alone = before if exact else report.group_sizes.get("1", 0)  # exact quasi-identifiers are as in the source
    rows = [
        ("are unique by their quasi-identifiers, and so can be recognized", _of(before, everybody), alone),
        ("are in groups of fewer than 5", _least(before, everybody), risk.under_5),
        ("have a sensitive value that their group reveals with certainty", _least(before, everybody), certain),
    ]
    kept = [
        (name, f"{facts.smallest_group:,}", percent(facts.unique_share), percent(facts.homogeneous_share))
        for name, facts in summary.with_kept.items()
    ]
    head = ["adversary also knows", "smallest group", "unique in it", "value certain"]
    people = summary.individuals
    columns = [_homogeneity(facts, people) | _elimination(facts, people) for facts in report.sensitive]
    return {
        "recognized": table(
            "Individuals before and after",
            ["individuals who", "in the source", "in the release"],
            ((who, was, _of(count, everybody)) for who, was, count in rows),
        ),
        "overview": _overview(report),
        "columns": columns,
        "kept": table("With a kept column", head, kept) if kept else None,
        "data": [column.pop("data") for column in columns],
    }


def _overview(report: Report) -> dict[str, Any]:
    """Return the table of all attacks, and a sentence about each: what it assumes, what it found and what would
    help."""
    attacks = [attack.to_dict() for attack in report.summary.attacks]
    sentences = [
        {
            "name": attack_row(attack)[0],
            "text": f"The adversary {attack['assumes']}. Result: {attack['found']}.",
            "helps": attack["helps"],
            "breached": attack["breached"],
        }
        for attack in attacks
    ]
    label = "Attacks: individuals affected, and the confidence that an attack gives and that the criteria promise"
    return {"table": table(label, list(HEAD), map(attack_row, attacks)), "sentences": sentences}


def disclosure(report: Report) -> dict[str, Any] | None:
    """Return the maximum disclosure given pieces of knowledge, for each sensitive column for which it was computed."""
    found = []
    for facts in report.sensitive:
        if curves := facts.disclosure:
            both = list(zip(curves.implications, curves.negations))
            rows = [(f"{k}", percent(first), percent(second)) for k, (first, second) in enumerate(both)]
            label = f"Maximum disclosure of {facts.column} given 0 to {len(rows) - 1} pieces of knowledge"
            listed = table(label, ["pieces of knowledge", "implications", "negations"], rows)
            text = ", ".join(f"{k}: {first} and {second}" for k, first, second in rows)
            data = {"label": f"{label}, implications and negations: {text}", "curves": [*zip(*both)]}
            found.append({"name": facts.column, "table": listed, "worst": curves.worst, "data": data})
    return {"columns": found, "data": [column.pop("data") for column in found]} if found else None


def _elimination(facts: SensitiveFacts, everybody: int) -> dict[str, Any]:
    """Return the individuals in groups where nearly everybody has one value once some of their values are ruled out."""
    if facts.elimination is None:
        return {"elimination": None}
    affected, sure = facts.elimination.affected, percent(facts.elimination.threshold)
    rows = [
        (f"{out}", f"{each.groups:,}", f"{each.individuals:,}", percent(each.individuals / everybody))
        for out, each in enumerate(affected)
    ]
    label = f"Groups where {sure} is reached once values of a person are ruled out"
    listed = table(label, ["values ruled out", "groups", "individuals", "share"], rows)
    one = affected[min(1, len(affected) - 1)].individuals
    return {"elimination": {"sure": sure, "table": listed, "one": _of(one, everybody)}}


def _of(count: int | None, everybody: int) -> str:
    return "not counted" if count is None else f"{count:,} ({percent(count / everybody)})"


def _least(count: int | None, everybody: int) -> str:
    """Return a lower bound: those who are unique are counted in any case."""
    return f"at least {_of(count, everybody)}" if count else "not counted"


def _homogeneity(facts: SensitiveFacts, everybody: int) -> dict[str, Any]:
    """Return the confidence of an adversary who finds the group of a person, which is not known for multisets."""
    name, largest = facts.column, facts.largest_share
    if largest is None:
        return {"name": name, "table": None, "data": None}
    people, groups = _at_least(largest.individuals), _at_least(largest.groups)
    rows = [
        (f"at least {at}%", f"{groups[at]:,}", f"{people[at]:,}", percent(people[at] / everybody)) for at in THRESHOLDS
    ]
    values = [
        (each.value, f"{each.individuals:,}", percent(each.individuals / everybody), percent(each.highest or 0))
        for each in facts.values
    ]
    listed = f"Values of {name} ({len(values):,} of {facts.distinct:,})"
    text = ", ".join(f"{row[0]} {row[3]}" for row in rows)
    return {
        "name": name,
        "half": _of(people[50], everybody),
        "same": _of(people[100], everybody),
        "table": table(
            f"Groups by the share of their most frequent {name}",
            ["most frequent value has", "groups", "individuals", "share"],
            rows,
        ),
        "by_value": table(listed, ["value", "individuals", "share of all", "largest share in a group"], values),
        "data": {
            "label": f"Individuals in groups by the share of their most frequent {name}: {text}",
            "above": [count / everybody for count in people],
        },
    }


def _at_least(counts: list[int]) -> list[int]:
    """Return for each percent the number of those that have this share or more."""
    return list(accumulate(reversed(counts)))[::-1]
