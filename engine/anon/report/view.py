"""Prepare report.json for the page: numbers and tables for the template, which has the text, and data for the charts.
Everything here is plain data; nothing of it is HTML."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from anon.artifacts.parts import PointFacts, Risk
from anon.artifacts.schema import Report
from anon.config.criteria.skyline import knowledge
from anon.core.phrases import below, counted, percent
from anon.report.promises import group_name, guard_words, left_out, left_out_words, promises, reasons
from anon.report.statement import statement, verdict
from anon.report.tables import few, table
from anon.report.view_groups import groups, lattice, lost, prediction, queries, tree
from anon.report.view_risk import attacks, disclosure, skylines

POINTS = 200  # (value, point) pairs that are listed
DOTS = 24  # of these, the pairs that are drawn
PARTS = {
    "statement": "Statement",
    "asked": "Criteria",
    "knowledge": "Safe knowledge",
    "breach": "Breach probabilities",
    "groups": "Groups",
    "lost": "Information loss",
    "cuts": "Cuts",
    "lattice": "Levels",
    "attacks": "Attacks",
    "origin": "Provenance",
}


def _guard(report: Report) -> dict[str, Any] | None:
    """Return what the page says about the coins of a guarded search."""
    if report.guard is None:
        return None
    facts = report.guard.to_dict()
    return facts | {"skip": percent(report.guard.skip), "words": guard_words(facts)}


def view(report: Report) -> dict[str, Any]:
    """Return the variables of the template. `data` is for the charts, by the name of the part that each is in."""
    parts = {
        "knowledge": skylines(report),
        "breach": _breach(report),
        "groups": groups(report),
        "lost": lost(report),
        "queries": queries(report),
        "prediction": prediction(report),
        "cuts": tree(report),
        "lattice": lattice(report),
        "attacks": attacks(report),
        "disclosure": disclosure(report),
        "seconds": _seconds(report),
    }
    return {
        **parts,
        **_top(report),
        "parts": [{"id": id, "name": name} for id, name in PARTS.items() if parts.get(id, True)],
        "guard": _guard(report),
        "promises": promises(report),
        "points": _points(report),
        "statement": statement(report),
        "verdict": verdict(report.summary),
        "origin": _origin(report),
        "provenance": report.provenance,
        "data": {name: part.pop("data") for name, part in parts.items() if part},
    }


def _top(report: Report) -> dict[str, Any]:
    summary, loss, absent = report.summary, report.utility.loss, report.summary.left_out.to_dict()
    smallest = round(1 / summary.risk.highest)
    numbers: list[tuple[str, str]] = [
        ("individuals", f"{summary.individuals:,}"),
        ("groups", f"{summary.groups:,}"),
        ("in the smallest group", f"{smallest:,}"),
        *([] if _exact(report) else _risks(summary.risk)),
        ("in groups with one sensitive value", f"{summary.risk.homogeneous_rows:,}"),
        ("information loss", percent(loss.all)),
    ]
    numbers += [(f"{what}s left out", f"{count:,}") for count, what, _ in left_out(absent) if count]
    return {
        "safe": summary.safe,
        "began": _day(report.provenance.began),
        "rows": counted(summary.rows, "row"),
        "about": "" if summary.rows == summary.individuals else counted(summary.individuals, "individual"),
        "in_groups": counted(summary.groups, "group"),
        "smallest": f"{smallest:,}",
        "mean": f"{summary.individuals / summary.groups:,.1f}",
        "left_out": left_out_words(absent),
        "numbers": numbers,
        "shows_values": report.shows_values,
        "exact": _exact(report),
        "trial": report.trial,
    }


def _risks(risk: Risk) -> list[tuple[str, str]]:
    """Return the probabilities of re-identification, and the individuals who were unique before."""
    before = [] if risk.unique_before is None else [("unique in the source", f"{risk.unique_before:,}")]
    highest, mean = ("highest re-identification risk", risk.highest), ("average risk", risk.mean)
    return [*before, *((name, percent(share)) for name, share in (highest, mean))]


def _exact(report: Report) -> bool:
    """Return whether quasi-identifiers are published as they are."""
    return report.labels == "exact"


def _day(began: str) -> str:
    return datetime.fromisoformat(began).strftime("%-d %B %Y, %H:%M UTC")


def _all_points(report: Report) -> list[PointFacts]:
    """Return the points of all skyline criteria, those that are closest to their bound or beyond it first."""
    points = [point for entry in report.summary.criteria for point in entry.points]
    return sorted(points, key=lambda point: (point.safe, -point.breach / point.c))


def _points(report: Report) -> dict[str, Any] | None:
    """Return a table of the distinct points in words, with the values that each is for."""
    values: dict[tuple[float, int, int, int], list[str]] = {}
    for point in _all_points(report):
        values.setdefault((point.c, point.l, point.k, point.m), []).append(point.value)
    rows = []
    for (c, l, k, m), named in sorted(values.items()):
        rows.append((few(named), knowledge(l, k, m), f"{l:,}", f"{k:,}", f"{m:,}", f"less than {percent(c)}"))
    head = ["value", "adversary knows", "l", "k", "m", "confidence must be"]
    return table("Points of knowledge, and the confidence an adversary must not reach", head, rows, 2) if rows else None


def _breach(report: Report) -> dict[str, Any] | None:
    points = _all_points(report)
    if not points:
        return None
    head = ["value", "l", "k", "m", "breach", "must be below", "worst group"]
    label = f"Breach probabilities, closest to their bound first ({min(len(points), POINTS):,} of {len(points):,})"
    bucketized = report.form == "bucketized"
    drawn = [_dot(point, bucketized) for point in points[:DOTS]]
    return {
        "pairs": counted(len(points), "pair"),
        "drawn": len(drawn) if len(drawn) < len(points) else 0,
        "table": table(label, head, (_breach_row(point, bucketized) for point in points[:POINTS])),
        "data": {"label": f"{len(drawn)} breach probabilities and their bounds, in percent", "rows": drawn},
    }


def _dot(point: PointFacts, bucketized: bool) -> dict[str, Any]:
    amounts, breach = f"({point.l:,}, {point.k:,}, {point.m:,})", below(point.breach, point.c)
    return {
        "name": f"{point.value} {amounts}",
        "breach": point.breach,
        "text": breach,
        "c": point.c,
        "safe": point.safe,
        "title": f"{point.value}: {breach} with (l, k, m) = {amounts}, must be below {percent(point.c)}; "
        f"worst: {group_name(point.to_dict(), bucketized)}",
    }


def _breach_row(point: PointFacts, bucketized: bool) -> tuple[str, ...]:
    amounts = (f"{amount:,}" for amount in (point.l, point.k, point.m))
    worst = group_name(point.to_dict(), bucketized)
    return point.value, *amounts, f"{point.breach:.4%}", percent(point.c), worst


def _seconds(report: Report) -> dict[str, Any]:
    took = report.seconds
    listed = [(name, f"{seconds:.2f} s") for name, seconds in took.items()]
    rows = [{"name": name, "seconds": took[name], "text": text} for name, text in listed]
    every = ("all", f"{sum(took.values()):.2f} s")
    label = "Seconds per stage: " + ", ".join(f"{name} {text}" for name, text in listed)
    return {
        "table": table("Seconds per stage", ["stage", "took"], [*listed, every]),
        "data": {"label": label, "rows": rows},
    }


def _origin(report: Report) -> list[tuple[str, str]]:
    origin, method = report.provenance, report.method
    files = [f"{part.name} ({part.size})" for part in origin.source]
    settings = ", ".join(f"{name}: {value}" for name, value in method.settings.items())
    absent = report.summary.left_out.to_dict()
    why = reasons(absent["rows"], absent.get("one_row_each"))
    missing = f", {absent['rows']['all']:,} left out ({why})" if why else ""
    return [
        ("run", origin.run),
        ("anon", origin.anon),
        ("began", origin.began),
        ("source as configured", report.source),
        *([("what was read", few(files))] if files else []),
        ("rows read", f"{origin.rows + origin.rows_dropped:,}{missing}"),
        ("method", f"{method.kind}{f' ({settings})' if settings else ''}"),
        ("config, SHA-256", origin.config_sha256),
        *((f"{name}, SHA-256", digest) for name, digest in origin.release.items()),
    ]
