"""Numbers of the papers and counterexamples to their statements (docs/how-it-works.md) that no other test has."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa

import anon


def config(folder: Path, columns: dict[str, Any], privacy: dict[str, Any]) -> dict[str, Any]:
    return {
        "source": {"path": "unused.parquet"},
        "columns": {"individual": "row", "quasi_identifiers": columns, "sensitive": ["s"]},
        "privacy": [privacy],
        "release": {"path": str(folder / "release")},
    }


def test_a_partition_is_minimal_only_among_the_cuts_that_it_tries(tmp_path: Path) -> None:
    """Privacy Skyline, Theorem 5: no cut of x separates safely, but the groups {1, 3} and {2, 4} are safe."""
    skyline = {"skyline": {"points": [{"l": 0, "k": 0, "m": 0, "c": 0.6}]}}
    people = pa.table({"x": [1, 2, 3, 4], "s": ["a", "a", "b", "b"]})
    assert anon.run(config(tmp_path, {"x": {}}, skyline), people).to_dict()["groups"] == 1
    finer = pa.table({"x": ["1 or 3", "2 or 4", "1 or 3", "2 or 4"], "s": ["a", "a", "b", "b"]})
    found = anon.check(config(tmp_path, {"x": {}}, skyline), finer).to_dict()
    assert (found["safe"], found["groups"]) == (True, 2)


def test_alpha_k_anonymity_is_not_a_dissimilarity(tmp_path: Path) -> None:
    """General proximity, section III-B: the risk leaves out the person itself, the share does not."""
    people = pa.table({"x": ["1", "1"], "s": ["a", "b"]})
    share = {"alpha_k": {"alpha": 0.4, "k": 2}}
    risk = {"dissimilarity": {"epsilon": 0, "delta": 0.6, "k": 2, "distance": {"kind": "equal"}}}
    by_share, by_risk = (anon.check(config(tmp_path, {"x": {}}, each), people).to_dict() for each in (share, risk))
    assert (by_share["safe"], by_share["criteria"][0]["figure"]) == (False, 0.5)
    assert (by_risk["safe"], by_risk["criteria"][0]["figure"]) == (True, 0)


def test_one_group_of_five_in_81_has_no_diversity(tmp_path: Path) -> None:
    """l-Diversity, section 1.1: with three equally likely values all 3^5 groups of five are equally likely. `attack`
    finds those without diversity among them; of 12,000 groups that makes 148, with 740 people."""
    groups = list(product("abc", repeat=5))
    people = pa.table({
        "x": [str(number) for number in range(len(groups)) for _ in range(5)],
        "s": [value for group in groups for value in group],
    })  # fmt: skip
    found = anon.attack(config(tmp_path, {"x": {}}, {"k_anonymity": {"k": 5}}), people).to_dict()
    affected = Fraction(found["homogeneous_groups"], found["groups"])
    assert affected == Fraction(1, 81)
    assert (int(12_000 * affected), 5 * int(12_000 * affected)) == (148, 740)
