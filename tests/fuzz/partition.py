"""The partition search on a case against its definition, group by group."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from anon.criteria import bind
from anon.errors import UnsafeError
from anon.search.partition.decide import Rules
from tests.fuzz import engine
from tests.fuzz.cases import Case
from tests.oracles import partition as oracle

Leaves = list[tuple[tuple[Any, ...], list[int]]]


def differences(case: Case, folder: Path) -> list[str]:
    """Return where the result of the search differs from its definition."""
    expected = defined(case, folder)
    given = engine.opened(case, folder)
    try:
        outcome = engine.searched(case, given, folder)
    except UnsafeError as error:
        return [] if expected is None else [f"refused, though {len(expected)} groups are safe: {error}"]
    if expected is None:
        return [f"{outcome.recoding.groups} groups, though no release was to be found"]
    return _compared(case, given, outcome, expected)


def defined(case: Case, folder: Path) -> Leaves | None:
    """Return the groups by the definition of the search, None if it finds none. How many people every safe group has is
    the engine's bound, which decides the order of columns and nothing else."""
    given = engine.opened(case, folder)
    rules = Rules.from_criteria(given.cube, bind(given.config.privacy, given.values), case.method["prefer"])
    criteria = case.criteria()
    monotone = [each for each in criteria if each.monotone]
    others = [each for each in criteria if not each.monotone]
    erratic = oracle.MONOTONE
    if others:
        erratic = oracle.Erratic(
            lambda group: all(each.holds([tuple(group)]) for each in others),
            lambda groups: all(each.holds([*map(tuple, groups)]) for each in others),
            max(each.least for each in others),
        )
    records = [(codes, number) for number, codes in enumerate(case.codes())]
    block, prefer = case.settings.get("block", 10**6), case.method["prefer"]
    return oracle.partition(
        records, case.columns(), lambda groups: all(each.holds([*map(tuple, groups)]) for each in monotone), prefer,
        block, erratic, case.method.get("labels") == "tight", least=rules.demands.least,
        peel=case.method.get("peel", False),
    )  # fmt: skip


def _compared(case: Case, given: engine.Opened, outcome: Any, expected: Leaves) -> list[str]:
    recoding, columns = outcome.recoding, case.columns()
    group = recoding.assign(np.array(given.codes, np.uint16).T.copy()).tolist()
    found: Leaves = []
    for number in range(recoding.groups):
        cells = [tuple(map(int, labels.cells[labels.of_group[number]])) for labels in recoding.labels]
        uncut = tuple(None if cell == column.whole() else cell for cell, column in zip(cells, columns))
        found.append((uncut, [person for person, own in enumerate(group) if own == number]))
    wanted = [(tuple(None if c == o.whole() else c for c, o in zip(cells, columns)), own) for cells, own in expected]
    told = []
    if sorted(own for _, own in found) != sorted(own for _, own in wanted):
        told.append(f"groups of {sizes(found)} people, not of {sizes(wanted)}")
    elif sorted(map(repr, found)) != sorted(map(repr, wanted)):
        told.append("the same groups under other cells")
    if [len(own) for _, own in found] != recoding.people.tolist():
        told.append("other sizes than its groups have")
    if engine.handed_over(outcome) != engine.expected_counts(case, given, group):
        told.append("other sensitive values handed over than its groups have")
    if outcome.unique != sum(given.codes.count(codes) == 1 for codes in given.codes):
        told.append(f"{outcome.unique} people unique before")
    return told


def sizes(leaves: Leaves) -> list[int]:
    return sorted(len(own) for _, own in leaves)
