"""The skyline's scan of many groups, which passes over most of them without formulas, against every formula of every
group: the same minima to the last bit, and the same witnesses."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from anon.criteria import Groups, Point, Skyline
from anon.criteria import skyline as module

Counts = NDArray[np.int64]
points = st.builds(Point, st.integers(0, 5), st.integers(0, 6), st.integers(0, 6), st.just(Fraction(1)))


def family(n: int, s: int, m: int, k: int) -> float:
    product = 1.0
    for i in range(m):
        if n - s - k - i <= 0:
            return 0.0
        product *= (n - s - k - i) / (n - k - i)
    return product


def figures(n: int, s: int, others: list[int], p: Point) -> list[float]:
    """SS1 to SS5 of one group."""
    nobody, known = (max(n - s - sum(others[: p.l]) - k, 0) / s for k in (0, p.k))
    families = [family(n, s, p.m, k) for k in (p.k + 1, 0, p.k)]
    return [known * families[0], nobody, known, *families[1:]]


def lowest(counts: Counts, own: list[list[Point]], first: int) -> list[tuple[float, ...]]:
    """The five minima of every (value, point) with their witnesses: the least of all figures of all groups."""
    most = max(p.l for points in own for p in points)
    best = []
    for value, points in enumerate(own):
        for p in points:
            found = [[(start, *[0] * (most + 3))] for start in (np.inf, np.inf, np.inf, 1.0, 1.0)]
            for g, row in enumerate(counts.tolist()):
                others = sorted(row[:value] + row[value + 1 :], reverse=True) + [0] * most
                if row[value]:
                    witness = sum(row), row[value], *others[: p.l], *[0] * (most - p.l), first + g
                    for column, figure in zip(found, figures(sum(row), row[value], others, p)):
                        column.append((figure, *witness))
            best.extend(min(column) for column in found)
    return best


def some_counts(seed: int, groups: int, values: int) -> Counts:
    """Groups of many kinds: alike or not, of one size or several, with frequent and rare values."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 40))
    sizes = rng.integers(size, size + int(rng.integers(1, 20)), size=groups)
    counts = rng.multinomial(sizes, rng.dirichlet(np.full(values, rng.choice([0.3, 1.0, 20.0]))))
    return counts[rng.integers(0, int(rng.integers(1, groups + 1)), size=groups)].astype(np.int64)


def scanned(counts: Counts, own: list[list[Point]], first: int, shared: bool = False) -> list[tuple[Any, ...]]:
    dense = Groups.dense(counts)
    state = Skyline("s", own, shared).state(Groups(dense.n, dense.start, dense.value, dense.count, first))
    return [(value, *witness) for value, witness in zip(state.values.tolist(), state.witness.tolist())]


@pytest.mark.parametrize("room", [module.MEMO, 100])
@settings(max_examples=150, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**32), groups=st.integers(module.FEW + 1, 150), first=st.integers(0, 1000))
def test_a_scan_that_skips_groups_finds_the_minima_and_witnesses_of_all_formulas(
    room: int, data: st.DataObject, seed: int, groups: int, first: int
) -> None:
    own = data.draw(st.lists(st.lists(points, max_size=4, unique=True), min_size=2, max_size=6).filter(any))
    counts = some_counts(seed, groups, len(own))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MEMO", room)
        assert scanned(counts, own, first) == lowest(counts, own, first)


@settings(max_examples=100, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**32), groups=st.integers(module.FEW + 1, 150))
def test_a_scan_that_skips_groups_shares_slots_like_one_that_does_not(
    data: st.DataObject, seed: int, groups: int
) -> None:
    own = data.draw(st.lists(st.lists(points, max_size=4, unique=True), min_size=2, max_size=6).filter(any))
    counts = some_counts(seed, groups, len(own))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FEW", groups)
        plain = scanned(counts, own, 7, shared=True)
    assert scanned(counts, own, 7, shared=True) == plain


def test_larger_batches_of_groups_give_the_same_minima_as_their_parts() -> None:
    rng = np.random.default_rng(5)
    counts = rng.multinomial(rng.integers(20, 80, size=4000), np.full(12, 1 / 12))
    criterion = Skyline("s", [[Point(l, 3 * l, 8 - l, Fraction(1)) for l in range(8)]] * 12)
    groups = Groups.dense(counts)
    whole = criterion.state(groups)
    parts = [groups.part(at, at + 50) for at in range(0, 4000, 50)]
    merged = criterion.state(parts[0])
    for at, part in enumerate(parts[1:], 1):
        merged = merged.merge(criterion.state(Groups(part.n, part.start, part.value, part.count, 50 * at)))
    assert np.array_equal(whole.values, merged.values)
    assert np.array_equal(whole.witness, merged.witness)
    assert np.array_equal(whole.values, criterion.minima(groups, np.zeros(4000, np.int64), 1)[0])
