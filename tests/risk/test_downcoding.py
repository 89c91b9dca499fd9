"""Downcoding: what the absence of a cut forces, against enumeration, and the figures on the Adult table."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import anon
from anon.risk.downcoding import forced
from tests.conftest import House
from tests.oracles import downcoding as oracle


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_a_free_column_forces_what_every_column_without_a_cut_has(k: int) -> None:
    for n in range(2 * k, 2 * k + 4):
        assert int(forced(np.array([n]), k)[0]) == oracle.fewest_sharing(oracle.uncut(n, 2 * k - 1, k)), (n, k)
        assert int(forced(np.array([2 * k - 1]), k)[0]) == 0


@pytest.mark.parametrize("children", [2, 3, 4])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_a_hierarchy_forces_what_every_refused_split_has(children: int, k: int) -> None:
    for n in range(2 * k, 2 * k + 5):
        own = int(forced(np.array([n]), k, np.array([children]))[0])
        assert own <= oracle.fewest_sharing(oracle.unsplit(n, children, k)), (n, k)
        if children == 2:
            assert own == oracle.fewest_sharing(oracle.unsplit(n, children, k)), (n, k)


def test_a_rest_that_nothing_can_leave_is_forced_as_all_numbers_of_children_say() -> None:
    """Peeled splits: all ways to distribute n people over the children of a label, at least two of them not empty."""
    for k, children, n in product(range(2, 5), range(2, 5), range(4, 13)):
        sizes = (each for each in product(range(n + 1), repeat=children) if sum(each) == n and max(each) < n)
        uncut = [each for each in sizes if not any(size >= k and n - size >= k for size in each)]
        own = int(forced(np.array([n]), k, np.array([children]), peel=True)[0])
        assert own == (min(map(max, uncut)) if n >= 2 * k else 0), (n, k, children)


def overview(report: dict[str, Any], name: str) -> dict[str, Any]:
    return next(attack for attack in report["attacks"] if attack["name"] == name)


def config(folder: Path, columns: dict[str, Any], privacy: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "columns": {"individual": "row", "quasi_identifiers": columns, "sensitive": ["disease"]},
        "privacy": privacy,
        "release": {"path": str(folder / "out"), "run": str(folder / "run")},
    } | more


def test_the_figures_on_adult(adult: pa.Table, tmp_path: Path) -> None:
    columns: dict[str, Any] = {name: {} for name in ["age", "sex", "race", "marital_status", "education"]}
    settings = config(tmp_path, columns, [{"k_anonymity": {"k": 5}}])
    settings["columns"]["sensitive"] = ["occupation"]
    found = overview(anon.run(settings, adult).to_dict(), "downcoding")
    assert found["cells"] == {"generalized": 46_886, "at_least_50": 14_854, "at_least_90": 6_795}
    assert found["exact"] and found["individuals"] == 12_934 and found["largest"] == pytest.approx(112 / 116)


@pytest.mark.parametrize("labels", ["cells", "tight"])
def test_a_group_that_could_not_be_cut_is_counted_in_each_column(tmp_path: Path, labels: str) -> None:
    """Sixteen people, all but two of one age: with k = 5 at least 8 must share it."""
    table = pa.table({"age": [30] * 14 + [31, 32], "zip": ["a"] * 16, "disease": list("xy") * 8})
    method = {"kind": "partition", "labels": labels}
    told = anon.run(config(tmp_path, {"age": {}, "zip": {}}, [{"k_anonymity": 5}], method=method), table).to_dict()
    found = overview(told, "downcoding")
    assert found["cells"] == {"generalized": 16, "at_least_50": 16, "at_least_90": 0}
    assert (found["individuals"], found["largest"]) == (16, 0.5)


def test_other_criteria_and_methods_are_not_counted_and_say_why(house: House) -> None:
    house.write({"age": [20, 21, 30, 31], "zip": ["02139"] * 4, "disease": list("xyxy")})
    diverse = house.run(privacy=[{"k_anonymity": 2}, {"l_diversity": {"kind": "distinct", "l": 2}}]).to_dict()
    assert overview(diverse, "downcoding")["individuals"] is None
    assert "l_diversity" in overview(diverse, "downcoding")["found"]


def test_public_cuts_force_one_half_of_a_cell(tmp_path: Path) -> None:
    """The only cut of all ages leaves 6 of 16 people below it, so at least 16 - 7 + 1 are on one side."""
    table = pa.table({"age": [30] * 6 + [31] * 6 + [32] * 4, "disease": list("xy") * 8})
    method = {"kind": "partition", "prefer": "public"}
    told = anon.run(config(tmp_path, {"age": {}}, [{"k_anonymity": 7}], method=method), table).to_dict()
    assert (overview(told, "downcoding")["individuals"], overview(told, "downcoding")["largest"]) == (16, 10 / 16)
