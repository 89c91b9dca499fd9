"""Nights of a small series of random people, and what must be true after each. Outside the pipeline."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import anon
from anon.runs.series.hashes import hash_of

Row = dict[str, Any]
CRITERIA = [
    {"k_anonymity": {"k": 3}},
    {"l_diversity": {"kind": "frequency", "l": 2}},
    {"skyline": {"points": [{"l": 1, "k": 0, "m": 1, "c": 0.9}]}},
    {"ck_safety": {"c": 0.95, "k": 1}},
]
COLUMNS = {
    "individual": "id",
    "quasi_identifiers": {"age": {}, "zip": {"digits": 2}},
    "sensitive": ["ill"],
    "keep": ["stay"],
}


def series_config(folder: Path, privacy: list[Any] | None = None, **release: Any) -> dict[str, Any]:
    """Return a config of a series of files: extract.parquet, out, run."""
    return {
        "source": {"path": str(folder / "extract.parquet")},
        "columns": COLUMNS,
        "privacy": privacy or CRITERIA,
        "release": {"path": str(folder / "out"), "run": str(folder / "run"), "series": "append"} | release,
        "limits": {"memory": "600MB", "threads": 1, "temp": str(folder / "spill")},
    }


@dataclass
class People:
    """People who arrive night by night, and everybody who has arrived so far by id."""

    seed: int
    known: dict[str, Row] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def arrive(self, count: int, values: str = "abcde") -> list[Row]:
        """Return the rows of some new people."""
        rows = [self._row(f"p{len(self.known) + at}", values) for at in range(count)]
        self.known |= {row["id"]: row for row in rows}
        return rows

    def _row(self, name: str, values: str) -> Row:
        own = self.random
        zip_code = f"{own.randrange(3)}{own.randrange(3)}"
        return {
            "id": name,
            "age": own.randrange(20, 60),
            "zip": zip_code,
            "ill": own.choice(values),
            "stay": own.randrange(4),
        }

    def some(self, count: int) -> list[Row]:
        """Return the rows of some who arrived before."""
        return self.random.sample(list(self.known.values()), min(count, len(self.known)))


SCHEMA = pa.schema(
    [("id", pa.string()), ("age", pa.int64()), ("zip", pa.string()), ("ill", pa.string()), ("stay", pa.int64())]
)


def extract(folder: Path, rows: list[Row]) -> None:
    """Write the source of a night."""
    new = folder / "extract.new"
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), new)
    new.replace(folder / "extract.parquet")


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file of a part."""
    out = folder / "out"
    files = sorted(path for path in out.rglob("*-*.*") if path.is_file())
    return {path.relative_to(out).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def published(folder: Path) -> Counter[tuple[str, int]]:
    """Return how often each pair of values that no recoding changes is published (generalized form)."""
    files = [str(folder / "out" / name) for name in digests(folder)]
    rows = duckdb.sql(f"SELECT ill, stay, count(*) FROM read_parquet({files}) GROUP BY ALL").fetchall()
    return Counter({(ill, stay): count for ill, stay, count in rows})


def waiting(folder: Path) -> set[str]:
    """Return who waits."""
    files = list((folder / "run" / "ledger").glob("waiting-*.parquet"))
    return {row[0] for file in files for row in duckdb.sql(f"SELECT id FROM read_parquet('{file}')").fetchall()}


def groups_of(folder: Path, people: People) -> dict[str, set[tuple[int, int]]]:
    """Return who is in which groups of which parts, by the ledger."""
    file = folder / "run" / "ledger" / "ledger.json"
    ledger = json.loads(file.read_text()) if file.exists() else {"key": "", "parts": []}
    names = {hash_of(ledger["key"], name): name for name in people.known}
    found: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for part in ledger["parts"]:
        ids = folder / "run" / "ledger" / part["ids"]["name"]
        for hi, lo, group in zip(*(column.to_pylist() for column in pq.read_table(ids).columns)):
            found[names[hi, lo]].add((part["number"], group))
    return dict(found)


def ledger_ids(folder: Path) -> list[tuple[int, int]]:
    """Return the hashes of everybody who was released."""
    if not list((folder / "run" / "ledger").glob("ids-*.parquet")):
        return []
    return duckdb.sql(f"SELECT hi, lo FROM read_parquet('{folder}/run/ledger/ids-*.parquet')").fetchall()


def check_series(folder: Path, config: dict[str, Any], people: People) -> None:
    """Assert that the union of the parts is safe, nobody is in two parts, and everybody is released or waits."""
    ids, waits = ledger_ids(folder), waiting(folder)
    assert len(ids) == len(set(ids)), "somebody is in two parts"
    assert len(ids) + len(waits) == len(people.known), "somebody is lost"
    if not digests(folder):
        return
    found = anon.check(config, folder / "out")
    assert found.safe and found.facts["individuals"] == len(ids)
    if config["release"].get("form") != "bucketized":
        released = Counter((row["ill"], row["stay"]) for name, row in people.known.items() if name not in waits)
        assert published(folder) == released, "the published rows are not those of the people who do not wait"
