"""Several values per individual, as a set or a multiset: what `check` counts, and what it says against all worlds."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anon
from anon.errors import ConfigError, SourceError
from tests.conftest import House
from tests.oracles import worlds

C = Fraction("0.75")
POINTS = [{"l": l, "k": k, "m": m, "c": 0.75} for l, k, m in ((0, 0, 0), (1, 0, 0), (2, 0, 0), (0, 1, 1), (1, 1, 0))]
SKYLINE = [{"skyline": {"points": POINTS}}]
People = list[list[str]]  # the values of each individual of a group
Release = list[People]


def several(kind: str, **changes: Any) -> dict[str, Any]:
    return {"columns__individual": "id", "columns__multiplicity": kind, "release__form": "bucketized"} | changes


def bucketized(release: Release, kind: str) -> tuple[pa.Table, pa.Table]:
    ids = [number for number, people in enumerate(release) for _ in people]
    qi = pa.table({"age": ["*"] * len(ids), "zip": ["*"] * len(ids), "group": ids})
    held = [(number, value, count) for number, some in enumerate(release) for value, count in occurring(some, kind)]
    schema = pa.schema([("group", pa.int64()), ("disease", pa.string()), ("count", pa.int64())])
    return qi, pa.Table.from_pylist([dict(zip(schema.names, row)) for row in held], schema)


def occurring(people: People, kind: str) -> list[tuple[str, int]]:
    values = [value for own in people for value in (set(own) if kind == "set" else own)]
    return sorted(Counter(values).items())


def labelled(release: Release, labels: tuple[Any, ...] = (1, None, 2)) -> pa.Table:
    rows = [
        {"id": f"{number}-{person}", "age": labels[number], "zip": "*", "disease": value}
        for number, people in enumerate(release)
        for person, own in enumerate(people)
        for value in own
    ]
    return pa.Table.from_pylist(rows)


def expected(release: Release, kind: str) -> dict[tuple[str, int, int, int], Fraction]:
    held = [
        (len(people), [v for value, count in occurring(people, kind) for v in [value] * count]) for people in release
    ]
    every = worlds.many_worlds(held, kind)
    return {
        (value, point["l"], point["k"], point["m"]): worlds.worst_case(
            every, worlds.MANY, value, (point["l"], point["k"], point["m"])
        )
        for value in {v for _, values in held for v in values}
        for point in POINTS
    }


one_person = st.lists(st.sampled_from("abc"), min_size=1, max_size=2)
releases = st.lists(st.lists(one_person, min_size=1, max_size=3), min_size=1, max_size=2).filter(
    lambda release: sum(len(own) for people in release for own in people) <= 7
)


@pytest.mark.parametrize("kind", ["set", "multiset"])
@settings(max_examples=10, deadline=None)
@given(release=releases)
def test_a_skyline_is_judged_as_by_all_possible_worlds(kind: str, release: Release) -> None:
    with TemporaryDirectory() as folder:
        house = House(Path(folder))
        names = {"skyline": {"points": POINTS, "absent": "ok", "values": dict.fromkeys("abc", POINTS)}}
        changes = several(kind, privacy=[names, {"group_size": {"k": 1}}])
        of_pair = house.check(bucketized(release, kind), **changes).to_dict()
        of_table = house.check(labelled(release), **changes).to_dict()
    found = {(p["value"], p["l"], p["k"], p["m"]): p for p in of_pair["criteria"][0]["points"]}
    breaches = expected(release, kind)
    assert found.keys() == breaches.keys()
    for key, breach in breaches.items():
        assert found[key]["breach"] == pytest.approx(float(breach)), key
        assert found[key]["safe"] == (breach < C)
    assert of_pair["safe"] == (max(breaches.values()) < C)
    again = {(p["value"], p["l"], p["k"], p["m"]): p for p in of_table["criteria"][0]["points"]}
    assert {key: (p["breach"], p["safe"]) for key, p in again.items()} == {
        key: (p["breach"], p["safe"]) for key, p in found.items()
    }
    assert of_table["individuals"] == of_pair["individuals"] == sum(map(len, release))
    assert of_table["risk"] == of_pair["risk"]


some_without = st.lists(st.lists(st.lists(st.sampled_from("ab"), max_size=2), min_size=1, max_size=3), max_size=2)


@pytest.mark.parametrize("kind", ["set", "multiset"])
@settings(max_examples=12, deadline=None)
@given(release=some_without, nobody=st.integers(1, 2))
def test_a_group_in_which_nobody_has_a_value_counts_as_in_all_possible_worlds(
    kind: str, release: Release, nobody: int
) -> None:
    """Sets and multisets may be empty (Privacy Skyline, Section 2.1); a group may have no others."""
    release = [*release, [[] for _ in range(nobody)]]
    names = {"skyline": {"points": POINTS, "absent": "ok", "values": dict.fromkeys("ab", POINTS)}}
    with TemporaryDirectory() as folder:
        told = House(Path(folder)).check(bucketized(release, kind), **several(kind, privacy=[names])).to_dict()
    found = {(p["value"], p["l"], p["k"], p["m"]): p["breach"] for p in told["criteria"][0].get("points", [])}
    breaches = expected(release, kind)
    assert found == pytest.approx({key: float(breach) for key, breach in breaches.items()})
    assert told["safe"] == (max(breaches.values(), default=0) < C)
    assert (told["individuals"], told["groups"]) == (sum(map(len, release)), len(release))


@pytest.mark.parametrize("kind", ["set", "multiset"])
@pytest.mark.parametrize("release", [[[["Flu"], ["Cold"]], [[], []], [[]]], [[[], []]]])
@pytest.mark.parametrize("end", ["parquet", "csv"])
def test_every_command_reads_a_group_without_values(house: House, kind: str, release: Release, end: str) -> None:
    for name, table in zip(("qi", "sensitive"), bucketized(release, kind)):
        if end == "csv":
            pyarrow.csv.write_csv(table, house.folder / f"{name}.csv")
        else:
            house.write(table, f"{name}.parquet")
    table, config = house.folder, house.config(**several(kind, privacy=[{"group_size": {"k": 1}}, *SKYLINE]))
    told = anon.check(config, table).to_dict()
    (skyline,) = anon.explore(config, table, "Flu", 0.9).to_dict()["skylines"]
    attacked = anon.attack(config, table).to_dict()
    some = len(release) > 1
    assert told["groups"] == len(release) and told["criteria"][1]["figure"] == (1.0 if some else 0.0)
    assert skyline["breach"] == pytest.approx(0.5 if some else 0)
    assert (attacked["groups"], attacked["affected_groups"]) == (len(release), 0)


@pytest.mark.parametrize("kind", ["set", "multiset"])
def test_sizes_are_individuals_and_not_rows(house: House, kind: str) -> None:
    release: Release = [[["Flu", "Cold", "Ache"], ["Flu"]], [["Flu", "Cold"], ["Cold", "Cold"], ["Ache"]]]
    privacy = [{"k_anonymity": {"k": 3}}, {"group_size": {"k": 2}}]
    told = house.check(labelled(release), **several(kind, privacy=privacy)).to_dict()
    assert (told["rows"], told["individuals"], told["groups"]) == (9, 5, 2)
    assert [(c["figure"], c["safe"]) for c in told["criteria"]] == [(2, False), (2, True)]
    assert told["risk"]["highest"] == 1 / 2 and told["risk"]["mean"] == 2 / 5 and told["risk"]["under_5"] == 5
    told = house.check(bucketized(release, kind), **several(kind, privacy=privacy)).to_dict()
    assert (told["rows"], told["individuals"], told["groups"]) == (5, 5, 2)
    assert [(c["figure"], c["safe"]) for c in told["criteria"]] == [(5, True), (2, True)]


def test_what_an_individual_has_twice_counts_once_in_a_set(house: House) -> None:
    release: Release = [[["Flu", "Flu"], ["Cold"], ["Ache"]]]
    privacy = [{"skyline": {"points": [{"l": 0, "k": 0, "m": 0, "c": 0.5}], "values": {"Flu": POINTS[:1]}}}]

    def of_flu(kind: str) -> float:
        points = house.check(labelled(release), **several(kind, privacy=privacy)).to_dict()["criteria"][0]["points"]
        return next(point["breach"] for point in points if point["value"] == "Flu")

    assert of_flu("set") == pytest.approx(1 / 3)
    assert of_flu("multiset") == pytest.approx(1 - (2 / 3) ** 2)


def test_merging_groups_may_raise_the_breach(house: House) -> None:
    privacy = [{"skyline": {"points": [], "values": {"s": [{"l": 2, "k": 0, "m": 0, "c": 0.52}]}}}]
    apart: Release = [[["a", "b"]], [["s"], []]]
    figures = [
        house.check(bucketized(release, "set"), **several("set", privacy=privacy)).to_dict()["criteria"][0]
        for release in (apart, [apart[0] + apart[1]])
    ]
    assert [(figure["figure"], figure["safe"]) for figure in figures] == [(0.5, True), (pytest.approx(9 / 17), False)]


def test_homogeneous_is_a_value_that_all_have_or_the_only_one(house: House) -> None:
    release: Release = [[["Flu", "Cold"], ["Flu"]], [["Flu", "Flu"], ["Flu"]], [["Flu", "Flu"], ["Cold"]]]
    for kind, concerned in (("set", 4), ("multiset", 2)):
        for table in (labelled(release), bucketized(release, kind)):
            assert house.check(table, **several(kind)).to_dict()["risk"]["homogeneous_rows"] == concerned


def test_kept_columns_are_joined_by_individual(house: House) -> None:
    release: Release = [[["Flu", "Cold"], ["Flu"], ["Ache"]]]
    table = labelled(release).append_column("ward", [["x", "x", "x", "y"]])
    told = house.check(table, **several("set", columns__keep=["ward"])).to_dict()
    assert told["with_kept"]["ward"] == {"smallest_group": 1, "unique_share": 1 / 3, "homogeneous_share": 1.0}


def test_the_column_of_individuals_must_be_there_and_named(house: House) -> None:
    table = labelled([[["Flu"], ["Cold"]]])
    with pytest.raises(ConfigError, match=r"columns\.individual: found column 'id'"):
        house.check(table.drop_columns("id"), **several("set"))
    for given_table in (table, bucketized([[["Flu"], ["Cold"]]], "set")):
        with pytest.raises(ConfigError, match=r"columns\.individual: found row with multiplicity set"):
            house.check(given_table, **several("set", columns__individual="row"))


def test_an_individual_in_two_groups_is_refused_with_the_count(house: House) -> None:
    table = labelled([[["Flu", "Cold"], ["Cold"]], [["Flu"], ["Ache"]]])
    moved = table.set_column(table.column_names.index("id"), "id", [["p", "q", "q", "p", "r"]])
    for kind in ("set", "multiset"):
        with pytest.raises(ConfigError, match="1 individual whose rows disagree on a quasi-identifier"):
            house.check(moved, **several(kind))


def test_a_value_of_a_set_occurs_at_most_once_per_individual(house: House) -> None:
    qi, sensitive = bucketized([[["Flu"], ["Flu"]]], "multiset")
    more = qi, sensitive.set_column(2, "count", [[3]])
    with pytest.raises(SourceError, match="1 groups with a value that occurs more often than individuals"):
        house.check(more, **several("set"))
    with pytest.raises(SourceError, match="1 groups with another number of values than of individuals"):
        house.check(more)
    assert house.check(more, **several("multiset")).safe


def test_criteria_about_one_value_per_individual_are_refused(house: House) -> None:
    table = labelled([[["Flu", "Cold"], ["Cold"]]])
    with pytest.raises(ConfigError, match=r"l_diversity with multiplicity set; .*defined for one value per individual"):
        house.check(table, **several("set", privacy=[{"l_diversity": {"kind": "distinct", "l": 2}}]))


def test_rows_without_a_value_may_be_dropped(house: House) -> None:
    table = labelled([[["Flu", "Cold"], ["Cold"], ["Ache"]]])
    holes = table.set_column(table.column_names.index("disease"), "disease", [["Flu", None, "Cold", None]])
    told = house.check(holes, **several("set", nulls={"sensitive": "drop"})).to_dict()
    assert (told["rows"], told["individuals"]) == (2, 2)
    assert [w["count"] for w in told["warnings"] if w["code"] == "rows_dropped"] == [2]
