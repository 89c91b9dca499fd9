"""Downcoding (Cohen: Attacks on Deidentification's Defenses, USENIX Security 2022): what the absence of a cut says
about the values behind a generalized label, to somebody who knows how the partition search works.

Before a node of the tree becomes a group, every boundary between two values of every column that is cut freely has been
tried (search/partition/decide.py), whatever the order in which it prefers them. If the only criteria are minimum sizes,
k, a cut was refused because one side has fewer than k people. So let v_1 <= ... <= v_n be the values of a group of
n >= 2k in such a column: v_i = v_(i+1) for i = k, ..., n - k, or the cut between them would have been made. That is,
n - 2(k - 1) people share one exact value, whatever the label: of a group of 80 with k = 5 at least 90%.

>>> forced(np.array([9, 10, 16, 80]), 5).tolist()
[0, 2, 8, 72]

A hierarchy is split into all children of its node at once, so a refusal says only that a child has people, but fewer
than k. With c children the largest then has at least (n - k + 1) / (c - 1) people, which share its label: nearly all
of them where there are two children.

>>> forced(np.array([9, 20, 20]), 5, np.array([2, 2, 5])).tolist()
[0, 16, 4]

If splits are peeled (`peel: true`), a child of k or more leaves unless fewer than k would stay behind. So either one
child has all but k - 1, or every child has fewer than k: n people in c children are more than that if n > c (k - 1).

>>> forced(np.array([20, 20]), 5, np.array([4, 5]), peel=True).tolist()
[16, 4]

With public cuts (`prefer: public`) a cell has one cut, the median of the whole table: it has two children too. Where
coins are tossed (`guard`), that no cut was made proves nothing, and nobody is forced.

Labels that are tight (`labels: tight`) say no less: the same cuts were tried. In a column with more values than codes
the people share a code, which is a bin of values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anon.config import Config, Partition
from anon.config.criteria.group_size import GroupSize
from anon.config.criteria.k_anonymity import KAnonymity
from anon.config.examined import not_about_sizes
from anon.config.support import exact_labels
from anon.core.arrays import Flags, Ints
from anon.core.phrases import percent
from anon.recoding.assignment import Assignment
from anon.recoding.levels import AnyRecoding
from anon.recoding.refined import RefinedRecoding
from anon.recoding.tree import Recoding
from anon.risk.overview import Attack

NAME = "downcoding"
ASSUMES = "knows the config and how the search works"
SHARES = (50, 90)  # percent of a group that share a value
HELPS = "`guard` of the partition search, which passes over safe cuts at random, or a hierarchy for the column"


def forced(people: Ints, k: int, children: Ints | None = None, peel: bool = False) -> Ints:
    """Return the number of people of each group who must share one value of a column that is cut freely, or one child
    of the label of a hierarchy with a number of `children`; 0 where nothing follows. `peel`: splits are peeled."""
    if children is None:
        share = people - 2 * (k - 1)
    elif peel:
        share = np.where(people > children * (k - 1), people - k + 1, -(-people // np.maximum(children, 1)))
    else:
        share = -(-(people - k + 1) // np.maximum(children - 1, 1))
    return np.where(people >= 2 * k, share, 0)


@dataclass
class ForcedCells:
    """The generalized cells of a release, counted in individuals, and those that are forced to a share of SHARES."""

    generalized: int
    at_least: dict[int, int]
    individuals: int  # with a cell in which at least half of their group must share a value
    largest: float


def forced_cells(recoding: Recoding, k: int, method: Partition) -> ForcedCells:
    """Count the generalized cells of a tree of cuts that was made with minimum sizes alone."""
    people, public, certain = recoding.people, method.prefer == "public", _without_coins(recoding.people, method)
    found = ForcedCells(0, dict.fromkeys(SHARES, 0), 0, 0.0)
    half: Flags = np.zeros(len(people), bool)
    for domain, labels in zip(recoding.domains, recoding.labels):
        several = ~labels.single
        children = np.full(len(people), 2) if public else None
        if domain.tree is not None and domain.by_nodes:
            children = np.diff(domain.tree.child_start)[domain.tree.common(labels.low, labels.high)]
        share = np.where(several & certain, forced(people, k, children, method.peel), 0)
        found.generalized += int(people[several].sum())
        for percentage in SHARES:
            found.at_least[percentage] += int(people[_reaches(share, people, percentage)].sum())
        half |= _reaches(share, people, SHARES[0])
        found.largest = max(found.largest, float((share / people).max(initial=0.0)))
    found.individuals = int(people[half].sum())
    return found


def _without_coins(people: Ints, method: Partition) -> Flags:
    """Return in which groups every cut that was possible was made: those that toss no coins."""
    if method.guard is None:
        return np.ones(len(people), bool)
    return people >= (np.inf if method.guard.limit is None else method.guard.limit)


def _reaches(share: Ints, people: Ints, percentage: int) -> Flags:
    reached: Flags = 100 * share >= percentage * people
    return reached


def downcoding(config: Config, recoding: AnyRecoding | Assignment) -> Attack:
    """Return what the absence of cuts gives away."""
    if why := _not_applicable(config, recoding):
        return Attack(NAME, ASSUMES, why)
    assert isinstance(recoding, Recoding)
    k = max(spec.k for spec in config.privacy if isinstance(spec, KAnonymity | GroupSize))
    assert isinstance(config.method, Partition)
    cells = forced_cells(recoding, k, config.method)
    counts = {f"at_least_{share}": cells.at_least[share] for share in SHARES}
    words = ", ".join(f"{count:,} to at least {percent(share / 100)}" for share, count in cells.at_least.items())
    return Attack(
        NAME,
        ASSUMES,
        f"of {cells.generalized:,} generalized cells, those forced to one value or finer label: {words} of their group",
        HELPS if cells.individuals else "",
        cells.individuals,
        cells.largest,
        exact=True,
        details={"cells": {"generalized": cells.generalized, **counts}},
    )


def _not_applicable(config: Config, recoding: AnyRecoding | Assignment) -> str:
    """Return why nothing follows from the cuts that were not made, or why it is not counted here; nothing if it is."""
    if exact_labels(config):
        return "not applicable: quasi-identifiers are published as they are"
    if isinstance(recoding, RefinedRecoding):
        return "not examined: groups were divided anew after the cuts, so that these do not decide who is in which"
    if not isinstance(recoding, Recoding):
        return f"not examined: the argument is about the cuts of partition, not about {config.method.kind}"
    if recoding.reused:
        return "not applicable: the cuts are those of an earlier run, and say nothing about these rows"
    if others := not_about_sizes(config):
        return f"not counted: cuts may have been refused by {', '.join(others)}; minimality examines these"
    return ""
