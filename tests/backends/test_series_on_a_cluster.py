"""Nights of a series on a cluster: the parts, the decisions and the ledger of one machine, which may take turns with
it."""

from __future__ import annotations

import json
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anon
from anon.artifacts.reading import read_ledger
from anon.backends.spark import executors
from anon.commands import series
from anon.errors import ConfigError
from tests.helpers.backends import SPARK
from tests.helpers.series import People, Row, check_series, digests, extract, series_config
from tests.helpers.spark import BACKEND

pytestmark = SPARK
FEW = 10  # rows of a file


def three_nights(people: People) -> list[list[Row]]:
    """Return the rows of a first part; of people who wait, beside some who were released; and of a part with those who
    waited, one of whom has other values now."""
    first, unsafe = people.arrive(40), people.arrive(40, "a")
    changed = people.known[unsafe[0]["id"]] = unsafe[0] | {"ill": "e", "stay": 99}
    return [first, first[:3] + unsafe, [changed, *people.arrive(70, "bcde")]]


def five_nights(people: People) -> list[list[Row]]:
    """Return the same with a part in between without those who wait, and a night in which nobody is new."""
    first, unsafe, last = three_nights(people)
    return [first, unsafe, people.arrive(30), first[:2], last + people.arrive(60, "bcde")]


def parts(folder: Path) -> dict[str, list[Any]]:
    """Return the rows of every part in order, whatever files they are in."""
    found = {}
    for path in sorted((folder / "out").glob("*-*.parquet")):
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        found[path.name] = pa.concat_tables([pq.ParquetFile(file).read() for file in files]).to_pylist()
    return found


def ledger_facts(folder: Path) -> list[Any]:
    """Return what a ledger says without what differs from series to series: keys, hashes, runs and digests."""
    place = folder / "run" / "ledger"
    ledger = read_ledger(place)
    numbers = [(p.number, p.rows, p.individuals, p.groups, p.withdrawn_groups) for p in ledger.parts]
    groups = []
    for file in sorted(place.glob("ids-*.parquet")):
        table = pq.read_table(file)
        hashes = list(zip(table["hi"].to_pylist(), table["lo"].to_pylist()))
        assert hashes == sorted(set(hashes))
        groups.append((str(table.schema), Counter(table["g"].to_pylist())))
    waits = [
        (str(duckdb.sql(f"DESCRIBE FROM '{file}'").fetchall()), sorted(duckdb.sql(f"FROM '{file}'").fetchall()))
        for file in place.glob("waiting-*.parquet")
    ]
    return [ledger.night, ledger.types, ledger.individual, ledger.earlier, numbers, groups, waits]


@contextmanager
def plans_without_key(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[None]:
    """Assert that the key of a series stands in no plan of Spark, which logs and pages of a cluster show."""
    plans, collect = list[str](), executors.collect

    def noted(frame: Any, *arguments: Any) -> pa.Table:
        plans.append(frame._jdf.queryExecution().toString())
        return collect(frame, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(executors, "collect", noted)
        yield
    key = read_ledger(folder / "run" / "ledger").key
    assert not any(key in plan for plan in plans)


def run(folder: Path, nights: list[list[Row]], backends: str, form: str) -> tuple[dict[str, Any], list[Any]]:
    """Run nights on backends by their letters; return the config and what each night left."""
    config, found = series_config(folder, form=form), []
    for rows, letter in zip(nights, backends, strict=True):
        extract(folder, rows)
        config["backend"] = BACKEND if letter == "S" else {"kind": "local"}
        facts = anon.run(config).facts
        found.append((facts["series"], facts.get("reason"), parts(folder), ledger_facts(folder)))
    return config | {"backend": {"kind": "local"}}, found


@pytest.mark.parametrize(
    ("form", "backends"),
    [
        ("generalized", "LSS"),
        pytest.param("bucketized", "SSL", marks=pytest.mark.long),
        pytest.param("generalized", "SSSSS", marks=pytest.mark.long),
        pytest.param("bucketized", "LSSSL", marks=pytest.mark.long),
        pytest.param("generalized", "SLSLS", marks=pytest.mark.long),
    ],
)
def test_nights_on_a_cluster_are_those_of_one_machine(
    tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch, form: str, backends: str
) -> None:
    monkeypatch.setattr("anon.backends.spark.parts.PART", FEW)
    found, places, nights = [], [], three_nights if len(backends) == 3 else five_nights
    for which in ("L" * len(backends), backends):
        folder, people = tmp_path / which, People(4)
        folder.mkdir()
        with plans_without_key(monkeypatch, folder):
            config, every = run(folder, nights(people), which, form)
        check_series(folder, config, people)
        (folder / "gone.txt").write_text("p1\np45\n")
        taken = series.withdraw(config, folder / "gone.txt", yes=True).facts
        assert anon.check(config, folder / "out").safe
        found.append([*every, taken, parts(folder)])
        places.append(folder)
    assert found[0] == found[1]
    assert sorted(path.name for path in places[1].iterdir()) == ["extract.parquet", "gone.txt", "out", "run"]
    _check_files(places[1])


def _check_files(folder: Path) -> None:
    """Assert that the files of every part are those that datapackage.json lists, where readers may read them."""
    package = json.loads((folder / "out" / "datapackage.json").read_text())
    listed = [each["path"] if isinstance(each["path"], list) else [each["path"]] for each in package["resources"]]
    files = sorted(digests(folder))
    assert sorted(path for own in listed for path in own) == files and any(len(own) > 1 for own in listed)
    for each, own in zip(package["resources"], listed):
        assert len(each.get("hashes", [each.get("hash")])) == len(own)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (folder / "out").iterdir() if path.is_dir()}
    assert modes == {stat.S_IMODE((folder / "out").stat().st_mode)}


@pytest.mark.long
def test_ids_of_another_type_and_a_series_as_a_table_are_refused(tmp_path: Path, cluster: Any) -> None:
    config, people = series_config(tmp_path) | {"backend": BACKEND}, People(9)
    rows = people.arrive(40)
    extract(tmp_path, [])
    assert anon.run(config).facts["series"] == {"part": None, "new": 0, "waiting": 0, "released": 0, "again": 0}
    extract(tmp_path, rows)
    assert anon.run(config).facts["series"]["part"] == 1
    assert anon.run(config).facts["up_to_date"]
    with pytest.raises(ConfigError, match="a series with backend spark"):
        anon.check(config, tmp_path / "out")
    assert anon.check(config, tmp_path / "out" / "part-000001.parquet").safe
    frame = cluster.createDataFrame(pa.Table.from_pylist([row | {"id": at} for at, row in enumerate(rows)]))
    with pytest.raises(ConfigError, match=r"columns.individual: found values of type whole numbers; expected text"):
        anon.run(config, frame)
