"""Random tables through the whole pipeline: what an outsider reads in the release satisfies the config, judged by an
oracle that shares no code with the engine."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anon
from anon.errors import UnsafeError
from tests.conftest import House
from tests.helpers.backends import on_every_backend
from tests.oracles import skyline

DISEASES = ["AIDS", "Cancer", "Flu", "Ulcer"]
maybe = st.none

rows = st.fixed_dictionaries(
    {
        "age": st.integers(18, 40) | maybe(),
        "zip": st.sampled_from(["02139", "02138", "02141", "10001"]),
        "born": st.dates(dt.date(2020, 1, 1), dt.date(2021, 12, 31)),
        "sex": st.sampled_from(["F", "M"]) | maybe(),
        "income": st.floats(0, 9, allow_nan=False).map(lambda x: round(x, 1)) | maybe(),
        "disease": st.sampled_from(DISEASES),
        "hours": st.integers(0, 3),
    }
)
point = st.fixed_dictionaries(
    {
        "l": st.integers(0, 2),
        "k": st.integers(0, 2),
        "m": st.integers(0, 2),
        "c": st.sampled_from([0.5, 0.8, 0.95, 1]),
    }
)
SCHEMA = pa.schema(
    [("age", pa.int64()), ("zip", pa.string()), ("born", pa.date32()), ("sex", pa.string()), ("income", pa.float64()),
     ("disease", pa.string()), ("hours", pa.int64())]
)  # fmt: skip
BUILDERS: dict[str, Any] = {
    "age": {}, "zip": {"digits": 5}, "born": {"calendar": ["day", "month", "year"]}, "sex": {"suppress": True},
    "income": {},
}  # fmt: skip


def config(folder: str, k: int, points: list[Any], own: list[Any], quasi_identifiers: list[str]) -> dict[str, Any]:
    return {
        "source": {"path": f"{folder}/none.parquet"},
        "columns": {
            "individual": "row",
            "quasi_identifiers": {name: BUILDERS[name] for name in quasi_identifiers},
            "sensitive": ["disease"],
            "keep": ["hours"],
        },
        "privacy": [
            {"k_anonymity": {"k": k}},
            {"skyline": {"points": points, "values": {"AIDS": own or "exempt"}, "absent": "ok"}},
        ],
        "release": {"path": f"{folder}/out"},
    }


@settings(max_examples=40, deadline=None)
@given(
    st.lists(rows, min_size=4, max_size=60),
    st.integers(2, 4),
    st.lists(point, min_size=1, max_size=2),
    st.lists(point, max_size=1),
    st.lists(st.sampled_from(list(BUILDERS)), min_size=1, max_size=4, unique=True),
)
def test_the_published_classes_satisfy_the_config(
    table: list[Any], k: int, points: list[Any], own: list[Any], names: list[str]
) -> None:
    with TemporaryDirectory() as folder:
        frame = pa.Table.from_pylist(table, SCHEMA)
        wanted = {value: [tuple_of(p) for p in (own if value == "AIDS" else points)] for value in DISEASES}
        try:
            result = anon.run(config(folder, k, points, own, names), frame)
        except UnsafeError:
            whole = [[row["disease"] for row in table]]
            assert not (skyline.safe_k(whole, k) and skyline.safe(whole, wanted))
            return
        published = pq.read_table(Path(folder) / "out" / "release.parquet").to_pylist()
        assert sorted((row["disease"], row["hours"]) for row in published) == sorted(
            (row["disease"], row["hours"]) for row in table
        )
        classes = defaultdict(list)
        for row in published:
            classes[tuple(row[name] for name in names)].append(row["disease"])
        assert skyline.safe_k(list(classes.values()), k)
        assert skyline.safe(list(classes.values()), wanted)
        assert result.to_dict()["groups"] == len(classes)
        assert list(published[0]) == [*names, "disease", "hours"]


def tuple_of(point: dict[str, Any]) -> tuple[int, int, int, Fraction]:
    return point["l"], point["k"], point["m"], Fraction(str(point["c"]))


def figure_1() -> pa.Table:
    """The table of Figure 1 of the skyline paper."""
    people = [
        ("Ann", 20, "F", "12345", "AIDS"), ("Bob", 24, "M", "12342", "Flu"), ("Cary", 23, "F", "12344", "Flu"),
        ("Dick", 27, "M", "12343", "AIDS"), ("Ed", 35, "M", "12412", "Flu"), ("Frank", 34, "M", "12433", "Cancer"),
        ("Gary", 31, "M", "12453", "Flu"), ("Tom", 38, "M", "12455", "AIDS"),
    ]  # fmt: skip
    return pa.table(dict(zip(("name", "age", "sex", "zip", "disease"), map(list, zip(*people)))))


@on_every_backend()
def test_the_example_of_the_paper_is_released_in_groups_of_four(house: House) -> None:
    wanted = {
        "source": {"path": "none"},
        "columns": {
            "identifiers": ["name"],
            "individual": "name",
            "quasi_identifiers": {"age": {"intervals": [10]}, "sex": {"suppress": True}, "zip": {"digits": 5}},
            "sensitive": ["disease"],
        },
        "privacy": [{"k_anonymity": {"k": 4}}, {"skyline": {"points": [{"l": 0, "k": 0, "m": 0, "c": 0.75}]}}],
        "release": {"path": str(house.folder / "out")},
        "backend": house.backend,
    }
    result = anon.run(wanted, figure_1())
    assert result.to_dict()["groups"] == 2
    assert result.to_dict()["criteria"][1]["figure"] == pytest.approx(0.5)
    published = house.released().to_pylist()
    assert {(row["age"], row["zip"]) for row in published} == {("20-29", "1234*"), ("30-39", "124**")}
    files = [path for path in (house.folder / "out").rglob("*") if path.is_file()]
    assert not any(b"Tom" in path.read_bytes() for path in files)
