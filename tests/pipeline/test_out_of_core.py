"""Tables larger than a block of the search: what is searched again, what goes to the disk, and that the stated memory
is kept to. That the means change no byte is in test_same_release."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon import pipeline
from anon.commands.plan import plan
from anon.config import load
from anon.core.database import Database, connect
from anon.core.memory import Memory
from anon.cube import domain
from anon.cube.records import OnDisk
from anon.errors import ResourceError, SourceError
from anon.loss import utility
from anon.recoding.tree import BOUND
from anon.runs.options import Options
from anon.search import budget
from anon.search.partition import decide
from anon.search.partition import search as partition
from anon.source import open_source
from anon.source.long_texts import Texts
from anon.verify import grouped

ROWS, BLOCK = 30_000, 40_000  # a block holds a few thousand of them
ALONE = [{"skyline": {"points": [{"l": 1, "k": 20, "m": 0, "c": 0.9}]}}]
TOGETHER = [{"skyline": {"points": [{"l": 1, "k": 20, "m": 3, "c": 0.9}]}}]


def settings(folder: Path, privacy: list[Any], rows: int = ROWS, **limits: Any) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    table = {f"q{i}": rng.integers(0, 5000, rows) for i in range(3)} | {"s": rng.integers(0, 6, rows)}
    pq.write_table(pa.table(table), folder / "source.parquet")
    return {
        "source": {"path": str(folder / "source.parquet")},
        "columns": {"individual": "row", "quasi_identifiers": {f"q{i}": {} for i in range(3)}, "sensitive": ["s"]},
        "privacy": privacy,
        "release": {"path": str(folder / "out"), "run": str(folder / "out-run")},
        "limits": {"memory": "1GB", "threads": 2} | limits,
    }


def published(folder: Path, config: dict[str, Any], **limits: Any) -> dict[str, bytes]:
    pipeline.run(config | {"limits": config["limits"] | limits}, None, Options(overwrite=True, force=True))
    files = [*(folder / "out").iterdir(), folder / "out-run" / "recoding.json"]
    return {file.name: file.read_bytes() for file in files}


@pytest.mark.parametrize("privacy", [ALONE, TOGETHER], ids=["alone", "together"])
def test_records_that_do_not_fit_are_written_as_read_and_in_the_order_of_the_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, privacy: list[Any]
) -> None:
    monkeypatch.setattr(budget, "BLOCK", BLOCK)
    on_disk: list[int] = []
    write = OnDisk.write

    def write_and_count(self: OnDisk, at: int, codes: Any) -> None:
        on_disk.append(codes.shape[1] if codes.shape[0] > 1 else 0)  # marks are one column
        write(self, at, codes)

    monkeypatch.setattr(OnDisk, "write", write_and_count)
    monkeypatch.setattr(Memory, "records", 0)
    monkeypatch.setattr(Memory, "marks", 0)
    published(tmp_path, settings(tmp_path, privacy))
    assert sum(on_disk) == 2 * ROWS


def test_a_block_searched_ahead_in_vain_is_searched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where blocks depend on each other, one that was searched from an earlier state may not stand."""
    monkeypatch.setattr(budget, "BLOCK", BLOCK)
    config = settings(tmp_path, TOGETHER)
    first = published(tmp_path, config, threads=1)
    again: list[bool] = []
    hold = decide.Rules.hold

    def refusing(self: decide.Rules, state: list[Any]) -> bool:
        again.append(True)
        return hold(self, state) and len(again) % 2 == 0

    monkeypatch.setattr(decide.Rules, "hold", refusing)
    assert published(tmp_path, config) == first
    assert len(again) > 4


def test_a_column_that_splits_into_many_parts_at_once_is_split_at_the_top(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "BLOCK", BLOCK)
    config = settings(tmp_path, [{"k_anonymity": {"k": 2}}])
    table = pq.read_table(tmp_path / "source.parquet")
    words = pa.array([f"w{n % 300}" for n in table["q0"].to_pylist()])
    pq.write_table(table.set_column(0, "q0", words), tmp_path / "source.parquet")
    config["columns"]["quasi_identifiers"] = {"q0": {"suppress": True}}
    assert pipeline.run(config, None, Options(overwrite=True, force=True)).facts["groups"] == 300


def test_criteria_about_combinations_alone_do_not_depend_on_threads_and_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts are too small to be split by their people, not by those with one value of the other column."""
    joint = [{"l_diversity": {"kind": "distinct", "l": 3, "sensitive": name}} for name in ("s", "t")]
    config = settings(tmp_path, joint, rows=3_000)
    table = pq.read_table(tmp_path / "source.parquet")
    pq.write_table(table.append_column("t", pa.array([n % 4 for n in range(3_000)])), tmp_path / "source.parquet")
    config["columns"]["sensitive"] = ["s", "t"]
    first = published(tmp_path, config, threads=1)
    monkeypatch.setattr(partition, "SMALLEST_BLOCK", 1)
    monkeypatch.setattr(decide, "CELLS", 50)
    assert published(tmp_path, config, threads=2) == first


def test_a_full_disk_is_a_matter_of_resources_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: OnDisk, at: int, rows: Any) -> None:
        from anon.core.database import translated

        with translated("writing the spill"):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(Memory, "records", 0)
    monkeypatch.setattr(Memory, "marks", 0)
    monkeypatch.setattr(OnDisk, "write", full)
    with pytest.raises(ResourceError, match="no space left"):
        pipeline.run(settings(tmp_path, ALONE))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source.parquet"]


PEAK = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024)
"""


def peak(config: Path) -> tuple[int, int]:
    """Exit code and largest resident memory of a run."""
    return peak_of("run", str(config), "--overwrite", "--force")


def peak_of(*command: str) -> tuple[int, int]:
    """Those of any command. A process of its own starts it: a child is counted with what its parent had in memory."""
    return peak_of_process([sys.executable, "-m", "anon", *command])


def peak_of_process(command: list[str]) -> tuple[int, int]:
    told = subprocess.run([sys.executable, "-c", PEAK, *command], capture_output=True, text=True, check=True)
    code, size = map(int, told.stdout.split())
    return code, size


LAZILY = """
import sys
import polars as pl
import anon
rows, folder = 1_600_000, sys.argv[1]
narrow = pl.scan_parquet(f"{folder}/source.parquet")
wide = narrow.with_columns(name=pl.concat_str(pl.col("q0").cast(pl.String), pl.lit("x" * 500)))
assert wide.head(1_000).collect().estimated_size() / 1_000 * rows > 800_000_000
columns = {"individual": "row", "identifiers": ["name"], "quasi_identifiers": {"q0": {}, "q1": {}}, "sensitive": ["s"]}
config = {"source": {"path": "unread"}, "columns": columns, "privacy": [{"k_anonymity": {"k": 50}}]}
config |= {"release": {"path": f"{folder}/out"}, "limits": {"memory": "700MB", "threads": 2}}
assert anon.run(config, wide).to_dict()["rows"] == rows
"""


def test_a_lazy_frame_larger_than_the_memory_is_streamed(tmp_path: Path) -> None:
    """Most of it are identifiers, of which a token is kept."""
    settings(tmp_path, ALONE, rows=1_600_000)
    code, size = peak_of_process([sys.executable, "-c", LAZILY, str(tmp_path)])
    assert code == 0
    assert size <= 700_000_000


def test_what_is_held_of_a_group_is_small_and_taken_from_the_share_of_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two nodes of the tree, a label of each of three columns, its people and its number; and the labels as texts, of
    which there can be three for every group; and the bounds between the codes."""
    held: list[int] = []
    monkeypatch.setattr(Database, "limit", lambda database, memory: held.append(memory.held))
    found = pipeline.run(settings(tmp_path, [{"k_anonymity": {"k": 2}}]), None, Options(force=True))
    assert found.facts["groups"] > ROWS // 4
    label, bounds = 48, 3 * 5_000 * BOUND
    assert 20 * found.facts["groups"] < held[0] - bounds < (64 + 3 * label) * found.facts["groups"]


def test_more_groups_than_the_memory_holds_are_a_matter_of_resources() -> None:
    held = Memory(1_000_000_000, 700_000_000)
    with pytest.raises(ResourceError, match="this number of groups, which take 700 MB; at least 1045MB is required"):
        held.check()
    Memory(1_045_000_000, 700_000_000).check()
    assert Memory(1_045_000_000, 700_000_000).database < Memory(1_045_000_000).database


def test_more_values_than_the_memory_holds_are_a_matter_of_resources_before_the_search(tmp_path: Path) -> None:
    values = pa.array([f"v{i}" for i in range(60_000)])
    pq.write_table(pa.table({"age": pa.array(range(60_000)), "value": values}), tmp_path / "source.parquet")
    columns = {"individual": "row", "quasi_identifiers": {"age": {}}, "sensitive": ["value"]}
    config: dict[str, Any] = {"source": {"path": str(tmp_path / "source.parquet")}, "columns": columns}
    config |= {"privacy": [{"k_anonymity": {"k": 5}}], "release": {"path": str(tmp_path / "out")}}
    config["limits"] = {"memory": "400MB"}
    for command in (pipeline.run, plan):
        with pytest.raises(ResourceError, match="this number of values, which take 120 MB; at least 465MB is required"):
            command(config)
    assert plan(config | {"limits": {"memory": "465MB"}}).facts["memory"]["least"] == 465_000_000


def test_a_split_into_more_parts_and_values_than_the_memory_holds_is_refused_before_the_search(tmp_path: Path) -> None:
    """A hierarchy splits into all its children at once; every part has values of its own, as many as it has people."""
    rows, values = 1_200_000, 2_000
    numbers = np.arange(rows)
    table = {
        "place": pa.array(numbers % 5_000),
        "value": pa.array(np.char.add("v", ((numbers // 5_000 * 7 + numbers) % values).astype(str))),
    }
    pq.write_table(pa.table(table), tmp_path / "source.parquet")
    columns = {"individual": "row", "quasi_identifiers": {"place": {"suppress": True}}, "sensitive": ["value"]}
    config: dict[str, Any] = {"source": {"path": str(tmp_path / "source.parquet")}, "columns": columns}
    config |= {"privacy": [{"l_diversity": {"kind": "distinct", "l": 3}}], "release": {"path": str(tmp_path / "out")}}
    least = "this number of values, which take 208 MB; at least 473MB is required"
    for command in (pipeline.run, plan):
        with pytest.raises(ResourceError, match=least):
            command(config | {"limits": {"memory": "400MB"}})
    (tmp_path / "config.yaml").write_text(json.dumps(config | {"limits": {"memory": "473MB"}}))
    code, size = peak(tmp_path / "config.yaml")
    assert code == 0
    assert size <= 473_000_000


def test_a_wide_table_is_released_where_there_is_no_room_to_measure_it(tmp_path: Path) -> None:
    drawn = np.random.default_rng(5).integers(0, 50, (40, 3_000))
    table = {f"q{at}": pa.array(column) for at, column in enumerate(drawn)} | {"s": pa.array(drawn[0] % 4)}
    pq.write_table(pa.table(table), tmp_path / "source.parquet")
    columns = {"individual": "row", "quasi_identifiers": {f"q{at}": {} for at in range(40)}, "sensitive": ["s"]}
    config: dict[str, Any] = {"source": {"path": str(tmp_path / "source.parquet")}, "columns": columns}
    config |= {"privacy": [{"k_anonymity": {"k": 5}}], "release": {"path": str(tmp_path / "out")}}
    told = [
        pipeline.run(config | {"limits": {"memory": size}}, None, Options(overwrite=True, force=True))
        for size in ("400MB", "1GB")
    ]
    tight, roomy = (run.report["utility"] for run in told)
    assert tight["query_error"] is None
    assert roomy["query_error"] is not None
    assert [tight[name] for name in ("groups", "loss")] == [roomy[name] for name in ("groups", "loss")]


@pytest.mark.parametrize(("limit", "privacy"), [(400, ALONE), (512, ALONE), (400, TOGETHER)])
def test_the_whole_process_keeps_to_the_stated_memory(tmp_path: Path, limit: int, privacy: list[Any]) -> None:
    """Where groups depend on each other, most splits of a level wait for those before them."""
    config = tmp_path / "config.yaml"
    config.write_text(json.dumps(settings(tmp_path, privacy, rows=1_500_000, memory=f"{limit}MB")))
    for code, size in (peak(config), peak_of("explain", str(tmp_path / "out-run"))):
        assert code == 0
        assert size <= limit * 1_000_000


def test_groups_of_two_or_three_people_keep_to_the_stated_memory(tmp_path: Path) -> None:
    """Half a million groups, which have nearly as many labels."""
    config = tmp_path / "config.yaml"
    config.write_text(json.dumps(settings(tmp_path, [{"k_anonymity": {"k": 2}}], rows=1_500_000, memory="400MB")))
    code, size = peak(config)
    assert code == 0
    assert size <= 440_000_000


def test_batches_of_long_texts_have_fewer_rows(tmp_path: Path) -> None:
    texts = [f"{number}" + "x" * 4_000 for number in range(10)]
    table = {"age": pa.array(range(20_000)), "value": pa.array(texts).take(pa.array(np.arange(20_000) % 10))}
    pq.write_table(pa.table(table), tmp_path / "source.parquet")
    columns = {"individual": "row", "quasi_identifiers": {"age": {}}, "sensitive": ["value"]}
    config = load(
        {
            "source": {"path": str(tmp_path / "source.parquet")},
            "columns": columns,
            "privacy": [{"k_anonymity": {"k": 5}}],
            "release": {"path": str(tmp_path / "out")},
        }
    )
    with closing(connect(1_000_000_000, 1, tmp_path)) as con:
        source = open_source(con, config, None, tmp_path)
        for batches in (source.batches(source.sensitive), source.rows_of(f"SELECT * FROM {source.VIEW}")):
            assert max(batch.nbytes for batch in batches) < 10_000_000
        assert max(batch.num_rows for batch in source.batches(source.quasi_identifiers)) > 10_000


def long_texts(folder: Path, texts: int, length: int, rows: int, role: str) -> dict[str, Any]:
    """A config and its source, in small row groups: different texts of so many bytes, sensitive or kept."""
    words = pa.array([f"{number:08d}" + chr(97 + number % 26) * (length - 8) for number in range(texts)])
    schema = pa.schema([("age", pa.int64()), ("s", pa.int64()), ("t", pa.string())])
    with pq.ParquetWriter(folder / "source.parquet", schema) as writer:
        for first in range(0, rows, max(10_000_000 // length, 1)):
            some = np.arange(first, min(first + max(10_000_000 // length, 1), rows))
            table = {"age": some * 7 % 50, "s": some % 4, "t": words.take(pa.array(some * 11 % texts))}
            writer.write_table(pa.table(table, schema=schema))
    roles = {"sensitive": ["t"]} if role == "sensitive" else {"sensitive": ["s"], "keep": ["t"]}
    return {
        "source": {"path": str(folder / "source.parquet")},
        "columns": {"individual": "row", "quasi_identifiers": {"age": {}}} | roles,
        "privacy": [{"k_anonymity": {"k": 5}}],
        "release": {"path": str(folder / "out"), "run": str(folder / "out-run")},
        "limits": {"memory": "400MB", "threads": 2},
    }


def test_sensitive_texts_of_two_kilobytes_keep_to_the_stated_memory(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(json.dumps(long_texts(tmp_path, 20_000, 2_000, 100_000, "sensitive")))
    code, size = peak(config)
    assert code == 0
    assert size <= 440_000_000


@pytest.mark.parametrize(
    ("role", "texts", "length"), [("keep", 1_000, 200_000), ("keep", 16_000, 10_000), ("sensitive", 3_000, 20_000)]
)
def test_texts_that_do_not_fit_are_refused_early_with_the_least_that_is_required(
    tmp_path: Path, role: str, texts: int, length: int
) -> None:
    rows = 2 * texts if role == "sensitive" else texts  # rows that share a kept text would be those of one person
    given, config = long_texts(tmp_path, texts, length, rows, role), tmp_path / "config.yaml"
    with pytest.raises(ResourceError, match="400 MB is too little for texts of this length; at least") as refused:
        plan(given)
    least = int(str(refused.value).split()[-3].removesuffix("MB"))
    config.write_text(json.dumps(given))
    code, size = peak(config)
    assert code == 6
    assert size <= 300_000_000
    config.write_text(json.dumps(given | {"limits": {"memory": f"{least}MB", "threads": 2}}))
    code, size = peak(config)
    assert code == 0
    assert size <= least * 1_100_000


def test_long_texts_are_sorted_by_the_threads_that_there_is_memory_for() -> None:
    found = Texts(vector=4_000_000, kept=2_000_000_000, part=240_000_000)
    least = [found.least(threads) for threads in range(1, 9)]
    assert least == sorted(set(least))
    for threads, memory in enumerate(least, 1):
        assert found.threads(memory, 8) == threads
        assert Memory(memory).database >= found.database(threads)
    assert found.threads(least[-1], 2) == 2
    with pytest.raises(ResourceError, match="at least"):
        found.threads(least[0] - 1, 8)


def test_how_long_texts_are_counted_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are found through a table, and told apart by their hashes."""
    config = long_texts(tmp_path, 300, 300, 3_000, "sensitive")
    config["privacy"] = [{"l_diversity": {"kind": "distinct", "l": 3}}]
    first = published(tmp_path, config), json.loads((tmp_path / "out-run" / "report.json").read_text())
    monkeypatch.setattr(domain, "LONG_TEXTS", 0)
    monkeypatch.setattr(grouped, "LONG_TEXTS", 0)
    monkeypatch.setattr(utility, "LONG_TEXT", 0)
    second = published(tmp_path, config), json.loads((tmp_path / "out-run" / "report.json").read_text())
    assert first[0] == second[0]
    for part in ("summary", "utility", "sensitive"):
        assert first[1][part] == second[1][part]


def test_long_texts_that_are_new_mean_that_the_source_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domain, "LONG_TEXTS", 0)
    known = domain.Domain("s", "text", pa.array(["a", "b"]), True, True)
    assert known.encode(pa.array(["b", None, "a"])).tolist() == [2, 0, 1]
    with pytest.raises(SourceError, match="new values"):
        known.encode(pa.array(["b", None, "c"]))


def test_a_kept_text_of_a_million_values_keeps_to_the_stated_memory(tmp_path: Path) -> None:
    rng, rows = np.random.default_rng(5), 1_000_000
    table = {name: pa.array(rng.integers(0, size, rows)) for name, size in (("age", 100), ("zip", 5_000), ("s", 6))}
    table["t"] = pa.array([f"{number:0120d}" for number in rng.permutation(rows).tolist()])
    pq.write_table(pa.table(table), tmp_path / "source.parquet")
    roles = {"quasi_identifiers": {"age": {}, "zip": {}}, "sensitive": ["s"], "keep": ["t"]}
    config: dict[str, Any] = {"source": {"path": str(tmp_path / "source.parquet")}}
    config |= {"columns": {"individual": "row"} | roles, "privacy": [{"k_anonymity": {"k": 5}}]}
    config |= {"release": {"path": str(tmp_path / "out")}, "limits": {"memory": "400MB", "threads": 2}}
    (tmp_path / "config.yaml").write_text(json.dumps(config))
    code, size = peak(tmp_path / "config.yaml")
    assert code == 0
    assert size <= 440_000_000
