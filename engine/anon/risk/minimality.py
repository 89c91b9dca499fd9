"""The minimality attack (Wong, Fu, Wang, Pei: Minimality Attack in Privacy Preserving Data Publishing, VLDB 2007) on
the partition search, by somebody who knows everybody's quasi-identifiers, the config and how the search works: of the
worlds that fit the published groups only those are possible in which the search would have made the same release.

Worlds are the ways to deal the published values of each group to its members. For monotone criteria that judge groups
alone the release determines the decisions: a candidate whose parts are unions of groups is safe in every world, so it
was taken when its turn came; one that divides a group was refused. So a world is possible iff every candidate that was
tried before the one that was taken, and every candidate of a group, has an unsafe part in it. Candidates of a group
depend on the world of that group alone, those of a node above on the worlds of the groups that they divide. Groups that
no refused candidate divides together are independent of each other, so posteriors are computed for sets of groups that
depend on each other: exactly, by going through all of their worlds, where these are few; else from random worlds, of
which those that are possible are kept. Their estimates are lowered so far that any of them is above the true posterior
with a probability of DOUBT at most (Hoeffding's inequality).

Refused candidates of nodes with more people than `people.SUBTREE` are not used: the posteriors are then those of an
adversary who does not use them either."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import log, sqrt

import numpy as np

from anon.config import Config, Partition
from anon.config.examined import unrepeated
from anon.core.arrays import Flags, Floats, Ints
from anon.core.phrases import counted, percent
from anon.criteria import Criterion
from anon.cube import Cube
from anon.recoding.assignment import Assignment
from anon.recoding.levels import AnyRecoding
from anon.recoding.tree import Recoding
from anon.risk.overview import Attack, Promise, sampled
from anon.risk.people import SUBTREE, SampledPeople, spread, subtrees
from anon.risk.refused_splits import ORDERED, Repeated, Split, nodes_under
from anon.risk.worlds import Judge, Worlds, every_world, number_of_worlds, random_worlds
from anon.search.partition.public import PublicCuts

NAME = "minimality"
ASSUMES = "knows everybody's quasi-identifiers, the config and how the search works"
HELPS = "`prefer: public` with `guard`, which passes over safe cuts at random, or a stricter criterion"
GUARDED = "nothing above what is promised: the guard is enforced, so that the promise holds whatever was not cut"
EXACT = 5_000  # worlds that are gone through, of a group and of groups that depend on each other
DRAWN = 1_000  # random worlds otherwise
FEWEST = 50  # of them that must be possible
WORK = 2**23  # people and parts in worlds; the groups after that are not examined
DOUBT = 0.01  # the probability that any of the estimates is too high


@dataclass
class Member:
    """A group as its worlds are examined: its number, the places of its people in the sample, its values, its possible
    worlds, and whether these are all of them."""

    group: int
    people: Ints
    codes: Ints  # of its values
    counts: Ints
    worlds: Worlds
    every: bool


@dataclass(frozen=True)
class Posterior:
    """The posteriors of a group: [people, values] of some of its people, who each stand for a number of them, in the
    values with these codes; the number of random worlds behind them, 0 if they are exact."""

    group: int
    belief: Floats
    codes: Ints
    people: int = 1
    drawn: int = 0


@dataclass
class Posteriors:
    """What was found about each group."""

    found: list[Posterior] = field(default_factory=list)
    undecided: int = 0  # individuals in groups with too few possible worlds among the random ones

    def add(self, member: Member, worlds: Worlds, exact: bool) -> None:
        """Add the shares of possible worlds in which each of a group's people has each value."""
        if len(worlds) < (1 if exact else FEWEST):
            self.undecided += len(member.people)
            return
        belief = np.stack([(worlds == at).mean(axis=0) for at in range(len(member.codes))], axis=1)
        self.found.append(Posterior(member.group, belief, member.codes, drawn=0 if exact else len(worlds)))

    def add_shares(self, group: int, values: Ints) -> None:
        """Add a group with these values, about which the decisions of the search say nothing."""
        codes, counts = np.unique(values, return_counts=True)
        self.found.append(Posterior(group, counts[None] / len(values), codes, len(values)))

    def lowered(self) -> Iterator[Posterior]:
        """Yield the posteriors; of estimates the lower ends of intervals that hold all together."""
        estimates = sum(each.belief.size for each in self.found if each.drawn)
        for each in self.found:
            less = sqrt(log(estimates / DOUBT) / (2 * each.drawn)) if each.drawn else 0.0
            yield replace(each, belief=each.belief - less)


class Examination:
    """The examination of the groups of a sample, subtree by subtree."""

    def __init__(self, sample: SampledPeople, recoding: Recoding, judge: Judge, repeated: Repeated) -> None:
        self.sample, self.recoding, self.judge, self.repeated = sample, recoding, judge, repeated
        edges = np.flatnonzero(np.diff(sample.group, prepend=-1, append=-1))
        self.people_of = {int(sample.group[first]): np.arange(first, last) for first, last in pairwise(edges.tolist())}
        self.found = Posteriors()
        self.examined = self.spent = 0

    def run(self) -> None:
        """Examine subtrees in the order of a hash of their numbers, until the budget is spent."""
        top = subtrees(self.recoding)
        tops = np.unique(top[list(self.people_of)])
        for node in tops[np.argsort(spread(tops), kind="stable")].tolist():
            if self.spent > WORK:
                break
            self._subtree(node)

    def _subtree(self, top: int) -> None:
        own: dict[int, list[Split]] = {}  # refused splits of each group
        shared: list[tuple[set[int], Ints, Split]] = []  # the groups that a split divides, the people of its node
        for node in nodes_under(self.recoding, top, self.people_of):
            refused = self.repeated.refused(node, self.sample.codes[:, node.people])
            if node.column < 0:
                own[node.groups[0]] = refused
            else:
                shared += [(self._divided(node.groups, node.people, split), node.people, split) for split in refused]
        self.examined += len(own)
        for together in _connected(list(own), [groups for groups, *_ in shared]):
            above = [(people, split) for groups, people, split in shared if groups & together]
            if above or any(own[group] for group in together):
                self._together([self._member(group, own[group]) for group in sorted(together)], above)
            else:
                for group in together:
                    self.found.add_shares(group, self.sample.value[self.people_of[group]])

    def _divided(self, groups: list[int], people: Ints, split: Split) -> set[int]:
        owner = self.sample.group[people]
        return {group for group in groups if (split.parts[:, owner == group].any(axis=1)).sum() > 1}

    def _member(self, group: int, refused: list[Split]) -> Member:
        people = self.people_of[group]
        codes, counts = np.unique(self.sample.value[people], return_counts=True)
        every = number_of_worlds(counts, EXACT) <= EXACT
        worlds = every_world(counts) if every else random_worlds(counts, DRAWN, group)
        self.spent += worlds.size
        if refused:
            parts = np.concatenate([split.parts for split in refused])
            self.spent += len(worlds) * len(parts)
            safe = self.judge.safe_parts(worlds, parts, codes, counts)
            starts = np.cumsum([0, *(len(split.parts) for split in refused[:-1])])
            worlds = worlds[~np.logical_and.reduceat(safe, starts, axis=1).any(axis=1)]
        return Member(group, people, codes, counts, worlds, every)

    def _together(self, members: list[Member], refused: list[tuple[Ints, Split]]) -> None:
        """Add the posteriors of groups that depend on each other by refused splits of nodes above them."""
        number = 1
        for member in members:
            number = min(number * len(member.worlds), EXACT + 1)
        every = all(member.every for member in members) and number <= EXACT
        if not refused:
            for member in members:
                self.found.add(member, member.worlds, member.every)
            return
        chosen = _combined(members, every)
        possible = np.ones(len(chosen[0]), bool)
        value: dict[int, Ints] = {}
        for member, worlds in zip(members, chosen):
            value |= dict(zip(member.people.tolist(), member.codes[worlds].T))
        for people, split in refused:
            self.spent += len(possible) * len(split.parts)
            possible &= ~self._safe(people, split, value, len(possible))
        for member, worlds in zip(members, chosen):
            self.found.add(member, worlds[possible], every)

    def _safe(self, people: Ints, split: Split, value: dict[int, Ints], worlds: int) -> Flags:
        """Return in which worlds every part of a split is safe; people without a given value have their own, or one of
        a group that the split does not divide."""
        safe = np.ones(worlds, bool)
        for part in split.parts:
            counts = np.zeros((worlds, self.judge.values), np.int64)
            for person in people[part].tolist():
                counts[np.arange(worlds), value.get(person, self.sample.value[person])] += 1
            safe &= self.judge.safe(counts)
        return safe


def _combined(members: list[Member], every: bool) -> list[Worlds]:
    """Return worlds of some groups together: all, or random ones."""
    if every:
        places = np.indices([len(member.worlds) for member in members]).reshape(len(members), -1)
        return [member.worlds[place] for member, place in zip(members, places)]
    number = min([DRAWN, *(len(member.worlds) for member in members if not member.every)])
    chance = np.random.default_rng(int(members[0].people[0]))
    return [
        member.worlds[chance.integers(0, len(member.worlds), number)] if member.every else member.worlds[:number]
        for member in members
    ]


def _connected(groups: list[int], links: list[set[int]]) -> list[set[int]]:
    """Return the sets of groups that links connect."""
    sets = [{group} for group in groups]
    for link in links:
        joined = [each for each in sets if each & link]
        if len(joined) > 1:
            sets = [each for each in sets if not each & link] + [set().union(*joined)]
    return sets


def minimality(
    config: Config,
    recoding: AnyRecoding | Assignment,
    sample: SampledPeople,
    cube: Cube,
    criteria: list[Criterion],
    promise: Promise,
) -> Attack:
    """Carry out the attack, given criteria that are bound to the values of the sample."""
    if why := _not_applicable(config, recoding, criteria, sample):
        return Attack(NAME, ASSUMES, why)
    assert isinstance(config.method, Partition) and isinstance(recoding, Recoding)
    if config.method.guard is not None:  # an enforced one
        return Attack(NAME, ASSUMES, GUARDED, "", 0, None, promise.lowest, exact=True, sensitive=sample.column)
    prefer = str(config.method.prefer)
    least = max(criterion.least_group for criterion in criteria)
    public = PublicCuts.from_cube(cube) if prefer == "public" else None
    judge = Judge(criteria, len(sample.texts))
    examination = Examination(sample, recoding, judge, Repeated(sample.domains, prefer, least, public))
    examination.run()
    whole = int(recoding.people.sum()) <= SUBTREE and prefer in ORDERED
    return _attack(examination, promise, sample, whole)


def _attack(examination: Examination, promise: Promise, sample: SampledPeople, whole: bool) -> Attack:
    found = examination.found
    above = certain = 0
    largest = 0.0
    for each in found.lowered():
        above += each.people * int(promise.exceeded(each.belief, each.codes).any(axis=1).sum())
        certain += each.people * int((each.belief.max(axis=1) >= 1).sum())
        largest = max(largest, float(each.belief.max()))
    estimated = sum(each.drawn > 0 for each in found.found)
    where, facts = sampled(examination.examined, sample.groups)
    named = f"{counted(above)} above what is promised" if promise.lowest is not None else f"{counted(certain)} certain"
    words = f"{named}{where}; the largest posterior is {percent(largest)}"
    if found.undecided:
        words += f"; {counted(found.undecided)} undecided, in groups with few possible worlds among many"
    return Attack(
        NAME,
        ASSUMES,
        words,
        HELPS if above else "",
        above if promise.lowest is not None else certain,
        largest,
        promise.lowest,
        exact=whole and not facts and not found.undecided and not estimated,
        breached=above > 0,
        sensitive=sample.column,
        details={"undecided": found.undecided, "estimated": estimated, **facts},
    )


def _not_applicable(
    config: Config, recoding: AnyRecoding | Assignment, criteria: list[Criterion], sample: SampledPeople
) -> str:
    """Return why the attack does not apply or is not carried out; nothing if it is."""
    if why := unrepeated(config):
        return f"not examined: {why}"
    if not isinstance(recoding, Recoding):
        return f"not examined: the decisions of {config.method.kind} are not repeated"
    if others := [each.name for each in criteria if not each.monotone or not each.alone or each.context]:
        return f"not examined: what {', '.join(others)} refused does not follow from the groups alone"
    if not len(sample.group):
        return "not examined: the groups are too large"
    return ""
