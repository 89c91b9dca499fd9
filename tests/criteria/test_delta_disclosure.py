"""delta-disclosure privacy against its definition: random groups, deltas next to a logarithm, groups that lack a value,
and what suppression does to the table that groups are compared with."""

from __future__ import annotations

import math
import random
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon.config import CRITERIA
from anon.criteria.delta_disclosure import DeltaDisclosure, compare_log
from anon.errors import ConfigError
from tests.conftest import House
from tests.helpers.criterion_laws import (
    check_batches,
    check_merging,
    check_owners,
    histograms,
    judged,
    one_safe,
    shuffled,
)
from tests.oracles import delta_disclosure as oracle

SIZE = 4
groups = st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=12)
releases = st.lists(groups, min_size=1, max_size=4)
seeds = st.integers(0, 2**32).map(random.Random)
deltas = st.sampled_from(list(map(Fraction, ("1e-12", "0.25", "0.7", "1", "2", "900"))))


def reference(release: list[list[int]]) -> list[int]:
    everybody = [code for group in release for code in group]
    return [everybody.count(code) for code in range(SIZE)]


def logarithm(ratio: Fraction, digits: int, rounding: str) -> Fraction:
    """Return ln(ratio) rounded down or up."""
    with localcontext(prec=digits + 30):
        exact = Decimal(ratio.numerator).ln() - Decimal(ratio.denominator).ln()
        return Fraction(exact.quantize(Decimal(1).scaleb(-digits), rounding))


@settings(max_examples=200, deadline=None)
@given(releases, deltas, seeds)
def test_a_release_is_judged_by_the_definition(release: list[list[int]], delta: Fraction, rng: random.Random) -> None:
    table = [code for group in release for code in group]
    criterion = DeltaDisclosure("s", delta, reference(release))
    batch = histograms(release, SIZE)
    verdict = judged(criterion, batch)
    assert verdict.safe == all(oracle.holds(group, table, delta) for group in release)
    figures = [float(oracle.figure(group, table)) for group in release]
    assert verdict.figure == pytest.approx(max(figures), abs=1e-9)
    assert figures[verdict.worst_group] == pytest.approx(max(figures), abs=1e-9)
    assert judged(criterion, shuffled(batch, rng)).safe == verdict.safe


@settings(max_examples=150, deadline=None)
@given(releases, st.integers(10, 60))
def test_a_delta_next_to_a_logarithm_is_decided_exactly(release: list[list[int]], digits: int) -> None:
    """Where floats see a tie: delta is the logarithm of the worst ratio itself, rounded down and rounded up."""
    table = [code for group in release for code in group]
    ratios = [ratio for group in release for ratio in oracle.ratios(group, table)]
    worst = max(max(ratio, 1 / ratio) for ratio in ratios) if all(ratios) else Fraction(1)
    if worst == 1:
        return
    for rounding, safe in (("ROUND_FLOOR", False), ("ROUND_CEILING", True)):
        delta = logarithm(worst, digits, rounding)
        criterion = DeltaDisclosure("s", delta, reference(release))
        assert judged(criterion, histograms(release, SIZE)).safe is safe
        assert all(oracle.holds(group, table, delta) for group in release) is safe


@pytest.mark.parametrize("counts", [(1, 1), (1, 3), (2, 5), (10**6, 10**6 + 1), (10**9, 10**9 + 7)])
def test_balanced_and_nearly_balanced_values(counts: tuple[int, int]) -> None:
    """One group with equal counts in a table with these: the ratio is the larger share over a half, or its inverse."""
    low, high = counts
    total = low + high
    worst = max(Fraction(total, 2 * low), Fraction(2 * high, total))
    group = histograms([[0, 1]], 2)
    if worst == 1:
        assert judged(DeltaDisclosure("s", Fraction(1, 10**18), counts), group).safe
        return
    for digits in (20, 40, 200):
        assert judged(DeltaDisclosure("s", logarithm(worst, digits, "ROUND_CEILING"), counts), group).safe
        assert not judged(DeltaDisclosure("s", logarithm(worst, digits, "ROUND_FLOOR"), counts), group).safe


def test_a_ratio_is_compared_with_a_power_of_e() -> None:
    below, above = Fraction(271828182845904523536, 10**20), Fraction(271828182845904523537, 10**20)  # next to e
    assert compare_log(below, Fraction(1)) == -1 and oracle.below_exp(below, Fraction(1))
    assert compare_log(above, Fraction(1)) == 1 and not oracle.below_exp(above, Fraction(1))
    assert compare_log(Fraction(1), Fraction(1, 10**300)) == -1


@settings(max_examples=200, deadline=None)
@given(groups, groups, groups, deltas)
def test_merging_keeps_safety_and_no_safe_group_is_below_the_least_size(
    one: list[int], two: list[int], rest: list[int], delta: Fraction
) -> None:
    check_merging(DeltaDisclosure("s", delta, reference([one, two, rest])), one, two, SIZE)


@settings(max_examples=50, deadline=None)
@given(releases, releases, deltas, seeds)
def test_states_merge_in_any_order_and_owners_are_kept_apart(
    one: Any, two: Any, delta: Fraction, rng: random.Random
) -> None:
    criterion = DeltaDisclosure("s", delta, reference(one + two))
    check_batches(criterion, one, lambda part, first: histograms(part, SIZE, first), rng)
    check_owners(criterion, [one, two], SIZE)


def test_the_least_group_has_every_value_and_dilutes_the_rarest() -> None:
    assert DeltaDisclosure("s", Fraction(5), [5, 5, 5]).least_group == 3
    assert DeltaDisclosure("s", Fraction(1), [90, 10]).least_group == 4  # 1/n < 0.1 e
    assert DeltaDisclosure("s", Fraction(900), [10**9]).least_group == 1


def test_a_group_that_lacks_a_value_is_infinitely_far(house: House) -> None:
    table = table_of({(20, "02139"): (1, 1), (30, "02139"): (2, 0)})
    found = house.check(table, privacy=[{"delta_disclosure": {"delta": 1000}}]).to_dict()["criteria"][0]
    assert (found["safe"], found["figure"], found["bound"], found["relation"]) == (False, "inf", 1000.0, "<")
    assert found["failed"][0]["text"].startswith("a group without a value of the table")


def test_the_nearest_delta_holds() -> None:
    criterion = DeltaDisclosure("s", Fraction(1, 10), [1, 3])
    group = histograms([[0, 1]], 2)
    (words,) = criterion.nearest(group, judged(criterion, group).findings[0])
    assert words == "delta = 0.693148"
    assert one_safe(DeltaDisclosure("s", Fraction("0.693148"), [1, 3]), [0, 1], 2)
    assert not one_safe(DeltaDisclosure("s", Fraction("0.693147"), [1, 3]), [0, 1], 2)


def table_of(counts: dict[tuple[int, str], tuple[int, int]]) -> pa.Table:
    rows = [
        {"age": age, "zip": code, "disease": value}
        for (age, code), held in counts.items()
        for value, times in zip("ab", held)
        for _ in range(times)
    ]
    return pa.Table.from_pylist(rows)


SUPPRESSED = {(20, "02139"): (2, 2), (30, "02139"): (36, 0), (40, "02139"): (10, 10)}


@pytest.mark.parametrize("suppress", [0, 0.7])
def test_a_lattice_that_suppresses_compares_groups_with_what_is_left(house: House, suppress: float) -> None:
    """36 people without the second value are left out; what stays is half and half, and so is every group."""
    method = {"kind": "lattice", "suppress": suppress}
    quasi = {"age": {"suppress": True}, "zip": {"suppress": True}}
    columns = {"individual": "row", "quasi_identifiers": quasi, "sensitive": ["disease"]}
    privacy = [{"delta_disclosure": {"delta": 0.95}}]
    house.run(table_of(SUPPRESSED), privacy=privacy, method=method, columns=columns)
    published = house.released().to_pylist()
    diseases = [row["disease"] for row in published]
    held = {key: [r["disease"] for r in published if (r["age"], r["zip"]) == key] for key in labels(published)}
    assert all(oracle.holds(group, diseases, Fraction("0.95")) for group in held.values())
    assert (len(published), len(held)) == ((24, 2) if suppress else (60, 1))


def labels(published: list[dict[str, Any]]) -> set[tuple[Any, Any]]:
    return {(row["age"], row["zip"]) for row in published}


@pytest.mark.parametrize(
    ("figure", "found"), [(0.5, "The largest factor is e^0.5."), ("inf", "A group lacks a value.")]
)
def test_the_report_says_what_was_found(figure: Any, found: str) -> None:
    entry = {"name": "delta_disclosure", "safe": True, "figure": figure, "sensitive": "disease", "worst_group": 0}
    spec = CRITERIA["delta_disclosure"]
    asked, reported = spec.sentences({"delta": 1}, entry)
    assert spec.title({"delta": 1}) == "delta-disclosure" and reported == found
    assert "every group" in asked and "e^1" in asked


@pytest.mark.parametrize("delta", [0, -1])
def test_delta_is_above_zero(house: House, delta: int) -> None:
    with pytest.raises(ConfigError, match=r"privacy\[0\]\.delta_disclosure\.delta"):
        house.check(pa.table({"age": [1]}), privacy=[{"delta_disclosure": {"delta": delta}}])


def test_a_huge_delta_only_asks_for_every_value() -> None:
    criterion = DeltaDisclosure("s", Fraction(10**300), [1, 10**9])
    assert one_safe(criterion, [0, 1], 2) and not one_safe(criterion, [1, 1], 2)
    assert math.isinf(judged(criterion, histograms([[1, 1]], 2)).figure)
