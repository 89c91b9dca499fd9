"""Coins against an adversary who knows the algorithm (`guard`): a candidate that is safe is passed over with
probability p. The coin of a candidate is HMAC-SHA256 of the node's cell and the column under a key that stays in the
run folder, so that outsiders cannot compute it and the same run gives the same release.

**Theorem.** Candidates are public (public.py), and the adversary knows all quasi-identifiers, the config and the
release, but not the key. Let G be a group, and let s be the number of candidates that were passed over at the nodes
above G and at G itself, that have members of G in more than one part, and whose parts all have enough people for the
criteria. If all of these tossed coins, the odds of any event about the values in G, given the release, are at most p^-s
times its odds when all worlds that fit the published groups are equally likely (or as likely as a prior that is
independent from group to group says).

*Proof.* Fix all values outside G; the posterior is a mean over these, so a bound that holds for each holds for it. The
probability of a release in a world is the product of its decisions. A candidate that was taken has parts that are
unions of published groups, so it is safe in each of these worlds, and taken with probability 1 - p. A candidate that
was passed over has the factor 1 where it is unsafe and p where it is safe. Its parts depend on the arrangement of
values within G only if G has members in more than one of them, and it is unsafe in all worlds if a part has too few
people. So the likelihoods of two worlds differ by at most p^-s. The state of criteria about all groups together depends
on groups that were accepted, all of them unions of published ones, and is the same in all worlds. Nothing else is
decided by values: a node that is not worth splitting is known by its own counts, which are published or a sum of
published ones. QED

Coins cost detail, most of all in large nodes, whose cuts all others depend on. So a node of at least `below` people
tosses none. A candidate that it passed over is unsafe: in a world where it is safe the release is impossible, so there
is no bound for a group that it could divide (UNBOUNDED).

Cells of a column are nodes of one tree, so G has members on both sides of a candidate exactly if the cell of G in its
column is still that of the node: counts are kept for each column, and begin anew where the cell becomes smaller.

**Enforced.** If `levels` has the criteria with their odds divided by p^-s for s = 1, 2, ..., a candidate at a node with
s counted so far is safe if its parts satisfy the criteria of level s, and the node offers another candidate only if it
satisfies those of level s + 1 itself, which its published counts decide. So every group satisfies the criteria of its
own s, and by the theorem the promised odds hold against this adversary.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from anon.core.arrays import Flags, Ints
from anon.criteria import Criterion
from anon.search.partition.candidates import OpenNodes, Splits
from anon.search.partition.public import PublicCuts

UNBOUNDED = 2**15  # in place of the number of candidates that count, if the odds have no bound
MOST = 12  # levels of enforced criteria


@dataclass(frozen=True)
class Guard:
    """The coins of a search: the key, the probability that a safe candidate is passed over, the number of people from
    which on a node tosses none (None: all do), and if it is enforced the criteria of each level, with their columns."""

    key: bytes = field(repr=False)
    skip: Fraction
    below: int | None = None
    levels: list[list[tuple[Criterion, int]]] = field(default_factory=list)

    def tosses(self, people: Ints) -> Flags:
        """Return which nodes toss coins."""
        return np.ones(len(people), bool) if self.below is None else people < self.below

    def skips(self, low: Ints, high: Ints, column: Ints) -> Flags:
        """Return whether the coin of each candidate says to pass it over, given the cells low..high [candidates,
        columns] of its node."""
        limit = int(self.skip * 2**64)
        text = np.concatenate([low, high, column[:, None]], axis=1).astype("<u4")
        coins = (hmac.digest(self.key, row.tobytes(), "sha256")[:8] for row in text)
        return np.fromiter((int.from_bytes(coin, "big") < limit for coin in coins), bool, len(text))


class PassedOver:
    """The candidates of a level that were offered and count, if their nodes are not split by them or by an earlier
    one."""

    def __init__(self, guard: Guard, public: PublicCuts, nodes: OpenNodes) -> None:
        self.guard, self.nodes = guard, nodes
        self.cells = public.cells(nodes.low, nodes.high)
        self.tossing = guard.tosses(nodes.people)
        self.offered = np.zeros(nodes.low.shape, np.int64)  # what each counts, if it is passed over

    def skips(self, splits: Splits, fine: Flags) -> Flags:
        """Return which of the splits, of those that are fine, are passed over by their coins."""
        found = np.zeros(len(splits), bool)
        at = np.flatnonzero(fine & self.tossing[splits.node])
        low, high = self.cells
        found[at] = self.guard.skips(low[splits.node[at]], high[splits.node[at]], splits.column[at])
        return found

    def offer(self, splits: Splits, undecided: Flags) -> None:
        """Note the splits that the sizes of their parts do not decide."""
        node = splits.node[undecided]
        self.offered[node, splits.column[undecided]] = np.where(self.tossing[node], 1, UNBOUNDED)

    def before(self, splits: Splits) -> Ints:
        """Return for each split the number of candidates that count before it, in other columns."""
        every = self.counted(splits.node)
        every[np.arange(len(splits)), splits.column] = 0
        total: Ints = every.sum(axis=1)
        return total

    def counted(self, which: Ints) -> Ints:
        """Return the numbers [nodes, columns] of candidates that count, for some nodes."""
        found: Ints = self.nodes.passed[which] + self.offered[which]
        return found

    def close(self, chosen: Splits, columns: Ints) -> None:
        """Add what was passed over to the counts of the nodes: all that was offered, or what was offered before the
        chosen split in the order of `columns`."""
        place = np.argsort(columns, axis=1)
        until = np.full(len(self.nodes), columns.shape[1])
        until[chosen.node] = place[chosen.node, chosen.column]
        self.nodes.passed += np.where(place < until[:, None], self.offered, 0)
        np.minimum(self.nodes.passed, UNBOUNDED, out=self.nodes.passed)


def inherit(public: PublicCuts, nodes: OpenNodes, chosen: Splits, children: OpenNodes) -> None:
    """Set the counts of the children of the chosen splits: those of their parents in columns where the cell is the
    same; and up to which level they satisfy the criteria."""
    parent = np.repeat(chosen.node, np.diff(chosen.part_start))
    before, after = public.cells(nodes.low[parent], nodes.high[parent]), public.cells(children.low, children.high)
    same = (before[0] == after[0]) & (before[1] == after[1])
    children.passed, children.slack = np.where(same, nodes.passed[parent], 0), chosen.slack
