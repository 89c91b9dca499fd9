"""Put into words what several releases reveal together, for the terminal, the page and the warning."""

from __future__ import annotations

from typing import Any

from anon.core.phrases import counted, percent
from anon.report.warnings import Warned

Facts = dict[str, Any]


def figures(facts: Facts) -> list[tuple[str, str]]:
    """Return the figures with their meanings."""
    if not facts["individuals"]:
        adds = f"individuals{_of_sample(facts)} are in two of the {facts['releases']} releases"
        return [("0", f"{adds}, as far as they can be recognized")]
    both = f"individuals{_of_sample(facts)} are in at least two of the {facts['releases']} releases"
    found = [
        (f"{facts['individuals']:,}", both),
        (f"{facts['one_value']:,}", "of these are left with one possible value for anyone holding them"),
        (f"{facts['two_values']:,}", "are left with two possible values"),
    ]
    if facts["largest_belief"] is not None:
        found.append((percent(facts["largest_belief"]), f"{_belief(facts)} in a value of somebody"))
    if facts["over"]:
        surely = "" if facts["exact"] else f" ({facts['certainly_over']:,} for certain, the others by the estimate)"
        found.append((f"{facts['over']:,}", f"individuals about whom a belief passes what the criteria allow{surely}"))
    if facts["contradictory"]:
        found.append(
            (f"{facts['contradictory']:,}", "individuals in groups that contradict each other: values changed")
        )
    return found


def _of_sample(facts: Facts) -> str:
    """Return in which groups the individuals are that were looked at, if these are not all."""
    if "groups_examined" not in facts:
        return ""
    return f" in a sample of {facts['groups_examined']:,} of {counted(facts['groups'], 'group')}"


def _belief(facts: Facts) -> str:
    if facts["exact"]:
        return "largest belief"
    bounds = f"between {percent(facts['at_least'])} and {percent(facts['at_most'])} for certain"
    return f"largest belief, estimated ({bounds})"


def warning_text(facts: Facts, use: str) -> str:
    """Return the warning of a release that replaces another, which begins with the individuals in both; `use` is what
    anyone holding both can do with them."""
    belief = facts["largest_belief"]
    sure = "" if belief is None else f", and a belief of {'' if facts['exact'] else 'about '}{percent(belief)}"
    return (
        f"individuals{_of_sample(facts)} are also in the release that this one replaces: "
        f"anyone holding both can {use}, which leaves "
        f"{facts['one_value']:,} of them with one possible value and {facts['two_values']:,} with two{sure}"
    )


def left_open(facts: Facts) -> list[Facts]:
    """Return the warnings about what a comparison could not judge."""
    texts = {
        "nobody_recognized": "individuals are in two of the releases: if these are about the same people, ids were "
        "changed, and nothing was compared",
        "contradictory_values": "individuals are in groups that contradict each other: a value was changed, or an id "
        "is of somebody else, so that nothing is known about them",
        "rows_not_compared": "rows are like others in their quasi-identifiers: whose they are in the other releases is "
        "not known, and they were not compared",
        "beliefs_left_open": "individuals about whom a belief may pass what the criteria allow: the bounds leave it "
        "open, and the estimate does not pass it",
    }
    found = {
        "contradictory_values": facts["contradictory"],
        "rows_not_compared": facts["not_compared"],
        "beliefs_left_open": 0 if facts["over"] else facts["possibly_over"],
    }
    counts = [(code, count) for code, count in found.items() if count]
    counts += [] if facts["individuals"] else [("nobody_recognized", 0)]
    return [Warned(code, count, texts[code]).to_dict() for code, count in counts]
