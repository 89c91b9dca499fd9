"""The criteria of a run as sentences, with which the page begins: what was demanded and what was found, from what
report.json holds of both. Each criterion words its own (`anon.config.criteria`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from anon.artifacts.parts import CriterionFacts
from anon.artifacts.schema import Report
from anon.config import CRITERIA
from anon.config.criteria.skyline import worst_first
from anon.core.phrases import counted, figure, percent


def promises(report: Report) -> list[dict[str, Any]]:
    """Return for each criterion its name, whether it holds, what it demands and what was found."""
    specs = [next(iter(item.items())) for item in report.privacy]
    bucketized = report.form == "bucketized"
    return [_promise(name, spec, entry, bucketized) for (name, spec), entry in zip(specs, report.summary.criteria)]


def _promise(name: str, spec: dict[str, Any], entry: CriterionFacts, bucketized: bool) -> dict[str, Any]:
    facts = entry.to_dict()
    asked, found = CRITERIA[name].sentences(spec, facts)
    about = entry.sensitive
    return {
        "name": CRITERIA[name].title(spec),
        "about": about if isinstance(about, str) else ", ".join(about),
        "safe": entry.safe,
        "asked": asked,
        "found": found,
        "worst_group": group_name(closest(facts), bucketized),
    }


def group_name(entry: dict[str, Any], bucketized: bool) -> str:
    """Return where a reader finds the worst group of a criterion: by its labels if they may be shown, by its rows in
    the release, or by its number in the column `group` of a bucketized one. Empty for one that judges no groups.

    >>> group_name({"worst_group": 3, "worst_rows": [21, 25]}, False), group_name({"worst_group": 3}, True)
    ('rows 21 to 25 of the release', 'group 3')
    """
    if "worst_labels" in entry:
        labels = entry["worst_labels"].items()
        return ", ".join(f"{column} {'missing' if label is None else label}" for column, label in labels)
    if "worst_rows" in entry:
        first, last = entry["worst_rows"]
        return f"row {first:,} of the release" if first == last else f"rows {first:,} to {last:,} of the release"
    if entry["worst_group"] is None:
        return ""
    return f"group {entry['worst_group']}" if bucketized else f"#{entry['worst_group']:,}"


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
        listed.append(other_rows(others))
    return ", ".join(listed)


def other_rows(others: dict[str, Any]) -> str:
    """Return in words the rows that are not used because another one of the same individual is."""
    which = "earlier" if others["keep"] == "last" else "later"
    return f"{counted(others['rows'], f'{which} row')} of {counted(others['individuals'])}"


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


def aggregated(utility: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield for each column of means or rounded numbers the share of the variance that is lost, and its meaning."""
    for name, facts in utility.get("aggregated", {}).items():
        words = f"of the variance of {name} is lost; its values change by {figure(facts['mean_change'])} on average"
        withheld = facts.get("withheld", 0)
        more = f"; {counted(withheld, 'value')} withheld, in groups with too few for a mean" if withheld else ""
        yield percent(min(facts["variance_lost"], 1.0)), words + more


def predicted(found: dict[str, Any]) -> dict[str, str]:
    """Return what was predicted from what, and how it was tested, in words."""
    tested = counted(found["tested"], "row")
    missing = found["tested"] - found["matched"]
    rest = f"; {missing:,} of them are not in the release" if missing else ""
    return {
        "column": found["column"],
        "features": ", ".join(found["features"]),
        "tested": f"tested on {tested} of the source that were held out{rest}",
        "majority": f"always predicting the most frequent of {found['classes']:,} values: {percent(found['majority'])}",
    }


def least_loss(bound: dict[str, Any]) -> str:
    """Return the lower bound of the loss in words."""
    whole = bound["sample"] == bound["individuals"]
    about = "" if whole else f" (estimated from {bound['sample']:,} of {bound['individuals']:,} individuals)"
    least = "at least" if whole else "at least about"
    return f"{least} {percent(bound['all'])} are lost by every release with k = {bound['k']:,}{about}"


def guard_words(guard: dict[str, Any]) -> list[tuple[str, str]]:
    """Return figures about a guard and their meanings."""
    every = sum(guard["individuals"].values()) + guard["unbounded"]
    found = []
    for count, people in guard["individuals"].items():
        factor = figure(guard["skip"] ** -int(count))
        words = f"of {counted(every)}: what was not cut multiplies the odds of a value by at most {factor}"
        found.append((f"{people:,}", words if int(count) else f"of {counted(every)}: what was not cut reveals nothing"))
    if guard["unbounded"]:
        above = f"{guard['below']:,} or more, which toss no coins"
        words = f"of {counted(every)}: no bound, because cuts that divide them were refused in groups of {above}"
        found.append((f"{guard['unbounded']:,}", words))
    return found
