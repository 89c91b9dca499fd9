"""Composition for the overview of attacks: what somebody learns who also holds the release that a run replaces
(`together` has the mathematics)."""

from __future__ import annotations

from typing import Any

from anon.core.phrases import counted
from anon.risk.overview import Attack, sampled

NAME = "composition"
ASSUMES = "holds the earlier release as well, and knows everybody's quasi-identifiers and who is in which release"
HELPS = "a series (`release.series`), whose parts are safe together"


FIRST = "nothing to compose: no other release was in this place"
PART = "nothing to compose: nobody is in two parts of a series"
UNKNOWN = "not examined: no earlier release in this place whose run folder says who is in which group"


def composition(together: dict[str, Any], bound: float | None, alone: str = "") -> Attack:
    """Return the attack, given what both releases reveal together, or nothing. `bound` is the lowest promise, `alone`
    why there is no release to compose with, if that is known."""
    if not together and alone:
        return Attack(NAME, ASSUMES, alone, individuals=0, bound=bound, exact=True)
    if not together:
        return Attack(NAME, ASSUMES, UNKNOWN)
    sample, facts = sampled(together.get("groups_examined", 0), together.get("groups", 0))
    words = f"{counted(together['one_value'])} left with one possible value, {together['two_values']:,} with two"
    if together["over"]:
        words += f"; {counted(together['over'])} about whom a belief passes what is promised"
    return Attack(
        NAME,
        ASSUMES,
        f"of {counted(together['individuals'])} in both releases{sample}: {words}",
        HELPS if together["over"] or together["one_value"] else "",
        max(together["over"], together["one_value"]),
        together["largest_belief"],
        bound,
        exact=bool(together["exact"]),
        breached=together["over"] > 0,
        details=facts,
    )
