"""Frequency sets of the lattice search in every place they may live: counters, sorted numbers, tables of DuckDB that
spill. What comes out is the same, also by several threads and with little memory."""

from __future__ import annotations

import threading
from collections import Counter
from fractions import Fraction
from math import log
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anon
from anon.config import load
from anon.core.memory import Memory
from anon.criteria import bind
from anon.errors import SourceError, UnsafeError
from anon.search import dispatch
from anon.search.budget import SearchBudget
from anon.search.lattice import counting, frequency, spill
from anon.search.lattice.counting import Block, Numbering
from anon.search.lattice.frequency import FrequencySets, SensitiveValues
from anon.search.lattice.search import LatticeSearch
from anon.search.lattice.spill import SpillDatabase
from tests.helpers.lattice import Table, cube_of, random_table
from tests.search.test_lattice import criterion

ENDLESS = 2**60  # bytes that no memory has


def places(patch: pytest.MonkeyPatch, place: str) -> None:
    """Sends all frequency sets to one place, in parts of a few entries; `words` has numbers of several words."""
    for module in (counting, spill):
        patch.setattr(module, "PART", 7)
    patch.setattr(frequency, "CHUNK", 11)
    if place == "usual":
        return
    patch.setattr(frequency, "FEW", 0)
    patch.setattr(frequency, "DENSE", 0)
    if place.endswith("words"):
        patch.setattr(counting, "LARGEST", 6)
    if place.startswith("spilled"):
        patch.setattr(frequency, "sorting_takes", lambda *of: ENDLESS)


def searched(table: Table, cases: list[str], share: str, counted: bool, budget: SearchBudget) -> Any:
    config = load(table.config(Path("/"), [criterion(case) for case in cases]))
    cube = cube_of(table, counted)
    values = dispatch.sensitive_values(config, cube)
    criteria, released = bind(config.privacy, values, shared=True), dispatch.released_values(config, values)
    try:
        found = LatticeSearch(cube, criteria, "loss", Fraction(share), released, budget).run()
    except UnsafeError:
        return None
    counts = pa.Table.from_batches(found.counts.batches()).to_pylist()
    return found.recoding.facts, found.recoding.people.tolist(), found.recoding.dropped.tolist(), counts, found.unique


@pytest.mark.parametrize("place", ["sorted", "words", "spilled", "spilled words"])
@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 10**9),
    share=st.sampled_from(["0", "0.2"]),
    counted=st.booleans(),
    cases=st.sampled_from([["k_anonymity"], ["entropy"], ["k_anonymity", "t_closeness"], ["skyline"]]),
)
def test_every_place_gives_the_same(place: str, seed: int, share: str, counted: bool, cases: list[str]) -> None:
    table, made = random_table(seed), 0

    def counting_tables(self: SpillDatabase, *given: Any) -> Any:
        nonlocal made
        made += 1
        return plain(self, *given)

    plain = SpillDatabase.counted
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        places(patch, "usual")
        usual = searched(table, cases, share, counted, SearchBudget())
        patch.setattr(SpillDatabase, "counted", counting_tables)
        places(patch, place)
        assert searched(table, cases, share, counted, SearchBudget(spill=Path(folder))) == usual
    assert bool(made) == place.startswith("spilled")


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**9), share=st.sampled_from(["0", "0.2"]), spilled=st.booleans())
def test_threads_change_nothing(seed: int, share: str, spilled: bool) -> None:
    table, used = random_table(seed), set[str]()
    roll_up = FrequencySets.roll_up

    def noting(self: FrequencySets, *given: Any) -> Any:
        used.add(threading.current_thread().name)
        return roll_up(self, *given)

    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        places(patch, "usual")
        alone = searched(table, ["entropy"], share, True, SearchBudget())
        places(patch, "spilled" if spilled else "usual")
        patch.setattr(frequency, "MANY", 0)
        patch.setattr(FrequencySets, "roll_up", noting)
        assert searched(table, ["entropy"], share, True, SearchBudget(threads=3, spill=Path(folder))) == alone
    assert {name for name in used if "ThreadPool" in name} or alone is None


def entries(rng: np.random.Generator, numbering: Numbering, many: int) -> Block:
    digits = [rng.integers(0, size, many) for size in (*numbering.sizes, numbering.values)]
    words = np.zeros((len(numbering.words), many), np.uint64)
    for word, places in zip(words, numbering.words):
        for place in places:
            word += (digits[place] * numbering.weight(place)).astype(np.uint64)
    return words, rng.integers(1, 4, many).astype(np.uint32)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**9),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=5),
    values=st.integers(1, 5),
    largest=st.sampled_from([10, 100, 2**62]),
    part=st.sampled_from([1, 5, 2**16]),
)
def test_parts_hold_whole_cells_with_what_was_counted(
    seed: int, sizes: list[int], values: int, largest: int, part: int
) -> None:
    rng, numbering = np.random.default_rng(seed), Numbering(tuple(sizes), values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "LARGEST", largest)
        patch.setattr(counting, "PART", part)
        words, people = entries(rng, numbering, 60)
        wished: Counter[Any] = Counter()
        for at in range(60):
            wished[tuple(words[:, at].tolist())] += int(people[at])
        cells, found = [], list(wished.elements())
        for own in numbering.parts(counting.SortedEntries(words, people).blocks()):
            cells += list(map(tuple, own.cells.T.tolist()))
            assert own.n.sum() == own.count.sum() and (own.n > 0).all()
            assert len(own.count) <= part + values
    assert len(found) == sum(wished.values())
    assert len(cells) == len(set(cells)) and cells == sorted(cells)


def large(folder: Path, rows: int) -> dict[str, Any]:
    """A table of which nearly every row is another, and a config for it."""
    rng = np.random.default_rng(8)
    table = {"a": rng.integers(0, 40_000, rows), "b": rng.integers(0, 1_000, rows), "s": rng.integers(0, 5, rows)}
    pq.write_table(pa.table(table), folder / "source.parquet")
    return {
        "source": {"path": str(folder / "source.parquet")},
        "columns": {
            "individual": "row",
            "quasi_identifiers": {"a": {"intervals": [10, 1_000]}, "b": {"intervals": [10, 100]}},
            "sensitive": ["s"],
        },
        "privacy": [{"l_diversity": {"kind": "entropy", "l": 2}}],
        "method": {"kind": "lattice", "suppress": 0.05},
        "release": {"path": str(folder / "out"), "run": str(folder / "out-run")},
        "limits": {"threads": 2},
    }


def test_runs_that_spill_and_runs_in_memory_give_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 400MB, some sets of a million rows are neither few enough for counters nor to be sorted in memory: here a
    tenth of both."""
    config, spilled = large(tmp_path, 100_000), []
    begin = FrequencySets.__init__

    def with_a_tenth(self: FrequencySets, *given: Any) -> None:
        begin(self, *given)
        self.memory //= 10

    monkeypatch.setattr(FrequencySets, "__init__", with_a_tenth)
    monkeypatch.setattr(frequency, "MANY", frequency.MANY // 10)
    plain = SpillDatabase.counted

    def noting(self: SpillDatabase, *given: Any) -> Any:
        table = plain(self, *given)
        spilled.append(table.entries)
        return table

    monkeypatch.setattr(SpillDatabase, "counted", noting)
    released = []
    for memory in ("4GB", "400MB"):
        assert not spilled
        anon.run(config, memory=memory, overwrite=True, force=True)
        files = [*sorted((tmp_path / "out").iterdir()), tmp_path / "out-run" / "recoding.json"]
        released.append({file.name: file.read_bytes() for file in files})
    assert spilled and max(spilled) > 50_000
    assert released[0] == released[1]
    assert not [path for path in tmp_path.rglob("*") if "frequency-sets" in str(path)]


def test_what_is_exactly_in_the_table_is_told_from_any_place() -> None:
    table = random_table(12)
    tuples = Counter(tuple(row.values()) for row in table.rows)
    cells = Counter(tuple(row[name] for name in table.trees) for row in table.rows)
    for place in ("usual", "sorted", "words", "spilled"):
        with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
            places(patch, place)
            cube = cube_of(table, True)
            columns = LatticeSearch(cube, []).columns
            database = SpillDatabase(Path(folder), 0, 1)
            sets = FrequencySets(cube, columns, SensitiveValues(cube), Memory(10**9).database, 1, database)
            own, unique, different = sets.table_facts()
            database.close()
        assert own == pytest.approx(sum(n * log(n) for n in tuples.values()), rel=1e-12)
        assert unique == sum(n == 1 for n in cells.values())
        assert different == len(tuples)


def test_what_goes_wrong_on_the_way_into_the_spill_is_told(tmp_path: Path) -> None:
    def failing() -> Any:
        yield np.zeros((1, 3), np.uint64), np.ones(3, np.uint32)
        raise SourceError("the records are gone")

    database = SpillDatabase(tmp_path, 0, 1)
    with pytest.raises(SourceError, match="the records are gone"):
        database.counted(failing(), 1)
    database.close()
