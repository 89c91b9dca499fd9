"""The overview of attacks as rows of a table, for the terminal and the page."""

from __future__ import annotations

from typing import Any

from anon.core.phrases import percent

HEAD = ("attack", "individuals", "largest", "promised", "exact")


def attack_row(attack: dict[str, Any]) -> tuple[str, str, str, str, str]:
    """Return an attack as a row: its name, the individuals that it affects, the largest confidence that it gives, the
    confidence that the criteria promise, marked if the attack breaks the promise, and whether nothing was estimated.

    >>> facts = {"name": "downcoding", "individuals": 8, "largest": 0.5, "bound": None, "exact": True}
    >>> attack_row(facts)
    ('downcoding', '8', '50%', '', 'yes')
    >>> attack_row(facts | {"name": "minimality", "bound": 0.25, "breached": True})
    ('minimality', '8', '50%', '25%, broken', 'yes')
    """
    name = f"{attack['name']} ({attack['sensitive']})" if attack.get("sensitive") else str(attack["name"])
    if attack["individuals"] is None:
        return name, "not examined", "", "", ""
    largest, bound = ("" if share is None else percent(share) for share in (attack["largest"], attack["bound"]))
    bound += ", broken" if bound and attack.get("breached") else ""
    return name, f"{attack['individuals']:,}", largest, bound, "yes" if attack["exact"] else "no"
