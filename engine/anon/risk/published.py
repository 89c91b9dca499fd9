"""Attacks that need nothing but the published table, for the overview: homogeneity, elimination of one value, and kept
columns that the adversary knows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from anon.core.phrases import counted, percent
from anon.criteria.protocol import Groups
from anon.risk.attacks import eliminated, homogeneous, largest_counts
from anon.risk.overview import Attack, Promise
from anon.verify.grouped import Grouped, Reading
from anon.verify.histograms import histograms

ALMOST = Fraction(95, 100)  # a value is nearly certain


class SharesOfValues:
    """What the shares of the values of groups give away, added up over batches of groups."""

    def __init__(self, promise: Promise, multiplicity: str) -> None:
        self.promise, self.multiplicity = promise, multiplicity
        self.certain = self.above = self.eliminated = 0  # individuals
        self.largest = self.after = 0.0

    def add(self, groups: Groups) -> None:
        self.certain += int(groups.n[homogeneous(groups, Fraction(1), self.multiplicity)].sum())
        if self.multiplicity == "multiset":  # shares of values are no probabilities there
            return
        owner = np.repeat(np.arange(len(groups)), np.diff(groups.start))
        share = groups.count / groups.n[owner]
        above = np.zeros(len(groups), bool)
        above[owner[self.promise.exceeded(share, groups.value)]] = True
        self.above += int(groups.n[above].sum())
        self.largest = max(self.largest, float(share.max(initial=0.0)))
        if self.multiplicity == "single":
            self.eliminated += int(groups.n[eliminated(groups, ALMOST, 1)[1]].sum())
            top = largest_counts(groups, 2)
            self.after = max(self.after, float((top[:, 0] / (groups.n - top[:, 1])).max(initial=0.0)))

    def attacks(self, column: str) -> list[Attack]:
        single, several = self.multiplicity == "single", self.multiplicity == "multiset"
        words = f"{counted(self.certain)} in groups with one value of {column}"
        first = Attack(
            "homogeneity",
            "knows who is in a group",
            words,
            "l_diversity or skyline" if self.certain else "",
            self.certain,
            None if several else self.largest,
            self.promise.lowest,
            exact=True,
            breached=self.above > 0,
            sensitive=column,
        )
        if not single:
            return [first]
        words = f"{counted(self.eliminated)} whose value is then at least {percent(float(ALMOST))} certain"
        return [first, Attack(
            "elimination",
            "also knows one value that a person does not have, in the worst case for the person",
            words,
            "a skyline point with l = 1, or a larger l of l_diversity" if self.eliminated else "",
            self.eliminated,
            self.after,
            exact=True,
            sensitive=column,
        )]  # fmt: skip


def shares_of_values(table: Grouped, column: str, promise: Promise) -> list[Attack]:
    """Return the attacks of homogeneity and elimination on a column of a table."""
    found = SharesOfValues(promise, table.multiplicity)
    for groups in histograms(table, Reading((column,))):
        found.add(groups)
    return found.attacks(column)


def kept_columns(with_kept: dict[str, dict[str, float]], together: dict[str, float], individuals: int) -> list[Attack]:
    """Return what an adversary achieves who knows the kept columns, if there are any; given the facts about each, and
    about all of several."""
    if not with_kept:
        return []
    facts = together or next(iter(with_kept.values()))
    unique, certain = (round(facts[name] * individuals) for name in ("unique_share", "homogeneous_share"))
    return [Attack(
        "kept_columns",
        f"also knows {'all kept columns' if together else next(iter(with_kept))} of a person",
        f"{counted(unique)} unique in their group, {counted(certain)} whose value is then certain",
        "aggregate, round or drop kept columns" if unique or certain else "",
        max(unique, certain),
        1 / facts["smallest_group"],
        exact=True,
    )]  # fmt: skip
