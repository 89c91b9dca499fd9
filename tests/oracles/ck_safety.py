"""(c,k)-safety twice over, straight from its definition and by the dynamic program of its paper. Stands outside the way
of the data, as the reference for the criterion that search and verify share. By definition: every possible world of a
tiny release, every set of at most k implications, every atom. The dynamic program (MINIMIZE1 and MINIMIZE2) in exact
fractions, with the corrections it needs: the flag starts at false, groups run out at 1 once the target is placed, and
people run out before anything is divided by zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import combinations
from operator import and_, or_

from tests.oracles.worlds import Event, Release, Worlds, probability, single_worlds

Histogram = tuple[int, ...]  # the counts of one group's values, descending


# by enumeration


def simple(release: Release, k: int) -> Fraction:
    """Maximum disclosure under at most k implications from one atom to one atom."""
    worlds = single_worlds(release)
    atoms = _atoms(worlds)
    return _disclosure(worlds, {worlds.implication(a, b) for a in atoms for b in atoms}, k)


def basic(release: Release, k: int) -> Fraction:
    """Maximum disclosure under at most k implications from any conjunction to any disjunction of atoms."""
    worlds = single_worlds(release)
    atoms = _atoms(worlds)
    premises = {reduce(and_, some) for some in _some(atoms)}
    conclusions = {reduce(or_, some) for some in _some(atoms)}
    return _disclosure(worlds, {worlds.implication(a, b) for a in premises for b in conclusions}, k)


def negated(release: Release, k: int) -> Fraction:
    """Maximum disclosure under at most k negated atoms."""
    worlds = single_worlds(release)
    return _disclosure(worlds, {worlds.negation(atom) for atom in _atoms(worlds)}, k)


def _atoms(worlds: Worlds) -> set[Event]:
    return {worlds.has(person, value) for person in worlds.everyone() for value in worlds.values}


def _some(atoms: set[Event]) -> Iterable[tuple[Event, ...]]:
    return (some for size in range(1, len(atoms) + 1) for some in combinations(atoms, size))


def _disclosure(worlds: Worlds, pieces: set[Event], k: int) -> Fraction:
    known = {worlds.every}
    for _ in range(k):
        known |= {one & piece for one in known for piece in pieces}
    return max(probability(atom, one) for one in known - {0} for atom in _atoms(worlds))


# by dynamic programming


def histogram(group: Sequence[object]) -> Histogram:
    return tuple(sorted(Counter(group).values(), reverse=True))


@lru_cache(maxsize=100_000)
def minimize1(counts: Histogram, person: int, limit: int, atoms: int) -> Fraction:
    """The least probability that `atoms` further atoms are false, at most `limit` of them about each next person."""
    n, least = sum(counts), Fraction(1)
    if person == n:
        return least
    for own in range(1, min(limit, atoms) + 1):
        left = max(n - person - sum(counts[:own]), 0)
        least = min(least, Fraction(left, n - person) * minimize1(counts, person + 1, own, atoms - own))
    return least


def absent(counts: Histogram, h: int) -> Fraction:
    """f_h."""
    return minimize1(counts, 0, h, h)


def target(counts: Histogram, h: int) -> Fraction:
    """F_h."""
    return absent(counts, h + 1) * Fraction(sum(counts), counts[0])


def minimize2(groups: Sequence[Histogram], k: int) -> Fraction:
    """The least ratio over all ways to hand k atoms and the target to the groups."""
    missing: list[Fraction | None] = [None] * (k + 1)  # by the atoms left: the target is still to come
    placed = [Fraction(1)] * (k + 1)
    for counts in reversed(groups):
        free, own = ([of(counts, h) for h in range(k + 1)] for of in (absent, target))
        here = [[own[h] * placed[left - h] for h in range(left + 1)] for left in range(k + 1)]
        later = [
            [free[h] * r for h in range(left + 1) if (r := missing[left - h]) is not None] for left in range(k + 1)
        ]
        missing = [min(some + others) for some, others in zip(here, later)]
        placed = [min(free[h] * placed[left - h] for h in range(left + 1)) for left in range(k + 1)]
    ratio = missing[k]
    assert ratio is not None
    return ratio


def disclosure(groups: Sequence[Histogram], k: int) -> Fraction:
    """Maximum disclosure by the dynamic program."""
    return 1 / (1 + minimize2(groups, k))


def within_one_group(groups: Sequence[Histogram], k: int) -> Fraction:
    """The highest disclosure when the adversary knows only people of one group."""
    return max(disclosure([counts], k) for counts in groups)


def negated_disclosure(groups: Sequence[Histogram], k: int) -> Fraction:
    """Maximum disclosure under k negated atoms, in closed form."""
    return max(Fraction(counts[0], sum(counts) - sum(counts[1 : k + 1])) for counts in groups)


def recursively_diverse(groups: Sequence[Histogram], c: Fraction, l: int) -> bool:
    """Recursive (c, l)-diversity."""
    return all(counts[0] < c * sum(counts[l - 1 :]) for counts in groups)
