"""A ledger that is made again from the published parts and the source: nobody is released twice, whoever may be in a
group is taken for a member, and a series continues as one that never lost its ledger."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import anon
from anon.cli.app import app
from anon.commands import series
from anon.config import load
from anon.criteria import EarlierGroups, bind
from anon.criteria.bind import Values
from anon.errors import ConfigError, SourceError, VerificationError
from anon.runs.series.boxes import BoxTree
from anon.runs.series.covers import PlacedLabels
from tests.helpers.series import People, Row, digests, extract, groups_of, ledger_ids, series_config, waiting
from tests.oracles.series_matching import certain, covers_all, fits, possible

Members = dict[str, set[tuple[int, int]]]  # the parts and groups of each person


def several_nights(folder: Path, seed: int = 1, sizes: tuple[int, ...] = (40, 1, 30, 25), **more: Any) -> Any:
    config, people = series_config(folder, **more), People(seed)
    for size in sizes:
        extract(folder, people.arrive(size))
        anon.run(config)
    return config, people


def lose(folder: Path) -> None:
    shutil.rmtree(folder / "run")


def rebuilt(folder: Path, config: dict[str, Any], rows: list[Row]) -> dict[str, Any]:
    extract(folder, rows)
    found: dict[str, Any] = series.rebuild(config).to_dict()
    return found


@pytest.mark.parametrize("format", ["parquet", "csv"])
@pytest.mark.parametrize("form", ["generalized", "bucketized"])
def test_a_rebuilt_series_continues_as_one_that_kept_its_ledger(tmp_path: Path, form: str, format: str) -> None:
    config, people = several_nights(tmp_path, form=form, format=format)
    truth = groups_of(tmp_path, people)
    lose(tmp_path)
    found = rebuilt(tmp_path, config, list(people.known.values()))
    assert found == {
        "parts": 3, "released": 96, "certain": 96, "ambiguous": 0, "left_out": 0, "withdrawn": 0
    }  # fmt: skip
    after = groups_of(tmp_path, people)
    assert after.keys() == truth.keys() and all(after[name] >= truth[name] for name in truth)
    extract(tmp_path, list(people.known.values()) + people.arrive(30))
    night = anon.run(config).to_dict()["series"]
    assert night == {"part": 4, "new": 30, "waiting": 0, "released": 126, "again": 96}
    assert anon.check(config, tmp_path / "out").facts["individuals"] == 126
    assert series.status(config).to_dict()["released"] == 126
    new = [name for name, groups in groups_of(tmp_path, people).items() if {part for part, _ in groups} == {4}]
    assert len(new) == 30 and not set(new) & set(truth)


def in_folders(folder: Path, format: str) -> None:
    """Divide every file of a series in two, in a folder, as a cluster writes them."""
    out = folder / "out"
    package = json.loads((out / "datapackage.json").read_text())
    for resource in package["resources"]:
        place = out / resource["path"]
        rows = place.read_bytes().splitlines(keepends=True) if format == "csv" else pq.read_table(place)
        place.unlink()
        place.mkdir()
        names = [f"{place.name}/{at}.{format}" for at in "ab"]
        half = len(rows) // 2
        if format == "csv":
            (out / names[0]).write_bytes(b"".join(rows[:half]))
            (out / names[1]).write_bytes(b"".join([rows[0], *rows[half:]]))
        else:
            pq.write_table(rows.slice(0, half), out / names[0])
            pq.write_table(rows.slice(half), out / names[1])
        del resource["hash"]
        found = [hashlib.sha256((out / name).read_bytes()).hexdigest() for name in names]
        resource |= {"path": names, "hashes": [f"sha256:{digest}" for digest in found]}
    (out / "datapackage.json").write_text(json.dumps(package))


@pytest.mark.parametrize(("form", "format"), [("generalized", "csv"), ("bucketized", "parquet")])
def test_parts_in_folders_of_files_are_read_too(tmp_path: Path, form: str, format: str) -> None:
    config, people = several_nights(tmp_path, sizes=(30, 20), form=form, format=format)
    lose(tmp_path)
    in_folders(tmp_path, format)
    found = rebuilt(tmp_path, config, list(people.known.values()))
    assert (found["parts"], found["released"], found["ambiguous"]) == (2, 50, 0)
    (tmp_path / "gone.txt").write_text("p0\n")
    taken = series.withdraw(config, tmp_path / "gone.txt", yes=True).to_dict()
    status = series.status(config).to_dict()
    assert status["released"] == 50 - 1 - taken["others"] and anon.check(config, tmp_path / "out").safe


@pytest.mark.parametrize("seed", range(12))
def test_links_are_those_of_all_ways_to_give_out_the_rows(tmp_path: Path, seed: int) -> None:
    """Against brute force: a link that some way has is never removed, and whoever is called certain is."""
    own = random.Random(seed)
    config = series_config(tmp_path, [{"k_anonymity": {"k": 2}}])
    config["columns"] = config["columns"] | {"keep": []}
    people = People(seed)
    for size in (own.randrange(3, 7), own.randrange(2, 6)):
        extract(tmp_path, people.arrive(size, own.choice(["ab", "a", "abc"])))
        anon.run(config)
    strangers = own.choice([0, 1, 2])
    truth = groups_of(tmp_path, people)
    lose(tmp_path)
    found = rebuilt(tmp_path, config, list(people.known.values()) + people.arrive(strangers, "ab"))
    rows, places = published_rows(tmp_path)
    links: list[set[Any]] = [{name for name, person in people.known.items() if row_fits(row, person)} for row in rows]
    exact: Members = defaultdict(set)
    for at, person in possible(links):
        exact[str(person)].add(places[at])
    after, sure = groups_of(tmp_path, people), certain(links)
    assert all(after[name] >= truth[name] for name in truth)
    assert after.keys() == exact.keys() and all(after[name] >= exact[name] for name in after)
    assert all(after[name] <= {places[at] for at, own in enumerate(links) if name in own} for name in after)
    assert found["certain"] <= len(sure) and found["certain"] + found["ambiguous"] == len(after)
    if strangers == 0:
        assert found["certain"] == len(rows) == len(sure)
    assert found["left_out"] == len(after) - len(rows)


def published_rows(folder: Path) -> tuple[list[Row], list[tuple[int, int]]]:
    """Return all published rows with the part and the number of the group of each."""
    rows, places = [], []
    for number, file in enumerate(sorted((folder / "out").glob("part-*")), 1):
        own = pq.read_table(file).to_pylist()
        labels = sorted({(row["age"], row["zip"]) for row in own})
        rows += own
        places += [(number, labels.index((row["age"], row["zip"]))) for row in own]
    return rows, places


def row_fits(row: Row, person: Row) -> bool:
    return row["ill"] == person["ill"] and all(fits(row[name], person[name]) for name in ("age", "zip"))


def test_the_oracle_knows_what_is_certain_and_possible() -> None:
    assert certain([{"a", "b"}, {"a"}]) == {"a", "b"} and possible([{"a", "b"}, {"a"}]) == {(0, "b"), (1, "a")}
    assert certain([{"a", "b"}]) == set() and not covers_all([{"a"}, {"a"}])


def test_whoever_looks_like_a_released_individual_is_ambiguous_and_never_released(tmp_path: Path) -> None:
    config, people = several_nights(tmp_path, sizes=(40, 30))
    lose(tmp_path)
    twin = people.known["p3"] | {"id": "twin"}
    people.known["twin"] = twin
    found = rebuilt(tmp_path, config, list(people.known.values()))
    assert (found["released"], found["left_out"]) == (70, 1) and found["ambiguous"] >= 2
    assert found["certain"] + found["ambiguous"] == 71
    extract(tmp_path, [twin, people.known["p3"], *people.arrive(30)])
    assert anon.run(config).to_dict()["series"] == {"part": 3, "new": 30, "waiting": 0, "released": 100, "again": 2}
    assert len(set(ledger_ids(tmp_path))) == 101


def test_a_withdrawal_takes_every_group_in_which_an_individual_may_be(tmp_path: Path) -> None:
    config, people = several_nights(tmp_path, sizes=(), privacy=[{"k_anonymity": {"k": 3}}])
    for part in range(2):  # the same three people twice, but for their ids
        rows = [{"id": f"{part}-{at}", "age": 30 + at, "zip": "00", "ill": "abc"[at], "stay": 1} for at in range(3)]
        people.known |= {row["id"]: row for row in rows}
        extract(tmp_path, [*rows, *(row | {"id": f"far-{row['id']}", "age": 90, "zip": "99"} for row in rows)])
        people.known |= {row["id"]: row for row in pq.read_table(tmp_path / "extract.parquet").to_pylist()}
        assert anon.run(config).to_dict()["groups"] == 2
    lose(tmp_path)
    found = rebuilt(tmp_path, config, list(people.known.values()))
    assert (found["certain"], found["ambiguous"]) == (12, 0)
    assert len(groups_of(tmp_path, people)["0-1"]) == 2  # in either part, as far as anybody can say
    (tmp_path / "ids.txt").write_text("0-1\n")
    gone = series.withdraw(config, tmp_path / "ids.txt", yes=True).to_dict()
    assert (gone["in_parts"], gone["groups"], gone["others"]) == (1, 2, 5)
    status = series.status(config).to_dict()
    assert [(part["rows"], part["individuals"], part["groups"]) for part in status["parts"]] == [(3, 3, 1)] * 2
    assert anon.check(config, tmp_path / "out").facts["individuals"] == 6
    assert anon.run(config).to_dict()["series"]["new"] == 0


def test_minima_over_all_groups_are_those_of_the_ledger_that_was_lost(tmp_path: Path) -> None:
    point = {"l": 1, "k": 1, "m": 2, "c": 0.8}
    privacy = [{"skyline": {"points": [], "values": {"a": [point]}}}, {"ck_safety": {"c": 0.95, "k": 1}}]
    config, people = several_nights(tmp_path, sizes=(60, 40, 50), privacy=privacy)
    before, parts = states(tmp_path, config), digests(tmp_path)
    lose(tmp_path)
    rebuilt(tmp_path, config, list(people.known.values()))
    assert states(tmp_path, config) == before and digests(tmp_path) == parts
    extract(tmp_path, people.arrive(40))
    anon.run(config)
    assert anon.check(config, tmp_path / "out").safe


def states(folder: Path, config: dict[str, Any]) -> list[list[float]]:
    """Return the minima that the groups of a ledger attain."""
    kept = json.loads((folder / "run" / "ledger" / "ledger.json").read_text())["earlier"]
    earlier = EarlierGroups.from_json(kept)
    values = earlier.widened(Values({"ill": list("abcde")}, {"ill": [1] * 5}))
    bound = [each for each in bind(load(config).privacy, values, absent=True) if not each.alone]
    found = [earlier.state(criterion, values.texts["ill"]) for criterion in bound]
    return [state.values.ravel().tolist() for state in found if state is not None]


# When it is refused, and what a source must hold.


def test_a_ledger_that_is_not_damaged_is_not_rebuilt(tmp_path: Path) -> None:
    config, people = several_nights(tmp_path, sizes=(40,))
    extract(tmp_path, list(people.known.values()))
    with pytest.raises(ConfigError, match="where a ledger is that is not damaged"):
        series.rebuild(config)
    part = tmp_path / "out" / "part-000001.parquet"
    part.write_bytes(b"another file")  # the ledger is what says that this is not what was published
    with pytest.raises(ConfigError, match="where a ledger is that is not damaged"):
        series.rebuild(config)
    lose(tmp_path)
    with pytest.raises(VerificationError, match=r"not the files that datapackage\.json describes"):
        series.rebuild(config)
    assert not (tmp_path / "run").exists()


def test_parts_without_a_description_are_refused(tmp_path: Path) -> None:
    config, people = several_nights(tmp_path, sizes=(40,))
    lose(tmp_path)
    package = tmp_path / "out" / "datapackage.json"
    package.write_text(package.read_text()[:-30])
    with pytest.raises(VerificationError, match=r"datapackage\.json is damaged"):
        rebuilt(tmp_path, config, list(people.known.values()))
    package.unlink()
    with pytest.raises(ConfigError, match=r"no datapackage\.json"):
        rebuilt(tmp_path, config, list(people.known.values()))


@pytest.mark.parametrize("name", ["ids-000001.parquet", "ledger.json"])
def test_a_damaged_ledger_is_replaced(tmp_path: Path, name: str) -> None:
    config, people = several_nights(tmp_path, sizes=(40, 30, 1))
    ledger = tmp_path / "run" / "ledger"
    (ledger / name).write_bytes((ledger / name).read_bytes()[:-20])
    found = rebuilt(tmp_path, config, list(people.known.values()))
    assert found["certain"] == 70 and not waiting(tmp_path)
    assert anon.run(config).to_dict()["series"] == {"part": None, "new": 1, "waiting": 1, "released": 70, "again": 70}


def test_a_source_without_those_who_were_released_is_refused(tmp_path: Path) -> None:
    config, people = several_nights(tmp_path, sizes=(40, 30))
    lose(tmp_path)
    rows = list(people.known.values())
    for wrong in (rows[1:], [rows[0] | {"ill": "z"}, *rows[1:]], rows[:40]):
        with pytest.raises(SourceError, match=r"that fit nobody in the source; it must hold everybody") as refused:
            rebuilt(tmp_path, config, wrong)
        assert refused.value.exit_code == 5 and not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"columns": {"keep": []}}, "columns.keep"),
        ({"release": {"form": "bucketized"}}, "release.form"),
        ({"release": {"format": "csv"}}, "release.format"),
        ({"release": {"bounds": True}}, "release.bounds"),
        ({"privacy": [{"k_anonymity": {"k": 3}}]}, "a looser l_diversity than that of the parts"),
    ],
)
def test_a_config_of_other_parts_is_refused(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    config, people = several_nights(tmp_path, sizes=(40,))
    lose(tmp_path)
    (key, value) = next(iter(change.items()))
    changed = config | {key: config[key] | value if isinstance(value, dict) else value}
    with pytest.raises(ConfigError, match=problem):
        rebuilt(tmp_path, changed, list(people.known.values()))


def test_whoever_may_have_been_in_a_withdrawn_group_is_not_released(tmp_path: Path) -> None:
    config, people = several_nights(tmp_path, sizes=(40, 30))
    (tmp_path / "ids.txt").write_text("p0\n")
    gone = series.withdraw(config, tmp_path / "ids.txt", yes=True).to_dict()
    lose(tmp_path)
    found = rebuilt(tmp_path, config, list(people.known.values()))
    assert found["released"] == 70 - 1 - gone["others"]
    assert found["withdrawn"] + found["certain"] + found["ambiguous"] == 70
    assert anon.run(config).to_dict()["series"]["new"] == 0
    more = series.withdraw(config, ids_of(tmp_path, "p1", "p2"), yes=True).to_dict()
    assert more["done"] and anon.check(config, tmp_path / "out").safe


def test_a_part_of_which_nothing_is_left_is_a_part(tmp_path: Path) -> None:
    config, people = several_nights(tmp_path, sizes=(4, 30), privacy=[{"k_anonymity": {"k": 3}}])
    series.withdraw(config, ids_of(tmp_path, "p0"), yes=True)
    lose(tmp_path)
    found = rebuilt(tmp_path, config, list(people.known.values()))
    assert (found["released"], found["withdrawn"] + found["certain"] + found["ambiguous"]) == (30, 34)
    assert [part["rows"] for part in series.status(config).facts["parts"]] == [0, 30]


def test_means_are_not_compared(tmp_path: Path) -> None:
    config, people = series_config(tmp_path), People(4)
    config["columns"] = config["columns"] | {"aggregate": {"stay": {"mean": "group"}}}
    extract(tmp_path, people.arrive(40))
    anon.run(config)
    lose(tmp_path)
    assert rebuilt(tmp_path, config, list(people.known.values()))["certain"] == 40


def ids_of(folder: Path, *names: str) -> Path:
    (folder / "ids.txt").write_text("".join(f"{name}\n" for name in names))
    return folder / "ids.txt"


def test_the_command_says_what_is_certain(tmp_path: Path) -> None:
    config, people = several_nights(tmp_path, sizes=(40,))
    lose(tmp_path)
    extract(tmp_path, list(people.known.values()))
    (tmp_path / "config.json").write_text(json.dumps(config))
    shown = CliRunner().invoke(app, ["series", "rebuild", str(tmp_path / "config.json")])
    assert shown.exit_code == 0, shown.stderr
    assert "40 are certain to be among them, and 0 may be" in " ".join(shown.stdout.split())


# Columns of every kind.


ILL = ["a", "b", "c", None]
KINDS: dict[str, tuple[dict[str, Any], pa.Array]] = {
    "numbers": ({}, pa.array([0.5 + (7 * i) % 40 / 4 if i % 9 else None for i in range(80)])),
    "dates": ({}, pa.array([(i * 37) % 900 for i in range(80)], pa.int32()).cast(pa.date32())),
    "text": ({}, pa.array([["x|y", "x{", None, "not nul", "plain"][i % 5] for i in range(80)])),
    "truth": ({}, pa.array([[True, False, None][i % 3] for i in range(80)])),
    "intervals": ({"intervals": [10, 20]}, pa.array([(i * 7) % 60 if i % 11 else None for i in range(80)])),
    "calendar": ({"calendar": ["month", "year"]}, pa.array([i * 9 for i in range(80)], pa.int32()).cast(pa.date32())),
    "digits": ({"digits": 3}, pa.array([f"{(i * 13) % 400:03}" for i in range(80)])),
}


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        *((kind, {}) for kind in KINDS),
        ("digits", {"cuts": "ordered"}), ("intervals", {"cuts": "ordered"}), ("calendar", {"labels": "tight"}),
        ("dates", {"labels": "tight"}),
    ],
)  # fmt: skip
def test_labels_of_every_kind_of_column_are_read(tmp_path: Path, kind: str, method: dict[str, Any]) -> None:
    builder, values = KINDS[kind]
    config = series_config(tmp_path, [{"k_anonymity": {"k": 4}}]) | {"method": {"kind": "partition", **method}}
    columns = {"individual": "id", "quasi_identifiers": {"x": builder, "age": {}}, "sensitive": ["ill"]}
    config |= {"columns": columns, "nulls": {"quasi_identifiers": "value", "sensitive": "value"}}
    people = pa.table(
        {
            "id": [f"p{i}" for i in range(80)], "x": values, "age": [i % 9 for i in range(80)],
            "ill": [ILL[i % 4] for i in range(80)],
        }
    )  # fmt: skip
    for table in (people.slice(0, 45), people):
        pq.write_table(table, tmp_path / "extract.parquet")
        assert anon.run(config).to_dict()["series"]["part"]
    lose(tmp_path)
    found = series.rebuild(config).to_dict()
    assert (found["released"], found["certain"], found["left_out"]) == (80, 80, 0)


@pytest.mark.parametrize("multiplicity", ["single", "set", "multiset"])
def test_exact_values_and_several_values_are_compared(tmp_path: Path, multiplicity: str) -> None:
    privacy = [{"group_size": {"k": 4}}]
    config = series_config(
        tmp_path, privacy, form="bucketized", labels="exact" if multiplicity == "single" else "generalized"
    )
    people = People(5)
    config["columns"] = config["columns"] | {"multiplicity": multiplicity, "keep": []}
    rows = people.arrive(60)
    more = [row | {"ill": "z" if multiplicity == "set" else row["ill"]} for row in rows[:20]]
    for own in (rows[:30], rows):
        extract(tmp_path, own + (more if multiplicity != "single" else []))
        anon.run(config)
    lose(tmp_path)
    found = series.rebuild(config).to_dict()
    assert (found["released"], found["certain"], found["left_out"]) == (60, 60, 0)


# The pieces.


@pytest.mark.parametrize("seed", range(5))
def test_boxes_are_found_as_by_comparing_each(seed: int) -> None:
    own = random.Random(seed)

    ends = np.array(
        [[sorted((own.randrange(20), own.randrange(20))) for _ in range(3)] for _ in range(own.choice([1, 9, 90]))]
    )
    low, high = ends[:, :, 0], ends[:, :, 1]
    points = np.array([[own.randrange(22) for _ in range(200)] for _ in range(3)])
    found = set(zip(*(each.tolist() for each in BoxTree.from_boxes(low, high).find(points))))
    inside = ((low[None] <= points.T[:, None]) & (points.T[:, None] <= high[None])).all(axis=2)
    assert found == set(zip(*(each.tolist() for each in np.nonzero(inside))))


def test_labels_that_list_values_have_a_run_for_each_gap() -> None:
    labels = PlacedLabels([["a"], ["b"], ["c"], [None]])
    assert labels.runs("{a|c}") == [(1, 1), (3, 3)] and labels.runs("*") == [(0, 3)]
    assert labels.runs("null|{a|b}") == [(0, 2)] and labels.runs("not null") == [(1, 3)] and labels.runs("{d}") == []
    nested = PlacedLabels([["1", "odd", "*"], ["2", "even", "*"], ["3", "odd", "*"]])
    assert nested.runs("odd") == [(1, 2)] and nested.runs("{even|odd}") == [(0, 2)]
