"""Tight labels of a partition: as wide as the members of a group, and no wider."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import anon
from anon.errors import VerificationError
from anon.verify.content import tree_reading
from tests.conftest import House

COLUMNS: dict[str, Any] = {
    "individual": "row",
    "quasi_identifiers": {"age": {}, "height": {}, "ward": {}, "zip": {"digits": 3}},
    "sensitive": ["disease"],
}


def table(rows: int = 300) -> pa.Table:
    rng = random.Random(5)
    made = [
        {
            "age": rng.choice([None, *range(20, 60, 3)]),
            "height": rng.choice([1.5, 1.625, 1.75, 1.875, 2.0]),
            "ward": rng.choice(["a", "b", "c", "d"]),
            "zip": f"0{rng.randint(1, 3)}{rng.randint(1, 3)}",
            "disease": rng.choice(["Flu", "HIV", "Cold"]),
        }
        for _ in range(rows)
    ]
    return pa.Table.from_pylist(made)


def made(house: House, rows: pa.Table, labels: str) -> tuple[dict[str, Any], pa.Table]:
    method = {"kind": "partition", "labels": labels}
    house.write(rows)
    house.run(columns=COLUMNS, privacy=[{"k_anonymity": {"k": 4}}], method=method)
    config = house.config(columns=COLUMNS, privacy=[{"k_anonymity": {"k": 4}}], method=method)
    released = pyarrow.parquet.read_table(house.folder / "out" / "release.parquet")
    return anon.utility(config, released).to_dict(), released


def test_tight_labels_have_the_same_groups_and_lose_less(tmp_path: Any) -> None:
    rows = table()
    cells, _ = made(House(tmp_path / "cells"), rows, "cells")
    tight, _ = made(House(tmp_path / "tight"), rows, "tight")
    assert (tight["groups"], tight["discernibility"]) == (cells["groups"], cells["discernibility"])
    assert tight["loss"]["all"] < cells["loss"]["all"]
    assert tight["loss"]["columns"]["zip"] == cells["loss"]["columns"]["zip"]


def test_check_accepts_a_release_with_tight_labels(house: House) -> None:
    _, released = made(house, table(), "tight")
    config = house.config(columns=COLUMNS, privacy=[{"k_anonymity": {"k": 4}}])
    assert anon.check(config, released).to_dict()["safe"]


def test_verification_reads_tight_labels_from_the_recoding(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A label that is narrower than the members of its group is refused."""
    plain = tree_reading.GroupLabels.from_codes

    def narrowed(words: pa.Array, codes: Any, grammar: Any) -> Any:
        found = plain(words, codes, grammar)
        found.ranges[:, 1] = found.ranges[:, 0]
        return found

    monkeypatch.setattr(tree_reading.GroupLabels, "from_codes", narrowed)
    with pytest.raises(VerificationError):
        made(house, table(), "tight")


def test_a_reused_tight_recoding_publishes_the_cells_between_its_cuts(house: House) -> None:
    rows = table()
    made(house, rows, "tight")
    method = {"kind": "reuse", "run": str(house.folder / "out-run")}
    config = house.config(columns=COLUMNS, privacy=[{"k_anonymity": {"k": 4}}], method=method)
    config["release"] = {"path": str(house.folder / "again"), "run": str(house.folder / "again-run")}
    anon.run(config)
    again = pyarrow.parquet.read_table(house.folder / "again" / "release.parquet")
    _, cells = made(House(house.folder / "cells"), rows, "cells")
    assert again == cells
