"""The colour search: groups for (epsilon, delta)^k-dissimilarity (Wang, Meng, Bamba, Liu, Pu, section IV). People are
vertices, two of them adjacent iff their sensitive values lie within epsilon, and groups are colours: a group of n is
safe iff nobody has more than d = floor((1 - delta)(n - 1)) neighbours of the same colour, which is a colouring with
defect d. Deciding whether one exists is NP-hard, so the search tries two algorithms and reports if neither succeeds.

*Round-robin*. Values are ordered so that every neighbourhood is, or lies in, a window of consecutive values (exactly so
for distances on a line or in a tree). n people are dealt out in that order to g = floor(n / size) groups.
A window of w people leaves at most ceil(w / g) in a group, so that all groups are safe if

    w <= g (1 + floor((1 - delta)(floor(n / g) - 1)))       for the largest window w.

This is the sufficient condition; `size` is the smallest from k on for which the table satisfies it. For distances in a
tree and delta = 1 it is necessary too: all people in a window must be in different groups. If no size satisfies it, the
whole table is returned as one group.

*Greedy colouring*, where a distance has no such order: blocks of about 1,000 people with near quasi-identifiers. Those
with the most neighbours come first, and each goes to the smallest group that admits it (kernels_colour.py). Only
distinct values are compared with each other, never people. A block for which this fails is one group, which is merged
with others until it is safe (mending.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from anon.core.arrays import Ints
from anon.core.progress import ProgressCallback
from anon.criteria import Dissimilarity
from anon.criteria.arithmetic import at_most
from anon.criteria.distances import Lists, Neighbours, Windows
from anon.cube import Cube
from anon.errors import BlockedByValue
from anon.search.assign.dealing import Dealer, DealtGroups, PeopleChunk, Rule, split
from anon.search.assign.ordering import OrderedRecords, in_order
from anon.search.budget import SearchBudget

SIZES = 256  # sizes of groups that are tried, from the smallest on; after them each is a quarter larger
LARGEST = 2**16  # of these
ROUND_ROBIN, GREEDY = "round-robin", "greedy colouring"


def allowed(delta: Fraction, people: int) -> Ints:
    """Return the number of others that may lie near a person, in groups of 0 to `people` people.

    >>> allowed(Fraction(1, 2), 5).tolist()
    [0, 0, 0, 1, 1, 2]
    """
    top, bottom = (1 - delta).numerator, (1 - delta).denominator
    return np.array([0, *(top * (n - 1) // bottom for n in range(1, people + 1))], np.int64)


def sizes(least: int, people: int) -> Iterator[int]:
    """Yield the sizes of groups that are tried for a number of people."""
    size = least
    while size <= people and (size < least + SIZES or size <= LARGEST):
        yield size
        size += 1 if size < least + SIZES else size // 4


def smallest(windows: Windows, counts: Ints, delta: Fraction, least: int) -> Rule | None:
    """Return the rule with the smallest groups by which people can be dealt, `counts` of whom have the value at each
    place; None if there is none."""
    near = allowed(delta, 0)
    for size in sizes(least, int(counts.sum())):
        if len(near) <= 2 * size:
            near = allowed(delta, 4 * size)
        rule = Rule(size, near, windows.place, windows.low, windows.high)
        if rule.holds(counts):
            return rule
    return None


def reached(windows: Windows, counts: Ints, least: int) -> tuple[Fraction, int, int]:
    """Return the largest delta for which these people can be dealt, the place whose window is largest, and its
    people."""
    total = np.append(0, np.cumsum(counts))
    inside = (total[windows.high + 1] - total[windows.low]) * (counts > 0)
    worst, people = int(inside.argmax()), int(total[-1])
    best = Fraction(0)
    one_group = [people] if people >= max(least, 2) else []
    for size in (*sizes(max(least, 2), people), *one_group):
        groups = people // size
        near = -(-int(inside[worst]) // groups) - 1
        best = max(best, 1 - Fraction(near, people // groups - 1))
    return best, worst, int(inside[worst])


def in_windows(lists: Lists) -> Windows:
    """Return an order of values in which neighbours are near, and for each value the window from its first to its last
    neighbour, widened until neither end ever descends. The order goes from neighbour to neighbour, those with few of
    them first.

    >>> near = Lists(np.array([0, 2, 4, 7]), np.array([0, 2, 1, 2, 0, 1, 2]))
    >>> found = in_windows(near)
    >>> found.place.tolist(), found.low.tolist(), found.high.tolist()
    ([0, 2, 1], [0, 0, 1], [1, 2, 2])
    """
    size = len(lists.start) - 1
    degree, seen, order = np.diff(lists.start), np.zeros(size, bool), []
    for root in np.argsort(degree, kind="stable").tolist():
        waiting = [] if seen[root] else [root]
        seen[root] = True
        for value in waiting:
            order.append(value)
            near = lists.code[lists.start[value] : lists.start[value + 1]]
            near = near[~seen[near]]
            seen[near] = True
            waiting += near[np.argsort(degree[near], kind="stable")].tolist()
    place = np.empty(size, np.int64)
    place[order] = np.arange(size)
    near = place[lists.code]
    first, last = (ends.reduceat(near, lists.start[:-1])[order] for ends in (np.minimum, np.maximum))
    return Windows(place, np.minimum.accumulate(first[::-1])[::-1].copy(), np.maximum.accumulate(last))


class ColourSearch:
    """A search over one cube. `least` is the smallest size of a group that all criteria allow."""

    def __init__(
        self,
        cube: Cube,
        criterion: Dissimilarity,
        least: int,
        budget: SearchBudget | None = None,
        on_progress: ProgressCallback = lambda **facts: None,
    ) -> None:
        self.cube, self.criterion, self.least = cube, criterion, least
        self.budget, self.on_progress, self.domains = budget or SearchBudget(), on_progress, cube.domains
        self.facts: dict[str, Any] = {}
        self.doubtful: list[int] = []  # groups that may not be safe
        self.refusal: BlockedByValue | None = None  # the reason

    def run(self, add: Callable[[Any, Ints, Ints], None]) -> int:
        """Call `add` with the assignment to groups: codes, group, people. Consumes the records of the cube. Return the
        number of individuals with unique quasi-identifiers."""
        near, delta = self.criterion.near, self.criterion.delta
        windows = near if isinstance(near, Windows) else in_windows(_listed(near))
        counts = np.zeros(len(windows.low), np.int64)
        counts[windows.place] = self.cube.totals[0]
        rule = smallest(windows, counts, delta, self.least)
        algorithm = ROUND_ROBIN if rule or isinstance(near, Windows) else GREEDY
        ordered = in_order(self.cube, lambda codes: np.zeros(codes.shape[1], np.int64), self.budget, self.on_progress)
        if rule is not None:
            found = Dealer(ordered, rule, self.domains, self.budget.threads, self.on_progress).run()
        elif isinstance(near, Windows):
            found = _as_one_group(ordered)
        else:
            found = _Greedy(ordered, _listed(near), self).run()
        groups = 0
        for dealt in found:
            add(dealt.codes, dealt.group + groups, dealt.people)
            self.doubtful += [groups + group for group in dealt.doubtful]
            groups += dealt.groups
        if self.doubtful:
            self.refusal = self._refusal(windows, counts, algorithm)
        self.facts = {"algorithm": algorithm, "group_size": rule.size if rule else self.least}
        ordered.records.close()
        return ordered.unique

    def _refusal(self, windows: Windows, counts: Ints, algorithm: str) -> BlockedByValue:
        delta, worst, inside = reached(windows, counts, self.least)
        people = int(counts.sum())
        return BlockedByValue(
            f"no safe release was found by {algorithm}: {inside:,} of {people:,} individuals "
            f"({inside / people:.3g} of them) lie within epsilon of {{value}}, too many for groups of at least "
            f"{self.least} with delta = {at_most(self.criterion.delta)}; the largest delta that was reached is "
            f"{at_most(delta)} (finding out whether another grouping would do is NP-hard)",
            int(np.flatnonzero(windows.place == worst)[0]),
        )


def _as_one_group(ordered: OrderedRecords) -> Iterator[DealtGroups]:
    """Yield all people in one group, which may not be safe, in pieces."""
    for codes, people, _, _ in ordered.entries(0, int(ordered.marks[-1])):
        yield DealtGroups(codes, np.zeros(len(people), np.int64), people, 0, [0])


def _listed(near: Neighbours) -> Lists:
    assert isinstance(near, Lists)
    return near


class _Greedy(Dealer):
    """Blocks of near people, each coloured separately."""

    def __init__(self, ordered: OrderedRecords, lists: Lists, search: ColourSearch) -> None:
        from anon.search.assign.kernels_colour import BLOCK

        size, every = max(BLOCK // 2, search.least), np.arange(len(lists.start) - 1)
        # a rule by which any people may be dealt
        any_people = Rule(size, np.full(2 * size + 1, 2**40), every, every, every)
        super().__init__(ordered, any_people, search.domains, search.budget.threads, search.on_progress)
        self.least = search.least
        self.most = allowed(search.criterion.delta, 2 * size)
        self.near = np.zeros((len(every), len(every)), np.uint8)
        self.near[np.repeat(every, np.diff(lists.start)), lists.code] = 1

    def _deal(self, chunk: PeopleChunk) -> DealtGroups:
        codes, people, root = self._gathered(chunk)
        order, leaf = split(codes, people, root, self.rule, self.scale)
        entry, group, groups = np.repeat(order, people[order]), np.empty(int(people.sum()), np.int64), 0
        ends = np.append(0, np.cumsum(people[order]))[leaf]
        value, doubtful = codes[-1, entry].astype(np.int64), []
        for block in self._blocks(ends):
            found, own = self._coloured(value[block].copy())
            doubtful += [] if found else [groups]
            group[block] = groups + (own if found else 0)
            groups += found or 1
        return DealtGroups(codes[:, entry], group, np.ones(len(group), np.int64), groups, doubtful)

    def _coloured(self, value: Ints) -> tuple[int, Ints]:
        """Return the number of groups, 0 if no colouring was found, and the group of each person, given their
        values."""
        from anon.search.assign.kernels_colour import colour

        counts, group = np.bincount(value, minlength=len(self.near)), np.empty(len(value), np.int64)
        turn = np.lexsort([value, -(self.near @ counts)[value]])
        return colour(self.near, value, turn, np.flatnonzero(counts), self.least, self.most, group), group

    def _blocks(self, ends: Ints) -> Iterator[slice]:
        """Yield the people of parts with these ends, in the order of their values; parts of equal people, which cannot
        be split, may be larger than a block, and are divided by strides."""
        for first, last in zip(ends.tolist(), ends[1:].tolist()):
            step = max((last - first) // self.rule.size, 1)
            yield from (slice(first + at, last, step) for at in range(step))
