"""The merge search: groups for r-robustness (Wong, Fu, Wang, Xu, Pei, Yu), bottom up. A group is safe if it satisfies
the sound bound of criteria/r_robustness.py: with lam_x the largest over the smallest prior of x among its members,
lam_o the largest such ratio of its other values, and C copies of x among its N people,

    lam_x lam_o <= (N - 1) / (r C - 1)        for every value x that a prior constrains, and every prior.

A *class* is the set of people whom no prior distinguishes. Within a class every lam is 1: classes are the seeds
(seeds.py). The people whom they leave over are merged with those of ever less similar classes (residue.py). Those whom
no group admits form a separate group, which is merged with others until it is safe (mending.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from math import ceil
from typing import Any

import numpy as np

from anon.core.arrays import Ints
from anon.core.progress import ProgressCallback
from anon.criteria.arithmetic import at_most
from anon.cube import Cube
from anon.errors import BlockedByValue
from anon.search.assign.dealing import Dealer, DealtGroups, scales
from anon.search.assign.ordering import OrderedRecords, in_order
from anon.search.assign.residue import People, Placing, cap, pool
from anon.search.assign.seeds import Seeds
from anon.search.budget import SearchBudget
from anon.search.cross_tables import Adversaries, PriorTable

Add = Callable[[Any, Ints, Ints], None]


class MergeSearch:
    """A search over one cube. `least` is the smallest size of a group that other criteria allow. After the search
    `doubtful` has the number of the group of people who could not be placed, if there are any, and `refusal` the
    reason."""

    def __init__(
        self,
        cube: Cube,
        adversaries: Adversaries,
        least: int,
        budget: SearchBudget | None = None,
        on_progress: ProgressCallback = lambda **facts: None,
    ) -> None:
        self.cube, self.adversaries, self.others_least = cube, adversaries, least
        self.budget, self.on_progress, self.domains = budget or SearchBudget(), on_progress, cube.domains
        self.least = max(least, ceil(adversaries.r))
        self.facts: dict[str, Any] = {"algorithm": "bottom-up merging", "group_size": self.least}
        self.doubtful: list[int] = []
        self.refusal: BlockedByValue | None = None

    def run(self, add: Add) -> int:
        """Call `add` with the assignment to groups: codes, group, people. Consumes the records of the cube. Return the
        number of individuals with unique quasi-identifiers."""
        self.refuse_frequent()
        ordered = in_order(self.cube, self.adversaries.classes, self.budget, self.on_progress)
        known, counts = self.adversaries.known(ordered.key), self._counts(ordered)
        ruled_out = known.impossible()
        seeds = self._seeds(np.where(ruled_out, 0, counts), self.adversaries.r)
        left = cap(ordered, counts, seeds.people)
        self.facts |= {"classes": len(counts), "left_by_classes": left.total}
        impossible = left.where(ruled_out[left.own, left.codes[-1]])
        pooled, left = self._pool(known, left.where(~ruled_out[left.own, left.codes[-1]]))
        self.facts |= {"pooled_groups": sum(each.groups for each in pooled), "left_by_pools": left.total}
        every_group = partial(self._dealt, ordered, pooled, seeds)
        into = None
        if left.total or impossible.total:
            placing = Placing(known, left, seeds.largest)
            into, rest = self._place(ordered, placing, every_group(), add)
            if rest.total or impossible.total:
                number, nowhere = int(into.max(initial=-1)) + 1, People.together([rest, impossible], len(left.codes))
                add(nowhere.codes, np.full(len(nowhere.people), number), nowhere.people)
                self.doubtful = [number]
                self.refusal = self._refusal(placing.best, rest, impossible, counts)
        first = 0
        for dealt in every_group():
            group = dealt.group + first
            add(dealt.codes, group if into is None else into[group], dealt.people)
            first += dealt.groups
        ordered.records.close()
        return ordered.unique

    def _seeds(self, counts: Ints, r: Fraction) -> Seeds:
        return Seeds.from_counts(counts, self.adversaries.named, self.others_least, r)

    def _dealt(self, ordered: OrderedRecords, pooled: list[DealtGroups], seeds: Seeds) -> Iterator[DealtGroups]:
        """Yield every group that is made of whole classes, or of people whom similar classes left over."""
        yield from pooled
        for rule, classes in seeds.rules():
            yield from Dealer(ordered, rule, self.domains, self.budget.threads, self.on_progress, classes).run()

    def refuse_frequent(self) -> None:
        """Raise BlockedByValue if a value is too frequent in the table: some group has it with at least the share that
        the table has, and a member of that group a posterior that is no lower."""
        counts = np.where(self.adversaries.named, self.cube.totals[0], 0)
        worst, people = int(counts.argmax()), int(self.cube.totals[0].sum())
        most = int(counts[worst])
        if most * self.adversaries.r_of(worst) > people:
            raise BlockedByValue(
                f"no release is safe: {most:,} of {people:,} individuals ({most / people:.3g} of them) have {{value}}, "
                f"which is a larger share than 1/r; r is {at_most(Fraction(people, most))} at most",
                worst,
            )

    def _counts(self, ordered: OrderedRecords) -> Ints:
        """Return the number of people of each class with each value."""
        values = self.cube.others[0].size
        counts = np.zeros(len(ordered.key) * values, np.int64)
        for codes, people, _, own in ordered.entries(0, int(ordered.marks[-1])):
            counts += np.bincount(own * values + codes[-1], people, len(counts)).astype(np.int64)
        return counts.reshape(-1, values)

    def _pool(self, known: PriorTable, left: People) -> tuple[list[DealtGroups], People]:
        """Return groups of people whom their classes left over, and the people who remain after that."""
        found = list(pool(left, known, self.least, scales(self.domains)))
        return [dealt for dealt, _ in found], found[-1][1] if found else left

    def _place(
        self, ordered: OrderedRecords, placing: Placing, groups: Iterator[DealtGroups], add: Add
    ) -> tuple[Ints, People]:
        """Place the remaining people in groups of others. Return the number that each group has after some of them were
        merged, and the people who could not be placed. The groups are dealt here to choose from, and once more when
        they are added to the assignment."""
        first = 0
        for dealt in groups:
            placing.keep(dealt, np.searchsorted(ordered.key, self.adversaries.classes(dealt.codes[:-1])), first)
            first += dealt.groups
        joined, merged, rest = placing.run()
        into = np.arange(first)
        for one, others in merged:
            into[others] = one
        while (into[into] != into).any():
            into = into[into]
        self.facts |= {"merged_groups": int((into != np.arange(first)).sum()), "left_by_places": rest.total}
        into = np.unique(into, return_inverse=True)[1].reshape(-1)
        entry, group = np.array(joined, np.int64).reshape(-1, 2).T
        add(placing.left.codes[:, entry], into[group], np.ones(len(entry), np.int64))
        return into, rest

    def _refusal(self, best: float, rest: People, impossible: People, counts: Ints) -> BlockedByValue:
        people, own = counts.sum(axis=1), np.where(self.adversaries.named, counts, 0)
        left, most = rest.total + impossible.total, own.max(axis=1)
        concerned = np.isin(np.arange(len(most)), np.append(rest.own, impossible.own))
        worst = int(np.argmax(np.where(concerned, most - people / self.least, -np.inf)))
        message = (
            f"no safe release was found by merging: {left:,} of {int(people.sum()):,} individuals could not be "
            f"placed. Of {people[worst]:,} people with one prior, {most[worst]:,} have {{value}}, and groups of others "
            "have priors too different from theirs"
        )
        if best:
            message += f" (the best attempt reaches {best:.3g} of the required bound)"
        if impossible.total:
            message += (
                f"; {impossible.total:,} individuals have a value that a prior says nobody or everybody like them has "
                "(probability 0 or 1), which a prior with smoothing does not say"
            )
        elif (alone := self._without_merging(counts)) is not None:
            message += f"; r = {alone} can be reached without merging different priors"
        else:
            message += "; a prior over fewer attributes, or with more smoothing, distinguishes fewer people"
        return BlockedByValue(message, int(own[worst].argmax()))

    def _without_merging(self, counts: Ints) -> int | None:
        """Return the largest whole r for which no class leaves people over; None if there is none."""
        smaller = range(ceil(self.adversaries.r) - 1, 1, -1)
        return next((r for r in smaller if (self._seeds(counts, Fraction(r)).people == counts).all()), None)
