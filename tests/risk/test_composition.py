"""Composition in the overview of attacks: what the replaced release adds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import anon
from anon.risk.composition import composition

TOGETHER = {"individuals": 9, "one_value": 2, "two_values": 3, "largest_belief": 1.0, "over": 4, "exact": False}


def test_beliefs_above_the_promise_break_it() -> None:
    found = composition(TOGETHER, 0.5)
    assert (found.individuals, found.largest, found.bound, found.breached, found.exact) == (4, 1.0, 0.5, True, False)
    assert not composition(TOGETHER | {"over": 0}, None).breached


def test_a_sample_is_called_one() -> None:
    found = composition(TOGETHER | {"groups_examined": 20, "groups": 3_000}, 0.5).to_dict()
    assert "in both releases in a sample of 20 of 3,000 groups" in found["found"]
    assert (found["groups_examined"], found["groups"]) == (20, 3_000)


def run(folder: Path, table: pa.Table) -> dict[str, Any]:
    settings = {
        "columns": {"individual": "id", "quasi_identifiers": {"age": {}}, "sensitive": ["disease"]},
        "privacy": [{"l_diversity": {"kind": "frequency", "l": 2}}],
        "release": {"path": str(folder / "out"), "run": str(folder / "run")},
    }
    told = anon.run(settings, table, overwrite=True).to_dict()
    return next(attack for attack in told["attacks"] if attack["name"] == "composition")


def test_a_first_release_has_nothing_to_be_held_against_and_a_second_one_has(tmp_path: Path) -> None:
    table = pa.table({"id": [*range(8)], "age": [20, 21, 22, 23, 40, 41, 42, 43], "disease": list("abcdabcd")})
    first = run(tmp_path, table)
    assert (first["individuals"], first["exact"]) == (0, True) and "nothing to compose" in first["found"]
    again = run(tmp_path, table.slice(0, 7))
    assert again["individuals"] is not None and "7 individuals in both" in again["found"]
