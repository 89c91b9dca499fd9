"""Random tables with every criterion that the partition method enforces: every backend finds the recoding of a plain
local run, byte for byte, and publishes the same rows in the same order."""

from __future__ import annotations

import datetime
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest

from anon.config import LDiversity
from anon.config.support import ENFORCED, SUPPORT
from anon.search import budget
from anon.search.partition import search as partition
from tests.conftest import House
from tests.helpers.backends import each_on_every_backend, run_as_plain

Draw = np.random.Generator

QUASI_IDENTIFIERS: dict[str, Any] = {
    "age": {}, "zip": {"digits": 3}, "weight": {}, "admitted": {"calendar": ["day", "month", "year"]},
    "smokes": {"suppress": True}, "grade": {"intervals": [2, 4]},
}  # fmt: skip
D, X = {"sensitive": "d"}, {"sensitive": "x"}
POINTS = {"points": [{"l": 1, "k": 2, "m": 2, "c": 0.97}], "values": {"d4": [{"l": 1, "k": 3, "m": 1, "c": 0.97}]}}
CRITERIA: list[dict[str, Any]] = [
    {"k_anonymity": {"k": 3}},
    {"group_size": {"k": 4}},
    {"l_diversity": {"kind": "distinct", "l": 2} | D},
    {"l_diversity": {"kind": "frequency", "l": 1.1, "joint": False} | D},
    {"l_diversity": {"kind": "entropy", "l": 1.3, "joint": False} | D},
    {"l_diversity": {"kind": "recursive", "c": 9, "l": 2, "joint": False} | D},
    {"l_diversity": {"kind": "recursive", "c": 9, "l": 2, "dont_care": ["d0"], "absent": "ok", "joint": False} | D},
    {"skyline": POINTS | {"absent": "ok"} | D},
    {"ck_safety": {"c": 0.98, "k": 2} | D},
    {"t_closeness": {"t": 0.6, "distance": {"kind": "equal"}} | D},
    {"alpha_k": {"alpha": 0.9, "k": 3} | D},
    {"dissimilarity": {"epsilon": 2, "delta": 0.2, "k": 3, "distance": {"kind": "absolute"}} | X},
    {"k_e": {"k": 2, "e": 10} | X},
    {"variance": {"minimum": 40} | X},
    {"epsilon_m": {"epsilon": 2, "m": 2} | X},
    {"delta_disclosure": {"delta": 3} | D},
]
SEEDS = range(len(CRITERIA))  # each begins with the criterion of its number


@each_on_every_backend("seed", SEEDS, gaps={}, always=[7])
def test_a_random_table_is_released_as_by_a_plain_run(house: House, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(seed)
    monkeypatch.setattr(budget, "BLOCK", int(draw.integers(500, 3_000)))  # so that there is a top, and blocks
    monkeypatch.setattr(partition, "SMALLEST_BLOCK", 1)
    local, _ = run_as_plain(house, people(draw), files=int(draw.integers(1, 5)), **wanted(draw, seed))
    assert local.facts["groups"] > 1
    assert not house.leftovers()


def test_every_criterion_that_partition_enforces_is_among_them() -> None:
    named = [(name, parameters.get("kind")) for each in CRITERIA for name, parameters in each.items()]
    assert {name for name, _ in named} == {name for name, support in SUPPORT.items() if support.partition == ENFORCED}
    kinds = get_args(LDiversity.model_fields["kind"].annotation)
    assert {kind for name, kind in named if name == "l_diversity"} == set(kinds)


def people(draw: Draw) -> pa.Table:
    """Few or many people, with values that are skewed more or less, some of them missing."""
    rows = int(draw.integers(200, 1_200))
    missing = draw.random(rows) < draw.choice([0, 0.1])
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(int(day)) for day in draw.integers(0, 90, rows)]
    return pa.table(
        {
            "age": pa.array(draw.integers(0, draw.integers(5, 100), rows), mask=missing),
            "zip": [f"{code:03d}" for code in draw.integers(0, 400, rows)],
            "weight": np.where(missing, np.nan, draw.normal(70, 20, rows).round(1)),
            "admitted": pa.array(days),
            "smokes": pa.array((draw.random(rows) < 0.3).tolist()),
            "grade": draw.integers(-3, 6, rows),
            "d": [f"d{code}" for code in draw.choice(6, rows, p=draw.dirichlet(np.full(6, 4)))],
            "x": draw.integers(0, 8, rows) * 5,
            "dose": draw.integers(-2, 3, rows) * 0.5,
        }
    )


def wanted(draw: Draw, seed: int) -> dict[str, Any]:
    """A config with the criterion of a number and two others."""
    others = draw.choice(len(CRITERIA), 2, replace=False).tolist()
    privacy = [CRITERIA[at] for at in dict.fromkeys([seed, *others])]
    asked = {parameters["sensitive"] for each in privacy for parameters in each.values() if "sensitive" in parameters}
    sensitive = sorted(asked) or ["d"]
    names = draw.choice(list(QUASI_IDENTIFIERS), int(draw.integers(2, 5)), replace=False).tolist()
    forms = ["generalized", "bucketized"] if len(sensitive) == 1 else ["generalized"]
    return {
        "columns__quasi_identifiers": {name: QUASI_IDENTIFIERS[name] for name in names},
        "columns__sensitive": {name: {"as_categories": True} if name == "x" else {} for name in sensitive},
        "columns__keep": [[], ["dose"]][draw.integers(2)],
        "privacy": privacy,
        "method": {
            "prefer": ["widest", "balanced", "loss", "public", {"information_gain": sensitive[0]}][draw.integers(5)],
            "labels": ["cells", "tight"][draw.integers(2)],
            "cuts": ["nodes", "ordered"][draw.integers(2)],
        },
        "release__form": forms[draw.integers(len(forms))],
    }
