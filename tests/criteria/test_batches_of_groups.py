"""`check` says the same of a table however its groups come in batches and its values are counted: every criterion of
the grammar, in every form and multiplicity."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon.verify import grouped, histograms
from tests.conftest import House

MATRIX = ";1;2;3\n1;0;0.2;1\n2;0.2;0;1\n3;1;1;0\n"
TREE = "1;low;*\n2;low;*\n3;high;*\n"
DISTANCES: list[dict[str, Any]] = [
    {"kind": "absolute"},
    {"kind": "equal"},
    {"kind": "ordered"},
    {"kind": "hierarchy", "file": "tree.csv"},
]
PAIRS: list[dict[str, Any]] = [
    {"kind": "matrix", "file": "matrix.csv"},
    {"kind": "variational", "columns": ["disease"]},
]
POINTS = [{"l": 1, "k": 1, "m": m, "c": 0.9} for m in (0, 1, 2)]
SKYLINE: dict[str, Any] = {"skyline": {"points": POINTS, "values": {"1": [{"l": 0, "k": 0, "m": 2, "c": 0.7}]}}}
SIZES: list[dict[str, Any]] = [{"k_anonymity": {"k": 2}}, {"group_size": {"k": 2}}]
DIVERSITY: list[dict[str, Any]] = [
    {"kind": "distinct", "l": 2},
    {"kind": "frequency", "l": 1.5},
    {"kind": "entropy", "l": 2},
    {"kind": "entropy", "l": 2, "dont_care": ["1"]},
    {"kind": "recursive", "c": 2, "l": 2},
    {"kind": "recursive", "c": 2, "l": 2, "dont_care": ["1"], "keep_possible": {"values": ["2"], "percent": 20}},
]
OTHERS: list[dict[str, Any]] = [
    SKYLINE,
    {"ck_safety": {"c": 0.9, "k": 2}},
    *({"dissimilarity": {"epsilon": 0.5, "delta": 0.5, "k": 2, "distance": d}} for d in DISTANCES + PAIRS),
    *({"t_closeness": {"t": 0.3, "distance": distance}} for distance in DISTANCES),
    {"alpha_k": {"alpha": 0.5, "k": 2}},
    {"epsilon_m": {"epsilon": 1, "m": 2}},
    {"k_e": {"k": 2, "e": 1}},
    {"variance": {"minimum": 0.5}},
    {"r_robustness": {"r": 1.5, "priors": [{"estimate": ["sex"]}, {"estimate": ["zip", "sex"]}]}},
]
EVERY = [*SIZES, *({"l_diversity": one} for one in DIVERSITY), *OTHERS]
SEVERAL: dict[str, Any] = {"columns__individual": "who", "release__form": "bucketized"}

people = st.tuples(st.integers(0, 7), st.sampled_from("fm"), st.integers(1, 3), st.integers(1, 2))
tables = st.lists(people, min_size=4, max_size=24).map(lambda some: [*some, *((0, "f", d, 1) for d in (1, 2, 3))])


def frame(some: list[tuple[int, str, int, int]]) -> pa.Table:
    age, sex, disease, ward = (list(column) for column in zip(*some))
    row = list(range(len(some)))
    columns = {"age": age, "zip": ["0*"] * len(row), "sex": sex, "disease": disease, "ward": ward, "who": row}
    return pa.table(columns)


def told(frame: Any, batch: int, **changes: Any) -> dict[str, Any]:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(histograms, "BATCH", batch)
        patch.setattr(grouped, "FEW_VALUES", batch % 2 and grouped.FEW_VALUES)
        for name, text in (("matrix.csv", MATRIX), ("tree.csv", TREE)):
            (Path(folder) / name).write_text(text)
        patch.chdir(folder)
        return House(Path(folder)).check(frame, **changes).to_dict()


@settings(max_examples=8, deadline=None)
@given(some=tables, batch=st.integers(1, 5))
def test_every_criterion(some: list[tuple[int, str, int, int]], batch: int) -> None:
    asked: dict[str, Any] = {"privacy": EVERY, "columns__keep": ["sex"]}
    asked["columns__sensitive"] = {"disease": {"as_categories": True}}
    assert told(frame(some), batch, **asked) == told(frame(some), 1000, **asked)


@settings(max_examples=8, deadline=None)
@given(some=tables, batch=st.integers(1, 5))
def test_diversity_beside_another_sensitive_column(some: list[tuple[int, str, int, int]], batch: int) -> None:
    asked: dict[str, Any] = {"privacy": [{"l_diversity": {"sensitive": "disease", **one}} for one in DIVERSITY]}
    asked["columns__sensitive"] = {name: {"as_categories": True} for name in ("disease", "ward")}
    assert told(frame(some), batch, **asked) == told(frame(some), 1000, **asked)


@pytest.mark.parametrize("multiplicity", ["set", "multiset"])
@settings(max_examples=8, deadline=None)
@given(some=tables, batch=st.integers(1, 5))
def test_several_values_per_individual(multiplicity: str, some: list[tuple[int, str, int, int]], batch: int) -> None:
    once = frame(some)
    twice = pa.concat_tables([once, once.set_column(3, "disease", [once["disease"].to_pylist()[::-1]])])
    asked = SEVERAL | {"privacy": [*SIZES, SKYLINE], "columns__multiplicity": multiplicity}
    assert told(twice, batch, **asked) == told(twice, 1000, **asked)


@settings(max_examples=8, deadline=None)
@given(some=tables, batch=st.integers(1, 5))
def test_bucketized_tables(some: list[tuple[int, str, int, int]], batch: int) -> None:
    table = frame(some)
    qi = table.select(["age", "zip"]).append_column("group", table["age"])
    held = table.group_by(["age", "disease"]).aggregate([([], "count_all")])
    held = held.select(["age", "disease", "count_all"]).rename_columns(["group", "disease", "count"])
    asked: dict[str, Any] = {
        "privacy": [one for one in EVERY if "r_robustness" not in one],
        "columns__sensitive": {"disease": {"as_categories": True}},
        "release__form": "bucketized",
    }
    assert told((qi, held), batch, **asked) == told((qi, held), 1000, **asked)
