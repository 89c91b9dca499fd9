"""Groups of a series are m-invariant whatever comes and goes, and all releases together leave a belief of 1/m."""

from __future__ import annotations

import random
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

from anon.errors import UnsafeError
from anon.search.invariant import NEW, Arrangement, arrange
from tests.oracles import invariant as oracle


def groups_of(found: Arrangement, people: list[int], values: list[int]) -> oracle.Release:
    members, published = defaultdict(list), defaultdict(list)
    for who, value, group in zip(people, values, found.group.tolist()):
        members[group].append(who)
        published[group].append(value)
    for group, value in zip(found.fake_group.tolist(), found.fake_value.tolist()):
        published[group].append(value)
    return [(members[group], values) for group, values in sorted(published.items())]


def series(seed: int, people: int, kinds: int, m: int, nights: int) -> list[oracle.Release]:
    """Releases of some of a number of people, who come and go."""
    rng = random.Random(seed)
    value = {who: rng.randrange(kinds) for who in range(people)}
    place = np.array([[rng.randrange(50) for _ in range(people)] for _ in range(2)])
    known: dict[int, int] = {}
    signatures: list[tuple[int, ...]] = []
    releases = []
    for _ in range(nights):
        there = sorted(rng.sample(range(people), rng.randint(people // 2, people)))
        own = np.array([value[who] for who in there])
        earlier = np.array([known.get(who, NEW) for who in there])
        try:
            found = arrange(own, earlier, signatures, place[:, there], m)
        except UnsafeError:
            continue
        signatures = found.signatures
        known |= dict(zip(there, found.signature.tolist()))
        releases.append(groups_of(found, there, own.tolist()))
        assert all(set(signatures[s]) == set(values) for s, values in signatures_in(found, releases[-1], there))
    return releases


def signatures_in(found: Arrangement, release: oracle.Release, there: list[int]) -> list[tuple[int, list[int]]]:
    own = dict(zip(there, found.signature.tolist()))
    return [(own[who], list(values)) for members, values in release for who in members]


@pytest.mark.parametrize("seed", range(120))
def test_a_series_is_invariant(seed: int) -> None:
    rng = random.Random(seed)
    m = rng.randint(2, 5)
    assert oracle.is_invariant(series(seed, rng.randint(4, 300), rng.randint(m, 9), m, 6), m)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("nights", [2, 3])
def test_all_releases_together_leave_a_belief_of_at_most_1_in_m(seed: int, nights: int) -> None:
    m = 2 + seed % 2
    releases = series(seed, 6 + seed % 3, 3 + seed % 2, m, nights)
    if releases:
        assert oracle.largest_belief(releases) <= Fraction(1, m)


@pytest.mark.parametrize("m", [2, 3, 4])
@pytest.mark.parametrize("seed", range(40))
def test_every_m_eligible_table_has_a_first_release_without_counterfeits(m: int, seed: int) -> None:
    rng = random.Random(seed)
    most = rng.randint(1, 9)
    counts = [most] * m + [rng.randint(0, most) for _ in range(rng.randint(0, 4))]
    values = np.repeat(np.arange(len(counts)), counts)
    found = arrange(values, np.full(len(values), NEW), [], np.zeros((1, len(values)), np.int64), m)
    assert not len(found.fake_group) and oracle.is_invariant(
        [groups_of(found, list(range(len(values))), list(values))], m
    )


def test_too_many_with_one_value_are_refused_with_the_numbers() -> None:
    values = np.array([0, 0, 0, 1, 2])
    with pytest.raises(UnsafeError, match="of 5 new individuals 3 have the same sensitive value, at most 1 may"):
        arrange(values, np.full(5, NEW), [], np.zeros((1, 5), np.int64), 3)


def test_neighbours_are_in_one_group() -> None:
    place = np.array([[5, 1, 6, 2, 7, 3]])
    found = arrange(np.array([0, 0, 1, 1, 2, 2]), np.full(6, NEW), [], place, 3)
    assert found.group.tolist() in ([0, 1, 0, 1, 0, 1], [1, 0, 1, 0, 1, 0])


def test_a_counterfeit_takes_the_place_of_somebody_who_left() -> None:
    found = arrange(np.array([0, 1]), np.array([0, 0]), [(0, 1, 2)], np.array([[1, 2]]), 3)
    assert (found.fake_value.tolist(), found.fake_group.tolist(), found.fake_like.tolist()) == ([2], [0], [0])
