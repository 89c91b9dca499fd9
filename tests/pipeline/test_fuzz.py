"""A fixed number of cases of the differential fuzz (tests/fuzz); `make fuzz` runs more of them."""

from __future__ import annotations

import os
import pkgutil
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anon.config import CRITERIA
from tests.fuzz import generate, run
from tests.fuzz.__main__ import shown

CASES, CHUNK = 300, 30


@pytest.mark.parametrize("first", range(0, CASES, CHUNK))
def test_searches_and_verdicts_agree_with_their_definitions(first: int) -> None:
    found = run.chunk(first, first + CHUNK)
    assert not found, "\n".join(f"make fuzz SEED={each.seed}: {'; '.join(each.told)}" for each in found)


def test_the_cases_are_of_every_kind() -> None:
    cases = [generate.case(seed) for seed in range(CASES)]
    assert {case.family for case in cases} == set(run.FAMILIES)
    assert {name for case in cases for item in case.privacy for name in item} == {
        name for name, model in CRITERIA.items() if model.about_groups and name != "differential_privacy"
    }  # which needs a sample
    assert {case.multiplicity for case in cases} == {"single", "set", "multiset"}
    assert {case.release.get("form", "generalized") for case in cases} == {"generalized", "bucketized"}
    assert {len(case.sensitive) for case in cases} == {1, 2}
    assert {column.kind for case in cases for column in case.quasi} == {"integer", "number", "text", "tree"}
    assert any(person[column.name] is None for case in cases for column in case.quasi for person in case.people)
    assert any(case.method.get("suppress") for case in cases)


def test_one_command_repeats_a_case_in_another_process() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", "--seed", "3"], capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONHASHSEED": "7"},
    ).stdout  # fmt: skip
    assert told == shown(generate.case(3)) + "no difference\n"


def one_more(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given: function(*given) + 1


def all_alike(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given: np.zeros_like(function(*given))


def only_the_first(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given: function(*given)[:1]


@pytest.mark.parametrize(
    ("family", "place", "change"),
    [
        ("partition", "anon.search.partition.decide.widths", all_alike),
        ("lattice", "anon.search.lattice.search.minimal", only_the_first),
        ("merge", "anon.search.cross_tables.PriorTable.size_for", lambda function: lambda *given: 2),
        ("colour", "anon.search.assign.colour.allowed", one_more),
        ("judge", "anon.criteria.l_diversity.kinds.DistinctDiversity.diversity", one_more),
        ("check", "anon.criteria.k_anonymity.KAnonymity.measure", one_more),
    ],
)
def test_a_mistake_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, family: str, place: str, change: Callable[..., Any]
) -> None:
    owner, _, name = place.rpartition(".")
    monkeypatch.setattr(place, change(getattr(pkgutil.resolve_name(owner), name)))
    cases = (generate.MAKERS[family](seed, random.Random(seed)) for seed in range(400))
    assert any(run.differences(case, tmp_path) for case in cases)
