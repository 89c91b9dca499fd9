"""The criteria of a run as sentences: what was asked for and what was found, from what report.json holds of both. The
page begins with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from anon.core.phrases import below, counted, figure, percent

Spec = dict[str, Any]


def promises(report: dict[str, Any]) -> list[dict[str, Any]]:
    """One for each criterion: its name, whether it holds, what it says and what was found."""
    specs = [next(iter(item.items())) for item in report["privacy"]]
    return [_promise(name, spec, entry) for (name, spec), entry in zip(specs, report["summary"]["criteria"])]


def _promise(name: str, spec: Spec, entry: dict[str, Any]) -> dict[str, Any]:
    asked, found = SENTENCES[name](spec, entry)
    called = f"{name} {entry['kind']}" if "kind" in entry else name
    about = entry.get("sensitive", [])
    return {
        "name": called.replace("_", "-") if name != "l_diversity" else f"{spec['kind']} l-diversity",
        "about": about if isinstance(about, str) else ", ".join(about),
        "safe": entry["safe"],
        "asked": asked,
        "found": found,
        "worst_group": closest(entry)["worst_group"],
    }


def closest(entry: dict[str, Any]) -> dict[str, Any]:
    """What is closest to its bound, or furthest beyond it: of a skyline one of its points, with the names of the entry
    of a criterion; of others that entry."""
    points: list[dict[str, Any]] = entry.get("points", [])
    if not points:
        return entry
    worst = worst_first(points)[0]
    return worst | {"figure": worst["breach"], "bound": worst["c"]}


def worst_first(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Points of skylines, those that fail first, and then by the share of their bound that is reached."""
    return sorted(points, key=lambda p: (p["safe"], -p["breach"] / p["c"]))


REASONS = {
    "null_quasi_identifiers": "without a quasi-identifier",
    "null_sensitive": "without a sensitive value",
    "suppressed": "suppressed",
}


def reasons(counts: dict[str, int]) -> str:
    """Return why rows or individuals are left out, in words.

    >>> reasons({"all": 5, "null_quasi_identifiers": 3, "null_sensitive": 0, "suppressed": 2})
    '3 without a quasi-identifier, 2 suppressed'
    """
    return ", ".join(f"{counts[name]:,} {words}" for name, words in REASONS.items() if counts[name])


def left_out(found: dict[str, dict[str, int]]) -> list[tuple[int, str, str]]:
    """Return how many are not in a release, of what, and why: individuals, then rows where their counts differ."""
    kinds = [kind for kind in ("individuals", "rows") if kind in found]
    if len(kinds) == 2 and found["rows"] == found["individuals"]:
        kinds.pop()
    return [(found[kind]["all"], kind.removesuffix("s"), reasons(found[kind])) for kind in kinds]


def left_out_words(found: dict[str, dict[str, int]]) -> str:
    """Return what is not in a release in one phrase, empty if nothing is missing."""
    listed = [f"{counted(count, what)} left out ({why})" for count, what, why in left_out(found) if count]
    return ", ".join(listed)


def knowledge(point: dict[str, Any]) -> str:
    """What an adversary of a skyline point knows, in words."""
    parts = []
    if point["l"]:
        parts.append(f"{counted(point['l'], 'value')} that the person does not have")
    if point["k"]:
        parts.append("the value of 1 other person" if point["k"] == 1 else f"the values of {point['k']:,} other people")
    if point["m"]:
        one = "1 relative" if point["m"] == 1 else f"{point['m']:,} relatives, any"
        parts.append(f"{one} of whom having the value would mean that the person has it")
    return _listed(parts) if parts else "nothing but the group that the person is in"


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _skyline(spec: Spec, entry: dict[str, Any]) -> tuple[str, str]:
    points = entry["points"]
    distinct = {(p["l"], p["k"], p["m"], p["c"]) for p in points}
    if not points:
        return "No value is to be protected.", "Nothing was to be checked."
    worst = closest(entry)
    if len(distinct) == 1:
        asked = f"Somebody who knows {knowledge(worst)} stays less than {percent(worst['c'])} sure of every value."
    else:
        values = counted(len({point["value"] for point in points}), "value")
        asked = (
            f"Somebody with the knowledge of {len(distinct):,} different points stays less sure of {values} than each "
            "point allows. They are listed below."
        )
    if "exempt" in entry:
        asked += f" Not protected, as the config says: {_listed(entry['exempt'])}."
    return asked, (
        f"Closest: {worst['value']}, of which one who knows {knowledge(worst)} can be "
        f"{below(worst['breach'], worst['c'])} sure; allowed is less than {percent(worst['c'])}."
    )


def _l_diversity(spec: Spec, entry: dict[str, Any]) -> tuple[str, str]:
    column, l, found = entry.get("sensitive", "the sensitive column"), figure(spec["l"]), figure(entry["figure"])
    if spec["kind"] == "distinct":
        return f"Every group has at least {l} different values of {column}.", f"The least diverse group has {found}."
    if spec["kind"] == "frequency":
        asked = f"No value of {column} has more than one in {l} of any group."
        return asked, f"The largest share is {percent(float(entry['figure']))}."
    if spec["kind"] == "entropy":
        asked = f"The values of {column} in every group are as mixed as {l} equally frequent ones."
        return asked, f"The least mixed group is as mixed as {found}."
    asked = (
        f"In every group the most frequent value of {column} counts less than {figure(spec['c'])} times what is left "
        f"without the {max(int(spec['l']) - 1, 1)} most frequent."
    )
    return asked, f"At most it counts {found} times as much."


def _column(entry: dict[str, Any]) -> str:
    about = entry.get("sensitive", "the sensitive column")
    return about if isinstance(about, str) else ", ".join(about)


SENTENCES: dict[str, Callable[[Spec, dict[str, Any]], tuple[str, str]]] = {
    "k_anonymity": lambda s, e: (
        f"Everybody has the same published labels as at least {int(s['k']) - 1:,} others.",
        f"The smallest class has {figure(e['figure'])} individuals.",
    ),
    "group_size": lambda s, e: (
        f"Every group has at least {counted(int(s['k']))}.",
        f"The smallest has {figure(e['figure'])}.",
    ),
    "l_diversity": _l_diversity,
    "skyline": _skyline,
    "ck_safety": lambda s, e: (
        f"Somebody with any {counted(int(s['k']), 'piece')} of knowledge of the form “if this person has this value, "
        f"then that one has that” stays less than {percent(float(s['c']))} sure of anybody’s {_column(e)}.",
        f"At most they can be {percent(float(e['figure']))} sure.",
    ),
    "dissimilarity": lambda s, e: (
        f"At most {percent(1 - float(s['delta']))} of the others in a group have a {_column(e)} within "
        f"{figure(s['epsilon'])} of anybody’s, and every group has at least {counted(int(s['k']))}.",
        f"The largest share is {percent(float(e['figure']))}.",
    ),
    "r_robustness": lambda s, e: (
        f"Somebody who knew beforehand how frequent the values of {_column(e)} are ends up at most "
        f"{percent(1 / float(s['r']))} sure.",
        f"At most they can be {percent(float(e['figure']))} sure.",
    ),
    "t_closeness": lambda s, e: (
        f"The values of {_column(e)} are spread in every group as in the whole release, up to a distance of "
        f"{figure(s['t'])}.",
        f"The largest distance is {figure(e['figure'])}.",
    ),
    "alpha_k": lambda s, e: (
        f"No {'value' if s.get('values') is None else 'named value'} of {_column(e)} has more than "
        f"{percent(float(s['alpha']))} of any group, and every group has at least {counted(int(s['k']))}.",
        f"The largest share is {percent(float(e['figure']))}.",
    ),
    "epsilon_m": lambda s, e: (
        f"At most one in {int(s['m']):,} of a group has a {_column(e)} within {figure(s['epsilon'])} of anybody’s.",
        f"The largest share is {percent(float(e['figure']))}.",
    ),
    "k_e": lambda s, e: (
        f"Every group has at least {int(s['k']):,} different values of {_column(e)}, which span at least "
        f"{figure(s['e'])}.",
        f"The least that was found: {figure(e['figure'])}.",
    ),
    "variance": lambda s, e: (
        f"The variance of {_column(e)} is at least {figure(s['minimum'])} in every group.",
        f"The smallest is {figure(e['figure'])}.",
    ),
}
