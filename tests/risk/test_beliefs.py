"""Beliefs before and after a release against counted random worlds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anon.criteria.protocol import Groups, Signatures
from anon.risk.beliefs import beliefs, breaches, negative_disclosures, observed, positive_disclosures
from tests.oracles import beliefs as oracle

populations = st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=2), min_size=2, max_size=2)


def array(rows: list[list[int]]) -> np.ndarray:
    return np.array(rows, np.float64)


@settings(max_examples=150, deadline=None)
@given(populations, st.lists(st.integers(0, 2), min_size=2, max_size=2), st.integers(0, 1))
def test_theorem_3_1_counts_random_worlds(population: list[list[int]], counts: list[int], signature: int) -> None:
    assume(0 < sum(counts) <= 3)
    truth = oracle.observed(population, signature, counts)
    assume(truth is not None and all(n <= sum(column) for n, column in zip(counts, zip(*population))))
    people = array(population)
    found = observed(np.array(counts), people[signature] / people[signature].sum(), people.sum(axis=0) / people.sum())
    assert found == pytest.approx([float(p) for p in truth or []], abs=1e-12)


def test_a_population_of_three_signatures_and_three_values() -> None:
    population, counts = [[1, 1, 0], [0, 1, 1], [1, 0, 1]], [1, 1, 1]
    people = array(population)
    for signature, row in enumerate(people):
        truth = oracle.observed(population, signature, counts)
        assert truth is not None
        found = observed(np.array(counts), row / row.sum(), people.sum(axis=0) / people.sum())
        assert found == pytest.approx([float(p) for p in truth])


def test_the_paper_s_merged_block_breaches_although_its_parts_do_not() -> None:
    """Theorem 5.1 with errata 23: .591 for q1, .771 for q2."""
    p, population = np.array([[0.3, 0.7], [0.5, 0.5]]), np.array([0.5, 0.5])
    apart = Groups.dense(np.array([[5, 5], [7, 3]]))
    before = beliefs(apart, Signatures(np.array([0, 1, 2]), np.array([0, 1]), np.array([10, 10])), p, population)
    assert before.after == pytest.approx(np.array([[0.5, 0.5], [0.7, 0.3]]))
    assert not breaches(before.before, before.after, 0.31, 0.58).any()
    merged = Groups.dense(np.array([[36, 16]]))
    after = beliefs(merged, Signatures(np.array([0, 2]), np.array([0, 1]), np.array([10, 42])), p, population)
    assert after.after[:, 0] == pytest.approx([81 / 137, 27 / 35])
    assert breaches(after.before, after.after, 0.31, 0.58).tolist() == [[True, True], [False, False]]


def test_belief_may_fall_too_far_as_well() -> None:
    before, after = np.array([0.7, 0.3]), np.array([0.4, 0.6])
    assert breaches(before, after, 0.31, 0.58).tolist() == [True, True]
    assert breaches(before, after, 0.31, 0.6).tolist() == [False, False]


def test_beliefs_of_many_groups_are_those_of_each() -> None:
    rng = np.random.default_rng(4)
    p = rng.dirichlet(np.ones(4), size=5)
    population = rng.integers(1, 50, 5).astype(np.float64)
    counts = rng.integers(0, 6, (30, 4)) + np.eye(4, dtype=np.int64)[rng.integers(0, 4, 30)]
    present = [np.sort(rng.choice(5, rng.integers(1, 6), replace=False)) for _ in counts]
    start = np.concatenate([[0], np.cumsum([len(codes) for codes in present])])
    code = np.concatenate(present)
    groups = Groups.dense(counts)
    shifted = Groups(groups.n, groups.start, groups.value, groups.count, first=100)
    found = beliefs(shifted, Signatures(start, code, rng.integers(1, 9, len(code))), p, population)
    for row, (group, signature) in enumerate(zip(found.group.tolist(), found.signature.tolist())):
        members = present[group - 100]
        share = [[Fraction(cell) for cell in p[q].tolist()] for q in members]
        weight = [Fraction(population[q]) for q in members]
        mixture = [sum(w * f for w, f in zip(weight, column)) / sum(weight) for column in zip(*share)]
        truth = oracle.by_theorem(counts[group - 100].tolist(), share[members.tolist().index(signature)], mixture)
        assert found.before[row].tolist() == p[signature].tolist()
        assert found.after[row] == pytest.approx([float(b) for b in truth], abs=1e-12)


def test_without_a_population_the_group_s_own_people_weigh() -> None:
    p = np.array([[0.2, 0.8], [0.6, 0.4]])
    signatures = Signatures(np.array([0, 2]), np.array([0, 1]), np.array([3, 1]))
    found = beliefs(Groups.dense(np.array([[2, 2]])), signatures, p)
    given = beliefs(Groups.dense(np.array([[2, 2]])), signatures, p, np.array([3.0, 1.0]))
    assert found.after.tolist() == given.after.tolist()


def test_a_homogeneous_group_is_sure_of_its_value() -> None:
    after = observed(np.array([4, 0]), np.array([0.1, 0.9]), np.array([0.2, 0.8]))
    assert after.tolist() == [1.0, 0.0]
    assert positive_disclosures(after, 0.05).tolist() == [True, False]
    assert negative_disclosures(after, 0.05).tolist() == [False, True]


def test_disclosures_are_strict_at_their_thresholds() -> None:
    assert positive_disclosures(np.array([0.5, 0.75]), 0.5).tolist() == [False, True]
    assert negative_disclosures(np.array([0.25, 0.5]), 0.5).tolist() == [True, False]


def test_what_no_world_explains_is_no_belief_and_no_breach() -> None:
    impossible = observed(np.array([1, 1]), np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    nothing_left = observed(np.array([2, 0]), np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    for after in (impossible, nothing_left):
        assert np.isnan(after).all()
        assert not breaches(np.array([0.0, 1.0]), after, 0.5, 0.5).any()
