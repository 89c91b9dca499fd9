"""Small random tables with everything that a release can meet, and a run over them: shared by the tests of release,
verify and publish. Outside the way of the data."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from anon import pipeline
from anon.runs.options import Options
from anon.runs.result import Result
from tests.oracles.labels import Nodes, Plain

Row = dict[str, Any]
Rows = list[Row]

CITIES = ["Zürich", "a|b", "{x", "ß", "Ōsaka", "z", "É", "e", "back\\slash", "😀"]
DISEASES = ["flu", "HIV", "Ångst", "a,b", 'quo"te', "line\nbreak", "", "😀"]
NOTES = ["", " ", "comma,comma", 'say "no"', "two\r\nlines", "null", "ünïcode", "\\N", None]
SCHEMA = {
    "age": pa.int64(), "score": pa.float64(), "born": pa.date32(), "seen": pa.timestamp("us"), "city": pa.string(),
    "sex": pa.string(), "zip": pa.string(), "disease": pa.string(), "grade": pa.int32(), "cost": pa.decimal128(9, 2),
    "weight": pa.float64(), "note": pa.string(), "at": pa.timestamp("us", "UTC"), "name": pa.string(),
    "secret": pa.string(),
}  # fmt: skip
QUASI_IDENTIFIERS: dict[str, Any] = {
    "age": {}, "score": {}, "born": {}, "seen": {}, "city": {}, "sex": {"suppress": True}, "zip": {"digits": 3},
}  # fmt: skip
SENSITIVE = ["disease", "grade"]
KEEP = ["cost", "weight", "note", "at"]


def random_rows(seed: int, count: int) -> Rows:
    """Rows with nulls, unicode, negative numbers, ties, NaN and negative zero."""
    rng = random.Random(seed)

    def maybe(value: Any, share: float = 0.1) -> Any:
        return None if rng.random() < share else value

    def score(index: int) -> float | None:
        return maybe(rng.choice([-1.5, -0.0, 0.0, 0.1, 2.25, 1e6, math.nan])) if index else None

    day, noon = dt.date(2023, 12, 25), dt.datetime(2024, 3, 9, 12)
    return [
        {
            "age": maybe(rng.randint(-4, 30)),
            "score": score(index),
            "born": maybe(day + dt.timedelta(days=rng.randint(0, 20))),
            "seen": maybe(noon + dt.timedelta(minutes=rng.randint(0, 9), milliseconds=250 * rng.randint(0, 1))),
            "city": maybe(rng.choice(CITIES)),
            "sex": maybe(rng.choice("fm")),
            "zip": maybe(f"{rng.randint(0, 3)}{rng.randint(0, 2)}{rng.randint(0, 9)}"),
            "disease": rng.choice(DISEASES),
            "grade": maybe(rng.randint(-2, 2)),
            "cost": maybe(rng.randint(-300, 300)),
            "weight": maybe(rng.choice([math.nan, -0.0, 0.0, math.inf, -2.5, 1e-7])),
            "note": rng.choice(NOTES),
            "at": maybe(noon.replace(tzinfo=dt.UTC) + dt.timedelta(hours=rng.randint(-2, 2))),
            "name": f"IDENTIFIER-{index}",
            "secret": f"DROPPED-{index}",
        }
        for index in range(count)
    ]


def as_table(rows: Rows) -> pa.Table:
    columns = {name: [row[name] for row in rows] for name in SCHEMA}
    columns["cost"] = [None if cost is None else cost_of(cost) for cost in columns["cost"]]
    return pa.table({name: pa.array(columns[name], kind) for name, kind in SCHEMA.items()})


def cost_of(cents: int) -> Any:
    from decimal import Decimal

    return Decimal(cents) / 100


def config(folder: Path, **changes: Any) -> dict[str, Any]:
    """A config for the random tables in `folder`; changes by dotted path, with __ for the dot."""
    made: dict[str, Any] = {
        "source": {"path": str(folder / "source.parquet")},
        "columns": {
            "identifiers": ["name"],
            "individual": "row",
            "quasi_identifiers": dict(QUASI_IDENTIFIERS),
            "sensitive": list(SENSITIVE),
            "keep": list(KEEP),
        },
        "nulls": {"sensitive": "value"},
        "privacy": [{"k_anonymity": {"k": 3}}],
        "release": {"path": str(folder / "out")},
        "limits": {"threads": 2},
    }
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = made
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
    return made


def run(folder: Path, rows: Rows | pa.Table, **changes: Any) -> Result:
    """Writes the source and runs over it; what stood there before is replaced."""
    pq.write_table(rows if isinstance(rows, pa.Table) else as_table(rows), folder / "source.parquet")
    return pipeline.run(config(folder, **changes), None, Options(overwrite=True, force=True))


def released(folder: Path) -> Rows:
    rows: Rows = pq.ParquetFile(folder / "out" / "release.parquet").read().to_pylist()
    return rows


def clean(value: Any) -> Any:
    """A value of a quasi-identifier or a sensitive column as it is compared: NaN is null."""
    return None if isinstance(value, float) and math.isnan(value) else value


def comparable(value: Any) -> Any:
    """A value that equals itself, for counting rows."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return value


def grammar(rows: Rows) -> dict[str, Plain | Nodes]:
    """How the labels of each quasi-identifier of the random tables are read."""
    kinds = {"age": int, "score": float, "born": dt.date, "seen": dt.datetime, "city": str}
    read: dict[str, Plain | Nodes] = {
        name: Plain(kind, {clean(row[name]) for row in rows} - {None}) for name, kind in kinds.items()
    }
    read["sex"] = Nodes({sex: [sex, "*"] for sex in "fm"})
    read["zip"] = Nodes({row["zip"]: digits(row["zip"]) for row in rows if row["zip"] is not None})
    return read


def digits(code: str) -> list[str]:
    return [code[: len(code) - cut] + "*" * cut for cut in range(len(code))] + ["*"]


def canonical_key(names: Sequence[str]) -> Callable[[Row], list[Any]]:
    """The canonical order, in Python: bytes of labels and texts, numbers and moments by value, null first, NaN last."""

    def part(value: Any) -> tuple[Any, ...]:
        if value is None:
            return (0,)
        if isinstance(value, str):
            return (1, value.encode())
        return (2, 0) if isinstance(value, float) and math.isnan(value) else (1, value)

    return lambda row: [part(row[name]) for name in names]


def counted(rows: Iterable[Row], names: Sequence[str]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(comparable(row[name]) for name in names) for row in rows)
