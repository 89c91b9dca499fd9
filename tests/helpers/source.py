"""A table with every kind of column, shared by the tests of the source stage. Outside the way of the data."""

from __future__ import annotations

import datetime as dt
import io
from typing import Any

import pyarrow as pa
import pyarrow.csv

ROWS = pa.table(
    {
        "age": [20, 21, 22, 30, 31, 32, 40, 41, None, 51, 52, 53],
        "zip": [*(["02139", "02138", "02137", "12139", "12138", "12137"] * 2)[:11], None],
        "disease": ["Flu", "HIV", "Flu", "Cold", "Cold", "HIV", "Flu", "Flu", "Cold", "Flu", "HIV", "Cold"],
        "weight": [1.5, 2.25, -3.0, None, 0.1, 1e-7, 7.0, 8.5, 9.0, 10.0, 11.0, 12.0],
        "admitted": [dt.date(2024, 1, day) for day in range(1, 13)],
        "seen": [dt.datetime(2024, 1, 1, hour, 30) for hour in range(12)],
        "insured": [True, False] * 6,
    }
)
EVERYTHING: dict[str, Any] = {
    "columns": {
        "individual": "row",
        "quasi_identifiers": {"age": {}, "zip": {"digits": 5}},
        "sensitive": ["disease"],
        "keep": ["weight", "admitted", "seen", "insured"],
    }
}


def as_csv(table: pa.Table, separator: str = ",") -> bytes:
    sink = io.BytesIO()
    pyarrow.csv.write_csv(table, sink, pyarrow.csv.WriteOptions(delimiter=separator))
    return sink.getvalue()
