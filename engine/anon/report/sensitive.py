"""What the report tells of the sensitive columns, after verify in the way of the data: how sure somebody is of a value
who finds the group of a person, and how much more they may know. The histograms of the written files are streamed once
more for it; what is kept of them does not grow with the groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anon.criteria import Groups, Ints, Skyline
from anon.database import translated
from anon.explore.sections import sections
from anon.grouped import Grouped, Reading, histograms
from anon.report.facts import Names
from anon.verify import Findings

PERCENT = 100
LISTED = 200  # values of a column that are told one by one
DRAWN = 6  # of these whose knowledge skylines are told
CONFIDENCES = 3  # of the config at which they are
USUAL = [Fraction(1, 2), Fraction(3, 4)]  # where it has none
ALMOST = Fraction(95, 100)


class Tally:
    """Of one sensitive column: per whole percent, rounded down, the groups whose most frequent value has this share of
    the individuals, and those individuals; per value its largest share in any group."""

    def __init__(self, values: int) -> None:
        self.groups: Ints = np.zeros(PERCENT + 1, np.int64)
        self.individuals: Ints = np.zeros(PERCENT + 1, np.int64)
        self.highest: NDArray[np.float64] = np.zeros(values)

    def add(self, groups: Groups) -> None:
        most = np.maximum.reduceat(groups.count, groups.start[:-1])
        percent = most * PERCENT // groups.n
        self.groups += np.bincount(percent, minlength=PERCENT + 1)
        np.add.at(self.individuals, percent, groups.n)
        np.maximum.at(self.highest, groups.value, groups.count / np.repeat(groups.n, np.diff(groups.start)))

    def passing(self, batches: Iterable[Groups]) -> Iterator[Groups]:
        """The same batches, each counted on its way."""
        for groups in batches:
            self.add(groups)
            yield groups


def sensitive_columns(found: Findings, names: Names) -> list[dict[str, Any]]:
    """The facts about each sensitive column of a table that was examined."""
    table = found.table
    assert table is not None
    with translated("reading it back"):
        return [_facts(table, column, found, names) for column in table.sensitive]


def _facts(table: Grouped, column: str, found: Findings, names: Names) -> dict[str, Any]:
    """A multiset does not tell who has its values: there is no share of individuals with one."""
    tally, name = Tally(len(found.values[column])), partial(names.of_value, column)
    batches: Iterable[Groups] = histograms(table, Reading((column,)))
    shares = table.multiplicity != "multiset"
    codes = _most_telling(column, found, names)
    confidences = _confidences(column, found)
    counted = tally.passing(batches) if shares else batches
    knowledge = sections(counted, codes[:DRAWN], confidences, table.multiplicity, name)
    values = []
    for code in codes[:LISTED]:
        told: dict[str, Any] = {"value": name(code), "individuals": found.frequency[column][code]}
        values.append(told | ({"highest": float(tally.highest[code])} if shares else {}))
    largest = {"groups": tally.groups.tolist(), "individuals": tally.individuals.tolist()}
    return {
        "column": column,
        "distinct": len(found.values[column]),
        "values": values,
        **({"largest_share": largest} if shares else {}),
        "knowledge": knowledge,
    }


def _most_telling(column: str, found: Findings, names: Names) -> list[int]:
    """The codes of the values that the config names, then of the others, the most frequent first; those that a skyline
    criterion exempts come after all that one protects."""
    frequency = np.array(names.frequency[column], np.int64)
    unnamed = np.array([value not in names.shown for value in names.values[column]], bool)
    exempt = np.zeros(len(frequency), bool)
    for criterion in _skylines(column, found):
        exempt[:] = True
        exempt[[slot.value for slot in criterion.slots]] = False
    return np.lexsort((-frequency, unnamed, exempt)).tolist()


def _skylines(column: str, found: Findings) -> list[Skyline]:
    return [each for each in found.criteria if isinstance(each, Skyline) and each.column == column]


def _confidences(column: str, found: Findings) -> list[Fraction]:
    """Those of the config's points for a column, as far as they are few, and one that is almost certain."""
    asked = sorted({slot.point.c for each in _skylines(column, found) for slot in each.slots} - {ALMOST})
    return [*(asked or USUAL)[:CONFIDENCES], ALMOST]
