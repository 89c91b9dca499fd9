"""How large groups have to be in a random sample: against the definition in exact fractions, against SafePub's formula,
and against the promise itself on tiny tables, over all of their samples."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction
from math import log

import pytest

from anon.config.sampling import Sampling, largest_share
from tests.oracles import differential_privacy as oracle

# (epsilon, delta) of the tests of ARX, with the least k by the formula that it implements; the loop in its source
# counts once more after the last comparison, so that it uses k + 1
SAFEPUB = {
    ("2", "1e-5"): 113,
    ("1.5", "1e-6"): 99,
    ("0.6931471805599453", "1e-7"): 80,
    ("1.0986122886681098", "1e-8"): 108,
    ("1", "1e-6"): 74,
}
PROMISES = [
    (epsilon, delta, share)
    for epsilon in ("0.3", "1", "1.5")
    for delta in ("0.3", "0.02")
    for share in (Fraction(1, 8), Fraction(1, 4), Fraction(5, 8), None)
    if share is None or share <= largest_share(Decimal(epsilon))
]


def sampling(epsilon: str, delta: str, share: Fraction | None = None) -> Sampling:
    found = Sampling.derived(Decimal(epsilon), Decimal(delta))
    return found if share is None else Sampling(share, Decimal(epsilon), Decimal(delta))


@pytest.mark.parametrize(("promise", "k"), SAFEPUB.items())
def test_the_least_group_is_that_of_safepub(promise: tuple[str, str], k: int) -> None:
    assert sampling(*promise).k == k == oracle.k_of_safepub(*map(float, promise))


@pytest.mark.parametrize(("epsilon", "delta", "share"), PROMISES)
def test_the_least_group_is_that_of_the_definition(epsilon: str, delta: str, share: Fraction | None) -> None:
    """Neither unsafe nor too large: the definition is applied to all groups up to a size far above k."""
    drawn = sampling(epsilon, delta, share)
    rough = Fraction(int(drawn.share * 2**24), 2**24)  # shorter fractions
    k = oracle.least_group(rough, Fraction(epsilon), Fraction(delta), 2 * drawn.k + 9)
    assert drawn.k == k


@pytest.mark.parametrize("epsilon", ["0.001", "0.5", "5"])
def test_the_largest_share_is_rounded_down(epsilon: str) -> None:
    share, exact = sampling(epsilon, "0.01").share, 1 - 1 / oracle.power_of_e(Fraction(epsilon))
    assert exact - Fraction(2, 2**64) < share < exact


def test_k_grows_as_the_promise_does() -> None:
    shares = [sampling("1", "1e-6", Fraction(i, 16)).k for i in range(1, 11)]
    deltas = [sampling("1", f"1e-{i}").k for i in range(1, 12)]
    assert shares == sorted(shares)
    assert deltas == sorted(deltas)


TABLES = ["", "a", "aa", "ab", "aaaa", "aaab", "aabb", "abcd", "aaaaaaa", "aaaaabb", "aaaabbbb"]
TABLES += ["".join(random.Random(seed).choices("aab", k=7)) for seed in range(4)]


LOOSE = [
    ("1", "0.3", None),
    ("1", "0.1", Fraction(1, 4)),
    ("0.3", "0.05", Fraction(1, 8)),
    ("1.5", "0.25", Fraction(5, 8)),
]


@pytest.mark.parametrize(("epsilon", "delta", "share"), LOOSE)
@pytest.mark.parametrize("table", TABLES)
def test_the_promise_holds_for_every_tiny_table(table: str, epsilon: str, delta: str, share: Fraction | None) -> None:
    drawn = sampling(epsilon, delta, share)
    everybody = oracle.published(table, drawn.share, drawn.k)
    for others in oracle.neighbours(table):
        without = oracle.published(others, drawn.share, drawn.k)
        assert oracle.excess(everybody, without, Fraction(epsilon)) <= Fraction(delta)
        assert oracle.excess(without, everybody, Fraction(epsilon)) <= Fraction(1, 10**30)  # of the series of e^x


def test_without_suppression_the_promise_is_broken() -> None:
    """Somebody who is alone is seen with the probability of being drawn."""
    drawn = sampling("1", "0.3")
    alone, nobody = (oracle.published(table, drawn.share, 1) for table in ("a", ""))
    assert oracle.excess(alone, nobody, Fraction(1)) == drawn.share > Fraction(drawn.delta)


@pytest.mark.parametrize(("epsilon", "delta", "share"), PROMISES)
def test_a_smaller_k_lets_some_group_tell_too_much(epsilon: str, delta: str, share: Fraction | None) -> None:
    drawn = sampling(epsilon, delta, share)
    rough = Fraction(int(drawn.share * 2**24), 2**24)
    sizes = range(1, 2 * drawn.k + 9)
    worst = max(oracle.too_telling(n, rough, Fraction(epsilon), drawn.k - 1) for n in sizes)
    assert drawn.k == 1 or worst > Fraction(delta)


def test_epsilon_may_be_the_logarithm_of_two() -> None:
    assert sampling(str(log(2)), "0.01").share < Fraction(1, 2) + Fraction(1, 2**50)
