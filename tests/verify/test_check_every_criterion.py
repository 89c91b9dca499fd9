"""`check` with every criterion gives the same JSON on every backend, whatever the table's labels are and however its
rows lie; what a cluster cannot do it refuses with the reason."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import anon
from anon.backends.spark import check
from anon.errors import ConfigError, SourceError
from tests.conftest import House
from tests.helpers.backends import LOCAL, each_on_every_backend, on_every_backend, only_spark

ROWS = 600
DISEASE, COST = {"sensitive": "disease"}, {"sensitive": "cost"}
D1 = {"d1": [{"l": 1, "k": 1, "m": 1, "c": 0.5}]}
SHARES = {"kind": "variational", "columns": ["low", "high"]}
EVERY = [
    {"k_anonymity": {"k": 5}},
    {"group_size": {"k": 1}},
    {"l_diversity": {"kind": "distinct", "l": 2} | DISEASE},  # joint: the other column counts as quasi-identifier
    {"l_diversity": {"kind": "recursive", "c": 3, "l": 2, "joint": False} | DISEASE},
    {"skyline": {"points": [{"l": 1, "k": 2, "m": 2, "c": 0.9}], "values": D1} | DISEASE},
    {"ck_safety": {"c": 0.9, "k": 2} | DISEASE},
    {"t_closeness": {"t": 0.3, "distance": {"kind": "equal"}} | DISEASE},
    {"alpha_k": {"alpha": 0.7, "k": 3} | DISEASE},
    {"k_e": {"k": 2, "e": 200} | COST},
    {"variance": {"minimum": 100} | COST},
    {"epsilon_m": {"epsilon": 100, "m": 2} | COST},
    {"dissimilarity": {"epsilon": 50, "delta": 0.1, "k": 3, "distance": {"kind": "absolute"}} | COST},
    {"dissimilarity": {"epsilon": 0.5, "delta": 0.1, "k": 2, "distance": SHARES}},
    {"r_robustness": {"r": 2, "priors": [{"estimate": ["sex"], "smoothing": 1}]} | DISEASE},
]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a small table is in several partitions."""
    monkeypatch.setattr(check, "PART", 150)


def grouped(rows: int = ROWS) -> pa.Table:
    """Labels of several types, with missing ones, values of which some are missing, and a kept column."""
    draw = np.random.default_rng(rows)
    share = draw.integers(0, 5, rows) / 4
    days = [datetime.date(2024, month, 1) for month in draw.integers(1, 3, rows).tolist()]
    return pa.table(
        {
            "age": pa.array([f"{ten}0-{ten}9" for ten in draw.integers(1, 8, rows)], mask=draw.random(rows) < 0.1),
            "level": pa.array(draw.integers(0, 3, rows).astype(np.int16)),
            "born": pa.array(days, mask=draw.random(rows) < 0.1),
            "sex": draw.choice(["m", "f", "ä"], rows).tolist(),
            "disease": [f"d{min(one, 5)}" for one in draw.geometric(0.4, rows).tolist()],
            "cost": (draw.integers(0, 6, rows) * 100.0).tolist(),
            "low": share,
            "high": 1 - share,
            "ward": [f"w{one}" for one in draw.integers(0, 4, rows)],
        }
    )


def wanted(**more: Any) -> dict[str, Any]:
    columns = {
        "columns__quasi_identifiers": {"age": {}, "level": {}, "born": {}, "sex": {}},
        "columns__sensitive": {"disease": {}, "cost": {"as_categories": True}, "low": {}, "high": {}},
        "columns__keep": ["ward", "missing"],
        "privacy": EVERY,
    }
    return columns | more


def checked_alike(house: House, table: Any, there: Any = None, **changes: Any) -> dict[str, Any]:
    """What `check` says on one machine, which must be what it says on the backend of the test."""
    config = house.config(**changes)
    here = anon.check(config | {"backend": LOCAL}, table, show_values=True)
    again = anon.check(config, table if there is None else there, show_values=True)
    assert again.to_dict() == here.to_dict()
    assert again.report == here.report
    return here.to_dict()


@on_every_backend()
def test_every_criterion_gives_the_same_figures(house: House) -> None:
    for part in range(3):
        house.write(grouped().slice(part * 200, 200), f"parts/{part}.parquet")
    told = checked_alike(house, str(house.folder / "parts"), **wanted())
    assert told["groups"] > 100 and len({each["safe"] for each in told["criteria"]}) == 2
    assert len({each["worst_group"] for each in told["criteria"]}) > 3
    assert list(told["with_kept"]) == ["ward"]


@each_on_every_backend("multiplicity", ["set", "multiset"], gaps={}, always=["set", "multiset"])
def test_individuals_with_several_values_are_counted_once(house: House, multiplicity: str) -> None:
    draw, rows = np.random.default_rng(5), 300
    who = draw.integers(0, 120, rows)
    table = pa.table(
        {
            "id": who,
            "age": [f"{one % 7}0" for one in who],
            "sex": [["m", "f"][one % 2] for one in who],
            "disease": [f"d{one}" for one in draw.integers(0, 5, rows)],
        }
    )
    privacy = [{"k_anonymity": {"k": 3}}, {"skyline": {"points": [{"l": 1, "k": 1, "m": 1, "c": 0.9}]}}]
    columns = {
        "individual": "id",
        "multiplicity": multiplicity,
        "quasi_identifiers": {"age": {}, "sex": {}},
        "sensitive": ["disease"],
    }
    told = checked_alike(house, table, columns=columns, privacy=privacy, release__form="bucketized")
    assert told["individuals"] < told["rows"]


@on_every_backend()
def test_missing_values_are_dropped_or_refused_alike(house: House) -> None:
    table = grouped(90)
    table = table.set_column(5, "cost", pa.array([float("nan"), None, 1.5] * 30))
    privacy = [{"k_anonymity": {"k": 2}}]
    told = checked_alike(house, table, **wanted(privacy=privacy, nulls={"sensitive": "drop"}))
    assert told["rows"] == 30
    said = []
    for backend in (LOCAL, house.backend):
        nulls = {"sensitive": "error", "quasi_identifiers": "error"}
        with pytest.raises(ConfigError) as error:
            anon.check(house.config(**wanted(privacy=privacy, nulls=nulls)) | {"backend": backend}, table)
        said.append(str(error.value))
    assert said[0] == said[1] and "60 rows without a value" in said[0]


@on_every_backend(always=True)
def test_labels_of_numbers_keep_their_order(house: House) -> None:
    """Worst groups are told by their place in the order of labels."""
    draw, rows = np.random.default_rng(2), 120
    labels = {
        "f": pa.array(draw.choice([-0.1, 0.1, 1e10, float("nan"), -0.0], rows).astype(np.float32)),
        "d": pa.array([Decimal(one) / 100 for one in draw.integers(-5, 5, rows).tolist()], pa.decimal128(9, 2)),
        "b": draw.random(rows) < 0.5,
    }
    table = pa.table(labels | {"disease": draw.choice(["x", "y", "z"], rows).tolist()})
    changes = {
        "columns__quasi_identifiers": {name: {} for name in labels},
        "privacy": [{"k_anonymity": {"k": 2}}, {"alpha_k": {"alpha": 0.5, "k": 1}}],
    }
    checked_alike(house, table, **changes)


@pytest.mark.long
@only_spark
def test_frames_and_tables_of_the_catalog_are_read(cluster: Any, house: House) -> None:
    privacy = [{"k_anonymity": {"k": 2}}, {"alpha_k": {"alpha": 0.9, "k": 2} | DISEASE}]
    frame = cluster.createDataFrame(grouped())
    frame.createOrReplaceTempView("labels_to_check")
    for there in (frame, "labels_to_check"):
        checked_alike(house, grouped(), there, **wanted(privacy=privacy))


@only_spark
def test_what_needs_one_machine_is_refused(house: House) -> None:
    config = house.config(**wanted(privacy=[{"k_anonymity": {"k": 2}}]))
    table = grouped(30)
    lists = table.set_column(0, "age", pa.array([["a"]] * 30))
    (house.folder / "labels.csv").write_text("age\n1\n")
    for wrong, said in (
        ((table, table), r"^table: .*bucketized table with backend spark"),
        (str(house.folder / "labels.csv"), r"^table: .*CSV files with backend spark"),
        (lists, r"columns\.quasi_identifiers\.age.*labels of type VARCHAR\[\] with backend spark"),
    ):
        with pytest.raises(ConfigError, match=said):
            anon.check(config, wrong)
    with pytest.raises(SourceError, match="no such file"):
        anon.check(config, "nothing/here.parquet")
    with pytest.raises(ConfigError, match=r"backend\.kind.*works on one machine"):
        anon.utility(config, table)
