"""Bucketized releases: two tables that belong together, in canonical order, whatever the form of their labels."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import anon
from anon import cube, release
from anon.errors import ConfigError, ResourceError, SourceError
from anon.runs.result import Result
from tests.conftest import House
from tests.helpers import bucketized
from tests.helpers import release as helpers

LABELS = list(helpers.QUASI_IDENTIFIERS)
METHODS: list[dict[str, Any]] = [{"kind": "partition"}, {"kind": "lattice", "suppress": 0.2}]
BY_LEVELS = {"age": {"intervals": [5, 10, 20]}, "city": {"suppress": True}, "sex": {"suppress": True}}


def run(folder: Path, rows: Any, **changes: Any) -> Result:
    given: dict[str, Any] = {"release__form": "bucketized", "columns__sensitive": ["disease"]}
    return helpers.run(folder, rows, **(given | changes))


def files(folder: Path) -> dict[str, bytes]:
    found = {path.name: path.read_bytes() for path in (folder / "out").iterdir()}
    return found | {"recoding": (folder / "out-run" / "recoding.json").read_bytes()}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("method", METHODS, ids=["partition", "lattice"])
@pytest.mark.parametrize("keep", [[], helpers.KEEP], ids=["", "kept"])
def test_labels_are_those_of_the_generalized_release(
    tmp_path: Path, seed: int, method: dict[str, Any], keep: list[str]
) -> None:
    """The two forms of one search tell the same of everybody, but for whose the sensitive values are."""
    rows, levels = helpers.random_rows(seed, 150), BY_LEVELS if method["kind"] == "lattice" else None
    changes = {"method": method, "columns__keep": keep} | ({"columns__quasi_identifiers": levels} if levels else {})
    labels = list(levels or LABELS)
    helpers.run(tmp_path, rows, columns__sensitive=["disease"], **changes)
    whole = helpers.released(tmp_path)
    told = run(tmp_path, rows, **changes).to_dict()
    qi, sensitive = bucketized.released(tmp_path / "out")
    assert list(qi[0]) == [*labels, *keep, "group"] and list(sensitive[0]) == ["group", "disease", "count"]
    assert helpers.counted(qi, [*labels, *keep]) == helpers.counted(whole, [*labels, *keep])
    group_of = {tuple(row[name] for name in labels): row["group"] for row in qi}
    assert len(group_of) == len(set(group_of.values())) == told["groups"]
    expected = Counter((group_of[tuple(row[name] for name in labels)], row["disease"]) for row in whole)
    assert {(row["group"], row["disease"]): row["count"] for row in sensitive} == expected
    bucketized.assert_canonical(qi, sensitive, labels, keep, "disease")


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("keep", [[], helpers.KEEP], ids=["", "kept"])
def test_exact_labels_are_the_source_in_the_same_groups(tmp_path: Path, seed: int, keep: list[str]) -> None:
    rows = helpers.random_rows(seed, 150)
    changes = {"columns__keep": keep, "privacy": [{"group_size": {"k": 3}}]}
    run(tmp_path, rows, **changes)
    _, labelled = bucketized.released(tmp_path / "out")
    run(tmp_path, rows, **changes, release__labels="exact")
    qi, sensitive = bucketized.released(tmp_path / "out")
    cleaned = [row | {name: helpers.clean(row[name]) for name in LABELS} for row in helpers.as_table(rows).to_pylist()]
    assert helpers.counted(qi, [*LABELS, *keep]) == helpers.counted(cleaned, [*LABELS, *keep])
    # every group of the labelled release is one of the exact one, under another number
    pairs = [bucketized.values_of(each, "disease") for each in (labelled, sensitive)]
    told = [sorted(sorted(values.items()) for values in pair.values()) for pair in pairs]
    assert told[0] == told[1]
    group_of: dict[Any, set[int]] = {}
    for row in qi:
        group_of.setdefault(tuple(helpers.comparable(row[name]) for name in LABELS), set()).add(row["group"])
    assert all(len(groups) == 1 for groups in group_of.values()), "a recoding is a function of quasi-identifiers"
    bucketized.assert_canonical(qi, sensitive, LABELS, keep, "disease")


@pytest.mark.parametrize(("labels", "keep"), [("generalized", []), ("exact", ["hours"])])
def test_row_groups_of_the_file_are_full_but_for_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, labels: str, keep: list[str]
) -> None:
    monkeypatch.setattr(release.files, "ROW_GROUP", 8_192)
    rng, count = np.random.default_rng(7), 20_000
    table = pa.table(
        {
            "age": rng.integers(0, 60, count),
            "zip": rng.choice(np.array([f"{n:03d}" for n in range(40)]), count),
            "disease": rng.choice(np.array(["flu", "HIV", "ok", "cold"]), count),
            "hours": rng.integers(0, 1_000, count),
        }
    )
    columns = {"individual": "row", "quasi_identifiers": {"age": {}, "zip": {"digits": 3}}, "keep": keep}
    run(tmp_path, table, columns=columns | {"sensitive": ["disease"]}, privacy=[{"group_size": {"k": 20}}],
        release={"path": str(tmp_path / "out"), "form": "bucketized", "labels": labels})  # fmt: skip
    parquet = pq.ParquetFile(tmp_path / "out" / "qi.parquet").metadata
    assert [parquet.row_group(i).num_rows for i in range(parquet.num_row_groups)] == [8_192, 8_192, count - 2 * 8_192]


@pytest.mark.parametrize("labels", ["generalized", "exact"])
def test_csv_says_what_parquet_says(tmp_path: Path, labels: str) -> None:
    rows = helpers.random_rows(5, 120)
    changes = {"release__labels": labels, "privacy": [{"group_size": {"k": 4}}]}
    run(tmp_path, rows, **changes)
    qi, sensitive = bucketized.released(tmp_path / "out")
    run(tmp_path, rows, **changes, release__format="csv")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["datapackage.json", "qi.csv", "sensitive.csv"]
    as_written = pyarrow.csv.read_csv(
        tmp_path / "out" / "sensitive.csv",
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False),
    )
    assert as_written.to_pylist() == sensitive
    text = (tmp_path / "out" / "qi.csv").read_text(encoding="utf-8")
    assert text.startswith(",".join(f'"{name}"' for name in qi[0]) + "\n")
    given = helpers.config(tmp_path, **changes, columns__sensitive=["disease"], release__form="bucketized")
    told = anon.check(given, str(tmp_path / "out")).to_dict()
    assert told["safe"] and told["groups"] == len({row["group"] for row in qi})


def test_nothing_of_the_source_is_in_the_files_but_what_is_published(tmp_path: Path) -> None:
    run(tmp_path, helpers.random_rows(6, 150))
    for name in ("qi", "sensitive"):
        path = tmp_path / "out" / f"{name}.parquet"
        plain = tmp_path / "plain.parquet"
        pq.write_table(pq.ParquetFile(path).read(), plain, compression="none", store_schema=False)
        assert not any(mark in plain.read_bytes() for mark in (b"IDENTIFIER", b"DROPPED", b"secret"))
        assert not pq.ParquetFile(path).metadata.metadata
    diseases = {value.encode() for value in helpers.DISEASES if len(value) > 2}
    qi = pq.ParquetFile(tmp_path / "out" / "qi.parquet").read()
    pq.write_table(qi, tmp_path / "plain.parquet", compression="none")
    assert not any(disease in (tmp_path / "plain.parquet").read_bytes() for disease in diseases)


def test_where_a_row_stands_does_not_depend_on_its_sensitive_value(tmp_path: Path) -> None:
    """The same people with their values dealt out otherwise inside their groups: the same bytes."""
    rng = random.Random(8)
    rows = [{"age": rng.randint(0, 30), "disease": rng.choice("abcd"), "hours": rng.randint(0, 9)} for _ in range(200)]
    columns = {"individual": "row", "quasi_identifiers": {"age": {}}, "sensitive": ["disease"], "keep": ["hours"]}
    seen = []
    for labels in ("generalized", "exact"):
        changes = {"columns": columns, "privacy": [{"group_size": {"k": 9}}], "release__labels": labels}
        run(tmp_path, pa.Table.from_pylist(rows), **changes)
        seen.append(files(tmp_path))
    qi, _ = bucketized.released(tmp_path / "out")
    group_of = {row["age"]: row["group"] for row in qi}
    shuffled = [dict(row) for row in rows]
    for group in set(group_of.values()):
        members = [row for row in shuffled if group_of[row["age"]] == group]
        values = [row["disease"] for row in members]
        rng.shuffle(values)
        for row, value in zip(members, values):
            row["disease"] = value
    assert shuffled != rows
    for labels, before in zip(("generalized", "exact"), seen):
        changes = {"columns": columns, "privacy": [{"group_size": {"k": 9}}], "release__labels": labels}
        run(tmp_path, pa.Table.from_pylist(shuffled), **changes)
        assert files(tmp_path) == before


def test_the_description_has_two_resources_and_names_what_they_hold(tmp_path: Path) -> None:
    for labels, kind in (("generalized", "string"), ("exact", "integer")):
        run(tmp_path, helpers.random_rows(9, 100), privacy=[{"group_size": {"k": 4}}], release__labels=labels)
        package = json.loads((tmp_path / "out" / "datapackage.json").read_text())
        qi, sensitive = package["resources"]
        assert [qi["path"], sensitive["path"]] == ["qi.parquet", "sensitive.parquet"] and qi["rows"] == 100
        age, *_, group = qi["schema"]["fields"]
        assert (age["name"], age["type"], group["name"], group["role"]) == ("age", kind, "group", "group")
        assert [f["role"] for f in sensitive["schema"]["fields"]] == ["group", "sensitive", "count"]
        assert [name in package for name in ("labels", "cells")] == [labels == "generalized"] * 2


def test_exact_values_of_bins_are_published_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column with more values than codes is cut in bins, but every row has its own value."""
    from anon.cube import building, value_counts

    for module in (building, value_counts):
        monkeypatch.setattr(module, "CODES", 16)
    rng = random.Random(10)
    rows = [{"age": rng.randint(0, 400), "disease": rng.choice("abc")} for _ in range(300)]
    columns = {"individual": "row", "quasi_identifiers": {"age": {}}, "sensitive": ["disease"], "keep": []}
    run(tmp_path, pa.Table.from_pylist(rows), columns=columns, privacy=[{"group_size": {"k": 9}}],
        release__labels="exact")  # fmt: skip
    qi, sensitive = bucketized.released(tmp_path / "out")
    assert Counter(row["age"] for row in qi) == Counter(row["age"] for row in rows)
    bucketized.assert_canonical(qi, sensitive, ["age"], [], "disease")


# Assignments, whose groups may have quasi-identifiers in common

people = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["a", "b", None]), st.integers(0, 2), st.integers(0, 3)),
    min_size=2, max_size=24,
)  # fmt: skip


def assigned(folder: Path, rows: list[Any], groups: list[int], keep: list[str]) -> tuple[helpers.Rows, helpers.Rows]:
    """A release of rows (age, sex, hours, disease) in the order of their codes, which go to these groups."""
    kinds = {"age": pa.int64(), "sex": pa.string(), "hours": pa.int64(), "disease": pa.int64()}
    table = pa.Table.from_pylist([dict(zip(kinds, row)) for row in rows], pa.schema(list(kinds.items())))
    columns = {"individual": "row", "quasi_identifiers": {"age": {}, "sex": {"suppress": True}}, "keep": keep}
    with bucketized.dealing(lambda count: groups[:count]):
        run(folder, table, columns=columns | {"sensitive": {"disease": {"as_categories": True}}},
            privacy=[{"t_closeness": {"t": 0.999, "distance": {"kind": "equal"}}}],
            release__labels="exact")  # fmt: skip
    return bucketized.released(folder / "out")


def dense(numbers: list[int]) -> list[int]:
    known = sorted(set(numbers))
    return [known.index(number) for number in numbers]


def in_code_order(rows: list[Any]) -> list[Any]:
    """The order that the groups of a dealt table are given in."""
    return sorted(rows, key=lambda row: (row[0], row[1] is not None, row[1] or "", row[3]))


def content(groups: dict[int, list[Any]]) -> list[Any]:
    """What is in each group, whatever its number: quasi-identifiers, and values with counts."""
    return sorted(
        (sorted((age, sex or "") for age, sex, *_ in own), sorted(Counter(row[-1] for row in own).items()))
        for own in groups.values()
    )


@settings(max_examples=6, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(rows=people, data=st.data())
def test_an_assignment_is_released_as_it_was_dealt(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("dealt")
    numbers = dense(data.draw(st.lists(st.integers(0, 5), min_size=len(rows), max_size=len(rows))))
    qi, sensitive = assigned(folder, rows, numbers, [])
    dealt: dict[int, list[Any]] = {}
    for row, number in zip(in_code_order(rows), numbers):
        dealt.setdefault(number, []).append(row)
    held = bucketized.values_of(sensitive, "disease")
    found: dict[int, list[Any]] = {}
    for row in qi:
        found.setdefault(row["group"], []).append((row["age"], row["sex"]))
    told = sorted((sorted((a, s or "") for a, s in own), sorted(held[g].items())) for g, own in found.items())
    assert told == content(dealt)
    bucketized.assert_canonical(qi, sensitive, ["age", "sex"], [], "disease")
    before = files(folder)
    permuted = data.draw(st.permutations(range(max(numbers) + 1)))
    assigned(folder, rows, [permuted[number] for number in numbers], [])
    assert files(folder) == before, "the numbers that a search gives its groups are not published"


@settings(max_examples=6, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(rows=people, data=st.data())
def test_kept_values_are_dealt_in_their_order_among_those_who_are_alike(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("dealt")
    numbers = dense(data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows))))
    qi, sensitive = assigned(folder, rows, numbers, ["hours"])
    groups: dict[Any, list[int]] = {}
    for row, number in zip(in_code_order(rows), numbers):
        groups.setdefault((row[0], row[1], row[3]), []).append(number)
    dealt: dict[int, list[Any]] = {}
    for alike, theirs in groups.items():
        hours = sorted(row[2] for row in rows if (row[0], row[1], row[3]) == alike)
        for number, hour in zip(sorted(theirs), hours):
            dealt.setdefault(number, []).append((alike[0], alike[1], hour, alike[2]))
    held = bucketized.values_of(sensitive, "disease")
    found: dict[int, list[Any]] = {}
    for row in qi:
        found.setdefault(row["group"], []).append((row["age"], row["sex"] or "", row["hours"]))
    told = sorted((sorted(own), sorted(held[group].items())) for group, own in found.items())
    expected = (
        (sorted((a, s or "", h) for a, s, h, _ in own), sorted(Counter(row[-1] for row in own).items()))
        for own in dealt.values()
    )
    assert told == sorted(expected)
    bucketized.assert_canonical(qi, sensitive, ["age", "sex"], ["hours"], "disease")
    before = files(folder)
    assigned(folder, data.draw(st.permutations(rows)), numbers, ["hours"])
    assert files(folder) == before


def test_many_groups_are_put_in_order_some_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from anon.release import assigned as assigned_rows

    rng = random.Random(11)
    rows = [(rng.randint(0, 5), rng.choice("ab"), rng.randint(0, 4), rng.randint(0, 3)) for _ in range(400)]
    numbers = [number % 90 for number in range(400)]
    rng.shuffle(numbers)
    for keep in ([], ["hours"]):
        assigned(tmp_path, rows, numbers, keep)
        before = files(tmp_path)
        with monkeypatch.context() as patch:
            patch.setattr(assigned_rows, "BATCH", 7)
            for module in (release.files, assigned_rows):
                patch.setattr(module, "ROW_GROUP", 33)
            qi, sensitive = assigned(tmp_path, rows, numbers, keep)
        bucketized.assert_canonical(qi, sensitive, ["age", "sex"], keep, "disease")
        again = pa.Table.from_pylist(qi)
        assigned(tmp_path, rows, numbers, keep)
        assert files(tmp_path) == before
        assert pa.Table.from_pylist(bucketized.released(tmp_path / "out")[0]) == again


@pytest.mark.parametrize("edit", ["value", "missing", "more"])
def test_a_source_that_changed_since_it_was_dealt_is_refused(house: House, edit: str) -> None:
    house.write({"age": [1, 2, 3, 4], "zip": ["00001"] * 4, "disease": list("abab"), "hours": [1, 2, 3, 4]})

    def edited(rows: Any) -> Any:
        if edit == "value":
            rows[-1, 0] = 1 - rows[-1, 0]
            return rows
        return rows[:, :-1] if edit == "missing" else rows[:, [0, 0, 1, 2, 3]]

    release = {"path": "out", "form": "bucketized", "labels": "exact"}
    with (
        bucketized.dealing(lambda count: [0, 0, 1, 1, 1][:count], edited),
        pytest.raises(SourceError, match="the source changed between two passes"),
    ):
        house.run(columns__keep=["hours"], release=release, privacy=[{"group_size": {"k": 2}}])
    assert not house.leftovers() and not (house.folder / "out").exists()


def test_merge_and_colour_have_no_labels(house: House) -> None:
    from anon.config import load
    from anon.config.support import refuse_unsupported

    for method in ("merge", "colour"):
        for wrong in ({"path": "out"}, {"path": "out", "form": "bucketized", "labels": "generalized"}):
            config = load(house.config(method={"kind": method}, release=wrong))
            with pytest.raises(ConfigError, match="people with the same quasi-identifiers are in different groups"):
                refuse_unsupported(config, run=True)


# Failures under way


@pytest.mark.parametrize("keep", [[], ["hours"]], ids=["", "kept"])
def test_a_full_disk_is_a_matter_of_resources_and_leaves_nothing(
    house: House, monkeypatch: pytest.MonkeyPatch, keep: list[str]
) -> None:
    from anon.core.spilled import SpilledBatches

    def full(self: SpilledBatches, batch: pa.RecordBatch) -> None:
        from anon.core.database import translated

        with translated("writing the spill"):
            raise OSError(28, "No space left on device")

    house.write({"age": [1, 2, 3, 4], "zip": ["00001"] * 4, "disease": list("abab"), "hours": [1, 2, 3, 4]})
    monkeypatch.setattr(SpilledBatches, "add", full)
    wanted = {"path": "out", "run": "out-run", "form": "bucketized", "labels": "exact"}
    with pytest.raises(ResourceError, match="no space left"):
        house.run(columns__keep=keep, release=wanted, privacy=[{"group_size": {"k": 2}}])
    assert not house.leftovers() and not (house.folder / "out").exists()


@pytest.mark.parametrize("labels", ["generalized", "exact"])
@pytest.mark.parametrize("failure", [SourceError("new values appeared"), KeyboardInterrupt()])
def test_a_failure_of_the_second_pass_is_told_as_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException, labels: str
) -> None:
    class Failing(cube.Encoder):
        def codes(self, batch: pa.RecordBatch, more: int = 0) -> Any:
            raise failure

    monkeypatch.setattr(release.rows, "Encoder", Failing)
    with pytest.raises(type(failure)) as caught:
        run(tmp_path, helpers.random_rows(1, 30), privacy=[{"group_size": {"k": 3}}], release__labels=labels)
    assert caught.value is failure or isinstance(failure, KeyboardInterrupt)  # which is told what is kept
    assert not any((tmp_path / name).exists() for name in ("out", "out-run"))
