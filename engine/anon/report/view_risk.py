"""What an adversary may know and can do, for the page: knowledge skylines, and attacks before and after."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from anon.core.phrases import percent
from anon.report.tables import Report, table

THRESHOLDS = (100, 95, 90, 75, 50)  # percent


def skylines(report: Report) -> dict[str, Any] | None:
    """The values whose skylines can be looked at, each with the points that the config asks for at a confidence."""
    several, asked = len(report["sensitive"]) > 1, _asked(report)
    found = []
    for facts in report["sensitive"]:
        for each in facts["knowledge"]:
            about = facts["column"], each["value"]
            own = [sky | {"asked": asked.get((*about, sky["confidence"]), [])} for sky in each["skylines"]]
            found.append({"name": ": ".join(about) if several else about[1], "curves": each["curves"], "skylines": own})
    return {"count": len(found), "data": found} if found else None


def _asked(report: Report) -> dict[tuple[str, str, float], list[dict[str, Any]]]:
    found: dict[tuple[str, str, float], list[dict[str, Any]]] = {}
    for entry in report["summary"]["criteria"]:
        for point in entry.get("points", []):
            found.setdefault((entry["sensitive"], point["value"], point["c"]), []).append(point)
    return found


def attacks(report: Report) -> dict[str, Any]:
    """What could be done with the source as it was, and can be with the release."""
    told, risk = report["summary"], report["summary"]["risk"]
    everybody, before = told["individuals"] + told["suppressed"], risk["unique_before"]
    alone, certain = report["group_sizes"].get("1", 0), risk["homogeneous_rows"]
    if report["labels"] == "exact":
        alone = before  # quasi-identifiers are published as they are
    rows = [
        ("are alone with their quasi-identifiers, and so can be recognized", _of(before, everybody), alone),
        ("are in groups of fewer than 5", _least(before, everybody), risk["under_5"]),
        ("have a sensitive value that their group tells for certain", _least(before, everybody), certain),
    ]
    kept = [
        (name, f"{facts['smallest_group']:,}", percent(facts["unique_share"]), percent(facts["homogeneous_share"]))
        for name, facts in told["with_kept"].items()
    ]
    head = ["somebody also knows", "smallest group", "alone in it", "value certain"]
    columns = [_homogeneity(f, told["individuals"]) | _elimination(f, told["individuals"]) for f in report["sensitive"]]
    return {
        "recognized": table(
            "Individuals before and after",
            ["individuals who", "in the source", "in the release"],
            ((who, was, _of(count, everybody)) for who, was, count in rows),
        ),
        "columns": columns,
        "kept": table("With a kept column", head, kept) if kept else None,
        "data": [column.pop("data") for column in columns],
    }


def disclosure(report: Report) -> dict[str, Any] | None:
    """How sure pieces of knowledge can make, per sensitive column of which that is known."""
    found = []
    for facts in report["sensitive"]:
        if curves := facts.get("disclosure"):
            both = list(zip(curves["implications"], curves["negations"]))
            rows = [(f"{k}", percent(first), percent(second)) for k, (first, second) in enumerate(both)]
            label = f"How sure of a {facts['column']} so many pieces of knowledge can make"
            listed = table(label, ["pieces of knowledge", "implications", "negations"], rows)
            told = ", ".join(f"{k}: {first} and {second}" for k, first, second in rows)
            data = {"label": f"{label}, implications and negations: {told}", "curves": [*zip(*both)]}
            found.append({"name": facts["column"], "table": listed, "worst": curves["worst"], "data": data})
    return {"columns": found, "data": [column.pop("data") for column in found]} if found else None


def _elimination(facts: dict[str, Any], everybody: int) -> dict[str, Any]:
    """Who is in groups where nearly everybody has one value once some values of theirs are ruled out."""
    if "elimination" not in facts:
        return {"elimination": None}
    affected, sure = facts["elimination"]["affected"], percent(facts["elimination"]["threshold"])
    rows = [
        (f"{out}", f"{each['groups']:,}", f"{each['individuals']:,}", percent(each["individuals"] / everybody))
        for out, each in enumerate(affected)
    ]
    label = f"Where {sure} is reached once values of a person are ruled out"
    listed = table(label, ["values ruled out", "groups", "individuals", "share"], rows)
    one = affected[min(1, len(affected) - 1)]["individuals"]
    return {"elimination": {"sure": sure, "table": listed, "one": _of(one, everybody)}}


def _of(count: int | None, everybody: int) -> str:
    return "not counted" if count is None else f"{count:,} ({percent(count / everybody)})"


def _least(count: int | None, everybody: int) -> str:
    """Of those who are unique it is known without counting."""
    return f"at least {_of(count, everybody)}" if count else "not counted"


def _homogeneity(facts: dict[str, Any], everybody: int) -> dict[str, Any]:
    """How sure somebody is who finds the group of a person. Of multisets that is not known."""
    name = facts["column"]
    if "largest_share" not in facts:
        return {"name": name, "table": None, "data": None}
    people, groups = (_at_least(facts["largest_share"][kind]) for kind in ("individuals", "groups"))
    rows = [
        (f"at least {at}%", f"{groups[at]:,}", f"{people[at]:,}", percent(people[at] / everybody)) for at in THRESHOLDS
    ]
    values = [
        (each["value"], f"{each['individuals']:,}", percent(each["individuals"] / everybody), percent(each["highest"]))
        for each in facts["values"]
    ]
    listed = f"Values of {name} ({len(values):,} of {facts['distinct']:,})"
    told = ", ".join(f"{row[0]} {row[3]}" for row in rows)
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
            "label": f"Individuals in groups whose most frequent {name} has so large a share: {told}",
            "above": [count / everybody for count in people],
        },
    }


def _at_least(counts: list[int]) -> list[int]:
    """Per percent how many have that share or more."""
    return list(accumulate(reversed(counts)))[::-1]
