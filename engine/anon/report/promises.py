"""The criteria of a run as sentences, with which the page begins: what was demanded and what was found, from what
report.json holds of both. Each criterion words its own (`anon.config.criteria`)."""

from __future__ import annotations

from typing import Any

from anon.artifacts.parts import CriterionFacts
from anon.artifacts.schema import Report
from anon.config import CRITERIA
from anon.config.criteria.skyline import worst_first
from anon.core.phrases import counted


def promises(report: Report) -> list[dict[str, Any]]:
    """Return for each criterion its name, whether it holds, what it demands and what was found."""
    specs = [next(iter(item.items())) for item in report.privacy]
    return [_promise(name, spec, entry) for (name, spec), entry in zip(specs, report.summary.criteria)]


def _promise(name: str, spec: dict[str, Any], entry: CriterionFacts) -> dict[str, Any]:
    facts = entry.to_dict()
    asked, found = CRITERIA[name].sentences(spec, facts)
    about = entry.sensitive
    return {
        "name": CRITERIA[name].title(spec),
        "about": about if isinstance(about, str) else ", ".join(about),
        "safe": entry.safe,
        "asked": asked,
        "found": found,
        "worst_group": closest(facts)["worst_group"],
    }


def closest(entry: dict[str, Any]) -> dict[str, Any]:
    """Return what is closest to its bound, or furthest beyond it: of a skyline one of its points, with the keys of the
    entry of a criterion; of others that entry."""
    points: list[dict[str, Any]] = entry.get("points", [])
    if not points:
        return entry
    worst = worst_first(points)[0]
    return worst | {"figure": worst["breach"], "bound": worst["c"]}


REASONS = {
    "null_quasi_identifiers": "without a quasi-identifier",
    "null_sensitive": "without a sensitive value",
    "suppressed": "suppressed",
}


def reasons(counts: dict[str, int], others: dict[str, Any] | None = None) -> str:
    """Return why rows or individuals are left out, in words; `others` is about rows of individuals of whom another row
    is used.

    >>> reasons({"all": 5, "null_quasi_identifiers": 3, "null_sensitive": 0, "suppressed": 2})
    '3 without a quasi-identifier, 2 suppressed'
    >>> reasons({"all": 9, "null_quasi_identifiers": 0, "null_sensitive": 0, "suppressed": 0, "other_rows": 9},
    ...         {"keep": "last", "by": "visited", "rows": 9, "individuals": 4})
    '9 earlier rows of 4 individuals'
    """
    listed = [f"{counts[name]:,} {words}" for name, words in REASONS.items() if counts[name]]
    if others and counts.get("other_rows"):
        which = "earlier" if others["keep"] == "last" else "later"
        listed.append(f"{others['rows']:,} {which} rows of {counted(others['individuals'])}")
    return ", ".join(listed)


def left_out(found: dict[str, dict[str, Any]]) -> list[tuple[int, str, str]]:
    """Return how many are not in a release, of what, and why: individuals, then rows where their counts differ."""
    kinds = [kind for kind in ("individuals", "rows") if kind in found]
    if len(kinds) == 2 and found["rows"] == found["individuals"]:
        kinds.pop()
    others = found.get("one_row_each")
    return [(found[kind]["all"], kind.removesuffix("s"), reasons(found[kind], others)) for kind in kinds]


def left_out_words(found: dict[str, dict[str, Any]]) -> str:
    """Return what is not in a release in one phrase, empty if nothing is missing."""
    listed = [f"{counted(count, what)} left out ({why})" for count, what, why in left_out(found) if count]
    return ", ".join(listed)
