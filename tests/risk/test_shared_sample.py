"""A sample of what releases reveal together says nothing that the whole does not say."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from anon.config.criterion import Confidence
from anon.core.database import Database
from anon.risk import shared_sample, together
from anon.risk.shared_sample import WHOLE, Examined, take_sample
from anon.risk.together import BeliefBounds, Together
from tests.oracles import together as oracle
from tests.risk.test_shared_worlds import random_releases
from tests.risk.test_together import found, registered

BOUNDS = BeliefBounds({value: Confidence(Fraction(1, 2)) for value in "abcd"}, fewest=2)
COUNTS = ("individuals", "one_value", "certainly_over", "over")


def many_releases(seed: int) -> list[oracle.Release]:
    """Two releases of some of forty people, groups of up to six."""
    rng = random.Random(seed)
    value = [rng.choice("abcd"[: rng.randint(2, 4)]) for _ in range(40)]
    releases = []
    for _ in range(2):
        there = [who for who in range(40) if rng.random() < 0.9]
        if seed % 2:  # groups that overlap much
            there.sort(key=lambda who: who + rng.random() * 4)
        else:
            rng.shuffle(there)
        groups = []
        while there:
            size = rng.randint(2, 6)
            members, there = there[:size], there[size:]
            groups.append((members, [value[who] for who in members]))
        releases.append(groups)
    return releases


def in_sample(
    releases: list[oracle.Release], patch: pytest.MonkeyPatch, most: int, reached: int
) -> tuple[Together, Examined]:
    patch.setattr(shared_sample, "MOST", most)
    patch.setattr(shared_sample, "REACHED", reached)
    database = registered(releases)
    examined = take_sample(database)
    assert examined is not None
    return together.learned(database, together.link(database, len(releases), WHOLE), BOUNDS), examined


@pytest.mark.parametrize("small", [48, 0], ids=["counted", "bounded"])
@pytest.mark.parametrize("seed", range(8))
def test_figures_of_a_sample_are_not_above_those_of_all(seed: int, small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    releases = many_releases(seed)
    monkeypatch.setattr(together, "MOST_PEOPLE", small)
    every = found(releases, BOUNDS)
    sample, examined = in_sample(releases, monkeypatch, 20, 40 if seed % 3 else 10)
    assert 0 < examined.groups < examined.every == len(releases[0])
    for name in COUNTS:
        assert getattr(sample, name) <= getattr(every, name), name
    assert sample.one_value + sample.two_values <= every.one_value + every.two_values
    assert (sample.at_least or 0) <= (every.at_least or 0) + 1e-12
    assert not sample.contradictory


@pytest.mark.parametrize("seed", range(20))
def test_what_a_sample_says_is_true(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    releases = random_releases(random.Random(seed))
    if len(releases[0]) < 2:
        return
    beliefs = oracle.beliefs(releases)
    people = max(sum(len(members) for members, _ in release) for release in releases)
    sample, _ = in_sample(releases, monkeypatch, people - 1, people)
    several = oracle.in_several(releases)
    assert sample.one_value <= sum(len(beliefs[who]) == 1 for who in several)
    assert sample.certainly_over <= sum(max(beliefs[who].values()) > Fraction(1, 2) for who in oracle.linked(releases))
    largest = max((max(beliefs[who].values()) for who in oracle.linked(releases)), default=Fraction(0))
    assert (sample.at_least or 0) <= float(largest) + 1e-12


def test_a_sample_of_separate_groups_is_exact_about_them(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = [([4 * i, 4 * i + 1, 4 * i + 2], "aab") for i in range(20)]
    starts = [([4 * i, 4 * i + 1, 4 * i + 3], "aac") for i in range(20)]
    sample, examined = in_sample([ends, starts], monkeypatch, 12, 60)
    assert examined == Examined(4, 20)
    assert (sample.individuals, sample.one_value, sample.over) == (8, 8, 12) and sample.exact


def test_small_releases_are_examined_whole() -> None:
    database: Database = registered([[([0, 1], "ab")], [([0, 2], "ab")]])
    assert take_sample(database) is None
