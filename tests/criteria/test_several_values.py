"""Runs over individuals with several values, as a set or a multiset: what is released, that it is safe in all possible
worlds, and what is refused."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from anon.errors import ConfigError, UnsafeError
from tests.conftest import House
from tests.helpers import bucketized
from tests.oracles import worlds

KINDS = ["set", "multiset"]
POINTS = [{"l": l, "k": k, "m": m, "c": 0.8} for l, k, m in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1))]
C = Fraction("0.8")
Person = tuple[int, int, list[str]]  # age, hours, values


def rows_of(people: list[Person]) -> pa.Table:
    rows = [
        {"id": f"p{number}", "age": age, "hours": hours, "disease": value}
        for number, (age, hours, values) in enumerate(people)
        for value in values
    ]
    return pa.Table.from_pylist(rows)


def changes(kind: str, **more: Any) -> dict[str, Any]:
    columns = {
        "individual": "id", "multiplicity": kind, "quasi_identifiers": {"age": {}}, "sensitive": ["disease"],
        "keep": [],
    }  # fmt: skip
    given: dict[str, Any] = {
        "columns": columns, "release": {"path": "out", "run": "out-run", "form": "bucketized", "labels": "exact"},
    }  # fmt: skip
    for name, value in more.items():
        section, _, key = name.partition("__")
        given[section] = (given.get(section, {}) | {key: value}) if key else value
    return given


def held(values: list[str], kind: str) -> list[str]:
    return sorted(set(values)) if kind == "set" else sorted(values)


def random_people(seed: int, count: int, values: str = "abcdefgh") -> list[Person]:
    rng = random.Random(seed)
    return [(rng.randint(0, 40), rng.randint(0, 5), rng.choices(values, k=rng.randint(1, 4))) for _ in range(count)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("method", "prefer"), [("partition", "widest"), ("partition", "balanced"), ("lattice", None)])
def test_everybody_is_released_once_with_all_their_values(
    house: House, kind: str, method: str, prefer: str | None
) -> None:
    people = random_people(1, 120)
    table = rows_of(people).take(pa.array(random.Random(2).sample(range(len(rows_of(people))), len(rows_of(people)))))
    chosen = {"kind": method} | ({"prefer": prefer} if prefer else {"exhaustive": True})
    builders = {"age": {} if method == "partition" else {"intervals": [5, 10, 20]}}
    given = changes(kind, method=chosen, columns__keep=["hours"], columns__quasi_identifiers=builders)
    result = house.run(table, **given, privacy=[{"group_size": {"k": 6}}])
    qi, sensitive = bucketized.released(house.folder / "out")
    assert Counter((row["age"], row["hours"]) for row in qi) == Counter((age, hours) for age, hours, _ in people)
    group_of = {row["age"]: row["group"] for row in qi}
    expected: dict[int, Counter[str]] = {}
    for age, _, values in people:
        expected.setdefault(group_of[age], Counter()).update(held(values, kind))
    assert bucketized.values_of(sensitive, "disease") == expected
    sizes = Counter(row["group"] for row in qi)
    assert min(sizes.values()) >= 6
    told = result.to_dict()
    assert (told["rows"], told["individuals"], told["groups"]) == (120, 120, len(sizes))
    ages = Counter(age for age, *_ in people)
    assert told["risk"]["unique_before"] == sum(count == 1 for count in ages.values())
    bucketized.assert_canonical(qi, sensitive, ["age"], ["hours"], "disease")


@pytest.mark.parametrize("prefer", ["widest", "balanced", {"information_gain": "disease"}])
@pytest.mark.parametrize("kind", KINDS)
def test_with_one_value_each_the_release_is_that_of_single_values(house: House, kind: str, prefer: Any) -> None:
    people = [(age, hours, values[:1]) for age, hours, values in random_people(3, 150)]
    seen = []
    for multiplicity in ("single", kind):
        given = changes(multiplicity, method={"kind": "partition", "prefer": prefer})
        house.run(rows_of(people), **given, privacy=[{"group_size": {"k": 7}}])
        seen.append([(house.folder / "out" / f"{name}.parquet").read_bytes() for name in ("qi", "sensitive")])
    assert seen[0] == seen[1]


@pytest.mark.parametrize("kind", KINDS)
def test_values_do_not_change_groups_that_only_their_size_matters_for(house: House, kind: str) -> None:
    """Individuals weigh the same however many values they have."""
    people = random_people(4, 150)
    seen = []
    for own in (people, [(age, hours, values[:1]) for age, hours, values in people]):
        house.run(rows_of(own), **changes(kind, privacy=[{"group_size": {"k": 7}}]))
        seen.append((house.folder / "out" / "qi.parquet").read_bytes())
    assert seen[0] == seen[1]


tiny = st.lists(
    st.tuples(st.integers(0, 2), st.just(0), st.lists(st.sampled_from("abc"), min_size=1, max_size=2)),
    min_size=2, max_size=5,
).filter(lambda people: sum(len(values) for *_, values in people) <= 7)  # fmt: skip


def breaches(release: list[tuple[int, list[str]]], kind: str) -> dict[Any, Fraction]:
    every = worlds.many_worlds(release, kind)
    return {
        (value, point["l"], point["k"], point["m"]): worlds.worst_case(
            every, worlds.MANY, value, (point["l"], point["k"], point["m"])
        )
        for value, point in product({v for _, own in release for v in own}, POINTS)
    }


def in_groups(people: list[Person], cuts: tuple[int, ...], kind: str) -> list[tuple[int, list[str]]]:
    """Groups of ages between cuts: people and occurrences."""
    found: dict[int, tuple[int, list[str]]] = {}
    for age, _, values in people:
        count, own = found.setdefault(sum(age >= cut for cut in cuts), (0, []))
        found[sum(age >= cut for cut in cuts)] = (count + 1, own + held(values, kind))
    return list(found.values())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", [{"kind": "partition"}, {"kind": "lattice", "exhaustive": True}], ids=["p", "l"])
@settings(max_examples=8, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(people=tiny)
def test_releases_are_safe_in_all_possible_worlds(kind: str, method: dict[str, Any], people: list[Person]) -> None:
    skyline = {"skyline": {"points": POINTS}}
    with TemporaryDirectory() as folder:
        house = House(Path(folder))
        try:
            house.run(rows_of(people), **changes(kind, method=method, privacy=[skyline]))
        except UnsafeError:
            assert max(breaches(in_groups(people, (), kind), kind).values()) >= C, "the table itself would be a release"
            if method["kind"] == "lattice":
                assert max(breaches(in_groups(people, (1, 2), kind), kind).values()) >= C
            return
        qi, sensitive = bucketized.released(house.folder / "out")
    sizes, own = Counter(row["group"] for row in qi), bucketized.values_of(sensitive, "disease")
    release = [(sizes[group], sorted(own[group].elements())) for group in sorted(sizes)]
    assert max(breaches(release, kind).values()) < C


def test_a_search_goes_on_below_a_table_that_fails(house: House) -> None:
    """The whole table has a breach of 128/209, its two halves of 3/5: merging has made it worse. With m = 1 all groups
    count together, and the table, which is none of them, must not."""
    people: list[Person] = [(0, 0, ["a", "a", "a"]), (9, 0, ["b"]), (9, 0, ["s"]), (9, 0, ["a"])]
    points = {"points": [], "values": {"s": [{"l": 1, "k": 0, "m": 1, "c": 0.61}]}}
    told = house.run(rows_of(people), **changes("multiset", privacy=[{"skyline": points}])).to_dict()
    assert told["groups"] == 2 and told["criteria"][0]["figure"] == pytest.approx(3 / 5)
    with pytest.raises(UnsafeError, match="no safe release was found"):
        house.run(rows_of([(1, 0, values) for *_, values in people]),
                  **changes("multiset", privacy=[{"skyline": points}]))  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_disagree_are_refused_with_the_count(house: House, kind: str) -> None:
    table = pa.table(
        {
            "id": ["p", "p", "q", "r", "r"], "age": [1, 2, 3, 4, 4], "hours": [1, 1, 2, 3, 4],
            "disease": ["a", "b", "a", "a", "b"],
        }
    )  # fmt: skip
    with pytest.raises(ConfigError, match="1 individual whose rows disagree on a quasi-identifier"):
        house.run(table, **changes(kind, privacy=[{"group_size": {"k": 2}}]))
    with pytest.raises(ConfigError, match=r"columns\.keep: found 1 individual whose rows disagree on a kept column"):
        house.run(table.slice(2), **changes(kind, columns__keep=["hours"], privacy=[{"group_size": {"k": 2}}]))


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_bucketized_form_takes_several_values(house: House, kind: str) -> None:
    with pytest.raises(ConfigError, match=r"release\.form: .*data are released in bucketized form only"):
        house.run(rows_of(random_people(6, 20)), **changes(kind, release={"path": "out", "run": "out-run"}))


def test_a_set_counts_what_somebody_has_twice_once(house: House) -> None:
    people: list[Person] = [(1, 0, ["a", "a"]), (1, 0, ["b"]), (1, 0, ["a", "c"])]
    for kind, times in (("set", 2), ("multiset", 3)):
        house.run(rows_of(people), **changes(kind, privacy=[{"group_size": {"k": 3}}]))
        _, sensitive = bucketized.released(house.folder / "out")
        assert {row["disease"]: row["count"] for row in sensitive} == {"a": times, "b": 1, "c": 1}


def test_the_individuals_of_a_release_are_not_told(house: House) -> None:
    house.run(rows_of(random_people(7, 40)), **changes("set", privacy=[{"group_size": {"k": 4}}]))
    for path in (house.folder / "out").rglob("*"):
        assert b"p17" not in path.read_bytes()
