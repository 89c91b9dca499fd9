"""Attacks on a release: homogeneity, elimination, and beliefs before and after, by hand and against brute force."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anon
from anon.criteria import Groups
from anon.criteria.priors import Prior
from anon.criteria.protocol import Signatures
from anon.errors import ConfigError
from anon.risk import attacks
from tests.conftest import House
from tests.oracles import beliefs as oracle

DISEASES = ["flu", "flu", "flu", "hiv", "flu", "flu", "cold", "cold", "cold", "cold"]
TABLE = {"age": ["1"] * 4 + ["2"] * 2 + ["3"] * 4, "zip": ["*"] * 10, "disease": DISEASES}


def attack(house: House, table: Any = None, **options: Any) -> dict[str, Any]:
    return anon.attack(house.config(), pa.table(TABLE) if table is None else table, **options).to_dict()


def test_homogeneous_and_nearly_homogeneous_groups_are_counted(house: House) -> None:
    told = attack(house, threshold=0.75)
    assert (told["groups"], told["rows"], told["individuals"]) == (3, 10, 10)
    assert (told["homogeneous_groups"], told["homogeneous_rows"]) == (2, 6)
    assert (told["affected_groups"], told["affected_rows"], told["affected_individuals"]) == (3, 10, 10)
    assert attack(house, threshold="0.76")["affected_rows"] == 6
    assert attack(house)["threshold"] == 0.95 and attack(house)["beliefs"] is None


def test_a_threshold_of_many_digits_is_held_against_large_groups_exactly() -> None:
    """What 0.1 * 9.5 is written as; times a thousand people it does not fit 64 bits."""
    groups = Groups.dense(np.array([[500, 500], [951, 49]]))
    threshold = Fraction("0.9500000000000001")
    assert attacks.homogeneous(groups, threshold, "single").tolist() == [False, True]
    assert [flags.tolist() for flags in attacks.eliminated(groups, threshold, 1)] == [[False, True], [True, True]]


groups_of_counts = st.lists(st.lists(st.integers(0, 6), min_size=4, max_size=4).filter(any), min_size=1, max_size=5)


@settings(max_examples=80, deadline=None)
@given(groups_of_counts, st.sampled_from([Fraction(1), Fraction(19, 20), Fraction(1, 2), Fraction(2, 3)]))
def test_elimination_is_the_worst_choice_of_values_to_rule_out(counts: list[list[int]], threshold: Fraction) -> None:
    found = attacks.eliminated(Groups.dense(np.array(counts)), threshold, 3)
    for ruled_out, flags in enumerate(found):
        for row, flag in zip(counts, flags.tolist()):
            shares = [
                Fraction(row[value], sum(row) - sum(row[v] for v in some))
                for value in range(4)
                if row[value]
                for count in range(ruled_out + 1)
                for some in combinations([v for v in range(4) if v != value], count)
            ]
            assert flag == (max(shares) >= threshold)


def test_multisets_count_the_chance_of_a_value(house: House) -> None:
    """Two people, three occurrences of flu: 1 - (1/2)^3 = 7/8 for each."""
    groups = Groups(np.array([2]), np.array([0, 2]), np.array([0, 1]), np.array([3, 1]))
    assert attacks.homogeneous(groups, Fraction(7, 8), "multiset").tolist() == [True]
    assert attacks.homogeneous(groups, Fraction(9, 10), "multiset").tolist() == [False]


def prior(p: list[list[float]], n: list[int] | None = None, values: int | None = None) -> Prior:
    named = [[Fraction(str(x)) for x in row] + [None] * ((values or len(row)) - len(row)) for row in p]
    names: list[str | None] = [str(v) for v in range(values or len(p[0]))]
    return Prior.from_rows(["q"], [(str(q),) for q in range(len(p))], names, named, n)


def test_the_papers_breach_is_found_and_its_people_counted() -> None:
    """The proof of Theorem 5.1: of 52 people 10 have q1; belief in s1 about them rises from .3 to .591."""
    merged = Groups(
        np.array([52]), np.array([0, 2]), np.array([0, 1]), np.array([36, 16]),
        signatures=(Signatures(np.array([0, 2]), np.array([0, 1]), np.array([10, 42])),),
    )  # fmt: skip
    found = attacks.belief_changes([merged], prior([[0.3, 0.7], [0.5, 0.5]], [50, 50]), Fraction(3, 4), (0.31, 0.58))
    assert found.breaches == attacks.Affected(1, 10, 10)
    assert found.positive == attacks.Affected(1, 42, 42) and found.negative == attacks.Affected(1, 42, 42)
    assert found.rise is not None and found.rise.before == 0.3
    assert found.rise.after == pytest.approx(81 / 137)
    assert found.fall is not None and found.fall.value == 1


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(1, 4), min_size=3, max_size=3), min_size=2, max_size=2),
    st.lists(st.integers(0, 5), min_size=3, max_size=3).filter(lambda counts: sum(counts) >= 2),
    st.booleans(),
)
def test_beliefs_are_those_of_the_theorem_in_fractions(
    population: list[list[int]], counts: list[int], named_only_one: bool
) -> None:
    p = [[Fraction(x, sum(row)) for x in row] for row in population]
    people = [sum(row) for row in population]
    shown = 1 if named_only_one else 3
    rows = [[*row[:shown], *[None] * (3 - shown)] for row in p]
    own = Prior.from_rows(["q"], [("0",), ("1",)], ["a", "b", "c"], rows, people)
    half = sum(counts) // 2
    groups = Groups.dense(np.array([counts]))
    signatures = Signatures(np.array([0, 2]), np.array([0, 1]), np.array([half, sum(counts) - half]))
    groups = Groups(groups.n, groups.start, groups.value, groups.count, signatures=(signatures,))
    found = attacks.belief_changes([groups], own, Fraction(1, 2), None)
    rises = []
    for row in p:
        whole = [sum(q[v] * n for q, n in zip(p, people)) / sum(people) for v in range(3)]
        if named_only_one:
            after = oracle.by_theorem([counts[0], sum(counts[1:])], [row[0], 1 - row[0]], [whole[0], 1 - whole[0]])[:1]
        else:
            after = oracle.by_theorem(counts, row, whole)
        rises += [float(a - b) for a, b in zip(after, row)]
    most = found.rise.after - found.rise.before if found.rise else 0
    assert most == pytest.approx(max(*rises, 0), abs=1e-12)


def test_many_groups_are_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    counts = rng.integers(1, 6, (40, 2))
    n = counts.sum(axis=1)
    half = n // 2
    people = np.column_stack([half, n - half]).reshape(-1)
    signatures = Signatures(np.arange(0, 81, 2), np.tile([0, 1], 40), people)
    dense = Groups.dense(counts)
    groups = Groups(dense.n, dense.start, dense.value, dense.count, signatures=(signatures,))
    own = prior([[0.3, 0.7], [0.6, 0.4]], [10, 20])
    whole = attacks.belief_changes([groups], own, Fraction(7, 10), (0.4, 0.6))
    monkeypatch.setattr(attacks, "CELLS", 9)
    assert attacks.belief_changes([groups], own, Fraction(7, 10), (0.4, 0.6)) == whole


def prior_file(folder: Path) -> Path:
    path = folder / "prior.csv"
    lines = ["age,value,p"] + [f"{age},{value},{p}" for age in "123" for value, p in
                               (("flu", 0.5), ("cold", 0.4), ("hiv", 0.1))]  # fmt: skip
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_prior_file_gives_beliefs_of_the_table(house: House) -> None:
    """Labels are constant in a group, so that beliefs become the shares: certain in groups 2 and 3, 3/4 in group 1."""
    told = attack(house, prior=prior_file(house.folder), rho1="0.45", rho2="0.7")["beliefs"]
    assert told["attributes"] == ["age"] and told["contradicted"] == 0
    assert told["positive"] == {"groups": 2, "individuals": 6, "new": 6}
    assert told["negative"]["individuals"] == 10 and told["breaches"] == {"groups": 1, "individuals": 4, "new": 4}
    assert told["largest_rise"] == {"value": "value #2 by frequency", "group": 2, "before": 0.4, "after": 1.0}


@pytest.mark.parametrize("options", [
    {"threshold": "0"}, {"threshold": "1.1"}, {"threshold": "x"}, {"threshold": "nan"}, {"rho1": 0.1},
    {"rho1": 0.1, "rho2": 0.5}, {"prior": "nowhere.csv"}, {"sensitive": "age"},
])  # fmt: skip
def test_what_makes_no_sense_is_refused(house: House, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        attack(house, **options)


def test_rho1_must_be_below_rho2(house: House) -> None:
    with pytest.raises(ConfigError, match="rho1 below rho2"):
        attack(house, prior=prior_file(house.folder), rho1=0.5, rho2=0.5)
