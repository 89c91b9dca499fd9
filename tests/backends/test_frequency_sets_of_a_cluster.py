"""The lattice search on a Spark cluster: the same recoding and rows as on one machine, whether the driver can take the
frequency sets or they stay with the executors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from anon.backends.spark import frequency_sets, lattice
from anon.search.lattice import search as local
from tests.conftest import House
from tests.helpers.backends import only_spark, run_as_plain

pytestmark = only_spark
ROWS = 900
DISEASE = {"sensitive": "disease"}
MONOTONE = [
    {"k_anonymity": {"k": 4}},
    {"l_diversity": {"kind": "entropy", "l": 1.3} | DISEASE},  # with both sensitive columns: joint
    {"t_closeness": {"t": 0.7, "distance": {"kind": "equal"}} | DISEASE},
    {"skyline": {"points": [{"l": 1, "k": 2, "m": 1, "c": 0.95}]} | DISEASE},
]


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the frequency sets that stayed on the cluster."""
    sizes: list[int] = []
    plain = frequency_sets.Entries.__init__

    def noting(self: frequency_sets.Entries, frame: Any, numbering: Any, many: int) -> None:
        sizes.append(many)
        plain(self, frame, numbering, many)

    monkeypatch.setattr(frequency_sets.Entries, "__init__", noting)
    return sizes


def people(rows: int = ROWS) -> pa.Table:
    draw = np.random.default_rng(rows)
    some = draw.random(rows) < 0.05
    return pa.table(
        {
            "age": pa.array(draw.integers(0, 60, rows), mask=some),
            "zip": [f"{code:02d}" for code in draw.integers(0, 40, rows)],
            "sex": [["m", "f"][one] for one in draw.integers(0, 2, rows)],
            "disease": [f"d{min(one, 4)}" for one in draw.geometric(0.4, rows)],
            "cost": draw.integers(0, 3, rows) * 100,
            "ward": [f"w{one}" for one in draw.integers(0, 3, rows)],
        }
    )


def wanted(privacy: list[Any], **method: Any) -> dict[str, Any]:
    return {
        "columns__quasi_identifiers": {"age": {"intervals": [10, 30]}, "zip": {"digits": 2}, "sex": {"suppress": True}},
        "columns__sensitive": {"disease": {}, "cost": {"as_categories": True}},
        "privacy": privacy,
        "method": {"kind": "lattice"} | method,
    }


def test_sets_that_the_driver_takes_give_the_same_release(
    house: House, kept: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Why no finer node is safe is told by the different rows of the table alone: here every row occurs twice, and one
    machine has as many records as there are different rows, the cluster as there are rows."""
    monkeypatch.setattr(local, "EXPLAINED", 500)
    table = pa.concat_tables([people(ROWS // 2)] * 2)
    changes = wanted(MONOTONE, choose="divergence", suppress=0.1) | {"columns__keep": ["ward"]}
    told, _ = run_as_plain(house, table, **changes)
    assert told.facts["suppressed"] > 0 and not kept
    assert told.report["lattice"]["finer"] is not None


@pytest.mark.long
def test_sets_that_stay_with_the_executors_give_the_same_release(
    house: House, kept: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small ones are taken as before, and the others are made of these where they can be."""
    monkeypatch.setattr(lattice, "COLLECTED", 150)
    monkeypatch.setattr(frequency_sets, "BUCKET", 500)
    changes = wanted([{"l_diversity": {"kind": "distinct", "l": 2, "joint": False} | DISEASE}], suppress=0.05)
    run_as_plain(house, people(), **changes)
    assert kept and max(kept) > 600 and min(kept) > 150
