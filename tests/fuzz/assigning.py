"""Merge and colour on a case. They are heuristics: what they find is compared with the definitions of the criteria,
what they refuse with what their docs promise to find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from anon.errors import UnsafeError
from tests.fuzz import engine
from tests.fuzz.cases import Case
from tests.oracles import criteria as oracle

FEW = 6  # people of a table of which all groupings are looked at


def differences(case: Case, folder: Path) -> list[str]:
    """Return what is wrong with the groups that were found, or with the refusal."""
    given = engine.opened(case, folder)
    criteria = case.criteria()
    try:
        outcome = engine.searched(case, given, folder)
    except UnsafeError as error:
        return refusal(case, criteria, str(error))
    groups, wrong = _groups(case, given, outcome.recoding)
    return wrong or [f"{each.name} does not hold" for each in criteria if not each.holds(groups)]


def _groups(case: Case, given: engine.Opened, assignment: Any) -> tuple[list[oracle.Group], list[str]]:
    """Return the groups as people, any with the codes of each entry, and a message unless all people are in one."""
    (name,) = case.sensitive
    codes = given.cube.domain(name).objects
    known: dict[tuple[int, ...], list[int]] = {}
    for number, (own, person) in enumerate(zip(given.codes, case.people)):
        known.setdefault((*own, codes.index(person[name])), []).append(number)
    went: Counter[tuple[tuple[int, ...], int]] = Counter()
    for batch in assignment.batches():
        for *own, group, people in zip(*(column.to_pylist() for column in batch.columns)):
            went[tuple(own), group] += people
    groups: dict[int, list[int]] = {}
    for (own, group), people in went.items():
        if len(known.get(own, [])) < people:
            return [], ["people in groups who are not in the table"]
        groups.setdefault(group, []).extend(known[own].pop() for _ in range(people))
    if any(known.values()):
        return [], [f"{sum(map(len, known.values()))} people in no group"]
    if sorted(groups) != list(range(assignment.groups)):
        return [], ["groups without people"]
    return [tuple(sorted(group)) for group in groups.values()], []


def refusal(case: Case, criteria: Sequence[oracle.Criterion], said: str) -> list[str]:
    """Return what is wrong with a refusal: the table as one group is safe, or the message says that no release is while
    one of all groupings of a small table is."""
    everyone = tuple(range(len(case.people)))
    told = []
    if all(each.holds([everyone]) for each in criteria):
        told.append(f"refused, though the table as one group is safe: {said}")
    if "no release is safe" in said and len(everyone) <= FEW:
        safe = next((groups for groups in groupings(everyone) if all(each.holds(groups) for each in criteria)), None)
        if safe is not None:
            told.append(f"no release is said to be safe, but {safe} is: {said}")
    return told


def groupings(people: Sequence[int]) -> Iterator[list[oracle.Group]]:
    """Yield all partitions of people into groups."""
    if not people:
        yield []
        return
    first, rest = people[0], people[1:]
    for groups in groupings(rest):
        yield [(first,), *groups]
        for at, group in enumerate(groups):
            yield [*groups[:at], (first, *group), *groups[at + 1 :]]
