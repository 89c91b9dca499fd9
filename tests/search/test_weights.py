"""Quasi-identifiers whose detail counts more than that of others."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anon
from anon.config import load
from anon.config.support import refuse_unsupported
from anon.criteria import KAnonymity
from anon.errors import ConfigError
from anon.search.partition import search as engine
from anon.search.partition.block import Block
from anon.search.partition.candidates import SCALE, Demands
from anon.search.prepare import whole_weights
from tests.conftest import House
from tests.helpers.backends import on_every_backend, run_as_plain
from tests.helpers.config import SMALL
from tests.helpers.cubes import Table
from tests.oracles import partition as oracle
from tests.search.test_partition import budget, check_counts, leaves, tables

WEIGHTS = [Decimal(each) for each in ("0.1", "0.5", "1", "1.25", "2", "3", "100")]
PRIVACY = [{"k_anonymity": {"k": 4}}]


def weighted(table: Table, weights: list[Decimal], collapsed: bool = False) -> Any:
    cube = table.cube(collapsed)
    whole = whole_weights(weights)
    cube.domains[:] = [replace(domain, weight=weight) for domain, weight in zip(cube.domains, whole)]
    return cube


def check_against_the_definition(
    table: Table, weights: list[Decimal], k: int, prefer: Any, block: int = 10**6, collapsed: bool = False
) -> None:
    wished = oracle.partition(
        table.rows, table.columns, lambda groups: all(len(group) >= k for group in groups), prefer, block,
        least=k, weights=[Fraction(weight) for weight in weights],
    )  # fmt: skip
    if wished is None:
        return
    with TemporaryDirectory() as spill:
        limits = budget(table, block, 2, memory=0, spill=Path(spill))
        found = engine.PartitionSearch(weighted(table, weights, collapsed), [KAnonymity(k)], prefer, limits).run()
        check_counts(table, found)
    uncut = [(tuple(None if c == o.whole() else c for c, o in zip(cells, table.columns)), own) for cells, own in wished]
    assert leaves(table, found.recoding) == sorted(uncut, key=lambda leaf: [cell or (-1, -1) for cell in leaf[0]])


@settings(max_examples=150, deadline=None)
@given(
    tables(), st.lists(st.sampled_from(WEIGHTS), min_size=3, max_size=3), st.integers(1, 3),
    st.sampled_from(["widest", "loss"]), st.sampled_from([10**6, 12, 5, 1]), st.booleans(),
)  # fmt: skip
def test_the_search_weighs_columns_as_its_naive_definition_does(
    table: Table, weights: list[Decimal], k: int, prefer: str, block: int, collapsed: bool
) -> None:
    check_against_the_definition(table, weights[: len(table.columns)], k, prefer, block, collapsed)


@pytest.mark.parametrize("prefer", ["widest", "loss"])
@pytest.mark.parametrize(
    ("weights", "ends"), [(("1", "3"), (3, 1)), (("0.3", "0.9"), (3, 1)), (("0.7", "0.1"), (1, 7))]
)
def test_extents_that_weights_make_equal_are_ties(prefer: str, weights: tuple[str, str], ends: tuple[int, int]) -> None:
    """Three tenths of one scale count as much as a tenth of another, three times as heavy: the first column is cut,
    although 3 * 0.1 is more than 0.3 in binary numbers."""
    grid = [float(at) for at in range(11)]
    rows = [((a, b), "x") for a, b in product((0, ends[0]), (0, ends[1])) for _ in range(2)]
    table = Table([oracle.Free(grid), oracle.Free(grid)], rows)
    check_against_the_definition(table, [Decimal(weight) for weight in weights], 4, prefer)
    found = engine.PartitionSearch(weighted(table, [Decimal(each) for each in weights]), [KAnonymity(4)], prefer).run()
    if prefer == "widest":
        assert found.recoding.column[0] == 0


@pytest.mark.parametrize("weight", ["0.1", "1", "2.5", "100"])
def test_equal_weights_are_no_weights(weight: str) -> None:
    assert whole_weights([Decimal(weight)] * 3) == [1, 1, 1]


def test_the_scale_of_the_heaviest_column_is_as_long_as_without_weights() -> None:
    table = Table([oracle.Free([0.0, 1.0, 3.0])] * 3, [((0, 0, 0), "x")])
    cube = weighted(table, [Decimal(100), Decimal("0.1"), Decimal(50)])
    scales = Block(cube, [0], Demands(), cube.records.read(0, 1)).scales
    assert [int(each[-1]) for each in scales] == [SCALE, round(SCALE / 1000), SCALE // 2]


def people() -> pa.Table:
    rng = random.Random(5)
    ages = [rng.randint(0, 63) for _ in range(256)]
    return pa.table({
        "age": ages, "income": [rng.randint(0, 63) for _ in ages],
        "ward": [f"w{rng.randint(0, 7)}" for _ in ages], "disease": [rng.choice(["Flu", "HIV"]) for _ in ages],
    })  # fmt: skip


def losses(house: House, method: dict[str, Any], **weights: Any) -> dict[str, float]:
    builders: dict[str, Any] = {"age": {"intervals": [4, 16]}, "income": {"intervals": [4, 16]}, "ward": {}}
    if method["kind"] == "partition":
        builders |= {"age": {}, "income": {}}
    own = {name: builder | ({"weight": weights[name]} if name in weights else {}) for name, builder in builders.items()}
    columns = {"individual": "row", "quasi_identifiers": own, "sensitive": ["disease"]}
    house.write(people())
    config = house.config(columns=columns, privacy=PRIVACY, method=method)
    anon.run(config, overwrite=True)
    released = pyarrow.parquet.read_table(house.folder / "out" / "release.parquet")
    assert anon.check(config, released).to_dict()["safe"]
    loss: dict[str, Any] = anon.utility(config, released).to_dict()["loss"]
    assert loss["all"] == pytest.approx(sum(loss["columns"].values()) / 3)
    return dict(loss["columns"])


METHODS: list[dict[str, Any]] = [
    {"kind": "partition", "prefer": "widest"},
    {"kind": "partition", "prefer": "loss", "labels": "tight"},
    {"kind": "lattice", "suppress": 0.05},
]


@pytest.mark.parametrize("method", METHODS)
def test_a_heavier_column_keeps_more(house: House, method: dict[str, Any]) -> None:
    plain, age, income = losses(house, method), losses(house, method, age=20), losses(house, method, income=20)
    assert age["age"] < income["age"] and income["income"] < age["income"]
    assert losses(house, method, age=2, income=2, ward=2) == plain


def test_the_lattice_chooses_by_the_weighted_mean(house: House) -> None:
    losses(house, {"kind": "lattice", "suppress": 0.05}, age=20, ward=0.5)
    found = json.loads((house.folder / "out-run" / "recoding.json").read_text())
    assert found["chosen"]["loss"] == min(entry["loss"] for entry in found["minimal"])
    report = json.loads((house.folder / "out-run" / "report.json").read_text())
    own = report["utility"]["loss"]["columns"]
    expected = (20 * own["age"] + own["income"] + 0.5 * own["ward"]) / 21.5
    assert found["chosen"]["loss"] == pytest.approx(expected, rel=1e-12)


@on_every_backend()
@pytest.mark.parametrize("method", METHODS)
def test_weights_mean_the_same_on_every_backend(house: House, method: dict[str, Any]) -> None:
    builders = {"age": {"weight": 3}, "income": {"intervals": [4, 16]}, "ward": {"suppress": True, "weight": 0.5}}
    columns = {"individual": "row", "quasi_identifiers": builders, "sensitive": ["disease"]}
    run_as_plain(house, people(), columns=columns, privacy=PRIVACY, method=method)


REFUSED: list[dict[str, Any]] = [
    {"kind": "partition", "prefer": "balanced"},
    {"kind": "partition", "prefer": {"information_gain": "age"}},
    {"kind": "lattice", "choose": "height"},
    {"kind": "reuse", "run": "earlier"},
    {"kind": "colour"},
]


@pytest.mark.parametrize("method", REFUSED)
def test_weights_that_would_have_no_effect_are_refused(method: dict[str, Any]) -> None:
    config = load(
        SMALL | {"columns": SMALL["columns"] | {"quasi_identifiers": {"age": {"weight": 2}}}, "method": method}
    )
    with pytest.raises(ConfigError) as refused:
        refuse_unsupported(config, run=True)
    assert "columns.quasi_identifiers.age.weight" in [problem.path for problem in refused.value.problems]
    unweighted = load(SMALL | {"method": {"kind": "partition", "prefer": "balanced"}})
    refuse_unsupported(unweighted, run=True)


@pytest.mark.parametrize("weight", [0, -1, 0.05, 101, "3", True, Decimal("1.234"), Decimal("1E-40"), Decimal("NaN")])
def test_other_weights_are_refused(weight: Any) -> None:
    columns = SMALL["columns"] | {"quasi_identifiers": {"age": {"weight": weight}}}
    with pytest.raises(ConfigError, match=r"columns.quasi_identifiers.age.weight"):
        load(SMALL | {"columns": columns})


BUILDERS: list[dict[str, Any]] = [
    {}, {"intervals": [5]}, {"bands": [1]}, {"suppress": True}, {"hierarchy": "h.csv"}, {"digits": 5},
    {"calendar": ["day"]}, {"age_on": "2024-12-31"},
]  # fmt: skip


@pytest.mark.parametrize("builder", BUILDERS)
def test_every_builder_takes_a_weight(builder: dict[str, Any]) -> None:
    written = [load(SMALL | {"columns": SMALL["columns"] | {"quasi_identifiers": {"age": own}}}) for own in (
        builder, builder | {"weight": 2.5})]  # fmt: skip
    plain, heavy = (config.columns.quasi_identifiers["age"] for config in written)
    assert (plain.kind, plain.weight, heavy.kind, heavy.weight) == (heavy.kind, 1, plain.kind, Decimal("2.5"))


def test_sensitive_columns_have_no_weight() -> None:
    for builder in BUILDERS:
        columns = SMALL["columns"] | {"sensitive": {"illness": builder | {"weight": 2}}}
        with pytest.raises(ConfigError, match=r"columns.sensitive.illness.weight: found an unknown key"):
            load(SMALL | {"columns": columns})
