"""Who may have which published row of a series, over all ways to give every row to another person who fits it: each
link and each person is tried alone. Nothing of the engine is used."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any


def fits(label: str, value: Any) -> bool:
    """Return whether the label of a number, or of a text of digits, covers a value."""
    if label == "*":
        return True
    if isinstance(value, str):
        return len(label) == len(value) and all(a in ("*", b) for a, b in zip(label, value))
    if label[:2] in ("<=", ">="):
        return value <= int(label[2:]) if label[0] == "<" else value >= int(label[2:])
    low, _, high = label.partition("-")
    return int(low) <= value <= int(high or low)


def covers_all(links: Sequence[set[Hashable]], without: Hashable = None) -> bool:
    """Return whether every row, given with the people who fit it, can have a person of its own."""
    owner: dict[Hashable, int] = {}

    def place(row: int, tried: set[Hashable]) -> bool:
        for person in links[row] - tried - {without}:
            tried.add(person)
            if person not in owner or place(owner[person], tried):
                owner[person] = row
                return True
        return False

    return all(place(row, set()) for row in range(len(links)))


def certain(links: Sequence[set[Hashable]]) -> set[Hashable]:
    """Return the people without whom the rows cannot all be somebody's."""
    return {person for person in set().union(*links) if not covers_all(links, person)}


def possible(links: Sequence[set[Hashable]]) -> set[tuple[int, Hashable]]:
    """Return the pairs of a row and a person that occur in some way to give out all rows."""
    found = set()
    for row, people in enumerate(links):
        for person in people:
            others = [own if at != row else {person} for at, own in enumerate(links)]
            if covers_all(others):
                found.add((row, person))
    return found
