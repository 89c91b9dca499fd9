"""Compute the facts of the report about sensitive columns: the confidence in a value that finding a person's group
gives, and how much more an adversary may know. The histograms of the written files are streamed once more for this; the
memory used does not grow with the number of groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anon.core.database import translated
from anon.criteria import Groups, Ints, Skyline
from anon.criteria.value_names import Names
from anon.risk.attacks import EliminationCounts
from anon.risk.disclosure import Maxima
from anon.risk.sections import sections
from anon.risk.witness import Name
from anon.verify.grouped import Grouped, Reading
from anon.verify.histograms import histograms
from anon.verify.judge import Findings

PERCENT = 100
LISTED = 200  # values of a column that are listed
DRAWN = 6  # of these, the values whose knowledge skylines are drawn
CONFIDENCES = 3  # of the config at which they are drawn
USUAL = [Fraction(1, 2), Fraction(3, 4)]  # if the config has none
ALMOST = Fraction(95, 100)
PIECES = 8  # of knowledge of the disclosure curve
WORST_CASES = 4  # the first of these, whose worst case is put into words


class Tally:
    """Counts for one sensitive column: per whole percent, rounded down, the groups whose most frequent value has this
    share of the individuals, and those individuals; per value its largest share in any group."""

    def __init__(self, values: int) -> None:
        self.groups: Ints = np.zeros(PERCENT + 1, np.int64)
        self.individuals: Ints = np.zeros(PERCENT + 1, np.int64)
        self.highest: NDArray[np.float64] = np.zeros(values)

    def add(self, groups: Groups) -> None:
        percent = groups.largest * PERCENT // groups.n
        self.groups += np.bincount(percent, minlength=PERCENT + 1)
        np.add.at(self.individuals, percent, groups.n)
        np.maximum.at(self.highest, groups.value, groups.count / np.repeat(groups.n, np.diff(groups.start)))


class AttackCounts:
    """Counts for one sensitive column with one value per individual: what ruling values out adds to homogeneity, and
    the maximum disclosure that pieces of knowledge give."""

    def __init__(self, values: int) -> None:
        self.elimination, self.disclosure = EliminationCounts(values, ALMOST), Maxima(PIECES, values)

    def add(self, groups: Groups) -> None:
        self.elimination.add(groups)
        self.disclosure.add(groups)

    def facts(self, name: Name) -> dict[str, Any]:
        out, curves = self.elimination, self.disclosure.curves()
        counts = zip(out.groups.tolist(), out.individuals.tolist())
        return {
            "elimination": {
                "threshold": float(out.threshold),
                "affected": [{"groups": groups, "individuals": individuals} for groups, individuals in counts],
            },
            "disclosure": {
                "implications": curves.implications,
                "negations": curves.negations,
                "worst": [worst.sentence(name) for worst in curves.worst_implications[:WORST_CASES]],
            },
        }


def _passing(batches: Iterable[Groups], *counters: Tally | AttackCounts) -> Iterator[Groups]:
    """Yield the same batches, each after the counters have seen it."""
    for groups in batches:
        for counter in counters:
            counter.add(groups)
        yield groups


def sensitive_columns(found: Findings, names: Names) -> list[dict[str, Any]]:
    """Return the facts about each sensitive column of a table that was examined."""
    table = found.table
    assert table is not None
    with translated("reading it back"):
        return [_facts(table, column, found, names) for column in table.sensitive]


def _facts(table: Grouped, column: str, found: Findings, names: Names) -> dict[str, Any]:
    """Return the facts about one sensitive column. A multiset does not show who has its values, so for it there is no
    share of individuals with a value."""
    tally, name = Tally(len(found.values[column])), partial(names.of_value, column)
    batches: Iterable[Groups] = histograms(table, Reading((column,)))
    shares = table.multiplicity != "multiset"
    codes = _most_relevant(column, found, names)
    confidences = _confidences(column, found)
    attacks = AttackCounts(len(found.values[column])) if table.multiplicity == "single" else None
    counters: list[Tally | AttackCounts] = [tally] if shares else []
    counters += [attacks] if attacks else []
    knowledge = sections(_passing(batches, *counters), codes[:DRAWN], confidences, table.multiplicity, name)
    values = []
    for code in codes[:LISTED]:
        entry: dict[str, Any] = {"value": name(code), "individuals": found.frequency[column][code]}
        values.append(entry | ({"highest": float(tally.highest[code])} if shares else {}))
    largest = {"groups": tally.groups.tolist(), "individuals": tally.individuals.tolist()}
    return {
        "column": column,
        "distinct": len(found.values[column]),
        "values": values,
        **({"largest_share": largest} if shares else {}),
        **(attacks.facts(name) if attacks else {}),
        "knowledge": knowledge,
    }


def _most_relevant(column: str, found: Findings, names: Names) -> list[int]:
    """Return the codes of the values that the config names, then of the others, the most frequent first; those that a
    skyline criterion exempts come after all that one protects."""
    frequency = np.array(names.frequency[column], np.int64)
    unnamed = np.array([value not in names.shown for value in names.values[column]], bool)
    exempt = np.zeros(len(frequency), bool)
    for criterion in _skylines(column, found):
        exempt[:] = True
        exempt[[slot.value for slot in criterion.slots]] = False
    result: list[int] = np.lexsort((-frequency, unnamed, exempt)).tolist()
    return result


def _skylines(column: str, found: Findings) -> list[Skyline]:
    return [each for each in found.criteria if isinstance(each, Skyline) and each.column == column]


def _confidences(column: str, found: Findings) -> list[Fraction]:
    """Return the first few confidences of the config's points for a column, and one that is almost certain."""
    required = sorted({slot.point.c for each in _skylines(column, found) for slot in each.slots} - {ALMOST})
    return [*(required or USUAL)[:CONFIDENCES], ALMOST]
