"""The backend as a parameter: a test of the shared suite runs on one machine and on a Spark cluster. There it runs with
`make test-spark` only, unless every run must have it; what a cluster does not do has a reason and an exception."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

import anon
from anon.errors import ConfigError
from anon.runs.result import Result
from tests.conftest import House

LOCAL = {"kind": "local"}
SPARK = [pytest.mark.spark, pytest.mark.xdist_group("spark")]  # one worker has the cluster
only_spark = pytest.mark.parametrize("backend", [pytest.param("spark", marks=SPARK)], indirect=True)


def _marks(always: bool, gap: str, raises: type[Exception]) -> list[pytest.MarkDecorator]:
    marks = [*SPARK] if always else [*SPARK, pytest.mark.long]
    return [*marks, pytest.mark.xfail(reason=gap, raises=raises, strict=True)] if gap else marks


def on_every_backend(
    always: bool = False, gap: str = "", raises: type[Exception] = ConfigError
) -> pytest.MarkDecorator:
    """Run a test on every backend. `always`: on a cluster too in every test run; `gap`: why a cluster refuses it."""
    on_spark = pytest.param("spark", marks=_marks(always, gap, raises))
    return pytest.mark.parametrize("backend", ["local", on_spark], indirect=True)


def each_on_every_backend(
    name: str, values: Iterable[Any], gaps: Mapping[Any, str], always: Iterable[Any] = (), local: bool = True
) -> pytest.MarkDecorator:
    """Run a test with each value on every backend; `gaps`: why a cluster refuses a value, with ConfigError; `local`:
    False if another test has the local runs."""
    listed = []
    for value in values:
        marks = _marks(value in always, gaps.get(value, ""), ConfigError)
        listed += [pytest.param(value, "local")] * local + [pytest.param(value, "spark", marks=marks)]
    return pytest.mark.parametrize((name, "backend"), listed, indirect=["backend"])


def run_as_plain(
    house: House, table: pa.Table, source: str | None = None, files: int = 3, **changes: Any
) -> tuple[Result, Result]:
    """Return a plain local run, and one on the house's backend over the same rows in another order and several files,
    or a table of the catalog; both must come to the same recoding, rows and facts."""
    house.write(table)
    mixed = table.take(pa.array(sorted(range(len(table)), key=lambda row: (row * 7919) % len(table))))
    edges = [part * len(table) // files for part in range(files + 1)]
    for part, (first, last) in enumerate(pairwise(edges)):
        house.write(mixed.slice(first, last - first), f"parts/{part}.parquet")
    config = house.config(**changes)
    plain = anon.run(config | {"backend": LOCAL}, overwrite=True, force=True)
    other = at(house, "again", config)
    other["source"] = {"path": str(house.folder / "parts")} if source is None else {"table": source}
    again = anon.run(other, overwrite=True, force=True)
    assert_same_release(house, "out", "again")
    assert _examined(again) == _examined(plain)
    return plain, again


def _examined(result: Result) -> dict[str, Any]:
    """Return the facts about a release without the attacks that a cluster does not carry out."""
    informed = ("minimality", "definetti")
    return result.facts | {"attacks": [each for each in result.facts["attacks"] if each["name"] not in informed]}


def assert_same_release(house: House, *places: str) -> None:
    """Compare two releases of a house, whatever parts their tables are in."""
    recodings = [(house.folder / f"{place}-run" / "recoding.json").read_bytes() for place in places]
    assert recodings[0] == recodings[1]
    names = [sorted(path.name for path in (house.folder / place).glob("*.parquet")) for place in places]
    assert names[0] and names[0] == names[1]
    for name in names[0]:
        one, other = (house.released(name, place) for place in places)
        assert one.schema.equals(other.schema)
        assert repr(one.to_pylist()) == repr(other.to_pylist())  # NaN is NaN


def at(house: House, name: str, config: dict[str, Any]) -> dict[str, Any]:
    """A config with its release at another place."""
    places = {"path": str(house.folder / name), "run": str(house.folder / f"{name}-run")}
    return config | {"release": config["release"] | places}
