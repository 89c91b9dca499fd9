"""`release: {series: {kind: invariant, m: 3}}`: a table republished whole, night after night."""

from __future__ import annotations

import json
import random
import shutil
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anon
from anon.errors import ConfigError, ResourceError, UnsafeError, VerificationError
from anon.runs import invariant_series
from anon.runs.invariant_series import InvariantRelease
from tests.oracles import invariant as oracle

DISEASES = ["flu", "cold", "HIV", "asthma", "gout", "ulcer"]


def config(folder: Path, m: int = 3, **changes: Any) -> dict[str, Any]:
    series = {"kind": "invariant", "m": m}
    return {
        "source": {"path": str(folder / "rows.parquet")},
        "columns": {"individual": "person", "quasi_identifiers": {"age": {}, "sex": {}}, "sensitive": ["disease"]},
        "privacy": [{"l_diversity": {"kind": "frequency", "l": m}}],
        "release": {"path": str(folder / "out"), "form": "bucketized", "series": series},
    } | changes


def person(who: int) -> dict[str, Any]:
    """Somebody with an age and a sex that nobody else has."""
    return {"person": f"p{who}", "age": who, "sex": "fm"[who % 2], "disease": DISEASES[who % 6 if who % 5 else 0]}


def write(folder: Path, people: list[int]) -> list[dict[str, Any]]:
    rows = [person(who) for who in people]
    pq.write_table(pa.Table.from_pylist(rows), folder / "rows.parquet")
    return rows


def published(folder: Path, rows: list[dict[str, Any]]) -> oracle.Release:
    """The groups of the release, as an outsider reads them who knows everybody's age: counterfeits have somebody's."""
    members, values = defaultdict(set), defaultdict(list)
    names = {row["age"]: row["person"] for row in rows}
    for row in pq.read_table(folder / "out" / "qi.parquet").to_pylist():
        members[row["group"]].add(names[row["age"]])
    for row in pq.read_table(folder / "out" / "sensitive.parquet").to_pylist():
        values[row["group"]] += [row["disease"]] * row["count"]
    return [(sorted(members[group]), values[group]) for group in sorted(values)]


def nights(folder: Path, seed: int, times: int, people: int, m: int = 3) -> list[oracle.Release]:
    """The releases of some of a number of people, who come and go."""
    rng, releases = random.Random(seed), []
    for _ in range(times):
        rows = write(folder, sorted(rng.sample(range(people), rng.randint(2 * people // 3, people))))
        try:
            ran = anon.run(config(folder, m))
        except UnsafeError:
            continue
        releases.append(published(folder, rows))
        counted = pq.read_table(folder / "out" / "counterfeits.parquet").to_pylist()
        fakes = {group: len(values) - len(members) for group, (members, values) in enumerate(releases[-1])}
        assert {each["group"]: each["count"] for each in counted} == {g: n for g, n in fakes.items() if n}
        assert ran.to_dict()["series"]["counterfeits"] == sum(fakes.values())
    return releases


@pytest.mark.parametrize("seed", range(3))
def test_a_series_is_invariant_in_its_files(seed: int, tmp_path: Path) -> None:
    releases = nights(tmp_path, seed, 4, 90)
    assert len(releases) >= 2 and oracle.is_invariant(releases, 3)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("times", [2, 3])
def test_all_releases_of_a_series_together_leave_a_belief_of_1_in_m(seed: int, times: int, tmp_path: Path) -> None:
    releases = nights(tmp_path, seed, times, 8, m=2)
    assert oracle.is_invariant(releases, 2)
    assert not releases or oracle.largest_belief(releases) <= Fraction(1, 2)


def test_the_release_and_the_ledger_do_not_depend_on_the_order_of_rows(tmp_path: Path) -> None:
    files = []
    for turn in (1, -1):
        folder = tmp_path / str(turn)
        folder.mkdir()
        write(folder, list(range(40))[::turn])
        anon.run(config(folder))
        files.append(
            [(folder / "out" / f"{name}.parquet").read_bytes() for name in ("qi", "sensitive", "counterfeits")]
        )
    assert files[0] == files[1]


def test_the_facts_of_a_series(tmp_path: Path) -> None:
    write(tmp_path, list(range(40)))
    first = anon.run(config(tmp_path)).to_dict()["series"]
    assert first == {"part": 1, "new": 40, "waiting": 0, "released": 40, "again": 0, "counterfeits": 0}
    write(tmp_path, list(range(30)))
    second = anon.run(config(tmp_path)).to_dict()
    assert second["series"].pop("counterfeits") > 0
    assert second["series"] == {"part": 2, "new": 0, "waiting": 0, "released": 40, "again": 30}
    assert "intersection" not in [warning["code"] for warning in second["warnings"]]
    assert anon.check(config(tmp_path), tmp_path / "out").safe


def test_the_ledger_is_private_and_has_neither_names_nor_values_of_individuals(tmp_path: Path) -> None:
    write(tmp_path, list(range(40)))
    anon.run(config(tmp_path))
    ledger = tmp_path / "out-run" / "ledger"
    assert ledger.stat().st_mode & 0o077 == 0
    people = pq.read_table(ledger / "people.parquet")
    assert people.schema.names == ["name", "held", "signature"] and people.num_rows == 40
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "qi.parquet", "sensitive.parquet", "counterfeits.parquet", "datapackage.json",
    }  # fmt: skip


def test_somebody_who_returns_has_the_earlier_signature(tmp_path: Path) -> None:
    releases = []
    for people in (range(40), range(3, 40), range(40)):
        rows = write(tmp_path, list(people))
        anon.run(config(tmp_path))
        releases.append(published(tmp_path, rows))
    assert oracle.is_invariant(releases, 3)


def test_a_changed_value_is_refused_with_the_count(tmp_path: Path) -> None:
    rows = write(tmp_path, list(range(40)))
    anon.run(config(tmp_path))
    before = (tmp_path / "out" / "qi.parquet").read_bytes()
    rows[0]["disease"] = next(value for value in DISEASES if value != rows[0]["disease"])
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    with pytest.raises(ConfigError, match="1 individuals with another value than in an earlier release"):
        anon.run(config(tmp_path))
    assert (tmp_path / "out" / "qi.parquet").read_bytes() == before


def test_new_people_who_are_not_eligible_are_refused_with_the_numbers(tmp_path: Path) -> None:
    write(tmp_path, list(range(40)))
    anon.run(config(tmp_path))
    write(tmp_path, list(range(41)))
    with pytest.raises(UnsafeError, match="of 1 new individuals 1 have the same sensitive value, at most 0 may"):
        anon.run(config(tmp_path))


def test_a_series_keeps_its_settings(tmp_path: Path) -> None:
    write(tmp_path, list(range(40)))
    anon.run(config(tmp_path))
    write(tmp_path, list(range(39)))
    with pytest.raises(ConfigError, match="m 2, which was 3 in the earlier releases"):
        anon.run(config(tmp_path, m=2))


def test_a_damaged_or_missing_ledger_is_refused(tmp_path: Path) -> None:
    write(tmp_path, list(range(40)))
    anon.run(config(tmp_path))
    write(tmp_path, list(range(39)))
    ledger = tmp_path / "out-run" / "ledger"
    file = ledger / "people.parquet"
    file.write_bytes(file.read_bytes() + b"x")
    with pytest.raises(ConfigError, match="a damaged ledger"):
        anon.run(config(tmp_path))
    shutil.rmtree(ledger)
    with pytest.raises(ConfigError, match="files are, without a ledger"):
        anon.run(config(tmp_path))


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("lost", ["removed", "elsewhere"])
def test_a_release_whose_ledger_is_not_there_is_never_replaced(lost: str, overwrite: bool, tmp_path: Path) -> None:
    write(tmp_path, list(range(40)))
    settings = config(tmp_path)
    anon.run(settings)
    write(tmp_path, list(range(39)))
    before = (tmp_path / "out" / "qi.parquet").read_bytes()
    if lost == "removed":
        shutil.rmtree(tmp_path / "out-run")
    else:
        settings["release"] = settings["release"] | {"run": str(tmp_path / "other-run")}
    with pytest.raises(ConfigError, match=r"release\.path: .*files are, without a ledger"):
        anon.run(settings, overwrite=overwrite)
    assert (tmp_path / "out" / "qi.parquet").read_bytes() == before


def test_only_the_last_release_of_a_series_is_replaced(tmp_path: Path) -> None:
    write(tmp_path, list(range(40)))
    anon.run(config(tmp_path))
    write(tmp_path, list(range(39)))
    file = tmp_path / "out" / "qi.parquet"
    file.write_bytes(file.read_bytes() + b"x")
    with pytest.raises(ConfigError, match="which exists"):
        anon.run(config(tmp_path))
    shutil.rmtree(tmp_path / "out")
    assert anon.run(config(tmp_path)).to_dict()["series"]["part"] == 2


@pytest.mark.parametrize(("first", "kind"), [(int, "whole numbers"), (float, "DOUBLE")])
def test_ids_of_another_kind_are_refused(first: type, kind: str, tmp_path: Path) -> None:
    for people, as_id, expected in ((range(40), first, ""), (range(39), str, kind)):
        rows = [person(who) | {"person": as_id(who)} for who in people]
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
        if not expected:
            anon.run(config(tmp_path))
            continue
        with pytest.raises(ConfigError, match=f"kind of ids text, which was {expected} in the earlier releases"):
            anon.run(config(tmp_path))
    smaller = pa.table({"person": pa.array(range(39), pa.int16())})
    if first is int:
        own = pa.Table.from_pylist([person(who) for who in range(39)])
        pq.write_table(own.set_column(0, "person", smaller.column(0)), tmp_path / "rows.parquet")
        assert anon.run(config(tmp_path)).to_dict()["series"]["again"] == 39


def test_memory_that_is_too_little_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, list(range(40)))
    monkeypatch.setattr(invariant_series, "bytes_for", lambda people, columns: 10**12)
    with pytest.raises(ResourceError, match="the groups of the series"):
        anon.run(config(tmp_path))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"columns": {"individual": "row"}}, "people must be recognized"),
        ({"columns": {"keep": ["note"]}}, "counterfeits have no kept values"),
        ({"columns": {"multiplicity": "set"}}, "a signature is for one"),
        ({"release": {"form": "generalized"}}, "bucketized"),
        ({"release": {"labels": "generalized"}}, "exact"),
        ({"method": {"kind": "partition"}}, "the series makes its own groups"),
        ({"backend": {"kind": "spark"}}, "groups are made in its memory"),
        ({"privacy": [{"l_diversity": {"kind": "frequency", "l": 4}}]}, "as they follow from m = 3"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    write(tmp_path, list(range(40)))
    settings = config(tmp_path)
    for name, change in changes.items():
        settings[name] = (settings.get(name, {}) | change) if isinstance(change, dict) else change
    with pytest.raises(ConfigError, match=words):
        anon.run(settings)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("UPDATE series_rows SET g = 0 WHERE name = (SELECT min(name) FROM series_rows WHERE g = 1)", "not m-unique"),
        ("UPDATE series_rows SET signature = 1 - signature WHERE NOT fake", "another signature than the ledger"),
        ("UPDATE series_rows SET name = name + 1 WHERE NOT fake", "other people than the source"),
    ],
)
def test_a_wrong_arrangement_is_not_published(
    change: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, list(range(40)))
    arranged = InvariantRelease._put_in_place

    def changed(self: InvariantRelease) -> None:
        arranged(self)
        self.source.database.execute(change)

    monkeypatch.setattr(InvariantRelease, "_put_in_place", changed)
    with pytest.raises(VerificationError, match=words):
        anon.run(config(tmp_path))
    assert not (tmp_path / "out").exists()


def test_the_recoding_names_the_method(tmp_path: Path) -> None:
    write(tmp_path, list(range(40)))
    anon.run(config(tmp_path))
    assert json.loads((tmp_path / "out-run" / "recoding.json").read_text())["method"] == "invariant"


@pytest.mark.parametrize("format", ["csv", "parquet"])
@pytest.mark.parametrize(
    "diseases",
    [[None, "a,b", 'quo"te', "", "flu"], [1, 2, 3, 4, 5], [1.5, 2.25, 3.0, -0.5, 1e20]],
    ids=["text", "integers", "numbers"],
)
def test_values_of_every_type_become_counterfeits(diseases: list[Any], format: str, tmp_path: Path) -> None:
    settings = config(tmp_path, m=2, nulls={"sensitive": "value"})
    settings["columns"]["sensitive"] = {"disease": {"as_categories": True}} if diseases[0] else ["disease"]
    settings["release"]["format"] = format
    for people in (range(40), range(3, 33), range(45)):
        rows = [person(who) | {"disease": diseases[who % 5], "age": None if who == 9 else who} for who in people]
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
        series = anon.run(settings).to_dict()["series"]
        assert (series["counterfeits"] > 0) == (len(people) == 30)
        assert anon.check(settings, tmp_path / "out").safe
