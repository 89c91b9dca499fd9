"""Disclosure curves: the pieces of knowledge that are told reach the maximum in all worlds, and nothing exceeds it."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from operator import and_

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from anon.criteria import Groups
from anon.risk.disclosure import Curves, WorstCase, curves
from tests.oracles import ck_safety as oracle
from tests.oracles import worlds

VALUES = "abcd"
releases = st.lists(st.text(VALUES, min_size=1, max_size=4), min_size=1, max_size=3).filter(
    lambda release: sum(map(len, release)) <= 7
)


def of(release: list[str], max_k: int, batch: int = 10) -> Curves:
    def batches() -> list[Groups]:
        cut = [(at, release[at : at + batch]) for at in range(0, len(release), batch)]
        counts = [(at, np.array([[group.count(v) for v in VALUES] for group in part])) for at, part in cut]
        dense = [(at, Groups.dense(each)) for at, each in counts]
        return [Groups(g.n, g.start, g.value, g.count, at) for at, g in dense]

    return curves(batches(), max_k, len(set("".join(release))))


def reached(release: list[str], worst: WorstCase, negated: bool) -> Fraction:
    """How sure the told pieces make, in all worlds where they are true."""
    possible = worlds.single_worlds(release)
    free = [list(group) for group in possible.groups]
    people = [free[piece.group].pop(0) for piece in worst.pieces]
    goal, known = possible.has(people[0], VALUES[worst.value]), []
    for person, piece in zip(people, worst.pieces):
        for value in piece.values:
            event = possible.has(person, VALUES[value])
            known.append(possible.negation(event) if negated else possible.implication(event, goal))
    return worlds.probability(goal, reduce(and_, known, possible.every))


@settings(max_examples=60, deadline=None)
@given(releases, st.integers(0, 4))
@example(["aabbc", "ac"], 2)
def test_the_pieces_reach_what_is_told_and_are_as_many(release: list[str], max_k: int) -> None:
    told = of(release, max_k)
    groups = [oracle.histogram(group) for group in release]
    for k in range(max_k + 1):
        for worst, negated, p in (
            (told.worst_implications[k], False, told.implications[k]),
            (told.worst_negations[k], True, told.negations[k]),
        ):
            assert float(reached(release, worst, negated)) == pytest.approx(p, abs=1e-12) and worst.probability == p
            assert sum(len(piece.values) for piece in worst.pieces) <= k
        assert told.implications[k] == pytest.approx(float(oracle.disclosure(groups, k)), abs=1e-12)
        assert told.negations[k] == pytest.approx(float(oracle.negated_disclosure(groups, k)), abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(releases, st.integers(0, 3))
def test_batches_make_no_difference(release: list[str], max_k: int) -> None:
    assert of(release, max_k, batch=1).implications == pytest.approx(of(release, max_k).implications, abs=1e-12)
    assert of(release, max_k, batch=1).negations == pytest.approx(of(release, max_k).negations, abs=1e-12)


def test_the_papers_figure_3_at_one_and_two_pieces() -> None:
    """Five men with flu, flu, lung cancer, lung cancer, mumps; five women with flu, flu and three others."""
    counts = np.array([[2, 2, 1, 0, 0, 0], [2, 0, 0, 1, 1, 1]])
    told = curves([Groups.dense(counts)], 2, 6)
    assert told.implications == pytest.approx([2 / 5, 2 / 3, 1])
    assert told.worst_implications[1].sentence("ABCDEF".__getitem__) == (
        "An adversary who learns that the person does not have B is 66.7% sure that a person in group 0 has A."
    )


def test_pieces_about_several_people_are_told_together() -> None:
    counts = np.array([[30, *[1] * 30]])
    sentence = curves([Groups.dense(counts)], 3, 31).worst_implications[3].sentence(lambda code: f"v{code}")
    assert "that the person has v0 if any of 3 other people in group 0 has v0" in sentence


def test_more_pieces_than_values_tell_no_more_than_everything() -> None:
    assert of(["ab", "ab"], 6).implications == [0.5, 1, 1, 1, 1, 1, 1]
