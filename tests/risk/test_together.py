"""What several releases reveal together: exactly in small components, within bounds elsewhere, against enumeration."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import pyarrow as pa
import pytest

from anon.config.criterion import Confidence
from anon.core.database import Database
from anon.risk import together
from anon.risk.together import BeliefBounds, Together
from tests.oracles import together as oracle
from tests.risk.test_shared_worlds import random_releases

NO_BOUNDS = BeliefBounds({})


def registered(releases: Sequence[oracle.Release]) -> Database:
    """A database with the people and the published values of some releases."""
    people = [
        (who, at, g) for at, release in enumerate(releases) for g, (members, _) in enumerate(release) for who in members
    ]
    values = [
        (at, g, str(value), count)
        for at, release in enumerate(releases)
        for g, (_, published) in enumerate(release)
        for value, count in Counter(published).items()
    ]
    database = Database.in_memory()
    database.register(together.PEOPLE, pa.table(dict(zip(("who", "release", "g"), map(list, zip(*people))))))
    database.register(together.VALUES, pa.table(dict(zip(("release", "g", "v", "c"), map(list, zip(*values))))))
    return database


def found(releases: Sequence[oracle.Release], bounds: BeliefBounds = NO_BOUNDS) -> Together:
    database = registered(releases)
    return together.learned(database, together.link(database, len(releases)), bounds)


@pytest.mark.parametrize("seed", range(40))
def test_small_components_are_counted_exactly(seed: int) -> None:
    releases = random_releases(random.Random(seed))
    if not any(releases):
        return
    one, expected = found(releases), oracle.figures(releases)
    assert one.exact and not one.contradictory
    assert (one.individuals, one.one_value, one.two_values) == (
        expected["individuals"], expected["one_value"], expected["two_values"],
    )  # fmt: skip
    largest = expected["largest_belief"]
    assert one.largest_belief == (None if largest is None else pytest.approx(float(largest)))


@pytest.mark.parametrize("seed", range(40))
def test_bounds_hold_where_nothing_is_counted(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    releases = random_releases(random.Random(seed))
    expected = oracle.figures(releases)
    if not expected["individuals"]:
        return
    monkeypatch.setattr(together, "MOST_PEOPLE", 0)
    bound = BeliefBounds({value: Confidence(Fraction(1, 2)) for value in "abcd"}, fewest=2)
    bounded, largest = found(releases, bound), float(expected["largest_belief"])
    assert not bounded.exact and not bounded.contradictory
    assert bounded.at_least <= largest + 1e-12 and largest <= bounded.at_most + 1e-12
    assert bounded.at_least - 1e-12 <= bounded.largest_belief <= bounded.at_most + 1e-12
    assert bounded.one_value <= expected["one_value"]
    beliefs, linked = oracle.beliefs(releases), oracle.linked(releases)
    over = sum(max(beliefs[who].values()) > Fraction(1, 2) for who in linked)
    assert bounded.certainly_over <= over == found_exactly(releases, bound, monkeypatch).over


def found_exactly(releases: Sequence[oracle.Release], bounds: BeliefBounds, patch: pytest.MonkeyPatch) -> Together:
    patch.setattr(together, "MOST_PEOPLE", 48)
    return found(releases, bounds)


def test_a_product_is_exact_for_the_only_person_in_both(monkeypatch: pytest.MonkeyPatch) -> None:
    releases = [[([0, 1, 2, 3], "aabc")], [([0, 4, 5, 6], "abbd")]]
    monkeypatch.setattr(together, "MOST_PEOPLE", 0)
    belief = max(oracle.beliefs(releases)[0].values())
    assert belief == Fraction(1, 2) and found(releases).largest_belief == pytest.approx(0.5)


def test_an_estimate_that_is_too_low_leaves_beliefs_open(monkeypatch: pytest.MonkeyPatch) -> None:
    releases = [[([5, 2], "ab"), ([1, 4, 6], "aba")], [([2, 0], "ba"), ([5, 3, 4], "abb")]]
    bound = BeliefBounds({value: Confidence(Fraction(7, 10)) for value in "ab"})
    assert found(releases, bound).over == found(releases, bound).possibly_over > 0
    monkeypatch.setattr(together, "MOST_PEOPLE", 0)
    bounded = found(releases, bound)
    assert bounded.largest_belief == pytest.approx(2 / 3) and max(
        max(each.values()) for each in oracle.beliefs(releases).values()
    ) == Fraction(3, 4)
    assert bounded.over == 0 < bounded.possibly_over


@pytest.mark.parametrize("times", [2, 4, 6])
def test_a_small_component_of_many_releases_is_counted_exactly(times: int) -> None:
    releases = [[(list(range(40)), "ab" * 20)] for _ in range(times)]
    one = found(releases)
    assert one.exact and (one.individuals, one.two_values, one.largest_belief) == (40, 40, pytest.approx(0.5))


def test_groups_that_no_world_fits_are_counted_apart() -> None:
    contradictory = found([[([0, 1], "ab"), ([7], "a")], [([0, 2], "cd"), ([8], "a")]])
    assert contradictory.contradictory == 3 and contradictory.one_value == 0


def test_releases_of_other_people_add_nothing() -> None:
    apart = found([[([0, 1], "aa")], [([2, 3], "aa")]])
    assert apart == Together(0) and apart.exact


@pytest.mark.parametrize(("bound", "over"), [(Fraction(1, 2), 0), (Fraction(49, 100), 3)])
def test_a_bound_may_be_reached(bound: Fraction, over: int) -> None:
    releases = [[([0, 1], "ab")], [([0, 2], "ab")]]
    assert found(releases, BeliefBounds({v: Confidence(bound) for v in "ab"})).over == over
    assert found(releases, BeliefBounds({v: Confidence(bound, open=True) for v in "ab"})).over == 3


def test_a_long_chain_of_groups_is_not_a_small_component() -> None:
    chain = [[([i, i + 1], "ab") for i in range(0, 200, 2)], [([i, i + 1], "ab") for i in range(1, 199, 2)]]
    assert not found(chain).exact
