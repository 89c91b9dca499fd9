"""One release, whatever the circumstances: a matrix of jobs (method, form, values per individual) by what must not
matter (memory, threads, sizes of chunks, where records and counts are kept, how the rows are stored, and being killed
on the way). Every cell makes the same recoding.json and, on one machine, the same bytes of every published file as the
plain run of its job does; as another format or in the parts of another backend, the same rows in the same order."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import anon
from anon.core.memory import Memory
from anon.cube import building, records
from anon.cube.records import OnDisk
from anon.search import budget, cross_tables
from anon.search.assign import mending
from anon.search.lattice import frequency
from anon.search.lattice.spill import SpillDatabase
from anon.search.partition import decide, passes, top
from anon.search.partition import search as partition
from anon.search.reuse import counting as reuse_counting
from anon.source import rows as source_rows
from tests.conftest import House
from tests.helpers.backends import each_on_every_backend
from tests.helpers.killed import BLOCK, anon_run
from tests.helpers.source import as_csv

Changes = dict[str, Any]
PEOPLE = 3_000
PINNED = Path(__file__).parent / "pinned_releases.json"  # digests of rows and recodings, by job and file
STAGES = ["source", "cube", "search", "release", "verify", "utility", "attack", "report"]


def people() -> pa.Table:
    rng = np.random.default_rng(5)
    sexes = pa.array(rng.choice(["f", "m", ""], PEOPLE, p=[0.5, 0.45, 0.05]))
    return pa.table(
        {
            "age": rng.integers(0, 80, PEOPLE),
            "zip": [f"{n:03d}" for n in rng.integers(0, 150, PEOPLE)],
            "sex": pc.if_else(pc.equal(sexes, ""), None, sexes),
            "admitted": pa.array(19_700 + rng.integers(0, 300, PEOPLE), pa.int32()).cast(pa.date32()),
            "disease": rng.choice(["asthma", "cold", "flu", "HIV", "none", "ulcer"], PEOPLE),
            "hours": rng.integers(0, 50, PEOPLE),
        }
    )


def visits() -> pa.Table:
    """Up to four rows of each individual."""
    rng, table = random.Random(6), people().slice(0, 900)
    of = [number for number in range(len(table)) for _ in range(rng.randint(1, 4))]
    repeated = table.take(pa.array(of)).set_column(4, "disease", [rng.choices("abcdefgh", k=len(of))])
    return repeated.append_column("id", [[f"p{number:04d}" for number in of]])


COLUMNS: Changes = {
    "individual": "row",
    "quasi_identifiers": {"age": {}, "zip": {"digits": 3}, "sex": {"suppress": True}, "admitted": {}},
    "sensitive": ["disease"],
    "keep": ["hours"],
}
BY_LEVELS = COLUMNS | {
    "quasi_identifiers": {
        "age": {"intervals": [10, 40]}, "zip": {"digits": 3}, "sex": {"suppress": True},
        "admitted": {"calendar": ["day", "month", "year"]},
    },
}  # fmt: skip
DROPPED = BY_LEVELS | {"quasi_identifiers": BY_LEVELS["quasi_identifiers"] | {"age": {}}}
SEVERAL = {"individual": "id", "quasi_identifiers": {"age": {}, "sex": {"suppress": True}}, "keep": []}
SEVERAL_BY_LEVELS = SEVERAL | {"quasi_identifiers": {"age": {"intervals": [10, 40]}, "sex": {"suppress": True}}}
IN_ORDER = {"kind": "partition", "prefer": "loss", "cuts": "ordered", "labels": "tight"}
PEELED = {"kind": "partition", "peel": True}
PLACES = {"path": "out", "run": "out-run"}
BUCKETIZED = {"release": PLACES | {"form": "bucketized"}}
EXACT = {"release": PLACES | {"form": "bucketized", "labels": "exact"}}
TOGETHER = [{"skyline": {"points": [{"l": 1, "k": 20, "m": 3, "c": 0.9}]}}]  # what is safe depends on other groups
ALONE = [{"group_size": {"k": 4}}, {"skyline": {"points": [{"l": 1, "k": 3, "m": 0, "c": 0.9}]}}]
FAMILIES = [{"skyline": {"points": [{"l": 1, "k": 1, "m": 2, "c": 0.8}]}}]
ENTROPY = [{"group_size": {"k": 4}}, {"l_diversity": {"kind": "entropy", "l": 2}}]
LATTICE = {"kind": "lattice", "suppress": 0.05}
JOBS: dict[str, Changes] = {
    "partition": {"privacy": TOGETHER},
    "partition, groups for themselves": {"privacy": ALONE},
    "partition, least loss in order": {"privacy": ALONE, "method": IN_ORDER},
    "partition, least loss, together": {"privacy": TOGETHER, "method": IN_ORDER | {"labels": "cells"}},
    "partition, public cuts": {"privacy": TOGETHER, "method": {"kind": "partition", "prefer": "public"}},
    "partition, peeled": {"columns": BY_LEVELS, "privacy": ALONE, "method": PEELED},
    "partition, peeled, together": {"columns": BY_LEVELS, "privacy": TOGETHER, "method": PEELED | {"prefer": "loss"}},
    "partition, suppressed": {"columns": DROPPED, "privacy": ALONE, "method": {"kind": "partition", "suppress": 0.3}},
    "partition, bucketized": {"privacy": ALONE, **BUCKETIZED},
    "partition, bucketized, exact": {"privacy": TOGETHER, **EXACT},
    "partition, set": {"columns": COLUMNS | SEVERAL | {"multiplicity": "set"}, "privacy": FAMILIES, **EXACT},
    "partition, multiset": {"columns": COLUMNS | SEVERAL | {"multiplicity": "multiset"}, "privacy": FAMILIES, **EXACT},
    "lattice": {"columns": BY_LEVELS, "method": LATTICE, "privacy": ENTROPY},
    "lattice, bucketized": {"columns": BY_LEVELS, "method": LATTICE, "privacy": ENTROPY, **BUCKETIZED},
    "lattice, multiset": {
        "columns": COLUMNS | SEVERAL_BY_LEVELS | {"multiplicity": "multiset"},
        "method": LATTICE | {"exhaustive": True}, "privacy": FAMILIES, **BUCKETIZED,
    },
    "merge": {
        "method": {"kind": "merge"}, **EXACT,
        "privacy": [{"r_robustness": {"r": 3, "priors": [{"estimate": ["sex"], "smoothing": 1}]}}],
    },
    "colour": {
        "method": {"kind": "colour"}, **EXACT,
        "privacy": [{"dissimilarity": {"epsilon": 0.2, "delta": 0.4, "k": 3, "distance": {"kind": "ordered"}}}],
    },
    "reuse": {"privacy": [{"k_anonymity": {"k": 1}}, *TOGETHER]},
}  # fmt: skip


@dataclass(frozen=True)
class Made:
    """What the plain run of a job left, and where."""

    folder: Path
    files: dict[str, bytes]


def files(folder: Path) -> dict[str, bytes]:
    """Everything whose bytes are promised."""
    run = folder / "out-run"
    paths = [*(folder / "out").iterdir(), run / "recoding.json", *run.glob("prior-*.csv")]
    return {path.name: path.read_bytes() for path in paths}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks are parts of the search that is asked for: every run has the same, several of them."""
    monkeypatch.setattr(budget, "BLOCK", BLOCK)
    monkeypatch.setattr(partition, "SMALLEST_BLOCK", 1)


@pytest.fixture(scope="module")
def tables() -> dict[bool, pa.Table]:
    return {False: people(), True: visits()}


class Plain:
    """The plain runs, each made when a test first asks for it."""

    def __init__(self, folder: Path, tables: dict[bool, pa.Table]) -> None:
        self.folder, self.tables = folder, tables
        self.made: dict[str, Made] = {}

    def table(self, job: str) -> pa.Table:
        return self.tables["set" in job]

    def changes(self, job: str) -> Changes:
        changes = {"columns": COLUMNS} | JOBS[job]
        if job == "reuse":
            changes["method"] = {"kind": "reuse", "run": str(self.of("partition").folder / "out-run")}
        return changes

    def of(self, job: str) -> Made:
        if job not in self.made:
            house = House(self.folder / job.replace(", ", "-").replace(" ", "-"))
            house.write(self.table(job))
            house.run(**self.changes(job))
            self.made[job] = Made(house.folder, files(house.folder))
        return self.made[job]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, tables: dict[bool, pa.Table]) -> Plain:
    return Plain(tmp_path_factory.mktemp("plain"), tables)


# What must not matter: each runs a job over some rows in its own way


Vary = Callable[[House, pa.Table, Changes, pytest.MonkeyPatch], None]


def with_little(house: House, table: pa.Table, changes: Changes, patch: pytest.MonkeyPatch) -> None:
    house.write(table)
    house.run(**changes, limits={"memory": "400MB", "threads": 1, "temp": "spill"})


def by_three_threads(house: House, table: pa.Table, changes: Changes, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(frequency, "MANY", 0)
    house.write(table)
    house.run(**changes, limits={"memory": "2GB", "threads": 3, "temp": "spill"})


def kept_on_disk(house: House, table: pa.Table, changes: Changes, patch: pytest.MonkeyPatch) -> None:
    """Records as files, and frequency sets of the lattice as tables of DuckDB."""
    written: list[int] = []
    for kind, name in ((OnDisk, "write"), (SpillDatabase, "counted")):
        patch.setattr(kind, name, _noted(getattr(kind, name), written))
    patch.setattr(Memory, "records", 0)
    patch.setattr(Memory, "marks", 0)
    for name, value in (("FEW", 0), ("DENSE", 0), ("sorting_takes", lambda *of: 2**60)):
        patch.setattr(frequency, name, value)
    house.write(table)
    house.run(**changes)
    assert written, "nothing went to the disk"


def _noted(plain: Callable[..., Any], calls: list[int]) -> Callable[..., Any]:
    def noting(*given: Any) -> Any:
        calls.append(1)
        return plain(*given)

    return noting


def in_small_chunks(house: House, table: pa.Table, changes: Changes, patch: pytest.MonkeyPatch) -> None:
    sizes: list[tuple[Any, str, int]] = [
        (source_rows, "BATCH", 700), (building, "BATCH", 333), (records, "SEGMENT", 1_000), (passes, "CHUNK", 177),
        (passes, "WIDE", 3), (top, "COUNTERS", 10), (decide, "CELLS", 50), (cross_tables, "BATCH", 111),
        (mending, "BATCH", 111), (reuse_counting, "BATCH", 211), (frequency, "CHUNK", 311), (Memory, "records", 0),
        (Memory, "marks", 0), (top, "NARROW", 0),
    ]  # fmt: skip
    for module, name, size in sizes:
        patch.setattr(module, name, size)
    house.write(table)
    house.run(**changes, limits={"memory": "1GB", "threads": 1, "temp": "spill"})


def shuffled(table: pa.Table, seed: int = 1) -> pa.Table:
    return table.take(pa.array(random.Random(seed).sample(range(len(table)), len(table))))


def a_shuffled_frame(house: House, table: pa.Table, changes: Changes, patch: pytest.MonkeyPatch) -> None:
    house.run(shuffled(table), **changes)


def several_files(house: House, table: pa.Table, changes: Changes, patch: pytest.MonkeyPatch) -> None:
    """Small row groups, and the columns in another order in every second file."""
    mixed, size = shuffled(table, 2), len(table) // 3 + 1
    for part in range(3):
        piece = mixed.slice(part * size, size).select(mixed.column_names[:: (-1) ** part])
        house.write(piece, f"parts/year={part}/part.parquet", row_group_size=97)
    house.run(source={"path": "parts"}, **changes)


def a_csv_file(house: House, table: pa.Table, changes: Changes, patch: pytest.MonkeyPatch) -> None:
    (house.folder / "table.csv").write_bytes(as_csv(shuffled(table, 3)))
    house.run(source={"path": "table.csv"}, **changes)


VARIATIONS: dict[str, Vary] = {
    "one thread and the least memory": with_little,
    "three threads": by_three_threads,
    "on disk": kept_on_disk,
    "small chunks": in_small_chunks,
    "a shuffled frame": a_shuffled_frame,
    "several files": several_files,
    "a csv file": a_csv_file,
}


@pytest.mark.parametrize("variation", VARIATIONS)
@pytest.mark.parametrize("job", JOBS)
def test_nothing_that_must_not_matter_changes_a_byte(
    house: House, plain: Plain, monkeypatch: pytest.MonkeyPatch, job: str, variation: str
) -> None:
    VARIATIONS[variation](house, plain.table(job), plain.changes(job), monkeypatch)
    assert files(house.folder) == plain.of(job).files
    assert not house.leftovers()


ONE_MACHINE = "assigns rows to groups, which one machine does"
SEVERAL_VALUES = "individuals with several values are read on one machine"
EXACT_LABELS = "labels as exact as their groups are made on one machine"
GAPS = {
    "partition, bucketized, exact": EXACT_LABELS,
    "partition, set": SEVERAL_VALUES,
    "partition, multiset": SEVERAL_VALUES,
    "lattice, multiset": SEVERAL_VALUES,
    "merge": ONE_MACHINE,
    "colour": ONE_MACHINE,
    "reuse": "reads the recoding of an earlier run on one machine",
}


@each_on_every_backend("job", JOBS, GAPS, local=False)  # `several files` above compares bytes
def test_the_backend_changes_neither_the_recoding_nor_a_row(house: House, plain: Plain, job: str) -> None:
    several_files(house, plain.table(job), plain.changes(job), pytest.MonkeyPatch())
    assert (house.folder / "out-run" / "recoding.json").read_bytes() == plain.of(job).files["recoding.json"]
    for path in sorted((plain.of(job).folder / "out").glob("*.parquet")):
        assert house.released(path.name).equals(pq.read_table(path).combine_chunks())
    assert not house.leftovers()


@pytest.mark.parametrize("job", JOBS)
def test_a_release_as_csv_has_the_same_rows_in_the_same_order(house: House, plain: Plain, job: str) -> None:
    changes = plain.changes(job)
    house.write(plain.table(job))
    house.run(**changes | {"release": changes.get("release", PLACES) | {"format": "csv"}})
    made = plain.of(job)
    assert files(house.folder)["recoding.json"] == made.files["recoding.json"]
    for path in sorted((made.folder / "out").glob("*.parquet")):
        expected = pq.read_table(path)
        options = pyarrow.csv.ConvertOptions(column_types=expected.schema, strings_can_be_null=True)
        read = pyarrow.csv.read_csv(house.folder / "out" / f"{path.stem}.csv", convert_options=options)
        assert read.to_pylist() == expected.to_pylist()


def digest_of_rows(name: str, content: bytes) -> str:
    """Return a digest of what a file says: of a Parquet file its schema and its rows in order, since other versions of
    the Parquet library may write other bytes."""
    if name.endswith(".parquet"):
        table, rows = pq.read_table(io.BytesIO(content)), io.BytesIO()
        pyarrow.csv.write_csv(table, rows)
        content = str(table.schema).encode() + rows.getvalue()
    return hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("job", JOBS)
def test_a_job_gives_the_release_that_earlier_versions_gave(plain: Plain, job: str) -> None:
    """`ANON_PIN=1` writes the digests anew, for a change that is meant to change releases."""
    found = {name: digest_of_rows(name, content) for name, content in sorted(plain.of(job).files.items())}
    found.pop("datapackage.json")  # describes the files, with their sizes
    pinned = json.loads(PINNED.read_text()) if PINNED.exists() else {}
    if os.environ.get("ANON_PIN"):
        PINNED.write_text(json.dumps(pinned | {job: found}, indent=1, sort_keys=True) + "\n")
    else:
        assert found == pinned[job]


def test_a_reused_recoding_gives_the_release_it_was_made_for(plain: Plain) -> None:
    assert plain.of("reuse").files["release.parquet"] == plain.of("partition").files["release.parquet"]


# Killed on the way: the runs that end are processes of their own


def killed_and_resumed(house: House, plain: Plain, job: str, limits: dict[str, Any] | None = None, **at: Any) -> None:
    """A run that is killed, and another that goes on from there or begins again."""
    house.write(plain.table(job))
    config = house.folder / "config.yaml"
    config.write_text(json.dumps(house.config(**plain.changes(job))), encoding="utf-8")
    assert anon_run(config, **at).code == -signal.SIGKILL
    assert not (house.folder / "out").exists()
    if "partition" not in job:
        assert not list(house.folder.rglob("*.npz")), "only partition has steps to go on from"
    anon.run(config, resume=True, **limits or {})
    assert files(house.folder) == plain.of(job).files
    assert not house.leftovers()


@pytest.mark.parametrize("steps", [1, 2, 4, 7, 11])
@pytest.mark.parametrize("job", ["partition", "partition, groups for themselves"])
def test_a_search_killed_after_some_steps_goes_on(house: House, plain: Plain, job: str, steps: int) -> None:
    killed_and_resumed(house, plain, job, steps=steps)


@pytest.mark.parametrize("job", ["partition", "partition, groups for themselves"])
def test_a_search_goes_on_with_other_memory_and_threads_than_it_began_with(
    house: House, plain: Plain, job: str
) -> None:
    """Blocks may be larger where there is more of both; those that were begun are gone on with."""
    killed_and_resumed(house, plain, job, {"memory": 500_000_000, "threads": 1}, steps=9)


@pytest.mark.parametrize(
    ("job", "stage"),
    [("partition", stage) for stage in STAGES] + [(job, at) for job in list(JOBS)[1:] for at in ("search", "verify")],
)
def test_a_run_killed_before_a_stage_goes_on_or_begins_again(house: House, plain: Plain, job: str, stage: str) -> None:
    killed_and_resumed(house, plain, job, stage=stage)


def test_a_run_killed_at_random_moments_gets_there(house: House, plain: Plain) -> None:
    """Killed again and again, a little later every time, until it is done."""
    house.write(plain.table("partition"))
    config = house.folder / "config.yaml"
    config.write_text(json.dumps(house.config(**plain.changes("partition"))), encoding="utf-8")
    moments, code, lifetime, kills = random.Random(7), -signal.SIGKILL, 0.05, 0
    while code == -signal.SIGKILL and not (house.folder / "out").exists():  # it may be killed when it has published
        code = anon_run(config, "--resume", lifetime=lifetime * moments.uniform(0.5, 1.5)).code
        lifetime, kills = lifetime * 1.4, kills + 1
    assert code in (0, -signal.SIGKILL)
    assert kills > 2
    assert code == -signal.SIGKILL or not house.leftovers()
    assert files(house.folder) == plain.of("partition").files
