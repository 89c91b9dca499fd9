"""What searches believe of every safe group, against all groups of a few people (tests/oracles/bounds.py): no safe
group is below the least size, lacks the people that a criterion demands outside the most frequent values, or is taken
for one that cannot be split; and safe groups stay safe where a criterion says so. Minimal and balanced groups are then
put into tables, where partition and lattice must find them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from anon.criteria import CLOSE, SAFE, Criterion, Groups, KAnonymity, Point, Skyline, prunes
from anon.criteria.alpha_k import AlphaK
from anon.criteria.ck_safety import CKSafety
from anon.criteria.delta_disclosure import DeltaDisclosure
from anon.criteria.dissimilarity import Dissimilarity
from anon.criteria.distances import absolute, equal, ordered
from anon.criteria.epsilon_m import EpsilonM
from anon.criteria.k_e import KE
from anon.criteria.l_diversity import l_diversity
from anon.criteria.skyline_bounds import FAR, least_size
from anon.criteria.t_closeness import TCloseness
from anon.criteria.variance import Variance
from anon.search.lattice.search import LatticeSearch
from anon.search.partition.candidates import Demands
from anon.search.partition.search import PartitionSearch
from tests.helpers.cubes import Table
from tests.oracles import ck_safety, delta_disclosure, proximity
from tests.oracles import l_diversity as diversity
from tests.oracles import partition as oracle
from tests.oracles.bounds import (
    Counts,
    breach,
    descending,
    half_the_difference,
    members,
    steps_between,
    vectors,
)

VALUES, PEOPLE = 4, 10
NUMBERS = [Fraction(number) for number in (0, 1, 2, 4)]  # the values, where they are numbers
TABLE = (5, 4, 2, 1)  # the counts of the whole table, where they matter
Amount = tuple[int, int, int, str]  # l, k, m, c
Holds = Callable[[Counts], bool]
Mask = NDArray[np.bool_]


def diverse(kind: str, l: str, c: str | None = None, dont_care: str = "", kept: str = "") -> tuple[Criterion, Holds]:
    codes, percents = [int(code) for code in dont_care], {int(code): Fraction(30) for code in kept}
    criterion = l_diversity("s", kind, Fraction(l), c and Fraction(c), codes, percents)
    factor = Fraction(c or 1)
    return criterion, lambda v: diversity.holds([members(v)], kind, Fraction(l), factor, codes, percents)


def ck(c: str, k: int) -> tuple[Criterion, Holds]:
    def holds(counts: Counts) -> bool:
        return ck_safety.disclosure([ck_safety.histogram(members(counts))], k) < Fraction(c)

    return CKSafety("s", Fraction(c), k), holds


def sky(*points: Amount | list[Amount]) -> tuple[Criterion, Holds]:
    """The same points for every value, or points of its own for each."""
    listed: list[Any] = list(points) if isinstance(points[0], list) else [points] * VALUES
    own = [[Point(l, k, m, Fraction(c)) for l, k, m, c in each] for each in listed]

    def holds(counts: Counts) -> bool:
        return all(breach(counts, value, p.l, p.k, p.m) < p.c for value in range(VALUES) for p in own[value])

    return Skyline("s", own, shared=True), holds


def of_values(criterion: Criterion, holds: Callable[[list[int]], bool]) -> tuple[Criterion, Holds]:
    return criterion, lambda counts: holds(members(counts))


def of_numbers(criterion: Criterion, holds: Callable[[list[Fraction]], bool]) -> tuple[Criterion, Holds]:
    return criterion, lambda counts: holds([NUMBERS[value] for value in members(counts)])


def alpha_k(alpha: str, k: int, values: list[int] | None = None) -> tuple[Criterion, Holds]:
    criterion = AlphaK("s", Fraction(alpha), k, values)
    return of_values(criterion, lambda v: len(v) >= k and proximity.largest_share(v, values) <= Fraction(alpha))


def dissimilar(epsilon: int, delta: str, k: int, line: bool) -> tuple[Criterion, Holds]:
    known, distance = (proximity.absolute, absolute(NUMBERS)) if line else (proximity.equal, equal(VALUES))
    criterion = Dissimilarity("s", Fraction(epsilon), Fraction(delta), k, distance)

    def holds(group: list[Fraction]) -> bool:
        return len(group) >= k and proximity.risk(group, Fraction(epsilon), known) <= 1 - Fraction(delta)

    return of_numbers(criterion, holds)


def close(t: str, line: bool) -> tuple[Criterion, Holds]:
    distance = ordered([str(code) for code in range(VALUES)]) if line else equal(VALUES)
    work = steps_between if line else half_the_difference
    return TCloseness("s", Fraction(t), distance, TABLE), lambda counts: work(counts, TABLE) <= Fraction(t)


def disclosed(delta: str) -> tuple[Criterion, Holds]:
    everybody = [value for value, count in enumerate(TABLE) for _ in range(count)]
    criterion = DeltaDisclosure("s", Fraction(delta), TABLE)
    return of_values(criterion, lambda v: delta_disclosure.holds(v, everybody, Fraction(delta)))


def k_e(k: int, e: int) -> tuple[Criterion, Holds]:
    return of_numbers(KE("s", k, Fraction(e), NUMBERS), lambda v: len(set(v)) >= k and proximity.width(v) >= e)


def epsilon_m(epsilon: int, m: int) -> tuple[Criterion, Holds]:
    criterion = EpsilonM("s", Fraction(epsilon), m, NUMBERS)
    return of_numbers(criterion, lambda v: proximity.neighbour_share(v, Fraction(epsilon)) <= Fraction(1, m))


def variance(minimum: str) -> tuple[Criterion, Holds]:
    criterion = Variance("s", Fraction(minimum), NUMBERS)
    return of_numbers(criterion, lambda v: proximity.variance(v) >= Fraction(minimum))


CASES: dict[str, tuple[Criterion, Holds]] = {
    "k_anonymity 3": of_values(KAnonymity(3), lambda v: len(v) >= 3),
    "distinct 3": diverse("distinct", "3"),
    "frequency 2": diverse("frequency", "2"),
    "frequency 2.5": diverse("frequency", "2.5"),
    "entropy 2": diverse("entropy", "2"),
    "entropy 2.9": diverse("entropy", "2.9"),
    "entropy 3, one value may be known": diverse("entropy", "3", dont_care="0"),
    "recursive (1, 2)": diverse("recursive", "2", "1"),
    "recursive (2/5, 2)": diverse("recursive", "2", "2/5"),
    "recursive (2, 3)": diverse("recursive", "3", "2"),
    "recursive (1, 1)": diverse("recursive", "1", "1"),
    "recursive (1, 2), two values may be known": diverse("recursive", "2", "1", dont_care="01"),
    "distinct 1, two values kept possible": diverse("distinct", "1", kept="01"),
    "recursive (2, 2), one value kept possible": diverse("recursive", "2", "2", kept="3"),
    "ck 0.5 0": ck("1/2", 0),
    "ck 0.4 0": ck("2/5", 0),
    "ck 0.9 1": ck("9/10", 1),
    "ck 1 1": ck("1", 1),
    "ck 1 2": ck("1", 2),
    "alpha_k 0.5": alpha_k("1/2", 1),
    "alpha_k 0.4 4": alpha_k("2/5", 4),
    "alpha_k 0.26": alpha_k("0.26", 1),
    "alpha_k 0.5 of one value": alpha_k("1/2", 2, [0]),
    "dissimilarity equal": dissimilar(0, "1/2", 1, False),
    "dissimilarity equal 0.9": dissimilar(0, "9/10", 3, False),
    "dissimilarity absolute": dissimilar(1, "1/2", 2, True),
    "epsilon_m 0 3": epsilon_m(0, 3),
    "epsilon_m 1 2": epsilon_m(1, 2),
    "k_e 3 0": k_e(3, 0),
    "k_e 1 2": k_e(1, 2),
    "k_e 2 3": k_e(2, 3),
    "variance 1": variance("1"),
    "variance 3": variance("3"),
    "t_closeness equal": close("1/5", False),
    "t_closeness ordered": close("1/8", True),
    "delta_disclosure 1": disclosed("1"),
    "delta_disclosure 1.4": disclosed("7/5"),
    "skyline (0, 0, 0) 0.34": sky((0, 0, 0, "0.34")),
    "skyline (1, 0, 0) 0.6": sky((1, 0, 0, "3/5")),
    "skyline (0, 2, 0) 0.6": sky((0, 2, 0, "3/5")),
    "skyline (0, 1, 2) 0.7": sky((0, 1, 2, "7/10")),
    "skyline (1, 1, 1) 1": sky((1, 1, 1, "1")),
    "skyline (0, 3, 2) and (2, 0, 0) 1": sky((0, 3, 2, "1"), (2, 0, 0, "1")),
    "skyline (0, 2, 1) 0.9 and (1, 0, 0) 0.67": sky((0, 2, 1, "9/10"), (1, 0, 0, "0.67")),
    "skyline of its own for each": sky([(0, 0, 0, "1/2")], [(0, 1, 0, "3/5")], [(1, 0, 1, "1")], [(0, 0, 0, "1")]),
    "skyline of its own for each, c = 1": sky([(0, 0, 0, "1")], [(0, 2, 0, "1")], [(0, 0, 0, "1")], [(0, 0, 0, "1")]),
    "skyline with one value exempt": sky([], [(0, 1, 0, "3/5")], [(1, 0, 1, "1")], [(0, 0, 0, "1/2")]),
}
NOT_TIGHT = {  # a least size that no safe group has
    "t_closeness ordered",
    "skyline of its own for each",
}


@dataclass(frozen=True)
class Every:
    """All groups of at most `PEOPLE`, and which of them are safe."""

    groups: tuple[Counts, ...]
    safe: Mask

    @cached_property
    def dense(self) -> NDArray[np.int64]:
        return np.array(self.groups)

    @property
    def people(self) -> NDArray[np.int64]:
        return self.dense.sum(axis=1)

    def at(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The places of some groups among all."""
        base = (PEOPLE + 1) ** np.arange(VALUES)
        keys = self.dense @ base
        order = np.argsort(keys)
        return order[np.searchsorted(keys[order], counts @ base)]

    def merged(self, left: Mask, right: Mask) -> NDArray[np.int64]:
        """The places of what pairs of groups come to together."""
        one, other = self.dense[left], self.dense[right]
        both = (one[:, None] + other[None]).reshape(-1, VALUES)
        return np.unique(self.at(both[both.sum(axis=1) <= PEOPLE]))


@cache
def every(name: str) -> Every:
    groups = tuple(each for people in range(1, PEOPLE + 1) for each in vectors(VALUES, people))
    return Every(groups, np.array([CASES[name][1](each) for each in groups]))


def alone(criterion: Criterion, groups: Groups) -> Mask:
    """What the engine says of each group by itself."""
    judged = criterion.judge(criterion.minima(groups, np.arange(len(groups)), len(groups)))
    safe = judged == SAFE
    for group in np.flatnonzero(judged == CLOSE).tolist():
        safe[group] = criterion.holds(criterion.state(groups.part(group, group + 1)))
    found: Mask = safe
    return found


@pytest.mark.parametrize("name", CASES)
def test_no_safe_group_is_ruled_out(name: str) -> None:
    criterion, found = CASES[name][0], every(name)
    assert np.array_equal(alone(criterion, Groups.dense(found.dense)), found.safe)
    safe = found.dense[found.safe]
    assert len(safe)
    least = int(safe.sum(axis=1).min())
    assert criterion.least_group <= least
    assert (criterion.least_group == least) == (name not in NOT_TIGHT)
    ranked = np.sort(safe, axis=1)[:, ::-1]
    for largest, fewest in criterion.demands:
        assert (ranked[:, largest:].sum(axis=1) >= fewest).all()


@pytest.mark.parametrize("name", CASES)
def test_no_group_that_has_two_safe_parts_is_taken_for_one_that_has_not(name: str) -> None:
    criterion, found = CASES[name][0], every(name)
    together = Groups.dense(found.dense[found.merged(found.safe, found.safe)])
    largest, fewest = (np.array([pair[i] for pair in criterion.demands], np.int64) for i in (0, 1))
    assert not Demands(criterion.least_group, 0, fewest, largest).barren(together.n, together).any()


@pytest.mark.parametrize("name", [name for name, (criterion, _) in CASES.items() if criterion.monotone])
def test_safe_groups_are_safe_together_where_a_criterion_says_so(name: str) -> None:
    found = every(name)
    assert found.safe[found.merged(found.safe, found.safe)].all()


@pytest.mark.parametrize("name", [name for name, (criterion, _) in CASES.items() if criterion.monotone])
def test_a_criterion_prunes_with_suppression_iff_safe_groups_absorb_everybody(name: str) -> None:
    """Both ways: what is claimed holds for all small groups, and where it is not claimed some group tells why."""
    found, everybody = every(name), np.ones(len(every(name).safe), bool)
    absorbs = bool(found.safe[found.merged(found.safe, everybody)].all())
    assert prunes(CASES[name][0], Fraction(1, 10)) == (absorbs and name != "recursive (1, 1)"), "always safe"
    assert prunes(CASES[name][0], Fraction(0))


@pytest.mark.parametrize("name", CASES)
def test_minimal_and_balanced_groups_are_found_by_partition_and_lattice(name: str) -> None:
    """A column with a value for each group. Whatever is merged of a monotone criterion is safe, so that partition must
    come down to the groups; the lattice must find them safe as they are."""
    criterion, found = CASES[name][0], every(name)
    safe = np.flatnonzero(found.safe)
    uneven = np.ptp(found.dense[safe], axis=1)
    chosen = [found.groups[at] for at in safe[np.lexsort([uneven, found.people[safe]])][:6]]
    chosen += [found.groups[at] for at in safe[np.lexsort([-found.people[safe], uneven])][:2]]
    groups = Groups.dense(np.array(chosen))
    if not criterion.holds(criterion.state(groups)) or not groups.count.any():
        chosen = [chosen[-1]] * 8  # that of the adversary who looks at several groups at once
    missing = [value for value in range(VALUES) if not any(counts[value] for counts in chosen)]
    assert not missing, "every value occurs, as the criterion believes"
    assert criterion.holds(criterion.state(Groups.dense(np.array(chosen))))
    rows = [((at,), f"v{value}") for at, counts in enumerate(chosen) for value in members(counts)]
    free = Table([oracle.Free([float(at) for at in range(len(chosen))])], rows)
    if criterion.monotone:
        assert PartitionSearch(free.cube(), [criterion]).run().recoding.groups == len(chosen)
    levels = Table([oracle.Hierarchy(tuple(range(len(chosen))))], rows)
    assert LatticeSearch(levels.cube(), [criterion]).run().recoding.chosen == (0,)


def test_twenty_balanced_groups_of_three_values_are_twenty_groups() -> None:
    """Groups of 3, 6, 9, ... are safe, those of sizes between are not."""
    rows = [((at,), value) for at in range(20) for value in "abc"]
    criterion = Skyline("s", [[Point(0, 0, 0, Fraction("0.34"))]] * 3, shared=True)
    free, levels = (Table([column], rows) for column in (oracle.Free([*range(20)]), oracle.Hierarchy((*range(20),))))
    assert PartitionSearch(free.cube(), [criterion]).run().recoding.groups == 20
    assert LatticeSearch(levels.cube(), [criterion]).run().recoding.chosen == (0,)


GRID = [Fraction(c) for c in ("0.2", "1/4", "0.26", "1/3", "0.34", "2/5", "1/2", "0.51", "2/3", "3/4", "0.9", "1")]


@pytest.mark.parametrize(("values", "people"), [(1, 12), (2, 24), (3, 18), (4, 14), (5, 12)])
def test_the_least_size_of_a_skyline_point_is_the_smallest_of_all_safe_groups(values: int, people: int) -> None:
    listed = [each for n in range(1, people + 1) for each in descending(values, n)]
    for l, k, m in product(range(3), (0, 1, 2, 5), (0, 1, 3)):
        largest = [max(breach(counts, value, l, k, m) for value in range(values)) for counts in listed]
        for c in GRID:
            safe = (sum(counts) for counts, worst in zip(listed, largest) if worst < c)
            least, claimed = min(safe, default=None), least_size([Point(l, k, m, c)], values)
            assert claimed == least if least else claimed > people, (l, k, m, c)


@pytest.mark.parametrize(
    ("values", "amount"),
    [
        (50, (2, 10**6, 0, "0.5")),
        (50, (1, 10**6, 20, "0.1")),
        (7, (0, 2_000, 300, "1")),
        (500, (0, 10**6, 0, "0.0021")),
        (40, (3, 0, 100, "0.5")),
        (3, (0, 0, 0, "0.34")),
    ],
)
def test_the_least_size_is_exact_however_much_is_known(values: int, amount: Any) -> None:
    """No other group of n people is safer than the balanced one, so that these are all that must be looked at."""
    l, k, m, c = amount[0], amount[1], amount[2], Fraction(amount[3])
    least = least_size([Point(l, k, m, c)], values)
    assert least < FAR // 2

    def safe(n: int) -> bool:
        counts = tuple(n // values + (value < n % values) for value in range(values))
        return breach(counts, 0, l, k, m) < c

    assert safe(least)
    assert not any(safe(n) for n in range(max(least - 2 * values, 1), least))


def test_a_point_that_no_group_satisfies_has_no_least_size() -> None:
    assert least_size([Point(2, 0, 0, Fraction(1))], 3) > FAR - 3
    assert least_size([Point(0, 0, 0, Fraction(1, 3))], 3) > FAR - 3
