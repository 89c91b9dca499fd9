"""A table with every type of column, for tests of one release on every backend."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

ROWS = 1_500


def people(rows: int = ROWS) -> pa.Table:
    """A table with every type of column and with missing values."""
    draw = np.random.default_rng(rows)
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(int(day)) for day in draw.integers(0, 200, rows)]
    some = draw.random(rows) < 0.1
    return pa.table(
        {
            "name": [f"person {row}" for row in range(rows)],
            "age": pa.array(draw.integers(0, 100, rows).astype(np.int16), mask=some),
            "zip": [f"{code:05d}" for code in draw.integers(0, 400, rows)],
            "weight": pa.array(np.where(some, np.nan, draw.normal(70, 20, rows).round(1)).astype(np.float32)),
            "admitted": pa.array(days),
            "smokes": pa.array((draw.random(rows) < 0.3).tolist(), pa.bool_()),
            "disease": [f"d{code}" for code in draw.choice(5, rows, p=[0.4, 0.3, 0.15, 0.1, 0.05])],
            "cost": pa.array([Decimal(int(cents)).scaleb(-2) for cents in draw.integers(0, 10**6, rows)]),
            "seen": pa.array(draw.integers(0, 10**12, rows), pa.timestamp("us")),
            "dose": pa.array(np.where(some, np.nan, draw.integers(-2, 3, rows) * 0.5)),
            "visits": pa.array(draw.integers(0, 4, rows)),
        }
    )


COLUMNS: dict[str, Any] = {
    "identifiers": ["name"],
    "individual": "row",
    "quasi_identifiers": {
        "age": {}, "zip": {"digits": 5}, "weight": {}, "admitted": {"calendar": ["day", "month", "year"]},
        "smokes": {"suppress": True},
    },
    "sensitive": ["disease"],
}  # fmt: skip
