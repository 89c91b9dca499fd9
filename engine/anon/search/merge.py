"""The merge search, one of the ways between cube and release (config -> source -> cube -> search -> release -> verify
-> report): groups for r-robustness (Wong, Fu, Wang, Xu, Pei, Yu), bottom up. No group has a value twice, and a group is
safe if it satisfies the sound bound of criteria/r_robustness.py: with lam_x the largest over the smallest prior of x
among its members and lam_o the largest such ratio of its other values,

    lam_x lam_o <= (N - 1) / (r - 1)        for every value x of its N people and every prior.

A *class* are the people whom no prior tells apart. Within a class every lam is 1, so that any N >= r people with
different values are safe: classes are the seeds. In a class with counts c_v, g groups of l = ceil(r) people can be made
iff sum of min(c_v, g) >= l g (deal the values round-robin); the largest such g is used, and of values that more than g
people have the rest is left over. Who is left over is merged with ever less similar classes (residue.py)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np

from anon.cube import Cube
from anon.errors import Blocked, UnsafeError
from anon.progress import Tell
from anon.search.adversaries import Adversaries, Known
from anon.search.dealing import Dealer, Dealt, Rule, scales
from anon.search.means import Means
from anon.search.ordering import Ints, Ordered, in_order
from anon.search.residue import People, Placing, cap, most_groups, pool

Add = Callable[[Any, Ints, Ints], None]


class Merge:
    """One search over one cube. `least` is the fewest people of a group that all criteria allow, and at least r."""

    def __init__(
        self,
        cube: Cube,
        adversaries: Adversaries,
        least: int,
        means: Means | None = None,
        tell: Tell = lambda **facts: None,
    ) -> None:
        self.cube, self.adversaries, self.least = cube, adversaries, least
        self.means, self.tell, self.domains = means or Means(), tell, cube.domains
        self.rule = Rule.distinct(least, cube.others[0].size)
        self.facts: dict[str, Any] = {"algorithm": "bottom-up merging", "group_size": least}

    def run(self, add: Add) -> int:
        """Hands over who goes to which group: codes, group, people. Takes the records of the cube with it. Returns how
        many individuals have quasi-identifiers that nobody shares."""
        self._refuse_frequent()
        ordered = in_order(self.cube, self.adversaries.classes, self.means, self.tell)
        known = self.adversaries.known(ordered.key)
        counts = self._counts(ordered)
        self._refuse_impossible(known, counts)
        left = cap(ordered, counts, most_groups(counts, self.least))
        self.facts |= {"classes": len(counts), "left_by_classes": left.total}
        pooled, left = self._pool(known, left)
        self.facts |= {"pooled_groups": sum(dealt.groups for dealt in pooled), "left_by_pools": left.total}
        into = self._place(ordered, known, pooled, left, counts, add) if left.total else None
        first = 0
        for dealt in chain(pooled, self._dealer(ordered).run()):
            group = dealt.group + first
            add(dealt.codes, group if into is None else into[group], dealt.people)
            first += dealt.groups
        ordered.records.close()
        return ordered.unique

    def _dealer(self, ordered: Ordered) -> Dealer:
        return Dealer(ordered, self.rule, self.domains, self.means.threads, self.tell)

    def _refuse_frequent(self) -> None:
        counts = self.cube.totals[0]
        worst, people = int(counts.argmax()), int(counts.sum())
        most = int(counts[worst])
        if most * self.least > people:
            raise Blocked(
                f"no release is safe by merging: {most:,} of {people:,} individuals ({most / people:.3g} of them) have "
                f"{{value}}, and a group of at least {self.least} may have it once; "
                f"the largest r that it allows is {people // most}",
                worst,
            )

    def _counts(self, ordered: Ordered) -> Ints:
        """The people of each class with each value."""
        values = self.cube.others[0].size
        counts = np.zeros(len(ordered.key) * values, np.int64)
        for codes, people, _, own in ordered.entries(0, int(ordered.marks[-1])):
            counts += np.bincount(own * values + codes[-1], people, len(counts)).astype(np.int64)
        return counts.reshape(-1, values)

    def _refuse_impossible(self, known: Known, counts: Ints) -> None:
        impossible = int(counts[known.impossible()].sum())
        if impossible:
            raise UnsafeError(
                f"no safe release was found by merging: {impossible:,} individuals have a value that a prior says "
                "nobody or everybody like them has (probability 0 or 1); nothing protects them against it, and a "
                "prior with smoothing has no such probabilities"
            )

    def _pool(self, known: Known, left: People) -> tuple[list[Dealt], People]:
        """Groups of those who are left over by their classes, and who is left after that."""
        found = list(pool(left, known, self.least, scales(self.domains)))
        return [dealt for dealt, _ in found], found[-1][1] if found else left

    def _place(self, ordered: Ordered, known: Known, pooled: list[Dealt], left: People, counts: Ints, add: Add) -> Ints:
        """Puts those who are left into groups of others; the number that each group of others has after some of them
        were merged. These groups are dealt here to choose from, and once more when they are handed over."""
        placing, first = Placing(known, left), 0
        for dealt in chain(pooled, self._dealer(ordered).run()):
            placing.keep(dealt, np.searchsorted(ordered.key, self.adversaries.classes(dealt.codes[:-1])), first)
            first += dealt.groups
        joined, merged, rest = placing.run()
        if rest.total:
            raise self._refusal(placing, rest, counts)
        into = np.arange(first)
        for one, others in merged:
            into[others] = one
        while (into[into] != into).any():
            into = into[into]
        self.facts |= {"merged_groups": int((into != np.arange(first)).sum())}
        into = np.unique(into, return_inverse=True)[1].reshape(-1)
        entry, group = (np.array(each, np.int64) for each in zip(*joined))
        add(left.codes[:, entry], into[group], np.ones(len(entry), np.int64))
        return into

    def _refusal(self, placing: Placing, rest: People, counts: Ints) -> Blocked:
        people, most = counts.sum(axis=1), counts.max(axis=1)
        alone = int((people // most).min())
        worst = int(np.argmax(np.where(np.isin(np.arange(len(most)), rest.own), most - people / self.least, -np.inf)))
        told = (
            f"no safe release was found by merging: {rest.total:,} of {int(people.sum()):,} individuals could not be "
            f"placed. Of {people[worst]:,} people with one prior, {most[worst]:,} have {{value}}, and groups of others "
            "have priors too different from theirs"
        )
        if placing.best:
            told += f" (the best that was tried comes to {placing.best:.3g} of what is asked for)"
        if alone > 1:
            told += f"; r = {alone} can be had without merging different priors"
        else:
            told += "; a prior over fewer attributes, or with more smoothing, tells fewer people apart"
        return Blocked(told, int(counts[worst].argmax()))
